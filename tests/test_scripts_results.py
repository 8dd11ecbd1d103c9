# SPDX-License-Identifier: Apache-2.0
"""What ./run does with results: their names, what is kept after a signal, what is drawn."""

import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench_runs import BENCH
from scripts import ran, refused, script

from crossover_bench.peers.frameworks import FRAMEWORKS
from crossover_bench.place import ALONE
from crossover_bench.run import build, environment, own_network, peers, results, resume, run
from crossover_bench.run.two import Asked

TODAY = datetime.date(2025, 3, 9)


def test_results_are_named_by_machine_date_and_commit_and_never_reused(tmp_path):
    tries, answers = tmp_path / "tries" / "m", tmp_path / "m"
    for folder, name in (
        (tries, "2025-03-09-abc.json"),
        (answers, "2025-03-09-abc-2.json"),
        (tries, "2025-03-09-abc-3.json"),
    ):
        assert results.new_file("abc", TODAY, tries, answers) == tries / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


# --- runs that did not finish


WORDS = ["--sweep=quick", "--budget=2m", "--out=x.json", "--model=disc-2"]


def run_file(path: Path, seconds: float, *words: str, **changes: object) -> Path:
    """A result file with 3 rows of an unfinished run, last written at that time."""
    crossover = {
        "complete": False,
        "software": {"commit": "abc1234" + "0" * 33, "dirty": False},
        "configuration": {"command": ["bench", *(words or WORDS)]},
        **changes,
    }
    document = {"context": {"crossover": crossover}, "rows": [{}, {}, {}], "benchmarks": []}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    os.utime(path, (seconds, seconds))
    return path


@pytest.fixture
def tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of those of machine m, where ./run works at commit abc1234."""
    monkeypatch.setattr(results, "machine_of", lambda _: "m")
    monkeypatch.setattr(results, "commit_of", lambda _: "abc1234")
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    return tmp_path / "tries" / "m"


def test_unfinished_runs_are_those_of_this_machine_and_commit(tries):
    older = run_file(tries / "a.json", 1000)
    newer = run_file(tries / "b.json.partial", 2000)
    run_file(tries / "b.json", 3000, complete=True)
    run_file(tries / "c.json", 4000, software={"commit": "abc1234", "dirty": True})
    run_file(tries.with_name("other") / "e.json", 6000)
    for name in ("f.json", "f.json.partial"):  # where everybody's results are
        run_file(results.RESULTS / "m" / name, 6000)
    for text in ("", "{", "[]", '{"context": 1}'):
        (tries / f"{len(text)}.json").write_text(text, encoding="utf-8")
    first, second = resume.earlier_runs("m", "abc1234", complete=False)
    assert (first.out, second.out) == (newer.with_name("b.json"), older)
    assert (first.rows, first.flags) == (3, ("--sweep=quick", "--model=disc-2"))
    (dirty,) = resume.earlier_runs("m", "abc1234-dirty", complete=False)
    assert dirty.out.name == "c.json"


def destination(*words: str) -> tuple[Path, list[str], tuple[str, ...]]:
    """Where the results of `./run WORDS` go; what bench gets, but for --out; and the peers."""
    parsed, command = run.parse(list(words)), ["bench", *words]
    path = run.destination(parsed, command)
    assert command[0] == "bench" and command[-1] == f"--out={path}"
    return path, command[1:-1], parsed.peers


def test_an_unfinished_run_is_offered_and_a_new_one_begun(tries, capsys):
    before = run_file(tries / "a.json", 1000)
    path, flags, _ = destination("--sweep=quick")
    assert path != before and flags == ["--sweep=quick"]
    offer = capsys.readouterr().err
    assert f"{before} has 3 rows" in offer and "./run --resume goes on with it" in offer


@pytest.mark.parametrize(
    ("of_run", "words", "flags", "peers"),
    [
        (WORDS, ["--resume", "--budget=1h"], ["--sweep=quick", "--model=disc-2"], ()),
        # bench itself refuses what differs.
        (WORDS, ["--resume", "--sweep=full"], ["--model=disc-2"], ()),
        (["--with-peers", "--mode=eager"], ["--resume"], ["--mode=eager"], ("pytorch",)),
        (["--with-peers=pytorch", "--with-peers=jax"], ["--resume"], [], ("pytorch", "jax")),
        (
            ["--model=heart", "--data=rows.csv"],
            ["--resume", "--data=/x/rows.csv"],
            ["--model=heart"],
            (),
        ),
    ],
)
def test_resume_goes_on_with_the_latest_unfinished_run_and_its_flags(
    of_run, words, flags, peers, tries
):
    run_file(tries / "a.json", 1000)
    latest = run_file(tries / "b.json", 2000, *of_run)
    assert destination(*words) == (latest, [*words, *flags], peers)


def test_resume_asks_where_the_data_is(tries, tmp_path, monkeypatch):
    run_file(tries / "a.json", 1000, "--data=rows.csv")
    with refused(r"read rows.csv.* --data=FOLDER/rows.csv"):
        destination("--resume")
    (tmp_path / "rows.csv").write_text("1,0\n")
    monkeypatch.chdir(tmp_path)
    assert destination("--resume")[1] == ["--resume", "--data=rows.csv"]


STARTS = "--meter=touch pwned; echo 1"
MODULE = "net-1.module.json"  # it names a file of Python, which is run


@pytest.mark.parametrize(
    "word",
    [
        *(
            "--peer=touch pwned",
            "--when-answered=touch pwned",
            STARTS,
            "--out",
            "touch pwned",
            "--unknown=1",
            "--with-peers=/x/py",
        ),
        *(
            "--data=/x/rows.csv",
            "--data=../rows.csv",
            "--data=",
            "--network=",
            "--network=net.py:f",
        ),
        *("--network=../net.json", "--network=net.json,/x/net.json", "--network=" + MODULE),
    ],
)
def test_a_file_brings_neither_a_command_nor_a_path(word, tries, tmp_path, monkeypatch):
    """Be it anybody's; what is there under such a name is not asked."""
    monkeypatch.setattr(own_network, "FOLDER", tmp_path / "made")
    folder = tmp_path / "here"
    folder.mkdir()
    for path in (folder / "net.json", folder / MODULE, tmp_path / "rows.csv"):
        path.touch()
    monkeypatch.chdir(folder)
    latest = run_file(tries / "a.json", 1000, "--threads=1", word)
    with refused(r"./run --resume|--resume --(network|data)="):
        destination("--resume")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / MODULE).touch()
    of_run = ["--network=net.json," + MODULE, STARTS]
    run_file(latest, 1000, *of_run)
    made = f"--network={folder}/net.json,{tmp_path}/made/{MODULE}"
    assert destination("--resume", "--meter=mine")[1] == ["--resume", "--meter=mine", made]


