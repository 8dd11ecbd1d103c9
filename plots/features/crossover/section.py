# SPDX-License-Identifier: Apache-2.0
"""From which size on the GPU wins: charts, crossovers with their intervals, speedups."""

from collections.abc import Sequence

from plots.core.charts.crossover import by_work, draw_crossovers
from plots.core.charts.style import Chart
from plots.core.crossover import Comparison, speed_ups
from plots.core.page.section import Block, Context, Fold, Picture, Section, on_page
from plots.core.tables.table import Table
from plots.features.crossover.table import crossover_table, ratio_name, ratio_title, speed_up_table
from plots.file.families import EPOCH, FAMILIES, MINIBATCH, TRAINING
from plots.file.rows import File

_QUESTIONS = {
    EPOCH: "from how many parameters on the GPU {wins}",
    MINIBATCH: "from which batch size on the GPU {wins}",
}
_FIRST = {  # columns
    EPOCH: ("execution", "data", "crossover", "kind", "low", "high"),
    MINIBATCH: ("what", "crossover", "kind", "low", "high", "execution", "data"),
}
_ANSWER_OF_WORK = ("what", "crossover", "kind", "low", "high", "execution")
_RATIO = ("model", "speed_up", "low", "high", "cpu_{unit}", "gpu_{unit}", "execution", "data")
_NOTE = (
    "The crossover is the smallest size from which the GPU {wins} at all larger measured sizes. "
    "Its 95 % interval is a bootstrap of the instances and repetitions of this run, and knows "
    "nothing of what differs between runs. docs/method/crossover.md defines each word."
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of them compares a CPU with a GPU."""
    shown = [file for file in files[: context.detailed] if context.comparisons(file)]
    if not shown:
        return None
    pairs = [(file, context.comparisons(file)) for file in shown]
    charts = context.map(_draw, pairs)
    return Section(
        title="Crossover",
        anchor="crossover",
        lead=f"The size from which the GPU {context.quantity.wins}, against the best number of CPU "
        "threads, and by how much. An interval reaches over all sizes at which the repetitions "
        "leave the answer open.",
        blocks=tuple(
            _block(file, found, own, context)
            for (file, found), own in zip(pairs, charts, strict=True)
        ),
        notes=(_NOTE.format(wins=context.quantity.wins), f"{ratio_title(pairs[0][1][0].gpu)}."),
    )


def _draw(pair: tuple[File, Sequence[Comparison]]) -> list[tuple[str, Chart]]:
    """A chart of each family of rows, of what comes first in by_work(), of training steps one of
    each network; each with its family. Epochs come first."""
    file, found = pair
    first: dict[tuple[str, str], list[Comparison]] = {}
    for group in by_work(found):
        common = group[0].common
        first.setdefault((common["family"], common.get("model", "")), group)
    return [(family, draw_crossovers(file, own)) for (family, _), own in first.items()]


def _block(
    file: File,
    found: Sequence[Comparison],
    charts: Sequence[tuple[str, Chart]],
    context: Context,
) -> Block:
    found = [one for group in by_work(found) for one in group]
    pictures: dict[str, list[Picture]] = {}
    for family, chart in charts:
        pictures.setdefault(family, []).append(context.picture(file, chart))
    shown = list(pictures.get(EPOCH, ()))
    of_steps = pictures.get(MINIBATCH, [])
    shown += of_steps[:1]
    tables, folds = [], []
    for family in TRAINING:
        own, more = _training(file, _of_family(found, family), family)
        tables += own
        folds += more
    if rest := tuple(of_steps[1:]):
        name = f"{FAMILIES[MINIBATCH].title}: charts of the other networks"
        folds.append(Fold(f"{name} ({len(rest)})", pictures=rest))
    folds += [
        _fold(file, _of_family(found, family), pictures.get(family, ()), family)
        for family in dict.fromkeys(one.family for one in found)
        if family not in TRAINING
    ]
    return Block(
        machine=file.machine.id, pictures=tuple(shown), tables=tuple(tables), folds=tuple(folds)
    )


def _training(
    file: File, found: Sequence[Comparison], family: str
) -> tuple[list[Table], list[Fold]]:
    """The crossovers of a family that trains with the best number of threads, and folded those with
    each number of them and the speedups."""
    every = crossover_table([(file, found)])
    decisive = [one for one in found if one.cpu.candidates]
    # Other precisions double the table.
    plain = [one for one in decisive if one.precision == one.gpu.axes["precision"].plainest]
    best = crossover_table([(file, plain or decisive)])
    summary = best if best.lines else every
    first, folds = _FIRST[family], []
    title = FAMILIES[family].title
    if best.lines:
        name = f"{title}: against each number of threads, in every precision"
        table = on_page(every, ("cpu_threads", *first), name)
        folds.append(Fold.of(table, name))
    ratios = speed_ups(file, family, found)
    if ratios:
        quantity = ratios[0].gpu.quantity
        columns = [key.format(unit=quantity.unit) for key in _RATIO]
        table = on_page(speed_up_table([(file, ratios)]), columns)
        folds.append(Fold.of(table, f"{title}: {ratio_name(quantity).lower()} of every network"))
    wins = found[0].gpu.quantity.wins if found else ""
    name = f"{title}: {_QUESTIONS[family].format(wins=wins)}"
    return [on_page(summary, first, name)] if found else [], folds


def _fold(
    file: File, found: Sequence[Comparison], pictures: Sequence[Picture], family: str
) -> Fold:
    wins = found[0].gpu.quantity.wins
    title = f"{FAMILIES[family].title}: the size from which the GPU {wins}"
    table = on_page(crossover_table([(file, found)]), _ANSWER_OF_WORK, title)
    return Fold.of(table, title, tuple(pictures))


def _of_family(found: Sequence[Comparison], family: str) -> list[Comparison]:
    return [one for one in found if one.family == family]
