# SPDX-License-Identifier: Apache-2.0
"""crossover_bench.ask: what a user holds is as before, and the answer is of the loop that the user
writes. The CPU under another name stands in for a GPU, of which there is none here."""

from __future__ import annotations

import random
import sys
import types
from copy import deepcopy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import crossover_bench  # noqa: E402
from crossover_bench.in_hand import turns  # noqa: E402
from crossover_bench.in_hand.answer import Answer  # noqa: E402
from crossover_bench.in_hand.copies import Given  # noqa: E402
from crossover_bench.in_hand.loop import Loop, Step, rows_of  # noqa: E402
from crossover_bench.in_hand.prediction import OnCard  # noqa: E402
from crossover_bench.in_hand.progress import progress  # noqa: E402
from crossover_bench.in_hand.sizes import BatchesAnswer, resized  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


BOTH = ("cpu", "cpu:0")
SECONDS = 0.3


def flag(of, name: str, value):
    return lambda: getattr(of, name), lambda: setattr(of, name, value)


# What a loop may set of the process: how it is read, and what changes it.
CUDNN, MATMUL, MKLDNN = torch.backends.cudnn, torch.backends.cuda.matmul, torch.backends.mkldnn
FLAGS = {
    "threads": (torch.get_num_threads, lambda: torch.set_num_threads(2)),
    "dtype": (torch.get_default_dtype, lambda: torch.set_default_dtype(torch.float64)),
    "device": (torch.get_default_device, lambda: torch.set_default_device("cpu:0")),
    "TF32 of products": flag(MATMUL, "allow_tf32", True),
    "TF32 of cuDNN": flag(CUDNN, "allow_tf32", False),
    "sums in f16": flag(MATMUL, "allow_fp16_reduced_precision_reduction", False),
    "sums in bf16": flag(MATMUL, "allow_bf16_reduced_precision_reduction", False),
    "cuDNN": flag(CUDNN, "enabled", False),
    "cuDNN's search": flag(CUDNN, "benchmark", True),
    "cuDNN's order": flag(CUDNN, "deterministic", True),
    "oneDNN": flag(MKLDNN, "enabled", False),
    "oneDNN's order": flag(MKLDNN, "deterministic", True),
    "order": (
        torch.are_deterministic_algorithms_enabled,
        lambda: torch.use_deterministic_algorithms(True),
    ),
    "anomalies": (torch.is_anomaly_enabled, lambda: torch.autograd.set_detect_anomaly(True)),
    "autocast's cache": (
        torch.is_autocast_cache_enabled,
        lambda: torch.set_autocast_cache_enabled(False),
    ),
    **{
        f"autocast on {kind}": (
            lambda kind=kind: torch.is_autocast_enabled(kind),
            lambda kind=kind: torch.set_autocast_enabled(kind, True),
        )
        for kind in ("cpu", "cuda")
    },
    **{
        f"autocast's dtype on {kind}": (
            lambda kind=kind: torch.get_autocast_dtype(kind),
            lambda kind=kind: torch.set_autocast_dtype(kind, torch.float32),
        )
        for kind in ("cpu", "cuda")
    },
}
CHANGED: dict = {}
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_state_dict_hooks")


