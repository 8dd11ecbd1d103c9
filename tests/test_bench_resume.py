# SPDX-License-Identifier: Apache-2.0
"""`bench --resume`: an interrupted run goes on, and no finished row is lost or measured twice."""

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_runs import (
    BENCH,
    DISC,
    HEART,
    LIMIT_SECONDS,
    OLD,
    Document,
    assert_refused,
    bench,
    environment,
    running,
    strict,
    validate,
)

from tools.stages import weekly

BATCHES = range(100, 130)
MANY = (*DISC, "--batch=" + ",".join(map(str, BATCHES)))
KILLS = 200 if weekly() else 30


def written(document: Document) -> dict[str, list[Document]]:
    """By row all that the file says of it."""
    rows = {row["name"]: [row] for row in document["rows"]}
    assert len(rows) == len(document["rows"]), "a row is there twice"
    for entry in document["benchmarks"]:
        rows[entry["name"]].append(entry)
    for row, *entries in rows.values():
        assert "outcome" in row or len(entries) == row["repetitions"]
    return rows


def assert_goes_on(before: list[Document], after: list[Document]) -> None:
    """A row with all that it had, to the last digit: a second measurement would differ."""
    assert after[1 : len(before)] == before[1:]
    if len(after) == len(before):
        assert after[0] == before[0]


def parts(document: Document) -> list[Document]:
    every = document["context"]["crossover"]["parts"]
    assert sum(part["rows"] for part in every) == len(document["rows"])
    return every


def is_complete(document: Document) -> bool:
    return document["context"]["crossover"]["complete"]


def edited(path: Path, change: Callable[[Document], object]) -> Path:
    document = strict(path)
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def interrupt(document: Document) -> None:
    document["context"]["crossover"]["complete"] = False


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "result.json"
    bench(*MANY, f"--out={path}", code=0)
    return path


def resumed(path: Path, *flags: str, code: int = 0) -> tuple[Document, str]:
    """The run in `path`, once it went on, and what was said."""
    done = bench(*(flags or MANY), "--resume", f"--out={path}", code=code)
    validate(path)
    return strict(path), done.stderr


@pytest.fixture
def half(whole: Path, tmp_path: Path) -> Path:
    """The file of a run that was ended in the middle of its rows."""

    def cut(document: Document) -> None:
        interrupt(document)
        names = {row["name"] for row in document["rows"][:10]}
        for part in ("rows", "benchmarks"):
            document[part] = [item for item in document[part] if item["name"] in names]
        document["context"]["crossover"]["parts"][0]["rows"] = len(names)

    path = tmp_path / "result.json"
    path.write_bytes(whole.read_bytes())
    return edited(path, cut)


@pytest.fixture
def partial(half: Path) -> Path:
    """The same, beside an older file."""
    path = half.rename(half.with_name(half.name + ".partial"))
    half.write_bytes(OLD)
    return path


def test_the_rest_is_measured_into_the_same_file(half):
    before = strict(half)
    after, messages = resumed(half)
    assert f"goes on with {half}: 10 rows are kept, 20 are to be measured" in messages
    assert is_complete(after)
    assert [row["configuration"]["batch"] for row in after["rows"]] == [str(b) for b in BATCHES]
    kept = written(before)
    assert {name: written(after)[name] for name in kept} == kept
    first, second = parts(after)
    assert first == parts(before)[0]
    assert second["rows"] == 20
    assert second["start"] >= first["end"]
    assert list(half.parent.iterdir()) == [half]
    known = ("timed", "warm_up", "verification", "profile")
    assert sum(second[f"{what}_seconds"] for what in known) <= second["seconds"]
    # What is not of this moment is the first run's.
    assert after["context"]["date"] == before["context"]["date"]


