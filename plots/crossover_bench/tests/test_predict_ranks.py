# SPDX-License-Identifier: Apache-2.0
"""Several cards that nobody measured: what their sums take, and from which size they would pay."""

import dataclasses

import numpy as np
import pytest

from crossover_bench.answers.predict import analysis, links, ranks
from crossover_bench.answers.predict.analysis import NOT_MEASURED, Wanted
from crossover_bench.answers.predict.links import (
    BUCKET_BYTES,
    LINKS,
    Link,
    Scaling,
    exposed,
    fitted_link,
    link_of,
    load_scaling,
    loss_of,
    lost,
)
from crossover_bench.answers.predict.ranks import Plan, Prospect, plan_sentences, prospect
from crossover_bench.answers.predict.ways import PYTORCH, Band, Estimate, Way
from crossover_bench.counts.cards import load_cards, load_links
from crossover_bench.counts.cost import CostError
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_probes import operation
from crossover_bench.tests.synthetic_sweep import DISC_MODELS

CARDS = load_cards()
NONE = Band(0.0, 0.0)


def a_link(step: float, rate: float = 1e30) -> Link:
    """Of which all is known: a message takes `step` seconds."""
    return Link("wire", NONE, Band(step, step), Band(rate, rate))


@pytest.fixture
def file(read):
    entries = [
        entry
        for model in DISC_MODELS
        for entry in synthetic.samples(synthetic.cpu_configuration(model, 1))
    ]
    return read(synthetic.document(entries, gpu=None))


@pytest.fixture
def known(monkeypatch):
    """A card that takes a picosecond for each parameter and row, and loses nothing."""
    monkeypatch.setattr(
        ranks,
        "predict_draws",
        lambda fit, cost, card, way, steps: np.full(9, steps * 1e-12 * cost.params * cost.batch),
    )
    monkeypatch.setattr(ranks, "loss", lambda: Estimate(0.0, 12))
    monkeypatch.setattr(ranks, "slower", lambda error: np.ones(9))
    monkeypatch.setattr(ranks, "waits", lambda link, ranks, *_: link.seconds(ranks, 0.0)[:9])


def known_prospect(file, link: Link, *counts: int, scaling: str = "strong") -> Prospect:
    plan = Plan(CARDS["h100"], link, counts, scaling)
    return prospect(file, None, Wanted((), (None,)), plan)


def of_parameters(*asked, **options) -> dict[int, ranks.Crossover]:
    parts = known_prospect(*asked, **options).paying
    return {paying.ranks: paying.crossover for paying in parts if paying.batch}


def test_only_the_last_bucket_cannot_hide():
    def one_sum(size: float) -> np.ndarray:
        return np.array(1.0 + size / BUCKET_BYTES)

    assert exposed(one_sum, BUCKET_BYTES, np.array(99.0)) == 2.0
    assert exposed(one_sum, 2.5 * BUCKET_BYTES, np.array(0.0)) == 2 + 2 + 1.5
    assert exposed(one_sum, 2.5 * BUCKET_BYTES, np.array(3.0)) == 1 + 1.5
    assert exposed(one_sum, 2.5 * BUCKET_BYTES, np.array(99.0)) == 1.5
    assert exposed(one_sum, 3 * BUCKET_BYTES, np.array(99.0)) == 2.0


def test_latency_grows_with_the_ring_and_bytes_with_what_each_card_sends():
    link = a_link(1e-6, 1e9)
    assert link.seconds(2, 1e6) == pytest.approx(2e-6 + 1e-3)
    assert link.seconds(8, 1e6) == pytest.approx(14e-6 + 1.75e-3)


