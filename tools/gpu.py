# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_sweep: what a GPU machine without a network can tell, within minutes: docs/gpu.md."""

import argparse
import json
import os
import re
import shlex
import shutil
import site
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from tools import pack, results
from tools.console import ROOT, Parser, cores, friendly, said, say, stored
from tools.environment import VENV
from tools.limited import MINUTES, Limited, Stage

BUILD = ROOT / "build" / "gpu"
NATIVE = BUILD / "bench"
TESTS = BUILD / "tests" / "crossover_tests"
PREFIX = BUILD.with_name("brought")
PACKED = PREFIX / "bin" / "bench"

_ALL = MINUTES * 60
BUILT = Stage("build", _ALL - 200)
CHECK = Stage("check", 180)
CHECK_BUDGET = "--budget=60s"
SWEEP = Stage("gpu", _ALL)
REST = Stage(SWEEP.name, 200)
_FEW = "--family=Epoch --precision=f32 --placement=resident --execution=graph"
_FEW += " --model=disc-2,disc-5,disc-7,disc-8,disc-9,disc-10"
_PEER = f"--peer={sys.executable} -m peers.pytorch --devices=cuda --mode=eager,graph"
PYTORCH = Stage("pytorch", 120, f"{_FEW} --program=pytorch {shlex.quote(_PEER)}", may_fail=True)
_FORMERS = "--family=Minibatch --model=gpt-64,gpt-512,vit-ti --precision=f32,bf16"
TRANSFORMERS = Stage("transformers", 120, _FORMERS)
_SEVEN = "--family=Minibatch --model=fcn-r,alexnet-r,resnet-56,lstm,fcn-s,alexnet-s,resnet-50"
SEVEN = Stage("seven", _ALL, _SEVEN)  # it takes longer than what is left, so it comes last
BUILT_TESTS = Stage("build tests", 300)
GPU_TESTS = Stage("GPU tests", 380)
MEMCHECK = Stage("memcheck", 70, may_fail=True)
RACECHECK = Stage("racecheck", 50, may_fail=True)
PROFILE = Stage("profile", 30, may_fail=True)
_SIZES = ",".join(f"disc-{depth}x{by}" for depth in range(2, 10) for by in (1.25, 1.5, 1.75))
_BETWEEN = f"--family=Epoch --precision=f32 --placement=resident --model={_SIZES}"
BETWEEN = Stage("between", _ALL, _BETWEEN)
# On a machine that is lent for 15 minutes: what starts and copying take is left over.
_LENT = ("--minutes=4", "--minutes=4 --resume={}/first", "--minutes=4 --tests")
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


def _capabilities(words: str) -> list[str]:
    if not re.fullmatch(r"\d{2,3}(,\d{2,3})*", words):
        raise argparse.ArgumentTypeError("name compute capabilities without the dot, as in 80,90")
    return words.split(",")


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="tools/gpu_sweep",
        allow_abbrev=False,
        description="Measures on a GPU machine without a network, in three commands of minutes: "
        "plain, with --resume, with --tests. docs/gpu.md says how.",
        epilog="Exit codes: 0 all stages passed (PyTorch, memcheck, racecheck and profile may "
        "fail), 1 one failed or ran out of time, 2 wrong usage",
    )
    for flag, text, more in (
        ("brought", "what --pack made, or a prefix of libraries (./brought)", {"type": _place}),
        ("out", "folder for results and log (default: $OUT, else ./gpu-results)", {"type": _place}),
        ("minutes", "limit for each command (default: 9)", {"type": float}),
        ("sweep", "bench's (default: gpu, what tells most first)", {}),
        ("resume", "second command: go on with the rows of this folder or file", {"type": _place}),
        ("tests", "third command: tests, memcheck, sizes between", {"action": "store_true"}),
        ("pack", "collect what to bring along, where ./test has run", {"type": _place}),
        ("gpu", "pack tests too, all for these GPUs only, as in 80,90", {"type": _capabilities}),
    ):
        parser.add_argument(f"--{flag}", help=text, **more)
    out = _place(os.environ.get("OUT") or "gpu-results")
    parser.set_defaults(brought=_place("brought"), out=out, minutes=MINUTES, sweep="gpu")
    parsed = parser.parse_args(words)
    if not 0.1 <= parsed.minutes <= 600:
        parser.error("--minutes takes a number from 0.1 to 600")
    if parsed.gpu and parsed.pack is None:
        parser.error("--gpu says what --pack is for; give both")
    return parsed


