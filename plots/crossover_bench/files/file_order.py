# SPDX-License-Identifier: Apache-2.0
"""Which of many files are shown, and in which order."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from crossover_bench.files.families import EPOCH, OF_NETWORKS, TRAINING
from crossover_bench.files.rows import File
from crossover_bench.files.shortcomings import STANDINGS
from crossover_bench.words.text import printable


def machine(file: File) -> tuple[str, str | None]:
    """What tells machines apart: an id names processor and cores, but not the GPU."""
    return file.machine.id, file.machine.gpu


def newest_first(files: Iterable[File]) -> list[File]:
    return sorted(files, key=lambda file: (file.date, str(file.path)), reverse=True)


def by_id(file: File) -> str:
    """What tells machines apart where their GPU does not matter."""
    return file.machine.id


def newest_per_machine(
    files: Iterable[File], key: Callable[[File], Hashable] = machine
) -> tuple[list[File], list[File]]:
    """Of each machine the file that answers for it, and all others; both latest first.

    That is the newest complete default or full sweep; where there is none, of those with the least
    shortcomings the one that trained most. `key` tells machines apart.
    """
    ordered = newest_first(files)
    counts: dict[Hashable, File] = {}
    for file in sorted(ordered, key=_weight, reverse=True):
        counts.setdefault(key(file), file)
    newest = [file for file in ordered if counts[key(file)] is file]
    return newest, [file for file in ordered if counts[key(file)] is not file]


@dataclass(frozen=True, slots=True)
class PassedOver:
    """The `files` of a machine that are newer than the one that answers for it, and a sentence that
    says so."""

    sentence: str
    files: tuple[File, ...]


def passed_over(
    shown: Iterable[File], others: Iterable[File], key: Callable[[File], Hashable] = machine
) -> list[PassedOver]:
    """What of `others` is newer than the file `shown` of its machine, but says less of it."""
    others = list(others)

    def newer(answering: File) -> tuple[File, ...]:
        return tuple(
            file
            for file in others
            if key(file) == key(answering)
            and _weight(file) < _weight(answering)
            and newest_first((answering, file))[0] is file
        )

    return [
        PassedOver(_passed_over_words(answering, files), files)
        for answering in shown
        if (files := newer(answering))
    ]


_NAMED = 2  # of the files passed over


def _passed_over_words(answering: File, files: Sequence[File]) -> str:
    of_machine = f"of {printable(answering.machine.id)}"
    newer = f"newer than {printable(answering.path.name)}"
    names = [printable(file.path.name) for file in files]
    if len(files) == 1:
        known = {shortcoming.fault for shortcoming in answering.shortcomings}
        faults = (each.fault for each in files[0].shortcomings if each.fault not in known)
        why = next(faults, "it measures less")
        return f"{names[0]} {of_machine} is {newer}, but {why}: it does not count."
    named = names if len(names) <= _NAMED else [*names[: _NAMED - 1], f"{len(names) - 1} more"]
    return f"{' and '.join(named)} {of_machine} are {newer}, but measure less: they do not count."


def _weight(file: File) -> tuple[tuple[bool, ...], int, int]:
    """How much a file says of its machine, to compare: for each kind of shortcoming, the worst
    first, whether it has none; and where it has any, how many of its results train, and how many
    are of networks."""
    kinds = {shortcoming.standing for shortcoming in file.shortcomings}
    families = [row.family for row in file.own_rows if kinds and not row.failure]
    trained, used = (sum(name in of for name in families) for of in (TRAINING, OF_NETWORKS))
    return tuple(kind not in kinds for kind in STANDINGS), trained, used


def has_gpu(file: File) -> bool:
    """Whether an epoch was measured on a GPU."""
    return any(
        row.family == EPOCH and row.failure is None and row.device == "cuda" for row in file.rows
    )


def gpus_first(files: Iterable[File]) -> list[File]:
    """`files` in their order, but those with a GPU's epochs before the others."""
    return sorted(files, key=lambda file: not has_gpu(file))
