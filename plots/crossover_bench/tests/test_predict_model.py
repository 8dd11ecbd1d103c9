# SPDX-License-Identifier: Apache-2.0
"""The time of a step on a card: its parts, its slopes, and what a faster card does to it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossover_bench.answers.predict.model import (
    CEILINGS,
    EXPECTED,
    PARAMETERS,
    SPREADS,
    Demand,
    Stack,
    busy,
    demand,
    our_launches,
)
from crossover_bench.answers.predict.ways import (
    LONGEST,
    WAYS,
    Band,
    Way,
    floor,
    launch,
    launches,
    overhead,
    published,
    several,
)
from crossover_bench.counts.cards import Card, load_cards, overheads
from crossover_bench.counts.cost import Cost
from crossover_bench.counts.costs import find_cost, kept_cost
from crossover_bench.files import loading
from crossover_bench.files.families import FORWARD

RESULTS = Path(__file__).parents[3] / "results"
CARDS = load_cards()
NETWORKS = [("disc-2", 100), ("disc-9", 100), ("disc-12", 100), ("heart", 10), ("lstm", 128)]
NETWORKS += [("fcn-s", 64), ("alexnet-s", 16), ("resnet-56", 128)]
RESIDENT = {name: Way(name, "resident") for name in ("eager", "graph", "graph-epoch")}


def kept(network: str, batch: int, precision: str = "f32") -> Cost:
    cost = find_cost(network, batch, precision)
    assert cost
    return cost


def asked(cost: Cost, card: Card, launches: float | None = None) -> Demand:
    needs = demand(cost.operations, cost.precision, card, launches)
    assert isinstance(needs, Demand), needs
    return needs


def changed(card: Card, **factors: float) -> Card:
    """`card` with some of its figures times these; without those times 0."""
    figures = {
        name: value * factors.get(name, 1.0)
        for name, value in card.figures.items()
        if factors.get(name) != 0
    }
    return replace(card, figures=figures)


def product_flops(cost: Cost) -> float:
    """Of the products of a step."""
    return sum(
        2.0 * product.m * product.n * product.k * product.count * operation.count
        for operation in cost.operations
        for product in operation.products
    )


def bytes_of(cost: Cost, *kinds: str) -> float:
    """Moved by operations of a step of these kinds, or by all."""
    operations = (each for each in cost.operations if not kinds or each.kind in kinds)
    return sum(operation.bytes * operation.count for operation in operations)


def seconds(needs: Demand, parameters: np.ndarray = EXPECTED) -> float:
    return float(np.exp(Stack([needs]).log_seconds(parameters)[0]))


def some_parameters(count: int) -> np.ndarray:
    generator = np.random.default_rng(13)
    return EXPECTED + SPREADS * generator.standard_normal((count, len(PARAMETERS)))


def test_slopes_are_those_of_finite_differences():
    demands = [asked(kept(*network, "tf32"), CARDS["a100"]) for network in NETWORKS]
    demands += [replace(needs, operations=0.0, host=3e-4) for needs in demands]
    stack = Stack(demands)
    for parameters in some_parameters(5):
        slopes = stack.jacobian(parameters)
        for place in range(len(PARAMETERS)):
            step = np.zeros(len(PARAMETERS))
            step[place] = 1e-6
            ends = (stack.log_seconds(parameters + step), stack.log_seconds(parameters - step))
            assert slopes[:, place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)


def test_demands_in_a_stack_do_not_touch_each_other():
    demands = [asked(kept(*network), CARDS["l4"]) for network in NETWORKS]
    together = Stack(demands).log_seconds(EXPECTED)
    assert together == pytest.approx([np.log(seconds(needs)) for needs in demands], rel=1e-12)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_step_is_as_fast_as_its_card_lets_it(network):
    """Never faster than its operations at full efficiency; never slower with more of anything; and
    with twice the arithmetic, power and bandwidth half of what is computed is left."""
    card, cost = CARDS["rtx-4090"], kept(*network)
    perfect = np.zeros(len(PARAMETERS))
    perfect[5] = -50.0  # launches take nothing
    least = product_flops(cost) / card.figures["f32_flops"]
    least += bytes_of(cost) / card.figures["memory_bytes_per_second"]
    assert seconds(asked(cost, card), perfect) >= least * (1 - 1e-9)
    for figure in ("f32_flops", "memory_bytes_per_second"):
        cards = [changed(CARDS["h200"], **{figure: each}) for each in (0.5, 1.0, 1.7, 4.0, 30.0)]
        for parameters in some_parameters(4):
            times = [seconds(asked(cost, each), parameters) for each in cards]
            assert times == sorted(times, reverse=True)
    card = CARDS["a100"]
    twice = changed(card, f32_flops=2.0, memory_bytes_per_second=2.0, watts=2.0)
    parts = [Stack([asked(cost, each)]).work(EXPECTED)[0] for each in (card, twice)]
    assert parts[0] == pytest.approx(2 * parts[1])


def test_a_launch_takes_its_floor_or_its_work_and_never_both():
    for network in NETWORKS:
        needs = asked(kept(*network), CARDS["rtx-4060"])
        work = Stack([needs]).work(EXPECTED)[0]
        by_hand = sum(
            count * max(least, works)
            for count, least, works in zip(needs.count, needs.floor, work, strict=True)
        )
        assert Stack([needs]).device_seconds(EXPECTED)[0] == pytest.approx(by_hand)
        assert Stack([needs]).parts(EXPECTED)[0].sum() == pytest.approx(by_hand)  # what limits it
    tiny = asked(kept("disc-2", 100), CARDS["rtx-4060"])
    assert Stack([tiny]).device_seconds(EXPECTED)[0] == pytest.approx(tiny.count @ tiny.floor)


def test_convolutions_of_one_sample_take_their_floors_on_an_h200():
    """However short their sums are: in passes of one sample, which compute next to nothing."""
    file = loading.load_file(RESULTS / "intel-xeon-6-207-16c" / "2026-11-27-48d84c3.json")
    took = {
        row.model: row.counters["seconds_convolution"]
        for row in file.rows
        if row.family == FORWARD
        and row.batch == "1"
        and row.configuration.get("data") == "resident"
        and row.execution == "graph"
        and "seconds_convolution" in row.counters
    }
    assert took.keys() == {"lenet-5", "resnet-56", "vit-ti"}
    for model, seconds_of_all in took.items():
        convolutions = [
            operation
            for operation in kept_cost(model).operations
            if operation.kind == "convolution" and operation.launches == 1
        ]
        needs = demand(convolutions, "f32", CARDS["h200"], launches=0.0)
        least = our_launches(EXPECTED) * float(needs.count @ needs.floor)
        assert 1 / 1.35 < least / seconds_of_all < 1.35, model


def test_our_launches_are_products_and_what_is_not_fused_into_them():
    """bench --cost: disc-8 has 23 products, and as a graph 26 launches."""
    cost = kept("disc-8", 100)
    started = launches(cost, RESIDENT["graph"])
    assert started == 26
    needs = asked(cost, CARDS["rtx-4060"], started)
    assert needs.count.sum() == 26 and needs.count[needs.inner > 0].sum() == 23
    assert needs.operations == 0
    bandwidth = CARDS["rtx-4060"].figures["memory_bytes_per_second"]
    moved = needs.count @ (needs.memory + needs.reduction)
    assert moved == pytest.approx(bytes_of(cost) / bandwidth)


def test_attention_counts_its_operations_and_its_bytes():
    """Of gpt-64 in batches of 12 twice three operations of products without their shapes."""
    cost, card = kept("gpt-64", 12), CARDS["rtx-4060"]
    attention = [each for each in cost.operations if each.kind == "product" and not each.products]
    assert sum(each.count for each in attention) == 6
    flops = sum(each.flops * each.count for each in attention)
    rest = tuple(
        replace(each, flops=0.0) if each in attention else each for each in cost.operations
    )
    whole, less = asked(cost, card), asked(replace(cost, operations=rest), card)
    peak = card.figures["f32_flops"]  # in f32 a kernel of ours, whatever the precision
    added = whole.count @ whole.compute - less.count @ less.compute
    assert added == pytest.approx(flops / peak)
    assert whole.count @ whole.memory == pytest.approx(less.count @ less.memory)
    assert whole.count.sum() == less.count.sum()


def test_floors_are_of_the_architecture_where_two_sources_are():
    ada, hopper, turing = (floor(capability) for capability in ("8.9", "9.0", "7.5"))
    assert ada != hopper
    assert turing.node.low <= min(ada.node.low, hopper.node.low)
    assert turing.node.high >= max(ada.node.high, hopper.node.high)
    assert ada.inner == turing.inner  # of all cards together
    short, long, longer = ada.seconds(np.array([0, LONGEST, 4 * LONGEST]))
    assert short == ada.node.middle and long == longer > 3 * short


def test_busy_is_a_share():
    generator = np.random.default_rng(4)
    for m, n, k, multiprocessors in generator.integers(1, 5000, (300, 4)).tolist():
        share = busy(m, n, k, multiprocessors)
        assert 0 < share < 1
        assert busy(m, n, k, 0) >= share  # where their number is unknown, none is idle
        assert busy(m, n, k, 1) >= share


def test_busy_by_hand():
    whole = 64 / (64 + 16)  # of the largest tile's balance: 128 · 128 / 256 against 16
    assert busy(1280, 1280, 64, 100) == pytest.approx(whole)  # 100 tiles for 100
    assert busy(1280, 1280, 64, 50) == pytest.approx(whole)  # in two full turns
    # 101 multiprocessors leave one idle.
    assert busy(1280, 1280, 64, 101) == pytest.approx(whole * 100 / 101)
    # One column fills one of 32 of the smallest tile, whose balance is 16 against 16.
    assert busy(32, 1, 63, 1) == pytest.approx(1 / 32 / 2)
    # A long inner dimension is split among those that would be idle, however many these are.
    assert busy(6, 25, 2048 * 576, 108) > 500 / 1024 * busy(6, 25, 2048 * 576, 1)
    assert busy(128, 128, 1024, 16) == pytest.approx(whole)
    assert busy(128, 128, 63, 16) < whole


def test_what_is_missing_is_said():
    cost, h200 = kept("disc-4", 100), CARDS["h200"]
    for name in ("f32_flops", "memory_bytes_per_second"):
        reason = demand(cost.operations, "f32", changed(h200, **{name: 0}))
        assert reason == f"no source gives its {name}"
    assert "list" in str(demand((), "f32", h200))
    assert demand(cost.operations, "tf32", CARDS["gtx-980"]) == "no source gives its tf32_flops"
    assert set(CEILINGS) == {"f32", "tf32", "bf16", "f16"}
    card = changed(h200, link_bytes_per_second=0)
    assert isinstance(overhead(cost, card, WAYS[0], 1), tuple)
    streamed = overhead(cost, card, Way("eager", "pinned"), 1)
    assert streamed == "no source gives its link_bytes_per_second"
    assert "does not count" in str(overhead(cost, card, Way("graph-epoch", "pinned"), 1))


# --- what software, driver and link add


def test_the_host_waits_and_starts_graphs():
    cost, card = kept("disc-2", 100), CARDS["rtx-4090"]
    # bench --cost: 7 launches a step eagerly; in graphs one more, which gathers the batch.
    assert launches(cost, RESIDENT["eager"]) == 7
    assert launches(cost, RESIDENT["graph"]) == 8
    wait, start = published("wait"), published("graph_launch")
    assert overhead(cost, card, RESIDENT["eager"], 10) == (wait,)
    assert overhead(cost, card, RESIDENT["graph"], 10) == (wait, start * 10)
    assert overhead(cost, card, RESIDENT["graph-epoch"], 10) == (wait, start * 1)


def test_copies_take_time_and_beside_the_steps_at_best_none():
    cost, card = kept("fcn-r", 1024), CARDS["rtx-4090"]
    (_,), (_, pinned), (_, beside) = (
        overhead(cost, card, Way("eager", data), 1)
        for data in ("resident", "pinned", "pinned-async")
    )
    copied = (cost.work(Way("eager", "pinned").configuration).bytes_to_device or 0) / 4
    link = card.figures["link_bytes_per_second"]
    copies = published("small_copy") * 2
    assert pinned.low == pytest.approx(copied / link + copies.low)
    assert pinned.high == pytest.approx(2 * copied / link + copies.high)
    assert (beside.low, beside.high) == (0.0, pinned.high)


def test_what_starting_takes():
    eager, graph = (launch(RESIDENT[each]) for each in ("eager", "graph"))
    assert graph == Band(0.0, 0.0)
    assert 0 < eager.low <= eager.middle <= eager.high
    python = several(overheads("torch_operation"))
    assert python.middle > eager.high and python.count >= 9 and python.spread > 0.3
    assert Band(0.0, 4.0).middle == 2.0
