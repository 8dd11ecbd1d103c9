# SPDX-License-Identifier: Apache-2.0
"""`why`: splits that add up, counterfactuals of known crossovers in words and order, epochs counted
one by one."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from crossover_bench.answers.why import analysis as why
from crossover_bench.answers.why.chart import draw_why
from crossover_bench.curves.crossover import Comparison, Crossover
from crossover_bench.curves.network import epoch_rows
from crossover_bench.files import loading
from crossover_bench.files.quantities import QUANTITIES
from crossover_bench.files.samples import in_quantity, long_table
from crossover_bench.shell.cli import main
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic, synthetic_machine
from crossover_bench.tests.conftest import why_tables
from crossover_bench.tests.synthetic_answers import COMMON, answer, comparison


@pytest.fixture
def load(read):
    """A synthetic machine's file, loaded."""
    return lambda **options: read(synthetic_machine.machine(**options))


# --- the split


def test_the_parts_add_up_to_the_median(load):
    file = load(noise=0.02)
    splits = why.splits(epoch_rows(file))
    assert len(splits) == len(epoch_rows(file)) == 14 * 4
    for split in splits:
        total = sum(split.parts.values()) + split.unattributed
        assert total == pytest.approx(split.row.median)
    # With noise the profile is above the median of about half of them.
    assert 10 < sum(split.unattributed < 0 for split in splits) < 46


def test_a_profile_of_a_slower_moment_is_no_split(load):
    file = load(noise=0.5)
    rows = epoch_rows(file)
    splits = why.splits(rows)
    assert 0 < len(splits) < len(rows)
    assert all(sum(split.parts.values()) <= 1.1 * split.row.median for split in splits)
    (table, *_) = why_tables(file, [])
    assert f"{len(rows) - len(splits)} rows whose profile took over 10 %" in table.notes[-1]


@pytest.mark.parametrize("is_chosen", [False, True])
def test_one_kernel_has_no_part_called_products(read, is_chosen):
    way = "auto" if is_chosen else "persistent"
    configuration = synthetic.gpu_configuration("disc-3", way, "resident")
    profile = {"seconds_launch": 0, "seconds_product": 0.07, "seconds_synchronization": 0.02}
    chosen = {"chosen": {"execution": "persistent"}} if is_chosen else {}
    work = {"minimum_work": {"flops": 1, "launches": 1}}
    row = synthetic.samples(configuration, [0.1] * 9, **profile, **work, **chosen)
    peaks = synthetic_machine.peaks((1,), gpu=True)
    launch = {"family": "Peak", "quantity": "launches", "device": "cuda"}
    peaks += synthetic.operation(launch, [4e-3] * 3, count=1000)
    file = read(synthetic.document([*peaks, *row], gpu="synthetic GPU"))
    (split,) = why.splits(epoch_rows(file))
    assert split.parts == {"launch": 0, "synchronization": 0.02, "kernel": 0.07}
    (table, *_) = why_tables(file, [])
    (line,) = table.records()
    assert line["kernel_percent"] == pytest.approx(70) and "product_percent" not in line
    assert line["bound"] == "one launch" and draw_why(Study(file)) is not None
    products = in_quantity(file, QUANTITIES["products"])
    assert epoch_rows(products) == []
    assert "products" not in long_table([file]).columns["quantity"]


def test_a_row_without_profile_has_no_split(small, read):
    file = read(small)
    assert why.splits(epoch_rows(file)) == []
    (table,) = why_tables(file, [])
    assert "unattributed_percent" not in table.records()[0]
    assert draw_why(Study(file)) is None


def test_shares_are_percent_of_the_epoch(load):
    file = load(threads=(1,), modes=(), noise=0.0)
    (table,) = why_tables(file, [])
    what = synthetic_machine.counts("disc-2")
    line = next(line for line in table.records() if line["model"] == "disc-2")
    parts = synthetic_machine.profile(what, synthetic.cpu_configuration("disc-2", 1))
    total = sum(parts.values())
    assert line["loss_percent"] == pytest.approx(100 * parts["loss"] / total)
    assert line["unattributed_percent"] == pytest.approx(0, abs=1e-6)
    assert line["bound"] == "compute"
    assert line["bound_percent"] == pytest.approx(100 * what["flops"] / 5e10 / total)


