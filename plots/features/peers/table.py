# SPDX-License-Identifier: Apache-2.0
"""Ours beside another framework: times, the ratio of pairs and its interval; both crossovers."""

from collections.abc import Sequence

from plots import units
from plots.core.crossover import Comparison
from plots.core.crossover_words import crossover_words, instances_words
from plots.core.headline import way
from plots.core.series import chosen_words
from plots.core.tables.cells import count_cell, network_cells, number_cell, range_cell, text_cell
from plots.core.tables.table import Cell, Column, Table, marks
from plots.features.peers.analysis import Pair, crossovers_of, pairs, programs_of, seconds
from plots.file.axes import OWN
from plots.file.families import FAMILIES, OF_NETWORKS
from plots.file.rows import File, Row

_TRAINED = (
    Column("network", "network"),
    Column("params", "parameters", numeric=True),
    Column("batch", "batch", numeric=True),
)
_WORK = (Column("what", "what"),)


def _columns(framework: str) -> tuple[Column, ...]:
    return (
        Column("precision", "precision"),
        Column("on", "on"),
        Column("seconds", "median", numeric=True, group="ours"),
        Column("how", "how", group="ours"),
        Column("peer_seconds", "median", numeric=True, group=framework),
        Column("peer_how", "how", group=framework),
        Column("ratio", f"{framework} / ours", numeric=True),
        Column("low", "from", numeric=True, group="95 %"),
        Column("high", "to", numeric=True, group="95 %"),
        Column("most", "ratio if we reached our bound", numeric=True),
    )


_FEW = "Too few pairs of repetitions, or of instances, for a 95 % interval, which needs 6."
_APART = "Not measured in turn: the ratio of the medians, without an interval."


def peer_tables(file: File, every: bool = False) -> list[Table]:
    """A table for each family and framework, a line for each pairs() of `file`; and one of the
    crossovers where a framework has both devices. What trains comes first, copies last."""
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs(file, every):
        found.setdefault((pair.ours.family, pair.theirs.program), []).append(pair)
    there = dict.fromkeys(family for family, _ in found)
    families = [name for name in FAMILIES if name in there]
    families += [name for name in there if name not in FAMILIES]
    tables = [
        _table(file, family, program, found[family, program])
        for family in families
        for program in programs_of(file)
        if (family, program) in found
    ]
    if crossovers := crossover_table(file):
        tables.append(crossovers)
    if own := own_table(file):
        tables.insert(0, own)
    return tables


def own_table(file: File) -> Table | None:
    """Modules that PyTorch trained as they are, which bench has no row of; None without any."""
    rows = [row for row in file.peers if row.as_is and row.failure is None]
    if not rows:
        return None
    columns = (
        *_TRAINED,
        Column("iteration", "of"),
        Column("on", "on"),
        Column("how", "how"),
        Column("seconds", "median", numeric=True),
        Column("range", "from … to", numeric=True),
    )
    notes: dict[str, int] = {}
    lines = tuple(
        (
            *network_cells(row),
            text_cell(FAMILIES[row.family].a),
            text_cell(_where(row)),
            text_cell(_how(row)),
            Cell(units.seconds(seconds(row)), seconds(row), marks=marks(list(row.warnings), notes)),
            range_cell(row),
        )
        for row in rows
    )
    reasons = dict.fromkeys(f"{row.model}: {row.as_is}" for row in rows)
    return Table("Modules as they are, in PyTorch alone", columns, lines, (*notes, *reasons))


def crossover_table(file: File) -> Table | None:
    """From which size the GPU wins, by our two curves and by a framework's; None without the
    latter."""
    found = crossovers_of(file)
    others = [one for program, one in found.items() if program != OWN]
    if not others:
        return None
    columns = (
        Column("whose", "with"),
        Column("cpu", "CPU"),
        Column("gpu", "GPU"),
        Column("answer", "the GPU wins"),
        Column("crossover", "from", numeric=True, for_programs=True),
    )
    lines = tuple(
        _crossover_line("ours" if program == OWN else name_of(file, program), one)
        for program, one in found.items()
    )
    title = f"From which size the GPU trains {others[0].networks} faster"
    return Table(title, columns, lines)


