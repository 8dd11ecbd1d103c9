# SPDX-License-Identifier: Apache-2.0
"""Builds the report: a Markdown page with one chart and one table for each machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from plots.chart import draw_epochs
from plots.epoch_table import as_markdown, as_text, epoch_table
from plots.published import Experiment
from plots.rows import File, Row
from plots.text import markdown, printable, slug

PAGE = "README.md"

_INTRODUCTION = """\
# Crossover report

How long one training epoch takes, by size of the network, on each machine that was measured. \
Times are wall-clock times of a whole epoch over the data; **median** is over the repetitions and \
**range** is from the fastest to the slowest of them, none left out. A dash means that nothing \
was measured. Every row's computation was checked against a reference before it was timed.
"""


def newest_per_machine(files: Iterable[File]) -> list[File]:
    """Of each machine the file with the latest date, ordered by machine."""
    newest: dict[str, File] = {}
    for file in sorted(files, key=lambda file: (file.date, str(file.path))):
        newest[file.machine.id] = file
    return [newest[machine] for machine in sorted(newest)]


def epoch_rows(file: File) -> list[Row]:
    """The Epoch rows of `file` that have a result."""
    return [row for row in file.rows if row.family == "Epoch" and row.failure is None]


def build_report(files: Sequence[File], experiments: Sequence[Experiment]) -> dict[str, bytes]:
    """The report on `files`, one section each: file name → content, ready to be written.

    Names are made of letters, digits, hyphens and one dot whatever the files hold, so nothing
    lands outside the folder they are written to.
    """
    contents: dict[str, bytes] = {}
    sections = []
    for file in files:
        stem = _unused(slug(file.machine.id), contents)
        rows = epoch_rows(file)
        if rows:
            pictures = draw_epochs(file, rows, experiments)
            contents[f"{stem}.png"] = pictures.png
            contents[f"{stem}.svg"] = pictures.svg
        sections.append(_section(file, rows, stem))
    page = "\n".join([_INTRODUCTION, *sections, _published(experiments)])
    contents[PAGE] = page.encode()
    return contents


def write_report(contents: dict[str, bytes], folder: Path) -> list[Path]:
    """Writes `contents` into `folder`, which it makes; returns the paths. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in contents.items():
        path = folder / name
        path.write_bytes(content)
        paths.append(path)
    return paths


def summary(file: File) -> str:
    """What `file` says, as plain text for a terminal."""
    rows = epoch_rows(file)
    lines = [f"{printable(file.machine.id)}: {_devices(file)}", f"from {printable(str(file.path))}"]
    lines += [f"note: {note}" for note in _notes(file)]
    lines += ["", as_text(epoch_table(rows)) if rows else "no Epoch row has a result"]
    failed = [row for row in file.rows if row.failure]
    if failed:
        lines += ["", "without a result:"]
        lines += [
            f"  {printable(row.name)}: {row.failure.outcome}: {printable(row.failure.message)}"
            for row in failed
            if row.failure
        ]
    return "\n".join(lines)


def _unused(stem: str, contents: dict[str, bytes]) -> str:
    candidate, number = stem, 1
    while f"{candidate}.png" in contents:
        number += 1
        candidate = f"{stem}-{number}"
    return candidate


def _devices(file: File) -> str:
    machine = file.machine
    cpu = f"{printable(machine.cpu.model)}, {machine.cpu.cores} cores"
    gpu = printable(machine.gpu) if machine.gpu else f"no GPU: {printable(machine.gpu_reason)}"
    return f"{cpu}; {gpu}"


def _notes(file: File) -> list[str]:
    notes = []
    if not file.complete:
        notes.append("the run was interrupted, so rows are missing")
    if file.software.dirty:
        notes.append("measured from a checkout with uncommitted changes")
    others = sorted({row.family for row in file.rows} - {"Epoch"})
    if others:
        notes.append(f"rows not shown here: {', '.join(printable(name, 40) for name in others)}")
    return notes


def _section(file: File, rows: Sequence[Row], stem: str) -> str:
    measured = f"Measured on {file.date.date().isoformat()}, file {file.path.name}."
    parts = [f"## {markdown(file.machine.id)}", "", markdown(measured), ""]
    parts += [f"**Note:** {markdown(note)}.\n" for note in _notes(file)]
    if rows:
        parts += [
            f"![Seconds per epoch against number of parameters, logarithmic axes; the table below "
            f"has the same figures]({stem}.svg)",
            "",
            f"The same picture as [PNG]({stem}.png).",
            "",
            as_markdown(epoch_table(rows)),
        ]
    else:
        parts.append("No Epoch row of this file has a result.")
    parts += ["", *_failures(file), *_record(file)]
    return "\n".join(parts)


def _failures(file: File) -> list[str]:
    lines = [
        f"- {markdown(row.name, 200)}: {row.failure.outcome}: {markdown(row.failure.message, 400)}"
        for row in file.rows
        if row.failure
    ]
    return ["### Rows without a result", "", *lines, ""] if lines else []


def _record(file: File) -> list[str]:
    machine, software, cpu = file.machine, file.software, file.machine.cpu
    libraries = ", ".join(f"{name} {version}" for name, version in software.libraries.items())
    commit = software.commit or "unknown"
    facts = {
        "CPU": f"{cpu.model}; sockets: {cpu.sockets}, cores: {cpu.cores}, hardware threads: "
        f"{cpu.threads}, NUMA nodes: {cpu.numa_nodes}, SIMD: {cpu.simd}, "
        f"governor: {cpu.governor or 'none'}",
        "GPU": machine.gpu or machine.gpu_reason,
        "memory": f"{machine.memory_bytes / 1e9:.1f} GB",
        "system": f"{machine.os}, kernel {machine.kernel}",
        "commit": commit + (" with uncommitted changes" if software.dirty else ""),
        "compiler": f"{software.compiler}, {software.build_type}, {software.flags}",
        "libraries": libraries,
        "data": file.run.data,
        "date": file.date.isoformat(),
    }
    environment = [f"{name}={value}" for name, value in file.run.environment.items()]
    command = " ".join(
        shlex.quote(printable(word, 400)) for word in [*environment, *file.run.command]
    )
    return [
        "### How it was measured",
        "",
        "| | |",
        "| --- | --- |",
        *(f"| {name} | {markdown(fact, 400)} |" for name, fact in facts.items() if fact),
        "",
        "Command:",
        "",
        f"    {command}",  # a block by indentation, which nothing in the text can end
        "",
    ]


def _published(experiments: Sequence[Experiment]) -> str:
    lines = [
        "## Published experiments",
        "",
        "The two figures that the charts show in grey.",
        "",
        "| experiment | network | training | measured on | result | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for experiment in experiments:
        citation = experiment.citation
        result = experiment.finding
        if experiment.crossover_params:
            result += f" ({experiment.crossover_params:,} parameters)"
        if experiment.seconds:
            times = ", ".join(f"{name} {total:g} s" for name, total in experiment.seconds.items())
            result += f": {times} for {experiment.epochs} epochs"
        if experiment.speed_up:
            result += f", speed-up {experiment.speed_up:.3f} (CPU time / GPU time)"
        year = f", {citation.year}" if citation.year else ""
        fields = (
            experiment.title,
            experiment.network,
            experiment.training,
            experiment.measured_on,
            result,
        )
        source = f"{markdown(citation.author)}: [{markdown(citation.title)}]({citation.url}){year}"
        cells = [*(markdown(field, 400) for field in fields), source]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
