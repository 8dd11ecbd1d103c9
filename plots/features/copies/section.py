# SPDX-License-Identifier: Apache-2.0
"""Many networks at once: from how many copies of a network on the GPU wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plots.core.crossover import Comparison
from plots.core.page.section import Block, Context, Section
from plots.features.copies.analysis import copies_of, copies_sentences, copies_table, over_copies
from plots.file.rows import File

if TYPE_CHECKING:
    from plots.core.charts.style import Chart

_MOST_CHARTS = 2
_NOTES = (
    "Copies are networks of one kind that train at once on the same rows, each from other "
    "parameters; each is verified. On the CPU each thread trains some of them, one after the "
    "other; on a GPU one kernel trains all, or each has a stream of its own. "
    "docs/method/many_networks.md says more.",
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has rows of copies."""
    shown = [(file, copies_of(file)) for file in files[: context.detailed]]
    found = [(file, own, over_copies(file)) for file, own in shown if own]
    if not found:
        return None
    drawn = context.draw(_draw, [(file, own[:_MOST_CHARTS]) for file, _, own in found])
    unit = context.quantity.unit
    first = ("network", "copies", f"cpu_{unit}_a_copy", f"gpu_{unit}_a_copy", "speedup")
    return Section(
        title="Many networks at once",
        anchor="copies",
        lead="From how many copies of a network on, trained at once, the GPU "
        f"{context.quantity.wins}.",
        blocks=tuple(
            Block(
                machine=file.machine.id,
                points=tuple(copies_sentences(file, compared)),
                pictures=context.pictures(file, charts),
                tables=(copies_table(file, own).led_by(*first),),
            )
            for (file, own, compared), charts in zip(found, drawn, strict=True)
        ),
        notes=_NOTES,
    )


def draw_all(file: File) -> list[Chart]:
    """A chart of each network that was trained in copies on both devices."""
    return _draw((file, over_copies(file)))


def _draw(pair: tuple[File, Sequence[Comparison]]) -> list[Chart]:
    # Imported here because matplotlib takes long to load.
    from plots.core.charts.crossover import draw_crossovers  # noqa: PLC0415

    file, compared = pair
    return [draw_crossovers(file, [one]) for one in compared]
