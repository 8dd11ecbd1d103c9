# SPDX-License-Identifier: Apache-2.0
"""What guides to fast training advise, and what following each piece of advice brought in a file.

docs/method/advice_check.md says which rows are compared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plots.features.peers.analysis import ratio_interval
from plots.file.axes import Axes, Configuration
from plots.file.families import TRAINING
from plots.file.rows import File, Row, median_of

Items = frozenset[tuple[str, str]]
# What a row that follows the advice would be without it, and what it does in words; None of a row
# that does not follow it.
Without = Callable[[Configuration, Axes], tuple[Configuration, str] | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """`advice` in the words of PyTorch's guides, and `flags` of bench that measure both sides."""

    advice: str
    flags: str
    without: Without


@dataclass(frozen=True, slots=True)
class Pair:
    """One training in two rows: `ratio` is the median over the repetitions of the time without the
    advice over that with it; [`low`, `high`] is its 95 % interval, None where there are too few.
    """

    followed: Row
    plain: Row
    ratio: float
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        """Whether it is surely "faster" or "slower"; empty where neither is sure."""
        if self.low is None or self.high is None:
            return ""
        return "faster" if self.low > 1 else "slower" if self.high < 1 else ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one piece of advice brought, followed in one way by one program on one device; no
    `pairs` where the file has none."""

    claim: Claim
    way: str = ""
    program: str = ""
    device: str = ""
    pairs: tuple[Pair, ...] = ()

    @property
    def ratio(self) -> float:
        """The median over the pairs."""
        return median_of(np.array([pair.ratio for pair in self.pairs]))

    @property
    def least(self) -> Pair:
        return min(self.pairs, key=lambda pair: pair.ratio)

    @property
    def most(self) -> Pair:
        return max(self.pairs, key=lambda pair: pair.ratio)

    def count(self, verdict: str) -> int:
        """How many pairs have that verdict."""
        return sum(pair.verdict == verdict for pair in self.pairs)


def _step(key: str, plain: str, *better: str, only: Mapping[str, str] | None = None) -> Without:
    """From the value `plain` of an axis to one of `better`, or any other, in rows that have all of
    `only`."""

    def without(row: Configuration, axes: Axes) -> tuple[Configuration, str] | None:
        value = axes.value(row, key) or plain
        follows = value in better if better else value != plain
        if not follows or any(row.get(name) != wanted for name, wanted in (only or {}).items()):
            return None
        return {**row, key: plain}, axes[key].word(value)

    return without


def _larger_batch(row: Configuration, axes: Axes) -> tuple[Configuration, str] | None:
    """Every row may be the larger batch of one that accumulates: see _accumulating()."""
    del axes
    return (row, "") if "accumulate" not in row else None


CLAIMS = (
    Claim(
        "pin_memory=True",
        "--placement=pageable,pinned",
        _step("data", "pageable", "pinned"),
    ),
    Claim(
        "non_blocking=True",
        "--placement=pinned,pinned-async",
        _step("data", "pinned", "pinned-async"),
    ),
    Claim(
        "num_workers=N",
        "--shuffle=epoch --loader=0,1,2,4",
        _step("loader", "0", only={"shuffle": "epoch"}),
    ),
    Claim(
        "shuffle=True",
        "--shuffle=none,epoch",
        _step("shuffle", "none", "epoch"),
    ),
    Claim(
        "set_to_none=True",
        "--execution=eager --zero=keep,overwrite",
        _step("zero", "keep", "overwrite"),
    ),
    Claim(
        "larger batch, no accumulation",
        "--accumulate=1,2 --batch=50,100",
        _larger_batch,
    ),
    Claim(
        "fused steps, graphs",
        "--execution=eager,fused,graph",
        _step("execution", "eager", "fused", "graph", "graph-epoch", "persistent"),
    ),
    Claim(
        "torch.compile",
        "--with-peers",
        _step("compiler", "none"),
    ),
    Claim(
        "autocast",
        "--precision=f32,tf32,bf16,f16",
        _step("precision", "f32"),
    ),
)


def check_advice(file: File) -> list[Finding]:
    """Every claim with what it brought in `file`, one for each way, program and device."""
    rows = [
        row
        for row in (*file.rows, *file.peers)
        if row.family in TRAINING and row.failure is None and len(row.samples)
    ]
    by_work = {_items(row, row.configuration): row for row in rows}
    found: list[Finding] = []
    for claim in CLAIMS:
        groups: dict[tuple[str, str, str], list[Pair]] = {}
        for row in rows:
            for plain, way in _plain_rows(claim, row, rows, by_work):
                groups.setdefault((way, row.program, row.device), []).append(_pair(row, plain))
        found += [Finding(claim, *key, tuple(pairs)) for key, pairs in groups.items()]
        if not groups:
            found.append(Finding(claim))
    return found


def is_any_measured(found: Sequence[Finding]) -> bool:
    """Whether the file has an answer to any of it."""
    return any(one.pairs for one in found)


def _plain_rows(
    claim: Claim, row: Row, rows: Sequence[Row], by_work: Mapping[Items, Row]
) -> Iterator[tuple[Row, str]]:
    other = claim.without(row.configuration, row.axes)
    if other is None:
        return
    if claim.without is _larger_batch:
        yield from _accumulating(row, rows)
        return
    configuration, way = other
    plain = by_work.get(_items(row, configuration))
    if plain is not None and plain is not row:
        yield plain, way


def _accumulating(row: Row, rows: Sequence[Row]) -> Iterator[tuple[Row, str]]:
    """Those that sum the gradients of K batches whose rows together are the batch of `row`."""
    own = _items(row, row.configuration)
    for other in rows:
        batches = other.configuration.get("accumulate", "")
        if not batches or not (row.batch.isdigit() and other.batch.isdigit()):
            continue
        if int(other.batch) * int(batches) == int(row.batch):
            alike = {**other.configuration, "batch": row.batch, "accumulate": "1"}
            if _items(other, alike) == own:
                yield other, f"instead of {batches} batches"


def _items(row: Row, configuration: Configuration) -> Items:
    """The configuration, without what goes without saying."""
    unsaid = {"accumulate": "1", "loader": "0"}
    return frozenset(
        (key, value)
        for key, value in configuration.items()
        if value != unsaid.get(key, row.axes[key].plainest)
    )


def _pair(followed: Row, plain: Row) -> Pair:
    if len(followed.samples) != len(plain.samples):
        return Pair(followed, plain, plain.median / followed.median, None, None)
    ratios = plain.samples / followed.samples
    low, high = ratio_interval(ratios, plain.instances, followed.instances) or (None, None)
    return Pair(followed, plain, median_of(ratios), low, high)
