# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_sweep: build, test and measure on a GPU machine without a network, within minutes."""

import argparse
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

from tools import pack, results
from tools.console import ROOT, Failure, cores, friendly, said, say
from tools.environment import VENV
from tools.table import table

HELP = """\
usage: tools/gpu_sweep [--brought=DIR] [--out=DIR] [--minutes=N] [--sweep=NAME] [--no-tests]
       tools/gpu_sweep --plan [--cores=N] [--minutes=N] [--sweep=NAME]
       tools/gpu_sweep --pack DIR

Configures, builds, runs the GPU tests and measures, without a network; see docs/gpu.md.

  --brought=DIR   prefix with the libraries to build with (default: ./brought)
  --out=DIR       folder for the results and the log (default: $OUT, else ./gpu-results)
  --minutes=N     time limit for everything (default: 9)
  --sweep=NAME    bench's sweep (default: gpu, which measures the most informative rows first)
  --no-tests      only build bench and measure, for a second run on the same machine
  --plan          print the stages and rows in order, with estimated seconds, and exit; needs no
                  GPU, but a built bench (./run --setup-only)
  --cores=N       plan for a machine with N cores (default: this machine's)
  --pack DIR      collect that prefix on a machine where ./test has run, and exit

Exit codes: 0 all stages passed or were skipped (memcheck may fail), 1 one failed or ran out of
time, or the plan takes longer than the minutes, 2 wrong usage.
"""

BUILD = ROOT / "build" / "gpu"
BENCH = BUILD / "bench"
TESTS = BUILD / "tests" / "crossover_tests"
RESULT = "gpu.json"


@dataclass(frozen=True)
class Stage:
    """Seconds on a machine of 16 cores: as it should go, and at most, out of MINUTES."""

    name: str
    expected: float
    most: float


MINUTES = 9.0
CONFIGURE = Stage("configure", 15, 40)
BUILD_BENCH = Stage("build bench", 50, 110)
BUILD_TESTS = Stage("build tests", 40, 70)
GPU_TESTS = Stage("GPU tests", 40, 60)
MEMCHECK = Stage("memcheck", 30, 40)
# What is left of all others, and memcheck's where that cannot run.
MEASURE = Stage("measure", 0, MINUTES * 60 - 40 - 110 - 70 - 60 - 40)

_GRACE_SECONDS = 8.0  # bench ends at once and keeps its finished rows
_MOST_LOGGED = 2**20  # of one stage: log and results must stay below 16 MiB
# Each operation on the GPU: our own kernels, by what is in their mangled names. cuBLASLt's would
# take minutes, and are not ours to mend.
_MEMCHECK_FILTER = "Gpu/GpuOperation*"
_MEMCHECK = ("--tool=memcheck", "--kernel-regex", "kns=crossover", "--error-exitcode=1")


def _number(least: float, most: float) -> Callable[[str], float]:
    def number(word: str) -> float:
        if not least <= float(word) <= most:
            raise argparse.ArgumentTypeError(f"give a number from {least:g} to {most:g}")
        return float(word)

    return number


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message}; see tools/gpu_sweep --help", 2)


def _place(word: str) -> Path:
    if not word:
        raise argparse.ArgumentTypeError("name a folder")
    return Path(word).absolute()


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--brought", type=_place, default=Path("brought").absolute())
    parser.add_argument("--out", type=_place, default=os.environ.get("OUT") or "gpu-results")
    parser.add_argument("--minutes", type=_number(0.1, 600), default=MINUTES)
    parser.add_argument("--sweep", default="gpu")
    parser.add_argument("--no-tests", dest="tests", action="store_false")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--cores", type=_number(1, 4096))
    parser.add_argument("--pack", type=_place)
    parser.add_argument("-h", "--help", action="store_true")
    return parser.parse_args(words)


def run_limited(command: Sequence[str | Path], log: TextIO, seconds: float) -> tuple[str, str]:
    """Run a command with its output in the log; a verdict ("passed" or why not), and the output.

    At the limit it is asked to end, as by Ctrl-C, with everything it started, and then made to.
    """
    log.write(f"\n$ {' '.join(map(str, command))}\n")
    log.flush()
    begin = log.tell()
    if seconds < 1:
        return "no time left", ""
    grace = min(_GRACE_SECONDS, seconds / 4)
    try:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return f"cannot start: {error.strerror}", ""
    verdict = ""
    try:
        process.wait(seconds - grace)
    except subprocess.TimeoutExpired:
        verdict = f"out of time after {seconds:.0f} s"
    finally:
        for signum, patience in ((signal.SIGINT, grace), (signal.SIGKILL, 5.0)):
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signum)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(patience)
        with suppress(ProcessLookupError):  # what it left running
            os.killpg(process.pid, signal.SIGKILL)
    if not verdict:
        code = process.returncode
        verdict = "passed" if code == 0 else f"failed (exit code {code})"
    with Path(log.name).open(encoding="utf-8", errors="replace") as file:
        file.seek(begin)
        output = file.read()
    if len(output) > _MOST_LOGGED:
        half = _MOST_LOGGED // 2
        left_out = f"\n[{len(output) - 2 * half} characters left out]\n"
        output = output[:half] + left_out + output[-half:]
        log.seek(begin)
        log.truncate()
        log.write(output)
        log.flush()
    return verdict, output


