# SPDX-License-Identifier: Apache-2.0
"""Each command that takes --of, in each quantity: what it says, or why it does not."""

import pickle
import re

import pytest

from plots.file.quantities import QUANTITIES
from plots.tests import synthetic, synthetic_machine
from plots.tests.synthetic_passes import passes

MODELS = ("disc-2", "disc-5", "disc-7", "disc-9", "disc-11", "heart")
FLAGS = {
    "crossover": ("crossover", "all.json"),
    "compare": ("compare", "all.json", "all.json"),
    "why": ("why", "all.json"),
    "advise": ("advise", "all.json", "--mlp=784,512,10"),
    "predict": ("predict", "all.json", "--gpu=l4"),
    "report": ("report", "all.json", "--out=page"),
}
REFUSED = {
    "why": "why splits time, energy and cost, which grow with it; a row does not say of what its",
    "advise": "advise tells times, and --of=cost what they cost; no {} follows from these, so",
    "predict": "predict tells times, and --of=cost what they cost; no {} follows from these, so",
}
# Of each quantity what `crossover`, `compare` and `report` say, and the others that know it.
SAID = {
    "time": {
        "crossover": "the GPU wins at every size measured, 22 to 2,804,390 parameters. On disc",
        "compare": "family ratio rows faster slower",
        "report": "The GPU wins at every size measured, 22 to 2,804,390 parameters, on fully",
        "why": "why the epochs take the time they take",
        "advise": "1 epoch of 1,000 rows: 30 to 31 ms here (2 threads), 470 to 550 µs on its GPU:",
        "predict": "L4: the GPU would win at every size",
    },
    "memory": {
        "crossover": "At 2,804,390 parameters (disc-11, batch 100) the CPU needs 1.33 times the",
        "compare": "family ratio rows lower higher",
        "report": "The GPU needs less memory from 58,800 parameters (58,800 to 58,800), on fully",
    },
    "energy": {
        "crossover": "the CPU needs 15.9 times the energy: 11.0 J an epoch on the CPU, 2 threads,",
        "compare": "family ratio rows lower higher",
        "report": "The GPU needs less energy from 8,550 parameters (8,500 to 8,580), on fully",
        "why": "CPU energy / GPU energy = CPU time / GPU time × CPU power / GPU power",
    },
    "cost": {
        "crossover": "the CPU costs 6.62 times as much: 7.62e-6 an epoch on the CPU, 2 threads,",
        "compare": "family ratio rows cheaper dearer",
        "report": "The GPU costs less from 37,800 parameters (37,700 to 37,900), on fully",
        "why": "With 2 CPU threads instead of 1, the crossover rises from 14,800 to 37,800",
        "advise": "Cost of 1 epoch of 1,000 rows: 8.3e-7 to 8.6e-7 here (2 threads), 1.6e-7 to "
        "1.8e-7 on its GPU: the GPU costs less. With wider or narrower hidden layers the CPU would "
        "cost less below about 17,000 parameters",
        "predict": "L4: the GPU would cost less from 110,000 parameters (35,000 to 380,000) (auto",
    },
    "cost-per-million-samples": {
        "crossover": "the CPU costs 6.62 times as much: 0.00762 on the CPU, 2 threads, 0.00115 on",
        "compare": "family ratio rows cheaper dearer",
        "report": "The GPU costs less from 37,800 parameters (37,700 to 37,900), on fully",
    },
    "latency-p50": {
        "crossover": "at batch 1 (graph, pinned) the GPU has lower p50 latency from 191,000",
        "compare": "family ratio rows lower higher",
        "report": "The GPU has lower p50 latency from 191,000 parameters (185,000 to 198,000), in",
    },
    "latency-p99": {
        "crossover": "With how much lower p99 latency the GPU computes a forward pass, graph,",
        "compare": "family ratio rows lower higher",
        "report": "The GPU has lower p99 latency from 191,000 parameters (185,000 to 198,000), in",
    },
    "products": {
        "crossover": "the CPU needs 100 times the time in products: 241 ms an epoch on the CPU, 2",
        "compare": "family ratio rows lower higher",
        "report": "The GPU needs less time in products at every size measured, 22 to 2,804,390",
    },
}
# What only sentences on time say.
OF_TIME = re.compile(r"\bfaster\b|\bslower\b|\bGPU wins\b|times as fast|SPEEDUP")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of all.json, rows of which have every quantity."""
    ways = (("eager", "pinned"), ("graph", "resident"))
    document = synthetic_machine.machine(models=MODELS, modes=ways, noise=0.01)
    for entry in document["benchmarks"]:
        if entry["configuration"]["family"] == "Epoch":
            watts, each, beside = (
                (40, 16, 1e5) if entry["configuration"]["device"] == "cpu" else (200, 12, 2.5e5)
            )
            entry["joules"] = 1e-3 * entry["real_time"] * watts
            entry["peak_bytes"] = each * entry["params"] + beside
    for model in MODELS:
        document["benchmarks"] += [*passes(model, 1, "cpu"), *passes(model, 1, "cuda")]
    folder = tmp_path_factory.mktemp("quantities")
    synthetic.write(folder / "all.json", document)
    return folder


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("command", FLAGS)
def test_a_command_speaks_of_the_quantity(command, name, folder, monkeypatch, shell):
    monkeypatch.chdir(folder)
    quantity, expected = QUANTITIES[name], SAID[name].get(command)
    prices = ("--price=cpu=0.10/h", "--price=gpu=1.20/h") if quantity.is_priced else ()
    printed = shell(*FLAGS[command], f"--of={name}", *prices, code=0 if expected else 2)
    text = printed.out if expected else printed.err
    if command == "report":
        page = (folder / "page" / "index.html").read_text("utf-8")
        text = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>|<[^>]+>", " ", page)
    assert (expected or REFUSED[command].format(quantity.noun)) in " ".join(text.split())
    assert name == "time" or not OF_TIME.search(text), OF_TIME.search(text)


def test_another_process_has_the_same_quantities():
    assert all(pickle.loads(pickle.dumps(one)) is one for one in QUANTITIES.values())


def test_charts_and_other_questions_are_of_time(folder, monkeypatch, shell):
    monkeypatch.chdir(folder)
    (folder / "net.module.json").write_text('{"name": "net"}', "utf-8")
    for flags, why in (
        (("why", "all.json", "--charts=c"), "why --charts draws what times consist of; leave out"),
        (("predict", "all.json", "--ranks=2"), "predict: --ranks has no --of; leave out one of"),
        (("advise", "all.json", "--network=net.module.json"), "as it is only times are known;"),
    ):
        prices = ("--of=cost", "--price=cpu=1/h", "--price=gpu=1/h")
        assert why in shell(*flags, *prices, code=2).err
