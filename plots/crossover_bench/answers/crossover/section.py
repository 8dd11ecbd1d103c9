# SPDX-License-Identifier: Apache-2.0
"""From which size on the GPU wins, with intervals, and by how much: charts, and tables of which
people are shown the answer, then a block for each question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from crossover_bench.answers.paired import LOST, pairs_fields
from crossover_bench.curves.crossover import Comparison, SpeedUp, Winner
from crossover_bench.curves.crossover_words import (
    crossover_words,
    instances_words,
    other_work,
    what,
)
from crossover_bench.curves.curves import Alike, Curve
from crossover_bench.curves.headline import by_work, ladders_of, way
from crossover_bench.curves.statistics import FEWEST_SAMPLES
from crossover_bench.files.axes import Label
from crossover_bench.files.families import (
    EPOCH,
    FAMILIES,
    FORWARD,
    MINIBATCH,
    OF_NETWORKS,
    TRAINING,
)
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import File, median_of
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import (
    Field,
    file_fields,
    interval_fields,
    number_cell,
    table_of,
    text_cell,
    text_field,
)
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.study.study import Study
from crossover_bench.words import units
from crossover_bench.words.text import counted, printable, whole

if TYPE_CHECKING:
    from crossover_bench.show.charts.style import Chart

_NOTE = (
    "The crossover is the smallest size from which the GPU {wins} at all larger measured sizes. "
    "Its 95 % interval is a bootstrap of the instances and repetitions of this run, and knows "
    "nothing of what differs between runs. docs/method/crossover.md defines each word."
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of them compares a CPU with a GPU."""
    shown = list(filter(compares, map(context.study, files[: context.detailed])))
    if not shown:
        return None
    charts = context.draw(_draw, [(study.file, study.comparisons) for study in shown])
    return Section(
        title="Crossover",
        anchor="crossover",
        lead=f"The size from which the GPU {context.quantity.wins}, against the best number of CPU "
        "threads, and by how much. An interval reaches over all sizes at which the repetitions "
        "leave the answer open.",
        blocks=tuple(
            _block(study, drawn, context) for study, drawn in zip(shown, charts, strict=True)
        ),
        notes=(_NOTE.format(wins=context.quantity.wins), f"{ratio_title(context.quantity)}."),
    )


def compares(study: Study) -> bool:
    """Whether the file has anything that both devices compute."""
    return bool(study.comparisons) or any(map(study.speed_ups, OF_NETWORKS))


def _draw(pair: tuple[File, Sequence[Comparison]]) -> list[Chart]:
    """A chart of epochs, and one of training steps: of each what comes first in by_work()."""
    # Imported here because matplotlib takes long to load.
    from crossover_bench.show.charts.crossover import draw_crossovers  # noqa: PLC0415

    file, compared = pair
    first: dict[str, list[Comparison]] = {}
    for group in by_work(compared):
        first.setdefault(group[0].family, group)
    return [draw_crossovers(file, first[family]) for family in TRAINING if family in first]


def _block(study: Study, charts: Sequence[Chart], context: Context) -> Block:
    file, tables = study.file, list[Table]()
    ordered = [*chain(*by_work(study.comparisons))]
    for family in FAMILIES:
        if of_family := [each for each in ordered if each.family == family]:
            tables.append(where_table(file, of_family))
        if ratios := study.speed_ups(family):
            first = study.foremost if family == EPOCH else None
            tables.append(how_much_table(file, first, ratios))
    return Block(file.machine.id, pictures=context.pictures(file, charts), tables=tuple(tables))


_COLUMNS = {"cpu": ("cpu_threads",), "cuda": ("execution", "data")}  # of each side's own
_FIRST = ("what", "crossover", "kind", "low", "high", "execution", "data")  # of people's columns
Line = tuple[File, Comparison | SpeedUp]
_TITLES = {
    EPOCH: "Crossover of training epochs",
    MINIBATCH: "Crossover of training steps over batch size",
    FORWARD: "Crossover of forward passes",
    "Gemm": "Crossover of square matrix products",
    "Layer": "Crossover of layers",
}


