# SPDX-License-Identifier: Apache-2.0
"""The published experiments that the charts show in grey."""

from __future__ import annotations

from collections.abc import Sequence

from plots.published import Experiment
from plots.rows import File
from plots.section import Context, Link, Section
from plots.table import Cell, Column, Table


def build(_files: Sequence[File], context: Context) -> Section | None:
    """The section; None where nothing was published."""
    if not context.experiments:
        return None
    names = ("experiment", "network", "training", "measured on", "result", "source")
    columns = tuple(Column(name.replace(" ", "_"), name) for name in names)
    lines = tuple(
        tuple(Cell(text, text) for text in _fields(experiment))
        for experiment in context.experiments
    )
    return Section(
        title="Published experiments",
        anchor="published",
        lead="What others measured, in grey in the chart of the training epochs.",
        tables=(Table("What others measured", columns, lines),),
        links=tuple(_link(experiment) for experiment in context.experiments),
    )


def _fields(experiment: Experiment) -> tuple[str, ...]:
    result = experiment.finding
    if experiment.crossover_params:
        result += f" ({experiment.crossover_params:,} parameters)"
    if experiment.seconds:
        times = ", ".join(f"{name} {total:g} s" for name, total in experiment.seconds.items())
        result += f": {times} for {experiment.epochs} epochs"
    if experiment.speed_up:
        result += f", speed-up {experiment.speed_up:.3f} (CPU time / GPU time)"
    return (
        experiment.title,
        experiment.network,
        experiment.training,
        experiment.measured_on,
        result,
        experiment.citation.author,
    )


def _link(experiment: Experiment) -> Link:
    citation = experiment.citation
    year = f", {citation.year}" if citation.year else ""
    return Link(f"{citation.author}: {citation.title}{year}", citation.url)
