# SPDX-License-Identifier: Apache-2.0
"""A crossover in words, and what was compared. Nothing else in plots words them, and nothing takes
the words apart."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from crossover_bench.curves import statistics
from crossover_bench.curves.crossover import CPU_WINS, GPU_WINS, Crossover, SpeedUp
from crossover_bench.curves.curves import left_out
from crossover_bench.curves.network import difference
from crossover_bench.files.axes import BUILT_IN, Axes
from crossover_bench.files.families import FAMILIES
from crossover_bench.files.rows import File, Spread, median_of
from crossover_bench.files.samples import FEW
from crossover_bench.words import units
from crossover_bench.words.text import counted, printable

_COUNTED = ("parameters", "copies")  # measures that stand behind their number
_BEFORE = ("batch", "size", "width")  # those before it; others are a user's: "n = 7,500"
_ELSEWHERE = {"family", "model", "batch", "precision"}  # these have a place of their own


def crossover_words(crossover: Crossover) -> str:
    """The answer as people read it: "from 703,000 parameters (500,000 to 900,000)", "GPU at every
    size measured, 22 to 11,201,190 parameters", "ambiguous: equal within noise at 2 of 11 sizes".
    """
    if crossover.kind == "ambiguous":
        return f"ambiguous: {doubt(crossover)}"
    return (
        where(crossover) if crossover.kind == "once" else f"{winner(crossover)} {where(crossover)}"
    )


def claim(crossover: Crossover, verb: str = "", *, article: str = "the", beside: str = "") -> str:
    """Who wins where, in a clause: "the GPU wins from 703,000 parameters". `verb` stands for
    "wins"; `beside` is that of where()."""
    words = (article, winner(crossover), verb or crossover.question.quantity.wins)
    clause = " ".join(filter(None, words))
    if crossover.kind != "ambiguous":
        return f"{clause} {where(crossover, beside=beside)}"
    end = f" ({beside})" if beside else ""
    if crossover.high and not crossover.medians:
        return f"{clause} from {amount(crossover.high, crossover)} at the latest{end}"
    if crossover.low and not crossover.medians and not crossover.gpu_wins:
        return f"{clause} from {amount(crossover.low, crossover)} at the earliest, if at all{end}"
    return f"there is no sure winner ({'; '.join(filter(None, [doubt(crossover), beside]))})"


def faster(crossover: Crossover, networks: str) -> str:
    """Which side trains `networks` faster, and where, in a clause: "2 threads train disc networks
    faster than 1 thread from 30,000 parameters"."""
    first, second = crossover.question.sides
    claim = f"{second} train {networks} {crossover.question.quantity.how} than {first}"
    if crossover.kind == "once":
        return f"{claim} {where(crossover)}"
    if crossover.kind == "ambiguous":
        return f"we could not determine from which size {claim} ({doubt(crossover)})"
    return f"{networks} train {crossover.question.quantity.how} on {crossover_words(crossover)}"


def ratio_words(speed_up: SpeedUp, digits: int = 3) -> str:
    """By how many times the winner is better, in a clause: "the GPU is 2.41 times as fast"."""
    sides = ("GPU", "CPU") if speed_up.winner == "gpu" else ("CPU", "GPU")
    ratio = units.significant(speed_up.factor, digits)
    return speed_up.gpu.quantity.ratio.format(winner=sides[0], loser=sides[1], ratio=ratio)


