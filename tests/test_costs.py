# SPDX-License-Identifier: Apache-2.0
"""plots/reference/costs.json holds what `bench --cost` counts.

python tests/test_costs.py      count again, and write the file
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench_runs import bench  # noqa: E402

from plots.core.cards import load_cards  # noqa: E402
from plots.core.cost import Cost, Operation, parse_cost  # noqa: E402
from plots.core.costs import (  # noqa: E402
    COSTS_PATH,
    SAME_AS,
    find_cost,
    packed,
    predicted_launches,
)
from plots.core.mlp import ACTIVATIONS, LOSSES, OPTIMIZERS, Mlp, network_of  # noqa: E402
from plots.core.mlp import PRECISIONS as MLP_PRECISIONS  # noqa: E402
from plots.features.predict.data import fastest_rates  # noqa: E402
from plots.tests.test_prediction_docs import POINTS  # noqa: E402
from tools.stages import in_ci, weekly  # noqa: E402

PRECISIONS = ("f32", "bf16")


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
            (rate.network, rate.batch, SAME_AS.get(rate.precision, rate.precision))
            for rate in fastest_rates()
            if rate.network in named() and rate.card in cards
        }
    )


def count(model: str, batch: int | None, precision: str) -> str:
    """What bench says; the batch is the network's own where it is None."""
    size = [] if batch is None else [f"--batch={batch}", f"--rows={batch}"]
    widths = model.removeprefix("mlp-").replace("-", ",")
    network = f"--mlp={widths}" if model.startswith("mlp-") else f"--model={model}"
    done = bench("--cost", network, f"--precision={precision}", *size)
    assert done.returncode == 0, done.stderr
    return done.stdout


def outputs(every: int = 1) -> list[str]:
    """Of all networks, or of every third."""
    wanted = [(model, None, precision) for model in named() for precision in PRECISIONS]
    own = [count(*key) for key in wanted[::every]]
    known = {(cost.model, cost.batch, cost.precision) for cost in map(parsed, own)}
    return own + [count(*key) for key in published()[::every] if key not in known]


def parsed(text: str) -> Cost:
    return parse_cost("bench", text)


def amounts(cost: Cost) -> Counter[Operation]:
    """The operations, each on its own, with the products of one sorted and merged."""
    found: Counter[Operation] = Counter()
    for each in cost.operations:
        products: Counter[tuple[int, int, int]] = Counter()
        for one in each.products:
            products[one.m, one.n, one.k] += one.count
        alike = (each.kind, each.flops, each.bytes, each.launches, tuple(sorted(products.items())))
        found[alike] += each.count
    return found


@pytest.mark.slow
def test_the_kept_costs_are_what_bench_counts():
    for text in outputs(1 if in_ci() or weekly() else 3):
        counted = parsed(text)
        kept = find_cost(counted.model, counted.batch, counted.precision)
        assert kept is not None, f"python tests/test_costs.py ({counted.model} is missing)"
        assert amounts(kept) == amounts(counted), "python tests/test_costs.py"
        for name in ("params", "rows", "steps", "logits", "accumulate"):
            assert kept.fields[name] == counted.fields[name], "python tests/test_costs.py"
        epoch = counted.fields["epoch"]
        epoch["device_launches"] = predicted_launches(epoch)
        assert kept.fields["epoch"] == epoch, "python tests/test_costs.py"


def test_precisions_that_are_kept_once_cost_the_same_on_a_gpu():
    for precision, other in SAME_AS.items():
        for model in ("disc-4", "resnet-56"):  # which the CPU does not compute in f16
            one, two = parsed(count(model, None, precision)), parsed(count(model, None, other))
            assert one.operations == two.operations
            ours, theirs = one.fields["epoch"], two.fields["epoch"]
            assert predicted_launches(ours) == predicted_launches(theirs)
            assert ours["bytes"] == theirs["bytes"]


def test_a_forward_pass_is_counted():
    asked = ("--mlp=784,512,10", "--batch=64", "--rows=1000")
    of_pass = bench("--cost", "--family=Forward", *asked)
    cost, training = parsed(of_pass.stdout), parsed(bench("--cost", *asked).stdout)
    assert (cost.params, cost.batch, cost.fields["steps"]) == (training.params, 64, 1)
    assert [(one.m, one.n, one.k) for each in cost.operations for one in each.products] == [
        (64, 512, 784),
        (64, 10, 512),
    ]
    assert {one.kind for one in cost.operations} == {"product", "elementwise"}
    assert (cost.bytes_from_device, training.bytes_from_device) == (64 * 10 * 4, 0)
    launches = cost.fields["epoch"]["device_launches"]["cuda"]
    placements = ["resident", "pageable", "pinned"]
    assert {way: [*data] for way, data in launches.items()} == {
        "eager": placements,
        "graph": placements,
    }


@pytest.mark.slow
def test_what_python_counts_of_fully_connected_networks_is_what_bench_counts():
    """In sizes at which a count changes: of lines, of tall sums, of updates in place, of blocks."""
    draw = Random(5)
    for _ in range(200 if in_ci() or weekly() else 12):
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
        done = bench("--cost", f"--mlp={','.join(map(str, mlp.widths))}", *asked)
        assert done.returncode == 0, done.stderr
        own, theirs = mlp.cost(), parsed(done.stdout)
        assert amounts(own) == amounts(theirs), theirs.model
        for name in ("model", "params", "batch", "rows", "steps", "logits", "accumulate"):
            assert own.fields[name] == theirs.fields[name], (theirs.model, name)
        epochs = own.fields["epoch"], theirs.fields["epoch"]
        for name in ("flops", "bytes", "products", "bytes_to_device"):
            assert epochs[0][name] == epochs[1][name], (theirs.model, name)
        assert predicted_launches(epochs[0]) == predicted_launches(epochs[1]), theirs.model


def test_disc_networks_have_the_widths_of_bench():
    for model in ("disc-2x1.125", "disc-8x1.0625", "disc-11x3.9375"):
        own = network_of(model)
        assert own is not None and own.params == parsed(count(model, None, "f32")).params


def test_the_kept_costs_add_up():
    for line in COSTS_PATH.read_text(encoding="utf-8").splitlines():
        cost, step = parsed(line), json.loads(line)["step"]
        for name in ("flops", "bytes", "launches"):
            total = sum(getattr(each, name) * each.count for each in cost.operations)
            assert abs(total - step[name]) <= 1e-9 * step[name]


if __name__ == "__main__":
    COSTS_PATH.write_text(packed(map(json.loads, outputs())), encoding="utf-8")
    print(f"wrote {COSTS_PATH}")
