# SPDX-License-Identifier: Apache-2.0
"""PyTorch against PyTorch: what its loop takes on both devices, and where a card would win."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossover_bench.answers.predict import host
from crossover_bench.answers.predict.analysis import Wanted
from crossover_bench.answers.predict.answer import in_pytorch, sentences
from crossover_bench.answers.predict.pytorch import cpu_rows, pytorch_outlooks
from crossover_bench.answers.predict.ways import PYTORCH_WAY, Band
from crossover_bench.counts.cards import load_cards
from crossover_bench.files import loading
from crossover_bench.files.rows import File
from crossover_bench.tests.test_predict_model import kept
from crossover_bench.tests.test_prediction_docs import pytorch_on_cpus, pytorch_on_gpus

RESULTS = Path(__file__).parents[3] / "results"
CARDS = load_cards()
WANTED = Wanted((CARDS["l4"],), (PYTORCH_WAY,))


@pytest.fixture(scope="module")
def with_pytorch() -> File:
    """Of a CPU on which PyTorch trained the whole ladder, too."""
    return loading.load_file(RESULTS / "intel-xeon-6-207-2c" / "2026-11-22-9aa0c79.json")


@pytest.fixture(scope="module")
def without(with_pytorch) -> File:
    return replace(with_pytorch, peers=())


@pytest.mark.slow
def test_steps_on_a_cpu_are_foretold_without_its_machine_and_their_network():
    """docs/evidence/prediction_pytorch.md has them. Takes long, as each has a fit of its own."""
    inside = [times.low <= loop.seconds <= times.high for loop, times in pytorch_on_cpus()]
    assert len({loop.machine for loop, _ in pytorch_on_cpus()}) >= 3
    assert np.mean(inside) >= 0.88
    for machine in {loop.machine for loop, _ in pytorch_on_cpus()}:
        its = [(loop, times) for loop, times in pytorch_on_cpus() if loop.machine == machine]
        logs = [math.log(times.seconds / loop.seconds) for loop, times in its]
        assert math.sqrt(np.mean(np.square(logs))) < math.log(1.4), machine


def test_eager_steps_on_gpus_lie_in_the_band_of_a_fit_without_them():
    for loop, times in pytorch_on_gpus():
        assert times.low <= loop.seconds <= times.high, loop


def test_what_an_optimizer_calls_counts():
    """Adam calls eight operations for each parameter where SGD calls one."""
    disc, policy = kept("disc-3", 100), kept("policy", 32)  # of as many layers
    known = host.fitted().host
    assert host.calls(policy) - host.calls(disc) == pytest.approx(6 * 7.4)
    more = host.calls(policy) - host.calls(disc)
    assert known.count(policy) - known.count(disc) == pytest.approx(more + known.adam)


def test_a_slow_thread_starts_operations_slowly():
    loops = host.fitted().loops
    times = host.of_machine(loops[0].machine, loops)
    plain = host.call_of(times, host.fitted().host, loops)
    slow = host.call_of({name: 3 * time for name, time in times.items()}, host.fitted().host, loops)
    assert slow.middle == pytest.approx(3 * plain.middle) and slow.spread == plain.spread
    unknown = host.call_of({}, host.fitted().host, loops)
    assert unknown.spread > 3 * plain.spread


def test_measured_rows_of_pytorch_are_what_a_card_is_compared_with(with_pytorch, fitted):
    (verdict,) = in_pytorch(with_pytorch, fitted, WANTED)
    fastest = {}
    for row in cpu_rows(with_pytorch, WANTED, usual=False):
        if row.family == "Epoch":
            fastest[row.model] = min(row.median, fastest.get(row.model, math.inf))
    shown = {
        network.model: float(np.median(network.cpu.samples[0]))
        for network in verdict.chosen.networks
        if network.family == "Epoch"
    }
    assert shown == fastest and len(shown) == 12
    assert verdict.chosen.was_measured
    assert "against PyTorch on this CPU, measured); predicted" in sentences([verdict])[0]


def test_where_pytorch_did_not_run_its_cpu_is_predicted_too(with_pytorch, without, fitted):
    """From our rows, with PyTorch's own rows of this machine in nothing but the fit."""
    (measured,) = in_pytorch(with_pytorch, fitted, WANTED)
    (predicted,) = in_pytorch(without, fitted, WANTED)
    assert not predicted.chosen.was_measured
    assert "against PyTorch on this CPU, predicted); predicted" in sentences([predicted])[0]
    for crossover in (measured.comparison.crossover, predicted.comparison.crossover):
        assert crossover.low < 260_000 < crossover.high  # as other files of such a CPU say
        assert crossover.high / crossover.low < 150
    assert predicted.comparison.gpu.configuration["program"] == "pytorch"
    assert predicted.comparison.cpu.configuration["program"] == "pytorch"


def test_both_sides_have_the_same_host(without, fitted, monkeypatch):
    """A processor that starts operations slowly does so on both sides: with the ratio known, how
    slow it is hardly matters to small networks."""
    known = host.fitted()
    exact = replace(known, ratio=Band(3.0, 3.0), error=replace(known.error, spread=0.0))
    monkeypatch.setattr(host, "fitted", lambda: exact)
    (outlook,) = pytorch_outlooks(without, fitted, WANTED)
    (small,) = (network for network in outlook.networks if network.model == "disc-2")
    assert small.low == pytest.approx(small.high, rel=0.01)
    assert small.ratio == pytest.approx(1 / 3, rel=0.02)


def test_what_the_usual_script_takes_beside_both_devices_pay(with_pytorch, fitted):
    """A loader of 5 ms an epoch, of ten steps, moves the ratio of each network towards 1."""
    rows = cpu_rows(with_pytorch, WANTED, usual=False)
    axes = rows[0].axes.extended([{"key": "script", "role": "how", "values": ["lean", "usual"]}])
    usual = [
        replace(
            row,
            samples=row.samples + 5e-3,
            configuration={**row.configuration, "script": "usual"},
            axes=axes,
        )
        for row in rows
        if row.model in ("disc-2", "disc-5", "disc-9")
    ]
    file = replace(with_pytorch, peers=(*usual, *with_pytorch.peers))
    assert cpu_rows(file, WANTED, usual=True) == usual
    (plain,), (written,) = (pytorch_outlooks(each, fitted, WANTED) for each in (with_pytorch, file))
    sides = [
        {network.model: network for network in outlook.networks if network.family == "Epoch"}
        for outlook in (plain, written)
    ]
    for model in ("disc-2", "disc-4", "disc-9"):
        before, after = (each[model] for each in sides)
        for side in ("cpu", "gpu"):
            times = [float(np.median(getattr(each, side).samples[0])) for each in (before, after)]
            assert times[1] - times[0] == pytest.approx(5e-3, rel=0.05), (model, side)
        assert abs(math.log(after.ratio)) < abs(math.log(before.ratio))
    assert plain.was_measured and not written.was_measured
    assert written.cpu.startswith("PyTorch on this CPU, predicted but for 3 of ")


def test_a_file_without_networks_has_no_verdict(with_pytorch, fitted):
    assert in_pytorch(replace(with_pytorch, rows=(), peers=()), fitted, WANTED) == []
