# SPDX-License-Identifier: Apache-2.0
"""What is not trained: frozen parameters, parts without gradients, and constants."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402

from crossover_bench.networks.tests import zoo  # noqa: E402
from crossover_bench.networks.tests.proved import kinds, told  # noqa: E402
from crossover_bench.networks.tests.test_written import QKV, given, scores  # noqa: E402
from crossover_bench.networks.user_module import Input  # noqa: E402
from crossover_bench.networks.values import Refused  # noqa: E402

IMAGE, ROW, WORDS = Input((3, 8, 8)), Input((20,)), Input((8,), 31)
EYE = torch.eye(4).reshape(4, 1, 2, 2)


def frozen(described: dict[str, Any]) -> list[str]:
    """The types of the layers that are not trained."""
    layers = described["layers"]
    return [layer["type"] for layer in layers if not layer.get("requires_grad", True)]


def body(is_frozen: bool = True) -> nn.Sequential:
    """Of images, a row of 4 numbers each."""
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(*layers).requires_grad_(not is_frozen)


def without_gradients(m, x):
    with torch.no_grad():
        features = m.body(x)
    return m.head(features)


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_head_is_trained_on_what_a_part_without_gradients_gives(is_frozen):
    network = zoo.By(without_gradients, body=body(is_frozen), head=nn.Linear(4, 5))
    described, notes = told(network, IMAGE)
    assert frozen(described) == ["conv2d", "batch_norm"] and notes == ""


@pytest.mark.parametrize("do", [lambda m, x: m.body(x), lambda m, x: m.body(x).detach()])
def test_a_frozen_body_stays_so(do):
    network = zoo.By(lambda m, x: m.head(do(m, x)), body=body(), head=nn.Linear(4, 5))
    assert frozen(told(network, IMAGE)[0]) == ["conv2d", "batch_norm"]


def test_a_frozen_body_in_evaluation_has_a_factor_and_an_offset_for_each_channel():
    network = zoo.By(lambda m, x: m.head(m.body(x)), body=body(), head=nn.Linear(4, 5))
    network.body[1].running_mean.normal_()
    network.body.eval()
    described, notes = told(network, IMAGE)
    assert frozen(described) == ["conv2d", "conv2d"]
    assert described["layers"][1]["groups"] == 4
    assert notes == (
        "2 tensors of constants, the first of them constants of body.1, become parameters that are "
        "not trained, and are drawn as others are"
    )


def test_layers_beside_a_frozen_one_are_trained():
    def adapted(m, x):
        return m.out(torch.relu(m.fc(x) + m.up(m.down(x))))

    members = {"fc": nn.Linear(20, 6).requires_grad_(False), "out": nn.Linear(6, 3)}
    members |= {"down": nn.Linear(20, 2, bias=False), "up": nn.Linear(2, 6, bias=False)}
    described, _ = told(zoo.By(adapted, **members), ROW)
    assert frozen(described) == ["linear"] and kinds(described).count("linear") == 4


@pytest.mark.parametrize(
    ("do", "members", "wanted", "kind"),
    [
        (
            lambda m, x: m.out(m.table(x) + m.places[:, :8]),
            {"table": nn.Embedding(31, 6), "places": torch.randn(1, 9, 6), "out": nn.Linear(6, 31)},
            *(WORDS, "position_embedding"),
        ),
        (
            lambda m, x: m.out(m.table(x) * m.places),
            {"table": nn.Embedding(31, 12), "places": torch.randn(8, 12), "out": nn.Linear(12, 3)},
            *(WORDS, "conv2d"),
        ),
        (
            lambda m, x: m.out(m.down(x) + m.fc(torch.arange(80.0))),
            {"down": nn.Linear(20, 4), "fc": nn.Linear(80, 4), "out": nn.Linear(4, 3)},
            *(ROW, "position_embedding"),
        ),
        (
            lambda m, x: m.out(nn.functional.linear(m.fc(x), m.mixed)),
            {"fc": nn.Linear(20, 6), "mixed": torch.randn(4, 6), "out": nn.Linear(4, 3)},
            *(ROW, "linear"),
        ),
        (
            lambda m, x: m.out(nn.functional.conv2d(m.conv(x), m.blur, groups=4).mean((2, 3))),
            {"conv": nn.Conv2d(3, 4, 3), "blur": EYE, "out": nn.Linear(4, 3)},
            *(IMAGE, "conv2d"),
        ),
    ],
)
def test_constants_become_parameters_that_are_not_trained(do, members, wanted, kind):
    described, notes = told(zoo.By(do, **members), wanted)
    assert frozen(described) == [kind]
    assert notes.startswith("constants of ") and notes.endswith(
        " become parameters that are not trained, and are drawn as others are"
    )


def half(m, x):
    with torch.no_grad():
        y = m.fc(x)
    return m.out(y + m.fc(x))


@pytest.mark.parametrize(
    ("do", "sentence"),
    [
        (
            lambda m, x: m.out((y := m.fc(x)) + y.detach()),
            "no gradients go through it; in bench they go through each layer behind one that is "
            "trained",
        ),
        (
            lambda m, x: without_gradients(zoo.By(None, body=m.out, head=m.fc), m.fc(x)),
            "no gradients go through a part without them",
        ),
        (half, "the imported network gives other gradients than the original"),
        (lambda m, x: m.mixed(x), "mixed.weight is frozen (requires_grad=False) and mixed.bias is"),
    ],
)
def test_what_is_trained_in_part_is_refused(do, sentence):
    mixed = nn.Linear(4, 4)
    mixed.weight.requires_grad_(False)
    network = zoo.By(do, fc=nn.Linear(4, 4), out=nn.Linear(4, 4), mixed=mixed)
    with pytest.raises(Refused) as refusal:
        told(network, Input((4,)))
    assert sentence in str(refusal.value)


def test_batch_normalization_without_parameters_has_those_that_it_starts_with():
    network = nn.Sequential(nn.Linear(20, 3), nn.BatchNorm1d(3, affine=False))
    described, notes = told(network, ROW)
    assert frozen(described) == ["batch_norm"] and notes == ""


NEAR = torch.ones(8, 8).tril().triu(-2).bool()


@pytest.mark.parametrize(
    "do",
    [
        lambda m, x: given(m, x, attn_mask=NEAR),
        lambda m, x: given(m, x, attn_mask=torch.zeros(8, 8).masked_fill(~NEAR, -torch.inf)),
        lambda m, x: m.out(
            ((s := scores(m, x))[3].masked_fill(~NEAR, -torch.inf)).softmax(-1) @ s[2]
        ),
        lambda m, x: m.out(
            ((s := scores(m, x))[3] + torch.zeros(8, 8).masked_fill(~NEAR, -1e9)).softmax(-1) @ s[2]
        ),
    ],
)
def test_a_mask_of_places_is_a_table_that_is_not_trained(do):
    described, notes = told(zoo.By(do, **QKV), WORDS)
    assert frozen(described) == ["position_embedding"] and "are not trained" in notes


def test_a_mask_that_leaves_nothing_is_refused():
    with pytest.raises(Refused, match="its mask hides all places from one"):
        told(zoo.By(lambda m, x: given(m, x, attn_mask=NEAR & (torch.arange(8) > 0)), **QKV), WORDS)
