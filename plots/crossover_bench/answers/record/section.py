# SPDX-License-Identifier: Apache-2.0
"""Where the figures come from: the machine, what is timed, how to measure it again."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crossover_bench.counts.data_sheets import error_of_meters
from crossover_bench.files.again import command
from crossover_bench.files.axes import DEVICES
from crossover_bench.files.rows import File, Row
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import count_cell, date_cell, text_cell
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table
from crossover_bench.words import units
from crossover_bench.words.text import printable

_WSL = {
    None: "",
    False: "; WSL, to which Windows lends no GPU",
    True: "; WSL, where the GPU's driver is Windows': of its clocks, of what held them back and of "
    "its energy NVML may tell nothing",
}
_TURBO = {True: "on", False: "off", None: "not told"}
_COUNTED = {"cpu": "processors", "gpu": "GPU", "machine": "machine"}
_METHOD = (
    (
        "Epoch",
        "One training epoch over the whole data set, by the wall clock: forward pass, loss, "
        "backward pass and update for every batch, with the data in memory. Not timed: reading "
        "data, creating primitives, allocating memory, and the first epoch.",
    ),
    (
        "Minibatch",
        "One training step on one batch, by the wall clock: forward pass, loss, backward pass and "
        "update, with the batch in memory. Not timed: what an epoch does not time, either.",
    ),
    (
        "Copy",
        "One copy between host and device, or within one of them, by the wall clock, including the "
        "wait for its end.",
    ),
    (
        "Collective",
        "One sum of as many bytes over all ranks, by the wall clock of the slowest rank.",
    ),
    (
        "Gemm, Layer",
        "The same matrix product or layer many times in sequence, then one wait. The time is "
        "that of one of them.",
    ),
    (
        "Verification",
        "Every row is compared with a float64 reference before it is timed. A row outside its "
        "tolerance is an error, not a number.",
    ),
    (
        "Samples",
        "Each repetition is a sample, and all are kept. Shown are their median and range; nothing "
        "is removed.",
    ),
)


def build(files: Sequence[File], context: Context) -> Section:
    blocks = [_block(file) for file in files[: context.detailed]]
    blocks.append(
        Block(
            title="What is timed",
            facts=_METHOD,
            notes=("docs/method in the repository describes the whole method.",),
        )
    )
    tables = (_older(context.older),) if context.older else ()
    return Section(
        title="How it was measured",
        anchor="record",
        blocks=tuple(blocks),
        tables=tables,
    )


def _block(file: File) -> Block:
    checkout = (f"git checkout {file.software.commit}",) if file.software.commit else ()
    changed = "The checkout had uncommitted changes, which the commit does not include."
    return Block(
        machine=file.machine.id,
        facts=facts(file),
        commands=(*checkout, "./run --setup-only", command(file.run)),
        notes=(changed,) if file.software.dirty else (),
        folds=(
            Block(
                title=f"How {len(file.own_rows)} rows were verified",
                tables=(_verified(file.own_rows),),
            ),
        ),
    )


def facts(file: File) -> tuple[tuple[str, str], ...]:
    """What the file says of its machine and its run: what it is called, and what it is."""
    machine, software, cpu = file.machine, file.software, file.machine.cpu
    libraries = ", ".join(f"{name} {version}" for name, version in software.libraries.items())
    commit = software.commit or "unknown"
    facts_by_name = {
        "CPU": f"{cpu.model}; sockets: {cpu.sockets}, cores: {cpu.cores}, hardware threads: "
        f"{cpu.threads}, NUMA nodes: {cpu.numa_nodes}, SIMD: {cpu.simd}, "
        f"governor: {cpu.governor or 'none'}, turbo: {_TURBO[cpu.turbo]}"
        f"{', of a virtual machine' if cpu.virtual else ''}",
        "GPU": machine.gpu or machine.gpu_reason,
        "Memory": f"{machine.memory_bytes / 1e9:.1f} GB",
        "System": f"{machine.os}, kernel {machine.kernel}{_WSL[machine.wsl_gpu]}",
        "Commit": commit + (" with uncommitted changes" if software.dirty else ""),
        "Compiler": f"{software.compiler}, {software.build_type}, {software.flags.strip()}",
        "Libraries": libraries,
        "Data": file.run.data,
        "Energy": "; ".join([*_meters(file.run.energy), *filter(None, [error_of_meters(file)])]),
        "Idle power": "; ".join(_idle(file.run.energy)),
        "Sweep": f"{file.run.sweep}, {file.run.repetitions} repetitions",
        "Date": file.date.isoformat(),
        "File": file.path.name,
    }
    return tuple((name, fact) for name, fact in facts_by_name.items() if fact)


def _meters(energy: Mapping[str, Any]) -> Iterator[str]:
    """What each meter counts and how finely, and why a side has none."""
    for meter in energy.get("meters", ()):
        if isinstance(meter, str):  # in files from before that was known
            yield printable(meter)
            continue
        count, pause = meter["resolution_joules"], meter["update_seconds"]
        fine = f" to {units.joules(count)}" if count else ""
        moves = f"moves every {units.seconds(pause)}" if pause else "moved less than twice in 5 s"
        yield f"{printable(meter['name'])} counts the {_COUNTED[meter['counts']]}{fine}, {moves}"
    for key, side in (("reason", "processors"), ("gpu_reason", "GPU")):
        if key in energy:
            yield f"no meter of the {side}: {printable(energy[key], 400)}"


def _idle(energy: Mapping[str, Any]) -> Iterator[str]:
    """The power of each side while nothing ran, before the first row and after the last, where both
    are known."""
    for name, key in (("processors", "idle_watts"), ("GPU", "gpu_idle_watts")):
        watts = [energy[when] for when in (f"{key}_before", f"{key}_after") if when in energy]
        if len(watts) == 2:
            before, after = map(units.significant, watts)
            yield f"{name} {before} W before, {after} W after"


def _verified(rows: Sequence[Row]) -> Table:
    """A line for each family on each device: what was compared, and the row nearest to failing."""
    columns = (
        Column("family", "family"),
        Column("on", "on"),
        Column("rows", "rows", numeric=True),
        Column("failed", "without result", numeric=True),
        Column("verified", "verified", numeric=True),
        Column("undetermined_updates", "updates that rounding decides", numeric=True),
        Column("error", "error of the tolerance, at most", numeric=True),
        Column("row", "in"),
    )
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.family, row.device), []).append(row)
    lines = []
    for (family, device), members in groups.items():
        checked = {row.name: row.verification for row in members if row.verification}
        shares = {
            name: check.relative_error / check.tolerance
            for name, check in checked.items()
            if check.tolerance
        }
        worst = max(shares, key=shares.__getitem__, default=None)
        lines.append(
            (
                text_cell(family),
                text_cell(DEVICES.get(device, device)),
                count_cell(len(members)),
                count_cell(sum(row.failure is not None for row in members)),
                count_cell(len(checked)),
                count_cell(sum(check.undetermined_updates or 0 for check in checked.values())),
                Cell(f"{100 * shares[worst]:.2g} %", shares[worst]) if worst else NOTHING,
                text_cell(worst),
            )
        )
    return Table("What was compared with float64", columns, tuple(lines))


def _older(files: Sequence[File]) -> Table:
    columns = (
        Column("machine", "machine"),
        Column("file", "file"),
        Column("measured", "measured"),
        Column("rows", "rows", numeric=True),
    )
    lines = tuple(
        (
            text_cell(file.machine.id),
            text_cell(file.path.name),
            date_cell(file),
            Cell(units.count(len(file.own_rows)), len(file.own_rows)),
        )
        for file in files
    )
    return Table("Other files of the same machines, not shown", columns, lines)
