# SPDX-License-Identifier: Apache-2.0
"""What the committed files show of one program that was measured again: by another instance, and on
another day. docs/evidence/another_day.md has its tables; the statistics assume what it derives.

    python -m crossover_bench.tests.days      # writes reference/instances.json
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from crossover_bench.counts.reference import REFERENCE
from crossover_bench.curves.comparability import is_of_one_code
from crossover_bench.curves.crossover import Crossover, comparisons
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.headline import placement
from crossover_bench.curves.network import difference
from crossover_bench.files import loading
from crossover_bench.files.families import EPOCH, OF_NETWORKS
from crossover_bench.files.ladders import DISC
from crossover_bench.files.rows import File, Row, Spread
from crossover_bench.files.samples import runs_of, spread_between
from tools.sources import tracked_results

ROOT = Path(__file__).parents[3]
_FEWEST = 5  # rows of two files, or sizes of a curve
_GPU_FILE = "intel-xeon-6-207-16c", "2026-11-27-7050029"
MEDIAN_OF_SQUARES = 0.455  # of a normal number: that of chi-squared with one degree of freedom
Kind = tuple[str, str]  # a family and a device

WRITTEN = REFERENCE / "instances.json"


@cache
def committed() -> dict[str, list[File]]:
    """The committed files of each machine, by date; each as it is read alone."""
    machines: dict[str, list[File]] = {}
    files = [loading.load_file(path) for path in tracked_results()]
    for file in sorted(files, key=lambda file: file.date):
        machines.setdefault(file.machine.id, []).append(file)
    return machines


def pooled(spreads: Sequence[Spread]) -> float:
    """The deviation that several files show, each by its degrees of freedom."""
    squares = sum(spread.freedom * spread.deviation**2 for spread in spreads)
    return (squares / sum(spread.freedom for spread in spreads)) ** 0.5


def within(files: Iterable[File]) -> dict[Kind, list[Spread]]:
    """Family and device → what each of `files` alone shows of instances of one program."""
    nothing = Spread(0.0, freedom=0.0)
    kinds: dict[Kind, list[Spread]] = {}
    for file in files:
        for kind, programs in runs_of(file).items():
            spread = spread_between(programs, nothing)
            if spread.programs:
                kinds.setdefault(kind, []).append(spread)
    return kinds


@dataclass(frozen=True, slots=True)
class Again:
    """Rows of a family on a device that two files of one machine have, of one program: the
    logarithms of the later file's times over the earlier's; and of each row the mean, over both
    files, of one over the number of its instances. `is_one_code` as is_of_one_code()."""

    earlier: File
    later: File
    kind: Kind
    logs: np.ndarray
    shares: np.ndarray
    is_one_code: bool


def measured_again() -> Iterator[Again]:
    """Of each machine every two files."""
    for files in committed().values():
        for earlier, later in combinations(files, 2):
            others = {row.name: row for row in later.rows if not row.failure}
            kinds: dict[Kind, list[tuple[float, float]]] = {}
            for row in earlier.rows:
                other = others.get(row.name)
                if not row.failure and other and _is_one_program(row, other):
                    log = np.log(other.median / other.count) - np.log(row.median / row.count)
                    share = sum(1 / max(1, len(set(each.instances.of))) for each in (row, other))
                    kinds.setdefault((row.family, row.device), []).append((log, share / 2))
            for kind, logs in kinds.items():
                is_one = is_of_one_code(earlier, later, kind[0], [kind[1]])
                apart, shares = np.array(logs).T
                yield Again(earlier, later, kind, apart, shares, is_one)


def _is_one_program(first: Row, second: Row) -> bool:
    return first.runs_as == second.runs_as and not difference(first, second)


def deviations() -> dict[str, dict[str, float]]:
    """Device → machine → the deviation between instances of networks, within files."""
    shown: dict[str, dict[str, float]] = {}
    for machine, files in committed().items():
        kinds = within(files)
        for device in dict.fromkeys(device for _, device in kinds):
            spreads = [
                spread
                for (family, on), each in kinds.items()
                for spread in each
                if on == device and family in OF_NETWORKS
            ]
            if spreads:
                shown.setdefault(device, {})[machine] = round(pooled(spreads), 4)
    return shown


def days() -> dict[str, tuple[int, float]]:
    """Machine → of how many rows that two files of one code have, of programs whose instances a
    file shows, and by how many times what lies between instances the two files are apart beyond
    it, in variances: in the median where rows have several instances, in the mean where they have
    one, as spread_between() does."""
    shown: dict[str, list[tuple[float, float]]] = {}
    for again in measured_again():
        machine = again.earlier.machine.id
        spreads = within(committed()[machine]).get(again.kind)
        if again.is_one_code and spreads:
            ratios = again.logs**2 / 2 / pooled(spreads) ** 2
            shown.setdefault(machine, []).extend(zip(ratios, again.shares, strict=True))
    beyond = {}
    for machine, rows in shown.items():
        ratios, shares = np.array(rows).T
        is_single = np.all(shares == 1)
        apart = np.mean(ratios) if is_single else np.median(ratios) / MEDIAN_OF_SQUARES
        beyond[machine] = len(rows), max(0.0, float(apart - np.mean(shares)))
    return beyond


def derived() -> dict[str, object]:
    """What reference/instances.json holds: deviations(); and how many times as far another
    day is as another instance, in the mean of the machines' variances."""
    beyond = float(np.mean([variance for _, variance in days().values()]))
    return {"deviations": deviations(), "days": round((1 + beyond) ** 0.5, 2)}


