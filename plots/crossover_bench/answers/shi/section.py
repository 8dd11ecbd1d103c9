# SPDX-License-Identifier: Apache-2.0
"""The table of Shi et al. 2016 with this project's rows in it, and how they compare, in words; and
on the page."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from crossover_bench.answers.shi.analysis import (
    DEVICES,
    PRECISION,
    SIDES,
    YEAR,
    Figure,
    Ours,
    Ratio,
    Side,
    load_differences,
    load_shi,
    means,
    newest_with_rows,
    ours,
    seconds_of,
    shi_rows,
)
from crossover_bench.curves.series import chosen_words, device_label
from crossover_bench.files.rows import File, Row
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import (
    Field,
    file_fields,
    number_cell,
    number_field,
    seconds_cell,
    seconds_field,
    table_of,
    text_cell,
    text_field,
)
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.words import units
from crossover_bench.words.text import printable, slug

_OURS = "Crossover"  # what stands in the column of frameworks
_GROUPS = {"desktop": "Desktop CPU, threads", "server": "Server CPU, threads"}
_GPUS = {"g980": "GTX 980", "g1080": "GTX 1080", "k80": "K80"}
_TITLE = "Seconds per mini-batch, beside Table 7 of Shi et al. 2016"
# What the place of a cell says: none of the ways to compute that compete for it.
_PLACE = frozenset({"family", "model", "batch", "precision", "device", "cpu_threads"})
_METHOD = (
    f"{_OURS}: seconds of a training step, or, of networks without such rows, of an epoch over its "
    f"mini-batches; the median of the repetitions, in {PRECISION} unless the line says another "
    "precision; on a GPU the fastest of the ways to compute, which the mark names."
)
_KINDS: dict[Side, str] = {"cpu": "CPU", "gpu": "GPU"}

_Line = tuple[str, str]  # network and framework
_Cells = dict[tuple[_Line, Column], Cell]


def shi_table(figures: Sequence[Figure], files: Sequence[File]) -> Table:
    """The published table with a line of ours below each network that `files` have rows of, and
    columns for each of their machines: of several files from one machine, the newest with rows."""
    notes: dict[str, int] = {}
    marks([_batches(figures), "Bold (in plain text *): the fastest of a group of columns."], notes)
    columns = list(dict.fromkeys(map(_column, figures)))
    cells: _Cells = {
        ((figure.network, figure.framework), _column(figure)): Cell(figure.text, figure.seconds)
        for figure in figures
        if figure.seconds is not None
    }
    published = len(cells)
    newest = newest_with_rows(figures, files)
    for file, rows in newest:
        if rows:
            of_machine = _columns(file, rows, columns)
            columns += of_machine.values()
            cells |= _our_cells(figures, rows, of_machine, notes)
        marks([_about(file, rows)], notes)
    if len(cells) > published:
        every = [row for _, rows in newest for row in rows]
        marks([_METHOD, *differences(figures, every)], notes)
    lines = []
    for line in _lines(figures, cells):
        times = [cells.get((line, column), NOTHING) for column in columns]
        lines.append((*map(text_cell, line), *_with_bold(times, columns)))
    heads = (Column("network", "Network"), Column("framework", "Framework"))
    return Table(_TITLE, (*heads, *columns), tuple(lines), tuple(notes))


def _column(figure: Figure) -> Column:
    """Where the published table has `figure`."""
    if figure.threads:
        key = f"{figure.device}_{figure.threads}_seconds"
        return Column(key, figure.threads, True, _GROUPS[figure.device])
    return Column(f"{figure.device}_seconds", _GPUS[figure.device], True, "GPU")


def differences(figures: Iterable[Figure], rows: Iterable[Row]) -> list[str]:
    """How those networks among `rows` that are not the published ones differ, a sentence each."""
    models = {row.model for row in rows}
    names = dict.fromkeys(figure.network for figure in figures if figure.network.lower() in models)
    known = load_differences()
    return [f"{name}: {known[name]}." for name in names if name in known]


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


def _our_cells(
    figures: Sequence[Figure],
    rows: Sequence[Row],
    columns: dict[str | None, Column],
    notes: dict[str, int],
) -> _Cells:
    """The cells of `rows`; what their marks stand for is added to `notes`."""
    networks = {figure.network.lower(): figure.network for figure in figures}
    competing: dict[tuple[_Line, Column], list[Row]] = {}
    for row in rows:
        in_other = "" if row.precision == PRECISION else f", {printable(row.precision, 20)}"
        line = networks[row.model], f"{_OURS}{in_other}"
        column = columns[row.configuration.get("cpu_threads")]
        competing.setdefault((line, column), []).append(row)
    return {place: _best(candidates, notes) for place, candidates in competing.items()}


def _best(rows: Sequence[Row], notes: dict[str, int]) -> Cell:
    """The fastest of `rows`; a dash with the reason where all of them failed."""
    results = [row for row in rows if row.failure is None]
    if not results:
        failure = rows[0].failure
        assert failure is not None
        return replace(NOTHING, marks=marks([f"{failure.outcome}: {failure.message}"], notes))
    best = min(results, key=seconds_of)
    how = best.axes.words(best.configuration, without=_PLACE)
    if chosen := chosen_words(best):
        how[how.index(best.execution)] = chosen
    texts = list(best.warnings)
    if len(rows) > 1 or best.device != "cpu":
        texts.insert(0, ", ".join(how))
    seconds = seconds_of(best)
    return Cell(units.significant(seconds), seconds, marks=marks(texts, notes))


def _lines(figures: Iterable[Figure], cells: _Cells) -> list[_Line]:
    """The published lines, and ours below those of their network."""
    published = list(dict.fromkeys((figure.network, figure.framework) for figure in figures))
    networks = list(dict.fromkeys(network for network, _ in published))
    of_ours = sorted({line for line, _ in cells if line[1].startswith(_OURS)})
    return sorted([*published, *of_ours], key=lambda line: networks.index(line[0]))


def _with_bold(cells: Sequence[Cell], columns: Sequence[Column]) -> list[Cell]:
    """`cells` of one line with the fastest of each group of several columns in bold, ties too."""
    sizes = Counter(column.group for column in columns)
    fastest: dict[str, float] = {}
    for cell, column in zip(cells, columns, strict=True):
        if isinstance(cell.value, (int, float)):
            fastest[column.group] = min(cell.value, fastest.get(column.group, cell.value))
    return [
        replace(cell, bold=sizes[column.group] > 1 and cell.value == fastest.get(column.group, ""))
        for cell, column in zip(cells, columns, strict=True)
    ]


def _batches(figures: Iterable[Figure]) -> str:
    batches = {figure.network: figure.batch for figure in figures}
    sizes = ", ".join(f"{network} {batch}" for network, batch in batches.items())
    return (
        f"Samples in a mini-batch: {sizes}. Desktop: {DEVICES['desktop']}, 4 cores; server: "
        f"{DEVICES['server']}, 16 cores. Published (arXiv:1608.07249), not measured with this "
        "project."
    )


def _about(file: File, rows: Sequence[Row]) -> str:
    machine, commit = file.machine, file.software.commit[:7] or "unknown"
    if not rows:
        return (
            f"{machine.id}: no row of these networks in these batch sizes was measured; measure "
            "with --family=Minibatch"
        )
    gpu = machine.gpu or f"no GPU: {machine.gpu_reason}"
    return (
        f"{machine.id}: {machine.cpu.model}, {machine.cpu.cores_words}; {gpu}; measured "
        f"{file.date:%Y-%m-%d}, commit {commit}"
    )


def ratio_table(figures: Sequence[Figure], files: Sequence[File]) -> Table:
    """A line for each network that `files` have rows of, machine, device and precision: our time,
    the fastest published one on a CPU and on a GPU, and how many times as fast ours is. The last
    lines are the geometric means, which brought() says in words."""
    flags: dict[str, int] = {}
    newest = newest_with_rows(figures, files)
    measured = [(file, rows) for file, rows in newest if any(row.failure is None for row in rows)]
    lines = [(file, reached) for file, rows in measured for reached in ours(figures, rows)]
    of_ours = [reached.row for _, reached in lines if reached.row]
    every = ((file, mean) for file, rows in measured for mean in means(figures, rows))
    lines += [(file, mean) for file, mean in every if len(mean.networks) > 1]

    def time(of: _Of) -> Cell:
        row = of[1].row
        if row is None:
            return NOTHING
        return replace(seconds_cell(seconds_of(row)), marks=marks(row.warnings, flags))

    def network(of: _Of) -> str:
        count = len(of[1].networks)
        return of[1].networks[0] if of[1].row else f"geometric mean of {count}"

    def on(of: _Of) -> str:
        row = of[1].row
        return str(device_label(row)) if row else _KINDS[of[1].side]

    fields = (
        text_field("network", "network", network),
        *(file_fields(measured)[:1]),
        text_field("on", "on", on),
        text_field("precision", "precision", lambda of: of[1].precision),
        (Column("seconds", "mini-batch", numeric=True), time),
        *(field for side in SIDES for field in _against(side)),
    )
    table = table_of(
        f"How many times as fast as the fastest figures of Shi et al. {YEAR}", lines, fields, flags
    )
    notes = [*table.notes, *differences(figures, of_ours)]
    return replace(table, notes=(*notes, _RATIOS))


_Of = tuple[File, Ours]  # what a line is of
_RATIOS = (
    "Ratio: the published time over ours, so above 1 ours is faster. Its 95 % interval is "
    "that of our repetitions and of the rounding of the published time; what else differs "
    "between runs, frameworks and machines is not in it."
)


def _against(side: Side) -> tuple[Field, ...]:
    """The columns of the fastest published figure of one side, and the ratio to it, bold where ours
    is faster for sure."""
    group = f"fastest published {_KINDS[side]}"

    def who(of: _Of) -> str:
        figure, *others = of[1].against[side].figures
        if others:
            return _places(of[1].against[side])
        threads = f", {figure.threads} threads" if figure.threads else ""
        return f"{figure.framework}, {DEVICES[figure.device]}{threads}"

    def ratio(of: _Of) -> Cell:
        ratio = of[1].against[side]
        return replace(number_cell(ratio.ratio), bold=ratio.low is not None and ratio.low > 1)

    def time(of: _Of) -> float | None:
        figure, *others = of[1].against[side].figures
        return None if others else figure.seconds

    return (
        text_field(f"published_{side}", "who", who, group),
        seconds_field(f"published_{side}_seconds", "time", time, group),
        (Column(f"{side}_ratio", "ratio", True, group), ratio),
        number_field(f"{side}_low", "from", lambda of: of[1].against[side].low, group),
        number_field(f"{side}_high", "to", lambda of: of[1].against[side].high, group),
    )


def brought(figures: Sequence[Figure], files: Sequence[File]) -> list[str]:
    """What the years since brought, in a sentence for each machine that has such rows in f32: which
    device against which, over which networks, with intervals."""
    every = len({figure.network for figure in figures})
    sentences = []
    for file, rows in newest_with_rows(figures, files):
        of_devices = sorted(means(figures, rows), key=lambda mean: SIDES.index(mean.side))
        if not of_devices:
            continue
        over = [_over(mean.networks, every) for mean in of_devices]
        clauses = [_clause(file, mean) for mean in of_devices]
        if len(set(over)) == 1:
            clauses.append(over[0])
        else:
            clauses = [", ".join(pair) for pair in zip(clauses, over, strict=True)]
        few = any(ratio.low is None for mean in of_devices for ratio in mean.against.values())
        doubt = " What has no interval has too few repetitions for one." if few else ""
        sentences.append(f"Beside {YEAR}, in {PRECISION}: {'; '.join(clauses)}.{doubt}")
    return sentences


def _clause(file: File, mean: Ours) -> str:
    """What one of our devices is against each side of what was published."""
    machine = file.machine
    device = machine.cpu.words if mean.side == "cpu" else machine.gpu or "GPU"
    against = [
        f"{_ratio_text(ratio)} the fastest published {_KINDS[kind]} ({_places(ratio)})"
        for kind, ratio in mean.against.items()
    ]
    name = f"{_KINDS[mean.side]} of {printable(machine.id, 60)} ({printable(device, 60)})"
    return f"the {name} {' and '.join(against)}"


def _places(ratio: Ratio) -> str:
    published = {figure.device for figure in ratio.figures}
    return " or ".join(words for device, words in DEVICES.items() if device in published)


def _over(networks: Sequence[str], every: int) -> str:
    if len(networks) == 1:
        return f"on {networks[0]} alone, the only one of {every} networks measured here"
    if len(networks) == every:
        return f"geometric means over all {every} networks"
    return f"geometric means over {len(networks)} of {every} networks ({', '.join(networks)})"


def _ratio_text(ratio: Ratio) -> str:
    """By how many times, above 1: "is 2.0 times (1.9 to 2.1) as fast as", "takes … as long as"."""
    ends, number = (ratio.low, ratio.high), ratio.ratio
    verb, how = "is", "as fast as"
    if number < 1:
        verb, how, number = "takes", "as long as", 1 / number
        ends = (ends[1] and 1 / ends[1], ends[0] and 1 / ends[0])
    shown = [units.significant(end) for end in ends if end]
    interval = f" ({' to '.join(shown)})" if len(shown) > 1 else ""
    return f"{verb} {units.significant(number)} times{interval} {how}"


_LEAD = (
    "Seconds per mini-batch of the networks of Shi, Wang, Xu and Chu, \u201cBenchmarking "
    "State-of-the-Art Deep Learning Software Tools\u201d (2016), Table 7, "
)
_RATIO = (
    *("network", "machine", "on", "seconds", "cpu_ratio", "cpu_low", "cpu_high"),
    *("gpu_ratio", "gpu_low", "gpu_high"),
)


def build(files: Sequence[File], context: Context) -> Section:
    """The section on `files`: the table opens at once only where one of them has a line in it."""
    shown = files[: context.detailed]
    figures = load_shi()
    table = shi_table(figures, shown)
    if any(shi_rows(file, figures) for file in shown):
        lead = f"{_LEAD}beside the same networks as measured here; notes say where ours differ."
        block = _ours_beside(figures, shown, table)
    else:
        lead = (
            f"{_LEAD}as published. None of these files measured one of the networks; {RUN} does, "
            "and gives them lines here."
        )
        block = Block(tables=(table.as_folded(),))
    return Section(title="Beside Shi et al. 2016", anchor="shi", lead=lead, blocks=(block,))


def _ours_beside(figures: Sequence[Figure], shown: Sequence[File], table: Table) -> Block:
    """The ratios of `shown` first; `table` is their shi_table()."""
    published = {column.key for column in shi_table(figures, ()).columns}
    of_machines = [column.key for column in table.columns if column.key not in published]
    ratios = ratio_table(figures, shown)
    theirs = [column.key for column in ratios.columns if column.key.startswith("published_")]
    short = ratios.without(*theirs).led_by(*_RATIO)
    return Block(
        points=tuple(brought(figures, shown)),
        tables=(
            ratios.led_by(*_RATIO).shortened(short.in_brief()),
            table.led_by("network", "framework", *of_machines).as_folded(),
        ),
    )
