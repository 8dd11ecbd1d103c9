# SPDX-License-Identifier: Apache-2.0
"""bench --plan and --budget: what is measured first, planned for 16 cores anywhere, and an end."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from bench_runs import (
    BENCH,
    DISC,
    EMULATED,
    EPOCHS,
    SHORT,
    Document,
    Planned,
    bench,
    listed,
    measure,
    plan,
    repetitions,
    run,
    strict,
    validate,
)

SWEEP = ("--sweep=gpu", "--threads=1,16")
FIRST = ("answer", "ladder")
# How large the work is: an overview need not show each.
SIZES = {"batch", "bytes", "m", "n", "k", "width", "size"}


def values(rows: Iterable[Planned]) -> set[tuple[str, str, str, str]]:
    """Family, device, axis and value of each row; a network is a value of Epoch's rows alone."""
    return {
        (row.family, row.axes["device"], axis, value)
        for row in rows
        for axis, value in row.axes.items()
        if axis not in SIZES and (axis != "model" or row.family == "Epoch")
    }


def test_what_is_worth_most_comes_first():
    rows = plan(*SWEEP)
    phases = list(dict.fromkeys(row.phase for row in rows))
    # Of mini-batches the overview has all rows.
    assert phases == [*FIRST, "ceilings", "overview", "Epoch", "Copy", "Gemm", "Layer"]
    assert {row.family for row in rows if row.phase == "ceilings"} == {"Peak"}
    for phase in phases[len(FIRST) :]:
        devices = [row.axes["device"] for row in rows if row.phase == phase]
        assert devices == sorted(devices, key=["cuda", "cpu"].index), "the GPU's rows come first"
    assert len({row.name for row in rows}) == len(rows)
    assert {row.axes.get("cpu_threads", "1") for row in rows} == {"1", "16"}


def test_the_overview_shows_each_value_of_each_axis():
    rows = plan(*SWEEP)
    first = [row for row in rows if row.phase in (*FIRST, "ceilings", "overview")]
    assert values(first) == values(rows)
    shown = values(row for row in first if row.axes["device"] == "cuda")
    ways = {"eager", "graph", "graph-epoch", "persistent", "auto"}
    assert {value for f, _, axis, value in shown if (f, axis) == ("Epoch", "execution")} == ways
    for family in ("Epoch", "Gemm", "Layer"):
        precisions = {value for f, _, axis, value in shown if (f, axis) == (family, "precision")}
        assert precisions == {"f32", "tf32", "bf16", "f16"}
    networks = {f"disc-{depth}" for depth in range(2, 13)} | {"heart"}
    for device in ("cuda", "cpu"):
        wanted = ("Epoch", device, "model")
        assert {value for *axis, value in values(first) if (*axis,) == wanted} == networks


def test_every_way_to_train_a_network_on_the_gpu_is_measured():
    epochs = [row.axes for row in plan(*SWEEP) if row.family == "Epoch"]
    for network in ("disc-2", "disc-12", "heart"):
        axes = [row for row in epochs if row["model"] == network]
        plain = [row for row in axes if row["device"] == "cuda" and row["precision"] == "f32"]
        on_gpu = {(row["execution"], row["data"]) for row in plain}
        assert not on_gpu & {("graph", "pinned"), ("graph", "pageable")}
        assert len(on_gpu) == (8 if network == "disc-12" else 9), "no cache holds disc-12"
        choices = [(row["execution"], row["products"]) for row in axes if "products" in row]
        assert choices == [("graph", "autotuned")]
        assert {row["cpu_threads"] for row in axes if row["device"] == "cpu"} == {"1", "16"}


def test_a_ladder_has_what_the_answer_stands_on_and_nothing_else():
    rows = plan("--sweep=ladder", "--threads=1,4,16")
    assert [row.family for row in rows if row.family not in ("Epoch", "Peak")] == []
    assert {row.axes["cpu_threads"] for row in rows if row.axes["device"] == "cpu"} >= {"1", "4"}
    assert rows[-1].until < 9 * 60  # of one command of tools/gpu_sweep


