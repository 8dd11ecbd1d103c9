# SPDX-License-Identifier: Apache-2.0
"""The answer in words, from comparisons that are given."""

from __future__ import annotations

import numpy as np
import pytest

from plots import loading
from plots.analysis.crossover import Comparison, Crossover, Curve
from plots.page.sections import verdict
from plots.tests import synthetic


def comparison(kind: str, size: float | None, words: str, **gpu: str) -> Comparison:
    """A comparison of epochs whose answer is `words`; `gpu` says how the GPU computes."""
    common = {"family": "Epoch", "batch": "100", "precision": gpu.pop("precision", "f32")}
    threads = gpu.pop("cpu_threads", "best")
    samples = (np.array([1.0]),)
    sizes = np.array([22.0])
    return Comparison(
        common,
        gpu.pop("measure", "parameters"),
        Curve("CPU", {"device": "cpu", "cpu_threads": threads}, sizes, samples),
        Curve("GPU", {"device": "cuda", **gpu}, sizes, samples),
        Crossover(kind, size, None, None, (), words),
    )


RESIDENT = {"execution": "graph", "data": "resident"}
PINNED = {"execution": "eager", "data": "pinned"}


def test_the_headline_is_the_earliest_win_with_and_without_copies():
    late, early = (comparison("once", size, "", **RESIDENT) for size in (9e5, 1e5))
    never = comparison("never", None, "", **PINNED)
    copied = comparison("once", 2e6, "", **{**PINNED, "execution": "graph"})
    others = [
        comparison("always", None, "", **RESIDENT, precision="bf16"),
        comparison("always", None, "", **RESIDENT, cpu_threads="1"),
        comparison("always", None, "", **RESIDENT, measure="size"),
        comparison("always", None, "", **RESIDENT, loss="step"),
    ]
    found = verdict.headline([*others, late, never, early, copied])
    assert [one for _, one in found] == [early, copied]


def test_a_file_without_a_best_of_threads_still_has_a_headline():
    only = comparison("once", 1e5, "", **RESIDENT, cpu_threads="1")
    assert [one for _, one in verdict.headline([only])] == [only]


@pytest.mark.parametrize(
    ("kind", "words", "expected"),
    [
        ("once", "from 703,000 parameters (5 to 9)", "wins from 703,000 parameters (5 to 9)."),
        ("always", "GPU always", "wins at every size measured."),
        ("never", "never up to 9", "wins at no size measured (never up to 9)."),
        ("several", "crosses 3 times: a, b, c", "the lead crosses 3 times: a, b, c."),
        ("ambiguous", "ambiguous: noise", "compares with the CPU so: ambiguous: noise."),
    ],
)
def test_each_kind_of_answer_is_a_sentence(write, kind, words, expected):
    one = comparison(kind, 1.0, words, **RESIDENT)
    said, more = verdict.sentences(loading.load_file(write(synthetic.sweep())), [one])
    assert said.startswith("With the data on it (graph, resident), the GPU ")
    assert expected in said
    assert "the GPU is 53.7 times as fast" in more


def test_nothing_to_compare_is_said(write):
    cpu = synthetic.samples(synthetic.cpu_configuration("disc-3", 1))
    gpu = synthetic.samples(synthetic.gpu_configuration("disc-4"))
    for entries, expected in (
        (cpu + gpu, "nothing to compare"),
        (gpu, "Only the GPU was measured"),
        ([synthetic.failure(synthetic.cpu_configuration("disc-3", 1), "why")], "no answer"),
    ):
        document = synthetic.document(entries, gpu="synthetic GPU")
        (said,) = verdict.sentences(loading.load_file(write(document)), [])
        assert expected in said
