# SPDX-License-Identifier: Apache-2.0
"""Which of many files are shown, and in which order."""

from collections.abc import Callable, Hashable, Iterable

from plots.file.families import EPOCH
from plots.file.rows import File
from plots.text import printable


def machine(file: File) -> tuple[str, str | None]:
    """What tells machines apart: an id names processor and cores, but not the GPU."""
    return file.machine.id, file.machine.gpu


def newest_first(files: Iterable[File]) -> list[File]:
    """`files` by date, the latest first."""
    return sorted(files, key=lambda file: (file.date, str(file.path)), reverse=True)


def by_id(file: File) -> str:
    """What tells machines apart where their GPU does not matter."""
    return file.machine.id


def newest_per_machine(
    files: Iterable[File], key: Callable[[File], Hashable] = machine
) -> tuple[list[File], list[File]]:
    """Of each machine the newest file that is complete, or the newest where none is, and all
    others; both latest first. `key` tells machines apart."""
    ordered = newest_first(files)
    counts: dict[Hashable, File] = {}
    for file in sorted(ordered, key=lambda file: not file.complete):
        counts.setdefault(key(file), file)
    newest = [file for file in ordered if counts[key(file)] is file]
    return newest, [file for file in ordered if counts[key(file)] is not file]


def newer_but_short(
    shown: Iterable[File], others: Iterable[File], key: Callable[[File], Hashable] = machine
) -> list[str]:
    """A sentence for each of `others` that is newer than the file `shown` of its machine, but lacks
    rows."""
    counts = {key(file): file for file in shown}
    return [
        f"{printable(file.path.name)} of {printable(file.machine.id)} is newer than "
        f"{printable(one.path.name)} but was {file.ended}, so it does not count; --resume goes on "
        "with it."
        for file in others
        if (one := counts.get(key(file))) and one.complete and not file.complete
        if newest_first((one, file))[0] is file
    ]


def has_gpu(file: File) -> bool:
    """Whether an epoch was measured on a GPU."""
    return any(
        row.family == EPOCH and row.failure is None and row.device == "cuda" for row in file.rows
    )


def gpus_first(files: Iterable[File]) -> list[File]:
    """`files` in their order, but those with a GPU's epochs before the others."""
    return sorted(files, key=lambda file: not has_gpu(file))
