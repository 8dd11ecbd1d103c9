# SPDX-License-Identifier: Apache-2.0
"""Import from PyTorch, where torch is installed: what users write, what is refused, the proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402

from networks import proof, torch_operations  # noqa: E402
from networks.__main__ import main  # noqa: E402
from networks.from_torch import Graph  # noqa: E402
from networks.tests import zoo  # noqa: E402
from networks.user_module import Input, exported  # noqa: E402
from networks.values import Refused  # noqa: E402
from peers.pytorch import networks as modules  # noqa: E402
from peers.tests import NETWORKS  # noqa: E402

ZOO = Path(__file__).with_name("zoo.py")
WORDS = ("--input=8", "--input-type=tokens:9")
PAIR = ("--input=scalar", "--input-type=tokens:50", "--input=scalar", "--input-type=tokens:70")


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def imported(capsys: Any, name: str, *flags: str) -> dict[str, Any]:
    code = main(["import", f"{ZOO}:{name}", *flags])
    given = capsys.readouterr()
    assert code == 0, given.err
    assert "the original's on two random batches" in given.err
    return json.loads(given.out)


def refused(capsys: Any, name: str, *flags: str, code: int = 1) -> str:
    """The sentence, without the program's name."""
    assert main(["import", f"{ZOO}:{name}", *flags]) == code
    given = capsys.readouterr()
    assert given.out == "" and given.err.count("\n") == 1
    return given.err.removeprefix("python -m networks: ").strip()


def kinds(described: dict[str, Any]) -> list[str]:
    return [layer["type"] for layer in described["layers"]]


def line_of(text: str) -> int:
    lines = ZOO.read_text("utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


def test_an_mlp_is_its_layers(capsys):
    assert imported(capsys, "mlp", "--input=20", "--name=mine") == {
        "name": "mine",
        "input": {"shape": [20], "type": "f32"},
        "classes": 7,
        "loss": "cross_entropy",
        "layers": [
            {"name": "0", "type": "linear", "out_features": 33},
            {"name": "1", "type": "relu"},
            {"name": "2", "type": "linear", "out_features": 65},
            {"name": "3", "type": "sigmoid"},
            {"name": "4", "type": "linear", "out_features": 7},
        ],
    }


def test_a_cnn_with_functions_and_a_view(capsys):
    described = imported(capsys, "Cnn", "--input=1x16x16")
    assert described["name"] == "zoo-Cnn"
    assert described["layers"][:4] == [
        {
            "name": "conv1",
            "type": "conv2d",
            "out_channels": 6,
            "kernel_size": 5,
            "padding": 2,
            "bias": False,
        },
        {"name": "norm", "type": "batch_norm"},
        {"name": "relu", "type": "relu"},
        {"name": "max_pool2d", "type": "max_pool2d", "kernel_size": 2},
    ]
    assert kinds(described)[6:] == ["avg_pool2d", "flatten", "linear", "relu", "dropout", "linear"]
    assert described["layers"][-2] == {"name": "dropout", "type": "dropout", "p": 0.25}


def test_a_resnet_has_its_residuals(capsys):
    described = imported(capsys, "ResNet", "--input=3x32x32")
    assert kinds(described).count("add") == 8 and kinds(described).count("batch_norm") == 20
    adds = [layer for layer in described["layers"] if layer["type"] == "add"]
    assert adds[0]["inputs"] == ["layers.0.0.bn2", "maxpool"]
    assert adds[2]["inputs"] == ["layers.1.0.bn2", "layers.1.0.downsample.1"]
    assert kinds(described)[-2:] == ["global_avg_pool2d", "linear"]


def test_a_convolution_has_groups_and_dilation(capsys):
    described = imported(capsys, "grouped", "--input=4x8x8")
    sizes = {"type": "conv2d", "out_channels": 4, "kernel_size": 3}
    assert described["layers"][:2] == [
        {"name": "layer.0", **sizes, "padding": 1, "groups": 4},
        {"name": "layer.1", **sizes, "padding": 2, "groups": 2, "dilation": 2},
    ]


SERIES = ["conv2d", "batch_norm", "relu", "max_pool2d", *(["conv2d", "relu", "add"] * 2)]
SERIES += ["global_avg_pool2d", "linear", "relu", "linear", "sigmoid", "multiply", "avg_pool2d"]
SERIES += ["global_avg_pool2d", "max_pool2d", "flatten", "concatenate", "linear"]


@pytest.mark.parametrize(
    ("name", "shape", "channels"), [("Series", "2x32", 2), ("flat_series", "32", 1)]
)
def test_a_line_is_an_image_of_height_1(capsys, name, shape, channels):
    described = imported(capsys, name, f"--input={shape}")
    assert described["input"] == {"shape": [channels, 1, 32], "type": "f32"}
    assert sorted(kinds(described)) == sorted(SERIES)
    layers = {layer["name"]: layer for layer in described["layers"]}
    assert layers["stem"] == {
        **{"name": "stem", "type": "conv2d", "out_channels": 8, "kernel_size": [1, 7]},
        **{"stride": [1, 2], "padding": [0, 3], "bias": False},
    }
    assert layers["pool"]["kernel_size"] == [1, 3] and layers["pool"]["stride"] == [1, 2]
    assert layers["blocks.1"]["dilation"] == [1, 2] and layers["blocks.1"]["padding"] == [0, 2]
    assert layers["mean"] | {"name": ""} == {
        **{"name": "", "type": "avg_pool2d", "kernel_size": [1, 2], "ceil_mode": True}
    }
    top = [layer for layer in described["layers"] if layer["type"] == "max_pool2d"][-1]
    assert top["kernel_size"] == [1, 4]


def test_windows_differ_in_both_directions(capsys):
    described = imported(capsys, "Inception", "--input=2x6x8")
    own = ("kernel_size", "stride", "padding", "dilation")
    windows = [
        {name: layer[name] for name in own if name in layer}
        for layer in described["layers"]
        if "kernel_size" in layer
    ]
    assert windows == [
        {"kernel_size": [1, 7], "padding": [0, 3]},
        {"kernel_size": [7, 1], "padding": [3, 0]},
        {"kernel_size": [2, 3], "stride": [2, 1]},
        {"kernel_size": [1, 3], "stride": 1, "padding": [0, 1]},
        {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]},
        {"kernel_size": [1, 3]},
    ]


