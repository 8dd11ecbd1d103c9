# SPDX-License-Identifier: Apache-2.0
"""Networks of one's own: imported from PyTorch or ONNX, so that bench gets them as JSON, or as
they are, in PyTorch."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from crossover_bench.place import ROOT, RUN
from crossover_bench.run import build, environment
from crossover_bench.run.console import HOME, Failure, friendly

FLAG = "--network="
FOLDER = HOME / "build" / "networks"
# Words for `crossover networks import`; bench knows the last one, too, but of --mlp alone.
_IMPORT = (
    *("--input=", "--input-type=", "--batch-axis=", "--as-is", "--loss-function="),
    "--output=",
)
_IMPORTER = "crossover networks: "
# Of modules as they are (docs/method/peers.md): what their worker is, and what it is told.
_WORKER, _MODULE = "crossover_bench.peers.pytorch.own", ".module.json"
_TRAINING = ("Epoch", "Minibatch")
_OF_PEERS = ("--mode=", "--devices=", "--torch-device=")
_TRAINED = (
    *("--batch=", "--rows=", "--scale=", "--threads=", "--precision="),
    *("--optimizer=", "--lr=", "--weight-decay="),
)
_TOLD = (*_TRAINED, *_OF_PEERS)


def paths(words: list[str]) -> list[Path]:
    """Those that --network names."""
    lists = [word.removeprefix(FLAG).split(",") for word in words if word.startswith(FLAG)]
    return [Path(os.path.expanduser(name)).absolute() for names in lists for name in names]


def located(word: str, run: Path) -> str:
    """The --network of the run in the file `run`, which names no folders, with each file where it
    is: in the current folder, or among those imported. Failure where one is in neither."""
    places = []
    for name in word.removeprefix(FLAG).split(","):
        there = [path for path in (Path(name), FOLDER / name) if path.is_file()]
        if not there:
            raise Failure(
                f"the run in {friendly(run)} measured {name}, which is neither here nor in "
                f"{friendly(FOLDER)}; say where it is: {RUN} --resume --network=FOLDER/{name}",
                2,
            )
        places.append(str(there[0].absolute()))
    return FLAG + ",".join(places)


def imported(words: list[str], python: Callable[[], Path]) -> list[str]:
    """The words for bench, with each network in JSON; `python()` has PyTorch and onnx. A module of
    PyTorch's that the importer refuses, in its own sentence, stands there as what tells the worker
    of it (as_it_is()). Failure where that can't be trained either."""
    sources = paths(words)
    is_plain = all(source.suffix == ".json" for source in sources)
    if is_plain and not any(word.startswith(FLAG) and "~" in word for word in words):
        return words
    how = [word for word in words if word.startswith(_IMPORT) or _is_own_data(word)]
    kept = [word for word in words if word not in how and not word.startswith(FLAG)]
    if is_plain:
        kept, how = [*kept, *how], []  # nothing is imported: bench says what it thinks of them
    batches = [word for word in words if word.startswith("--batch=")]
    files = [
        str(source if source.suffix == ".json" else _made(source, name, how, batches, python))
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
    """net-make, of net.py:make."""
    file, colon, callable_ = source.name.rpartition(":")
    if colon and callable_.isidentifier():
        return f"{Path(file).stem}-{callable_}"
    return source.stem


def _made(
    source: Path, name: str, how: list[str], batches: list[str], python: Callable[[], Path]
) -> Path:
    naming = [f"--name={name}"] if name else []
    # A file of this source alone: others have the same name, and a run that is to go on finds it by
    # its own.
    FOLDER.mkdir(parents=True, exist_ok=True)
    mark = hashlib.sha256(repr((str(source), *how, *naming)).encode()).hexdigest()[:8]
    out = FOLDER / f"{_stem(source)}-{mark}.json"
    out.unlink(missing_ok=True)  # an older one is not what was asked for
    variables = environment.variables(own_paths=True)
    of_modules = [
        word
        for word in how
        if re.match("--loss-function=(module$|.*:)", word) or _is_own_data(word)
    ]
    reason = f"{of_modules[0]} is of modules as they are" if of_modules else ""
    if not reason:
        command = [str(python()), "-m", "crossover_bench.networks", "import", str(source)]
        command += [*how, *naming, "-o", str(out)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=variables,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(done.stderr, end="", file=sys.stderr, flush=True)
        if done.returncode == 0 and out.is_file():
            reason = _refusal_of_bench(out)
            if not reason:
                return out
            print(f"{RUN}: bench refuses it: {reason}", file=sys.stderr, flush=True)
        else:
            reason = (done.stderr.splitlines() or [""])[-1].removeprefix(_IMPORTER)
        is_misused = done.returncode == 2 and reason.startswith("crossover networks")
        is_onnx = source.suffix.lower() == ".onnx"
        if is_onnx and done.returncode == 0:
            raise Failure(
                f"{friendly(source)} was imported, and bench can't train it (above); a module of "
                "PyTorch's is trained as it is: --network=FILE.py:CALLABLE"
            )
        if is_onnx or is_misused or done.returncode == 130:
            raise Failure(f"{friendly(source)} was not imported (above)", done.returncode or 1)
    out = out.with_suffix(_MODULE)
    out.unlink(missing_ok=True)
    told = [word for word in (*how, *batches) if word != "--as-is"]
    name = name or re.sub(r"[^A-Za-z0-9._-]+", "-", _stem(source))
    command = [str(python()), "-m", _WORKER, "make", str(source), *told]
    command += ["--name", name, "-o", str(out), f"--reason={reason}"]
    variables |= {"CUDA_VISIBLE_DEVICES": ""}  # it is tried on the CPU
    code = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, check=False).returncode
    if code != 0:
        raise Failure(f"{friendly(source)} can't be trained (above)", code)
    if not out.is_file():
        raise Failure(
            f"{friendly(source)} was not imported: it ended the program; put what is to run in "
            'a script alone behind if __name__ == "__main__":'
        )
    return out


def _refusal_of_bench(network: Path) -> str:
    """Why bench takes no such network, though it was proved to be the module's; empty where it
    does, and where there is no bench to ask."""
    if not build.BENCH.is_file():
        return ""
    command = [str(build.BENCH), "--plan", FLAG + str(network)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    refusal = (done.stderr.splitlines() or [""])[-1].removeprefix("bench: ")
    return refusal if done.returncode == 2 else ""


def _is_own_data(word: str) -> bool:
    return word.startswith("--data=") and word.rpartition(":")[2].isidentifier()


def modules(words: list[str]) -> list[Path]:
    """What tells the worker of those that are measured as they are."""
    return [path for path in paths(words) if path.name.endswith(_MODULE)]


def as_it_is(words: list[str], python: Callable[[], Path], with_peers: bool = False) -> list[str]:
    """The words for bench where some networks are modules as they are: a worker brings their rows
    (docs/protocol.md), and bench has none where all are. `with_peers`: others read flags, too."""
    named = paths(words)
    taken = modules(words)
    if not taken:
        return words
    others = [str(path) for path in named if path not in taken]
    told = [word for word in words if word.startswith(_TOLD)]
    for word in words:
        if word.startswith("--family="):  # Peak is there for bench alone
            trained = [name for name in word.partition("=")[2].split(",") if name in _TRAINING]
            told += [f"--family={','.join(trained)}"] if trained else []
    told.append(FLAG + ",".join(map(str, taken)))
    of_peers = () if with_peers else _OF_PEERS
    kept = [word for word in words if not word.startswith((FLAG, *of_peers))]
    if others:
        kept.append(FLAG + ",".join(others))
    else:
        kept = [
            word for word in kept if not word.startswith((*_TRAINED, "--family=", "--program="))
        ]
        kept += ["--family=Peak", "--program=pytorch"]
    return [*kept, environment.as_peer(python(), _WORKER, *told, own_paths=True)]
