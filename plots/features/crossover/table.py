# SPDX-License-Identifier: Apache-2.0
"""The crossovers and the speedups of result files as tables."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from plots import units
from plots.core.crossover import Comparison, SpeedUp, regret
from plots.core.crossover_words import crossover_words, instances_words, other_work, what
from plots.core.curves import Alike, Curve
from plots.core.paired import LOST, PAIRS, lost_cells, pairs_cells
from plots.core.statistics import FEWEST_SAMPLES
from plots.core.tables.cells import number_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.file.families import EPOCH, FAMILIES, FORWARD, MINIBATCH, OF_NETWORKS
from plots.file.quantities import TIME, Quantity
from plots.file.rows import File
from plots.text import counted, printable, whole

_WHICH = (Column("machine", "machine"), Column("file", "file"))
_HOW = (
    Column("batch", "batch", numeric=True),
    Column("precision", "precision"),
    Column("cpu_threads", "threads", group="CPU"),
    Column("cpu_how", "how", group="CPU", for_programs=True),
)
_GPU = (Column("execution", "execution", group="GPU"), Column("data", "data", group="GPU"))
_COLUMNS = {"cpu": ("cpu_threads",), "cuda": ("execution", "data")}  # of each side's own
_INTERVAL = (
    Column("low", "from", numeric=True, group="95 %"),
    Column("high", "to", numeric=True, group="95 %"),
)
_TITLES = {
    EPOCH: "Crossover of training epochs",
    MINIBATCH: "Crossover of training steps over batch size",
    FORWARD: "Crossover of forward passes",
    "Gemm": "Crossover of square matrix products",
    "Layer": "Crossover of layers",
}


def crossover_table(found: Sequence[tuple[File, Sequence[Comparison]]]) -> Table:
    """One line for each comparison: the size from which the GPU wins, and its interval.

    The best of all thread counts has a line where there are several. Machine and file are columns
    where there are several files.
    """
    flags: dict[str, int] = {}
    lines = []
    paired = any(one.kind == "device" for file, _ in found for one in file.refinements)
    for file, comparisons in found:
        for comparison in comparisons:
            cpu, gpu = comparison.cpu, comparison.gpu
            if is_best_of_one(cpu):
                continue
            crossover = comparison.crossover
            answer = "once" if crossover.kind == "once" else crossover_words(crossover)
            sizes = f"{counted(crossover.left_out, 'size')} of fewer than {FEWEST_SAMPLES}"
            few = [f"Left out: {sizes} repetitions."] if crossover.left_out else []
            crossings = ", ".join(map(units.significant, crossover.crossings))
            lines.append(
                (
                    *_which(file, found),
                    text_cell(what(comparison.common, gpu.axes)),
                    *_how(comparison.common, cpu, gpu, flags),
                    Cell(answer, crossover.kind),
                    text_cell(comparison.measure),
                    replace(number_cell(crossover.size), marks=marks(few, flags)),
                    number_cell(crossover.low),
                    number_cell(crossover.high),
                    *(pairs_cells(file, comparison, flags) if paired else ()),
                    *lost_cells(regret(crossover, cpu, gpu)),
                    Cell(crossings, crossover.crossings),
                )
            )
    quantity = _quantity(found)
    columns = (
        *_which_columns(found),
        Column("what", f"{quantity.noun} of"),
        *_HOW,
        *_GPU,
        Column("kind", "answer"),
        Column("measure", "over"),
        Column("crossover", f"GPU {quantity.wins} from", numeric=True),
        *_INTERVAL,
        *(PAIRS if paired else ()),
        *LOST,
        Column("crossings", "crossings", for_programs=True),
    )
    families = {one.family for _, compared in found for one in compared}
    title = _TITLES.get(families.pop(), "Crossover") if len(families) == 1 else "Crossover"
    title += "" if quantity is TIME else f", {quantity.noun}"
    trained = (file for file, own in found if any(one.family in OF_NETWORKS for one in own))
    notes = (*flags, *_left_out(trained), *_instances(found))
    return Table(f"{title}{_on(found)}", columns, tuple(lines), notes)


def crossover_tables(found: Sequence[tuple[File, Sequence[Comparison]]]) -> dict[str, Table]:
    """Family → crossover_table() of each that is there."""
    tables = {}
    for family in _TITLES:
        own = [
            (file, [one for one in compared if one.family == family]) for file, compared in found
        ]
        if any(compared for _, compared in own):
            tables[family] = crossover_table(own)
    return tables


def speed_up_table(found: Sequence[tuple[File, Sequence[SpeedUp]]]) -> Table:
    """One line for each network and GPU configuration; the CPU is at its best thread count.

    All are of one family. The faster device's time is bold where it is sure.
    """
    flags: dict[str, int] = {}
    lines = []
    for file, speed_ups in found:
        for speed_up in speed_ups:
            cpu, gpu = speed_up.cpu, speed_up.gpu
            batch, precision, threads, cpu_how, *how = _how(speed_up.common, cpu, gpu, flags)
            model = speed_up.common["model"]
            lines.append(
                (
                    *_which(file, found),
                    text_cell(model),
                    Cell(units.count(speed_up.parameters), int(speed_up.parameters)),
                    batch,
                    precision,
                    threads,
                    cpu_how,
                    _time(cpu, speed_up.winner == "cpu"),
                    *how,
                    _time(gpu, speed_up.winner == "gpu"),
                    replace(number_cell(speed_up.ratio), marks=marks(_against(speed_up), flags)),
                    number_cell(speed_up.low),
                    number_cell(speed_up.high),
                )
            )
    quantity = _quantity(found)
    columns = (
        *_which_columns(found),
        Column("model", "network"),
        Column("params", "parameters", numeric=True),
        *_HOW,
        Column(f"cpu_{quantity.unit}", quantity.noun, numeric=True, group="CPU"),
        *_GPU,
        Column(f"gpu_{quantity.unit}", quantity.noun, numeric=True, group="GPU"),
        Column("speed_up", ratio_name(quantity), numeric=True),
        *_INTERVAL,
    )
    families = {one.family for _, own in found for one in own} or {EPOCH}
    of = f"{ratio_name(quantity)} = {quantity.quotient()} of one {FAMILIES[families.pop()].one}"
    notes = (*flags, *_left_out(file for file, _ in found), *_instances(found))
    return Table(f"{of}{_on(found)}", columns, tuple(lines), notes)


def ratio_title(curve: Curve) -> str:
    """What the column of ratios is called, and what it is: "SPEEDUP = CPU time / GPU time"."""
    return f"{ratio_name(curve.quantity)} = {curve.quantity.quotient()}"


def ratio_name(quantity: Quantity) -> str:
    """What the column of ratios is called."""
    return "SPEEDUP" if quantity is TIME else "RATIO"


def _quantity(found: Sequence[tuple[File, Sequence[Comparison | SpeedUp]]]) -> Quantity:
    """What is compared in `found`."""
    return next((one.gpu.quantity for _, own in found for one in own), TIME)


def _against(one: SpeedUp) -> list[str]:
    if not one.against:
        return []
    disagree = f"{one.against} of {counted(one.repetitions, 'repetition')}"
    return [f"{disagree} {'disagrees' if one.against == 1 else 'disagree'} with the faster device."]


def _left_out(files: Iterable[File]) -> list[str]:
    return [
        f"{printable(str(file.path))}: {words}." for file in files if (words := other_work(file))
    ]


def _instances(found: Sequence[tuple[File, Sequence[Alike]]]) -> list[str]:
    said = (instances_words(file, {one.family for one in own}) for file, own in found)
    return list(dict.fromkeys(filter(None, said)))


def _which_columns(found: Sequence[object]) -> tuple[Column, ...]:
    return _WHICH if len(found) > 1 else ()


def _which(file: File, found: Sequence[object]) -> tuple[Cell, ...]:
    if len(found) == 1:
        return ()
    return (text_cell(file.machine.id), Cell(file.path.stem, file.path.name))


def _on(found: Sequence[tuple[File, object]]) -> str:
    return f" on {found[0][0].machine.id}" if len(found) == 1 else ""


def is_best_of_one(cpu: Curve) -> bool:
    """Whether `cpu` is the best of one thread count, which stands beside it already."""
    return bool(cpu.candidates) and all(len(samples) == 1 for samples in cpu.candidates)


def _how(common: dict[str, str], cpu: Curve, gpu: Curve, flags: dict[str, int]) -> tuple[Cell, ...]:
    """Batch, precision, the CPU's threads and how, and the GPU's execution and data, with marks for
    the flags. People read how the CPU computes beside its threads, programs by itself."""
    threads, cpu_how = _side("cpu", cpu, common)
    execution, gpu_how = _side("cuda", gpu, common)
    beside = _given(", ".join(filter(None, [threads, cpu_how])) or None, marks(cpu.flags, flags))
    return (
        _given(common.get("batch")),
        _given(common.get("precision")),
        replace(beside, value=_given(threads).value),
        text_cell(cpu_how or None),
        _given(", ".join(filter(None, [execution, gpu_how])) or None, marks(gpu.flags, flags)),
        _given(gpu.configuration.get("data")),
    )


def _side(device: str, curve: Curve, common: dict[str, str]) -> tuple[str | None, str]:
    """The value of the side's first column, and how the curve computes in what has no column and
    is not plain: "graph" and "autotuned products", "2" and "auto"."""
    first, *_ = columns = _COLUMNS[device]
    own = curve.configuration
    rest = [
        axis.word(value)
        for axis, value in curve.axes.of(own, "how", "alike")
        if axis.key not in (*columns, *common, "device") and value != axis.plainest
    ]
    return own.get(first), ", ".join(rest)


def _given(text: str | None, flagged: tuple[int, ...] = ()) -> Cell:
    if text is None:
        return NOTHING
    number = whole(text)
    return Cell(text, text if number is None else number, marks=flagged)


def _time(curve: Curve, bold: bool) -> Cell:
    value = float(np.median(curve.samples[0]))
    return Cell(curve.quantity.show(value), value, bold=bold)
