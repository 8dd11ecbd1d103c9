# SPDX-License-Identifier: Apache-2.0
"""What ./run and ./test decide by themselves: arguments, logs, endings."""

import shlex
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripts import ROOT, ran, refused

from crossover_bench import __version__
from crossover_bench.peers.frameworks import FRAMEWORKS
from crossover_bench.place import ALONE
from crossover_bench.run import build, console, environment, peers, progress, run, setup
from tools import test

# --- arguments


def test_own_flags_are_taken_and_the_rest_goes_to_bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/h")
    words = ["--cuda=off", "--model=disc-10", "--out=~/b.json", "--benchmark_out=a.json"]
    parsed = run.parse(["--no-report", "--setup-only", *words])
    assert (parsed.setup_only, parsed.report, parsed.cuda) == (True, False, "off")
    assert parsed.bench == [word.replace("~", "/h") for word in words]
    assert parsed.out == tmp_path / "a.json", "the last one counts"
    assert [test.parse([f"--fuzz={time}"]).fuzz for time in ("90s", "10m", "2h")] == [90, 600, 7200]


def test_flags_that_only_tell_something_make_no_results():
    for word in ("machine", "models", "plan", "benchmark_list_tests", "benchmark_list_tests=true"):
        assert run.parse([f"--{word}"]).only_tells
    for word in ("benchmark_list_tests=false", "model=disc-2", "benchmark_filter=--machine"):
        assert not run.parse([f"--{word}"]).only_tells


def test_each_framework_is_a_peer_with_its_own_flags(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "a b")  # of use to an interpreter of the user's alone
    flags = ["--mode=compile", "--devices=cpu", "--loop=scan", "--threads=1"]
    parsed = run.parse(["--with-peers=pytorch,jax", *flags])
    pythons = {"pytorch": environment.PEERS.python, "jax": environment.OF_FRAMEWORKS["jax"].python}
    start = ["env", "PYTHONSAFEPATH=1", f"PYTHONPATH={ALONE}"]
    *words, pytorch, jax = peers.beside(pythons, ["/b/bench", *parsed.bench])
    assert tuple(pythons) == parsed.peers and words == ["/b/bench", "--threads=1"]
    command = [*start, str(pythons["pytorch"]), "-m", "crossover_bench.peers.pytorch", *flags[:2]]
    assert shlex.split(pytorch.removeprefix("--peer=")) == command
    command = [*start, str(pythons["jax"]), "-m", "crossover_bench.peers.jax", *flags[1:3]]
    assert shlex.split(jax.removeprefix("--peer=")) == command
    with_python = run.parse(["--with-peers=py", *flags[:1]])
    python = peers.python_of("pytorch", with_python.peers_python)
    (peer,) = peers.beside({"pytorch": python}, with_python.bench)
    module = "crossover_bench.peers.pytorch"
    command = [*start[:2], f"{start[2]}:a b", str(tmp_path / "py"), "-m", module]
    assert shlex.split(peer.removeprefix("--peer=")) == [*command, "--mode=compile"]


# Which say that they have PyTorch, or not; and how they answer bench.
HAS = 'case "$*" in *find_spec*) echo {}; exit;; esac; read asked\n'
GOOD = HAS.format(True) + """echo '{"doing": "it"}'; echo '{"version": "2.9"}'"""
LACKS = HAS.format(False) + "exit 9"
BROKEN = HAS.format(True) + "echo Traceback >&2; echo 'ImportError: libtorch' >&2; exit 1"
SPINS = HAS.format(True) + """echo '{"error_message": "it spins"}'"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Pythons are looked for: a folder for each of them."""
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    ours = SimpleNamespace(python=tmp_path / "ours" / "bin" / "python")
    monkeypatch.setattr(environment, "PEERS", ours)
    (tmp_path / "path" / "bin").mkdir(parents=True)
    for tool in ("env", "sleep"):
        (tmp_path / "path" / "bin" / tool).symlink_to(f"/usr/bin/{tool}")
    return tmp_path


