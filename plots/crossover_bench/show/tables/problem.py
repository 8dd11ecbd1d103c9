# SPDX-License-Identifier: Apache-2.0
"""Tables of problems: a line for each answer, and of one problem a line for each size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from crossover_bench.curves.crossover import SpeedUp
from crossover_bench.curves.crossover_words import crossover_words, spread_words
from crossover_bench.curves.curves import Curve
from crossover_bench.curves.problem import SIDES, Answer, Device, Way
from crossover_bench.files.rows import median_of
from crossover_bench.show.tables.cells import (
    Field,
    count_field,
    crossover_fields,
    for_programs,
    interval_fields,
    number_field,
    table_of,
    text_field,
)
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.words import units


def crossovers_table(answers: Sequence[Answer]) -> Table:
    """A line for each way of the GPU of each of `answers`, against the best of the CPU's. Where
    repetitions are too few, that is what their medians say, without an interval."""
    numbers = dict.fromkeys(key for answer in answers for key in answer.problem.common)
    alike = any(answer.problem.both for answer in answers)
    first, second = ("first", "second") if alike else ("CPU", "GPU")
    fields = (
        text_field("problem", "problem", lambda of: replace(of[0].problem, common={}).title),
        *(_number(key) for key in numbers),
        text_field("cpu", first, lambda of: of[1].cpu.words.there),
        text_field("gpu", second, lambda of: of[1].gpu.words.there),
        text_field("measure", "over", lambda of: of[1].measure),
        *crossover_fields(f"{second} wins from", lambda of: of[1]),
        for_programs(count_field("repetitions", "repetitions", lambda of: of[0].fewest)),
        *_end("smallest", 0),
        *_end("largest", -1),
        for_programs(text_field("answer", "in words", lambda of: crossover_words(of[1].crossover))),
    )
    lines = [
        (answer, replace(each, crossover=each.crossover.medians or each.crossover))
        for answer in answers
        for each in answer.compared
    ]
    spreads = dict.fromkeys(spread_words(answer.spreads) for answer in answers)
    title = f"From which size the {second} wins"
    return table_of(title, lines, fields, filter(None, spreads))


def _end(name: str, place: int) -> tuple[Field, Field]:
    """The columns of the size at one end, and of the speedup there."""
    size = count_field(f"{name}_size", name, lambda of: of[1].sizes[place])
    ratio = number_field(f"{name}_speed_up", f"at {name}", lambda of: of[0].ends[place].ratio)
    return for_programs(size), for_programs(ratio)


def _number(key: str) -> Field:
    return text_field(key, key, lambda of: of[0].problem.common.get(key))


@dataclass(frozen=True, slots=True)
class _Line:
    """A size: the time of the fastest way of each side, and their ratio, as far as there are."""

    size: float
    cpu: tuple[str, float] | None
    gpu: tuple[str, float] | None
    speed_up: SpeedUp | None
    failures: tuple[str, ...]

    @property
    def low(self) -> float | None:
        """The lower end of the 95 % interval of the ratio."""
        return self.speed_up.low if self.speed_up else None

    @property
    def high(self) -> float | None:
        """The upper end of it."""
        return self.speed_up.high if self.speed_up else None


def sizes_table(answer: Answer) -> Table:
    """A line for each size of a problem; the faster side's time is bold where it is sure."""
    notes: dict[str, int] = {}
    sides = dict(zip(SIDES, answer.problem.sides, strict=True))

    def size(of: _Line) -> Cell:
        return Cell(units.count(of.size), of.size, marks=marks(of.failures, notes))

    fields = (
        (Column("size", answer.problem.measure, True), size),
        *(field for device in SIDES for field in (_way(answer, device), _seconds(device, sides))),
        number_field("speed_up", "SPEEDUP", lambda of: of.speed_up and of.speed_up.ratio),
        *interval_fields(),
        text_field("faster", "faster", lambda of: _faster(of, sides)),
    )
    title = f"{answer.problem.title}: SPEEDUP = {sides['cpu']} time / {sides['gpu']} time"
    return table_of(title, _lines(answer), fields, notes)


def _part(line: _Line, device: str, place: int) -> str | float | None:
    side: tuple[str, float] | None = getattr(line, device)
    return side and side[place]


def _way(answer: Answer, device: Device) -> Field:
    """The column of the fastest way of a side, which only programs need where there is one."""
    side = answer.problem.sides[SIDES.index(device)]
    field = text_field(device, "way", lambda of: _part(of, device, 0), side)
    return field if len(answer.problem.of(device)) > 1 else for_programs(field)


def _seconds(device: Device, sides: Mapping[Device, str]) -> Field:
    def cell(line: _Line) -> Cell:
        seconds = _part(line, device, 1)
        if not isinstance(seconds, float):
            return NOTHING
        wins = line.speed_up is not None and line.speed_up.winner == device
        return Cell(units.seconds(seconds), seconds, bold=wins)

    return Column(f"{device}_seconds", "time", True, sides[device]), cell


def _faster(line: _Line, sides: Mapping[Device, str]) -> str | None:
    if line.speed_up is None:
        return None
    winner = next((device for device in SIDES if device == line.speed_up.winner), None)
    return sides[winner] if winner else "not sure"


def _lines(answer: Answer) -> list[_Line]:
    speed_ups = {of.parameters: of for of in answer.speed_ups}
    gpus = [comparison.gpu for comparison in answer.compared]
    sizes = {size for curve in (*answer.cpus, *gpus) for size in curve.sizes.tolist()}
    sizes |= {size for way in answer.problem.ways for size in way.failures}
    return [
        _Line(
            size,
            _fastest(answer.cpus, size),
            _fastest(gpus, size),
            speed_ups.get(size),
            tuple(_failure(way, size) for way in answer.problem.ways if size in way.failures),
        )
        for size in sorted(sizes)
    ]


def _fastest(curves: Sequence[Curve], size: float) -> tuple[str, float] | None:
    at_size = [curve.at(size) for curve in curves if size in curve.sizes]
    timed = [(curve.words.how, median_of(curve.samples[0])) for curve in at_size]
    return min(timed, key=lambda pair: pair[1], default=None)


def _failure(way: Way, size: float) -> str:
    return f"{way.word}: {way.failures[size]}"
