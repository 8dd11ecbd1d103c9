# SPDX-License-Identifier: Apache-2.0
"""The table of axes is the one place: what it says of an axis shows wherever rows do."""

import pytest

from crossover_bench.answers.answer.glance import glance
from crossover_bench.answers.crossover.section import crossover_table, speed_up_table
from crossover_bench.answers.report import report
from crossover_bench.answers.why.analysis import counterfactuals
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.network import epoch_rows
from crossover_bench.curves.series import series_labels, short_names
from crossover_bench.files import loading
from crossover_bench.files.axes import BUILT_IN, Axes, Axis
from crossover_bench.show.charts.crossover import draw_charts
from crossover_bench.show.tables.formats import render
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic
from crossover_bench.tests.conftest import why_tables
from crossover_bench.tests.synthetic_sweep import DISC_MODELS, epochs

RANKS = {"key": "nodes", "role": "how", "values": ["1", "4"], "description": "processes"}


def seconds(configuration: dict[str, str], params: float) -> float:
    """A CPU whose time grows with the size, and a GPU of constant time that the axes change."""
    if configuration["device"] == "cpu":
        return 1e-6 * params
    faster = 2.0 if configuration.get("products") == "autotuned" else 1.0
    return 1e-2 / faster / int(configuration.get("nodes", "1"))


def document(*changes: dict[str, str], axes=()) -> dict:
    """The disc family on the CPU and, with each of `changes`, on the GPU."""
    configurations = [synthetic.cpu_configuration(model, 1) for model in DISC_MODELS]
    configurations += [
        {**synthetic.gpu_configuration(model), **change}
        for model in DISC_MODELS
        for change in changes
    ]
    return synthetic.document(epochs(configurations, seconds), gpu="synthetic GPU", axes=axes)


# What this program knows, and what it has never heard of: the changes, what labels say of each, and
# what a step from the first to the second is.
CHOICES = {
    "products": (
        ({}, {"products": "autotuned"}),
        ("", ", autotuned products"),
        "with autotuned products instead of heuristic products",
    ),
    "nodes": (
        ({"nodes": "1"}, {"nodes": "4"}),
        (", nodes 1", ", nodes 4"),
        "with nodes 4 instead of nodes 1",
    ),
}


@pytest.mark.parametrize("axis", CHOICES)
def test_an_axis_shows_wherever_rows_do(read, axis):
    changes, suffixes, step = CHOICES[axis]
    file = read(document(*changes, axes=(RANKS,) if axis == "nodes" else ()))
    labels = [f"GPU, graph, pinned{suffix}" for suffix in suffixes]
    assert list(series_labels(epoch_rows(file)).values()) == ["CPU, 1 thread", *labels]
    compared = comparisons(file)
    best = [pair for pair in compared if pair.cpu.candidates]
    assert [pair.gpu.label for pair in best] == labels
    plain, faster = (pair.crossover.size for pair in best)
    assert plain == pytest.approx(1e4, rel=0.05)
    assert faster == pytest.approx(5e3 if axis == "products" else 2.5e3, rel=0.05)
    for table in (
        crossover_table([(file, compared)]),
        speed_up_table([(file, Study(file).speed_ups())]),
    ):
        executions = {line["execution"] for line in table.records()}
        assert executions == {"graph", f"graph{suffixes[1]}"}
    (change,) = counterfactuals(Study(file, compared=compared))
    assert change.change == step
    assert change.sentence.startswith(f"{step}, the crossover falls from ")
    assert suffixes[1].strip(", ") in render(why_tables(file, compared), "text")
    names, _ = short_names(file.rows)
    assert any(suffixes[1].strip(", ") in name for name in names.values())


@pytest.mark.slow
def test_charts_have_a_line_for_each_choice(read):
    file = read(document({}, {"products": "autotuned"}))
    (chart,) = draw_charts(file, comparisons(file))
    assert "autotuned" in chart.pictures.svg.decode()
    assert "GPU, graph, pinned: from" in chart.alt and "autotuned products: from" in chart.alt
    page = report.build_report([file])[report.PAGE].decode()
    assert "graph, pinned, autotuned products" in page