def test_the_overview_of_the_sweep_ends_within_two_minutes():
    rows = plan(*SWEEP)
    assert max(row.until for row in rows if row.phase == "overview") <= 130
    assert rows[-1].until < 9 * 60  # of one command of tools/gpu_sweep


@pytest.mark.emulated
def test_rows_are_measured_in_the_order_of_the_plan():
    assert listed(*SWEEP, program=EMULATED) == [row.name for row in plan(*SWEEP, program=EMULATED)]


def test_what_rows_share_is_counted_once():
    arguments = ("--family=Epoch", "--model=disc-12", "--threads=1,2", "--cuda=off")
    _, with_other = plan(*arguments)
    (alone,) = plan(*arguments, "--benchmark_filter=cpu_threads:2")
    assert alone.name == with_other.name
    assert alone.seconds - with_other.seconds == pytest.approx(1, abs=0.11)  # of the reference


DISCS = [f"disc-{depth}" for depth in range(2, 13)]
LADDERS = {"default": [*DISCS, *(f"gpt-{2**p}" for p in range(4, 8))], "gpu": DISCS}
FURTHER = ("10", "1000")  # batches of the middle of a ladder, which come behind it
# Every second one of a ladder of five or more, the middle before the ends.
ANSWER = [f"disc-{depth}" for depth in (6, 8, 4, 10, 2, 12)]


@pytest.mark.parametrize("sweep", ["default", "gpu"])
@pytest.mark.parametrize("budget", [(), ("--budget=10h",)])
@pytest.mark.parametrize("threads", ["--threads=1,16", "--threads=1,2"])
def test_the_ladder_goes_by_risk(sweep, budget, threads):
    """What libraries do for everyone comes first, and a crossover within two minutes."""
    rows = plan(f"--sweep={sweep}", threads, *budget)
    epochs = [row for row in rows if row.family == "Epoch"]
    for network in {row.axes["model"] for row in epochs}:
        on_gpu = [r.axes for r in epochs if r.axes["model"] == network and "data" in r.axes]
        assert (on_gpu[0]["execution"], on_gpu[0]["data"]) == ("eager", "resident")
        assert "products" not in on_gpu[0]
    answer, ladder = ([row for row in rows if row.phase == phase] for phase in FIRST)
    assert [*rows[: len(answer) + len(ladder)]] == [*answer, *ladder]
    assert answer[-1].until <= 120
    graphs = [row.axes for row in answer[2 * len(ANSWER) :]]
    assert [row["model"] for row in graphs] == ANSWER
    assert {(row["execution"], row["data"]) for row in graphs} == {("graph", "resident")}
    axes = [row.axes for row in (*answer[: 2 * len(ANSWER)], *ladder)]
    pairs = [*zip(axes[::2], axes[1::2], strict=True)]
    assert [gpu["model"] for gpu, _ in pairs[: len(ANSWER)]] == ANSWER
    assert sorted(gpu["model"] for gpu, _ in pairs) == sorted(LADDERS[sweep])
    for on_gpu, cpu in pairs:
        assert on_gpu["model"] == cpu["model"], "the CPU's row beside the GPU's"
        assert on_gpu["execution"] == "eager" and on_gpu["data"] == "resident"
        has_ways = cpu["model"].startswith("disc-")
        assert cpu["execution"] == ("auto" if has_ways else "eager")
        assert f",{cpu['cpu_threads']}" in threads

    risks = ["eager", "graph", "graph-epoch", "persistent", "auto"]
    steps = [
        risks.index(row.axes["execution"])
        for row in epochs
        if row.axes["precision"] == "f32"
        and row.axes["model"] in LADDERS[sweep]
        and row.axes["batch"] not in FURTHER
        and row.axes.get("data") == "resident"
        and row.phase not in ("answer", "overview")
    ]
    assert steps == sorted(steps) and set(steps) == set(range(5))


