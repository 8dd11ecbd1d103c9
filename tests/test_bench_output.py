# SPDX-License-Identifier: Apache-2.0
"""Where `bench` writes its results, and what is left of them when it is interrupted."""

import ctypes
import os
import pty
import resource
import shlex
import shutil
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
from bench_runs import (
    BENCH,
    DISC,
    EPOCHS,
    LIMIT_SECONDS,
    OLD,
    ROOT,
    assert_refused,
    bench,
    built,
    but_of_load,
    environment,
    measure,
    run,
    running,
    samples,
    strict,
    validate,
)

# --- where results go


@pytest.mark.slow
def test_the_folder_is_made_and_a_link_goes_to_its_target(tmp_path):
    target, link = tmp_path / "new" / "ünï code" / "target.json", tmp_path / "link.json"
    for place in ("file", "link to a file", "link to no file"):
        path = target if place == "file" else link
        if place == "link to a file":
            target.write_bytes(OLD)
            link.symlink_to(target)
        elif place == "link to no file":
            target.unlink()
        bench(*DISC, f"--out={path}", code=0)
        validate(target)
        assert strict(target)["context"]["crossover"]["complete"] is True
        assert list(target.parent.iterdir()) == [target]
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("file/result.json", ["can't be written"]),
        ("folder", ["is a folder", "name a file"]),
        ("x" * 300, ["can't be written"]),
        ("no_result", ["is no result file", "name another, or remove it"]),
        # In place of /dev/null and /dev/full, which bench as root would replace.
        ("pipe", []),
    ],
)
def test_unwritable_output_is_found_first(tmp_path, name, words):
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "no_result").write_text('{"precious": 1}', encoding="utf-8")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    # assert_refused wants an empty stdout: no row has been run.
    assert_refused(bench(*DISC, f"--out={tmp_path / name}"), "--out", name, *words)
    assert (tmp_path / "file").read_bytes() == OLD and (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "no_result").read_text("utf-8") == '{"precious": 1}'
    names = ["file", "folder", "no_result", "pipe"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.slow
def test_output_may_be_named_as_google_benchmark_names_it(tmp_path):
    """In the environment, too; the format stays ours."""
    path, other = tmp_path / "result.json", tmp_path / "other.json"
    bench(*DISC, variables={"BENCHMARK_OUT": str(path)}, code=0)
    validate(path)
    bench(*DISC, f"--benchmark_out={other}", code=0)
    validate(other)
    assert_refused(bench(*DISC, variables={"BENCHMARK_FILTER": "zzz"}), "zzz")


@pytest.mark.slow
def test_failed_run_leaves_an_older_file(tmp_path):
    path, partial = tmp_path / "result.json", tmp_path / "result.json.partial"
    path.write_bytes(OLD)
    done = bench(*DISC, "--memory-limit=1", f"--out={path}", code=1)
    assert str(partial) in done.stderr
    assert path.read_bytes() == OLD
    validate(partial)
    assert sorted(tmp_path.iterdir()) == [path, partial]


def small_disk() -> None:
    """A file may have 24 KiB: more is refused as where the disk is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (24_576, 24_576))


@pytest.mark.slow
@pytest.mark.parametrize("repetitions", [1, 40])
def test_disk_that_fills_up_keeps_the_finished_rows(tmp_path, repetitions):
    path = tmp_path / "result.json"
    batches = "--batch=" + ",".join(str(batch) for batch in range(100, 120))
    arguments = [*DISC, batches, f"--benchmark_repetitions={repetitions}"]
    done = bench(*arguments, f"--out={path}", prepare=small_disk, code=1)
    assert but_of_load(done.stderr).startswith(f"bench: {path} can't be written")
    assert list(tmp_path.iterdir()) == [path]
    # Of 40 repetitions not even one row fits.
    finished = [row for row in strict(path)["rows"] if row["repetitions"] == repetitions]
    assert bool(finished) == (repetitions == 1)
    validate(path)


# --- while rows are measured

LONG = ("--model=disc-2", "--threads=1", *EPOCHS, "--benchmark_repetitions=1")
LONG += ("--benchmark_min_time=0.02", "--batch=" + ",".join(map(str, range(100, 130))))


def meanwhile(
    path: Path, change: Callable[[], object], prepare: Callable[[], None] | None = None
) -> tuple[int, str]:
    """A run that writes to `path`, where `change` is made once it has a row there; its exit code,
    and what it says."""
    with running(path, *LONG, prepare=prepare) as process:
        change()
        _, messages = process.communicate(timeout=LIMIT_SECONDS)
    return process.returncode, but_of_load(messages)


def obey_permissions() -> None:
    """Take from the super-user what lets him write anywhere; others never had it."""
    drop, override, search = 24, 1, 2  # PR_CAPBSET_DROP of CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    for capability in (override, search):
        ctypes.CDLL(None).prctl(drop, capability)


def put_a_file_in_place(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.write_text("in the way", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda path: path.chmod(0o444), ""),
        (lambda path: path.parent.rename(path.parents[1] / "moved"), ""),
        (lambda path: path.parent.chmod(0o555), "Permission denied; it keeps the rows"),
        (lambda path: put_a_file_in_place(path.parent), "Not a directory; it is gone"),
    ],
    ids=["read-only file", "removed folder", "read-only folder", "file in place of the folder"],
)
def test_what_happens_to_the_place_of_a_file_costs_no_finished_row(tmp_path, change, why):
    path = tmp_path / "results" / "result.json"
    path.parent.mkdir()
    code, messages = meanwhile(path, lambda: change(path), prepare=obey_permissions)
    if path.parent.is_dir():
        path.parent.chmod(0o755)
    kept = path if path.exists() else tmp_path / "moved" / path.name
    validate(kept)
    assert code == bool(why), messages
    if why:
        assert messages.startswith(f"bench: {path} can't be written: {why}")
        assert messages.count("\n") == 1
        assert 0 < len(strict(kept)["rows"]) < 30
    else:
        assert len(strict(path)["rows"]) == 30


def loaded_before(folder: Path, name: str) -> dict[str, str]:
    """The variable by which programs load this library of tests/fixtures before others."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    source, library = ROOT / "tests" / "fixtures" / f"{name}.c", folder / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def test_on_many_busy_processors_it_says_so_and_counts_them(tmp_path):
    document, done = run(tmp_path, *DISC, **loaded_before(tmp_path, "busy_machine"))
    threads = document["context"]["crossover"]["machine"]["cpu"]["threads"]
    assert threads == len(os.sched_getaffinity(0)) + 1000
    (line,) = [line for line in done.stderr.splitlines() if "machine is busy" in line]
    assert line.startswith(
        "bench: this machine is busy: other programs have 100 % of its processors, and its load "
        "average is 77 on "
    )


@pytest.mark.slow
def test_a_wall_clock_that_jumps_changes_dates_alone(tmp_path):
    started = time.monotonic()
    variables = loaded_before(tmp_path, "jumping_clock")
    document = measure(tmp_path, *DISC, "--budget=3s", **variables)
    wall = time.monotonic() - started
    (part,) = document["context"]["crossover"]["parts"]
    began, ended = (datetime.fromisoformat(part[when]) for when in ("start", "end"))
    assert abs((ended - began).total_seconds()) > 99_000  # it did jump
    assert 0 < part["timed_seconds"] < part["seconds"] <= wall
    assert all(0 < row["real_time"] < 1000 for row in samples(document))


def bounded() -> None:
    """Not of the address space, which CUDA's libraries fill."""
    resource.setrlimit(resource.RLIMIT_DATA, (300 << 20, 300 << 20))


def test_threads_that_cannot_be_started_cost_the_row_that_needs_them(tmp_path):
    path = tmp_path / "result.json"
    flags = ("--execution=eager", "--loader=0,600", f"--out={path}")
    done = bench(*DISC, *flags, prepare=bounded, code=1)
    plain, loaded = strict(path)["rows"]
    assert "outcome" not in plain and loaded["outcome"] == "skipped", done.stderr
    assert "of 600 threads that load batches" in loaded["error_message"]


@pytest.mark.skipif(os.system("unshare -rm true") != 0, reason="no folder can be hidden here")
def test_without_proc_the_remedy_is_said():
    hidden = f"mount -t tmpfs none /proc && exec {shlex.quote(str(built(BENCH)))} --mlp=2,2"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"{hidden} --family=Epoch"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert_refused(done, "mount /proc", "--in-process")


@pytest.mark.slow
def test_memory_that_runs_out_costs_the_row_that_needs_it(tmp_path):
    path = tmp_path / "result.json"
    # disc-12 takes some 550 MB: 11 million parameters, in float64, too; the others less than 100.
    models = "--model=disc-2,disc-12,disc-3"
    done = bench(models, *DISC[1:], f"--out={path}", prepare=bounded, code=1)
    first, *rest = strict(path)["rows"]
    outcomes = {row["configuration"]["model"]: row.get("outcome") for row in (first, *rest)}
    assert outcomes == {"disc-2": None, "disc-12": "skipped", "disc-3": None}
    assert "1 of 3 rows were not measured" in done.stderr
    validate(path)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_descriptors_lose_nothing(tmp_path, closed):
    measured = tmp_path / "result.json"
    patience = "--patience=20s"  # for what hangs

    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    bench(*DISC, patience, f"--out={measured}", prepare=close, code=0)
    validate(measured)


@pytest.mark.parametrize("flags", [("--machine",), ("--describe", "--model=disc-2"), DISC])
def test_a_full_disk_behind_standard_output_is_a_failure(flags):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [built(BENCH), *flags],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment(),
        )
    assert done.returncode == 1
    assert "standard output can't be written" in done.stderr


