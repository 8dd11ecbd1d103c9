# SPDX-License-Identifier: Apache-2.0
"""A network of one's own in every size and batch in which a file measured it: from which a GPU
wins."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plots.core.cost import Cost
from plots.core.tables.cells import bytes_cell, count_cell, seconds_cell, text_cell
from plots.core.tables.table import Cell, Column, Table
from plots.features.advise.advice import CPU, Adviser, Network, winner
from plots.features.advise.analysis import Prediction
from plots.features.advise.own_rows import times_apart
from plots.features.advise.words import AGAINST, span
from plots.features.why.analysis import PARTS, splits
from plots.file.families import TRAINING
from plots.file.rows import File

_LEAST_SHARE = 0.01  # of the time, to be worth a word


@dataclass(frozen=True, slots=True)
class Size:
    """One network and batch; `cpu` measured, `gpu` measured or predicted of the first card."""

    cost: Cost
    cpu: Prediction
    gpu: Prediction

    @property
    def winner(self) -> str | None:
        return winner(self.cpu, self.gpu)


def sizes_in(
    file: File, adviser: Adviser, own: Cost, count: Callable[[str, int], Cost]
) -> list[Size]:
    """What `file` measured of the network of `own`, the smallest first; `count(scale, batch)` says
    what a size of it costs."""
    found = []
    for scale, batch in sorted(set(_measured(file, own))):
        cost = count(scale, batch)
        advice = adviser.advice(Network(cost), most_cards=1)
        if advice.cpu and advice.rival:
            found.append(Size(cost, advice.cpu, advice.rival))
    return sorted(found, key=lambda one: (one.cost.params, one.cost.batch))


def nearest_batch(file: File, own: Cost) -> int | None:
    """Of those in which the network itself was measured; None where it was not."""
    batches = [batch for scale, batch in _measured(file, own) if not scale]
    return min(batches, key=lambda one: times_apart(one, own.batch), default=None)


def _measured(file: File, own: Cost) -> Iterator[tuple[str, int]]:
    """Scales, empty for 1, and batches."""
    for row in file.rows:
        if row.family in TRAINING and row.failure is None:
            batch = int(row.counters["batch"])
            if row.model == own.model:
                yield "", batch
            elif row.model.startswith(f"{own.model}x"):
                yield row.model.removeprefix(f"{own.model}x"), batch


def parts_words(file: File, own: Cost) -> str:
    """Where the time goes that the CPU takes for it, a sentence; empty where that is not known."""
    rows = [row for row in file.rows if row.model == own.model and row.device == CPU]
    best = min(
        splits(rows),
        key=lambda one: (times_apart(one.row.counters["batch"], own.batch), one.row.median),
        default=None,
    )
    if best is None:
        return ""
    shares = {PARTS[part]: seconds / best.total for part, seconds in best.parts.items()}
    largest = sorted((share, part) for part, share in shares.items() if share >= _LEAST_SHARE)
    said = ", ".join(f"{part} {100 * share:.0f} %" for share, part in largest[:-4:-1])
    return f"Of the CPU's time at batch {best.row.counters['batch']:,.0f} go to {said}."


def sizes_table(sizes: Sequence[Size], own: Cost) -> Table:
    """A line for each."""
    columns = (
        Column("network", "network"),
        Column("params", "parameters", numeric=True),
        Column("batch", "batch", numeric=True),
        Column("memory_bytes", "memory", numeric=True),
        Column("cpu_step_seconds", "a step here", numeric=True),
        Column("gpu_step_seconds", f"on {sizes[0].gpu.name}", numeric=True),
        Column("range", "from … to"),
        Column("winner", "than the CPU"),
    )
    return Table(
        f"{own.model} in the sizes and batches measured", columns, tuple(map(_line, sizes))
    )


def _line(one: Size) -> tuple[Cell, ...]:
    steps = float(one.cost.fields["steps"])
    side = one.winner
    return (
        text_cell(one.cost.model),
        count_cell(one.cost.params),
        count_cell(one.cost.batch),
        bytes_cell(one.cost.fields["step"]["footprint_bytes"]),
        seconds_cell(one.cpu.seconds / steps, 2),
        seconds_cell(one.gpu.seconds / steps, 2),
        text_cell(span(one.gpu, 1 / steps)),
        Cell(AGAINST[side], side, bold=side == "gpu"),
    )


def sizes_words(sizes: Sequence[Size], own: Cost) -> str:
    """From which batch, and from which width of it a GPU wins; empty where one of each was
    measured."""
    by_batch = [(one.cost.batch, one) for one in sizes if one.cost.model == own.model]
    by_width = [(one.cost.params, one) for one in sizes if one.cost.batch == own.batch]
    said = [_from(by_batch, "batch {}", "batches"), _from(by_width, "{} parameters", "widths")]
    return " ".join(filter(None, said))


def _from(line: list[tuple[float, Size]], one: str, several: str) -> str:
    if len(line) < 2:
        return ""
    known = ", ".join(f"{size:,.0f}" for size, _ in line)
    won = [size.winner == "gpu" for _, size in line]
    if not won[-1]:
        return f"At none of the {several} measured ({known}) does a GPU win for sure."
    first = next(i for i in range(len(line)) if all(won[i:]))
    if first == 0:
        return f"A GPU wins at all {several} measured ({known})."
    where = one.format(f"{line[first][0]:,.0f}")
    return f"A GPU wins from {where} on, of the {several} measured ({known})."
