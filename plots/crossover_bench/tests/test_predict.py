# SPDX-License-Identifier: Apache-2.0
"""Predictions for the machine of a file: bands, crossovers, and where nothing is predicted."""

import math
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest

from crossover_bench.answers.predict import analysis as predict
from crossover_bench.answers.predict.analysis import (
    DEFAULT_CARDS,
    Outlook,
    Wanted,
    operations_of,
    outlooks,
    predict_times,
    step_draws,
)
from crossover_bench.answers.predict.answer import ends, sentences, verdicts
from crossover_bench.answers.predict.cards import chosen_cards
from crossover_bench.answers.predict.data import measured
from crossover_bench.answers.predict.fit import Fit
from crossover_bench.answers.predict.model import CEILINGS
from crossover_bench.answers.predict.simulate import Errors, Times
from crossover_bench.answers.predict.simulate import ends as simulated
from crossover_bench.answers.predict.ways import PERSISTENT, WAYS, Estimate, Way
from crossover_bench.counts.cards import Card, load_cards
from crossover_bench.counts.cost import Operation
from crossover_bench.counts.costs import cost_of
from crossover_bench.counts.mlp import Mlp
from crossover_bench.curves.crossover import banded_crossover, comparisons
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.curves import SCALES, pairings
from crossover_bench.curves.network import epoch_rows
from crossover_bench.files import loading
from crossover_bench.files.families import EPOCH, steps_of
from crossover_bench.files.rows import File
from crossover_bench.tests import synthetic, synthetic_machine, synthetic_steps
from crossover_bench.tests.test_predict_model import bytes_of, changed, kept
from crossover_bench.words import units

CARDS = load_cards()
RESULTS = Path(__file__).parents[3] / "results"
RESIDENT = (Way("graph", "resident"),)
EAGER = Way("eager", "resident")
CPU = {"modes": (), "models": tuple(m for m in synthetic.MODELS if m.startswith(("disc", "heart")))}


@pytest.fixture
def file(read) -> File:
    """A machine without a GPU, on one and two threads, which starts a network quickly."""
    file = read(synthetic_machine.machine(**CPU))
    return replace(file, rows=tuple(replace(row, samples=0.3 * row.samples) for row in file.rows))


def faster(card: Card, factor: float) -> Card:
    """`card` with all its rates times `factor`."""
    rates = ("memory_bytes_per_second", "link_bytes_per_second", *CEILINGS.values())
    return changed(card, **dict.fromkeys(rates, factor))


def outlook(file: File, fitted: Fit, card: Card, way: Way = RESIDENT[0]) -> Outlook:
    (predicted,) = outlooks(file, fitted, Wanted((card,), (way,)))
    return predicted


# --- times


@pytest.mark.parametrize("network", [("disc-2", 100), ("disc-12", 100), ("lstm", 128)])
def test_the_band_holds_the_point_and_the_factor(fitted, network):
    cost = kept(*network)
    for card in CARDS.values():
        for way in WAYS:
            answer = predict_times(fitted, cost, card, way, 10)
            if isinstance(answer, str):
                assert way.data != "resident" and "link" in answer
                continue
            assert 0 < answer.low < answer.seconds < answer.high
            assert answer.high / answer.low > 1.3
            if network[0] == "disc-12" and card.compute_capability == "5.2":  # hardly any launches
                factor = math.exp(fitted.errors.half_width(0.6, 0.3))
                assert answer.high / answer.seconds == pytest.approx(factor, rel=0.15)


H200 = RESULTS / "intel-xeon-6-207-16c" / "2026-11-27-7050029.json"


def test_what_one_kernel_saves_is_what_it_saved_on_an_h200(fitted):
    plain = {"device": "cuda", "precision": "f32", "data": "resident", "products": None}
    rows = {
        (row.model, row.configuration["execution"]): row
        for row in epoch_rows(loading.load_file(H200))
        if all(row.configuration.get(key) == value for key, value in plain.items())
    }
    sizes = {row.counters["params"]: model for (model, _), row in rows.items()}
    for size, share in PERSISTENT:
        kernel, graph = (rows[sizes[size], name] for name in ("persistent", "graph-epoch"))
        assert share == pytest.approx(kernel.median / graph.median, abs=0.01)
    for (model, execution), row in rows.items():
        if execution == "auto":
            cost, way = kept(model, row.counters["batch"], "f32"), Way("auto", "resident")
            times = predict_times(fitted, cost, CARDS["h200"], way, steps_of(row))
            assert times.low <= row.median <= times.high, model