def test_a_reader_that_goes_away_is_none():
    describe = f"{shlex.quote(str(built(BENCH)))} --describe --model=resnet-56"
    command = f"{describe} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, check=False, env=environment()
    )
    assert done.returncode in (0, 128 + signal.SIGPIPE), done.stderr


# --- lines on a terminal


def on_terminal(columns: int, *arguments: str, kind: str = "") -> list[str]:
    """The lines that bench prints on a terminal of that width; on one of a `kind` those about
    progress, too."""
    try:
        screen, inner = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal can be had here: {error}")
    termios.tcsetwinsize(inner, (24, columns))
    command = [built(BENCH), *arguments]
    with os.fdopen(screen, "rb", buffering=0) as shown:
        subprocess.run(
            command,
            stdout=inner,
            stderr=inner if kind else subprocess.DEVNULL,
            env={**environment(), "TERM": kind},
            check=True,
        )
        os.close(inner)
        return shown.read(100_000).decode().splitlines()


def test_a_line_ends_where_the_terminal_does():
    (whole,) = bench(*DISC).stdout.splitlines()
    assert whole.startswith("[1/1] Epoch/model:disc-2/batch:100/")
    name = whole.split()[1]
    for columns in (60, 80):
        lines = on_terminal(columns, *DISC)
        assert len(lines) > 1 and max(map(len, lines)) <= columns
        assert lines[0].startswith("[1/1] Epoch/model:disc-2/batch:100/")
        assert all(line.startswith("      ") for line in lines[1:])
        assert name in "".join(line.strip() for line in lines)
    assert len(on_terminal(200, *DISC)) == 1


