# SPDX-License-Identifier: Apache-2.0
"""What training the built-in networks costs on a GPU, counted by `bench --cost` and kept in
plots/reference, so that no bench is needed where these are read.

tests/test_costs.py counts again, and writes the file.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from plots.core.cost import Cost, CostError, parse_cost, run_bench
from plots.core.mlp import network_of
from plots.core.reference import REFERENCE

COSTS_PATH = REFERENCE / "costs.json"
# Precisions that cost on a GPU what another does: one file of both would say everything twice.
SAME_AS = {"tf32": "f32", "f16": "bf16"}


@cache
def _counted(path: Path) -> dict[tuple[str, float, str], Cost]:
    lines = path.read_text(encoding="utf-8").splitlines()
    costs = (parse_cost(str(path), line) for line in lines)
    return {(cost.model, cost.batch, cost.precision): cost for cost in costs}


def find_cost(
    model: str, batch: float, precision: str = "f32", *, path: Path = COSTS_PATH
) -> Cost | None:
    """The kept cost of a network in batches of `batch`; None where it is not kept.

    Raises OSError where the file cannot be read.
    """
    found = _counted(path).get((model, batch, SAME_AS.get(precision, precision)))
    return found and replace(found, precision=precision)


def kept_cost(model: str, precision: str = "f32") -> Cost | None:
    """The kept cost of a network in its own batches; None where it is not kept."""
    kept = SAME_AS.get(precision, precision)
    own = (key for key in _counted(COSTS_PATH) if key[0] == model and key[2] == kept)
    first = next(own, None)  # those in other batches come after
    return find_cost(model, first[1], precision) if first else None


@cache
def cost_of(model: str, batch: float, precision: str, bench: Path) -> Cost | None:
    """The cost of a network: kept, or counted here where it is fully connected, or else by `bench`;
    None where none of these knows it."""
    if found := find_cost(model, batch, precision):
        return found
    try:
        if own := network_of(model):
            size = int(batch)
            return replace(own, batch=size, rows=max(own.rows, size), precision=precision).cost()
    except CostError:
        return None
    return _counted_by(bench, f"--model={model}", *_sized(batch, precision))


def _sized(batch: float, precision: str) -> tuple[str, str]:
    return f"--batch={batch:.0f}", f"--precision={precision}"


def _counted_by(bench: Path, *flags: str) -> Cost | None:
    try:
        return run_bench(bench, flags) if bench.is_file() else None
    except CostError:
        return None


@cache
def pass_cost_of(
    model: str, batch: float, precision: str, bench: Path, network: str = ""
) -> Cost | None:
    """What a forward pass of `batch` samples costs, as `bench` counts it; `network` is the JSON of
    one that is not built in. None where there is no bench, or it does not know the network."""
    flags = ("--family=Forward", *_sized(batch, precision))
    if network:
        return described_cost(network, flags, bench)
    own = network_of(model) if model.startswith("mlp-") else None
    if own is None:
        return _counted_by(bench, f"--model={model}", *flags)
    widths, loss = ",".join(map(str, own.widths)), own.loss.replace("_", "-")
    named = (f"--mlp={widths}", f"--activation={own.activation}", f"--loss-function={loss}")
    return _counted_by(bench, *named, *flags)


@cache
def described_cost(network: str, flags: tuple[str, ...], bench: Path) -> Cost | None:
    """The cost of a network by its JSON, trained as `flags` say, as `bench` counts it; None where
    it does not."""
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            file.write(network)
            file.flush()
            return run_bench(bench, [f"--network={file.name}", *flags])
    except (CostError, OSError):
        return None


def packed(costs: Iterable[dict[str, Any]]) -> str:
    """The outputs of bench --cost, read as JSON, as the file keeps them: one a line, with
    predicted_launches() alone, of operations and products that are alike one with their `count`."""
    lines = []
    for fields in costs:
        operations = [_packed_operation(each) for each in fields["step"]["operations"]]
        step = {**fields["step"], "operations": _merged(operations)}
        epoch = {**fields["epoch"], "device_launches": predicted_launches(fields["epoch"])}
        kept = {**fields, "epoch": epoch, "step": step, "device_bytes": {**fields["device_bytes"]}}
        kept["device_bytes"].pop("cpu", None)
        lines.append(json.dumps(kept, separators=(",", ":")))
    return "\n".join(lines) + "\n"


def predicted_launches(epoch: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Of an epoch by device and execution: a GPU's, but of persistent execution."""
    return {
        device: {name: count for name, count in executions.items() if name != "persistent"}
        for device, executions in epoch["device_launches"].items()
        if device != "cpu"
    }


def _packed_operation(fields: dict[str, Any]) -> dict[str, Any]:
    """Without its name and the passes of its products, which a count does not need."""
    kept = {key: value for key, value in fields.items() if key != "operation"}
    if "products" in fields:
        sizes = ({key: product[key] for key in "mnk"} for product in fields["products"])
        kept["products"] = _merged(sizes)
    return kept


def _merged(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """`entries` without repetition, in the order of their first; each says how many it stands for
    where that is more than one."""
    counts = Counter(map(json.dumps, entries))
    return [
        json.loads(text) | ({"count": count} if count > 1 else {}) for text, count in counts.items()
    ]
