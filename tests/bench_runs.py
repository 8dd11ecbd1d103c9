# SPDX-License-Identifier: Apache-2.0
"""Runs the built `bench` as its user does, and reads what it leaves."""

import functools
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from scripts import ROOT, ran

from crossover_bench.files import loading

BENCH = Path(os.environ.get("CROSSOVER_BENCH") or ROOT / "build" / "bench").absolute()
# The whole program on an emulated GPU. ./test runs its tests once more on the one under sanitizers:
# what they run of main(), the families and the GPU backend has its accesses checked.
EMULATED = Path(
    os.environ.get("CROSSOVER_BENCH_EMULATED") or BENCH.parent / "tests" / "bench_emulated"
).absolute()
# A sanitizer's finding must not look like a row that failed, which is 1. Of an allocation's stack
# two calls are kept: 30 of each take a quarter of the time.
FOUND = {
    "ASAN_OPTIONS": "exitcode=99:malloc_context_size=2",
    "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1",
}
HEART = ROOT / "tests" / "fixtures" / "heart_train.csv"
LIMIT_SECONDS = 600  # for what hangs; a run takes a second or two
SHORT = ("--benchmark_min_time=0.001", "--benchmark_repetitions=2")
EPOCHS = ("--family=Epoch", "--cuda=off")
DISC = ("--model=disc-2", "--threads=1", *EPOCHS, *SHORT)
MLP = ("--mlp=2,2", "--threads=1", *EPOCHS, *SHORT)
OLD = b'{"context": {"date": "last year"}, "benchmarks": []}'

Document = dict[str, Any]
T = TypeVar("T")


def environment(**changes: str) -> dict[str, str]:
    """Without the variables by which a caller's shell would change what bench does.

    Threads that wait spin for a moment only: another test is running beside this one.
    """
    prefixes = ("BENCHMARK_", "OMP_", "GOMP_", "KMP_", "DNNL_", "ONEDNN_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}
    return {**kept, **FOUND, **(changes or {"GOMP_SPINCOUNT": "1000"})}


def built(program: Path) -> Path:
    """The program; a test that wants one that is not there is skipped."""
    if not program.is_file():
        pytest.skip(f"{program} has not been built")
    return program


def bench(
    *arguments: str | Path,
    variables: dict[str, str] | None = None,
    prepare: Callable[[], None] | None = None,
    program: Path = BENCH,
    given: str = "",
    code: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """What it printed, which read `given` and ended with that code; None: with whatever code."""
    how: dict[str, Any] = {"encoding": "utf-8", "errors": "replace", "timeout": LIMIT_SECONDS}
    variables = environment(**(variables or {}))
    command = (built(program), *arguments)
    return ran(*command, code=code, input=given, env=variables, preexec_fn=prepare, **how)


class Planned(NamedTuple):
    """A line of bench --plan."""

    phase: str
    seconds: float
    until: float
    name: str

    @property
    def family(self) -> str:
        return self.name.partition("/")[0]

    @property
    def axes(self) -> dict[str, str]:
        return dict(part.split(":", 1) for part in self.name.split("/")[1:])


@functools.cache
def plan(*arguments: str, program: Path = BENCH) -> tuple[Planned, ...]:
    """With the rows of a GPU, be there one or not, unless the arguments say something of it."""
    cuda = () if any(word.startswith("--cuda=") for word in arguments) else ("--cuda=on",)
    done = bench("--plan", *arguments, *cuda, program=program, code=0)
    rows = [line.split() for line in done.stdout.splitlines() if " rows " not in line]
    return tuple(Planned(p, float(s), float(u), name) for p, s, _, u, _, name in rows)


@contextmanager
def running(
    out: Path,
    *arguments: str,
    part: str = "rows",
    partial: bool = False,
    prepare: Callable[[], None] | None = None,
    **variables: str,
) -> Iterator[subprocess.Popen[str]]:
    """A run that writes to `out`, from when that holds something; it ends with the test.

    `partial`: it writes beside an older file of that name."""
    written = out.with_name(f"{out.name}.partial") if partial else out
    process = subprocess.Popen(
        [built(BENCH), *arguments, f"--out={out}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
        preexec_fn=prepare,  # noqa: PLW1509 - there are no threads
    )
    with process:
        try:
            until(lambda: written.exists() and strict(written)[part], process)
            yield process
        finally:
            process.kill()


def until(holds: Callable[[], T], process: subprocess.Popen[str] | None = None) -> T:
    """Wait for it, while `process` runs; what it was."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (held := holds()):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return held


def children_of(process: int) -> list[int]:
    return [*map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]


def is_running(process: int) -> bool:
    with suppress(OSError):
        stat = Path(f"/proc/{process}/stat").read_text("utf-8")
        return stat.rpartition(")")[2].split()[0] != "Z"
    return False


def listed(*arguments: str, program: Path = BENCH) -> list[str]:
    """The names of the rows that a run would measure, in their order."""
    done = bench("--benchmark_list_tests=true", *arguments, program=program, code=0)
    return done.stdout.splitlines()


def strict(path_or_text: Path | str) -> Document:
    """JSON without NaN, Infinity and repeated fields."""

    def unique(pairs: list[tuple[str, Any]]) -> Document:
        assert len(dict(pairs)) == len(pairs), "a field occurs twice"
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = path_or_text.read_text("utf-8") if isinstance(path_or_text, Path) else path_or_text
    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def samples(document: Document) -> list[Document]:
    """Each repetition with the facts of its row and what was measured once; of a row without any
    the facts alone."""
    whole = []
    for row in document["rows"]:
        entries = repetitions(document, row["name"])
        whole += [{"warnings": [], **row, **entries[0], **entry} for entry in entries] or [row]
    return whole


def repetitions(document: Document, name: str) -> list[Document]:
    return [
        entry
        for entry in document["benchmarks"]
        if entry["run_type"] == "iteration" and entry["name"] == name
    ]


def validate(path: Path) -> None:
    loading.load_file(path)


def run(
    folder: Path, *arguments: str | Path, code: int = 0, program: Path = BENCH, **variables: str
) -> tuple[Document, subprocess.CompletedProcess[str]]:
    """A run that writes a valid file: what it says, and what was printed."""
    path = folder / "result.json"
    done = bench(*arguments, f"--out={path}", program=program, variables=variables, code=code)
    validate(path)
    return strict(path), done


def measure(folder: Path, *arguments: str | Path, **how: Any) -> Document:
    return run(folder, *arguments, **how)[0]


def but_of_load(messages: str) -> str:
    """What bench says, but for what other programs do to the machine meanwhile."""
    return re.sub(r"bench: this machine is busy: .*\n", "", messages)


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert re.fullmatch(r"bench: .*\n", done.stderr), done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def epoch_name(model: str, batch: int, threads: int, execution: str = "auto") -> str:
    device = f"device:cpu/execution:{execution}/cpu_threads:{threads}"
    return f"Epoch/model:{model}/batch:{batch}/precision:f32/{device}"


def configuration_of(name: str) -> dict[str, str]:
    family, *pairs = name.split("/")
    return {"family": family, **dict(pair.split(":", 1) for pair in pairs)}