class Sweep:
    """The stages so far, and the time they may still take."""

    def __init__(self, log: TextIO, seconds: float) -> None:
        self._log = log
        self._seconds = seconds
        self._scale = seconds / (MINUTES * 60)
        self._started = time.monotonic()
        self._allotted = 0.0
        self.bad = False

    def say(self, text: str) -> None:
        print(text, flush=True)
        self._log.write(text + "\n")
        self._log.flush()

    def note(self, *command: str | Path) -> None:
        """What a command says, in the log."""
        run_limited(command, self._log, 10)

    def stage(
        self,
        stage: Stage,
        command: Sequence[str | Path],
        note: Callable[[str], str] = lambda _: "",
        required: bool = True,
    ) -> bool:
        """Run one stage within its own time and what earlier ones left over."""
        self.allot(stage)
        begin = time.monotonic()
        verdict, output = run_limited(command, self._log, self._allotted - (begin - self._started))
        extra = note(output)
        self.say(
            f"{stage.name:<16}{time.monotonic() - begin:7.1f} s  {verdict}"
            + (f"; {extra}" if extra else "")
        )
        passed = verdict == "passed"
        self.bad |= required and not passed
        return passed

    def allot(self, stage: Stage) -> None:
        """Give the later stages the time of one that need not run."""
        self._allotted += stage.most * self._scale

    def skip(self, stage: Stage, reason: str) -> None:
        self.allot(stage)
        self.say(f"{stage.name:<16}      -    skipped: {reason}")


def gpu_of(bench: Path) -> tuple[bool, str]:
    """Whether bench finds a GPU, and its name or the reason why there is none."""
    try:
        machine = json.loads(said(bench, "--machine"))
        if machine.get("gpu"):
            return True, str(machine["gpu"].get("name", "unnamed"))
        return False, str(machine.get("gpu_reason") or "none")
    except (ValueError, AttributeError):
        return False, "bench --machine does not tell"


def driver_lists_a_gpu() -> bool:
    return "GPU 0" in said("nvidia-smi", "-L")


def compute_sanitizer() -> str | None:
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
    return shutil.which("compute-sanitizer", path=places)


def _of_tests(output: str) -> str:
    """What GoogleTest's closing lines say, summed over the processes."""

    def count(word: str) -> int:
        lines = re.findall(rf"\[ +{word} +\] (\d+) tests?[.,]", output)
        return sum(int(number) for number in lines)

    reason = re.search(r"Skipped\n(?:\d+: )?(.+)", output)
    skipped = count("SKIPPED")
    said = f" ({reason[1].strip()})" if skipped and reason else ""
    return f"{count('PASSED')} passed, {count('FAILED')} failed, {skipped} skipped{said}"


def _configure(sweep: Sweep, brought: Path, tests: bool) -> bool:
    prefixes = [str(path) for path in (brought, VENV) if path.is_dir()]
    command: list[str | Path] = ["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release"]
    command += ["-DFETCHCONTENT_FULLY_DISCONNECTED=ON", f"-DCMAKE_PREFIX_PATH={';'.join(prefixes)}"]
    command += [f"-DCROSSOVER_PACKED_COMMIT={brought / pack.COMMIT}"]
    if not (BUILD / "CMakeCache.txt").exists() and shutil.which("ninja"):
        command += ["-G", "Ninja"]
    note = re.compile(r"-- ((?:No )?GPU backend: .*)")

    def backend(output: str) -> str:
        found = note.search(output)
        return found[1] if found else ""

    half = Stage(CONFIGURE.name, 0, CONFIGURE.most / 2)
    if tests:
        if sweep.stage(half, [*command, "-DCROSSOVER_TESTS=ON"], backend, required=False):
            sweep.allot(half)  # what the second try would have had
            return True
        sweep.bad = True
    else:
        sweep.allot(half)
    without = Stage("  without tests", 0, half.most)
    return sweep.stage(without, [*command, "-DCROSSOVER_TESTS=OFF"], backend)


def _test(sweep: Sweep, make: list[str | Path]) -> bool:
    """Whether the tests could be built; then they have run as well."""
    if not sweep.stage(BUILD_TESTS, [*make, "crossover_tests"]):
        sweep.skip(GPU_TESTS, "they were not built")
        return False
    ctest = ["ctest", "--test-dir", BUILD, "-L", "gpu", "-V", "--timeout", "120"]
    # A few at a time: each process has a context of its own on the one GPU.
    sweep.stage(GPU_TESTS, [*ctest, "-j", str(min(4, cores()))], _of_tests)
    return True


def _measure(sweep: Sweep, path: Path, grid: str, more_time: bool) -> None:
    """One process and one file: its ceilings bound all its rows. The table is of what is there,
    also where the time ran out or a signal came."""
    stage = Stage(MEASURE.name, 0, MEASURE.most + (MEMCHECK.most if more_time else 0))
    started = time.time()

    def rows(_: str) -> str:
        written = results.written_since(path, started)
        if written is None:
            return "no file"
        return f"{results.finished_rows(written)} rows in {written.name}"

    try:
        sweep.stage(stage, [BENCH, f"--out={path}", f"--sweep={grid}"], rows)
    finally:
        written = results.written_since(path, started)
        for line in table(written):
            sweep.say(line)