def test_graphs_that_an_h200_trained_lie_in_the_band(fitted):
    """Of what was published, and of our launches, which that card taught: no test of another."""
    file = loading.load_file(H200)
    steps = [step for step in measured(file, CARDS) if step.precision == "f32" and step.way]
    graphs = [step for step in steps if step.way.execution != "eager"]
    assert len(graphs) > 30
    for step in graphs:
        cost = kept(step.network, step.batch, step.precision)
        times = predict_times(fitted, cost, CARDS[step.card], step.way, step.steps)
        assert isinstance(times, Times)
        assert times.low <= step.seconds * step.steps <= times.high, (step.network, step.label)


def test_the_clock_of_a_laptop_makes_the_band_wider(fitted):
    card, cost = CARDS["rtx-4060-laptop"], kept("alexnet-s", 16)
    wide, narrow = (
        predict_times(fitted, cost, replace(card, kind=kind), EAGER, 1)
        for kind in ("laptop", "desktop")
    )
    assert wide.high / wide.low > 1.04 * narrow.high / narrow.low
    assert wide.high > narrow.high and wide.low < narrow.low


def test_a_faster_card_is_never_slower(fitted):
    for network in (("disc-4", 100), ("disc-10", 100), ("resnet-56", 128)):
        cost = kept(*network)
        for card in ("l4", "h200", "gtx-1080"):
            before = Times(np.inf, np.inf, np.inf)
            for factor in (0.3, 1.0, 1.1, 3.0, 100.0):
                now = predict_times(fitted, cost, faster(CARDS[card], factor), WAYS[1], 10)
                assert now.low <= before.low
                assert now.seconds <= before.seconds and now.high <= before.high
                before = now


def test_a_step_without_update_moves_a_share_of_it():
    """The first step of several for one update has none; an epoch's bytes tell what is missing."""
    cost = kept("fcn-s", 64)
    without = tuple(operation for operation in cost.operations if operation.kind != "update")
    moved = bytes_of(cost, "update")
    first = bytes_of(cost) - moved
    epoch = {**cost.fields["epoch"], "bytes": cost.fields["steps"] * (first + moved / 4)}
    fields = {**cost.fields, "epoch": epoch}
    rare = replace(cost, accumulate=4, operations=without, fields=fields)
    assert predict.with_updates(cost) is cost
    assert bytes_of(predict.with_updates(rare)) == pytest.approx(first + moved / 4)


def test_what_a_memory_does_not_hold_is_said_instead_of_a_time(fitted):
    cost = kept("resnet-50", 448, "f16")
    planned = cost.fields["device_bytes"]["cuda"]["bytes"]
    for name, card in CARDS.items():
        answer = predict_times(fitted, cost, card, EAGER, 1)
        if card.figure("f16_flops"):
            fits = planned <= card.figure("memory_bytes")
            assert isinstance(answer, Times) if fits else answer == predict.TOO_LARGE, name


def test_a_framework_s_own_count_decides(fitted):
    """Of a step with a thousand more operations the processor takes so much longer, and of written
    out attention the device; one without any takes what a step takes beside them."""
    card, cost = CARDS["rtx-4090"], kept("gpt-64", 12)

    def seconds(operations: tuple[Operation, ...]) -> Times:
        return simulated(step_draws(fitted, operations, "f32", card))

    none = seconds((Operation("copy", 0.0, 4.0, 1.0, ()),))
    assert 1e-4 < none.low < none.seconds < none.high < 1e-3
    views = Operation("view", 0.0, 0.0, 1.0, (), 1000)
    plain, more = map(seconds, (cost.operations, (*cost.operations, views)))
    assert more.seconds - plain.seconds == pytest.approx(1000 * 14e-6, rel=0.2)
    softmax = Operation("softmax", 0.0, 1e12, 1.0, ())
    assert seconds((softmax,)).seconds == pytest.approx(1.6, rel=0.2)
    unknown = step_draws(fitted, (softmax,), "tf32", CARDS["gtx-980"])
    assert unknown == "no source gives its tf32_flops"


def test_an_optimizer_of_pytorch_has_a_pass_for_each_term():
    for optimizer, times in (("sgd", 1), ("momentum", 8 / 5), ("adam", 19 / 7)):
        cost = Mlp((100, 100, 10), 100, 100, optimizer=optimizer).cost()
        theirs = replace(cost, operations=operations_of(cost))
        assert bytes_of(theirs, "update") == pytest.approx(times * bytes_of(cost, "update"))


# --- crossovers


def test_a_crossover_lies_between_those_of_the_ends(file, fitted):
    for card in ("gtx-1080", "l4", "h200"):
        (comparison,) = outlook(file, fitted, CARDS[card], EAGER).crossovers
        crossover = comparison.crossover
        assert crossover.kind == "once"
        assert crossover.low <= crossover.size <= crossover.high
        low, _, high = np.array(comparison.gpu.samples).T
        cpu = np.array([np.median(samples) for samples in comparison.cpu.samples])
        # By hand: below the earliest the CPU beats the fast end, above the latest it loses to the
        # slow one; the synthetic machine's repetitions differ by 0.2 %.
        assert np.all((cpu < low * 1.02)[comparison.cpu.sizes < crossover.low])
        assert np.all((cpu > high * 0.98)[comparison.cpu.sizes > crossover.high])


