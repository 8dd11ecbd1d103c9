# SPDX-License-Identifier: Apache-2.0
"""Import from PyTorch, where torch is installed: what users write, what is refused, the proof."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402

from crossover_bench.networks import from_torch, proof, torch_operations  # noqa: E402
from crossover_bench.networks.from_torch import Graph  # noqa: E402
from crossover_bench.networks.tests import zoo, zoo_of_tokens  # noqa: E402
from crossover_bench.networks.tests.proved import ZOO, imported, kinds, refused, told  # noqa: E402
from crossover_bench.networks.user_module import Input, exported  # noqa: E402
from crossover_bench.networks.values import Refused  # noqa: E402
from crossover_bench.peers.pytorch import networks as modules  # noqa: E402
from crossover_bench.peers.tests import NETWORKS  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


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


WORDS = "--input=8 --input-type=tokens:9"
TOKENS, IMAGE_8 = "--input=5 --input-type=tokens:31", "--input=3x8x8"
TAGGED = "--input=7 --input-type=tokens:50"
PAIR = "--input=scalar --input-type=tokens:50 --input=scalar --input-type=tokens:70"
MSE, BCE = "--loss-function=mse", "--loss-function=bce"
TWICE = "conv2d batch_norm relu conv2d batch_norm relu"
GROUPS = TWICE.replace("batch", "group")
SERIES = (
    "conv2d batch_norm relu max_pool2d conv2d relu add conv2d relu add global_avg_pool2d linear "
    "relu linear sigmoid multiply avg_pool2d max_pool2d flatten global_avg_pool2d concatenate "
    "linear"
)
LONGER = "conv2d relu group_norm conv_transpose2d group_norm upsample add conv2d"
SQUEEZE = "conv2d global_avg_pool2d linear relu linear sigmoid multiply global_avg_pool2d linear"
UNET = f"{TWICE} {f'max_pool2d {TWICE} ' * 2}{f'conv_transpose2d concatenate {TWICE} ' * 2}conv2d"
TOWER = "slice embedding first_place linear relu linear"
BLOCK = "layer_norm linear attention linear add layer_norm linear gelu linear add"
DROPPED = "layer_norm linear attention linear dropout add layer_norm linear gelu dropout linear add"
ENCODED = "linear attention linear add layer_norm linear relu linear add layer_norm"
LABELLED = {"labels": [7], "input": {"shape": [7], "type": "i32"}, "classes": 9}
OF_TOKENS = {"outputs": 1, "input": {"shape": [2], "type": "i32"}}
# What the command imports, its flags, the types of layers, and some other facts. Sizes are proved.
OF_ZOO: dict[str, tuple[str, str, dict[str, Any]]] = {
    "grouped": ("--input=4x8x8", "conv2d conv2d global_avg_pool2d linear", {}),
    "Inception": (
        "--input=2x6x8",
        f"{TWICE} max_pool2d avg_pool2d conv2d batch_norm relu concatenate avg_pool2d flatten "
        "linear",
        {"classes": 5},
    ),
    "Vgg": (
        "--input=3x32x32",
        f"{'conv2d batch_norm relu max_pool2d ' * 2}{f'{TWICE} max_pool2d ' * 3}"
        "global_avg_pool2d linear relu dropout linear relu dropout linear",
        {"classes": 10},
    ),
    # A line is an image of height 1.
    "Series": ("--input=2x32", SERIES, {"input": {"shape": [2, 1, 32], "type": "f32"}}),
    "flat_series": ("--input=32", SERIES, {"input": {"shape": [1, 1, 32], "type": "f32"}}),
    "by_hand": ("--input=4", "linear tanh affine affine multiply linear", {}),
    "signal": ("--input=3x20", "conv2d gelu to_sequence lstm last_place linear", {}),
    "Coder": (f"--input=2x10 {MSE}", f"{LONGER} flatten", {"outputs": 20}),
    "coder_of_classes": (
        *("--input=2x10", f"{LONGER} to_sequence", {"labels": [10], "classes": 5}),
    ),
    # Sequences come time first, whatever the original does.
    **dict.fromkeys(("Tagger", "per_class"), (TAGGED, "embedding lstm lstm linear", LABELLED)),
    "time_first": (f"{TAGGED} --batch-axis=1", "embedding lstm lstm linear", LABELLED),
    "gated": (TAGGED, "embedding gru gru linear", LABELLED),
    "last_word": (WORDS, "embedding lstm last_place linear", {}),
    "second_word": (WORDS, "embedding lstm slice first_place linear", {}),
    "one_number": (
        *(f"--input=4 {MSE}", "linear relu linear"),
        {"loss": "mse", "outputs": 1, "classes": None},
    ),
    # Transformers, gates and what joins.
    "encoder": (TOKENS, f"embedding {ENCODED} {ENCODED} mean_over_time linear", {}),
    "Vit": (IMAGE_8, f"conv2d to_sequence position_embedding {BLOCK} mean_over_time linear", {}),
    "TorchvisionVit": (
        IMAGE_8,
        f"conv2d to_sequence class_token position_embedding dropout {DROPPED} {DROPPED} "
        "layer_norm first_place linear",
        {},
    ),
    "ByHand": (
        "--input=8 --input-type=tokens:31",
        "embedding rms_norm linear attention linear",
        {},
    ),
    "llama": (
        *(TOKENS, "embedding rms_norm rms_norm linear silu linear multiply linear linear", {}),
    ),
    "Separate": (TOKENS, "embedding linear linear linear matmul softmax matmul linear", {}),
    "heads_apart": (
        *(TOKENS, "embedding linear linear linear matmul softmax dropout matmul linear", {}),
    ),
    "asking": (
        TOKENS,
        "embedding lstm last_place linear matmul softmax matmul linear softmax multiply linear",
        {},
    ),
    **dict.fromkeys(("squeeze", "squeeze_conv"), (IMAGE_8, SQUEEZE, {})),
    "towers": (
        "--input=9",
        "linear relu linear linear relu linear concatenate linear concatenate linear",
        {},
    ),
    "dense": (
        IMAGE_8,
        "conv2d conv2d relu concatenate conv2d relu concatenate global_avg_pool2d linear",
        {},
    ),
    "lazy": (IMAGE_8, "conv2d flatten linear", {}),  # a batch says how large it is
    "group_norm": ("--input=4x3x5", "group_norm relu group_norm global_avg_pool2d linear", {}),
    # Images that become larger.
    "Larger": (
        "--input=2x3x5",
        "conv_transpose2d relu conv_transpose2d upsample upsample interpolate interpolate "
        "global_avg_pool2d",
        {},
    ),
    "UNet": (IMAGE_8, f"{UNET} to_sequence", {"classes": 3, "labels": [64]}),
    "unet_of_masks": (f"{IMAGE_8} {MSE}", f"{UNET} flatten", {"outputs": 64, "labels": None}),
    "unet_by_upsampling": (
        f"{IMAGE_8} {BCE}",
        f"{GROUPS} {f'max_pool2d {GROUPS} ' * 2}{f'upsample conv2d concatenate {GROUPS} ' * 2}"
        "conv2d flatten",
        {"outputs": 64, "labels": None},
    ),
    # Several inputs, and parts of values.
    "Recommender": (f"{PAIR} {BCE}", f"{TOWER} {TOWER} multiply linear", OF_TOKENS),
    "recommender_side_by_side": (
        *(f"{PAIR} {BCE}", f"{TOWER} {TOWER} concatenate linear", OF_TOKENS),
    ),
    "dot": (f"{PAIR} {MSE}", f"{'slice embedding first_place ' * 2}matmul", OF_TOKENS),
    "vectors": (
        "--input=5 --input=3 --input=scalar",
        "slice linear relu slice linear tanh add slice slice concatenate linear",
        {"input": {"shape": [9], "type": "f32"}},
    ),
    "images": (
        "--input=3x6x6 --input=1x6x6",
        "slice conv2d slice conv2d add global_avg_pool2d linear",
        {"input": {"shape": [4, 6, 6], "type": "f32"}},
    ),
    "columns": (
        "--input=3 --input-type=tokens:7",
        f"{'slice embedding first_place ' * 3}concatenate linear",
        {},
    ),
    "channels": (
        "--input=3x6x6",
        "conv2d slice conv2d relu slice concatenate global_avg_pool2d linear",
        {},
    ),
}


@pytest.mark.parametrize("name", OF_ZOO)
def test_networks_of_users_are_their_layers(capsys, name):
    flags, layers, facts = OF_ZOO[name]
    described = imported(capsys, name, *flags.split())
    assert " ".join(kinds(described)) == layers
    assert {key: described.get(key) for key in facts} == facts


def test_an_input_is_what_reads_it():
    described = proved(zoo.two_signals(), Input((2, 9)), Input((1, 9)))
    assert described["input"]["shape"] == [3, 1, 9] and kinds(described).count("slice") == 2
    described = proved(zoo.FlatImage(), Input((48,)))
    assert described["input"]["shape"] == [1, 6, 8]
    assert kinds(described) == [
        *("conv2d", "flatten", "max_pool2d", "flatten", "concatenate", "linear")
    ]


@pytest.mark.parametrize(
    ("network", "ending"),
    [
        (
            zoo.By(
                lambda m, x: m.out(m.lstm(x)[0]),
                lstm=nn.LSTM(5, 6, batch_first=True),
                out=nn.Linear(6, 2),
            ),
            ["linear", "to_image", "flatten"],
        ),
        (zoo.By(lambda m, x: m.fc(x.mT).mT, fc=nn.Linear(7, 4)), ["linear", "flatten"]),
    ],
)
def test_a_mean_over_numbers_of_each_step_is_one_over_a_row(network, ending):
    described = proved(network, Input((7, 5)), loss="mse")
    assert [*kinds(described)[-len(ending) :], "labels" in described] == [*ending, False]
    assert described["outputs"] == (14 if len(ending) == 3 else 20)


def test_a_single_number_is_no_class(capsys):
    assert "--loss-function=mse" in refused(capsys, "one_number", "--input=4")


@pytest.mark.parametrize("model", [name for name in NETWORKS if "s" not in name.split("-")])
def test_the_networks_of_bench_come_back(model):
    """But for names, where a table starts that nothing is tied to, and that PyTorch has no module
    for the mean of channels."""
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
        reads = {"inputs": [numbers[name] for name in layer["inputs"]]} if "inputs" in layer else {}
        tied = {"tied": numbers[layer["tied"]]} if "tied" in layer else {}
        layers.append({**layer, **reads, **tied, "name": str(number)})
    if not any("tied" in layer for layer in layers):
        for layer in layers:
            layer.pop("scaled_start", None)
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
    "leaky_relu": nn.LeakyReLU(0.2),
    "elu": nn.ELU(0.5),
    "softplus": nn.Softplus(),
    "hardtanh": nn.Hardtanh(-0.5, 2.0),
}


def proved(network: nn.Module, *wanted: Input, loss: str = "cross-entropy") -> dict[str, Any]:
    return told(network, *wanted, loss=loss)[0]


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activations(kind):
    norm = nn.Sequential(
        nn.Linear(4, 6), nn.LayerNorm(6), ACTIVATIONS[kind], nn.Linear(6, 3, bias=False)
    )
    described = proved(norm, Input((4,)))
    assert kinds(described) == ["linear", "layer_norm", kind, "linear"]
    assert described["layers"][-1]["bias"] is False


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_transformer_of_words(by_hand):
    described = proved(zoo_of_tokens.Gpt(by_hand=by_hand), Input((10,), 31))
    assert " ".join(kinds(described)) == f"embedding position_embedding {BLOCK} linear"
    assert described["layers"][-1]["bias"] is False
    attention = next(layer for layer in described["layers"] if layer["type"] == "attention")
    assert attention | {"name": ""} == {
        "name": "",
        "type": "attention",
        "num_heads": 3,
        "causal": True,
    }


def test_a_tied_product_names_the_embedding():
    network, wanted = zoo_of_tokens.Tied().double(), Input((5,), 31)
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


# ---- several inputs, and parts of values


def test_parts_of_an_input_are_called_as_the_arguments(capsys):
    layers = imported(capsys, "Recommender", *PAIR.split(), BCE)["layers"]
    assert [layer for layer in layers if layer["type"] == "slice"] == [
        {"name": "user", "type": "slice", "to": 1},
        {"name": "item", "type": "slice", "from": 1, "to": 2, "inputs": ["input"]},
    ]


@pytest.mark.parametrize("axis", [0, 1])
def test_tokens_of_several_places_and_one(axis):
    seen = zoo_of_tokens.history()
    wanted = [Input((5,), 70, axis), Input((1,), 70, axis)]
    if axis == 1:
        seen.forward = lambda old, new, plain=seen.forward: plain(old.T, new.T)
    described = proved(seen, *wanted, loss="bce")
    assert described["input"]["shape"] == [6]
    assert kinds(described).count("slice") == 2 and kinds(described)[-2:] == [
        *("concatenate", "linear")
    ]


def test_parts_are_slices(capsys):
    described = imported(capsys, "halves", *TOKENS.split())
    slices = [layer for layer in described["layers"] if layer["type"] == "slice"]
    assert [
        {k: layer[k] for k in ("from", "to", "over_time") if k in layer} for layer in slices
    ] == [
        {"from": 8, "to": 16},
        {"to": 8},
        {"from": 1, "to": 4, "over_time": True},
        {"from": 1, "to": 6},
    ]


def test_images_become_larger_in_groups():
    layers = proved(zoo.Larger(groups=2), Input((2, 3, 5)))["layers"]
    assert [layer.get("groups") for layer in layers[:3]] == [None, None, 2]


@pytest.mark.parametrize(
    "pool", [nn.MaxPool2d(3), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2), nn.AdaptiveMaxPool2d(2)]
)
def test_a_pool_that_reads_the_batch_as_channels_is_refused(pool):
    """It was a wrong network, or an internal error."""
    with pytest.raises(Refused, match=r"reads \[2, 6, 6\] as channels without a batch; 4 dimen"):
        told(nn.Sequential(pool, nn.Flatten(), nn.LazyLinear(3)), Input((6, 6)))


def test_any_exception_of_the_walk_is_a_sentence(capsys, monkeypatch):
    fails = torch_operations.CALLS | {"relu": lambda call: 1 / 0}
    monkeypatch.setattr(from_torch, "CALLS", fails)
    line = line_of("F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)")
    assert refused(capsys, "Cnn", "--input=1x16x16") == (
        f"relu zoo.py:{line}: it can't be imported as it is used here (ZeroDivisionError: division "
        "by zero)"
    )
    monkeypatch.undo()
    monkeypatch.setattr(proof, "rebuilt", lambda *_: 1 / 0)
    assert "zoo.py:mlp can't be imported: ZeroDivisionError: " in refused(
        capsys, "mlp", "--input=20"
    )


def test_a_part_that_is_kept_out_of_autocast_is_as_the_others():
    def do(m, x):
        with torch.autocast("cpu", enabled=False):
            y = m.fc(x).relu()
        return m.out(y)

    described, _ = told(zoo.By(do, fc=nn.Linear(12, 6), out=nn.Linear(6, 3)), Input((12,)))
    assert kinds(described) == ["linear", "relu", "linear"]


@pytest.mark.parametrize(
    ("norm", "eps"),
    [
        (nn.InstanceNorm2d(4), {}),
        (nn.InstanceNorm2d(4, eps=1e-3), {"eps": 1e-3}),
        (nn.GroupNorm(2, 4, affine=False), {}),
    ],
)
def test_channels_without_weights_are_rows_of_a_norm(norm, eps):
    do = lambda m, x: m.out(m.norm(m.conv(x)).relu().mean((2, 3)))  # noqa: E731
    conv, out = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)
    described, _ = told(zoo.By(do, conv=conv, norm=norm, out=out), Input((3, 8, 8)))
    assert kinds(described)[:4] == ["conv2d", "as_strided", "layer_norm", "relu"]
    layer = described["layers"][2]
    assert {**layer, "name": ""} == {
        **{"name": "", "type": "layer_norm", "elementwise_affine": False},
        **eps,
    }


# ---- what is refused

IMAGE = Input((2, 16, 16))
NO_LAYER: dict[str, nn.Module] = {
    "(max_pool2d, zoo.py:{}): its windows have 256 places; 255 are the most": nn.MaxPool2d(16),
    "(pad, zoo.py:{}): it adds -inf around an image": nn.ConstantPad2d(1, -float("inf")),
    "padding is 1, and can only be below 1": nn.Conv2d(2, 4, 1, padding=1),
    "images of 16 by 16 can only become larger by whole factors": nn.Upsample(size=(32, 24)),
    "(upsample_bicubic2d, zoo.py:{}): it interpolates between pixels": nn.Upsample(
        size=32, mode="bicubic"
    ),
    "it makes of 16 by 16 pixels 24.8 by 24.8": nn.Upsample(scale_factor=1.55, mode="bilinear"),
    "output_padding is 2, and can only be below the stride": nn.ConvTranspose2d(
        2, 4, 3, stride=2, output_padding=2, dilation=3
    ),
}


@pytest.mark.parametrize("sentence", NO_LAYER)
def test_what_no_layer_has_is_named_with_its_place(sentence):
    layer = NO_LAYER[sentence]
    with pytest.raises(Refused) as refusal:
        told(zoo.Image(layer, getattr(layer, "out_channels", 2)), IMAGE)
    assert sentence.format(line_of("self.fc(self.layer(x).mean((2, 3)))")) in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "flags", "sentence"),
    [
        ("two", ["--input=4"], "the network gives 2 outputs; one tensor can be trained"),
        (
            "both",
            ["--input=scalar", "--input-type=tokens:9", "--input=4", "--input-type=numbers"],
            "some inputs are tokens and others numbers; a network has inputs of one kind",
        ),
        (
            "vectors",
            ["--input=5", "--input=3x4"],
            "the network can't be run on a batch [2, 5] and [2, 3, 4]: ",
        ),
        ("stacked", ["--input=4"], "the network gives [4, 3] for a batch of 2"),
        (
            "depends",
            ["--input=4"],
            f"torch.export can't follow the network: it decides by the numbers of a tensor, as "
            f"`if x.sum() > 0:` does (zoo.py:{line_of('if x.sum() > 0 else')})",
        ),
        (
            "fails",
            ["--input=4"],
            "zoo.py:fails can't be called: ValueError: no weights here (zoo.py:",
        ),
        (
            "no_module",
            ["--input=4"],
            "zoo.py:no_module gives a value of type dict, and no torch.nn.Module",
        ),
        ("huge", ["--input=4"], "zoo.py:huge has 1,600,040,000 parameters; 10^9 are the most"),
        ("absent", ["--input=4"], "zoo.py has nothing named 'absent'; it has By, mlp, "),
        ("nothing", ["--input=4"], "zoo.py:nothing is nothing to call"),
        ("mlp", ["--input=21"], "the network can't be run on a batch [2, 21]: RuntimeError: "),
        (
            "Tagger",
            ["--input=7", "--input-type=tokens:99"],
            "the network can't be run on a batch [2, 7]: ",
        ),
        ("ResNet", ["--input=20"], "--input and --input-type say what it reads"),
        ("unshifted", ["--input=4"], "it needs factors and a bias, or neither"),
        ("spectral", ["--input=4"], "remove_parametrizations(..., 'weight')"),
        (
            "summed",
            ["--input=4"],
            f"cumsum (cumsum, zoo.py:{line_of('this line is named')}): there is no such layer",
        ),
    ],
)
def test_a_network_that_cannot_be_had_ends_in_one_sentence(capsys, name, flags, sentence):
    assert sentence in refused(capsys, name, *flags)


def test_a_normalization_has_its_own_epsilon():
    network = zoo.Image(nn.BatchNorm2d(2, momentum=0.01, eps=1e-3), 2)
    layer = {"name": "layer", "type": "batch_norm", "eps": 1e-3}
    assert layer in proved(network, IMAGE)["layers"]


# ---- the proof


def test_a_wrong_layer_is_found_and_named(capsys, monkeypatch):
    monkeypatch.setitem(torch_operations.CALLS, "relu", torch_operations.CALLS["sigmoid"])
    sentence = refused(capsys, "Cnn", "--input=1x16x16")
    assert sentence.endswith("other numbers than the original: first relu (sigmoid)")


def test_a_wrong_pooling_is_found_behind_right_layers(capsys, monkeypatch):
    wrong = lambda call: torch_operations._pool(call, "avg_pool2d", call.value())  # noqa: E731
    monkeypatch.setitem(torch_operations.CALLS, "max_pool2d", wrong)
    assert "first maxpool (avg_pool2d)" in refused(capsys, "ResNet", "--input=3x32x32")


def test_gradients_are_compared_too():
    network = torch.nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).double()
    wanted = Input((4,))
    graph = Graph(exported(network, wanted), wanted)
    described = graph.build.described("x", graph.output, "cross-entropy")
    network[0].weight.register_hook(lambda gradient: gradient * (1 + 1e-6))
    with pytest.raises(Refused, match=r"other gradients .* first that of 0\.weight, by 1\.0e-06"):
        proof.prove(network, graph, described, wanted)


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (lambda x: x + x[:3], r"runs on 2 samples and not on 8 \(The size of tensor"),
        (lambda x: x[:3], "of 8 samples it gives 3 results"),
        (lambda x: x * len(x), "other numbers than the original for 8 samples"),
    ],
)
def test_more_samples_are_compared_than_an_import_has(part, sentence):
    network = zoo.By(lambda m, x: m.fc(part(x)), fc=nn.Linear(4, 3))
    with pytest.raises(Refused, match=sentence):
        proved(network, Input((4,)))


def in_place(m, x):
    y = m.a(x)
    rows = y.view(-1, 4)
    torch.relu_(y)
    return m.b(rows + y)


def test_an_operation_in_place_changes_what_others_saw():
    members = {"a": nn.Linear(4, 4), "b": nn.Linear(4, 3)}
    described = proved(zoo.By(in_place, **members), Input((4,)))
    assert kinds(described) == ["linear", "relu", "add", "linear"]
    assert described["layers"][2]["inputs"] == ["relu", "relu"]
