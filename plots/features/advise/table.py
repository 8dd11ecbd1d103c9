# SPDX-License-Identifier: Apache-2.0
"""The advice on a network as a table: a line for each device, or for each way of each. Of a network
of one's own: one for each device, program and card, and one for each size and batch measured."""

from collections.abc import Sequence
from dataclasses import replace

from plots import units
from plots.core.cost import memory_of
from plots.core.tables.cells import bytes_cell, count_cell, number_cell, seconds_cell, text_cell
from plots.core.tables.plain import as_text, wrapped
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.advise.advice import CPU, Advice, Adviser, winner
from plots.features.advise.analysis import FARTHEST, Prediction, Series
from plots.features.advise.own import Own, Size, key_of, name_of, title_of
from plots.features.advise.words import span
from plots.features.predict.analysis import NOT_MEASURED
from plots.text import counted

WIDTH = 80  # of the screen


def advice_table(
    advice: Advice, adviser: Adviser, epochs: int = 1, *, every: bool = False
) -> Table:
    """What `adviser` said: `every` way of each device, or the best one."""
    shown = advice.predictions if every else advice.shortened()
    cost = advice.network.cost
    of, unit = "epoch" if epochs == 1 else counted(epochs, "epoch"), adviser.quantity.unit
    columns = (
        Column("on", "on"),
        Column("device", "device", for_programs=True),
        Column(unit, of, numeric=True),
        Column(f"low_{unit}", "from", numeric=True),
        Column(f"high_{unit}", "to", numeric=True),
        Column(f"epoch_{unit}", "an epoch", numeric=True, for_programs=epochs == 1),
        Column(f"step_{unit}", "a step", numeric=True),
        Column("winner", "than the CPU"),
        Column("measured", "measured", for_programs=True),
        Column("networks", "networks", for_programs=True),
        Column("typical_error_percent", "typical error", for_programs=True),
    )
    sources = {"from its own rows" if one.measured else NOT_MEASURED for one in shown}
    title = (
        f"{adviser.quantity.of(cost.model)}, batch {cost.batch:,.0f}, {cost.precision}, on "
        f"{adviser.machine}; "
        f"{' or '.join(sorted(sources))}"
    )
    return Table(
        title,
        columns,
        tuple(_advice_line(one, advice, epochs) for one in shown),
        tuple(
            dict.fromkeys(
                [*_notes(advice), *filter(None, [adviser.unlike(advice.network)]), *adviser.notes]
            )
        ),
    )


def against(cpu: Prediction | None, one: Prediction) -> Cell:
    """How `one`, of a GPU or another program, compares with `cpu`."""
    if cpu is None:
        return NOTHING
    side = winner(cpu, one)
    words = {"gpu": one.quantity.better, "cpu": one.quantity.worse, None: "not sure"}
    return Cell(words[side], side, bold=side == "gpu")


def _advice_line(one: Prediction, advice: Advice, epochs: int) -> tuple[Cell, ...]:
    cpu = advice.cpu
    steps = float(advice.network.cost.fields["steps"])

    def shown(value: float) -> Cell:
        return Cell(one.quantity.show(value, 2), value)

    fitted = (len(one.series.residuals), 100 * one.series.typical_error) if one.series else ()
    return (
        text_cell(one.label),
        text_cell(one.device),
        *(shown(epochs * each) for each in (one.middle, one.low, one.high)),
        shown(one.middle),
        shown(one.middle / steps),
        NOTHING if one.device == CPU else against(cpu, one),
        Cell("yes", 1) if one.measured else Cell("no", 0),
        *([number_cell(each, 2) for each in fitted] or [NOTHING, NOTHING]),
    )


def _notes(advice: Advice) -> list[str]:
    """Where the times are from, what their bands are worth, and why there are no others."""
    own: dict[str, list[str]] = {}
    for one in advice.predictions:
        if one.measured:
            own.setdefault(one.measured, []).append(one.label)
    notes = [f"{' and '.join(labels)}: {how}." for how, labels in own.items()]
    fitted = [one for one in advice.predictions if one.series]
    notes += [_method(one.series) for one in fitted[:1] if one.series]
    notes += [
        f"{one.label}: the network is {units.significant(one.beyond, 2)} times beyond the measured "
        f"range, so the band is wider; beyond {FARTHEST:g} times there is no prediction."
        for one in fitted
        if one.beyond > 1.0
    ]
    return notes + advice.reasons_said()