def crossover_table(by_file: Sequence[tuple[File, Sequence[Comparison]]]) -> Table:
    """One line for each comparison: the size from which the GPU wins, and its interval.

    The best of all thread counts has a line where there are several. Machine and file are columns
    where there are several files.
    """
    flags: dict[str, int] = {}
    refined = (refinement.kind for file, _ in by_file for refinement in file.refinements)
    pairs = pairs_fields(flags) if "device" in refined else ()
    quantity = _quantity(by_file)

    def answer(of: tuple[File, Comparison]) -> Cell:
        crossover = of[1].crossover
        words = "once" if crossover.kind == "once" else crossover_words(crossover)
        return Cell(words, crossover.kind)

    def size(of: tuple[File, Comparison]) -> Cell:
        crossover = of[1].crossover
        sizes = f"{counted(crossover.left_out, 'size')} of fewer than {FEWEST_SAMPLES}"
        few = [f"Left out: {sizes} repetitions."] if crossover.left_out else []
        number = units.size(crossover.size) if crossover.size else NOTHING.text
        return Cell(number, crossover.size, marks=marks(few, flags))

    def crossings(of: tuple[File, Comparison]) -> Cell:
        sizes = of[1].crossover.crossings
        return Cell(", ".join(map(units.significant, sizes)), sizes)

    fields = (
        *file_fields(by_file),
        text_field("what", f"{quantity.noun} of", lambda of: what(of[1].common, of[1].gpu.axes)),
        *_how(flags),
        (Column("kind", "answer"), answer),
        text_field("measure", "over", lambda of: of[1].measure),
        (Column("crossover", f"GPU {quantity.wins} from", True), size),
        *interval_fields(lambda of: of[1].crossover, units.size),
        *pairs,
        *LOST,
        (Column("crossings", "crossings", for_programs=True), crossings),
    )
    lines = [(file, comparison) for file, compared in by_file for comparison in compared]
    families = {comparison.family for _, comparison in lines}
    title = _TITLES.get(families.pop(), "Crossover") if len(families) == 1 else "Crossover"
    title += "" if quantity is TIME else f", {quantity.noun}"
    trained = (
        file for file, compared in by_file if any(each.family in OF_NETWORKS for each in compared)
    )
    notes = chain(flags, _left_out(trained), _instances(by_file))
    lines = [line for line in lines if not is_best_of_one(line[1].cpu)]
    return table_of(f"{title}{_on(by_file)}", lines, fields, notes)


def speed_up_table(by_file: Sequence[tuple[File, Sequence[SpeedUp]]]) -> Table:
    """One line for each network and GPU configuration; the CPU is at its best thread count.

    All are of one family. The faster device's time is bold where it is sure.
    """
    flags: dict[str, int] = {}
    quantity = _quantity(by_file)

    def time(side: Winner) -> Field:
        def cell(of: tuple[File, SpeedUp]) -> Cell:
            curve = of[1].cpu if side == "cpu" else of[1].gpu
            value = median_of(curve.samples[0])
            return Cell(quantity.show(value), value, bold=of[1].winner == side)

        return Column(f"{side}_{quantity.unit}", quantity.noun, True, side.upper()), cell

    def parameters(of: tuple[File, SpeedUp]) -> Cell:
        return Cell(units.count(of[1].parameters), int(of[1].parameters))

    def ratio(of: tuple[File, SpeedUp]) -> Cell:
        speed_up, doubts = of[1], []
        if speed_up.against:
            verb = "disagrees" if speed_up.against == 1 else "disagree"
            count = f"{speed_up.against} of {counted(speed_up.repetitions, 'repetition')}"
            doubts.append(f"{count} {verb} with the faster device.")
        return replace(number_cell(speed_up.ratio), marks=marks(doubts, flags))

    batch, precision, threads, cpu_how, execution, data = _how(flags)
    fields = (
        *file_fields(by_file),
        text_field("model", "network", lambda of: of[1].common["model"]),
        (Column("params", "parameters", True), parameters),
        *(batch, precision, threads, cpu_how, time("cpu"), execution, data, time("gpu")),
        (Column("speed_up", ratio_name(quantity), True), ratio),
        *interval_fields(lambda of: of[1]),
    )
    lines = [(file, speed_up) for file, ratios in by_file for speed_up in ratios]
    family = lines[0][1].family if lines else EPOCH
    title = f"{ratio_title(quantity)} of one {FAMILIES[family].noun}{_on(by_file)}"
    notes = chain(flags, _left_out(file for file, _ in by_file), _instances(by_file))
    return table_of(title, lines, fields, notes)


