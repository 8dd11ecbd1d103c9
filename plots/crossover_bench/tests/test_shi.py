# SPDX-License-Identifier: Apache-2.0
"""The table of Shi et al. 2016, alone and with rows of this project."""

import pytest

from crossover_bench.answers.shi import section
from crossover_bench.answers.shi.analysis import (
    load_differences,
    load_shi,
    means,
    newest_with_rows,
    ours,
)
from crossover_bench.answers.shi.section import brought, ratio_table, shi_table
from crossover_bench.curves import statistics
from crossover_bench.files import loading
from crossover_bench.show.page.section import Context
from crossover_bench.show.tables.formats import FORMATS, render
from crossover_bench.show.tables.table import Table
from crossover_bench.tests import synthetic, synthetic_steps


@pytest.fixture
def figures():
    """The published table."""
    return load_shi()


def loaded(write, *entries, name: str = "file.json", **options):
    content = synthetic.document([entry for row in entries for entry in row], **options)
    return loading.load_file(write(content, name))


def cell(table: Table, network: str, framework: str, key: str):
    place = [column.key for column in table.columns].index(key)
    line = next(
        line for line in table.lines if (line[0].text, line[1].text) == (network, framework)
    )
    return line[place]


def test_every_published_cell_is_there_and_the_fastest_bold(figures):
    table = shi_table(figures, [])
    assert len(table.columns) == 2 + 13 and len(table.lines) == 7 * 5
    assert len(figures) == 455
    for figure in figures:
        threads = f"_{figure.threads}" if figure.threads else ""
        key = f"{figure.device}{threads}_seconds"
        shown = cell(table, figure.network, figure.framework, key)
        assert shown.value == figure.seconds
        assert shown.text == (figure.text if figure.seconds else "–")
    assert "FCN-R 1024" in table.notes[0]
    for line in table.lines:  # the fastest of each group is bold
        for group in {column.group for column in table.columns if column.group}:
            columned = zip(line, table.columns, strict=True)
            members = [cell for cell, column in columned if column.group == group]
            times = [cell.value for cell in members if cell.value is not None]
            bold = [cell.value for cell in members if cell.bold]
            assert set(bold) == ({min(times)} if times else set())


def step(network: str, on: int | str, seconds: list[float], **changes) -> list[dict]:
    """A row of training steps on a number of threads, or on a GPU in a way."""
    if isinstance(on, int):
        configuration = synthetic_steps.cpu_configuration(network, on)
    else:
        configuration = synthetic_steps.gpu_configuration(network, None, *on.split(","))
    return synthetic_steps.samples({**configuration, **changes}, seconds)


def epochs(on: int | str, seconds: list[float], **more) -> list[dict]:
    """Those of FCN-R, of four mini-batches each."""
    if isinstance(on, int):
        return synthetic.samples(synthetic.cpu_configuration("fcn-r", on), seconds, **more)
    execution, data, precision = on.split(",")
    way = synthetic.gpu_configuration("fcn-r", execution, data)
    return synthetic.samples({**way, "precision": precision}, seconds, **more)


