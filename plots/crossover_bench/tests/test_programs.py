# SPDX-License-Identifier: Apache-2.0
"""Whose programs an answer is about: PyTorch's loop, as people write it, and the fastest."""

import re
from typing import Any

import pytest

from crossover_bench.answers.answer.glance import glance
from crossover_bench.shell.cli import main
from crossover_bench.study.study import AS, OURS, Study
from crossover_bench.tests import synthetic, synthetic_peers

WHY = re.compile(
    r"Why they differ: in a step of disc-2 Python starts about \d+ operations, in [\d.]+ .s each "
    r"on the CPU and [\d.]+ .s on the GPU; the loop takes [\d.]+ times as long as the fastest "
    r"program on the CPU, [\d.]+ times on the GPU\."
)


def usual_loop(loader: float) -> list[dict[str, Any]]:
    """PyTorch's rows on both devices, and those of a loop whose loader takes so many seconds."""
    entries = synthetic_peers.on_both()
    for entry in filter(synthetic_peers.is_theirs, synthetic_peers.on_both()):
        configuration = {**entry["configuration"], "script": "usual"}
        time = entry["real_time"] + loader * 1e3
        name = synthetic.row_name(configuration)
        entries.append({**entry, "name": name, "configuration": configuration, "real_time": time})
    return entries


@pytest.mark.parametrize(
    ("loader", "lead"),
    [(None, "In PyTorch's own loop"), (1e-4, "In PyTorch, as people write it")],
)
def test_pytorch_answers_first_and_the_fastest_programs_behind_it(read, loader, lead):
    entries = synthetic_peers.on_both() if loader is None else usual_loop(loader)
    file = read(synthetic_peers.document(entries, gpu=True))
    answer = glance(Study(file))
    first, second = answer.sentences
    assert re.match(rf"{lead}, the GPU wins from [89]\d,\d00 parameters ", first)
    # On the CPU that is PyTorch's, whose rows are faster than ours here.
    assert re.match(r"With the fastest programs, the GPU wins from 9\d,\d00", second)
    ours = glance(Study(file, programs=(OURS,))).sentence
    assert re.match(r"With our own programs, the GPU wins from (49|50),\d00 parameters ", ours)
    labels = [strip.label for strip in answer.strips.strips]
    assert labels == ["synthetic GPU, PyTorch", "synthetic GPU, fastest"]
    assert answer.to_share.startswith("PyTorch: GPU wins from ")
    assert "; fastest: GPU wins from " in answer.to_share
    assert any(WHY.match(line) for line in answer.lines)
    assert not any("loader takes more" in line for line in answer.lines)


def test_a_loader_that_decides_is_said_first(read):
    """It takes 10 ms, on both devices, and the GPU's epoch 1 ms."""
    answer = glance(Study(read(synthetic_peers.document(usual_loop(1e-2), gpu=True))))
    assert re.match(
        r"Up to disc-\d+ \(\d+,\d+ parameters\) PyTorch's loader takes more than the choice of a "
        r"device gains: 10\.0 ms of 1\d\.\d ms an epoch on the CPU\.",
        answer.lines[0],
    )


@pytest.mark.parametrize("programs", AS)
def test_one_answer_may_be_asked_for(write, capsys, programs):
    path = write(synthetic_peers.document(synthetic_peers.on_both(), gpu=True))
    assert main(["crossover", f"--as={programs}", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    leads = {
        "pytorch": "In PyTorch's own loop, the GPU wins",
        "fastest": "With the fastest programs, the GPU wins",
        "ours": "With our own programs, the GPU wins",
    }
    assert [name for name, lead in leads.items() if lead in out] == [programs]


def test_a_gpu_that_pytorch_did_not_run_on_is_predicted_for(write, capsys):
    """By `crossover`, as on the page: of a card that is known, or else said to be missing."""
    for name, start in (("NVIDIA L4", "a GPU wins"), ("synthetic GPU", "was not measured")):
        document = synthetic.sweep()
        document["context"]["crossover"]["machine"]["gpu"] = {"name": name}
        assert main(["crossover", str(write(document))]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert out.partition("PyTorch's own loop")[2].lstrip(", ").startswith(start), out
