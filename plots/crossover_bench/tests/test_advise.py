# SPDX-License-Identifier: Apache-2.0
"""`advise`: on a machine that obeys the model, predictions and their band come true."""

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossover_bench.answers.advise import analysis as advise
from crossover_bench.answers.advise.advice import Adviser, Network, fastest
from crossover_bench.answers.advise.table import meeting_words, sentence
from crossover_bench.counts.cost import Cost, CostError, load_cost
from crossover_bench.counts.costs import kept_cost
from crossover_bench.counts.mlp import Mlp, of_size
from crossover_bench.files import loading, rows
from crossover_bench.tests import synthetic, synthetic_machine

TARGET = "mlp-784-512-10"
MEASURED = tuple(model for model in synthetic.MODELS if model != TARGET)
RESULTS = Path(__file__).parents[3] / "results"
CPU_ONLY = {"threads": (1,), "modes": (), "models": MEASURED}


@pytest.fixture
def load(read):
    """A synthetic machine's file, loaded; the target is not in it."""
    return lambda **options: read(synthetic_machine.machine(**{"models": MEASURED, **options}))


@pytest.fixture
def cost_path(write):
    """The saved cost of the target, with changes to what it asks."""

    def saved(name="cost.json", **changes) -> Path:
        what = {**synthetic_machine.counts(TARGET), **changes}
        return write(synthetic_machine.cost(TARGET, what), name)

    return saved


@pytest.fixture
def target(cost_path) -> Cost:
    return load_cost(cost_path())


def fitted(file: rows.File, cost: Cost) -> list[advise.Series]:
    series, problems = advise.fit_series(file, cost.precision)
    assert problems == {}
    return series


def predicted(series: advise.Series, cost: Cost) -> advise.Prediction:
    answer = advise.predict(series, cost)
    assert isinstance(answer, advise.Prediction), answer
    return answer


def truth(series: advise.Series) -> float:
    """What the formula says of the target, in seconds."""
    what = synthetic_machine.counts(TARGET)
    return sum(synthetic_machine.profile(what, dict(series.key)).values())


# --- the model


@pytest.mark.slow
def test_without_noise_the_formula_is_found(load, target):
    file = load(
        noise=0.0, modes=(("eager", "resident"), ("graph", "resident"), ("eager", "pinned"))
    )
    series = fitted(file, target)
    assert [way.label for way in series] == [
        "CPU, 1 thread",
        "CPU, 2 threads",
        "GPU, eager, pinned",
        "GPU, eager, resident",
        "GPU, graph, resident",
    ]
    for way in series:
        assert len(way.residuals) == len(MEASURED)
        # The GPU's one wait in an epoch is not in the model.
        assert predicted(way, target).middle == pytest.approx(truth(way), rel=0.1)
    cpu = series[0]
    weights = dict(zip(cpu.features, cpu.weights, strict=True))
    assert weights["calls"] == pytest.approx(synthetic_machine.PRODUCT, rel=1e-3)
    assert weights["logits"] == pytest.approx(synthetic_machine.LOGIT, rel=1e-3)
    assert weights["compute"] == pytest.approx(1 / synthetic_machine.EFFICIENCY, rel=1e-3)
    assert weights["memory"] == pytest.approx(1, rel=1e-2)


@pytest.mark.slow
def test_the_band_covers_what_it_says(load, target):
    inside = []
    for seed in range(60):
        (way,) = fitted(load(**CPU_ONLY, noise=0.15, seed=seed), target)
        assert way.coverage == pytest.approx(13 / 14)
        answer = predicted(way, target)
        assert answer.low < answer.middle < answer.high and 0.02 < way.typical_error < 0.3
        noise = np.random.default_rng([99, seed]).standard_normal()
        inside.append(answer.low <= truth(way) * np.exp(0.15 * noise) <= answer.high)
    # 13 of 14 networks; 60 binomial trials lie within these bounds with 99.9 %.
    assert 48 <= sum(inside) <= 60


