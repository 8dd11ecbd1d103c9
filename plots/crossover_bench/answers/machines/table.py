# SPDX-License-Identifier: Apache-2.0
"""Machines side by side as tables, and which of them trains faster, and by how much, in sentences.

docs/method/comparing.md defines the interval of a sentence."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from crossover_bench.curves import statistics
from crossover_bench.curves.comparability import remarks
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.headline import way
from crossover_bench.curves.network import per_iteration
from crossover_bench.files.axes import DEVICES
from crossover_bench.files.families import EPOCH, TRAINING
from crossover_bench.files.file_order import has_gpu
from crossover_bench.files.rows import File, Row
from crossover_bench.show.tables.cells import Field, date_cell, number_field, table_of, text_field
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.study.machines import (
    EITHER,
    SHOWN,
    SHOWN_FAMILIES,
    Ratio,
    SideBySide,
    Standing,
    crossover_number,
    networks_of,
    processor_words,
    short_gpu,
)
from crossover_bench.words import units
from crossover_bench.words.text import counted, listed, printable, sentence, whole

_PLACES = {**DEVICES, EITHER: "faster"}
_PREFIXES = {"cpu": "cpu", "cuda": "gpu", EITHER: "faster"}
_WORK = ("params", "rows", "steps")
_ANSWERS = {  # in place of a size, and why a note explains it
    "never": "never",
    "several": "not for good",
    "ambiguous": "undecided",
}
_GPU: Field = (
    Column("gpu", "GPU"),
    lambda standing: Cell(short_gpu(gpu), gpu) if (gpu := standing.file.machine.gpu) else NOTHING,
)
_HOW: tuple[Field, ...] = (
    text_field(
        "answer",
        "answer",
        lambda each: each.answer.crossover.kind if each.answer else _without(each),
    ),
    (
        Column("batch", "batch", numeric=True),
        lambda each: (
            Cell(each.answer.batch or "–", whole(each.answer.batch)) if each.answer else NOTHING
        ),
    ),
    text_field("way", "GPU computes", lambda each: (each.answer and way(each.answer)) or None),
)
_FILE = text_field("file", "file", lambda standing: standing.file.path.name)


def machines_table(side: SideBySide) -> Table:
    """A line for each machine: what it is, its crossover, its times, and its ratios."""
    notes = {text: place for place, text in enumerate(_about(side), 1)}
    both = any(has_gpu(standing.file) for standing in side.standings)
    reference = next(each for each in side.standings if each.file is side.baseline)

    def name(standing: Standing) -> Cell:
        file, doubts = standing.file, []
        if standing.obstacle:
            other = side.baseline.machine.id
            doubts.append(f"No ratios, as it differs from {other}: {standing.obstacle}.")
        if not file.complete:
            doubts.append(f"From a run that was {file.ended}: rows are missing.")
        if file.software.dirty:
            doubts.append("Measured with uncommitted changes.")
        bold = file is side.baseline
        return Cell(file.machine.id, file.machine.id, bold=bold, marks=marks(doubts, notes))

    def cpu(standing: Standing) -> Cell:
        machine = standing.file.machine
        return Cell(processor_words(machine), machine.cpu.model)

    def time(model: str, device: str) -> Field:
        def cell(standing: Standing) -> Cell:
            row, other = (each.times.get((model, device)) for each in (standing, reference))
            if row is None:
                return NOTHING
            rows = [*filter(None, (standing.times.get((model, each)) for each in DEVICES))]
            fastest = len(rows) > 1 and row is min(rows, key=lambda each: each.median)
            doubts = [*row.warnings, *(_other_work(row, other) if other else ())]
            return Cell(units.seconds(row.median), row.median, fastest, marks(doubts, notes))

        key = model.lower().replace("-", "_")
        column = Column(f"{key}_{_PREFIXES[device]}_seconds", _PLACES[device], True, model)
        return column, cell

    def mean(family: str, place: str) -> Field:
        def cell(standing: Standing) -> Cell:
            ratio = standing.ratios.get((family, place))
            if ratio is None:
                return NOTHING
            doubts = []
            if ratio.works < ratio.works_of:
                doubts.append(f"Over {ratio.works} of the {ratio.works_of} that the baseline has.")
            text = units.significant(ratio.mean)
            is_of_both = not side.is_of_one_code(standing, family, place)
            shown = f"({text})" if is_of_both else text
            return Cell(shown, ratio.mean, marks=marks(doubts, notes), faint=is_of_both)

        key = f"{family.lower()}_{_PREFIXES[place]}_ratio"
        return Column(key, _PLACES[place], True, f"{family} ratio"), cell

    fields = (
        (Column("machine", "machine"), name),
        *_crossover_fields(notes),
        _GPU,
        *(time(model, device) for model in SHOWN for device in DEVICES),
        *(
            mean(family, place)
            for family in SHOWN_FAMILIES
            for place in _PLACES
            if (place != EITHER or (both and family in TRAINING))
            and any((family, place) in standing.ratios for standing in side.standings)
        ),
        (Column("cpu", "CPU"), cpu),
        *_HOW,
        (Column("measured", "measured"), lambda standing: date_cell(standing.file)),
        text_field("commit", "commit", lambda each: each.file.software.commit[:7] or None),
        _FILE,
    )
    title = "Crossover and times of two networks"
    if side.has_ratios:
        title = f"Crossover, times of two networks, and ratios to {side.baseline.machine.id}"
    table = table_of(title, side.standings, fields, notes)

    def tells(place: int, column: Column) -> bool:
        is_ratio = column.key.endswith("_ratio")  # the baseline's own is 1
        return sum(line[place].value is not None for line in table.lines) > is_ratio

    # What no machine has is for programs alone.
    columns = tuple(
        replace(column, for_programs=not tells(place, column))
        for place, column in enumerate(table.columns)
    )
    return replace(table, columns=columns)


def summary_table(standings: Sequence[Standing]) -> Table:
    """A line for each machine: its crossover as one number, its interval, and how it came."""
    notes: dict[str, int] = {}
    name = text_field("machine", "machine", lambda standing: standing.file.machine.id)
    title = f"Parameters of the {networks_of(standings)} from which the GPU wins"
    pytorch = text_field(
        "pytorch",
        "in PyTorch",
        lambda each: each.pytorch and crossover_words(each.pytorch.crossover),
    )
    fields = (name, *_crossover_fields(notes), pytorch, *_HOW, _GPU, _FILE)
    return table_of(title, standings, fields, notes)


def _crossover_fields(notes: dict[str, int]) -> tuple[Field, ...]:
    """The columns of the size from which the GPU wins, and its interval."""
    group = "GPU wins from"

    def size(standing: Standing) -> Cell:
        answer, text = standing.answer, crossover_text(standing)
        if answer is None:
            return Cell(text)
        words = f"{standing.file.machine.id}: {crossover_words(answer.crossover)}."
        explained = [words] if answer.crossover.kind in _ANSWERS else []
        return Cell(text, crossover_number(answer), marks=marks(explained, notes))

    return (
        (Column("crossover", "size", True, group), size),
        number_field("low", "low", lambda each: each.answer and each.answer.crossover.low, group),
        number_field(
            "high", "high", lambda each: each.answer and each.answer.crossover.high, group
        ),
    )


def part(table: Table, title: str, keys: Collection[str], general: bool = False) -> Table:
    """The columns of `table` whose key is in `keys`, and the notes that their cells point to.

    `general`: also those that no cell of `table` points to, as they are on all of it.
    """
    kept = [place for place, column in enumerate(table.columns) if column.key in keys]
    return table.only(kept, title).noted(table.general if general else ())


def crossover_text(standing: Standing) -> str:
    """From how many parameters the GPU of the machine wins: "703,000", "≤ 22", "never"."""
    answer = standing.answer
    if answer is None:
        return _without(standing)
    if answer.crossover.kind == "always":
        return f"≤ {units.count(answer.sizes[0])}"
    size = answer.crossover.size
    return units.size(size) if size else _ANSWERS[answer.crossover.kind]


def _without(standing: Standing) -> str:
    """What a machine without an answer has in its place."""
    return "not compared" if has_gpu(standing.file) else "no GPU"


def _about(side: SideBySide) -> list[str]:
    """What the columns mean, and what is true of all lines."""
    baseline = side.baseline.machine.id
    networks = " and ".join(f"{model} (batch {batch})" for model, batch in SHOWN.items())
    texts = []
    if any(standing.answer for standing in side.standings):
        texts.append(
            f"Size: parameters of the {networks_of(side.standings)} from which the GPU wins "
            "against the best thread count of the CPU; ≤: at every size measured. Low, high: its "
            "95 % interval."
        )
    texts.append(f"Times: one epoch of {networks} in f32, the fastest way on each device.")
    if side.has_ratios:
        texts.append(
            f"Ratio: geometric mean of the time over that on {baseline}, over all that both "
            "measured, each at the fastest way on its device; below 1 is faster."
        )
    texts += (passed.sentence for passed in side.passed_over)
    newer = sum(len(passed.files) for passed in side.passed_over)
    if older := sum(standing.older for standing in side.standings) - newer:
        files = counted(older, "older file")
        texts.append(f"Of each machine the newest file; {files} left out (--all shows each file).")
    if len(side.others) == 1 and side.has_ratios:
        (other,) = side.others
        phrases = remarks(side.baseline, other.file)
        texts += (sentence(phrase) for phrase in phrases if phrase not in other.obstacle)
    return texts


def _other_work(row: Row, other: Row) -> list[str]:
    """What `row` does that the baseline's does not."""
    return [
        f"Other work than the baseline's: {key} {units.count(row.counters[key])} and not "
        f"{units.count(other.counters[key])}."
        for key in _WORK
        if row.counters[key] != other.counters[key]
    ]


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
    """Of the time of what machines have in common; a probe's iteration may do more on one."""
    medians = statistics.resampled_medians(row.samples, stream, instances=row.instances)
    return np.log(medians) - math.log(per_iteration(row))


