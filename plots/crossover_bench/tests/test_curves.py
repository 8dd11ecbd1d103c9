# SPDX-License-Identifier: Apache-2.0
"""Which rows of a file make curves, on which ladders, and what is compared with what."""

import numpy as np
import pytest

from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.curves import BEST, NETWORKS, SCALES, pairings
from crossover_bench.files.ladders import DISC, Ladder, declared, networks_of_any
from crossover_bench.shell.cli import main
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_sweep import DISC_MODELS, DISC_SIZES, GPU_MODES, epochs, pairs


@pytest.fixture
def of(read):
    return lambda entries: read(synthetic.document(entries, gpu="synthetic GPU"))


@pytest.mark.slow
def test_every_combination_is_compared(wide):
    compared = [each for each in comparisons(wide) if each.family == "Epoch"]
    expected = {
        (threads, batch, precision, *mode)
        for threads in ("1", "2", "8", BEST)
        for batch in ("10", "100", "1000")
        for precision in ("f32", "tf32 (CPU: f32)")
        for mode in GPU_MODES
    }
    keys = [
        (
            each.cpu.configuration["cpu_threads"],
            each.batch,
            each.precision,
            each.gpu.configuration["execution"],
            each.gpu.configuration["data"],
        )
        for each in compared
    ]
    assert len(keys) == len(set(keys)) and set(keys) == expected
    assert all(each.measure == "parameters" for each in compared)
    assert all(np.array_equal(each.cpu.sizes, DISC_SIZES) for each in compared)
    first = compared[0]
    assert list(first.common) == ["family", "batch", "precision"]
    assert first.cpu.label == "CPU, 1 thread" and first.gpu.label == "GPU, eager, pageable"
    assert compared[3].cpu.label == "CPU, best of 1, 2, 8 threads"
    assert {each.gpu.configuration["precision"] for each in compared} == {"f32", "tf32"}


def test_products_and_layers_are_compared_for_one_operation(wide):
    gemm = [each for each in comparisons(wide) if each.family == "Gemm"]
    assert [each.cpu.configuration["cpu_threads"] for each in gemm] == ["1", BEST]
    what = {"family": "Gemm", "precision": "f32", "cache": "warm", "transpose": "nn"}
    assert gemm[0].measure == "size" and gemm[0].common == what
    assert gemm[0].gpu.label == "GPU, eager"
    # 100 products an iteration on the CPU, 10 on the GPU: only a time for each crosses at 200.
    assert gemm[0].crossover.size == pytest.approx(200, rel=0.02)
    layer = [each for each in comparisons(wide) if each.family == "Layer"]
    assert layer[0].measure == "width"
    assert crossover_words(layer[0].crossover) == "GPU at every size measured, width 16 to 1,024"
    assert layer[0].common["pass"] == "forward" and layer[0].common["batch"] == "100"


def test_the_best_takes_the_smallest_median_at_each_size(wide):
    pairing = next(pairings(wide, SCALES))
    for place, samples in enumerate(pairing.best.samples):
        medians = [np.median(cpu.samples[place]) for cpu in pairing.cpus]
        assert np.median(samples) == min(medians)
        assert len(pairing.best.candidates[place]) == 3


F32, BF16, F16 = ({"precision": name} for name in ("f32", "bf16", "f16"))


@pytest.mark.parametrize(
    ("cpu", "gpu", "key", "compared"),
    [
        # Like with like where the CPU has it, else with its f32, where it has that.
        ((F32, BF16), (F32, BF16, F16), "precision", ["f32", "bf16", "f16 (CPU: f32)"]),
        ((BF16,), (F32,), "precision", []),
        (({}, {"loss": "step"}), ({}, {"loss": "step"}), "loss", [None, "step"]),
    ],
)
def test_what_should_be_alike_is_compared_with_its_like(of, cpu, gpu, key, compared):
    models = ("disc-3", "disc-4")
    ways = [{**synthetic.cpu_configuration(model, 1), **more} for model in models for more in cpu]
    ways += [{**synthetic.gpu_configuration(model), **more} for model in models for more in gpu]
    file = of(epochs(ways, lambda *_: 1e-3))
    plain = [pair for pair in comparisons(file) if not pair.cpu.candidates]
    assert [pair.common.get(key) for pair in plain] == compared
    for pair in plain:
        sides = pair.gpu.configuration.get(key), pair.cpu.configuration.get(key)
        assert sides in {(compared[0], compared[0]), (compared[1], compared[1]), ("f16", "f32")}
    assert bool(Study(file).speed_ups()) == bool(compared)


def test_failed_rows_single_sizes_and_other_networks_make_no_curve(of):
    models = ("disc-3", "heart", "mlp-784-512-10")
    entries = epochs(pairs(models), lambda *_: 1e-3)
    entries.append(synthetic.failure(synthetic.gpu_configuration("disc-4"), "why"))
    entries += synthetic.samples(synthetic.cpu_configuration("disc-4", 1))
    file = of(entries)
    assert comparisons(file) == []
    assert [each.model for each in Study(file).speed_ups()] == list(models)


def test_a_network_of_the_same_size_as_another_is_left_out_in_words(of):
    entries = []
    for model, workload in (("disc-3", "a"), ("disc-03", "a"), ("disc-4", "b"), ("disc-3x1", "c")):
        size = synthetic.MODELS["disc-4" if model == "disc-4" else "disc-3"][0]
        for configuration in (
            synthetic.cpu_configuration("disc-3", 1),
            synthetic.gpu_configuration("disc-3"),
        ):
            renamed = {**configuration, "model": model}
            entries += synthetic.samples(renamed, [0.01] * 9, params=size, workload=workload * 16)
    (pair,) = [pair for pair in comparisons(of(entries)) if not pair.cpu.candidates]
    assert pair.cpu.flags == ("disc-3x1, another network of the same size, is left out",)
    assert pair.gpu.flags == pair.cpu.flags and len(pair.sizes) == 2


