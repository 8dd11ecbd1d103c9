# SPDX-License-Identifier: Apache-2.0
"""The table of Shi et al. 2016 with the rows of the machines shown here in it."""

from collections.abc import Sequence
from dataclasses import replace

from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Fold, Section
from plots.core.tables.table import NOTHING, Table
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


def build(files: Sequence[File], context: Context) -> Section:
    """The section on `files`: the table opens at once only where one of them has a line in it."""
    shown = files[: context.detailed]
    figures = load_shi()
    table = shi_table(figures, shown)
    if any(shi_rows(file, figures) for file in shown):
        return Section(
            title="Beside Shi et al. 2016",
            anchor="shi",
            lead=f"{_LEAD}beside the same networks as measured here; notes say where ours differ.",
            blocks=(
                Block(
                    points=tuple(brought(figures, shown)),
                    tables=(on_page(ratio_table(figures, shown), _RATIO),),
                    folds=(
                        Fold(
                            "Seconds per mini-batch on each number of threads and each device",
                            (_measured(table, shi_table(figures, ())),),
                        ),
                        Fold("The whole table", (table,)),
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


def _measured(table: Table, published: Table) -> Table:
    """`table` without the networks that no file has, what the files have before the `published`."""
    theirs = {column.key for column in published.columns}
    own = [place for place, column in enumerate(table.columns) if column.key not in theirs]
    networks = {line[0].text for line in table.lines if any(line[at] != NOTHING for at in own)}
    kept = tuple(line for line in table.lines if line[0].text in networks)
    keys = [column.key for column in (*table.columns[:2], *(table.columns[at] for at in own))]
    return on_page(replace(table, lines=kept), keys, f"{table.title}: the networks measured here")
