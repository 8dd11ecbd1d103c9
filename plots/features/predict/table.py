# SPDX-License-Identifier: Apache-2.0
"""What is predicted of cards as tables; each says in its title that this was not measured."""

from collections.abc import Mapping, Sequence

import numpy as np

from plots import units
from plots.core.cards import Card
from plots.core.crossover import Comparison, SpeedUp
from plots.core.crossover_words import crossover_words
from plots.core.curves import Curve
from plots.core.machines import short_gpu
from plots.core.tables.cells import (
    bytes_cell,
    count_cell,
    kind_cell,
    network_cells,
    number_cell,
    text_cell,
)
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.predict.analysis import NOT_MEASURED, Outlook
from plots.features.predict.answer import Verdict, shown_ways
from plots.features.predict.fit import Fit, band_notes
from plots.features.predict.ranks import Prospect, Together, loss
from plots.features.predict.ways import OURS, PYTORCH
from plots.file.families import FAMILIES, FORWARD
from plots.file.quantities import TIME, Quantity

_BAND = "predicted"
_WORK = (Column("batch", "batch", numeric=True), Column("precision", "precision"))
_GPU = (
    Column("card", "card"),
    Column("execution", "execution", group="GPU"),
    Column("data", "data", group="GPU"),
)
_MEASURED = Column("measured", "measured", for_programs=True)
_SHARED = {"strong": "cards share each batch", "weak": "a batch for each card"}
_RATES = {
    "f32_flops": ("f32", "FLOP/s"),
    "tf32_flops": ("tf32", "FLOP/s"),
    "bf16_flops": ("bf16", "FLOP/s"),
    "f16_flops": ("f16", "FLOP/s"),
    "memory_bytes_per_second": ("memory", "B/s"),
    "link_bytes_per_second": ("link", "B/s"),
}


def crossover_table(found: Sequence[Verdict], fit: Fit, machine: str) -> Table:
    """From which size each card would win, in each way."""
    quantity = _quantity(found)
    lines = [
        _crossover_line(outlook, one)
        for verdict in found
        for outlook in verdict.outlooks
        for one in outlook.crossovers
    ]
    columns = (
        *_GPU,
        Column("what", "of"),
        *_WORK,
        Column("measure", "over", for_programs=True),
        Column("crossover", f"{quantity.wins} from", numeric=True, group=_BAND),
        Column("low", "earliest", numeric=True, group=_BAND),
        Column("high", "latest", numeric=True, group=_BAND),
        _MEASURED,
        Column("answer", "answer"),
    )
    title = f"From which size on a GPU would {quantity.win} on {machine}; {NOT_MEASURED}"
    return Table(title, columns, tuple(lines), _notes(found, fit))


def _crossover_line(outlook: Outlook, one: Comparison) -> tuple[Cell, ...]:
    crossover = one.crossover
    return (
        *_gpu(outlook),
        text_cell(one.networks),
        *_work(one.common),
        text_cell(one.measure),
        *(number_cell(size, 2) for size in (crossover.size, crossover.low, crossover.high)),
        Cell("no", 0),
        Cell("once" if crossover.kind == "once" else crossover_words(crossover), crossover.kind),
    )


def networks_table(found: Sequence[Verdict], fit: Fit, machine: str, family: str) -> Table:
    """Each network of `family` on the measured CPU and on each card, in each way."""
    pairs = [
        (outlook, one)
        for verdict in found
        for outlook in verdict.outlooks
        for one in outlook.networks
        if one.family == family
    ]
    pairs.sort(key=lambda pair: pair[1].parameters)
    short, quantity = FAMILIES[family].short, _quantity(found)
    unit, ratio = quantity.unit, "GPU than CPU" if quantity is TIME else quantity.quotient()
    times = "times as fast" if quantity is TIME else "ratio"
    columns = (
        Column("model", "network"),
        Column("params", "parameters", numeric=True),
        *_WORK,
        Column(f"cpu_{short}_{unit}", f"{short}, measured", numeric=True, group="CPU"),
        Column("cpu_on", "on", group="CPU"),
        *_GPU,
        Column(f"predicted_{short}_{unit}", short, numeric=True, group=_BAND),
        Column(f"low_{unit}", "from", numeric=True, group=_BAND),
        Column(f"high_{unit}", "to", numeric=True, group=_BAND),
        _MEASURED,
        Column("speed_up", times, numeric=True, group=ratio),
        Column("speed_up_low", "at least", numeric=True, group=ratio),
        Column("speed_up_high", "at most", numeric=True, group=ratio),
        Column("winner", quantity.better),
    )
    title = f"{_title(family, found)} on {machine} and on cards; those of cards are {NOT_MEASURED}"
    lines = tuple(_network_line(*pair) for pair in pairs)
    return Table(title, columns, lines, _notes(found, fit))


