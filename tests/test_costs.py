# SPDX-License-Identifier: Apache-2.0
"""plots/crossover_bench/reference/costs.json holds what `bench --cost` counts.

python tests/test_costs.py      count again, and write the file
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("", "plots", "tests")]

from bench_runs import bench  # noqa: E402

from crossover_bench.answers.predict.data import fastest_rates  # noqa: E402
from crossover_bench.counts.cards import load_cards  # noqa: E402
from crossover_bench.counts.cost import Cost, Operation, Product, parse_cost  # noqa: E402
from crossover_bench.counts.costs import COSTS_PATH, SAME_AS  # noqa: E402
from crossover_bench.counts.mlp import (  # noqa: E402
    ACTIVATIONS,
    LOSSES,
    OPTIMIZERS,
    Mlp,
    network_of,
)
from crossover_bench.counts.mlp import PRECISIONS as MLP_PRECISIONS  # noqa: E402
from crossover_bench.tests.test_prediction_docs import POINTS  # noqa: E402
from tools.stages import thorough  # noqa: E402

PRECISIONS = ("f32", "bf16")
ONE_KERNEL = ("persistent", "tailored")  # for an epoch


@cache
def named() -> list[str]:
    """The networks of bench whose names do not say their widths."""
    models = bench("--models").stdout.split()
    return [name for name in models if not name.startswith("mlp-")]


def published() -> list[tuple[str, int, str]]:
    """Network, batch and precision of what was published and predictions are fitted to, or tested
    with."""
    cards = load_cards()
    points = {(network, batch, "f32") for _, network, batch, *_ in POINTS}
    return sorted(
        points
        | {
            (line["network"], int(line["batch"]), SAME_AS.get(line["precision"], line["precision"]))
            for line in fastest_rates()
            if line["network"] in named() and line["card"] in cards
        }
    )


def cost(*flags: str) -> dict[str, Any]:
    """What bench counts."""
    done = bench("--cost", *flags, code=0)
    return dict(json.loads(done.stdout))


def count(model: str, batch: int | None, precision: str) -> dict[str, Any]:
    """Of a network; the batch is its own where it is None."""
    size = [] if batch is None else [f"--batch={batch}", f"--rows={batch}"]
    widths = model.removeprefix("mlp-").replace("-", ",")
    network = f"--mlp={widths}" if model.startswith("mlp-") else f"--model={model}"
    return cost(network, f"--precision={precision}", *size)


def outputs(every: int = 1) -> list[dict[str, Any]]:
    """Of all networks, or of every third."""
    wanted = [(model, None, precision) for model in named() for precision in PRECISIONS]
    costs = [count(*key) for key in wanted[::every]]
    known = {(fields["model"], fields["batch"], fields["precision"]) for fields in costs}
    return costs + [count(*key) for key in published()[::every] if key not in known]


def packed(fields: dict[str, Any]) -> dict[str, Any]:
    """What bench counted as the file keeps it: without what no prediction reads, and of operations
    and of products that are alike one with their `count`."""
    operations = []
    for each in fields["step"]["operations"]:
        kept = {key: value for key, value in each.items() if key != "operation"}
        if "products" in each:
            kept["products"] = merged({key: p[key] for key in "mnk"} for p in each["products"])
        operations.append(kept)
    step = {**fields["step"], "operations": merged(operations)}
    epoch = {**fields["epoch"], "device_launches": predicted_launches(fields["epoch"])}
    memory = {device: size for device, size in fields["device_bytes"].items() if device != "cpu"}
    return {**fields, "epoch": epoch, "step": step, "device_bytes": memory}


def merged(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """`entries` without repetition, in the order of their first; each says how many it stands for
    where that is more than one."""
    counts = Counter(map(json.dumps, entries))
    return [json.loads(text) | ({"count": n} if n > 1 else {}) for text, n in counts.items()]


def predicted_launches(epoch: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Of an epoch by device and execution: a GPU's, but of one kernel."""
    return {
        device: {name: count for name, count in executions.items() if name not in ONE_KERNEL}
        for device, executions in epoch["device_launches"].items()
        if device != "cpu"
    }


def kept_costs() -> list[dict[str, Any]]:
    return [json.loads(line) for line in COSTS_PATH.read_text(encoding="utf-8").splitlines()]


def amounts(cost: Cost) -> Counter[Operation]:
    """The operations, each on its own."""
    counts: Counter[Operation] = Counter()
    for each in cost.operations:
        counts[replace(each, count=1)] += each.count
    return counts


