# SPDX-License-Identifier: Apache-2.0
"""`advise`: on a machine that obeys the model, predictions and their band come true."""

import json
import stat
from pathlib import Path

import numpy as np
import pytest

from plots.cli import main
from plots.core.cost import Cost, CostError, load_cost
from plots.features.advise import analysis as advise
from plots.features.advise import command
from plots.features.advise.table import advice, meeting
from plots.file import loading, rows
from plots.tests import synthetic, synthetic_machine

TARGET = "mlp-784-512-10"
MEASURED = tuple(model for model in synthetic.MODELS if model != TARGET)
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
    series, problems = advise.fit_series(file, cost)
    assert problems == []
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
    assert [item.label for item in series] == [
        "CPU, 1 thread",
        "CPU, 2 threads",
        "GPU, eager, pinned",
        "GPU, eager, resident",
        "GPU, graph, resident",
    ]
    for item in series:
        assert len(item.residuals) == len(MEASURED)
        # The GPU's one wait in an epoch is not in the model.
        assert predicted(item, target).seconds == pytest.approx(truth(item), rel=0.1)
    cpu = series[0]
    weights = dict(zip(cpu.features, cpu.weights, strict=True))
    assert weights["products"] == pytest.approx(synthetic_machine.PRODUCT, rel=1e-3)
    assert weights["rows"] == pytest.approx(synthetic_machine.ROW, rel=1e-3)
    assert weights["compute"] == pytest.approx(1 / synthetic_machine.EFFICIENCY, rel=1e-3)
    assert weights["memory"] == pytest.approx(1, rel=1e-2)


@pytest.mark.slow
def test_predictions_lie_within_the_band(load, target):
    for item in fitted(load(noise=0.1, seed=3), target):
        answer = predicted(item, target)
        assert answer.low < answer.seconds < answer.high
        assert answer.low <= truth(item) <= answer.high
        assert 0.02 < item.typical_error < 0.3


@pytest.mark.slow
def test_the_band_covers_what_it_says(load, target):
    inside = []
    for seed in range(60):
        (item,) = fitted(load(**CPU_ONLY, noise=0.15, seed=seed), target)
        assert item.coverage == pytest.approx(13 / 14)
        answer = predicted(item, target)
        noise = np.random.default_rng([99, seed]).standard_normal()
        inside.append(answer.low <= truth(item) * np.exp(0.15 * noise) <= answer.high)
    # 13 of 14 networks; 60 binomial trials lie within these bounds with 99.9 %.
    assert 48 <= sum(inside) <= 60


def test_the_band_is_that_of_networks_left_out(load, target):
    """One network that disobeys widens the band, however well the others fit."""
    document = synthetic_machine.machine(**CPU_ONLY, noise=0.0)
    for entry in document["benchmarks"]:
        if entry["configuration"].get("model") == "disc-7":
            for field in ("real_time", "cpu_time"):
                entry[field] *= 2
    path = synthetic.write(load().path, document)
    (item,) = fitted(loading.load_file(path), target)
    assert max(item.residuals, key=lambda model: item.residuals[model]) == "disc-7"
    assert item.band == item.residuals["disc-7"] == pytest.approx(np.log(2), abs=0.05)


def test_older_rows_without_products_are_fitted_by_launches(load, target):
    document = synthetic_machine.machine(**CPU_ONLY, noise=0.0)
    for entry in document["benchmarks"]:
        entry.pop("products", None)
    (item,) = fitted(loading.load_file(synthetic.write(load().path, document)), target)
    assert item.features == ("launches", "rows", "compute", "memory")


def test_no_prediction_is_below_the_ceiling(load, cost_path):
    """The formula is fast by mistake; arithmetic at its ceiling is what nothing can beat."""
    document = synthetic_machine.machine(**CPU_ONLY, noise=0.0)
    for entry in document["benchmarks"]:
        if entry["configuration"]["family"] == "Epoch":
            for field in ("real_time", "cpu_time"):
                entry[field] /= 10
    path = synthetic.write(cost_path().with_name("file.json"), document)
    cost = load_cost(cost_path())
    (item,) = fitted(loading.load_file(path), cost)
    answer = predicted(item, cost)
    floor = cost.fields["epoch"]["flops"] / synthetic_machine.CPU_FLOPS
    assert answer.low == answer.seconds == pytest.approx(floor)


# --- beyond what was measured