def test_rows_beside_an_older_file_are_not_lost_but_go_on_there(half, partial):
    before = partial.read_bytes()
    assert_refused(bench(*MANY, f"--out={half}"), str(partial), "--resume", "remove")
    assert partial.read_bytes() == before
    assert is_complete(resumed(half)[0])
    assert not partial.exists()
    partial.write_text("no result file", encoding="utf-8")
    bench(*MANY, f"--out={half}", code=0)
    assert is_complete(strict(half)) and not partial.exists()


@pytest.mark.parametrize("older", [False, True])
def test_a_file_that_another_run_writes_is_refused(tmp_path, older):
    path, flags = tmp_path / "result.json", (*MANY, "--benchmark_min_time=0.2")
    if older:
        path.write_bytes(OLD)
    with running(path, *flags, partial=older) as process:
        for resume in ((), ("--resume",)):
            assert_refused(bench(*flags, *resume, f"--out={path}"), str(path), "another run")
        assert process.poll() is None and (not older or path.read_bytes() == OLD)


def test_through_a_link_the_file_that_it_names_goes_on(half):
    link, target = half.with_name("link.json"), half.with_name("elsewhere") / "target.json"
    target.parent.mkdir()
    link.symlink_to(half.rename(target))
    # How long it may take, and the order of flags, are no conditions.
    resumed(link, *reversed(MANY), "--memory-limit=1000000000", "--budget=1h")
    assert link.is_symlink() and is_complete(strict(target))
    assert list(target.parent.iterdir()) == [target]


def test_failed_rows_are_tried_again_and_skipped_ones_kept(half):
    def spoil(document: Document) -> None:
        lost = [row["name"] for row in document["rows"][:3]]
        document["benchmarks"] = [e for e in document["benchmarks"] if e["name"] not in lost]
        reasons = ("failed", "skipped", "skipped")
        why = ("the results differ", "not enough memory", "the GPU failed in an earlier row: lost")
        for place, (outcome, reason) in enumerate(zip(reasons, why, strict=True)):
            row = document["rows"][place]
            document["rows"][place] = {
                "name": row["name"],
                "configuration": row["configuration"],
                "outcome": outcome,
                "error_message": reason,
            }

    before = strict(edited(half, spoil))
    after, messages = resumed(half, code=1)  # for the one that stays skipped
    assert "8 rows are kept, 22 are to be measured" in messages
    assert "1 of 30 rows were not measured" in messages
    assert [row["name"] for row in after["rows"] if "outcome" in row] == [before["rows"][1]["name"]]
    assert len(after["rows"]) == len(BATCHES)
    assert [part["rows"] for part in parts(after)] == [8, 22]


# --- refused


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("machine.id", "another"),
        ("software.commit", "0" * 40),
        ("configuration.repetitions", 99),
        ("configuration.environment.LD_PRELOAD", "libjemalloc.so.2"),
        ("machine.cpu.quota", 0.5),
    ],
)
def test_a_run_under_other_conditions_is_refused(half, place, value):
    def change(document: Document) -> None:
        *folders, field = place.split(".")
        at = document["context"]["crossover"]
        for folder in folders:
            at = at[folder]
        assert at.get(field) != value
        at[field] = value

    before = edited(half, change).read_bytes()
    done = bench(*MANY, "--resume", f"--out={half}")
    assert_refused(done, "--resume", str(half), f"{place} was {json.dumps(value)} and is ")
    assert half.read_bytes() == before


def test_other_flags_are_refused(half):
    before = half.read_bytes()
    assert_refused(bench(*MANY, "--lr=0.2", "--resume", f"--out={half}"), "without --lr=0.2")
    assert_refused(bench(*MANY[1:], "--resume", f"--out={half}"), f"with {MANY[0]}")
    assert half.read_bytes() == before


def network_of(width: int) -> str:
    described = json.loads(bench("--describe", f"--mlp=20,{width},4").stdout)
    return json.dumps({**described, "name": "net"})


