# SPDX-License-Identifier: Apache-2.0
"""Biases on attention's scores, and what depends on no sample: layers over parameters and
constants."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402

from crossover_bench.networks.tests import zoo  # noqa: E402
from crossover_bench.networks.tests.proved import kinds, told  # noqa: E402
from crossover_bench.networks.user_module import Input  # noqa: E402

SIDE, HEADS = 3, 2  # of the grid whose places attend to one another
PLACES = SIDE * SIDE
WORDS = Input((PLACES,), 31)
MEMBERS = {"table": nn.Embedding(31, 6), "out": nn.Linear(6, 3)}
rows, columns = torch.arange(PLACES) // SIDE, torch.arange(PLACES) % SIDE
down, across = (along[:, None] - along for along in (rows, columns))
WIDE = 2 * SIDE - 1
INDEX = (down + SIDE - 1) * WIDE + across + SIDE - 1  # of each distance


def heads(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def attended(m, y, bias):
    """Written out, as timm has it for a bias."""
    scores = (y * 0.7) @ y.transpose(-2, -1) + bias
    return m.out((scores.softmax(-1) @ y).transpose(1, 2).flatten(2))


def of_swin(m, x):
    y = heads(m.table(x))
    bias = m.p[INDEX.view(-1)].view(PLACES, PLACES, -1).permute(2, 0, 1)
    return attended(m, y, bias.unsqueeze(0))


def of_coatnet(m, x):
    """A product with constants chooses the distances."""
    apart = torch.arange(WIDE)
    chosen = torch.arange(SIDE)[:, None] - torch.arange(SIDE) + SIDE - 1
    lookup = (chosen[..., None] == apart).double()
    bias = torch.einsum("nhw,ixh->nixw", m.p, lookup)
    bias = torch.einsum("nixw,jyw->nijxy", bias, lookup).reshape(1, HEADS, PLACES, PLACES)
    y = heads(m.table(x))
    mixed = nn.functional.scaled_dot_product_attention(y, y, y, attn_mask=bias)
    return m.out(mixed.transpose(1, 2).flatten(2))


def of_levit(m, x):
    return attended(m, heads(m.table(x)), m.p[:, down.abs() * SIDE + across.abs()])


def of_every_second(m, x):
    """Whose queries are every second place of a larger grid."""
    y, few = heads(m.table(x)), [0, 2, 6, 8]
    bias = m.p[:, (down.abs() * SIDE + across.abs())[few]]
    scores = y[:, :, few] @ y.transpose(-2, -1) + bias
    return m.out((scores.softmax(-1) @ y).transpose(1, 2).flatten(2)).mean(1)


def of_a_network(m, x):
    """As in Swin's second version, after a logarithm."""
    y = heads(m.table(x))
    apart = torch.arange(1.0 - SIDE, SIDE)
    apart = apart.sign() * apart.abs().log1p()
    table = torch.stack(torch.meshgrid(apart, apart, indexing="ij"), -1)
    bias = m.second(m.first(table).relu()).view(-1, HEADS)[INDEX.view(-1)]
    bias = 16 * bias.view(PLACES, PLACES, -1).permute(2, 0, 1).sigmoid()
    return attended(m, y, bias.unsqueeze(0))


@pytest.mark.parametrize(
    ("do", "members", "wanted"),
    [
        (of_swin, {"p": (WIDE * WIDE, HEADS)}, {"as_strided": 2, "concatenate": 0}),
        (of_coatnet, {"p": (HEADS, WIDE, WIDE)}, {"as_strided": 2, "concatenate": 0}),
        (of_levit, {"p": (HEADS, PLACES)}, {"concatenate": 3}),
        (of_every_second, {"p": (HEADS, PLACES)}, {}),
        (
            of_a_network,
            {"first": nn.Linear(2, 4), "second": nn.Linear(4, HEADS, bias=False)},
            {"linear": 3, "affine": 6},
        ),
    ],
)
def test_a_bias_for_each_distance_is_added_to_scores(do, members, wanted):
    trained = {
        name: nn.Parameter(torch.randn(of)) if isinstance(of, tuple) else of
        for name, of in members.items()
    }
    described, notes = told(zoo.By(do, **MEMBERS, **trained), WORDS)
    layers = kinds(described)
    assert not notes and "softmax" in layers
    assert {kind: layers.count(kind) for kind in wanted} == wanted


def pooled(m, x):
    """Attention whose queries are trained."""
    y = heads(m.table(x))
    query = heads(m.query(m.norm(m.latent.expand(len(x), -1, -1))))
    mixed = nn.functional.scaled_dot_product_attention(query, y, y)
    return m.out(mixed.transpose(1, 2).flatten(2)).mean(1)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_layers_read_a_parameter(count):
    latent = nn.Parameter(torch.randn(1, count, 6))
    more = {"latent": latent, "query": nn.Linear(6, 6), "norm": nn.LayerNorm(6)}
    described, _ = told(zoo.By(pooled, **MEMBERS, **more), WORDS)
    layers = kinds(described)
    assert layers[layers.index("layer_norm") :][:3] == ["layer_norm", "linear", "matmul"]


def test_what_depends_on_no_sample_meets_what_does():
    """A table of two places, which is no batch."""
    do = lambda m, x: m.out(m.fc(x.view(-1, 2, 6)) * m.gate(m.p).exp())  # noqa: E731
    more = {"fc": nn.Linear(6, 6), "gate": nn.Linear(5, 6), "p": nn.Parameter(torch.randn(2, 5))}
    described, _ = told(zoo.By(do, out=nn.Linear(6, 3), **more), Input((12,)))
    assert kinds(described)[-2:] == ["multiply", "linear"]
