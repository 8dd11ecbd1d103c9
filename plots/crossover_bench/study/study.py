# SPDX-License-Identifier: Apache-2.0
"""A file, and each thing that follows from it: made once, and asked by whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from crossover_bench.curves import headline
from crossover_bench.curves.crossover import Comparison, SpeedUp, comparisons, speed_ups
from crossover_bench.files.families import EPOCH
from crossover_bench.files.rows import File
from crossover_bench.parallel import Map, in_process

Made = TypeVar("Made")
Given = ParamSpec("Given")


def once(
    make: Callable[Concatenate[Study, Given], Made],
) -> Callable[Concatenate[Study, Given], Made]:
    """`make`, asked once for each study and for what else it is given, which can be hashed: the
    study keeps what was made."""
    name = f"{make.__module__}.{make.__qualname__}"

    @wraps(make)
    def asked(study: Study, /, *given: Given.args, **named: Given.kwargs) -> Made:
        key = name, given, tuple(named.items())
        if key not in study.kept:
            study.kept[key] = make(study, *given, **named)
        return cast("Made", study.kept[key])

    return asked


# Whose programs an answer is about (study/programs.py).
PYTORCH, FASTEST, OURS = "pytorch", "fastest", "ours"
AS = (PYTORCH, FASTEST, OURS)  # what --as takes
BOTH = (PYTORCH, FASTEST)  # what is told unless one is asked for


class Study:
    """What follows from `file`, which is in one quantity: each thing is made when it is first asked
    for. What a feature finds out of a study is a function under @once.

    `verdicts` are what cards would do on its machine (answers/predict/answer.py) with our
    programs, and `pytorch_verdicts` in PyTorch's loop; none where nothing is predicted. `compared`
    are its comparisons, where a caller has them. `programs` says whose answers are told.
    """

    def __init__(
        self,
        file: File,
        verdicts: Sequence[Any] = (),
        compared: Sequence[Comparison] | None = None,
        pytorch_verdicts: Sequence[Any] = (),
        programs: tuple[str, ...] = BOTH,
    ) -> None:
        self.file = file
        self.verdicts = verdicts
        self.pytorch_verdicts = pytorch_verdicts
        self.programs = programs
        self.kept: dict[Hashable, Any] = {}
        self._compared = compared

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Its comparisons() (curves/crossover.py)."""
        return comparisons(self.file) if self._compared is None else list(self._compared)

    def of_family(self, family: str) -> list[Comparison]:
        """The comparisons of `family`."""
        return [comparison for comparison in self.comparisons if comparison.family == family]

    @once
    def speed_ups(self, family: str = EPOCH) -> list[SpeedUp]:
        """Those of its speed_ups() (curves/crossover.py) that are of `family`."""
        return [speed_up for speed_up in self._speed_ups if speed_up.family == family]

    @cached_property
    def _speed_ups(self) -> list[SpeedUp]:
        return speed_ups(self.file, self.comparisons)

    @cached_property
    def headline(self) -> list[headline.Answer]:
        """Its headline() (curves/headline.py)."""
        return headline.headline(self.comparisons, self.speed_ups(), self.file.ladders)

    @cached_property
    def foremost(self) -> Comparison | None:
        """The comparison of the headline's first answer, for a single line on the machine."""
        return headline.foremost(self.comparisons)

    @once
    def of_program(self, program: str, script: str = "") -> Study:
        """What follows from the rows of `program`, such as pytorch, in the place of the file's own:
        it computes on both sides, by that `script`. The file's pairs are not of it, nor is what
        cards would do."""
        of = program, script
        rows = [row for row in self.file.peers if (row.program, row.script) == of]
        alone = tuple(row for row in rows if row.copies == 1)
        copies = tuple(row for row in rows if row.copies > 1)
        return Study(replace(self.file, rows=alone, copies=copies, peers=(), refinements=()))


class Predicted(Protocol):
    """What is predicted of files; answers/predict/answer.py has it."""

    def of(self, file: File) -> Sequence[Any]:
        """The verdicts on `file`; none where there are none."""

    def pytorch_of(self, file: File) -> Sequence[Any]:
        """The same in PyTorch's loop, on both sides."""


def studies_of(
    files: Sequence[File],
    predicted: Predicted | None = None,
    apply: Map = in_process,
    programs: tuple[str, ...] = BOTH,
) -> dict[Path, Study]:
    """The study of each of `files` by its path, with what is `predicted` of it. Their comparisons,
    which take longest, are made through `apply`."""
    return {
        file.path: study_of(file, predicted, compared, programs)
        for file, compared in zip(files, apply(comparisons, files), strict=True)
    }


def study_of(
    file: File,
    predicted: Predicted | None,
    compared: Sequence[Comparison] | None = None,
    programs: tuple[str, ...] = BOTH,
) -> Study:
    """That of `file`, with what is `predicted` of it."""
    ours, pytorch = (predicted.of(file), predicted.pytorch_of(file)) if predicted else ((), ())
    return Study(file, ours, compared, pytorch, programs)