def test_each_flag_is_known_to_be_harmless_or_not():
    told = re.findall(r"^  (--[a-z_-]+)", ran(BENCH, "--help").stdout, re.MULTILINE)
    unsafe = {"--peer", "--meter", "--out", "--benchmark_out", "--budget", "--resume", "--network"}
    unsafe |= {"--data", "--when-answered"}
    of_others = {flag for each in FRAMEWORKS.values() for flag in each.flags}
    tells = run.TELLING | {"--network-schema", "--worker", "--version", "--help"}
    known = resume.HARMLESS - of_others
    assert known | unsafe | tells == {*told} and not known & (unsafe | tells)


def test_resume_builds_for_what_the_run_was_built_for(tries, tmp_path, monkeypatch):
    run_file(tries / "a.json", 1000, "--sweep=quick", "--cuda=off")
    monkeypatch.setattr(build, "BENCH", tmp_path / "bench")
    assert run.built_for(run.parse(["--resume"])) == "auto"  # nothing built that could be asked
    build.BENCH.touch()
    for words, mode in ((["--resume"], "off"), (["--resume", "--cuda=on"], "on"), ([], "auto")):
        assert run.built_for(run.parse(words)) == mode


def test_resume_without_an_unfinished_run(tries, capsys):
    with refused("no unfinished run of commit abc1234"):
        destination("--resume")
    run_file(tries / "a.json", 1000, complete=True)
    with pytest.raises(SystemExit) as ended:
        destination("--resume")
    assert ended.value.code == 0
    assert "a.json is complete: no row is left to measure" in capsys.readouterr().err


# --- the first answer


