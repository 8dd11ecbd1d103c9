# SPDX-License-Identifier: Apache-2.0
"""Predicts how long networks would train on GPUs that were not measured, and where these would
overtake the CPU of a file.

docs/method/prediction.md says how, and what the bands are worth. Predicted times exist in memory,
in tables and in pictures, and never in a result file.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossover_bench.answers.predict import host
from crossover_bench.answers.predict.attention import WRITTEN_OUT, written_out
from crossover_bench.answers.predict.data import card_of, is_plain
from crossover_bench.answers.predict.fit import Fit
from crossover_bench.answers.predict.host import VIEW
from crossover_bench.answers.predict.model import Demand, Stack, demand, our_demand
from crossover_bench.answers.predict.simulate import (
    Times,
    around,
    device_seconds,
    ends,
    whole_seconds,
    within,
    within_factor,
)
from crossover_bench.answers.predict.ways import (
    AUTO,
    OURS,
    WAYS,
    Band,
    Way,
    floor,
    launch,
    persistent_band,
    persistent_share,
    ways_of_passes,
)
from crossover_bench.counts.cards import NVIDIA, Card, load_cards
from crossover_bench.counts.cost import BENCH_PATH, Cost, Operation, memory_of
from crossover_bench.counts.costs import cost_of, pass_cost_of
from crossover_bench.curves import statistics
from crossover_bench.curves.crossover import Comparison, SpeedUp, banded_crossover
from crossover_bench.curves.curves import NETWORKS, SCALES, Pairing, pairings
from crossover_bench.curves.statistics import estimate, fewest_samples
from crossover_bench.files.axes import Items
from crossover_bench.files.families import EPOCH, FAMILIES, FORWARD, TRAINING, steps_of
from crossover_bench.files.rows import File, Row, median_of

# From the small desktop card to the largest of servers: what is predicted unless others are named.
DEFAULT_CARDS = ("rtx-4060", "l4", "rtx-4090", "h200")
# What a step takes on a card of another maker, times what it would on one of NVIDIA's with the same
# sheet: nobody published one of PyTorch's eager loop (docs/evidence/prediction_pytorch.md).
_OF_OTHER_MAKERS = Band(1 / 3, 3.0)
NOT_MEASURED = "predicted, not measured"
TOO_LARGE = "its memory does not hold what training takes; give a smaller batch"
_COUNTED = ("params", "batch", "rows", "steps")  # what tells whether rows do the same work


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What one card would do on the machine of a file, trained in one way.

    In `crossovers`, of the curves of the file, and in `networks`, of every network, the samples of
    the GPU are the low end of its band, the point and the high end. `problems` have for each reason
    why there is no prediction the networks that have none.
    """

    card: Card
    way: Way
    crossovers: tuple[Comparison, ...]
    networks: tuple[SpeedUp, ...]
    problems: dict[str, tuple[str, ...]]
    cpu: str = "this CPU, measured"
    was_measured: bool = True
    has_attention: bool = False


def predict_times(fit: Fit, cost: Cost, card: Card, way: Way, steps: float) -> Times | str:
    """The seconds of `steps` steps of `cost`, or the reason why they are not known, a phrase."""
    draws = predict_draws(fit, cost, card, way, steps)
    return draws if isinstance(draws, str) else ends(draws)


def predict_draws(
    fit: Fit, cost: Cost, card: Card, way: Way, steps: float, *, call: np.ndarray | None = None
) -> np.ndarray | str:
    """The same in each draw. All networks, cards and numbers of rows have the same draws. `call`
    are those of the seconds of a call of PyTorch's that starts work on a GPU, where more is known
    of its machine than of others."""
    if problem := _why_not(cost, card, way):
        return problem
    if way.execution == AUTO:
        return _auto_draws(fit, cost, card, way, steps)
    cost = with_updates(cost)
    needs = our_demand(cost, card, way, steps)
    if isinstance(needs, str):
        return needs
    asked, beside = needs
    if fit.measured and way.loop == OURS:  # whose band is that of whole times, launches and all
        total = steps * float(np.exp(Stack([asked]).log_seconds(fit.parameters)[0]))
        return total * within_factor(fit.band[0])
    if way.loop == OURS:
        step = device_seconds(
            asked, fit, cost.precision, floor(card.compute_capability), launch(way)
        )
        return whole_seconds(step, steps, beside)
    cost = written_out(cost) if way.attention == WRITTEN_OUT else cost
    count = host.fitted().host.count(cost)
    theirs = step_draws(fit, operations_of(cost), cost.precision, card, count=count, call=call)
    assert isinstance(theirs, np.ndarray), theirs  # as our demand is known
    return whole_seconds(theirs, steps, beside)


def _why_not(cost: Cost, card: Card, way: Way) -> str:
    """Why the card trains nothing so, a phrase; empty where it does."""
    if way.loop == OURS and card.maker != NVIDIA:
        return "our own programs run on NVIDIA's GPUs alone"
    held = card.figure("memory_bytes") or math.inf
    return TOO_LARGE if (memory_of(cost, "cuda") or 0.0) > held else ""


