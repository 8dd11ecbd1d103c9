# SPDX-License-Identifier: Apache-2.0
"""How commands end where files, folders, disks and users get in their way: never a traceback."""

import errno
import io
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crossover_bench import parallel
from crossover_bench.answers.report import report
from crossover_bench.files import loading
from crossover_bench.files.losses import made_of
from crossover_bench.parallel import Pool
from crossover_bench.place import ALONE
from crossover_bench.shell.cli import main
from crossover_bench.tests import synthetic_machine

ROOT = Path(__file__).parents[3]
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
READERS = ("validate", "report", "crossover", "why", "shi")
TOO_LONG = "x" * 300 + ".json"


def started(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "plots", *arguments],
        cwd=ROOT,
        text=True,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def stopped(*_):
    raise KeyboardInterrupt


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of a command, in which it may write."""
    folder = tmp_path / "current"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


# --- what cannot be read


@pytest.mark.slow
@pytest.mark.parametrize("command", READERS)
@pytest.mark.usefixtures("out")
def test_a_loop_of_links_leaves_the_other_files(command, small, write, tmp_path, shell):
    good = write(small, "in/good.json")
    for name, target in (("a.json", "b.json"), ("b.json", "a.json"), ("self", "self")):
        (tmp_path / "in" / name).symlink_to(target)
    (tmp_path / "in" / "up").symlink_to(tmp_path)
    printed = shell(command, tmp_path / "in", code=2)
    sentences = [line for line in printed.err.splitlines() if "too many levels" in line.lower()]
    assert ["a.json" in line for line in sentences] == [True, False]
    assert "b.json" in sentences[1]
    assert printed.out or "good.json: no crossover" in printed.err
    assert command != "validate" or printed.out == f"{good}: valid, 1 row\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", [*READERS, "compare"])
def test_a_name_that_is_too_long_is_one_sentence(command, small, write, out, shell):
    good = write(small)
    sentences = shell(command, TOO_LONG, good, code=2).err.splitlines()
    assert sum("File name too long" in line for line in sentences) == 1


def test_a_folder_that_cannot_be_read_is_named(small, write, tmp_path, monkeypatch):
    write(small, "in/good.json")
    (tmp_path / "in" / "closed").mkdir()
    scandir = os.scandir

    def refusing(place):
        if os.fspath(place).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refusing)
    files, problems = loading.load_files([tmp_path / "in"])
    assert len(files) == 1 and len(problems) == 1
    assert "closed: cannot be read (Permission denied)" in problems[0]


def test_a_file_that_vanishes_meanwhile_is_named(small, write, tmp_path):
    write(small, "in/good.json")
    gone = write(small, "in/gone.json")

    def late(function, items):
        gone.unlink()
        return [function(item) for item in items]

    files, problems = loading.load_files([tmp_path / "in"], late)
    assert len(files) == 1 and problems == [f"{gone}: no such file; check the path"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "FILE", "-o", ""],
        ["report", ""],
        ["crossover", "FILE", "--charts", ""],
        ["why", "FILE", "--charts="],
        ["compare", "FILE", "FILE", "--charts="],
        ["compare", "--cpu-of=", "--gpu-of", "FILE"],
        ["advise", "FILE", "--cost="],
    ],
)
def test_an_empty_name_is_refused(arguments, small, write, out, capsys):
    file = str(write(small))
    with pytest.raises(SystemExit) as ended:
        main([file if word == "FILE" else word for word in arguments])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1 and "the name is empty" in printed.err
    assert not list(out.iterdir())


# --- what cannot be written


@needs_full
@pytest.mark.parametrize("arguments", [["validate", "FILE"], ["why", "FILE"], ["shi"], ["--help"]])
@pytest.mark.slow
def test_a_full_disk_below_the_output_is_one_sentence(arguments, small, write):
    file = write(small)
    with FULL.open("w") as disk:
        done = started(*[file if word == "FILE" else word for word in arguments], stdout=disk)
    assert done.returncode == 2
    sentence = "standard output: No space left on device; the output is not complete\n"
    assert done.stderr == f"crossover: {sentence}"


@needs_full
@pytest.mark.slow
def test_a_full_disk_below_both_outputs_still_tells_by_the_exit_code(small, write):
    with FULL.open("w") as disk:
        assert started("validate", write(small), stdout=disk, stderr=disk).returncode == 2


@pytest.mark.slow
def test_a_disk_that_fills_during_the_report_is_one_sentence(
    small, write, tmp_path, shell, monkeypatch
):
    monkeypatch.setattr(os, "replace", full)
    output = tmp_path / "out"
    sentences = shell("report", write(small), "-o", output, code=2).err
    assert sentences.count("\n") == 1 and "No space left on device" in sentences
    assert not list(output.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("command", ["crossover", "why"])
def test_a_full_disk_below_the_charts_is_one_sentence(command, write, tmp_path, shell, monkeypatch):
    file = write(synthetic_machine.machine())
    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(os, "replace", full)
    errors = shell(command, file, "--charts", tmp_path / "charts", code=2).err
    assert errors.count("No space left on device") == 1


@pytest.mark.slow
def test_closed_outputs_are_no_fault(small, write):
    file = write(small)
    for descriptors in ((1,), (2,), (1, 2)):
        done = started(
            "why",
            file,
            stdout=None if 1 in descriptors else subprocess.PIPE,
            stderr=None if 2 in descriptors else subprocess.PIPE,
            preexec_fn=lambda which=descriptors: [os.close(number) for number in which],
        )
        assert done.returncode == 0 and not done.stderr


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_fault(small, write):
    read, written = os.pipe()
    os.close(read)
    done = started("validate", write(small), stdout=written)
    os.close(written)
    assert (done.returncode, done.stderr) == (0, "")


# --- Ctrl-C


@pytest.mark.parametrize("command", ["validate", "report", "why"])
@pytest.mark.usefixtures("out")
def test_ctrl_c_is_one_line(command, small, write, shell, monkeypatch):
    monkeypatch.setattr(loading, "_parse", stopped)
    printed = shell(command, write(small), code=130)
    assert printed.out == "" and printed.err == "crossover: stopped by Ctrl-C\n"


def test_ctrl_c_during_writing_leaves_no_partial_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        report.write_report({"index.html": b"x"}, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


_WORK = r"""
import os, signal, sys, time
from crossover_bench.shell.cli import main
from crossover_bench.files.losses import made_of
from crossover_bench.answers.report import report