ANSWERING_BENCH = """\
import json, subprocess, sys
flags = dict(word.partition("=")[::2] for word in sys.argv[1:])
if "--machine" in flags:
    print(json.dumps({"id": "m", "gpu": None}))
elif "--commit" in flags:
    print("abc1234")
else:
    with open(flags["--out"], "w") as file:
        json.dump({"rows": [{"name": "a"}]}, file)
    if "--when-answered" in flags:
        subprocess.run(["/bin/sh", "-c", "exec " + flags["--when-answered"]], check=True)
    sys.exit(int(flags["--v"]))
"""
# Of our Python, which notes what it is asked for, and whether a first answer is kept by then.
DRAWING = """\
import json, os, sys
kept = sys.argv[sys.argv.index("--since") + 1] if "--since" in sys.argv else ""
with open({calls!r}, "a") as file:
    print(json.dumps([os.path.exists(kept), *sys.argv[1:]]), file=file)
if kept:
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    open(kept, "w").close()
    folder = sys.argv[sys.argv.index("-o") + 1]
    with open(os.path.join(folder, "index.html"), "w") as file:
        print("drawn into", folder, file=file)
"""


@pytest.mark.parametrize(("code", "is_try"), [(0, True), (0, False), (130, True)])
def test_the_first_answer_is_shown_amid_the_run_and_the_end_says_what_changed(
    code, is_try, tmp_path, monkeypatch, capsys
):
    """Its page, which somebody may have open, is in the end that of the run."""
    folder = tmp_path / "it's a folder, ours"
    folder.mkdir()
    calls = folder / "calls"
    monkeypatch.setattr(results, "RESULTS", folder / "results")
    monkeypatch.setattr(run, "REPORT", folder / "report")
    monkeypatch.setattr(build, "BENCH", script(folder / "bench", ANSWERING_BENCH))
    python = script(folder / "python", DRAWING.format(calls=str(calls)))
    monkeypatch.setattr(environment, "PYTHON", python)
    monkeypatch.setattr(results, "why_try", lambda _: "a try" if is_try else "")
    monkeypatch.setattr(peers, "found", lambda: None)
    page = folder / "report" / "try"
    last_page = page if is_try else page.parent
    for _ in range(2):  # what an earlier run has said is none of this one
        assert run.run_bench(run.parse([f"--v={code}", "--out=" + str(folder / "x.json")])) == code
        ((was_kept, *first), *last) = map(json.loads, calls.read_text("utf-8").splitlines())
        words = ["report", str(folder / "x.json"), "-o", str(page), "--since"]
        assert first == ["-m", "crossover_bench", *words, str(page / "answer.txt")] and not was_kept
        kept = str(page / "answer.txt")
        words = [*words[:3], str(last_page), *words[4:], kept]
        assert last == ([] if code else [[True, "-m", "crossover_bench", *words]])
        assert (page / "index.html").read_text("utf-8") == f"drawn into {last_page}\n"
        is_told = f"; the answer so far is on {page / 'index.html'}\n" in capsys.readouterr().err
        assert is_told is bool(code)
        calls.unlink()
        (folder / "x.json").unlink()


@pytest.mark.parametrize(
    ("parsed", "is_told"),
    [
        ({}, True),
        ({"peers": ("pytorch",)}, True),
        ({"report": False}, False),
        ({"check_statistics": True}, False),
        ({"compare_with": "abc"}, False),
        ({"commands": Asked([])}, False),
        ({"networks": [Path("net.json")]}, False),
        ({"modules": [Path("net.module.json")]}, False),
    ],
)
def test_a_first_answer_is_asked_for_where_the_end_has_its_like(parsed, is_told):
    """Own networks, two builds and two programs end with a screen of their own."""
    assert bool(run.when_answered(run.Arguments(**parsed), Path("x.json"))) is is_told


@pytest.mark.parametrize(
    ("there", "goes_on", "name"),
    [
        ([], False, "x.json"),
        (["x.json"], False, "x.json.partial"),
        (["x.json"], True, "x.json"),
        (["x.json", "x.json.partial"], True, "x.json.partial"),
    ],
)
def test_where_bench_puts_its_rows_is_known_before(there, goes_on, name, tmp_path):
    """What it does itself, test_bench_output.py and test_bench_resume.py ask."""
    for each in there:
        run_file(tmp_path / each, 1000)
    assert results.place(tmp_path / "x.json", goes_on) == tmp_path / name


