# SPDX-License-Identifier: Apache-2.0
"""The table of Shi et al. 2016 with the rows of the machines shown here in it."""

from collections.abc import Sequence

from plots.core.page.columns import brief, on_page
from plots.core.page.section import Block, Context, Fold, Section
from plots.core.tables.table import Table
from plots.features.shi.analysis import load_shi, shi_rows
from plots.features.shi.table import brought, ratio_table, shi_table
from plots.file.rows import File

_LEAD = (
    "Seconds per mini-batch of the networks of Shi, Wang, Xu and Chu, \u201cBenchmarking "
    "State-of-the-Art Deep Learning Software Tools\u201d (2016), Table 7, "
)
_RATIO = (
    *("network", "machine", "on", "seconds", "cpu_ratio", "cpu_low", "cpu_high"),
    *("gpu_ratio", "gpu_low", "gpu_high"),
)
_WHAT = ("network", "machine", "on")
_THEIRS = "The fastest figures of Shi et al. 2016"


def build(files: Sequence[File], context: Context) -> Section:
    """The section on `files`: the table opens at once only where one of them has a line in it."""
    shown = files[: context.detailed]
    figures = load_shi()
    table = shi_table(figures, shown)
    if any(shi_rows(file, figures) for file in shown):
        ratios = ratio_table(figures, shown)
        ratio_keys = [column.key for column in ratios.columns]
        ours = _only(ratios, [key for key in ratio_keys if not _is_theirs(key)])
        return Section(
            title="Beside Shi et al. 2016",
            anchor="shi",
            lead=f"{_LEAD}beside the same networks as measured here; notes say where ours differ.",
            blocks=(
                Block(
                    points=tuple(brought(figures, shown)),
                    tables=(brief(ours, "the table below, of seconds,"),),
                    folds=(
                        Fold(
                            "Which published figures these are",
                            (_only(ratios, [*_WHAT, *filter(_is_theirs, ratio_keys)], _THEIRS),),
                        ),
                        Fold(
                            "Seconds per mini-batch on each number of threads and each device",
                            (_ours_first(table, shi_table(figures, ())),),
                        ),
                    ),
                ),
            ),
        )
    return Section(
        title="Beside Shi et al. 2016",
        anchor="shi",
        lead=f"{_LEAD}as published. None of these files measured one of the networks; "
        "./run does, and gives them lines here.",
        blocks=(Block(folds=(Fold("The published table", (table,)),)),),
    )


def _is_theirs(key: str) -> bool:
    """Whether a column of ratio_table() says who published what."""
    return key.startswith("published_")


def _only(table: Table, keys: Sequence[str], title: str = "") -> Table:
    """The columns of `table` with `keys`, in the order of the page."""
    places = [place for place, column in enumerate(table.columns) if column.key in keys]
    return on_page(table.only(places), list(dict.fromkeys((*_RATIO, *keys))), title)


def _ours_first(table: Table, published: Table) -> Table:
    """`table` with what the files have before the `published`."""
    theirs = {column.key for column in published.columns}
    own = [column.key for column in table.columns if column.key not in theirs]
    return on_page(table, [column.key for column in table.columns[:2]] + own)
