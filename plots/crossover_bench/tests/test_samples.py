# SPDX-License-Identifier: Apache-2.0
"""The long table of samples, and what is compared beside time: memory, a quantity that nobody knows
but an entry, costs from times and the user's prices, and what each command that takes --of says."""

import json
import pickle
import re
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import crossover_bench
from crossover_bench.counts.prices import read_prices, with_costs
from crossover_bench.files.quantities import ESTIMATED_ENERGY, QUANTITIES, Quantity
from crossover_bench.files.samples import in_quantity
from crossover_bench.tests import synthetic, synthetic_machine, synthetic_probes, synthetic_steps
from crossover_bench.tests.synthetic_steps import passes
from crossover_bench.tests.synthetic_sweep import DISC_MODELS, DISC_SIZES
from crossover_bench.words import units

GUIDES = Path(crossover_bench.__file__).parents[2] / "docs" / "howto"


def test_the_example_of_the_docs_runs(tmp_path, monkeypatch, capsys):
    text = (GUIDES / "notebook.md").read_text("utf-8")
    answer, first, frame = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (named,) = re.findall(r'Study\("(.*)"\)', answer)
    synthetic.write(tmp_path / named, synthetic.sweep())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(answer, names)
    assert re.match(r"fastest [\d.]+ [\d.]+ [\d.]+\n", capsys.readouterr().out)
    exec(first, names)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("1 0.00") for line in lines) == synthetic.REPETITIONS
    assert re.match(r"<\d+ samples: file, machine, row, ", repr(names["samples"]))
    stub = SimpleNamespace(DataFrame=dict)
    monkeypatch.setitem(sys.modules, "polars", stub)
    exec(frame, names)
    assert names["frame"] == names["samples"].columns
    for name in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(ImportError, match="needs polars or pandas"):
        exec(frame, names)


def test_a_line_is_a_value_with_all_that_is_known_of_it(write):
    content = synthetic_probes.everything()
    content["benchmarks"] += synthetic_steps.steps(["alexnet-r"])
    content["benchmarks"].append(
        synthetic.failure(synthetic.cpu_configuration("disc-3", 4), "too slow")
    )
    samples = crossover_bench.load(str(write(content)))
    assert len({len(values) for values in samples.columns.values()}) == 1
    assert not len(samples.where(model="disc-3", cpu_threads="4"))
    product = samples.where(family="Gemm", quantity="time").columns["value"]
    assert 0 < min(product) < max(product) < 1  # of one product, not of all in an iteration
    ceilings = samples.where(family="Peak", quantity="time")
    assert "triad" in ceilings.columns["axis_quantity"]
    step = samples.where(family="Minibatch", device="cuda", execution="graph")
    (memory,) = set(step.where(quantity="memory").columns["value"])
    assert memory == 16 * synthetic_steps.NETWORKS["alexnet-r"].params
    for quantity, places in (("memory", [None]), ("time", [*range(9)])):
        columns = step.where(quantity=quantity).columns
        assert columns["repetition"] == columns["instance"] == places
    assert "seconds_per_step" not in samples.columns["quantity"]  # which follows


@pytest.mark.parametrize("read", [crossover_bench.load, crossover_bench.Study])
def test_a_file_that_cannot_be_read_is_named(tmp_path, read):
    with pytest.raises(ValueError, match=r"none\.json: no such file; check the path"):
        read(str(tmp_path / "none.json"))


def test_a_study_answers_in_words_numbers_and_a_picture(write):
    study = crossover_bench.Study(write(synthetic.sweep()))
    assert all(sentence in " ".join(repr(study).split()) for sentence in study.sentences)
    (ours,) = [crossing for crossing in study.crossings if crossing.programs == "ours"]
    assert ours.measure == "parameters" and ours.low < ours.size < ours.high
    assert units.significant(ours.size) in study.sentences[-1]
    shown = study._repr_html_()
    assert shown.startswith("<p>") and shown.count("<svg") == 1


