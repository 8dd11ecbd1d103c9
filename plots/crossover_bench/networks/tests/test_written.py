# SPDX-License-Identifier: Apache-2.0
"""What users write in between their layers: what changes nothing, what is turned on its way, what a
loss has, and what would change in silence."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402

from crossover_bench.networks.tests import zoo  # noqa: E402
from crossover_bench.networks.tests.proved import kinds, told  # noqa: E402
from crossover_bench.networks.user_module import Input  # noqa: E402
from crossover_bench.networks.values import Refused  # noqa: E402

ROWS = {"fc": nn.Linear(20, 3)}
LAST = {"table": nn.Embedding(50, 8), "lstm": nn.LSTM(8, 6, batch_first=True)}
LAST |= {"out": nn.Linear(6, 3)}
LINE = {"conv": nn.Conv1d(2, 8, 3, padding=2), "out": nn.Linear(8, 3)}
PATCHES = {"stem": nn.Conv2d(3, 8, 4, 4), "norm": nn.LayerNorm(8), "fc": nn.Linear(8, 8)}
QKV = {"table": nn.Embedding(31, 8), "qkv": nn.Linear(8, 24), "out": nn.Linear(8, 31)}
WORDS, WORDS_OF_50, SERIES_OF_5 = Input((8,), 31), Input((7,), 50), Input((30, 5))
ROW, IMAGE, SIGNAL = Input((20,)), Input((3, 8, 8)), Input((2, 24))


def zeros_of(x):
    return torch.zeros(1, x.shape[0], 6)


def scores(m, x):
    q, k, v = m.qkv(m.table(x)).chunk(3, -1)
    return q, k, v, q @ k.transpose(1, 2) * torch.tensor(8.0).rsqrt()


def masked(m, x, fill=-torch.inf):
    *_, v, products = scores(m, x)
    return m.out(products.masked_fill(m.mask[:8, :8] == 0, fill).softmax(-1) @ v)


def added(m, x):
    *_, v, products = scores(m, x)
    return m.out((products + m.mask).softmax(-1) @ v)


def given(m, x, **flags):
    heads = [part.unflatten(-1, (2, 4)).transpose(1, 2) for part in m.qkv(m.table(x)).chunk(3, -1)]
    y = nn.functional.scaled_dot_product_attention(*heads, **flags)
    return m.out(y.transpose(1, 2).flatten(2))


LOWER, FROM_LATER = torch.ones(16, 16).tril(), torch.full((8, 8), -torch.inf).triu(1)
TABLE = {"table": nn.Embedding(31, 6)}
ENCODER = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 4, 0.0, batch_first=True), 1)


def cut(m, x):
    y = m.a(x)[:, :, :-2].relu()
    return m.out(m.b(y)[:, :, -1])


def with_mask(m, x):
    later = torch.zeros(8, 8).masked_fill(~torch.ones(8, 8).tril().bool(), -torch.inf)
    return m.encoder(m.table(x), later)


def patches(m, x):
    x = x.reshape(-1, 3, 2, 4, 2, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, 48)
    return m.out(m.fc(x).mean(1))


def trained(*shape):
    return nn.Parameter(torch.randn(shape))


def resampled_positions(m, x, size=(2, 2)):
    """As timm does where an image may have any size."""
    first, others = m.positions[:, :1], m.positions[:, 1:].view(1, 2, 2, 5).permute(0, 3, 1, 2)
    others = nn.functional.interpolate(others, size, mode="bicubic", antialias=True)
    table = torch.cat([first, others.permute(0, 2, 3, 1).reshape(1, -1, 5)], 1)
    y = m.conv(x).flatten(2).transpose(1, 2)
    return (torch.cat([m.cls.expand(len(x), -1, -1), y], 1) + table).mean(1)


COMES_IN: dict[str, tuple[Any, dict[str, Any], Input, str]] = {
    "to a device": (lambda m, x: m.fc(x.to("cpu").float()), ROWS, ROW, "linear"),
    "to a type": (lambda m, x: m.fc(x.to(m.fc.weight.dtype)), ROWS, ROW, "linear"),
    "by one": (lambda m, x: 0 + 1.0 * m.fc(x), ROWS, ROW, "linear"),
    "one of a tuple": (lambda m, x: (m.fc(x), None), ROWS, ROW, "linear"),
    "a row more": (lambda m, x: m.fc(x)[:, None], ROWS, ROW, "linear"),
    "zeros": (
        lambda m, x: m.out(m.lstm(m.table(x), (zeros_of(x), zeros_of(x)))[0][:, -1]),
        *(LAST, WORDS_OF_50, "embedding lstm last_place linear"),
    ),
    "last state": (
        lambda m, x: m.out(m.lstm(m.table(x))[1][0][-1]),
        *(LAST, WORDS_OF_50, "embedding lstm last_place linear"),
    ),
    "last state of two": (
        lambda m, x: m.out(m.gru(x)[1][-1]),
        {"gru": nn.GRU(5, 6, 2, dropout=0.2, batch_first=True), "out": nn.Linear(6, 3)},
        *(SERIES_OF_5, "to_sequence gru dropout gru last_place linear"),
    ),
    "time first": (
        lambda m, x: m.out(m.gru(x)[0][-1]),
        {"gru": nn.GRU(5, 6), "out": nn.Linear(6, 3)},
        Input((30, 5), batch_axis=1),
        "to_sequence gru last_place linear",
    ),
    "encoder of a series": (
        lambda m, x: m.out(m.layer(m.enter(x)).mean(1)),
        {
            "layer": nn.TransformerEncoderLayer(8, 2, 9, 0.1, batch_first=True),
            **{"enter": nn.Linear(5, 8), "out": nn.Linear(8, 3)},
        },
        SERIES_OF_5,
        (
            "to_sequence linear linear slice slice matmul softmax dropout slice matmul "
            "linear dropout add layer_norm linear relu dropout linear dropout add "
            "layer_norm mean_over_time linear"
        ),
    ),
    "steps first": (
        lambda m, x: m.out(m.conv(x.transpose(1, 2)).mean(2)),
        *(LINE, Input((24, 2)), "conv2d global_avg_pool2d linear"),
    ),
    "last of a line": (
        lambda m, x: m.out(m.conv(x)[:, :, -1]),
        *(LINE, SIGNAL, "conv2d to_sequence last_place linear"),
    ),
    "cut of a line": (
        lambda m, x: m.out(m.conv(x)[:, :, :-2].relu().mean(2)),
        *(LINE, SIGNAL),
        "conv2d pad relu global_avg_pool2d linear",
    ),
    "cut of a residual": (
        lambda m, x: (m.conv(x)[:, :, 2:-2] + m.conv2(x)).mean(2),
        *(LINE | {"conv2": nn.Conv1d(2, 8, 3)}, SIGNAL),
        "conv2d conv2d pad add global_avg_pool2d",
    ),
    "a part of an image": (
        lambda m, x: m.stem(x[:, :, 2:6, :-3].sin()).mean((2, 3)),
        *(PATCHES, IMAGE, "pad sin conv2d global_avg_pool2d"),
    ),
    "channels last": (
        lambda m, x: (
            (y := m.stem(x)) + m.fc(m.norm(y.permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
        ).mean((2, 3)),
        *(PATCHES, IMAGE),
        "conv2d to_sequence layer_norm linear add mean_over_time",
    ),
    "zeros around": (
        lambda m, x: m.stem(nn.functional.pad(x, (2, 2, 1, 1))).mean((2, 3)),
        *(PATCHES, IMAGE, "conv2d global_avg_pool2d"),
    ),
    "zeros on one side": (
        lambda m, x: m.stem(nn.functional.pad(x, (0, 1, 2, 0))).mean((2, 3)),
        *(PATCHES, IMAGE, "pad conv2d global_avg_pool2d"),
    ),
    "zeros that no convolution reads": (
        lambda m, x: nn.functional.pad(m.stem(x), (1, 1)).relu().mean((2, 3)),
        *(PATCHES, IMAGE, "conv2d pad relu global_avg_pool2d"),
    ),
    "zeros around channels": (
        lambda m, x: nn.functional.pad(m.conv(x).transpose(1, 2), (1, 2)).transpose(1, 2).mean(2),
        *(LINE, SIGNAL, "conv2d pad global_avg_pool2d"),
    ),
    "as large as before": (
        lambda m, x: m.conv(x).mean(2),
        {"conv": nn.Conv1d(2, 8, 4, padding="same")},
        *(SIGNAL, "pad conv2d global_avg_pool2d"),
    ),
    "a factor and a term": (
        lambda m, x: 2 * (1 - m.fc(x)) / 3 - 0.5,
        *(ROWS, ROW, "linear affine affine"),
    ),
    "a difference": (
        lambda m, x: -m.fc(x) - m.fc2(x).clamp(min=0),
        *(ROWS | {"fc2": nn.Linear(20, 3)}, ROW),
        "linear affine linear relu affine add",
    ),
    "the larger and the smaller": (
        lambda m, x: torch.maximum(y := m.fc(x), torch.minimum(z := m.fc2(x), y)) + z.clamp(max=1),
        *(ROWS | {"fc2": nn.Linear(20, 3)}, ROW),
        "linear linear affine add relu affine add affine add relu add hardtanh add",
    ),
    "a norm over places": (
        lambda m, x: ((y := m.a(x)) / (y.norm(dim=(2, 3), keepdim=True) + 1)).mean((2, 3)),
        {"a": nn.Conv2d(3, 4, 7)},
        IMAGE,
        "conv2d multiply global_avg_pool2d affine sqrt affine reciprocal multiply "
        "global_avg_pool2d",
    ),
    "a term and a product": (
        lambda m, x: torch.addcmul(m.a(x), m.a(x), torch.addcmul(m.q, m.p, m.a(x))).mean((2, 3)),
        {"a": nn.Conv2d(3, 4, 7), "p": trained(4, 1, 1), "q": trained(4, 1, 1)},
        *(IMAGE, "conv2d conv2d conv2d conv2d multiply add global_avg_pool2d"),
    ),
    "norm of a sequence's rows": (
        lambda m, x: m.norm((y := m.table(x)).flatten(0, 1)).reshape_as(y).mean(1),
        TABLE | {"norm": nn.BatchNorm1d(6)},
        *(WORDS, "embedding to_image batch_norm global_avg_pool2d"),
    ),
    "activations of others": (
        lambda m, x: nn.functional.selu(nn.functional.mish(nn.functional.logsigmoid(m.fc(x)))),
        *(ROWS, ROW),
        "linear affine softplus affine softplus tanh multiply elu affine",
    ),
    "norms without weights": (
        lambda m, x: m.root(m.bare(m.norm(m.fc(x)))),
        {
            "root": nn.RMSNorm(6, elementwise_affine=False),
            "bare": nn.LayerNorm(6, elementwise_affine=False),
            **{"fc": nn.Linear(20, 6), "norm": nn.LayerNorm(6, bias=False)},
        },
        *(ROW, "linear layer_norm layer_norm rms_norm"),
    ),
    "no zeros": (
        lambda m, x: nn.functional.pad(m.stem(x), (0, 0, 0, 0)).mean((2, 3)),
        *(PATCHES, IMAGE, "conv2d global_avg_pool2d"),
    ),
    "rows": (
        lambda m, x: m.out(m.table(x)).view(x.numel(), -1),
        {"table": nn.Embedding(31, 8), "out": nn.Linear(8, 31)},
        *(WORDS, "embedding linear"),
    ),
    "mask of a buffer": (
        *(masked, QKV | {"mask": LOWER}, WORDS),
        "embedding linear slice slice matmul softmax slice matmul linear",
    ),
    "mask of a low number": (
        lambda m, x: masked(m, x, -1e9),
        *(QKV | {"mask": LOWER}, WORDS),
        "embedding linear slice slice matmul softmax slice matmul linear",
    ),
    "encoder with a mask that hides nothing": (
        lambda m, x: masked(m, x, torch.finfo(torch.float32).min),
        *(QKV | {"mask": torch.ones(16, 16)}, WORDS),
        "embedding linear slice slice matmul softmax slice matmul linear",
    ),
    "in place": (lambda m, x: m.fc(x).mul_(2), ROWS, ROW, "linear affine"),
    "mask of low numbers that is added": (
        *(added, QKV | {"mask": torch.full((8, 8), -1e9).triu(1)}, WORDS),
        "embedding linear slice slice matmul softmax slice matmul linear",
    ),
    "mask that is added": (
        *(added, QKV | {"mask": FROM_LATER}, WORDS),
        "embedding linear slice slice matmul softmax slice matmul linear",
    ),
    "mask that is given": (
        lambda m, x: given(m, x, attn_mask=m.mask),
        *(QKV | {"mask": FROM_LATER}, WORDS, "embedding linear attention linear"),
    ),
    "norm of vectors": (
        lambda m, x: m.norm(m.fc(x)).relu(),
        {"fc": nn.Linear(20, 5), "norm": nn.BatchNorm1d(5)},
        *(ROW, "linear batch_norm relu"),
    ),
    # Sequences read as images or lines and back, inputs in another order, flattened places.
    "words as a line": (
        lambda m, x: m.conv(m.table(x).transpose(1, 2)).amax(2),
        TABLE | {"conv": nn.Conv1d(6, 3, 3)},
        *(WORDS, "embedding to_image conv2d max_pool2d flatten"),
    ),
    "words as an image": (
        lambda m, x: m.conv(m.table(x).unsqueeze(1)).squeeze(3).relu().mean(2),
        TABLE | {"conv": nn.Conv2d(1, 3, (3, 6))},
        WORDS,
        "embedding to_image conv2d relu global_avg_pool2d",
    ),
    "a line that is cut": (
        cut,
        {"a": nn.Conv1d(2, 4, 3, padding=2), "b": nn.Conv1d(4, 4, 3), "out": nn.Linear(4, 3)},
        SIGNAL,
        "conv2d pad relu conv2d to_sequence last_place linear",
    ),
    "channels last and back": (
        lambda m, x: m.b(m.norm(m.a(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)).mean((2, 3)),
        {"a": nn.Conv2d(3, 5, 2), "norm": nn.LayerNorm(5), "b": nn.Conv2d(5, 4, 3)},
        IMAGE,
        "conv2d to_sequence layer_norm to_image conv2d global_avg_pool2d",
    ),
    "products over places": (
        lambda m, x: ((y := m.table(x)) + m.mix(y.transpose(1, 2)).transpose(1, 2)).mean(1),
        TABLE | {"mix": nn.Linear(8, 8)},
        WORDS,
        "embedding to_image linear to_sequence add mean_over_time",
    ),
    "a flat sequence": (
        lambda m, x: m.out(m.table(x).view(-1, 48)),
        TABLE | {"out": nn.Linear(48, 3)},
        *(WORDS, "embedding to_image flatten linear"),
    ),
    "a flat image with its channels last": (
        lambda m, x: m.out(m.a(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1).flatten(1)),
        {"a": nn.Conv2d(3, 4, 7), "out": nn.Linear(16, 3)},
        Input((8, 8, 3)),
        "conv2d to_sequence to_image flatten linear",
    ),
    "a mean over channels": (
        lambda m, x: m.out(m.a(x).mean(1, keepdim=True).flatten(1)),
        {"a": nn.Conv2d(3, 4, 7), "out": nn.Linear(4, 3)},
        IMAGE,
        "conv2d to_sequence to_image global_avg_pool2d linear",
    ),
    "a vector as an image": (
        lambda m, x: m.up(m.fc(x).relu().view(-1, 8, 2, 2)).mean((2, 3)),
        {"fc": nn.Linear(20, 32), "up": nn.ConvTranspose2d(8, 3, 2, 2)},
        ROW,
        "linear relu to_image conv_transpose2d global_avg_pool2d",
    ),
    "a table of positions, resampled to its own size": (
        resampled_positions,
        *(
            {"conv": nn.Conv2d(3, 5, 4, 4), "cls": trained(1, 1, 5), "positions": trained(1, 5, 5)},
            IMAGE,
        ),
        "conv2d to_sequence class_token position_embedding mean_over_time",
    ),
    "the largest over time": (
        lambda m, x: m.table(x).max(dim=1)[0],
        *(TABLE, WORDS, "embedding to_image max_pool2d flatten"),
    ),
    "an encoder that looks at its mask": (
        with_mask,
        TABLE | {"encoder": ENCODER},
        WORDS,
        ("embedding linear attention linear add layer_norm linear relu linear add layer_norm"),
    ),
}


@pytest.mark.parametrize("name", COMES_IN)
def test_what_users_write_comes_in(name):
    do, members, wanted, layers = COMES_IN[name]
    described, notes = told(zoo.By(do, **members), wanted)
    assert " ".join(kinds(described)) == layers and not notes
    causal = [
        layer.get("causal", False) for layer in described["layers"] if "softmax" in layer["type"]
    ]
    assert all(causal) or "encoder" in name


STANDARDIZED = {"mean": torch.rand(20), "deviation": 1 + torch.rand(20), **ROWS}


@pytest.mark.parametrize(
    ("network", "wanted", "how", "layers", "note"),
    [
        (
            zoo.By(lambda m, x: nn.functional.log_softmax(m.fc(x), 1), **ROWS),
            *(ROW, {"loss": "nll"}, ["linear"], ""),
        ),
        (
            zoo.By(lambda m, x: m.fc(x).softmax(1), **ROWS),
            *(ROW, {}, ["linear"], "the softmax at its end is left out"),
        ),
        (
            zoo.By(lambda m, x: m.fc(x).sigmoid(), **ROWS),
            *(ROW, {"loss": "bce"}, ["linear"], "the sigmoid at its end is left out"),
        ),
        (
            zoo.By(lambda m, x: m.fc(x).sigmoid(), **ROWS),
            *(ROW, {"loss": "mse"}, ["linear", "sigmoid"], ""),
        ),
        (
            zoo.By(lambda m, x: m.stem(x).log_softmax(1), **PATCHES),
            *(IMAGE, {}, ["conv2d", "to_sequence"], ""),
        ),
        (
            zoo.By(lambda m, x: m.fc((x - m.mean) / m.deviation), **STANDARDIZED),
            *(ROW, {}, ["linear"], "what is done to the input first (sub and div) is"),
        ),
        (
            zoo.By(lambda m, x: m.stem(x.permute(0, 3, 1, 2) / 255).mean((2, 3)), **PATCHES),
            *(Input((8, 8, 3)), {}, ["conv2d", "global_avg_pool2d"], "(permute and div) is left"),
        ),
        (
            nn.Sequential(nn.Embedding(31, 8, padding_idx=1), nn.Linear(8, 3)),
            *(WORDS, {}, ["embedding", "linear"], "the row of padding (1) of 0 is trained"),
        ),
        (
            zoo.By(lambda m, x: (m.a(x), m.b(x).tanh()), a=nn.Linear(4, 2), b=nn.Linear(4, 3)),
            *(Input((4,)), {"output": 1}, ["linear", "tanh"], ""),
        ),
    ],
)
def test_what_changes_is_said(network, wanted, how, layers, note):
    described, notes = told(network, wanted, **how)
    assert kinds(described) == layers and (note in notes if note else not notes)


def of_a_part(m, x):
    y = m.fc(x)
    y[:, :2].relu_()
    return m.fc2(y)


def by_chance(m, x):
    return m.fc(x) if random.random() > 0.05 else m.fc(x) + m.fc(x)


@pytest.mark.parametrize(
    ("do", "members", "wanted", "sentence"),
    [
        (by_chance, ROWS, ROW, "draws from Python's or numpy's random numbers"),
        (
            lambda m, x: m.fc(x * torch.rand(20)),
            *(ROWS, ROW, r"rand \(rand, zoo.py:\d+\): it draws random numbers"),
        ),
        (
            lambda m, x: m.norm(m.fc(x)),
            {"fc": nn.Linear(20, 3), "norm": nn.BatchNorm1d(3).eval()},
            *(ROW, "it is in evaluation"),
        ),
        (
            lambda m, x: nn.functional.linear(x, m.fc.weight * m.scale),
            *(
                ROWS | {"scale": nn.Parameter(torch.ones(3, 1))},
                ROW,
                "its weight is calculated, not",
            ),
        ),
        (
            lambda m, x: (
                setattr(m.fc.weight, "data", torch.renorm(m.fc.weight.data, 2, 0, 0.1)) or m.fc(x)
            ),
            *(ROWS, ROW, "or sets weight.data"),
        ),
        (
            lambda m, x: m.out(m.lstm(m.table(x))[1][1][-1]),
            *(LAST, WORDS_OF_50, "reads the cell's last state, which no layer gives"),
        ),
        (
            lambda m, x: m.fc(nn.functional.pad(m.fc(x), (0, 17))),
            *(ROWS, ROW, "zeros can be put around images and lines"),
        ),
        (
            *(of_a_part, {"fc": nn.Linear(4, 4), "fc2": nn.Linear(4, 3)}, Input((4,))),
            "it changes a part of what fc gives in place",
        ),
        (lambda m, x: m.fc(x).clamp(2, 1), ROWS, ROW, "between 2 and 1"),
        (lambda m, x: nn.functional.softplus(m.fc(x), 1, 2), ROWS, ROW, "threshold is 2"),
        (
            lambda m, x: m.out((y := m.fc(x)) + y.detach()),
            {"fc": nn.Linear(4, 4), "out": nn.Linear(4, 3)},
            *(Input((4,)), "no gradients go through it"),
        ),
        (
            lambda m, x: masked(m, x, -1.0),
            *(QKV | {"mask": LOWER}, WORDS, "only a mask of -inf, or of -10000 and less, is known"),
        ),
        (
            lambda m, x: m.table(x).mean(1),
            {"table": nn.Embedding(31, 6, max_norm=1.0)},
            *(WORDS, "table.weight is changed while the network runs, as max_norm does"),
        ),
    ],
)
def test_what_would_change_in_silence_is_refused(do, members, wanted, sentence):
    with pytest.raises(Refused, match=sentence):
        told(zoo.By(do, **members), wanted)


def test_dropout_of_attention_weights_is_a_layer():
    described, _ = told(zoo.By(lambda m, x: given(m, x, dropout_p=0.1), **QKV), WORDS)
    assert "attention" not in kinds(described) and kinds(described).count("dropout") == 1


def test_a_loss_reads_what_it_is_to_read():
    for flags, sentence in (
        ({"loss": "nll"}, "the network's output is no log_softmax"),
        ({"output": 1}, "the network gives 1 output, and --output=1 counts from 0"),
    ):
        with pytest.raises(Refused, match=sentence):
            told(zoo.mlp(), ROW, **flags)


def test_an_input_is_read_in_two_shapes():
    assert kinds(told(zoo.BothWays(), Input((48,)))[0]).count("to_image") == 1


def attend(m, x, **flags):
    y = m.table(x)
    return m.out(y + m.attention(y, y, y, **flags)[0])


def by_einsum(m, x):
    heads = (part.unflatten(-1, (2, 3)) for part in m.qkv(m.table(x)).chunk(3, -1))
    q, k, v = heads
    weights = (torch.einsum("bihd,bjhd->bhij", q, k) * 3**-0.5).softmax(-1)
    return m.out(torch.einsum("bhij,bjhd->bihd", weights, v).flatten(2))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_that_gives_its_weights_too(causal):
    members = TABLE | {"attention": nn.MultiheadAttention(6, 2, batch_first=True)}
    mask = torch.full((8, 8), -torch.inf).triu(1).double() if causal else None
    do = lambda m, x: attend(m, x, attn_mask=mask)  # noqa: E731
    described, notes = told(zoo.By(do, **members, out=nn.Linear(6, 31)), WORDS)
    attention = next(layer for layer in described["layers"] if layer["type"] == "attention")
    assert attention["num_heads"] == 2 and attention.get("causal", False) == causal and not notes


def in_windows(m, x):
    """Which lie in the batch, beside heads."""
    q, k, v = m.qkv(m.table(x)).view(-1, 4, 3, 2, 3).permute(2, 0, 3, 1, 4)
    y = nn.functional.scaled_dot_product_attention(q, k, v)
    return m.out(y.transpose(1, 2).reshape(len(x), -1, 6))


def test_attention_in_windows():
    members = TABLE | {"qkv": nn.Linear(6, 18), "out": nn.Linear(6, 31)}
    described = told(zoo.By(in_windows, **members), WORDS)[0]
    (weights,) = [layer for layer in described["layers"] if layer["type"] == "softmax"]
    assert weights["num_heads"] == 4 and kinds(described).count("matmul") == 2


def shifted(m, x):
    """Windows of an image that is rolled, and rolled back."""
    y = torch.roll(m.stem(x).permute(0, 2, 3, 1), (-1, -1), (1, 2))
    windows = y.view(-1, 5, 2, 5, 2, 6).transpose(2, 3).reshape(-1, 4, 6)
    q, k, v = m.qkv(windows).reshape(-1, 4, 3, 2, 3).permute(2, 0, 3, 1, 4)
    y = ((q @ k.mT + m.near) / 3).softmax(-1) @ v
    y = y.transpose(1, 2).reshape(-1, 5, 5, 2, 2, 6).transpose(2, 3).reshape(-1, 10, 10, 6)
    return m.out(torch.roll(y, (1, 1), (1, 2)).mean((1, 2)))


def test_attention_in_windows_that_are_shifted():
    members = {"stem": nn.Conv2d(3, 6, 1), "qkv": nn.Linear(6, 18), "out": nn.Linear(6, 3)}
    near = nn.Parameter(torch.randn(2, 4, 4))
    described, _ = told(zoo.By(shifted, **members, near=near), Input((3, 10, 10)))
    assert kinds(described).count("matmul") == 2


def test_attention_by_einsum():
    members = TABLE | {"qkv": nn.Linear(6, 18), "out": nn.Linear(6, 31)}
    described = told(zoo.By(by_einsum, **members), WORDS)[0]
    assert kinds(described) == ["embedding", "linear", "attention", "linear"]
    with pytest.raises(Refused, match="bi,i->b is no product of two results over one index"):
        told(
            zoo.By(
                lambda m, x: torch.einsum("bi,i->b", m.fc(x), m.b),
                **ROWS,
                b=nn.Parameter(torch.ones(3)),
            ),
            ROW,
        )
    with pytest.raises(Refused, match="bij,bjk->bk is no product of two results over one index"):
        told(
            zoo.By(lambda m, x: torch.einsum("bij,bjk->bk", y := m.table(x), y.mT), **members),
            WORDS,
        )


def test_what_the_output_does_not_need_is_not_looked_at():
    network = zoo.By(lambda m, x: (m.a(x), torch.cumsum(m.a(x), 1)), a=nn.Linear(4, 3))
    assert kinds(told(network, Input((4,)), output=0)[0]) == ["linear"]


def test_a_sequence_becomes_an_image_once_for_all_who_read_it():
    members = TABLE | {"a": nn.Conv1d(6, 3, 3), "b": nn.Conv1d(6, 3, 3)}
    network = zoo.By(lambda m, x: (m.a(y := m.table(x).mT) + m.b(y)).mean(2), **members)
    assert kinds(told(network, WORDS)[0]).count("to_image") == 1


@pytest.mark.parametrize("batch_axis", [0, 1])
def test_two_series_are_sequences(batch_axis):
    network = nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=batch_axis == 0)
    series = Input((5, 8), 0, batch_axis), Input((4, 8), 0, batch_axis)
    described, _ = told(network, *series, loss="mse")
    assert kinds(described)[:4] == ["to_sequence", "slice", "linear", "attention"]
    assert described["input"]["shape"] == [8, 1, 9] and "as_strided" not in kinds(described)


def test_an_input_is_cut_into_patches():
    network = zoo.By(patches, fc=nn.Linear(48, 5), out=nn.Linear(5, 3))
    described, _ = told(network, IMAGE)
    assert kinds(described) == ["as_strided", "linear", "mean_over_time", "linear"]
    assert described["layers"][0]["shape"] == [4, 48]


@pytest.mark.parametrize(
    "do",
    [
        lambda m, x: nn.functional.normalize(m.fc(x), dim=-1),
        lambda m, x: m.fc(x).clamp_max(0.5).clamp_min(-0.25),
    ],
)
def test_numbers_are_held_from_one_side(do):
    network = zoo.By(lambda m, x: m.out(do(m, x)), fc=nn.Linear(20, 4), out=nn.Linear(4, 3))
    assert "hardtanh" in kinds(told(network, ROW)[0])


def test_scores_of_attention_have_a_factor_that_is_trained():
    def warmed(m, x):
        *_, v, products = scores(m, x)
        return m.out((products * m.heat).softmax(-1) @ v)

    network = zoo.By(warmed, **QKV, heat=nn.Parameter(torch.full((1,), 0.5)))
    assert kinds(told(network, WORDS)[0]).count("matmul") == 2


def test_a_log_softmax_that_no_loss_has_is_two_layers():
    network = zoo.By(lambda m, x: m.out(m.fc(x).log_softmax(-1)), **ROWS, out=nn.Linear(3, 3))
    assert kinds(told(network, ROW)[0]) == ["linear", "softmax", "log", "linear"]


def test_all_outputs_are_trained_as_one_row():
    heads = {"of_all": nn.Linear(8, 3), "each": nn.Conv2d(8, 2, 1)}
    network = zoo.By(
        lambda m, x: {"each": m.each(y := m.conv(x)), "all": [m.of_all(y.mean((2, 3)))]},
        **(heads | {"conv": nn.Conv2d(3, 8, 3)}),
    )
    described, _ = told(network, IMAGE, loss="mse", output="all")
    assert described["outputs"] == 2 * 36 + 3 and kinds(described)[-1] == "concatenate"
    with pytest.raises(Refused, match="one of its outputs is a single number for all samples"):
        told(zoo.By(lambda m, x: (m.fc(x), x.mean()), **ROWS), ROW, loss="mse", output="all")
