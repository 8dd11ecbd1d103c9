# SPDX-License-Identifier: Apache-2.0
"""Networks of one's own: imported from PyTorch or ONNX, so that bench gets them as JSON."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools import environment
from tools.console import ROOT, Failure, can_write, friendly

FLAG = "--network="
FOLDER = ROOT / "build" / "networks"
# Words for `python -m networks import`; bench knows the last one, too, but of --mlp alone.
_IMPORT = ("--input=", "--input-type=", "--batch-axis=", "--as-is", "--loss-function=")


def paths(words: list[str]) -> list[Path]:
    """Those that --network names."""
    named = [word.removeprefix(FLAG) for word in words if word.startswith(FLAG)]
    return [Path(one).absolute() for text in named for one in _divided(text)]


def _divided(text: str) -> list[str]:
    """At its commas, but for those in the path of a file that is there."""
    parts, names = text.split(","), []
    while parts:
        lengths = range(len(parts), 1, -1)
        there = (n for n in lengths if _file_of(",".join(parts[:n])).is_file())
        count = next(there, 1)
        names.append(os.path.expanduser(",".join(parts[:count])))
        parts = parts[count:]
    return names


def _file_of(name: str) -> Path:
    """Without the callable, of net.py:make."""
    file, colon, callable_ = name.rpartition(":")
    return Path(os.path.expanduser(file if colon and callable_.isidentifier() else name))


def _folders() -> tuple[Path, Path]:
    """Where imported networks are: in the checkout, or for who may not write there with the files
    that this user's programs keep."""
    kept = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    return FOLDER, kept / "crossover" / "networks"


def found(word: str, run: Path) -> str:
    """The --network of the run in the file `run`, whose folders it does not name, with each file
    where it is: in the current folder, or among those imported. Failure where one is in neither."""
    places = []
    for name in _divided(word.removeprefix(FLAG)):
        there = [p for p in (Path(name), *(one / name for one in _folders())) if p.is_file()]
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
    sources = paths(words)
    is_plain = all(source.suffix == ".json" and "," not in str(source) for source in sources)
    if is_plain and not any(word.startswith(FLAG) and "~" in word for word in words):
        return words
    kept = [word for word in words if not word.startswith((*_IMPORT, FLAG))]
    how = [word for word in words if word.startswith(_IMPORT)]
    if all(source.suffix == ".json" for source in sources):
        kept, how = [*kept, *how], []  # nothing is imported: bench says what it thinks of them
    files = [
        str(_readable(source) if source.suffix == ".json" else _made(source, name, how, python))
        for source, name in zip(sources, _names(sources), strict=True)
    ]
    return [*kept, FLAG + ",".join(files)]


def _names(sources: list[Path]) -> list[str]:
    """What to call those that would have one name: by their folders; empty for the others."""
    stems = [_stem(source) for source in sources]
    longer = [f"{source.parent.name}-{stem}" for source, stem in zip(sources, stems, strict=True)]
    names = []
    for at, (stem, name) in enumerate(zip(stems, longer, strict=True)):
        number = f"-{1 + longer[:at].count(name)}" if longer.count(name) > 1 else ""
        told = re.sub(r"[^A-Za-z0-9._-]+", "-", name + number)  # what a name may hold
        names.append(told if stems.count(stem) > 1 else "")
    return names


def _stem(source: Path) -> str:
    """Of its file and its callable."""
    file = _file_of(source.name)
    return "-".join(filter(None, [file.stem, source.name.removeprefix(f"{file.name}")[1:]]))


def _out(source: Path, stem: str, *how: str) -> Path:
    """A file of this source alone: others have the same name, and a run that is to go on finds it
    by its own."""
    folder = next(filter(can_write, _folders()), None)
    folder = folder or Path(tempfile.mkdtemp(prefix="crossover-"))
    folder.mkdir(parents=True, exist_ok=True)
    mark = hashlib.sha256(repr((str(source), *how)).encode()).hexdigest()[:8]
    return folder / f"{stem.replace(',', '')}-{mark}.json"


def _readable(source: Path) -> Path:
    """The network where bench reads it, which takes each comma for the end of a path."""
    if "," not in str(source) or not source.is_file():
        return source
    return Path(shutil.copyfile(source, _out(source, source.stem)))


def _made(source: Path, name: str, how: list[str], python: Callable[[], Path]) -> Path:
    how = [*how, f"--name={name}"] if name else how
    out = _out(source, _stem(source), *how)
    out.unlink(missing_ok=True)  # an older one is not what was asked for
    command = [python(), "-m", "networks", "import", source, *how, "-o", out]
    variables = environment.variables(own_paths=True)
    done = subprocess.run(command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Failure(f"{friendly(source)} was not imported (above)", done.returncode)
    if not out.is_file():
        raise Failure(
            f"{friendly(source)} was not imported: it ended the program; put what is to run in "
            'a script alone behind if __name__ == "__main__":'
        )
    return out