def _method(series: Series) -> str:
    calls = "products" if series.device == CPU else "launches"
    return (
        f"This machine's times follow from {calls}, logits, operations and bytes, weighted as in "
        f"the file's {len(series.residuals)} groups of networks; the band covers "
        f"{100 * series.coverage:.0f} % of networks like these, each left out in turn "
        "(docs/method/advice.md)."
    )


# ---- of a network of one's own


def own_table(own: Own, epochs: int = 1) -> Table:
    """The fastest way of each: of the CPU, of other programs, of GPUs."""
    of = "an epoch" if epochs == 1 else counted(epochs, "epoch")
    columns = (
        Column("on", "on"),
        Column("step_seconds", "a step", numeric=True),
        Column("seconds", of, numeric=True),
        Column("range", "from … to"),
        Column("winner", "than the CPU"),
    )
    cost = own.cost
    title = (
        f"{cost.model}: {cost.params:,.0f} parameters, batch {cost.batch:,.0f}, "
        f"{cost.fields['rows']:,} rows an epoch, {cost.precision}"
    )
    return Table(title, columns, tuple(_line(one, own, epochs) for one in own.known))


def screen(said: Sequence[str], *blocks: str | Table) -> str:
    """All that is known of it on one screen of 80 columns: `blocks`, and sentences behind them."""
    shown = [
        wrapped(one, most=WIDTH) if isinstance(one, str) else as_text(one).rstrip()
        for one in blocks
    ]
    shown.append("\n".join(wrapped(one, "  ", "- ", most=WIDTH) for one in said))
    return "\n\n".join(shown) + "\n\n"


def _line(one: Prediction, own: Own, epochs: int) -> tuple[Cell, ...]:
    return (
        text_cell(name_of(one)),
        seconds_cell(one.middle / float(own.cost.fields["steps"]), 2),
        seconds_cell(epochs * one.middle, 2),
        text_cell(span(one, epochs)),
        NOTHING if one is own.cpu else against(own.cpu, one),
    )


def sizes_table(own: Own) -> Table:
    """A line for each size and batch: a step here, with other programs and on each GPU, where bold
    is faster than here."""
    cards = {key_of(one): title_of(one) for size in own.sizes for one in size.gpus}
    programs = {key_of(one): title_of(one) for size in own.sizes for one in size.peers}
    columns = [
        Column("network", "network"),
        Column("params", "parameters", numeric=True),
        Column("batch", "batch", numeric=True),
        Column("memory_bytes", "memory", numeric=True),
        Column("cpu_step_seconds", "a step here", numeric=True),
    ]
    columns += [Column(f"{key}_step_seconds", name, numeric=True) for key, name in programs.items()]
    for key, name in cards.items():
        columns += [
            Column(f"{key}_step_seconds", name, numeric=True),
            Column(f"{key}_low_step_seconds", f"{name}, from", numeric=True, for_programs=True),
            Column(f"{key}_high_step_seconds", f"{name}, to", numeric=True, for_programs=True),
            Column(f"{key}_winner", f"{name}, than the CPU", for_programs=True),
        ]
    lines = tuple(_size_line(one, list(programs), list(cards)) for one in own.sizes)
    return Table(f"{own.cost.model} in the sizes and batches measured", tuple(columns), lines)


def _size_line(size: Size, programs: Sequence[str], cards: Sequence[str]) -> tuple[Cell, ...]:
    steps = float(size.cost.fields["steps"])
    theirs = {key_of(one): one for one in (*size.peers, *size.gpus)}

    def step(one: Prediction | None, end: str = "middle") -> Cell:
        return seconds_cell(getattr(one, end) / steps if one else None, 2)

    cells = [
        text_cell(size.cost.model),
        count_cell(size.cost.params),
        count_cell(size.cost.batch),
        bytes_cell(memory_of(size.cost, CPU)),
        step(size.cpu),
        *(step(theirs.get(key)) for key in programs),
    ]
    for one in map(theirs.get, cards):
        winner = against(size.cpu, one) if one else NOTHING
        middle = replace(step(one), bold=winner.bold)
        cells += [middle, step(one, "low"), step(one, "high"), replace(winner, bold=False)]
    return tuple(cells)
