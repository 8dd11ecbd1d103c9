# SPDX-License-Identifier: Apache-2.0
"""Which of a machine's files count: the newest one that is complete."""

import json

import pytest

from plots.cli import main
from plots.file import loading
from plots.file.file_order import newer_but_short, newest_per_machine
from plots.tests import synthetic, synthetic_machine, synthetic_steps

SHORT = "new.json of synthetic machine is newer than whole.json but was interrupted, so it does "
BUDGET = SHORT.replace("interrupted, so it does ", "ended by its budget of 60 s")


@pytest.fixture
def folder(write):
    """Writes an old, a whole and a newer but shorter file of one machine; returns their folder."""

    def written(complete=(True, True, False), budget=None, entries=None):
        entries = entries or synthetic.sweep(gpu=False)["benchmarks"]
        entries = [entry for entry in entries if "mlp" not in entry["name"]]  # which bench counts
        for name, day, whole in zip(("old", "whole", "new"), (1, 2, 3), complete, strict=True):
            own = entries if name != "new" else entries[:27]
            document = synthetic.document(own, date=f"2020-01-0{day}T00:00:00Z", complete=whole)
            if budget and not whole:
                left = {"seconds": budget, "used_seconds": budget, "left_open": ["a"]}
                document["context"]["crossover"]["budget"] = left
            path = write(document, f"in/{name}.json")
        return path.parent

    return written


def names(files):
    return [file.path.stem for file in files]


@pytest.mark.parametrize(
    ("complete", "first", "others", "told"),
    [
        ((True, True, True), "new", ["whole", "old"], 0),
        ((True, True, False), "whole", ["new", "old"], 1),
        ((True, False, False), "old", ["new", "whole"], 2),
        ((False, False, False), "new", ["whole", "old"], 0),
    ],
)
def test_the_newest_complete_file_counts(folder, complete, first, others, told):
    shown, rest = newest_per_machine(loading.load_files([folder(complete)])[0])
    assert (names(shown), names(rest)) == ([first], others)
    assert len(newer_but_short(shown, rest)) == told


def test_what_ended_the_newer_file_is_said(folder):
    shown, rest = newest_per_machine(loading.load_files([folder(budget=60)])[0])
    assert [text.partition(",")[0] for text in newer_but_short(shown, rest)] == [BUDGET]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_report_shows_the_complete_file_and_names_the_other(folder, tmp_path, shell):
    printed = shell("report", folder(), "-o", tmp_path / "out", "--summary")
    assert printed.err.startswith(SHORT) and printed.err.count("\n") == 1
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert SHORT in page and "measured on 2020-01-02" in page and "1 older file of" in page


@pytest.mark.parametrize(
    "command",
    [
        ["crossover", "--summary"],
        ["advise", "--cost=COST"],
        ["shi"],
        ["predict", "--gpu=h200"],
    ],
)
def test_commands_take_the_complete_file_and_name_the_other(command, folder, tmp_path, capsys):
    cost = tmp_path / "cost.json"
    counts = synthetic_machine.counts("disc-5")
    synthetic.write(cost, synthetic_machine.cost("disc-5", counts))
    entries = synthetic_steps.machine(gpu=False)["benchmarks"]
    command = [word.replace("COST", str(cost)) for word in command]
    main([*command, str(folder(entries=entries))])
    assert SHORT in capsys.readouterr().err


def test_compare_sets_complete_files_side_by_side(folder, write, shell):
    whole = synthetic.sweep(gpu=False)
    whole["context"]["crossover"]["machine"]["id"] = "another"
    write(whole, "in/another.json")
    (table,) = json.loads(shell("compare", folder(), "--format=json").out)
    assert {line["measured"][:10] for line in table["rows"]} == {"2020-01-01", "2020-01-02"}
    assert any(SHORT in note for note in table["notes"])
    assert any("1 older file left out" in note for note in table["notes"])