def _auto_draws(fit: Fit, cost: Cost, card: Card, way: Way, steps: float) -> np.ndarray | str:
    """The draws of a graph of the epoch, or of one kernel where that is faster. Where measured rows
    take over, the band is theirs."""
    graph = predict_draws(fit, cost, card, replace(way, execution="graph-epoch"), steps)
    share = persistent_share(cost)
    if isinstance(graph, str) or share >= 1:
        return graph
    varied = 1.0 if fit.measured else within(persistent_band(card), "persistent")
    return graph * np.minimum(share * varied, 1)


def with_updates(cost: Cost) -> Cost:
    """`cost` with a step's share of the updates. Its first step has none where several batches
    share an update. `bench --cost` counts an epoch's launches as they are."""
    if cost.accumulate == 1 or not cost.operations:
        return cost
    first = sum(operation.bytes * operation.count for operation in cost.operations)
    rest = max(cost.fields["epoch"]["bytes"] / cost.fields["steps"] - first, 0.0)
    update = Operation("update", 0.0, rest, 0.0, ())
    return replace(cost, operations=(*cost.operations, update))


def predict_limits(fit: Fit, cost: Cost, card: Card, way: Way) -> dict[str, float]:
    """Where the time of a step of ours goes, by the middle of the prediction: shares of it; empty
    where that is not known."""
    needs = our_demand(cost, card, way, float(cost.fields["steps"]))
    if isinstance(needs, str):
        return {}
    asked, _ = needs
    launches, compute, memory = Stack([asked]).parts(fit.parameters)[0].tolist()
    total = launches + compute + memory + asked.host
    return {
        "launches too short to fill it": launches / total,
        "arithmetic": compute / total,
        "memory traffic": memory / total,
        "starts, waits and copies by the host": asked.host / total,
    }


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to predict of rows of `families`: each of `cards` in each of `ways`, in one precision;
    of one batch size alone where `batch` names it. `second`: what a second of a card is in the
    quantity of the file, and `cpu_second` one of its CPU."""

    cards: tuple[Card, ...]
    ways: tuple[Way, ...] = WAYS
    precision: str = "f32"
    batch: str | None = None
    second: float = 1.0
    cpu_second: float = 1.0
    families: tuple[str, ...] = TRAINING

    @property
    def of_passes(self) -> "Wanted":
        """The same of networks in use."""
        return replace(self, ways=ways_of_passes(self.ways), families=(FORWARD,))


def outlooks(file: File, fit: Fit, wanted: Wanted) -> list[Outlook]:
    """What each card would do in each way of this program, but for the card that `file` measured;
    pytorch_outlooks() has PyTorch's."""
    measured_card = card_of(file, load_cards())
    rows = measured_rows(file, wanted)
    return [
        _outlook(file, rows, fit, card, way=way, wanted=wanted)
        for card in wanted.cards
        if card != measured_card
        for way in wanted.ways
        if way.loop == OURS
    ]


def measured_rows(file: File, wanted: Wanted) -> list[Row]:
    """The CPU's rows: each network with each thread count. Sizes in between would add nothing to
    a band."""
    return [
        row
        for row in file.rows
        if row.family in wanted.families
        and row.failure is None
        and row.device == "cpu"
        and not row.is_between
        and wanted.batch in (None, row.batch)
    ]


def each_once(measured: Iterable[Row]) -> list[Row]:
    """Of rows that do the same but for their thread counts, the first."""
    rows: dict[Items, Row] = {}
    for row in measured:
        rows.setdefault(row.axes.what(row.configuration), row)
    return list(rows.values())


def _outlook(
    file: File, measured: Sequence[Row], fit: Fit, card: Card, *, way: Way, wanted: Wanted
) -> Outlook:
    predicted: list[Row] = []
    problems: dict[str, dict[str, None]] = {}
    for row in each_once(measured):
        answer = _predicted_row(file, row, fit, card, way=way, wanted=wanted)
        if isinstance(answer, Row):
            predicted.append(answer)
        else:
            problems.setdefault(answer, {})[row.model] = None
    virtual = with_card(file, card, (*measured, *predicted))
    return Outlook(
        card=card,
        way=way,
        crossovers=tuple(
            Comparison(pair.common, pair.measure, pair.best, pair.gpu, banded_crossover(pair))
            for pair in pairings(virtual, {family: SCALES[family] for family in wanted.families})
            if pair.best.meets(pair.gpu)
        ),
        networks=tuple(map(_banded_speed_up, pairings(virtual, NETWORKS))),
        problems={reason: tuple(names) for reason, names in problems.items()},
    )


def with_card(file: File, card: Card, rows: Sequence[Row]) -> File:
    """`file` as if its machine had the card, with these rows alone."""
    return replace(file, machine=replace(file.machine, gpu=card.name), rows=tuple(rows))


