# SPDX-License-Identifier: Apache-2.0
"""Makes problems of the rows of other programs' benchmarks: rows that do the same work on both
sides, the number that is its size, and the other numbers that they have."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from crossover_bench.answers.two.saved import saved_problems
from crossover_bench.answers.two.sides import (
    AskError,
    Item,
    Wanted,
    items_of,
    pattern_of,
    with_sides,
)
from crossover_bench.curves.problem import SIDES, Problem, Way
from crossover_bench.curves.statistics import FEWEST_SAMPLES
from crossover_bench.files.google_benchmark import Source, Timing
from crossover_bench.files.rows import median_of
from crossover_bench.words.text import counted, listed, printable, sentence

# What people call a size, the most telling first.
_SIZES = ("n", "size", "elements", "length", "len", "count", "num", "nx", "rows", "bytes")
_PLAIN = {"bm", "benchmark", "bench"}  # words that names begin with
_MADE = (
    "The files have aggregates in the place of repetitions: intervals are those of normal noise "
    "with their mean and deviation."
)
_NVBENCH = (
    "nvbench's times are means of the GPU's own time: neither copies nor what the host does before "
    "a launch are in them."
)
_NO_SIZES = (
    "CPU and GPU have no two sizes in common; measure both at the same sizes, and give both files"
)
_MANY = (
    "Rows of several threads run a copy of the work in each: their times are divided by the number "
    "of copies, and those of one thread are of one call after the other."
)
_IN_TURN = (
    "The time of a copy is added to each piece: no copy overlaps with work or with another copy."
)
_UNTOLD = (
    "of several threads left out: before release 1.9 Google Benchmark divided their times by the "
    "number of threads, and the file does not say which release wrote it; give the JSON of one."
)
_FEW = (
    f"An interval needs {FEWEST_SAMPLES} repetitions of each row: measure with "
    "--benchmark_repetitions=9."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A problem of files, and the same with data that is `copied` each time, which comes on top of
    the GPU's times. `taken` says in a sentence what was taken for what, unless the files did;
    `sources` are its files. `is_verified` says that results were compared."""

    problem: Problem
    taken: str
    sources: tuple[Source, ...]
    copied: Problem | None = None
    is_verified: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The problems of files, and a sentence for each kind of rows that is left out."""

    asked: tuple[Asked, ...]
    left_out: tuple[str, ...]


def problems_of(timings: Sequence[Timing], wanted: Wanted) -> Found:
    """What `timings` answer; raises AskError where that is not clear. Files that
    crossover_bench.two() has saved say it, unless `wanted` says otherwise."""
    if wanted != Wanted():
        return _by_names(timings, wanted)
    saved = tuple(
        Asked(problem, "", _sources(of), copied, is_verified=True)
        for problem, copied, of in saved_problems(timings)
    )
    others = [of for of in timings if not of.source.two]
    by_names = _by_names(others, wanted) if others else Found((), ())
    return replace(by_names, asked=(*saved, *by_names.asked))


def _by_names(timings: Sequence[Timing], wanted: Wanted) -> Found:
    items = items_of(timings)
    left_out = []
    told = [of for of in items if _is_alone(of) or of.timing.source.divides is not None]
    if untold := len(items) - len(told):
        left_out.append(f"{counted(untold, 'row')} {_UNTOLD}")
    once: list[Item] = []
    if pattern := wanted.once:
        once = [of for of in told if pattern.search(of.timing.name) and _is_alone(of)]
        told = [of for of in told if not pattern.search(of.timing.name)]
        if not once:
            text = printable(pattern.pattern, 60)
            raise AskError(
                f"--once={text!r} matches no row of one thread; let it match the rows of a copy"
            )
    if not told:
        raise AskError(*left_out or ["--once matches every row; let it match those of a copy"])
    sided = with_sides(told, wanted)
    groups, unpaired = _groups(sided)
    lost = len(told) - len(sided) + unpaired
    if lost:
        left_out.append(f"{counted(lost, 'row')} left out: no row of the other side does the same.")
    if feeding := sum(map(_feeding, groups)):
        left_out.append(
            f"{counted(feeding, 'row')} of several threads of the GPU left out: no row of the CPU "
            "has several."
        )
    asked: list[Asked] = []
    faults = [_NO_SIZES]
    for group in groups:
        try:
            asked += _asked(group, wanted, once)
        except AskError as error:
            faults.insert(0, str(error))
    if not asked:
        failed = next((of.timing for of in sided if of.timing.failure), None)
        name = printable(failed.name, 60) if failed else ""
        why = f'; row "{name}" has no time: {printable(failed.failure, 100)}' if failed else ""
        raise AskError(faults[0] + why)
    return Found(tuple(asked), (*left_out, *map(sentence, faults[:-1])))


def _sources(timings: Sequence[Timing]) -> tuple[Source, ...]:
    return tuple({of.source.path: of.source for of in timings}.values())


def _is_alone(item: Item) -> bool:
    """Whether it is the time of one piece of work."""
    return item.timing.threads <= 1


def _feeding(group: Sequence[Item]) -> int:
    """How many rows have several threads that call the GPU, where none of the CPU's has."""
    many = [item.device for item in group if not _is_alone(item)]
    return 0 if "cpu" in many else len(many)


