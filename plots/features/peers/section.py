# SPDX-License-Identifier: Apache-2.0
"""What another framework takes for the same work, and the crossover that its curves give."""

import shlex
from collections.abc import Iterator, Sequence

from plots.core.page.columns import brief, on_page
from plots.core.page.section import Block, Context, Fold, Section
from plots.core.tables.table import Table
from plots.features.peers.analysis import programs_of
from plots.features.peers.table import missing_table, name_of, peer_tables
from plots.file.rows import File
from plots.text import printable

_FIRST = (
    *("network", "what", "on", "ratio", "low", "high", "seconds", "peer_seconds"),
    *("most", "params"),
)
_NOTES = (
    "Theirs / ours above 1: ours is so many times as fast. Both took their repetitions in turn; "
    "the ratio is the median over the pairs, with what differs between instances of both programs "
    "in its interval. Of several ways to do the same the fastest of each side is shown. At our "
    "bound: the ratio of a row that takes no longer than the machine's measured ceilings let it. "
    "Bold: the interval says who wins. docs/method/peers.md says what is alike in both and what is "
    "not.",
)

_ALONE = "Modules as their users wrote them, verified against their own float64."


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has rows of a peer."""
    found = [file for file in files[: context.detailed] if file.peers]
    if not found:
        return None
    names = " and ".join(dict.fromkeys(_names(found)))
    return Section(
        title=f"What you would get from {names}",
        anchor="pytorch",
        lead=_ALONE
        if all(row.as_is or row.failure for file in found for row in file.peers)
        else f"The same networks from the same start on the same data, trained and used with "
        f"{names} as their users write it, and verified in the same way.",
        blocks=tuple(_block(file) for file in found),
        notes=_NOTES,
    )


def _names(files: Sequence[File]) -> Iterator[str]:
    for file in files:
        yield from (name_of(file, program) for program in programs_of(file))


def _block(file: File) -> Block:
    libraries = file.software.libraries
    versions = [f"{one} {libraries.get(one, 'of an unknown version')}" for one in _names([file])]
    shown: list[Table] = []
    parts: list[Table] = []
    for table in peer_tables(file):
        of_a_part = table.columns[0].key == "what"  # of a network
        (parts if of_a_part else shown).append(on_page(table, _FIRST))
    missing = missing_table(file)
    path = shlex.quote(printable(str(file.path), 400))
    folds = []
    short = tuple(brief(table, "the table below") for table in shown)
    if short != tuple(shown):
        folds.append(
            Fold(f"All networks ({sum(len(table.lines) for table in shown)})", tuple(shown))
        )
    if parts:
        count = sum(len(table.lines) for table in parts)
        folds.append(Fold(f"Products and copies ({count})", tuple(parts)))
    if missing.lines:
        folds.append(Fold.of(missing, "Rows without a result"))
    return Block(
        machine=file.machine.id,
        lead=f"{', '.join(versions)}.",
        tables=short,
        commands=(f".venv/bin/python -m plots peers --all {path}",),
        folds=tuple(folds),
    )