def _memcheck(sweep: Sweep, sanitizer: str) -> None:
    """May fail: not every machine lets compute-sanitizer at its GPU."""

    def errors(output: str) -> str:
        found = re.search(r"ERROR SUMMARY: .*", output)
        ran = re.search(r"(\d+) tests? from \d+ test suites? ran", output)
        return f"{ran[1] if ran else 'no'} tests, {found[0] if found else 'no summary'}"

    command = [sanitizer, *_MEMCHECK, TESTS, f"--gtest_filter={_MEMCHECK_FILTER}"]
    sweep.stage(MEMCHECK, command, errors, required=False)


def sweep_all(arguments: argparse.Namespace, log: TextIO) -> int:
    sweep = Sweep(log, arguments.minutes * 60)
    sweep.note("nvidia-smi", "-q")
    if not _configure(sweep, arguments.brought, arguments.tests):
        return 1
    make: list[str | Path] = ["cmake", "--build", BUILD, "--parallel", str(cores()), "--target"]
    if not sweep.stage(BUILD_BENCH, [*make, "bench"]):
        return 1
    has_gpu, gpu = gpu_of(BENCH)
    sweep.say(f"GPU: {gpu}")
    if not has_gpu and driver_lists_a_gpu():
        sweep.say("nvidia-smi lists a GPU, but bench finds none, so nothing is measured")
        return 1
    tested = False
    if arguments.tests:
        tested = _test(sweep, make)
    else:
        sweep.skip(BUILD_TESTS, "--no-tests")
        sweep.skip(GPU_TESTS, "--no-tests")
    sanitizer = compute_sanitizer()
    reason = ""
    if not tested:
        reason = "the tests were not built"
    elif not has_gpu:
        reason = f"GPU: {gpu}"
    elif sanitizer is None:
        reason = "there is no compute-sanitizer here"
    _measure(sweep, arguments.out / RESULT, arguments.sweep, more_time=bool(reason))
    if reason or sanitizer is None:
        sweep.skip(MEMCHECK, reason)
    else:
        _memcheck(sweep, sanitizer)
    return 1 if sweep.bad else 0


def planned(bench: Path, arguments: argparse.Namespace) -> Iterator[str]:
    """Lines of the plan; the last is the sum."""
    command: list[str | Path] = [bench, "--plan", f"--sweep={arguments.sweep}"]
    if arguments.cores is not None:
        command.append(f"--threads={','.join(map(str, sorted({1, int(arguments.cores)})))}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(done.stderr.strip() or f"{friendly(bench)} --plan: {done.returncode}")
    rows = done.stdout.splitlines()
    measured = float(rows[-1].split()[-2])
    before = [CONFIGURE, BUILD_BENCH, *([BUILD_TESTS, GPU_TESTS] if arguments.tests else [])]
    after = [MEMCHECK] if arguments.tests else []
    scale = arguments.minutes / MINUTES
    for stage in before:
        yield f"{stage.name:<16}{stage.expected:7.1f} s, at most {stage.most * scale:5.1f} s"
    left = arguments.minutes * 60 - sum(stage.expected for stage in [*before, *after])
    yield f"{MEASURE.name:<16}{measured:7.1f} s, at most {left:5.1f} s where all goes as expected"
    for stage in after:
        yield f"{stage.name:<16}{stage.expected:7.1f} s, at most {stage.most * scale:5.1f} s"
    yield from rows
    total = measured + sum(stage.expected for stage in [*before, *after])
    yield f"{'together':<16}{total:7.1f} s of {arguments.minutes * 60:.0f} s"


def plan(arguments: argparse.Namespace) -> int:
    built = [path for path in (BENCH, ROOT / "build" / "bench") if path.is_file()]
    if not built:
        raise Failure("--plan needs bench, which is not built yet; run ./run --setup-only", 2)
    lines = list(planned(built[0], arguments))
    print("\n".join(lines))
    words = lines[-1].split()  # "together 512.3 s of 540 s"
    needed, allowed = float(words[1]), float(words[4])
    if needed <= allowed:
        return 0
    say(
        f"tools/gpu_sweep: {needed - allowed:.0f} s too long: the last rows would be left out; "
        f"--minutes={math.ceil(needed / 60)} measures them"
    )
    return 1


def main(words: list[str]) -> int:
    arguments = parse(words)
    if arguments.help:
        print(HELP)
        return 0
    if arguments.pack is not None:
        return pack.collect(arguments.pack)
    if arguments.plan:
        return plan(arguments)
    results.make_folder(arguments.out)
    BUILD.parent.mkdir(exist_ok=True)
    path = arguments.out / "gpu_sweep.log"
    try:
        with path.open("w", encoding="utf-8") as log:
            return sweep_all(arguments, log)
    finally:
        print(f"log: {friendly(path)}")
