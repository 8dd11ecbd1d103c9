# SPDX-License-Identifier: Apache-2.0
"""All that measures PyTorch's GPU, on the stand-in: python -m ...whole_way LIBRARY prints as JSON
what came of it, and how many kernels each thing that was timed had at least."""

import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import crossover_bench
from crossover_bench.peers.pytorch import devices, own
from crossover_bench.peers.pytorch.__main__ import Rows
from crossover_bench.peers.pytorch.counterparts import Wanted
from crossover_bench.peers.pytorch.own_module import Module
from crossover_bench.peers.tests import HEART, ours
from crossover_bench.tests.stand_in import KIND, StandIn

SLEEP = 4e-3  # seconds of a kernel: a step is much longer on the device than it is to start
EPOCH = ours("heart", batch="10")
_NET = """
from torch import nn
def make():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
"""


def asked(device: StandIn) -> dict[str, Any]:
    """Of crossover_bench.ask, which finds the device by itself."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = [(torch.randn(8, 20), torch.randint(4, (8,))) for _ in range(3)]
    answer = crossover_bench.ask(model, loader, loss=cross_entropy, optimizer=optimizer, seconds=6)
    assert isinstance(answer, crossover_bench.in_hand.answer.Answer)
    copy = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 4)).to(KIND)
    x, y = (part.to(KIND) for part in loader[0])
    devices.waits_for(torch.device(KIND))()
    before = device.kernels
    cross_entropy(copy(x), y).item()
    kernels = device.kernels - before
    gpu = answer.gpu
    assert gpu is not None
    return {
        "text": str(answer),
        "verdict": answer.verdict,
        "is_finite": gpu.is_finite,
        "problem": gpu.problem,
        "seconds": gpu.seconds,
        "before_the_loss": kernels,
    }


def rows_of(rows: Rows, device: StandIn, configuration: dict[str, str], told: Any) -> Any:
    """A row of the worker, made, verified and timed once; with kernels of an iteration."""
    made = rows.prepare("row", configuration, told)
    if "facts" not in made:
        return made
    work = rows._rows["row"].work
    device.sleep(0)
    work.restart()
    work.run()
    devices.waits_for(torch.device(KIND))()
    before = device.kernels
    work.run()
    devices.waits_for(torch.device(KIND))()
    kernels = device.kernels - before
    device.sleep(SLEEP)
    work.run()
    pending = device.pending
    times = rows.repeat("row", 1e-3)["times"]
    rows.release("row")
    facts = made["facts"]["verification"]
    seconds = times["real_time"] / 1e3
    return {"seconds": seconds, "kernels": kernels, "pending": pending, "verification": facts}


def of_worker(device: StandIn) -> dict[str, Any]:
    """Of rows of PyTorch beside rows that bench has on the CPU."""
    rows = Rows(Wanted(scripts=("usual", "lean"), torch_device=KIND))
    described = rows.describe()
    there = [row["configuration"] for row in rows.rows(EPOCH, shape=(13,))["rows"]]
    told: dict[str, Any] = {
        "gpu": described["gpu"],
        "axis": next(axis for axis in described["axes"] if axis["key"] == "torch_device"),
        "rows": there,
    }
    by_script = {row.get("script", "lean"): row for row in there if row["device"] != "cpu"}
    for script, row in by_script.items():
        told[script] = rows_of(rows, device, row, HEART)
    with mock.patch("crossover_bench.peers.pytorch.training.waits_for", _waits_for_none):
        rows.prepare("row", by_script["lean"], HEART)
    work: Any = rows._rows["row"].work
    work.batches = []  # of whose steps some operations wait by themselves
    numbers = torch.zeros(4, device=KIND)
    devices.waits_for(torch.device(KIND))()
    with device.held():
        numbers.add_(1)
        work.run()
        told["pending without a wait"] = device.pending
    return told


def _waits_for_none(_: torch.device) -> Any:
    return lambda: None


def of_module(device: StandIn, folder: Path) -> Any:
    """Of a module as it is."""
    (folder / "net.py").write_text(_NET, encoding="utf-8")
    module = Module("net", f"{folder / 'net.py'}:make", inputs=(((4,), 0),))
    module.write(folder / "net.module.json")
    words = [f"--network={folder / 'net.module.json'}", "--batch=8", "--mode=eager", "--threads=1"]
    rows = own.OwnRows(own._asked(words))
    configurations = [row["configuration"] for row in rows.describe()["rows"]]
    (there,) = [row for row in configurations if row["device"] == "cuda"]
    return {"row": there, **rows_of(rows, device, there, None)}


def of_two(folder: Path) -> dict[str, Any]:
    """Of a function on either side."""
    answer = crossover_bench.two(
        cpu=lambda x: np.square(x) + 1,
        gpu=lambda x: torch.square(x) + 1,
        make=lambda n: np.arange(n, dtype=np.float32),
        n=[64, 256],
        seconds=2,
        to={"gpu": KIND},
    )
    answer.save(folder / "two.json")
    context = json.loads((folder / "two.json").read_text("utf-8"))["context"]
    return {"text": str(answer), "gpu": context["gpu"]}


def main(library: str) -> None:
    device = StandIn(Path(library))
    torch.set_num_threads(1)
    device.sleep(SLEEP)
    told = {"ask": asked(device), "two": of_two(Path(library).parent)}
    device.sleep(0)
    told["worker"] = of_worker(device)
    told["module"] = of_module(device, Path(library).parent)
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
