# SPDX-License-Identifier: Apache-2.0
"""Problems of files that crossover_bench.two() has saved, as it had them: their rows say which side
and process they are of, and what both copies took."""

from collections.abc import Iterator, Sequence

from crossover_bench.curves.problem import Device, Problem, Way
from crossover_bench.files.google_benchmark import Timing

Key = tuple[str, Device | None]  # a problem's name, and the device of all its sides


def saved_problems(
    timings: Sequence[Timing],
) -> Iterator[tuple[Problem, Problem | None, list[Timing]]]:
    """Of each problem of those `timings` whose source has `two`: it, the same with both copies in
    each call where a side is on a device, and its timings. Several files are several runs."""
    by_problem: dict[Key, list[Timing]] = {}
    for timing in timings:
        if two := timing.source.two:
            by_problem.setdefault((two.name, two.both), []).append(timing)
    for (_, both), each in by_problem.items():
        yield _problem(each, False), None if both else _problem(each, True), each


def _problem(timings: Sequence[Timing], with_copies: bool) -> Problem:
    ways: dict[tuple[str, Device], list[Timing]] = {}
    remarks: dict[str, None] = {}
    for timing in timings:
        two = timing.source.two
        stem = timing.name.rpartition("/")[0]
        if two and stem in two.sides:
            ways.setdefault(two.sides[stem], []).append(timing)
            remarks |= dict.fromkeys(two.remarks)
    told = timings[0].source.two
    assert told
    return Problem(
        told.name,
        told.measure,
        tuple(_way(*side, each, with_copies) for side, each in ways.items()),
        {"data": "copied"} if with_copies else {},
        tuple(remarks),
        told.both,
    )


def _way(word: str, device: Device, timings: Sequence[Timing], with_copies: bool) -> Way:
    seconds: dict[float, list[float]] = {}
    processes: dict[float, list[tuple[object, int]]] = {}
    failures: dict[float, str] = {}
    for timing in timings:
        digits = timing.name.rpartition(":")[2]
        if not (digits.isdecimal() and len(digits) <= 18 and int(digits)):
            continue
        size = float(digits)
        if timing.failure:
            failures[size] = timing.failure
        copies = timing.copies if with_copies else [0.0] * len(timing.seconds)
        seconds.setdefault(size, []).extend(map(sum, zip(timing.seconds, copies, strict=True)))
        of = [(timing.source.path, process) for process in timing.processes]
        processes.setdefault(size, []).extend(of)
    every = dict.fromkeys(of for each in processes.values() for of in each)
    numbers = {of: number for number, of in enumerate(every)}
    return Way(
        word,
        device,
        {size: tuple(times) for size, times in seconds.items() if times},
        {size: tuple(numbers[of] for of in each) for size, each in processes.items()},
        failures,
    )