def test_a_line_is_written_over_only_where_a_terminal_can():
    moved = ["\x1b" in "".join(on_terminal(80, *DISC, kind=kind)) for kind in ("xterm", "dumb")]
    assert moved == [True, False]


def test_a_log_has_rows_from_the_first_pass_on():
    # Of thirty rows, which would take a minute.
    command = [built(BENCH), *LONG, "--benchmark_min_time=0.2", "--benchmark_repetitions=9"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
        finally:
            process.kill()
    assert line.startswith("[pass 1 of 9] Epoch/model:disc-2/") and " so far  [" in line


# --- interrupted


@pytest.mark.slow
@pytest.mark.parametrize("existing", [False, True], ids=["new", "existing"])
@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["SIGINT", "SIGTERM", "SIGKILL"],
)
def test_finished_rows_survive(tmp_path, sent, code, existing):
    path = tmp_path / "result.json"
    rows = tmp_path / "result.json.partial" if existing else path
    if existing:
        path.write_bytes(OLD)
    # Far more rows than fit into the time that passes until the signal.
    batches = "--batch=" + ",".join(str(batch) for batch in range(100, 400))
    # With one repetition a row is one object: no signal falls between two of them.
    flags = (*LONG[:-1], batches)
    blocks = partial(signal.pthread_sigmask, signal.SIG_BLOCK, {sent}) if existing else None
    with running(path, *flags, partial=existing, prepare=blocks) as process:
        process.send_signal(sent)
        _, messages = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == code, messages
    document = strict(rows)
    validate(rows)
    assert document["context"]["crossover"]["complete"] is False
    assert samples(document)
    left = {file.name for file in tmp_path.iterdir()}
    if sent == signal.SIGKILL:
        left.discard(rows.name + ".tmp")
    else:
        assert str(rows) in messages
    assert left == {path.name, rows.name}
    if existing:
        assert path.read_bytes() == OLD
