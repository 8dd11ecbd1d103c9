# SPDX-License-Identifier: Apache-2.0
"""The published experiments that the charts show in grey."""

from __future__ import annotations

from collections.abc import Sequence

from plots.page.section import Block, Context, Link, Section
from plots.published import Experiment
from plots.rows import File


def build(_files: Sequence[File], context: Context) -> Section | None:
    """The section; None where nothing was published."""
    if not context.experiments:
        return None
    return Section(
        title="Published experiments",
        anchor="published",
        lead="Measurements of others, shown in grey in the chart of training epochs.",
        blocks=tuple(_block(experiment) for experiment in context.experiments),
        links=tuple(_link(experiment) for experiment in context.experiments),
    )


def _block(experiment: Experiment) -> Block:
    result = experiment.finding
    if experiment.crossover_params:
        result += f" ({experiment.crossover_params:,} parameters)"
    if experiment.seconds:
        times = ", ".join(f"{name} {total:g} s" for name, total in experiment.seconds.items())
        result += f": {times} for {experiment.epochs} epochs"
    if experiment.speed_up:
        result += f", speedup {experiment.speed_up:.3f} (CPU time / GPU time)"
    facts = (
        ("Result", result),
        ("Network", experiment.network),
        ("Training", experiment.training),
        ("Measured on", experiment.measured_on),
        ("By", experiment.citation.author),
    )
    return Block(title=experiment.title, facts=facts)


def _link(experiment: Experiment) -> Link:
    citation = experiment.citation
    year = f", {citation.year}" if citation.year else ""
    return Link(f"{citation.author}: {citation.title}{year}", citation.url)