def verdicts(side: SideBySide) -> list[str]:
    """How fast each machine trains beside the baseline, in a sentence; of the first MOST of them,
    and where no ratio is of the machines alone, why."""
    sentences = [words for standing in side.others if (words := _sentence(standing, side))][:MOST]
    return [*sentences, *filter(None, [_apart(side)])]


def _sentence(standing: Standing, side: SideBySide) -> str:
    ratio = standing.ratios.get((EPOCH, EITHER))
    if ratio is None or not side.is_of_one_code(standing, EPOCH, EITHER):
        return _of_parts(standing, side)
    ends = interval(ratio)
    names = [_name(file, side) for file in (standing.file, side.baseline)]
    speed = 1 / ratio.mean
    ends = ends and (1 / ends[1], 1 / ends[0])
    if swapped := speed < 1:  # the faster one is the subject
        names.reverse()
        speed, ends = 1 / speed, ends and (1 / ends[1], 1 / ends[0])
    return f"{_claim(names, speed, ends)}, {_over(ratio, swapped)}."


def _name(file: File, side: SideBySide) -> str:
    """That of its machine, with the file's where several are of that machine."""
    name = printable(file.machine.id, 60)
    alike = [each for each in side.standings if each.file.machine.id == file.machine.id]
    return f"{name} ({printable(file.path.name, 40)})" if len(alike) > 1 else name


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