def speed_up_words(speed_up: SpeedUp, lead: str = "") -> str:
    """Who is how many times as fast on one network, in a sentence, with the programs that `lead`
    names."""
    quantity = speed_up.gpu.quantity
    place = (
        f"{f'{lead}, at' if lead else 'At'} {units.count(speed_up.parameters)} parameters "
        f"({printable(speed_up.model, 60)}, batch {units.written(speed_up.batch or '?')})"
    )
    each = f" {FAMILIES[speed_up.family].a}" if quantity.is_amount else ""
    values = ", ".join(
        f"{quantity.show(median_of(curve.samples[0]))}{of} {_done(printable(curve.label, 60))}"
        for curve, of in ((speed_up.cpu, each), (speed_up.gpu, ""))
    )
    if speed_up.winner:
        return f"{place} {ratio_words(speed_up)}: {values}."
    if speed_up.low is None or speed_up.high is None:
        return f"{place} too few repetitions tell who {quantity.wins}: {values}."
    interval = f"{units.significant(speed_up.low)} to {units.significant(speed_up.high)}"
    holds = "holds 1" if speed_up.low <= 1 <= speed_up.high else "is close to 1"
    return (
        f"{place} neither surely {quantity.wins}: {values}; the 95 % interval of "
        f"{quantity.quotient()}, {interval}, {holds}."
    )


def _done(way: str) -> str:
    """Where or by what: "on the GPU, graph", "by PyTorch on the GPU, eager"."""
    return f"on the {way}" if way.startswith(("CPU", "GPU")) else f"by {way}"


def winner(crossover: Crossover) -> str:
    """The side that where() is about."""
    cpu, gpu = crossover.question.sides
    return cpu if crossover.kind == "never" and _is_everywhere(crossover) else gpu


def where(crossover: Crossover, *, beside: str = "") -> str:
    """Where winner() wins, of an answer that is not ambiguous: "from 703,000 parameters", "only up
    to 22,500 parameters", "at every size, 22 to 806 parameters". What `beside` says stands in
    brackets at the end, behind the interval."""
    if crossover.kind == "once":
        about = "about " if crossover.question.is_band and beside else ""
        return f"from {about}{amount(crossover.size, crossover)}{_interval(crossover, beside)}"
    if crossover.kind == "several":
        return _several(crossover, beside)
    is_winner = crossover.kind == "always" or _is_everywhere(crossover)
    sizes = size_range(crossover.sizes, crossover.question.measure)
    clause = f"at {'every' if is_winner else 'no'} {_sizes(crossover)}, {sizes}"
    return f"{clause} ({beside})" if beside else clause


def doubt(crossover: Crossover) -> str:
    """What an ambiguous answer leaves open, or why: "equal within noise at 2 of 11 sizes"."""
    if crossover.medians:
        fewest = statistics.FEWEST_SAMPLES
        return f"fewer than {fewest} repetitions; {crossover_words(crossover.medians)}"
    gpu, measure = crossover.question.sides[1], crossover.question.measure
    if crossover.low:
        largest = sized(units.count(crossover.sizes[-1]), measure)
        low = f"from {amount(crossover.low, crossover)} at the earliest"
        if wins := crossover.gpu_wins:
            sizes = f"{len(wins)} sizes, {size_range(wins, measure)}"
            at = sizes if len(wins) > 1 else sized(units.count(wins[0]), measure)
            return f"{gpu} at {at}, and at every size {low}, or not at {largest}"
        return f"{gpu} {low}, or at no size up to {largest}"
    if crossover.high:
        latest = amount(crossover.high, crossover)
        return f"{gpu} at every {_sizes(crossover)}, or from {latest} at the latest"
    undecided, within = crossover.winners.count(0), crossover.question.equal_within
    noise = "equal" if crossover.question.quantity.is_fact else "equal within noise"
    equal = f"equal within {100 * within:.0f} %" if within else noise
    if crossover.question.is_band:
        equal = "undecided"
    return f"{equal} at {undecided} of {len(crossover.sizes)} sizes"


def amount(size: float | None, crossover: Crossover) -> str:
    """A size as precise as `crossover` gives it: "703,000 parameters", "batch 64"."""
    return sized(_size(size or 0.0, crossover), crossover.question.measure)


