# SPDX-License-Identifier: Apache-2.0
"""Networks of one's own: imported from PyTorch or ONNX, so that bench gets them as JSON."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from tools.console import ROOT, Failure, friendly

FLAG = "--network="
FOLDER = ROOT / "build" / "networks"
# Words for `python -m networks import`; bench knows the last one, too, but of --mlp alone.
_IMPORT = ("--input=", "--input-type=", "--batch-axis=", "--as-is", "--loss-function=")


def paths(words: list[str]) -> list[Path]:
    """Those that --network names."""
    named = [word.removeprefix(FLAG) for word in words if word.startswith(FLAG)]
    return [Path(one).absolute() for text in named for one in text.split(",")]


def found(word: str, run: Path) -> str:
    """The --network of the run in the file `run`, whose folders it does not name, with each file
    where it is: in the current folder, or among those imported. Failure where one is in neither."""
    places = []
    for name in word.removeprefix(FLAG).split(","):
        there = [path for path in (Path(name), FOLDER / name) if path.is_file()]
        if not there:
            raise Failure(
                f"the run in {friendly(run)} measured {name}, which is neither here nor in "
                f"{friendly(FOLDER)}; say where it is: ./run --resume --network=FOLDER/{name}",
                2,
            )
        places.append(str(there[0].absolute()))
    return FLAG + ",".join(places)


def imported(words: list[str], python: Callable[[], Path]) -> list[str]:
    """The words for bench, with each network in JSON; `python()` has PyTorch and onnx. Failure,
    after the importer's own sentence, where one is refused."""
    if all(path.suffix == ".json" for path in paths(words)):
        return words
    how = [word for word in words if word.startswith(_IMPORT)]
    kept = [word for word in words if not word.startswith((*_IMPORT, FLAG))]
    files = (str(one if one.suffix == ".json" else _made(one, how, python)) for one in paths(words))
    return [*kept, FLAG + ",".join(files)]


def _made(source: Path, how: list[str], python: Callable[[], Path]) -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    file, _, name = source.name.partition(":")
    out = FOLDER / f"{'-'.join(filter(None, [Path(file).stem, name]))}.json"
    command = [python(), "-m", "networks", "import", source, *how, "-o", out]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Failure(f"{friendly(source)} was not imported (above)", done.returncode)
    return out
