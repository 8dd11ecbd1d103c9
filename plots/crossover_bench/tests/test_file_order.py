# SPDX-License-Identifier: Apache-2.0
"""Which of a machine's files count: the newest one that is complete; and where others stand."""

import json
from dataclasses import replace

import pytest

from crossover_bench.answers.copies import section as copies
from crossover_bench.answers.peers import section as peers
from crossover_bench.answers.training import section as training
from crossover_bench.files import loading
from crossover_bench.files.file_order import newest_per_machine, passed_over
from crossover_bench.shell.cli import main
from crossover_bench.show.page.section import Context
from crossover_bench.tests import synthetic, synthetic_machine, synthetic_peers, synthetic_steps
from crossover_bench.tests.synthetic_steps import passes

SHORT = "new.json of synthetic machine is newer than whole.json, but it was not finished, so rows "


@pytest.fixture
def folder(write):
    """Writes an old, a whole and a newer but shorter file of one machine; returns their folder."""

    def written(complete=(True, True, False), budget=None, entries=None, **configuration):
        entries = entries or synthetic.sweep(gpu=False)["benchmarks"]
        entries = [entry for entry in entries if "mlp" not in entry["name"]]  # which bench counts
        for name, day, whole in zip(("old", "whole", "new"), (1, 2, 3), complete, strict=True):
            measured = entries if name != "new" else entries[:27]
            document = synthetic.document(
                measured, date=f"2020-01-0{day}T00:00:00Z", complete=whole
            )
            crossover = document["context"]["crossover"]
            if budget and not whole:
                left = {"seconds": budget, "used_seconds": budget, "left_open": ["a"]}
                crossover["budget"] = left
            if name == "new":
                crossover["configuration"] |= configuration
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
        # Of files that lack the same, what trained most; of those that trained alike, the newest.
        ((False, False, False), "whole", ["new", "old"], 1),
    ],
)
def test_the_newest_complete_file_counts(folder, complete, first, others, told):
    shown, rest = newest_per_machine(loading.load_files([folder(complete)])[0])
    assert (names(shown), names(rest)) == ([first], others)
    (passed,) = passed_over(shown, rest) or [None]
    assert len(passed.files if passed else ()) == told


@pytest.mark.parametrize(
    ("configuration", "why"),
    [
        ({"sweep": "quick"}, "its sweep is quick"),
        ({"sweep": "gpu", "repetitions": 5}, "its sweep is gpu"),
        ({"repetitions": 1}, "it has 1 repetition"),
        ({"data": "mine.csv"}, "it trains on mine.csv"),
        ({"command": ["bench", "--model=disc-2"]}, "flags chose its rows (--model=disc-2)"),
        ({"command": ["bench", "--with-peers", "--mode=eager", "--benchmark_filter=x"]}, "filter="),
        ({"complete": (True, True, False)}, "it was not finished, so rows are missing"),
        ({"complete": (True, True, False), "budget": 60}, "with a budget of 60 s, so rows are"),
    ],
)
def test_a_try_never_counts_before_a_whole_sweep(folder, configuration, why):
    files = loading.load_files([folder(**{"complete": (True, True, True), **configuration})])[0]
    shown, rest = newest_per_machine(files)
    assert names(shown) == ["whole"]
    (passed,) = passed_over(shown, rest)
    assert names(passed.files) == ["new"]
    beginning = "new.json of synthetic machine is newer than whole.json, but "
    assert passed.sentence.startswith(beginning) and why in passed.sentence
    assert passed.sentence.endswith(": it does not count.")


def test_the_least_try_counts_where_there_is_nothing_better(write):
    """An interrupted sweep says more than one network, and a quick sweep more than either."""
    for day, (name, complete, changes) in enumerate(
        [
            ("quick", True, {"sweep": "quick"}),
            ("interrupted", False, {}),
            ("one", True, {"command": ["bench", "--model=disc-2"]}),
            ("two", True, {"command": ["bench", "--model=disc-4"]}),
        ],
        1,
    ):
        entries = synthetic.sweep(gpu=False)["benchmarks"]
        document = synthetic.document(entries, date=f"2020-01-0{day}T00:00:00Z", complete=complete)
        document["context"]["crossover"]["configuration"] |= changes
        path = write(document, f"in/{name}.json")
    shown, rest = newest_per_machine(loading.load_files([path.parent])[0])
    assert (names(shown), names(rest)) == (["quick"], ["two", "one", "interrupted"])
    (passed,) = passed_over(shown, rest)
    assert passed.sentence == (
        "two.json and 2 more of synthetic machine are newer than quick.json, but measure less: "
        "they do not count."
    )
    path.with_name("quick.json").unlink()
    assert names(newest_per_machine(loading.load_files([path.parent])[0])[0]) == ["interrupted"]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_report_shows_the_complete_file_and_names_the_other(folder, tmp_path, shell):
    printed = shell("report", folder(), "-o", tmp_path / "out", "--summary")
    assert printed.err.startswith(SHORT) and printed.err.count("\n") == 1
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert (
        SHORT in page
        and "measured on 2020-01-02" in page
        and "Older files of the same machines: 1." in page
    )
    assert "does not answer for" not in page
    shell("report", tmp_path / "in" / "new.json", "-o", tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "new.json does not answer for its machine" in page


def test_a_section_shows_older_files_where_the_newest_lacks_it(read):
    """Files that answer other questions stand beside each other, section by section."""
    newest = read(synthetic.sweep(gpu=False), "newest.json")
    one_pass = [entry for model in ("disc-5", "heart") for entry in passes(model, 1, "cpu")]
    older = [
        read(synthetic.document(one_pass), "passes.json"),
        read(synthetic_peers.document(synthetic_peers.on_both(("disc-2",))), "peers.json"),
    ]
    context = Context(older=tuple(older), draws=False)
    named = {
        build: [block.machine for block in section.blocks]
        for build in (training.epochs, training.passes, peers.build, copies.build)
        if (section := build([newest], context))
    }
    assert named == {
        training.epochs: ["synthetic machine"],
        training.passes: ["synthetic machine, passes.json"],
        peers.build: ["synthetic machine, peers.json"],
    }
    gpus = replace(newest, machine=replace(newest.machine, gpu="another"))
    assert training.passes([gpus], context) is None


@pytest.mark.parametrize("command", ["times", "why"])
def test_of_a_folder_one_file_counts_and_named_ones_always(command, folder, capsys):
    place = folder()
    main([command, str(place)])
    of_a_folder, told = capsys.readouterr()
    assert SHORT in told
    main([command, str(place / "whole.json")])
    assert capsys.readouterr().out == of_a_folder
    main([command, str(place / "new.json"), str(place)])
    more, told = capsys.readouterr()
    assert SHORT not in told and len(more) > len(of_a_folder)


@pytest.mark.parametrize(
    "command", [["crossover", "--summary"], ["advise", "--cost=COST"], ["shi"], ["predict"]]
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