def test_shares_are_of_the_epoch_beside_them(read):
    # The medians of the parts, and of what each repetition had beyond them, add up to 0.86 of the
    # median epoch.
    configuration = synthetic.cpu_configuration("disc-3", 1)
    entries = synthetic.samples(configuration, [0.10, 0.10, 0.10])
    times = ((0.02, 0.06), (0.06, 0.02), (0.04, 0.04))
    for entry, (product, loss) in zip(entries, times, strict=True):
        entry |= {"seconds_product": product, "seconds_loss": loss}
    file = read(synthetic.document(entries))
    (line,) = why_tables(file, [])[0].records()
    assert line["product_percent"] == pytest.approx(100 * 0.04 / line["epoch_seconds"])
    assert line["unattributed_percent"] == pytest.approx(20)
    shares = ("product_percent", "loss_percent", "unattributed_percent")
    assert sum(line[share] for share in shares) == pytest.approx(100)


def test_columns_are_those_that_the_file_has(load):
    cpu = why_tables(load(modes=()), [])[0].records()[0]
    assert "launch_percent" not in cpu and "update_percent" not in cpu
    gpu = why_tables(load(modes=(("eager", "pinned"),)), [])[0].records()
    assert {line["copy_to_device_percent"] is None for line in gpu} == {True, False}


# --- threads


def test_more_threads(load):
    lines = why_tables(load(noise=0.0), [])[1].records()
    ratios = {line["model"]: line["speed_up_2"] for line in lines}
    assert ratios["disc-12"] == pytest.approx(2, rel=1e-2) and ratios["disc-2"] < 2


def test_thread_counts_whose_repetitions_overlap_are_marked(read):
    entries = [
        *synthetic.samples(synthetic.cpu_configuration("disc-3", 1), [0.010, 0.012, 0.014]),
        *synthetic.samples(synthetic.cpu_configuration("disc-3", 2), [0.009, 0.0101, 0.011]),
    ]
    (line,) = why_tables(read(synthetic.document(entries)), [])[1].lines
    assert line[-1].value == pytest.approx(0.012 / 0.0101) and line[-1].marks == (1,)


# --- start-up


@pytest.mark.parametrize(
    ("cpu_first", "cpu_epoch", "gpu_first", "gpu_epoch"),
    [
        (0.1, 0.1, 1.0, 0.01),
        (0.1, 0.1, 1.0, 0.1),
        (0.1, 0.1, 1.0, 0.2),
        (1.0, 0.1, 0.5, 0.01),
        (0.5, 0.25, 1.5, 0.125),  # equal after 9 epochs, to the bit
        (0.5, 0.25, 0.5, 0.125),
    ],
)
def test_repayment_is_the_first_epoch_that_is_ahead(
    cpu_first, cpu_epoch, gpu_first, gpu_epoch, read
):
    cpu = synthetic.cpu_configuration("disc-3", 1)
    gpu = synthetic.gpu_configuration("disc-3")
    entries = [
        *synthetic.samples(cpu, [cpu_epoch] * 3, first_call_seconds=cpu_first),
        *synthetic.samples(gpu, [gpu_epoch] * 3, first_call_seconds=gpu_first),
    ]
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    times = (Fraction(time) for time in (cpu_first, cpu_epoch, gpu_first, gpu_epoch))
    cpu_start, cpu_each, gpu_start, gpu_each = times
    ahead = [
        n for n in range(1, 1000) if gpu_start + (n - 1) * gpu_each < cpu_start + (n - 1) * cpu_each
    ]
    (repayment,) = why.repayments(file.rows)
    assert repayment.iterations == (ahead[0] if ahead else None)


def test_repayment_is_against_the_fastest_cpu_row(load):
    repaid = why.repayments(load().rows[7:])
    assert {repayment.cpu.configuration["cpu_threads"] for repayment in repaid} == {"2"}
    assert len(repaid) == 14 * 2


