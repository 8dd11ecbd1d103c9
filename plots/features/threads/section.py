# SPDX-License-Identifier: Apache-2.0
"""From which size more CPU threads pay: the crossover of a machine without a GPU."""

from collections.abc import Sequence

from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Section
from plots.features.threads.analysis import more_threads, threads_sentence
from plots.features.threads.table import threads_table
from plots.file.rows import File

_FIRST = ("crossover", "low", "high", "pairs_low", "pairs_high", "regret")
_TITLE = "Epochs: from how many parameters more threads pay"
_NOTES = (
    "The interval is a bootstrap of the repetitions. Pairs are repetitions of both sides in turn, "
    "at sizes between those of the sweep: the interval of the pairs runs from the last sure win of "
    "one side to the first sure win of the other. Lost: the share of the time that following "
    "the size costs, on average over the sizes measured. docs/method/refinement.md defines each.",
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has epochs on several thread counts."""
    found = [(file, more_threads(file)) for file in files[: context.detailed]]
    found = [(file, own) for file, own in found if own]
    if not found:
        return None
    return Section(
        title="CPU threads",
        anchor="threads",
        lead="From which size of the network more threads pay.",
        blocks=tuple(
            Block(
                machine=file.machine.id,
                points=tuple(threads_sentence(file, one) for one in own),
                tables=(on_page(threads_table([(file, own)]), _FIRST, _TITLE),),
            )
            for file, own in found
        ),
        notes=_NOTES,
    )
