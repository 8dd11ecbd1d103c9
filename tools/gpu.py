# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_sweep: what a GPU machine without a network can tell, within minutes: docs/gpu.md."""

import argparse
import json
import math
import os
import shlex
import shutil
import site
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from tools import pack, results
from tools.console import ROOT, Failure, Parser, cores, friendly, said, say, stored
from tools.environment import VENV
from tools.limited import MINUTES, Limited, Stage, never

BUILD = ROOT / "build" / "gpu"
NATIVE = BUILD / "bench"
TESTS = BUILD / "tests" / "crossover_tests"
PREFIX = BUILD.with_name("brought")
PACKED = PREFIX / "bin" / "bench"

# Expected on a machine of 16 cores. The build leaves the ladder of the sweep its time.
_ALL = MINUTES * 60
BUILT = Stage("build", _ALL - 200, 100)
CHECK_BUDGET = "--budget=150s"  # libraries of a gigabyte, read for the first time beside a build
CHECK = Stage("check", 170, 60)
_FEW = "--family=Epoch --precision=f32 --placement=resident --execution=graph"
_FEW += " --model=disc-2,disc-5,disc-7,disc-8,disc-9,disc-10"
PYTORCH = Stage("pytorch", 120, 50, rows=_FEW, may_fail=True)
# Beside the build: of an eager row, the build would slow down the CPU's part.
_GRAPHS = "--execution=graph,graph-epoch,persistent"
EARLY = Stage("early", _ALL, rows=f"{_GRAPHS} --benchmark_filter=device:cuda")
SWEEP = Stage("gpu", _ALL)
_SEVEN = "--family=Minibatch --model=fcn-r,alexnet-r,resnet-56,lstm,fcn-s,alexnet-s,resnet-50"
SEVEN = Stage("seven", _ALL, rows=_SEVEN)
_FORMERS = "--family=Minibatch --model=gpt-64,gpt-512,vit-ti --precision=f32,bf16"
TRANSFORMERS = Stage("transformers", 120, rows=_FORMERS)
_CHOICES = "--products=autotuned --cudnn=benchmark --benchmark_filter=device:cuda"
CHOSEN = Stage("chosen", _ALL, rows=f"{_SEVEN} --precision=f32 {_CHOICES}")
_SIZES = ",".join(f"disc-{depth}x{by}" for depth in range(2, 10) for by in (1.25, 1.5, 1.75))
BETWEEN = Stage(
    "between", _ALL, rows=f"--family=Epoch --precision=f32 --placement=resident --model={_SIZES}"
)
BUILT_TESTS = Stage("build tests", 300, 150)
GPU_TESTS = Stage("GPU tests", 150, 60)
MEMCHECK = Stage("memcheck", 60, 40, may_fail=True)
RACECHECK = Stage("racecheck", 120, 60, may_fail=True)
COMMANDS = {
    "first": (BUILT, CHECK, PYTORCH, SWEEP),
    "second": (SEVEN, TRANSFORMERS, CHOSEN),
    "third": (BUILT_TESTS, GPU_TESTS, MEMCHECK, RACECHECK, BETWEEN),
}
# On a machine that is lent for half an hour: what starts and copying take is left over.
_LENT = ("--minutes=9", "--minutes=8.5 --resume={}/first", "--minutes=6 --tests --resume={}/first")
# Each operation, and the training kernel: our own kernels, by what is in their mangled names.
# cuBLASLt's would take minutes, and are not ours to mend.
SANITIZED = {
    MEMCHECK: ("crossover", "Gpu/GpuOperation*"),
    RACECHECK: ("persistent", "Gpu/GpuPersistent*"),
}


