# SPDX-License-Identifier: Apache-2.0
"""Several cards that were not measured beside one, as tables; each says so in its title."""

from collections.abc import Sequence

from plots import units
from plots.core.tables.cells import (
    count_cell,
    kind_cell,
    network_cells,
    number_cell,
    text_cell,
)
from plots.core.tables.table import Cell, Column, Table
from plots.features.predict.analysis import NOT_MEASURED
from plots.features.predict.ranks import Prospect, Together
from plots.features.predict.scaling import loss

_SHARED = {"strong": "cards share each batch", "weak": "a batch for each card"}


def paying_table(found: Sequence[Prospect], machine: str) -> Table:
    """From which size on each number of cards wins."""
    lines = [
        (
            text_cell(each.plan.card.id),
            text_cell(each.plan.link.name),
            count_cell(one.ranks),
            text_cell(one.networks),
            text_cell(one.batch or None),
            text_cell(one.crossover.question.measure),
            kind_cell(one.crossover.kind),
            *(
                number_cell(size, 2)
                for size in (one.crossover.size, one.crossover.low, one.crossover.high)
            ),
            Cell("no", 0),
        )
        for each in found
        for one in each.paying
    ]
    columns = (
        Column("card", "card"),
        Column("link", "link"),
        Column("ranks", "cards", numeric=True),
        Column("networks", "networks"),
        Column("batch", "batch", numeric=True),
        Column("measure", "over"),
        Column("kind", "answer"),
        Column("crossover", "pay from", numeric=True),
        Column("low", "from", numeric=True, group="95 % of draws"),
        Column("high", "to", numeric=True, group="95 % of draws"),
        Column("measured", "measured", for_programs=True),
    )
    how = _SHARED[found[0].plan.scaling]
    title = f"From which size several cards train faster than one, {how}, networks of {machine}"
    return Table(f"{title}; {NOT_MEASURED}", columns, tuple(lines))


def together_table(each: Prospect, machine: str) -> Table:
    """One line for each network and number of cards."""
    columns = (
        Column("network", "network"),
        Column("params", "parameters", numeric=True),
        Column("batch", "batch", numeric=True),
        Column("card", "card", for_programs=True),
        Column("link", "link", for_programs=True),
        Column("ranks", "cards", numeric=True),
        Column("one_seconds", "one card", numeric=True),
        Column("seconds", "several", numeric=True),
        Column("low_seconds", "from", numeric=True, for_programs=True),
        Column("high_seconds", "to", numeric=True, for_programs=True),
        Column("speed_up", "times", numeric=True, group="speedup"),
        Column("speed_up_low", "from", numeric=True, group="speedup"),
        Column("speed_up_high", "to", numeric=True, group="speedup"),
        Column("efficiency", "efficiency", numeric=True),
        Column("exposed", "sums", numeric=True),
        Column("measured", "measured", for_programs=True),
    )
    lines = tuple(_line(each, one) for one in each.networks)
    title = f"Several cards beside one, {each.plan.name}: networks of {machine}"
    note = (
        "Sums: the share of the time of several that waits for them. Bold, or with an asterisk: "
        "surely faster than one card."
    )
    return Table(f"{title}; {NOT_MEASURED}", columns, lines, (_band_note(), note))


def _line(each: Prospect, one: Together) -> tuple[Cell, ...]:
    many, gain = one.many, one.speed_up
    return (
        *network_cells(one.row),
        text_cell(each.plan.card.id),
        text_cell(each.plan.link.name),
        count_cell(one.ranks),
        *(
            Cell(units.seconds(value, 2), value)
            for value in (one.one.seconds, many.seconds, many.low, many.high)
        ),
        Cell(units.significant(gain.seconds, 2), gain.seconds, bold=gain.low > 1),
        *(number_cell(value, 2) for value in (gain.low, gain.high)),
        *(_percent(times.seconds) for times in (one.efficiency, one.exposed)),
        Cell("no", 0),
    )


def _percent(value: float) -> Cell:
    return Cell(f"{100 * value:.0f} %", value)


def _band_note() -> str:
    error = loss()
    return (
        "The band holds 90 % of draws, in which the card, the link and what of the sums the "
        "backward pass hides vary independently, and several cards are slower than that by a loss "
        f"of {100 * error.spread:.0f} % (root mean square), as {error.cards} published trainings "
        "were (docs/method/ranks.md)."
    )