def _banded_speed_up(pairing: Pairing) -> SpeedUp:
    """The speedup of one network with the ends of the band, and the CPU's own noise beside them."""
    chosen = min(pairing.cpus, key=lambda curve: median_of(curve.samples[0]))
    cpu = estimate(pairing.best, 0)
    low, point, high = pairing.gpu.samples[0].tolist()
    ends: tuple[float | None, float | None] = (None, None)
    if fewest_samples(pairing.best) >= statistics.FEWEST_SAMPLES:
        slow, fast = np.exp(statistics.interval(cpu.replicates[:, 0])).tolist()
        ends = (slow / high, fast / low)
    ratio = float(np.exp(cpu.logs[0])) / point
    size = float(pairing.gpu.sizes[0])
    return SpeedUp(pairing.common, size, chosen, pairing.gpu, ratio, *ends)


def _predicted_row(
    file: File, row: Row, fit: Fit, card: Card, *, way: Way, wanted: Wanted
) -> Row | str:
    """What a row of that GPU would be, whose samples are the ends and the point of the band; or the
    reason why that is not known, a phrase."""
    if not is_plain(row):
        return "only plain training is predicted: one wait an epoch, an update each batch"
    if way.counted["execution"] == "graph-epoch" and row.family != EPOCH:
        return f"{FAMILIES[row.family].a} has no graph of an epoch"
    batch = row.counters["batch"]
    cost = cost_for(file, row, batch, wanted.precision, f"its cost at batch {batch:,.0f}")
    times = cost if isinstance(cost, str) else predict_times(fit, cost, card, way, steps_of(row))
    if isinstance(times, str):
        return times
    configuration = {**way.configuration, "precision": wanted.precision}
    return predicted_as(row, configuration, times, wanted.second)


def predicted_as(row: Row, configuration: dict[str, str], times: Times, second: float) -> Row:
    """What `row` would be so: its samples are the ends and the point of the band, in a quantity of
    which a second is so much."""
    kept = {key: value for key, value in row.configuration.items() if row.axes[key].role == "what"}
    return replace(
        row,
        name=f"{NOT_MEASURED}: {row.name}",
        configuration={**kept, **configuration},
        samples=second * np.array([times.low, times.seconds, times.high]),
        counters={key: row.counters[key] for key in _COUNTED if key in row.counters},
        warnings=(),
        verification=None,
        minimum_work=None,
    )


def cost_for(file: File, row: Row, batch: float, precision: str, what: str) -> Cost | str:
    """The cost of the network of `row` in that batch; or why it is not known, a phrase, which calls
    it `what`."""
    network = file.networks.get(row.model, "")
    if row.family == FORWARD:
        cost = pass_cost_of(row.model, batch, precision, BENCH_PATH, network)
    else:
        rows = max(row.counters.get("rows", batch), batch)
        cost = cost_of(row.model, batch, precision, BENCH_PATH, network=network, rows=rows)
    if cost is None:
        return f"{what} is not kept, and bench is not built to count it"
    if cost.params != row.counters["params"]:
        return "it is not the network of that name here"
    return cost


# ---- a step in PyTorch's eager loop: what it starts, and how long that takes on a card


# PyTorch's update moves so many times the bytes of ours, as it has a pass for each of its terms: by
# how many arrays ours reads and writes (counts/mlp.py), of momentum 8 for 5, of Adam 19 for 7.
PASSES = {5: 8 / 5, 7: 19 / 7}


def operations_of(cost: Cost) -> tuple[Operation, ...]:
    """What PyTorch would run of a step that `bench --cost` counted, where nobody counted it in
    PyTorch itself: the same but for its optimizer."""
    updates = [operation for operation in cost.operations if operation.kind == "update"]
    moved = sum(update.bytes * update.count for update in updates)
    passes = PASSES.get(round(moved / (4 * cost.params)), 1.0) if cost.params else 1.0
    return tuple(
        replace(each, bytes=each.bytes * passes) if each.kind == "update" else each
        for each in cost.operations
    )


def step_draws(
    fit: Fit,
    operations: Sequence[Operation],
    precision: str,
    card: Card,
    *,
    count: float | None = None,
    call: np.ndarray | None = None,
) -> np.ndarray | str:
    """The seconds of a step of these operations with data on the card, in each draw; or the reason
    why they are not known, a phrase.

    There is an operation for each kind of call that a step makes. Its `kind` is "product" or
    "convolution" with the shapes of their `products`, or "product" without shapes for a fused
    attention; "normalization", "softmax" and "loss", which reduce; "update" of an optimizer; "view"
    starts no kernel; any other moves memory alone. `launches` counts what Python or the backward
    pass starts for it. `count` is how often all of them and what a step takes beside (the gradients
    set to nothing, the start of the backward pass, the optimizer's own Python) ask the host for
    something, the sum of launches and the usual if it is None; `call` as of predict_draws().
    """
    kernels = [each for each in operations if each.kind != VIEW]
    asked = demand(kernels, precision, card)
    if not isinstance(asked, Demand):
        return asked
    step = device_seconds(asked, fit, precision, floor(card.compute_capability), None)
    # The processor starts operations meanwhile.
    known = host.fitted()
    if call is None:
        call = around(known.published, "operation")
    if count is None:
        count = sum(each.launches * each.count for each in operations) + known.host.beside
    seconds = np.maximum(step, count * call)
    return seconds if card.maker == NVIDIA else seconds * within(_OF_OTHER_MAKERS, "maker")