def test_flags_come_along(of):
    entries = []
    for model in ("disc-3", "disc-4"):
        entries += synthetic.samples(synthetic.cpu_configuration(model, 4), warnings=["crowded"])
        entries += synthetic.samples(synthetic.gpu_configuration(model))
    (first, best) = comparisons(of(entries))
    assert first.cpu.flags == best.cpu.flags == ("crowded",) and first.gpu.flags == ()


def test_speed_ups_of_all_networks(wide):
    ratios = Study(wide, compared=[]).speed_ups()  # each by its interval
    assert {each.model for each in ratios} == set(synthetic.MODELS)
    heart = [each for each in ratios if each.model == "heart"]
    assert len(heart) == 2 * len(GPU_MODES)
    for each in ratios:
        ratio = np.median(each.cpu.samples[0]) / np.median(each.gpu.samples[0])
        # Where thread counts are about equally fast the smallest median is too small.
        assert (1 - 1e-9) * ratio <= each.ratio < 1.01 * ratio
        assert each.low <= each.ratio <= each.high and each.high / each.low < 1.2
        assert each.winner == ("gpu" if each.low > 1 else "cpu" if each.high < 1 else None)
    assert {each.cpu.configuration["cpu_threads"] for each in ratios} == {"1", "2", "8"}


def test_a_speed_up_of_two_repetitions_has_no_interval(of):
    entries = synthetic.samples(synthetic.cpu_configuration("heart", 1), [0.02, 0.04])
    entries += synthetic.samples(synthetic.gpu_configuration("heart"), [0.01, 0.01])
    (speed_up,) = Study(of(entries)).speed_ups()
    assert speed_up.ratio == pytest.approx(3.0)
    assert speed_up.low is None and speed_up.high is None and speed_up.winner is None


def test_networks_have_one_size_each(wide):
    assert all(len(each.gpu.sizes) == 1 for each in pairings(wide, NETWORKS))


DEMO = {"demo-1": 1_000, "demo-2": 4_000_000}


def rows_of(model, params, cpu, gpu):
    entries = []
    for way, seconds in (
        (synthetic.cpu_configuration("disc-3", 1), cpu),
        (synthetic.cpu_configuration("disc-3", 2), cpu / 2),
        (synthetic.gpu_configuration("disc-3"), gpu),
    ):
        times = [seconds * (1 + 0.001 * place) for place in range(5)]
        entries += synthetic.samples({**way, "model": model}, times, params=params, rows=1000)
    return entries


def laddered(discs=True, **ladders):
    entries = []
    for model, params in DEMO.items():
        entries += rows_of(model, params, 1e-6 * params, 1e-2)
    for model in DISC_MODELS if discs else ():
        params = synthetic.MODELS[model][0]
        entries += rows_of(model, params, 1e-7 * params, 1e-3)
    made = synthetic.document(entries, gpu="synthetic GPU")
    if ladders:
        made["context"]["crossover"]["ladders"] = ladders
    return made


BOTH = {"disc": list(DISC_MODELS), "demo": list(DEMO)}


def best(file):
    """The crossovers against the best of the CPU, by what their networks are called."""
    compared = [each for each in comparisons(file) if each.cpu.candidates]
    return {each.common.get("model", "disc networks"): each.crossover.size for each in compared}


@pytest.mark.parametrize("ladders", [BOTH, {}, {"demo": list(DEMO)}])
def test_each_ladder_has_a_crossover_of_its_own(read, ladders):
    expected = {f"{name} networks": pytest.approx(20_000, rel=0.3) for name in ladders or ["disc"]}
    assert best(read(laddered(discs="".join(ladders) != "demo", **ladders))) == expected


def test_the_answer_names_each(write, shell):
    printed = " ".join(shell("crossover", "--all", write(laddered(**BOTH))).out.split())
    assert ", each batch copied there. From which network size " in printed
    assert "What moves it: demo networks: from " in printed
    assert "epoch of demo networks" in printed
    assert "demo networks" in shell("crossover", "--threads", write(laddered(**BOTH))).out


@pytest.mark.slow
def test_the_page_has_charts_of_each(write, tmp_path):
    path = write(laddered(**BOTH), "in/both.json")
    assert main(["report", str(path), "-o", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "epoch of demo networks" in page and "What moves it: demo networks: from " in page
    assert "demo networks against trainable parameters" in page
    assert "demo networks train faster on 2 threads" in page


def test_networks_of_a_ladder_are_called_as_people_do():
    ladders = declared({"ladders": {"disc": ["disc-2"], "gpt": ["gpt-16"]}})
    assert [ladder.networks for ladder in ladders] == ["disc networks", "transformers"]
    assert networks_of_any(ladders) == "disc networks or transformers"


def test_networks_stand_on_the_ladder_that_names_them():
    (demo,) = declared({"ladders": {"demo": ["demo-1", "demo-x2"]}})
    assert demo == Ladder("demo", ("demo-1", "demo-x2"))
    names = ("demo-1", "demo-1x1.5", "demo-3", "demo-x2", "disc-2")
    assert [demo.has(name) for name in names] == [True, True, False, True, False]
    assert demo.is_between("demo-1x1.5") and not demo.is_between("demo-x2")
    assert declared({}) == (DISC,) and DISC.is_between("disc-8x1.5")
    batches = {"ladders": BOTH, "ladder_batches": {"demo": 50}}
    assert [ladder.batch for ladder in declared(batches)] == ["100", "50"]
