# SPDX-License-Identifier: Apache-2.0
"""The samples of files: as one long table; in the quantity that is asked for; and how far instances
of one program are apart, which repetitions of one instance do not show.

docs/method/intervals.md, "Instances", says what is measured and where the assumed figures are from.
"""

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import compress
from pathlib import Path
from statistics import fmean, median
from typing import Any, Self

import numpy as np

from crossover_bench.files.families import derived
from crossover_bench.files.quantities import PRODUCTS, QUANTITIES, TIME, Quantity
from crossover_bench.files.rows import STOLEN, File, Instances, Row, Spread, median_of
from crossover_bench.words.text import counted

FEW = 5  # with fewer instances, a row says too little of what lies between them
_FEWEST_PROGRAMS = 5  # of _FEWEST_INSTANCES, that say alone how far instances are apart
_FEWEST_INSTANCES = 3
_EFFICIENCY = 0.5  # of a median of variances, of two degrees of freedom each, beside their mean
# What committed files show; tests/days.py derives it from them.
_COMMITTED = Path(__file__).parents[1] / "reference" / "instances.json"
_AS_OFTEN = 20  # instances that share a fact: so many that no chance is left
_OF_ROW, _OF_SAMPLE = ("file", "machine", "row"), ("quantity", "instance", "repetition", "value")
_FRAMES = ("polars", "pandas")  # the first that is installed makes the data frame


@dataclass(frozen=True, slots=True, repr=False)
class Samples:
    """A long table, a value in each line: `columns` are lists of equal length, by name.

    These are file, machine, row (its name) and the keys of rows' configurations (axis_quantity, as
    that name is taken); then quantity, instance, repetition and value. A quantity is one of
    QUANTITIES, its times of one epoch, step or operation, or the key of another counter. Facts of a
    row have no instance and no repetition.
    """

    columns: dict[str, list[Any]]

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'sample')}: {', '.join(self.columns)}>"

    def __len__(self) -> int:
        return len(self.columns["value"])

    def where(self, **wanted: object) -> Self:
        """The lines in which each column that is named has the value given."""
        lines = zip(*(self.columns[name] for name in wanted), strict=True)
        kept = [line == tuple(wanted.values()) for line in lines]
        return type(self)(
            {name: [*compress(column, kept)] for name, column in self.columns.items()}
        )

    def to_frame(self) -> Any:
        """A data frame of polars or of pandas; raises ImportError where neither is installed."""
        for name in _FRAMES:
            with suppress(ModuleNotFoundError):
                return import_module(name).DataFrame(self.columns)
        raise ImportError(
            "to_frame() needs polars or pandas, and this Python has neither: install one, or use "
            ".columns, which are lists"
        )


def long_table(files: Iterable[File]) -> Samples:
    """The samples of all rows of `files` that have a result, those of other programs as well."""
    rows = [
        (file, row)
        for file in files
        for row in (*file.own_rows, *file.peers, *file.builds, *file.commands, *file.functions)
        if not row.failure
    ]
    axes = {key: key for _, row in rows for key in row.configuration}
    axes |= {key: f"axis_{key}" for key in axes.keys() & {*_OF_ROW, *_OF_SAMPLE}}
    columns: dict[str, list[Any]] = {name: [] for name in (*_OF_ROW, *axes.values(), *_OF_SAMPLE)}
    for file, row in rows:
        of = row.instances.of or (0,) * len(row.samples)
        same: dict[str, Any] = {"file": str(file.path), "machine": file.machine.id, "row": row.name}
        same |= {name: row.configuration.get(key) for key, name in axes.items()}
        for quantity, values in _values(row):
            is_fact = isinstance(values, float)
            listed = [values] if isinstance(values, float) else values.tolist()
            count = len(listed)
            for name, value in {**same, "quantity": quantity}.items():
                columns[name] += [value] * count
            columns["instance"] += [None] if is_fact else of[:count]
            columns["repetition"] += [None] if is_fact else range(count)
            columns["value"] += listed
    return Samples(columns)


