# SPDX-License-Identifier: Apache-2.0
"""What `advise` says of PyTorch's loop: measured where the file has it, else predicted."""

import re
from pathlib import Path

import pytest

from crossover_bench.answers.advise.advice import Adviser, Network, winner
from crossover_bench.answers.advise.pytorch import InPyTorch
from crossover_bench.answers.advise.table import both
from crossover_bench.counts.cards import load_cards
from crossover_bench.counts.costs import kept_cost
from crossover_bench.counts.mlp import Mlp, of_size
from crossover_bench.files import loading
from crossover_bench.files.rows import File

RESULTS = Path(__file__).parents[3] / "results"
CARDS = (load_cards()["l4"],)


@pytest.fixture(scope="module")
def file() -> File:
    """Of a CPU on which PyTorch trained the whole ladder, lstm and more."""
    return loading.load_file(RESULTS / "intel-xeon-6-207-2c" / "2026-11-22-9aa0c79.json")


def of_params(file: File, fitted, params: int, precision: str = "f32") -> InPyTorch | None:
    adviser = Adviser(file, precision, cards=CARDS, fit=fitted)
    mlp = Mlp(of_size(params), precision=precision)
    network = Network(mlp.cost(), mlp)
    return adviser.in_pytorch(network, adviser.advice(network))


def test_both_sides_are_predicted_with_one_draw_of_the_host(file, fitted):
    """So that a side may be surely ahead where the bands overlap."""
    times = [of_params(file, fitted, 10**power) for power in range(2, 8)]
    sides = [each.side for each in times]
    assert sides[0] == "cpu" and sides[-1] == "gpu"
    surely = [side for side in sides if side]
    assert surely == sorted(surely)  # the CPU first
    assert any(each.side and winner(each.cpu, each.gpus[0]) is None for each in times)
    assert of_params(file, fitted, 1000, "bf16") is None


def test_a_network_that_pytorch_trained_here_is_as_measured(file, fitted):
    adviser = Adviser(file, cards=CARDS, fit=fitted)
    network = Network(kept_cost("lstm"))
    theirs = adviser.in_pytorch(network, adviser.advice(network))
    rows = [row for row in file.peers if row.model == "lstm" and row.execution == "eager"]
    fastest = min(rows, key=lambda row: row.median)
    assert theirs.cpu.name == "measured"
    step = theirs.cpu.middle / network.cost.fields["steps"]
    assert fastest.minimum <= step <= fastest.maximum


def test_the_sentence_of_pytorch_comes_first_and_each_says_whose_it_is(file, fitted):
    adviser = Adviser(file, cards=CARDS, fit=fitted)
    mlp = Mlp((784, 512, 10))
    advice = adviser.advice(Network(mlp.cost(), mlp))
    first, second = both(advice, adviser.in_pytorch(advice.network, advice)).split(". ")
    assert first.startswith("In PyTorch's own loop, 1 epoch of 1,000 rows: ")
    assert " here (predicted), " in first and " on an L4: " in first
    assert re.match(r"With our own programs, [\d.]+ to [\d.]+ ms here \(", second)
    assert both(advice, None).startswith("With our own programs, 1 epoch of 1,000 rows: ")
