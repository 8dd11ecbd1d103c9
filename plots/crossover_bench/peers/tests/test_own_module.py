# SPDX-License-Identifier: Apache-2.0
"""Modules as their users wrote them, trained as they are and verified against their own float64."""

from __future__ import annotations

import io
import sys
import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from crossover_bench.peers import protocol, verification  # noqa: E402
from crossover_bench.peers.pytorch import own, own_training  # noqa: E402
from crossover_bench.peers.pytorch.draws import DrawnInF32, nothing_drawn  # noqa: E402
from crossover_bench.peers.pytorch.own_module import Module  # noqa: E402
from crossover_bench.peers.pytorch.own_training import told_of, training_of  # noqa: E402
from crossover_bench.peers.tasks import Unsupported  # noqa: E402

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F
"""
# What is special of each stands in its forward(), which reads vectors of 4 numbers.
FORWARDS = {
    "dropout": "return F.dropout(self.a(x), 0.3, self.training)",
    "noise": "return self.a(x) + torch.randn_like(x[:, :3]) * torch.rand(3, device=x.device)",
    "zeros": "return torch.matmul(self.a(x), torch.ones(3, 3)) + torch.zeros(3)",
    "device": "return self.a(x.to(torch.device('cpu'), torch.float32))",
    "casts": "return self.a(x.float()) @ torch.ones(3, 3, dtype=torch.float)",
    "log_softmax": "return F.log_softmax(self.a(x), dim=1)",
    "two_outputs": "return F.log_softmax(self.a(x), 1), None, {'value': torch.tanh(self.a(x))}",
    "normed": "return self.n(self.a(x))",
    "lazy": "return self.lazy(self.a(x))",
    "bounded": "self.a.weight.data = self.a.weight.data.clamp(-0.3, 0.3); return self.a(x)",
}


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    """The user's files change what is imported from where."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = dict(sys.modules)
    torch.set_num_threads(1)
    yield
    for name in set(sys.modules) - set(before):
        if not name.startswith(("torch", "numpy", "crossover_bench.")):
            del sys.modules[name]
    sys.modules.update(before)


def written(folder: Path, body: str, **changes: object) -> Module:
    """A module in a file of its own; `body` is of forward(), or a whole file."""
    path = folder / f"net{len(list(folder.iterdir()))}.py"
    if "class" not in body:
        layers = "self.a, self.n = nn.Linear(4, 3), nn.BatchNorm1d(3)"
        layers += "; self.lazy = nn.LazyLinear(3)" if "lazy" in body else ""
        body = (
            f"class Net(nn.Module):\n  def __init__(self):\n    super().__init__()\n    {layers}\n"
            f"  def forward(self, x):\n    {body}\ndef make():\n  return Net()\n"
        )
    path.write_text(HEAD + body, encoding="utf-8")
    return Module("net", f"{path}:make", **{"inputs": (((4,), 0),), **changes})


def answer(module: Module, folder: Path, **changes: str) -> dict:
    """Of the worker, to a row of it."""
    path = folder / "net.module.json"
    module.write(path)
    rows = own.OwnRows(own._asked([f"--network={path}", "--batch=6", "--threads=1"]))
    family = changes.get("family", "Minibatch")
    wanted = {"compiler": "none", "device": "cpu", "family": family}
    configurations = [described["configuration"] for described in rows.describe()["rows"]]
    (row,) = [row for row in configurations if wanted.items() <= row.items()]
    given = rows.prepare("row", {**row, **changes})
    if "facts" in given:
        assert rows.repeat("row", 0.0)["times"]["iterations"] >= 1
    return given


@pytest.mark.parametrize("name", FORWARDS)
def test_it_is_verified_against_its_own_float64(name, tmp_path):
    module = written(tmp_path, FORWARDS[name], reason="no layer is called that")
    facts = answer(module, tmp_path)["facts"]
    assert 0 < facts["verification"]["parameter_error"] < 1e-6
    assert facts["as_is"] == "no layer is called that" and facts["label"] == "sgd lr=0.01"
    assert (facts["batch"], facts["cpu_threads"]) == (6, 1) and facts["flops"] > facts["params"]
    assert facts["launches"] > 5 and facts["bytes"] > 4 * facts["params"] and facts["cost"]