# --- after bench


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The words of each call of `plots`."""
    calls: list[tuple[object, ...]] = []
    monkeypatch.setattr(run, "REPORT", tmp_path / "report")
    monkeypatch.setattr(run, "plots", lambda *words: not calls.append(words))
    return calls


WHOLE = {"command": ["bench", "--cuda=off"], "sweep": "default", "repetitions": 9}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"configuration": WHOLE | {"sweep": "quick"}}, "its sweep is quick"),
        ({"complete": False}, "it was not finished, so rows are missing"),
    ],
)
def test_a_whole_sweep_leaves_the_tries_and_has_the_page(tries, changes, why, drawn, capsys):
    crossover = {"complete": True, "configuration": WHOLE, **changes}
    begun = run_file(tries / "a.json", time.time(), **crossover)
    begun.with_suffix(".check").touch()
    assert run.conclude(begun, 0, run.Arguments()) == 0
    path = begun if why else results.RESULTS / "m" / "a.json"
    page = run.REPORT / "try" if why else run.REPORT
    assert drawn == [("report", path, "-o", page, "--summary")]
    assert path.is_file() and path.with_suffix(".check").is_file()
    assert begun.exists() is bool(why)
    printed = capsys.readouterr().out
    assert f"results: {path}\n" in printed and why in printed
    assert ("a try: " in printed) is bool(why)


def test_a_run_never_replaces_one_of_the_same_name(tries):
    begun = run_file(tries / "a.json", 1000, complete=True, configuration=WHOLE)
    there = run_file(results.RESULTS / "m" / "a.json", 1000)
    assert results.settle(begun) == begun and begun.exists() and there.exists()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A result file of one row."""
    (tmp_path / "x.json").write_text('{"rows": [{"name": "a"}]}', encoding="utf-8")
    return tmp_path / "x.json"


def test_finished_rows_are_drawn_but_not_after_a_signal(path, drawn, capsys):
    parsed = run.Arguments()
    for wrote, code, is_drawn in (
        (path, 0, True),
        (path, 1, True),  # another row failed
        (path, 130, False),
        (None, 1, False),
    ):
        assert run.conclude(wrote, code, parsed) == code
        assert [words[1] for words in drawn] == ([path] if is_drawn else [])
        assert (f"1 finished row kept in {path}" in capsys.readouterr().err) == (code == 130)
        drawn.clear()


@pytest.mark.parametrize("seconds", [0, 2**31, None])
def test_what_bench_wrote_is_known_whatever_the_clock_says(path, seconds):
    """Also where it was set back or ahead meanwhile."""

    def write(to: Path) -> None:
        new = to.with_suffix(".new")
        new.write_bytes(path.read_bytes())
        if seconds is not None:
            os.utime(new, (seconds, seconds))
        new.rename(to)

    before = results.states(path)
    assert results.written(path, before) is None, "an older file"
    write(path)
    assert results.written(path, before) == path
    before = results.states(path)
    write(partial := path.with_name("x.json.partial"))
    assert results.written(path, before) == partial, "beside an older file"
    absent = path.with_name("absent.json")
    assert results.written(absent, results.states(absent)) is None


def test_a_run_of_modules_as_they_are_ends_with_their_screen(path, drawn):
    parsed = run.Arguments(report=False, gpu="4090", modules=[path.with_name("net.module.json")])
    assert run.conclude(path, 0, parsed) == 0
    assert drawn == [("advise", "--network", parsed.modules[0], "--gpu", "4090", path)]


@pytest.mark.parametrize(("gpu", "is_told"), [(None, True), ({"name": "T4"}, False)])
def test_a_network_by_its_widths_is_answered_without_a_gpu(tmp_path, drawn, gpu, is_told):
    words = ["--mlp=auto,8,2", "--batch=32", "--threads=1,2", "--rows=10,20"]
    path = run_file(tmp_path / "x.json", 1, *words, machine={"gpu": gpu})
    document = json.loads(path.read_text("utf-8"))
    document["rows"] = [
        {"configuration": {"family": family, "model": model}}
        for family, model in (("Epoch", "mlp-4-8-2"), ("Forward", "mlp-4-8-2"), ("Epoch", "heart"))
    ]
    document["rows"].append({"configuration": {"family": "Peak"}})
    path.write_text(json.dumps(document), "utf-8")
    assert run.conclude(path, 0, run.Arguments(gpu="4090")) == 0
    advise = ("advise", "--model", "mlp-4-8-2", "--batch=32", "--gpu", "4090", path)
    assert drawn[1:] == ([advise] if is_told else [])
    assert ("--summary" in drawn[0]) is not is_told


