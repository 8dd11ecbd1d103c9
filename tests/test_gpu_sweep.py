# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu_sweep decides by itself: arguments, stages, limits."""

import fcntl
import re
import shutil
import sys
from pathlib import Path

import pytest
from scripts import refused, script

from plots.tests import synthetic
from tools import gpu, limited

INTERRUPTED = '{"context": {"crossover": {"complete": false}}, "rows": []}'


def test_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OUT", raising=False)
    parsed = gpu.parse([])
    assert (parsed.brought, parsed.out) == (tmp_path / "brought", tmp_path / "gpu-results")
    assert (parsed.minutes, parsed.sweep, parsed.resume) == (9, "gpu", None)
    monkeypatch.setenv("OUT", "/elsewhere")
    assert gpu.parse([]).out == Path("/elsewhere")
    parsed = gpu.parse(["--out=o", "--brought=/b", "--resume=r"])
    assert (parsed.brought, parsed.out) == (Path("/b"), tmp_path / "o")
    assert parsed.resume == tmp_path / "r"


@pytest.mark.parametrize(
    "word", ["--pack", "--out=", "--minutes=x", "--minutes=nan", "brought", "--cores=0"]
)
def test_bad_arguments_are_usage_errors(word: str) -> None:
    with refused("see tools/gpu_sweep --help"):
        gpu.parse([word])


@pytest.mark.parametrize(("needed", "code"), [(540.0, 0), (547.4, 1)])
def test_a_plan_that_is_too_long_says_how_long_it_takes(
    needed: float,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (built := tmp_path / "bench").touch()
    monkeypatch.setattr(gpu, "NATIVE", built)
    lines = [f"together {seconds} s of 540 s" for seconds in (99, needed, 99)]
    monkeypatch.setattr(gpu, "planned", lambda *_: lines)
    assert gpu.plan(gpu.parse([])) == code
    said = capsys.readouterr().err
    assert ("7 s too long" in said and "--minutes=10 " in said) == bool(code)


def test_the_calls_for_a_lent_machine_are_documented_and_lose_nothing() -> None:
    text = (gpu.ROOT / "docs" / "gpu.md").read_text("utf-8")
    for call in gpu.calls(gpu.ROOT / "brought"):
        assert f"\n{call}\n" in text
        parsed = gpu.parse(call.split()[1:])
        assert parsed.brought == Path("brought").absolute()
        assert parsed.out == gpu.parse([]).out, "what lies elsewhere stays on that machine"


# ---- one stage -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "seconds", "verdict"),
    [
        ("print('out')", 600, "passed"),
        ("print('out'); raise SystemExit(3)", 600, "failed (exit code 3)"),
        ("print('out')", 0, "no time left"),
    ],
)
def test_a_stage_ends_with_a_verdict_and_its_output(
    text: str, seconds: float, verdict: str, tmp_path: Path
) -> None:
    said = limited.run_limited([sys.executable, "-c", text], tmp_path / "log", seconds)
    assert said == (verdict, "out\n" if seconds else "")
    assert not (tmp_path / "log").exists()


def test_what_a_stage_talks_too_much_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "_MOST_LOGGED", 1000)
    text = "print('first'); print('x' * 5000); print('last')"
    _, output = limited.run_limited([sys.executable, "-c", text], tmp_path / "log", 60)
    assert output.startswith("first\n") and output.endswith("x\nlast\n")
    assert "characters left out]" in output and len(output) < 1100


@pytest.mark.slow
def test_a_stage_that_hangs_is_ended_even_if_it_will_not(tmp_path: Path) -> None:
    text = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
    verdict, _ = limited.run_limited([sys.executable, "-c", text], tmp_path / "log", 1)
    assert verdict == "out of time after 1 s"


