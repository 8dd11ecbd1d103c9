# SPDX-License-Identifier: Apache-2.0
"""./test: set up, build, and run the tests and checks."""

import os
import shutil
import tempfile
import time
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crossover_bench import __version__
from crossover_bench.run import build, cuda, environment, setup
from crossover_bench.run.console import CommandFailed, Failure, Missing, Parser, cores, seconds_of
from tools import arm64, fuzz, sources
from tools.stages import ALL, Result, Stage, passes, run_all


def _build(asked: Namespace) -> bool:
    with setup.alone():
        # The C++ tests of the emulation are built here for --all alone: asan has them always.
        also = ["emulation"] if asked.all else [] if asked.quick else ["bench_emulated"]
        choice = cuda.choose(asked.cuda, tests=True)
        build.everything("default", choice, also, complete=asked.all)
    return True


def _asan_build(_: Namespace) -> bool:
    with setup.alone("asan"):
        # Under the sanitizers the GPU's sources run on the emulation, so that this is also the
        # build without CUDA.
        build.everything("asan", cuda.Choice())
    return True


def _ctest(preset: str, *left_out: str) -> bool:
    command = ["ctest", "--test-dir", str(build.folder(preset)), "--output-on-failure"]
    command += ["--parallel", str(cores())]
    command += ["--label-exclude", f"^({'|'.join(left_out)})$"] if left_out else []
    return passes(command)


def _optimized(asked: Namespace) -> bool:
    left_out = [] if asked.all else ["emulation"]
    return _ctest("default", *left_out, *(["slow"] if asked.quick else []))


def _asan(_: Namespace) -> bool:
    good = _ctest("asan")
    emulated = {"CROSSOVER_BENCH_EMULATED": str(build.folder("asan") / "tests" / "bench_emulated")}
    return _python_tests("emulated", emulated) and good


def _python_tests(marked: str, variables: dict[str, str] | None = None) -> bool:
    """Those whose marks are so, with these variables."""
    command = [str(environment.PYTHON), "-m", "pytest", "-q", f"--numprocesses={cores()}"]
    command += ["--dist=worksteal", "--durations=10", "-m", marked]
    return passes(command, environment.variables() | (variables or {}))


def _pytest(asked: Namespace) -> bool:
    return _python_tests("not slow and not emulated" if asked.quick else "not slow")


def _slow(_: Namespace) -> bool:
    return _python_tests("slow")


def _tidy(asked: Namespace) -> bool:
    run_clang_tidy = shutil.which("run-clang-tidy-14")
    if run_clang_tidy is None:
        raise Missing("clang-tidy-14 is not installed")
    return sources.check_tidy(run_clang_tidy, build.configured_with(), asked.all)


def _fuzz(_: Namespace) -> bool:
    fuzz.build()
    return fuzz.short()


def _outside(_: Namespace) -> bool:
    try:
        with setup.alone():
            environment.PEERS.ensure(environment.FOR_OUTSIDE)
    except CommandFailed as failed:
        raise Missing(f"the suites could not be installed: {failed}") from failed
    bench = build.folder("default") / "bench"
    command: list[str | Path] = [environment.PEERS.python, "-m", "tools.outside", bench]
    return passes(command, environment.variables())


def _arm64(_: Namespace) -> bool:
    arm64.make()
    good = _ctest(arm64.PRESET, "slow", "emulation")
    return arm64.sweep() and good


STAGES = (
    Stage("build", "configure and build the default preset", _build),
    Stage("format", "clang-format, changing nothing", lambda _: sources.check_format()),
    Stage("ruff", "ruff's checks and format for the Python side", lambda _: sources.check_ruff()),
    Stage("mypy", "the types of the Python side", lambda _: sources.check_mypy()),
    Stage("ctest", "the C++ tests, optimized", _optimized, ("build",)),
    Stage("pytest", "the Python tests, but for slow ones", _pytest, ("build",)),
    Stage("tidy", "clang-tidy on sources that differ from main", _tidy, ("build",)),
    Stage("slow", "the Python tests that take long", _slow, ("build",)),
    Stage("asan-build", "build with sanitizers, the GPU backend on the emulation", _asan_build),
    Stage("asan", "the C++ tests, and bench on the emulated GPU", _asan, ("asan-build",)),
    Stage("fuzz", "made-up files and command lines", _fuzz),
    Stage("outside", "test suites of others: docs/evidence/outside.md", _outside, ("build",)),
    Stage("arm64", "the C++ tests and a few rows of bench on 64-bit Arm, emulated", _arm64),
)
LONG = ("slow", "asan-build", "asan", "fuzz", "outside", "arm64")  # with --all, or named
QUICK = ("build", "format", "ruff", "mypy", "ctest", "pytest")