@pytest.fixture
def changed(write):
    """A series of the CPU, fitted to a file whose rows a function has changed."""

    def series(change: Callable[[dict], object], cost: Cost) -> advise.Series:
        document = synthetic_machine.machine(**CPU_ONLY, noise=0.0)
        for entry in document["benchmarks"]:
            if entry["configuration"]["family"] == "Epoch":
                change(entry)
        (way,) = fitted(loading.load_file(write(document)), cost)
        return way

    return series


def times(entry: dict, factor: float) -> None:
    entry.update({field: factor * entry[field] for field in ("real_time", "cpu_time")})


def test_the_band_is_that_of_networks_left_out(changed, target):
    """One network that disobeys widens the band, however well the others fit."""
    way = changed(
        lambda entry: entry["configuration"]["model"] == "disc-7" and times(entry, 2), target
    )
    assert max(way.residuals, key=lambda model: way.residuals[model]) == "disc-7"
    assert way.residuals["disc-7"] == pytest.approx(np.log(2), abs=0.05)
    answer = predicted(way, target)
    assert answer.high > 1.8 * answer.middle


def test_no_prediction_is_below_the_ceiling(changed, target):
    """The formula is fast by mistake; arithmetic at its ceiling is what nothing can beat."""
    answer = predicted(changed(lambda entry: times(entry, 0.1), target), target)
    floor = target.fields["epoch"]["flops"] / synthetic_machine.CPU_FLOPS
    assert answer.low == answer.middle == pytest.approx(floor)


def test_older_rows_without_products_count_as_their_networks_do(changed, target):
    with_products = changed(lambda _: None, target)
    way = changed(lambda entry: entry.pop("products", None), target)
    # The synthetic fcn-r is not the network of that name.
    assert way.residuals.keys() == with_products.residuals.keys() - {"fcn-r"}


def test_what_was_measured_between_the_sizes_of_a_ladder_is_left_out_with_its_neighbour():
    file = loading.load_file(RESULTS / "intel-xeon-6-207-2c" / "2026-11-22-475dff6.json")
    rows_of = [row for row in file.rows if row.family == "Epoch" and row.failure is None]
    clusters = dict(zip((row.model for row in rows_of), advise.clusters(rows_of), strict=True))
    assert clusters["disc-7x1.9375"] == clusters["disc-8x1.0625"] == "disc-8"
    assert clusters["disc-6x1.5"] == "disc-7" and clusters["heart"] == "heart"
    series, _ = advise.fit_series(file, "f32")
    for way in series:
        assert len(way.residuals) == 14 < len({row.model for row in rows_of})


def test_a_network_unlike_those_measured_has_a_wider_band():
    """Wide shallow ones are no longer in anything than those measured, but in what they are made
    of: statistics-wise, leverage."""
    file = loading.load_file(RESULTS / "amd-epyc-25-17-2c" / "2026-11-21-54adc5a.json")
    for way in fitted(file, Mlp((2, 2)).cost()):
        alike = predicted(way, Mlp((784, 512, 10)).cost())
        for widths in ((10, 10000, 2), (2, 4096, 2), (2000, 2)):
            answer = predicted(way, Mlp(widths).cost())
            assert answer.high / answer.middle > 1.4 * alike.high / alike.middle


# --- beyond what was measured


def test_beyond_the_measured_sizes_the_band_widens_and_then_ends(load, cost_path):
    (way,) = fitted(load(**CPU_ONLY, noise=0.1), load_cost(cost_path()))
    most = max(synthetic.MODELS[model][0] for model in MEASURED)
    within, beyond = (
        predicted(way, load_cost(cost_path(params=most * factor))) for factor in (1, 5)
    )
    assert within.beyond == 1 and beyond.beyond == pytest.approx(5)
    widths = [np.log(answer.high / answer.middle) for answer in (within, beyond)]
    assert widths[1] >= widths[0] and widths[1] >= way.band * (1 + np.log10(5)) - 1e-12
    refusal = advise.predict(way, load_cost(cost_path(params=most * 11)))
    assert isinstance(refusal, str)
    assert "11 times beyond the measured range of parameters" in refusal
    assert "batch size" in str(advise.predict(way, load_cost(cost_path(batch=20_000))))