def _groups(items: Sequence[Item]) -> tuple[list[list[Item]], int]:
    """The rows of both sides that do the same work, and how many rows have no other side. Where
    each side does a single work, that is one."""
    by_rest: dict[tuple[str, ...], list[Item]] = {}
    for item in items:
        by_rest.setdefault(item.rest, []).append(item)
    groups = [group for group in by_rest.values() if len(_sides(group)) == 2]
    if not groups:
        if len(by_rest) == 2:
            return [[*items]], 0
        cpu, gpu = (
            next(item.name.text for item in items if item.device == device) for device in SIDES
        )
        raise AskError(
            "which rows of both sides do the same work is not clear: without the words for a "
            "device, no two names are alike; let --cpu and --gpu match all that differs, such as "
            f"--cpu='{pattern_of(cpu)}' --gpu='{pattern_of(gpu)}'"
        )
    return groups, len(items) - sum(map(len, groups))


def _sides(group: Sequence[Item]) -> set[str | None]:
    return {item.device for item in group}


# ---- the numbers of names


Numbers = Mapping[str, int]


def _asked(group: Sequence[Item], wanted: Wanted, once: Sequence[Item]) -> Iterator[Asked]:
    """A problem for each value of the numbers that are not the size."""
    group = _named_alike([item for item in group if item.name.numbers] or group)
    shared = _shared(group)
    size = _size_of(group, shared, wanted.size)
    others = [
        key
        for key in shared
        if key != size and _varies(group, key) and not _follows(group, key, size)
    ]
    by_value: dict[tuple[int, ...], list[Item]] = {}
    for item in group:
        numbers = dict(item.name.numbers)
        by_value.setdefault(tuple(numbers[key] for key in others), []).append(item)
    for values, items in sorted(by_value.items()):
        if len(_sides(items)) < 2:
            continue
        common = dict(zip(others, values, strict=True))
        words = {_word(key): str(common[key]) for key in others}
        sources = _sources([of.timing for of in items])
        brought = _brought(once, size, common)
        if problem := _problem([*filter(_is_alone, items)], size, words, shared):
            copied = _copied(problem, brought) if once else None
            yield Asked(problem, _taken(problem), sources, copied)
        threads = max(of.timing.threads for of in items if of.device == "cpu")
        if threads > 1 and (problem := _problem(items, size, words, shared)):
            remarks = (*problem.remarks, _MANY, *([_IN_TURN] if once else []))
            many = replace(problem, threads=threads, remarks=remarks)
            copied = _copied(many, brought) if once else None
            yield Asked(many, _taken(many), sources, copied)


def _named_alike(group: Sequence[Item]) -> Sequence[Item]:
    """Where all rows have a single number, which some of them do not name, that is one number."""
    keys = {key for item in group for key, _ in item.name.numbers}
    named = [key for key in keys if not key.startswith("#")]
    if len(keys) != 2 or len(named) != 1 or any(len(of.name.numbers) != 1 for of in group):
        return group
    (key,) = named
    return [
        replace(of, name=replace(of.name, numbers=((key, of.name.numbers[0][1]),))) for of in group
    ]


