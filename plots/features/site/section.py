# SPDX-License-Identifier: Apache-2.0
"""The ladder on the page: a picture, a form that filters, and the table."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from plots.core.charts.strip import draw_strips
from plots.core.page.section import Block, Context, Picture, Section, Widget
from plots.features.answer.glance import glance, machines
from plots.features.predict.files import Predictions
from plots.features.site.table import ladder_table
from plots.file.rows import File

_FOLDER = Path(__file__).parent
_MOST_STRIPS = 12
_NOTES = (
    "The 95 % interval is in brackets; of a predicted card it is the band of the prediction. "
    "A dash: the file did not measure that batch. The fastest thread count of the CPU stands "
    "against the GPU's best way. Of each machine the newest complete default or full sweep counts, "
    "and its page has everything that this file says.",
    "To add your machine: ./run, then python -m plots share FILE, which prints where to send it.",
)


def build(
    files: Sequence[File], context: Context, predicted: Predictions, links: Mapping[Path, str]
) -> Section:
    """The ladder of `files`; `links` say where the page of each is."""
    assert context.side and context.compared is not None
    glances = [glance(one, context.comparisons(one), context.verdicts(one)) for one in files]
    strips = machines(zip(files[:_MOST_STRIPS], glances, strict=False))
    chart = draw_strips(strips, "strips") if strips else None
    return Section(
        title="Machines",
        anchor="ladder",
        lead="From how many parameters on a GPU trains faster than the CPU beside it.",
        widget=Widget(
            # The script fills it in from the table; without it every line is there to read.
            html=Markup('<form class="filter" hidden><output aria-live="polite"></output></form>'),
            script=(_FOLDER / "filter.js").read_text(encoding="utf-8").strip(),
            style=(_FOLDER / "filter.css").read_text(encoding="utf-8").strip(),
        ),
        blocks=(
            Block(tables=(ladder_table(context.side, context.compared, predicted, links),)),
            Block(
                pictures=(Picture(chart.pictures, chart.name, chart.alt),) if chart else (),
                notes=_NOTES,
            ),
        ),
    )
