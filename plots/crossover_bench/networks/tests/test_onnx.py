# SPDX-License-Identifier: Apache-2.0
"""Import from ONNX, by both of PyTorch's exporters and of files made by hand."""

from __future__ import annotations

import io
import json
import logging
import warnings
from contextlib import redirect_stdout
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")
onnx = pytest.importorskip("onnx", reason="onnx is not installed here")

from torch import nn  # noqa: E402

from crossover_bench.networks.__main__ import main  # noqa: E402
from crossover_bench.networks.tests import zoo  # noqa: E402
from crossover_bench.networks.tests.proved import imported, kinds, refused, zoo_with  # noqa: E402


def network_of(network: Any) -> nn.Module:
    """That, or the zoo's of that name."""
    make = getattr(zoo_with(network), network) if isinstance(network, str) else network
    return deepcopy(make) if isinstance(make, nn.Module) else make()


def exported(path: Path, network: Any, x: Any, new: bool, **flags: Any) -> Path:
    network = network_of(network).eval() if isinstance(network, str) else network
    read = x if isinstance(x, tuple) else (x,)
    if new:
        pytest.importorskip("onnxscript", reason="onnxscript is not installed here")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # of what is not installed
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(network, read, path, dynamo=new, **flags)
    return path


def old(path: Path, network: Any, x: Any) -> Path:
    """In training, as the network is trained."""
    mode = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    return exported(path, network_of(network).train(), x, False, opset_version=17, **mode)


# By both exporters, and by the old one in training.
OLD, NEW, TRAINED = "old", "new", "trained"
EACH, BOTH = (OLD, NEW, TRAINED), (OLD, NEW)
MSE, BCE = "--loss-function=mse", "--loss-function=bce"
# Shapes of samples, tokens, flags, and which exporters make files of the same layers.
AS_OF_PYTORCH: dict[str, tuple[list[str], list[int], list[str], tuple[str, ...]]] = {
    "mlp": (["20"], [0], [], BOTH),
    **dict.fromkeys(("ResNet", "Vgg"), (["3x32x32"], [0], [], (TRAINED, NEW))),
    "Cnn": (["1x16x16"], [0], [], (TRAINED,)),
    "grouped": (["4x8x8"], [0], [], (OLD,)),
    "Series": (["2x32"], [0], [], (TRAINED, NEW)),
    "flat_series": (["32"], [0], [], (TRAINED, NEW)),
    "Inception": (["2x6x8"], [0], [], (TRAINED, NEW)),
    "Coder": (["2x10"], [0], [MSE], BOTH),
    **dict.fromkeys(("UNet", "unet_by_upsampling"), (["3x8x8"], [0], [MSE], (TRAINED,))),
    "Larger": (["2x3x5"], [0], [], BOTH),
    **dict.fromkeys(("Tagger", "gated"), (["7"], [50], [], BOTH)),
    "towers": (["9"], [0], [], (OLD,)),
    **dict.fromkeys(("dense", "squeeze", "squeeze_conv"), (["3x8x8"], [0], [], (OLD,))),
    **dict.fromkeys(
        ("Recommender", "recommender_side_by_side", "dot"),
        (["scalar", "scalar"], [50, 70], [BCE], BOTH),
    ),
    **dict.fromkeys(("halves", "Separate", "asking"), (["5"], [31], [], BOTH)),
    # Which exporters take apart: attention, GELU by the error function, rms_norm.
    **dict.fromkeys(("Gpt", "encoder", "ByHand"), (["10"], [31], [], BOTH)),
    **dict.fromkeys(("Vit", "TorchvisionVit"), (["3x8x8"], [0], [], BOTH)),
}


def batch(shape: str, tokens: int) -> Any:
    sizes = [] if shape == "scalar" else map(int, shape.split("x"))
    return torch.randint(tokens, (2, *sizes)) if tokens else torch.randn(2, *sizes)


@pytest.mark.parametrize(
    ("name", "way"), [(name, way) for name, row in AS_OF_PYTORCH.items() for way in row[-1]]
)
def test_layers_are_those_of_the_import_from_pytorch(capsys, tmp_path, name, way):
    shapes, tokens, flags, _ = AS_OF_PYTORCH[name]
    x = tuple(map(batch, shapes, tokens))
    path = tmp_path / "net.onnx"
    if way == TRAINED:
        old(path, name, x)
    else:
        exported(path, name, x, way == NEW)
    types = [f"--input-type=tokens:{count}" for count in tokens if count]
    described = imported(capsys, path, *types, *flags, "--as-is")
    plain = imported(capsys, name, *(f"--input={shape}" for shape in shapes), *types, *flags)
    left_out = () if way == TRAINED else ("dropout", "batch_norm")
    wanted = [kind for kind in kinds(plain) if kind not in left_out]
    facts = ("input", "classes", "outputs", "labels", "loss")
    assert [described.get(key) for key in facts] == [plain.get(key) for key in facts]
    assert sorted(kinds(described)) == sorted(wanted)


