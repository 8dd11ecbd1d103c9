# SPDX-License-Identifier: Apache-2.0
"""Ladders: series of networks of growing size, on which crossovers are found.

A file may declare its own (`context.crossover.ladders`); otherwise disc is the only one.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"(?P<rung>.+?)(?P<factor>x[0-9.]+)?")  # disc-8x1.5 is 1.5 times as wide


@dataclass(frozen=True, slots=True)
class Ladder:
    """`rungs` are its networks, the smallest first; without any, those called NAME-NUMBER are.
    `batch` is their own, in which they are trained unless another is asked for; empty if unknown.
    """

    name: str
    rungs: tuple[str, ...] = ()
    batch: str = ""

    @property
    def networks(self) -> str:
        """What sentences call its networks: "disc networks", "transformers"."""
        return _CALLED.get(self.name, f"{self.name} networks")

    def has(self, model: str) -> bool:
        """Whether `model` names one of its networks, also between two of its sizes."""
        rung = _split(model)[0]
        if self.rungs:
            return model in self.rungs or rung in self.rungs
        return re.fullmatch(f"{re.escape(self.name)}-[0-9]+", rung) is not None

    def is_between(self, model: str) -> bool:
        """Whether `model` names a network between two of its sizes."""
        return self.has(model) and model not in self.rungs and bool(_split(model)[1])


_CALLED = {"gpt": "transformers"}
DISC = Ladder("disc", batch="100")  # the one that is meant where no other is said


def declared(crossover: Mapping[str, Any]) -> tuple[Ladder, ...]:
    """The ladders that a file's `crossover` declares, or disc where it declares none."""
    if not crossover.get("ladders"):
        return (DISC,)
    batches = {DISC.name: DISC.batch, **crossover.get("ladder_batches", {})}
    return tuple(
        Ladder(name, tuple(rungs), str(batches.get(name, "")))
        for name, rungs in crossover["ladders"].items()
    )


def networks_of_any(ladders: Iterable[Ladder]) -> str:
    """The networks of any of `ladders` in words: "disc networks", "disc networks or
    transformers"."""
    return " or ".join(dict.fromkeys(ladder.networks for ladder in ladders))


def _split(model: str) -> tuple[str, str]:
    match = _NAME.fullmatch(model)
    return (match["rung"], match["factor"] or "") if match else (model, "")
