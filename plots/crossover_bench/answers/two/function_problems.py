# SPDX-License-Identifier: Apache-2.0
"""The functions of a file (docs/howto/two-functions.md) as problems: the sides on the CPU against
those on the GPU; where all are on one device, the first against the others."""

from collections.abc import Iterator, Mapping, Sequence

from crossover_bench.answers.two.problems import Asked, Found
from crossover_bench.curves.problem import Device, Problem, Way
from crossover_bench.files.google_benchmark import Source
from crossover_bench.files.rows import File, Row
from crossover_bench.words import units
from crossover_bench.words.text import printable

_SIDE, _COPIES = "side", "transfers"


def by_problem(file: File) -> dict[str, list[Row]]:
    """The rows of each problem, by title_of()."""
    problems: dict[str, list[Row]] = {}
    for row in file.functions:
        problems.setdefault(title_of(row.configuration), []).append(row)
    return problems


def title_of(configuration: Mapping[str, str]) -> str:
    """The problem as its user calls it, and what else its sides have in common: "sort", "sort,
    caches flushed"."""
    caches = configuration.get("caches")
    return ", ".join([configuration.get("problem", "?"), *([f"caches {caches}"] if caches else [])])


def asked_of(file: File) -> Found:
    """The problems of `file` of which two sides have times, and a sentence for each that has not,
    and for each side without any."""
    asked, left_out = list[Asked](), list[str]()
    for name, rows in by_problem(file).items():
        title = printable(name, 60)
        timed = {row.configuration[_SIDE]: row for row in rows if not row.failure}
        for row in rows:
            if row.failure and timed.setdefault(row.configuration[_SIDE], row) is row:
                why = printable(row.failure.message, 400)
                size = f"n = {units.count(size_of(row))}"
                left_out.append(
                    f"{title}: {side_words(row.configuration)} has no times; at {size}: {why}."
                )
        known = [row for row in rows if not timed[row.configuration[_SIDE]].failure]
        sides = [*dict.fromkeys(side_words(row.configuration) for row in known)]
        if len({row.configuration[_SIDE] for row in known}) > 1:
            asked.append(_asked(name, known, file))
        elif sides:
            left_out.append(f"{title}: {sides[0]} has nothing beside it.")
    return Found(tuple(asked), tuple(left_out))


def _asked(name: str, rows: Sequence[Row], file: File) -> Asked:
    copied = _problem(name, rows, copied=True) if any(map(is_copied, rows)) else None
    return Asked(_problem(name, rows, copied=False), "", (_source(file),), copied)


def side_words(configuration: Mapping[str, str]) -> str:
    """The side as its user calls it: "CUB", "CUB with its copies"."""
    copies = " with its copies" if _copies_each(configuration) else ""
    return f"{printable(configuration.get(_SIDE, '?'), 60)}{copies}"


def _problem(name: str, rows: Sequence[Row], copied: bool) -> Problem:
    devices: set[Device] = {_device(row) for row in rows}
    both = devices.pop() if len(devices) == 1 else None
    ways = list(_ways(rows, copied))
    if both:
        ways = [(side, "gpu" if place else "cpu", of) for place, (side, _, of) in enumerate(ways)]
    made = tuple(_way(side, device, of) for side, device, of in ways)
    common = {"data": "copied"} if copied else {}
    return Problem(name, "n", made, common, both=both)


def is_copied(row: Row) -> bool:
    """Whether each call copies its data."""
    return _copies_each(row.configuration)


def _copies_each(configuration: Mapping[str, str]) -> bool:
    return configuration.get(_COPIES) == "each"


def size_of(row: Row) -> float:
    """The n of its calls."""
    return float(row.configuration["size"])


def _device(row: Row) -> Device:
    return "cpu" if row.device == "cpu" else "gpu"


def _ways(rows: Sequence[Row], copied: bool) -> Iterator[tuple[str, Device, list[Row]]]:
    """Each side with its rows: those with copies in each call where that is asked and it has any,
    else those without."""
    sides: dict[str, dict[bool, list[Row]]] = {}
    for row in rows:
        of_side = sides.setdefault(row.configuration[_SIDE], {})
        of_side.setdefault(is_copied(row), []).append(row)
    for side, kinds in sides.items():
        chosen = kinds.get(copied) or kinds.get(False) or kinds[True]
        yield side, _device(chosen[0]), chosen


def _way(side: str, device: Device, rows: Sequence[Row]) -> Way:
    timed = {size_of(row): row for row in rows if not row.failure}
    return Way(
        side,
        device,
        {size: tuple(row.samples.tolist()) for size, row in timed.items()},
        {size: row.instances.of for size, row in timed.items()},
        {size_of(row): row.failure.message for row in rows if row.failure},
    )


def _source(file: File) -> Source:
    facts = {"num_cpus": str(file.machine.cpu.cores), "host_name": file.machine.id}
    return Source(
        file.path,
        device_name=file.machine.gpu or "",
        facts={**facts, "date": file.date.isoformat()},
    )
