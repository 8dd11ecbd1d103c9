# SPDX-License-Identifier: Apache-2.0
"""Energy estimated from data sheets, where no meter was read and the user asks for it."""

import json

import pytest

from crossover_bench.files.families import TRAINING
from crossover_bench.tests import synthetic, synthetic_machine

TDP = ("--of=energy", "--tdp", "cpu=65", "--tdp", "gpu=700")
OF_CPU = "CPU: 65.0 W by the data sheet of the processors, as you say, taken for all of the time: "
OF_CPU += "an estimate, no measurement."


def metered(watts: float, *, gpu_only: bool = False) -> dict:
    """The sweep with joules of meters, or with those of the GPU alone, as virtual machines have."""
    document = synthetic.sweep()
    for entry in document["benchmarks"]:
        if "outcome" not in entry:
            is_gpu = entry["configuration"]["device"] == "cuda"
            joules = watts * 1e-3 * entry["real_time"]
            if not gpu_only:
                entry |= {"joules": joules, "joules_error": 1e-3 * entry["real_time"]}
            elif is_gpu:
                entry["joules_gpu"] = joules
    return document


def ratios(shell, path, *flags) -> list[dict]:
    return json.loads(shell("crossover", path, "--format=json", *flags).out)[1]["rows"]


def test_without_a_meter_it_is_watts_times_seconds_and_named_an_estimate(write, shell):
    path = write(synthetic.sweep())
    printed = shell("crossover", path, *TDP)
    first, second, third = printed.err.splitlines()
    assert first == OF_CPU
    assert second.startswith("GPU: 700 W by the data sheet of the card, as you say")
    assert third.startswith(f"{path}: the energy of ")
    assert third.endswith(" rows is estimated from data sheets, all or in part")
    text = " ".join(printed.out.split())
    assert "From which network size does a GPU need less estimated energy?" in text
    assert "times the estimated energy: " in text
    for time, energy in zip(ratios(shell, path), ratios(shell, path, *TDP), strict=True):
        assert energy["cpu_estimated_joules"] == pytest.approx(65 * time["cpu_seconds"])
        # Beside the card the processors wait for it.
        assert energy["gpu_estimated_joules"] == pytest.approx(765 * time["gpu_seconds"])
        assert energy["speed_up"] == pytest.approx(time["speed_up"] * 65 / 765, rel=1e-3)


def test_a_meter_wins_over_a_data_sheet(write, shell):
    path = write(metered(40))
    printed = shell("crossover", path, *TDP)
    assert "estimate" not in printed.out + printed.err
    assert ratios(shell, path, *TDP) == ratios(shell, path, "--of=energy")


def test_what_no_meter_is_read_around_makes_no_estimate(write, shell):
    """A sweep with --energy has joules of what trains, none of ceilings."""
    document = synthetic_machine.machine(modes=(("graph", "resident"),))
    families = set()
    for entry in document["benchmarks"]:
        families.add(entry["configuration"]["family"])
        if entry["configuration"]["family"] in TRAINING:
            entry["joules"] = 0.04 * entry["real_time"]
    assert families >= {"Epoch", "Peak"}
    printed = shell("crossover", write(document), *TDP)
    assert "estimate" not in printed.out + printed.err


def test_a_part_that_has_a_meter_is_not_estimated(write, shell):
    path = write(metered(300, gpu_only=True))
    times = ratios(shell, path)
    assert "less estimated energy" in shell("crossover", path, "--of=energy", "--tdp=cpu=65").out
    for time, energy in zip(times, ratios(shell, path, *TDP), strict=True):
        assert energy["gpu_estimated_joules"] == pytest.approx(365 * time["gpu_seconds"])
        assert energy["cpu_estimated_joules"] == pytest.approx(65 * time["cpu_seconds"])