@pytest.mark.parametrize(
    ("pythons", "chosen", "sentence"),
    [
        ({}, "", ""),
        ({"venv": LACKS, "conda": LACKS, "path": LACKS, "ours": LACKS}, "", ""),
        ({"venv": GOOD, "conda": GOOD, "path": GOOD, "ours": GOOD}, "venv", ""),
        ({"venv": LACKS, "conda": GOOD, "path": GOOD}, "conda", ""),
        ({"path": GOOD, "ours": GOOD}, "path", ""),
        ({"ours": GOOD}, "ours", ""),
        ({"venv": BROKEN, "ours": GOOD}, "ours", "venv/bin/python is not measured: ImportError"),
        ({"conda": SPINS}, "", "conda/bin/python is not measured: it spins"),
    ],
)
def test_a_python_that_has_pytorch_is_found(pythons, chosen, sentence, places, capsys):
    for name, text in pythons.items():
        python = places / name / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        python.chmod(0o755)
    place = places / chosen / "bin" / "python"
    assert peers.found() == (peers.Found(place, "2.9") if chosen else None)
    told = capsys.readouterr().err
    assert sentence in told and told.count("\n") == bool(sentence)


@pytest.mark.parametrize(
    ("words", "looks"),
    [
        ([], True),
        (["--budget=54s", "--cuda=off", "--out=x.json", "--no-report"], True),
        (["--sweep=quick"], True),
        (["--sweep=full"], False),
        (["--sweep=default", "--sweep=gpu"], False),
        (["--model=disc-2"], False),
        (["--threads=1"], False),
        (["--resume"], False),
        (["--resume", "--out=x.json"], True),  # which bench goes on with, by the same flags
        (["--with-peers=no"], False),
        (["--with-peers=jax"], False),
        (["--check-statistics"], False),
        (["two", "--n=5,6", "--steps=1,2", "a {n} {steps}", "b {n} {steps}"], False),
    ],
)
def test_a_run_whose_rows_nobody_chooses_looks_for_a_pytorch(words, looks, monkeypatch, capsys):
    place = Path("/x/python")
    monkeypatch.setattr(peers, "found", lambda: peers.Found(place, "2.9"))
    monkeypatch.setattr(peers, "python_of", lambda name, _: Path("/made", name))
    parsed = run.parse(words)
    command = ["bench", *parsed.bench]
    assert parsed.looks_for_pytorch is looks
    pythons = run.pythons_of(parsed, command)
    share = peers.SHARE_OF_A_BUDGET if "--budget=54s" in words else peers.SHARE
    flags = [share, *peers.OF_A_FOUND_ONE] if looks else []
    assert ("pytorch" in pythons) is looks and command == ["bench", *parsed.bench, *flags]
    assert (f"PyTorch 2.9 of {place} is measured, too" in capsys.readouterr().err) is looks
    monkeypatch.setattr(peers, "found", lambda: None)
    command = ["bench"]
    assert "pytorch" not in run.pythons_of(parsed, command) and command == ["bench"]


@pytest.mark.parametrize(
    ("words", "has_gpu", "told"),
    [
        ([], False, ["--torch-device=mps"]),
        ([], True, []),
        (["--cuda=off"], False, []),
    ],
)
def test_the_gpu_that_pytorch_alone_sees_is_measured(words, has_gpu, told, monkeypatch, capsys):
    monkeypatch.setattr(peers, "found", lambda: peers.Found(Path("/x/python"), "2.9", "mps"))
    monkeypatch.setattr(run.results, "has_gpu", lambda _: has_gpu)
    command = ["bench"]
    run.pythons_of(run.parse(words), command)
    assert [word for word in command if word.startswith(peers.TORCH_DEVICE)] == told
    assert ("PyTorch's is measured, too (mps)" in capsys.readouterr().err) == bool(told)


def test_a_python_that_does_not_answer_is_not_waited_for(places, monkeypatch):
    monkeypatch.setattr(peers, "_SECONDS_TO_FIND", 0.1)
    python = places / "path" / "bin" / "python3"
    python.write_text("#!/bin/sh\nexec sleep 100\n", encoding="utf-8")
    python.chmod(0o755)
    assert peers.found() is None