def test_networks_on_no_ladder_are_the_ladder_where_there_are_no_others():
    rows = plan("--model=heart", "--threads=1,2", "--family=Epoch")
    first = [(row.phase, row.axes["device"]) for row in rows[:3]]
    assert first == [("ladder", "cuda"), ("ladder", "cpu"), ("Epoch", "cpu")]
    rows = plan("--model=heart,disc-3", "--threads=1,2", "--family=Epoch")
    assert [row.axes["model"] for row in rows if row.phase == "ladder"] == ["disc-3"] * 2
    # Without a GPU there is no risk, and threads are what is asked for.
    rows = plan("--sweep=default", "--cuda=off", "--threads=1,2,16")
    answer = [(row.axes["model"], row.axes["cpu_threads"]) for row in rows if row.phase in FIRST]
    assert answer == [(model, n) for model in ANSWER for n in ("1", "16")]


def test_of_networks_that_someone_names_what_trains_and_ceilings_are_measured():
    for model, named in (
        ("mlp-2-2", ("--mlp=2,2",)),
        ("disc-2", ("--model=disc-2",)),
        ("disc-2", ("--model=disc-2", "--sweep=gpu")),
    ):
        rows = plan(*named, "--threads=1", "--cuda=off")
        assert {row.family for row in rows} == {"Peak", "Epoch", "Minibatch"}
        assert {row.axes["model"] for row in rows if row.family != "Peak"} == {model}
    rows = plan("--mlp=2,2", "--family=Gemm", "--threads=1", "--cuda=off")
    assert {row.family for row in rows} == {"Gemm"}


def test_a_plan_within_a_budget_has_what_fits():
    for text in ("1.5h", "90s", "5m", "1e2s"):  # and no random order is none
        assert plan(*DISC, f"--budget={text}", "--benchmark_enable_random_interleaving=false")
    flags = ("--sweep=quick", "--threads=1", "--cuda=off")
    whole = plan(*flags, "--budget=10h")
    seconds = whole[-1].until / 2
    part = plan(*flags, f"--budget={seconds}s")
    assert 0 < len(part) < len(whole) and part[-1].until <= seconds
    kept = [row.name for row in part]
    assert [row.name for row in whole if row.name in kept] == kept
    told = bench("--plan", *flags, f"--budget={seconds}s").stdout.splitlines()
    (left,) = [line.split() for line in told if line.startswith("left open")]
    assert int(left[2]) == len(whole) - len(part)
    assert int(told[-1].split()[1]) == len(part)


def test_other_sweeps_go_family_by_family():
    rows = [row for row in plan("--sweep=quick", "--threads=1") if row.phase not in FIRST]
    assert [row.phase for row in rows] == [row.family for row in rows]
    families = list(dict.fromkeys(row.family for row in rows))
    assert families == ["Peak", "Copy", "Gemm", "Layer", "Epoch", "Minibatch"]


@pytest.mark.slow
def test_a_plan_has_the_rows_of_a_gpu_that_is_not_there_if_they_are_wanted():
    flags = ("--sweep=gpu", "--threads=1", "--family=Epoch", "--model=disc-2")
    devices = {row.axes["device"] for row in plan(*flags)}
    assert devices == {"cpu", "cuda"}
    assert {row.axes["device"] for row in plan(*flags, "--cuda=off")} == {"cpu"}
    # Else it has what would be measured here.
    assert [row.name for row in plan(*flags, "--cuda=auto")] == listed(*flags)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "sweep", "flags", "most_kilobytes"),
    [
        (BENCH, "default", ("--cuda=off",), 700),
        pytest.param(EMULATED, "default", (), 1800, marks=pytest.mark.emulated),
        pytest.param(EMULATED, "gpu", ("--threads=1,16",), 1000, marks=pytest.mark.emulated),
    ],
)
def test_a_result_file_is_small_enough_to_be_committed(
    program, sweep, flags, most_kilobytes, tmp_path
):
    """By some rows of several families; for two thread counts, however many cores there are."""
    some = "quantity:(fork-join|launch)/|bytes:1024/.*(pinned|cpu)|m:32/.*nn/.*warm"
    some += "|width:16/.*forward.*f32/|model:disc-2/.*f32/.*(pinned$|persistent|cpu)"
    few = ("--sweep=gpu", "--threads=1", f"--benchmark_filter={some}", *SHORT)
    path = tmp_path / "some.json"
    done = bench(*few, "--benchmark_repetitions=5", f"--out={path}", program=program)
    assert path.is_file(), done.stderr
    document = strict(path)
    context = len(json.dumps(document["context"], indent=1))
    of_row = (len(path.read_text("utf-8")) - context) / len(document["rows"])
    threads = ("1", "16" if sweep == "gpu" else "2")
    planned = plan(f"--sweep={sweep}", *flags, program=program)
    rows = [row for row in planned if row.axes.get("cpu_threads", "1") in threads]
    assert 1000 * most_kilobytes / 3 < context + len(rows) * of_row < 1000 * most_kilobytes


