# SPDX-License-Identifier: Apache-2.0
"""Machines side by side: their figures, their order, the chart, the page, the commands."""

import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from crossover_bench.answers.compare.analysis import compare
from crossover_bench.answers.machines import section
from crossover_bench.answers.machines.section import MOST_SHOWN, draw_machines
from crossover_bench.answers.machines.table import (
    interval,
    machines_table,
    part,
    summary_table,
    verdicts,
)
from crossover_bench.answers.report import report
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.network import epoch_rows
from crossover_bench.files import loading
from crossover_bench.files.rows import Cpu
from crossover_bench.shell.cli import main
from crossover_bench.show.page.section import Context
from crossover_bench.study.machines import (
    EITHER,
    SORTS,
    UnknownMachineError,
    named,
    processor_words,
    short_gpu,
    short_processor,
    side_by_side,
)
from crossover_bench.tests import synthetic, synthetic_machines, synthetic_probes
from crossover_bench.tests.synthetic_machines import FIVE, WITH_GPU, Machine, cpu_alone, ids


def test_times_are_those_of_the_fastest_way(five_files):
    side = side_by_side(five_files)
    for standing in side.standings:
        rows = epoch_rows(standing.file)
        for model in ("disc-10", "heart"):
            for device in ("cpu", "cuda"):
                medians = [
                    row.median for row in rows if row.model == model and row.device == device
                ]
                fastest = standing.times.get((model, device))
                assert (fastest.median if fastest else None) == min(medians, default=None)


def test_a_ratio_is_the_geometric_mean_over_what_both_measured(read):
    base = cpu_alone({"disc-3": 1e-3, "disc-4": 2e-3, "heart": 4e-3}, machine="a")
    # Other thread counts: the name of the row is another one, the work is the same.
    other = cpu_alone({"disc-3": 2e-3, "disc-4": 1e-3, "disc-5": 1.0}, threads=8, machine="b")
    first, second = (
        read(each, f"{each['context']['crossover']['machine']['id']}") for each in (base, other)
    )
    side = side_by_side([first, second], baseline=first)
    mine, theirs = (side.standings[place].ratios["Epoch", "cpu"] for place in (0, 1))
    assert (mine.mean, mine.works, mine.works_of) == (1.0, 3, 3)
    assert theirs.mean == pytest.approx(math.sqrt(2 * 0.5))
    assert (theirs.works, theirs.works_of) == (2, 3)
    table = machines_table(side)
    assert "Over 2 of the 3 that the baseline has." in table.notes
    back = side_by_side([first, second], baseline=second).standings[0].ratios["Epoch", "cpu"]
    assert back.mean == pytest.approx(1 / theirs.mean)


@pytest.mark.parametrize("change", [{"rows": 500, "steps": 5}, {"workload": "b" * 16}])
def test_other_work_is_in_no_ratio(read, change):
    base = cpu_alone({"disc-3": 1e-3, "disc-10": 1e-2}, machine="a")
    other = cpu_alone({"disc-3": 2e-3, "disc-10": 5e-2}, machine="b")
    for document, fields in ((base, {"workload": "a" * 16}), (other, change)):
        for entry in document["benchmarks"]:
            if entry["configuration"]["model"] == "disc-10":
                entry.update(fields)
    first, second = read(base, "a"), read(other, "b")
    side = side_by_side([first, second], baseline=first)
    ratio = side.standings[1].ratios["Epoch", "cpu"]
    assert (ratio.mean, ratio.works) == (pytest.approx(2.0), 1)
    is_told = any(note.startswith("Other work") for note in machines_table(side).notes)
    assert is_told == ("rows" in change)


