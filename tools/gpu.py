# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_sweep: build, test and measure on a GPU machine without a network, within minutes."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from tools import pack, results
from tools.console import ROOT, Failure, cores, friendly
from tools.environment import VENV
from tools.table import table

HELP = """\
usage: tools/gpu_sweep [--brought=DIR] [--out=DIR] [--minutes=N] [--sweep=NAME]
       tools/gpu_sweep --pack DIR

Configures, builds, runs the GPU tests and measures every family, without a network; docs/gpu.md
says more.

  --brought=DIR   a prefix with the libraries to build with (default ./brought)
  --out=DIR       where results and log go (default $OUT, else ./gpu-results)
  --minutes=N     all of it takes at most this long (default 8)
  --sweep=NAME    bench's sweep (its own default if none is given)
  --pack DIR      collect such a prefix on a machine where ./test has run, and end

Exit codes: 0 all stages passed or were skipped, 1 one failed or ran out of time, 2 wrong usage.
"""

BUILD = ROOT / "build" / "gpu"
BENCH = BUILD / "bench"
TESTS = BUILD / "tests" / "crossover_tests"
# Seconds of 8 minutes. What a stage leaves over goes to the later ones.
SECONDS = {
    "configure": 40.0,
    "build bench": 150.0,
    "build tests": 60.0,
    "GPU tests": 45.0,
    "memcheck": 35.0,
}
FAMILY_SECONDS = 140.0  # and what is left of all others, shared equally by all families
_GRACE_SECONDS = 8.0  # bench ends after its current row and keeps the others
# Each operation on the GPU: the kernels and products that everything else is made of.
_MEMCHECK_FILTER = "Gpu/GpuOperation*"


@dataclass
class Arguments:
    brought: Path = Path("brought")
    out: Path = field(default_factory=lambda: Path(os.environ.get("OUT") or "gpu-results"))
    minutes: float = 8.0
    sweep: str = ""
    pack: Path | None = None
    help: bool = False


def parse(arguments: Sequence[str]) -> Arguments:
    parsed = Arguments()
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word in ("-h", "--help"):
            parsed.help = True
            continue
        if name == "--pack" and not equals and words:
            value = words.pop(0)
        if name not in ("--brought", "--out", "--minutes", "--sweep", "--pack") or not value:
            raise Failure(f"unknown or incomplete argument {word}; see tools/gpu_sweep --help", 2)
        if name == "--minutes":
            try:
                parsed.minutes = float(value)
            except ValueError:
                parsed.minutes = 0.0
            if not 0.1 <= parsed.minutes <= 600:
                raise Failure(f"{word}: a number of minutes from 0.1 to 600 is needed", 2)
        elif name == "--sweep":
            parsed.sweep = value
        else:
            setattr(parsed, name.removeprefix("--"), Path(value).absolute())
    parsed.brought = parsed.brought.absolute()
    parsed.out = parsed.out.absolute()
    return parsed


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
        return verdict, file.read()


class Sweep:
    """The stages so far, and the time they may still take."""

    def __init__(self, log: TextIO, seconds: float) -> None:
        self._log = log
        self._seconds = seconds
        self._scale = seconds / (sum(SECONDS.values()) + FAMILY_SECONDS + 10)
        self._started = time.monotonic()
        self._allotted = 0.0
        self.bad = False

    def say(self, text: str) -> None:
        print(text, flush=True)
        self._log.write(text + "\n")
        self._log.flush()

    def share(self, count: int) -> float:
        """Of all the time that is left, the part of one of `count` stages, in unscaled seconds."""
        left = self._seconds - (time.monotonic() - self._started)
        self._allotted = time.monotonic() - self._started
        return left / count / self._scale

    def stage(
        self,
        name: str,
        seconds: float,
        command: Sequence[str | Path],
        note: Callable[[str], str] = lambda _: "",
        required: bool = True,
    ) -> bool:
        """Run one stage within its own time and what earlier ones left over."""
        self.allot(seconds)
        begin = time.monotonic()
        verdict, output = run_limited(command, self._log, self._allotted - (begin - self._started))
        extra = note(output)
        self.say(
            f"{name:<16}{time.monotonic() - begin:7.1f} s  {verdict}"
            + (f"; {extra}" if extra else "")
        )
        passed = verdict == "passed"
        self.bad |= required and not passed
        return passed

    def allot(self, seconds: float) -> None:
        """Give the later stages the time of one that need not run."""
        self._allotted += seconds * self._scale

    def skip(self, name: str, seconds: float, reason: str) -> None:
        self.allot(seconds)
        self.say(f"{name:<16}      -    skipped: {reason}")


