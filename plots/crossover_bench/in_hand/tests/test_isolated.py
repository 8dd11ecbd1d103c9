# SPDX-License-Identifier: Apache-2.0
"""crossover_bench.ask(…, isolated=True): several processes get what the user holds."""

from __future__ import annotations

import threading
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch.nn.functional import cross_entropy  # noqa: E402

import crossover_bench  # noqa: E402
from crossover_bench.functions.isolated import INSTANCES  # noqa: E402
from crossover_bench.in_hand import asking, isolated  # noqa: E402
from crossover_bench.in_hand.copies import Given  # noqa: E402
from crossover_bench.in_hand.tests.test_asking import Net, loader_of  # noqa: E402
from crossover_bench.in_hand.turns import Side  # noqa: E402
from crossover_bench.spawned import EndedError  # noqa: E402

CPU = torch.device("cpu")


def made():
    """Without functions of a test's own, which cloudpickle alone would send."""
    model = Net()
    return model, torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)


def ask(model, loader, optimizer, **options):
    options = {"devices": ["cpu"], "seconds": 1.0, "isolated": True, **options}
    return crossover_bench.ask(model, loader, loss=cross_entropy, optimizer=optimizer, **options)


@pytest.mark.slow
def test_several_processes_measure():
    """Takes seconds, as five processes start."""
    model, optimizer = made()
    answer = ask(model, loader_of(), optimizer)
    assert set(answer.cpu.processes) == set(range(INSTANCES))
    assert f"{INSTANCES} new processes measured it" in " ".join(answer.why)


def test_a_process_trains_copies_under_the_users_settings():
    model, optimizer = made()
    before = model.first.weight.clone()
    with torch.autocast("cpu", torch.bfloat16):
        task = isolated.sent(Given(model, cross_entropy, optimizer), loader_of(), [CPU], False)
    try:
        (side,) = isolated.run((task, time.time() + 0.3))
        assert torch.is_autocast_enabled("cpu")  # this process stands for the new one
    finally:
        torch.set_autocast_enabled("cpu", False)
    assert side.turns and not side.problem and torch.equal(model.first.weight, before)


def test_what_each_process_knows_is_put_together(monkeypatch):
    def called(function, sent, seconds=None):
        del function, sent, seconds
        number = next(numbers)
        if number == 2:
            raise EndedError("exit code 9")
        return [Side(CPU, turns=[[]] * (number + 1), ready=[1.0] * number)]

    numbers = iter(range(INSTANCES))
    monkeypatch.setattr(isolated, "call", called)
    side = Side(CPU)
    remarks = isolated.measured(b"", [side], 1.0, lambda _: None)
    assert remarks == ("A new process ended with exit code 9.",)
    assert side.processes == [0, 1, 1, 3, 3, 3, 3, 4, 4, 4, 4, 4]
    assert side.ready_processes == [1, 3, 3, 3, 4, 4, 4, 4]


def test_what_cannot_be_sent_is_named_and_measured_here(monkeypatch):
    monkeypatch.setattr(asking, "measured", lambda *_: pytest.fail("a process is started"))
    model, optimizer = made()
    data = loader_of()
    data.dataset.lock = threading.Lock()
    answer = ask(model, data, optimizer)
    assert answer.cpu_seconds and not answer.cpu.processes
    remark = next(line for line in answer.why if line.startswith("It was measured in this process"))
    assert "cannot pickle '_thread.lock' object" in remark


def test_stopped_or_failed_processes_leave_what_is_known(monkeypatch):
    model, optimizer = made()

    def stops(task, sides, *_):
        sides[0].add(known, 0)
        raise KeyboardInterrupt

    known = isolated.run(
        (
            isolated.sent(Given(model, cross_entropy, optimizer), loader_of(), [CPU], False),
            time.time() + 0.3,
        )
    )[0]
    monkeypatch.setattr(asking, "measured", stops)
    answer = ask(model, loader_of(), optimizer)
    assert answer.is_stopped and answer.cpu_seconds
    known = Side(CPU)
    with pytest.raises(KeyboardInterrupt):
        ask(model, loader_of(), optimizer)
    monkeypatch.undo()
    monkeypatch.setattr(isolated, "call", lambda *_: (_ for _ in ()).throw(EndedError("code 9")))
    with pytest.raises(ValueError, match="Net can't be trained: A new process ended with code 9"):
        ask(model, loader_of(), optimizer)