def test_beyond_the_measured_sizes_the_band_widens_and_then_ends(load, cost_path):
    (item,) = fitted(load(**CPU_ONLY, noise=0.1), load_cost(cost_path()))
    most = max(synthetic.MODELS[model][0] for model in MEASURED)
    within, beyond = (
        predicted(item, load_cost(cost_path(params=most * factor))) for factor in (1, 5)
    )
    assert within.beyond == 1 and beyond.beyond == pytest.approx(5)
    widths = [np.log(answer.high / answer.seconds) for answer in (within, beyond)]
    assert widths[1] == pytest.approx(widths[0] * (1 + np.log10(5)))
    refusal = advise.predict(item, load_cost(cost_path(params=most * 11)))
    assert isinstance(refusal, str)
    assert "11 times beyond the measured range of parameters" in refusal
    assert "batch size" in str(advise.predict(item, load_cost(cost_path(batch=20_000))))


# --- words


def test_advice_names_the_faster_side_with_both_bands(load, target):
    series = fitted(load(noise=0.01), target)
    sentence = advice([predicted(item, target) for item in series])
    assert sentence.startswith("train it on the GPU: ")
    assert "; GPU, graph, resident) against 40 ms per epoch (" in sentence
    assert sentence.endswith("; CPU, 2 threads)")


def test_overlapping_bands_are_too_close_to_call(load, cost_path):
    cost = load_cost(cost_path(**synthetic_machine.counts("disc-5")))
    series = fitted(load(noise=0.4, modes=(("eager", "resident"),), seed=1), cost)
    sentence = advice([predicted(item, cost) for item in series])
    assert sentence.startswith("too close to call: ") and "./run" in sentence


def scaled_work(factor: float) -> dict[str, float]:
    """20 → 64 times `factor` → 10, as the synthetic machine counts."""
    params = round(64 * factor) * 31 + 10
    return synthetic_machine.work(params=params, batch=100, rows=1000, layers=2, features=20)


def scaled_cost(path: Path, factor: float) -> Cost:
    return load_cost(synthetic.write(path, synthetic_machine.cost("mlp", scaled_work(factor))))


@pytest.mark.parametrize(
    ("start", "words"), [(1 / 16, "GPU would win from"), (16, "CPU would win below")]
)
def test_meeting_is_where_the_formula_says(start, words, load, tmp_path):
    path = tmp_path / "scaled.json"
    cost = scaled_cost(path, start)
    series = fitted(load(noise=0.0, threads=(1,), modes=(("eager", "resident"),)), cost)
    sentence = meeting(series, cost, lambda factor: scaled_cost(path, start * factor))
    cpu = synthetic.cpu_configuration("heart", 1)
    gpu = synthetic.gpu_configuration("heart", "eager", "resident")
    ahead = [
        scaled_work(factor)["params"]
        for factor in np.geomspace(1 / 32, 32, 2000)
        if sum(synthetic_machine.profile(scaled_work(factor), gpu).values())
        < sum(synthetic_machine.profile(scaled_work(factor), cpu).values())
    ]
    assert f"the {words} about " in sentence
    said = float(sentence.split(" about ")[1].split()[0].replace(",", ""))
    assert said == pytest.approx(ahead[0], rel=0.15)
    assert sentence.endswith(f"this network has {cost.params:,.0f}.")


def test_where_one_side_stays_ahead_is_said(load, tmp_path):
    path = tmp_path / "scaled.json"
    cost = scaled_cost(path, 16)
    series = fitted(load(noise=0.0, modes=(("graph", "resident"),)), cost)
    sentence = meeting(
        series, cost, lambda factor: scaled_cost(path, 16 * factor) if factor > 0.5 else None
    )
    assert "the GPU stays ahead from 31,754 to " in sentence
    assert meeting(series[:1], cost, lambda factor: None) == ""


# --- the command


def run(path: Path, *arguments: object) -> int:
    return main(["advise", *map(str, arguments), str(path)])


def test_a_saved_cost_needs_no_program(load, cost_path, capsys):
    assert run(load().path, "--cost", cost_path()) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    first = printed.out.splitlines()[0]
    assert first.startswith(
        f"{TARGET} in batches of 100, on synthetic machine: train it on the GPU"
    )
    assert "CPU, 1 thread" in printed.out and "covers 93 % of" in printed.out


def test_threads_choose_among_the_cpus(load, cost_path, capsys):
    path = load().path
    assert run(path, "--cost", cost_path(), "--threads", "1", "--format", "json") == 0
    (table,) = json.loads(capsys.readouterr().out)
    lines = {row["on"]: row for row in table["rows"]}
    assert "CPU, 1 thread" in lines and "CPU, 2 threads" not in lines
    for row in lines.values():
        assert row["low_seconds"] < row["epoch_seconds"] < row["high_seconds"]
        assert row["step_seconds"] == pytest.approx(row["epoch_seconds"] / 10)


def test_threads_that_were_not_measured(load, cost_path, capsys):
    path = load().path
    assert run(path, "--cost", cost_path(), "--threads", "3") == 2
    assert capsys.readouterr().err == (
        f"{path}: --threads 3: the file has rows on 1, 2 CPU threads\n"
    )


