# SPDX-License-Identifier: Apache-2.0
"""What ./run does with results: their names, what is kept after a signal, what is drawn."""

import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripts import ROOT, RUN, refused, script

from tools import build, console, results

# --- results


TODAY = datetime.date(2025, 3, 9)
DRAWS = RUN.Arguments()


def test_results_are_named_by_machine_date_and_commit_and_never_reused(tmp_path: Path) -> None:
    tries, answers = tmp_path / "tries" / "m", tmp_path / "m"
    for folder, name in (
        (tries, "2025-03-09-abc.json"),
        (answers, "2025-03-09-abc-2.json"),
        (tries, "2025-03-09-abc-3.json"),
    ):
        assert results.new_file("abc", TODAY, tries, answers) == tries / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    other = results.new_file("abd-dirty", TODAY, tries, answers)
    assert other.name == "2025-03-09-abd-dirty.json"


def test_bench_is_asked_for_machine_and_commit(tmp_path: Path) -> None:
    text = "import sys; print('{\"id\": \"epyc-4c\"}' if '--machine' in sys.argv else 'abc1234')"
    bench = script(tmp_path / "bench", text)
    assert (results.machine_of(bench), results.commit_of(bench)) == ("epyc-4c", "abc1234")
    with pytest.raises(console.Failure, match="no library"):
        results.commit_of(script(bench, "import sys; sys.exit('no library')"))


# --- runs that did not finish


def run_file(path: Path, seconds: float, **changes: object) -> Path:
    """A result file with 3 rows of an unfinished run, last written at that time."""
    command = ["bench", "--sweep=quick", "--budget=2m", "--out=x.json", "--model=disc-2"]
    crossover = {
        "complete": False,
        "software": {"commit": "abc1234" + "0" * 33, "dirty": False},
        "configuration": {"command": command},
        **changes,
    }
    document = {"context": {"crossover": crossover}, "rows": [{}, {}, {}], "benchmarks": []}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    os.utime(path, (seconds, seconds))
    return path


def test_unfinished_runs_are_those_of_this_machine_and_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    older = run_file(tmp_path / "m" / "a.json", 1000)
    newer = run_file(tmp_path / "tries" / "m" / "b.json.partial", 2000)
    run_file(tmp_path / "m" / "b.json", 3000, complete=True)
    run_file(tmp_path / "m" / "c.json", 4000, software={"commit": "abc1234", "dirty": True})
    run_file(tmp_path / "m" / "d.json", 5000, software={"commit": "f" * 40, "dirty": False})
    run_file(tmp_path / "other" / "e.json", 6000)
    for text in ("", "{", "[]", '{"context": 1}'):
        (tmp_path / "m" / f"{len(text)}.json").write_text(text, encoding="utf-8")
    first, second = results.earlier_runs("m", "abc1234", complete=False)
    assert (first.out, second.out) == (newer.with_name("b.json"), older)
    assert first.rows == 3
    assert first.flags == ("--sweep=quick", "--model=disc-2")
    assert [run.out.name for run in results.earlier_runs("m", "abc1234-dirty", complete=False)] == [
        "c.json"
    ]
    assert results.earlier_runs("m", "unknown", complete=False) == []
    assert results.earlier_runs("none", "abc1234", complete=False) == []