# --- --when-answered; turns_test.cpp asks when


def test_what_answers_is_in_the_file_when_it_is_told(tmp_path):
    models = ("--model=disc-2,disc-3,disc-4,disc-5,disc-6", "--threads=1", *EPOCHS)
    flags = (*models, "--cuda=off", "--benchmark_min_time=0.001", "--benchmark_repetitions=6")
    copied = tmp_path / "when answered.json"
    tell = f"--when-answered=cp '{tmp_path / 'result.json'}' '{copied}'"
    document, done = run(tmp_path, *flags, tell)
    assert "--when-answered" not in done.stderr
    validate(copied)
    told = strict(copied)
    assert [row["name"].split("/")[1] for row in told["rows"]] == [
        f"model:disc-{depth}" for depth in (4, 2, 6)
    ]
    assert all(len(repetitions(told, row["name"])) == 5 for row in told["rows"])
    assert all(len(repetitions(document, row["name"])) == 6 for row in document["rows"])
    command = document["context"]["crossover"]["configuration"]["command"]
    assert not any("when" in word for word in command), "it changes nothing that is measured"


def test_a_command_that_fails_costs_a_sentence(tmp_path):
    models = ("--model=disc-2,disc-3,disc-4,disc-5,disc-6", "--threads=1")
    flags = (*models, *EPOCHS, *SHORT)
    document, done = run(tmp_path, *flags, "--when-answered=exit 3")
    assert "bench: --when-answered=exit 3 failed; measuring goes on" in done.stderr
    assert len(document["rows"]) == 5


# --- --budget; budget_test.cpp asks when a run ends


def counted(names: list[str]) -> str:
    families = Counter(name.partition("/")[0] for name in names)
    return ", ".join(f"{count} {family}" for family, count in sorted(families.items()))


def test_the_question_comes_first():
    sweep = ("--threads=1,2,4", "--cuda=off")
    rows = plan("--budget=10h", *sweep)
    assert sorted(row.name for row in rows) == sorted(row.name for row in plan(*sweep))
    passes = "ceilings answer networks Epoch Copy Gemm Layer Minibatch Forward"
    assert list(dict.fromkeys(row.phase for row in rows)) == passes.split()
    ladder = [row.axes for row in rows if row.phase in ("answer", "networks")]
    models = list(dict.fromkeys(axes["model"] for axes in ladder))
    assert models[: len(ANSWER)] == ANSWER and len(models) == 25
    # Of the others each step halves the widest gap of its ladder.
    others = models[len(ANSWER) :]
    assert others[:6] == ["disc-7", "disc-9", "disc-3", "disc-5", "disc-11", "heart"]
    gpts = [model for model in others if model.startswith("gpt-")]
    assert gpts == ["gpt-16", "gpt-128", "gpt-32", "gpt-64"]  # the ends first
    # The fastest on the CPU is one of these, mostly.
    assert {axes["cpu_threads"] for axes in ladder} == {"1", "4"}
    behind = [row.axes for row in rows if row.phase == "Epoch"]
    assert {axes["cpu_threads"] for axes in behind if axes["batch"] not in FURTHER} == {"2"}
    moved = {axes["model"] for axes in behind if axes["batch"] in FURTHER} - {"heart"}
    assert moved == {"disc-5", "disc-7", "disc-9"}