# --- words


def test_overlapping_bands_are_too_close_to_call(load, cost_path):
    cost = load_cost(cost_path(**synthetic_machine.counts("disc-5")))
    file = load(noise=0.4, modes=(("eager", "resident"),), seed=1)
    assert sentence(Adviser(file).advice(Network(cost)), 1).endswith(": too close to call.")


class Scaled(Network):
    """20 → 64 times `factor` → 10, as the synthetic machine counts."""

    def __init__(self, path: Path, factor: float):
        super().__init__(
            load_cost(synthetic.write(path, synthetic_machine.cost("mlp", scaled_work(factor))))
        )
        object.__setattr__(self, "at", (path, factor))

    def scaled(self, factor: float) -> Network:
        path, scale = self.at
        return Scaled(path, scale * factor)


def scaled_work(factor: float) -> dict[str, float]:
    params = round(64 * factor) * 31 + 10
    return synthetic_machine.work(params=params, batch=100, rows=1000, layers=2, features=20)


@pytest.mark.parametrize(
    ("start", "words"), [(1 / 16, "GPU would win from"), (16, "CPU would win below")]
)
def test_meeting_is_where_the_formula_says(start, words, load, tmp_path):
    network = Scaled(tmp_path / "scaled.json", start)
    adviser = Adviser(load(noise=0.0, threads=(1,), modes=(("eager", "resident"),)))
    meeting = meeting_words(adviser, network)
    cpu = synthetic.cpu_configuration("heart", 1)
    gpu = synthetic.gpu_configuration("heart", "eager", "resident")
    ahead = [
        scaled_work(factor)["params"]
        for factor in np.geomspace(1 / 32, 32, 2000)
        if sum(synthetic_machine.profile(scaled_work(factor), gpu).values())
        < sum(synthetic_machine.profile(scaled_work(factor), cpu).values())
    ]
    assert f"the {words} about " in meeting
    size = float(meeting.split(" about ")[1].split()[0].replace(",", ""))
    assert size == pytest.approx(ahead[0], rel=0.15)
    assert meeting.endswith(f"this network has {network.cost.params:,.0f}.")


def test_where_one_side_stays_ahead_is_said(load):
    network = Network(Mlp((784, 2048, 10)).cost(), Mlp((784, 2048, 10)))
    words = meeting_words(Adviser(load(noise=0.0, modes=(("graph", "resident"),))), network)
    assert "the GPU stays ahead from " in words or "the CPU would win below " in words
    assert meeting_words(Adviser(load(**CPU_ONLY)), network) == ""
    assert meeting_words(Adviser(load()), Network(network.cost)) == ""


# --- the command


@pytest.fixture
def lines(shell):
    """The lines of the table that it prints, by what they are on."""

    def printed(path: Path, *flags: object) -> dict[str, dict]:
        (table,) = json.loads(shell("advise", *flags, "--format=json", path).out)
        return {row["on"]: row for row in table["rows"]}

    return printed


def test_epochs_multiply_and_threads_choose_among_the_cpus(load, cost_path, lines):
    asked = (load().path, "--cost", cost_path())
    answers = [lines(*asked, "--epochs", epochs).values() for epochs in (1, 20)]
    for once, twenty in zip(*answers, strict=True):
        assert twenty["seconds"] == pytest.approx(20 * once["seconds"])
        assert twenty["epoch_seconds"] == once["epoch_seconds"] == once["seconds"]
    chosen = lines(*asked, "--threads=1")
    assert "CPU, 1 thread" in chosen and "CPU, 2 threads" not in chosen
    for row in chosen.values():
        assert row["low_seconds"] < row["seconds"] < row["high_seconds"]
        assert row["step_seconds"] == pytest.approx(row["epoch_seconds"] / 10)


