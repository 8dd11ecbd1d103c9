# SPDX-License-Identifier: Apache-2.0
"""The table of Shi et al. 2016, seconds per mini-batch, and this project's rows in it."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plots import units
from plots.published import PUBLISHED_PATH
from plots.rows import File, Row
from plots.tables.table import NOTHING, Cell, Column, Table
from plots.text import slug

SHI_PATH = PUBLISHED_PATH.with_name("shi2016_table7.csv")

_OURS = "Crossover"  # what stands in the column of frameworks
_GROUPS = {"desktop": "Desktop CPU, threads", "server": "Server CPU, threads"}
_GPUS = {"g980": "GTX 980", "g1080": "GTX 1080", "k80": "K80"}
_TITLE = "Seconds per mini-batch, beside Table 7 of Shi et al. 2016"
_PRECISION = "f32"  # that of the published figures
# What the place of a cell says: none of the ways to compute that compete for it.
_PLACE = frozenset({"family", "model", "batch", "precision", "device", "cpu_threads"})

# How many mini-batches one iteration of a row trains. A family without an entry is not shown.
_MINIBATCHES: dict[str, Callable[[Row], float]] = {"Epoch": lambda row: row.counters["steps"]}


@dataclass(frozen=True, slots=True)
class Figure:
    """One cell of the published table: `threads` is None on a GPU, `seconds` where it has a dash.

    `text` is the time in seconds with the digits that were published.
    """

    network: str
    batch: str
    framework: str
    device: str
    threads: str | None
    seconds: float | None
    text: str

    @property
    def column(self) -> Column:
        """Where the published table has the figure."""
        if self.threads:
            key = f"{self.device}_{self.threads}_seconds"
            return Column(key, self.threads, True, _GROUPS[self.device])
        return Column(f"{self.device}_seconds", _GPUS[self.device], True, "GPU")


_Line = tuple[str, str]  # network and framework
_Cells = dict[tuple[_Line, Column], Cell]


def load_shi(path: Path = SHI_PATH) -> list[Figure]:
    """The published table; raises OSError where the file cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Figure(
                network=line["network"],
                batch=line["batch"],
                framework=line["framework"],
                device=line["device"],
                threads=line["threads"] or None,
                seconds=float(text) if (text := line["seconds_per_minibatch"]) else None,
                text=text,
            )
            for line in csv.DictReader(file)
        ]


def shi_rows(file: File, figures: Iterable[Figure]) -> list[Row]:
    """The rows of `file` that train a network of `figures` in its batch size, failed ones too."""
    networks = {(figure.network.lower(), figure.batch) for figure in figures}
    return [
        row
        for row in file.rows
        if row.family in _MINIBATCHES
        and (row.configuration["model"], row.configuration["batch"]) in networks
        and row.configuration["precision"] == _PRECISION
    ]


def shi_table(figures: Sequence[Figure], files: Iterable[File]) -> Table:
    """The published table with a line of ours below each network that `files` have rows of, and
    columns for each of their machines: of several files from one machine, the newest with rows."""
    notes = [_batches(figures), "Bold (in plain text *): the fastest of a group of columns."]
    columns = list(dict.fromkeys(figure.column for figure in figures))
    cells: _Cells = {
        ((figure.network, figure.framework), figure.column): Cell(figure.text, figure.seconds)
        for figure in figures
        if figure.seconds is not None
    }
    published = len(cells)
    for file, rows in _measured(figures, files):
        if rows:
            own = _columns(file, rows, columns)
            columns += dict.fromkeys(own.values())
            cells |= _own_cells(figures, rows, own, notes)
        notes.append(_about(file, rows))
    if len(cells) > published:
        notes.append(
            f"{_OURS}: seconds of an epoch over its mini-batches, the median of the repetitions, "
            f"in {_PRECISION}; on a GPU the fastest of the ways to compute, which the mark names."
        )
    lines = []
    for line in _lines(figures, cells):
        own_cells = [cells.get((line, column), NOTHING) for column in columns]
        names = (Cell(name, name) for name in line)
        lines.append((*names, *_with_bold(own_cells, columns)))
    heads = (Column("network", "Network"), Column("framework", "Framework"))
    return Table(_TITLE, (*heads, *columns), tuple(lines), tuple(notes))


def _measured(
    figures: Sequence[Figure], files: Iterable[File]
) -> Iterable[tuple[File, Sequence[Row]]]:
    chosen: dict[str, tuple[File, Sequence[Row]]] = {}
    for file in sorted(files, key=lambda file: (file.date, str(file.path))):
        rows = shi_rows(file, figures)
        if rows or file.machine.id not in chosen:
            chosen[file.machine.id] = (file, rows)
    return [chosen[machine] for machine in sorted(chosen)]