def _values(row: Row) -> Iterator[tuple[str, np.ndarray | float]]:
    """Each quantity of `row` with its values, one for each repetition or one in all."""
    names = {quantity.counter: quantity.name for quantity in QUANTITIES.values()}
    yield TIME.name, row.samples / row.count
    follows = derived(row.family, row.counters, 1.0)
    for key, value in row.counters.items():
        if key not in follows and not (key == PRODUCTS and row.is_one_kernel):
            yield names.get(key, key), row.measured.get(key, value)


def in_quantity(file: File, quantity: Quantity) -> File:
    """`file` with samples of `quantity`, without the rows that have none, and without its pairs,
    which compare times."""
    if quantity is TIME:
        return file
    converted = file.mapped(lambda row: _in_quantity(row, quantity))
    converted = replace(converted, refinements=())
    return converted if quantity.is_fact else with_spreads([converted])[0]


def _in_quantity(row: Row, quantity: Quantity) -> Row | None:
    if row.failure:
        return row
    if quantity.counter == PRODUCTS and row.is_one_kernel:
        return None
    values, instances = row.measured.get(quantity.counter, np.zeros(1)), row.instances
    if quantity.is_fact:
        values = np.full(_AS_OFTEN, row.counters.get(quantity.counter, 0.0))
        instances = Instances(tuple(range(_AS_OFTEN)))
    elif len(values) == 1:  # the same in all repetitions
        values = np.full(len(row.samples), values[0])
    if values.min() <= 0 or (not quantity.is_fact and len(values) != len(row.samples)):
        return None
    return replace(row, samples=values, instances=instances, quantity=quantity)


def by_instance(samples: np.ndarray, of: Sequence[int]) -> list[np.ndarray]:
    """`samples` of each instance; `of` says which one ran each, empty where one ran all."""
    if not of:
        return [samples]
    places = np.array(of)
    return [samples[places == instance] for instance in dict.fromkeys(of)]


def with_spreads(files: Collection[File]) -> list[File]:
    """`files` with Instances.spread in each row: what the programs of its family and device in its
    file show that ran more than once; else what those of the newest file of its machine show; else
    assumed()."""
    of_files = [_measured(file) for file in files]
    newest = sorted(zip(files, of_files, strict=True), key=lambda pair: pair[0].date)
    shown: dict[str, dict[tuple[str, str], Spread]] = {}
    for file, spreads in newest:
        of_machine = shown.setdefault(file.machine.id, {})
        of_machine |= {key: replace(spread, file=file.path.name) for key, spread in spreads.items()}
    return [
        _with_spreads(file, {**shown[file.machine.id], **spreads})
        for file, spreads in zip(files, of_files, strict=True)
    ]


def _with_spreads(file: File, known: dict[tuple[str, str], Spread]) -> File:
    rows = (*file.own_rows, *file.peers, *file.builds, *file.functions)
    kinds = dict.fromkeys((row.family, row.device) for row in rows)
    spreads = {kind: known.get(kind) or _expected(file, kind[1]) for kind in kinds}

    def told(row: Row) -> Row:
        spread = spreads.get((row.family, row.device))
        if spread is None:  # a command of a user's own
            return row
        return replace(row, instances=spread.of(row.instances))

    return replace(file.mapped(told), spreads=spreads)


def _measured(file: File) -> dict[tuple[str, str], Spread]:
    """Family and device → the spread between instances of their programs, where any shows it."""
    spreads = {
        kind: spread_between(programs, _expected(file, kind[1]))
        for kind, programs in runs_of(file).items()
    }
    return {kind: spread for kind, spread in spreads.items() if spread.programs}


