# SPDX-License-Identifier: Apache-2.0
"""Which of many files are shown, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

from plots.core.network import epoch_rows, on_device
from plots.file.rows import File


def machine(file: File) -> tuple[str, str | None]:
    """What tells machines apart: an id names processor and cores, but not the GPU."""
    return file.machine.id, file.machine.gpu


def newest_first(files: Iterable[File]) -> list[File]:
    """`files` by date, the latest first."""
    return sorted(files, key=lambda file: (file.date, str(file.path)), reverse=True)


def newest_per_machine(files: Iterable[File]) -> tuple[list[File], list[File]]:
    """Of each machine the file with the latest date, and all others; both latest first."""
    newest: dict[tuple[str, str | None], File] = {}
    older = []
    for file in newest_first(files):
        if newest.setdefault(machine(file), file) is not file:
            older.append(file)
    return list(newest.values()), older


def has_gpu(file: File) -> bool:
    """Whether an epoch was measured on a GPU."""
    return bool(on_device(epoch_rows(file), "cuda"))


def gpus_first(files: Iterable[File]) -> list[File]:
    """`files` in their order, but those with a GPU's epochs before the others."""
    return sorted(files, key=lambda file: not has_gpu(file))
