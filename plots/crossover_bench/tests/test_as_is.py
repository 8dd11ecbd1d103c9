# SPDX-License-Identifier: Apache-2.0
"""Modules that PyTorch trained as they are: one screen and the page's section from its rows and
from what its worker counted."""

import json
import math
import re

import pytest

from crossover_bench.answers.advise import own_section
from crossover_bench.answers.advise.as_is_summary import as_is, left_out, module_block, modules
from crossover_bench.answers.answer import section as answer_section
from crossover_bench.answers.predict.answer import Predictions
from crossover_bench.counts.cards import load_cards
from crossover_bench.files.loading import load_file
from crossover_bench.show.page.page import render_page
from crossover_bench.show.page.section import Context
from crossover_bench.tests import synthetic, synthetic_peers

SIZES = {"pairs": 200_000, "pairsx2": 800_000}
BATCHES = (16, 1024)
REASON = "body.0.weight is used twice"


def cost(params: int, batch: int) -> dict:
    product = {"kind": "product", "launches": 1.0, "bytes": 4.0 * params, "count": 6}
    product |= {
        "flops": 2.0 * params * batch,
        "products": [{"m": batch, "n": params // 64, "k": 64}],
    }
    others = {"kind": "elementwise", "flops": 1e4, "bytes": 1e5, "launches": 20.0}
    views = {"kind": "view", "flops": 0.0, "bytes": 0.0, "launches": 10.0}
    memory = {"parameters": 4 * params, "optimizer": 0, "activations": 4000 * batch, "data": batch}
    memory["peak"] = 8 * params + 5000 * batch
    return {"operations": [product, others, views], "memory_bytes": memory}


def measured(family: str = "Minibatch", **changes: str) -> list[dict]:
    entries = []
    for model, params in SIZES.items():
        for batch in BATCHES:
            for threads in (1, 2):
                ours = synthetic.cpu_configuration(model, threads, batch, family)
                theirs = synthetic_peers.theirs(ours, **changes)
                facts = {"params": params, "as_is": REASON, "cost": cost(params, batch)}
                facts |= {"rows": 10 * batch, "loss_first_step": 0.5}
                seconds = 1e-7 * params * batch / threads * (10 if family == "Epoch" else 1)
                entries += synthetic.samples(theirs, [seconds] * 9, **facts)
    return entries


@pytest.fixture
def write_modules(write):
    def made(entries: list[dict]):
        document = synthetic_peers.document(entries)
        crossover = document["context"]["crossover"]
        crossover["ladders"] = {"pairs": list(SIZES), "disc": ["disc-2"]}
        return write(document)

    return made


@pytest.fixture
def path(write_modules):
    """A file of steps of the modules."""
    return write_modules(measured())


@pytest.fixture
def told(tmp_path):
    path = tmp_path / "pairs-Pairs-1234.module.json"
    path.write_text(json.dumps({"name": "pairs"}), encoding="utf-8")
    return path


def test_one_screen_says_what_pytorch_takes_and_why(write_modules, told, shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    compiled = measured(compiler="inductor")
    wrong = {**compiled[0], "configuration": {**compiled[0]["configuration"], "precision": "bf16"}}
    failed = synthetic.failure(wrong["configuration"], "it drifts")
    failed["not_verified"] = {"seconds": 3e-3}
    path = write_modules([*measured(), *compiled, failed])
    text = shell("advise", "--network", told, "--gpu=rtx-4060,h200", path).out
    assert max(map(len, text.splitlines())) <= 80 and text.count("\n") <= 40
    joined = " ".join(text.split())
    assert f"pairs is measured in PyTorch as it is (program: pytorch): {REASON}." in joined
    assert "pairs: 200,000 parameters, batch 16, a step, f32" in text and "an epoch" not in text
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    assert "320 ms" in lines["PyTorch, 1 thread"] and "160 ms" in lines["PyTorch, 2 threads"]
    assert "slower" in lines["PyTorch, 1 thread"]
    assert "160 ms" in lines["PyTorch, 2 threads, torch.compile"]
    assert "faster" in lines["RTX 4060, predicted"]
    assert "measured (4)" in text and "(measured: batch 16, 1,024)" in text
    assert "A step starts 26 operations on a GPU, which compute" in joined
    assert "MiB at batch 16, of these 781 KiB parameters and 62.5 KiB activations" in joined
    assert "Not verified, so it counts nowhere: 3.0 ms (it drifts)." in joined
    larger = shell("advise", "--network", told, "--batch=1024", "--gpu=h200", path).out
    assert "batch 1,024, a step" in larger


def test_cards_of_other_makers_stand_beside_in_a_wider_band(path, told, shell):
    text = shell("advise", "--network", told, "--gpu=rx-7900-xtx,apple-m4-10,l4", path).out
    spans = {}
    for line in text.splitlines():
        if ", predicted" in line:
            name, _, rest = line.partition(", predicted")
            low, high = re.findall(r"([\d.]+) ([mµ]?s)", rest)[1:3]
            scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
            spans[name] = float(high[0]) * scale[high[1]] / (float(low[0]) * scale[low[1]])
    assert {*spans} == {"RX 7900 XTX", "Apple M4, 10 GPU cores", "L4"}
    assert min(spans["RX 7900 XTX"], spans["Apple M4, 10 GPU cores"]) > 8 > spans["L4"]
    assert "on the RX 7900 XTX" in text and "on the Apple M4" not in text  # which shares memory


def test_an_epoch_is_told_where_one_was_measured_and_is_in_no_crossover(write_modules, told, shell):
    path = write_modules([*measured("Epoch"), *measured()])
    assert "pairs" not in shell("crossover", path).out  # which is of bench's rows
    text = shell("advise", "--network", told, "--epochs=2", "--gpu=h200", path).out
    assert "batch 16, 160 rows an epoch, f32" in text
    line = next(line for line in text.splitlines() if line.startswith("PyTorch, 2 threads"))
    assert re.findall(r"[\d.]+ m?s", line) == ["160 ms", "3.2 s", "3.2 s"]


def test_a_card_is_predicted_by_the_count_in_a_band_that_was_earned(path, fitted):
    file = load_file(path)
    assert modules(file) == ["pairs"]
    card = load_cards()["h200"]
    module = as_is(file, "pairs", [card], fitted)
    assert module is not None
    (gpu,) = module.network.gpus
    assert gpu.low <= gpu.middle / left_out().factor and gpu.high >= gpu.middle * left_out().factor
    assert [size.winner("h200") for size in module.network.sizes] == ["gpu"] * 4
    assert "h200" not in str(module_block(as_is(file, "pairs", [], fitted)).tables)
    assert as_is(file, "nobody", [], fitted) is None
    page_section = own_section.build([file], Context(predictions=Predictions(fitted)))
    assert page_section is not None
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", render_page([page_section])))
    assert "own loop, a step of 16 rows: 160 ms here (2 threads)" in page and REASON in page
    (answer,) = answer_section.build([file], Context()).blocks
    assert answer.lead.startswith("PyTorch alone trained what was measured; the answer is under")


def test_a_gpu_on_which_pytorch_ran_is_measured(write_modules, told, shell):
    ours = synthetic.gpu_configuration("pairs", "graph", "resident", 16, "Minibatch")
    facts = {"params": SIZES["pairs"], "as_is": REASON, "cost": cost(SIZES["pairs"], 16)}
    facts |= {"rows": 160, "loss_first_step": 0.5}
    ran = synthetic.samples(synthetic_peers.theirs(ours), [1e-3] * 9, **facts)
    text = shell("advise", "--network", told, write_modules([*measured(), *ran])).out
    line = next(line for line in text.splitlines() if line.startswith("PyTorch, GPU, graph"))
    assert "1.0 ms" in line and line.endswith("*faster") and "predicted" not in text


def test_each_network_left_out_is_foretold_by_the_others():
    band = left_out()
    assert len(band.networks) == 20 and band.coverage == pytest.approx(19 / 21)
    within = [name for name, off in band.networks.items() if off <= math.log(band.factor) + 1e-9]
    assert len(within) == 19 and 1 < math.exp(band.median) < band.factor < 2


def test_what_a_module_was_not_asked_is_said(path, told, shell, tmp_path):
    complaint = shell("advise", "--network", told, "--optimizer=adam", path, code=2).err
    assert "--optimizer: a module as it is was trained as its rows say; leave it out" in complaint
    other = tmp_path / "other.module.json"
    complaint = shell("advise", "--network", other, path, code=2).err
    assert "is not what ./run writes of a module" in complaint
    other.write_text(json.dumps({"name": "other"}), encoding="utf-8")
    complaint = shell("advise", "--network", other, path, code=2).err
    assert "there is no result of other" in complaint


def test_a_file_is_asked_for_its_modules_without_a_name(path, told, shell):
    named = shell("advise", "--network", told, "--gpu=h200", path).out
    assert shell("advise", "--gpu=h200", path).out == named
    complaint = shell("predict", path, code=2).err
    assert "advise FILE answers for the modules that PyTorch trained as they are" in complaint