def test_the_faster_card_never_crosses_later(file, fitted):
    for card in ("gtx-1080", "rtx-4060", "h200"):
        for way in WAYS:
            before = (np.inf, np.inf)
            for factor in (0.05, 0.3, 1.0, 2.0, 10.0):
                (comparison,) = outlook(file, fitted, faster(CARDS[card], factor), way).crossovers
                now = ends(comparison.crossover)
                assert now[0] <= before[0] * 1.0001 and now[1] <= before[1] * 1.0001
                before = now


def test_without_a_band_it_is_the_crossover_of_measured_times(read):
    """Low, point and high alike, as three repetitions that do not differ."""
    file = read(synthetic_machine.machine(noise=0.01))
    (pairing, *_) = pairings(file, {"Epoch": SCALES["Epoch"]})
    flat = tuple(np.full(3, np.median(samples)) for samples in pairing.gpu.samples)
    alike = replace(pairing, gpu=replace(pairing.gpu, samples=flat))
    decisive = (comparison for comparison in comparisons(file) if comparison.cpu.candidates)
    other = next(comparison for comparison in decisive if comparison.gpu.label == pairing.gpu.label)
    crossover = banded_crossover(alike)
    assert crossover.kind == other.crossover.kind == "once"
    assert crossover.size == pytest.approx(other.crossover.size, rel=0.02)
    assert crossover.low <= crossover.size <= crossover.high
    assert crossover.high / crossover.low < 1.1


def test_what_the_band_leaves_open_is_said(file, fitted):
    wide = replace(fitted, errors=Errors(*3 * [Estimate(10.0, 13)]))
    (comparison,) = outlook(file, wide, CARDS["gtx-980"]).crossovers
    assert comparison.crossover.kind == "ambiguous"
    assert "noise" not in crossover_words(comparison.crossover)
    huge = faster(CARDS["b200"], 1e-5)
    (comparison,) = outlook(file, fitted, huge).crossovers
    assert comparison.crossover.kind == "never"
    assert crossover_words(comparison.crossover).startswith("CPU at every size, 22 to ")


# --- files


@pytest.mark.parametrize("way", [RESIDENT[0], Way("eager", "pinned-async")])
def test_all_that_a_cpu_trained_is_predicted_or_why_not(file, read, fitted, way):
    """Epochs, and training steps one by one; of which each takes what predict_times() says."""
    if way.data != "resident":
        file = read(synthetic.document(synthetic_steps.steps(ways=())))
    predicted = outlook(file, fitted, CARDS["l4"], way)
    for network in predicted.networks:
        cost = cost_of(network.model, float(network.batch), "f32", Path("none"))
        steps = float(cost.fields["steps"]) if network.family == EPOCH else 1.0
        times = predict_times(fitted, cost, CARDS["l4"], way, steps)
        assert tuple(network.gpu.samples[0].tolist()) == (times.low, times.seconds, times.high)
        if network.family == EPOCH:  # whose repetitions differ by little
            cpu = float(np.median(network.cpu.samples[0]))
            assert network.ratio == pytest.approx(cpu / times.seconds, rel=0.02)
            assert network.low == pytest.approx(cpu / times.high, rel=0.02)
            assert network.high == pytest.approx(cpu / times.low, rel=0.02)
    told = {(network.model, network.batch) for network in predicted.networks}
    rest = {row.model for row in file.rows if row.model and (row.model, row.batch) not in told}
    assert told and rest == {model for names in predicted.problems.values() for model in names}


def test_the_file_s_own_card_is_not_predicted(read, fitted):
    document = synthetic_machine.machine(models=CPU["models"])
    document["context"]["crossover"]["machine"]["gpu"]["name"] = "NVIDIA L4"
    file = read(document)
    cards = tuple(CARDS[name] for name in DEFAULT_CARDS)
    predicted = outlooks(file, fitted, Wanted(cards, RESIDENT))
    assert [each.card.id for each in predicted] == [name for name in DEFAULT_CARDS if name != "l4"]
    for networks in (each.networks for each in predicted):
        # Against the CPU alone: no measured GPU's row is in it.
        assert all(network.gpu.samples[0][0] < network.gpu.samples[0][2] for network in networks)
        assert len(networks) == len(CPU["models"])


