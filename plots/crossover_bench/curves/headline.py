# SPDX-License-Identifier: Apache-2.0
"""Which crossovers of a file answer first, and what else in the file disagrees with them.

docs/method/crossover.md gives the rules. Only the last of them favours the GPU: where auto was not
measured, it takes of the ways to compute that have the same sizes the one that wins earliest.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from crossover_bench.curves.crossover import Comparison, SpeedUp
from crossover_bench.curves.curves import AUTO
from crossover_bench.curves.statistics import log_medians
from crossover_bench.files.families import EPOCH, FORWARD, MINIBATCH, TRAINING
from crossover_bench.files.ladders import DISC, Ladder
from crossover_bench.words.text import whole

Placement = Literal["resident", "copied"]
_PLACEMENTS = get_args(Placement)  # in the order of the answers
_ORDER = ("always", "once", "several", "ambiguous", "never")


@dataclass(frozen=True, slots=True)
class Answer:
    """One way of the GPU against the best thread count of the CPU, at the batch of the headline.

    `exceptions` are the networks on no curve whose faster device is not the curve's at their size.
    `largest` is the speedup of the curve's largest network; None where the devices name it
    differently.
    """

    comparison: Comparison
    data: Placement
    exceptions: tuple[SpeedUp, ...]
    largest: SpeedUp | None


def ladders_of(compared: Iterable[Comparison]) -> list[str]:
    """What the networks of each ladder in `compared` are called, disc's first."""
    names = dict.fromkeys(each.networks for each in compared if each.family == EPOCH)
    return sorted(names, key=lambda networks: networks != DISC.networks)


def headline(
    compared: Sequence[Comparison], ratios: Sequence[SpeedUp], ladders: Sequence[Ladder]
) -> list[Answer]:
    """The answers of a file with these comparisons(), `ratios` of epochs and `ladders`, at one
    batch on the first of ladders_of(): with the data on the GPU, then copying each batch; the other
    way round where the former has less than half as many sizes.

    None where CPU and GPU have fewer than two of its networks in common.
    """
    curves = _curves(compared)
    chosen = _in_order(curves, _own_batch(curves)) if curves else []
    return [_answer(comparison, ratios, ladders) for comparison in chosen]


def foremost(compared: Sequence[Comparison], networks: str | None = None) -> Comparison | None:
    """The comparison of the headline's first answer, for a single line on a machine; on the ladder
    of these `networks` where they are given."""
    curves = _curves(compared, networks)
    return _in_order(curves, _own_batch(curves))[0] if curves else None


def own_batch(compared: Sequence[Comparison]) -> str | None:
    """The batch that a headline of `compared` is about; None where there is no headline."""
    curves = _curves(compared)
    return _own_batch(curves) if curves else None


def over_batches(compared: Iterable[Comparison]) -> list[Comparison]:
    """Those of training steps, over batch sizes."""
    return of_each_network(compared, MINIBATCH)


def of_each_network(compared: Iterable[Comparison], family: str) -> list[Comparison]:
    """For each network and batch whose rows of `family` were compared the way of the GPU that wins
    earliest, of those with the most sizes, in the plainest training that the network has."""
    groups: dict[tuple[str, str], dict[str, list[Comparison]]] = {}
    for comparison in compared:
        if comparison.family == family and comparison.cpu.candidates:
            trainings = groups.setdefault((comparison.model, comparison.batch), {})
            trainings.setdefault(unusual(comparison), []).append(comparison)
    plainest = (of.get("") or next(iter(of.values())) for of in groups.values())
    return list(filter(None, map(_earliest_of, plainest)))


def over_passes(compared: Iterable[Comparison]) -> list[Comparison]:
    """Those of forward passes over network sizes in the plainest precision, the smallest batch
    first."""
    plain = (each for each in of_each_network(compared, FORWARD) if not unusual(each))
    return sorted(plain, key=lambda comparison: whole(comparison.batch) or 0)


def way(pair: Comparison | SpeedUp) -> str:
    """How the GPU computes, in words: "graph, resident"."""
    configuration = pair.gpu.configuration
    return ", ".join(pair.gpu.axes.words(configuration, roles=["how"], without=["device"]))


def unusual(pair: Comparison | SpeedUp) -> str:
    """What is not the plainest in the training of `pair`, but its batch: "tf32 (CPU: f32)"."""
    axes, values = pair.gpu.axes, dict(pair.common)
    for axis, value in axes.of(pair.gpu.configuration, "alike"):
        values.setdefault(axis.key, value)
    shown = {key: value for key, value in values.items() if value != axes[key].plainest}
    return ", ".join(axes.words(shown, without={"family", "model", "batch"}))


