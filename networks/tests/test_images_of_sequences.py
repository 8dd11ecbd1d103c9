# SPDX-License-Identifier: Apache-2.0
"""What is turned on its way: sequences read as images or lines and back, inputs in another order,
flattened places."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402

from networks.tests import zoo  # noqa: E402
from networks.tests.proved import kinds, told  # noqa: E402
from networks.user_module import Input  # noqa: E402
from networks.values import Refused  # noqa: E402

WORDS, IMAGE, LINE = Input((8,), 31), Input((3, 8, 8)), Input((2, 24))
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


TURNED: dict[str, tuple[Any, dict[str, Any], Input, list[str]]] = {
    "words as a line": (
        lambda m, x: m.conv(m.table(x).transpose(1, 2)).amax(2),
        TABLE | {"conv": nn.Conv1d(6, 3, 3)},
        *(WORDS, ["embedding", "to_image", "conv2d", "max_pool2d", "flatten"]),
    ),
    "words as an image": (
        lambda m, x: m.conv(m.table(x).unsqueeze(1)).squeeze(3).relu().mean(2),
        TABLE | {"conv": nn.Conv2d(1, 3, (3, 6))},
        WORDS,
        ["embedding", "to_image", "conv2d", "relu", "global_avg_pool2d"],
    ),
    "a line that is cut": (
        cut,
        {"a": nn.Conv1d(2, 4, 3, padding=2), "b": nn.Conv1d(4, 4, 3), "out": nn.Linear(4, 3)},
        LINE,
        ["conv2d", "pad", "relu", "conv2d", "to_sequence", "last_place", "linear"],
    ),
    "channels last and back": (
        lambda m, x: m.b(m.norm(m.a(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)).mean((2, 3)),
        {"a": nn.Conv2d(3, 5, 2), "norm": nn.LayerNorm(5), "b": nn.Conv2d(5, 4, 3)},
        IMAGE,
        ["conv2d", "to_sequence", "layer_norm", "to_image", "conv2d", "global_avg_pool2d"],
    ),
    "products over places": (
        lambda m, x: ((y := m.table(x)) + m.mix(y.transpose(1, 2)).transpose(1, 2)).mean(1),
        TABLE | {"mix": nn.Linear(8, 8)},
        WORDS,
        ["embedding", "to_image", "linear", "to_sequence", "add", "mean_over_time"],
    ),
    "a flat sequence": (
        lambda m, x: m.out(m.table(x).view(-1, 48)),
        TABLE | {"out": nn.Linear(48, 3)},
        *(WORDS, ["embedding", "to_image", "flatten", "linear"]),
    ),
    "a flat image with its channels last": (
        lambda m, x: m.out(m.a(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1).flatten(1)),
        {"a": nn.Conv2d(3, 4, 7), "out": nn.Linear(16, 3)},
        Input((8, 8, 3)),
        ["conv2d", "to_sequence", "to_image", "flatten", "linear"],
    ),
    "a mean over channels": (
        lambda m, x: m.out(m.a(x).mean(1, keepdim=True).flatten(1)),
        {"a": nn.Conv2d(3, 4, 7), "out": nn.Linear(4, 3)},
        IMAGE,
        ["conv2d", "to_sequence", "to_image", "global_avg_pool2d", "linear"],
    ),
    "a vector as an image": (
        lambda m, x: m.up(m.fc(x).relu().view(-1, 8, 2, 2)).mean((2, 3)),
        {"fc": nn.Linear(20, 32), "up": nn.ConvTranspose2d(8, 3, 2, 2)},
        Input((20,)),
        ["linear", "relu", "to_image", "conv_transpose2d", "global_avg_pool2d"],
    ),
    "the largest over time": (
        lambda m, x: m.table(x).max(dim=1)[0],
        *(TABLE, WORDS, ["embedding", "to_image", "max_pool2d", "flatten"]),
    ),
    "an encoder that looks at its mask": (
        with_mask,
        TABLE | {"encoder": ENCODER},
        WORDS,
        [
            *("embedding", "linear", "attention", "linear", "add", "layer_norm"),
            *("linear", "relu", "linear", "add", "layer_norm"),
        ],
    ),
}


@pytest.mark.parametrize("name", TURNED)
def test_what_is_turned_comes_in(name):
    do, own, wanted, layers = TURNED[name]
    described, notes = told(zoo.By(do, **own), wanted)
    assert kinds(described) == layers and not notes


def test_an_input_is_read_in_two_shapes():
    assert kinds(told(zoo.BothWays(), Input((48,)))[0]).count("to_image") == 1


def attend(m, x, **own):
    y = m.table(x)
    return m.out(y + m.attention(y, y, y, **own)[0])


def by_einsum(m, x):
    heads = (one.unflatten(-1, (2, 3)) for one in m.qkv(m.table(x)).chunk(3, -1))
    q, k, v = heads
    weights = (torch.einsum("bihd,bjhd->bhij", q, k) * 3**-0.5).softmax(-1)
    return m.out(torch.einsum("bhij,bjhd->bihd", weights, v).flatten(2))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_that_gives_its_weights_too(causal):
    own = TABLE | {"attention": nn.MultiheadAttention(6, 2, batch_first=True)}
    mask = torch.full((8, 8), -torch.inf).triu(1).double() if causal else None
    do = lambda m, x: attend(m, x, attn_mask=mask)  # noqa: E731
    described, notes = told(zoo.By(do, **own, out=nn.Linear(6, 31)), WORDS)
    found = next(one for one in described["layers"] if one["type"] == "attention")
    assert found["num_heads"] == 2 and found.get("causal", False) == causal and not notes


def test_attention_by_einsum():
    own = TABLE | {"qkv": nn.Linear(6, 18), "out": nn.Linear(6, 31)}
    described = told(zoo.By(by_einsum, **own), WORDS)[0]
    assert kinds(described) == ["embedding", "linear", "attention", "linear"]
    with pytest.raises(Refused, match="bij,bjk->bk is no product of two results over one index"):
        told(zoo.By(lambda m, x: torch.einsum("bij,bjk->bk", y := m.table(x), y.mT), **own), WORDS)


def test_what_the_output_does_not_need_is_not_looked_at():
    network = zoo.By(lambda m, x: (m.a(x), torch.cumsum(m.a(x), 1)), a=nn.Linear(4, 3))
    assert kinds(told(network, Input((4,)), output=0)[0]) == ["linear"]


def test_a_sequence_becomes_an_image_once_for_all_who_read_it():
    own = TABLE | {"a": nn.Conv1d(6, 3, 3), "b": nn.Conv1d(6, 3, 3)}
    network = zoo.By(lambda m, x: (m.a(y := m.table(x).mT) + m.b(y)).mean(2), **own)
    assert kinds(told(network, WORDS)[0]).count("to_image") == 1


def test_an_input_is_cut_into_patches():
    network = zoo.By(patches, fc=nn.Linear(48, 5), out=nn.Linear(5, 3))
    described, _ = told(network, IMAGE)
    assert kinds(described) == ["as_strided", "linear", "mean_over_time", "linear"]
    assert described["layers"][0]["shape"] == [4, 48]


@pytest.mark.parametrize(
    ("do", "own", "wanted", "said"),
    [
        (
            lambda m, x: m.out((y := m.fc(x)) + y.detach()),
            {"fc": nn.Linear(4, 4), "out": nn.Linear(4, 3)},
            *(Input((4,)), "no gradients go through it"),
        ),
        (
            lambda m, x: m.table(x).mean(1),
            {"table": nn.Embedding(31, 6, max_norm=1.0)},
            *(WORDS, "table.weight is changed while the network runs, as max_norm does"),
        ),
    ],
)
def test_what_no_layer_does_to_gradients_and_channels_is_said(do, own, wanted, said):
    with pytest.raises(Refused, match=said):
        told(zoo.By(do, **own), wanted)
