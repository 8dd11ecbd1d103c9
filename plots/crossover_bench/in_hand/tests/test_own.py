# SPDX-License-Identifier: Apache-2.0
"""Our own program beside a user's loop: what comes in is measured, and what does not is said."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402
from torch.nn.functional import binary_cross_entropy, cross_entropy, mse_loss, nll_loss  # noqa: E402

from crossover_bench.in_hand import own  # noqa: E402
from crossover_bench.in_hand.answer import Answer  # noqa: E402
from crossover_bench.in_hand.copies import Given  # noqa: E402
from crossover_bench.in_hand.loop import Loop, Step  # noqa: E402
from crossover_bench.in_hand.own import NoOwnError, OwnProgram, OwnSteps, optimizer_of  # noqa: E402
from crossover_bench.in_hand.turns import Side  # noqa: E402

CPU = torch.device("cpu")
X, Y = torch.rand(6, 4), torch.arange(6) % 3
LONG = 600.0  # seconds, for machines that are at work


class Decides(nn.Module):
    """By numbers, which no graph does."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 3)

    def forward(self, x):
        return self.a(x) if x.sum() > 0 else -self.a(x)


class Words(nn.Module):
    """Reads tokens, and knows places."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 8), nn.Embedding(9, 8)
        self.out = nn.Linear(8, 50)

    def forward(self, tokens):
        return self.out(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def loop_of(model, batch=(X, Y), loss=cross_entropy, optimizer=None) -> Loop:
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=1e-3)
    return Loop(Given(model, loss, optimizer), [batch], CPU)


def asked(model, seconds=LONG, **options) -> OwnProgram:
    return OwnSteps().step(lambda: loop_of(model, **options), seconds, lambda _: None)


def test_what_comes_in_is_measured():
    """Takes seconds, as the importer's process starts."""
    if not own.build.BENCH.is_file():
        pytest.skip("there is no bench here (./run --setup-only builds it)")
    program = asked(plain())
    assert not program.problem and len(program.samples) >= 5
    assert 0 < min(program.samples) <= program.seconds <= max(program.samples) < 1


@pytest.fixture
def _a_bench(monkeypatch, tmp_path):
    """One that nobody starts."""
    (tmp_path / "bench").touch()
    monkeypatch.setattr(own.build, "BENCH", tmp_path / "bench")


@pytest.mark.usefixtures("_a_bench")
def test_what_does_not_come_in_is_said():
    """Takes seconds, as the importer's process starts."""
    problem = asked(Decides()).problem
    assert "it decides by the numbers of a tensor, as `if x.sum() > 0:` does" in problem
    side = Side(CPU, turns=[[Step(0.0, 0.0, 1e-3, 6)]] * 5)
    answer = Answer("Net", 1, side, None, bench=OwnProgram(problem=problem))
    assert f"Our own program was not measured: {problem}." in answer.why
    assert len(answer.table.lines) == 1


class Trains(nn.Linear):
    """And does nothing else."""

    def forward(self, x):
        if not torch.is_grad_enabled():
            raise ZeroDivisionError("it is to be trained")
        return super().forward(x)


@pytest.mark.usefixtures("_a_bench")
def test_a_module_that_fails_meanwhile_leaves_the_answer():
    problem = asked(Trains(4, 3)).problem
    assert problem.startswith("ZeroDivisionError: it is to be trained (test_own.py:")


def test_without_bench_nothing_is_begun(monkeypatch, tmp_path):
    monkeypatch.setattr(own.build, "BENCH", tmp_path / "bench")
    problem = OwnSteps().step(lambda: pytest.fail("a loop is made"), LONG, lambda _: None).problem
    assert problem in (own._NO_BENCH, own._NO_BENCH_INSTALLED)