SINES = """
class Net(nn.Module):
  def __init__(self):
    super().__init__()
    self.layers = nn.ModuleList(nn.Linear(4 if n == 0 else 64, 64) for n in range(6))
    self.last = nn.Linear(64, 2)
  def forward(self, x):
    for layer in self.layers:
      x = torch.sin(30 * layer(x))
    return self.last(x)
def make(): return Net()
"""


WRONG = "return self.a(x) * (1.01 if self.a.weight.dtype == torch.float32 else 1)"


@pytest.mark.parametrize(("body", "magnifies"), [(SINES, True), (WRONG, False)])
def test_what_magnifies_rounding_is_told_apart_from_what_is_wrong(body, magnifies, tmp_path):
    given = answer(written(tmp_path, body, loss="mse"), tmp_path)
    assert "the loss of step 1 is" in given["error_message"]
    assert ("the network magnifies rounding: from starts" in given["error_message"]) is magnifies


TWO = """
class Net(nn.Module):
  def __init__(self):
    super().__init__()
    self.table, self.a = nn.Embedding(9, 4), nn.Linear(4, 2)
  def forward(self, x, words):
    return self.a(x + self.table(words).mean(1))
def make(): return Net()
class WithLoss(Net):
  def forward(self, x, words):
    y = super().forward(x, words)
    return {"logits": y, "loss": y.square().mean()}
def with_loss(): return WithLoss()
def loss(outputs, batch):
  return (outputs - batch[0][:, :2]).abs().mean()
def batches():
  for rows in (6, 6, 4):
    yield torch.randn(rows, 4), torch.randint(9, (rows, 5)), torch.randint(2, (rows,))
def uneven():
  yield from reversed(list(batches()))
"""
INPUTS = (((4,), 0), ((5,), 9))


@pytest.mark.parametrize(
    ("name", "told", "losses"),
    [
        ("make", {}, ["cross-entropy"]),
        ("make", {"loss": "mse"}, ["mse"]),
        ("make", {"loss": "bce"}, ["bce with logits"]),
        ("make", {"loss": "{}:loss"}, []),
        ("with_loss", {"loss": "module"}, []),
        ("with_loss", {"output": 0}, ["cross-entropy"]),
        ("make", {"data": "{}:batches", "inputs": ()}, ["cross-entropy"]),
        ("make", {"data": "{}:batches", "inputs": (), "loss": "{}:loss"}, []),
    ],
)
def test_inputs_losses_and_data_are_the_users(name, told, losses, tmp_path):
    module = written(tmp_path, TWO, inputs=INPUTS)
    file = module.source.rpartition(":")[0]
    told = {k: v.format(file) if isinstance(v, str) else v for k, v in told.items()}
    module = Module(**{**vars(module), **told, "source": f"{file}:{name}"})
    _, training = told_of(module, 6, "adam lr=0.001")
    assert [objective.kind for objective in training.objectives] == losses
    facts = answer(module, tmp_path, family="Epoch" if module.data else "Minibatch")["facts"]
    assert facts["verification"]["parameter_error"] < 1e-5
    if module.data:
        assert (facts["rows"], facts["steps"], facts["batch"]) == (16, 3, 6)
        with pytest.raises(Unsupported, match="an epoch has batches of one size"):
            Module(**{**vars(module), "data": f"{file}:uneven"}).rows()


def test_each_output_is_trained_unless_one_is_chosen(tmp_path):
    module = written(tmp_path, FORWARDS["two_outputs"])
    for choice, losses in ((None, ["nll", "cross-entropy"]), (0, ["nll"])):
        _, training = told_of(Module(**{**vars(module), "output": choice}), 6, "sgd lr=0.1")
        assert [objective.kind for objective in training.objectives] == losses
    with pytest.raises(Unsupported, match="--output=5: the module's outputs are 3, from 0"):
        told_of(Module(**{**vars(module), "output": 5}), 6, "sgd lr=0.1")


