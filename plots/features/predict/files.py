# SPDX-License-Identifier: Apache-2.0
"""The predictions for many files at once: one fit to all of them, and the default cards."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from plots.core.cards import load_cards
from plots.features.predict.analysis import DEFAULT_CARDS, Wanted, outlooks
from plots.features.predict.answer import Verdict, clause, verdicts
from plots.features.predict.data import observations
from plots.features.predict.fit import Fit, fit
from plots.file.rows import File
from plots.parallel import Map, in_process


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """The model, and what it says of each file by its path: a verdict for each card that predicts
    anything, of training and of forward passes."""

    fit: Fit
    verdicts: dict[Path, list[Verdict]] = field(default_factory=dict)
    passes: dict[Path, list[Verdict]] = field(default_factory=dict)

    def of(self, file: File) -> list[Verdict]:
        """The verdicts that answer for `file`: of training, or where it has none of forward passes;
        none where nothing is predicted."""
        return self.trained(file) or self.of_passes(file)

    def trained(self, file: File) -> list[Verdict]:
        """Those of training."""
        return self.verdicts.get(file.path, [])

    def of_passes(self, file: File) -> list[Verdict]:
        """Those of the networks of `file` in use."""
        return self.passes.get(file.path, [])

    def clause(self, file: File) -> str:
        """What a headline of `file` says of them; empty where nothing is predicted."""
        return clause(self.of(file))


def predictions(
    files: Sequence[File], older: Sequence[File] = (), apply: Map = in_process
) -> Predictions:
    """What the default cards would do on the machine of each of `files`; the GPU's rows of these
    and of `older` files are in the fit. Raises OSError where reference figures cannot be read."""
    fitted = fit(observations([*files, *older]))
    found = [*apply(partial(_verdicts, fitted=fitted), files)]
    trained, used = ({file.path: own[of] for file, own in found if own[of]} for of in (0, 1))
    return Predictions(fitted, trained, used)


def _verdicts(file: File, fitted: Fit) -> tuple[File, tuple[list[Verdict], list[Verdict]]]:
    """Of training, and of forward passes."""
    cards = load_cards()
    wanted = Wanted(tuple(cards[name] for name in DEFAULT_CARDS))

    def told(asked: Wanted) -> list[Verdict]:
        found = verdicts(outlooks(file, fitted, asked))
        return [one for one in found if any(outlook.networks for outlook in one.outlooks)]

    return file, (told(wanted), told(wanted.of_passes))