def bands_table(found: Sequence[Verdict], fit: Fit, machine: str, family: str) -> Table:
    """Each network of `family` on the measured CPU, and the band of each card in one column: in the
    way of its headline, or else in the fastest. A band that is surely faster is bold."""
    lines: dict[tuple[tuple[str, str], ...], tuple[SpeedUp, dict[str, Cell]]] = {}
    ways: dict[str, None] = {}
    for verdict in found:
        for outlook, one in shown_ways(verdict):
            if one.family == family:
                key = tuple(one.common.items())
                lines.setdefault(key, (one, {}))[1][verdict.card.id] = _band(one)
                ways[f"{outlook.way.name}, {outlook.way.data}"] = None
    ordered = sorted(lines.values(), key=lambda line: (line[0].parameters, line[0].common["batch"]))
    batches = {one.batch for one, _ in ordered}
    short, quantity = FAMILIES[family].short, _quantity(found)
    columns = (
        Column("model", "network"),
        Column("params", "parameters", numeric=True),
        *([_WORK[0]] if len(batches) > 1 else []),
        Column(f"cpu_{short}_{quantity.unit}", "CPU", numeric=True),
        *(Column(verdict.card.id, short_gpu(verdict.card.name), numeric=True) for verdict in found),
    )
    title = f"{_title(family, found)} on {machine}: CPU measured, cards {NOT_MEASURED} (from – to)"
    bold = f"Bold, or with an asterisk: surely {quantity.better} than the CPU."
    how = f"GPU: {' or '.join(ways)}. {bold}"
    return Table(
        title,
        columns,
        tuple(
            (
                text_cell(one.model),
                Cell(units.count(one.parameters), int(one.parameters)),
                *([_work(one.common)[0]] if len(batches) > 1 else []),
                _shown(one.cpu, float(np.median(one.cpu.samples[0])), 3),
                *(cells.get(verdict.card.id, NOTHING) for verdict in found),
            )
            for one, cells in ordered
        ),
        (how, *_notes(found, fit)),
    )


def _band(one: SpeedUp) -> Cell:
    low, point, high = one.gpu.samples[0].tolist()
    band = " – ".join(one.gpu.quantity.ends(low, high))
    return Cell(band, (low, point, high), bold=one.winner == "gpu")


def _network_line(outlook: Outlook, one: SpeedUp) -> tuple[Cell, ...]:
    low, point, high = one.gpu.samples[0].tolist()
    winner = {"cpu": "CPU", "gpu": "GPU", None: "not sure"}[one.winner]
    return (
        text_cell(one.model),
        Cell(units.count(one.parameters), int(one.parameters)),
        *_work(one.common),
        _shown(one.cpu, float(np.median(one.cpu.samples[0])), 3),
        text_cell(one.cpu.words.there),
        *_gpu(outlook),
        *(_shown(one.gpu, value, 2) for value in (point, low, high)),
        Cell("no", 0),
        *(number_cell(value, 2) for value in (one.ratio, one.low, one.high)),
        Cell(winner, one.winner, bold=one.winner is not None),
    )


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
        _MEASURED,
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
        _MEASURED,
    )
    lines = tuple(_together_line(each, one) for one in each.networks)
    title = f"Several cards beside one, {each.plan.name}: networks of {machine}"
    error = loss()
    notes = (
        "The band holds 90 % of draws, in which the card, the link and what of the sums the "
        "backward pass hides vary independently, and several cards are slower than that by a loss "
        f"of {100 * error.spread:.0f} % (root mean square), as {error.cards} published trainings "
        "were (docs/method/ranks.md).",
        "Sums: the share of the time of several that waits for them. Bold, or with an asterisk: "
        "surely faster than one card.",
    )
    return Table(f"{title}; {NOT_MEASURED}", columns, lines, notes)