def test_other_networks_of_that_name_and_unusual_training_are_not_predicted(file, fitted):
    other = {
        "disc-5": {"counters": {"params": 807.0}},
        "disc-6": {"configuration": {"loss": "step"}},
    }
    rows = tuple(
        replace(row, **{key: getattr(row, key) | more for key, more in other[row.model].items()})
        if row.configuration.get("model") in other
        else row
        for row in file.rows
    )
    predicted = outlook(replace(file, rows=rows), fitted, CARDS["l4"])
    reasons = {names: reason for reason, names in predicted.problems.items()}
    assert reasons["disc-5",] == "it is not the network of that name here"
    assert "one wait an epoch" in reasons["disc-6",]


def test_unknown_networks_need_bench(read, fitted, monkeypatch, tmp_path):
    monkeypatch.setattr(predict, "BENCH_PATH", tmp_path / "none")
    document = synthetic_machine.machine(modes=(), models=("disc-4", "mlp-784-512-10"))
    document["benchmarks"] += synthetic_steps.steps(["alexnet-r"], batches=(3,), ways=())
    predicted = outlook(read(document), fitted, CARDS["l4"])
    (reason,) = predicted.problems
    assert predicted.problems[reason] == ("alexnet-r",) and "bench is not built" in reason
    assert {network.model for network in predicted.networks} >= {"disc-4", "mlp-784-512-10"}


def test_one_batch_and_a_precision_can_be_asked_for(file, fitted):
    (predicted,) = outlooks(file, fitted, Wanted((CARDS["l4"],), RESIDENT, batch="10"))
    assert [network.model for network in predicted.networks] == ["heart"]
    assert not predicted.crossovers
    (predicted,) = outlooks(file, fitted, Wanted((CARDS["h200"],), RESIDENT, "bf16"))
    (comparison,) = predicted.crossovers
    assert comparison.precision == "bf16 (CPU: f32)"


# --- words


def test_a_headline_takes_the_way_that_is_sure_first_and_one_kernel_second(file, fitted):
    """As a card that drives a display refuses to be kept by one kernel."""
    (verdict,) = verdicts(outlooks(file, fitted, Wanted((CARDS["l4"],))))
    ways = {
        outlook.way: outlook.crossovers[0]
        for outlook in verdict.outlooks
        if outlook.way.data == "resident"
    }
    auto = ways.pop(Way("auto", "resident"))
    assert verdict.auto is auto
    assert verdict.comparison is ways[Way("graph", "resident")]
    assert verdict.chosen.way == min(ways, key=lambda way: ends(ways[way].crossover)[1])
    low, high = ends(auto.crossover)
    assert low == 0 < high < ends(verdict.comparison.crossover)[1]
    most = units.size(high, 2)
    assert f"; at most {most} if one kernel keeps the card; " in sentences([verdict])[0]
    (alone,) = verdicts(outlooks(file, fitted, Wanted((CARDS["l4"],), (Way("auto", "resident"),))))
    assert alone.comparison and not alone.auto and "kernel" not in sentences([alone])[0]


def test_one_kernel_gains_less_for_sure_without_clusters(fitted):
    """disc-6 has a cluster of blocks on an H200."""
    cost, ways = kept("disc-6", 100), [Way(name, "resident") for name in ("auto", "graph-epoch")]
    gains = {}
    for card in ("l4", "h200"):
        both = [predict_times(fitted, cost, CARDS[card], way, 10) for way in ways]
        gains[card] = [auto / graph for auto, graph in zip(*map(astuple, both), strict=True)]
    assert gains["l4"][2] > 1.5 * gains["h200"][2]
    assert gains["l4"][0] == pytest.approx(gains["h200"][0], rel=0.3)


def test_what_a_data_sheet_does_not_say_matters_little(fitted):
    """docs/evidence/prediction.md has figures: a card's name adds less than its band is wide."""
    networks = {
        **{(2, 4, 2): 100, (2, 4, 8, 16, 32, 64, 128, 256, 2): 100, (784, 512, 10): 64},
        **{(1000, 1000, 1000, 10): 1000, (10, 10000, 2): 100, (4096, 4096, 4096, 1000): 512},
    }
    costs = [Mlp(widths, batch, max(1000, batch)).cost() for widths, batch in networks.items()]
    off = []
    for card in CARDS.values():
        if card.year < 2018:
            continue
        figures = {
            "tflops": card.figure("f32_flops") / 1e12,
            "bandwidth": card.figure("memory_bytes_per_second") / 1e9,
            "watts": card.figure("watts"),
        }
        known = (f"{key}:{figure}" for key, figure in figures.items() if figure)
        (sheet,) = chosen_cards(",".join(known))
        for cost in costs:
            named, described = (
                predict_times(fitted, cost, each, RESIDENT[-1], cost.fields["steps"])
                for each in (card, sheet)
            )
            assert named.low < described.seconds < named.high, (card.id, cost.model)
            off.append(math.log(described.seconds / named.seconds))
    assert len(off) > 20 * len(costs)
    assert math.sqrt(np.mean(np.square(off))) < 0.08 and max(map(abs, off)) < 0.3
