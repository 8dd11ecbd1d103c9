# SPDX-License-Identifier: Apache-2.0
"""The fuzzers of tests/fuzz: building them, a short run for ./test, and one as long as is asked."""

import math
import re
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from tools import environment, setup
from tools.console import LOGS, ROOT, Failure, Missing, cores, friendly, run_logged, say, stage
from tools.passed import Passed, digest

SOURCES = ROOT / "tests" / "fuzz"
BUILD = ROOT / "build" / "fuzz"
FINDINGS = BUILD / "findings"  # of every run, tried first by each later one
PLOTS = "plots"  # plots/tests/test_fuzz.py, which needs no clang

# Executions of each fuzzer within ./test, by what one of them takes.
_SHORT_RUNS = {"arguments": 5_000}
_SHORT_RUNS_OF_OTHERS = 20_000
# Bytes and seconds of one input, which takes far below a millisecond.
_LIMITS = ("-max_len=1000", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1")
_PROBE = 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }\n'
_WORD = re.compile(r'"([!#-\[\]-~]{2,40})"')  # literals that a dictionary takes as they are
_EXECUTIONS = re.compile(r"^(?:#|stat::number_of_executed_units: *)(\d+)", re.MULTILINE)
_LINES_OF_A_FINDING = 60
_PROGRESS_SECONDS = 15.0


def seconds_in(duration: str) -> int:
    """The seconds in "90s", "10m" or "2h"; Failure where it is none of these."""
    found = re.fullmatch(r"([0-9]{1,6})([smh])", duration)
    seconds = int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]] if found else 0
    if seconds == 0:
        raise Failure(f"--fuzz={duration} is no duration such as 90s, 10m or 2h", 2)
    return seconds


def _compiler() -> str:
    """A clang that can link a fuzzer; raises Missing where there is none."""
    clang = shutil.which("clang++") or shutil.which("clang++-14")
    if clang is None:
        raise Missing("clang++ is not installed", 2)
    command = [clang, "-x", "c++", "-", "-fsanitize=fuzzer,address,undefined", "-o", "/dev/null"]
    done = subprocess.run(command, input=_PROBE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[0]
        needs = "clang++ cannot link -fsanitize=fuzzer, for which it needs libclang-rt-dev"
        raise Missing(f"{needs}: {said}", 2)
    return clang


def build() -> None:
    """Bring the fuzzers up to date; raises Missing where there can be none."""
    switch = f"-DCMAKE_CXX_COMPILER={_compiler()}"
    configure = ["cmake", "-S", SOURCES, "-B", BUILD, "-G", "Ninja", switch]
    with setup.alone("fuzz"), stage("Building (fuzz)"):
        run_logged("Configuring (fuzz)", configure, LOGS / "configure-fuzz.log")
        command = ["cmake", "--build", BUILD, "--parallel", str(cores())]
        run_logged("Building (fuzz)", command, LOGS / "build-fuzz.log")


def names() -> list[str]:
    """All of them but the one for plots."""
    return sorted(path.stem for path in SOURCES.glob("*.cpp"))


def dictionary(name: str) -> Path:
    """Words for libFuzzer to put in: literals of the sources that it tries (flags, values, keys),
    and those of tests/fuzz/NAME.dict."""
    words: set[str] = set()
    for source in (BUILD / f"{name}.sources").read_text(encoding="utf-8").splitlines():
        for line in Path(source).read_text(encoding="utf-8").splitlines():
            words.update(() if line.startswith("#include") else _WORD.findall(line))
    extra = SOURCES / f"{name}.dict"
    text = "".join(f'"{word}"\n' for word in sorted(words))
    path = BUILD / f"{name}.dict"
    path.write_text(text + (extra.read_text("utf-8") if extra.exists() else ""), encoding="utf-8")
    return path


def _corpora(name: str) -> list[Path]:
    """What runs start from: the committed inputs, and what earlier runs found."""
    folders = [SOURCES / "corpus" / name, FINDINGS / name]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def _command(name: str, new_inputs: Path, *options: str) -> list[str]:
    new_inputs.mkdir(parents=True, exist_ok=True)
    places = [f"-dict={dictionary(name)}", f"-artifact_prefix={FINDINGS / name}/", new_inputs]
    return [str(word) for word in (BUILD / name, *options, *_LIMITS, *places, *_corpora(name))]


def executions(log: str) -> int:
    """The most that a fuzzer's output tells of."""
    return max(map(int, _EXECUTIONS.findall(log)), default=0)


def _verdict(name: str, log: str, good: bool) -> bool:
    """Says what a run found, and hands `good` on."""
    count = f"{name}: {executions(log):,} executions"
    if good:
        print(f"{count}, nothing found", flush=True)
        return good
    lines = "\n".join(f"    {line}" for line in log.splitlines()[-_LINES_OF_A_FINDING:])
    found = sorted((FINDINGS / name).iterdir(), key=lambda path: path.stat().st_mtime)
    said = "FAILED without an input"
    if found:
        again = f"; again: {friendly(BUILD / name)} {friendly(found[-1])}" if name != PLOTS else ""
        said = f"FOUND {friendly(found[-1])}{again}"
    print(f"{lines}\n{count}, {said}", flush=True)
    return good


def short_runs(name: str) -> int:
    return _SHORT_RUNS.get(name, _SHORT_RUNS_OF_OTHERS)


def _key(name: str) -> str:
    """Hashes all that the short run of a fuzzer depends on."""
    files = [BUILD / name, dictionary(name)]
    files += sorted(path for folder in _corpora(name) for path in folder.iterdir())
    return digest([str(short_runs(name)).encode(), *(path.read_bytes() for path in files)])


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
        if _verdict(name, done.stderr, done.returncode == 0):
            good.add(name)
    passed.record(keys, good)
    return good == keys.keys()


def share(seconds: int, targets: int, at_once: int) -> int:
    """The whole seconds of each of `targets`, so many at once, that all end within `seconds`."""
    return max(1, math.floor(seconds / math.ceil(targets / at_once)))


def long(seconds: int) -> bool:
    """Other inputs every time, for `seconds` in all; those that reach new code are kept."""
    targets = [*names(), PLOTS]
    each = share(seconds, len(targets), cores())
    say(f"Fuzzing {', '.join(targets)}: {each} s each, {min(cores(), len(targets))} at once")
    running: dict[str, subprocess.Popen[bytes]] = {}
    (FINDINGS / PLOTS).mkdir(parents=True, exist_ok=True)

    def log(name: str) -> str:
        return (LOGS / f"fuzz-{name}.log").read_text(encoding="utf-8", errors="replace")

    def run(name: str) -> bool:
        module = [str(environment.PYTHON), "-m", "plots.tests.test_fuzz"]
        with (LOGS / f"fuzz-{name}.log").open("w", encoding="utf-8") as file:
            command = (
                [*module, str(each), str(FINDINGS / name)]
                if name == PLOTS
                else _command(name, BUILD / "corpus" / name, f"-max_total_time={each}")
            )
            running[name] = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )
            code = running[name].wait()
        del running[name]
        return _verdict(name, log(name), code == 0)

    start = time.monotonic()
    with ThreadPoolExecutor(cores()) as pool:
        jobs = [pool.submit(run, name) for name in targets]
        try:
            while wait(jobs, _PROGRESS_SECONDS).not_done:
                counts = [f"{name} {executions(log(name)):,}" for name in list(running)]
                say(f"  {time.monotonic() - start:.0f} s: {', '.join(counts)} executions")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running.values()):
                process.terminate()
            raise
    return all(job.result() for job in jobs)
