# SPDX-License-Identifier: Apache-2.0
"""What would change the crossover: which changes are found, in which words and order."""

from dataclasses import replace

import numpy as np
import pytest

from plots.core.crossover import Comparison
from plots.features.why import counterfactuals
from plots.file import rows
from plots.tests import synthetic_machine
from plots.tests.synthetic_answers import COMMON, answer, comparison


@pytest.fixture
def load(read):
    """A synthetic machine's file, loaded."""
    return lambda **options: read(synthetic_machine.machine(**options))


def sentences(file: rows.File, *compared: Comparison) -> list[str]:
    return [item.sentence for item in counterfactuals.counterfactuals(file, compared)]


def test_each_change_is_against_the_plainest_like_it(load):
    file = load(modes=())
    found = sentences(
        file,
        comparison(answer(180_000), execution="eager", data="resident"),
        comparison(answer(703_000), execution="eager", data="pinned"),
        comparison(answer(90_000), execution="graph", data="resident"),
    )
    assert found == [
        "with the data resident instead of pinned, the crossover falls from 703,000 to 180,000 "
        "parameters (batch 100, f32, eager)",
        "with CUDA graphs instead of eager, the crossover falls from 180,000 to 90,000 parameters "
        "(batch 100, f32, resident)",
    ]


def test_more_threads_raise_the_crossover(load):
    mode = {"execution": "eager", "data": "resident"}
    (sentence,) = sentences(
        load(modes=()),
        comparison(answer(100_000), threads="2", **mode),
        comparison(answer(50_000), threads="1", **mode),
        comparison(answer(100_000), **mode),
    )[:1]
    assert sentence == (
        "with 2 CPU threads instead of 1, the crossover rises from 50,000 to 100,000 parameters "
        "(batch 100, f32, eager, resident)"
    )


def test_thread_counts_are_compared_on_the_same_gpu_curve(load):
    waited = {"execution": "eager", "data": "resident", "loss": "step"}
    mode = {"execution": "eager", "data": "resident"}
    found = counterfactuals.counterfactuals(
        load(modes=()),
        [
            comparison(answer(size), threads=threads, **way)
            for size, threads, way in (
                (50_000, "1", mode),
                (900_000, "16", waited),
                (100_000, "2", mode),
                (60_000, "1", waited),
            )
        ],
    )
    assert [(item.before.size, item.after.size) for item in found] == [(50_000, 100_000)]


def test_a_change_within_the_uncertainty_is_called_that(load):
    pinned = comparison(answer(703_000, spread=0.4), execution="eager", data="pinned")
    resident = comparison(answer(600_000), execution="eager", data="resident")
    (sentence,) = sentences(load(modes=()), pinned, resident)
    assert "stays within its uncertainty: 600,000 parameters, 703,000 without" in sentence
    open_end = replace(answer(100_000), high=None)  # it may lie beyond the largest size
    (sentence,) = sentences(load(modes=()), pinned, replace(resident, crossover=open_end))
    assert "stays within its uncertainty" in sentence


def test_a_crossover_that_reads_the_same_does_not_move(load):
    pinned = comparison(answer(18_900), execution="eager", data="pinned")
    resident = comparison(answer(18_910), execution="eager", data="resident")
    (sentence,) = sentences(load(modes=()), pinned, resident)
    assert sentence == (
        "with the data resident instead of pinned, the crossover stays at 18,900 parameters "
        "(batch 100, f32, eager)"
    )


def test_answers_without_a_size_are_quoted(load):
    pinned = comparison(answer(703_000), execution="eager", data="pinned")
    resident = comparison(answer(None), execution="eager", data="resident")
    (sentence,) = sentences(load(modes=()), pinned, resident)
    before = "from 703,000 parameters (633,000 to 773,000)"
    after = "GPU at every size measured, 22 to 703,142 parameters"
    assert f"“{after}” instead of “{before}”" in sentence
    (sentence,) = sentences(load(modes=()), replace(resident, gpu=pinned.gpu), resident)
    assert "stays the same: GPU at every size" in sentence


def test_what_matters_most_stands_first(load):
    def ways(batch: str, *sizes: float) -> list[Comparison]:
        modes = (("eager", "pageable"), ("eager", "pinned"), ("eager", "resident"))
        graph = ("graph", "resident")
        return [
            replace(
                comparison(answer(size), execution=execution, data=data),
                common={**COMMON, "batch": batch},
            )
            for (execution, data), size in zip((*modes, graph), sizes, strict=True)
        ]

    other = ways("10", 703_000, 700_000, 2_000, 500)
    own = ways("100", 703_000, 700_000, 180_000, 90_000)
    found = counterfactuals.counterfactuals(load(modes=()), [*other, *own])
    said = [(item.pair.batch, item.change, item.is_sure) for item in found]
    resident = "with the data resident instead of pageable"
    graphs = "with CUDA graphs instead of eager"
    pinned = "with the data in pinned memory instead of pageable"
    assert said == [
        ("100", resident, True),
        ("100", graphs, True),
        ("100", pinned, False),
        ("10", resident, True),
        ("10", graphs, True),
        ("10", pinned, False),
    ]


def test_the_effect_of_an_answer_without_a_size(load):
    never = replace(answer(None), kind="never", winners=(-1,) * 3)
    pinned = comparison(never, execution="eager", data="pinned")
    resident = comparison(answer(None), execution="eager", data="resident")
    (item,) = counterfactuals.counterfactuals(load(modes=()), [pinned, resident])
    assert item.is_sure and item.effect == pytest.approx(np.log(703142 / 22))
    unsure = replace(answer(None), kind="ambiguous")
    pair = [pinned, replace(resident, crossover=unsure)]
    (item,) = counterfactuals.counterfactuals(load(modes=()), pair)
    assert not item.is_sure and item.effect == 0


def test_the_profile_stands_in_for_what_was_not_measured(load, monkeypatch):
    file = load(modes=(("eager", "pinned"),), noise=0.0)
    asked = []
    monkeypatch.setattr(
        counterfactuals,
        "find_crossover",
        lambda cpu, gpu, measure: asked.append(gpu) or answer(500_000),
    )
    pair = comparison(answer(703_000), execution="eager", data="pinned")
    found = counterfactuals.counterfactuals(file, [pair])
    assert [(item.change, item.measured) for item in found] == [
        ("without copies to the GPU", False),
        ("without the time of launches", False),
    ]
    assert "by the profile" in found[0].sentence
    for gpu, part in zip(asked, ("copy_to_device", "launch"), strict=True):
        for model, samples in zip(("disc-2", "disc-6", "disc-10"), gpu.samples, strict=True):
            what = synthetic_machine.counts(model)
            parts = synthetic_machine.profile(what, pair.gpu.configuration)
            assert samples == pytest.approx(1.0 - parts[part], abs=1e-6)


def test_other_families_change_nothing(load):
    pair = comparison(answer(512), execution="eager", data="resident")
    other = replace(pair, common={"family": "Gemm"}, measure="size")
    assert counterfactuals.counterfactuals(load(modes=()), [other]) == []