def test_rows_of_a_gpu_are_on_the_ladder_where_the_data_is_resident():
    rows = plan("--budget=1h", "--threads=1", "--model=disc-2", "--family=Epoch")
    on_gpu = [row for row in rows if row.axes["device"] == "cuda"]
    placements = {(row.phase, row.axes["data"]) for row in on_gpu}
    assert {place for phase, place in placements if phase == "networks"} == {"resident"}
    assert ("Epoch", "pinned") in placements


def assert_whole(document: Document, planned: set[str]) -> dict[str, Any]:
    """Each planned row is in the file or left open. What the file says of the budget."""
    crossover = document["context"]["crossover"]
    budget = crossover["budget"]
    names = [row["name"] for row in document["rows"]]
    assert sorted([*names, *budget["left_open"]]) == sorted(planned)
    assert crossover["complete"] is (not budget["left_open"])
    return budget


@pytest.mark.slow
def test_a_run_ends_and_says_what_is_open(tmp_path):
    # Far more than fits: the repetitions alone take longer.
    sweep = ("--cuda=off", "--threads=1", "--benchmark_min_time=0.1")
    document, done = run(tmp_path, *sweep, "--budget=2s")
    budget = assert_whole(document, {row.name for row in plan(*sweep)})
    assert budget["seconds"] == 2
    assert f"left open by the budget: {counted(budget['left_open'])} of" in done.stderr


def assert_goes_on(before: dict[str, Any], after: dict[str, Any]) -> None:
    """The rows in their order, each with the repetitions that it had."""
    names = [row["name"] for row in before["rows"]]
    assert [row["name"] for row in after["rows"]][: len(names)] == names
    for name in names:
        known = repetitions(before, name)
        assert repetitions(after, name)[: len(known)] == known


@pytest.mark.slow
def test_a_larger_budget_adds_to_the_same_file(tmp_path):
    batches = "--batch=" + ",".join(map(str, range(100, 112)))
    rows = ("--model=disc-2", "--threads=1", *EPOCHS, batches)
    flags = (*rows, "--benchmark_min_time=0.02", "--benchmark_repetitions=3")
    names = {row.name for row in plan(*rows)}
    first = measure(tmp_path, *flags, "--budget=0.5s")
    assert assert_whole(first, names)["left_open"]  # the repetitions alone take 0.7 s
    second = measure(tmp_path, *flags, "--budget=1s", "--resume")
    assert assert_whole(second, names)["seconds"] == 1
    assert_goes_on(first, second)
    whole = measure(tmp_path, *flags, "--budget=1h", "--resume")
    assert assert_whole(whole, names)["left_open"] == []
    assert_goes_on(second, whole)
    assert whole["context"]["crossover"]["complete"] is True


@pytest.mark.slow
def test_time_that_is_left_goes_to_more_repetitions(tmp_path):
    # It ends where there is nothing more to do.
    document, done = run(tmp_path, *DISC[:-2], *SHORT[:1], "--budget=1h")
    (row,) = document["rows"]
    assert "\n[1 of up to 1] Epoch/" in f"\n{done.stdout}", done.stdout
    assert assert_whole(document, {row["name"]})["left_open"] == []
    asked = document["context"]["crossover"]["configuration"]["repetitions"]
    assert row["repetitions"] == 3 * asked == len(repetitions(document, row["name"]))
    assert row["chosen"]["cpu_threads"] == "1"  # as in the first of its instances
    # All repetitions have as many iterations as the first, which settled them.
    assert [entry.get("iterations") for entry in document["benchmarks"][1:]].count(None) > asked