def _word(key: str) -> str:
    """A number without a name in words."""
    return f"argument {key[1:]}" if key.startswith("#") else key


def _shared(group: Sequence[Item]) -> list[str]:
    """The keys of numbers that all rows have, and that are the same on both sides somewhere."""
    counts = Counter(key for item in group for key, _ in item.name.numbers)
    return [key for key, count in counts.items() if count == len(group) and _common(group, key)]


def _common(group: Sequence[Item], key: str) -> set[int]:
    """The values of a number that both sides have."""
    cpu, gpu = (_values([of for of in group if of.device == device], key) for device in SIDES)
    return cpu & gpu


def _values(group: Sequence[Item], key: str) -> set[int]:
    return {numbers[key] for numbers in (dict(of.name.numbers) for of in group) if key in numbers}


def _varies(group: Sequence[Item], key: str) -> bool:
    return len(_values(group, key)) > 1


def _follows(group: Sequence[Item], key: str, size: str) -> bool:
    """Whether the number `key` is the same in all rows of a size, as bytes are beside elements."""
    every = (dict(of.name.numbers) for of in group)
    pairs = {(numbers[size], numbers.get(key)) for numbers in every}
    return len(pairs) == len({at for at, _ in pairs})


def _size_of(group: Sequence[Item], shared: Sequence[str], asked: str) -> str:
    """The key of the number that is the size."""
    varying = [key for key in shared if _varies(group, key)]
    if asked:
        for key in varying:
            if asked.lower() in (key.lower(), key.removeprefix("#")):
                return key
        choice = listed([_flag(group, key) for key in varying]) or "none"
        raise AskError(
            f"--size={printable(asked, 40)} is no number that varies; these do: {choice}"
        )
    if not varying:
        raise AskError(
            f'no number varies in rows such as "{printable(group[0].timing.name, 60)}", so there '
            "is no size; measure both sides at several sizes"
        )
    known = [key for name in _SIZES for key in varying if key.lower() == name]
    counts = {key: len(_common(group, key)) for key in varying}
    most = [key for key in varying if counts[key] == max(counts.values())]
    chosen = (known or most)[0]
    unclear = [key for key in most if key != chosen and not _follows(group, key, chosen)]
    if unclear and not known:
        choice = " or ".join(_flag(group, key) for key in (chosen, *unclear))
        name = printable(group[0].timing.name, 60)
        raise AskError(f'which number of "{name}" is the size is not clear; say {choice}')
    return chosen


def _flag(group: Sequence[Item], key: str) -> str:
    values = _values(group, key)
    return f"--size={printable(key.removeprefix('#'), 40)} ({min(values):,} to {max(values):,})"


# ---- a problem


def _problem(
    items: Sequence[Item], size: str, common: Mapping[str, str], shared: Sequence[str]
) -> Problem | None:
    """None where the sides have fewer than two sizes in common."""
    measure = _word(size) if not size.startswith("#") else "n"
    ways: dict[tuple[str, str], list[Item]] = {}
    for device in SIDES:
        of_side = [item for item in items if item.device == device]
        keys = {key for item in of_side for key, _ in item.name.numbers if key not in shared}
        apart = {key for key in keys if not _follows(of_side, key, size)}
        for item in of_side:
            told = "".join(f"/{_word(key)}:{n}" for key, n in item.name.numbers if key in apart)
            told += f"/threads:{item.timing.threads}" if item.timing.threads > 1 else ""
            ways.setdefault((device, item.way + told), []).append(item)
    made = tuple(_way(word, of, size) for (_, word), of in ways.items())
    sizes = [{at for way in made if way.device == device for at in way.seconds} for device in SIDES]
    if len(sizes[0] & sizes[1]) < 2:
        return None
    remarks = [_runs(items)] if _runs(items) else []
    if any(item.timing.is_made for item in items):
        remarks.append(_MADE)
    if any(item.timing.device == "gpu" for item in items):
        remarks.append(_NVBENCH)
    if any(len(seconds) < FEWEST_SAMPLES for way in made for seconds in way.seconds.values()):
        remarks.append(_FEW)
    return Problem(_title(items), measure, made, dict(common), tuple(remarks))


