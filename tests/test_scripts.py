# SPDX-License-Identifier: Apache-2.0
"""What ./run and ./test decide by themselves: arguments, logs, endings."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripts import ROOT, RUN, TEST, refused

from plots import __version__
from tools import console, environment, peers, setup

# --- arguments


def test_own_flags_are_taken_and_the_rest_goes_to_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--cuda=off", "--model=disc-10", "--out=/x/b.json", "--benchmark_out=a.json"]
    parsed = RUN.parse(["--no-report", "--setup-only", *words])
    assert (parsed.setup_only, parsed.report, parsed.help) == (True, False, False)
    assert (parsed.cuda, parsed.bench) == ("off", words)
    assert parsed.out == tmp_path / "a.json", "the last one counts"
    assert RUN.parse(["--benchmark_out_format=json"]).out is None
    monkeypatch.setenv("HOME", "/h")
    assert RUN.parse(["--out=~/a.json", "--data=~/b.csv"]).bench == [
        "--out=/h/a.json",
        "--data=/h/b.csv",
    ]
    assert TEST.parse(["--cuda=off", "--only=ruff"]).cuda == "off"
    assert [TEST.parse([f"--fuzz={time}"]).fuzz for time in ("90s", "10m", "2h")] == [90, 600, 7200]


def test_flags_that_only_tell_something_make_no_results() -> None:
    for word in ("machine", "models", "plan", "benchmark_list_tests", "benchmark_list_tests=true"):
        assert RUN.parse([f"--{word}"]).only_tells
    for word in ("benchmark_list_tests=false", "model=disc-2", "benchmark_filter=--machine"):
        assert not RUN.parse([f"--{word}"]).only_tells


CUDA = ("--cuda", "--cuda=", "--cuda=ON")
DURATIONS = ("--fuzz", "--fuzz=", "--fuzz=10", "--fuzz=0m", "--fuzz=1d", "--fuzz=-1m")


@pytest.mark.parametrize(
    ("parse", "words"),
    [
        *((parse, [word]) for parse in (RUN.parse, TEST.parse) for word in CUDA),
        *((TEST.parse, [word]) for word in DURATIONS),
        *((TEST.parse, [word]) for word in ("--only=nonsense", "--only=", "--fast", "ruff")),
        *((TEST.parse, ["--fuzz=1m", word]) for word in ("--quick", "--all", "--only=ruff")),
        (TEST.parse, ["--all", "--quick"]),
        (RUN.parse, ["--compare-with=HEAD", "--check-statistics"]),
        (RUN.parse, ["--with-peers", "--check-statistics"]),
        (RUN.parse, ["--check-statistics", "--resume"]),
        (RUN.parse, ["--gpu=4090", "--model=disc-2"]),
        (RUN.parse, ["--compare-with=nonsense"]),
    ],
)
def test_wrong_usage_is_refused(parse: Callable[[list[str]], object], words: list[str]) -> None:
    with refused(
        r"use --cuda=auto|is no duration|choose from|see ./test --help|ask for one of them|"
        r"measure them again|no such commit|name that, too"
    ):
        parse(words)


def test_peers_are_measured_by_a_program_that_bench_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "HOME", tmp_path)  # another build may hold this one's lock
    plain = RUN.parse(["--sweep=quick"])
    assert not plain.with_peers
    own = RUN.parse(["--with-peers=py", "--mode=eager,compile", "--sweep=quick"])
    assert own.with_peers and own.bench == ["--mode=eager,compile", "--sweep=quick"]
    monkeypatch.chdir(tmp_path)
    assert peers.python_of("pytorch", own.peers_python) == tmp_path / "py"
    monkeypatch.setenv("PYTHONPATH", "a b")
    command = ["/b/bench", "--mode=eager,compile", "--sweep=quick", "--out=x"]
    assert peers.beside({"pytorch": tmp_path / "py"}, command) == [
        "/b/bench",
        "--sweep=quick",
        "--out=x",
        f"--peer=env PYTHONSAFEPATH=1 'PYTHONPATH={ROOT}:a b' {tmp_path / 'py'} -m peers.pytorch "
        "--mode=eager,compile",
    ]
    made: list[object] = []
    made_by = SimpleNamespace(has=lambda _: False, ensure=made.append, python=tmp_path)
    monkeypatch.setattr(environment, "PEERS", made_by)
    plain = RUN.parse(["--with-peers"])
    assert plain.peers == ("pytorch",) and not plain.peers_python
    assert peers.python_of("pytorch", plain.peers_python) == tmp_path
    assert made == [environment.FOR_PEERS]


def test_several_frameworks_each_get_their_own_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "HOME", tmp_path)
    monkeypatch.setenv("PYTHONPATH", "a b")  # of no use to environments of ours
    made: list[object] = []
    j = SimpleNamespace(has=lambda _: False, ensure=made.append, python=Path("/j/python"))
    t = SimpleNamespace(has=lambda _: False, ensure=made.append, python=Path("/t/python"))
    monkeypatch.setattr(environment, "JAX", j)
    monkeypatch.setattr(environment, "PEERS", t)
    flags = ["--mode=compile", "--devices=cpu", "--loop=scan", "--threads=1"]
    parsed = RUN.parse(["--with-peers=pytorch,jax", *flags])
    assert parsed.peers == ("pytorch", "jax") and parsed.peers_python is None
    pythons = {"pytorch": Path("/t/python"), "jax": Path("/j/python")}
    assert peers.beside(pythons, ["/b/bench", *parsed.bench]) == [
        "/b/bench",
        "--threads=1",
        *(
            f"--peer=env PYTHONSAFEPATH=1 PYTHONPATH={ROOT} {words}"
            for words in (
                "/t/python -m peers.pytorch --mode=compile --devices=cpu",
                "/j/python -m peers.jax --devices=cpu --loop=scan",
            )
        ),
    ]
    assert peers.python_of("jax") == j.python and made == [environment.FOR_JAX]
    j.has = lambda _: True  # so that nothing has to be written, in a checkout of another user's
    assert peers.python_of("jax") == j.python and len(made) == 1
    assert peers.python_of("onnxruntime") == t.python  # whose PyTorch exports what it runs
    assert made[1:] == [environment.FOR_ONNXRUNTIME]


def test_builds_are_compared_by_a_peer_that_gets_the_same_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RUN.results, "commit_of", lambda _: "abc1234")
    monkeypatch.setattr(RUN.other, "FOLDER", tmp_path)
    parsed = RUN.parse(["--check-statistics", "--threads=1"])
    assert parsed.measures_builds and parsed.bench == ["--threads=1"]
    command = ["/b/bench", *parsed.bench]
    path = RUN.with_other(parsed, command)
    assert path.parent == tmp_path / "results" / "same" and "abc1234" in path.name
    assert command[:3] == ["/b/bench", "--threads=1", "--sweep=quick"]
    assert command[3] == "--refine=program"
    assert command[4].endswith(f"peers.bench same {RUN.build.BENCH} --threads=1 --sweep=quick")
    assert command[5] == f"--out={path}"


@pytest.mark.parametrize("command", ["run", "test"])
@pytest.mark.parametrize(
    ("flag", "said"), [("--help", "usage: ./"), ("--version", f"crossover {__version__}\n")]
)
def test_help_and_version_work_from_any_directory_and_set_nothing_up(
    command: str, flag: str, said: str, tmp_path: Path
) -> None:
    words = [ROOT / command, flag]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(said)


# --- commands, logs, endings


def test_a_failed_command_shows_its_last_lines_and_its_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "x.log"
    command = [sys.executable, "-c", "print(*range(100), sep='\\n'); raise SystemExit(3)"]
    with pytest.raises(console.CommandFailed) as caught:
        console.run_logged("Counting", command, log)
    text = str(caught.value)
    assert text.startswith("Counting failed (exit code 3)")
    assert text.splitlines()[1:-1] == [f"    {number}" for number in range(60, 100)]
    assert str(log) in text
    assert len(log.read_text(encoding="utf-8").splitlines()) == 100


@pytest.mark.parametrize(("terminal", "moves"), [("xterm", True), ("dumb", False), ("", False)])
def test_lines_are_written_over_only_where_a_terminal_can(
    terminal: str,
    moves: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    console.run_logged("Nothing", [sys.executable, "-c", ""], tmp_path / "x.log")
    assert ("\x1b" in capsys.readouterr().err) == moves


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (console.Failure("a sentence", 2), 2, "./x: a sentence\n"),
        (console.Stopped(signal.SIGTERM), 143, "\n./x: stopped; start it again"),
        (PermissionError(13, "Permission denied", "/f"), 1, "./x: /f: Permission denied\n"),
    ],
)
def test_whatever_goes_wrong_ends_as_a_sentence(
    error: BaseException,
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def main(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(console, "_heed_signals", lambda: None)
    assert console.guarded("./x", main) == code
    assert capsys.readouterr().err.startswith(said)


MEASURING = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("rows kept")))
print("measuring", flush=True)
time.sleep(300)
"""


def test_nothing_goes_on_measuring_once_run_is_killed() -> None:
    code = f"from tests.scripts import RUN; RUN.measure([{sys.executable!r}, '-c', {MEASURING!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stdout.readline() == "measuring\n"
        process.kill()
        assert process.communicate(timeout=100)[0] == "rows kept\n"


def test_a_build_folder_that_cannot_be_written_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "build").write_text("a file in the way", encoding="utf-8")
    monkeypatch.setattr(setup, "HOME", tmp_path)
    with refused("cannot write in"), setup.alone():
        pass


@pytest.mark.parametrize("name", ["a, b", "a;b", 'a"b', "a\\b", "a#b", "a\nb"])
def test_a_folder_that_compilers_divide_is_refused_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "HOME", tmp_path / name)
    with refused("move the checkout"), setup.alone():
        pass
    assert not (tmp_path / name).exists()
