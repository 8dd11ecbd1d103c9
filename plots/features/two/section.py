# SPDX-License-Identifier: Apache-2.0
"""Two commands of a user's own, on the page."""

from collections.abc import Sequence

from plots.core.page.section import Block, Context, Section
from plots.features.two.analysis import two
from plots.features.two.table import answers, two_table
from plots.file.rows import File


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has commands."""
    found = [(file, two(file)) for file in files[: context.detailed]]
    blocks = tuple(
        Block(
            machine=file.machine.id,
            points=answers(file, own),
            facts=(("first", file.two["first"]), ("second", file.two["second"])),
            tables=(two_table(file, own),),
        )
        for file, own in found
        if own
    )
    if not blocks:
        return None
    return Section(
        title="Two programs",
        anchor="two",
        lead="Two commands, measured in turn: nothing of what they compute is verified here.",
        blocks=blocks,
    )