def test_rows_stand_below_the_frameworks_in_columns_of_their_own(figures, write):
    file = loaded(
        write,
        epochs(1, [8.0] * 5),
        epochs(2, [4.0, 4.4, 4.8]),
        epochs("graph,pinned,f32", [0.8] * 5),
        epochs("eager,resident,f32", [0.4] * 5, warnings=["clock fell"]),
        epochs("graph,pinned,bf16", [0.1] * 5),
        step("fcn-s", 1, [1.5] * 5),
        step("alexnet-r", 2, [0.2] * 5),
        step("alexnet-r", 2, [0.05] * 5, precision="bf16"),
        [synthetic.failure(synthetic_steps.cpu_configuration("lstm", 1), "9 GB", "skipped")],
        gpu="synthetic GPU",
    )
    table = shi_table(figures, [file])
    cpu, of_two, gpu = (f"synthetic_machine_{on}_seconds" for on in ("cpu_1", "cpu_2", "gpu"))
    for network, framework, key, seconds, notes in (
        ("FCN-R", "Crossover", cpu, 2.0, []),
        ("FCN-R", "Crossover", of_two, 1.1, []),
        ("FCN-R", "Crossover", "desktop_1_seconds", None, []),
        ("FCN-R", "Crossover", gpu, 0.1, ["eager, resident", "clock fell"]),
        ("FCN-R", "Crossover, bf16", gpu, 0.025, ["graph, pinned"]),
        ("FCN-S", "Crossover", cpu, 1.5, []),
        ("AlexNet-R", "Crossover", of_two, 0.2, []),
        ("AlexNet-R", "Crossover, bf16", of_two, 0.05, []),
        ("LSTM", "Crossover", cpu, None, ["skipped: 9 GB"]),
    ):
        shown = cell(table, network, framework, key)
        assert shown.value == (seconds and pytest.approx(seconds)), (network, framework, key)
        assert [table.notes[mark - 1] for mark in shown.marks] == notes
    assert cell(table, "FCN-R", "Crossover", of_two).bold
    lines = [line[1].text for line in table.lines if line[0].text == "FCN-R"]
    assert lines == ["Caffe", "CNTK", "TF", "MXNet", "Torch", "Crossover", "Crossover, bf16"]
    assert len(table.lines) == 35 + 6
    on_cpu = [measured for measured in ours(figures, file.rows) if measured.side == "cpu"]
    ratios = [measured.against["cpu"].ratio for measured in on_cpu]
    assert ratios == pytest.approx([0.382 / 1.5, 0.252 / 1.1, 0.971 / 0.2, 0.971 / 0.05])
    assert {mean.precision for mean in means(figures, file.rows)} == {"f32"}  # that of the table
    both = loaded(write, epochs(1, [8.0] * 5), step("fcn-r", 1, [1.5] * 5))
    ((_, rows),) = newest_with_rows(figures, [both])
    assert [row.median for row in rows] == [1.5]  # steps come before epochs


def test_ratios_are_to_the_fastest_published_figures(figures, write):
    file = loaded(
        write,
        step("alexnet-r", 1, [0.5] * 9),
        step("alexnet-r", 2, [0.25] * 9),
        step("alexnet-r", "graph,resident", [0.009] * 9),
        gpu="synthetic GPU",
    )
    table = ratio_table(figures, [file])
    cpu, gpu = (line for line in table.records() if line["network"] == "AlexNet-R")
    assert cpu["on"] == "CPU, 2 threads" and gpu["on"] == "GPU, graph, resident"
    assert cpu["published_cpu"] == "TF, two Intel E5-2630 v3, 32 threads"
    assert (cpu["published_cpu_seconds"], cpu["published_gpu_seconds"]) == (0.971, 0.027)
    assert cpu["cpu_ratio"] == pytest.approx(0.971 / 0.25)
    assert cpu["gpu_ratio"] == pytest.approx(0.027 / 0.25)
    assert gpu["gpu_ratio"] == pytest.approx(0.027 / 0.009)
    # Equal repetitions: what is left is half a unit of the last published digit.
    assert cpu["gpu_low"] == pytest.approx(0.0265 / 0.25)
    assert cpu["gpu_high"] == pytest.approx(0.0275 / 0.25)
    for side in ("cpu", "gpu"):
        best = min(
            figure.seconds
            for figure in figures
            if figure.network == "AlexNet-R" and figure.side == side and figure.seconds
        )
        assert cpu[f"published_{side}_seconds"] == best


def test_the_interval_is_that_of_the_repetitions(figures, write):
    times = [0.20, 0.21, 0.22, 0.23, 0.24, 0.25, 0.26, 0.27, 0.28]
    file = loaded(write, step("fcn-s", 1, times))
    (measured,) = ours(figures, file.rows)
    ratio = measured.against["cpu"]
    assert ratio.ratio == pytest.approx(0.382 / 0.24)
    assert 0.382 / 0.28 < ratio.low < ratio.ratio < ratio.high < 0.382 / 0.20
    few = loaded(write, step("fcn-s", 1, [0.2] * (statistics.FEWEST_SAMPLES - 1)))
    assert ours(figures, few.rows)[0].against["cpu"].low is None
    assert "What has no interval has too few repetitions for one." in brought(figures, [few])[0]
    both = loaded(write, step("fcn-s", 1, times), step("alexnet-r", 1, times[:4]))
    of_both = ours(figures, both.rows)
    lows = {measured.networks[0]: measured.against["cpu"].low for measured in of_both}
    assert lows == {"FCN-S": ratio.low, "AlexNet-R": None}  # each by its own repetitions


