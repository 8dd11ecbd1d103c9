# SPDX-License-Identifier: Apache-2.0
"""`./run two`: its words, its worker, and one run of two small programs from end to end."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench_runs import is_running, run, until
from scripts import ROOT, ran

from crossover_bench.files import loading
from crossover_bench.peers.command import CommandFailed, Commands, Plan, Ran, new_process
from crossover_bench.place import PACKAGE
from crossover_bench.run import two

A, B = "a {n} {steps}", "b {n} {steps}"
ASKED = ("--n=1e3:1e6", "--steps=10,100")
PLAN = Plan(A, B, (1000, 4000), (10, 100), 600.0)


def plan_of(*words: str) -> Plan:
    (peer,) = [word for word in two.asked([*words]).words if word.startswith("--peer=")]
    return Plan.of(shlex.split(peer)[-1])


def test_a_range_comes_to_sizes_a_factor_of_four_apart():
    assert plan_of(*ASKED, A, B).sizes == (1000, 3981, 15849, 63096, 251189, 1000000)
    assert plan_of("--n=10:10", ASKED[1], A, B).sizes == (10,)
    assert plan_of("--n=500,100", "--at=300", ASKED[1], A, B).sizes == (100, 300, 500)
    plan = plan_of(*ASKED, "--limit=2m", "--equal=cmp -s", A, B)
    assert (plan.limit, plan.equal, plan.steps) == (120.0, "cmp -s", (10, 100))
    assert plan.command("second", "5", "10") == "b 5 10"
    passed = two.asked([*ASKED, "--out=x.json", "--resume", A, B]).words
    assert {"--out=x.json", "--resume", "--family=Command", "--refine=command"} <= {*passed}


def configuration(side: str, size: str = "1000", steps: str = "10") -> dict[str, str]:
    return {"family": "Command", "size": size, "program": side, "step_count": steps}


def answers_of(commands: Commands, side: str, size: str = "1000", steps: str = "10") -> Any:
    return commands.prepare(f"{side} {size} {steps}", configuration(side, size, steps))


def test_each_row_runs_once_before_it_is_timed_and_is_a_process_each_time():
    ran = []

    def run(command: str, limit: float, output: Path) -> Ran:
        ran.append((command, limit, str(output)))
        return Ran(2.0, 1.5)

    commands = Commands(PLAN, run, Path("unused"))
    described = commands.describe()
    assert len(described["rows"]) == 8
    assert described["first"] == A
    assert len(commands.rows({"family": "Command", "size": "77"})["rows"]) == 4
    assert commands.rows({"family": "Epoch"}) == {"rows": []}
    assert answers_of(commands, "second") == {"facts": {}, "once": {"first_call_seconds": 2.0}}
    times = commands.repeat("second 1000 10", 0.1, after_another=True)["times"]
    assert times == {"real_time": 2e3, "cpu_time": 1.5e3, "time_unit": "ms", "iterations": 1}
    assert ran == [("b 1000 10", 600.0, os.devnull)] * 2
    assert commands.prepare("x", configuration("first"), iterations=1)["once"] == {}
    assert len(ran) == 2, "what is made again in another process has run before"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "it's a folder").mkdir()
    return tmp_path / "it's a folder"


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_outputs_are_compared_where_that_is_asked(order, folder):
    plan = Plan("echo {n} {steps}", "echo {n} $(({steps} % 50))", (7,), (10, 100), 60.0, "cmp -s")
    commands = Commands(plan, new_process(folder), folder)
    few = {side: answers_of(commands, side, "7", "10") for side in order}
    many = {side: answers_of(commands, side, "7", "100") for side in order}
    assert "facts" in few["first"] and "facts" in few["second"] and "facts" in many["first"]
    assert many["second"]["outcome"] == "failed"
    assert many["second"]["error_message"].startswith(
        "the outputs of both differ at n = 7 and 100 steps: 'cmp -s "
    )


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo no >&2; echo 'this is why' >&2; echo >&2; exit 3", "exit code 3: this is why"),
        ("there-is-no-such-program 1 2", "exit code 127: .*not found"),
        ("kill -9 $$", "a signal \\(Killed\\)"),
        ("sleep 1000", "did not end within 0.3 s; give fewer steps, a smaller n, or a longer"),
    ],
)
def test_a_command_without_a_time_says_why(command, reason, folder):
    with pytest.raises(CommandFailed, match=reason):
        new_process(folder)(command, 0.3 if "sleep" in command else 60.0, Path(os.devnull))


def test_a_folder_that_is_gone_is_a_sentence(folder):
    with pytest.raises(CommandFailed, match="could not be started: No such file"):
        new_process(folder)("echo", 60.0, folder / "gone" / "x")


# Of a process that writes its number into a file and stays, by what it comes from: in the
# background, of a session of its own, two parents above gone.
STAYS = "sh -c 'echo $$ > left; exec sleep 1000'"
STAYING = (f"{STAYS} &", f"setsid {STAYS} &", f"setsid -f setsid -f {STAYS};")


def stayed(folder: Path) -> int:
    def number() -> int:
        path = folder / "left"
        return int(path.read_text("utf-8") or 0) if path.exists() else 0

    return until(number)


@pytest.mark.parametrize("staying", STAYING)
def test_what_prints_much_or_leaves_processes_behind_does_no_harm(staying, folder, monkeypatch):
    monkeypatch.chdir(folder)
    plan = Plan(f"{staying} head -c 5000000 /dev/zero; : {{n}} {{steps}}", B, (7,), (1, 2), 60.0)
    commands = Commands(plan, new_process(folder), folder)
    assert "facts" in answers_of(commands, "first", "7", "1")
    assert not is_running(stayed(folder))
    (folder / "left").unlink()
    (doubt,) = commands.repeat("first 7 1", 0.1, after_another=False)["doubts"]
    assert doubt.startswith("it left processes that went on")
    assert not is_running(stayed(folder))


DOC = (ROOT / "docs" / "howto" / "two-programs.md").read_text("utf-8")
RECIPES = {
    text.split()[1]: text
    for text in re.findall(r"^```python\n(.*?)^```", DOC, re.MULTILINE | re.DOTALL)
}


def test_what_the_recipes_ask_can_be_asked():
    lines = re.findall(r"^\./run two (.*)", DOC, re.MULTILINE)
    assert len(lines) == 1 + len(RECIPES)
    for line in lines:
        plan = plan_of(*shlex.split(line))
        assert plan.first != plan.second
    for name, text in RECIPES.items():
        compile(text, name, "exec")


@pytest.mark.parametrize(
    ("name", "library", "words"),
    [
        ("fft.py", "numpy", "numpy 64 2"),
        ("cluster.py", "sklearn", "sklearn kmeans 200 2"),
        ("cluster.py", "sklearn", "sklearn pca 200 2"),
    ],
)
def test_recipes_run_on_a_cpu(tmp_path, name, library, words, folder):
    pytest.importorskip(library, reason=f"{library} is not installed here")
    (tmp_path / name).write_text(RECIPES[name], "utf-8")
    command = f"cd {shlex.quote(str(tmp_path))} && {shlex.quote(sys.executable)} {name} {words}"
    assert not new_process(folder)(command, 300.0, Path(os.devnull)).left


@pytest.mark.parametrize("staying", [f"{STAYS};", *STAYING])
def test_a_command_does_not_outlive_its_worker(staying, folder, monkeypatch):
    """Nor does what it wrote."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TMPDIR", str(folder))
    plan = Plan(f"{staying} sleep 1000; : {{n}} {{steps}}", B, (7,), (1, 2), 60.0, "cmp")
    command = [sys.executable, PACKAGE / "peers" / "command.py", plan.word]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        asked = {"do": "prepare", "row": "x", "configuration": configuration("first", "7", "1")}
        assert worker.stdin is not None
        worker.stdin.write(json.dumps(asked).encode() + b"\n")
        worker.stdin.flush()
        process = stayed(folder)
        assert [*folder.glob("crossover-two-*/first-7-1")]
        worker.kill()
    until(lambda: not is_running(process))
    until(lambda: not [*folder.glob("crossover-two-*")])