def forever(number):
    os.write(1, f"{os.getpid()}\n".encode())
    signal.pause()

def build(files, older, detailed, apply, **_):
    apply(forever, range(2))

report.build_report = build
import crossover_bench.parallel as parallel
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
parallel.os.sched_getaffinity = lambda _: {0, 1}
sys.exit(main(["report", sys.argv[1], "-o", sys.argv[2]]))
"""


def _need_processes() -> None:
    try:
        multiprocessing.Lock()
    except OSError as error:
        pytest.skip(f"processes can share nothing here: {error.strerror}")


@pytest.mark.slow
@pytest.mark.parametrize("whole_group", [False, True])
def test_ctrl_c_ends_the_workers_of_a_report(whole_group, small, write, tmp_path):
    _need_processes()
    process = subprocess.Popen(
        [sys.executable, "-c", _WORK, write(small), tmp_path / "out"],
        env={**os.environ, "PYTHONPATH": str(ALONE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        workers = [int(process.stdout.readline()) for _ in range(2)]
        if whole_group:  # as a terminal does
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert (process.returncode, complaint) == (130, "crossover: stopped by Ctrl-C\n")
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_a_pool_that_is_left_by_an_exception_does_not_wait():
    with pytest.raises(ValueError, match="x"), Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
        raise ValueError("x")


def test_standard_output_without_a_descriptor_is_left_alone(small, write, monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    file = str(write(small))
    monkeypatch.setattr(sys, "stdout", Full())
    assert main(["validate", file]) == 2


# --- work that is spread over processes


def _square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def _end_elsewhere(parent: int) -> str:
    if os.getpid() != parent:
        os._exit(1)
    return "done"


def _fail(number: int) -> int:
    raise ValueError(number)


def test_a_pool_keeps_the_order_and_makes_up_for_a_killed_process():
    _need_processes()
    with parallel.Pool(2) as pool:
        results = pool.map(_square, range(5))
        assert pool.map(_square, [3]) == [(9, os.getpid())]  # which needs no process
        assert pool.map(_end_elsewhere, [os.getpid()] * 3) == ["done"] * 3  # made up for
    assert [square for square, _ in results] == [0, 1, 4, 9, 16]
    assert os.getpid() not in {process for _, process in results}
    with parallel.Pool(1) as pool:
        assert {process for _, process in pool.map(_square, range(3))} == {os.getpid()}


def test_without_processes_the_work_is_done_here(monkeypatch):
    def refuse(*_arguments, **_options):
        raise NotImplementedError("no semaphores here")

    monkeypatch.setattr(parallel, "ProcessPoolExecutor", refuse)
    with parallel.Pool(2) as pool:
        assert [square for square, _ in pool.map(_square, range(3))] == [0, 1, 4]


def test_an_exception_comes_back():
    with parallel.Pool(2) as pool, pytest.raises(ValueError, match="0"):
        pool.map(_fail, range(3))


def test_without_a_home_that_can_be_written_nothing_is_said_of_it(small, write, tmp_path):
    kept = {key: text for key, text in os.environ.items() if not key.startswith(("XDG_", "MPL"))}
    nowhere = {**kept, "HOME": "/dev/null/x", "TMPDIR": str(tmp_path)}
    words = ("report", write(small), "-o", tmp_path / "out")
    done = started(*words, env=nowhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert not [*tmp_path.glob("matplotlib-*")]


def test_a_file_that_this_program_fails_on_costs_no_other(small, read):
    good, bad = read(small, "good.json"), read(small, "bad.json")

    def page(files):
        if any(file is bad for file in files):
            raise KeyError("steps")
        return len(files)

    problems: list[str] = []
    assert made_of([good, bad], page, problems) == 1
    (problem,) = problems
    assert problem.startswith(f"{bad.path}: left out") and "KeyError: 'steps' at" in problem
    assert made_of([bad], page, problems) is None and len(problems) == 2


def test_what_fails_only_together_is_not_hidden(small, read):
    def page(files):
        if len(files) > 1:
            raise KeyError("together")

    problems: list[str] = []
    with pytest.raises(KeyError):
        made_of([read(small, "a.json"), read(small, "b.json")], page, problems)
    assert problems == []
