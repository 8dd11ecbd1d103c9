# SPDX-License-Identifier: Apache-2.0
"""From which size several ranks pay on each device, what they cost, and what their sums lead to
expect. No time of several GPUs here, or anywhere, is measured."""

import json
from typing import Any

import numpy as np
import pytest

from crossover_bench.answers.ranks import section
from crossover_bench.answers.ranks.analysis import (
    more_ranks,
    ranks_sentence,
    ranks_tables,
    shared,
    shared_tables,
    sum_seconds,
)
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.curves import thread_pairs
from crossover_bench.files.loading import load_file
from crossover_bench.show.page.section import Context
from crossover_bench.tests import synthetic
from crossover_bench.tests.conftest import undraw
from crossover_bench.tests.synthetic_probes import sums
from crossover_bench.tests.synthetic_sweep import DISC_MODELS

CROSSING = {"cpu": 100_000.0, "cuda": 1_000_000.0}
ONE = {"cpu": "1 process", "cuda": "1 GPU"}
TWO = {"cpu": "2 ranks", "cuda": "2 GPUs"}
DEVICES = pytest.mark.parametrize("device", ["cpu", "cuda"])


def ways(model: str, device: str) -> list[dict[str, str]]:
    """How one process trains: the first is the fastest."""
    if device == "cpu":
        return [synthetic.cpu_configuration(model, threads) for threads in (1, 2)]
    return [
        synthetic.gpu_configuration(model, execution, "resident")
        for execution in ("graph", "eager")
    ]


def on_ranks(model: str, ranks: int, batch: str, device: str) -> dict[str, str]:
    alone = ways(model, device)[0]
    return {**alone, "batch": batch, "execution": "eager", "ranks": str(ranks)}


def sweep(batch: str = "100", device: str = "cpu", **more: Any) -> list[dict[str, Any]]:
    """One process in two ways(); two ranks, with batches of `batch`, which pay from CROSSING
    parameters. Their rows have `more`."""
    generator = np.random.default_rng(3)
    entries = []
    for model in DISC_MODELS:
        params = float(synthetic.MODELS[model][0])
        alone = 1e-3 * (params / CROSSING[device]) ** 0.9
        together = 1e-3 * (params / CROSSING[device]) ** 0.6
        first, second = ways(model, device)
        waits = {"ranks": 2, "seconds_communication": 0.25 * together, **more}
        for configuration, centre, facts in (
            (first, alone, {}),
            (second, 1.2 * alone, {}),
            (on_ranks(model, 2, batch, device), together, waits),
        ):
            times = centre * (1 + generator.gamma(2.0, 0.005, 9))
            entries += synthetic.samples(configuration, times.tolist(), **facts)
    return entries


def document(*devices: str, **more: Any) -> dict[str, Any]:
    """A file of one process and two ranks on each of `devices`, and of their sums."""
    entries = [
        entry for device in devices for entry in (*sweep(device=device, **more), *sums(device))
    ]
    return synthetic.document(entries, gpu="synthetic GPU" if "cuda" in devices else None)


@pytest.fixture
def file(read):
    return read(document("cpu"))


@DEVICES
def test_ranks_pay_where_the_curves_cross(read, device):
    (pair,) = more_ranks(read(document(device)))
    assert pair.device == device and pair.sides == (ONE[device], TWO[device])
    assert pair.crossover.size == pytest.approx(CROSSING[device], rel=0.05)
    assert pair.crossover.low < CROSSING[device] < pair.crossover.high
    assert ranks_sentence(pair).startswith(
        f"At batch 100, {TWO[device]} train disc networks faster than {ONE[device]} from "
    )
    assert ("cpu_threads" in pair.cpu.configuration) == (device == "cpu")
    assert "?" not in str(pair.cpu.words)


def test_each_device_is_compared_with_itself(read):
    both = read(document("cuda", "cpu"))
    compared = more_ranks(both)
    assert [pair.device for pair in compared] == ["cpu", "cuda"]
    for pair in compared:
        file = read(document(pair.device))
        assert pair.crossover == more_ranks(file)[0].crossover
        of_device = [each for each in shared(both) if each.device == pair.device]
        assert [each.modelled for each in of_device] == [each.modelled for each in shared(file)]
        assert {row.device for each in of_device for row in (each.alone, each.like)} == {
            pair.device
        }
    tables = [*shared_tables(shared(both)), *ranks_tables(both, compared)]
    assert [table.title.partition(",")[0] for table in tables] == [
        "What several ranks bring",
        "What several GPUs bring",
        "From which size several ranks train faster than one process",
        "From which size several GPUs train faster than one GPU",
    ]


def test_ranks_that_share_a_gpu_say_nothing_of_several(write, read, shell):
    warning = "ranks may share a GPU (NCCL_MULTI_RANK_GPU_ENABLE=1): that tests them"
    tested = document("cuda", warnings=[warning])
    assert more_ranks(read(tested)) == [] and shared(read(tested)) == []
    note = shell("crossover", "--ranks", write(tested)).err
    assert "on several ranks, but on some that share a GPU; ./run" in note


