# SPDX-License-Identifier: Apache-2.0
"""Ladders: series of networks of growing size, on which crossovers are found.

A file may declare its own (`context.crossover.ladders`); otherwise disc is the only one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_NAME = re.compile(r"(?P<rung>.+?)(?P<factor>x[0-9.]+)?")  # disc-8x1.5 is 1.5 times as wide


@dataclass(frozen=True, slots=True)
class Ladder:
    """`rungs` are its networks, the smallest first; without any, those called NAME-NUMBER are."""

    name: str
    rungs: tuple[str, ...] = ()

    @property
    def networks(self) -> str:
        """What sentences call its networks: "disc networks"."""
        return f"{self.name} networks"

    def has(self, model: str) -> bool:
        """Whether `model` names one of its networks, also between two of its sizes."""
        rung = _split(model)[0]
        if self.rungs:
            return model in self.rungs or rung in self.rungs
        return re.fullmatch(f"{re.escape(self.name)}-[0-9]+", rung) is not None

    def is_between(self, model: str) -> bool:
        """Whether `model` names a network between two of its sizes."""
        return self.has(model) and model not in self.rungs and bool(_split(model)[1])


DISC = Ladder("disc")  # the one that is meant where no other is said


def declared(fields: Mapping[str, Sequence[str]] | None) -> tuple[Ladder, ...]:
    """The ladders that a file declares, or disc where it declares none."""
    if fields is None:
        return (DISC,)
    return tuple(Ladder(name, tuple(rungs)) for name, rungs in fields.items())


def _split(model: str) -> tuple[str, str]:
    found = _NAME.fullmatch(model)
    return (found["rung"], found["factor"] or "") if found else (model, "")
