# SPDX-License-Identifier: Apache-2.0
"""The answer of a problem in sentences."""

from collections.abc import Iterator, Sequence

from crossover_bench.curves import statistics
from crossover_bench.curves.crossover import Crossover, SpeedUp
from crossover_bench.curves.crossover_words import (
    claim,
    crossover_words,
    ratio_words,
    sized,
    spread_words,
    winner,
)
from crossover_bench.curves.problem import SIDES, Answer, Way
from crossover_bench.words import units
from crossover_bench.words.text import counted, listed, printable, sentence

_MOST = 12  # sizes that a sentence lists


def sentences(answer: Answer) -> tuple[str, ...]:
    """The answer, most useful first: who wins where, by how much, what failed, how sure it is."""
    added = spread_words(answer.spreads)
    return (lead(answer), *details(answer), *([added] if added else []))


def details(answer: Answer) -> tuple[str, ...]:
    """All but who wins where, and what intervals add."""
    return (ends(answer), *ways(answer), *doubts(answer))


def lead(answer: Answer) -> str:
    """Who wins from which size on: "sort: the GPU wins from n = 7,500 (7,000 to 8,100)."."""
    return f"{printable(answer.problem.title, 120)}: {who_wins(answer)}."


def lead_of_both(stay: Answer, copied: Answer) -> str:
    """lead() of a problem whose data stay on the device, and of it with a copy in each call."""
    title = printable(stay.problem.title, 120)
    there, each = map(who_wins, (stay, copied))
    return f"{title}: with the data there {there}; copied each time {each}."


def who_wins(answer: Answer) -> str:
    """claim() of the answer; of too few repetitions what their medians say, and that they do."""
    medians, article = answer.crossover.medians, "" if answer.problem.both else "the"
    crossover = medians or answer.crossover
    told = claim(crossover, _more(answer, crossover), article=article)
    if medians is None:
        return told
    few = f"by medians of fewer than {statistics.FEWEST_SAMPLES} repetitions, without an interval"
    return f"{told}, {few}"


def _more(answer: Answer, crossover: Crossover) -> str:
    """What stands for "wins" where the answer is throughput; empty where it is not."""
    threads = answer.problem.threads
    if not threads:
        return ""
    if winner(crossover) == answer.problem.sides[0]:
        return "does more pieces a second than the GPU"
    up_to = "up to " if len(answer.cpus) > 1 else ""
    return f"does more pieces a second than {up_to}{threads} threads of the CPU"


def verdict(answer: Answer) -> str:
    """The answer in a few words: "from n = 7,500 (7,000 to 8,100)"."""
    return crossover_words(answer.crossover)


def ends(answer: Answer) -> str:
    """By how much, at the smallest and at the largest size, in a sentence."""
    parts = (f"{_place(answer, of.parameters)} {_ratio(answer, of)}" for of in answer.ends)
    return sentence("; ".join(parts))


def _place(answer: Answer, size: float) -> str:
    return f"at {sized(units.count(size), answer.problem.measure)}"


def _ratio(answer: Answer, speed_up: SpeedUp) -> str:
    first, second = sides(answer)
    if speed_up.winner and answer.problem.both:
        faster = first if speed_up.winner == "cpu" else second
        return f"{faster} is {units.significant(speed_up.factor)} times as fast"
    if speed_up.winner:
        return ratio_words(speed_up)
    if speed_up.low is None:
        return f"{first} takes {units.significant(speed_up.ratio)} times as long as {second}"
    return "neither is surely faster"


def sides(answer: Answer) -> tuple[str, str]:
    """What the two are called inside a sentence: "the CPU" and "the GPU"."""
    first, second = answer.problem.sides
    return (first, second) if answer.problem.both else (f"the {first}", f"the {second}")


def ways(answer: Answer) -> Iterator[str]:
    """Which ways stand for a side that has several, and what each of the GPU's says."""
    for word, device in zip(sides(answer), SIDES, strict=True):
        names = [printable(way.word, 60) for way in answer.problem.of(device)]
        if len(names) > 1 and not answer.problem.both:
            yield sentence(f"{word} is the fastest of {listed(names)}, at each size")
    if len(answer.compared) > 1:
        parts = (
            f"{printable(each.gpu.words.how, 60)}: {crossover_words(each.crossover)}"
            for each in answer.compared
        )
        others = "the others" if answer.problem.both else "the GPU's ways"
        yield f"Of {others}, {'; '.join(parts)}."


def doubts(answer: Answer) -> Iterator[str]:
    """What failed, what is left out, and how times came about, a sentence each."""
    for way in answer.problem.ways:
        yield from _failed(answer, way)
    if left := answer.one_sided:
        yield f"Times of one side alone, at {_sizes(answer, left)}, are no part of the answer."
    yield from answer.problem.remarks


def _failed(answer: Answer, way: Way) -> Iterator[str]:
    reasons: dict[str, list[float]] = {}
    for size, reason in way.failures.items():
        reasons.setdefault(reason, []).append(size)
    device = (answer.problem.both or way.device).upper()
    for reason, sizes in reasons.items():
        yield (
            f"On the {device} {printable(way.word, 60)} has no time at "
            f"{_sizes(answer, sorted(sizes))}: {printable(reason, 160)}."
        )


def _sizes(answer: Answer, sizes: Sequence[float]) -> str:
    """ "n = 32,768, 65,536 and 131,072"; of many the first and the last."""
    if len(sizes) > _MOST:
        ends = f"{units.count(sizes[0])} to {units.count(sizes[-1])}"
        return f"{sized(ends, answer.problem.measure)} ({counted(len(sizes), 'size')})"
    return sized(listed([units.count(size) for size in sizes]), answer.problem.measure)