def test_the_fit_finds_latency_and_bandwidth():
    sizes, counts = np.array([4.0, 1e3, 1e6, 1e8] * 2), np.array([2.0] * 4 + [4.0] * 4)
    seconds = 2 * (counts - 1) * 3e-6 + 2 * (counts - 1) / counts * sizes / 5e9
    link = fitted_link([*zip(counts, sizes, seconds, strict=True)])
    assert (link.step.low, link.bandwidth.high) == pytest.approx((3e-6, 5e9), rel=1e-4)
    assert link.error.spread < 1e-6
    noisy = fitted_link([*zip(counts, sizes, seconds * np.array([1.2, 0.9] * 4), strict=True)])
    assert 0.1 < noisy.error.spread < 0.25
    assert fitted_link([(2, 4.0, 1e-6), (2, 8.0, 1e-6)]) is None


def test_the_sums_of_a_file_come_before_those_of_others(read):
    entries = []
    for size in (4, 65_536, 16_777_216):
        configuration = {
            **{"family": "Collective", "op": "allreduce", "bytes": str(size)},
            **{"device": "cuda", "ranks": "2"},
        }
        entries += operation(configuration, 2e-5 + size / 1e9, 1, bytes=size, ranks=2)
    file = read(synthetic.document(entries, gpu="NVIDIA H100 80GB HBM3"))
    measured = link_of(CARDS["h100"], file=file)
    assert measured.name == "measured sums" and measured.error
    assert measured.step.low == pytest.approx(1e-5, rel=0.1)
    assert measured.bandwidth.low == pytest.approx(1e9, rel=0.1)
    assert link_of(CARDS["h100"], "pcie4", file).name == LINKS["pcie4"]
    assert link_of(CARDS["h200"], file=file).name == LINKS["nvlink"]


def test_each_card_has_the_links_that_sources_give_it():
    assert {link.id for link in load_links()} == LINKS.keys()
    for link in load_links():
        assert 1e9 < link.low_bytes_per_second <= link.high_bytes_per_second < 1e12
    assert link_of(CARDS["k80"]).name == LINKS["pcie3"]
    assert link_of(CARDS["a100"]).bandwidth == Band(200e9, 235e9)
    half, whole = (link_of(CARDS[name], "pcie4") for name in ("rtx-4060", "rtx-4090"))
    assert half.bandwidth.low == whole.bandwidth.low / 2  # 8 lanes
    with pytest.raises(CostError, match="--link=nvlink: no source gives rtx-4090 one; give one of"):
        link_of(CARDS["rtx-4090"], "nvlink")
    with pytest.raises(CostError, match="its link is not known; give --link=nvlink"):
        link_of(CARDS["jetson-agx-orin"])
    with pytest.raises(CostError, match="is none of nvlink, pcie3"):
        link_of(CARDS["h100"], "string")


def crossing(saved: float, ranks: int) -> float:
    """From where on 2 (R - 1) messages of 5 µs take less than the share `saved` of a step of 100
    rows, between two sizes on a straight line through logarithms."""
    sizes = np.log([synthetic.MODELS[model][0] for model in DISC_MODELS])
    step = 1e-10 * np.exp(sizes)
    gains = np.log(step / ((1 - saved) * step + 2 * (ranks - 1) * 5e-6))
    return float(np.exp(np.interp(0.0, gains, sizes)))


def test_cards_pay_from_where_their_sums_take_what_they_save(file, known):
    link = a_link(5e-6)
    strong = of_parameters(file, link, 2, 4)
    assert strong[2].size == pytest.approx(crossing(1 / 2, 2)) == pytest.approx(200_000, rel=0.1)
    assert strong[4].size == pytest.approx(crossing(3 / 4, 4)) == pytest.approx(400_000, rel=0.1)
    weak = of_parameters(file, link, 2, scaling="weak")
    assert 44_710 < weak[2].size < 176_806  # 100,000 parameters, between two sizes
    assert of_parameters(file, a_link(1.0), 2)[2].kind == "never"
    assert of_parameters(file, a_link(1e-15), 2)[2].kind == "always"


