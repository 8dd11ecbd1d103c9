# SPDX-License-Identifier: Apache-2.0
"""`validate --strict`: each reason why a file is not fit to be committed, and a fit one."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossover_bench.files import fitness
from crossover_bench.files.shortcomings import FEWEST_REPETITIONS, SWEEPS
from crossover_bench.shell.cli import main
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_answers import pairs

COMMIT = "0123456789" * 4
NAME = "results/a-cpu-2c/2020-01-01-0123456.json"


def fit(**machine: Any) -> dict[str, Any]:
    """A file that is fit where NAME says."""
    document = synthetic.sweep(gpu=False)
    crossover = document["context"]["crossover"]
    crossover["machine"] |= {"id": "a-cpu-2c", **machine}
    crossover["software"]["commit"] = COMMIT
    return document


@pytest.fixture
def strict(write, capsys):
    """Runs `validate --strict` on one document; returns exit code, output and errors."""

    def run(document: dict[str, Any], name: str = NAME) -> tuple[int, str, str]:
        return main(["validate", "--strict", str(write(document, name))]), *capsys.readouterr()

    return run


def test_a_fit_file_is_one_sentence(strict):
    code, out, err = strict(fit())
    assert (code, err) == (0, "") and out.count("\n") == 1
    assert "fit to be committed: 28 rows of a default sweep at commit 0123456" in out
    assert "1 skipped" in out


def of_crossover(part: str, **changes: Any):
    return lambda document: document["context"]["crossover"][part].update(changes)


def busy(document: dict[str, Any]) -> None:
    for place, entry in enumerate(document["benchmarks"]):
        entry["cpu_wait"] = 0.3 + place / 1000


def few_epochs(document: dict[str, Any]) -> None:
    name = document["benchmarks"][0]["name"]
    few = [entry for entry in document["benchmarks"] if entry["name"] == name][:5]
    rest = [entry for entry in document["benchmarks"] if entry["name"] != name]
    document["benchmarks"] = few + rest


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda document: document["context"]["crossover"].update(complete=False), "not finished"),
        (of_crossover("software", commit=""), "does not state its commit"),
        (of_crossover("software", dirty=True), "uncommitted changes"),
        (of_crossover("configuration", sweep="quick"), "sweep is quick"),
        (of_crossover("configuration", sweep="ladder"), "sweep is ladder"),
        (of_crossover("configuration", command=["bench", "--family=Epoch"]), "--family=Epoch"),
        (
            of_crossover("configuration", command=["bench", "--benchmark_filter=disc"]),
            "(--benchmark_filter=disc): leave them out",
        ),
        (of_crossover("configuration", data="mine.csv"), "trains on mine.csv"),
        (of_crossover("configuration", repetitions=5), "5 repetitions"),
        (busy, "other programs used the processors during 27 of 27 Epoch rows: measure again"),
        (few_epochs, "1 Epoch rows have fewer than 9"),
        (of_crossover("machine", id="../up"), "cannot name a folder"),
        (of_crossover("machine", id="another"), "move it to results/another/"),
        (
            lambda document: document["context"].update(date="9999-01-01T00:00:00+00:00"),
            "its date, 9999-01-01, is still to come: set the clock and measure again",
        ),
        (lambda document: document.update(padding="x" * 2_500_000), "a file at most 2,500 kB"),
    ],
)
def test_each_reason_is_named_with_a_remedy(strict, change, reason):
    document = fit()
    change(document)
    code, out, err = strict(document)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "not fit to be committed: " in err and reason in err


def test_a_size_in_between_has_as_many_pairs_as_its_test_took(strict):
    document = fit()
    few_epochs(document)
    size = {"model": "disc-2", "params": 22, "pairs": 3, "ties": 0, "winner": None}
    paired = pairs(sizes=[{**size, "won_by_first": 3}])
    assert "fewer than 9" in strict(document)[2]
    document["context"]["crossover"]["refinements"] = [paired]
    assert strict(document)[0] == 0


def test_a_ladder_answers_for_the_machine_of_a_gpu(strict):
    document = fit(gpu={"name": "H200"}, gpu_reason="")
    of_crossover("configuration", sweep="ladder")(document)
    code, out, err = strict(document)
    assert (code, err) == (0, "") and "of a ladder sweep" in out


def test_what_leaves_the_sweep_whole_may_be_on_the_command_line(strict):
    document = fit()
    words = ["--cuda=off", "--sweep=full", "--out=/some/where.json", "--memory-limit=1000000000"]
    words += ["--benchmark_repetitions=15", "--v=1", "--with-peers", "--mode=eager,compile"]
    of_crossover("configuration", command=["bench", *words], sweep="full")(document)
    assert strict(document)[0] == 0


@pytest.mark.parametrize("name", ["run.json", "2020-01-01-7654321.json"])
def test_the_name_says_date_and_commit(strict, name):
    code, _, err = strict(fit(), f"results/a-cpu-2c/{name}")
    assert code == 2 and "name it 2020-01-01-0123456.json" in err
    assert strict(fit(), "results/a-cpu-2c/2020-01-01-0123456-2.json")[0] == 0


def test_rows_that_failed_are_named_and_need_a_reason(strict):
    document = fit()
    configuration = synthetic.cpu_configuration("disc-3", 7)
    document["benchmarks"].append(synthetic.failure(configuration, "it went wrong"))
    code, out, _ = strict(document)
    assert code == 0 and "1 failed: " in out and "cpu_threads:7 (it went wrong)" in out
    document["benchmarks"][-1]["error_message"] = " "
    code, _, err = strict(document)
    assert code == 2 and "failed without a reason" in err


def test_all_reasons_stand_in_one_sentence_and_good_files_beside_bad_ones(write, shell):
    good = write(fit(), NAME)
    document = fit()
    of_crossover("software", dirty=True)(document)
    of_crossover("configuration", sweep="quick")(document)
    bad = write(document, "results/a-cpu-2c/2020-01-02-0123456.json")
    printed = shell("validate", "--strict", good, bad, code=2)
    assert printed.out.startswith(f"{good}: fit") and printed.err.count("\n") == 1
    assert "uncommitted" in printed.err and "quick" in printed.err


def test_without_strict_a_file_need_only_be_valid(write, shell):
    document = fit()
    of_crossover("software", dirty=True)(document)
    assert "valid, 28 rows" in shell("validate", write(document)).out


def test_rows_of_a_run_that_did_not_finish_are_not_committed(write, shell):
    good = write(fit(), NAME)
    partial = good.with_name("x.json.partial")
    partial.write_text("{}", encoding="utf-8")
    told = f"{partial}: of a run that did not finish"
    assert told in shell("validate", good.parent).out
    printed = shell("validate", "--strict", good.parent, code=2)
    assert printed.out.startswith(f"{good}: fit") and printed.err.startswith(told)


TABLE_OF_2016 = Path(__file__).parents[3] / "results/intel-xeon-6-207-2c/2026-11-22-72b46b1.json"


def without(model: str):
    def change(document: dict[str, Any]) -> None:
        for part in ("rows", "benchmarks"):
            document[part] = [row for row in document[part] if f":{model}/" not in row["name"]]

    return change


def of_command(*flags: str):
    return of_crossover("configuration", command=["bench", *flags])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda document: None, ""),
        (without("lstm"), "it has no result of lstm"),
        (of_command("--family=Peak,Minibatch"), "(--family=Peak,Minibatch)"),
        (
            of_command("--family=Peak,Minibatch", "--model=fcn-r,lstm"),
            "(--family=Peak,Minibatch --model=fcn-r,lstm)",
        ),
    ],
)
def test_the_table_of_2016_may_be_a_file_of_its_own_but_no_part_of_it(read, change, reason):
    document = json.loads(TABLE_OF_2016.read_text(encoding="utf-8"))
    change(document)
    file = read(document, f"{TABLE_OF_2016.parent.name}/{TABLE_OF_2016.name}")
    faults = "; ".join(fitness.faults(file))
    assert reason in faults and bool(faults) == bool(reason)


def test_the_limits_are_those_of_the_readme():
    text = (Path(__file__).parents[3] / "results" / "README.md").read_text(encoding="utf-8")
    section = text[text.index("## Contribute a file") : text.index("## The result file")]
    assert f"at most {fitness.MOST_BYTES / 1e6:g} MB long" in section
    assert f"at least {FEWEST_REPETITIONS} repetitions" in section
    assert all(f"`{sweep}`" in section for sweep in SWEEPS)