@pytest.mark.parametrize("name", ["ResNet", "Vgg"])
def test_the_new_exporter_folds_batch_normalization_away_and_is_refused(capsys, tmp_path, name):
    x = torch.randn(2, 3, 32, 32)
    path = exported(tmp_path / "net.onnx", getattr(zoo, name)().train(), x, True)
    assert "has convolutions and no BatchNormalization" in refused(capsys, path)
    described = imported(capsys, path, "--as-is")
    assert "batch_norm" not in kinds(described) and "conv2d" in kinds(described)


def test_a_file_with_batch_normalization_is_what_is_trained(capsys, tmp_path):
    x = torch.randn(2, 3, 32, 32)
    assert "batch_norm" in kinds(imported(capsys, old(tmp_path / "net.onnx", "Vgg", x)))
    path = old(tmp_path / "net.onnx", zoo.Vgg(norm=False), x)
    assert "say --as-is if it never had any" in refused(capsys, path)
    assert kinds(imported(capsys, path, "--as-is")).count("conv2d") == 8


@pytest.mark.parametrize("new", [False, True])
def test_sizes_are_those_of_the_file(capsys, tmp_path, new):
    path = exported(tmp_path / "mlp.onnx", "mlp", torch.randn(2, 20), new)
    described = imported(capsys, path)
    assert described["name"] == "mlp"
    assert described["layers"][0] == {"name": "0", "type": "linear", "out_features": 33}
    path = exported(tmp_path / "net.onnx", zoo.grouped(padding=2), torch.randn(2, 4, 8, 8), new)
    first, second = imported(capsys, path, "--as-is")["layers"][:2]
    assert first["groups"] == 4 and "dilation" not in first
    assert (second["groups"], second["dilation"], second["padding"]) == (2, 2, 2)
    path = exported(tmp_path / "net.onnx", "group_norm", torch.randn(2, 4, 3, 5), new)
    first, _, second = imported(capsys, path, "--as-is")["layers"][:3]
    assert (first["type"], first["num_groups"], first["eps"]) == ("group_norm", 2, 1e-3)
    assert (second["type"], second["num_groups"]) == ("group_norm", 4)
    path = exported(tmp_path / "net.onnx", zoo.Larger(groups=2), torch.randn(2, 2, 3, 5), new)
    assert "group is 2, and can only be 1" in refused(capsys, path, "--as-is")


# ---- several inputs

WORDS_OF = ("--input-type=tokens:31",)


@pytest.mark.parametrize("new", [False, True])
def test_tokens_are_said_for_each_input(capsys, tmp_path, new):
    x = (torch.randint(50, (2,)), torch.randint(50, (2,)))
    path = exported(tmp_path / "net.onnx", "Recommender", x, new)
    of = ("--input-type=tokens:50", "--input-type=tokens:70")
    layers = imported(capsys, path, *of, BCE)["layers"]
    assert len([layer["name"] for layer in layers if layer["type"] == "slice"]) == 2
    assert "2 inputs and --input-type is given 1 times" in refused(capsys, path, of[0])
    path = exported(tmp_path / "net.onnx", "Tagger", torch.randint(50, (2, 7)), new)
    assert "reads tokens; --input-type=tokens:N says how many" in refused(capsys, path)


def test_vectors_of_several_inputs(capsys, tmp_path):
    read = (torch.randn(2, 5), torch.randn(2, 3), torch.randn(2))
    path = exported(tmp_path / "net.onnx", "vectors", read, False)
    assert imported(capsys, path)["input"]["shape"] == [9]
    read = (torch.randint(9, (2,)), torch.randn(2, 4))
    path = exported(tmp_path / "both.onnx", "both", read, False)
    flags = ("--input-type=tokens:9", "--input-type=numbers")
    assert "some inputs are tokens and others numbers" in refused(capsys, path, *flags)


# ---- files made by hand


