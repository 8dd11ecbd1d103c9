# SPDX-License-Identifier: Apache-2.0
"""The answer: of each machine in a sentence or two; of many machines, of most in a line."""

from __future__ import annotations

from collections.abc import Sequence

from plots import units
from plots.analysis.bounds import Ceilings
from plots.analysis.crossover import Comparison
from plots.network import best, epoch_rows, networks, on_device
from plots.page.section import Block, Context, Section
from plots.rows import File, Row
from plots.series import device_label
from plots.tables.table import NOTHING, Cell, Column, Table

_WITHOUT_GPU = (
    "None of these files has a GPU's times. With one from a machine that has a GPU (./run measures "
    "both there), this page says from how many parameters on the GPU wins, how sure that is, what "
    "holds each side back, and how many times faster the GPU is."
)
_CLAIMS = {
    "once": "wins {}",
    "always": "wins at every size measured",
    "never": "wins at no size measured ({})",
    "several": "does not win for good at once: the lead {}",
}
_COMPARED = (
    "Compared are the best thread count of the CPU at each size and the best mode of the GPU, in "
    "f32; in brackets the 95 % interval."
)


def build(files: Sequence[File], context: Context) -> Section:
    """The section on `files`, one or more."""
    answers = [sentences(file, context.comparisons(file)) for file in files]
    blocks = [
        Block(
            machine=file.machine.id,
            lead=first,
            points=tuple(more),
            notes=(measured(file),),
            emphasis=True,
        )
        for file, (first, *more) in zip(files[: context.detailed], answers, strict=False)
    ]
    any_gpu = any(on_device(epoch_rows(file), "cuda") for file in files)
    if not any_gpu:
        blocks.append(Block(lead=_WITHOUT_GPU))
    rest = list(zip(files, answers, strict=True))[context.detailed :]
    notes = [_COMPARED] if any_gpu else []
    if rest:
        notes.append(
            f"Charts and tables below are of {context.detailed} of these {len(files)} files, those "
            "measured last; --detail=all shows all, --detail=N the last N."
        )
    if context.older:
        notes.append(
            f"Left out: {_count(len(context.older), 'older file')} of the same machines; --all "
            "shows each file."
        )
    return Section(
        title="The answer",
        anchor="answer",
        lead="From which size of the network on is a GPU worth it?",
        blocks=tuple(blocks),
        tables=(_overview(rest),) if rest else (),
        notes=tuple(notes),
    )


def sentences(file: File, compared: Sequence[Comparison]) -> list[str]:
    """What `file` says about the GPU, or without one about the CPU: the answer, then more.

    `compared` are its comparisons().
    """
    rows = epoch_rows(file)
    if not rows:
        return ["No training epoch was measured, so there is no answer in this file."]
    if not on_device(rows, "cpu"):
        return ["Only the GPU was measured; without the CPU's times there is nothing to compare."]
    if not on_device(rows, "cuda"):
        return [f"No GPU's times yet ({_why_no_gpu(file)}); {_reach(file)}."]
    pairs = _pairs(rows)
    if not pairs:
        return [
            "CPU and GPU were measured, but no network on both with the same batch size and "
            "precision, so there is nothing to compare."
        ]
    answers = [_claim(where, one) for where, one in headline(compared)]
    return [*answers, _speed_up(*pairs[-1])]


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """The best of the CPU and the best of the GPU for each network that has both, by size."""
    found = []
    for members in networks(rows).values():
        cpu, gpu = on_device(members, "cpu"), on_device(members, "cuda")
        if cpu and gpu:
            found.append((best(cpu), best(gpu)))
    return found


def _speed_up(cpu: Row, gpu: Row) -> str:
    ratio = cpu.median / gpu.median
    faster, times = ("GPU", ratio) if ratio >= 1 else ("CPU", 1 / ratio)
    params = units.count(cpu.counters["params"])
    return (
        f"At {params} parameters ({cpu.configuration['model']}) the {faster} is "
        f"{units.significant(times)} times as fast: {units.seconds(cpu.median)} an epoch on the "
        f"{device_label(cpu)}, {units.seconds(gpu.median)} on the {device_label(gpu)}."
    )


