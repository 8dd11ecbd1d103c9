# SPDX-License-Identifier: Apache-2.0
"""One machine's CPU with another's GPU."""

from __future__ import annotations

import numpy as np
import pytest

from plots import mix, rows
from plots.cli import main
from plots.commands import compare as command
from plots.crossover import Comparison, Crossover, Curve
from plots.formats import FORMATS, render
from plots.tests import synthetic


def document(machine: str, gpu: str | None, commit: str = "") -> dict:
    content = synthetic.sweep(gpu=gpu is not None)
    crossover = content["context"]["crossover"]
    crossover["machine"]["id"] = machine
    crossover["machine"]["gpu"] = {"name": gpu} if gpu else None
    crossover["machine"]["cpu"]["model"] = f"CPU of {machine}"
    crossover["software"]["commit"] = commit
    return content


@pytest.fixture
def files(write):
    """The paths of a machine without a GPU and of one with a GPU."""
    return (
        write(document("old", None, "a" * 40), "old.json"),
        write(document("new", "shiny", "b" * 40), "new.json"),
    )


def answer(file: rows.File) -> list[Comparison]:
    """What comparisons() could say of `file`: one pair of curves."""
    sizes, times = np.array([1e3, 1e6]), (np.ones(9), np.ones(9))
    cpu = Curve("CPU, 2 threads", {"device": "cpu", "cpu_threads": "2"}, sizes, times)
    gpu = Curve("GPU, graph", {"device": "cuda"}, sizes, times)
    crossover = Crossover("once", 7e5, 5e5, None, (7e5,), f"from 700,000 on {file.machine.id}")
    common = {"family": "Epoch", "batch": "100", "precision": "f32"}
    return [Comparison(common, "parameters", cpu, gpu, crossover)]


def test_rows_are_of_the_machine_that_has_the_device(files):
    old, new = map(rows.load_file, files)
    mixed = mix.mix(old, new)
    assert mixed.machine.id == "old's CPU with new's GPU"
    assert (mixed.machine.cpu.model, mixed.machine.gpu) == ("CPU of old", "shiny")
    assert mixed.software.commit == ""  # the two differ
    cpu = [row for row in mixed.rows if row.configuration["device"] == "cpu"]
    gpu = [row for row in mixed.rows if row.configuration["device"] == "cuda"]
    assert cpu == list(old.rows) and len(cpu) + len(gpu) == len(mixed.rows)
    assert gpu == [row for row in new.rows if row.configuration["device"] == "cuda"] != []
    assert len({row.name for row in mixed.rows}) == len(mixed.rows)


def test_one_machine_with_itself_is_itself(files):
    new = rows.load_file(files[1])
    mixed = mix.mix(new, new)
    assert mixed.software == new.software
    assert {row.name for row in mixed.rows} == {row.name for row in new.rows}


def test_the_command_prints_the_crossovers_and_the_caveat(files, monkeypatch, capsys):
    monkeypatch.setattr(command, "comparisons", answer)
    assert main(["compare", f"--cpu-of={files[0]}", f"--gpu-of={files[1]}"]) == 0
    printed = capsys.readouterr()
    assert "from 700,000 on old's CPU with new's GPU" in printed.out
    assert "Epoch, batch 100, f32" in printed.out and mix.CAVEAT in printed.out
    assert "Machine and commit both differ" in printed.out
    assert printed.err == ""


def test_every_format_has_the_crossovers(files):
    table = mix.crossover_table(answer(rows.load_file(files[1])), "title", mix.CAVEAT)
    assert table.records()[0]["size"] == 7e5 and table.records()[0]["size_high"] is None
    for name in FORMATS:
        assert "700,000" in render([table], name)


def test_a_file_without_the_device_is_refused(files, capsys):
    old, new = map(str, files)
    assert main(["compare", f"--cpu-of={new}", f"--gpu-of={old}"]) == 2
    printed = capsys.readouterr()
    assert (
        printed.out == "" and printed.err == f"{old}: has no row of a GPU; name a file that has\n"
    )


def test_files_that_cannot_be_compared_are_not_mixed(write, files, monkeypatch, capsys):
    monkeypatch.setattr(command, "comparisons", answer)
    content = document("new", "shiny")
    content["context"]["crossover"]["software"]["build_type"] = "Debug"
    debug = write(content, "debug.json")
    arguments = ["compare", f"--cpu-of={files[0]}", f"--gpu-of={debug}"]
    assert main(arguments) == 2
    assert "Release and Debug" in capsys.readouterr().err
    assert main([*arguments, "--anyway"]) == 0
    assert "Release and Debug" in capsys.readouterr().out