def _place(word: str) -> Path:
    if not word:
        raise argparse.ArgumentTypeError("name a folder")
    return Path(word).absolute()


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="tools/gpu_sweep",
        allow_abbrev=False,
        description="Measures on a GPU machine without a network, in three commands of minutes: "
        "plain, with --resume, with --tests. docs/gpu.md says how.",
        epilog="Exit codes: 0 all stages passed (PyTorch, memcheck and racecheck may fail), 1 one "
        "failed or ran out of time, or the plan takes longer than the minutes, 2 wrong usage",
    )
    for flag, text, more in (
        ("brought", "what --pack made, or a prefix of libraries (./brought)", {"type": _place}),
        ("out", "folder for results and log (default: $OUT, else ./gpu-results)", {"type": _place}),
        ("minutes", "limit for each command (default: 9)", {"type": float}),
        ("sweep", "bench's (default: gpu, what tells most first)", {}),
        ("resume", "second command: go on with the rows of this folder or file", {"type": _place}),
        ("tests", "third command: sizes between, tests, memcheck", {"action": "store_true"}),
        ("plan", "print all three with expected seconds (needs bench)", {"action": "store_true"}),
        ("cores", "plan for so many (default: this machine's)", {"type": int}),
        ("pack", "collect what to bring along, where ./test has run", {"type": _place}),
    ):
        parser.add_argument(f"--{flag}", help=text, **more)
    out = _place(os.environ.get("OUT") or "gpu-results")
    parser.set_defaults(brought=_place("brought"), out=out, minutes=MINUTES, sweep="gpu")
    parsed = parser.parse_args(words)
    if not (0.1 <= parsed.minutes <= 600 and (parsed.cores is None or parsed.cores > 0)):
        parser.error("--minutes takes a number from 0.1 to 600, --cores one from 1")
    return parsed


def gpu_of(bench: Path) -> tuple[bool, str]:
    """Whether bench finds a GPU, and its name or the reason why there is none."""
    asked = [str(bench), "--machine"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return False, str(error)
    try:
        machine = json.loads(done.stdout)
        gpu = machine["gpu"]
        return bool(gpu), str(gpu["name"] if gpu else machine["gpu_reason"])
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1]
        return False, f"bench --machine does not tell ({last})"


def times(path: Path) -> str:
    """The fastest CPU and GPU rows, as far as this Python has the packages to read them."""
    command, seconds = [sys.executable, "-m", "plots", "times", str(path)], 20
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
        return (done.stdout or done.stderr).rstrip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"no table: {error}"


