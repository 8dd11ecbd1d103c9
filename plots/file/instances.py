# SPDX-License-Identifier: Apache-2.0
"""How far instances of one program are apart: what repetitions of one instance do not show.

docs/method/crossover.md, "Instances", says what is measured and where the assumed figures are from.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from statistics import median, variance

import numpy as np

from plots.file.rows import File, Row, Spread, median_of

FEW = 5  # with fewer instances, a row says too little of what lies between them
_FEWEST_ROWS = 5  # that a spread is measured on
_TRAINING = 0.028  # Epoch rows on a CPU: 2.6 to 2.9 %
_OTHERS = 0.078  # 121 rows of Gemm and Layer on a CPU, their median
_ASSUMED = {"Epoch": _TRAINING, "Minibatch": _TRAINING}


def by_instance(samples: np.ndarray, of: Sequence[int]) -> list[np.ndarray]:
    """`samples` of each instance; `of` says which one ran each, empty where one ran all."""
    if not of:
        return [samples]
    places = np.array(of)
    return [samples[places == instance] for instance in dict.fromkeys(of)]


def with_spreads(files: Collection[File]) -> list[File]:
    """`files`, each row of which knows how far instances of such rows are apart.

    That is what the rows of its family and device in its file show; else those of the newest file
    of its machine that shows it; else an assumed figure.
    """
    own = [_measured(file) for file in files]
    newest = sorted(zip(files, own, strict=True), key=lambda pair: pair[0].date)
    shown: dict[str, dict[tuple[str, str], Spread]] = {}
    for file, spreads in newest:
        of_machine = shown.setdefault(file.machine.id, {})
        of_machine |= {key: replace(spread, file=file.path.name) for key, spread in spreads.items()}
    return [
        _with_spreads(file, {**shown[file.machine.id], **spreads})
        for file, spreads in zip(files, own, strict=True)
    ]


def _with_spreads(file: File, known: dict[tuple[str, str], Spread]) -> File:
    spreads = {
        (row.family, row.device): known.get(
            (row.family, row.device), Spread(_ASSUMED.get(row.family, _OTHERS))
        )
        for row in (*file.rows, *file.peers, *file.builds)
    }

    def told(rows: Iterable[Row]) -> tuple[Row, ...]:
        return tuple(
            replace(
                row,
                instances=replace(row.instances, spread=spreads[row.family, row.device].deviation),
            )
            for row in rows
        )

    return replace(
        file,
        rows=told(file.rows),
        peers=told(file.peers),
        builds=told(file.builds),
        spreads=spreads,
    )


def _measured(file: File) -> dict[tuple[str, str], Spread]:
    """Family and device → what lies between the instances of its rows, where enough show it."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in file.rows:
        if row.failure is None and (shown := _variance(row)) is not None:
            found.setdefault((row.family, row.device), []).append(shown)
    return {
        key: Spread(max(0.0, median(each)) ** 0.5, len(each))
        for key, each in found.items()
        if len(each) >= _FEWEST_ROWS
    }


def _variance(row: Row) -> float | None:
    """Of the logarithms of times between the instances of `row`, so that the median over many rows
    is right; None with fewer than three instances.

    What lies within instances is subtracted where it is known: an instance with one repetition
    says nothing of that, so that the result is too large then, and never too small.
    """
    groups = [np.log(group) for group in by_instance(row.samples, row.instances.of)]
    if len(groups) < 3:
        return None
    freedom = len(groups) - 1
    # The median of chi-squared, by Wilson and Hilferty.
    typical = (1 - 2 / (9 * freedom)) ** 3
    between = variance(median_of(group) for group in groups) / typical
    several = [group for group in groups if len(group) > 1]
    if len(several) < len(groups):
        return between
    within = sum(float(group.var(ddof=1)) / len(group) for group in several) / len(several)
    return between - within
