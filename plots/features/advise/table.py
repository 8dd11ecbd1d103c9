# SPDX-License-Identifier: Apache-2.0
"""The advice on a network as a table: a line for each device, or for each way of each."""

from plots import units
from plots.core.tables.cells import number_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.advise.advice import CPU, Advice, Adviser, winner
from plots.features.advise.analysis import FARTHEST, Prediction, Series
from plots.features.advise.words import reasons_said
from plots.features.predict.analysis import NOT_MEASURED
from plots.text import counted


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
        tuple(_line(one, advice, epochs) for one in shown),
        tuple(
            dict.fromkeys(
                [*_notes(advice), *filter(None, [adviser.unlike(advice.network)]), *adviser.notes]
            )
        ),
    )


def against(cpu: Prediction, one: Prediction) -> Cell:
    """How `one`, of a GPU or another program, compares with `cpu`."""
    side = winner(cpu, one)
    words = {"gpu": one.quantity.better, "cpu": one.quantity.worse, None: "not sure"}
    return Cell(words[side], side, bold=side == "gpu")


def _line(one: Prediction, advice: Advice, epochs: int) -> tuple[Cell, ...]:
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
        NOTHING if one.device == CPU or cpu is None else against(cpu, one),
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
    return notes + reasons_said(advice)


def _method(series: Series) -> str:
    calls = "products" if series.device == CPU else "launches"
    return (
        f"This machine's times follow from {calls}, logits, operations and bytes, weighted as in "
        f"the file's {len(series.residuals)} groups of networks; the band covers "
        f"{100 * series.coverage:.0f} % of networks like these, each left out in turn "
        "(docs/method/advice.md)."
    )