def test_a_signal_is_a_sequence_behind_a_convolution(capsys):
    described = imported(capsys, "Signal", "--input=3x20")
    assert kinds(described) == ["conv2d", "gelu", "to_sequence", "lstm", "last_place", "linear"]


def test_a_line_becomes_shorter_and_longer(capsys):
    described = imported(capsys, "Coder", "--input=2x10", "--loss-function=mse")
    layers = ["conv2d", "relu", "group_norm", "conv_transpose2d", "group_norm", "upsample", "add"]
    assert kinds(described) == [*layers, "conv2d", "flatten"] and described["outputs"] == 20
    up, repeated = described["layers"][3], described["layers"][5]
    assert (up["stride"], up["output_padding"]) == ([1, 2], [0, 1])
    assert repeated["scale_factor"] == [1, 2]
    described = imported(capsys, "coder_of_classes", "--input=2x10")
    assert kinds(described)[-1] == "to_sequence" and described["labels"] == [10]
    assert described["classes"] == 5


def test_an_input_is_what_reads_it():
    described = proved(zoo.TwoSignals(), Input((2, 9)), Input((1, 9)))
    assert described["input"]["shape"] == [3, 1, 9] and kinds(described).count("slice") == 2
    described = proved(zoo.FlatImage(), Input((48,)))
    assert described["input"]["shape"] == [1, 6, 8]
    assert kinds(described) == [
        *("conv2d", "flatten", "max_pool2d", "flatten", "concatenate", "linear")
    ]


def test_a_vgg_keeps_its_dropout(capsys):
    described = imported(capsys, "Vgg", "--input=3x32x32")
    assert kinds(described).count("dropout") == 2 and kinds(described).count("conv2d") == 8
    assert kinds(described)[-8:-6] == ["global_avg_pool2d", "linear"]


@pytest.mark.parametrize("name", ["Tagger", "time_first", "per_class", "gated"])
def test_sequences_come_time_first_whatever_the_original_does(capsys, name):
    axis = ["--batch-axis=1"] if name == "time_first" else []
    described = imported(capsys, name, "--input=7", "--input-type=tokens:50", *axis)
    assert described["labels"] == [7] and described["input"] == {"shape": [7], "type": "i32"}
    kind = "gru" if name == "gated" else "lstm"
    assert kinds(described) == ["embedding", kind, kind, "linear"]
    assert described["classes"] == 9


