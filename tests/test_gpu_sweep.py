# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu_sweep decides by itself: arguments, stages, limits, the table."""

import fcntl
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from scripts import script

from tools import console, gpu, limited
from tools.table import table, times

INTERRUPTED = '{"context": {"crossover": {"complete": false}}, "rows": []}'


def test_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OUT", raising=False)
    parsed = gpu.parse([])
    assert (parsed.brought, parsed.out) == (tmp_path / "brought", tmp_path / "gpu-results")
    assert (parsed.minutes, parsed.sweep, parsed.resume) == (9, "gpu", None)
    monkeypatch.setenv("OUT", "/elsewhere")
    assert gpu.parse([]).out == Path("/elsewhere")
    parsed = gpu.parse(["--out=o", "--brought=/b", "--minutes=2.5", "--resume=r"])
    assert (parsed.brought, parsed.out) == (Path("/b"), tmp_path / "o")
    assert (parsed.minutes, parsed.resume) == (2.5, tmp_path / "r")
    assert gpu.parse(["--plan", "--cores=16"]).cores == 16
    assert gpu.parse(["--pack", "p"]).pack == gpu.parse(["--pack=p"]).pack == tmp_path / "p"


@pytest.mark.parametrize(
    "word", ["--pack", "--out=", "--minutes=x", "--minutes=nan", "brought", "--cores=0"]
)
def test_bad_arguments_are_usage_errors(word: str) -> None:
    with pytest.raises(console.Failure) as caught:
        gpu.parse([word])
    assert caught.value.code == 2


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


# ---- one stage -----------------------------------------------------------------------------------
LONG = "print('first'); print('x' * 5000); print('last')"


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
    path = tmp_path / "log"
    said = limited.run_limited([sys.executable, "-c", text], path, seconds)
    assert said == (verdict, "out\n" if seconds else "")
    assert not path.exists()
    verdict, _ = limited.run_limited([tmp_path / "absent"], path, 60)
    assert verdict == "cannot start: No such file or directory"


def test_what_a_stage_talks_too_much_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "_MOST_LOGGED", 1000)
    _, output = limited.run_limited([sys.executable, "-c", LONG], tmp_path / "log", 60)
    assert output.startswith("first\n")
    assert "characters left out]" in output
    assert output.endswith("x\nlast\n")
    assert len(output) < 1100


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
    assert {"check.txt", "pytorch.json", "gpu.json", "gpu_sweep.log", "bench"} <= kept
    assert len(kept) <= 8


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
    assert (code, calls) == (0, ["build gpu.json", "build chosen.json"])
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


# ---- the table -----------------------------------------------------------------------------------
def result_file(path: Path, rows: dict[str, list[float]]) -> Path:
    entries = [
        {"name": name, "run_type": "iteration", "real_time": value, "time_unit": "ms"}
        for name, values in rows.items()
        for value in values
    ]
    entries.append(entries[0] | {"run_type": "aggregate", "real_time": 1e-9})
    path.write_text(json.dumps({"rows": [], "benchmarks": entries}), encoding="utf-8")
    return path


def test_the_best_median_of_each_device_counts(tmp_path: Path) -> None:
    rows = {
        "E/a/device:cpu/cpu_threads:1": [9.0, 1.0, 8.0],
        "E/a/device:cpu/cpu_threads:2": [4.0, 5.0, 6.0],
        "E/a/device:gpu/execution:graph": [2.5],
        "E/b/device:cpu": [7.0],
    }
    path = result_file(tmp_path / "gpu.json", rows)
    assert times(path) == {
        "E/a": {"cpu": pytest.approx(5e-3), "gpu": pytest.approx(2.5e-3)},
        "E/b": {"cpu": pytest.approx(7e-3)},
    }
    lines = table(path)
    assert lines[0].split() == ["E", "CPU", "GPU", "CPU/GPU"]
    assert lines[1].split() == ["E/a", "5", "ms", "2.5", "ms", "2.00"]
    assert lines[2].split() == ["E/b", "7", "ms", "-", "-"]


def test_the_table_stays_short_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    names = ("Peak", "Copy", "Gemm", "Layer", "Epoch")
    rows = {f"{name}/n:{i}/device:cpu": [1.0] for name in names for i in range(50)}
    lines = table(result_file(tmp_path / "gpu.json", rows))
    assert len(lines) < 40
    assert "Peak (45 of 50 rows left out)" in lines[0]
    assert any("Epoch/n:49" in line for line in lines)


def test_an_unreadable_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    assert times(tmp_path / "x.json") == {}
    assert table(tmp_path / "x.json") == table(None) == ["no results"]