def stage_names(words: str) -> list[str]:
    known = [stage.name for stage in STAGES]
    for name in words.split(","):
        if name not in known:
            raise Failure(f"there is no stage {name!r}; choose from {', '.join(known)}", 2)
    return words.split(",")


def parse(arguments: Sequence[str]) -> Namespace:
    listed = {stage.name: f"  {stage.name:<12}{stage.description}\n" for stage in STAGES}
    long = "".join(listed.pop(name) for name in LONG)
    usual = "".join(listed.values())
    parser = Parser(
        prog="./test",
        allow_abbrev=False,
        formatter_class=RawDescriptionHelpFormatter,
        description="""\
Installs what is missing, builds, and runs the tests and checks. A failed stage does not stop the
others. Ends with each stage's time.""",
        epilog=f"""\
stages:
{usual}
stages that take long, with --all or named by --only (continuous integration runs all up to fuzz):
{long}
Exit codes: 0 all passed, 1 something failed, 2 wrong usage or something to install first.""",
    )
    add = parser.add_argument
    which = parser.add_mutually_exclusive_group().add_argument
    which(
        "--quick",
        action="store_true",
        help="no emulated GPU, no clang-tidy, no slow tests in C++",
    )
    which(
        "--all",
        action="store_true",
        help="the weekly run: every stage, every case of tests that otherwise run a selection, the "
        "emulated GPU also optimized, clang-tidy with its analyzer on every source",
    )
    which(
        "--fuzz",
        type=lambda text: seconds_of("--fuzz", text),
        default=0,
        metavar="10m",
        help="run the fuzzers alone, for so many seconds (s), minutes (m) or hours (h) in all, and "
        "keep what they find",
    )
    add(
        "--only",
        type=stage_names,
        action="extend",
        default=[],
        metavar="STAGE[,STAGE...]",
        help="only these stages and the ones they need",
    )
    add(
        "--cuda",
        choices=cuda.MODES,
        default="auto",
        help="build the GPU backend if a toolkit or a driver is found (auto, the default), require "
        "it (on), or leave it out (off)",
    )
    add("--version", action="version", version=f"crossover {__version__}")
    parsed = parser.parse_args(arguments)
    if parsed.fuzz and parsed.only:
        parser.error("--fuzz runs no stages: leave --only out")
    return parsed


def chosen(parsed: Namespace) -> list[Stage]:
    """The stages to run, in their order, together with what they need."""
    usual = [s.name for s in STAGES if parsed.all or s.name not in LONG]
    wanted = set(parsed.only or (QUICK if parsed.quick else usual))
    for stage in STAGES:
        if stage.name in wanted:
            wanted.update(stage.needs)
    return [stage for stage in STAGES if stage.name in wanted]


@contextmanager
def _own_folder() -> Iterator[None]:
    """A folder for what tests write and leave, those in C++ as well, also where one is killed."""
    place = tempfile.TemporaryDirectory(prefix="crossover-test-", ignore_cleanup_errors=True)
    with place as folder:
        os.environ["TMPDIR"] = folder
        yield


def main(arguments: list[str]) -> int:
    asked = parse(arguments)
    start = time.monotonic()
    stages = chosen(asked)
    fuzzes = bool(asked.fuzz) or any(stage.run is _fuzz for stage in stages)
    with setup.alone():
        setup.for_test(asked.cuda, fuzzes)
    results = {"set-up": Result("passed", time.monotonic() - start)}
    if asked.fuzz:
        fuzz.build()
        return 0 if fuzz.long(asked.fuzz) else 1
    if asked.all:
        os.environ[ALL] = "1"
    with _own_folder():
        results |= run_all(stages, asked)
    results["all"] = Result("", time.monotonic() - start)
    lines = [f"{name:<12}{end.seconds:7.1f} s  {end.verdict}" for name, end in results.items()]
    print("", *lines, sep="\n", flush=True)
    return int(any(end.verdict not in ("passed", "skipped", "") for end in results.values()))
