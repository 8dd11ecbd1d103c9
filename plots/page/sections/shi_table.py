# SPDX-License-Identifier: Apache-2.0
"""The table of Shi et al. 2016 with the rows of the machines shown here in it."""

from __future__ import annotations

from collections.abc import Sequence

from plots.analysis.shi import load_shi, shi_rows, shi_table
from plots.page.section import Block, Context, Fold, Section
from plots.rows import File

_LEAD = (
    "Seconds per mini-batch of the networks of Shi, Wang, Xu and Chu, \u201cBenchmarking "
    "State-of-the-Art Deep Learning Software Tools\u201d (2016), Table 7, "
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
            lead=f"{_LEAD}with the same networks as measured here.",
            tables=(table,),
        )
    return Section(
        title="Beside Shi et al. 2016",
        anchor="shi",
        lead=f"{_LEAD}as published. None of these files measured one of the networks; "
        "./run --sweep=full does, and gives them lines here.",
        blocks=(Block(folds=(Fold("The published table", (table,)),)),),
    )
