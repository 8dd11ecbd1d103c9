# SPDX-License-Identifier: Apache-2.0
"""What is predicted of cards as tables; each says in its title that this was not measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from crossover_bench.answers.predict.analysis import NOT_MEASURED, Outlook
from crossover_bench.answers.predict.answer import Verdict, shown_ways
from crossover_bench.answers.predict.fit import Fit, band_notes
from crossover_bench.answers.predict.links import loss
from crossover_bench.answers.predict.model import CEILINGS
from crossover_bench.answers.predict.ranks import Prospect, Together
from crossover_bench.answers.predict.ways import PYTORCH
from crossover_bench.counts.cards import Card
from crossover_bench.curves.crossover import Comparison, SpeedUp
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.network import ODD
from crossover_bench.files.families import FAMILIES, FORWARD
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.show.tables.cells import (
    Field,
    count_field,
    for_programs,
    kind_cell,
    network_fields,
    number_field,
    seconds_field,
    shown_field,
    table_of,
    text_cell,
    text_field,
)
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table
from crossover_bench.study.machines import short_gpu
from crossover_bench.words import units

_BAND = "predicted"
_MEASURED: Field = (Column("measured", "measured", for_programs=True), lambda _: Cell("no", 0))
_SHARED = {"strong": "cards share each batch", "weak": "a batch for each card"}
_RATES = {
    **{figure: (precision, "FLOP/s") for precision, figure in CEILINGS.items()},
    **{f"{name}_bytes_per_second": (name, "B/s") for name in ("memory", "link")},
}


def crossover_table(verdicts: Sequence[Verdict], machine: str) -> Table:
    """From which size each card would win, in each way."""
    quantity = _quantity(verdicts)

    def answer(of: tuple[Outlook, Comparison]) -> Cell:
        crossover = of[1].crossover
        words = "once" if crossover.kind == "once" else crossover_words(crossover)
        return Cell(words, crossover.kind)

    fields = (
        *_gpu_fields(),
        text_field("what", "of", lambda of: of[1].networks),
        *_work_fields(),
        for_programs(text_field("measure", "over", lambda of: of[1].measure)),
        *_size_fields(f"{quantity.wins} from", "earliest", "latest", _BAND, _BAND),
        _MEASURED,
        (Column("answer", "answer"), answer),
    )
    lines = [
        (outlook, comparison)
        for verdict in verdicts
        for outlook in verdict.outlooks
        for comparison in outlook.crossovers
    ]
    title = f"From which size each card would {quantity.win}, in every way, {NOT_MEASURED}"
    return table_of(f"{title}, on {machine}", lines, fields)


def networks_table(
    verdicts: Sequence[Verdict], machine: str, family: str, notes: Iterable[str]
) -> Table:
    """Each network of `family` on the measured CPU and on each card, in each way."""
    pairs = [pair for pair in _networks(verdicts) if pair[1].family == family]
    pairs.sort(key=lambda pair: pair[1].parameters)
    short, quantity = FAMILIES[family].short, _quantity(verdicts)
    unit, ratio = quantity.unit, "GPU than CPU" if quantity is TIME else quantity.quotient()
    times = "times as fast" if quantity is TIME else "ratio"
    was_measured = _was_measured(verdicts)
    cpu = "measured" if was_measured else "predicted"

    def shown(key: str, title: str, place: int) -> Field:
        def value(of: tuple[Outlook, SpeedUp]) -> float:
            return float(of[1].gpu.samples[0][place])

        return shown_field(key, title, value, partial(quantity.show, digits=2), _BAND)

    def times_as_fast(key: str, title: str, end: str) -> Field:
        return number_field(key, title, lambda of: getattr(of[1], end), ratio, 2)

    def winner(of: tuple[Outlook, SpeedUp]) -> Cell:
        side = of[1].winner
        words = {"cpu": "CPU", "gpu": "GPU", None: "not sure"}[side]
        return Cell(words, side, bold=side is not None)

    fields = (
        text_field("model", "network", lambda of: of[1].model),
        count_field("params", "parameters", lambda of: of[1].parameters),
        *_work_fields(),
        _cpu_field(f"cpu_{short}_{unit}", f"{short}, {cpu}", quantity, "CPU"),
        text_field("cpu_on", "on", lambda of: of[1].cpu.words.there, "CPU"),
        *_gpu_fields(),
        shown(f"predicted_{short}_{unit}", short, 1),
        shown(f"low_{unit}", "from", 0),
        shown(f"high_{unit}", "to", 2),
        _MEASURED,
        times_as_fast("speed_up", times, "ratio"),
        times_as_fast("speed_up_low", "at least", "low"),
        times_as_fast("speed_up_high", "at most", "high"),
        (Column("winner", quantity.better), winner),
    )
    title = (
        f"{_title(family, verdicts)} on {machine} and on cards; "
        f"{'those of cards' if was_measured else 'all'} are {NOT_MEASURED}"
    )
    return table_of(title, pairs, fields, notes)


def bands_table(verdicts: Sequence[Verdict], family: str, notes: Iterable[str]) -> Table:
    """Each network of `family` that anyone trains (or any, where nobody trains one) on the measured
    CPU, and the band of each card in a column: in the way of its headline, or else in the fastest.
    A band that is surely faster is bold."""
    lines: dict[tuple[tuple[str, str], ...], tuple[dict[str, Cell], SpeedUp]] = {}
    ways: dict[str, None] = {}
    quantity = _quantity(verdicts)
    for verdict in verdicts:
        for outlook, network in shown_ways(verdict):
            if network.family == family:
                cells, _ = lines.setdefault(tuple(network.common.items()), ({}, network))
                low, point, high = network.gpu.samples[0].tolist()
                band = " – ".join(quantity.ends(low, high))
                is_sure = network.winner == "gpu"
                cells[verdict.card.id] = Cell(band, (low, point, high), bold=is_sure)
                ways[f"{outlook.way.name}, {outlook.way.data}"] = None
    ordered = sorted(lines.values(), key=lambda of: (of[1].parameters, of[1].common["batch"]))
    ordered = [of for of in ordered if of[1].model not in ODD] or ordered
    batch, _ = _work_fields()

    def band_field(card: Card) -> Field:
        column = Column(card.id, short_gpu(card.name), numeric=True)
        return column, lambda of: of[0].get(card.id, NOTHING)

    fields = (
        text_field("model", "network", lambda of: of[1].model),
        count_field("params", "parameters", lambda of: of[1].parameters),
        *([batch] if len({network.batch for _, network in ordered}) > 1 else []),
        _cpu_field(f"cpu_{FAMILIES[family].short}_{quantity.unit}", "CPU", quantity),
        *(band_field(verdict.card) for verdict in verdicts),
    )
    sides = "CPU measured, cards" if _was_measured(verdicts) else "CPU and cards"
    title = f"{_title(family, verdicts)}: {sides} {NOT_MEASURED} (from – to)"
    bold = f"Bold, or with an asterisk: surely {quantity.better} than the CPU."
    how = f"GPU: {' or '.join(ways)}. {bold}"
    return table_of(title, ordered, fields, (how, *notes))


def paying_table(prospects: Sequence[Prospect], machine: str) -> Table:
    """From which size on each number of cards wins."""
    fields = (
        text_field("card", "card", lambda of: of[0].card.id),
        text_field("link", "link", lambda of: of[0].link.name),
        count_field("ranks", "cards", lambda of: of[1].ranks),
        text_field("networks", "networks", lambda of: of[1].networks),
        (Column("batch", "batch", numeric=True), lambda of: text_cell(of[1].batch or None)),
        text_field("measure", "over", lambda of: of[1].crossover.question.measure),
        (Column("kind", "answer"), lambda of: kind_cell(of[1].crossover.kind)),
        *_size_fields("pay from", "from", "to", "", "95 % of draws"),
        _MEASURED,
    )
    lines = [(prospect.plan, paying) for prospect in prospects for paying in prospect.paying]
    how = _SHARED[prospects[0].plan.scaling]
    title = f"From which size several cards train faster than one, {how}, networks of {machine}"
    return table_of(f"{title}; {NOT_MEASURED}", lines, fields)


def together_table(prospect: Prospect, machine: str) -> Table:
    """One line for each network and number of cards."""

    def percent(value: float) -> str:
        return f"{100 * value:.0f} %"

    def gain(of: Together) -> Cell:
        ratio = of.speed_up.seconds
        return Cell(units.significant(ratio, 2), ratio, bold=of.speed_up.low > 1)

    plan = prospect.plan
    fields = (
        *network_fields(of=lambda of: of.row),
        for_programs(text_field("card", "card", lambda _: plan.card.id)),
        for_programs(text_field("link", "link", lambda _: plan.link.name)),
        count_field("ranks", "cards", lambda of: of.ranks),
        seconds_field("one_seconds", "one card", lambda of: of.alone.seconds, digits=2),
        seconds_field("seconds", "several", lambda of: of.many.seconds, digits=2),
        for_programs(seconds_field("low_seconds", "from", lambda of: of.many.low, digits=2)),
        for_programs(seconds_field("high_seconds", "to", lambda of: of.many.high, digits=2)),
        (Column("speed_up", "times", True, "speedup"), gain),
        number_field("speed_up_low", "from", lambda of: of.speed_up.low, "speedup", 2),
        number_field("speed_up_high", "to", lambda of: of.speed_up.high, "speedup", 2),
        shown_field("efficiency", "efficiency", lambda of: of.efficiency, percent),
        shown_field("exposed", "sums", lambda of: of.exposed, percent),
        _MEASURED,
    )
    title = f"Several cards beside one, {plan.name}: networks of {machine}"
    error = loss()
    notes = (
        "The band holds 90 % of draws, in which the card, the link and what of the sums the "
        "backward pass hides vary independently, and several cards are slower than that by a loss "
        f"of {100 * error.spread:.0f} % (root mean square), as {error.count} published trainings "
        "were (docs/method/several.md).",
        "Sums: the share of the time of several that waits for them. Bold, or with an asterisk: "
        "surely faster than one card.",
    )
    return table_of(f"{title}; {NOT_MEASURED}", prospect.networks, fields, notes)


def cards_table(cards: Mapping[str, Card]) -> Table:
    """A line for each card: what a data sheet says of it; a dash where no source says it."""

    def figure(key: str, title: str, show: Callable[[float], str]) -> Field:
        return shown_field(key, title, lambda card: card.figure(key) or None, show)

    fields = (
        text_field("card", "--gpu=", lambda card: card.id),
        text_field("name", "name", lambda card: card.name),
        shown_field("year", "year", lambda card: card.year, str),
        text_field("kind", "kind", lambda card: card.kind),
        *(
            figure(key, title, partial(units.rate, unit=unit))
            for key, (title, unit) in _RATES.items()
        ),
        figure("memory_bytes", "memory size", units.binary_bytes),
        figure("multiprocessors", "multiprocessors", units.count),
    )
    return table_of("Graphics cards", cards.values(), fields)


def notes_of(verdicts: Sequence[Verdict], fit: Fit) -> tuple[str, ...]:
    """What the bands of what is predicted are worth, and for whom they are."""
    outlook, network = _networks(verdicts)[0]  # all share its loop, precision and kind of family
    precision = network.gpu.configuration["precision"]
    if outlook.way.loop == PYTORCH:
        attention = outlook.way.attention if outlook.has_attention else ""
        return band_notes(fit, precision, outlook.cpu, attention=attention)
    return band_notes(fit, precision, of_passes=network.family == FORWARD)


def _networks(verdicts: Sequence[Verdict]) -> list[tuple[Outlook, SpeedUp]]:
    """Each network on each card in each way."""
    outlooks = (outlook for verdict in verdicts for outlook in verdict.outlooks)
    return [(outlook, network) for outlook in outlooks for network in outlook.networks]


def _was_measured(verdicts: Sequence[Verdict]) -> bool:
    """Whether all that cards are compared with was."""
    return all(outlook.was_measured for verdict in verdicts for outlook in verdict.outlooks)


def _quantity(verdicts: Sequence[Verdict]) -> Quantity:
    """What is predicted: time, or what it costs."""
    return _networks(verdicts)[0][1].gpu.quantity


def _title(family: str, verdicts: Sequence[Verdict]) -> str:
    return _quantity(verdicts).of(FAMILIES[family].title).capitalize()


def _cpu_field(key: str, title: str, quantity: Quantity, group: str = "") -> Field:
    """The column of the measured CPU's median, from the SpeedUp that stands second in a line."""

    def median(of: tuple[object, SpeedUp]) -> float:
        return float(np.median(of[1].cpu.samples[0]))

    return shown_field(key, title, median, quantity.show, group)


def _size_fields(size: str, low: str, high: str, group: str, ends: str) -> tuple[Field, ...]:
    """The columns of a crossover's size and ends, of what stands second in a line."""

    def field(key: str, title: str, end: str, group: str) -> Field:
        return number_field(key, title, lambda of: getattr(of[1].crossover, end), group, 2)

    return (
        field("crossover", size, "size", group),
        field("low", low, "low", ends),
        field("high", high, "high", ends),
    )


def _gpu_fields() -> tuple[Field, ...]:
    """The columns of the card and the way of the Outlook that stands first in a line."""
    return (
        (Column("card", "card"), lambda of: Cell(short_gpu(of[0].card.name), of[0].card.id)),
        text_field("execution", "execution", lambda of: of[0].way.name, "GPU"),
        text_field("data", "data", lambda of: of[0].way.data, "GPU"),
    )


def _work_fields() -> tuple[Field, Field]:
    """The columns of the batch and the precision of what stands second in a line."""

    def batch(of: tuple[object, Comparison | SpeedUp]) -> float | None:
        return int(of[1].batch) if of[1].batch else None

    return (
        count_field("batch", "batch", batch),
        text_field("precision", "precision", lambda of: of[1].common.get("precision", "f32")),
    )
