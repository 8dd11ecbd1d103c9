# SPDX-License-Identifier: Apache-2.0
"""Networks of one's own: imported from PyTorch or ONNX, so that bench gets them as JSON, or as
they are, in PyTorch."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover_bench.place import ROOT, RUN
from crossover_bench.run import build, environment
from crossover_bench.run.console import HOME, Failure, friendly, say, stored

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
_AS_A_MODULE = (
    "the module that it was exported from would be trained in PyTorch as it is: "
    "--network=FILE.py:CALLABLE"
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


@dataclass(frozen=True)
class _Source:
    """What --network names, and `how` it is to be read."""

    source: Path
    name: str  # where it is not to be that of the file and the callable
    how: list[str]
    batches: list[str]

    @property
    def is_json(self) -> bool:
        return self.source.suffix == ".json"

    @property
    def is_onnx(self) -> bool:
        return self.source.suffix.lower() == ".onnx"

    @property
    def naming(self) -> list[str]:
        return [f"--name={self.name}"] if self.name else []

    @property
    def out(self) -> Path:
        """A file of this source alone: others have the same name, and a run that is to go on finds
        it by its own."""
        mark = repr((str(self.source), *self.how, *self.naming))
        digest = hashlib.sha256(mark.encode()).hexdigest()[:8]
        return FOLDER / f"{_stem(self.source)}-{digest}.json"


def imported(words: list[str], python: Callable[[], Path]) -> list[str]:
    """The words for bench, with each network in JSON; `python()` has PyTorch and onnx. A module of
    PyTorch's that the importer refuses, in its own sentence, stands there as what tells the worker
    of it (as_it_is()). Failure where that can't be trained either."""
    kept, sources = _sources(words)
    is_plain = all(each.is_json for each in sources)
    if is_plain and not any(word.startswith(FLAG) and "~" in word for word in words):
        return words
    files = [str(each.source if each.is_json else _made(each, python)) for each in sources]
    return [*kept, FLAG + ",".join(files)]


def unverified(words: list[str], results: Path) -> dict[Path, str]:
    """Of the networks that imported() made of `words` those without a single row that was measured
    in the file `results`, though it tried some; each with the reason."""
    rows = stored(results).get("rows", [])
    reasons = {}
    for each in _sources(words)[1]:
        if each.is_json or not each.out.is_file():
            continue
        name = json.loads(each.out.read_text(encoding="utf-8"))["name"]
        tried = [row for row in rows if _is_of(row, name)]
        failed = [row["error_message"] for row in tried if row.get("outcome") == "failed"]
        if failed and all("outcome" in row for row in tried):
            reasons[each.source] = str(failed[0])
    return reasons


def has_networks(results: Path) -> bool:
    """Whether the file has a measured row of any network."""
    rows = stored(results).get("rows", [])
    return any("model" in row["configuration"] and "outcome" not in row for row in rows)


def _is_of(row: dict[str, Any], name: str) -> bool:
    """Whether the row is of that network, in any of its sizes."""
    model = str(row["configuration"].get("model", ""))
    return model == name or re.fullmatch(re.escape(name) + r"x[0-9.e+-]+", model) is not None


def going_on(
    words: list[str], reasons: dict[Path, str], python: Callable[[], Path]
) -> tuple[list[str], list[str]]:
    """Of networks that have no verified row, for these `reasons`: the words with which they are
    measured as they are, and a sentence on each that is no module of PyTorch's."""
    kept, sources = _sources(words)
    files, left = [], []
    for each in (each for each in sources if each.source in reasons):
        what = f"{friendly(each.source)} was imported, and has no verified row (above)"
        if each.is_onnx:
            left.append(f"{what}; {_AS_A_MODULE}")
            continue
        say(f"{RUN}: {what}; it is measured in PyTorch as it is")
        files.append(str(_as_it_is(each, reasons[each.source], python)))
    return ([*kept, FLAG + ",".join(files)] if files else []), left


def _sources(words: list[str]) -> tuple[list[str], list[_Source]]:
    """The words that bench reads as they are, and what --network names."""
    sources = paths(words)
    how = [word for word in words if word.startswith(_IMPORT) or _is_own_data(word)]
    kept = [word for word in words if word not in how and not word.startswith(FLAG)]
    if all(source.suffix == ".json" for source in sources):
        kept, how = [*kept, *how], []  # nothing is imported: bench says what it thinks of them
    batches = [word for word in words if word.startswith("--batch=")]
    named = zip(sources, _names(sources), strict=True)
    return kept, [_Source(source, name, how, batches) for source, name in named]


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


def _made(network: _Source, python: Callable[[], Path]) -> Path:
    source, out = network.source, network.out
    FOLDER.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)  # an older one is not what was asked for
    of_modules = [
        word
        for word in network.how
        if re.match("--loss-function=(module$|.*:)", word) or _is_own_data(word)
    ]
    reason = f"{of_modules[0]} is of modules as they are" if of_modules else ""
    if not reason:
        command = [str(python()), "-m", "crossover_bench.networks", "import", str(source)]
        command += [*network.how, *network.naming, "-o", str(out)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment.variables(own_paths=True),
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
        if network.is_onnx and done.returncode == 0:
            raise Failure(
                f"{friendly(source)} was imported, and bench can't train it (above); {_AS_A_MODULE}"
            )
        if network.is_onnx or is_misused or done.returncode == 130:
            is_refused = network.is_onnx and done.returncode == 1
            remedy = f"; {_AS_A_MODULE}" if is_refused else ""
            raise Failure(f"{friendly(source)} was not imported (above){remedy}", done.returncode)
    return _as_it_is(network, reason, python)


def _as_it_is(network: _Source, reason: str, python: Callable[[], Path]) -> Path:
    """What tells the worker of a module that is measured in PyTorch. Failure where it can't be."""
    source, out = network.source, network.out.with_suffix(_MODULE)
    out.unlink(missing_ok=True)
    told = [word for word in (*network.how, *network.batches) if word != "--as-is"]
    name = network.name or re.sub(r"[^A-Za-z0-9._-]+", "-", _stem(source))
    command = [str(python()), "-m", _WORKER, "make", str(source), *told]
    command += ["--name", name, "-o", str(out), f"--reason={reason}"]
    # It is tried on the CPU.
    variables = environment.variables(own_paths=True) | {"CUDA_VISIBLE_DEVICES": ""}
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
