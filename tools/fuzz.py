# SPDX-License-Identifier: Apache-2.0
"""The fuzzers of tests/fuzz: building them, a short run for ./test, and one as long as is asked."""

import re
import runpy
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from crossover_bench.place import ROOT
from crossover_bench.run import environment, setup
from crossover_bench.run.console import (
    LOGS,
    CommandFailed,
    Missing,
    cores,
    friendly,
    run_logged,
    say,
    stage,
)
from crossover_bench.run.packages import has_fuzzer

SOURCES = ROOT / "tests" / "fuzz"
BUILD = ROOT / "build" / "fuzz"
FINDINGS = BUILD / "findings"  # of every run, tried first by each later one
PLOTS = "plots"  # plots/crossover_bench/tests/test_fuzz.py, which needs no clang

# Executions within ./test, where one takes longer than others'.
_SHORT_RUNS = {"answer": 10_000, "arguments": 5_000}
# Bytes of an input, where depth could end a program.
_LONGEST = {"answer": 20_000, "earlier_run": 20_000}
# Seconds of one input, which takes far below a millisecond.
_LIMITS = ("-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1")
_EXECUTIONS = re.compile(r"^(?:#|stat::number_of_executed_units: *)(\d+)", re.MULTILINE)


def build() -> None:
    """Bring the fuzzers up to date; raises Missing where there can be none."""
    if not has_fuzzer():
        raise Missing("clang++ with libFuzzer (clang and libclang-rt-dev) is not installed", 2)
    configure = ["cmake", "-S", str(SOURCES), "-B", str(BUILD), "-G", "Ninja"]
    configure += ["-DCMAKE_CXX_COMPILER=clang++"]
    with setup.alone("fuzz"), stage("Building (fuzz)"):
        run_logged("Configuring (fuzz)", configure, LOGS / "configure-fuzz.log")
        command = ["cmake", "--build", str(BUILD), "--parallel", str(cores())]
        run_logged("Building (fuzz)", command, LOGS / "build-fuzz.log")


def names() -> list[str]:
    """All of them but the one for plots."""
    return sorted(path.stem for path in SOURCES.glob("*.cpp"))


def seeds(name: str) -> dict[str, bytes]:
    """The committed inputs of a fuzzer."""
    every: dict[str, dict[str, bytes]] = runpy.run_path(str(SOURCES / "seeds.py"))["SEEDS"]
    return every[name]


def _command(name: str, new_inputs: Path, *options: str) -> list[str | Path]:
    """A run starts from the committed inputs, and what earlier ones found."""
    folders = [new_inputs, BUILD / "seeds" / name, FINDINGS / name]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for seed, content in seeds(name).items():
        (folders[1] / seed).write_bytes(content)
    words = SOURCES / f"{name}.dict"  # libFuzzer finds the literals that the code compares with
    places = [f"-artifact_prefix={FINDINGS / name}/", *([f"-dict={words}"] * words.exists())]
    limits = [f"-max_len={_LONGEST.get(name, 1000)}", *_LIMITS]
    return [BUILD / name, *options, *limits, *places, *folders]


def _run(name: str, command: Sequence[str | Path]) -> bool:
    """Run a fuzzer to its end, and say what it found."""
    try:
        lines, failed = run_logged(f"Fuzzing {name}", command, LOGS / f"fuzz-{name}.log"), ""
    except CommandFailed as failure:
        lines, failed = failure.lines, f"{failure}\n"
    executions = max(map(int, _EXECUTIONS.findall("\n".join(lines))), default=0)
    outcome = "FAILED without an input" if failed else "nothing found"
    findings = sorted((FINDINGS / name).iterdir(), key=lambda path: path.stat().st_mtime)
    if failed and findings:
        finding = friendly(findings[-1])
        again = f"; again: {friendly(BUILD / name)} {finding}" if name != PLOTS else ""
        outcome = f"FOUND {finding}{again}"
    print(f"{failed}{name}: {executions:,} executions, {outcome}", flush=True)
    return not failed


def short() -> bool:
    """The same inputs of each fuzzer every time."""
    good = True
    for name in names():
        runs = f"-runs={_SHORT_RUNS.get(name, 20_000)}"
        with tempfile.TemporaryDirectory() as folder:
            good &= _run(name, _command(name, Path(folder), runs, "-seed=1"))
    return good


def long(seconds: float) -> bool:
    """Other inputs every time, for `seconds` in all; those that reach new code are kept."""
    targets = [*names(), PLOTS]
    each = max(1, int(seconds // len(targets)))
    say(f"Fuzzing {', '.join(targets)}: {each} s each, on {cores()} cores")
    options = [f"-fork={cores()}", "-ignore_timeouts=0", "-ignore_ooms=0"]
    options.append(f"-max_total_time={each}")
    good = [_run(name, _command(name, BUILD / "corpus" / name, *options)) for name in names()]
    (FINDINGS / PLOTS).mkdir(parents=True, exist_ok=True)
    command = environment.started(environment.PYTHON, "crossover_bench.tests.test_fuzz")
    return all([*good, _run(PLOTS, [*shlex.split(command), str(each), FINDINGS / PLOTS])])