def made(
    path: Path,
    nodes: list[Any],
    constants: dict[str, np.ndarray],
    opset: int = 17,
    tokens: bool = False,
    **sizes: Any,
) -> Path:
    """`sizes`: of each input, and the names of outputs as y."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    kind_of_x = onnx.TensorProto.INT64 if tokens else kind
    inputs = {"x": ["n", 4]} | {name: size for name, size in sizes.items() if name != "y"}
    graph = helper.make_graph(
        nodes,
        "net",
        [
            helper.make_tensor_value_info(name, kind_of_x if name == "x" else kind, size)
            for name, size in inputs.items()
        ],
        [helper.make_tensor_value_info(name, kind, ["n", "m"]) for name in sizes.get("y", ["y"])],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, path)
    return path


WEIGHT = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)}


@pytest.mark.parametrize("opset", [13, 17, 21])
def test_a_product_and_its_bias_are_one_layer(capsys, tmp_path, opset):
    node = onnx.helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("Add", ["b", "m"], ["a"]),
        node("Relu", ["a"], ["y"]),
    ]
    constants = {**WEIGHT, "b": np.array([0.5, -0.5, 1], dtype=np.float32)}
    described = imported(capsys, made(tmp_path / "net.onnx", nodes, constants, opset))
    assert described["layers"][0] == {"name": "matmul", "type": "linear", "out_features": 3}


def test_normalization_of_groups_as_opset_21_has_it(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("GroupNormalization", ["x", "w", "b"], ["g"], num_groups=2, epsilon=1e-3),
        node("GlobalAveragePool", ["g"], ["p"]),
        node("Flatten", ["p"], ["y"]),
    ]
    constants = {"w": np.array([1, 2, 3, 4], np.float32), "b": np.ones(4, np.float32)}
    path = made(tmp_path / "net.onnx", nodes, constants, 21, x=["n", 4, 3, 5])
    first = imported(capsys, path)["layers"][0]
    assert first == {"name": "groupnormalization", "type": "group_norm"} | {
        "num_groups": 2,
        "eps": 1e-3,
    }


@pytest.mark.parametrize(
    ("node", "constants", "sentence"),
    [
        (("Gemm", ["x", "w"], {"alpha": 0.5}), WEIGHT, "(Gemm): alpha is 0.5, and can only be 1.0"),
        (("Tan", ["x"], {}), {}, "(Tan): there is no such layer (docs/networks.md"),
        (("LRN", ["x"], {"size": 4}), {}, "size is 4, and can only be odd"),
        (("Add", ["x", "w"], {}), WEIGHT, "[4, 3] and [2, 4], do not meet"),
    ],
)
def test_what_no_layer_has_is_refused(capsys, tmp_path, node, constants, sentence):
    kind, reads, attributes = node
    nodes = [onnx.helper.make_node(kind, reads, ["y"], **attributes)]
    assert sentence in refused(capsys, made(tmp_path / "net.onnx", nodes, constants))


@pytest.mark.parametrize(
    ("node", "constants", "sentence"),
    [
        (
            ("MaxPool", ["x"], {"kernel_shape": [2, 2], "dilations": [2, 2]}, ["n", 1, 6, 6]),
            {},
            "dilations is [2, 2], and can only be 1",
        ),
        (
            ("Attention", ["x", "x", "x"], {"is_causal": 1, "left_window_size": 2}, ["n", 2, 3, 4]),
            {},
            "left_window_size is 2, and can only be -1",
        ),
        (
            ("Gather", ["x", "i"], {"axis": 0}, ["n", 4]),
            {"i": np.array([0, 5])},
            "it takes places that a dimension of 2 does not have",
        ),
        (
            ("Reshape", ["x", "i"], {}, ["n", 4]),
            {"i": np.array([1, 4])},
            "onnx's reference can't compute it for a batch of 2 (",
        ),
        (
            ("Slice", ["x", "i", "j", "j"], {}, ["n", 10, 5]),
            {"i": np.array([0]), "j": np.array([2])},
            "the network gives [2, 10, 2] for a batch of 2",
        ),
        (
            ("Sqrt", ["x"], {}, ["n", 4]),
            {},
            "on random numbers the file gives some that are infinite or none at all",
        ),
    ],
)
def test_a_node_that_can_not_be_read_is_refused(capsys, tmp_path, node, constants, sentence):
    """Each was a traceback, an internal error or a wrong network."""
    kind, reads, attributes, shape = node
    nodes = [onnx.helper.make_node(kind, reads, ["y"], **attributes)]
    opset = onnx.defs.onnx_opset_version()
    path = made(tmp_path / "net.onnx", nodes, constants, opset, x=shape)
    assert sentence in refused(capsys, path, MSE)


def test_a_dimension_as_large_as_the_batch_of_an_import_is_none(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0), node("Relu", ["m"], ["y"])]
    path = made(tmp_path / "net.onnx", nodes, {}, x=["n", 2, 3])
    assert kinds(imported(capsys, path)) == ["global_avg_pool2d", "relu"]


MODE = "coordinate_transformation_mode"


def test_axes_of_a_resize_are_those_that_it_names(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Resize", ["x", "", "s"], ["r"], axes=[3, 2], mode="nearest"),
        node("GlobalMaxPool", ["r"], ["p"]),
        node("Flatten", ["p"], ["y"]),
    ]
    path = made(
        tmp_path / "net.onnx", nodes, {"s": np.array([2, 3], np.float32)}, 18, x=["n", 3, 2, 2]
    )
    layer = imported(capsys, path)["layers"][0]
    assert (layer["type"], layer["scale_factor"]) == ("upsample", [3, 2])


@pytest.mark.parametrize("aligned", [False, True])
def test_pixels_between_others_are_interpolated(capsys, tmp_path, aligned):
    node = onnx.helper.make_node
    counts = "align_corners" if aligned else "half_pixel"
    nodes = [
        node("Resize", ["x", "", "", "s"], ["r"], mode="linear", **{MODE: counts}),
        node("GlobalMaxPool", ["r"], ["p"]),
        node("Flatten", ["p"], ["y"]),
    ]
    sizes = {"s": np.array([2, 3, 5, 7])}  # of a batch of 2, in which it is proved
    path = made(tmp_path / "net.onnx", nodes, sizes, 18, x=[2, 3, 4, 4])
    layer = imported(capsys, path)["layers"][0]
    wanted = {"type": "interpolate", "size": [5, 7]} | ({"align_corners": True} if aligned else {})
    assert {key: value for key, value in layer.items() if key != "name"} == wanted


def test_functions_and_constants_are_layers(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("LeakyRelu", ["x"], ["a"], alpha=0.2),
        node("Elu", ["a"], ["b"], alpha=0.5),
        node("Mul", ["b", "two"], ["c"]),
        node("Add", ["c", "half"], ["d"]),
        node("Softplus", ["d"], ["e"]),
        node("Sub", ["half", "e"], ["f"]),
        node("Clip", ["f", "least", "two"], ["g"]),
        node("Sub", ["g", "f"], ["h"]),
        node("Sin", ["h"], ["y"]),
    ]
    numbers = {"two": 2.0, "half": 0.5, "least": -1.5}
    constants = {name: np.array(number, np.float32) for name, number in numbers.items()}
    layers = imported(capsys, made(tmp_path / "net.onnx", nodes, constants))["layers"]
    settings = [{k: v for k, v in layer.items() if k not in ("name", "inputs")} for layer in layers]
    assert settings == [
        {"type": "leaky_relu", "negative_slope": 0.2},
        {"type": "elu", "alpha": 0.5},
        {"type": "affine", "scale": 2.0, "shift": 0.5},
        {"type": "softplus"},
        {"type": "affine", "scale": -1.0, "shift": 0.5},
        {"type": "hardtanh", "min_val": -1.5, "max_val": 2.0},
        {"type": "affine", "scale": -1.0},
        {"type": "add"},
        {"type": "sin"},
    ]


def test_operators_are_the_layers_of_pytorchs_operations(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Abs", ["x"], ["a"]),
        node("Exp", ["a"], ["b"]),
        node("Log", ["b"], ["l"]),
        node("Sqrt", ["l"], ["c"]),
        node("Cos", ["c"], ["d"]),
        node("Mish", ["d"], ["e"]),
        node("Clip", ["e", "zero"], ["f"]),
        node("Pow", ["f", "three"], ["g"]),
        node("Div", ["g", "b"], ["h"]),
        node("HardSigmoid", ["h"], ["i"], alpha=0.3),
        node("Pow", ["b", "power"], ["j"]),
        node("Mul", ["i", "j"], ["y"]),
    ]
    constants = {
        "power": np.array(-0.75, np.float32),
        "zero": np.array(0, np.float32),
        "three": np.array(3, np.float32),
    }
    described = imported(capsys, made(tmp_path / "net.onnx", nodes, constants, 18))
    mish, power = ["softplus", "tanh", "multiply"], ["multiply", "multiply"]
    quotient = ["reciprocal", "multiply"]
    assert kinds(described) == [
        *("abs", "exp", "log", "sqrt", "affine", "sin", *mish, "relu", *power, *quotient),
        *("affine", "hardtanh", "sqrt", "sqrt", "multiply", "reciprocal", "multiply"),
    ]


def test_zeros_on_one_side_are_a_layer(capsys, tmp_path):
    """As TensorFlow's SAME has them, in a convolution or in front of one."""
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[0, 1, 1, 2]),
        node("Pad", ["a", "zeros"], ["b"]),
        node("GlobalAveragePool", ["b"], ["c"]),
        node("Flatten", ["c"], ["y"]),
    ]
    weight = np.linspace(-1, 1, 3 * 4 * 2 * 2, dtype=np.float32).reshape(3, 4, 2, 2)
    constants = {"w": weight, "zeros": np.array([0, 1, 0, 0, 0, 0, 2, 1])}
    path = made(tmp_path / "net.onnx", nodes, constants, x=["n", 4, 6, 5])
    layers = imported(capsys, path, "--as-is")["layers"]
    pads = [layer for layer in layers if layer["type"] == "pad"]
    assert [{k: v for k, v in layer.items() if k not in ("name", "type")} for layer in pads] == [
        {"left": 1, "right": 2, "bottom": 1},
        {"right": 1, "bottom": 2, "front": 1},
    ]