class Net(nn.Module):
    """With a buffer, chance and a hook; its forward may change flags, or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.does = ""
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        random.random()
        np.random.rand()
        if self.does == "flags":
            for name, (read, change) in FLAGS.items():
                change()
                CHANGED[name] = read()
            x = x.float()
        if self.does == "names":  # both of PyTorch's for TF32
            CUDNN.allow_tf32, CUDNN.conv.fp32_precision = False, "tf32"
            MATMUL.allow_tf32, MATMUL.fp32_precision = True, "ieee"
        if self.does in ("fails", "stops") and self.calls > 1:
            raise {"fails": RuntimeError("it broke"), "stops": KeyboardInterrupt()}[self.does]
        return self.last(torch.dropout(self.norm(self.first(x)).relu(), 0.2, self.training))


def made(kind: str = "adam"):
    """A module, an optimizer that has made a step, with a scheduler, and gradients."""
    torch.manual_seed(3)
    model = Net()
    optimizer = {
        "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
        "momentum": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
        "lbfgs": lambda p: torch.optim.LBFGS(p, max_iter=2),
    }[kind](model.parameters())
    cross_entropy(model(torch.rand(6, 4)), torch.zeros(6, dtype=torch.long)).backward()
    if kind != "lbfgs":
        optimizer.step()
    model.first.register_forward_hook(lambda *_: None)
    model.norm.register_forward_pre_hook(lambda *_: None)
    model.last.register_full_backward_hook(lambda *_: None)
    model.last.weight.register_hook(lambda gradient: None)
    optimizer.register_step_post_hook(lambda *_: None)
    with torch.no_grad():  # what equal numbers would not tell apart
        model.norm.running_mean[0] = -0.0
        model.last.bias.grad[0] = float("nan")
    return model, optimizer


def loader_of(rows: int = 40, **options):
    numbers = torch.Generator().manual_seed(1)
    data = TensorDataset(torch.rand(rows, 4, generator=numbers), torch.arange(rows) % 3)
    shuffled = torch.Generator().manual_seed(2)
    return DataLoader(data, batch_size=8, shuffle=True, generator=shuffled, **options)


def state_of(model, optimizer, loader):
    """All that is to be as before."""
    return {
        "flags": {name: read() for name, (read, _) in FLAGS.items()},
        "precisions": [each.fp32_precision for each in (MATMUL, CUDNN.conv, CUDNN.rnn)],
        "grad": torch.is_grad_enabled(),
        "chance": [random.getstate(), str(np.random.get_state()), torch.get_rng_state()],
        "generator": loader.generator.get_state(),
        "values": [*model.parameters(), *model.buffers()],
        "gradients": [p.grad for p in model.parameters()],
        "hooks": [list(getattr(m, name).items()) for m in model.modules() for name in HOOKS]
        + [list((p._backward_hooks or {}).items()) for p in model.parameters()]
        + [list(optimizer._optimizer_step_post_hooks.items())],
        "modes": [m.training for m in model.modules()],
        "attributes": [model.does, model.calls],
        "optimizer": optimizer.state_dict(),
        "names": sorted(vars(optimizer)),
    }


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        bits = [each.detach().contiguous().reshape(-1).view(torch.uint8) for each in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def snapshot(*objects):
    state = state_of(*objects)
    hooks = state.pop("hooks")  # which are the very same, and no copies
    return {**deepcopy(state), "hooks": hooks}


@pytest.mark.parametrize("kind", ["adam", "momentum", "lbfgs"])
@pytest.mark.parametrize("does", ["", "flags", "names", "fails", "stops"])
def test_what_the_user_holds_is_as_before_bit_by_bit(kind, does):
    model, optimizer = made(kind)
    if kind == "momentum":
        torch.optim.lr_scheduler.StepLR(optimizer, 5)  # replaces the optimizer's step
    model.does, model.calls = does, 0
    model.last.eval()
    loader = loader_of()
    before, places = snapshot(model, optimizer, loader), [p.data_ptr() for p in model.parameters()]
    if does == "fails":
        with pytest.raises(ValueError, match=r"Net can't be trained: RuntimeError: it broke"):
            ask(model, loader, optimizer=optimizer)
    elif does == "stops":
        with pytest.raises(KeyboardInterrupt):
            ask(model, loader, optimizer=optimizer)
    else:
        assert ask(model, loader, optimizer=optimizer).verdict in ("cpu", "gpu", "not sure")
    after = state_of(model, optimizer, loader)
    different = [key for key in before if not same(before[key], after[key])]
    assert not different
    if does == "flags":
        assert not [name for name in FLAGS if CHANGED[name] == before["flags"][name]]
    assert places == [p.data_ptr() for p in model.parameters()]


def test_names_that_contradict_each_other_stay_so():
    CUDNN.conv.fp32_precision = "none"
    try:
        with pytest.raises(RuntimeError):
            _ = CUDNN.allow_tf32
        model, optimizer = made()
        assert ask(model, loader_of(), optimizer=optimizer).cpu_seconds
        assert (CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision) == ("none", "tf32")
    finally:
        CUDNN.conv.fp32_precision = "tf32"


def reaches_back(model):
    whole = model.forward
    model.forward = lambda x: 1 * whole(x)


def test_a_copy_that_works_on_the_original_is_found_and_undone():
    model, optimizer = made()
    reaches_back(model)
    before = deepcopy(model.state_dict()), [p.grad.clone() for p in model.parameters()]
    with pytest.raises(ValueError, match="a copy of it works on the module itself"):
        ask(model, loader_of(), optimizer=optimizer)
    assert same(before, (model.state_dict(), [p.grad for p in model.parameters()]))


def ask(model, loader, **options) -> Answer:
    options = {"loss": cross_entropy, "seconds": SECONDS, "devices": BOTH, **options}
    return crossover_bench.ask(model, loader, **options)


# ---- the loop


class Reads(nn.Module):
    """Reads what a test says, and gives outputs or its own loss."""

    def __init__(self, forward) -> None:
        super().__init__()
        self.a = nn.Linear(4, 3)
        self.forward = types.MethodType(forward, self)


def named(self, *, x, labels=None):
    outputs = self.a(x)
    return {"loss": cross_entropy(outputs, labels), "outputs": outputs}


X, Y = torch.rand(6, 4), torch.arange(6) % 3
LOOPS = {
    "a pair": (lambda self, x: self.a(x), (X, Y), cross_entropy),
    "a pair of arrays": (lambda self, x: self.a(x), (X.numpy(), Y.numpy()), cross_entropy),
    "a list of pairs": (lambda self, x: self.a(x), [(X, Y), (X, Y), (X[:2], Y[:2])], cross_entropy),
    "a function": (lambda self, x: self.a(x), lambda: iter([(X, Y)]), cross_entropy),
    "two inputs": (lambda self, x, z: self.a(x + z), [(X, X, Y)], cross_entropy),
    "two in one": (lambda self, both: self.a(both[0] + both[1]), [((X, X), Y)], cross_entropy),
    "names": (named, [{"x": X, "labels": Y}], None),
    "a batch of names": (named, {"x": X.numpy(), "labels": Y}, None),
    "names, and a loss that reads some": (
        named,
        [{"x": X, "labels": Y}],
        lambda given, batch: cross_entropy(given["outputs"], batch["labels"], reduction="sum"),
    ),
    "one part": (lambda self, x: self.a(x), [X], lambda y, x: (y - x[:, :3]).square().mean()),
    "part of one": (lambda self, x: self.a(x), [(X,)], lambda y, x: (y - x[:, :3]).abs().mean()),
    "its own loss": (lambda self, x, y: cross_entropy(self.a(x), y), [(X, Y)], None),
}


@pytest.mark.parametrize("name", LOOPS)
def test_what_a_loader_gives_goes_to_the_module_as_people_write_it(name):
    forward, loader, loss = LOOPS[name]
    model = Reads(forward)
    given = Given(model, loss, torch.optim.SGD(model.parameters(), lr=0.1))
    loop = Loop(given, loader, torch.device("cpu"))
    steps = loop.take(5)
    assert [step.rows for step in steps] == 5 * [6]  # not of the shorter, last batch
    assert all(min(step.data, step.copy) >= 0 < step.rest for step in steps)
    assert loop.last_loss > 0 and not torch.equal(loop.model.a.weight, model.a.weight)
    loop.lay_ready()
    assert loop.take_ready(3) > 0


def test_workers_of_the_user_are_left_alone():
    """Takes a second, as it starts processes."""
    model, optimizer = made()
    loader = loader_of(num_workers=1, persistent_workers=True)
    epoch = iter(loader)
    seen = [next(epoch)]
    loop = Loop(Given(model, cross_entropy, optimizer), loader, torch.device("cpu"))
    assert loop.batches.ahead == 2 and loop.batches.steps == 5
    loop.take(7)
    loop.close()
    seen += list(epoch)
    rows = torch.cat([x for x, _ in seen])
    assert len({*map(tuple, rows.tolist())}) == 40


REFUSED = {
    "an iterator": (lambda m, o: (m, iter([(X, Y)]), {}), "is an iterator, which a measurement"),
    "nothing": (lambda m, o: (m, [], {}), "Net can't be trained: the loader gives no batch"),
    "a number": (lambda m, o: (m, 3, {}), "the loader is of type int; give a DataLoader"),
    "no module": (lambda m, o: (3, [(X, Y)], {}), "the model is of type int, and no torch"),
    "no optimizer": (lambda m, o: (m, [(X, Y)], {"optimizer": 3}), "is of type int, and no opt"),
    "another's": (
        lambda m, o: (m, [(X, Y)], {"optimizer": torch.optim.SGD(Net().parameters())}),
        "the optimizer has none of the module's parameters",
    ),
    "no seconds": (lambda m, o: (m, [(X, Y)], {"seconds": float("nan")}), "seconds=nan is no numb"),
    "no device": (lambda m, o: (m, [(X, Y)], {"devices": ["cpu", "gpu"]}), "devices="),
    "not there": (lambda m, o: (m, [(X, Y)], {"devices": ["cpu", "meta"]}), "sees no meta here"),
    "shapes": (
        lambda m, o: (m, [(X[:, :3], Y)], {}),
        r"Net can't be trained: RuntimeError: .*mat1 and mat2 .* \(test_asking.py:\d+\)$",
    ),
    "other names": (
        lambda m, o: (m, [{"image": X, "label": Y}], {}),
        r"does not take 'image' and 'label' by name, so it got the whole dictionary: say by the "
        r"loader .* such as lambda: \(\(b\['image'\], b\['label'\]\) for b in loader\)$",
    ),
    "a locked one": (
        lambda m, o: (setattr(m, "kept", m(X)) or m, [(X, Y)], {}),
        "the module can't be copied: .* what it keeps of an earlier forward pass",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_is_said_in_a_sentence(name):
    model, optimizer = made()
    model, loader, options = REFUSED[name][0](model, optimizer)
    with pytest.raises(ValueError, match=REFUSED[name][1]):
        ask(model, loader, **{"optimizer": optimizer, **options})


# ---- the answer


class Timed:
    """A loop whose steps take what a test says, without taking it."""

    def __init__(
        self, seconds: float, ready: float = 0.0, data: float = 0.0, fails=None, after=0
    ) -> None:
        self.parts, self.ready = (data, 0.0, seconds - data, 8), ready
        self.fails, self.after = fails, after
        self.batches, self.last_loss, self.count = types.SimpleNamespace(ahead=0), 1.0, 0

    def take(self, count):
        self.count += 1
        if self.fails and self.count > self.after:
            raise self.fails
        return [Step(*self.parts) for _ in range(count)]

    def take_ready(self, count):
        return self.ready or self.parts[0] + self.parts[2]

    def lay_ready(self) -> None: ...
    def close(self) -> None: ...


def answered(cpu: Timed, gpu: Timed | None, seconds: float = 1e9) -> Answer:
    loops = {"cpu": cpu, "cpu:0": gpu}
    sides = [turns.Side(torch.device(name)) for name, loop in loops.items() if loop]
    stopped = turns.measure(sides, lambda device: loops[str(device)], seconds, lambda _: None)
    second = sides[1] if gpu else None
    return Answer("Net", 2, sides[0], second, "L4" if gpu else "", steps=10, is_stopped=stopped)


def test_the_answer_has_an_interval_as_wide_as_processes_are_apart():
    answer = answered(Timed(0.002), Timed(0.001))
    assert (answer.verdict, answer.cpu_seconds, answer.gpu_seconds) == ("gpu", 0.002, 0.001)
    low, high = answer.interval
    assert 1.2 < low < 1.9 and 2.1 < high < 3.0  # although each turn took the same
    assert "The GPU wins: a step takes 1.0 ms on the L4 and 2.0 ms here" in " ".join(
        repr(answer).split()
    )
    assert "An epoch of 10 steps takes 20 ms on the CPU and 10 ms on the L4." in answer.why
    assert answered(Timed(0.001), Timed(0.002)).verdict == "cpu"
    assert answered(Timed(0.001), Timed(0.00105)).verdict == "not sure"


def test_why_says_what_would_change_the_answer():
    answer = answered(Timed(0.004, 0.002, data=0.002), Timed(0.0039, 0.0005, data=0.003))
    assert answer.verdict == "not sure"
    text = " ".join(answer.why)
    assert "Of a step on the CPU, 50 % is waiting for the loader." in text
    assert "a step on the L4 takes 500 µs" in text
    assert "So the answer would be another one then: the GPU wins." in text
    answer = answered(Timed(0.004, data=0.003), Timed(0.0039, data=0.0035))
    assert "Both devices wait for the loader" in " ".join(answer.why)


def test_what_fails_or_is_stopped_leaves_what_is_known():
    failed = answered(Timed(0.002), Timed(0.001, fails=RuntimeError("CUDA out of memory")))
    assert failed.cpu_seconds == 0.002
    assert failed.why[0].startswith("On the L4 it fails: RuntimeError: CUDA out of memory (test_")
    stopped = answered(Timed(0.002, fails=KeyboardInterrupt(), after=120), Timed(0.001))
    assert stopped.is_stopped and stopped.cpu_seconds == 0.002
    assert "It was stopped, so that less is known than could be." in stopped.why


def test_progress_is_a_line_for_whoever_watches(monkeypatch, capsys):
    for is_watched in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda watched=is_watched: watched)
        with progress("Net\x1b[31m", 30.0) as shown:
            for step in range(9):
                shown.say(f"round {step}")
        lines = capsys.readouterr().err.split("\r")
        seen = [line.strip() for line in lines if line.strip()]
        assert seen == (["Net\\x1b[31m: round 0, 30 s left"] if is_watched else [])


def test_text_of_the_users_is_harmless(capsys):
    hostile = type("<img src=x onerror=alert(1)>" + "W" * 10_000, (Net,), {})
    model = hostile()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    answer = ask(model, (X, Y), optimizer=optimizer, devices=["cpu"], seconds=0.1)
    page = answer._repr_html_()
    assert "<img" not in page and "&lt;img" in page and len(repr(answer)) < 4000
    assert capsys.readouterr().err == ""  # nobody watches a file
    assert answer.verdict == "unmeasured" and answer.gpu_seconds is answer.interval is None
    assert answer.cards or "scipy" in answer.no_cards


def test_cards_that_take_equally_long_are_one_line():
    side = turns.Side(torch.device("cpu"), turns=[[Step(0.0, 0.0, 4e-3, 8)]] * 5)
    alike = tuple(OnCard(name, 1e-3, 5e-4, 2e-3, "gpu") for name in ("L4", "H200"))
    answer = Answer("Net", 2, side, None, cards=alike)
    (line,) = answer.table.lines[1:]
    assert (line[0].text, line[-1].text) == ("each of 2 cards, predicted", "*faster")
    assert "A step would take equally long on L4 and H200, as they wait for the CPU." in answer.why
    sizes = BatchesAnswer({8: answer, 16: answer})
    assert [column.title for column in sizes.table.columns][-1] == "each of 2 cards, predicted"
    other = Answer("Net", 2, side, None, cards=(alike[0], OnCard("H200", 1e-4, 5e-5, 2e-4, "gpu")))
    assert [line[0].text for line in other.table.lines[1:]] == ["L4, predicted", "H200, predicted"]
    assert "equally long" not in " ".join(other.why)


# ---- over batch sizes


def test_batches_of_other_sizes_are_of_the_same_data():
    loader = loader_of(num_workers=0, drop_last=True)
    steps = [rows_of(batch) for batch in resized(loader, 16)]
    assert steps == [16, 16] and resized(loader, 16).generator is loader.generator
    x, y = resized((X, Y.numpy()), 15)
    assert torch.equal(x[6:12], X) and torch.equal(y[12:], Y[:3]) and len(x) == len(y) == 15
    for wrong, batches, words in (
        ([(X, Y)], [4], "batches= needs a DataLoader with a batch_size, or one batch"),
        (loader, [16, 64], "batches= has 64, and the loader's data has 40 rows"),
        (loader, [0], "batches= has 0, and is to have numbers from 1"),
        (loader, "64", "is no list of numbers of rows such as"),
    ):
        model, optimizer = made()
        with pytest.raises(ValueError, match=words):
            ask(model, wrong, optimizer=optimizer, batches=batches)


def test_over_batch_sizes_the_answer_is_a_crossover():
    times = {16: (0.001, 0.004), 64: (0.002, 0.004), 256: (0.008, 0.004), 1024: (0.03, 0.005)}
    pairs = {rows: (Timed(cpu), Timed(gpu)) for rows, (cpu, gpu) in times.items()}
    answer = BatchesAnswer({rows: answered(*pair) for rows, pair in pairs.items()})
    assert answer.verdicts == {16: "cpu", 64: "cpu", 256: "gpu", 1024: "gpu"}
    assert answer.curve and 64 < answer.curve.crossover.size < 256
    text = " ".join(repr(answer).split())
    assert "Net: the GPU wins from batch " in text and "At batch 16 the CPU is" in text
    pytest.importorskip("matplotlib", reason="matplotlib is not installed here")
    assert "<table>" in answer._repr_html_() and "</svg>" in answer._repr_html_()


def test_without_a_gpu_batches_are_predicted_or_said_not_to_be():
    model, optimizer = made()
    answer = ask(model, loader_of(), optimizer=optimizer, batches=[4, 16], devices=["cpu"])
    assert [*answer.answers] == [4, 16] and answer.curve is None
    assert answer.lead.endswith(("measured.", "on.", "nowhere.", "PyTorch sees no GPU here."))
    assert len(answer.table.lines) == 2