def test_regression_and_its_loss(capsys):
    flags = ("--input=4", "--loss-function=mse")
    described = imported(capsys, "one_number", *flags)
    assert described["loss"] == "mse" and described["outputs"] == 1 and "classes" not in described
    assert "--loss-function=mse" in refused(capsys, "one_number", "--input=4")


@pytest.mark.parametrize("model", [name for name in NETWORKS if "s" not in name.split("-")])
def test_the_networks_of_bench_come_back(model):
    """But for names, and that PyTorch has no module for the mean of channels."""
    described = NETWORKS[model]
    network = modules.network_of(described)
    modules.fill(network)
    shape, is_tokens = described["input"]["shape"], described["input"]["type"] == "i32"
    wanted = Input(tuple(shape), described["classes"] if is_tokens else 0, int(is_tokens))
    loss = described["loss"].replace("_", "-")
    if model in ("resnet-50", "lstm", "fcn-r"):  # exported alone: their proof takes seconds
        program = exported(network.double().train(), wanted)
        graph = Graph(program, wanted)
    else:
        network = network.double().train()
        graph = Graph(exported(network, wanted), wanted)
        proof.prove(network, graph, graph.build.described(model, graph.output, loss), wanted)
    again = graph.build.described(model, graph.output, loss)
    assert unnamed(again) == unnamed(described)


def unnamed(described: dict[str, Any]) -> dict[str, Any]:
    numbers = {"input": "input"}
    layers = []
    for number, layer in enumerate(described["layers"]):
        numbers[layer["name"]] = str(number)
        reads = {"inputs": [numbers[one] for one in layer["inputs"]]} if "inputs" in layer else {}
        tied = {"tied": numbers[layer["tied"]]} if "tied" in layer else {}
        layers.append({**layer, **reads, **tied, "name": str(number)})
    return {**described, "layers": layers}


# ---- transformers, gates and what joins

