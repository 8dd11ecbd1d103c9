# SPDX-License-Identifier: Apache-2.0
"""Views that no layer reads as they are, values that are repeated where they meet others, trained
factors, constants for each number, and modules that are called twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402

from crossover_bench.networks import strides  # noqa: E402
from crossover_bench.networks.tests import zoo  # noqa: E402
from crossover_bench.networks.tests.proved import kinds, told  # noqa: E402
from crossover_bench.networks.user_module import Input  # noqa: E402
from crossover_bench.networks.values import Refused  # noqa: E402

WORDS, IMAGE, ROW = Input((8,), 31), Input((3, 8, 8)), Input((12,))
TABLE = {"table": nn.Embedding(31, 6)}
CONV = {"conv": nn.Conv2d(3, 4, 3, padding=1), "out": nn.Linear(4, 3)}
FC = {"fc": nn.Linear(12, 6), "out": nn.Linear(6, 3)}


def dueling(m, x):
    y = m.fc(x)
    return m.out(y) + m.value(y) - m.out(y).mean(1, keepdim=True)


def pairs(m, x):
    parts = torch.stack([m.fc(x), m.other(x)], 1)
    products = parts @ parts.transpose(1, 2)
    first, second = torch.tril_indices(2, 2)
    return m.out(products[:, first, second])


VIEWED: dict[str, tuple[Any, dict[str, Any], Input]] = {
    "pixels from channels": (
        lambda m, x: m.last(torch.pixel_shuffle(m.conv(x), 2)).mean((2, 3)),
        CONV | {"last": nn.Conv2d(1, 3, 3)},
        IMAGE,
    ),
    "every second pixel": (
        lambda m, x: m.out(m.conv(x)[:, :, ::2, 1::2].relu().mean((2, 3))),
        *(CONV, IMAGE),
    ),
    "channels in another order": (
        lambda m, x: m.out(torch.channel_shuffle(m.conv(x), 2).amax((2, 3))),
        *(CONV, IMAGE),
    ),
    "rows of an image as places": (
        lambda m, x: m.out(m.rnn(m.conv(x).permute(0, 2, 1, 3).flatten(2))[0][:, -1]),
        CONV | {"rnn": nn.GRU(32, 4, batch_first=True)},
        IMAGE,
    ),
    "a mean over rows": (lambda m, x: m.out(m.conv(x).mean(3).amax(2)), CONV, IMAGE),
    "the least of rows": (lambda m, x: m.out(m.conv(x).amin(3).min(2)[0]), CONV, IMAGE),
    "a sum over channels": (lambda m, x: m.conv(x).sum(1).mean(2)[:, :3], CONV, IMAGE),
    "values less their mean": (dueling, FC | {"value": nn.Linear(6, 1)}, ROW),
    "a number for each row": (
        lambda m, x: m.out((m.table(x) * m.gate(m.table(x)).sigmoid()).mean(1)),
        TABLE | {"gate": nn.Linear(6, 1), "out": nn.Linear(6, 3)},
        WORDS,
    ),
    "products of all pairs": (
        pairs,
        FC | {"other": nn.Linear(12, 6), "out": nn.Linear(3, 3)},
        ROW,
    ),
    "places joined": (
        lambda m, x: m.out(torch.cat([y := m.table(x), y.flip(1).roll(1, 1)[:, ::3]], 1).mean(1)),
        TABLE | {"out": nn.Linear(6, 3)},
        WORDS,
    ),
    "a trained factor of all": (
        lambda m, x: m.out(m.factor * m.fc(x)),
        FC | {"factor": nn.Parameter(torch.tensor(0.5))},
        ROW,
    ),
    "a trained factor of each channel": (
        lambda m, x: m.out((m.factor[:, None, None] * m.conv(x)).mean((2, 3))),
        CONV | {"factor": nn.Parameter(torch.randn(4))},
        IMAGE,
    ),
    "a trained factor of each column": (
        lambda m, x: m.out((m.table(x) * m.factor).mean(1)),
        TABLE | {"factor": nn.Parameter(torch.randn(6)), "out": nn.Linear(6, 3)},
        WORDS,
    ),
    "frequencies": (
        lambda m, x: m.out((m.fc(x)[..., None] * m.f + m.f).flatten(1).cos().exp().abs()),
        FC | {"f": torch.arange(1.0, 4).double(), "out": nn.Linear(18, 3)},
        ROW,
    ),
}


@pytest.mark.parametrize("name", VIEWED)
def test_views_that_no_layer_reads_are_copied(name):
    do, members, wanted = VIEWED[name]
    described, notes = told(zoo.By(do, **members), wanted)
    assert not notes
    is_factor = "trained factor" in name
    assert "as_strided" in kinds(described) or (is_factor and "conv2d" in kinds(described))


def test_a_module_that_is_called_twice_has_its_parameters_once():
    body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    do = lambda m, a, b: m.out((m.body(a) - m.body(b)).abs())  # noqa: E731
    described, _ = told(
        zoo.By(do, body=body, out=nn.Linear(4 * 36, 1)), *[Input((1, 8, 8))] * 2, loss="bce"
    )
    shared = {layer["name"]: layer["shared"] for layer in described["layers"] if "shared" in layer}
    assert [name.rstrip("_2") for name in shared] == list(shared.values()) and len(shared) == 2


def with_another_stride(m, x):
    again = nn.functional.conv2d(x, m.conv.weight, m.conv.bias, stride=2)
    return m.conv(x).mean((2, 3)) + again.mean((2, 3))


@pytest.mark.parametrize(
    ("do", "members", "wanted", "sentence"),
    [
        (
            lambda m, x: nn.functional.linear(m.fc(x), m.fc.weight.t()),
            *(FC, ROW, "fc.weight is used twice, first by fc, and not by layers of one type"),
        ),
        (with_another_stride, CONV, IMAGE, "used twice, first by conv2d, and not by layers of one"),
    ],
)
def test_parameters_that_layers_of_other_sizes_share_are_refused(do, members, wanted, sentence):
    with pytest.raises(Refused, match=sentence):
        told(zoo.By(do, **members), wanted)


@pytest.mark.parametrize(("kind", "batch_first"), [(nn.LSTM, True), (nn.GRU, False)])
def test_a_recurrence_goes_both_ways(kind, batch_first):
    rnn = kind(6, 5, num_layers=2, dropout=0.1, bidirectional=True, batch_first=batch_first)

    def do(m, x):
        y = m.table(x) if batch_first else m.table(x).transpose(0, 1)
        given, last = m.rnn(y)
        last = last[0] if kind is nn.LSTM else last
        return m.out(torch.cat([given.mean(int(batch_first)), last[-2], last[-1]], 1))

    described, _ = told(zoo.By(do, **TABLE, rnn=rnn, out=nn.Linear(20, 3)), WORDS)
    backwards = [layer for layer in described["layers"] if min(layer.get("stride", [0])) < 0]
    assert len(backwards) == 4 and kinds(described).count(kind.__name__.lower()) == 4


@pytest.mark.parametrize(
    ("drop", "conv", "wanted"),
    [
        (nn.Dropout2d(0.1), nn.Conv2d(3, 4, 3), IMAGE),
        (nn.Dropout1d(0.1), nn.Conv1d(3, 4, 3), Input((3, 8))),
    ],
)
def test_channels_are_dropped_by_a_gate(drop, conv, wanted):
    members = {"conv": conv, "drop": drop, "out": nn.Linear(4, 3)}
    described, _ = told(
        zoo.By(lambda m, x: m.out(m.drop(m.conv(x)).flatten(2).amax(2)), **members), wanted
    )
    assert kinds(described)[:5] == ["conv2d", "global_avg_pool2d", "affine", "dropout", "multiply"]
    assert described["layers"][3]["p"] == 0.1


def trained(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape))


FOUR = {"conv": nn.Conv2d(3, 4, 3), "fc": nn.Linear(4, 3)}


@pytest.mark.parametrize(
    ("do", "members", "wanted"),
    [
        (
            lambda m, x: m.fc(x * m.p - m.q + m.r),
            {"fc": nn.Linear(12, 3), "p": trained(12), "q": trained(1, 12), "r": trained(1)},
            ROW,
        ),
        (
            lambda m, x: m.fc(m.q - m.r / (x / m.p)),
            {"fc": nn.Linear(12, 3), "p": trained(12), "q": trained(12), "r": trained(1)},
            ROW,
        ),
        (
            lambda m, x: m.fc((m.conv(x) * m.p + m.q).relu().mean((2, 3))),
            FOUR | {"p": trained(1, 1, 6, 1), "q": trained(4, 1, 6)},
            IMAGE,
        ),
        (
            lambda m, x: m.fc((m.conv(x) * m.p[:4, None, None]).relu().mean((2, 3))),
            FOUR | {"p": trained(9)},
            IMAGE,
        ),
        (
            lambda m, x: m.fc(m.table(x) * m.p + m.q),
            {"table": nn.Embedding(31, 6), "fc": nn.Linear(6, 3)}
            | {"p": trained(WORDS.shape[0], 6), "q": trained(WORDS.shape[0], 1)},
            WORDS,
        ),
    ],
)
def test_a_parameter_of_any_shape_is_an_operand(do, members, wanted):
    described, _ = told(zoo.By(do, **members), wanted)
    assert {"position_embedding", "as_strided"} <= set(kinds(described))


@pytest.mark.parametrize(
    ("do", "shape", "layers"),
    [
        (lambda m, x: m.fc(x * m.p.exp()), (), ["exp", "multiply"]),
        (lambda m, x: m.fc(torch.sigmoid(m.p) + x), (12,), ["sigmoid", "add"]),
        (
            lambda m, x: m.fc(x / (1 - m.p.tanh())),
            (1, 12),
            ["tanh", "affine", "reciprocal", "multiply"],
        ),
        (lambda m, x: m.fc(x * m.p.abs()), (12,), ["abs", "multiply"]),
    ],
)
def test_functions_of_a_parameter_stand_behind_it(do, shape, layers):
    described, _ = told(zoo.By(do, fc=nn.Linear(12, 3), p=nn.Parameter(torch.rand(shape))), ROW)
    behind = kinds(described)[kinds(described).index("position_embedding") + 1 :]
    assert [kind for kind in behind if kind != "as_strided"] == [*layers, "linear"]


def test_a_weight_that_is_calculated_is_refused():
    members = {"p": trained(3, 12)}
    with pytest.raises(Refused, match="its weight is calculated from p"):
        told(zoo.By(lambda m, x: nn.functional.linear(x, m.p.exp()), **members), ROW)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_an_image_is_padded_with_its_own_numbers(mode):
    conv = nn.Conv2d(3, 4, 3, padding=2, padding_mode=mode)
    told(zoo.By(lambda m, x: m.fc(m.conv(x).mean((2, 3))), **FOUR | {"conv": conv}), IMAGE)


def test_samples_are_not_mixed():
    with pytest.raises(Refused, match="not over the batch"):
        told(zoo.By(lambda m, x: m.out(m.fc(x) - m.fc(x).mean(0, keepdim=True)), **FC), ROW)
    with pytest.raises(Refused):
        told(zoo.By(lambda m, x: m.out(m.fc(x).flip(0)), **FC), ROW)


@pytest.mark.parametrize("shape", [(24,), (2, 12), (3, 2, 4), (2, 3, 2, 2)])
def test_strides_of_any_view_give_its_numbers(shape):
    places = np.arange(24).reshape(shape)
    rng = np.random.default_rng(len(shape))
    for _ in range(50):
        view = places.transpose(rng.permutation(len(shape)))
        parts = (slice(rng.integers(size), None, rng.integers(1, 3)) for size in view.shape)
        view = view[tuple(parts)]
        if rng.integers(2):
            view = view[..., ::-1]
        if rng.integers(2):
            view = np.repeat(view[..., None, :], 3, -2)
        sizes, steps = strides.fitted(view)
        given = np.full(sizes, view.flat[0])
        for axis, step in enumerate(steps):
            given += step * np.arange(sizes[axis]).reshape(-1, *[1] * (len(sizes) - axis - 1))
        assert np.array_equal(given.ravel(), view.ravel())
    assert strides.fitted(places.ravel()[::-1]) == ([24], [-1])
    assert strides.fitted(np.array([0, 1, 3])) is None
