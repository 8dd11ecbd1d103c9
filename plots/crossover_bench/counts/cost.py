# SPDX-License-Identifier: Apache-2.0
"""What training or using a network costs, as `bench --cost` counts it and as rows do."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossover_bench.files.families import FAMILIES, steps_of
from crossover_bench.files.rows import Row
from crossover_bench.place import ROOT, RUN_OF_CHECKOUT
from crossover_bench.words.text import printable

# Where ./run builds it, and where an installed copy has it. Never that of the
# current folder: whoever reads files that others made runs nothing of theirs.
BENCH_PATH = ROOT / "build" / "bench"

_LIMIT_SECONDS = 60
_COUNTS = ("params", "batch", "rows", "steps")
# Kinds of operations, as the profile and bench --cost call them, whose rates hang on their shapes.
_OF_OWN_RATES = ("convolution", "normalization")
_EPOCH_COUNTS = ("bytes", "products", "bytes_to_device")


class CostError(Exception):
    """A cost that can't be had; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one iteration, an epoch or a training step, asks of a device, counted: bytes in B, all
    else in counts per iteration. `logits` are the numbers that its losses read.

    `calls` are what a device is asked for one by one: a CPU's products, as its own loops cost
    little beside those, and a GPU's launches, which all cost alike. `bytes_to_device` is None where
    a row of an older file does not say.
    """

    params: float
    batch: float
    rows: float
    steps: float
    logits: float
    flops: float
    bytes: float
    calls: float
    bytes_to_device: float | None


@dataclass(frozen=True, slots=True)
class Product:
    """`count` matrix products m × k by k × n, in entries; a convolution counts as the products of
    its implicit matrices."""

    m: int
    n: int
    k: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """`count` operations of a step that are alike: what one counts, bytes in B, and its products.

    `kind` is its category in the profile: product, convolution, update, …
    """

    kind: str
    flops: float
    bytes: float
    launches: float
    products: tuple[Product, ...]
    count: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """One network, batch size and precision, as `bench --cost` prints them.

    `operations` are those of the epoch's first step; none in an output that does not list them.
    """

    model: str
    precision: str
    accumulate: int
    params: float
    batch: float
    fields: dict[str, Any]
    operations: tuple[Operation, ...] = ()

    @property
    def bytes_from_device(self) -> float:
        """What a forward pass returns to the host that gave it the batch; 0 of what trains."""
        return float(self.fields.get("epoch", {}).get("bytes_from_device", 0.0))

    @property
    def has_own_rates(self) -> bool:
        """Whether it has convolutions or normalization, so that no other network tells its time."""
        return any(operation.kind in _OF_OWN_RATES for operation in self.operations)

    def work(self, configuration: dict[str, str]) -> Work | None:
        """The epoch as rows of that configuration would compute it; None where there is none."""
        epoch = self.fields["epoch"]
        calls = epoch["products"]
        if configuration["device"] != "cpu":
            by_execution = epoch["device_launches"].get(configuration["device"], {})
            by_data = by_execution.get(configuration.get("execution"), {})
            calls = by_data.get(configuration.get("data"))
        if calls is None:
            return None
        return _work({**self.fields, **epoch}, calls, configuration)


def memory_of(cost: Cost, device: str, key: str = "bytes") -> float | None:
    """What training takes of the memory of `device`, in B, as bench plans it; None where bench did
    not count it."""
    return cost.fields.get("device_bytes", {}).get(device, {}).get(key)


def has_own_rates(row: Row) -> bool:
    """The same by the profile of `row`."""
    return any(f"seconds_{kind}" in row.counters for kind in _OF_OWN_RATES)


def work_of(row: Row) -> Work | None:
    """What a measured row that trains has counted; None where it lacks what a prediction needs."""
    rows = row.counters[FAMILIES[row.family].samples]
    counters = {**row.counters, "rows": rows, "steps": steps_of(row)}
    calls = "products" if row.device == "cpu" else "launches"
    if not {"bytes", calls} <= counters.keys():
        return None
    return _work(counters, counters[calls], row.configuration)


def _work(counts: Mapping[str, Any], calls: float, configuration: dict[str, str]) -> Work:
    moved: float | None = 0.0
    if configuration.get("data", "resident") != "resident":
        moved = counts.get("bytes_to_device")
    return Work(
        **{name: float(counts[name]) for name in (*_COUNTS, "flops", "bytes")},
        logits=float(counts.get("logits", counts["rows"])),  # which older outputs lack
        calls=float(calls),
        bytes_to_device=moved,
    )


def run_bench(bench: Path, arguments: Sequence[str]) -> Cost:
    """What `bench --cost` says of a network. Raises CostError with bench's own sentence."""
    command = [str(bench), "--cost", *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
    except (OSError, ValueError) as error:
        raise CostError(
            f"{printable(str(bench))}, which counts other networks: {_reason(error)}; build it "
            f"with {RUN_OF_CHECKOUT}, name it with --bench PATH, or its saved output with "
            "--cost FILE"
        ) from None
    except subprocess.TimeoutExpired:
        raise CostError(
            f"{printable(str(bench))}: no answer within {_LIMIT_SECONDS} s; "
            "give a smaller network, or fewer rows"
        ) from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise CostError(printable(lines[-1], 400))
    return parse_cost(str(bench), done.stdout)


def load_cost(path: Path) -> Cost:
    """The saved output of `bench --cost`. Raises CostError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CostError(f"{printable(str(path))}: {_reason(error)}; check the path") from None
    return parse_cost(str(path), text)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def parse_cost(source: str, text: str) -> Cost:
    """The cost in `text`, output of bench --cost; `source` is where it is from, for CostError."""
    try:
        fields = json.loads(text)
        epoch, accumulate = fields["epoch"], fields["accumulate"]
        positive = [*(fields[name] for name in _COUNTS), epoch["flops"], accumulate]
        launches = epoch["device_launches"]  # either device may lack an operation of the network
        numbers = [fields.get("logits", 1), launches.get("cpu", 1)]  # older outputs lack the former
        numbers += [epoch[name] for name in _EPOCH_COUNTS]
        numbers += [count for way in launches.get("cuda", {}).values() for count in way.values()]
        for number in [*positive, *numbers]:
            _amount(number)
        if min(positive) > 0 and type(accumulate) is int:
            return Cost(
                model=str(fields["model"]),
                precision=str(fields["precision"]),
                accumulate=accumulate,
                params=float(fields["params"]),
                batch=float(fields["batch"]),
                fields=fields,
                operations=tuple(map(operation_of, fields.get("step", {}).get("operations", ()))),
            )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        pass
    raise CostError(
        f"{printable(source)}: is not the output of bench --cost; save its output again"
    )


def operation_of(fields: dict[str, Any]) -> Operation:
    """As bench --cost lists it. ValueError, KeyError or TypeError where `fields` is none."""

    def sizes(of: dict[str, Any], *keys: str) -> Iterator[int]:
        for value in (*(of[key] for key in keys), of.get("count", 1)):
            yield int(_amount(value, whole=True))

    products = tuple(Product(*sizes(product, *"mnk")) for product in fields.get("products", ()))
    flops, moved, launches = (_amount(fields[key]) for key in ("flops", "bytes", "launches"))
    return Operation(str(fields["kind"]), flops, moved, launches, products, *sizes(fields))


def _amount(value: Any, whole: bool = False) -> float:
    if type(value) is int and 0 <= value < 1e300:
        return value
    if whole or type(value) is not float or not 0 <= value < 1e300:
        raise ValueError(f"{value!r} is no amount")
    return value