def test_a_run_that_goes_on_finds_its_pytorch_again_and_installs_none(monkeypatch):
    monkeypatch.setattr(peers, "found", lambda: peers.Found(Path("/x/python"), "2.9"))
    monkeypatch.setattr(peers, "python_of", lambda *_: Path("/made"))
    command = ["bench", peers.SHARE_OF_A_BUDGET, *peers.OF_A_FOUND_ONE]
    whole = [*command]
    parsed = run.parse(["--resume"])
    parsed.peers = ("pytorch",)  # by destination(), from its file
    assert run.pythons_of(parsed, command) == {"pytorch": Path("/x/python")}
    assert command == whole
    monkeypatch.setattr(peers, "found", lambda: None)
    parsed.peers = ("pytorch",)
    with refused("is not found now"):
        run.pythons_of(parsed, command)
    assert run.pythons_of(parsed, ["bench"]) == {"pytorch": Path("/made")}


def test_the_environment_of_a_framework_is_made(tmp_path, monkeypatch):
    made: list[object] = []
    lacking = SimpleNamespace(ensure=made.append, python=tmp_path)
    monkeypatch.setattr(setup, "HOME", tmp_path)  # another build may hold this one's lock
    monkeypatch.setattr(environment, "OF_FRAMEWORKS", dict.fromkeys(FRAMEWORKS, lacking))
    assert {peers.python_of(name) for name in FRAMEWORKS} == {tmp_path}
    # ONNX Runtime beside PyTorch, which exports what it runs.
    assert made == [*environment.FOR_FRAMEWORKS.values()]


def test_builds_are_compared_by_a_peer_that_gets_the_same_flags(tmp_path, monkeypatch):
    monkeypatch.setattr(run.results, "commit_of", lambda _: "abc1234")
    monkeypatch.setattr(peers, "COMMITS", tmp_path)
    command = ["/b/bench", "--threads=1"]
    path = run.with_other(run.parse(["--check-statistics", "--threads=1"]), command)
    assert path.parent == tmp_path / "results" / "same" and "abc1234" in path.name
    *words, peer, out = command
    assert words == ["/b/bench", "--threads=1", "--sweep=quick", "--refine=program"]
    relay = ["crossover_bench.peers.bench", "same", str(run.build.BENCH)]
    assert shlex.split(peer)[-5:] == [*relay, "--threads=1", "--sweep=quick"]
    assert out == f"--out={path}"


@pytest.mark.parametrize("command", ["run", "test"])
@pytest.mark.parametrize(
    ("flag", "text"), [("--help", "usage: ./"), ("--version", f"crossover {__version__}\n")]
)
def test_help_and_version_work_from_any_directory_and_set_nothing_up(command, flag, text, tmp_path):
    # No package is installed before the first of them.
    done = ran(sys.executable, "-S", ROOT / command, flag, cwd=tmp_path)
    assert done.stdout.startswith(text) and done.stderr == ""


# --- commands, logs, endings


def test_a_failed_command_shows_its_last_lines_and_its_log(tmp_path):
    log = tmp_path / "logs" / "x.log"
    command = [sys.executable, "-c", "print(*range(100), sep='\\n'); raise SystemExit(3)"]
    with pytest.raises(console.CommandFailed) as caught:
        console.run_logged("Counting", command, log)
    text = str(caught.value)
    assert text.startswith("Counting failed (exit code 3)")
    assert text.splitlines()[1:-1] == [f"    {number}" for number in range(60, 100)]
    assert str(log) in text
    assert len(log.read_text(encoding="utf-8").splitlines()) == 100


def test_a_failed_command_shows_its_first_error_before_its_last_lines():
    lines = [f"note {number}" for number in range(100)]
    lines[5] = "x.cpp:3:1: error: no match"
    text = str(console.CommandFailed("Building", 1, lines, Path("x.log")))
    shown = [line.strip() for line in text.splitlines()[1:]]
    assert shown == [*lines[5:25], "its last lines:", *lines[80:], "whole log: x.log"]
    assert text.startswith("Building failed (exit code 1); its first error:")


def test_a_compile_that_the_kernel_ends_says_what_helps(monkeypatch):
    def fails(what, _command, log, **_):
        lines = ["c++: fatal error: Killed signal terminated program cc1plus", "ninja: stopped"]
        raise console.CommandFailed(what, 1, lines, log)

    monkeypatch.setattr(build, "run_logged", fails)
    monkeypatch.setattr(build, "output_of", lambda *_: "")
    remedy = r"(?s)whole log: .*\nThe kernel ended a compile, for lack of memory: add memory"
    with pytest.raises(console.Failure, match=remedy):
        build._make("default")