def test_shared_weights_are_tied_or_those_of_one_layer(capsys, tmp_path):
    words = torch.randint(31, (2, 5))
    path = old(tmp_path / "tied.onnx", "Tied", words)
    described = imported(capsys, path, *WORDS_OF)
    assert described["layers"][-1]["tied"] == described["layers"][0]["name"]
    for path in (
        old(tmp_path / "shared.onnx", "shared", torch.randn(2, 4)),
        exported(tmp_path / "new.onnx", "one_body", torch.randn(2, 4), True),
    ):
        capsys.readouterr()  # what the exporter says
        first, *_, last = imported(capsys, path)["layers"]
        assert first["type"] == last["type"] == "linear" and last["shared"] == first["name"]
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["x", "k"], ["a"], pads=[1, 1, 1, 1]),
        node("Conv", ["a", "k"], ["b"]),
        node("Flatten", ["b"], ["y"]),
    ]
    path = made(tmp_path / "other.onnx", nodes, {"k": numbers(3, 3, 3, 3)}, x=["n", 3, 6, 6])
    sentence = "conv_2 has the very weights of conv, and is no layer of its type and sizes"
    assert sentence in refused(capsys, path, "--as-is")


def test_copies_that_an_exporter_writes_once_are_said(capsys, tmp_path):
    words = torch.randint(31, (2, 10))
    path = exported(tmp_path / "net.onnx", "encoder", words, True)
    assert main(["import", str(path), *WORDS_OF]) == 0
    assert "of its layers have the very weights of others" in capsys.readouterr().err


