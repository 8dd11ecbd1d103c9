# SPDX-License-Identifier: Apache-2.0
"""crossover_bench.watch: a loop that is there already, watched for a few steps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch.autograd import DeviceType  # noqa: E402
from torch.optim import optimizer as of_torch  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import crossover_bench  # noqa: E402
from crossover_bench.in_hand.watching import Watched, read  # noqa: E402


def trained(steps: int) -> int:
    """A user's loop; how many steps it made."""
    model = torch.nn.Linear(16, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.rand(4 * steps, 16)), batch_size=4)
    count = 0
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        count += 1
    return count


def test_a_loop_is_watched_and_goes_on(capsys):
    with crossover_bench.watch(steps=4) as seen:
        assert trained(20) == 20
    assert seen.steps == 4 and seen.step_seconds > 0 and not seen.on_gpu
    assert seen.has_loader and 0 < seen.data < 1 and 0 < seen.device < 1
    assert seen.data + seen.device + seen.host == pytest.approx(1)
    shown = capsys.readouterr().err
    assert shown.count("A step takes") == 1 and "the profiler made them" in shown
    assert not of_torch._global_optimizer_post_hooks


def test_a_loop_that_ends_early_or_fails_is_its_own(capsys):
    with crossover_bench.watch() as seen:
        trained(5)
    assert "the loop made 5 steps of an optimizer, and 14 are needed" in seen.problem
    with pytest.raises(ZeroDivisionError), crossover_bench.watch(steps=2):
        trained(6)
        raise ZeroDivisionError
    assert not of_torch._global_optimizer_post_hooks
    assert torch.autograd.profiler._is_profiler_enabled is False
    with pytest.raises(ValueError, match="steps=0 is no"), crossover_bench.watch(0):
        pass


def event(name: str, start: float, end: float, kind: DeviceType = DeviceType.CPU):
    return SimpleNamespace(
        name=name, time_range=SimpleNamespace(start=start, end=end), device_type=kind
    )


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("kernels", "shares", "words"),
    [
        # Of 1,000 µs: the loader's 400, of which PyTorch's operations are 100; 300 of others.
        ([], (0.4, 0.3, 0.3), "A GPU shortens 30 % of a step at most"),
        # A kernel of 500 that begins while the loader is at work: 200 of it are waited for.
        ([("k", 200, 700)], (0.2, 0.5, 0.3), "The GPU waits for Python"),
    ],
)
def test_shares_are_of_what_is_waited_for(kernels, shares, words):
    events = [event(LOADER, 0, 400), event("aten::stack", 100, 200), event("aten::mm", 500, 800)]
    events += [event("aten::addmm", 550, 600)]  # within the other
    events += [event(*kernel, DeviceType.CUDA) for kernel in kernels]
    seen = Watched()
    read(seen, events, [1e-3], [1e-3])
    assert (seen.data, seen.device, seen.host) == pytest.approx(shares)
    assert words in repr(seen).replace("\n ", "") and seen.on_gpu == bool(kernels)


def test_a_device_whose_work_the_profiler_does_not_see_is_named(capsys):
    model = torch.nn.Linear(16, 2, device="meta")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with crossover_bench.watch(steps=2) as seen:
        for _ in range(20):
            model(torch.rand(4, 16, device="meta")).square().mean().backward()
            optimizer.step()
    assert seen.problem.startswith("Nothing was watched: PyTorch's profiler sees no work of meta")
    assert capsys.readouterr().err.count("Nothing was watched") == 1