def size_range(sizes: Sequence[float] | np.ndarray, measure: str) -> str:
    """The smallest and the largest of `sizes`: "22 to 806 parameters", "width 16 to 64"."""
    return sized(f"{units.count(sizes[0])} to {units.count(sizes[-1])}", measure)


def what(common: dict[str, str], axes: Axes = BUILT_IN) -> str:
    """What is timed, in words: "epoch", "training step of alexnet-r", "product, nn, warm"."""
    family = common["family"]
    name = FAMILIES[family].noun if family in FAMILIES else family
    model = f" of {common['model']}" if "model" in common else ""
    return ", ".join([f"{name}{model}", *axes.words(common, without=_ELSEWHERE)])


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
    spreads = {}
    for row in file.rows:
        key = row.family, row.device
        if row.family in families and not row.failure and key not in spreads:
            spread = file.spreads.get(key)
            if spread and (len(set(row.instances.of)) or 1) < FEW:
                spreads[key] = spread
    return spread_words(spreads.values())


def spread_words(spreads: Iterable[Spread]) -> str:
    """What intervals add where rows, of these `spreads`, have few instances, in a sentence; empty
    without any."""
    figures: dict[str, None] = {}
    for spread in spreads:
        of = f" of {printable(spread.file, 60)}" if spread.file else ""
        source = (
            f"as in {counted(spread.programs, 'program')} that ran more than once{of}"
            if spread.programs
            else "as on the machines of committed files"
        )
        figures[f"{units.significant(100 * spread.deviation, 2)} % ({source})"] = None
    if not figures:
        return ""
    return (
        f"Some rows were measured in fewer than {FEW} instances of their program: intervals add "
        f"what lies between instances, a standard deviation of {' or '.join(figures)}."
    )


def _several(crossover: Crossover, beside: str) -> str:
    """Of a GPU that wins in parts: "only up to 22,500 parameters", "up to 90 and from 703,000"."""
    measure = crossover.question.measure
    before, after = ("", f" {measure}") if measure in _COUNTED else (_before(measure), "")
    wins_first = next(filter(None, crossover.winners)) == GPU_WINS
    ends = [
        before + _size(crossing, crossover, math.floor if wins_first == (i % 2 == 0) else math.ceil)
        for i, crossing in enumerate(crossover.crossings)
    ]
    spans = []
    if wins_first:
        spans.append(f"up to {ends.pop(0)}")
    while len(ends) > 1:
        spans.append(f"from {ends.pop(0)} to {ends.pop(0)}")
    only = "" if ends else "only "
    spans += [f"from {end}" for end in ends]
    return f"{only}{' and '.join(spans)}{after}{_interval(crossover, beside)}"


def _is_everywhere(crossover: Crossover) -> bool:
    """Whether the CPU wins at all sizes for sure."""
    return all(side == CPU_WINS for side in crossover.winners)


def _interval(crossover: Crossover, beside: str = "") -> str:
    low, high = (
        "" if end is None else _size(end, crossover) for end in (crossover.low, crossover.high)
    )
    interval = f"{low} to {high}" if low and high else ""
    if crossover.size and not (interval or crossover.question.is_band):
        interval = f"at most {high}" if high else f"at least {low}" if low else ""
    words = "; ".join(filter(None, [interval, beside]))
    return f" ({words})" if words else ""


def _sizes(crossover: Crossover) -> str:
    return "size" if crossover.question.is_band else "size measured"


def _size(size: float, crossover: Crossover, rounded: Callable[[float], int] = math.ceil) -> str:
    digits = 2 if crossover.question.is_band else 3  # a band is no measurement
    return units.size(size, digits, rounded)


def sized(number: str, measure: str) -> str:
    """A size, or several, with the word for it: "703,000 parameters", "batch 64", "n = 7,500"."""
    if measure in _COUNTED:
        return f"{number} {measure}"
    return f"{_before(measure)}{number}"


def _before(measure: str) -> str:
    return f"{measure} " if measure in _BEFORE else f"{printable(measure, 40)} = "