# --- the command


def test_text_is_of_the_batch_of_the_headline(write, shell):
    entries = []
    for batch in ("10", "100"):
        for model in ("disc-3", "disc-12"):
            for side in (
                synthetic.cpu_configuration(model, 1),
                synthetic.gpu_configuration(model),
            ):
                entries += synthetic.samples({**side, "batch": batch}, seconds_loss=1e-5)
    path = write(synthetic.document(entries, gpu="synthetic GPU"))
    printed = shell("why", path).out
    split = printed.partition("Where the time of an epoch goes")[2].partition("\n\nWhen")[0]
    discs = [line.split() for line in split.splitlines() if line.startswith("disc-")]
    assert {line[1] for line in discs} == {"100"} and len(discs) == 4
    assert "--all shows, too: Where the time of an epoch goes (8)" in printed


@pytest.mark.slow
def test_charts_are_written(load, tmp_path):
    path, charts = (
        load(modes=(("eager", "pinned"), ("graph", "resident"))).path,
        tmp_path / "charts",
    )
    assert main(["why", str(path), "--charts", str(charts)]) == 0
    names = ["synthetic-machine.why.png", "synthetic-machine.why.svg"]
    assert sorted(path.name for path in charts.iterdir()) == names
    svg = (charts / names[1]).read_text()
    labels = ("launch", "wait", "products", "unattributed", "bound", "GPU, fastest way")
    assert all(label in svg for label in labels)


def test_a_file_without_epochs_is_told(write, shell):
    document = synthetic.document(synthetic_machine.peaks((1,), gpu=False))
    path = write(document)
    assert f"{path}: no Epoch or Minibatch row has a result" in shell("why", path, code=2).err


# --- engines


def test_the_engines_of_convolutions_are_told(write, shell):
    taken = {"dw eng65": 1, "forward eng41 fused": 2}
    entries = synthetic.samples(synthetic.gpu_configuration("disc-3"), [0.01], convolutions=taken)
    path = write(synthetic.document(entries, gpu="synthetic GPU"))
    table = why_tables(loading.load_file(path), [])[-1]
    assert {line["engine"]: line["convolutions"] for line in table.records()} == taken
    assert "eng41 fused" in shell("why", path, "--all").out


def of(size: Any, execution: str = "eager", data: str = "pinned", **more: Any) -> Comparison:
    crossover = size if isinstance(size, Crossover) else answer(size)
    return comparison(crossover, execution=execution, data=data, **more)


RESIDENT = "with the data resident instead of pinned, the"
FROM = "from 703,000 parameters (633,000 to 773,000)"
ALWAYS = "GPU at every size measured, 22 to 703,142 parameters"
PINNED, NOT_PINNED = of(703_000), of(None, "eager", "resident")


@pytest.mark.parametrize(
    ("compared", "expected"),
    [
        (  # against the plainest like it
            [of(180_000, data="resident"), of(703_000), of(90_000, "graph", "resident")],
            [
                f"{RESIDENT} crossover falls from 703,000 to 180,000 parameters (batch 100, f32, "
                "eager)",
                "with CUDA graphs instead of eager, the crossover falls from 180,000 to 90,000 "
                "parameters (batch 100, f32, resident)",
            ],
        ),
        (
            [of(100_000, threads="2"), of(50_000, threads="1"), of(100_000)],
            [
                "with 2 CPU threads instead of 1, the crossover rises from 50,000 to 100,000 "
                "parameters (batch 100, f32, eager, pinned)"
            ],
        ),
        (
            [of(answer(703_000, spread=0.4)), of(600_000, data="resident")],
            [
                f"{RESIDENT} crossover stays within its uncertainty: 600,000 parameters, 703,000 "
                "without (batch 100, f32, eager)"
            ],
        ),
        (  # the end may lie beyond the largest size
            [of(703_000), of(replace(answer(100_000), high=None), data="resident")],
            [
                f"{RESIDENT} crossover stays within its uncertainty: 100,000 parameters, 703,000 "
                "without (batch 100, f32, eager)"
            ],
        ),
        (
            [of(18_900), of(18_910, data="resident")],
            [f"{RESIDENT} crossover stays at 18,900 parameters (batch 100, f32, eager)"],
        ),
        (
            [PINNED, NOT_PINNED],
            [f"{RESIDENT} answer is “{ALWAYS}” instead of “{FROM}” (batch 100, f32, eager)"],
        ),
        (
            [replace(NOT_PINNED, gpu=PINNED.gpu), NOT_PINNED],
            [f"{RESIDENT} answer stays the same: {ALWAYS} (batch 100, f32, eager)"],
        ),
        ([replace(PINNED, common={"family": "Gemm"}, measure="size")], []),
    ],
)
def test_a_change_in_words(load, compared, expected):
    changes = why.counterfactuals(Study(load(modes=()), compared=compared))
    assert [change.sentence for change in changes] == expected