def test_what_drifts_or_has_no_float64_is_timed_as_not_verified(tmp_path):
    for body, reason in (
        ("return self.a(x) * (2 if x.dtype == torch.float64 else 1)", "and the tolerance is"),
        (
            "assert x.dtype == torch.float32; return self.a(x)",
            "it can't be run in float64, so nothing verifies it: AssertionError (net2.py:10)",
        ),
    ):
        given = answer(written(tmp_path, body), tmp_path)
        assert given["outcome"] == "failed" and reason in given["error_message"]
        assert given["not_verified"]["seconds"] > 0


def test_large_batches_are_verified_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr(verification, "_AFFORDABLE_FLOPS", 1.0)
    for body in (FORWARDS["dropout"], FORWARDS["two_outputs"]):
        facts = answer(written(tmp_path, body), tmp_path)["facts"]
        assert facts["verification"]["batch"] == 2 and facts["batch"] == 6
    module = written(tmp_path, TWO, inputs=())
    data = f"{module.source.rpartition(':')[0]}:batches"
    facts = answer(Module(**{**vars(module), "data": data}), tmp_path)["facts"]
    assert "batch" not in facts["verification"]  # nobody knows how to part a user's


def test_in_bf16_it_is_computed_by_autocast(tmp_path):
    module = written(tmp_path, FORWARDS["log_softmax"])
    facts = answer(module, tmp_path, precision="bf16")["facts"]
    assert 1e-6 < facts["verification"]["relative_error"] < 1e-2


def test_what_is_compiled_is_verified_without_random_numbers(tmp_path, monkeypatch):
    compiled, messages = [], io.StringIO()
    monkeypatch.setattr(protocol, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(protocol._Asked, "answers", messages)

    def compile_(step, dynamic):
        compiled.append(step)
        for _ in range(1000):  # until it is heard that a compiler works, which says nothing itself
            if '{"doing": "compiling it"}' in messages.getvalue():
                return step
            threading.Event().wait(0.01)
        raise AssertionError("nothing was said")

    monkeypatch.setattr(torch, "compile", compile_)
    module = written(tmp_path, FORWARDS["noise"])
    assert "facts" in answer(module, tmp_path, compiler="inductor")
    assert len(compiled) == 2  # one that draws and is timed, one that is verified
    quiet = training_of(module)
    task = told_of(module, 6, "sgd lr=0.1")[1].task
    plain = {"device": "cpu", "execution": "eager", "precision": "f32", "draws": "off"}
    assert not quiet(task, plain).draws


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import sys\nsys.exit(0)", "it ends the program (net0.py:6)"),
        ("input('go?')", "it asks for input (net0.py:5)"),
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', required=True)\n"
            "p.parse_args()",
            "it ends the program (net0.py:8)",
        ),
        ("w = torch.ones(2, requires_grad=True)\nw.sum().backward()", "it trains (net0.py:6)"),
        ("1 / 0", "ZeroDivisionError: division by zero (net0.py:5)"),
    ],
)
def test_a_file_that_does_more_than_define_gets_a_sentence(text, reason, tmp_path, capsys):
    module = written(tmp_path, f"{text}  # class\n")
    with pytest.raises(Unsupported) as refused:
        told_of(module, 6, "sgd lr=0.1")
    assert str(refused.value).startswith(f"net0.py can't be imported: {reason}")
    assert capsys.readouterr() == ("", "")


def test_the_users_own_modules_win(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "networks", raising=False)  # what another test's user had
    (tmp_path / "networks.py").write_text("WIDTH = 3", encoding="utf-8")
    (tmp_path / "peers.py").write_text("INPUTS = 4", encoding="utf-8")
    text = "import networks, peers\n#class\ndef make(width=1):\n"
    module = written(tmp_path, f"{text}  return nn.Linear(peers.INPUTS, width * networks.WIDTH)\n")
    assert told_of(module, 6, "sgd lr=0.1")[0]["params"] == 15
    twice = module.scaled(2)
    assert twice.name == "netx2" and told_of(twice, 6, "sgd lr=0.1")[0]["params"] == 30


