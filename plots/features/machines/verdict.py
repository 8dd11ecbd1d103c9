# SPDX-License-Identifier: Apache-2.0
"""Which machine trains faster, and by how much: a sentence for each machine.

docs/method/comparing.md, "Machines side by side", defines the interval.
"""

from collections.abc import Sequence

import numpy as np

from plots import units
from plots.core import statistics
from plots.core.machines import EITHER, Ratio, SideBySide, Standing
from plots.file.families import EPOCH
from plots.file.rows import Row
from plots.text import counted, printable

MOST = 4  # sentences; the table has every machine


def interval(ratio: Ratio) -> tuple[float, float] | None:
    """The 95 % interval of `ratio`; None where a row has too few repetitions for one."""
    if any(len(row.samples) < statistics.FEWEST_SAMPLES for pair in ratio.pairs for row in pair):
        return None
    logs = [
        _log_medians(mine, 2 * place) - _log_medians(theirs, 2 * place + 1)
        for place, (mine, theirs) in enumerate(ratio.pairs)
    ]
    low, high = statistics.interval(np.mean(logs, axis=0))
    return float(np.exp(low)), float(np.exp(high))


def _log_medians(row: Row, stream: int) -> np.ndarray:
    return np.log(statistics.resampled_medians(row.samples, stream, instances=row.instances))


def verdicts(side: SideBySide) -> list[str]:
    """How fast each machine trains beside the baseline, in a sentence; of the first MOST of them,
    and where no ratio is of the machines alone, why."""
    others = [one for one in side.standings if one.file is not side.baseline]
    found = [said for one in others if (said := _sentence(one, side))]
    if apart := [one for one in others if side.is_of_two_programs(one)]:
        found.append(_apart(apart, side))
    return found[: MOST + 1]


def _sentence(one: Standing, side: SideBySide) -> str:
    ratio = one.ratios.get((EPOCH, EITHER))
    if ratio is None or side.is_of_two_programs(one):
        return ""
    ends = interval(ratio)
    names = [printable(file.machine.id, 60) for file in (one.file, side.baseline)]
    speed = 1 / ratio.mean
    ends = ends and (1 / ends[1], 1 / ends[0])
    if swapped := speed < 1:  # the faster one is the subject
        names.reverse()
        speed, ends = 1 / speed, ends and (1 / ends[1], 1 / ends[0])
    return f"{_claim(names, speed, ends)}, {_over(ratio, swapped)}."


def _claim(names: Sequence[str], speed: float, ends: tuple[float, float] | None) -> str:
    first, second = names
    times = f"{units.significant(speed)} times"
    if ends is None:
        return f"{first} trains {times} as fast as {second} (too few repetitions for an interval)"
    reach = f"{units.significant(ends[0])} to {units.significant(ends[1])}"
    if ends[0] <= 1 <= ends[1]:
        return f"{first} and {second} train about as fast: {times} ({reach})"
    return f"{first} trains {times} ({reach}) as fast as {second}"


def _over(ratio: Ratio, swapped: bool) -> str:
    """Over how many networks, and from which to which of them."""
    if ratio.works == 1:
        return f"on {printable(ratio.pairs[0][0].model, 24)} alone"
    speeds = sorted((theirs.median / mine.median, mine.model) for mine, theirs in ratio.pairs)
    if swapped:
        speeds = sorted((1 / speed, model) for speed, model in speeds)
    (least, first), (most, last) = speeds[0], speeds[-1]
    return (
        f"geometric mean over {counted(ratio.works, 'network')}: from {units.significant(least)} "
        f"times on {printable(first, 24)} to {units.significant(most)} times on "
        f"{printable(last, 24)}"
    )


def _apart(apart: Sequence[Standing], side: SideBySide) -> str:
    names = ", ".join(printable(one.file.machine.id, 60) for one in apart)
    commit = printable(side.baseline.software.commit[:7], 12)
    return (
        f"No verdict on {names}: {'its file is' if len(apart) == 1 else 'their files are'} of "
        f"another commit than the baseline's ({commit}), so the ratios in brackets are of machine "
        "and program. Measure both at one commit."
    )
