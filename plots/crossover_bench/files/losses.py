# SPDX-License-Identifier: Apache-2.0
"""What many files are made into loses one file where this program has a fault, and not all."""

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from crossover_bench.files.rows import File
from crossover_bench.words.text import printable

Made = TypeVar("Made")


def made_of(
    files: Sequence[File], make: Callable[[Sequence[File]], Made], problems: list[str]
) -> Made | None:
    """What `make` makes of `files`, without those of which alone it fails: `problems` then names
    them. None where none is left. Not caught are OSError, which is of what is written, and what
    fails only where files stand together."""
    try:
        return make(files)
    except OSError:
        raise
    except Exception as error:
        faults = [_fault(file, make) for file in files] if len(files) > 1 else [error]
        if not any(faults):
            raise
    kept = [file for file, fault in zip(files, faults, strict=True) if fault is None]
    problems += [
        f"{printable(str(file.path))}: left out, because this program fails on it "
        f"({words_of(fault)}); report this with the file"
        for file, fault in zip(files, faults, strict=True)
        if fault is not None
    ]
    return make(kept) if kept else None


def _fault(file: File, make: Callable[[Sequence[File]], Made]) -> Exception | None:
    try:
        make([file])
    except OSError:
        raise
    except Exception as error:
        return error
    return None


def words_of(fault: Exception) -> str:
    """ "KeyError: 'steps' at section.py:99"."""
    frames = traceback.extract_tb(fault.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(fault).__name__}: {printable(str(fault), 100)}{where}"