def ratio_title(quantity: Quantity) -> str:
    """What the column of ratios is called, and what it is: "SPEEDUP = CPU time / GPU time"."""
    return f"{ratio_name(quantity)} = {quantity.quotient()}"


def ratio_name(quantity: Quantity) -> str:
    """What the column of ratios is called."""
    return "SPEEDUP" if quantity is TIME else "RATIO"


def _quantity(by_file: Sequence[tuple[File, Sequence[Comparison | SpeedUp]]]) -> Quantity:
    """What is compared."""
    return next((each.gpu.quantity for _, compared in by_file for each in compared), TIME)


def _left_out(files: Iterable[File]) -> list[str]:
    """What each of `files` has of other work, a sentence each."""
    works = ((file, other_work(file)) for file in files)
    return [f"{printable(str(file.path))}: {words}." for file, words in works if words]


def _instances(by_file: Sequence[tuple[File, Sequence[Alike]]]) -> list[str]:
    words = (instances_words(file, {each.family for each in alike}) for file, alike in by_file)
    return list(dict.fromkeys(filter(None, words)))


def _on(by_file: Sequence[tuple[File, object]]) -> str:
    return f" on {by_file[0][0].machine.id}" if len(by_file) == 1 else ""


def is_best_of_one(cpu: Curve) -> bool:
    """Whether `cpu` is the best of one thread count, which stands beside it already."""
    return bool(cpu.candidates) and all(len(samples) == 1 for samples in cpu.candidates)


def _how(flags: dict[str, int]) -> tuple[Field, ...]:
    """The columns of batch, precision, the CPU's threads and how, and the GPU's execution and data,
    with marks for the flags. People read how the CPU computes beside its threads, programs by
    itself."""

    def batch(of: Line) -> Cell:
        given = _given(of[1].common.get("batch"))
        return replace(given, text=units.written(given.text))

    def threads(of: Line) -> Cell:
        count, how = _side("cpu", of[1].cpu, of[1].common)
        beside = ", ".join(filter(None, [count, how])) or None
        return replace(_given(beside, marks(of[1].cpu.flags, flags)), value=_given(count).value)

    def execution(of: Line) -> Cell:
        words = ", ".join(filter(None, _side("cuda", of[1].gpu, of[1].common)))
        return _given(words or None, marks(of[1].gpu.flags, flags))

    return (
        (Column("batch", "batch", True), batch),
        (Column("precision", "precision"), lambda of: _given(of[1].common.get("precision"))),
        (Column("cpu_threads", "threads", group="CPU"), threads),
        (
            Column("cpu_how", "how", group="CPU", for_programs=True),
            lambda of: text_cell(_side("cpu", of[1].cpu, of[1].common)[1] or None),
        ),
        (Column("execution", "execution", group="GPU"), execution),
        (
            Column("data", "data", group="GPU"),
            lambda of: _given(of[1].gpu.configuration.get("data")),
        ),
    )


def _side(device: str, curve: Curve, common: dict[str, str]) -> tuple[str | None, str]:
    """The value of the side's first column, and how the curve computes in what has no column and
    is not plain: "graph" and "autotuned products", "2" and "auto"."""
    first, *_ = columns = _COLUMNS[device]
    rest = [
        axis.word(value)
        for axis, value in curve.axes.of(curve.configuration, "how", "alike")
        if axis.key not in (*columns, *common, "device") and value != axis.plainest
    ]
    return curve.configuration.get(first), ", ".join(rest)


