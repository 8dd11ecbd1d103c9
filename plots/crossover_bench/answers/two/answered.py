# SPDX-License-Identifier: Apache-2.0
"""The problems of files of other programs' benchmarks, each with its answer."""

from dataclasses import dataclass, replace

from crossover_bench.answers.two.problems import Asked, Found
from crossover_bench.curves.problem import Answer, NoAnswerError, answer


@dataclass(frozen=True, slots=True)
class Answered:
    """A problem of files with its answer, and that where data is copied each time."""

    asked: Asked
    answer: Answer
    copied: Answer | None = None


def answered(problems: Found) -> tuple[list[Answered], list[str]]:
    """The answers, and a sentence for each problem without one."""
    known: list[Answered] = []
    faults: list[str] = []
    for asked in problems.asked:
        try:
            known.append(Answered(asked, answer(asked.problem)))
            if asked.copied:
                known[-1] = replace(known[-1], copied=answer(asked.copied))
        except NoAnswerError as error:
            faults.append(str(error))
    return known, faults