def _together_line(each: Prospect, one: Together) -> tuple[Cell, ...]:
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
        *(
            Cell(f"{100 * times.seconds:.0f} %", times.seconds)
            for times in (one.efficiency, one.exposed)
        ),
        Cell("no", 0),
    )


def problems_of(found: Sequence[Verdict]) -> list[str]:
    """Why some have no prediction, a sentence for each reason with the cards that it holds for."""
    cards: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for verdict in found:
        for outlook in verdict.outlooks:
            for reason, networks in outlook.problems.items():
                cards.setdefault((reason, networks), {})[verdict.card.id] = None
    return [
        f"no prediction on {', '.join(names)} of {', '.join(networks)}: {reason}"
        for (reason, networks), names in cards.items()
    ]


def cards_table(cards: Mapping[str, Card]) -> Table:
    """A line for each card: what a data sheet says of it; a dash where no source says it."""
    columns = (
        Column("card", "--gpu="),
        Column("name", "name"),
        Column("year", "year", numeric=True),
        Column("kind", "kind"),
        *(Column(key, title, numeric=True) for key, (title, _) in _RATES.items()),
        Column("memory_bytes", "memory size", numeric=True),
        Column("multiprocessors", "multiprocessors", numeric=True),
    )
    return Table("Graphics cards", columns, tuple(map(_card_line, cards.values())))


def _card_line(card: Card) -> tuple[Cell, ...]:
    rates = {key: card.figure(key) for key in _RATES}
    memory, multiprocessors = card.figure("memory_bytes"), card.figure("multiprocessors")
    return (
        text_cell(card.id),
        text_cell(card.name),
        Cell(str(card.year), card.year),
        text_cell(card.kind),
        *(
            Cell(units.rate(rate, _RATES[key][1]), rate) if rate else NOTHING
            for key, rate in rates.items()
        ),
        bytes_cell(memory) if memory else NOTHING,
        count_cell(multiprocessors) if multiprocessors else NOTHING,
    )


def _notes(found: Sequence[Verdict], fit: Fit) -> tuple[str, ...]:
    """What the bands of what is predicted are worth, and for whom they are."""
    outlooks = [outlook for verdict in found for outlook in verdict.outlooks]
    loops = {outlook.way.loop for outlook in outlooks}
    families = {one.family for outlook in outlooks for one in outlook.networks}
    curve = _any(found)
    precision = curve.configuration["precision"] if curve else "f32"
    loop = PYTORCH if loops == {PYTORCH} else OURS
    return band_notes(fit, precision, loop, of_passes=families == {FORWARD})


def _any(found: Sequence[Verdict]) -> Curve | None:
    """One of the GPU's curves, which all are in one precision and of one quantity."""
    outlooks = (outlook for verdict in found for outlook in verdict.outlooks)
    return next((one.gpu for outlook in outlooks for one in outlook.networks), None)


def _quantity(found: Sequence[Verdict]) -> Quantity:
    """What is predicted: time, or what it costs."""
    curve = _any(found)
    return curve.quantity if curve else TIME


def _title(family: str, found: Sequence[Verdict]) -> str:
    return _quantity(found).of(FAMILIES[family].title).capitalize()


def _shown(curve: Curve, value: float, digits: int) -> Cell:
    return Cell(curve.quantity.show(value, digits), value)


def _gpu(outlook: Outlook) -> tuple[Cell, ...]:
    return (
        Cell(short_gpu(outlook.card.name), outlook.card.id),
        text_cell(outlook.way.name),
        text_cell(outlook.way.data),
    )


def _work(common: dict[str, str]) -> tuple[Cell, ...]:
    batch = common.get("batch")
    return (
        Cell(f"{int(batch):,}", int(batch)) if batch else NOTHING,
        text_cell(common.get("precision", "f32")),
    )
