# SPDX-License-Identifier: Apache-2.0
"""Machines side by side: of each the figures that a buyer compares.

docs/method/comparing.md defines them.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from crossover_bench.curves.comparability import is_of_one_code, obstacles
from crossover_bench.curves.crossover import Comparison
from crossover_bench.curves.network import best, epoch_rows, on_device, per_iteration
from crossover_bench.files.axes import DEVICES, Items
from crossover_bench.files.families import EPOCH, FAMILIES, PROBES
from crossover_bench.files.file_order import PassedOver, gpus_first, has_gpu, machine, passed_over
from crossover_bench.files.ladders import networks_of_any
from crossover_bench.files.rows import File, Machine, Row
from crossover_bench.study.programs import answered
from crossover_bench.study.study import PYTORCH, Study
from crossover_bench.words.text import printable

# A large network and a small real one, each with its own batch: model → batch.
SHOWN = {"disc-10": "100", "heart": "10"}
SHOWN_FAMILIES = (*FAMILIES, *reversed(PROBES))
EITHER = "either"  # in place of a device: the faster of the two, for each piece of work
SORTS = ("date", "name", "crossover", "cpu", "gpu", *SHOWN, "ratio")

# What a row computes, with what both sides should have alike, and how much of it.
_Work = tuple[Items, Items, tuple[float | None, ...]]
_Works = dict[tuple[str, str], dict[_Work, Row]]
_AMOUNTS = ("params", "rows", "steps")
_LARGEST = 600.0  # logarithm of a ratio; a double ends at 709


@dataclass(frozen=True, slots=True)
class Ratio:
    """The geometric mean, over `works` pieces of work, of a machine's time over the baseline's.

    `works_of` is how many the baseline has; more than `works` where the machine lacks some. `pairs`
    are the rows, the machine's and the baseline's of each.
    """

    mean: float
    pairs: tuple[tuple[Row, Row], ...]
    works_of: int

    @property
    def works(self) -> int:
        """How many pieces of work both have."""
        return len(self.pairs)


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """One machine among others.

    `answer` is the comparison that gives its crossover, None where there is none; `pytorch` is that
    of PyTorch's loop. `times` has the
    fastest row for each network of SHOWN and device, `ratios` one for each family and device (or
    EITHER) that the baseline has, too. `obstacle` says why there are no ratios; empty where there
    are. `older` counts the machine's files that are not shown.
    """

    file: File
    answer: Comparison | None
    times: dict[tuple[str, str], Row]
    ratios: dict[tuple[str, str], Ratio]
    obstacle: str = ""
    older: int = 0
    pytorch: Comparison | None = None


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Machines in the order in which they are shown, and the one the ratios are to; `passed_over`
    are newer files that say less."""

    standings: tuple[Standing, ...]
    baseline: File
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def others(self) -> list[Standing]:
        """All but the baseline."""
        return [standing for standing in self.standings if standing.file is not self.baseline]

    @property
    def has_ratios(self) -> bool:
        """Whether one of them has work in common with the baseline, whose own ratios are 1."""
        return any(standing.ratios for standing in self.others)

    def is_of_one_code(self, standing: Standing, family: str, place: str) -> bool:
        """Whether that ratio of `standing` is of the machines alone, and not of the program too."""
        pairs = standing.ratios[family, place].pairs
        devices = {row.device for pair in pairs for row in pair}
        return is_of_one_code(standing.file, self.baseline, family, devices)

    def of_other_code(self, standing: Standing) -> list[str]:
        """The families whose ratios are of machine and program, in the order of the table."""
        apart = {key[0] for key in standing.ratios if not self.is_of_one_code(standing, *key)}
        return [family for family in SHOWN_FAMILIES if family in apart]


class UnknownMachineError(Exception):
    """There is no such machine; the message is one sentence that names those that there are."""


