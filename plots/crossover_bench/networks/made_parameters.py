# SPDX-License-Identifier: Apache-2.0
"""Parameters that a network has and the module not: constants, which are not trained, and parts of
the module's own."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

import numpy as np
import torch

from crossover_bench.networks.alone import is_repeated
from crossover_bench.networks.calls import Parameter
from crossover_bench.networks.steps import Step
from crossover_bench.networks.values import Value


class MadeParameters:
    def __init__(self, frozen: set[str]) -> None:
        """`frozen`: the names of all that are not trained, which this adds to."""
        self.constants: dict[str, torch.Tensor] = {}
        self._frozen = frozen
        # Of a part: whose it is, and which of its numbers.
        self._parts: dict[str, tuple[str, np.ndarray]] = {}

    def part(self, parameter: Parameter) -> Parameter:
        of, places = parameter.of, parameter.seen.places
        name = f"{of}[{sum(whole == of for whole, _ in self._parts.values())}]"
        for known, (whole, numbers) in self._parts.items():
            name = known if whole == of and np.array_equal(numbers, places) else name
        self._parts[name] = of, places
        if of in self._frozen:
            self._frozen.add(name)
        return Parameter(name, Value(name, places.shape, False))

    def numbers_of(self, name: str, whole: torch.Tensor | None) -> torch.Tensor | None:
        """Of the parameter that has this name, or that it is a part of."""
        if whole is None or name not in self._parts:
            return whole
        return whole.reshape(-1)[torch.from_numpy(self._parts[name][1])]

    def whole_of(self, name: str) -> str:
        """The parameter that it is a part of, or itself."""
        return self._parts[name][0] if name in self._parts else name

    def overlap(self, name: str, others: Iterable[str]) -> str:
        """The first of the others that has a number of it; empty where none has."""
        of, numbers = self._parts.get(name, (name, None))
        for other in others:
            whole, its = self._parts.get(other, (other, None))
            if whole == of and (
                numbers is None or its is None or np.intersect1d(numbers, its).size
            ):
                return other
        return ""

    def constant(self, at: str, numbers: np.ndarray) -> Parameter:
        """Numbers that the operation `at` reads."""
        name = f"constants of {at}"
        number = sum(known.startswith(name) for known in self.constants)
        name += f" ({number + 1})" * (number > 0)
        sample = numbers[0] if is_repeated(numbers) else numbers
        self.constants[name] = torch.from_numpy(np.array(sample, dtype=np.float64))
        self._frozen.add(name)
        seen = Value(name, sample.shape, False)
        if is_repeated(numbers):
            seen = seen.seen_as(np.broadcast_to(seen.places, numbers.shape))
        return Parameter(name, seen)

    def notes(self, steps: Iterable[Step]) -> list[str]:
        """A sentence about the constants that these layers have, but those with which they start,
        which stay as they are."""
        read = set()
        for step in steps:
            starts_with = (1, 0) if step.layer["type"] == "batch_norm" else ()
            for name, number in zip_longest(step.parameters, starts_with):
                numbers = self.constants.get(name)
                if numbers is not None and (number is None or (numbers != number).any()):
                    read.add(name)
        drawn = [name for name in self.constants if name in read]
        if not drawn:
            return []
        many = f"{len(drawn)} tensors of constants, the first of them {drawn[0]},"
        return [
            f"{many if drawn[1:] else drawn[0]} become parameters that are not trained, and are "
            "drawn as others are"
        ]