def test_the_faster_device_counts_where_both_were_measured(five_files):
    base, other = (
        next(file for file in five_files if file.machine.id == name)
        for name in ("synthetic-a-8c", "synthetic-b-64c")
    )
    side = side_by_side([base, other], baseline=base)
    ratios = next(standing for standing in side.standings if standing.file is other).ratios
    assert ("Epoch", "cuda") not in ratios  # the baseline has no GPU
    fastest = [
        {
            model: min(row.median for row in epoch_rows(file) if row.model == model)
            for model in synthetic_machines.MODELS
        }
        for file in (base, other)
    ]
    logs = [math.log(fastest[1][model] / fastest[0][model]) for model in fastest[0]]
    assert ratios["Epoch", EITHER].mean == pytest.approx(math.exp(np.mean(logs)))


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("crossover", "cdb"),
        ("name", "bcdae"),
        ("cpu", "bcdae"),
        ("disc-10", "bdcae"),
        ("heart", "dbcae"),
        ("ratio", "bdcae"),
        ("date", ""),
        ("gpu", ""),
    ],
)
def test_each_order_is_by_its_figure_behind_that_who_has_a_gpu(
    five_files, five_studies, sort, expected
):
    order = ids(side_by_side(five_files, studies=five_studies, sort=sort))
    assert set(order[:3]) == WITH_GPU and sort in SORTS
    assert "".join(name.split("-")[1] for name in order).startswith(expected)


def test_without_a_choice_the_ratios_are_to_the_newest_with_a_gpu(read):
    made = []
    for place, like in enumerate(FIVE[:4]):
        machine = Machine(**{**like.__dict__, "date": f"2020-01-0{4 - place}T00:00:00+00:00"})
        document = synthetic_machines.document(machine, models=("disc-3", "disc-4"))
        made.append(read(document, f"{place}.json"))
    side = side_by_side(made)
    assert side.baseline.machine.id == "synthetic-b-64c"
    assert ids(side) == [FIVE[place].name for place in (1, 2, 3, 0)]
    assert named(made, "synthetic-c-4c") is named(made, str(made[2].path)) is made[2]
    with pytest.raises(UnknownMachineError, match="there are synthetic-a-8c"):
        named(made, "nobody")


def test_by_date_files_of_one_machine_stay_together(read):
    made = []
    for day, name in ((4, "a"), (3, "b"), (2, "a"), (1, "b")):
        document = cpu_alone({"disc-3": 1e-3}, machine=name, date=f"2020-01-0{day}")
        made.append(read(document, f"{day}.json"))
    names = [standing.file.path.name for standing in side_by_side(made).standings]
    assert names == ["4.json", "2.json", "3.json", "1.json"]


def test_each_kind_of_crossover_is_shown_and_sorted(read):
    """Always, at a size, never, and a machine whose CPU and GPU have nothing in common."""
    made = []
    for name, gpu_seconds in (
        ("never", [9.0, 9.0, 9.0]),
        ("once", [2e-3, 2e-3, 2e-3]),
        ("apart", []),
        ("always", [1e-9, 1e-9, 1e-9]),
    ):
        models = ("disc-3", "disc-5", "disc-8")
        entries = []
        for model, time in zip(models, (1e-3, 3e-3, 9e-3), strict=True):
            entries += synthetic.samples(synthetic.cpu_configuration(model, 1), [time] * 5)
        for model, time in zip(models, gpu_seconds, strict=False):
            entries += synthetic.samples(synthetic.gpu_configuration(model), [time] * 5)
        if not gpu_seconds:
            entries += synthetic.samples(synthetic.gpu_configuration("disc-4"), [1.0] * 5)
        document = synthetic.document(entries, machine=name, gpu="G")
        made.append(read(document, f"{name}.json"))
    side = side_by_side(made, sort="crossover")
    assert ids(side) == ["always", "once", "never", "apart"]
    lines = summary_table(side.standings).records()
    smallest = synthetic.MODELS["disc-3"][0]
    once = comparisons(made[1])[-1].crossover.size
    assert [line["crossover"] for line in lines] == [smallest, once, None, None]
    assert [line["answer"] for line in lines] == ["always", "once", "never", "not compared"]
    texts = [line[1].text for line in summary_table(side.standings).lines]
    assert texts[0] == "≤ 70" and texts[2:] == ["never", "not compared"]


def test_what_makes_ratios_meaningless_leaves_them_out(read):
    base, other = (
        cpu_alone({"disc-3": 1e-3, "disc-10": 1e-2}, machine=name) for name in ("a", "b")
    )
    other["context"]["crossover"]["software"]["build_type"] = "Debug"
    first, second = read(base, "a"), read(other, "b")
    side = side_by_side([first, second], baseline=first)
    assert not side.standings[1].ratios and side.standings[1].times
    note = "No ratios, as it differs from a: build type: Release and Debug."
    assert note in machines_table(side).notes
    assert side_by_side([first, second], baseline=first, refuse=False).standings[1].ratios