def test_a_gpu_of_autotuned_products_alone_is_predicted(read, target):
    content = synthetic_machine.machine(models=MEASURED)
    for entry in content["benchmarks"]:
        configuration = entry["configuration"]
        if (configuration["family"], configuration["device"]) == ("Epoch", "cuda"):
            entry["configuration"] = {**configuration, "products": "autotuned"}
            entry["name"] = synthetic.row_name(entry["configuration"])
    labels = [item.label for item in fitted(read(content), target)]
    assert labels[2:] == [
        "GPU, eager, resident, autotuned products",
        "GPU, graph, resident, autotuned products",
    ]


def test_a_file_without_gpu_says_so(load, cost_path, capsys):
    assert run(load(**CPU_ONLY).path, "--cost", cost_path()) == 0
    assert "the file has no times of the GPU" in capsys.readouterr().out


def test_too_little_in_the_file_is_a_sentence(load, cost_path, write, capsys):
    cost = cost_path()
    few = load(**{**CPU_ONLY, "models": MEASURED[:4]}).path
    assert run(few, "--cost", cost) == 2
    sentence = capsys.readouterr().err
    assert (
        f"{few}: nothing can be predicted" in sentence and "CPU, 1 thread: 4 networks" in sentence
    )
    assert sentence.count("\n") == 1
    assert run(load(with_peaks=False).path, "--cost", cost) == 2
    assert "has no Peak rows" in capsys.readouterr().err
    assert run(write(synthetic.document([])), "--cost", cost) == 2
    assert "no Epoch row in the precision of the network, f32" in capsys.readouterr().err


def test_rows_that_do_not_say_what_they_copy(load, cost_path, capsys):
    document = synthetic_machine.machine(models=MEASURED, modes=(("eager", "pinned"),))
    for entry in document["benchmarks"]:
        entry.pop("bytes_to_device", None)
    path = synthetic.write(load().path, document)
    assert run(path, "--cost", cost_path()) == 0
    assert "GPU, eager, pinned: the rows do not say what they copy" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"epoch": 1}', "null", "[" * 100_000, '{"epoch": {"flops": NaN}}', "\x00"],
)
def test_a_cost_that_is_none(text, load, tmp_path, capsys):
    path = tmp_path / "cost.txt"
    path.write_text(text)
    assert run(load().path, "--cost", path) == 2
    assert "save its output again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("params", 0), ("batch", -1), ("rows", "x"), ("steps", True)),
        *(("accumulate", value) for value in (1e999, 0, -1, "2", 1.5)),
    ],
)
def test_a_cost_with_impossible_numbers(field, value, cost_path):
    path = cost_path()
    content = json.loads(path.read_text())
    content[field] = value
    path.write_text(json.dumps(content))
    with pytest.raises(CostError, match="save its output again"):
        load_cost(path)


def test_a_network_beside_a_saved_cost_is_refused(load, cost_path, tmp_path, capsys):
    path = load().path
    assert run(path, "--cost", cost_path(), "--mlp", "2,2") == 2
    assert "drop --mlp" in capsys.readouterr().err
    assert run(path, "--cost", tmp_path / "missing.json") == 2
    assert "No such file" in capsys.readouterr().err


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_what_bench_refuses_is_passed_on(load, tmp_path, capsys):
    bench = script(tmp_path / "bench", 'echo "bench: --mlp: $2 is no network" >&2; exit 2')
    assert run(load().path, "--mlp", "5", "--bench", bench) == 2
    assert capsys.readouterr().err == "bench: --mlp: --mlp=5 is no network\n"
    assert run(load().path, "--mlp", "5", "--bench", tmp_path / "none") == 2
    assert "--bench PATH" in capsys.readouterr().err
    assert run(load().path, "--mlp", "5", "--bench", script(tmp_path / "b", "echo 1")) == 2
    assert "is not the output of bench --cost" in capsys.readouterr().err


def test_the_program_counts_wider_and_narrower_networks(load, tmp_path, monkeypatch, capsys):
    asked = []

    def counted(bench: Path, arguments: list[str]) -> Cost:
        asked.append(arguments[0])
        hidden = int(arguments[0].split(",")[1])
        return scaled_cost(tmp_path / "scaled.json", hidden / 64)

    monkeypatch.setattr(command, "run_bench", counted)
    assert run(load(noise=0.0).path, "--mlp", "784,64,10") == 0
    assert asked[0] == "--mlp=784,64,10" and "--mlp=784,1,10" in asked
    assert "--mlp=784,16384,10" in asked
    assert "hidden layers" in capsys.readouterr().out