def test_a_stage_leaves_nothing_running(tmp_path: Path) -> None:
    lock, outlived = tmp_path / "lock", tmp_path / "outlived"
    child = f"import time; time.sleep(20); open({str(outlived)!r}, 'w')"
    text = (
        f"import fcntl, subprocess, sys; file = open({str(lock)!r}, 'w'); fcntl.flock(file, 2); "
        f"subprocess.Popen([sys.executable, '-c', {child!r}], pass_fds=[file.fileno()])"
    )
    command = [sys.executable, "-c", text]
    assert limited.run_limited(command, tmp_path / "log", 600)[0] == "passed"
    with lock.open(encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # held by the child for as long as it lives
    assert not outlived.exists()


# ---- the commands, with programs that stand in for bench and its tests ---------------------------
STAND_IN = """
import json, os, sys, time
from pathlib import Path
me, words = Path(__file__), sys.argv[1:]
if "--machine" in words:
    gpu = {"name": "H200"} if os.environ["HAS_GPU"] else None
    print(json.dumps({"gpu": gpu, "gpu_reason": "none"}))
    sys.exit()
with open(os.environ["CALLS"], "a") as calls:
    calls.write(f"{me.parent.name} {' '.join(words)}\\n")
out = [word.partition("=")[2] for word in words if word.startswith("--out=")]
for trouble in os.environ["TROUBLE"].split():
    if trouble in " ".join(words):
        os.abort()
if out and "early" in out[0]:
    time.sleep(600)
if out:
    Path(out[0]).write_text('{"rows": [1], "benchmarks": []}')
"""


class Commands:
    """What the sweep started, by name and words."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch, self.out = folder, monkeypatch, folder / "out"
        self._calls = folder / "calls"
        for name, place in {
            "BUILD": "build",
            "NATIVE": "build/bench",
            "PREFIX": "build/prefix",
            "PACKED": "build/prefix/bin/bench",
        }.items():
            monkeypatch.setattr(gpu, name, folder / place)
        monkeypatch.setattr(gpu, "times", lambda path: f"times of {path.name}")
        self.set(CALLS=str(self._calls), TROUBLE="", HAS_GPU="yes")
        self.built = f"cp {script(folder / 'made', STAND_IN)} {folder}/build/bench"
        self.make(self.built)

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self.patch.setenv(name, value)

    def make(self, text: str, after: str = "") -> None:
        """What builds the native bench, at the earliest when there is a call of this."""
        if after:
            text = f"until grep -q {after} {self._calls}; do sleep 0.02; done; {text}"
        self.patch.setattr(gpu.Sweep, "make", lambda _, target: ["sh", "-c", text])

    def packed(self) -> None:
        (self.folder / "tree/bin").mkdir(parents=True)
        script(self.folder / "tree/bin/bench", STAND_IN)
        shutil.make_archive(str(self.folder / "brought/pack"), "gztar", self.folder / "tree")

    def run(self, *words: str) -> tuple[int, list[str]]:
        """The exit code, and of each command the folder of its program and the name of its file."""
        self._calls.write_text("")
        code = gpu.main([*words, f"--out={self.out}", f"--brought={self.folder / 'brought'}"])
        calls = (line.split() for line in self._calls.read_text("utf-8").splitlines())
        return code, [f"{call[0]} {Path(call[1]).name or call[1]}" for call in calls]


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(tmp_path, monkeypatch)


FIRST = ["bin --check", "bin pytorch.json", "bin early.json", "build gpu.json"]


def test_a_packed_bench_measures_while_the_native_one_is_built(commands: Commands) -> None:
    commands.packed()
    commands.make(commands.built, after="early")
    code, calls = commands.run()
    assert (code, calls) == (0, FIRST)
    kept = {path.name for path in commands.out.iterdir()}
    assert {"pytorch.json", "gpu.json", "gpu_sweep.log", "bench"} <= kept
    assert len(kept) <= 8
    assert "times of gpu.json\n" in (commands.out / "gpu_sweep.log").read_text("utf-8")


@pytest.mark.parametrize("trouble", ["--check", "pytorch", "early", "--check pytorch early gpu"])
def test_no_stage_prevents_the_others(trouble: str, commands: Commands) -> None:
    commands.packed()
    commands.make(commands.built, after="early")
    commands.set(TROUBLE=trouble)
    code, calls = commands.run()
    assert (code, calls[:4]) == (trouble != "pytorch", FIRST)
    assert calls[4:] == (["bin gpu.json"] if "gpu" in trouble else []), "where the native one ends"


def test_without_a_native_bench_the_packed_one_measures(commands: Commands) -> None:
    commands.packed()
    commands.make("exit 3", after="early")
    assert commands.run() == (1, [*FIRST[:-1], "bin gpu.json"])


def test_without_a_packed_bench_or_a_gpu_for_it_the_build_comes_first(commands: Commands) -> None:
    native = ["build --check", "build pytorch.json", "build gpu.json"]
    assert commands.run() == (0, native)
    commands.packed()
    commands.set(HAS_GPU="")
    assert commands.run() == (0, native)
    script(commands.folder / "nvidia-smi", "print('GPU 0: H200')")
    commands.patch.setenv("PATH", str(commands.folder), prepend=":")
    assert commands.run() == (1, []), "a GPU that bench does not find is not paid for"


def test_a_second_command_goes_on_with_the_rows_and_the_bench_of_the_first(
    commands: Commands,
) -> None:
    commands.make("exit 3")
    (earlier := commands.folder / "earlier").mkdir()
    (earlier / "gpu.json.partial").write_text(INTERRUPTED)
    (earlier / "seven.json").write_text(INTERRUPTED.replace("false", "true"))
    script(earlier / "bench", STAND_IN).chmod(0o644)
    code, calls = commands.run(f"--resume={earlier}")
    assert (code, calls) == (0, ["build gpu.json", "build transformers.json", "build chosen.json"])
    log = (commands.out / "gpu_sweep.log").read_text("utf-8")
    assert re.search(r"/gpu\.json --sweep=gpu --resume\n", log)


def test_the_third_command_measures_and_tests(commands: Commands) -> None:
    tests = script(commands.folder / "crossover_tests", "")
    commands.patch.setattr(gpu, "TESTS", tests)
    for name in ("ctest", "compute-sanitizer"):
        script(
            commands.folder / name,
            "import sys; print(*sys.argv); sys.exit('race' in str(sys.argv))",
        )
    commands.patch.setenv("PATH", str(commands.folder), prepend=":")
    assert commands.run("--tests") == (0, ["build between.json"]), "racecheck may fail"
    log = (commands.out / "gpu_sweep.log").read_text("utf-8")
    stages = re.findall(r"^([\w ]+?) +[\d.]+ s  (?:passed|failed)", log, re.MULTILINE)
    assert stages == ["build", *(stage.name for stage in gpu.COMMANDS["third"])]


def test_sanitizers_are_given_tests_that_exist() -> None:
    sources = [path.read_text("utf-8") for path in Path(__file__).parent.glob("*.cpp")]
    for _, tests in gpu.SANITIZED.values():
        suite = f"INSTANTIATE_TEST_SUITE_P({tests.removesuffix('*').replace('/', ', ')},"
        assert any(suite in source for source in sources)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"gpu": {"name": "NVIDIA H100"}, "gpu_reason": ""}', (True, "NVIDIA H100")),
        ('{"gpu": null, "gpu_reason": "none (no driver)"}', (False, "none (no driver)")),
        ("Segmentation fault", (False, "bench --machine does not tell (exit code 0)")),
    ],
)
def test_bench_tells_of_the_gpu(text: str, answer: tuple[bool, str], tmp_path: Path) -> None:
    assert gpu.gpu_of(script(tmp_path / "bench", f"print({text!r})")) == answer


def test_the_times_of_a_file_are_told_or_why_not(tmp_path: Path) -> None:
    path = synthetic.write(tmp_path / "gpu.json", synthetic.sweep())
    assert re.search(r"^disc-2 .*\n", gpu.times(path), re.MULTILINE)
    assert "no such file" in gpu.times(tmp_path / "absent.json")