def test_a_report_that_fails_does_not_pass_silently(path, monkeypatch):
    monkeypatch.setattr(run, "plots", lambda *_: False)
    assert run.conclude(path, 0, run.Arguments()) == 1


def test_a_new_file_without_rows_is_removed_and_one_with_rows_is_not(path):
    results.remove_if_empty(path)
    assert path.exists()
    empty = path.parent / "m" / "x.json"
    empty.parent.mkdir()
    empty.write_text('{"rows": []}', encoding="utf-8")
    results.remove_if_empty(empty)
    assert not empty.parent.exists()


def test_an_exit_code_and_a_fatal_signal_of_bench_are_handed_back():
    assert run.measure([sys.executable, "-c", "raise SystemExit(2)"]) == 2
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run.measure([sys.executable, "-c", kill]) == 137


WAITING_BENCH = """\
import os, signal, time
def end(signum, frame):
    signal.signal(signum, signal.SIG_IGN)  # it may come from the terminal and from ./run
    os.write(1, b"kept\\n")
    os._exit(128 + signum)
signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
os.write(1, b"ready\\n")
time.sleep(3600)
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_lets_bench_keep_its_rows(signum, tmp_path):
    """Nothing goes on measuring: it is asked to end even where ./run is killed."""
    bench = script(tmp_path / "bench", WAITING_BENCH)
    code = (
        f"import sys; from crossover_bench.run import run; sys.exit(run.measure([{str(bench)!r}]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ALONE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    # Ctrl-C goes to all on the terminal.
    (os.killpg if signum == signal.SIGINT else os.kill)(process.pid, signum)
    out, err = process.communicate(timeout=600)
    assert (out, err) == ("kept\n", "")
    assert process.returncode == (-signum if signum == signal.SIGKILL else 128 + signum)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_bench_is_started_reaches_it(signum, monkeypatch):
    start = subprocess.Popen

    def start_slowly(*arguments, **options):
        process = start(*arguments, **options)
        os.kill(os.getpid(), signum)  # bench runs, and measure() does not know it yet
        return process

    monkeypatch.setattr(subprocess, "Popen", start_slowly)
    before = signal.signal(signum, signal.default_int_handler)  # a background job ignores Ctrl-C
    try:
        assert run.measure(["sleep", "60"]) == 128 + signum
    finally:
        signal.signal(signum, before)


# --- what works on a GPU, before its first run


@pytest.mark.parametrize(
    ("gpu", "complete", "new"),
    [(None, False, False), ("T4", False, True), ("T4", True, False), ("B200", True, True)],
)
def test_a_gpu_is_new_until_a_run_of_it_is_complete(gpu, complete, new, tmp_path):
    machine = {"id": "m", "gpu": gpu and {"name": gpu}}
    bench = script(tmp_path / "bench", f"print({json.dumps(machine)!r})")
    run_file(tmp_path / "old.json", 0, complete=complete, machine={"gpu": {"name": "T4"}})
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    assert results.has_new_gpu(bench, tmp_path / "new.json") is new
    failing = script(tmp_path / "failing", "import sys; sys.exit('no driver')")
    assert not results.has_new_gpu(failing, tmp_path / "new.json")


@pytest.mark.parametrize("ends", ["os.abort()", "time.sleep(60)"])
def test_a_check_never_stops_a_run(ends, monkeypatch, tmp_path):
    text = "import os, sys, time; open(sys.argv[2].partition('=')[2], 'w').write(sys.argv[1]); "
    monkeypatch.setattr(build, "BENCH", script(tmp_path / "bench", text + ends))
    monkeypatch.setattr(run, "CHECK_SECONDS", 5)
    run.check(tmp_path / "m.check")
    assert (tmp_path / "m.check").read_text(encoding="utf-8") == "--check"