def rows_of(first: int) -> str:
    lines = HEART.read_text("utf-8").splitlines()
    return "\n".join([lines[0], *lines[first:], *lines[1:first]]) + "\n"


@pytest.mark.parametrize(
    ("name", "flags", "write", "what"),
    [
        ("net.json", ["--network={}"], network_of, "another network 'net'"),
        ("x.csv", ["--model=heart", "--data={}"], rows_of, "configuration.data_fingerprint"),
    ],
)
def test_what_changed_under_its_name_is_refused(tmp_path, name, flags, write, what):
    given, path = tmp_path / name, tmp_path / "result.json"
    given.write_text(write(16), "utf-8")
    words = [flag.format(given) for flag in flags]
    words += [*MANY[1:-1], "--batch=10,20", f"--out={path}"]
    bench(*words, code=0)
    edited(path, interrupt)
    bench(*words, "--resume", code=0)
    before = edited(path, interrupt).read_bytes()
    given.write_text(write(32), "utf-8")
    assert_refused(bench(*words, "--resume"), str(path), what)
    assert path.read_bytes() == before


def test_what_is_no_whole_result_file_is_refused(half):
    """tests/fuzz/earlier_run.cpp makes up others."""
    refused = bench(*MANY, "--resume", f"--out={edited(half, lambda d: d['rows'].pop())}")
    assert_refused(refused, "--resume", str(half))
    for text in ("", "{}", "[" * 100000):
        half.write_text(text, encoding="utf-8")
        assert_refused(bench(*MANY, "--resume", f"--out={half}"), "is no result file")
        assert half.read_text("utf-8") == text


def test_a_file_that_is_complete_stays_as_it_is(whole):
    before = whole.read_bytes()
    done = bench(*MANY, "--resume", f"--out={whole}", code=0)
    assert done.stderr == f"bench: {whole} is complete: no row is left to measure\n"
    assert whole.read_bytes() == before and not done.stdout


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert_refused(bench(*MANY, "--resume"), "--resume", "--out=FILE.json")
    path = tmp_path / "none.json"
    assert_refused(bench(*MANY, "--resume", f"--out={path}"), "there is no file", str(path))
    assert not path.exists()


# --- killed


def kill_after(seconds: float, sent: signal.Signals, *arguments: str) -> int:
    """Its exit code; 0 where it was done before."""
    with subprocess.Popen(
        [BENCH, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()
    ) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(sent)
        try:
            _, complaint = process.communicate(timeout=LIMIT_SECONDS)
        finally:
            process.kill()
    assert process.returncode in (0, -sent, 128 + sent), complaint.decode()
    return process.returncode


@pytest.mark.slow
def test_no_finished_row_is_lost_or_measured_twice(tmp_path):
    """Takes long, as thirty runs are ended at random times."""
    path = tmp_path / "result.json"
    randomness = random.Random(20261122)
    started = time.monotonic()
    bench(*MANY, f"--out={path}", code=0)
    longest = time.monotonic() - started
    path.unlink()
    finished: dict[str, list[Document]] = {}
    completed = progressed = 0
    for _ in range(KILLS):
        if path.exists() and is_complete(strict(path)):
            path.unlink()
            finished = {}
        resume = ("--resume",) if path.exists() else ()
        sent = randomness.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        kill_after(randomness.uniform(0, longest / 2), sent, *MANY, *resume, f"--out={path}")
        if not path.exists():  # killed before it began
            assert not finished
            continue
        document = strict(path)
        now = written(document)
        parts(document)
        for name, before in finished.items():
            assert_goes_on(before, now[name])
        progressed += sum(map(len, now.values())) > sum(map(len, finished.values()))
        finished = now
        completed += is_complete(document)
    if path.exists():
        validate(path)
    assert progressed > KILLS / 4
    assert completed > 0
    left = {file.name for file in tmp_path.iterdir()} - {path.name}
    assert len(left) <= 1, "what killed runs left is removed by the next"
