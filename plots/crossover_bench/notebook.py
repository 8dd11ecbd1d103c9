# SPDX-License-Identifier: Apache-2.0
"""The answer of one result file, for notebooks and programs: `crossover_bench.Study`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markupsafe import Markup

from crossover_bench.answers.answer.glance import glance
from crossover_bench.answers.answer.section import block_of
from crossover_bench.answers.answer.words import Glance
from crossover_bench.answers.predict.answer import predictions
from crossover_bench.files.loading import load_files
from crossover_bench.show.page.section import Section
from crossover_bench.show.page.text import text_of
from crossover_bench.study.programs import answered
from crossover_bench.study.study import AS, study_of


@dataclass(frozen=True, slots=True)
class Crossing:
    """From which size on a GPU wins, with `programs` (pytorch, fastest, ours) on both sides, as far
    as both were measured. `size`, in what `measure` names, is None where there is none; `low` and
    `high` are its 95 % interval, None beyond the sizes measured."""

    programs: str
    measure: str
    kind: str
    size: float | None
    low: float | None
    high: float | None


class Study:
    """What a result file answers: printed, in a few lines; as a picture where a notebook shows it.

    Raises ValueError with a sentence where the file cannot be used, OSError where the reference
    figures are missing.
    """

    def __init__(self, path: str | Path) -> None:
        files, problems = load_files([Path(path)])
        if problems or len(files) != 1:
            raise ValueError("\n".join(problems) or f"{path}: holds {len(files)} files; name one")
        (self._file,) = files
        self._study = study_of(self._file, predictions(files))

    @cached_property
    def _glance(self) -> Glance:
        return glance(self._study)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer: a sentence for each pair of programs, the asker's first."""
        return self._glance.sentences

    @property
    def crossings(self) -> list[Crossing]:
        """The same in numbers, of what was measured."""
        made = []
        for of in AS:
            if answer := answered(self._study, of):
                known = answer.comparison.crossover
                measure = answer.comparison.measure
                made.append(Crossing(of, measure, known.kind, known.size, known.low, known.high))
        return made

    def __repr__(self) -> str:
        return text_of([Section("", "", blocks=(block_of(self._file, self._glance),))]).strip()

    def _repr_html_(self) -> str:
        # Imported here because matplotlib takes long to load.
        from crossover_bench.show.charts.strip import draw_strips  # noqa: PLC0415

        words = Markup("<p>{}</p>").format(self._glance.sentence)  # escaped
        strips = self._glance.strips
        if strips is None:
            return words
        svg = draw_strips(strips).pictures.svg.decode()
        return words + Markup(svg[svg.index("<svg") :])