def test_biases_that_an_exporter_leaves_out_are_said(capsys, tmp_path):
    path = made(tmp_path / "net.onnx", [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], WEIGHT)
    model = onnx.load(path)
    for producer, is_noted in (("keras", False), ("pytorch", True)):
        model.producer_name = producer
        onnx.save(model, path)
        assert main(["import", str(path)]) == 0
        assert ("have no bias in the file" in capsys.readouterr().err) == is_noted


def test_a_softmax_at_the_end_is_that_of_the_loss(capsys, tmp_path):
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["m"]),
        onnx.helper.make_node("Softmax", ["m"], ["y"]),
        onnx.helper.make_node("Relu", ["m"], ["z"]),
    ]
    path = made(tmp_path / "net.onnx", nodes, WEIGHT, y=["z", "y"])
    assert kinds(imported(capsys, path, "--output=1")) == ["linear"]
    assert kinds(imported(capsys, path, "--output=0")) == ["linear", "relu"]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("beside", [False, True])
def test_a_file_of_keras_has_its_channels_last(capsys, tmp_path, beside):
    node = onnx.helper.make_node
    same = {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 3]}
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        node("Conv", ["t", "k", "kb"], ["c"], **same),
        node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Transpose", ["p"], ["u"], perm=[0, 2, 3, 1]),
        node("Reshape", ["u", "flat"], ["f"]),
        node("MatMul", ["f", "w"], ["m"]),
        node("Add", ["m", "b"], ["a"]),
        node("Softmax", ["a"], ["y"], axis=-1),
    ]
    constants = {"k": numbers(4, 3, 3, 3), "kb": numbers(4), "w": numbers(64, 5), "b": numbers(5)}
    constants["flat"] = np.array([-1, 64])
    path = made(tmp_path / "net.onnx", nodes, constants, x=["n", 8, 8, 3])
    if beside:
        kept = {"save_as_external_data": True, "location": "net.data", "size_threshold": 0}
        onnx.save(onnx.load(path), path, **kept)
    described = imported(capsys, path, "--as-is")
    assert described["input"]["shape"] == [3, 8, 8] and described["layers"][0]["padding"] == 1
    assert kinds(described)[2:] == ["to_sequence", "to_image", "flatten", "linear"]


def test_a_classifier_of_scikit_learn_gives_labels_beside_its_probabilities(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Cast", ["x"], ["c"], to=1),
        node("MatMul", ["c", "w"], ["m"]),
        node("Add", ["m", "b"], ["a"]),
        node("Softmax", ["a"], ["p"], axis=1),
        node("ArgMax", ["p"], ["label"], axis=1, keepdims=0),
        node("ZipMap", ["p"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]),
    ]
    model = onnx.load(made(tmp_path / "net.onnx", nodes, WEIGHT | {"b": numbers(1, 3)}))
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 1))
    value, label = onnx.ValueInfoProto(name="y"), onnx.ValueInfoProto()
    value.type.sequence_type.elem_type.map_type.key_type = onnx.TensorProto.INT64
    value.type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = 1
    label.CopyFrom(onnx.helper.make_tensor_value_info("label", onnx.TensorProto.INT64, ["n"]))
    del model.graph.output[:]
    model.graph.output.extend([label, value])
    onnx.save(model, tmp_path / "net.onnx")
    assert kinds(imported(capsys, tmp_path / "net.onnx")) == ["linear"]


def test_an_old_opset_and_a_batch_of_one(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Squeeze", ["x"], ["s"], axes=[1]),
        node("MatMul", ["s", "w"], ["y"]),
    ]
    path = made(tmp_path / "net.onnx", nodes, WEIGHT, 11, x=[1, 1, 4])
    assert kinds(imported(capsys, path)) == ["flatten", "linear"]
    nodes[0] = node("Reshape", ["x", "row"], ["s"])
    for size, row in ((1, [1, 4]), (1, [1, -1]), (1, [0, 4]), (3, [3, 4])):
        shape = {"row": np.array(row)}
        path = made(tmp_path / "net.onnx", nodes, WEIGHT | shape, x=[size, 1, 4])
        assert kinds(imported(capsys, path)) == ["flatten", "linear"]
    path = made(tmp_path / "net.onnx", nodes, WEIGHT | {"row": np.array([1, 8])}, x=[1, 1, 4])
    assert "the file has a batch of 1, which may be why" in refused(capsys, path)
    nodes[0] = node("Tan", ["x"], ["s"])
    path = made(tmp_path / "net.onnx", nodes, WEIGHT, x=[1, 1, 4])
    assert "which may be why" not in refused(capsys, path)


@pytest.mark.parametrize("opset", [9, 13, 15])
def test_batch_normalization_of_older_opsets_is_proved(capsys, tmp_path, opset):
    node = onnx.helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("BatchNormalization", ["m", "scale", "shift", "mean", "variance"], ["y"]),
    ]
    norm = dict.fromkeys(("scale", "shift", "mean", "variance"), np.array([1, 2, 3], np.float32))
    path = made(tmp_path / "net.onnx", nodes, {**WEIGHT, **norm}, opset)
    assert kinds(imported(capsys, path)) == ["linear", "batch_norm"]


