# SPDX-License-Identifier: Apache-2.0
"""crossover_bench.two(): from which size on one function is faster than another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeGuard

import numpy as np

from crossover_bench.functions import isolated as processes
from crossover_bench.functions.answer import Answer, answer_of
from crossover_bench.functions.kinds import RefusedError
from crossover_bench.functions.measure import Check, Measurement
from crossover_bench.functions.progress import Tell, teller
from crossover_bench.functions.side import Side, sides_of
from crossover_bench.words import units
from crossover_bench.words.text import printable

_LARGEST = 10**15  # of n
_LONGEST = 10**7  # of seconds
_MOST_SIZES = 100
_FACTOR = 4  # between two sizes of a range, at most
_FEWEST_SIZES = 5
_FOR_PROCESSES = 0.6  # of the budget: this process checks and finds the sizes


def two(
    *,
    make: Callable[[int], Any],
    n: Sequence[int],
    cpu: Callable[..., Any] | Side | None = None,
    gpu: Callable[..., Any] | Side | None = None,
    to: Any = None,
    devices: Mapping[str, str] | None = None,
    seconds: float = 30.0,
    tolerance: float | None = None,
    equal: Callable[[Any, Any], object] | None = None,
    isolated: bool = False,
    name: str = "",
    progress: Tell | bool | None = None,
    **sides: Callable[..., Any] | Side,
) -> Answer:
    """From which n on `gpu` is faster than `cpu`, or another of `sides` than the first.

    Each side is a function, or a Side, of what `make`(n) gives once for each n; a tuple is several
    arguments. Each gets a fresh copy, brought by `to` (as Side has it; one for all sides on a GPU,
    or by name) to where it computes: "cpu" or "gpu", which `devices` says of other names than these
    two. `n` is a range (low, high), whose sizes are chosen, or a list of sizes.

    Results must be equal in structure, type and shape, and in value: exactly, or floating-point
    numbers within `tolerance`, a share of the largest value; or as `equal`(first, second) says of
    results on the CPU. About `seconds` are spent. `isolated` measures in new processes, several of
    each side. `progress` is told how far it is: True, False, or a function of a line.

    Raises ValueError with a sentence where a side can't be measured. Ctrl-C ends the measurement,
    and the answer is of what was measured until then.
    """
    given = {"cpu": cpu, "gpu": gpu}
    named: dict[str, Any] = {key: side for key, side in given.items() if side is not None} | sides
    sizes, between = _sizes(n)
    _check(make, seconds, tolerance, equal)
    ready = sides_of(named, to, devices)
    whole = {side.name: side.given for side in ready}
    if isolated:
        processes.check(make, whole)
    tell = teller(progress)
    measured = Measurement(ready, make, Check(tolerance, equal), float(seconds), tell)
    taken = None
    try:
        measured.kept = _FOR_PROCESSES * measured.seconds if isolated else 0.0
        measured.measure(sizes, between)
        if isolated:
            measured.kept = 0.0
            taken = processes.sample(measured, whole)
    except KeyboardInterrupt:
        if len(measured.prepared) < 2:
            raise
        measured.remarks["The measurement was interrupted: this is what was known by then."] = None
    finally:
        tell("")
    return answer_of(measured, name, taken)


def _check(make: object, seconds: object, tolerance: object, equal: object) -> None:
    if not callable(make):
        raise RefusedError("make is no function of n; give one, such as lambda n: rng.random(n)")
    if not _is_number(seconds) or not 0 < seconds <= _LONGEST:
        raise RefusedError(
            f"seconds={_shown(seconds)} is no time; give a number above 0, at most {_LONGEST:,}"
        )
    if tolerance is not None and (not _is_number(tolerance) or not 0 <= tolerance < 1):
        raise RefusedError(f"tolerance={_shown(tolerance)} is no share from 0 to below 1")
    if equal is not None and not callable(equal):
        raise RefusedError(f"equal={_shown(equal)} is no function of two results")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _shown(value: object) -> str:
    return printable(repr(value), 60)


def _sizes(n: Sequence[int]) -> tuple[list[int], bool]:
    """The sizes to begin with, in ascending order, and whether others may come between."""
    example = "; give a range (1_000, 1_000_000) or a list of sizes [1_000, 10_000]"
    if isinstance(n, np.ndarray) and n.ndim == 1:
        n = n.tolist()
    if not isinstance(n, (tuple, list, range)):
        raise RefusedError(f"n={_shown(n)} is neither a range nor a list of sizes{example}")
    if len(n) > _MOST_SIZES:
        raise RefusedError(f"n has {len(n):,} sizes; give at most {_MOST_SIZES}")
    for size in n:
        if not _is_number(size) or not 1 <= size <= _LARGEST or int(size) != size:
            raise RefusedError(
                f"n has {_shown(size)}, and sizes are whole numbers from 1 to "
                f"{units.count(_LARGEST)}{example}"
            )
    sizes = sorted({int(size) for size in n})
    if len(sizes) < 2:
        raise RefusedError(f"n has {len(sizes)} size, and two are needed{example}")
    if not (isinstance(n, tuple) and len(n) == 2):
        return sizes, False
    low, high = sizes
    steps = max(_FEWEST_SIZES - 1, math.ceil(math.log(high / low) / math.log(_FACTOR)))
    steps = min(steps, high - low)
    ladder = (round(low * (high / low) ** (step / steps)) for step in range(steps + 1))
    return sorted({*ladder, low, high}), True