def memory(gpu: float = 2e5) -> dict:
    """Training steps whose memory grows with the batch: the GPU needs less of it from 38."""
    entries = []
    for batch in (2, 8, 32, 128, 1024):
        for way, peak_bytes in (
            (synthetic_steps.cpu_configuration("alexnet-r", 2, batch), 1e6 * batch),
            (synthetic_steps.gpu_configuration("alexnet-r", batch), 3e7 + gpu * batch),
        ):
            entries += synthetic_steps.samples(way, peak_bytes=peak_bytes)
    entries += synthetic.samples(synthetic.cpu_configuration("disc-3", 1))
    return synthetic.document(entries, gpu="synthetic GPU")


def test_memory_has_a_crossover_without_noise(write, shell):
    path = write(memory())
    printed = shell("crossover", path, "--of=memory", "--all")
    assert printed.err == (
        f"{path}: 1 of 11 rows left out, for want of memory (counter peak_bytes)\n"
    )
    text = " ".join(printed.out.split())
    assert "From which batch size does a GPU need less memory?" in text
    assert "the GPU needs less memory from batch 39 (39 to 39)" in text
    assert "the CPU needs 4.36 times the memory: 977 MiB on the CPU, 2 threads, 224 MiB on" in text
    crossovers, ratios = json.loads(shell("crossover", path, "--of=memory", "--format=json").out)
    assert crossovers["rows"][0]["crossover"] == pytest.approx(38.5, abs=0.1)
    assert ratios["rows"][0]["gpu_bytes"] == 30_400_000
    other = " ".join(shell("crossover", write(memory(gpu=1e6)), "--of=memory", "--all").out.split())
    assert "the CPU needs less memory at every size measured, batch 2 to 1,024" in other


def test_memory_of_two_files_is_compared(write, shell):
    first, second = write(memory(), "a.json"), write(memory(gpu=4e5), "b.json")
    tables = json.loads(shell("compare", first, second, "--of=memory", "--format=json").out)
    changed = tables[1]["rows"][0]
    assert changed["verdict"] == "higher" and changed["p"] == 0
    assert changed["ratio"] == changed["ratio_low"] == pytest.approx(439.6 / 234.8, abs=1e-3)
    assert changed["other_bytes"] == 439_600_000
    flags = ("compare", first, second, "--of=memory", "--fail-on-slower=5%")
    assert "4 rows are higher by more than 5 %, most of all" in shell(*flags, code=1).err


@pytest.mark.parametrize("is_more_better", [False, True])
def test_an_entry_adds_a_quantity(write, shell, monkeypatch, tmp_path, is_more_better):
    energy = QUANTITIES["energy"]
    if is_more_better:
        show = partial(units.rate, unit="J")
        energy = Quantity(*("harvest", "harvest", "joules", show, "joules"), is_more_better=True)
        monkeypatch.setitem(QUANTITIES, energy.name, energy)
    entries = []
    for model, params in zip(DISC_MODELS, DISC_SIZES, strict=True):
        for way, joules in (
            (synthetic.cpu_configuration(model, 1), (params / 5e4) ** 0.8),
            (synthetic.gpu_configuration(model), 1.0),
        ):
            samples = synthetic.samples(way, [0.1] * 9)  # equally fast
            for place, entry in enumerate(samples):
                entry["joules"] = joules ** (-1 if is_more_better else 1) * (1 + 0.002 * place)
            entries += samples
    path = write(synthetic.document(entries, gpu="synthetic GPU"))
    printed = shell("crossover", path, "--all", f"--of={energy.name}", f"--charts={tmp_path}")
    text = " ".join(printed.out.split())
    wins = "gets more harvest" if is_more_better else "needs less energy"
    assert f"the GPU {wins} from 50," in text and f"GPU {wins}" in text
    ratio = "GPU gets 75.9 times the harvest" if is_more_better else "CPU needs 75.9 times the"
    assert ratio in text
    sides = "GPU harvest / CPU harvest" if is_more_better else "CPU energy / GPU energy"
    assert f"RATIO = {sides}" in text
    assert "faster" not in text and " time" not in text.replace("times", "")
    svg = next(tmp_path.glob("*crossover-epoch*.svg")).read_text("utf-8")
    assert f"{energy.noun} of one epoch" in svg
    better = synthetic.document(
        [{**entry, "joules": 2 * entry["joules"]} for entry in entries], gpu="synthetic GPU"
    )
    compared = shell("compare", path, write(better, "b.json"), f"--of={energy.name}").out
    verdict = "22 higher, 0 lower" if is_more_better else "0 lower, 22 higher"
    assert f"22 rows compared: {verdict}" in compared