def test_part_of_a_table_keeps_the_notes_of_its_cells(read):
    base = cpu_alone({"disc-10": 1e-3, "heart": 4e-3}, machine="a")
    other = cpu_alone({"disc-10": 2e-3}, machine="b")
    other["context"]["crossover"]["complete"] = False
    first, second = read(base, "a"), read(other, "b")
    table = machines_table(side_by_side([first, second], baseline=first))
    few = part(table, "title", ("epoch_cpu_ratio",))
    assert few.notes == ("Over 1 of the 2 that the baseline has.",)
    assert [cell.marks for (cell,) in few.lines] == [(), (1,)]
    names = part(table, "title", ("machine",), general=True)
    assert names.notes[-1].startswith("From a run that was not finished")
    assert len(names.notes) == len(table.notes) - 1


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz", "Intel Xeon Platinum 8480+"),
        ("AMD EPYC 9654 96-Core Processor", "AMD EPYC 9654"),
        ("Processor", "Processor"),
    ],
)
def test_processors_are_named_shortly(name, short):
    assert short_processor(name) == short
    assert short_gpu("NVIDIA GeForce RTX 4090") == "RTX 4090"


@pytest.mark.parametrize(
    ("model", "machine", "virtual", "words"),
    [
        ("AMD EPYC", "amd-epyc-25-17-2c", None, "AMD EPYC (family 25, model 17), 2 cores"),
        ("AMD EPYC", "amd-epyc-2c", False, "AMD EPYC, 2 cores"),
        ("Intel(R) N 100", "intel-n-100-5-2c", True, "Intel N 100, 2 virtual processors"),
    ],
)
def test_processors_are_told_apart_and_virtual_ones_called_so(model, machine, virtual, words):
    cpu = Cpu(model, 1, 2, 2, 1, None, "avx2", virtual=virtual)
    assert processor_words(SimpleNamespace(id=machine, cpu=cpu)) == words


def test_gpus_are_named_shortly():
    assert short_gpu("NVIDIA H100 PCIe") == "H100 PCIe"


def pair_of(read, times, commits=("1" * 40, "1" * 40), numbers=({}, {})):
    """A base that takes 1 ms on each of ten networks, and another that takes 1 ms over `times`.
    Both fork and join in 1 us, and the other ten times as often in an iteration."""
    made = []
    sides = zip("ab", (1.0, times), commits, numbers, strict=True)
    for name, factor, commit, of_side in sides:
        generator = np.random.default_rng(len(made))
        entries = []
        for model in synthetic_machines.DISCS[:10]:
            noise = np.exp(0.02 * generator.standard_normal(9))
            configuration = synthetic.cpu_configuration(model, 1)
            entries += synthetic.samples(configuration, (1e-3 / factor * noise).tolist())
        probe = {"family": "Peak", "quantity": "fork-join", "device": "cpu", "cpu_threads": "2"}
        entries += synthetic.operation(probe, (1e-6 * noise).tolist(), 10 ** (1 + len(made)))
        document = synthetic.document(entries, machine=name)
        document["context"]["crossover"]["software"]["commit"] = commit
        document["context"]["crossover"]["code_versions"] = of_side
        made.append(read(document, name))
    return side_by_side(made, baseline=made[0])


@pytest.mark.parametrize(("times", "first"), [(1.2, "b"), (1 / 1.2, "a"), (1.0, "")])
def test_the_verdict_names_the_faster_one_with_an_interval(read, times, first):
    side = pair_of(read, times)
    (verdict,) = verdicts(side)
    if not first:
        assert verdict.startswith(("a and b train about as fast", "b and a train about as fast"))
        return
    match = re.match(
        rf"{first} trains ([0-9.]+) times \(([0-9.]+) to ([0-9.]+)\) as fast as", verdict
    )
    middle, low, high = map(float, match.groups())
    assert low <= 1.2 <= high and low <= middle <= high and high - low < 0.2
    assert "geometric mean over 10 networks: from 1.1" in verdict
    table = machines_table(side)
    shown = [column.key for column in table.shown().columns]
    assert "epoch_cpu_ratio" in shown and "crossover" not in shown
    assert not [key for key in shown if "gpu" in key]  # what no machine has is no column
    assert "gpu" in table.records()[0]  # for programs