class Sweep(Limited):
    def __init__(self, arguments: argparse.Namespace, log: TextIO) -> None:
        super().__init__(log, arguments.minutes)
        self.out: Path = arguments.out
        self._earlier: Path | None = arguments.resume
        self._grid = f"--sweep={arguments.sweep}"
        self._brought: Path = arguments.brought

    def unpack(self) -> None:
        """What was brought, and the bench of an earlier command. Those that were linked elsewhere
        find their libraries: the pack's, and those of NVIDIA's Python packages."""
        shutil.rmtree(PREFIX, ignore_errors=True)
        if (self._brought / pack.ARCHIVE).is_file():
            shutil.unpack_archive(self._brought / pack.ARCHIVE, PREFIX)
        sites = map(Path, [*site.getsitepackages(), site.getusersitepackages()])
        folders = [*PREFIX.glob("lib"), *PREFIX.glob("lib/*-linux-gnu")]
        folders += [folder for place in sites for folder in place.glob("nvidia/*/lib")]
        known = os.environ.get("LD_LIBRARY_PATH", "").split(":")
        places = [*map(str, folders), "/usr/local/cuda/lib64", *filter(None, known)]
        os.environ["LD_LIBRARY_PATH"] = ":".join(places)
        os.environ["PYTHONPATH"] = f"{PREFIX}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        BUILD.mkdir(parents=True, exist_ok=True)
        kept = self.earlier(NATIVE.name)
        if kept is not None and not NATIVE.is_file():
            shutil.copyfile(kept, NATIVE)
            NATIVE.chmod(0o755)

    def earlier(self, name: str) -> Path | None:
        """A file that an earlier command left."""
        if self._earlier is None:
            return None
        path = (self._earlier if self._earlier.is_dir() else self._earlier.parent) / name
        return path if path.is_file() else None

    def rows(
        self, stage: Stage, bench: Path, *more: str, until: Callable[[], bool] = never
    ) -> bool:
        """Measure rows into a file of their own, or go on with that of an earlier command; whether
        the file has any. Its table comes also where the time ran out or a signal came."""
        path, started = self.out / f"{stage.name}.json", time.time()
        command = [str(bench), f"--out={path}", self._grid, *stage.rows.split(), *more]
        earlier = self.earlier(f"{path.name}.partial") or self.earlier(path.name)
        if earlier is not None:
            if stored(earlier).get("context", {}).get("crossover", {}).get("complete"):
                self.say(f"{stage.name}: {friendly(earlier)} is complete")
                return True
            with suppress(shutil.SameFileError):
                shutil.copyfile(earlier, self.out / earlier.name)
            command.append("--resume")

        try:
            self.stage(stage, command, until=until)
        finally:
            written = results.written_since(path, started)
            count = results.finished_rows(written) if written else 0
            self.say(f"{count} rows in {path.name}")
            if written and count:
                self.say(times(written))
        return count > 0

    def ahead(self, bench: Path, modes: str) -> None:
        """What works here, and PyTorch's rows on the GPU, which need none of our kernels."""

        def last(output: str) -> str:
            return (output.splitlines() or [""])[-1]

        check = [str(bench), "--check", CHECK_BUDGET, f"--out={self.out / 'check.json'}"]
        self.stage(CHECK, check, last)
        peer = f"{sys.executable} -m peers.pytorch --devices=cuda --mode={modes}"
        self.rows(PYTORCH, bench, f"--peer={peer}", "--program=pytorch")

    def make(self, target: str) -> list[str | Path]:
        """A command that configures and builds for this machine, on the cores it may use."""
        prefixes = [PREFIX, self._brought, VENV]
        configure = ["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release"]
        configure += ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=8"]
        configure += [f"-DCROSSOVER_TESTS={'OFF' if target == NATIVE.name else 'ON'}"]
        configure += ["-DFETCHCONTENT_FULLY_DISCONNECTED=ON"]
        configure += [f"-DCMAKE_PREFIX_PATH={';'.join(map(str, prefixes))}"]
        configure += [f"-DCROSSOVER_PACKED_COMMIT={self._brought / pack.COMMIT}"]
        if not (BUILD / "CMakeCache.txt").exists() and shutil.which("ninja"):
            configure += ["-G", "Ninja"]
        make = ["nice", "cmake", "--build", BUILD, "--target", target]
        first, then = (shlex.join(map(str, words)) for words in (configure, make))
        return ["sh", "-c", f"{first} && exec {then} --parallel $(nproc)"]

    def build(self, packed: Path | None) -> None:
        """Build bench for this machine. A packed one measures meanwhile what does not mind a busy
        machine, on a quarter of the cores: what works, and the GPU's rows."""
        every = sorted(os.sched_getaffinity(0))
        few = every[: max(1, len(every) // 4)]
        stop = threading.Event()

        def make() -> None:
            os.sched_setaffinity(0, (packed and every[len(few) :]) or every)  # of this thread
            self.stage(BUILT, self.make(NATIVE.name), until=stop.is_set)

        with ThreadPoolExecutor(1) as threads:
            built = threads.submit(make)
            try:
                if packed:
                    os.sched_setaffinity(0, few)
                    self.ahead(packed, "graph")
                    self.rows(EARLY, packed, until=built.done)
                built.result()
            finally:
                stop.set()
                os.sched_setaffinity(0, every)

    def test(self) -> None:
        if not self.stage(BUILT_TESTS, self.make(TESTS.name)):
            return
        # A few at a time: each process has a context of its own on the one GPU.
        ctest = ["ctest", "--test-dir", str(BUILD), "-L", "gpu", "-V", "--timeout", "120"]
        self.stage(GPU_TESTS, [*ctest, "-j", str(min(4, cores()))])
        places = f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin"
        sanitizer = shutil.which("compute-sanitizer", path=places) or "compute-sanitizer"
        for stage, (kernels, tests) in SANITIZED.items():
            flags = [f"--tool={stage.name}", "--kernel-regex", f"kns={kernels}"]
            command = [sanitizer, *flags, "--error-exitcode=1", str(TESTS)]
            self.stage(stage, [*command, f"--gtest_filter={tests}"])


def sweep_all(arguments: argparse.Namespace, log: TextIO) -> int:
    sweep = Sweep(arguments, log)
    log.write(said("nvidia-smi", "-q"))
    sweep.unpack()
    benches = {path: gpu_of(path) for path in (PACKED,) if path.is_file()}
    early = PACKED if benches.get(PACKED, (False,))[0] else None
    goes_on = arguments.resume is not None or arguments.tests
    if not NATIVE.is_file() or not goes_on:
        sweep.build(None if goes_on else early)
    if NATIVE.is_file():
        pack.strip(Path(shutil.copy2(NATIVE, sweep.out)))  # for a later command on another machine
        benches = {NATIVE: gpu_of(NATIVE), **benches}
    for path, (_, gpu) in benches.items():
        sweep.say(f"{friendly(path)}: GPU: {gpu}")
    able = [path for path, (has_gpu, _) in benches.items() if has_gpu]
    if not benches or (not able and "GPU 0" in said("nvidia-smi", "-L")):
        sweep.say("no bench is there that finds the GPU, so nothing is measured")
        return 1
    bench = (able or list(benches))[0]
    if arguments.tests:
        sweep.test()
        sweep.rows(BETWEEN, bench)
    elif arguments.resume is not None:
        for stage in (SWEEP, *COMMANDS["second"]):
            sweep.rows(stage, bench)
    else:
        if early is None:
            sweep.ahead(bench, "eager,graph")
        if not sweep.rows(SWEEP, bench) and early and early != bench:
            sweep.rows(SWEEP, early)
    return 1 if sweep.bad else 0


def planned(bench: Path, arguments: argparse.Namespace) -> Iterator[str]:
    """Lines of the plan; the last of each command is its sum."""
    threads = ",".join(map(str, sorted({1, arguments.cores or cores()})))
    plan = [str(bench), "--plan", "--cuda=on", f"--sweep={arguments.sweep}", f"--threads={threads}"]
    for command, stages in COMMANDS.items():
        yield f"{command} command"
        total = 0.0
        for stage in stages:
            seconds = stage.expected
            if not seconds:
                done = subprocess.run(
                    [*plan, *stage.rows.split()], capture_output=True, text=True, check=False
                )
                if done.returncode != 0:
                    raise Failure(done.stderr.strip() or f"--plan: exit code {done.returncode}")
                yield from done.stdout.splitlines()
                seconds = float(done.stdout.split()[-2])
            total += seconds
            most = stage.most * arguments.minutes / MINUTES
            yield f"{stage.name:<16}{seconds:7.1f} s, at most {most:5.1f} s"
        if BUILT in stages:  # beside the two after it
            total -= min(BUILT.expected, CHECK.expected + PYTORCH.expected)
        yield f"{'together':<16}{total:7.1f} s of {arguments.minutes * 60:.0f} s"


def plan(arguments: argparse.Namespace) -> int:
    built = [path for path in (NATIVE, ROOT / "build" / "bench") if path.is_file()]
    if not built:
        raise Failure("--plan needs bench, which is not built yet; run ./run --setup-only", 2)
    lines = list(planned(built[0], arguments))
    print("\n".join(lines))
    needed = max(float(line.split()[1]) for line in lines if line.startswith("together"))
    if needed <= arguments.minutes * 60:
        return 0
    say(
        f"tools/gpu_sweep: {needed - arguments.minutes * 60:.0f} s too long: the last rows would "
        f"be left out; --minutes={math.ceil(needed / 60)} measures them"
    )
    return 1


def calls(brought: Path) -> list[str]:
    """As they are typed there. All results go to $OUT, from where they come back."""
    folder = friendly(brought)
    return [f"tools/gpu_sweep --brought={folder} {words.format(folder)}" for words in _LENT]


def main(words: list[str]) -> int:
    arguments = parse(words)
    if arguments.pack is not None:
        code = pack.collect(arguments.pack)
        say("\n".join(["there, as docs/gpu.md says:", *calls(arguments.pack)]))
        return code
    if arguments.plan:
        return plan(arguments)
    results.make_folder(arguments.out)
    path = arguments.out / "gpu_sweep.log"
    try:
        with path.open("w", encoding="utf-8") as log:
            return sweep_all(arguments, log)
    finally:
        print(f"log: {friendly(path)}")