def test_the_sentence_says_which_device_against_which_and_over_what(figures, write):
    file = loaded(
        write,
        step("fcn-r", 2, [0.126] * 9),
        step("lstm", 2, [0.045] * 9),
        step("fcn-r", "graph,resident", [0.004] * 9),
        gpu="synthetic GPU",
        date="2025-03-01T00:00:00+00:00",
    )
    (sentence,) = brought(figures, [file])
    for phrase in (
        "Beside 2016, in f32: the CPU of synthetic machine (",
        "synthetic CPU, 2 cores) is 2.00 times (",
        "geometric means over 2 of 7 networks (FCN-R, LSTM)",
        "the GPU of synthetic machine (synthetic GPU) is 63.0 times (",
        "4.00 times (3.87 to 4.12) as fast as the fastest published GPU (GTX 1080)",
        "on FCN-R alone, the only one of 7 networks measured here",
    ):
        assert phrase in sentence
    table = ratio_table(figures, [file])
    mean = next(line for line in table.records() if line["network"] == "geometric mean of 2")
    assert mean["cpu_ratio"] == pytest.approx(2.0) and mean["seconds"] is None


def test_nothing_is_claimed_without_a_row(figures, write):
    heart = synthetic.samples(synthetic.cpu_configuration("heart", 1))
    failed = [
        synthetic.failure(synthetic_steps.cpu_configuration("lstm", 1), "no memory", "skipped")
    ]
    file = loaded(write, heart, failed)
    assert brought(figures, [file]) == []
    assert ratio_table(figures, [file]).lines == ()
    assert not any(note.startswith("LSTM: ") for note in ratio_table(figures, [file]).notes)
    # A published dash is no figure.
    assert "Caffe" not in str(ours(figures, loaded(write, step("lstm", 1, [1.0] * 5)).rows))


def test_what_differs_from_the_published_networks_is_said(figures, write):
    differences = load_differences()
    assert set(differences) < {figure.network for figure in figures} and "FCN-R" not in differences
    file = loaded(write, step("fcn-r", 1, [1.0] * 5), step("alexnet-r", 1, [1.0] * 5))
    for table in (shi_table(figures, [file]), ratio_table(figures, [file])):
        assert [note for note in table.notes if "LRN" in note] == [
            f"AlexNet-R: {differences['AlexNet-R']}."
        ]
        assert not any(note.startswith("ResNet") for note in table.notes)


def test_the_page_has_the_sentence_and_the_ratios_first(figures, read):
    document = synthetic_steps.machine(epochs=False)
    file = read(document)
    built = section.build([file], Context())
    (block,) = built.blocks
    assert list(block.points) == brought(figures, [file])
    ratios, seconds = block.tables
    shown = [column.key for column in ratios.shown().columns][:4]
    assert shown == ["network", "on", "seconds", "cpu_ratio"]
    assert ratios.short and len(ratios.opened().lines) == 10
    assert "Crossover" in [line[1].text for line in seconds.lines]


def test_another_batch_size_or_network_is_no_row_of_it(figures, write):
    other = {**synthetic.cpu_configuration("fcn-r", 1), "batch": "64"}
    heart = synthetic.samples(synthetic.cpu_configuration("heart", 1))
    file = loaded(write, synthetic.samples(other, [1.0] * 5), heart)
    table = shi_table(figures, [file])
    assert len(table.lines) == 35 and len(table.columns) == 15


def test_of_a_machine_the_newest_file_with_such_rows_counts(figures, write):
    heart = synthetic.samples(synthetic.cpu_configuration("heart", 1))
    rows = epochs(1, [4.0] * 5), heart, epochs(1, [8.0] * 5)
    files = [
        loaded(write, entries, name=f"{day}.json", date=f"2020-01-0{day}")
        for day, entries in zip((2, 3, 1), rows, strict=True)
    ]
    table = shi_table(figures, files)
    assert cell(table, "FCN-R", "Crossover", "synthetic_machine_cpu_1_seconds").value == 1.0
    assert any("2020-01-02" in note for note in table.notes)


def test_machines_with_similar_names_have_columns_of_their_own(figures, write):
    row = epochs(1, [4.0] * 5)
    files = [
        loaded(write, row, name=f"{place}.json", machine=machine)
        for place, machine in enumerate(("a b", "a-b", "desktop", "<b>"))
    ]
    table = shi_table(figures, files)
    keys = [column.key for column in table.columns]
    assert len(keys) == len(set(keys)) == 15 + 4
    assert len(table.lines) == 36
    for name in FORMATS:
        assert render([table], name)


def test_a_missing_reference_is_one_sentence(monkeypatch, tmp_path, shell):
    loader = "crossover_bench.answers.shi.command.load_shi"
    monkeypatch.setattr(loader, lambda: load_shi(tmp_path / "no"))
    assert "install crossover-bench again" in shell("shi", code=2).err
