# SPDX-License-Identifier: Apache-2.0
"""What others measured and hard-code; the charts show the experiments with networks of ours."""

from collections.abc import Sequence

from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Fold, Link, Section
from plots.core.published import Experiment, same_as_ours
from plots.core.thresholds import load_thresholds
from plots.features.published.table import published_table
from plots.features.published.thresholds_table import thresholds_table
from plots.file.rows import File

_FIRST = ("title", "speed_up", "cpu_seconds", "gpu_seconds", "params", "batch")


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section; None where nothing was published."""
    if not context.experiments:
        return None
    shown = same_as_ours(context.experiments)
    return Section(
        title="Published experiments",
        anchor="published",
        folded=True,
        lead="Measurements of others: those with the same networks as ours, shown in grey in the "
        "chart of training epochs; then all, and the sizes from which well-known code uses a GPU.",
        blocks=(
            *(_block(experiment) for experiment in shown),
            _others(context.experiments),
            *(_hard_coded(file, context) for file in _beside(files[: context.detailed], context)),
        ),
        links=tuple(Link(one.citation.text, one.citation.url) for one in shown),
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


def _others(experiments: Sequence[Experiment]) -> Block:
    table = on_page(published_table(experiments), _FIRST)
    sources = tuple(
        f"{one.title}: {one.citation.text}, {one.where}. {one.citation.url}" for one in experiments
    )
    return Block(
        folds=(
            Fold(f"What others measured, all {len(experiments)}", (table,)),
            Fold("Where each was published", points=sources),
        )
    )


def _beside(files: Sequence[File], context: Context) -> Sequence[File]:
    """The files that thresholds stand beside: those with crossovers, else any one."""
    return [file for file in files if context.comparisons(file)] or files[:1]


def _hard_coded(file: File, context: Context) -> Block:
    thresholds, compared = load_thresholds(), context.comparisons(file)
    table = thresholds_table(thresholds, file, compared)
    title = f"What others hard-code ({len(thresholds)})"
    if not compared:
        return Block(folds=(Fold(title, (table,)),))
    folds = (Fold(f"{title}, beside what was measured here", (table,)),)
    return Block(machine=file.machine.id, folds=folds)