def side_by_side(
    files: Sequence[File],
    *,
    studies: Mapping[Path, Study] | None = None,
    older: Iterable[File] = (),
    baseline: File | None = None,
    sort: str = SORTS[0],
    refuse: bool = True,
) -> SideBySide:
    """Sets `files`, one or more, beside each other; those with a GPU come first.

    `studies` are theirs by path, made where they are not given; `older` files are only counted.
    `baseline` is one of `files` (None: the first with a GPU, or the first of all).
    `refuse`: no ratios of files that obstacles() (curves/comparability.py) keep apart.
    """
    chosen = baseline or gpus_first(files)[0]
    reference = _works(chosen)
    older = list(older)
    hidden = [machine(file) for file in older]
    studies = studies or {file.path: Study(file) for file in files}

    def standing(file: File) -> Standing:
        obstacle = "; ".join(obstacles(chosen, file)) if refuse and file is not chosen else ""
        study = studies[file.path]
        return Standing(
            file=file,
            answer=study.foremost,
            times=_times(file),
            ratios={} if obstacle else _ratios(_works(file), reference),
            obstacle=obstacle,
            older=hidden.count(machine(file)),
            pytorch=theirs.comparison if (theirs := answered(study, PYTORCH)) else None,
        )

    standings = ordered(map(standing, files), sort)
    return SideBySide(tuple(standings), chosen, tuple(passed_over(files, older)))


def networks_of(standings: Iterable[Standing]) -> str:
    """The networks that the crossovers of `standings` are about: "disc networks"."""
    standings = list(standings)
    names = dict.fromkeys(each.answer.networks for each in standings if each.answer)
    return " or ".join(names) or networks_of_any(each.file.ladders[0] for each in standings)


def short_processor(name: str) -> str:
    """`name` without what says nothing beside other processors: "Intel Xeon Platinum 8480+"."""
    words = name.replace("(R)", "").replace("(TM)", "").split(" @ ")[0].split()
    kept = [word for word in words if word not in ("CPU", "Processor") and "-Core" not in word]
    return " ".join(kept) or name


def processor_words(machine: Machine) -> str:
    """The processor of `machine` and its cores, with CPUID's family and model where the machine's
    id has them, as the processor's name then says too little."""
    name = short_processor(machine.cpu.model)
    hidden = re.search(r"-([0-9]+)-([0-9]+)-[0-9]+c$", machine.id)
    if hidden and not re.search("[0-9]", name):
        name += f" (family {hidden[1]}, model {hidden[2]})"
    return f"{name}, {machine.cpu.cores_words}"


_MAKERS = re.compile(r"^(NVIDIA |AMD |Intel |GeForce |Radeon (?=RX )|Instinct )+| Graphics$")


def short_gpu(name: str) -> str:
    """`name` without its vendor's: "H100 PCIe", "RX 7900 XTX", "Arc A770"."""
    return _MAKERS.sub("", name.replace("(R)", "").replace("(TM)", "")) or name


def named(files: Sequence[File], name: str) -> File:
    """The first file of the machine, or the one at the path, that `name` gives.

    Raises UnknownMachineError where there is none.
    """
    for file in files:
        if name in (file.machine.id, str(file.path)):
            return file
    known = ", ".join(dict.fromkeys(printable(file.machine.id, 60) for file in files))
    raise UnknownMachineError(
        f"--baseline: none of these files is of {printable(name)}; there are {known}"
    )


def ordered(standings: Iterable[Standing], sort: str) -> list[Standing]:
    """`standings` by `sort`, one of SORTS: machines with a GPU first, then what comes first.

    First are the latest date, the name that starts the alphabet, the smallest crossover, the
    shortest time on either device, the smallest ratio. Who has no such figure comes last; who has
    the same stays in the order of `standings`. By date, files of one machine stay together.
    """
    value = _SORT_VALUES[sort]

    def key(standing: Standing) -> tuple[object, ...]:
        figure = value(standing)
        return not has_gpu(standing.file), figure is None, 0 if figure is None else figure

    by_figure = sorted(standings, key=key)
    if sort != "date":
        return by_figure
    places: dict[tuple[str, str | None], int] = {}
    for standing in by_figure:
        places.setdefault(machine(standing.file), len(places))
    return sorted(by_figure, key=lambda standing: places[machine(standing.file)])


def crossover_number(comparison: Comparison) -> float | None:
    """The crossover as one number: the size from which the GPU wins, and where it wins at every
    size the smallest of them, as it is not above that. None where no size is known."""
    if comparison.crossover.kind == "always":
        return float(comparison.sizes[0])
    return comparison.crossover.size


