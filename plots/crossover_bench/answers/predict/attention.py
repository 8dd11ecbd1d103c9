# SPDX-License-Identifier: Apache-2.0
"""Attention as many programs have it: products, softmax and dropout written out, each of which
writes all scores to memory, in place of one fused operation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from crossover_bench.counts.cost import Cost, Operation, Product

KINDS = FUSED, WRITTEN_OUT = ("fused", "written-out")
# Entries of a head that are in use.
_WIDTHS = (8, 16, 24, 32, 40, 48, 64, 72, 80, 88, 96, 112, 128, 160, 192, 256)
_SOFTMAX_BYTES = 4  # of a number, which is f32 in all precisions
_MASK_BYTES = 1  # of a number that dropout keeps or not


@dataclass(frozen=True, slots=True)
class _Shape:
    """Of a pass of attention: its queries (of all heads and samples), the keys of each, the width
    of a head, and whether later keys are hidden."""

    is_backward: bool
    queries: int
    keys: int
    width: int
    is_causal: bool


def written_out(cost: Cost) -> Cost:
    """`cost` with its fused attention written out; what is not recognized stays as it is."""
    size = 4 if cost.precision in ("f32", "tf32") else 2  # of a number, in bytes
    made: list[Operation] = []
    for operation in cost.operations:
        known = _shape(operation, size)
        made += _apart(operation, known, size) if known else [operation]
    return replace(cost, operations=tuple(made))


def has_attention(cost: Cost) -> bool:
    """Whether a step has one that is fused."""
    return any(_is_fused(operation) for operation in cost.operations)


def _is_fused(operation: Operation) -> bool:
    return operation.kind == "product" and not operation.products and operation.flops > 0


def _shape(operation: Operation, size: int) -> _Shape | None:
    """What follows from what bench counts (src/operations/attention.cpp): in the forward pass four
    arrays of numbers and a sum for each query, in the backward pass eight; None of another."""
    if not _is_fused(operation):
        return None
    for is_backward, arrays in ((False, 4), (True, 8)):
        for width in _WIDTHS:
            queries = operation.bytes / (arrays * size * width + 4)
            if queries != round(queries) or not queries:
                continue
            each = operation.flops / queries
            seen = (each - 2 * width) / (10 * width + 6) if is_backward else each / (4 * width + 6)
            if 2 * seen == round(2 * seen):
                is_causal = seen != round(seen)  # on the mean (time + 1) / 2
                keys = round(2 * seen - 1 if is_causal else seen)
                return _Shape(is_backward, round(queries), keys, width, is_causal)
    return None


def _apart(fused: Operation, of: _Shape, size: int) -> Iterator[Operation]:
    """Each product of all heads and samples is one, as their kernel is."""
    scores, numbers, width = float(of.queries * of.keys), float(of.queries * of.width), of.width
    to_scores, to_numbers = (
        Product(of.queries, of.keys, width),
        Product(of.queries, width, of.keys),
    )
    for product in (to_scores, *(3 if of.is_backward else 1) * [to_numbers]):
        moved = size * (scores + 2 * numbers)
        yield Operation("product", 2 * scores * width, moved, 1.0, (product,), fused.count)
    scales = 2 if of.is_causal else 1  # and the mask
    yield Operation("elementwise", scores, 2 * size * scores, 1.0, (), scales * fused.count)
    read = 3 if of.is_backward else 2
    yield Operation("softmax", 5 * scores, read * _SOFTMAX_BYTES * scores, 1.0, (), fused.count)
    dropout = (2 * size + _MASK_BYTES) * scores
    yield Operation("elementwise", scores, dropout, 1.0, (), fused.count)