def test_without_being_asked_nothing_is_estimated(write, shell):
    document = metered(300, gpu_only=True)
    document["context"]["crossover"]["energy"] = {"reason": "virtual machines have none"}
    printed = shell("crossover", write(document), "--of=energy")
    assert "left out, for want of energy (counter joules)" in printed.err
    assert "no crossover, because no row has energy: virtual machines have none" in printed.err
    assert "; or estimate it, with --tdp cpu=65 --tdp gpu=700" in printed.err
    assert "estimated" not in printed.out + printed.err


def test_how_exact_meters_are_is_said(write, shell):
    path = write(metered(40))
    assert f"{path}: the meters may be off by " in shell("compare", path, path, "--of=energy").err
    assert "(docs/method/bounds.md)" in shell("why", path, "--of=energy").err


@pytest.mark.usefixtures("undrawn")
def test_all_commands_call_it_an_estimate(write, shell, tmp_path):
    path = write(synthetic_machine.machine(modes=(("graph", "resident"),)))
    why = " ".join(shell("why", path, *TDP).out.split())
    assert "CPU time / GPU time × CPU data-sheet power / GPU data-sheet power" in why
    assert "what makes the estimated energy" in why
    assert "median estimated energy" in shell("compare", path, path, *TDP).out
    assert "estimated energy of 1 epoch" in shell("advise", path, "--mlp=784,512,10", *TDP).out
    assert "would need less estimated energy" in shell("predict", path, "--gpu=l4", *TDP).out
    shell("report", path, f"--out={tmp_path / 'page'}", *TDP)
    page = (tmp_path / "page" / "index.html").read_text("utf-8")
    assert OF_CPU in page and "less estimated energy" in page


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--tdp=cpu=65",), "--tdp is of energy; say --of=energy, too, or leave it out"),
        (("--tdp=cpu=65", "--of=cost"), "--tdp is of energy; say --of=energy, too"),
        (("--of=energy", "--tdp=65"), "--tdp: 65 is no power of a side; say cpu=65, gpu=700: "),
        (("--of=energy", "--tdp=tpu=65"), "--tdp: tpu=65 is no power of a side; say cpu=65"),
        (("--of=energy", "--tdp=cpu=65kW"), "--tdp: cpu=65kW is no power of a side; say cpu=65"),
        (("--of=energy", "--tdp=cpu="), "--tdp: cpu= is no power of a side; say cpu=65"),
        (("--of=energy", "--tdp=cpu=0"), "--tdp: cpu=0 is 0, and must be a number above 0"),
        (("--of=energy", "--tdp=cpu=-5"), "--tdp: cpu=-5 is -5, and must be a number above 0"),
        (("--of=energy", "--tdp=cpu=1e6"), "is 1e6, and must be a number above 0 and below 1e6"),
        (("--of=energy", "--tdp=cpu=1e999"), "must be a number above 0 and below 1e6"),
        (("--of=energy", "--tdp=cpu=1-1"), "cpu=1-1 is 1-1, and must be a number above 0"),
        (("--of=energy", "--tdp=gpu=1", "--tdp=gpu=2"), "gpu=2: gpu has 1 W already; leave out"),
        (("--of=energy", "--tdp=cpu=65"), "--tdp must say the watts of the gpu, too: say cpu=65"),
        (("--of=energy", "--tdp=gpu=65"), "--tdp must say the watts of the cpu, too: say cpu=65"),
    ],
)
def test_what_is_no_power_is_said(write, shell, flags, why):
    printed = shell("crossover", write(synthetic.sweep()), *flags, code=2)
    assert why in printed.err and not printed.out


def test_predictions_need_both_sides(write, shell):
    path = write(synthetic.sweep())
    for command in (("advise", "--mlp=10,10,2"), ("predict", "--gpu=l4")):
        refused = shell(*command, path, "--of=energy", code=2).err
        assert "so measure it, and say crossover --of=energy, or estimate it, with --tdp" in refused
        refused = shell(*command, path, "--of=energy", "--tdp=gpu=72", code=2).err
        assert "--tdp must say the watts of the cpu, too" in refused