def test_files_of_one_machine_have_their_names_in_the_verdict(read):
    files = [each.file for each in pair_of(read, 1.2).standings]
    of_one_machine = [replace(file, machine=replace(file.machine, id="m")) for file in files]
    (verdict,) = verdicts(side_by_side(of_one_machine, baseline=of_one_machine[0]))
    assert verdict.startswith("m (b) trains 1.") and " as fast as m (a)" in verdict


# Of two commits: the numbers of each side, and what is compared by them.
NUMBERS = {
    "training": ({"Epoch/cpu": 7}, {"Epoch/cpu": 7}, ("b trains", "No verdict on b in Peak:")),
    "probes": (
        {"Epoch/cpu": 6, "Peak/cpu": 3},
        {"Epoch/cpu": 7, "Peak/cpu": 3},
        ("b runs Peak on the CPU", "No verdict on b in Epoch:"),
    ),
    "nothing": ({"Epoch/cpu": 7}, {}, ("No verdict on b in Epoch and Peak:",)),
}


@pytest.mark.parametrize("of", NUMBERS)
def test_of_two_commits_that_is_compared_whose_code_has_one_number(read, of):
    *numbers, starts = NUMBERS[of]
    side = pair_of(read, 1.2, ("1" * 40, "2" * 40), numbers)
    sentences = verdicts(side)
    assert len(sentences) == len(starts)
    assert all(words.startswith(start) for words, start in zip(sentences, starts, strict=True))
    if of == "probes":
        (ratio,) = (each.ratios["Peak", "cpu"] for each in side.others)
        low, high = interval(ratio)
        assert low <= ratio.mean <= high
    table = machines_table(side)
    for family in ("Epoch", "Peak"):
        place = [column.key for column in table.columns].index(f"{family.lower()}_cpu_ratio")
        baseline, other = (line[place] for line in table.lines)
        assert (baseline.text, baseline.faint) == ("1.00", False)
        assert other.faint == other.text.startswith("(") == (f"{family}" in sentences[-1])
    (comparison,) = [compare(side.baseline, each.file) for each in side.others]
    remark = next(text for text in comparison.remarks if text.startswith("machine and the code"))
    assert [family in remark for family in ("Epoch", "Peak")] == [
        family in sentences[-1] for family in ("Epoch", "Peak")
    ]


def test_machines_without_a_network_in_common_have_no_word_of_ratios(read):
    base = cpu_alone({"disc-3": 1e-3}, machine="a")
    other = cpu_alone({"disc-10": 1e-3}, machine="b")
    other["context"]["crossover"]["software"]["commit"] = "1" * 40
    side = side_by_side([read(base, "a"), read(other, "b")])
    table = machines_table(side)
    assert verdicts(side) == []
    assert "ratio" not in " ".join([table.title, *table.notes]).lower()
    assert not [column.key for column in table.shown().columns if "ratio" in column.key]


@pytest.mark.slow
def test_of_many_machines_few_are_coloured(tmp_path):
    synthetic_machines.write_all(tmp_path, 12)
    files, _ = loading.load_files([tmp_path])
    side = side_by_side(files, baseline=named(files, "synthetic-a-8c"))
    chart = draw_machines(side)
    svg = chart.pictures.svg.decode()
    assert "thin grey: 6 other machines" in svg and "stroke: #b0b0b0" in svg.lower()
    assert "synthetic-a-8c: CPU alone" in svg  # the baseline, which the order has far below
    assert sum(name in svg for name in ids(side)) == MOST_SHOWN
    assert all(name in chart.alt for name in ids(side))