def test_the_batch_that_pays_is_found_for_the_largest_network(file, known):
    predicted = known_prospect(file, a_link(5e-3), 2)
    (batch,) = [paying for paying in predicted.paying if not paying.batch]
    params = max(synthetic.MODELS[model][0] for model in DISC_MODELS)
    assert batch.crossover.size == pytest.approx(2 * 1e-2 / (1e-12 * params), rel=0.1)
    assert any(
        f"2 cards train {batch.networks} faster than 1 card from batch" in sentence
        and sentence.endswith(f"{NOT_MEASURED}.")
        for sentence in plan_sentences(predicted)
    )


def test_figures_of_a_network_belong_together(file, known):
    predicted = known_prospect(file, a_link(5e-6), 4)
    for network in predicted.networks:
        alone, share = network.alone.seconds, network.alone.seconds / 4
        assert network.many.seconds == pytest.approx(share + 10 * 6 * 5e-6)
        assert network.speed_up.seconds == pytest.approx(alone / network.many.seconds)
        assert network.efficiency == pytest.approx(network.speed_up.seconds / 4)
        assert network.exposed == pytest.approx(1 - share / network.many.seconds)
    few = known_prospect(file, a_link(5e-6), 101)
    assert not few.networks and "a batch of 100 has no row for each of 101 cards" in few.problems


def test_a_network_of_ones_own_is_counted_by_its_description(file, known, monkeypatch):
    given: dict[str, set[str]] = {}

    def counted(model, *_, network, rows):
        given.setdefault(model, set()).add(network)

    monkeypatch.setattr(analysis, "cost_of", counted)
    described = dataclasses.replace(file, networks={"disc-3": "{}"})
    known_prospect(described, a_link(5e-6), 2)
    assert given["disc-3"] == {"{}"} and given["disc-4"] == {""}


def test_two_k80_lose_on_a_network_of_mnist(read, fitted, monkeypatch):
    """PyTorch's example for MNIST has 21,840 parameters; here a fully connected one of 21,475."""
    monkeypatch.setitem(synthetic.MODELS, "mlp-784-27-10", (21_475, 64))
    entries = synthetic.samples(synthetic.cpu_configuration("mlp-784-27-10", 1))
    file = read(synthetic.document(entries, gpu=None))
    wanted = Wanted((), (Way("eager", "resident", PYTORCH),))
    two = Plan(CARDS["k80"], link_of(CARDS["k80"]), (2,))
    (network,) = prospect(file, fitted, wanted, two).networks
    assert network.speed_up.high < 1 and network.many.seconds > network.alone.seconds


def test_published_trainings_are_whole():
    trainings = load_scaling()
    assert len(trainings) == 17
    assert all(list(training.rates) == [1, 2, 4, 8] for training in trainings)
    assert {training.link for training in trainings} <= LINKS.keys()
    assert {training.card for training in trainings} <= CARDS.keys()
    vgg = sum(
        9 * a * b + b
        for a, b in [
            *((3, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256), (256, 256)),
            *((256, 512), (512, 512), (512, 512), (512, 512), (512, 512), (512, 512)),
        ]
    )
    vgg += sum((a + 1) * b for a, b in [(25_088, 4096), (4096, 4096), (4096, 1000)])
    assert {each.params for each in trainings if each.network == "vgg16"} == {vgg}
    assert {each.params for each in trainings if each.network == "resnet-50"} == {25_557_032}


def test_what_is_lost_is_what_the_model_does_not_explain(monkeypatch):
    monkeypatch.setattr(links, "link_of", lambda *_: a_link(0.0))
    perfect = Scaling("a", 1000, 10, "k80", "m", "pcie3", "x", {1: 10.0, 2: 20.0})
    slow = Scaling("b", 1000, 10, "k80", "n", "pcie3", "x", {1: 10.0, 2: 10.0})
    assert lost(perfect, 2) == pytest.approx(0.0, abs=1e-6)
    assert lost(slow, 2) == pytest.approx(np.log(2), abs=1e-6)
    loss = loss_of([perfect, slow])
    assert loss.count == 2 and loss.spread == pytest.approx(np.log(2) / 2**0.5, abs=1e-6)