def _curves(compared: Sequence[Comparison], networks: str | None = None) -> list[Comparison]:
    """Epochs of `networks`, or of the first ladder, against the best of the CPU, in the plainest
    training (f32), or in that which comes first in the file where none is plain."""
    networks = networks or next(iter(ladders_of(compared)), None)
    groups: dict[str, list[Comparison]] = {}
    for comparison in compared:
        is_epoch = comparison.family == EPOCH and comparison.networks == networks
        if is_epoch and comparison.cpu.candidates:
            groups.setdefault(unusual(comparison), []).append(comparison)
    return groups.get("") or next(iter(groups.values()), [])


def _own_batch(curves: Sequence[Comparison]) -> str:
    """The own batch of the networks of `curves`; where that is not known, or has less than half as
    many sizes as another, the batch with the most sizes, of several the nearest to the own one."""
    sizes: dict[str, int] = {}
    for comparison in curves:
        sizes[comparison.batch] = max(sizes.get(comparison.batch, 0), len(comparison.ladder))
    wanted, most = curves[0].cpu.own_batch, max(sizes.values())
    if 2 * sizes.get(wanted, 0) >= most:
        return wanted

    def distance(batch: str) -> tuple[float, int]:
        """As a ratio to the own batch; of two at the same distance the smaller comes first."""
        number, samples = whole(batch) or 0, whole(wanted) or 1
        return (max(number / samples, samples / number) if number else math.inf), number

    return min((batch for batch in sizes if sizes[batch] == most), key=distance)


def _in_order(curves: Sequence[Comparison], batch: str) -> list[Comparison]:
    """The choice of each kind of placement at `batch`, in the order of the answers."""
    at_batch = [comparison for comparison in curves if comparison.batch == batch]
    by_data = ([each for each in at_batch if placement(each) == data] for data in _PLACEMENTS)
    chosen = list(filter(None, map(_earliest_of, by_data)))
    most = max(len(comparison.ladder) for comparison in chosen)
    return sorted(chosen, key=lambda comparison: 2 * len(comparison.ladder) < most)


def placement(comparison: Comparison) -> Placement:
    """Where the data of the GPU's rows is."""
    value = comparison.gpu.axes.value(comparison.gpu.configuration, "data")
    return "resident" if value == "resident" else "copied"


def _earliest_of(curves: Sequence[Comparison]) -> Comparison | None:
    """Of the curves with the same, most sizes, that of the GPU's auto, which is what anyone would
    run, or without auto that of the earliest win."""
    if not curves:
        return None
    fullest = max(curves, key=lambda comparison: len(comparison.ladder)).ladder
    full = [comparison for comparison in curves if np.array_equal(comparison.ladder, fullest)]
    automatic = [each for each in full if each.gpu.configuration.get("execution") == AUTO]

    def start(comparison: Comparison) -> tuple[int, float]:
        size = comparison.crossover.size
        return _ORDER.index(comparison.crossover.kind), math.inf if size is None else size

    return min(automatic or full, key=start)


def _answer(chosen: Comparison, ratios: Sequence[SpeedUp], ladders: Sequence[Ladder]) -> Answer:
    """`chosen`, and what of the networks on no curve disagrees with it."""
    alike = chosen.gpu.configuration, _trained(chosen.common)
    largest = chosen.networks, chosen.batch, chosen.sizes[-1]
    exceptions, at_largest = list[SpeedUp](), list[SpeedUp]()
    for ratio in ratios:
        if (ratio.gpu.configuration, _trained(ratio.common)) != alike:
            continue
        ladder = next((each for each in ladders if each.has(ratio.model)), None)
        if ladder is None:
            exceptions += [ratio] if _differs(ratio, chosen) else []
        elif (ladder.networks, ratio.batch, ratio.parameters) == largest:
            at_largest.append(ratio)
    return Answer(chosen, placement(chosen), tuple(exceptions), next(iter(at_largest), None))


def _trained(common: dict[str, str]) -> dict[str, str]:
    """What is trained but for the network and its batch."""
    return {key: value for key, value in common.items() if key not in ("model", "batch")}


def _differs(speed_up: SpeedUp, chosen: Comparison) -> bool:
    """Whether the faster device is sure, and is not that of the curves at this size."""
    cpu, gpu = (
        np.interp(np.log(speed_up.parameters), np.log(curve.sizes), log_medians(curve))
        for curve in (chosen.cpu, chosen.gpu)
    )
    sign = speed_up.gpu.quantity.cost(1)
    return speed_up.winner is not None and (speed_up.winner == "gpu") != (sign * cpu > sign * gpu)


def by_work(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    """`comparisons` by what is computed: epochs first, those at the headline's batch before others,
    then training steps; else in their order."""
    groups: dict[tuple[tuple[str, str], ...], list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault(tuple(comparison.common.items()), []).append(comparison)
    batch = own_batch(comparisons)

    def place(group: list[Comparison]) -> tuple[int, bool]:
        common = group[0].common
        if common["family"] not in TRAINING:
            return len(TRAINING), False
        return TRAINING.index(common["family"]), common.get("batch", batch) != batch

    return sorted(groups.values(), key=place)