def _of_parts(standing: Standing, side: SideBySide) -> str:
    """How fast a machine is where its code is the baseline's, though training is not or was not
    measured; empty where it is in nothing."""
    speeds = []
    for (family, place), ratio in standing.ratios.items():
        if place != EITHER and side.is_of_one_code(standing, family, place):
            ends = interval(ratio)
            reach = (
                f" ({units.significant(1 / ends[1])} to {units.significant(1 / ends[0])})"
                if ends
                else ""
            )
            times = f"{units.significant(1 / ratio.mean)} times{reach}"
            speeds.append((family, f"{family} on the {_PLACES[place]} {times}"))
    if not speeds:
        return ""
    speeds.sort(key=lambda of: SHOWN_FAMILIES.index(of[0]))
    names = [_name(file, side) for file in (standing.file, side.baseline)]
    listing = listed([words for _, words in speeds])
    return f"{names[0]} runs {listing} as fast as {names[1]}, each a geometric mean over its rows."


def _apart(side: SideBySide) -> str:
    """On whom there is no verdict, in what; empty where there is one on all."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for standing in side.others:
        if families := side.of_other_code(standing):
            name = _name(standing.file, side)
            groups.setdefault(tuple(families), []).append(name)
    if not groups:
        return ""
    words = (f"on {', '.join(names)} in {listed(families)}" for families, names in groups.items())
    return (
        f"No verdict {', '.join(words)}: the version of that code is not known to be the "
        f"baseline's ({printable(side.baseline.software.commit[:7], 12)}), so the ratios in "
        "brackets are of machine and program. Measure both at one commit."
    )
