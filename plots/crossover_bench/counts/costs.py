# SPDX-License-Identifier: Apache-2.0
"""What training the built-in networks costs on a GPU, counted by `bench --cost` and kept in
reference, so that no bench is needed where these are read.

tests/test_costs.py counts again, and writes the file.
"""

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from crossover_bench.counts.cost import Cost, CostError, parse_cost, run_bench
from crossover_bench.counts.mlp import network_of
from crossover_bench.counts.reference import REFERENCE

COSTS_PATH = REFERENCE / "costs.json"
# Precisions that cost on a GPU what another does: one file of both would say everything twice.
SAME_AS = {"tf32": "f32", "f16": "bf16"}


@cache
def _counted(path: Path) -> dict[tuple[str, float, str], Cost]:
    lines = path.read_text(encoding="utf-8").splitlines()
    costs = (parse_cost(str(path), line) for line in lines)
    return {(cost.model, cost.batch, cost.precision): cost for cost in costs}


def find_cost(model: str, batch: float, precision: str = "f32") -> Cost | None:
    """The kept cost of a network in batches of `batch`; None where it is not kept.

    Raises OSError where the file cannot be read.
    """
    cost = _counted(COSTS_PATH).get((model, batch, SAME_AS.get(precision, precision)))
    return cost and replace(cost, precision=precision)


def kept_cost(model: str, precision: str = "f32") -> Cost | None:
    """The kept cost of a network in its own batches; None where it is not kept."""
    kept = SAME_AS.get(precision, precision)
    keys = (key for key in _counted(COSTS_PATH) if key[0] == model and key[2] == kept)
    first = next(keys, None)  # those in other batches come after
    return find_cost(model, first[1], precision) if first else None


@cache
def cost_of(
    model: str, batch: float, precision: str, bench: Path, *, network: str = "", rows: float = 0.0
) -> Cost | None:
    """The cost of training a network: by its JSON, where `network` is that and `rows` how many an
    epoch has; or else kept, or counted here where it is fully connected, or else by `bench`; None
    where none of these knows it."""
    flags = _sized(batch, precision)
    if network and (cost := described_cost(network, (*flags, f"--rows={rows:.0f}"), bench)):
        return cost
    if cost := find_cost(model, batch, precision):
        return cost
    try:
        if mlp := network_of(model):
            size = int(batch)
            return replace(mlp, batch=size, rows=max(mlp.rows, size), precision=precision).cost()
    except CostError:
        return None
    return described_cost("", (f"--model={model}", *flags), bench)


@cache
def pass_cost_of(
    model: str, batch: float, precision: str, bench: Path, network: str = ""
) -> Cost | None:
    """What a forward pass of `batch` samples costs, as `bench` counts it; `network` is the JSON of
    one that is not built in. None where there is no bench, or it does not know the network."""
    flags = (*_sized(batch, precision), "--family=Forward")
    mlp = network_of(model) if model.startswith("mlp-") and not network else None
    if mlp:
        widths, loss = ",".join(map(str, mlp.widths)), mlp.loss.replace("_", "-")
        flags += (f"--mlp={widths}", f"--activation={mlp.activation}", f"--loss-function={loss}")
    elif not network:
        flags += (f"--model={model}",)
    return described_cost(network, flags, bench)


def _sized(batch: float, precision: str) -> tuple[str, ...]:
    return f"--batch={batch:.0f}", f"--precision={precision}"


@cache
def described_cost(network: str, flags: tuple[str, ...], bench: Path) -> Cost | None:
    """The cost of a network by its JSON, or where that is empty as `flags` name it, trained as
    these say, as `bench` counts it; None where it does not."""
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            file.write(network)
            file.flush()
            named = [f"--network={file.name}"] if network else []
            return run_bench(bench, [*named, *flags])
    except (CostError, OSError):
        return None