def test_thread_counts_are_compared_on_the_same_gpu_curve(load):
    waited = {"data": "resident", "loss": "step"}
    compared = [
        of(50_000, threads="1", data="resident"),
        of(900_000, threads="16", **waited),
        of(100_000, threads="2", data="resident"),
        of(60_000, threads="1", **waited),
    ]
    changes = why.counterfactuals(Study(load(modes=()), compared=compared))
    assert [(change.before.size, change.after.size) for change in changes] == [(50_000, 100_000)]


def test_what_matters_most_stands_first(load):
    def ways(batch: str, *sizes: float) -> list[Comparison]:
        hows = (("eager", "pageable"), ("eager", "pinned"), ("eager", "resident"))
        each_way = zip(sizes, (*hows, ("graph", "resident")), strict=True)
        common = {**COMMON, "batch": batch}
        return [replace(of(size, *how), common=common) for size, how in each_way]

    other = ways("10", 703_000, 700_000, 2_000, 500)
    headline = ways("100", 703_000, 700_000, 180_000, 90_000)
    changes = why.counterfactuals(Study(load(modes=()), compared=[*other, *headline]))
    resident = "with the data resident instead of pageable"
    graphs = "with CUDA graphs instead of eager"
    pinned = "with the data in pinned memory instead of pageable"
    assert [(change.pair.batch, change.change, change.is_sure) for change in changes] == [
        ("100", resident, True),
        ("100", graphs, True),
        ("100", pinned, False),
        ("10", resident, True),
        ("10", graphs, True),
        ("10", pinned, False),
    ]


def test_the_effect_of_an_answer_without_a_size(load):
    never = of(replace(answer(None), kind="never", winners=(-1,) * 3))
    (change,) = why.counterfactuals(Study(load(modes=()), compared=[never, NOT_PINNED]))
    assert change.is_sure and change.effect == pytest.approx(np.log(703142 / 22))
    unsure = of(replace(answer(None), kind="ambiguous"), data="resident")
    (change,) = why.counterfactuals(Study(load(modes=()), compared=[never, unsure]))
    assert not change.is_sure and change.effect == 0


def test_the_profile_stands_in_for_what_was_not_measured(load, monkeypatch):
    file = load(modes=(("eager", "pinned"),), noise=0.0)
    asked = []
    monkeypatch.setattr(
        why,
        "find_crossover",
        lambda cpu, gpu, measure: asked.append(gpu) or answer(500_000),
    )
    pair = PINNED
    changes = why.counterfactuals(Study(file, compared=[pair]))
    assert [(change.change, change.measured) for change in changes] == [
        ("without copies to the GPU", False),
        ("without the time of launches", False),
    ]
    assert "by the profile" in changes[0].sentence
    for gpu, part in zip(asked, ("copy_to_device", "launch"), strict=True):
        for model, samples in zip(("disc-2", "disc-6", "disc-10"), gpu.samples, strict=True):
            what = synthetic_machine.counts(model)
            parts = synthetic_machine.profile(what, pair.gpu.configuration)
            assert samples == pytest.approx(1.0 - parts[part], abs=1e-6)