def families(bench: Path) -> list[str]:
    """The families that bench names in its help; [] where it has no such flag: Epoch alone."""
    try:
        said = subprocess.run(
            [bench, "--help"], capture_output=True, text=True, timeout=30, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    # Ceilings first: the other families' rows name them.
    order = ("Peak", "Copy", "Gemm", "Layer", "Epoch")
    match = re.search(r"--family\b(.*?)(?=\n\s*--|\Z)", said, re.DOTALL)
    return [name for name in order if match and re.search(rf"\b{name}\b", match[1])]


def gpu_of(bench: Path) -> tuple[bool, str]:
    """Whether bench finds a GPU, and its name or the reason why there is none."""
    try:
        said = subprocess.run(
            [bench, "--machine"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        machine = json.loads(said)
        gpu, reason = machine.get("gpu"), machine.get("gpu_reason")
    except (OSError, subprocess.SubprocessError, ValueError, AttributeError):
        return False, "bench --machine does not tell"
    if isinstance(gpu, dict):
        return True, str(gpu.get("name", "unnamed"))
    return False, str(reason or "none")


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


def _configure(sweep: Sweep, brought: Path) -> bool:
    prefixes = [str(path) for path in (brought, VENV) if path.is_dir()]
    command: list[str | Path] = ["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release"]
    command += ["-DFETCHCONTENT_FULLY_DISCONNECTED=ON", f"-DCMAKE_PREFIX_PATH={';'.join(prefixes)}"]
    if not (BUILD / "CMakeCache.txt").exists() and shutil.which("ninja"):
        command += ["-G", "Ninja"]
    half = SECONDS["configure"] / 2
    note = re.compile(r"-- ((?:No )?GPU backend: .*)")

    def backend(output: str) -> str:
        found = note.search(output)
        return found[1] if found else ""

    with_tests = [*command, "-DCROSSOVER_TESTS=ON"]
    if sweep.stage("configure", half, with_tests, backend, required=False):
        sweep.allot(half)  # what the second try would have had
        return True
    without = [*command, "-DCROSSOVER_TESTS=OFF"]
    sweep.bad = True
    return sweep.stage("  without tests", half, without, backend)


def _test(sweep: Sweep, has_gpu: bool, reason: str) -> None:
    ctest = ["ctest", "--test-dir", BUILD, "-L", "gpu", "-V", "--timeout", "120"]
    # A few at a time: each process has a context of its own on the one GPU.
    tests = [*ctest, "-j", str(min(4, cores()))]
    sweep.stage("GPU tests", SECONDS["GPU tests"], tests, _of_tests)
    sanitizer = compute_sanitizer()
    if not has_gpu:
        sweep.skip("memcheck", SECONDS["memcheck"], f"GPU: {reason}")
    elif sanitizer is None:
        sweep.skip("memcheck", SECONDS["memcheck"], "there is no compute-sanitizer here")
    else:
        check = [sanitizer, "--tool=memcheck", "--error-exitcode=1"]
        command = [*check, TESTS, f"--gtest_filter={_MEMCHECK_FILTER}"]

        def errors(output: str) -> str:
            found = re.search(r"ERROR SUMMARY: .*", output)
            ran = re.search(r"(\d+) tests? from \d+ test suites? ran", output)
            return f"{ran[1] if ran else 'no'} tests, {found[0] if found else 'no summary'}"

        sweep.stage("memcheck", SECONDS["memcheck"], command, errors)


def _measure(sweep: Sweep, out: Path, grid: str) -> list[Path]:
    names = families(BENCH)
    files: list[Path] = []
    all_names = names or ["Epoch"]
    for number, name in enumerate(all_names):
        path = out / f"{name}.json"
        command: list[str | Path] = [BENCH, f"--out={path}"]
        if names:
            command.append(f"--family={name}")
        if grid:
            command.append(f"--sweep={grid}")
        started = time.time()
        counted: list[Path] = []

        def rows(_: str, path: Path = path, at: float = started, to: list[Path] = counted) -> str:
            written = results.written_since(path, at)
            if written is None:
                return "no file"
            to.append(written)
            return f"{results.finished_rows(written)} rows in {written.name}"

        sweep.stage(name, sweep.share(len(all_names) - number), command, rows)
        files += counted
    return files


def sweep_all(arguments: Arguments, log: TextIO) -> int:
    sweep = Sweep(log, arguments.minutes * 60)
    if not _configure(sweep, arguments.brought):
        return 1
    make: list[str | Path] = ["cmake", "--build", BUILD, "--parallel", str(cores()), "--target"]
    if not sweep.stage("build bench", SECONDS["build bench"], [*make, "bench"]):
        return 1
    has_gpu, gpu = gpu_of(BENCH)
    sweep.say(f"GPU: {gpu}")
    if sweep.stage("build tests", SECONDS["build tests"], [*make, "crossover_tests"]):
        _test(sweep, has_gpu, gpu)
    else:
        sweep.skip("GPU tests", SECONDS["GPU tests"], "they were not built")
        sweep.skip("memcheck", SECONDS["memcheck"], "the tests were not built")
    files = _measure(sweep, arguments.out, arguments.sweep)
    for line in table(files):
        sweep.say(line)
    return 1 if sweep.bad else 0


def main(words: list[str]) -> int:
    arguments = parse(words)
    if arguments.help:
        print(HELP)
        return 0
    if arguments.pack is not None:
        return pack.collect(arguments.pack)
    results.make_folder(arguments.out)
    BUILD.parent.mkdir(exist_ok=True)
    path = arguments.out / "gpu_sweep.log"
    with path.open("w", encoding="utf-8") as log:
        code = sweep_all(arguments, log)
    print(f"log: {friendly(path)}")
    return code
