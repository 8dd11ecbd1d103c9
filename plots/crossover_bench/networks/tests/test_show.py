# SPDX-License-Identifier: Apache-2.0
"""crossover networks show, and what the command says where torch is missing."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest

from crossover_bench.networks.__main__ import main
from crossover_bench.networks.values import Value, shown
from crossover_bench.peers.tasks import OF_ALL
from crossover_bench.peers.tests import NETWORKS
from crossover_bench.place import PACKAGE

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed here")


@pytest.fixture
def show(capsys, tmp_path):
    def run(described, code=0):
        path = tmp_path / "net.json"
        path.write_text(described if isinstance(described, str) else json.dumps(described), "utf-8")
        assert main(["show", str(path)]) == code
        return capsys.readouterr()

    return run


LENET = {
    "name": "small",
    "input": {"shape": [1, 6, 6], "type": "f32"},
    "classes": 3,
    "loss": "cross_entropy",
    "layers": [
        {"type": "conv2d", "out_channels": 2, "kernel_size": 3, "padding": 1, "bias": False},
        {"type": "batch_norm"},
        {"type": "relu"},
        {"type": "max_pool2d", "kernel_size": 2},
        {"type": "flatten"},
        {"type": "linear", "out_features": 3},
    ],
}


@needs_torch
def test_layers_are_counted_by_hand(show):
    lines = [line.split() for line in show(LENET).out.splitlines()]
    assert lines[0] == ["small"] and lines[1] == ["layer", "type", "gives", "parameters", "FLOP"]
    counts = {
        "conv2d": 2 * 9 * 72,  # a multiplication and an addition for each weight of a window
        "batch_norm": 7 * 72,
        "relu": 72,
        "max_pool2d": 4 * 18,
        "linear": 2 * 18 * 3 + 3,
    }
    counted = {line[2]: line[-1] for line in lines[3:9]}
    assert counted.pop("flatten") == "18]"  # none
    assert counted == {kind: f"{count:,}" for kind, count in counts.items()}
    assert lines[9] == ["6", "layers", "79", f"{sum(counts.values()):,}"]
    assert "[batch, 2, 3, 3]" in " ".join(lines[6])


@needs_torch
def test_a_group_sees_its_own_channels(show):
    layers = [
        {"type": "conv2d", "out_channels": 4, "kernel_size": 1},
        {"type": "conv2d", "out_channels": 4, "kernel_size": 3, "groups": 4, "bias": False},
        *LENET["layers"][-2:],
    ]
    line = show({**LENET, "layers": layers}).out.splitlines()[4].split()
    assert line[-2:] == ["36", f"{2 * 9 * 64:,}"]


@needs_torch
def test_windows_need_not_be_square(show):
    layers = [
        {"type": "conv2d", "out_channels": 4, "kernel_size": [1, 3], "padding": [0, 1]},
        {"type": "max_pool2d", "kernel_size": [3, 2]},
        {"type": "upsample", "scale_factor": [1, 2]},
        *LENET["layers"][-2:],
    ]
    lines = [line.split() for line in show({**LENET, "layers": layers}).out.splitlines()]
    assert lines[3][-2:] == ["16", f"{(2 * 3 + 1) * 144:,}"]
    assert " ".join(lines[4]).endswith(f"[batch, 4, 2, 3] {6 * 24}")
    assert " ".join(lines[5]).endswith("[batch, 4, 2, 6]")


@needs_torch
def test_what_attention_consists_of_is_counted_by_hand(show):
    heads = {"num_heads": 2}
    layers = [
        {"type": "slice", "from": 1, "to": 5},
        {"type": "embedding", "num_embeddings": 9, "embedding_dim": 6},
        {"name": "h", "type": "gru", "hidden_size": 8},
        {"type": "matmul", "transpose": True, "scale": 0.5, **heads, "inputs": ["h", "h"]},
        {"name": "w", "type": "softmax", **heads, "causal": True},
        {"type": "matmul", **heads, "inputs": ["w", "h"]},
        {"type": "slice", "to": 3, "over_time": True},
    ]
    tokens = {"shape": [5], "type": "i32"}
    lines = show({**LENET, "input": tokens, "layers": layers}).out.splitlines()
    gru = 8 * (3 * (2 * 4 * 6 + 2 * 3 * 8 + 7 * 4) + 5 * 4)
    counts = [gru, (2 * 4 + 1) * 4 * 8, 5 * 2 * (1 + 2 + 3 + 4), 2 * 4 * 4 * 8]
    assert [line.split()[-1] for line in lines[5:9]] == [f"{count:,}" for count in counts]
    assert "[4, batch]" in lines[3] and "[3, batch, 8]" in lines[9]


@needs_torch
def test_images_become_larger(show):
    layers = [
        {"type": "conv_transpose2d", "out_channels": 4, "kernel_size": 3, "stride": 2},
        {"type": "upsample", "scale_factor": 2},
        *LENET["layers"][-2:],
    ]
    lines = [line.split() for line in show({**LENET, "layers": layers}).out.splitlines()]
    assert lines[3][-2:] == ["40", f"{2 * 36 * 36 + 4 * 13 * 13:,}"]
    assert " ".join(lines[4]).endswith("upsample [batch, 4, 26, 26]")


@needs_torch
@pytest.mark.parametrize(
    ("model", "parameters"),
    [("resnet-50", "25,557,032"), ("lstm", "6,182,672"), ("heart", "1,522")],
)
def test_the_sums_are_those_of_bench(show, model, parameters):
    assert f" {parameters} " in show(NETWORKS[model]).out


@needs_torch
def test_bad_files_are_sentences(show):
    assert "is no JSON: " in show("{", 1).err
    assert "is no network" in show("[]", 1).err
    assert "the network lacks 'input'" in show({}, 1).err
    layers = [{"type": "swish"}]
    assert "layer 0 (swish): " in show({**LENET, "layers": layers}, 1).err
    layers = [{"type": "conv2d", "out_channels": 2, "kernel_size": 9}]
    assert "layer 0 (conv2d): " in show({**LENET, "layers": layers}, 1).err


@needs_torch
def test_the_layers_are_those_of_the_schema():
    """Which bench prints of its own. Windows have ceil_mode there, of convolutions too, and both
    norms of rows a bias; bench takes them nowhere but where PyTorch has them."""
    from crossover_bench.peers.pytorch.layers import LAYERS  # noqa: PLC0415

    of_all: dict[str, set[str]] = {}
    schema = json.loads((PACKAGE / "networks" / "schema.json").read_text("utf-8"))
    for form in schema["properties"]["layers"]["items"]["anyOf"]:
        for kind in form["properties"]["type"]["enum"]:
            of_all.setdefault(kind, set()).update(form["properties"].keys() - OF_ALL)
    of_all["conv2d"].remove("ceil_mode")
    of_all["rms_norm"].remove("bias")
    assert {kind: set(layer.parameters.split()) for kind, layer in LAYERS.items()} == of_all


def test_a_python_without_torch_is_told_what_installs_it(show, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    ours = ("crossover_bench.networks.show", "crossover_bench.networks.st")
    for name in [name for name in sys.modules if name.startswith(ours)]:
        monkeypatch.delitem(sys.modules, name)
    assert "has no torch: ./run --setup-only --with-peers installs it" in show(LENET, 1).err


def test_places_tell_views_apart():
    value = Value("a", (2, 3, 4), False)
    assert value.seen_as(value.places).is_plain and value.is_whole
    turned = value.seen_as(value.places.transpose(1, 0, 2))
    assert turned.plain.is_plain and turned.plain.is_seen_as(value.places)
    assert turned.is_whole and not turned.is_plain
    assert turned.rows.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert value.seen_as(value.places[:, :1]).rows is None
    assert value.seen_as(value.places.transpose(0, 2, 1)).rows is None
    assert shown((2, 3)) == "[batch, 3]"