def text() -> str:
    return json.dumps(derived(), indent=1) + "\n"


# --- tables of docs/evidence/another_day.md


def instances() -> str:
    """What each file shows of instances of one program."""
    lines = [
        (machine, _named(file), ", ".join(kind), str(spread.programs), f"{spread.deviation:.3f}")
        for machine, files in committed().items()
        for file in files
        for kind, (spread,) in within([file]).items()
        if kind[0] in OF_NETWORKS
    ]
    return _table("machine|file|rows|programs|deviation", lines)


def times() -> str:
    """How far the same rows of two files of a machine are apart."""
    lines = [
        (
            *(again.earlier.machine.id, _named(again.earlier), _named(again.later)),
            *(", ".join(again.kind), _yes(again.is_one_code), str(len(again.logs))),
            *(f"{np.mean(again.logs):+.3f}", f"{np.std(again.logs, ddof=1):.3f}"),
        )
        for again in measured_again()
        if again.kind[0] in OF_NETWORKS and len(again.logs) >= _FEWEST
    ]
    return _table("machine|file|later file|rows|one code|number|mean|deviation", lines)


def answers() -> str:
    """What two files of a machine, one after the other, say of the CPU beside one GPU."""
    lines = []
    for machine, files in committed().items():
        asked = [(file, of_one_gpu(file)) for file in files]
        for (first, one_day), (second, another) in pairwise([pair for pair in asked if pair[1]]):
            for how in one_day.keys() & another.keys():
                both = one_day[how], another[how]
                inside = (_yes(holds(*both)), _yes(holds(*both[::-1])))
                code = _yes(is_of_one_code(first, second, EPOCH, ["cpu"]))
                words = map(crossover_words, both)
                lines.append((machine, _named(first), _named(second), how, code, *words, *inside))
    columns = "machine|file A|file B|GPU|one code|A says|B says|B's in A's|A's in B's"
    return _table(columns, sorted(lines))


def of_one_gpu(file: File) -> dict[str, Crossover]:
    """How a GPU trains → the crossover of the best of the CPU of `file` with it: the H200 of
    _GPU_FILE, by its plainest program and by its fastest."""
    (other,) = (each for each in committed()[_GPU_FILE[0]] if each.path.stem == _GPU_FILE[1])
    on_cpu = [row for row in file.rows if row.device == "cpu" and row.family == EPOCH]
    on_gpu = [
        replace(row, index=-1 - row.index)
        for row in other.rows
        if row.device == "cuda" and row.family == EPOCH and row.execution in ("auto", "eager")
    ]
    compared = comparisons(replace(file, rows=(*on_cpu, *on_gpu), refinements=()))
    return {
        each.gpu.configuration["execution"]: each.crossover
        for each in compared
        if each.cpu.candidates and each.precision == "f32" and each.batch == DISC.batch
        if placement(each) == "resident" and len(each.sizes) >= _FEWEST
    }


def holds(first: Crossover, second: Crossover) -> bool | None:
    """Whether the interval of `first` holds the size of `second`; None where either has none."""
    if first.size is None or second.size is None:
        return None
    return (first.low or 0.0) <= second.size <= (first.high or math.inf)


def _table(first: str, lines: Iterable[Sequence[str]]) -> str:
    names = first.split("|")
    cells = [names, ["---"] * len(names), *lines]
    return "\n".join(["", *(f"| {' | '.join(line)} |" for line in cells), "", ""])


def _named(file: File) -> str:
    return file.path.stem[5:]


def _yes(answer: bool | None) -> str:
    return {True: "yes", False: "no", None: "–"}[answer]


if __name__ == "__main__":
    WRITTEN.write_text(text(), encoding="utf-8")