def headline(found: Sequence[Comparison]) -> list[tuple[str, Comparison]]:
    """Of all comparisons of epochs in f32 those that answer first, with where the data lies.

    One has the data on the GPU, the other copies each batch; each is the GPU mode of its kind that
    wins earliest, against the best thread count of the CPU at each size.
    """
    epochs = [
        one
        for one in found
        if one.measure == "parameters"
        and one.common.get("precision", "f32") == "f32"
        and one.gpu.configuration.get("loss", "epoch") == "epoch"
    ]
    best_cpu = [one for one in epochs if one.cpu.configuration.get("cpu_threads") == "best"]
    chosen = []
    for resident, where in ((True, "With the data on it"), (False, "Copying each batch")):
        own = [
            one
            for one in best_cpu or epochs
            if (one.gpu.configuration.get("data") == "resident") == resident
        ]
        if own:
            chosen.append((where, min(own, key=_earliest)))
    return chosen


def _earliest(one: Comparison) -> tuple[int, float]:
    order = ("always", "once", "several", "ambiguous", "never")
    return order.index(one.crossover.kind), one.crossover.size or 0.0


def _claim(where: str, one: Comparison) -> str:
    way = ", ".join(one.gpu.axes.words(one.gpu.configuration, roles=["how"], without=["device"]))
    claim = _CLAIMS.get(one.crossover.kind, "compares with the CPU so: {}")
    return f"{where} ({way}), the GPU {claim.format(one.crossover.words)}."


def _reach(file: File) -> str:
    """What the largest network takes: where a GPU would matter most."""
    rows = epoch_rows(file)
    largest = max(row.counters["params"] for row in rows)
    row = best([row for row in rows if row.counters["params"] == largest])
    rate = row.counters["flops"] / row.median
    peak = Ceilings(file.rows).find("flops", row.configuration)
    share = f", {100 * rate / peak:.0f} % of the multiply-adds it can do" if peak else ""
    return (
        f"the CPU trains {row.configuration['model']}, the largest network measured "
        f"({units.count(largest)} parameters), at {units.seconds(row.median)} an epoch on "
        f"{device_label(row).removeprefix('CPU, ')}: {units.rate(rate, 'FLOP/s')}{share}"
    )


def _why_no_gpu(file: File) -> str:
    if file.machine.gpu:
        return f"there is a GPU, {file.machine.gpu}, but no row of it has a result"
    return file.machine.gpu_reason.removeprefix("none ").strip("()") or "no GPU"


def measured(file: File) -> str:
    """On what, when, and at which commit `file` was measured."""
    devices = f"{file.machine.cpu.model}, {_count(file.machine.cpu.cores, 'core')}"
    if file.machine.gpu:
        devices += f"; {file.machine.gpu}"
    dirty = " with uncommitted changes" if file.software.dirty else ""
    commit = f", commit {file.software.commit[:7]}{dirty}" if file.software.commit else ""
    interrupted = "" if file.complete else "; interrupted, so rows are missing"
    return f"{devices}; measured on {file.date.date().isoformat()}{commit}{interrupted}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _overview(rest: Sequence[tuple[File, list[str]]]) -> Table:
    columns = (
        Column("machine", "machine"),
        Column("cpu", "CPU"),
        Column("gpu", "GPU"),
        Column("answer", "answer"),
        Column("measured", "measured"),
        Column("rows", "rows", numeric=True),
        Column("without_result", "without result", numeric=True),
        Column("flagged", "flagged", numeric=True),
    )
    lines = tuple(_line(file, answers[0]) for file, answers in rest)
    return Table("The other machines", columns, lines)


def _line(file: File, answer: str) -> tuple[Cell, ...]:
    cpu, gpu = file.machine.cpu, file.machine.gpu
    cores = _count(cpu.cores, "core")
    failed = sum(row.failure is not None for row in file.rows)
    flagged = sum(bool(row.warnings) for row in file.rows)
    return (
        Cell(file.machine.id, file.machine.id, bold=True),
        Cell(f"{cpu.model}, {cores}", cpu.model),
        Cell(gpu, gpu) if gpu else NOTHING,
        Cell(answer, answer),
        Cell(file.date.date().isoformat(), file.date.isoformat()),
        *(Cell(units.count(number), number) for number in (len(file.rows), failed, flagged)),
    )