@pytest.mark.usefixtures("undrawn")
@pytest.mark.slow
def test_a_file_of_autotuned_products_alone_has_its_answers(write, shell):
    path = write(document({"products": "autotuned"}))
    file = loading.load_file(path)
    compared = comparisons(file)
    assert [pair.crossover.size for pair in compared] == pytest.approx([5e3] * 2, rel=0.05)
    assert len(Study(file).speed_ups()) == len(DISC_MODELS)
    answer = glance(Study(file, compared=compared))
    assert "the GPU wins from 5,0" in answer.sentence and "autotuned products" in answer.lines[0]
    for arguments in (
        ["crossover", path],
        ["why", path],
        ["compare", path, path, "--all"],
        ["compare", f"--cpu-of={path}", f"--gpu-of={path}"],
    ):
        printed = shell(*arguments)
        assert "autotuned products" in printed.out and printed.err == ""
    page = report.build_report([file])[report.PAGE].decode()
    assert "graph, pinned, autotuned products" in page


def test_the_role_of_an_axis_decides_what_is_compared(read):
    for role, pairs in (("how", 2), ("alike", 2), ("what", 0)):
        content = document({"nodes": "2"}, {"nodes": "4"}, axes=({**RANKS, "role": role},))
        of_best = [pair for pair in comparisons(read(content)) if pair.cpu.candidates]
        assert len(of_best) == pairs, role
    # What should be alike is compared with its like.
    content = document({"nodes": "4"}, axes=({**RANKS, "role": "alike"},))
    configurations = [
        {**synthetic.cpu_configuration(model, 2), "nodes": "4"} for model in DISC_MODELS
    ]
    content["benchmarks"] += epochs(configurations, seconds)
    cpus = [pair for pair in comparisons(read(content)) if not pair.cpu.candidates]
    assert [(pair.cpu.label, pair.common["nodes"]) for pair in cpus] == [("CPU, 2 threads", "4")]


def test_cpu_ways_that_differ_in_a_new_axis_are_not_mixed(read):
    configurations = [
        {**synthetic.cpu_configuration(model, 2), "nodes": nodes}
        for model in DISC_MODELS
        for nodes in ("1", "4")
    ]
    content = document({}, axes=(RANKS,))
    content["benchmarks"] = content["benchmarks"][len(DISC_MODELS) * 9 :] + epochs(
        configurations, seconds
    )
    file = read(content)
    labels = [pair.cpu.label for pair in comparisons(file)]
    assert labels == [
        "CPU, 2 threads",
        "CPU, 2 threads, nodes 4",
        "CPU, best of 2 threads, nodes 1 or nodes 4",
    ]
    table = crossover_table([(file, comparisons(file))])
    told = [(line["cpu_threads"], line["cpu_how"]) for line in table.records()]
    assert told == [(2, None), (2, "nodes 4"), ("best", None)]
    place = [column.key for column in table.columns].index("cpu_threads")
    assert [line[place].text for line in table.lines] == ["2", "2, nodes 4", "best"]


def test_a_key_that_is_no_axis_is_refused(small, read):
    for entry in small["benchmarks"]:
        entry["configuration"]["nodes"] = "4"
        entry["name"] = synthetic.row_name(entry["configuration"])
    with pytest.raises(loading.BadFileError) as caught:
        read(small)
    sentence = str(caught.value)
    assert 'field "configuration.nodes" is an axis that neither this program nor' in sentence
    assert "; " in sentence and "\n" not in sentence
    small["context"]["crossover"]["axes"] = [RANKS]
    (row,) = read(small).rows
    assert row.axes["nodes"].role == "how"


def test_what_this_program_knows_of_an_axis_stays():
    extended = BUILT_IN.extended([{**RANKS, "key": "data", "values": []}, RANKS])
    assert extended["data"] is BUILT_IN["data"] and extended["nodes"].values == ("1", "4")
    assert BUILT_IN.extended([]) is BUILT_IN and "nodes" not in BUILT_IN


def test_labels_leave_out_what_says_nothing():
    axes = Axes([*BUILT_IN, Axis("nodes", "how", ("1", "4"), phrase="{} nodes")])
    cpu = {"device": "cpu", "execution": "eager", "cpu_threads": "1", "nodes": "1"}
    assert str(axes.label(cpu)) == "CPU, 1 thread"
    assert str(axes.label(cpu, [cpu, {**cpu, "nodes": "4"}])) == "CPU, 1 thread, 1 nodes"
    assert str(axes.label({**cpu, "device": "cuda"})) == "GPU, eager, 1 thread, 1 nodes"
    assert str(axes.label({**cpu, "execution": "fused"}, without=["cpu_threads"])) == "CPU, fused"