ACTIVATIONS = {
    "tanh": nn.Tanh(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU("tanh"),
    "silu": nn.SiLU(inplace=True),
    "relu6": nn.ReLU6(inplace=True),
    "hardswish": nn.Hardswish(),
    "hardsigmoid": nn.Hardsigmoid(),
    "leaky_relu": nn.LeakyReLU(),
}


def proved(network: nn.Module, *wanted: Input, loss: str = "cross-entropy") -> dict[str, Any]:
    network = network.double().train()
    graph = Graph(exported(network, *wanted), *wanted)
    described = graph.build.described("x", graph.output, loss)
    difference, count = proof.prove(network, graph, described, *wanted)
    assert difference <= 1e-9 and count > 1
    return described


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activations(kind):
    norm = nn.Sequential(
        nn.Linear(4, 6), nn.LayerNorm(6), ACTIVATIONS[kind], nn.Linear(6, 3, bias=False)
    )
    described = proved(norm, Input((4,)))
    assert kinds(described) == ["linear", "layer_norm", kind, "linear"]
    assert described["layers"][-1]["bias"] is False


BLOCK = ["layer_norm", "linear", "attention", "linear", "add"]
BLOCK += ["layer_norm", "linear", "gelu", "linear", "add"]


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_transformer_of_words(by_hand):
    described = proved(zoo.Gpt(by_hand=by_hand), Input((10,), 31))
    assert kinds(described) == ["embedding", "position_embedding", *BLOCK, "linear"]
    assert described["layers"][-1]["bias"] is False
    attention = next(layer for layer in described["layers"] if layer["type"] == "attention")
    assert attention | {"name": ""} == {
        "name": "",
        "type": "attention",
        "num_heads": 3,
        "causal": True,
    }


def test_a_tied_product_names_the_embedding():
    network, wanted = zoo.Tied().double(), Input((5,), 31)
    graph = Graph(exported(network, wanted), wanted)
    described = graph.build.described("x", graph.output, "cross-entropy")
    assert described["layers"][-1] == {
        "name": "head",
        "type": "linear",
        "out_features": 31,
        "tied": "embedding",
    }
    assert described["layers"][0]["scaled_start"]
    assert sum(step.count for step in graph.build.steps.values()) == 31 * 6 + 6 * 6 + 6
    assert proof.prove(network, graph, described, wanted)


def test_a_transformer_of_images():
    described = proved(zoo.Vit(), Input((3, 8, 8)))
    begin = ["conv2d", "to_sequence", "position_embedding"]
    assert all("causal" not in layer for layer in described["layers"])
    assert kinds(described) == [*begin, *BLOCK, "mean_over_time", "linear"]


def test_the_encoder_that_pytorch_has():
    described = proved(zoo.Encoder(), Input((6,), 31))
    assert kinds(described)[:4] == ["embedding", "linear", "attention", "linear"]
    assert kinds(described).count("attention") == 2 and "dropout" not in kinds(described)
    assert kinds(described)[-2:] == ["mean_over_time", "linear"]


def test_a_vision_transformer_as_torchvision_has_it():
    described = proved(zoo.TorchvisionVit(), Input((3, 8, 8)))
    begin = ["conv2d", "to_sequence", "class_token", "position_embedding", "dropout"]
    assert kinds(described)[:5] == begin
    assert kinds(described)[-3:] == ["layer_norm", "first_place", "linear"]
    norms = [layer for layer in described["layers"] if layer["type"] == "layer_norm"]
    assert all(layer["eps"] == 1e-6 for layer in norms)


def test_the_last_word_of_an_lstm(capsys):
    assert kinds(imported(capsys, "LastWord", *WORDS)) == [
        *("embedding", "lstm", "last_place", "linear")
    ]


def test_two_towers_and_skip_connections(capsys):
    described = imported(capsys, "Towers", "--input=9")
    joins = [layer for layer in described["layers"] if layer["type"] == "concatenate"]
    assert [len(layer["inputs"]) for layer in joins] == [2, 3]
    described = imported(capsys, "Dense", "--input=3x8x8")
    joins = [layer for layer in described["layers"] if layer["type"] == "concatenate"]
    assert joins[-1]["inputs"] == ["layers.0", "relu", "relu_2"]


# ---- products and softmax by themselves


@pytest.mark.parametrize("name", ["Separate", "heads_apart"])
def test_attention_of_products_apart(capsys, name):
    described = imported(capsys, name, "--input=5", "--input-type=tokens:31")
    drops = ["dropout"] if name == "heads_apart" else []
    assert kinds(described) == [
        *("embedding", "linear", "linear", "linear", "matmul", "softmax", *drops, "matmul"),
        "linear",
    ]
    scores, weights = described["layers"][4:6]
    heads = {"num_heads": 2} if drops else {}
    scale = pytest.approx(0.5 if drops else 8**-0.5)
    assert scores | {"name": "", "inputs": []} == {
        **{"name": "", "type": "matmul", "inputs": [], "transpose": True, "scale": scale},
        **heads,
    }
    causal = {"causal": True} if drops else {}
    assert weights | {"name": ""} == {"name": "", "type": "softmax", **heads, **causal}


def test_a_vector_asks_a_sequence(capsys):
    described = imported(capsys, "Asking", "--input=5", "--input-type=tokens:31")
    assert kinds(described) == [
        *("embedding", "lstm", "last_place", "linear", "matmul", "softmax", "matmul"),
        *("linear", "softmax", "multiply", "linear"),
    ]


def test_a_sum_of_a_product_is_a_product(capsys):
    described = imported(capsys, "Dot", *PAIR, "--loss-function=mse")
    assert kinds(described)[-1] == "matmul" and "multiply" not in kinds(described)
    assert described["layers"][-1]["transpose"] and described["outputs"] == 1


# ---- several inputs, and parts of values

TOWER = ["slice", "embedding", "first_place", "linear", "relu", "linear"]


@pytest.mark.parametrize(
    ("name", "joins"), [("Recommender", "multiply"), ("recommender_side_by_side", "concatenate")]
)
def test_a_recommender_of_two_towers(capsys, name, joins):
    described = imported(capsys, name, *PAIR, "--loss-function=bce")
    assert kinds(described) == [*TOWER, *TOWER, joins, "linear"]
    assert described["input"] == {"shape": [2], "type": "i32"} and described["outputs"] == 1
    slices = [layer for layer in described["layers"] if layer["type"] == "slice"]
    assert slices == [
        {"name": "user", "type": "slice", "to": 1},
        {"name": "item", "type": "slice", "from": 1, "to": 2, "inputs": ["input"]},
    ]


@pytest.mark.parametrize("axis", [0, 1])
def test_tokens_of_several_places_and_one(axis):
    seen = zoo.History()
    wanted = [Input((5,), 70, axis), Input((1,), 70, axis)]
    if axis == 1:
        seen.forward = lambda old, new, plain=seen.forward: plain(old.T, new.T)
    described = proved(seen, *wanted, loss="bce")
    assert described["input"]["shape"] == [6]
    assert kinds(described).count("slice") == 2 and kinds(described)[-2:] == [
        *("concatenate", "linear")
    ]


def test_vectors_and_images_of_several_inputs(capsys):
    described = imported(capsys, "Vectors", "--input=5", "--input=3", "--input=scalar")
    assert described["input"]["shape"] == [9]
    slices = [layer for layer in described["layers"] if layer["type"] == "slice"]
    assert [(one.get("from", 0), one["to"]) for one in slices] == [(0, 5), (5, 8), (8, 9), (5, 6)]
    described = imported(capsys, "Images", "--input=3x6x6", "--input=1x6x6")
    assert described["input"]["shape"] == [4, 6, 6]
    assert kinds(described)[:4] == ["slice", "conv2d", "slice", "conv2d"]


def test_parts_are_slices(capsys):
    described = imported(capsys, "Halves", "--input=5", "--input-type=tokens:31")
    slices = [layer for layer in described["layers"] if layer["type"] == "slice"]
    assert [{k: one[k] for k in ("from", "to", "over_time") if k in one} for one in slices] == [
        {"from": 8, "to": 16},
        {"to": 8},
        {"from": 1, "to": 4, "over_time": True},
        {"from": 1, "to": 6},
    ]
    described = imported(capsys, "Columns", "--input=3", "--input-type=tokens:7")
    assert kinds(described).count("slice") == 3 and kinds(described).count("first_place") == 3
    assert kinds(imported(capsys, "Channels", "--input=3x6x6")) == [
        *("conv2d", "slice", "conv2d", "relu", "slice", "concatenate", "global_avg_pool2d"),
        "linear",
    ]
    described = imported(capsys, "SecondWord", *WORDS)
    assert kinds(described)[2:4] == ["slice", "first_place"]


def test_a_part_changed_in_place_is_refused():
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            y = self.a(x)
            y[:, :2].relu_()
            return self.b(y)

    network = InPlace().double()
    with pytest.raises(Refused, match="it changes a part of what a gives in place"):
        Graph(exported(network, Input((4,))), Input((4,)))


@pytest.mark.parametrize("name", ["Squeeze", "SqueezeConv"])
def test_gates(capsys, name):
    assert kinds(imported(capsys, name, "--input=3x8x8")) == [
        *("conv2d", "global_avg_pool2d", "linear", "relu", "linear", "sigmoid", "multiply"),
        *("global_avg_pool2d", "linear"),
    ]


UNET = [*(["conv2d", "batch_norm", "relu"] * 2)]
SMALLER = ["max_pool2d", *UNET]


def test_a_u_net_labels_pixels_or_gives_images(capsys):
    described = imported(capsys, "UNet", "--input=3x8x8")
    larger = ["conv_transpose2d", "concatenate", *UNET]
    assert kinds(described) == [*UNET, *SMALLER * 2, *larger * 2, "conv2d", "to_sequence"]
    up = next(layer for layer in described["layers"] if layer["type"] == "conv_transpose2d")
    assert up | {"name": ""} == {
        "name": "",
        "type": "conv_transpose2d",
        "out_channels": 6,
        "kernel_size": 2,
        "stride": 2,
    }
    assert described["classes"] == 3 and described["labels"] == [64]
    described = imported(capsys, "unet_by_upsampling", "--input=3x8x8", "--loss-function=bce")
    larger = ["upsample", "conv2d", "concatenate", *UNET]
    assert [kind.replace("group_norm", "batch_norm") for kind in kinds(described)] == [
        *[*UNET, *SMALLER * 2, *larger * 2, "conv2d", "flatten"]
    ]
    assert described["outputs"] == 64 and "labels" not in described
    masks = imported(capsys, "unet_of_masks", "--input=3x8x8", "--loss-function=mse")
    assert kinds(masks)[-2:] == ["conv2d", "flatten"] and masks["outputs"] == 64


def test_images_become_larger_in_each_way():
    described = proved(zoo.Larger(groups=2), Input((2, 3, 5), 0))
    layers = [layer for layer in described["layers"] if layer["type"] != "relu"]
    assert [{**layer, "name": ""} for layer in layers[:2]] == [
        {
            **{"name": "", "type": "conv_transpose2d", "out_channels": 6, "kernel_size": 3},
            **{"stride": 2, "padding": 1, "output_padding": 1, "bias": False},
        },
        {
            **{"name": "", "type": "conv_transpose2d", "out_channels": 4, "kernel_size": 2},
            **{"groups": 2, "dilation": 2},
        },
    ]
    assert [layer["scale_factor"] for layer in layers[2:4]] == [3, 2]


def test_normalization_of_groups():
    described = proved(zoo.group_norm(), Input((4, 3, 5), 0))
    first, _, second = (
        {key: value for key, value in layer.items() if key != "name"}
        for layer in described["layers"][:3]
    )
    assert first == {"type": "group_norm", "num_groups": 2, "eps": 1e-3}
    assert second == {"type": "group_norm", "num_groups": 4}


def test_normalization_without_means():
    described = proved(zoo.Llama(), Input((6,), 31))
    assert kinds(described).count("rms_norm") == 2
    assert [layer.get("eps") for layer in described["layers"] if "rms" in layer["type"]] == [
        None,
        1e-6,
    ]
    assert kinds(described)[-6:-1] == ["linear", "silu", "linear", "multiply", "linear"]


# ---- what is refused

IMAGES = ("--input=2x6x6",)


@pytest.mark.parametrize(
    ("name", "flags", "said"),
    [
        (
            "long_windows",
            ("--input=2x2x256",),
            "layer (max_pool2d, zoo.py:{}): its windows have 256 places; 255 are the most",
        ),
        ("reflecting", IMAGES, "layer (pad, zoo.py:{}): there is no such layer; supported are "),
        ("padded", IMAGES, "padding is 1, and can only be below 1"),
        ("uneven", IMAGES, "images of 6 by 6 can only become larger by whole factors"),
        ("smooth", IMAGES, "layer (upsample_bilinear2d, zoo.py:{}): there is no such layer"),
        ("overhanging", IMAGES, "output_padding is 2, and can only be below the stride"),
        ("plain_groups", ("--input=4x6x6",), "affine is False, and can only be True"),
        ("plain_norm", IMAGES, "affine is False, and can only be True"),
        ("uncounted", IMAGES, "count_include_pad is False, and can only be True"),
        (
            "shuffled",
            ("--input=4x6x6",),
            "layer (pixel_shuffle, zoo.py:{}): there is no such layer",
        ),
    ],
)
def test_what_no_layer_has_is_named_with_its_place(capsys, name, flags, said):
    sentence = refused(capsys, name, *flags)
    assert said.format(line_of("self.fc(self.layer(x).mean((2, 3)))")) in sentence


@pytest.mark.parametrize(
    ("name", "flags", "said"),
    [
        (
            "row_norm",
            ["--input=4"],
            "1 (batch_norm): it reads [batch, 5]; batch_norm reads images as they are",
        ),
        (
            "frozen",
            ["--input=20"],
            "2.weight is frozen (requires_grad=False); bench trains all parameters",
        ),
        (
            "shared",
            ["--input=4"],
            "0.weight is the parameter of 0 too, and shared parameters can't be",
        ),
        ("Two", ["--input=4"], "the network gives 2 outputs; one tensor can be trained"),
        (
            "EachOtherWord",
            WORDS,
            "it reads [2, 4, 5], whose rows are not those of what lstm gives, [8, batch, 5]",
        ),
        (
            "Both",
            ["--input=scalar", "--input-type=tokens:9", "--input=4", "--input-type=numbers"],
            "some inputs are tokens and others numbers; a network has inputs of one kind",
        ),
        (
            "Vectors",
            ["--input=5", "--input=3x4"],
            "the network can't be run on a batch [2, 5] and [2, 3, 4]: ",
        ),
        (
            "BothWays",
            ["--input=48"],
            "it reads [batch, 6, 8]; conv2d reads images as they are, [batch, channels, height,",
        ),
        ("Mixed", ["--input=4"], "it multiplies [2, 3] by [2, 1]; only values of one shape and"),
        ("Stacked", ["--input=4"], "it can join images by their channels, and rows of one order"),
        ("Depends", ["--input=4"], "torch.export can't follow the network: "),
        (
            "fails",
            ["--input=4"],
            "zoo.py:fails can't be called: ValueError: no weights here (zoo.py:",
        ),
        ("no_module", ["--input=4"], "zoo.py:no_module gives a dict, and no torch.nn.Module"),
        ("huge", ["--input=4"], "zoo.py:huge has 1,600,040,000 parameters; 10^9 are the most"),
        ("absent", ["--input=4"], "zoo.py has nothing to call named 'absent'; it has mlp, Cnn, "),
        ("nothing", ["--input=4"], "zoo.py has nothing to call named 'nothing'"),
        ("mlp", ["--input=21"], "the network can't be run on a batch [2, 21]: RuntimeError: "),
        (
            "Tagger",
            ["--input=7", "--input-type=tokens:99"],
            "the network can't be run on a batch [2, 7]: ",
        ),
        ("ResNet", ["--input=20"], "--input and --input-type say what it reads"),
    ],
)
def test_a_network_that_cannot_be_had_ends_in_one_sentence(capsys, name, flags, said):
    assert said in refused(capsys, name, *flags)


def test_a_normalization_has_its_own_epsilon(capsys):
    described = imported(capsys, "slow_norm", *IMAGES)
    assert {"name": "layer", "type": "batch_norm", "eps": 1e-3} in described["layers"]


def test_what_is_written_by_hand_is_one_layer(capsys):
    described = imported(capsys, "ByHand", "--input=8", "--input-type=tokens:31")
    assert kinds(described)[1:4] == ["rms_norm", "linear", "attention"]


def test_the_line_of_the_user_is_named(capsys):
    assert f"mul (mul, zoo.py:{line_of('this line is named')}): a network's output" in refused(
        capsys, "Scaled", "--input=4"
    )


def test_files_that_are_not_there_or_fail(capsys, tmp_path):
    missing = tmp_path / "absent.py"
    assert main(["import", f"{missing}:make", "--input=3"]) == 1
    assert capsys.readouterr().err.endswith(f"{missing}: there is no such file\n")
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_package\n", "utf-8")
    assert main(["import", f"{broken}:make", "--input=3"]) == 1
    assert "can't be imported: ModuleNotFoundError: No module named" in capsys.readouterr().err


# ---- the proof


def test_a_wrong_layer_is_found_and_named(capsys, monkeypatch):
    monkeypatch.setitem(torch_operations.LAYERS, "relu", torch_operations._elementwise("sigmoid"))
    sentence = refused(capsys, "Cnn", "--input=1x16x16")
    assert sentence.endswith("other numbers than the original: first relu (sigmoid)")


def test_a_wrong_pooling_is_found_behind_right_layers(capsys, monkeypatch):
    wrong = lambda call: torch_operations._pool(call, "avg_pool2d")  # noqa: E731
    monkeypatch.setitem(torch_operations.LAYERS, "max_pool2d", wrong)
    assert "first maxpool (avg_pool2d)" in refused(capsys, "ResNet", "--input=3x32x32")


def test_gradients_are_compared_too():
    network = torch.nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).double()
    wanted = Input((4,))
    graph = Graph(exported(network, wanted), wanted)
    described = graph.build.described("x", graph.output, "cross-entropy")
    network[0].weight.register_hook(lambda gradient: gradient * (1 + 1e-6))
    with pytest.raises(Refused, match=r"other gradients .* first that of 0\.weight, by 1\.0e-06"):
        proof.prove(network, graph, described, wanted)