def runs_of(file: File) -> dict[tuple[str, str], list[list[np.ndarray]]]:
    """Family and device → the programs of the rows of `file`, each with the logarithms of times of
    its instances. Rows that came to one program, such as "1 thread" and "auto on 16", are its."""
    kinds: dict[tuple[str, str], dict[Hashable, list[np.ndarray]]] = {}
    for row in (*file.rows, *file.functions):
        if row.failure is None:
            runs = [np.log(run) for run in by_instance(row.samples / row.count, row.instances.of)]
            program = row.workload, *sorted(row.runs_as.items())
            programs = kinds.setdefault((row.family, row.device), {})
            programs.setdefault(program, []).extend(runs)
    return {kind: [*programs.values()] for kind, programs in kinds.items()}


def assumed(device: str, is_busy: bool = False) -> Spread:
    """What lies between instances of rows on `device` if their file and machine do not show it: the
    root mean square over the machines that committed files are of, each of which counts as one
    degree of freedom; that of the widest where the machine `is_busy`."""
    deviations = _committed()["deviations"]
    shown = [*(deviations.get(device) or deviations["cpu"]).values()]
    mean = fmean(deviation**2 for deviation in shown) ** 0.5
    return Spread(max(shown) if is_busy else mean, freedom=len(shown))


def days() -> float:
    """How many times as far another day is from this one as one instance is from another."""
    return _committed()["days"]


@cache
def _committed() -> dict[str, Any]:
    return json.loads(_COMMITTED.read_text(encoding="utf-8"))


def _expected(file: File, device: str) -> Spread:
    """assumed() of the machine of `file`, which is busy where a hypervisor took its time."""
    key = "cpu_steal"
    stolen = (
        np.max(row.measured.get(key, row.counters.get(key, 0.0)))
        for row in (*file.rows, *file.functions)
    )
    return assumed(device, any(share > STOLEN for share in stolen))


def spread_between(programs: Sequence[Sequence[np.ndarray]], expected: Spread) -> Spread:
    """What lies between the instances of `programs` of one kind, each with the logarithms of times
    of its instances: those of one row, or of rows that came to one program.

    Where enough programs have three instances, they alone say (spread_of()). Else all that ran more
    than once say, in the mean, together with what is `expected` of machines, which counts as its
    degrees of freedom do; where none ran more than once that is all.
    """
    several = [runs for runs in programs if len(runs) >= _FEWEST_INSTANCES]
    if len(several) >= _FEWEST_PROGRAMS:
        freedom = sum(len(runs) - 1 for runs in several) * _EFFICIENCY
        return Spread(spread_of(several), len(several), freedom=freedom)
    again = [np.array([*map(median_of, runs)]) for runs in programs if len(runs) > 1]
    if not again:
        return expected
    squares = expected.freedom * expected.deviation**2
    squares += sum(float(np.sum((medians - medians.mean()) ** 2)) for medians in again)
    freedom = expected.freedom + sum(len(medians) - 1 for medians in again)
    return Spread((squares / freedom) ** 0.5, len(again), freedom=freedom)


def spread_of(rows: Sequence[Sequence[np.ndarray]]) -> float:
    """The standard deviation between the instances of a row, from logarithms of times by row and
    instance: what the medians of instances show, without what lies within instances.

    Both are medians, over all instances and over all rows, so that neither a few rows nor a few
    slow repetitions decide. What lies within is subtracted where each instance of a row has two
    repetitions at least: elsewhere the figure is too large, and never too small.
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
        medians = np.array([median_of(group) for group in groups])
        # Of equal ones exactly 0.
        between = float((medians - medians[0]).var(ddof=1)) / _typical(len(groups) - 1)
        if all(len(group) > 1 for group in groups):
            between -= of_repetition * sum(1 / len(group) for group in groups) / len(groups)
        shown.append(between)
    return max(0.0, median(shown)) ** 0.5


def _typical(freedom: int) -> float:
    """The median of variances with so many degrees of freedom, over the true variance: that of
    chi-squared, by Wilson and Hilferty."""
    return (1 - 2 / (9 * freedom)) ** 3
