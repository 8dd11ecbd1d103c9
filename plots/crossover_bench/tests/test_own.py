# SPDX-License-Identifier: Apache-2.0
"""A network of one's own: every program and card beside the CPU, from where on one wins, and the
section that opens the page with it."""

import json
import re
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from crossover_bench.answers.advise import own_section
from crossover_bench.answers.advise.advice import (
    Adviser,
    OwnNetwork,
    Size,
    first_win,
    own_network,
    own_networks,
    rows_of,
)
from crossover_bench.answers.advise.analysis import Prediction
from crossover_bench.answers.advise.table import own_block, own_sentences, own_table
from crossover_bench.answers.predict.answer import Predictions
from crossover_bench.counts.cards import load_cards
from crossover_bench.counts.cost import Cost
from crossover_bench.counts.mlp import Mlp
from crossover_bench.files.rows import File
from crossover_bench.show.page.page import render_page
from crossover_bench.show.page.section import Context, Section
from crossover_bench.show.page.text import text_of
from crossover_bench.tests import synthetic, synthetic_peers

NAMES = {"minex0.5": 8, "mine": 16, "minex200": 3200}
BATCHES = (10, 100)
SLOWER = {"pytorch": 3.0, "jax": 2.0}


def network(name: str, batch: int) -> Mlp:
    return Mlp((8, NAMES[name], 3), batch, 1000, name=name)


def count(name: str, batch: int) -> Cost:
    """As bench counts it, with memory of one's own."""
    cost = network(name, batch).cost()
    memory = {"cpu": {"bytes": 3 * 2**20}, "cuda": {"bytes": 7 * 2**30, "workspace_bytes": 2**20}}
    return replace(cost, fields={**cost.fields, "device_bytes": memory})


def measured() -> list[dict]:
    entries = []
    for name in NAMES:
        for batch in BATCHES:
            ours = synthetic.cpu_configuration(name, 1, batch)
            params = network(name, batch).params
            time = 2e-5 + 1e-7 * params
            known = {"params": params, "rows": 1000}
            entries += synthetic.samples(ours, [time] * 9, **known)
            for program, slower in SLOWER.items():
                theirs = synthetic_peers.theirs(ours, program=program)
                entries += synthetic.samples(theirs, [slower * time] * 9, **known)
    return entries


@pytest.fixture
def file(read) -> File:
    document = synthetic.document(measured())
    crossover = document["context"]["crossover"]
    crossover["configuration"]["command"] = ["bench", "--network=mine.json", "--scale=0.5,1,200"]
    training = {"rows": 1000, "batch": 100, "optimizer": "sgd", "learning_rate": 0.01}
    crossover["networks"] = [{"name": name, "training": training} for name in NAMES]
    crossover["ladders"] = {"mine": list(NAMES), "disc": ["disc-2"]}
    return read(document)


def asked(file: File, fitted) -> tuple[OwnNetwork, Adviser]:
    cards = [load_cards()[name] for name in ("rtx-4060", "h200")]
    adviser = Adviser(file, cards=cards, fit=fitted)
    adviser.series = []  # no other network tells of this one: its own rows alone answer
    return own_network(file, adviser, count("mine", 100), count), adviser


def printed(answer: OwnNetwork, adviser: Adviser) -> str:
    block = own_block(answer, own_sentences(answer, adviser), own_table(answer))
    return text_of([Section("Advice", "advice", blocks=(block,))])


