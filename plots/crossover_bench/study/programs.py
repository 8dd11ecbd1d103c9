# SPDX-License-Identifier: Apache-2.0
"""Whose programs an answer is about: PyTorch's loop on both devices, which is what who asks runs,
or the fastest programs.

docs/method/crossover.md, "The headline", says which is told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from crossover_bench.curves.crossover import Comparison
from crossover_bench.curves.curves import Curve
from crossover_bench.files.rows import Row, median_of
from crossover_bench.study.study import FASTEST, OURS, PYTORCH, Study, once
from crossover_bench.words import units
from crossover_bench.words.text import printable

_AS_WRITTEN = "In PyTorch, as people write it"
USUAL = "usual"  # the script of a loop with a loader and a loss that is read in each step
_NO_COMPILER = "none"
OTHERS = "others"  # what no sentence tells of by itself
# The start of a sentence, and the label of a strip.
NAMES = {
    PYTORCH: ("In PyTorch's own loop", "PyTorch"),
    FASTEST: ("With the fastest programs", "fastest"),
    OURS: ("With our own programs", "ours"),
}


@dataclass(frozen=True, slots=True)
class Answered:
    """From which size the GPU wins with the programs `of`; `lead` names them at the start of a
    sentence, `label` beside a strip."""

    of: str
    lead: str
    label: str
    study: Study
    comparison: Comparison


def names_of(study: Study, of: str) -> tuple[str, str]:
    """Those of cards that were not measured: PyTorch's loop is as people write it where the file
    has what its loader takes."""
    lead, label = NAMES[of]
    loads = of == PYTORCH and any(row.script == USUAL for row in study.file.peers)
    return _AS_WRITTEN if loads else lead, label


@once
def answered(study: Study, of: str) -> Answered | None:
    """The answer for the programs `of`, one of AS, as far as the file measured both devices."""
    if of == PYTORCH:
        return _of_pytorch(study)
    its_study = _of_the_fastest(study) if of == FASTEST else study
    if its_study.foremost is None:
        return None
    return Answered(of, *NAMES[of], its_study, its_study.foremost)


def _of_pytorch(study: Study) -> Answered | None:
    """The loop as people write it, or the one whose batches lie ready where that is all there is on
    both devices."""
    own_lead, label = NAMES[PYTORCH]
    for script, lead in ((USUAL, _AS_WRITTEN), ("", own_lead)):
        loop = pytorch_loop(study, script)
        if loop.foremost is not None:
            return Answered(PYTORCH, lead, label, loop, loop.foremost)
    return None


@once
def pytorch_loop(study: Study, script: str = "") -> Study:
    """What follows from the rows of PyTorch's eager loop alone, on each device."""
    of = study.of_program(PYTORCH, script)
    rows = tuple(row for row in of.file.rows if _is_plain(row))
    return Study(replace(of.file, rows=rows))


def _is_plain(row: Row) -> bool:
    """Whether it is started operation by operation, as torch does by itself."""
    return all(
        row.configuration.get(key, plain) == plain
        for key, plain in (
            ("execution", "eager"),
            ("compiler", _NO_COMPILER),
            ("layout", "default"),
            ("pages", "default"),
        )
    )


@once
def by_program(study: Study) -> list[Answered]:
    """The answers where one program trains on both devices, each labelled by its name in words:
    ours first, PyTorch's loop in each script, which has two answers more, and of OTHERS."""
    studies = {(OURS, OURS): study}
    for row in study.file.peers:
        words = [row.axes["program"].word(row.program)]
        compiler = _compiler(row)
        is_plain = row.program == PYTORCH and compiler == _NO_COMPILER
        if row.program == PYTORCH and not is_plain:
            words.append(row.axes["compiler"].word(compiler))
            of_row = _compiled(study, row.script)
        elif is_plain:
            of_row = pytorch_loop(study, row.script)
        else:
            of_row = study.of_program(row.program, row.script)
        words += [row.axes["script"].word(row.script)] if row.script else []
        studies[PYTORCH if is_plain else OTHERS, ", ".join(words)] = of_row
    return [
        Answered(of, "", label, each, each.foremost)
        for (of, label), each in studies.items()
        if each.foremost
    ]


@once
def _compiled(study: Study, script: str) -> Study:
    """What follows from the rows of compiled PyTorch."""
    of = study.of_program(PYTORCH, script)
    rows = tuple(row for row in of.file.rows if _compiler(row) != _NO_COMPILER)
    return Study(replace(of.file, rows=rows))


def _compiler(row: Row) -> str:
    return row.configuration.get("compiler", _NO_COMPILER)


@once
def _of_the_fastest(study: Study) -> Study:
    """Of all programs whose batches lie ready; the same study where there is none but ours."""
    others = tuple(row for row in study.file.peers if not row.script and row.copies == 1)
    if not any(row.failure is None for row in others):
        return study
    return Study(replace(study.file, rows=(*study.file.rows, *others), peers=()))


def loader_words(study: Study) -> list[str]:
    """Up to which network the loader takes more of an epoch than the choice of the device gains, a
    sentence; none where that is nowhere so, or not measured."""
    ready = {each.model: each for each in pytorch_loop(study).speed_ups()}
    decided = []
    for usual in pytorch_loop(study, USUAL).speed_ups():
        if lean := ready.get(usual.model):
            cpu, gpu, without = map(seconds, (usual.cpu, usual.gpu, lean.cpu))
            if cpu - without > abs(cpu - gpu):
                decided.append((usual.parameters, usual.model, cpu - without, cpu))
    if not decided:
        return []
    size, model, loader, epoch = max(decided)
    return [
        f"Up to {printable(model, 24)} ({units.count(size)} parameters) PyTorch's loader takes "
        f"more than the choice of a device gains: {units.seconds(loader)} of "
        f"{units.seconds(epoch)} an epoch on the CPU. Batches cut from a tensor save it."
    ]


def seconds(curve: Curve) -> float:
    """Of a curve of one size."""
    return median_of(curve.samples[0])