def test_a_gpu_of_autotuned_products_alone_is_predicted(read, target):
    content = synthetic_machine.machine(models=MEASURED)
    for entry in content["benchmarks"]:
        configuration = entry["configuration"]
        if (configuration["family"], configuration["device"]) == ("Epoch", "cuda"):
            entry["configuration"] = {**configuration, "products": "autotuned"}
            entry["name"] = synthetic.row_name(entry["configuration"])
    labels = [way.label for way in fitted(read(content), target)]
    assert labels[2:] == [
        "GPU, eager, resident, autotuned products",
        "GPU, graph, resident, autotuned products",
    ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            "--mlp=784,512,1 --loss-function=mse --optimizer=adam",
            ("mlp-784-512-1-mse", "was trained with adam or mse, so its band"),
        ),
        ("--mlp=784,512,10 --precision=bf16", ("The CPU trains in f32.",)),
        ("--params=44710", ("mlp-2-4-8-16-32-64-128-256-2, batch 100",)),  # which is disc-8
    ],
)
def test_what_is_asked_is_said(flags, words, load, shell):
    printed = " ".join(
        shell("advise", *flags.split(), "--gpu=4090", load(**CPU_ONLY).path).out.split()
    )
    assert all(phrase in printed for phrase in words)


@pytest.mark.parametrize("params", [100, 5_000, 50_000, 3_000_000])
def test_a_network_by_its_number_of_parameters(params):
    assert Mlp(of_size(params)).params == pytest.approx(params, rel=0.1)
    assert Mlp(of_size(44_710)).params == 44_710


def test_a_network_with_convolutions_is_answered_from_its_own_rows(lines):
    file = loading.load_file(RESULTS / "amd-epyc-25-17-2c" / "2026-11-23-bfe530f.json")
    (row,) = (row for row in file.rows if row.model == "alexnet-r" and row.threads == 2)
    printed = lines(file.path, "--model=alexnet-r", "--gpu=4090")
    cpu = printed["CPU, 2 threads"]
    assert cpu["seconds"] == pytest.approx(4 * row.median)  # of 1,024 of 4,096 rows each
    assert cpu["low_seconds"] == pytest.approx(4 * row.minimum)
    assert cpu["high_seconds"] == pytest.approx(4 * row.maximum)
    assert cpu["measured"] == 1 and printed["RTX 4090, graph, resident"]["measured"] == 0
    # Of another batch size both ends are in the band.
    cost = kept_cost("alexnet-r")
    fields = {**cost.fields, "batch": 256, "rows": 1024, "steps": 4}
    other = replace(cost, batch=256.0, fields=fields)
    answer = fastest(advise.from_own_rows(file.rows, other), "cpu")
    assert answer.middle == pytest.approx(row.median) and answer.low == pytest.approx(row.minimum)
    assert answer.high == pytest.approx(4 * row.maximum)


def test_a_measured_network_is_known_without_a_curve_of_others(write, shell):
    """Also where a newer file of the machine, which counts otherwise, knows nothing of it."""
    document = synthetic.as_file(synthetic.sweep(gpu=False))
    networks = sorted({row["configuration"].get("model", "") for row in document["rows"]} - {""})
    for name, kept in (("own.json", networks[:1]), ("others.json", networks[1:2])):
        few = json.loads(json.dumps(document))
        few["rows"] = [r for r in few["rows"] if r["configuration"].get("model") in kept]
        for row in few["rows"]:
            row["label"] = "sgd lr=0.1"
        names = {row["name"] for row in few["rows"]}
        few["benchmarks"] = [e for e in few["benchmarks"] if e["name"] in names]
        few["context"]["date"] = f"2026-01-0{1 + (name == 'others.json')}T00:00:00+00:00"
        path = write(few, f"files/{name}")
        told = shell("advise", f"--model={networks[0]}", "--gpu=4090", path).out
        assert ("nothing is known" in told) == (kept != networks[:1])
        assert ("measured at batch" in told) == (kept == networks[:1])
    told = shell("advise", f"--model={networks[0]}", "--gpu=4090", path.parent).out
    assert " here (" in told and "nothing is known" not in told
    adam = shell("advise", f"--model={networks[0]}", "--optimizer=adam", "--gpu=4090", path.parent)
    assert "nothing is known" in adam.out