def test_machines_without_two_networks_have_no_chart_and_files_of_one_no_section(read):
    made = [
        read(cpu_alone({model: 1e-3}, machine=name), name)
        for model, name in (("heart", "a"), ("disc-3", "b"))
    ]
    assert draw_machines(side_by_side(made)) is None
    dates = ("2020-01-01", "2020-01-02")
    made = [read(cpu_alone({"disc-3": 1e-3}, date=date), f"{date}.json") for date in dates]
    assert section.build(made, Context(side=side_by_side(made))) is None


@pytest.mark.slow
def test_compare_takes_a_baseline_and_compares_rows_where_asked(five, shell):
    paths = [str(path) for path in sorted(five.glob("*/*.json"))]
    chosen = "synthetic-c-4c"
    for options, expected in ([], "synthetic-a-8c"), ([f"--baseline={chosen}"], chosen):
        (table,) = json.loads(shell("compare", *paths, *options, "--format=json").out)
        assert table["title"].endswith(f"ratios to {expected}")
        baseline = next(line for line in table["rows"] if line["machine"] == expected)
        assert baseline["epoch_cpu_ratio"] == 1.0
    of_rows = json.loads(shell("compare", paths[0], paths[-1], "--rows", "--format=json").out)
    titles = [table["title"] for table in of_rows]
    assert titles[0].startswith("Crossover, times") and "rows of the same name" in titles[1]
    assert not any("geometric mean" in title for title in titles)  # one mean, of one set of rows
    asked = "--fail-on-slower=5%"
    assert "rows are slower" in shell("compare", paths[0], paths[-1], asked, code=1).err


def test_older_files_are_counted_and_two_gpus_are_two_machines(write, shell):
    for place, (date, gpu) in enumerate(
        (("2020-01-01", "A"), ("2020-01-02", "A"), ("2020-01-03", "B"))
    ):
        machine = Machine(**{**FIVE[1].__dict__, "gpu": gpu, "date": f"{date}T00:00:00+00:00"})
        document = synthetic_machines.document(machine, models=("disc-3", "disc-10"))
        folder = write(document, f"in/{place}.json").parent
    for options, lines in ([], 2), (["--all"], 3):
        (table,) = json.loads(shell("compare", folder, "--format=json", *options).out)
        assert len(table["rows"]) == lines
        assert any("1 older file left out" in note for note in table["notes"]) == (lines == 2)


def test_every_family_has_a_ratio_probes_included(write, shell):
    for name in ("one", "two"):
        path = write(synthetic_probes.everything(gpu=False, machine=name), f"in/{name}.json")
    (table,) = json.loads(shell("compare", path.parent, "--format=json").out)
    families = ("epoch", "gemm", "layer", "copy", "peak")
    assert {f"{family}_cpu_ratio" for family in families} <= table["rows"][0].keys()


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_report_sorts_and_takes_a_baseline(five, tmp_path, capsys, shell):
    output = tmp_path / "out"
    two = [str(five / name) for name in ("synthetic-c-4c", "synthetic-e-2c")]
    command = ["report", *two, "-o", str(output), "--detail=1"]
    assert main([*command, "--sort=crossover", "--baseline=synthetic-e-2c"]) == 0
    page = (output / "index.html").read_text(encoding="utf-8")
    assert "ratios to synthetic-e-2c" in page
    assert (output / "synthetic-c-4c.epochs.svg").is_file()  # the first in that order
    capsys.readouterr()
    assert shell(*command, "--baseline=nobody", code=2).err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_page_has_the_machines_behind_the_answer_and_folds_the_rest(five_files):
    page = report.build_report(five_files, detailed=2)
    text = page[report.PAGE].decode()
    sections = [text.index(f'<section id="{name}">') for name in ("answer", "machines", "epochs")]
    assert sections == sorted(sections) and sections[0] == text.index("<section")
    first = text[sections[1] :]
    assert "machines.svg" in page and "machines.png" in page
    table = first[: first.index("</table>")]
    places = [table.index(f">{name}<") for name in ids(side_by_side(five_files))]
    assert places == sorted(places)
    epochs = text[text.index('id="epochs"') : text.index("</section>", text.index('id="epochs"'))]
    assert re.findall(r'<details class="machine"(| open)>', epochs) == [" open", ""]
    assert epochs.index("<details") < epochs.index("<svg")