def test_a_part_of_a_result_is_an_output_and_a_part_of_a_batch_is_none(capsys, tmp_path):
    node, ends = onnx.helper.make_node, {"a": np.array([0]), "b": np.array([2])}
    axis = {"axis": np.array([1])}
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Slice", ["m", "a", "b", "axis"], ["y"])]
    path = made(tmp_path / "net.onnx", nodes, {**WEIGHT, **ends, **axis})
    assert kinds(imported(capsys, path)) == ["linear", "slice"]
    nodes = [node("Slice", ["x", "a", "b"], ["s"]), node("MatMul", ["s", "w"], ["y"])]
    path = made(tmp_path / "net.onnx", nodes, {**WEIGHT, **ends, "b": np.array([3])})
    assert "uses a part of a batch: of 8 samples it gives 3 results" in refused(capsys, path)
    nodes = [node("Slice", ["x", "a", "b"], ["s"]), node("Add", ["x", "s"], ["t"])]
    nodes.append(node("MatMul", ["t", "w"], ["y"]))
    path = made(tmp_path / "net.onnx", nodes, {**WEIGHT, **ends, "b": np.array([3])})
    assert "runs on 2 samples and not on 8 (" in refused(capsys, path)
    path = made(tmp_path / "net.onnx", nodes, {**WEIGHT, **ends, "b": np.array([3])}, x=[2, 4])
    assert "has a batch of 2, which can't be made one of any size (" in refused(capsys, path)
    path = made(tmp_path / "net.onnx", [node("Squeeze", ["x"], ["y"])], {}, x=[1, 1, 4])
    assert "two batches at once give others than each gives" in refused(capsys, path)


def test_a_batch_of_any_size_as_paddle_writes_it(capsys, tmp_path):
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = made(tmp_path / "net.ONNX", nodes, WEIGHT, x=[-1, 4])
    assert kinds(imported(capsys, path)) == ["linear"]


@pytest.mark.parametrize(
    ("read", "end"),
    [(lambda m, x: m.out(m.rnn(x)[0]), "flatten"), (lambda m, x: m.out(x.mean(1)), "linear")],
)
def test_a_series_of_columns_is_a_line_that_is_read_as_a_sequence(capsys, tmp_path, read, end):
    network = zoo.By(read, rnn=nn.GRU(5, 5, batch_first=True), out=nn.Linear(5, 2))
    path = old(tmp_path / "net.onnx", lambda: network, torch.randn(2, 7, 5))
    described = imported(capsys, path, MSE)
    assert described["input"]["shape"] == [5, 1, 7] and kinds(described)[-1] == end


@pytest.mark.parametrize(("axis", "before"), [(1, "as_strided"), (2, "to_sequence")])
def test_a_softmax_of_an_inputs_rows_reads_a_sequence(capsys, tmp_path, axis, before):
    nodes = [
        onnx.helper.make_node("Softmax", ["x"], ["s"], axis=axis),
        onnx.helper.make_node("Flatten", ["s"], ["f"]),
        onnx.helper.make_node("MatMul", ["f", "w"], ["y"]),
    ]
    path = made(tmp_path / "net.onnx", nodes, {"w": numbers(20, 3)}, x=["n", 4, 5])
    assert kinds(imported(capsys, path))[:2] == [before, "softmax"]


def test_a_sum_of_any_number_of_values_is_added_by_twos(capsys, tmp_path):
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["a"]),
        onnx.helper.make_node("Sum", ["x", "a"], ["y_1"]),
        onnx.helper.make_node("Sum", ["y_1", "a", "x"], ["y"]),
    ]
    path = made(tmp_path / "net.onnx", nodes, {})
    assert kinds(imported(capsys, path)) == ["relu", "add", "add", "add"]


@pytest.mark.parametrize(
    ("kind", "attributes", "padding"),
    [
        ("ConvTranspose", {"kernel_shape": [4, 4], "strides": [2, 2]}, 1),
        ("ConvTranspose", {"kernel_shape": [3, 3], "strides": [2, 2]}, None),
        ("AveragePool", {"kernel_shape": [3, 3], "count_include_pad": 1}, 1),
        ("AveragePool", {"kernel_shape": [2, 2], "count_include_pad": 1}, None),
    ],
)
def test_an_image_keeps_its_size_by_auto_pad(capsys, tmp_path, kind, attributes, padding):
    size = attributes["kernel_shape"]
    read = ["x", "k", "kb"] if kind == "ConvTranspose" else ["x"]
    nodes = [
        onnx.helper.make_node(kind, read, ["c"], auto_pad="SAME_UPPER", **attributes),
        onnx.helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        onnx.helper.make_node("Flatten", ["p"], ["y"]),
    ]
    constants = {"k": numbers(3, 3, *size), "kb": numbers(3)} if len(read) > 1 else {}
    path = made(tmp_path / "net.onnx", nodes, constants, x=["n", 3, 6, 6])
    if padding is None:
        assert "auto_pad adds more zeros at one end" in refused(capsys, path, "--as-is")
    else:
        assert imported(capsys, path, "--as-is")["layers"][0]["padding"] == padding