def test_too_little_in_the_file_is_a_sentence(load, cost_path, write, shell):
    cost = cost_path()
    few = load(**{**CPU_ONLY, "models": MEASURED[:4]}).path
    complaint = shell("advise", few, "--cost", cost, code=2).err
    assert f"{few}: No prediction for CPU, 1 thread: 4 networks measured" in complaint
    assert complaint.count("\n") == 1
    complaint = shell("advise", write(synthetic.document([])), "--cost", cost, code=2).err
    assert "no Epoch row in the precision of the network, f32" in complaint


def test_rows_that_do_not_say_what_they_copy(write, cost_path, shell):
    document = synthetic_machine.machine(models=MEASURED, modes=(("eager", "pinned"),))
    for entry in document["benchmarks"]:
        entry.pop("bytes_to_device", None)
    printed = shell("advise", write(document), "--cost", cost_path()).out
    reason = "for GPU, eager, pinned: the rows do not say what they copy"
    assert reason in " ".join(printed.split())


@pytest.mark.parametrize(
    "broken",
    [
        *(
            "",
            "[]",
            "{}",
            '{"epoch": 1}',
            "null",
            "[" * 100_000,
            '{"epoch": {"flops": NaN}}',
            "\x00",
        ),
        *({"params": 0}, {"batch": -1}, {"rows": "x"}, {"steps": True}),
        *({"accumulate": value} for value in (1e999, 0, -1, "2", 1.5)),
    ],
    ids=lambda broken: str(broken)[:20],
)
def test_a_cost_that_is_none(broken, cost_path):
    path = cost_path()
    content = json.loads(path.read_text())
    path.write_text(broken if isinstance(broken, str) else json.dumps(content | broken))
    with pytest.raises(CostError, match="save its output again"):
        load_cost(path)


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_what_bench_refuses_is_passed_on(load, tmp_path, shell):
    bench = script(tmp_path / "bench", 'echo "bench: --model: $2 is no network" >&2; exit 2')
    asked = ("advise", load().path, "--model=foo", "--bench")
    assert shell(*asked, bench, code=2).err == "bench: --model: --model=foo is no network\n"
    assert "--bench PATH" in shell(*asked, tmp_path / "none", code=2).err
    complaint = shell(*asked, script(tmp_path / "b", "echo 1"), code=2).err
    assert "is not the output of bench --cost" in complaint


def test_a_batch_above_the_rows_of_a_network_raises_them(load, cost_path, tmp_path, shell):
    """As bench does, the script takes all rows, 320 unless more are given, for a larger batch."""
    counted = json.loads(Path(cost_path()).read_text())
    answers = []
    for count in (320, 640):
        answers.append(tmp_path / f"{count}.json")
        answers[-1].write_text(json.dumps({**counted, "batch": count, "rows": count}))
    few, many = answers
    bench = script(
        tmp_path / "bench", f'case "$*" in *--rows=640*) cat {many};; *) cat {few};; esac'
    )
    asked = ("--batch=640", "--bench", bench, "--format=json")
    for network in ("--network=mine.json", "--model=alexnet-r"):
        tables = json.loads(shell("advise", load().path, network, *asked).out)
        assert "batch 640" in tables[0]["title"], network
