# SPDX-License-Identifier: Apache-2.0
"""From how many copies of a network on, trained at once, the GPU wins. Nobody measured any time
here."""

import re
from typing import Any

import pytest

from crossover_bench.answers.answer.glance import glance
from crossover_bench.answers.copies import section
from crossover_bench.answers.copies.analysis import copies_of, copies_sentences, over_copies
from crossover_bench.answers.copies.section import copies_table
from crossover_bench.answers.peers.analysis import pairs
from crossover_bench.curves.crossover import comparisons
from crossover_bench.files.samples import long_table
from crossover_bench.show.page.section import Context
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_sweep import epochs

COPIES = (1, 4, 16, 64)
AT = 10  # copies: there the CPU, whose time grows with them, takes as long as the GPU
MODELS = ("disc-4", "disc-5")


def ways(model: str, copies: int, *, gpu: bool = True) -> list[dict[str, str]]:
    change = {} if copies == 1 else {"copies": str(copies)}
    cpu = [synthetic.cpu_configuration(model, threads) for threads in (1, 2)]
    gpus = [synthetic.gpu_configuration(model, "graph", "resident")] if gpu else []
    return [{**way, **change} for way in (*cpu, *gpus)]


def seconds(way: dict[str, str], _params: float) -> float:
    copies = int(way.get("copies", "1"))
    if way["device"] == "cuda":
        return 1e-3
    threads = min(int(way["cpu_threads"]), copies)
    return 1e-3 * copies / AT * 2 / threads if copies > 1 else 2e-3 / AT


def document(*, gpu: bool = True) -> dict[str, Any]:
    configurations = [
        way for model in MODELS for copies in COPIES for way in ways(model, copies, gpu=gpu)
    ]
    return synthetic.document(epochs(configurations, seconds), gpu="synthetic GPU" if gpu else None)


def test_the_gpu_wins_from_as_many_copies_as_it_takes(read):
    file = read(document())
    compared = over_copies(Study(file))
    assert [pair.model for pair in compared] == list(MODELS)
    for pair in compared:
        assert pair.measure == "copies"
        assert pair.crossover.size == pytest.approx(AT, rel=0.1)
        assert pair.crossover.low < AT < pair.crossover.high
    first, _ = copies_sentences(Study(file))
    assert first.startswith("disc-4, batch 100: with copies of it trained at once, the GPU wins ")
    assert re.fullmatch(r".*from [\d.]+ copies \([\d.]+ to [\d.]+\)\.", first)
    records = copies_table(file, copies_of(file)).records()
    assert [record["copies"] for record in records] == [*COPIES, *COPIES]
    for record in records:
        ratio = record["cpu_seconds"] / record["gpu_seconds"]
        assert record["speedup"] == pytest.approx(ratio, rel=1e-9)
        assert record["gpu_seconds_a_copy"] == record["gpu_seconds"] / record["copies"]
    assert records[1]["cpu_how"] == "2 threads"
    (block,) = section.build([file], Context()).blocks
    assert len(block.points) == len(block.pictures) == len(MODELS)
    assert {row.copies for row in file.rows} == {1}  # copies are no rows of one network
    assert {row.copies for row in file.copies} == {4, 16, 64}
    spreads = [{row.instances.spread for row in rows} for rows in (file.copies, file.rows)]
    assert spreads[0] == spreads[1]
    assert set(long_table([file]).columns["copies"]) == {None, "4", "16", "64"}
    assert {pair.measure for pair in comparisons(file)} == {"parameters"}


def test_without_a_gpu_it_says_what_a_copy_takes(read):
    file = read(document(gpu=False))
    assert over_copies(Study(file)) == []
    first, second = copies_sentences(Study(file))
    assert re.fullmatch(
        r"disc-4, batch 100: 64 copies at once take 3.* times as long as one, 1\d\d µs a copy "
        r"instead of [\d.]+ µs, on the CPU\.",
        first,
    )
    assert second.startswith("disc-5")


def test_a_file_without_copies_has_no_section(read):
    alone = read(synthetic.document(epochs(ways("disc-4", 1), seconds)))
    assert section.build([alone], Context()) is None


def test_a_peers_copies_stand_beside_ours(read):
    configurations = ways("disc-4", 4)[:1]
    theirs = [{**configurations[0], "program": "pytorch"}]
    file = read(
        synthetic.document(epochs(configurations, seconds) + epochs(theirs, seconds), gpu=None)
    )
    (pair,) = pairs(file)
    assert pair.ours.copies == pair.theirs.copies == 4


def test_the_command_prints_and_draws(write, tmp_path, shell):
    charts = tmp_path / "charts"
    printed = shell("crossover", "--copies", write(document()), "--charts", charts).out
    assert "with copies of it trained at once" in printed and "a copy" in printed
    assert len(list(charts.glob("*.png"))) == len(MODELS)
    nothing = shell("crossover", "--copies", write(synthetic.document([])), code=0).err
    assert "no network was trained in copies" in nothing


@pytest.mark.usefixtures("undrawn")
def test_they_are_compared_by_what_they_cost(write, shell, tmp_path):
    path, prices = write(document()), ("--of=cost", "--price=cpu=0.10/h", "--price=gpu=0.20/h")
    printed = shell("crossover", "--copies", path, *prices).out
    assert "with copies of it trained at once, the GPU costs less from 20 co" in printed
    assert "cost of one epoch" in printed and "CPU cost / GPU cost" in printed
    alone = write(document(gpu=False), "alone.json")
    assert "copies at once have 3" in shell("crossover", "--copies", alone, *prices[:2]).out
    shell("report", path, "-o", tmp_path / "page", *prices)
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "trained at once, the GPU costs less." in page


@pytest.mark.usefixtures("undrawn")
def test_a_file_of_copies_alone_is_read(write, tmp_path, shell):
    configurations = [way for copies in (4, 16) for way in ways("disc-4", copies)]
    path = write(synthetic.document(epochs(configurations, seconds), gpu="synthetic GPU"))
    assert "it has copies of networks alone; crossover --copies" in shell("crossover", path).err
    shell("report", path, "-o", tmp_path / "page")
    assert "Many networks at once" in (tmp_path / "page" / "index.html").read_text("utf-8")
    assert "6 rows" in shell("validate", path).out


def test_copies_answer_where_no_sizes_do(read):
    file = read(synthetic.document(epochs([*ways("disc-4", 1), *ways("disc-4", 64)], seconds)))
    shown = glance(Study(file))
    assert shown.sentence.startswith("With our own programs, the GPU wins from ")
    assert re.search(r"( copies|\)), training copies of disc-4 at once\.$", shown.sentence)
    assert shown.strips.title == "From how many copies of a network does a GPU win?"
