# SPDX-License-Identifier: Apache-2.0
"""From how many copies of a network on, trained at once, the GPU wins. Nobody measured any time
here."""

import re
from pathlib import Path
from typing import Any

import pytest

from plots.cli import main
from plots.core.crossover import comparisons
from plots.core.page.section import Context
from plots.features.answer.glance import glance
from plots.features.copies import section
from plots.features.copies.analysis import copies_of, copies_sentences, copies_table, over_copies
from plots.features.peers.analysis import pairs
from plots.file.rows import File
from plots.file.samples import long_table
from plots.tests import synthetic
from plots.tests.synthetic_sweep import epochs

COPIES = (1, 4, 16, 64)
AT = 10  # copies: there the CPU, whose time grows with them, takes as long as the GPU
MODELS = ("disc-4", "disc-5")


def ways(model: str, copies: int, *, gpu: bool = True) -> list[dict[str, str]]:
    own = {} if copies == 1 else {"copies": str(copies)}
    cpu = [synthetic.cpu_configuration(model, threads) for threads in (1, 2)]
    gpus = [synthetic.gpu_configuration(model, "graph", "resident")] if gpu else []
    return [{**one, **own} for one in (*cpu, *gpus)]


def seconds(way: dict[str, str], _params: float) -> float:
    copies = int(way.get("copies", "1"))
    if way["device"] == "cuda":
        return 1e-3
    threads = min(int(way["cpu_threads"]), copies)
    return 1e-3 * copies / AT * 2 / threads if copies > 1 else 2e-3 / AT


def document(*, gpu: bool = True) -> dict[str, Any]:
    configurations = [
        one for model in MODELS for copies in COPIES for one in ways(model, copies, gpu=gpu)
    ]
    return synthetic.document(epochs(configurations, seconds), gpu="synthetic GPU" if gpu else None)


def sentences_of(file: File) -> list[str]:
    return copies_sentences(file, over_copies(file))


def test_the_gpu_wins_from_as_many_copies_as_it_takes(read):
    found = over_copies(read(document()))
    assert [one.model for one in found] == list(MODELS)
    for one in found:
        assert one.measure == "copies"
        assert one.crossover.size == pytest.approx(AT, rel=0.1)
        assert one.crossover.low < AT < one.crossover.high
    first, _ = sentences_of(read(document()))
    assert first.startswith("disc-4, batch 100: with copies of it trained at once, the GPU wins ")
    assert re.fullmatch(r".*from [\d.]+ copies \([\d.]+ to [\d.]+\)\.", first)


def test_copies_are_no_rows_of_one_network(read):
    file = read(document())
    assert {row.copies for row in file.rows} == {1}
    assert {row.copies for row in file.copies} == {4, 16, 64}
    assert {one.measure for one in comparisons(file)} == {"parameters"}


def test_without_a_gpu_it_says_what_a_copy_takes(read):
    file = read(document(gpu=False))
    assert over_copies(file) == []
    first, second = sentences_of(file)
    assert first.startswith("disc-4, batch 100: 64 copies at once take 3")
    assert re.fullmatch(
        r".* times as long as one, 1\d\d µs a copy instead of [\d.]+ µs, on the CPU\.", first
    )
    assert second.startswith("disc-5")


def test_each_number_of_copies_has_a_line(read):
    file = read(document())
    table = copies_table(file, copies_of(file))
    records = table.records()
    assert [record["copies"] for record in records] == [*COPIES, *COPIES]
    for record in records:
        assert record["speedup"] == pytest.approx(
            record["cpu_seconds"] / record["gpu_seconds"], rel=1e-9
        )
        assert record["gpu_seconds_a_copy"] == record["gpu_seconds"] / record["copies"]
    assert records[1]["cpu_how"] == "2 threads"


def test_a_section_shows_them(read):
    shown = section.build([read(document())], Context())
    (block,) = shown.blocks
    assert len(block.points) == len(block.pictures) == len(MODELS)
    assert (
        section.build([read(synthetic.document(epochs(ways("disc-4", 1), seconds)))], Context())
        is None
    )


def test_a_peers_copies_stand_beside_ours(read):
    configurations = ways("disc-4", 4)[:1]
    theirs = [{**configurations[0], "program": "pytorch"}]
    file = read(
        synthetic.document(epochs(configurations, seconds) + epochs(theirs, seconds), gpu=None)
    )
    (pair,) = pairs(file)
    assert pair.ours.copies == pair.theirs.copies == 4


def test_the_command_prints_and_draws(write, tmp_path, capsys):
    path = write(document())
    assert main(["crossover", "--copies", str(path), "--charts", str(tmp_path / "charts")]) == 0
    said = capsys.readouterr().out
    assert "with copies of it trained at once" in said and "a copy" in said
    assert len(list((tmp_path / "charts").glob("*.png"))) == len(MODELS)
    assert main(["crossover", "--copies", str(write(synthetic.document([])))]) in (0, 2)
    assert "no network was trained in copies" in capsys.readouterr().err


def test_they_are_compared_by_what_they_cost(write, capsys):
    path = str(write(document()))
    prices = ["--of=cost", "--price", "cpu=0.10/h", "--price", "gpu=0.20/h"]
    assert main(["crossover", "--copies", path, *prices]) == 0
    said = capsys.readouterr().out
    assert "with copies of it trained at once, the GPU costs less from 19.8 co" in said
    assert "cost of one epoch" in said and "CPU cost / GPU cost" in said
    alone = str(write(document(gpu=False), "alone.json"))
    assert main(["crossover", "--copies", alone, "--of=cost", "--price", "cpu=0.10/h"]) == 0
    assert "copies at once have 3" in capsys.readouterr().out
    assert main(["report", path, "-o", f"{path}.page", *prices]) == 0
    page = (Path(f"{path}.page") / "index.html").read_text(encoding="utf-8")
    assert "trained at once, the GPU costs less." in page


def test_copies_count_among_the_samples_and_in_doubt(read):
    file = read(document())
    assert {row.instances.spread for row in file.copies} == {
        row.instances.spread for row in file.rows
    }
    assert set(long_table([file]).columns["copies"]) == {None, "4", "16", "64"}


def test_a_file_of_copies_alone_is_read(write, tmp_path, capsys):
    configurations = [one for copies in (4, 16) for one in ways("disc-4", copies)]
    path = str(write(synthetic.document(epochs(configurations, seconds), gpu="synthetic GPU")))
    assert main(["crossover", path]) == 0
    assert "it has copies of networks alone; crossover --copies compares" in capsys.readouterr().err
    assert main(["report", path, "-o", str(tmp_path / "page")]) == 0
    assert "Many networks at once" in (tmp_path / "page" / "index.html").read_text("utf-8")
    assert main(["validate", path]) == 0
    assert "6 rows" in capsys.readouterr().out


def test_copies_answer_where_no_sizes_do(read):
    file = read(synthetic.document(epochs([*ways("disc-4", 1), *ways("disc-4", 64)], seconds)))
    shown = glance(file, comparisons(file))
    assert shown.sentence.startswith("The GPU wins from ")
    assert shown.sentence.endswith(" copies, training copies of disc-4 at once.") or (
        "), training copies of disc-4 at once." in shown.sentence
    )
    assert shown.strips.title == "From how many copies of a network does a GPU win?"