def asked(bench: Path) -> tuple[bool, str]:
    """Whether bench starts, and finds the GPU if nvidia-smi lists one; and what it says of it."""
    command = [str(bench), "--machine"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return False, f"does not start ({error})"
    try:
        machine = json.loads(done.stdout)
        gpu = machine["gpu"]
        told = f"GPU: {gpu['name'] if gpu else machine['gpu_reason']}"
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1]
        return False, f"bench --machine does not tell ({last})"
    return bool(gpu) or "GPU 0" not in said("nvidia-smi", "-L"), told


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
        """What was brought. It finds its libraries: the pack's, and those of NVIDIA's Python
        packages."""
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

    def bench(self) -> Path | None:
        """The packed one where it starts and finds the GPU, else one that is built here."""
        for path in (PACKED, NATIVE):
            if path == NATIVE and not self.stage(BUILT, self.make(NATIVE)):
                break
            fits, told = asked(path)
            self.say(f"{friendly(path)}: {told}")
            if fits:
                return path
        self.say(
            "nothing is measured, because no bench starts here and finds the GPU; bring one that "
            "--pack made for this GPU, or install what the build lacks (see the log)"
        )
        self.bad = True
        return None

    def earlier(self, name: str) -> Path | None:
        """A file that an earlier command left."""
        if self._earlier is None:
            return None
        path = (self._earlier if self._earlier.is_dir() else self._earlier.parent) / name
        return path if path.is_file() else None

    def rows(self, stage: Stage, bench: Path) -> None:
        """Measure rows into a file of their own, or go on with that of an earlier command. Its
        table comes also where the time ran out or a signal came."""
        path, started = self.out / f"{stage.name}.json", time.time()
        command = [str(bench), f"--out={path}", self._grid, *shlex.split(stage.rows)]
        earlier = self.earlier(f"{path.name}.partial") or self.earlier(path.name)
        if earlier is not None:
            if stored(earlier).get("context", {}).get("crossover", {}).get("complete"):
                self.say(f"{stage.name}: {friendly(earlier)} is complete")
                return
            with suppress(shutil.SameFileError):
                shutil.copyfile(earlier, self.out / earlier.name)
            command.append("--resume")

        try:
            self.stage(stage, command)
        finally:
            written = results.written_since(path, started)
            count = results.finished_rows(written) if written else 0
            self.say(f"{count} rows in {path.name}")
            if written and count:
                self.say(times(written))

    def make(self, program: Path) -> list[str]:
        """A command that configures and builds for this machine."""
        prefixes = [PREFIX, self._brought, VENV]
        configure = ["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release"]
        configure += ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=8"]
        configure += [f"-DCROSSOVER_TESTS={'ON' if program == TESTS else 'OFF'}"]
        configure += ["-DFETCHCONTENT_FULLY_DISCONNECTED=ON"]
        configure += [f"-DCMAKE_PREFIX_PATH={';'.join(map(str, prefixes))}"]
        configure += [f"-DCROSSOVER_PACKED_COMMIT={self._brought / pack.COMMIT}"]
        if not (BUILD / "CMakeCache.txt").exists() and shutil.which("ninja"):
            configure += ["-G", "Ninja"]
        make = ["cmake", "--build", BUILD, "--target", program.name, "--parallel", cores()]
        first, then = (shlex.join(map(str, words)) for words in (configure, make))
        return ["sh", "-c", f"{first} && exec {then}"]

    def check(self, bench: Path) -> None:
        command = [str(bench), "--check", CHECK_BUDGET, f"--out={self.out / 'check.json'}"]
        self.stage(CHECK, command, lambda output: (output.splitlines() or [""])[-1])

    def test(self, bench: Path) -> None:
        program = bench.with_name(TESTS.name)  # packed beside it
        if not program.is_file():
            program = TESTS
            if not self.stage(BUILT_TESTS, self.make(program)):
                return
        # A few at a time: each process has a context of its own on the one GPU. Threads that wait
        # sleep, so that those of another process have the core.
        count = min(8, cores())
        shard = f"GTEST_SHARD_INDEX={{}} {shlex.quote(str(program))} --gtest_brief=1"
        shard += " '--gtest_filter=Gpu/*' || exit 1"  # after a crash too: xargs would end by it
        every = f"seq 0 {count - 1} | GTEST_TOTAL_SHARDS={count} OMP_WAIT_POLICY=passive xargs"
        every += f" -P {count} -I{{}} sh -c {shlex.quote(shard)}"
        self.stage(GPU_TESTS, ["sh", "-c", every])
        places = f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin"
        sanitizer = shutil.which("compute-sanitizer", path=places) or "compute-sanitizer"
        for stage, (kernels, tests) in SANITIZED.items():
            flags = [f"--tool={stage.name}", "--kernel-regex", f"kns={kernels}"]
            command = [sanitizer, *flags, "--error-exitcode=1", str(program)]
            self.stage(stage, [*command, f"--gtest_filter={tests}"])
        # What the warps of the training kernel wait for: disc-2 has one block, disc-6 a cluster.
        ncu = [shutil.which("ncu", path=places) or "ncu", "--clock-control=none"]
        ncu += ["--kernel-name=regex:train_kernel", "--print-details=all"]
        ncu += [f"--section={name}" for name in ("WarpStateStats", "SourceCounters", "LaunchStats")]
        wanted = "--gtest_filter=Gpu/GpuPersistent.Trajectory/disc_2:*Persistent*/disc_6"
        self.stage(PROFILE, [*ncu, str(program), wanted])


def sweep_all(arguments: argparse.Namespace, log: TextIO) -> int:
    sweep = Sweep(arguments, log)
    log.write(said("nvidia-smi", "-q"))
    sweep.unpack()
    if (bench := sweep.bench()) is not None:
        if arguments.tests:
            sweep.test(bench)
            stages = [BETWEEN]
        elif arguments.resume is not None:
            stages = [REST, PYTORCH, TRANSFORMERS, SEVEN]
        else:
            sweep.check(bench)
            stages = [SWEEP]
        for stage in stages:
            sweep.rows(stage, bench)
    return 1 if sweep.bad else 0


def calls(brought: Path) -> list[str]:
    """As they are typed there. All results go to $OUT, from where they come back."""
    folder = friendly(brought)
    return [f"tools/gpu_sweep --brought={folder} {words.format(folder)}" for words in _LENT]


def main(words: list[str]) -> int:
    arguments = parse(words)
    if arguments.pack is not None:
        code = pack.collect(arguments.pack, arguments.gpu or [])
        say("\n".join(["there, as docs/gpu.md says:", *calls(arguments.pack)]))
        return code
    results.make_folder(arguments.out)
    path = arguments.out / "gpu_sweep.log"
    try:
        with path.open("w", encoding="utf-8") as log:
            return sweep_all(arguments, log)
    finally:
        print(f"log: {friendly(path)}")