PEER = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from crossover_bench.peers.command import Commands, Plan, Ran
from crossover_bench.peers.protocol import serve

def formula(command, limit, output):
    side, n, steps = command.split()
    step = int(n) * 1e-3 if side == "a" else 0.1 + int(n) * 5e-4
    return Ran((0.1 if side == "a" else 2.1) + int(steps) * step, 0.1)

serve(Commands(Plan.of(sys.argv[1]), formula, Path("unused")))
"""


def flags_of(folder: Path, *words: str, peer: str = "") -> list[str]:
    """What `./run two` starts bench with for these words; with a `peer` in place of ours."""
    flags = ["--cuda=off", *two.asked([*words]).words]
    if peer:
        (folder / "peer.py").write_text(peer, "utf-8")
        ours, theirs = (
            shlex.quote(str(path))
            for path in (PACKAGE / "peers" / "command.py", folder / "peer.py")
        )
        flags = [word.replace(ours, theirs) for word in flags]
    return flags


def plots(*words: str | Path) -> str:
    return ran(sys.executable, "-m", "plots", *words, cwd=ROOT).stdout


def test_two_small_programs_from_end_to_end(tmp_path, folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(folder))  # where the outputs that are compared lie
    (tmp_path / "small.py").write_text("import sys; print(sys.argv[1])", "utf-8")
    start = f"{shlex.quote(sys.executable)} small.py"
    commands = [f"{start} {{n}} {{steps}} {side}" for side in "ab"]
    flags = ("--n=10", "--steps=1,20", "--equal=cmp", "--repetitions=5")
    run(tmp_path, *flags_of(tmp_path, *flags, *commands))
    file = loading.load_file(tmp_path / "result.json")
    assert file.complete
    assert (file.rows, file.peers) == ((), ())
    ways = {
        (row.configuration["program"], row.configuration["step_count"]) for row in file.commands
    }
    assert len(ways) == len(file.commands) == 4
    assert all(len(row.samples) == 5 and row.minimum > 0 for row in file.commands)
    assert (file.two["first"], file.two["equal"]) == (commands[0], "cmp")
    assert "valid, 4 rows" in plots("validate", tmp_path / "result.json")


@pytest.mark.slow
def test_where_the_second_program_begins_to_win_is_found_and_shown(tmp_path, monkeypatch):
    """By times of a formula; what an interruption leaves, refine_run_test.cpp asks. Takes long, as
    it starts a program for each pair."""
    monkeypatch.chdir(tmp_path)
    words = ("--n=100:400", "--steps=10,100", "--repetitions=5")
    file, peer = tmp_path / "result.json", PEER.format(root=str(ROOT / "plots"))
    _, done = run(tmp_path, *flags_of(tmp_path, *words, A, B, peer=peer))
    assert "[refine] n = " in done.stdout
    (interval,) = loading.load_file(file).refinements[-1].intervals
    assert interval.below == "first"
    assert interval.low and interval.high
    assert interval.low <= 200 <= interval.high < 1.2 * interval.low
    shown = plots("two", file, "--at=400")
    assert "\n- The second program won reliably from between n = " in shown
    assert "At n = 400 the second program wins a step; the second has repaid" in shown
    others = flags_of(tmp_path, *words, B, A, "--resume", peer=peer)
    whole = file.read_text("utf-8")
    file.write_text(whole.replace('"complete": true', '"complete": false'), "utf-8")
    _, done = run(tmp_path, *others, code=2)
    assert "measured under other conditions: peers.command.first was " in done.stderr