@pytest.mark.parametrize(
    ("node", "constants", "layers"),
    [
        (
            ("LRN", {"size": 3, "alpha": 0.5, "bias": 1.5}),
            {},
            *(["multiply", "as_strided", "avg_pool2d", "affine", "sqrt", "sqrt", "multiply"],),
        ),
        (("MaxPool", {"pads": [0, 0, 1, 1]}), {}, ["max_pool2d"]),
        (
            ("AveragePool", {"pads": [1, 1, 1, 1]}),
            *({}, ["avg_pool2d", "slice", "affine", "avg_pool2d", "reciprocal"]),
        ),
        (("AveragePool", {"pads": [0, 0, 1, 1], "count_include_pad": 1}), {}, ["pad"]),
        (
            ("AveragePool", {"pads": [2, 0, 1, 1]}),
            *({}, ["pad", "avg_pool2d", "slice", "affine", "pad", "avg_pool2d", "reciprocal"]),
        ),
        *(
            (("Pad", {"mode": mode}), {"p": np.array([0, 0, 1, 2, 0, 0, 2, 1])}, [])
            for mode in ("reflect", "edge", "wrap")
        ),
        (
            ("Pad", {}),
            {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "one": np.array(1, np.float32)},
            ["affine", "pad", "affine"],
        ),
        (("GlobalMaxPool", {}), {}, ["max_pool2d", "max_pool2d", "flatten"]),
        *((((kind, {}), {"bound": np.float32(0.5)}, ["hardtanh"])) for kind in ("Max", "Min")),
        *(
            ((kind, {}), {"b": numbers(1, 4, 1, 1)}, ["as_strided", "affine", "position_embedding"])
            for kind in ("Add", "Sub", "Div")
        ),
        (("Max", {}), {}, ["flatten"]),
    ],
)
def test_small_forms_are_layers(capsys, tmp_path, node, constants, layers):
    kind, attributes = node
    if kind.endswith("Pool") and not kind.startswith("Global"):
        attributes = attributes | {"kernel_shape": [3, 3], "strides": [2, 2]}
    nodes = [
        onnx.helper.make_node(kind, ["x", *constants], ["a"], **attributes),
        onnx.helper.make_node("Flatten", ["a"], ["y"]),
    ]
    path = made(tmp_path / "net.onnx", nodes, constants, 19, x=[1, 4, 20, 18])
    assert kinds(imported(capsys, path))[: len(layers)] == layers


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("Sub", ["slice", "affine", "slice", "affine", "concatenate"]), ("Div", ["slice", "affine"])],
)
def test_what_a_graph_calculates_is_not_trained(capsys, tmp_path, kind, wanted):
    """A file's own numbers are trained, and that is said."""
    node = onnx.helper.make_node
    nodes = [
        node("Constant", [], ["each"], value_floats=[2.0, 2.0, 1.0, 1.0]),
        node(kind, ["x", "each"], ["a"]),
        node(kind, ["a", "file"], ["b"]),
        node("MatMul", ["b", "w"], ["y"]),
    ]
    path = made(tmp_path / "net.onnx", nodes, {**WEIGHT, "file": numbers(4) + 2})
    assert main(["import", str(path), "-o", str(tmp_path / "net.json")]) == 0
    notes = capsys.readouterr().err
    does = {"Sub": "subtracted", "Div": "divided by"}[kind]
    assert notes.count("numbers are") == 1 and f"4 numbers are {does} and trained" in notes
    layers = kinds(json.loads((tmp_path / "net.json").read_text("utf-8")))
    assert layers[: len(wanted)] == wanted and layers.count("position_embedding") == 1


def test_the_largest_of_several_reads_a_root_of_squares(capsys, tmp_path):
    """Squares that do not go on as a normalization by them."""
    node = onnx.helper.make_node
    nodes = [
        node("Sin", ["x"], ["s"]),
        *(node("Pow", [name, "two"], [f"{name}2"]) for name in "xs"),
        node("Add", ["x2", "s2"], ["sum"]),
        node("Sqrt", ["sum"], ["root"]),
        node("Max", ["root", "s", "half"], ["largest"]),
        node("Min", ["largest", "x"], ["y"]),
    ]
    constants = {"two": np.float32(2), "half": np.float32(0.5)}
    described = imported(capsys, made(tmp_path / "net.onnx", nodes, constants))
    larger = ["affine", "add", "relu", "add"]
    roots = ["sin", "multiply", "multiply", "add", "sqrt"]
    smaller = ["affine", "add", "relu", "affine", "add"]
    assert kinds(described) == [*roots, *larger, "hardtanh", *smaller]


def test_tokens_as_rows_of_zeros_and_a_one_are_an_embedding(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Unsqueeze", ["x", "last"], ["column"]),
        node("Equal", ["column", "each"], ["is"]),
        node("Cast", ["is"], ["one"], to=onnx.TensorProto.FLOAT),
        node("MatMul", ["one", "table"], ["rows"]),
        node("Transpose", ["rows"], ["line"], perm=[0, 2, 1]),
        node("GlobalMaxPool", ["line"], ["largest"]),
        node("Flatten", ["largest"], ["y"]),
    ]
    constants = {"last": np.array([2]), "each": np.arange(9), "table": numbers(9, 4)}
    path = made(tmp_path / "net.onnx", nodes, constants, tokens=True, x=["n", 5])
    flags = [MSE, "--input-type=tokens:9"]
    wanted = ["embedding", "to_image", "max_pool2d", "flatten"]
    assert kinds(imported(capsys, path, *flags)) == wanted
    constants["each"] = np.arange(1, 10)
    path = made(tmp_path / "net.onnx", nodes, constants, tokens=True, x=["n", 5])
    assert "it can only say of tokens which of all each is" in refused(capsys, path, *flags)


