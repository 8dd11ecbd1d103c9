# SPDX-License-Identifier: Apache-2.0
"""networks/schema.json, the form of a network's file for editors and validators, is what bench
prints of it, and says of files what bench does."""

import json
from collections.abc import Callable
from typing import Any

import fastjsonschema
import pytest
from bench_runs import ROOT, assert_refused, bench

SCHEMA = ROOT / "networks" / "schema.json"
NETWORKS = json.loads((ROOT / "tests" / "fixtures" / "networks.json").read_text("utf-8"))


def told(*words: str) -> str:
    done = bench(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def is_network() -> Callable[[Any], bool]:
    check = fastjsonschema.compile(json.loads(SCHEMA.read_text("utf-8")))

    def of(network: Any) -> bool:
        try:
            check(network)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return of


def test_the_file_is_what_bench_prints():
    assert SCHEMA.read_text("utf-8") == told("--network-schema"), (
        "bench --network-schema > networks/schema.json"
    )


def test_every_network_of_bench_has_the_form(is_network):
    for name in told("--models").split():
        assert is_network(json.loads(told("--describe", f"--model={name}"))), name
    for name, network in NETWORKS.items():
        assert is_network(network), name


SMALL = {
    "name": "small",
    "input": {"shape": [3, 8, 8], "type": "f32"},
    "classes": 4,
    "loss": "cross_entropy",
    "layers": [
        {"type": "conv2d", "out_channels": 4, "kernel_size": [3, 1]},
        {"name": "flat", "type": "flatten", "inputs": ["layer 0"]},
        {"type": "linear", "out_features": 4},
    ],
    "training": {"optimizer": "adamw", "weight_decay": 0},
}


def changed(**members: Any) -> dict[str, Any]:
    return {key: value for key, value in {**SMALL, **members}.items() if value is not None}


BAD = {
    "no loss": changed(loss=None),
    "another loss": changed(loss="hinge"),
    "outputs of a cross-entropy": changed(classes=None, outputs=4),
    "neither classes nor outputs": changed(classes=None),
    "a name with a space": changed(name="my net"),
    "no layers": changed(layers=[]),
    "a type that no layer has": changed(layers=[{"type": "linea", "out_features": 4}]),
    "a size that is missing": changed(layers=[{"type": "linear"}]),
    "a member of another layer": changed(
        layers=[{"type": "linear", "out_features": 4, "kernel_size": 3}]
    ),
    "a size of zero": changed(layers=[{"type": "linear", "out_features": 0}]),
    "three sizes of a window": changed(
        layers=[{"type": "conv2d", "out_channels": 4, "kernel_size": [3, 3, 3]}]
    ),
    "another optimizer": changed(training={"optimizer": "lion"}),
}


@pytest.mark.parametrize("what", BAD)
def test_what_the_schema_refuses_bench_refuses(what, is_network, tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(SMALL), "utf-8")
    bad.write_text(json.dumps(BAD[what]), "utf-8")
    assert is_network(SMALL)
    told("--describe", f"--network={good}")
    assert not is_network(BAD[what])
    assert_refused(bench("--describe", f"--network={bad}"), str(bad))