def test_arithmetic_that_is_not_plain_is_said(read):
    entries = [*sweep(device="cuda"), *sums("cuda")]
    for entry in json.loads(json.dumps(sweep(device="cuda"))):
        entry["configuration"]["precision"] = "tf32"
        entries.append({**entry, "name": synthetic.row_name(entry["configuration"])})
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    plain, other = map(ranks_sentence, more_ranks(file))
    assert plain.startswith("At batch 100, 2 GPUs")
    assert other.startswith("At batch 100 in TF32, 2 GPUs")
    (table,) = shared_tables(shared(file))
    assert {record["ranks"] for record in table.records()} == {"2 GPUs", "2 GPUs, tf32"}


def test_what_ranks_share_is_no_row_of_one_process(file):
    ((_, fewest, most),) = thread_pairs(file)
    assert "ranks" not in fewest.configuration and "ranks" not in most.configuration
    assert comparisons(file) == []


@DEVICES
def test_each_network_stands_beside_its_fastest_process(read, device):
    by_model = {network.row.model: network for network in shared(read(document(device)))}
    assert by_model.keys() == set(DISC_MODELS)
    large = by_model[DISC_MODELS[-1]]
    assert large.alone and large.alone.configuration == ways(large.row.model, device)[0]
    assert large.speed_up == pytest.approx(large.alone.median / large.row.median)
    assert large.efficiency == pytest.approx(large.speed_up / 2)
    assert large.communication == pytest.approx(0.25, rel=0.05)
    (table,) = shared_tables(list(by_model.values()))
    record = table.records()[0]
    assert (record["ranks"], record["execution"], record["alone_how"]) == {
        "cpu": ("2 ranks of 1 thread", "eager", "eager, 1 thread"),
        "cuda": ("2 GPUs", "eager, resident", "graph, resident"),
    }[device]


@DEVICES
def test_weak_scaling_gives_each_rank_the_batch_of_one_process(write, read, shell, device):
    file = read(synthetic.document(sweep(batch="200", device=device)))
    assert more_ranks(file) == []
    (pair,) = more_ranks(file, weak=True)
    assert pair.crossover.low < CROSSING[device] < pair.crossover.high and pair.batch == "100"
    assert f"{TWO[device]} with a batch each train" in ranks_sentence(pair)
    assert {each.row.batch for each in shared(file, weak=True) if each.like} == {"100"}
    path = write(synthetic.document(sweep()))
    assert "--batch=100,200" in shell("crossover", "--ranks", "--scaling=weak", path).err


@DEVICES
def test_what_is_expected_is_a_share_and_a_sum_for_each_step(read, device):
    file = read(document("cpu", "cuda"))

    def seconds(size: float) -> float:
        expected = sum_seconds(file, device, 2, size)
        assert expected is not None
        return expected

    known = (1e-6 + 1e-9 * 4_194_304) * {"cpu": 1, "cuda": 10}[device]
    assert seconds(4_194_304) == pytest.approx(known, rel=0.1)  # its noise
    assert seconds(2 * 4_194_304) == pytest.approx(2 * known, rel=0.1)
    assert seconds(4) < seconds(100) < seconds(4096)
    assert sum_seconds(file, device, 3, 4096) is None
    of_device = (network for network in shared(file) if network.row.device == device)
    network = next(network for network in of_device if network.row.model == "disc-7")
    steps = network.row.counters["steps"]
    summed = seconds(4 * network.row.counters["params"])
    assert network.modelled == pytest.approx(network.like.median / 2 + steps * summed)


def test_sums_of_another_device_are_none(read):
    file = read(synthetic.document([*sweep(device="cuda"), *sums("cpu")], gpu="synthetic GPU"))
    assert sum_seconds(file, "cuda", 2, 4096) is None
    assert {network.modelled for network in shared(file)} == {None}


@pytest.mark.parametrize("devices", [("cpu",), ("cuda",), ("cpu", "cuda")])
def test_the_page_and_the_terminal_say_the_same(write, shell, tmp_path, devices, monkeypatch):
    if len(devices) == 1:  # what both draw is what each would
        undraw(monkeypatch)
    path = write(document(*devices))
    built = section.build([load_file(path)], Context())
    assert built and built.title == "More than one"
    several = {"cpu": "several processes", "cuda": "several GPUs"}
    assert f" {' and '.join(several[device] for device in devices)} train" in built.lead
    assert any("NCCL" in note for note in built.notes) == ("cuda" in devices)
    (block,) = built.blocks
    shown = [table for table in block.tables if not table.folded]
    assert len(block.points) == len(block.pictures) == len(shown) == len(devices)
    for picture, device in zip(block.pictures, devices, strict=True):
        assert f"{TWO[device]} train disc networks faster than {ONE[device]}" in picture.alt
    charts = tmp_path / "charts"
    printed = shell("crossover", "--ranks", f"--charts={charts}", path).out
    printed = " ".join(printed.split())
    assert all(point in printed for point in block.points)
    assert len(list(charts.glob("*.svg"))) == len(devices)