def test_caffes_factors_are_those_of_the_normalization(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["x", "k"], ["c"]),
        node("Add", ["c", "cb"], ["d"]),
        node("BatchNormalization", ["d", "s", "b", "mean", "variance"], ["n"]),
        node("Mul", ["n", "factor"], ["m"]),
        node("Add", ["m", "offset"], ["a"]),
        node("Flatten", ["a"], ["y"]),
    ]
    constants = {name: numbers(5) for name in ("s", "b", "mean")} | {"k": numbers(5, 3, 3, 3)}
    constants |= {"variance": numbers(5) ** 2, "factor": numbers(5, 1, 1)}
    constants |= {"cb": numbers(1, 5, 1, 1), "offset": numbers(1, 5, 1, 1)}
    path = made(tmp_path / "net.onnx", nodes, constants, x=["n", 3, 6, 7])
    layers = imported(capsys, path)["layers"]
    assert [layer["type"] for layer in layers] == ["conv2d", "batch_norm", "flatten"]
    assert "bias" not in layers[0]


@pytest.mark.parametrize("name", ["TorchvisionVit", "encoder", "Tagger"])
@pytest.mark.parametrize("new", [False, True])
def test_a_batch_of_one_is_freed(capsys, tmp_path, name, new):
    """In reshapes, in front of a class token, in a time-first sequence, in first states."""
    is_image = name == "TorchvisionVit"
    x = torch.randn(1, 3, 8, 8) if is_image else torch.randint(31, (1, 10))
    tokens = [] if is_image else [f"--input-type=tokens:{50 if name == 'Tagger' else 31}"]
    path = exported(tmp_path / "net.onnx", name, x, new)
    described = imported(capsys, path, *tokens, "--as-is")
    two = exported(tmp_path / "two.onnx", name, x.repeat_interleave(2, 0), new)
    assert kinds(described) == kinds(imported(capsys, two, *tokens, "--as-is"))


def test_a_weight_may_be_calculated_from_constants(capsys, tmp_path):
    """As of a quantized file, or of a weight that is normalized by a factor of its own."""
    node = onnx.helper.make_node
    nodes = [
        node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        node("Mul", ["d", "factors"], ["w"]),
        node("MatMul", ["x", "w"], ["y"]),
    ]
    constants = {"q": np.arange(12, dtype=np.uint8).reshape(4, 3), "scale": np.float32(0.1)}
    constants |= {"zero": np.uint8(5), "factors": numbers(3)}
    path = made(tmp_path / "net.onnx", nodes, constants, x=["n", 4])
    assert kinds(imported(capsys, path)) == ["linear"]


def test_a_sample_of_any_size_is_said(capsys, tmp_path):
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = made(tmp_path / "net.onnx", nodes, WEIGHT, x=["n", "columns"])
    assert "has no fixed shape of a sample; --input=SHAPE says it" in refused(capsys, path)
    assert imported(capsys, path, "--input=4")["input"]["shape"] == [4]
    assert "1 inputs and --input is given 2 times" in refused(
        capsys, path, "--input=4", "--input=4"
    )
    path = made(tmp_path / "net.onnx", nodes, WEIGHT)
    assert "the input 'x' is 4 in the file" in refused(capsys, path, "--input=5")


def test_files_that_are_none_are_refused(capsys, tmp_path):
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    assert "there is no such file" in refused(capsys, tmp_path / "absent.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"\x08\xff\xff")
    assert "can't be read as ONNX" in refused(capsys, tmp_path / "bad.onnx")
    oldest = onnx.helper.make_node("RNN", ["x", "x", "x"], ["y"], hidden_size=1)
    assert "has opset 1, and onnx makes no 13 of it: " in refused(
        capsys, made(tmp_path / "old.onnx", [oldest], {}, 1)
    )
    both = [node, onnx.helper.make_node("Sigmoid", ["x"], ["z"])]
    assert "gives 2 outputs; one can be trained" in refused(
        capsys, made(tmp_path / "two.onnx", both, {}, y=["y", "z"])
    )


def test_a_wrong_layer_is_found(capsys, tmp_path, monkeypatch):
    from crossover_bench.networks import onnx_operations  # noqa: PLC0415

    monkeypatch.setitem(onnx_operations.NODES, "Relu", onnx_operations._function("sigmoid"))
    path = exported(tmp_path / "mlp.onnx", "mlp", torch.randn(2, 20), False)
    assert "other numbers than onnx's reference evaluator, by " in refused(capsys, path)


def test_an_evaluator_that_fails_proves_nothing(capsys, tmp_path, monkeypatch):
    def fails(*_: Any) -> None:
        raise ValueError("array dimensions\nmust match")

    path = exported(tmp_path / "mlp.onnx", "mlp", torch.randn(2, 20), False)
    monkeypatch.setattr("crossover_bench.networks.onnx_proof.ReferenceEvaluator.run", fails)
    assert "so nothing proves the import: array dimensions must match" in refused(capsys, path)