def test_a_command_that_goes_on_is_told_of_in_the_words_of_its_caller(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(console, "_HEARTBEAT_SECONDS", 0.0)
    told = tmp_path / "told"
    code = "import os, sys; print('[1/2] x', flush=True)\nwhile not os.path.exists(sys.argv[1]): 0"

    def words(lines, seconds):
        if lines:
            told.touch()
        return f"{len(lines)} lines after {seconds >= 0}"

    command = [sys.executable, "-c", code, str(told)]
    assert console.run_logged("Building", command, tmp_path / "x.log", words=words) == ["[1/2] x"]
    assert " s: 1 lines after True\n" in capsys.readouterr().err


def test_a_build_says_how_far_it_is_by_what_it_compiles(tmp_path, monkeypatch):
    """Half of the steps may be a fifth of the work."""
    monkeypatch.setattr(progress, "ROOT", tmp_path / "a checkout")
    build = tmp_path / "a checkout" / "build"
    unity = build / "src" / "CMakeFiles" / "lib.dir" / "Unity" / "unity_0_cxx.cxx"
    source = tmp_path / "a checkout" / "src" / "d" / "small.cpp"
    for path, size in ((source, 90), (build / "one.cpp", 310), (build / "two.cpp", 500)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * size, encoding="utf-8")
    (build / "own.cu").write_text("x" * 24, encoding="utf-8")
    unity.parent.mkdir(parents=True)
    unity.write_text("".join(f'#include "{build / name}.cpp"\n' for name in ("one", "two")))
    lines = [
        "[1/6] cmake -P commit.cmake",
        "[2/6] Building CXX object src/CMakeFiles/lib.dir/d/small.cpp.o",
        "[3/6] Building CUDA object CMakeFiles/lib.dir/own.cu.o",
        "[4/6] Building CXX object src/CMakeFiles/lib.dir/Unity/unity_0_cxx.cxx.o",
        "[5/6] Linking CXX static library src/liblib.a",
    ]
    words = progress.Progress(build, [*lines, "[6/6] Linking CXX executable bench"]).words
    assert words([], 1) == "0 of 6 steps built"
    assert words([*lines[:2], "a warning"], 30) == "2 of 6 steps built"
    assert words(lines[:3], 60) == "3 of 6 steps built, about 4 min left"
    assert words(lines[:3], 120) == "3 of 6 steps built", "it never grows"
    assert words(lines[:4], 120) == "4 of 6 steps built, less than 1 min left"
    assert progress.Progress(build, []).words(lines[:1], 9) == "1 of 6 steps built"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (console.Failure("a sentence", 2), 2, "./x: a sentence\n"),
        (console.Stopped(signal.SIGTERM), 143, "\n./x: stopped; start it again"),
        (PermissionError(13, "Permission denied", "/f"), 1, "./x: /f: Permission denied\n"),
    ],
)
def test_whatever_goes_wrong_ends_as_a_sentence(error, code, sentence, capsys, monkeypatch):
    def main(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(console, "_heed_signals", lambda: None)
    assert console.guarded("./x", main) == code
    assert capsys.readouterr().err.startswith(sentence)


def test_a_build_folder_that_cannot_be_written_is_said_so(tmp_path, monkeypatch):
    (tmp_path / "build").write_text("a file in the way", encoding="utf-8")
    monkeypatch.setattr(setup, "HOME", tmp_path)
    with refused("cannot write in"), setup.alone():
        pass


@pytest.mark.parametrize("name", ["a, b", "a\nb"])
def test_a_folder_that_compilers_divide_is_refused_at_once(name, tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "HOME", tmp_path / name)
    with refused("move the checkout"), setup.alone():
        pass
    assert not (tmp_path / name).exists()


def test_a_copy_in_somebody_elses_repository_has_no_commit(tmp_path):
    """Nor does bench that is built there (cmake/commit.cmake)."""
    source, written = tmp_path / "source", tmp_path / "built_from.cpp"
    source.mkdir()
    ran("git", "init", "-q", tmp_path)
    flags = [f"-Dsource={source}", f"-Dwritten={written}"]
    ran("cmake", *flags, "-P", ROOT / "cmake" / "commit.cmake")
    assert 'tree = "";' in written.read_text("utf-8")