def _columns(file: File, rows: Sequence[Row], taken: Sequence[Column]) -> dict[str | None, Column]:
    """Thread count (None: the GPU) → column, whose key none of `taken` has."""
    machine, key = file.machine, slug(file.machine.id).replace("-", "_")
    while any(column.key.startswith(f"{key}_") for column in taken):
        key += "_"  # machines whose names differ in signs alone
    counts = {row.configuration.get("cpu_threads") for row in rows}
    columns: dict[str | None, Column] = {
        threads: Column(
            f"{key}_cpu_{threads}_seconds", threads, True, f"{machine.id}: CPU, threads"
        )
        for threads in sorted(filter(None, counts), key=lambda text: (len(text), text))
    }
    if None in counts:
        columns[None] = Column(
            f"{key}_gpu_seconds", machine.gpu or "GPU", True, f"{machine.id}: GPU"
        )
    return columns


def _own_cells(
    figures: Sequence[Figure],
    rows: Sequence[Row],
    columns: dict[str | None, Column],
    notes: list[str],
) -> _Cells:
    """The cells of `rows`; what their marks stand for is added to `notes`."""
    networks = {figure.network.lower(): figure.network for figure in figures}
    competing: dict[tuple[_Line, Column], list[Row]] = {}
    for row in rows:
        line = networks[row.configuration["model"]], _OURS
        column = columns[row.configuration.get("cpu_threads")]
        competing.setdefault((line, column), []).append(row)
    return {place: _best(candidates, notes) for place, candidates in competing.items()}


def _best(rows: Sequence[Row], notes: list[str]) -> Cell:
    """The fastest of `rows`; a dash with the reason where all of them failed."""
    results = [row for row in rows if row.failure is None]
    if not results:
        failure = rows[0].failure
        return replace(NOTHING, marks=_marks([f"{failure.outcome}: {failure.message}"], notes))
    best = min(results, key=_seconds)
    how = best.axes.words(best.configuration, without=_PLACE)
    texts = list(best.warnings)
    if len(rows) > 1 or best.configuration["device"] != "cpu":
        texts.insert(0, ", ".join(how))
    seconds = _seconds(best)
    return Cell(units.significant(seconds), seconds, marks=_marks(texts, notes))


def _seconds(row: Row) -> float:
    return row.median / _MINIBATCHES[row.family](row)


def _marks(texts: Iterable[str], notes: list[str]) -> tuple[int, ...]:
    for text in texts:
        if text not in notes:
            notes.append(text)
    return tuple(notes.index(text) + 1 for text in texts)


def _lines(figures: Iterable[Figure], cells: _Cells) -> list[_Line]:
    own = {line for line, _ in cells if line[1] == _OURS}
    lines: dict[str, list[_Line]] = {}
    for figure in figures:
        line = figure.network, figure.framework
        members = lines.setdefault(figure.network, [])
        if line not in members:
            members.append(line)
    for network, members in lines.items():
        if (network, _OURS) in own:
            members.append((network, _OURS))
    return [line for members in lines.values() for line in members]


def _with_bold(cells: Sequence[Cell], columns: Sequence[Column]) -> list[Cell]:
    """`cells` of one line with the fastest of each group of several columns in bold, ties too."""
    sizes = Counter(column.group for column in columns)
    fastest: dict[str, float] = {}
    for cell, column in zip(cells, columns, strict=True):
        if cell.value is not None:
            fastest[column.group] = min(cell.value, fastest.get(column.group, cell.value))
    return [
        replace(cell, bold=sizes[column.group] > 1 and cell.value == fastest.get(column.group, ""))
        for cell, column in zip(cells, columns, strict=True)
    ]


def _batches(figures: Iterable[Figure]) -> str:
    batches = {figure.network: figure.batch for figure in figures}
    sizes = ", ".join(f"{network} {batch}" for network, batch in batches.items())
    return (
        f"Samples in a mini-batch: {sizes}. Desktop: Intel i7-3820, 4 cores; server: two Intel "
        "E5-2630 v3, 16 cores. Published (arXiv:1608.07249), not measured with this project."
    )


def _about(file: File, rows: Sequence[Row]) -> str:
    machine, commit = file.machine, file.software.commit[:7] or "unknown"
    if not rows:
        return (
            f"{machine.id}: no row of these networks was measured; measure with --model=fcn-r,fcn-s"
        )
    gpu = machine.gpu or f"no GPU: {machine.gpu_reason}"
    return (
        f"{machine.id}: {machine.cpu.model}, {machine.cpu.cores} cores; {gpu}; measured "
        f"{file.date:%Y-%m-%d}, commit {commit}"
    )
