# SPDX-License-Identifier: Apache-2.0
"""The fuzzers of tests/fuzz: building them, a short run for ./test, and one as long as is asked."""

import math
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import environment, setup
from tools.console import (
    LOGS,
    ROOT,
    Failure,
    Stopped,
    cores,
    friendly,
    run_logged,
    say,
    stage,
    stop,
)
from tools.passed import Passed, digest

SOURCES = ROOT / "tests" / "fuzz"
BUILD = ROOT / "build" / "fuzz"
FINDINGS = BUILD / "findings"  # of every run, tried first by each later one
PLOTS = "plots"  # plots/tests/test_fuzz.py, which needs no clang

# Executions of each fuzzer within ./test, by what one of them takes.
_SHORT_RUNS = {"arguments": 5_000}
_SHORT_RUNS_OF_OTHERS = 20_000
_LIMITS = [
    "-max_len=1000",
    "-timeout=20",  # seconds for one input, which takes far below a millisecond
    "-rss_limit_mb=2048",
]
_PROBE = 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }\n'
_WORD = re.compile(r'"([!#-\[\]-~]{2,40})"')  # literals that a dictionary takes as they are
_EXECUTIONS = re.compile(r"^(?:#|stat::number_of_executed_units: *)(\d+)", re.MULTILINE)
_LINES_OF_A_FINDING = 60
_PROGRESS_SECONDS = 15.0
_POLL_SECONDS = 0.1


# ---- the command line


def seconds_in(duration: str) -> int:
    """The seconds in "90s", "10m" or "2h"; Failure where it is none of these."""
    found = re.fullmatch(r"([0-9]{1,6})([smh])", duration)
    seconds = int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]] if found else 0
    if seconds == 0:
        raise Failure(f"--fuzz={duration} is no duration such as 90s, 10m or 2h", 2)
    return seconds


# ---- building


class Obstacle(Failure):
    """Why there can be no fuzzers here."""


def _compiler() -> str:
    """A clang that can link a fuzzer; raises Obstacle where there is none."""
    clang = shutil.which("clang++") or shutil.which("clang++-14")
    if clang is None:
        raise Obstacle("clang++ is not installed", 2)
    with tempfile.TemporaryDirectory() as folder:
        command = [clang, "-x", "c++", "-", "-fsanitize=fuzzer,address,undefined"]
        done = subprocess.run(
            [*command, "-o", f"{folder}/probe"],
            input=_PROBE,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Obstacle(
            f"clang++ cannot link -fsanitize=fuzzer, for which it needs libclang-rt-dev: {said[0]}",
            2,
        )
    return clang


def build() -> None:
    """Bring the fuzzers up to date; raises Obstacle where there can be none."""
    switch = f"-DCMAKE_CXX_COMPILER={_compiler()}"
    configure = ["cmake", "-S", SOURCES, "-B", BUILD, "-G", "Ninja", switch]
    with setup.alone("fuzz"), stage("Building (fuzz)"):
        run_logged("Configuring (fuzz)", configure, LOGS / "configure-fuzz.log")
        command = ["cmake", "--build", BUILD, "--parallel", str(cores())]
        run_logged("Building (fuzz)", command, LOGS / "build-fuzz.log")


def names() -> list[str]:
    """All of them but the one for plots, which needs no clang."""
    return sorted(path.stem for path in SOURCES.glob("*.cpp"))


def _own_words(name: str) -> Iterator[str]:
    """The text literals of the sources that a fuzzer tries: flags, values, keys."""
    for source in (BUILD / f"{name}.sources").read_text(encoding="utf-8").splitlines():
        for line in Path(source).read_text(encoding="utf-8").splitlines():
            if not line.startswith("#include"):
                yield from _WORD.findall(line)


def dictionary(name: str) -> Path:
    """Words for libFuzzer to put in: the sources' own, and those of tests/fuzz/NAME.dict."""
    extra = SOURCES / f"{name}.dict"
    lines = [f'"{word}"' for word in sorted(set(_own_words(name)))]
    lines += extra.read_text(encoding="utf-8").splitlines() if extra.exists() else []
    path = BUILD / f"{name}.dict"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# ---- running


def _corpora(name: str) -> list[Path]:
    """What runs start from: the committed inputs, and what earlier runs found."""
    folders = [SOURCES / "corpus" / name, FINDINGS / name]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def _command(name: str, new_inputs: Path, *options: str) -> list[str | Path]:
    new_inputs.mkdir(parents=True, exist_ok=True)
    return [
        BUILD / name,
        *options,
        *_LIMITS,
        "-print_final_stats=1",
        f"-dict={dictionary(name)}",
        f"-artifact_prefix={FINDINGS / name}/",
        new_inputs,
        *_corpora(name),
    ]


def executions(log: str) -> int:
    """The most that a fuzzer's output tells of."""
    return max(map(int, _EXECUTIONS.findall(log)), default=0)


def _verdict(name: str, log: str, good: bool) -> str:
    count = f"{name}: {executions(log):,} executions"
    if good:
        return f"{count}, nothing found"
    found = sorted((FINDINGS / name).iterdir(), key=lambda path: path.stat().st_mtime)
    lines = "\n".join(f"    {line}" for line in log.splitlines()[-_LINES_OF_A_FINDING:])
    if not found:
        return f"{lines}\n{count}, FAILED without an input"
    place = friendly(found[-1])
    again = f"; again: {friendly(BUILD / name)} {place}" if name != PLOTS else ""
    return f"{lines}\n{count}, FOUND {place}{again}"


def _key(name: str) -> str:
    """Hashes all that the short run of a fuzzer depends on."""
    files = [BUILD / name, dictionary(name)]
    files += sorted(path for folder in _corpora(name) for path in folder.iterdir())
    return digest([str(short_runs(name)).encode(), *(path.read_bytes() for path in files)])


def short_runs(name: str) -> int:
    return _SHORT_RUNS.get(name, _SHORT_RUNS_OF_OTHERS)


def short() -> bool:
    """The same short_runs() inputs of each fuzzer every time, where something has changed."""
    passed = Passed(BUILD / "passed.json")
    keys = {name: _key(name) for name in names()}
    good = passed.unchanged(keys)
    if good:
        print(f"fuzz: unchanged since it passed: {', '.join(sorted(good))}")
    for name in sorted(keys.keys() - good):
        with tempfile.TemporaryDirectory() as folder:
            command = _command(name, Path(folder), f"-runs={short_runs(name)}", "-seed=1")
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False
            )
        print(_verdict(name, done.stderr, done.returncode == 0), flush=True)
        if done.returncode == 0:
            good.add(name)
    passed.record(keys, good)
    return good == keys.keys()