def test_an_argument_without_an_input_is_said_with_the_remedy(tmp_path):
    text = HEAD + "class Make(nn.Linear):\n    def forward(self, x, y):\n        return x\n"
    module = written(tmp_path, text + "def make():\n    return Make(4, 3)\n")
    with pytest.raises(Unsupported, match="'y'; --input= gives the shape of one argument"):
        told_of(module, 8, "sgd lr=0.1")


def test_a_module_that_takes_no_size_has_one(tmp_path):
    module = written(tmp_path, FORWARDS["dropout"]).scaled(2)
    with pytest.raises(Unsupported, match=r"--scale: .* takes no argument scale"):
        told_of(module, 6, "sgd lr=0.1")


def _drawn(dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(3)
    x = torch.ones(4, 5, dtype=dtype)
    return [
        torch.nn.functional.dropout(x, 0.4),
        torch.rand_like(x),
        torch.randn(3, dtype=dtype),
        torch.bernoulli(x * 0.5),
        torch.empty_like(x).uniform_(-1, 2),
        torch.normal(x, 0.5),
        torch.nn.functional.dropout2d(x[None], 0.5),
    ]


def test_float64_draws_what_float32_draws():
    plain = _drawn(torch.float32)
    with DrawnInF32() as drawing:
        exact = _drawn(torch.float64)
    assert drawing.drew
    for single, double in zip(plain, exact, strict=True):
        assert double.dtype == torch.float64
        assert torch.allclose(single.double(), double, rtol=1e-6, atol=0)
    with DrawnInF32() as drawing, nothing_drawn():
        torch.nn.functional.dropout(plain[0], 0.4) + torch.rand(4, 5) + torch.randn((4, 5))
        heads = torch.ones(1, 2, 4, 8, dtype=torch.float64)
        attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
        assert attended.dtype == torch.float64
    assert not drawing.drew


def counted(folder: Path, layers: str, shape: tuple[int, ...], optimizer: str) -> dict:
    """Of a step of 6 rows; and what it counts by kind: launches, and those of products."""
    text = f"#class\ndef make():\n  return nn.Sequential({layers})"
    module = written(folder, text, inputs=((shape, 0),), loss="mse")
    told, _ = told_of(module, 6, optimizer)
    sums: dict[str, float] = {}
    for each in told["cost"]["operations"]:
        sums[each["kind"]] = sums.get(each["kind"], 0) + each["launches"] * each.get("count", 1)
    return {**told, "launches of": sums}


def flops_of(told: dict, kind: str) -> float:
    operations = [each for each in told["cost"]["operations"] if each["kind"] == kind]
    return sum(each["flops"] * each.get("count", 1) for each in operations)


def test_operations_of_grouped_convolutions_are_counted_in_groups(tmp_path):
    told = counted(tmp_path, "nn.Conv2d(8, 8, 3, groups=8), nn.Flatten()", (8, 5, 5), "sgd lr=0.1")
    forward = 6 * 2 * 9 * 8 * 9  # of rows, places, channels, window
    assert flops_of(told, "convolution") == 2 * forward  # no gradient of the input
    assert flops_of(told, "update") == 2 * told["params"]
    assert told["launches of"]["convolution"] == 2 and told["launches of"]["update"] == 1


LAST = "type('Last', (nn.Module,), {'forward': lambda self, given: given[0][:, -1]})()"


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_a_recurrence_is_one_call_of_a_library_in_each_pass(kind, gates, tmp_path):
    layers = f"nn.{kind}(5, 8, num_layers=2, batch_first=True), {LAST}"
    told = counted(tmp_path, layers, (30, 5), "adam lr=0.1")
    assert told["launches of"]["product"] == 2 * 2  # layers, passes
    rows, width = 6 * 30, gates * 8
    of_products = 2 * rows * width * ((5 + 8) + (8 + 8))
    beside = 2 * rows * ((7 + 5) * width + (8 + 10) * 8)
    assert flops_of(told, "product") == 3 * of_products + beside
    assert told["launches"] < 60 and told["launches of"]["view"] > 0
    memory = told["cost"]["memory_bytes"]
    assert memory["parameters"] == 4 * told["params"]
    assert memory["peak"] > memory["activations"] + memory["parameters"] + memory["optimizer"]
    assert memory["optimizer"] >= 2 * memory["parameters"]  # and a step each


def test_what_nobody_can_count_is_trained_all_the_same(tmp_path, monkeypatch):
    def unwatched(*_: object) -> None:
        raise RuntimeError("no mode sees this")

    monkeypatch.setattr(own_training.OwnTraining, "counted", unwatched)
    facts = answer(written(tmp_path, FORWARDS["normed"]), tmp_path)["facts"]
    assert "cost" not in facts and facts["flops"] == 2 * facts["params"]


def test_what_a_step_starts_and_keeps_is_counted(tmp_path):
    told = counted(tmp_path, "nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)", (4,), "sgd lr=0.1")
    shapes = {
        (product["m"], product["n"], product["k"])
        for each in told["cost"]["operations"]
        for product in each.get("products", ())
    }
    assert shapes == {(6, 8, 4), (6, 3, 8), (3, 8, 6), (6, 8, 3), (8, 4, 6)}
    assert flops_of(told, "product") == 2 * 6 * (2 * 32 + 3 * 24)
    kept = told["cost"]["memory_bytes"]["activations"]
    assert 6 * (8 + 3) * 4 <= kept <= 2 * 6 * (8 + 8 + 3 + 3) * 4


def test_rows_are_told_before_anything_is_measured(tmp_path):
    module = written(tmp_path, FORWARDS["dropout"])
    path = tmp_path / "net.module.json"
    module.write(path)
    words = [f"--network={path}", "--batch=4,8", "--threads=1,2", "--devices=cpu", "--rows=32"]
    rows = [row["configuration"] for row in own.OwnRows(own._asked(words)).describe()["rows"]]
    assert len(rows) == 2 * 2 * 2 * 2  # families, batches, threads, modes
    assert {row["program"] for row in rows} == {"pytorch"}
    sizes = own.OwnRows(own._asked([*words, "--scale=2,1"])).describe()
    assert sizes["ladders"] == {"net": ["net", "netx2"]} and sizes["ladder_batches"] == {"net": 4}
    assert own._asked(words).optimizer == "sgd lr=0.01"
    adamw = own._asked([*words, "--optimizer=adamw", "--lr=0.1"]).optimizer
    assert adamw == "adamw lr=0.1 weight_decay=0.0001"


def test_make_writes_what_the_worker_reads(tmp_path, capsys):
    module = written(tmp_path, TWO)
    path = tmp_path / "net.module.json"
    words = ["make", module.source, "--input=4", "--input=5", "--input-type=numbers"]
    words += ["--input-type=tokens:9", "--name=net", f"-o{path}", "--reason=so"]
    assert own.main(words) == 0
    assert "net: 46 parameters, trained by cross-entropy; it is" in capsys.readouterr().err
    assert Module.read(path) == Module("net", module.source, INPUTS, reason="so")
    assert own.main([*words, "--output=3"]) == 1
    refusal = "python -m peers.pytorch.own: --output=3: the module's outputs are 1, from 0\n"
    assert capsys.readouterr().err == refusal
    squashed = written(tmp_path, "return self.a(x).softmax(1)").source
    assert own.main(["make", squashed, "--input=4", "--name=net", f"-o{path}"]) == 0
    assert "it ends with a softmax, and cross-entropy takes another" in capsys.readouterr().err
    assert own.main(["make", f"{squashed}s", "--input=4", "--name=net", f"-o{path}"]) == 1
    assert "net2.py has nothing named 'makes'; it has Net, make\n" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        own.main([*words, "--loss-function=huber"])
    assert "'huber' is none of cross-entropy, nll, mse, bce, module, nor" in capsys.readouterr().err