MODELS = ("disc-2", "disc-5", "disc-7", "disc-9", "disc-11", "heart")
FLAGS = {
    "crossover": ("crossover", "all.json"),
    "threads": ("crossover", "all.json", "--threads"),
    "compare": ("compare", "all.json", "all.json"),
    "why": ("why", "all.json"),
    "advise": ("advise", "all.json", "--mlp=784,512,10"),
    "predict": ("predict", "all.json", "--gpu=l4"),
    "report": ("report", "all.json", "--out=page"),
}
REFUSED = {
    "threads": "no epochs of two disc networks on several thread counts",  # of one pass alone
    "why": "why splits time, energy and cost, which grow with it; a row does not say of what its",
    "advise": "advise tells times, and --of=cost what they cost; no {} follows from these, so",
    "predict": "predict tells times, and --of=cost what they cost; no {} follows from these, so",
}
# What commands say of every quantity.
ALIKE = {
    "compare": "family ratio rows {0.better} {0.worse}",
    "threads": "disc networks train {0.how} on|train disc networks {0.how} than",
}
# Of each quantity but time, of which tests/snapshots are, what `crossover`, `compare` and
# `report` say, and the others that know it.
PHRASES = {
    "memory": {
        "crossover": "2,804,390 parameters (disc-11, batch 100) the CPU needs 1.33 times the",
        "report": "the GPU needs less memory from 58,800",
    },
    "energy": {
        "crossover": "the CPU needs 15.9 times the energy: 11.0 J an epoch on the CPU, 2 threads,",
        "report": "the GPU needs less energy from 8,550",
        "why": "CPU energy / GPU energy = CPU time / GPU time × CPU power / GPU power",
    },
    "cost": {
        "crossover": "the CPU costs 6.62 times as much: 7.62e-6 an epoch on the CPU, 2 threads,",
        "report": "the GPU costs less from 37,800",
        "why": "With 2 CPU threads instead of 1, the crossover rises from 14,800 to 37,800",
        "advise": "With our own programs, cost of 1 epoch of 1,000 rows: 8.3e-7 to 8.6e-7 here (2 "
        "threads), 1.6e-7 to 1.8e-7 on its GPU: the GPU costs less. - With our own programs and "
        "wider or narrower hidden layers, the CPU would cost less below about 17,000 parameters",
        "predict": "L4: the GPU would cost less from 2",
    },
    "cost-per-million-samples": {
        "crossover": "the CPU costs 6.62 times as much: 0.00762 on the CPU, 2 threads, 0.00115 on",
        "report": "the GPU costs less from 37,800",
    },
    "latency-p50": {
        "crossover": "the GPU has lower p50 latency from 191,000",
        "report": "the GPU has lower p50 latency from 191,000",
    },
    "latency-p99": {
        "crossover": "the GPU has lower p99 latency from 191,000",
        "report": "the GPU has lower p99 latency from 191,000",
    },
    "products": {
        "crossover": "the CPU needs 100 times the time in products: 241 ms an epoch on the CPU, 2",
        "report": "the GPU needs less time in products at every size measured, 22 to 2,804,390",
    },
}
# What only sentences on time say; and times, which a page has of its run, predict of a launch.
OF_TIME = re.compile(r"\bfaster\b|\bslower\b|\bGPU wins\b|times as fast|SPEEDUP|FLOP/s")
SECONDS = re.compile(r"[\d.]+ [mµn]?s\b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of all.json, rows of which have every quantity; and of apart.json, in which the
    GPU trains nothing."""
    ways = (("eager", "pinned"), ("graph", "resident"))
    on_both = synthetic_machine.machine(models=MODELS, modes=ways, noise=0.01)
    on_cpu = synthetic_machine.machine(models=MODELS, modes=(), noise=0.01)
    for model in MODELS:
        on_both["benchmarks"] += [*passes(model, 1, "cpu"), *passes(model, 1, "cuda")]
        on_cpu["benchmarks"] += passes(model, 1, "cpu")
    on_cpu["benchmarks"] += synthetic_probes.layers() + synthetic_probes.products()
    on_cpu["context"]["crossover"]["machine"]["gpu"] = {"name": "GPU"}
    folder = tmp_path_factory.mktemp("quantities")
    for document, name in ((on_both, "all.json"), (on_cpu, "apart.json")):
        for entry in document["benchmarks"]:
            if entry["configuration"]["family"] in ("Epoch", "Gemm", "Layer"):
                watts, each, beside = (
                    (40, 16, 1e5) if entry["configuration"]["device"] == "cpu" else (200, 12, 2.5e5)
                )
                entry["joules"] = 1e-3 * entry["real_time"] * watts
                entry["peak_bytes"] = each * entry.get("params", 1) + beside
        synthetic.write(folder / name, document)
    return folder


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", sorted(QUANTITIES.keys() - {"time"}))
@pytest.mark.parametrize("command", FLAGS)
def test_a_command_speaks_of_the_quantity(command, name, folder, monkeypatch, shell):
    monkeypatch.chdir(folder)
    quantity = QUANTITIES[name]
    expected = PHRASES[name].get(command, ALIKE.get(command, "").format(quantity))
    if command == "threads" and name.startswith("latency"):
        expected = ""
    prices = ("--price=cpu=0.10/h", "--price=gpu=1.20/h") if quantity.is_priced else ()

    def said(*flags):
        """What the command says on stdout or on its page, and what on stderr."""
        printed = shell(*flags, f"--of={name}", *prices, code=None)
        page = folder / "page" / "index.html"
        text = page.read_text("utf-8") if command == "report" else printed.out
        return re.sub(r"(?s)<(script|style|svg)\b.*?</\1>|<[^>]+>", " ", text), printed.err

    text, refusal = said(*FLAGS[command])
    phrases = (expected or REFUSED[command].format(quantity.noun)).split("|")
    in_one_line = " ".join((text if expected else refusal).split())
    assert any(phrase in in_one_line for phrase in phrases)
    apart = said(*(flag.replace("all.json", "apart.json") for flag in FLAGS[command]))
    assert "must be" not in apart[1]
    for answer in (text, apart[0]):
        assert not OF_TIME.search(answer), OF_TIME.search(answer)
        if quantity.unit != "seconds" and command not in ("report", "predict"):
            assert not SECONDS.search(answer), SECONDS.search(answer)


def test_another_process_has_the_same_quantities():
    for quantity in (*QUANTITIES.values(), ESTIMATED_ENERGY):
        assert pickle.loads(pickle.dumps(quantity)) is quantity


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


# --- costs

PRICES = ("--price", "cpu=0.10/h", "--price", "gpu=1.20/h")


def test_the_gpu_costs_less_from_a_larger_size_than_it_wins_from(write, shell):
    path = write(synthetic.sweep())
    printed = shell("crossover", path, "--of=cost", *PRICES)
    assert printed.err == "CPU: 0.100 an hour.\nGPU: 1.20 an hour.\n"
    text = " ".join(printed.out.split())
    assert "From which network size does a GPU cost less?" in text
    assert "the CPU costs 4.26 times as much: 2.07e-5 an epoch on the CPU" in text
    assert "from which size the gpu trains disc networks more cheaply than the cpu" in text.lower()
    # A row of the file has no result, and so no quotient.
    assert "what makes the cost" in shell("why", path, "--of=cost", *PRICES).out
    table = ("crossover", path, "--format=json")
    times, costs = (json.loads(shell(*table, *more).out) for more in ((), ("--of=cost", *PRICES)))
    sizes = [tables[0]["rows"][0]["crossover"] for tables in (times, costs)]
    assert sizes[1] > 5 * sizes[0]
    for time, cost in zip(times[1]["rows"], costs[1]["rows"], strict=True):
        assert cost["speed_up"] == pytest.approx(time["speed_up"] / 12, rel=1e-3)
        assert cost["gpu_money"] == pytest.approx(time["gpu_seconds"] * 1.2 / 3600, rel=1e-6)
    million = json.loads(shell(*table, "--of=cost-per-million-samples", *PRICES).out)
    epoch, samples = costs[1]["rows"][0]["gpu_money"], synthetic.ROWS["disc"]
    assert million[1]["rows"][0]["gpu_money"] == pytest.approx(epoch / samples * 1e6)


def test_a_file_of_prices_is_that_of_the_docs(write, shell, tmp_path):
    (example,) = re.findall(
        r"```json\n(.*?)```", (GUIDES / "money.md").read_text("utf-8"), re.DOTALL
    )
    prices = tmp_path / "prices.json"
    prices.write_text(example, "utf-8")
    flags = ("crossover", write(synthetic.sweep()), "--of=cost")
    assert shell(*flags, "--price", prices, "--price=gpu=1.20/h").err.splitlines() == [
        "CPU: 0.100 an hour (a provider, 2 cores, 2026-11-26).",
        "GPU: 1.20 an hour.",
        "GPU: bought for 2,000, it costs less than rented after 1,667 hours of use.",
    ]
    bought = shell(*flags, "--price", prices).err.splitlines()
    assert bought[1] == "GPU: 0.333 an hour, bought for 2,000 (a shop)."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cpu=0.10", "--price: cpu=0.10 is no price; say cpu=0.10/h, gpu=1.20/h"),
        ("gpu=-1/h", "gpu=-1/h: per_hour is -1, and must be a number above 0"),
        ("gpu=1e99/h", "must be a number above 0 and below 1e12"),
        ("gpu=2000/0y", "gpu=2000/0y: years is 0, and must be a number above 0"),
        ("none.json", "none.json: No such file or directory; say cpu="),
        ("{", "is not JSON: "),
        ('{"for": "gpu"}', "holds no list of prices"),
        ('[{"for": "tpu", "per_hour": 1}]', 'has no "for": "cpu" or "gpu"'),
        ('[{"for": "gpu", "cost": 1}]', "has a key that is not known, cost; the keys are for, "),
        ('[{"for": "gpu", "per_hour": "much"}]', "per_hour is much, and must be a number"),
        ('[{"for": "gpu", "purchase": 1}]', "needs per_hour alone, or purchase with years"),
        ('[{"for": "gpu", "per_hour": 1, "years": 1}]', "needs per_hour alone, or purchase"),
    ],
)
def test_what_is_no_price_is_said(write, shell, tmp_path, text, why):
    if text[0] in "[{":
        (tmp_path / "prices.json").write_text(text)
        text = tmp_path / "prices.json"
    flags = ("crossover", write(synthetic.sweep()), "--of=cost", f"--price={text}")
    assert why in shell(*flags, code=2).err


def test_costs_need_prices_and_prices_costs(write, shell):
    path = write(synthetic.sweep())
    assert "--of=cost needs --price, of the gpu: say" in (
        shell("crossover", path, "--of=cost", "--price=cpu=1/h", code=2).err
    )
    assert "--price is of costs; say --of=cost, too" in (
        shell("crossover", path, "--price=cpu=1/h", code=2).err
    )
    assert "cheaper" in shell("compare", path, path, "--of=cost", *PRICES).out


def test_a_cost_is_of_one_operation_where_a_repetition_has_many(read):
    file = read(synthetic_probes.everything())
    priced = in_quantity(with_costs(file, read_prices("cpu=3600/h")), QUANTITIES["cost"])
    times = {row.name: row for row in file.rows}
    products = [row for row in priced.rows if row.family == "Gemm" and not row.failure]
    assert products
    for row in products:
        time = times[row.name]
        assert time.count > 1
        assert row.median == pytest.approx(time.median / time.count)