def test_one_screen_has_every_program_and_card(file, fitted, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    answer, adviser = asked(file, fitted)
    text = printed(answer, adviser)
    assert max(map(len, text.splitlines())) <= 80 and text.count("\n") <= 25
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    assert "40 µs" in lines["CPU, 1 thread"]  # of 195 parameters
    assert "120 µs" in lines["PyTorch, 1 thread"] and "slower" in lines["PyTorch, 1 thread"]
    assert "79 µs" in lines["JAX, 1 thread"]
    assert "predicted" in lines["RTX 4060, predicted"]
    joined = " ".join(text.split())
    assert "(measured: batch 10, 100)" in joined and "(measured: scale 0.5, 1, 200)" in joined
    assert "Memory: 3 MiB here, 7 GiB on a GPU with 1 MiB for its libraries: all" in joined
    assert "That is more than" not in joined
    # A GPU wins where its whole band is below.
    assert [size.cost.model for size in answer.sizes[::2]] == list(NAMES)
    assert [place for place, _ in answer.batches] == list(BATCHES)
    assert [size.winner("rtx-4060") for _, size in answer.widths] == ["cpu", None, "gpu"]
    strip = own_section.strips_over(answer, "parameters").strips[0]
    assert [mark.side for mark in strip.marks] == ["cpu", "open", "gpu"]
    assert [each.side for each in strip.segments] == ["open"] and strip.is_predicted
    (sentence,) = [sentence for sentence in own_sentences(answer, adviser) if "scale" in sentence]
    assert sentence.startswith("With our own programs, each of these GPUs wins from scale 200 (")
    assert sentence.endswith(" parameters) on (measured: scale 0.5, 1, 200).")


def test_a_card_whose_memory_does_not_suffice_has_no_time(file, fitted):
    short = {**load_cards()["rtx-4060"].figures, "memory_bytes": 6 * 2**30}
    answer, adviser = asked(file, fitted)
    small = replace(load_cards()["rtx-4060"], figures=short)
    adviser.cards = tuple(small if card.id == small.id else card for card in adviser.cards)
    answer = own_network(file, adviser, answer.cost, count)
    joined = " ".join(printed(answer, adviser).split())
    assert "RTX 4060, predicted" not in joined and "H200 SXM 141 GB, predicted" in joined
    assert "No prediction for RTX 4060: its memory does not hold what training takes" in joined
    assert (
        "That is more than the RTX 4060 has" in joined
        and "H200" not in joined.split("That is")[1].split("mine:")[0]
    )


def of(seconds: float, device: str) -> Prediction:
    return Prediction(device, device, device, "resident", seconds, seconds, seconds)


@pytest.mark.parametrize(
    ("times", "place"),
    [([2, 3], 0), ([0.5, 2], 1), ([2, 0.5, 2], 2), ([2, 0.5], inf), ([1, 1], inf)],
)
def test_where_it_wins_from_on(times, place):
    cost = count("mine", 100)
    line = [Size(cost, of(time, "cpu"), (of(1, "card"),)) for time in times]
    assert first_win(line, "card") == place


def test_which_networks_are_ones_own(file):
    assert own_networks(file) == ["mine"]
    run = replace(file.run, command=("bench", "--network=mine.json", "--model=mine"))
    named = dict.fromkeys(("mine", "disc-2"), "{}")
    assert own_networks(replace(file, run=run, networks=named)) == []
    assert rows_of(file, "min") == []
    assert list(dict.fromkeys(row.model for row in rows_of(file, "mine"))) == list(NAMES)
    plain = replace(file.run, command=("bench", "--sweep=quick"))
    assert own_networks(replace(file, run=plain)) == []


@pytest.mark.usefixtures("undrawn")
def test_the_page_says_what_the_screen_says(file, fitted, monkeypatch, tmp_path):
    monkeypatch.setattr(own_section, "BENCH_PATH", Path(__file__))
    monkeypatch.setattr(own_section, "described_cost", counted)
    made = own_section.build([file], Context(predictions=Predictions(fitted)))
    assert made is not None
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", render_page([made])))
    assert "With our own programs, 40 µs here (1 thread)" in page
    assert "wins from scale 200" in page and "RTX 4090, predicted" in page
    by_batch, by_size = (picture.alt for picture in made.blocks[0].pictures)
    assert by_batch.startswith("From which batch size does a GPU win, on a logarithmic scale")
    assert by_size.startswith("From which network size does a GPU win")
    monkeypatch.setattr(own_section, "BENCH_PATH", tmp_path / "none")
    made = own_section.build([file], Context(predictions=Predictions(fitted)))
    shown = text_of([made], every=True)
    assert "because bench is not built here" in " ".join(shown.split()) and "predicted" not in shown
    assert not made.blocks[0].pictures


def counted(text: str, flags: tuple[str, ...], bench: Path) -> Cost:
    given = dict(flag.split("=") for flag in flags)
    assert given["--rows"] == "1000" and bench == Path(__file__)
    return count(json.loads(text)["name"], int(given["--batch"]))