def test_an_operation_in_place_changes_what_others_saw(capsys):
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            y = self.a(x)
            rows = y.view(-1, 4)
            torch.relu_(y)
            return self.b(rows + y)

    described = proved(InPlace(), Input((4,)))
    assert kinds(described) == ["linear", "relu", "add", "linear"]
    assert described["layers"][2]["inputs"] == ["relu", "relu"]


# ---- the command line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["net.txt"], "'net.txt' is neither FILE.py:CALLABLE nor a file .onnx"),
        ([f"{ZOO}:mlp"], "--input is missing, the shape of one sample"),
        ([f"{ZOO}:mlp", "--input=3x0"], "'3x0' is no shape such as 784 or 3x32x32"),
        (
            [f"{ZOO}:Recommender", *PAIR[:3]],
            "--input is given 2 times and --input-type 1 times; say it for each input",
        ),
        (
            [f"{ZOO}:mlp", "--input=3", "--input-type=words"],
            "'words' is neither numbers nor tokens:N",
        ),
        ([f"{ZOO}:mlp", "--input=3", "--loss-function=l1"], "invalid choice: 'l1'"),
    ],
)
def test_wrong_usage_is_a_sentence(capsys, words, said):
    with pytest.raises(SystemExit) as ended:
        main(["import", *words])
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