def _given(text: str | None, flagged: tuple[int, ...] = ()) -> Cell:
    if text is None:
        return NOTHING
    number = whole(text)
    return Cell(text, text if number is None else number, marks=flagged)


# ---- what people are shown of these


_QUESTIONS = {
    EPOCH: "From which size the GPU trains {networks}",
    MINIBATCH: "From which batch size the GPU trains step by step",
    FORWARD: "From which size the GPU computes forward passes of {networks}",
    "Gemm": "From which size the GPU multiplies square matrices",
    "Layer": "From which width the GPU computes layers",
}


def where_table(file: File, compared: Sequence[Comparison]) -> Table:
    """crossover_table() of `compared`, which are of one family. In short each way of the GPU stands
    against the best number of CPU threads, in words, in the plainest precision alone."""
    best = [comparison for comparison in compared if comparison.cpu.candidates]
    plain = [each for each in best if each.precision in ("", _plainest(each))] or best
    table = crossover_table([(file, compared)]).led_by("cpu_threads", *_FIRST)
    if not plain:
        return table
    of: Field = text_field("what", "of", lambda each: what(each.common, each.gpu.axes))
    fields = (
        *(() if plain[0].family == EPOCH else (of,)),
        (Column("batch", "batch", True), lambda each: text_cell(units.written(each.batch) or None)),
        text_field("precision", "in", lambda each: each.precision or None),
        text_field("cpu", "CPU", lambda each: _best_words(each.cpu)),
        text_field("gpu", "GPU", way),
        text_field("answer", "answer", lambda each: crossover_words(each.crossover)),
    )
    first = plain[0]
    networks = " and ".join(ladders_of(plain)) or "networks"
    title = f"{_QUESTIONS[first.family].format(networks=networks)} {first.gpu.quantity.how}"
    short = table_of(f"{title} than the CPU", plain, fields).led_by("gpu", "answer")
    return table.shortened(short.in_brief())


def _best_words(cpu: Curve) -> str:
    words = cpu.words
    if is_best_of_one(cpu):
        return Label(how=", ".join(filter(None, (words.how, words.best_of)))).there
    return words.there


def how_much_table(file: File, first: Comparison | None, ratios: Sequence[SpeedUp]) -> Table:
    """speed_up_table() of `ratios`, which are of one family. In short it has the way of the GPU of
    the headline, `first`, with networks of its ladder at its batch alone; without `first` the
    fastest way of each network in each batch."""
    quantity = _quantity([(file, ratios)])
    keys = ("model", "speed_up", "low", "high", f"cpu_{quantity.unit}", f"gpu_{quantity.unit}")
    shown = _of_headline(first, ratios) if first else _fastest(ratios)
    shown.sort(key=lambda speed_up: (speed_up.parameters, whole(speed_up.batch) or 0))
    table = speed_up_table([(file, ratios)]).led_by(*keys)
    table = table.of_rows(ratios[0].family)
    return table.shortened(speed_up_table([(file, shown)]).led_by(*keys))


def _of_headline(first: Comparison, ratios: Sequence[SpeedUp]) -> list[SpeedUp]:
    ladder = {float(size) for size in first.sizes}
    return [
        speed_up
        for speed_up in ratios
        if speed_up.gpu.configuration == first.gpu.configuration
        and speed_up.precision == first.precision
        and (speed_up.batch == first.batch or speed_up.parameters not in ladder)
    ]


def _fastest(ratios: Sequence[SpeedUp]) -> list[SpeedUp]:
    fastest: dict[tuple[str, str], SpeedUp] = {}
    for speed_up in [each for each in ratios if each.precision == _plainest(each)] or ratios:
        place = speed_up.model, speed_up.batch
        if place not in fastest or _gpu_cost(speed_up) < _gpu_cost(fastest[place]):
            fastest[place] = speed_up
    return list(fastest.values())


def _gpu_cost(speed_up: SpeedUp) -> float:
    return speed_up.gpu.quantity.cost(median_of(speed_up.gpu.samples[0]))


def _plainest(compared: Comparison | SpeedUp) -> str:
    return compared.gpu.axes["precision"].plainest or ""