def parsed(fields: dict[str, Any]) -> Cost:
    return parse_cost("bench", json.dumps(fields))


@pytest.mark.slow
def test_the_kept_costs_are_what_bench_counts():
    kept = kept_costs()
    costs = outputs(1 if thorough() else 3)
    lost = [fields["model"] for fields in costs if packed(fields) not in kept]
    assert not lost, "python tests/test_costs.py"


def test_precisions_that_are_kept_once_cost_the_same_on_a_gpu():
    for precision, other in SAME_AS.items():
        for model in ("disc-4", "resnet-56"):  # which the CPU does not compute in f16
            costs = [count(model, None, name) for name in (precision, other)]
            assert parsed(costs[0]).operations == parsed(costs[1]).operations
            epoch, of_other = (fields["epoch"] for fields in costs)
            assert predicted_launches(epoch) == predicted_launches(of_other)
            assert epoch["bytes"] == of_other["bytes"]


def test_a_forward_pass_is_counted():
    asked = ("--mlp=784,512,10", "--batch=64", "--rows=1000")
    forward, training = parsed(cost("--family=Forward", *asked)), parsed(cost(*asked))
    assert (forward.params, forward.batch, forward.fields["steps"]) == (training.params, 64, 1)
    products = [product for each in forward.operations for product in each.products]
    assert products == [Product(64, 512, 784), Product(64, 10, 512)]
    assert {each.kind for each in forward.operations} == {"product", "elementwise"}
    assert (forward.bytes_from_device, training.bytes_from_device) == (64 * 10 * 4, 0)
    launches = forward.fields["epoch"]["device_launches"]["cuda"]
    placements = ["resident", "pageable", "pinned"]
    assert {way: [*data] for way, data in launches.items()} == dict.fromkeys(
        ("eager", "graph"), placements
    )


@pytest.mark.slow
def test_what_python_counts_of_fully_connected_networks_is_what_bench_counts():
    """In sizes at which a count changes: of lines, of tall sums, of updates in place, of blocks."""
    draw = Random(5)
    for _ in range(200 if thorough() else 12):
        depth = draw.choice([1, 2, 3, 6, 40])
        inner = draw.choices(
            [1, 2, 16, 100, 1024, 1025, 2048] if depth < 9 else [2, 64, 1025], k=depth
        )
        batch = draw.choice([1, 10, 100, 1025, 2048, 5000])
        mlp = Mlp(
            (*inner, draw.choice([2, 16, 17, 600, 5000])),
            batch,
            draw.choice([batch, 2 * batch, 3 * batch + 1]),
            draw.choice(MLP_PRECISIONS),
            draw.choice(list(ACTIVATIONS)),
            draw.choice(list(OPTIMIZERS)),
            draw.choice(["cross_entropy", *LOSSES]),
        )
        flags = ("precision", "activation", "optimizer", "batch", "rows")
        asked = [f"--{flag}={getattr(mlp, flag)}" for flag in flags]
        asked.append(f"--loss-function={mlp.loss.replace('_', '-')}")
        ours, theirs = mlp.cost(), cost(f"--mlp={','.join(map(str, mlp.widths))}", *asked)
        assert amounts(ours) == amounts(parsed(theirs)), ours.model
        epoch = ours.fields["epoch"]
        theirs["epoch"]["device_launches"] = predicted_launches(theirs["epoch"])
        assert epoch == {name: theirs["epoch"][name] for name in epoch}, ours.model
        for name in ours.fields.keys() - {"epoch"}:
            assert ours.fields[name] == theirs[name], (ours.model, name)


def test_disc_networks_have_the_widths_of_bench():
    for model in ("disc-2x1.125", "disc-8x1.0625", "disc-11x3.9375"):
        network = network_of(model)
        assert network is not None and network.params == count(model, None, "f32")["params"]
    assert count("disc-3x1.5", None, "f32")["params"] == 128  # 2 to 6 to 12 to 2


def test_the_kept_costs_add_up():
    for line in kept_costs():
        operations, step = parsed(line).operations, line["step"]
        for name in ("flops", "bytes", "launches"):
            total = sum(getattr(each, name) * each.count for each in operations)
            assert abs(total - step[name]) <= 1e-9 * step[name]


if __name__ == "__main__":
    lines = (json.dumps(packed(fields), separators=(",", ":")) for fields in outputs())
    COSTS_PATH.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"wrote {COSTS_PATH}")
