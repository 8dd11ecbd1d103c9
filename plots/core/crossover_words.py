# SPDX-License-Identifier: Apache-2.0
"""A crossover in words, and what was compared: nothing else in plots words them, and no one takes
the words apart."""

from collections.abc import Collection, Sequence

import numpy as np

from plots import units
from plots.core import statistics
from plots.core.crossover import CPU_WINS, GPU_WINS, Crossover, SpeedUp
from plots.core.curves import left_out
from plots.core.work import difference
from plots.file.axes import BUILT_IN, Axes
from plots.file.families import FAMILIES
from plots.file.rows import File, median_of
from plots.file.samples import FEW
from plots.text import counted, printable

_COUNTED = ("parameters", "copies")  # measures that stand behind their number
_SAID = {"family", "model", "batch", "precision"}  # these have a place of their own


def crossover_words(one: Crossover) -> str:
    """The answer as people read it: "from 703,000 parameters (500,000 to 900,000)", "GPU at every
    size measured, 22 to 11,201,190 parameters", "ambiguous: equal within noise at 2 of 11 sizes".
    """
    if one.kind == "ambiguous":
        return f"ambiguous: {doubt(one)}"
    return where(one) if one.kind == "once" else f"{winner(one)} {where(one)}"


def claim(one: Crossover, verb: str = "", *, article: str = "the", beside: str = "") -> str:
    """Who wins where, in a clause: "the GPU wins from 703,000 parameters". `verb` stands for
    "wins"; `beside` is that of where()."""
    said = f"{article} {winner(one)} {verb or one.question.quantity.wins}"
    if one.kind != "ambiguous":
        return f"{said} {where(one, beside=beside)}"
    end = f" ({beside})" if beside else ""
    if one.high and not one.medians:
        return f"{said} from {amount(one.high, one)} at the latest{end}"
    if one.low and not one.medians and not one.gpu_wins:
        return f"{said} from {amount(one.low, one)} at the earliest, if at all{end}"
    return f"there is no sure winner ({'; '.join(filter(None, [doubt(one), beside]))})"


def faster(one: Crossover, networks: str) -> str:
    """Which side trains `networks` faster, and where, in a clause: "2 threads train disc networks
    faster than 1 thread from 30,000 parameters"."""
    first, second = one.question.sides
    claim = f"{second} train {networks} {one.question.quantity.how} than {first}"
    if one.kind == "once":
        return f"{claim} {where(one)}"
    if one.kind == "ambiguous":
        return f"we could not determine from which size {claim} ({doubt(one)})"
    return f"{networks} train {one.question.quantity.how} on {crossover_words(one)}"


def ratio_words(one: SpeedUp, digits: int = 3) -> str:
    """By how many times the winner is better, in a clause: "the GPU is 2.41 times as fast"."""
    sides = ("GPU", "CPU") if one.winner == "gpu" else ("CPU", "GPU")
    ratio = units.significant(one.factor, digits)
    return one.gpu.quantity.ratio.format(winner=sides[0], loser=sides[1], ratio=ratio)


def speed_up_words(one: SpeedUp) -> str:
    """Who is how many times as fast on one network, in a sentence."""
    quantity = one.gpu.quantity
    place = (
        f"At {units.count(one.parameters)} parameters ({printable(one.model, 60)}, batch "
        f"{units.written(one.batch or '?')})"
    )
    each = f" {FAMILIES[one.family].a}" if quantity.is_amount else ""
    values = ", ".join(
        f"{quantity.show(median_of(curve.samples[0]))}{of} on the {printable(curve.label, 60)}"
        for curve, of in ((one.cpu, each), (one.gpu, ""))
    )
    if one.winner:
        return f"{place} {ratio_words(one)}: {values}."
    if one.low is None or one.high is None:
        return f"{place} too few repetitions tell who {quantity.wins}: {values}."
    interval = f"{units.significant(one.low)} to {units.significant(one.high)}"
    holds = "holds 1" if one.low <= 1 <= one.high else "is close to 1"
    return (
        f"{place} neither surely {quantity.wins}: {values}; the 95 % interval of "
        f"{quantity.quotient()}, {interval}, {holds}."
    )


def winner(one: Crossover) -> str:
    """The side that where() is about."""
    cpu, gpu = one.question.sides
    return cpu if one.kind == "never" and _is_everywhere(one) else gpu


def where(one: Crossover, *, beside: str = "") -> str:
    """Where winner() wins, of an answer that is not ambiguous: "from 703,000 parameters", "only up
    to 22,500 parameters", "at every size, 22 to 806 parameters". What `beside` says stands in
    brackets at the end, behind the interval."""
    if one.kind == "once":
        about = "about " if one.question.is_band and beside else ""
        return f"from {about}{amount(one.size, one)}{_interval(one, beside)}"
    if one.kind == "several":
        return _several(one, beside)
    is_winner = one.kind == "always" or _is_everywhere(one)
    sizes = size_range(one.sizes, one.question.measure)
    said = f"at {'every' if is_winner else 'no'} {_sizes(one)}, {sizes}"
    return f"{said} ({beside})" if beside else said


