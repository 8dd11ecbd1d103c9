# SPDX-License-Identifier: Apache-2.0
"""Whether two results are equal: in structure, type and shape, and in value within a tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from crossover_bench.functions.kinds import is_flat, kind_words, on_host
from crossover_bench.words import units
from crossover_bench.words.text import printable

_DEEPEST = 16  # of nested results, as kinds.py takes them apart
_BFLOAT16 = 2.0**-8  # its relative rounding error; NumPy has no such type


def difference(
    first: Any, second: Any, tolerance: float | None = None, where: str = "", depth: int = _DEEPEST
) -> str:
    """In what `second` differs from `first`, a clause; empty where they are equal.

    `tolerance` is the largest difference of floating-point numbers that is allowed, as a share of
    the largest of `first`; None is that of the type (allowed()). All else is compared exactly.
    """
    at = f" at {where}" if where else ""
    if is_flat(first) and is_flat(second) and _exact(first) == _exact(second):  # they may be long
        return ""
    if depth and isinstance(first, dict) and isinstance(second, dict):
        if first.keys() != second.keys():
            return f"their keys differ{at}"
        pairs = [(f"[{printable(repr(key), 40)}]", first[key], second[key]) for key in first]
    elif depth and isinstance(first, (tuple, list)) and isinstance(second, (tuple, list)):
        if len(first) != len(second):
            return f"they hold {len(first)} and {len(second)} values{at}"
        both = zip(first, second, strict=True)
        pairs = [(f"[{number}]", left, right) for number, (left, right) in enumerate(both)]
    else:
        return _of_leaves(first, second, tolerance, at)
    for step, left, right in pairs:
        if phrase := difference(left, right, tolerance, where + step, depth - 1):
            return phrase
    return ""


def _exact(values: Any) -> list[tuple[type, Any]]:
    return [(type(value), value) for value in values]


def _of_leaves(first: Any, second: Any, tolerance: float | None, at: str) -> str:
    types = [type_name(value) for value in (first, second)]
    left, right = (_array(on_host(value)) for value in (first, second))
    frames = [isinstance(host, dict) for host in (left, right)]
    nested = [isinstance(value, (tuple, list, dict)) for value in (first, second)]
    if any(nested) or any(frames) != all(frames):
        return f"they are {kind_words(first)} and {kind_words(second)}{at}"
    if all(frames):  # by column
        return difference(left, right, tolerance, at.removeprefix(" at "))
    if left is None or right is None:
        return _of_others(first, second, at)
    if types[0] != types[1]:
        return f"their types differ{at}: {types[0]} and {types[1]}; make both compute in one type"
    if left.shape != right.shape:
        return f"their shapes differ{at}: {left.shape} and {right.shape}"
    return _of_values(left, right, types[0], tolerance, at)


def _of_others(first: Any, second: Any, at: str) -> str:
    """Of what is no array: by its own equality."""
    try:
        is_equal = bool(first == second)
    except Exception as error:
        return f"{kind_words(first)} and {kind_words(second)} can't be compared{at} ({error!r})"
    return "" if is_equal else f"they differ{at}"


def _array(value: Any) -> Any:
    """`value` as a NumPy array; a frame's columns by name; None for what is neither."""
    if isinstance(value, np.ndarray):
        return _known(value)
    if hasattr(value, "columns") and hasattr(value, "dtypes"):
        return {str(name): np.asarray(value[name]) for name in value.columns}
    if isinstance(value, (bool, int, float, complex, np.generic)) or hasattr(value, "__array__"):
        return _known(np.asarray(value))
    return None


def _known(array: np.ndarray) -> np.ndarray | None:
    return None if array.dtype == object else array


def type_name(value: Any) -> str:
    """The type of the elements, the same word for all libraries; empty for what has none."""
    kind = getattr(value, "dtype", None)
    if kind is not None:
        return str(kind).rpartition(".")[2]
    if isinstance(value, (bool, int, float, complex)):
        return str(np.asarray(value).dtype)
    return "columns" if hasattr(value, "dtypes") else ""


def _of_values(
    first: np.ndarray, second: np.ndarray, kind: str, tolerance: float | None, at: str
) -> str:
    if kind.startswith(("bfloat16", "float8")):  # which NumPy can't compute with
        first, second = (array.astype(np.float32) for array in (first, second))
    if first.dtype.kind not in "fc":
        count = int(np.count_nonzero(first != second))
        return f"{count:,} of {first.size:,} values differ{at}" if count else ""
    limit = allowed(kind) if tolerance is None else tolerance
    with np.errstate(all="ignore"):
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        if np.all(same):
            return ""
        largest = float(np.max(np.abs(first), where=np.isfinite(first), initial=0.0))
        error = float(np.max(np.where(same, 0.0, np.abs(first - second))))
    share = error / (largest or 1.0)
    if share <= limit:
        return ""
    shown = "not a number or infinite in one"
    if np.isfinite(share):
        shown = f"by {units.significant(share, 2)} of the largest value"
    return f"their values differ{at} {shown}; {limit:.1e} is allowed, and tolerance= changes that"


def allowed(kind: str) -> float:
    """What results of a type may differ by, as a share of the largest value: more than another
    order of sums makes, less than arithmetic of another precision."""
    if kind == "bfloat16":
        return _BFLOAT16 ** (2 / 3)
    try:
        return float(np.finfo(np.dtype(kind)).eps) ** (2 / 3)
    except (TypeError, ValueError):  # of 8 bits
        return 0.1
