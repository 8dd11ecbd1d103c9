# SPDX-License-Identifier: Apache-2.0
"""Networks of one's own: imported from PyTorch or ONNX, so that bench gets them as JSON, or as
they are, in PyTorch."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.console import ROOT, Failure, friendly

FLAG = "--network="
FOLDER = ROOT / "build" / "networks"
# Words for `python -m networks import`; bench knows the last one, too, but of --mlp alone.
_IMPORT = ("--input=", "--input-type=", "--batch-axis=", "--as-is", "--loss-function=")
_IMPORTER = "python -m networks: "
# Of modules as they are (docs/method/peers.md): what their worker is, and what it is told.
_WORKER, _MODULE = "peers.pytorch.own", ".module.json"
_AS_IT_IS = ("--output=",)
_TRAINING = ("Epoch", "Minibatch")
_OF_PEERS = ("--mode=", "--devices=")
_TRAINED = ("--batch=", "--rows=", "--scale=", "--threads=", "--precision=")
_TRAINED += ("--optimizer=", "--lr=", "--weight-decay=")
_TOLD = (*_TRAINED, *_OF_PEERS, "--torch-device=")


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
    """The words for bench, with each network in JSON; `python()` has PyTorch and onnx. A module of
    PyTorch's that the importer refuses, in its own sentence, stands there as what tells the worker
    of it (as_it_is()). Failure where that can't be trained either."""
    named = paths(words)
    if all(path.suffix == ".json" for path in named):
        return words
    how = [word for word in words if word.startswith((*_IMPORT, *_AS_IT_IS))]
    how += [word for word in words if word.startswith("--data=") and ":" in word]
    kept = [word for word in words if word not in how and not word.startswith(FLAG)]
    tried = [*how, *(word for word in words if word.startswith("--batch="))]
    made = [
        one if one.suffix == ".json" else _made(one, _name_of(one, named), tried, python)
        for one in named
    ]
    return [*kept, FLAG + ",".join(map(str, made))]


def _name_of(source: Path, named: list[Path]) -> str:
    """FILE-CALLABLE, behind the folder's name where another network would be called that."""
    file, _, name = source.name.partition(":")
    own = "-".join(filter(None, [Path(file).stem, name]))
    same = [one for one in named if one.name == source.name and one != source]
    return re.sub(r"[^\w.-]", "-", f"{source.parent.name}-{own}" if same else own, flags=re.ASCII)


def _made(source: Path, name: str, how: list[str], python: Callable[[], Path]) -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    out = FOLDER / f"{name}.json"
    out.unlink(missing_ok=True)
    of_import = [word for word in how if word.startswith(_IMPORT)]
    reason = next((f"{w} is of modules as they are" for w in how if not _is_imported(w)), "")
    if not reason:
        own = ["--name", name] if name != _name_of(source, []) else []
        command = [python(), "-m", "networks", "import", source, *of_import, *own, "-o", out]
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(done.stderr, end="", file=sys.stderr, flush=True)
        if done.returncode == 0 and out.is_file():
            return out
        reason = (done.stderr.splitlines() or [""])[-1].removeprefix(_IMPORTER)
        is_misused = done.returncode == 2 and reason.startswith("python -m networks")
        if source.suffix == ".onnx" or is_misused or done.returncode == 130:
            raise Failure(f"{friendly(source)} was not imported (above)", done.returncode)
    out = FOLDER / f"{name}{_MODULE}"
    own = [word for word in how if word != "--as-is"]
    command = [python(), "-P", "-m", _WORKER, "make", source, *own, "--name", name, "-o", out]
    command += [f"--reason={reason}"]
    environment = {**_environment(), "CUDA_VISIBLE_DEVICES": ""}  # it is tried on the CPU
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Failure(f"{friendly(source)} can't be trained (above)", done.returncode)
    return out


def _is_imported(word: str) -> bool:
    """Whether the importer knows it."""
    of_a_file = word.startswith(("--loss-function=", "--data=")) and ":" in word
    of_a_module = ("--loss-function=module", "--loss-function=nll", *_AS_IT_IS)
    return not (of_a_file or word.startswith(of_a_module))


def as_it_is(words: list[str], python: Callable[[], Path], with_peers: bool = False) -> list[str]:
    """The words for bench where some networks are modules as they are: a worker brings their rows
    (docs/protocol.md), and bench has none where all are. `with_peers`: others read flags, too."""
    named = paths(words)
    modules = [path for path in named if path.name.endswith(_MODULE)]
    if not modules:
        return words
    others = [str(path) for path in named if path not in modules]
    told = [word for word in words if word.startswith(_TOLD)]
    for word in words:
        if word.startswith("--family="):  # Peak is there for bench alone
            own = [one for one in word.partition("=")[2].split(",") if one in _TRAINING]
            told += [f"--family={','.join(own)}"] if own else []
    told.append(FLAG + ",".join(map(str, modules)))
    peer = ["env", *_environment_words(), str(python()), "-P", "-m", _WORKER, *told]
    of_peers = () if with_peers else _OF_PEERS
    kept = [word for word in words if not word.startswith((FLAG, "--torch-device=", *of_peers))]
    if others:
        kept.append(FLAG + ",".join(others))
    else:
        kept = [
            word for word in kept if not word.startswith((*_TRAINED, "--family=", "--program="))
        ]
        kept += ["--family=Peak", "--program=pytorch"]
    return [*kept, f"--peer={shlex.join(peer)}"]


def _environment_words() -> list[str]:
    given = filter(None, [os.environ.get("PYTHONPATH")])
    return [f"PYTHONPATH={os.pathsep.join([str(ROOT), *given])}"]


def _environment() -> dict[str, str]:
    return {**os.environ, **dict(word.split("=", 1) for word in _environment_words())}