def doubt(one: Crossover) -> str:
    """What an ambiguous answer leaves open, or why: "equal within noise at 2 of 11 sizes"."""
    if one.medians:
        fewest = statistics.FEWEST_SAMPLES
        return f"fewer than {fewest} repetitions; {crossover_words(one.medians)}"
    gpu = one.question.sides[1]
    if one.low:
        largest = _sized(units.count(one.sizes[-1]), one.question.measure)
        low = f"from {amount(one.low, one)} at the earliest"
        if one.gpu_wins:
            measure, wins = one.question.measure, one.gpu_wins
            sizes = f"{len(wins)} sizes, {size_range(wins, measure)}"
            at = sizes if len(wins) > 1 else _sized(units.count(wins[0]), measure)
            return f"{gpu} at {at}, and at every size {low}, or not at {largest}"
        return f"{gpu} {low}, or at no size up to {largest}"
    if one.high:
        return f"{gpu} at every {_sizes(one)}, or from {amount(one.high, one)} at the latest"
    undecided, within = one.winners.count(0), one.question.equal_within
    noise = "equal" if one.question.quantity.is_fact else "equal within noise"
    equal = f"equal within {100 * within:.0f} %" if within else noise
    if one.question.is_band:
        equal = "undecided"
    return f"{equal} at {undecided} of {len(one.sizes)} sizes"


def amount(size: float | None, one: Crossover) -> str:
    """A size as precise as `one` gives it: "703,000 parameters", "batch 64"."""
    return _sized(_significant(size or 0.0, one), one.question.measure)


def size_range(sizes: Sequence[float] | np.ndarray, measure: str) -> str:
    """The smallest and the largest of `sizes`: "22 to 806 parameters", "width 16 to 64"."""
    return _sized(f"{units.count(sizes[0])} to {units.count(sizes[-1])}", measure)


def what(common: dict[str, str], axes: Axes = BUILT_IN) -> str:
    """What is timed, in words: "epoch", "training step of alexnet-r", "product, nn, warm"."""
    family = common["family"]
    name = FAMILIES[family].one if family in FAMILIES else family
    model = f" of {common['model']}" if "model" in common else ""
    return ", ".join([f"{name}{model}", *axes.words(common, without=_SAID)])


def other_work(file: File) -> str:
    """Which rows of `file` are not compared as they do other work, a phrase; empty for none."""
    pairs = left_out(file)
    if not pairs:
        return ""
    cpu, gpu = pairs[0]
    rows = [counted(len({pair[side].name for pair in pairs}), "row") for side in (0, 1)]
    return (
        f"{rows[0]} of the CPU and {rows[1]} of the GPU are not compared, as they do other work on "
        f"the same network, such as {printable(cpu.configuration['model'], 40)} "
        f"({printable(difference(cpu, gpu), 120)})"
    )


def instances_words(file: File, families: Collection[str]) -> str:
    """What intervals of `families` add where rows have few instances, in a sentence; empty where
    all have enough."""
    said = {}
    for row in file.rows:
        key = row.family, row.device
        if row.family in families and not row.failure and key not in said:
            spread = file.spreads.get(key)
            if spread and (len(set(row.instances.of)) or 1) < FEW:
                said[key] = spread
    if not said:
        return ""
    figures: dict[str, None] = {}
    for one in said.values():
        of = f" of {printable(one.file, 60)}" if one.file else ""
        source = f"as in {counted(one.rows, 'row')}{of}" if one.rows else "assumed"
        figures[f"{units.significant(100 * one.deviation, 2)} % ({source})"] = None
    return (
        f"Some rows were measured in fewer than {FEW} instances of their program: intervals add "
        f"what lies between instances, a standard deviation of {' or '.join(figures)}."
    )


def _several(one: Crossover, beside: str) -> str:
    """Of a GPU that wins in parts: "only up to 22,500 parameters", "up to 90 and from 703,000"."""
    measure = one.question.measure
    before, after = ("", f" {measure}") if measure in _COUNTED else (f"{measure} ", "")
    ends = [before + _significant(crossing, one) for crossing in one.crossings]
    spans = []
    if next(filter(None, one.winners)) == GPU_WINS:
        spans.append(f"up to {ends.pop(0)}")
    while len(ends) > 1:
        spans.append(f"from {ends.pop(0)} to {ends.pop(0)}")
    only = "" if ends else "only "
    spans += [f"from {end}" for end in ends]
    return f"{only}{' and '.join(spans)}{after}{_interval(one, beside)}"


def _is_everywhere(one: Crossover) -> bool:
    """Whether the CPU wins at all sizes for sure."""
    return all(side == CPU_WINS for side in one.winners)


def _interval(one: Crossover, beside: str = "") -> str:
    said = [beside] if beside else []
    if one.low is not None and one.high is not None:
        said.insert(0, f"{_significant(one.low, one)} to {_significant(one.high, one)}")
    return f" ({'; '.join(said)})" if said else ""


def _sizes(one: Crossover) -> str:
    return "size" if one.question.is_band else "size measured"


def _significant(size: float, one: Crossover) -> str:
    return units.significant(size, 2 if one.question.is_band else 3)  # a band is no measurement


def _sized(number: str, measure: str) -> str:
    return f"{number} {measure}" if measure in _COUNTED else f"{measure} {number}"