@pytest.fixture
def run_of_abc1234(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for results in which ./run works, of machine m at commit abc1234."""
    monkeypatch.setattr(results, "machine_of", lambda _: "m")
    monkeypatch.setattr(results, "commit_of", lambda _: "abc1234")
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    return tmp_path / "tries" / "m"


def destination(*words: str) -> tuple[Path, list[str]]:
    """Where the results of `./run WORDS` go, and what bench gets, but for --out."""
    command = ["bench", *words]
    path = RUN.destination(RUN.parse(list(words)), command)
    assert command[0] == "bench" and command[-1] == f"--out={path}"
    return path, command[1:-1]


def test_an_unfinished_run_is_offered_and_a_new_one_begun(
    run_of_abc1234: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = run_file(run_of_abc1234 / "a.json", 1000)
    path, flags = destination("--sweep=quick")
    assert path != before and flags == ["--sweep=quick"]
    said = capsys.readouterr().err
    assert f"{before} has 3 rows" in said and "./run --resume goes on with it" in said


def test_resume_goes_on_with_the_latest_unfinished_run_and_its_flags(run_of_abc1234: Path) -> None:
    run_file(run_of_abc1234 / "a.json", 1000)
    latest = run_file(run_of_abc1234 / "b.json", 2000)
    words = ["--resume", "--budget=1h"]
    assert destination(*words) == (latest, [*words, "--sweep=quick", "--model=disc-2"])
    # bench itself refuses what differs.
    words = ["--resume", "--sweep=full"]
    assert destination(*words) == (latest, [*words, "--model=disc-2"])


def test_resume_goes_on_with_peers(run_of_abc1234: Path) -> None:
    words = ["--sweep=quick", "--with-peers", "--mode=eager"]
    run_file(run_of_abc1234 / "a.json", 1000, configuration={"command": ["bench", *words]})
    parsed, command = RUN.parse(["--resume"]), ["bench", "--resume"]
    RUN.destination(parsed, command)
    assert parsed.peers == ("pytorch",) and command[2:-1] == ["--sweep=quick", "--mode=eager"]
    words = ["--with-peers=pytorch", "--mode=eager", "--with-peers=jax"]
    run_file(run_of_abc1234 / "b.json", 2000, configuration={"command": ["bench", *words]})
    parsed, command = RUN.parse(["--resume"]), ["bench", "--resume"]
    RUN.destination(parsed, command)
    assert parsed.peers == ("pytorch", "jax") and command[2:-1] == ["--mode=eager"]


def test_resume_asks_where_the_data_is(
    run_of_abc1234: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--model=heart", "--data=rows.csv"]
    run_file(run_of_abc1234 / "a.json", 1000, configuration={"command": ["bench", *words]})
    with refused(r"read rows.csv.* --data=FOLDER/rows.csv"):
        destination("--resume")
    again = ["--resume", "--data=/x/rows.csv"]
    assert destination(*again)[1] == [*again, "--model=heart"]
    (tmp_path / "rows.csv").write_text("1,0\n")
    monkeypatch.chdir(tmp_path)
    assert destination("--resume")[1] == ["--resume", *words]


def test_resume_builds_for_what_the_run_was_built_for(
    run_of_abc1234: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["bench", "--sweep=quick", "--cuda=off"]
    run_file(run_of_abc1234 / "a.json", 1000, configuration={"command": words})
    built = tmp_path / "bench"
    monkeypatch.setattr(build, "BENCH", built)
    assert RUN.built_for(RUN.parse(["--resume"])) == "auto"  # nothing built that could be asked
    built.touch()
    assert RUN.built_for(RUN.parse(["--resume"])) == "off"
    assert RUN.built_for(RUN.parse(["--resume", "--cuda=on"])) == "on"
    assert RUN.built_for(RUN.parse([])) == "auto"


def test_resume_without_an_unfinished_run(
    run_of_abc1234: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with refused("no unfinished run of commit abc1234"):
        destination("--resume")
    run_file(run_of_abc1234 / "a.json", 1000, complete=True)
    with pytest.raises(SystemExit) as ended:
        destination("--resume")
    assert ended.value.code == 0
    assert "a.json is complete: no row is left to measure" in "".join(capsys.readouterr())


# --- after bench


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A result file of one row."""
    (tmp_path / "x.json").write_text('{"rows": [{"name": "a"}]}', encoding="utf-8")
    return tmp_path / "x.json"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    paths: list[Path] = []
    monkeypatch.setattr(RUN, "plots", lambda _, path, *__: not paths.append(path))
    return paths


WHOLE = {"command": ["bench", "--cuda=off"], "sweep": "default", "repetitions": 9}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"configuration": WHOLE | {"sweep": "quick"}}, "its sweep is quick"),
        (
            {"configuration": WHOLE | {"command": ["bench", "--mlp=2,2"]}},
            "flags chose its rows (--mlp=2,2)",
        ),
        ({"complete": False}, "it was not finished, so rows are missing"),
    ],
)
def test_a_whole_sweep_leaves_the_tries_and_has_the_page(
    run_of_abc1234: Path,
    changes: dict[str, object],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words: list[object] = []
    monkeypatch.setattr(RUN, "plots", lambda *given: not words.extend(given))
    begun = run_of_abc1234 / "a.json"
    run_file(begun, time.time(), **({"complete": True, "configuration": WHOLE} | changes))
    begun.with_suffix(".check").touch()
    assert RUN.conclude(begun, 0, 0.0, DRAWS) == 0
    answers = results.RESULTS / "m" / "a.json"
    path = begun if why else answers
    page = RUN.REPORT / "try" if why else RUN.REPORT
    assert words == ["report", path, "-o", page, "--summary"]
    for suffix in (".json", ".check"):
        assert path.with_suffix(suffix).is_file()
    assert begun.exists() is bool(why)
    said = capsys.readouterr().out
    assert f"results: {path}\n" in said and ("a try: " in said) is bool(why) and why in said


def test_a_run_never_replaces_one_of_the_same_name(run_of_abc1234: Path) -> None:
    begun = run_file(run_of_abc1234 / "a.json", 1000, complete=True, configuration=WHOLE)
    there = run_file(results.RESULTS / "m" / "a.json", 1000)
    assert results.settle(begun) == begun and begun.exists() and there.exists()


def test_a_page_that_cannot_be_beside_the_program_is_beside_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "can_write", lambda folder: folder == tmp_path)
    path = tmp_path / "out" / "x.json"
    assert results.page_folder(tmp_path, path, is_try=False) == tmp_path
    assert results.page_folder(tmp_path / "no", path, is_try=False) == path.with_name("no")
    assert results.page_folder(tmp_path / "no", path, is_try=True) == path.with_name("no") / "try"