def missing_table(file: File) -> Table:
    """The rows of the frameworks without a result, and why."""
    lines = tuple(
        (text_cell(row.name), text_cell(row.failure.outcome), text_cell(row.failure.message))
        for row in file.peers
        if row.failure
    )
    columns = (Column("row", "row"), Column("outcome", "outcome"), Column("reason", "reason"))
    return Table(f"Rows of {names_of(file)} without a result", columns, lines)


def name_of(file: File, program: str) -> str:
    """A framework of the file in words."""
    row = next(row for row in file.peers if row.program == program)
    return row.axes["program"].word(program)


def names_of(file: File) -> str:
    """All frameworks of the file in words: "PyTorch and JAX"."""
    return " and ".join(name_of(file, program) for program in programs_of(file))


def _table(file: File, family: str, program: str, found: Sequence[Pair]) -> Table:
    trains = family in OF_NETWORKS
    notes: dict[str, int] = {}
    lines = tuple(
        (*(network_cells(pair.ours) if trains else _what(pair.ours)), *_cells(pair, notes))
        for pair in found
    )
    added = instances_words(file, [family]) if any(pair.low for pair in found) else ""
    framework = name_of(file, program)
    one = FAMILIES[family].one if family in FAMILIES else "copy"
    table = Table(
        f"What {framework} takes for the same {one}",
        (*(_TRAINED if trains else _WORK), *_columns(framework)),
        lines,
        (*notes, *([added] if added else ())),
    )
    return table if any(pair.most for pair in found) else table.without("most")


def _what(row: Row) -> tuple[Cell, ...]:
    return (text_cell(", ".join(row.axes.words(row.configuration, roles=["what"], without=_SAID))),)


_SAID = {"family", "cache"}


def _cells(pair: Pair, notes: dict[str, int]) -> tuple[Cell, ...]:
    doubts = list(dict.fromkeys((*pair.ours.warnings, *pair.theirs.warnings)))
    if not pair.in_turn:
        doubts.append(_APART)
    elif pair.low is None:
        doubts.append(_FEW)
    ours, theirs = seconds(pair.ours), seconds(pair.theirs)
    ours_wins = pair.low is not None and pair.low > 1
    theirs_wins = pair.high is not None and pair.high < 1
    return (
        text_cell(pair.ours.configuration.get("precision")),
        text_cell(_where(pair.ours)),
        Cell(units.seconds(ours), ours, bold=ours_wins),
        text_cell(_how(pair.ours)),
        Cell(units.seconds(theirs), theirs, bold=theirs_wins),
        text_cell(_how(pair.theirs)),
        Cell(units.significant(pair.ratio), pair.ratio, marks=marks(doubts, notes)),
        number_cell(pair.low),
        number_cell(pair.high),
        number_cell(pair.most),
    )


def _where(row: Row) -> str:
    named = {key: row.configuration[key] for key in _PLACE if key in row.configuration}
    return ", ".join(row.axes.words(named))


_PLACE = ("copies", "device", "ranks", "cpu_threads")


def _how(row: Row) -> str:
    if chosen := chosen_words(row):
        return chosen
    # What is compiled is not done operation by operation, which is the plainest execution.
    own = row.configuration
    is_compiled = "compiler" in own and own.get("execution") == row.axes["execution"].plainest
    said = ("program", *_PLACE, *(["execution"] if is_compiled else []))
    return ", ".join(row.axes.words(own, roles=["how"], without=said))


def _crossover_line(whose: str, one: Comparison) -> tuple[Cell, ...]:
    size = one.crossover.size
    return (
        text_cell(whose),
        text_cell(one.cpu.label),
        text_cell(way(one)),
        text_cell(crossover_words(one.crossover)),
        count_cell(size),
    )