def cpu_curve(file: File) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, and seconds of an epoch on the best thread count of the CPU, of the networks of the
    file's first ladder in their own batch.

    For a file without an `answer`, whose comparison has that curve. Both may be empty.
    """
    times: dict[float, float] = {}
    for row in on_device(_plain_epochs(file), "cpu"):
        if row.ladder == file.ladders[0] and row.batch == row.ladder.batch:
            size = row.counters["params"]
            times[size] = min(row.median, times.get(size, math.inf))
    sizes = sorted(times)
    return np.array(sizes), np.array([times[size] for size in sizes])


def _plain_epochs(file: File) -> list[Row]:
    """The Epoch rows in f32 with whatever else both devices should have alike at its plainest."""
    return [
        row
        for row in epoch_rows(file)
        if all(value == axis.plainest for axis, value in row.axes.of(row.configuration, "alike"))
    ]


def _times(file: File) -> dict[tuple[str, str], Row]:
    times = {}
    rows = _plain_epochs(file)
    for model, batch in SHOWN.items():
        wanted = {"family": EPOCH, "model": model, "batch": batch}
        of_network = [row for row in rows if dict(row.axes.what(row.configuration)) == wanted]
        for device in DEVICES:
            if there := on_device(of_network, device):
                times[model, device] = best(there)
    return times


def _works(file: File) -> _Works:
    """Family and device (or EITHER) → work → the row that does it in the shortest time."""
    works: _Works = {}
    for row in file.rows:
        if row.failure or row.family not in SHOWN_FAMILIES or row.device not in DEVICES:
            continue
        work = _work(row)
        for place in (row.device, EITHER):
            fastest = works.setdefault((row.family, place), {})
            if work not in fastest or _log_seconds(row) < _log_seconds(fastest[work]):
                fastest[work] = row
    return works


def _work(row: Row) -> _Work:
    alike = tuple(
        (axis.key, value)
        for axis, value in row.axes.of(row.configuration, "alike")
        if value != axis.plainest
    )
    amounts = tuple(row.counters.get(name) for name in _AMOUNTS)
    return row.axes.what(row.configuration), alike, amounts


def _log_seconds(row: Row) -> float:
    """The logarithm of the median time of what machines have in common."""
    return math.log(row.median) - math.log(per_iteration(row))


def _ratios(works: _Works, reference: _Works) -> dict[tuple[str, str], Ratio]:
    ratios = {}
    for place, theirs in reference.items():
        mine = works.get(place, {})
        pairs = tuple(
            (mine[work], base)
            for work, base in theirs.items()
            if work in mine
            and (not base.workload or mine[work].workload in (None, "", base.workload))
        )
        if pairs:
            logs = [_log_seconds(row) - _log_seconds(base) for row, base in pairs]
            mean = max(-_LARGEST, min(_LARGEST, sum(logs) / len(logs)))
            ratios[place] = Ratio(math.exp(mean), pairs, len(theirs))
    return ratios


def _by_crossover(standing: Standing) -> tuple[bool, float, int] | None:
    """Undecided comes before a GPU that wins at small sizes only, and that before a GPU that never
    wins."""
    if standing.answer is None:
        return None
    number = crossover_number(standing.answer)
    order = ("always", "once", "ambiguous", "several", "never")
    return (number is None, number or 0.0, order.index(standing.answer.crossover.kind))


def _by_time(model: str, standing: Standing) -> float | None:
    seconds = [row.median for (name, _), row in standing.times.items() if name == model]
    return min(seconds, default=None)


_SORT_VALUES: dict[str, Callable[[Standing], object]] = {
    "date": lambda standing: -standing.file.date.timestamp(),
    "name": lambda standing: standing.file.machine.id.casefold(),
    "crossover": _by_crossover,
    "cpu": lambda standing: short_processor(standing.file.machine.cpu.model).casefold(),
    "gpu": lambda standing: short_gpu(standing.file.machine.gpu or "").casefold() or None,
    **{model: partial(_by_time, model) for model in SHOWN},
    "ratio": lambda standing: (
        ratio.mean if (ratio := standing.ratios.get((EPOCH, EITHER))) else None
    ),
}