def _runs(items: Sequence[Item]) -> str:
    """That several files have the same rows; empty where none do. Raises AskError where these are
    of several machines."""
    files: dict[tuple[object, str], dict[Path, str]] = {}
    for item in items:
        source = item.timing.source
        hosts = files.setdefault((item.device, item.way), {})
        hosts[source.path] = source.facts.get("host_name", "")
    for (_, way), hosts in files.items():
        if len(names := sorted({*hosts.values()} - {""})) > 1:
            machines = listed([printable(name, 60) for name in names[:4]])
            raise AskError(
                f"rows of {printable(way, 60)} were measured on {machines}; name the files of one "
                "machine"
            )
    most = max(map(len, files.values()))
    return f"{most} files have the same rows: each is a run of its own." if most > 1 else ""


def _way(word: str, items: Sequence[Item], size: str) -> Way:
    seconds: dict[float, list[float]] = {}
    instances: dict[float, list[int]] = {}
    failures: dict[float, str] = {}
    paths = [*dict.fromkeys(item.timing.source.path for item in items)]
    for item in items:
        at, timing = float(dict(item.name.numbers)[size]), item.timing
        if at <= 0:
            failures[at] = "a size of 0 has no place on a logarithmic scale"
        elif timing.seconds:
            seconds.setdefault(at, []).extend(timing.seconds)
            process = paths.index(timing.source.path)
            instances.setdefault(at, []).extend([process] * len(timing.seconds))
        else:
            failures[at] = timing.failure
    return Way(
        word,
        "gpu" if items[0].device == "gpu" else "cpu",
        {at: tuple(times) for at, times in seconds.items()},
        {at: tuple(of) for at, of in instances.items()},
        {at: reason for at, reason in failures.items() if at not in seconds},
    )


def _title(items: Sequence[Item]) -> str:
    """The words that all rows have, as the first writes them, but for those of a device; where
    there are none, those that all names have."""
    first = items[0].name.words
    for texts in ([of.rest for of in items], [of.name.words for of in items]):
        common = set.intersection(*({word.lower() for word in words} for words in texts)) - _PLAIN
        if words := [word for word in first if word.lower() in common]:
            return " ".join(dict.fromkeys(words))
    return listed([next(of.name.text for of in items if of.device == device) for device in SIDES])


def _taken(problem: Problem) -> str:
    sides = (
        f"for the {device.upper()} {listed([printable(way.word, 60) for way in of])}"
        for device, of in ((device, problem.of(device)) for device in SIDES)
    )
    return f"Taken {', '.join(sides)}; for the size {printable(problem.measure, 40)}."


# ---- what comes on top where data is brought each time


def _brought(once: Sequence[Item], size: str, common: Numbers) -> dict[float, float]:
    """Seconds by size: of each kind of row that --once matches the median, added up."""
    totals: dict[float, dict[str, list[float]]] = {}
    for item in once:
        numbers = dict(item.name.numbers)
        if any(numbers.get(key, value) != value for key, value in common.items()):
            continue
        keys = [key for key in numbers if key == size] or [*numbers]
        if len(keys) != 1:
            name = printable(item.timing.name, 60)
            raise AskError(f'row "{name}" of --once has no number {_word(size)} to tell its size')
        at = float(numbers[keys[0]])
        totals.setdefault(at, {}).setdefault(item.name.text, []).extend(item.timing.seconds)
    return {
        at: sum(median_of(np.array(seconds)) for seconds in kinds.values())
        for at, kinds in totals.items()
        if all(kinds.values())
    }


def _copied(problem: Problem, brought: Mapping[float, float]) -> Problem:
    """The problem with `brought` on top of the GPU's times, at the sizes that have one."""

    def with_copy(way: Way) -> Way:
        seconds = {
            at: tuple(time + brought[at] for time in times)
            for at, times in way.seconds.items()
            if at in brought
        }
        return replace(way, seconds=seconds)

    ways = tuple(with_copy(way) if way.device == "gpu" else way for way in problem.ways)
    return replace(problem, ways=ways, common={**problem.common, "data": "copied"})