def test_a_checkout_that_is_only_read_uses_the_program_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def built(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(RUN.build, "program", built)
    monkeypatch.setattr(RUN.build, "BENCH", script(tmp_path / "bench", ""))
    monkeypatch.setattr(RUN, "can_write", lambda _: False)
    RUN.bring_up_to_date(DRAWS)
    assert "bench is used as it was built" in capsys.readouterr().err


def test_finished_rows_are_drawn_even_if_others_failed_but_not_after_a_signal(
    path: Path, drawn: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for code in (0, 1):
        assert RUN.conclude(path, code, 0.0, DRAWS) == code
        assert drawn.pop() == path
        assert f"results: {path}" in capsys.readouterr().out
    assert RUN.conclude(path, 130, 0.0, DRAWS) == 130
    assert f"1 finished row kept in {path}" in capsys.readouterr().err
    assert drawn == []


def test_nothing_is_drawn_from_no_rows_an_older_file_or_on_request(
    path: Path, drawn: list[Path], tmp_path: Path
) -> None:
    assert RUN.conclude(tmp_path / "absent.json", 1, 0.0, DRAWS) == 1
    assert RUN.conclude(path, 1, time.time() + 60, DRAWS) == 1
    assert RUN.conclude(path, 0, 0.0, RUN.Arguments(report=False)) == 0
    assert drawn == []


def test_a_run_of_modules_as_they_are_ends_with_their_screen(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(RUN, "plots", lambda *words: asked.append(words) is None)
    own = RUN.Arguments(report=False, gpu="4090")
    own.modules, own.peers = [tmp_path / "net.module.json"], ("pytorch",)
    assert RUN.conclude(path, 0, 0.0, own) == 0
    (words,) = asked
    assert words[:5] == ("advise", "--network", own.modules[0], "--gpu", "4090")


def test_rows_beside_an_older_file_are_found(path: Path, drawn: list[Path]) -> None:
    partial = Path(shutil.copy(path, f"{path}.partial"))
    os.utime(path, (1000, 1000))
    assert RUN.conclude(path, 1, time.time(), DRAWS) == 1
    assert drawn == [partial]


def test_a_new_file_without_rows_is_removed_and_one_with_rows_is_not(
    path: Path, tmp_path: Path
) -> None:
    results.remove_if_empty(path)
    assert path.exists()
    empty = tmp_path / "m" / "x.json"
    empty.parent.mkdir()
    empty.write_text('{"rows": []}', encoding="utf-8")
    results.remove_if_empty(empty)
    assert not empty.parent.exists()


def test_a_report_that_fails_does_not_pass_silently(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RUN, "plots", lambda *_: False)
    assert RUN.conclude(path, 0, 0.0, DRAWS) == 1


def test_an_exit_code_and_a_fatal_signal_of_bench_are_handed_back() -> None:
    assert RUN.measure([sys.executable, "-c", "raise SystemExit(2)"]) == 2
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert RUN.measure([sys.executable, "-c", kill]) == 137


WAITING_BENCH = """\
import os, signal, time
def end(signum, frame):
    os.write(1, b"kept\\n")
    os._exit(128 + signum)
signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
os.write(1, b"ready\\n")
time.sleep(3600)
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_bench_keep_its_rows(signum: int, tmp_path: Path) -> None:
    bench = script(tmp_path / "bench", WAITING_BENCH)
    caller = (
        "import sys; sys.path.insert(0, 'tests'); from scripts import RUN; "
        f"sys.exit(RUN.measure([{str(bench)!r}]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", caller],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    if signum == signal.SIGINT:
        os.killpg(process.pid, signum)  # as a terminal does
    else:
        os.kill(process.pid, signum)
    out, err = process.communicate(timeout=600)
    assert (out, err, process.returncode) == ("kept\n", "", 128 + signum)


# --- what works on a GPU, before its first run


@pytest.mark.parametrize(
    ("gpu", "complete", "new"),
    [(None, False, False), ("T4", False, True), ("T4", True, False), ("B200", True, True)],
)
def test_a_gpu_is_new_until_a_run_of_it_is_complete(
    gpu: str | None, complete: bool, new: bool, tmp_path: Path
) -> None:
    machine = {"id": "m", "gpu": gpu and {"name": gpu}}
    bench = script(tmp_path / "bench", f"print({json.dumps(machine)!r})")
    of_t4 = {"crossover": {"complete": complete, "machine": {"gpu": {"name": "T4"}}}}
    (tmp_path / "old.json").write_text(json.dumps({"context": of_t4}), encoding="utf-8")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    assert results.has_new_gpu(bench, tmp_path / "new.json") is new
    failing = script(tmp_path / "failing", "import sys; sys.exit('no driver')")
    assert not results.has_new_gpu(failing, tmp_path / "new.json")


@pytest.mark.parametrize("ends", ["sys.exit(3)", "os.abort()", "time.sleep(60)"])
def test_a_check_never_stops_a_run(
    ends: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "import os, sys, time; open(sys.argv[2].partition('=')[2], 'w').write(sys.argv[1]); "
    monkeypatch.setattr(build, "BENCH", script(tmp_path / "bench", text + ends))
    monkeypatch.setattr(RUN, "CHECK_SECONDS", 5)
    RUN.check(tmp_path / "m.check")
    assert (tmp_path / "m.check").read_text(encoding="utf-8") == "--check"
    monkeypatch.setattr(build, "BENCH", tmp_path / "absent")
    RUN.check(tmp_path / "m.check")