# ---- for longer


@dataclass
class _Running:
    name: str
    process: "subprocess.Popen[str]"
    log: Path

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def _start(name: str, seconds: int) -> _Running:
    if name == PLOTS:
        # Where it keeps what it finds, as the others do.
        (FINDINGS / name).mkdir(parents=True, exist_ok=True)
        module = "plots.tests.test_fuzz"
        command = [environment.PYTHON, "-m", module, str(seconds), FINDINGS / name]
    else:
        command = _command(name, BUILD / "corpus" / name, f"-max_total_time={seconds}")
    log = LOGS / f"fuzz-{name}.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
        )
    return _Running(name, process, log)


def share(seconds: int, targets: int, at_once: int) -> int:
    """The whole seconds of each of `targets`, so many at once, that all end within `seconds`."""
    return max(1, math.floor(seconds / math.ceil(targets / at_once)))


def long(seconds: int) -> bool:
    """Other inputs every time, for `seconds` in all; those that reach new code are kept."""
    targets = [*names(), PLOTS]
    each = share(seconds, len(targets), cores())
    say(f"Fuzzing {', '.join(targets)}: {each} s each, {min(cores(), len(targets))} at once")
    waiting, running = list(targets), list[_Running]()
    good = True
    start = last = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < cores():
                running.append(_start(waiting.pop(0), each))
            for one in list(running):
                if one.process.poll() is not None:
                    running.remove(one)
                    ended_well = one.process.returncode == 0
                    good = good and ended_well
                    print(_verdict(one.name, one.text(), ended_well), flush=True)
            if time.monotonic() - last >= _PROGRESS_SECONDS:
                last = time.monotonic()
                counts = [f"{one.name} {executions(one.text()):,}" for one in running]
                say(f"  {last - start:.0f} s: {', '.join(counts)} executions")
            time.sleep(_POLL_SECONDS)
    except Stopped:
        for one in running:
            stop(one.process)
            print(_verdict(one.name, one.text(), True), flush=True)
        raise
    return good
