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
_FEWEST_INSTANCES = 3  # of a row that shows a spread
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
    found: dict[tuple[str, str], list[list[np.ndarray]]] = {}
    for row in file.rows:
        groups = [np.log(group) for group in by_instance(row.samples, row.instances.of)]
        if row.failure is None and len(groups) >= _FEWEST_INSTANCES:
            found.setdefault((row.family, row.device), []).append(groups)
    return {
        key: Spread(spread_of(rows), len(rows))
        for key, rows in found.items()
        if len(rows) >= _FEWEST_ROWS
    }


def spread_of(rows: Sequence[Sequence[np.ndarray]]) -> float:
    """The standard deviation between instances of a row, of the logarithms of times by row and
    instance: what its instances' medians show, without what lies within instances.

    Each is a median of all that shows it, so that neither a few rows nor a few slow repetitions
    decide. What lies within is subtracted where each instance of a row has repetitions enough to
    show it: elsewhere the result is too large, and never too small.
    """
    within = [
        float(group.var(ddof=1)) / _typical(len(group) - 1)
        for groups in rows
        for group in groups
        if len(group) > 1
    ]
    of_repetition = median(within) if within else 0.0
    shown = []
    for groups in rows:
        between = variance(median_of(group) for group in groups) / _typical(len(groups) - 1)
        if all(len(group) > 1 for group in groups):
            between -= of_repetition * sum(1 / len(group) for group in groups) / len(groups)
        shown.append(between)
    return max(0.0, median(shown)) ** 0.5


def _typical(freedom: int) -> float:
    """The median of variances of so many degrees of freedom, of the true one: that of chi-squared,
    by Wilson and Hilferty."""
    return (1 - 2 / (9 * freedom)) ** 3