def test_the_answer_says_by_how_much():
    side = Side(CPU, turns=[[Step(0.0, 0.0, 4e-3, 6)]] * 5)
    program = OwnProgram((1e-3,) * 5, out=("weight decay",))
    answer = Answer("Net", 2, side, None, bench=program)
    assert (
        "Our own program takes 1.0 ms a step on this CPU, with batches in memory, without the "
        "weight decay; your loop takes 4.0 ms." in answer.why
    )
    (line,) = answer.table.lines[1:]
    assert (line[0].text, line[-1].text) == ("CPU, our own program", "*faster")
    busy = Answer("Net", 2, side, None, bench=program, others=1.5)
    assert busy.table.lines[1][-1].text == "not sure"


def halved(outputs, y):
    return cross_entropy(outputs, y) / 2


def of_words(outputs, y):
    return cross_entropy(outputs.reshape(-1, 50), y.reshape(-1))


TOKENS = torch.arange(54).reshape(6, 9) % 50
WANTED = {
    "classes": (plain, (X, Y), nn.CrossEntropyLoss(), ("cross-entropy", 3, 0)),
    "log": (lambda: nn.Sequential(plain(), nn.LogSoftmax(1)), (X, Y), nll_loss, ("nll", 3, 0)),
    "numbers": (plain, (X, X[:, :3]), mse_loss, ("mse", None, 0)),
    "logits": (plain, (X, X[:, :3].round()), nn.BCEWithLogitsLoss(), ("bce", None, 0)),
    "shares": (
        lambda: nn.Sequential(plain(), nn.Sigmoid()),
        (X, X[:, :3].round()),
        binary_cross_entropy,
        ("bce", None, 0),
    ),
    "words": (Words, (TOKENS, TOKENS), of_words, ("cross-entropy", 50, 50)),
}


@pytest.mark.parametrize("name", WANTED)
def test_the_users_loss_is_known_by_what_it_gives(name):
    make, batch, loss, expected = WANTED[name]
    wanted = own.wanted_of(loop_of(make(), batch, loss), batch)
    assert (wanted.loss, wanted.classes, wanted.inputs[0][1]) == expected
    assert wanted.inputs[0][0] == tuple(batch[0].shape[1:])


NOT_WANTED = {
    "a loss of its own": (plain, (X, Y), halved, "the loss is none of cross-entropy, nll"),
    "evaluation": (lambda: plain().eval(), (X, Y), cross_entropy, "in evaluation mode"),
    "float64": (lambda: plain().double(), (X.double(), Y), cross_entropy, "in float32 alone"),
    "a dictionary": (plain, {"input": X}, lambda o, b: o.sum(), "other things than tensors"),
    "its own loss": (lambda: nn.Bilinear(4, 4, 3), (X, X, Y), None, "gives its own loss"),
}


@pytest.mark.parametrize("name", NOT_WANTED)
def test_what_our_program_has_not_is_said(name):
    make, batch, loss, words = NOT_WANTED[name]
    with pytest.raises(NoOwnError, match=words):
        own.wanted_of(loop_of(make(), batch, loss), batch)


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("SGD", {}, ("sgd", ())),
        ("SGD", {"momentum": 0.9, "nesterov": True}, ("momentum", ("nesterov",))),
        ("Adam", {"weight_decay": 0.1}, ("adam", ("weight decay",))),
        ("AdamW", {"weight_decay": 0.1}, ("adamw", ())),
        ("Adam", {"amsgrad": True}, "its adam has no amsgrad"),
        ("Adagrad", {}, "it has no Adagrad"),
    ],
)
def test_the_optimizer_is_bench_s_or_what_differs_is_said(kind, options, expected):
    model = plain()
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=1e-3, **options)
    loop = loop_of(model, optimizer=optimizer)
    if isinstance(expected, tuple):
        assert optimizer_of(loop) == expected
        return
    with pytest.raises(NoOwnError, match=expected):
        optimizer_of(loop)


def test_a_part_of_the_parameters_is_not_all():
    model = plain()
    loop = loop_of(model, optimizer=torch.optim.SGD(model[0].parameters(), lr=0.1))
    with pytest.raises(NoOwnError, match="updates a part of the parameters"):
        optimizer_of(loop)
