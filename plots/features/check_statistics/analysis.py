# SPDX-License-Identifier: Apache-2.0
"""How often a difference is seen where there is none: a file whose two builds are the same one.

Each question of the statistics is asked of the two: docs/method/comparing.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from plots.core.crossover import comparisons
from plots.features.compare.analysis import FEWEST_REPETITIONS, compare
from plots.features.peers.analysis import pairs
from plots.file.families import TRAINING
from plots.file.rows import File, Row


@dataclass(frozen=True, slots=True)
class Asked:
    """How often a question had an answer, and how often that was a difference. `nominal`: the share
    of differences that the statistics allow themselves."""

    question: str
    asked: int
    differences: int
    nominal: float


def ask(ours: File, theirs: File) -> list[Asked]:
    """All questions that the two files, of one program, have rows for."""
    found = [
        *_rows(ours, theirs),
        *_peers(ours, theirs),
        *_sizes(ours, theirs),
        *_refined(ours),
    ]
    return [one for one in found if one.asked]


def _rows(ours: File, theirs: File) -> Iterator[Asked]:
    compared = compare(theirs, ours)
    pairs = [pair for pair in compared.pairs if pair.repetitions >= FEWEST_REPETITIONS]
    called = compared.count("faster") + compared.count("slower")
    apart = sum(not pair.low <= 1 <= pair.high for pair in pairs)
    judged = sum(not pair.is_disturbed for pair in pairs)
    yield Asked("compare: rows called faster or slower", judged, called, 0.0)
    yield Asked("compare: rows whose 95 % interval excludes 1", len(pairs), apart, 0.05)


def _peers(ours: File, theirs: File) -> Iterator[Asked]:
    """One in the place of another framework."""
    found = [pair for pair in pairs(replace(ours, peers=theirs.rows)) if pair.low and pair.high]
    apart = sum(not pair.low <= 1 <= pair.high for pair in found)
    yield Asked("peers: ratios whose 95 % interval excludes 1", len(found), apart, 0.05)


def _sizes(ours: File, theirs: File) -> Iterator[Asked]:
    """One in the place of the CPU, the other in that of a GPU."""
    found = [
        comparison.crossover
        for threads in sorted({row.threads for row in ours.rows if row.threads})
        for comparison in comparisons(_as_two_devices(ours, theirs, threads))
    ]
    decided = [crossover for crossover in found if any(crossover.winners)]
    yield Asked("crossover: curves with a winner at any size", len(found), len(decided), 0.05)


def _refined(file: File) -> Iterator[Asked]:
    """Sizes that were measured in pairs, one program against the other."""
    sizes = [
        size
        for one in file.refinements
        if one.kind == "program"
        for size in (one.sizes if one.complete else one.sizes[:-1])  # the last may be half done
    ]
    sure = sum(size.winner is not None for size in sizes)
    yield Asked("refine: sizes with a sure winner", len(sizes), sure, 0.05 / 32)


def _as_two_devices(ours: File, theirs: File, threads: int) -> File:
    own = tuple(row for row in ours.rows if row.family in TRAINING and row.threads == threads)
    others = tuple(
        replace(row, configuration=_on_a_gpu(row), index=-1 - row.index)
        for row in theirs.rows
        if row.family in TRAINING and row.threads == threads
    )
    return replace(ours, rows=own + others, refinements=(), peers=(), builds=())


def _on_a_gpu(row: Row) -> dict[str, str]:
    rest = {key: value for key, value in row.configuration.items() if key != "cpu_threads"}
    return {**rest, "device": "cuda", "execution": "eager"}
