# SPDX-License-Identifier: Apache-2.0
"""What others published: the files of plots/reference, and the tables made from them."""

import csv
import json
import math
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from plots.core.crossover import comparisons
from plots.core.published import (
    PUBLISHED_PATH,
    RESTORE,
    count_parameters,
    load_published,
    same_as_ours,
)
from plots.core.tables.formats import FORMATS, render
from plots.core.thresholds import THRESHOLDS_PATH, load_thresholds
from plots.features.predict.training_rates import RATES_PATH, load_training_rates
from plots.features.published.table import published_table
from plots.features.published.thresholds_table import thresholds_table
from plots.tests import synthetic, synthetic_steps, synthetic_sweep

YEARS = range(2007, 2027)  # CUDA is of 2007


def is_address(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" and "." in parts.netloc and len(parts.path) > 1


def is_at_a_commit(url: str) -> bool:
    """Whether a file of a repository is named with the commit that it was read at."""
    folders = urlsplit(url).path.split("/")
    return "blob" not in folders or len(folders[folders.index("blob") + 1]) == 40


@pytest.fixture(scope="module")
def experiments():
    return load_published()


@pytest.fixture(scope="module")
def thresholds():
    return load_thresholds()


@pytest.fixture(scope="module")
def rates():
    return load_training_rates()


@pytest.fixture
def sweep(read):
    """CPU and GPU: epochs, products, and training steps of two networks."""
    document = synthetic_sweep.wide_sweep((100,))
    document["benchmarks"] += synthetic_steps.steps(["alexnet-r", "fcn-r"], batches=(2, 8, 64, 512))
    return read(document)


def test_every_source_is_complete(experiments, thresholds):
    for one in experiments:
        citation = one.citation
        assert is_address(citation.url) and is_at_a_commit(citation.url), one.id
        assert citation.author and citation.title and one.where and one.quoted, one.id
        assert citation.year is None or citation.year in YEARS, one.id
    for one in thresholds:
        assert is_address(one.url) and is_at_a_commit(one.url), one.id
        assert one.where and one.quoted and one.rule and one.operation, one.id
        assert one.year is None or one.year in YEARS, one.id


def test_quotations_have_the_figures(experiments, thresholds):
    """Digit by digit, but for what was converted from another unit or rounded."""
    converted = {"cntk-20-layers", "returnn-blstm", "theano-lenet-285", "theano-lenet-480"}
    rounded = {"heart"}
    rates = {40000: "40", 35000: "35", 103000: "103", 22500: "22.5"}  # in thousands
    for one in experiments:
        if one.id in converted | rounded:
            continue
        for figure in (*one.seconds.values(), *one.samples_per_second.values()):
            texts = {f"{figure * scale:.{places}f}" for scale in (1, 1e3) for places in range(7)}
            texts |= {rates.get(figure, "?")}
            assert any(text in one.quoted for text in texts), (one.id, figure)
    for one in thresholds:
        values = one.value if isinstance(one.value, list) else [one.value]
        products = {32400: "180 * 180", 262144: "SMP_THRESHOLD_MIN", 65536: "256*256"}
        aside = {("superlu", 5000), ("cholmod-update", 32)}  # on lines that are not quoted
        for value in values:
            if (one.id, value) not in aside:
                assert products.get(value, str(value)) in one.quoted, (one.id, value)


def test_names_are_unique(experiments, thresholds):
    for names in ([one.id for one in experiments], [one.id for one in thresholds]):
        assert len(names) == len(set(names)) > 12


def test_experiments_have_both_times_or_a_crossover(experiments):
    for one in experiments:
        told = [bool(one.seconds), bool(one.samples_per_second), bool(one.crossover_params)]
        assert told.count(True) == 1, one.id
        assert one.crossover_params or one.speed_up, one.id
        assert one.kind in ("mlp", "cnn", "rnn") and not (one.epochs and one.steps), one.id
        for figures in (one.seconds, one.samples_per_second):
            assert all(figure > 0 for figure in figures.values()) and len(figures) in (0, 2), one.id
        # A GPU is not ten times slower than a CPU, nor a hundred times faster, in what was found.
        assert one.speed_up is None or 0.1 < one.speed_up < 100, one.id


def test_parameters_are_those_of_the_layers(experiments):
    counted = [one for one in experiments if one.layers]
    assert len(counted) > 12
    for one in counted:
        assert count_parameters(one.layers) == (one.params or one.crossover_params), one.id
        widths = [(layer[1], layer[2]) for layer in one.layers if layer[0] == "linear"]
        if one.kind == "mlp":
            assert all(before[1] == after[0] for before, after in pairwise(widths)), one.id
            assert str(widths[0][0]) in one.network and str(widths[-1][1]) in one.network, one.id


@pytest.mark.parametrize(
    ("layer", "count"),
    [
        (["linear", 784, 128], 100_480),
        (["conv", 3, 16, 25], 1_216),
        (["embedding", 5000, 50], 250_000),
        (["lstm", 3, 20, 1], 1_920),
        (["rnn", 28, 128, 2], 20_224),
    ],
)
def test_counts_of_layers(layer, count):
    assert count_parameters([layer]) == count


def test_times_of_an_epoch_and_of_a_step(experiments):
    named = {one.id: one for one in experiments}
    assert named["keras-mnist-750"].timed == (
        "epoch",
        pytest.approx({"CPU": 10.37, "GPU": 2.95}),
    )
    # 60,000 images at 40,000 and 103,000 in a second.
    assert named["mxnet-mlp"].timed[0] == "epoch"
    assert named["mxnet-mlp"].seconds_per_epoch == pytest.approx({"CPU": 1.5, "GPU": 60 / 103})
    assert named["cntk-simple2d"].timed == (
        "step",
        pytest.approx({"CPU": 25 / 40_000, "GPU": 25 / 35_000}),
    )
    assert named["lstm-lm-jit"].timed == ("step", pytest.approx({"CPU": 0.456804, "GPU": 0.025578}))
    assert named["theano-lenet-480"].timed[0] == "training"
    assert named["disc"].timed == ("", {}) and named["disc"].speed_up is None


def test_thresholds_are_sizes_of_rows_here(thresholds):
    families = {"Gemm": range(16, 8193), "Minibatch": range(1, 1025), "Epoch": range(10, 10**9)}
    for one in thresholds:
        assert one.between in ("devices", "threads"), one.id
        values = one.value if isinstance(one.value, list) else [one.value]
        assert all(value > 0 for value in values), one.id
        if one.nearest:
            assert round(one.nearest.size) in families[one.nearest.family], one.id
    named = {one.id: one for one in thresholds}
    # As many operations as a square product of the size that stands for them.
    for name, operations in {
        "spla": named["spla"].value / 2,
        "superlu": math.prod(named["superlu"].value[:2]),
        "cholmod-update": 256 * math.prod(named["cholmod-update"].value),
        "openblas-gemm": named["openblas-gemm"].value,
        "eigen": 2 * named["eigen"].value,
    }.items():
        assert named[name].nearest.size == pytest.approx(operations ** (1 / 3), rel=5e-3), name
    assert named["etl"].nearest.size == math.isqrt(named["etl"].value)


def test_rates_are_of_the_networks_here(rates):
    assert len(rates) > 20 and {one.network for one in rates} == {"resnet-50", "alexnet-owt"}
    for one in rates:
        assert is_address(one.source_url) and is_at_a_commit(one.source_url)
        assert one.precision in ("f32", "tf32", "f16") and one.what in ("step", "forward-backward")
        assert one.data in ("synthetic", "images", "unstated") and one.year in YEARS
        # An image of 224² takes at least 3.7 · 10⁹ multiply-adds forward in ResNet-50, 0.6 · 10⁹ in
        # the narrower AlexNet, and twice that backward; no GPU here does 10¹⁵ operations in f16.
        operations = 6 * (3.7e9 if one.network == "resnet-50" else 0.6e9)
        assert 1e11 < operations * one.samples_per_second < 1e15, one
        assert one.seconds_per_batch == pytest.approx(one.batch / one.samples_per_second)
        assert one.differs or one.network == "resnet-50"
    lines = list(csv.DictReader(RATES_PATH.read_text(encoding="utf-8").splitlines()))
    assert len(lines) == len(rates) and {line["gpus"] for line in lines} == {"1"}


def test_no_rate_stands_twice(rates):
    told = [(one.card_name, one.batch, one.precision, one.framework, one.network) for one in rates]
    assert len(told) == len(set(told))


def test_cards_are_faster_in_fewer_bits(rates):
    """Of one card, framework and source, in the same kind of runs: AMP over TF32 or f32."""
    compared = 0
    for half in (one for one in rates if one.precision == "f16"):
        plain = [
            one
            for one in rates
            if one.card_name == half.card_name
            and one.framework.split(",")[0] == half.framework.split(",")[0]
            and one.precision != "f16"
        ]
        for one in plain:
            compared += 1
            assert 1 < half.samples_per_second / one.samples_per_second < 4, (half, one)
    assert compared > 20


def test_units_are_told():
    for path in (PUBLISHED_PATH, THRESHOLDS_PATH):
        document = json.loads(path.read_text(encoding="utf-8"))
        (entries,) = (value for value in document.values() if isinstance(value, list))
        told = set(document["units"]) | {"id", "title", "code", "network", "training", "framework"}
        told |= {"cpu", "gpu", "epochs", "steps", "finding", "note", "url"}
        assert {key for entry in entries for key in entry} <= told


@pytest.mark.parametrize("form", FORMATS)
def test_tables_in_every_format(sweep, experiments, thresholds, form):
    tables = [
        thresholds_table(thresholds, sweep, comparisons(sweep)),
        published_table(experiments),
    ]
    text = render(tables, form)
    for expected in ("SCILIB-Accel", "MNIST in MXNet", "GTX 980"):
        assert expected in text


def test_thresholds_stand_beside_the_nearest_crossovers(sweep, thresholds):
    compared = comparisons(sweep)
    table = thresholds_table(thresholds, sweep, compared)
    lines = {}
    for record in table.records():
        lines.setdefault(record["id"], []).append(record)
    assert set(lines) == {one.id for one in thresholds}
    # A batch is compared with every network that was trained in several of them.
    assert [record["nearest"] for record in lines["ggml"]] == [
        "step of alexnet-r, batch 32",
        "step of fcn-r, batch 32",
    ]
    # The way of the GPU that wins earliest, against the best number of threads.
    for record, model in zip(lines["ggml"], ("alexnet-r", "fcn-r"), strict=True):
        starts = [
            one.crossover.size
            for one in compared
            if one.common.get("model") == model and one.precision == "f32"
            if one.family == "Minibatch" and one.cpu.candidates
        ]
        assert record["crossover"] == min(starts)
    (product,) = lines["scilib-accel"]
    assert product["low"] <= product["crossover"] <= product["high"]
    # Thresholds between threads, and those of what is not measured here, stay without an answer.
    for name in ("openblas-gemm", "tf-grappler"):
        (record,) = lines[name]
        assert record["crossover"] is None and record["answer"] is None


def test_without_a_gpu_thresholds_stand_alone(read, thresholds):
    file = read(synthetic_steps.machine(gpu=False))
    table = thresholds_table(thresholds, file, comparisons(file))
    assert len(table.lines) == len(thresholds)
    assert all(record["answer"] is None for record in table.records())
    assert table.title == "What others hard-code"


def test_command_prints_them_on_request(sweep, shell):
    path = str(sweep.path)
    assert "SCILIB" not in shell("crossover", path).out
    text = shell("crossover", path, "--published").out
    assert text.index("the GPU wins from") < text.index("What others hard-code")
    assert text.index("What others hard-code") < text.index("What others measured")
    titles = [
        table["title"]
        for table in json.loads(shell("crossover", path, "--published", "--format=json").out)
    ]
    assert titles[-1].startswith("What others measured")


def test_files_without_crossovers_share_a_table(write, shell):
    one, other = (str(write(synthetic_steps.machine(gpu=False), name)) for name in "ab")
    assert shell("crossover", one, other, "--published").out.count("What others hard-code") == 1


def test_command_says_what_is_missing(sweep, shell, monkeypatch):
    gone = THRESHOLDS_PATH.with_name("none.json")
    monkeypatch.setattr(load_thresholds, "__defaults__", (gone,))
    printed = shell("crossover", sweep.path, "--published", code=2)
    assert printed.out == ""
    assert f"{gone}: No such file" in printed.err and RESTORE in printed.err


@pytest.mark.slow
def test_report_says_what_is_missing(write, shell, monkeypatch, tmp_path):
    path = write(synthetic.sweep(threads=(1,), gpu=False))
    monkeypatch.setattr(load_thresholds, "__defaults__", (THRESHOLDS_PATH.with_name("none.json"),))
    assert (
        RESTORE in shell("report", path, "-o", tmp_path / "report", code=2).err
        and not (tmp_path / "report").exists()
    )


def test_two_are_networks_of_ours(experiments):
    assert [one.id for one in same_as_ours(experiments)] == ["disc", "heart"]
