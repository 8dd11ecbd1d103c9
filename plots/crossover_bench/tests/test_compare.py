# SPDX-License-Identifier: Apache-2.0
"""Comparing files: verdicts on times that are known, what is refused, what is never dropped."""

import io
import json
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from crossover_bench.answers.compare.analysis import Comparison, compare
from crossover_bench.answers.compare.chart import MOST, draw_comparison
from crossover_bench.answers.compare.command import CAVEAT, mix
from crossover_bench.answers.compare.table import compare_tables
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.crossover_words import other_work
from crossover_bench.curves.series import short_names
from crossover_bench.files import loading, rows
from crossover_bench.shell.cli import main
from crossover_bench.show.tables.formats import FORMATS, render
from crossover_bench.tests import synthetic

STEADY = [0.1 * (1 + 0.001 * step) for step in (3, 0, 7, 1, 5, 2, 8, 4, 6)]  # median 0.1004
NOISY = [0.1 * (1 + 0.1 * step) for step in (3, 0, 7, 1, 5, 2, 8, 4, 6)]


def times(factor: float = 1.0, base: list[float] | None = None) -> list[float]:
    return [factor * time for time in base or STEADY]


def document(*, disturbed: str = "", **seconds: list[float] | str) -> dict[str, Any]:
    """A file with rows of disc-3 on as many threads as the names say: t2=[…] or a failure. Other
    programs had the processors in those `disturbed`."""
    entries = []
    for name, value in seconds.items():
        configuration = synthetic.cpu_configuration("disc-3", int(name[1:]))
        if isinstance(value, str):
            entries.append(synthetic.failure(configuration, "why", value))
        else:
            samples = synthetic.samples(configuration, value)
            for place, entry in enumerate(samples if name in disturbed.split() else ()):
                entry["cpu_wait"] = 0.3 + 0.01 * place
            entries += samples
    return synthetic.document(entries)


@pytest.fixture
def compared(read):
    """Compares two documents."""

    def run(first: dict[str, Any], second: dict[str, Any], **options: Any) -> Comparison:
        files = [
            read(first, "a.json"),
            read(second, "b.json"),
        ]
        return compare(*files, **options)

    return run


@pytest.fixture
def command(write, capsys):
    """Runs `compare` on two documents; returns exit code, output and errors."""

    def run(first: dict[str, Any], second: dict[str, Any], *options: str) -> tuple[int, str, str]:
        paths = str(write(first, "a.json")), str(write(second, "b.json"))
        code = main(["compare", *paths, *options])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (times(), times(1.10), "worse"),
        (times(), times(1 / 1.10), "better"),
        (times(), times(), "same"),
        (times(), times(1.015), "same"),  # significant, but small
        (times(), times(1.03), "ambiguous"),  # significant, but perhaps less than 3 %
        (times(base=NOISY), times(1.2, NOISY), "ambiguous"),  # large, but not significant
        (times(base=NOISY), times(base=NOISY), "ambiguous"),  # equal, but not shown to be
        (times()[:4], times(2.0)[:4], "ambiguous"),  # too few repetitions
        (times()[:1], times(2.0)[:1], "ambiguous"),
        (times()[:5], times(2.0)[:5], "worse"),
        ([0.1] * 9, [0.1] * 9, "same"),
        ([0.1] * 9, [0.2] * 9, "worse"),
    ],
)
def test_verdicts(compared, first, second, verdict):
    (pair,) = compared(document(t1=first), document(t1=second)).pairs
    assert pair.verdict == verdict
    assert pair.ratio == pytest.approx(np.median(second) / np.median(first))
    assert pair.low is None or pair.low <= pair.ratio <= pair.high
    # The other way round the answer is the opposite.
    (back,) = compared(document(t1=second), document(t1=first)).pairs
    assert back.verdict == {"worse": "better", "better": "worse"}.get(verdict, verdict)


@pytest.mark.parametrize(
    ("field", "values", "reason"),
    [
        ("workload", ("a" * 16, "b" * 16), "trains differently"),
        ("workload", ("a" * 16, "a" * 16), ""),
        ("workload", ("a" * 16, None), ""),  # a file that does not say may hold the same
        ("rows", (1000, 500), "not the same work: rows 1,000 and 500"),
    ],
)
def test_rows_of_other_work_are_not_compared(compared, field, values, reason):
    files = document(t1=times()), document(t1=times())
    for content, value in zip(files, values, strict=True):
        for entry in content["benchmarks"] if value else ():
            entry[field] = value
    comparison = compared(*files)
    assert [unmatched.reason for unmatched in comparison.unmatched] == ([reason] if reason else [])
    assert comparison.misnamed == len(comparison.unmatched) == 1 - len(comparison.pairs)


def test_the_minimum_effect_is_a_choice(compared):
    first, second = document(t1=times()), document(t1=times(1.10))
    assert compared(first, second, minimum_effect=0.2).pairs[0].verdict == "same"
    assert compared(first, second, minimum_effect=0.05).pairs[0].verdict == "worse"


@pytest.mark.slow
def test_many_rows_of_one_noise_are_seldom_called_different(compared):
    # 200 rows that are the same by construction: uncorrected, about ten have p < 0.05.
    generator = np.random.default_rng(1)

    def noise() -> dict[str, Any]:
        return document(
            **{f"t{k}": list(0.1 * (1 + generator.gamma(2, 0.05, 9))) for k in range(1, 201)}
        )

    comparison = compared(noise(), noise(), minimum_effect=0.0)
    assert comparison.count("better") + comparison.count("worse") <= 2
    covered = sum(pair.low <= 1 <= pair.high for pair in comparison.pairs)
    assert 0.90 <= covered / 200 <= 0.99


@pytest.mark.slow
def test_true_differences_among_many_rows_are_found(compared):
    first = document(**{f"t{k}": times() for k in range(1, 101)})
    second = document(**{f"t{k}": times(1.1 if k <= 10 else 1.0) for k in range(1, 101)})
    comparison = compared(first, second)
    assert (comparison.count("worse"), comparison.count("same")) == (10, 90)
    families, rows = compare_tables(comparison)
    assert len(rows.lines) == 10 and "90 rows the same, ambiguous or disturbed" in rows.notes[-1]
    assert families.records()[0]["slower"] == 10


def test_no_row_is_dropped(compared):
    first = document(t1=times(), t2=times(), t3="failed", t4="skipped", t5=times(), t7="failed")
    second = document(t1=times(), t3=times(), t4="skipped", t5="failed", t6=times(), t8="skipped")
    comparison = compared(first, second)
    assert [pair.baseline.configuration["cpu_threads"] for pair in comparison.pairs] == ["1"]
    unmatched = {row.row.configuration["cpu_threads"]: row for row in comparison.unmatched}
    reasons = {threads: row.reason for threads, row in unmatched.items()}
    assert reasons == {
        "2": "only in the baseline",
        "3": "baseline failed: why",
        "4": "in both files skipped: why",
        "5": "other file failed: why",
        "6": "only in the other file",
        "7": "only in the baseline, failed: why",
        "8": "only in the other file, skipped: why",
    }
    assert [threads for threads, row in unmatched.items() if row.lost] == ["5"]
    text = render(compare_tables(comparison, everything=True), "text")
    for count in range(1, 9):
        assert f"{count} thread" in text
    counted = compare_tables(comparison)[-1].records()
    assert sum(line["rows"] for line in counted) == 7
    assert {line["reason"] for line in counted} == set(reasons.values())


def peak(seconds: list[float], count: float) -> dict[str, Any]:
    configuration = {"family": "Peak", "quantity": "triad", "device": "cpu", "cpu_threads": "1"}
    common = {
        "name": synthetic.row_name(configuration),
        "configuration": configuration,
        "iterations": 1,
        "time_unit": "s",
        "count": 1,
        "bytes": count,
        "verification": {"reference": "pattern", "tolerance": 0, "relative_error": 0},
    }
    return synthetic.document(
        [
            {**common, "real_time": time, "cpu_time": time, "instance": instance}
            for instance, time in enumerate(seconds)
        ]
    )


def test_probes_are_compared_for_the_same_work(compared):
    # Twice the bytes in twice the time is the same bandwidth.
    (pair,) = compared(peak(times(), 1e9), peak(times(2), 2e9)).pairs
    assert pair.ratio == pytest.approx(1) and pair.verdict == "same"
    assert pair.value == pytest.approx(pair.baseline.median)


def software(key: str, value: Any):
    return lambda content: content["context"]["crossover"]["software"].update({key: value})


def configuration(key: str, value: Any, machine: str = ""):
    def change(content: dict[str, Any]) -> None:
        crossover = content["context"]["crossover"]
        crossover["configuration"][key] = value
        crossover["machine"]["id"] = machine or crossover["machine"]["id"]

    return change


@pytest.mark.parametrize(
    ("change", "words", "is_refused"),
    [
        (software("build_type", "Debug"), "build type: Release and Debug", True),
        (configuration("data", "mine.csv"), "data: generated and mine.csv", True),
        (configuration("flush_to_zero", False), "flush_to_zero: on and off", True),
        (configuration("environment", {}), "OMP_NUM_THREADS: 2 and not stated", True),
        (software("compiler", "GNU 99"), "compiler: synthetic and GNU 99", False),
        (software("libraries", {}), "library benchmark: 1.7.1 and absent", False),
        (software("dirty", True), "uncommitted changes", False),
        (configuration("repetitions", 5), "repetitions: 9 and 5", False),
        (configuration("min_time_seconds", 0.5), "0.1 and 0.5", False),
        (lambda content: content["context"]["crossover"].update(complete=False), "missing", False),
        (
            lambda content: content["context"]["crossover"]["configuration"].pop("data"),
            "data: ",
            False,
        ),
        # The environment of another machine may differ.
        (configuration("environment", {"OMP_NUM_THREADS": "64"}, "b"), "S: 2 and 64", False),
    ],
)
def test_what_makes_ratios_meaningless_is_refused_and_other_differences_noted(
    command, change, words, is_refused
):
    first, second = document(t1=times()), document(t1=times())
    change(second)
    if is_refused:
        code, out, err = command(first, second)
        assert (code, out) == (2, "") and words in err and err.count("\n") == 1
    code, out, err = command(first, second, *(["--anyway"] if is_refused else []))
    assert (code, err) == (0, "") and words[1:] in out


SPREAD = [0.1 * (1 + 0.02 * step) for step in (3, 0, 7, 1, 5, 2, 8, 4, 6)]
FIVE = {f"t{count}": times() for count in range(1, 6)}
SLOWER = {name: times(1.2) for name in FIVE}
TWO = {"t1": times(), "t2": times()}
FEW = {"t1": times()[:3], "t2": times()[:4]}


@pytest.mark.parametrize(
    ("files", "options", "code", "words"),
    [
        ((TWO, TWO | {"t2": times(1.1)}), "", 0, "2 rows compared"),  # nobody asked
        ((TWO, TWO | {"t2": times(1.1)}), "5%", 1, "1 row is slower by more than 5 %"),
        ((TWO, TWO | {"t2": times(1.1)}), "15%", 0, ""),
        ((TWO, TWO), "5%", 0, ""),
        ((TWO, TWO | {"t2": times(0.5)}), "5%", 0, ""),
        # The whole interval has to be beyond what fails.
        (({"t1": SPREAD}, {"t1": times(1.12, SPREAD)}), "8% --minimum-effect=1%", 0, "1 slower"),
        (({"t1": SPREAD}, {"t1": times(1.12, SPREAD)}), "1% --minimum-effect=1%", 1, "1 row is"),
        # Too few repetitions are no pass, nor is a row that fails now.
        ((FEW, FEW), "5%", 2, "--benchmark_repetitions"),
        (({"t1": times()[:3], "t2": times()}, {"t1": times()[:3], "t2": times()}), "5%", 0, ""),
        ((TWO, TWO | {"t2": "failed"}), "5%", 1, "1 row failed that the baseline has"),
        ((TWO, TWO | {"t2": "skipped"}), "5%", 0, ""),
        (({"t1": times()}, {"t2": times()}), "5%", 2, "nothing was compared"),
        # A row that others disturbed has no verdict, and many of them leave none.
        ((FIVE, {"disturbed": "t1", **SLOWER}), "5%", 1, "4 rows are slower"),
        ((FIVE, {"disturbed": "t1", **SLOWER}), "5%", 1, "0 ambiguous, 1 disturbed"),
        ((FIVE, {"disturbed": "t1 t2", **SLOWER}), "5%", 2, "processors during 2 of 5 rows"),
    ],
)
def test_fail_on_slower(command, files, options, code, words):
    asked = f"--fail-on-slower={options}".split() if options else []
    exit_code, out, err = command(*(document(**file) for file in files), *asked)
    assert exit_code == code and words in " ".join(f"{out} {err}".split())
    assert bool(err) == bool(code)


@pytest.mark.slow
@pytest.mark.parametrize("repetitions", [5, 9])
def test_one_slow_row_of_many_is_found(command, repetitions):
    generator = np.random.default_rng(3)

    def noise(factors: list[float]) -> dict[str, Any]:
        times = {
            f"t{place}": (0.1 * factor * np.exp(0.03 * generator.standard_normal(repetitions)))
            for place, factor in enumerate(factors, 1)
        }
        return document(**{name: each.tolist() for name, each in times.items()})

    first, second = noise([1.0] * 240), noise([1.0] * 100 + [1.5] + [1.0] * 139)
    code, _, err = command(first, second, "--fail-on-slower=5%")
    assert code == 1
    assert "1 row is slower by more than 5 %" in err and "cpu_threads:101 " in err


def test_what_lies_between_runs_is_that_of_each_rows_instances(compared):
    instances = [*(0,) * 9, *(0, 1, 2, 3) * 2]  # one, then four
    rows = document(t1=times(), t2=times()[:8])
    for entry, instance in zip(rows["benchmarks"], instances, strict=True):
        entry["instance"] = instance
    of_one, of_four = compared(rows, rows).pairs
    assert of_one.between == pytest.approx(2 * of_four.between) and of_four.between > 0


@pytest.mark.parametrize("text", ["5", "-5%", "five%", "nan%", "1e3%", "5%\n", "%"])
def test_a_percentage_is_one(text, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["compare", "a.json", "b.json", f"--minimum-effect={text}"])
    assert stopped.value.code == 2
    assert "percentage such as 5%" in capsys.readouterr().err


def test_what_changed_stands_first_and_the_rest_is_counted(command):
    first = document(**{f"t{count}": times() for count in range(1, 6)})
    factors = {1: 1.0, 2: 1.1, 3: 0.5, 4: 1.4, 5: 1.0}
    second = document(**{f"t{count}": times(factor) for count, factor in factors.items()})
    code, out, _ = command(first, second, "--format=json")
    families, changed = json.loads(out)
    assert code == 0
    threads = [line["name"][-1] for line in changed["rows"]]
    assert threads == ["3", "4", "2"]  # 1/2 is more of a change than 1.4 times
    assert "2 rows the same, ambiguous or disturbed: --all lists them." in changed["notes"]
    (epochs,) = families["rows"]
    mean = (1.1 * 0.5 * 1.4) ** (1 / 5)
    assert epochs["ratio"] == pytest.approx(mean)
    counts = {key: epochs[key] for key in ("rows", "faster", "slower", "same", "ambiguous")}
    assert counts == {"rows": 5, "faster": 1, "slower": 2, "same": 2, "ambiguous": 0}
    _, out, _ = command(first, second, "--format=json", "--all")
    threads = [line["name"][-1] for line in json.loads(out)[1]["rows"]]
    assert threads[:3] == ["3", "4", "2"] and sorted(threads[3:]) == ["1", "5"]


def test_families_stand_by_their_effect(compared):
    first, second = peak(times(), 1e9), peak(times(1.2), 1e9)
    first["benchmarks"] += document(t1=times())["benchmarks"]
    second["benchmarks"] += document(t1=times(0.5))["benchmarks"]
    families = compare_tables(compared(first, second))[0].records()
    assert [line["family"] for line in families] == ["Epoch", "Peak"]
    assert [line["ratio"] for line in families] == pytest.approx([0.5, 1.2])


@pytest.mark.slow
def test_charts_are_drawn(command, tmp_path):
    code, _, err = command(document(**TWO), document(**TWO), f"--charts={tmp_path / 'new' / 'c'}")
    assert code == 0 and "from 1 to 1. 2 rows compared: 0 faster, 0 slower, 2 same" in err
    names = sorted(path.name for path in (tmp_path / "new" / "c").iterdir())
    assert names == ["synthetic-machine.compare-b.png", "synthetic-machine.compare-b.svg"]


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, MOST, MOST + 1])
def test_charts_of_few_and_many_rows(compared, count):
    first = document(**{f"t{k}": times() for k in range(1, count + 1)})
    second = document(**{f"t{k}": times(10.0 ** (k % 5 - 2)) for k in range(1, count + 1)})
    chart = draw_comparison(compared(first, second))
    picture = imread(io.BytesIO(chart.pictures.png))
    assert 300 < picture.shape[0] < 3000 and picture.shape[1] > 1000
    svg = chart.pictures.svg.decode()
    ElementTree.fromstring(svg)
    assert svg.count(" threads</text>") + svg.count(" thread</text>") == min(count, MOST)


@pytest.mark.slow
def test_hostile_names_stay_text(compared):
    content = document(t1=times(), t2=times())
    evil = '<script>alert(1)</script>|x "y" $z$ \\end{table}\n' + "n" * 10_000
    for entry in content["benchmarks"]:
        entry["configuration"] = {**entry["configuration"], "evil": evil}
        entry["name"] = f"{entry['name']}/evil:{evil}"
        entry["warnings"] = [evil]
    axis = {"key": "evil", "role": "how", "description": evil}
    content["context"]["crossover"]["axes"] = [axis]
    comparison = compared(content, content)
    for name in FORMATS:
        text = render(compare_tables(comparison, everything=True), name)
        assert "<script>" not in text or name in ("text", "csv", "json")
    assert len(render(compare_tables(comparison), "text")) < 20_000
    assert len(draw_comparison(comparison).pictures.png) > 1000


def test_short_names_are_unique_and_say_the_rest_once(read):
    file = read(synthetic.sweep())
    names, common = short_names(file.rows)
    assert len(set(names.values())) == len(file.rows)
    assert names[file.rows[0].name] == "Epoch disc-2, batch 100, CPU, eager, 1 thread"
    assert common == "f32"


# --- one machine's CPU with another's GPU


def of_machine(machine: str, gpu: str | None, commit: str = "") -> dict:
    content = synthetic.sweep(gpu=gpu is not None)
    crossover = content["context"]["crossover"]
    crossover["machine"]["id"] = machine
    crossover["machine"]["gpu"] = {"name": gpu} if gpu else None
    crossover["machine"]["cpu"]["model"] = f"CPU of {machine}"
    crossover["software"]["commit"] = commit
    return content


@pytest.fixture
def files(write):
    """The paths of a machine without a GPU and of one with a GPU."""
    return (
        write(of_machine("old", None, "a" * 40), "old.json"),
        write(of_machine("new", "shiny", "b" * 40), "new.json"),
    )


def test_rows_are_of_the_machine_that_has_the_device(files):
    old, new = map(loading.load_file, files)
    mixed = mix(old, new)
    assert mixed.machine.id == "old's CPU with new's GPU"
    assert (mixed.machine.cpu.model, mixed.machine.gpu) == ("CPU of old", "shiny")
    assert mixed.software.commit == ""  # the two differ
    gpu = [row for row in new.rows if row.device == "cuda"]
    assert gpu and list(mixed.rows) == [*old.rows, *gpu]
    itself = mix(new, new)
    assert itself.software == new.software
    assert {row.name for row in itself.rows} == {row.name for row in new.rows}


def test_gpu_rows_that_train_differently_are_left_out(write):
    paths = []
    for name, gpu, digit in (("old", None, "a"), ("new", "shiny", "b")):
        content = of_machine(name, gpu)
        for entry in content["benchmarks"]:
            if entry.get("configuration", {}).get("model") == "disc-3":
                entry["workload"] = digit * 16
        paths.append(write(content, f"{name}.json"))
    pairs = comparisons(mixed := mix(*map(loading.load_file, paths)))
    assert pairs
    for pair in pairs:
        assert synthetic.MODELS["disc-2"][0] in pair.gpu.sizes
        assert synthetic.MODELS["disc-3"][0] not in (*pair.gpu.sizes, *pair.cpu.sizes)
    assert other_work(mixed).startswith("2 rows of the CPU and 1 row of the GPU are not compared")


def test_a_slower_processor_moves_the_crossover(read):
    # The CPU of "slow" takes four times as long; the GPU's rows of "old" must not matter.
    new = read(of_machine("new", "shiny"), "new.json")
    content = of_machine("slow", "none")
    for entry in content["benchmarks"]:
        if entry.get("configuration", {}).get("device") == "cpu" and "real_time" in entry:
            entry["real_time"] *= 4
        elif entry.get("configuration", {}).get("device") == "cuda":
            entry["real_time"] *= 1e3
    slow = read(content, "slow.json")

    def sizes(file: rows.File) -> list[float]:
        return [pair.crossover.size for pair in comparisons(file)]

    unmixed, mixed = sizes(new), sizes(mix(slow, new))
    assert len(unmixed) == len(mixed) > 0
    assert all(size < before for size, before in zip(mixed, unmixed, strict=True))
    assert sizes(mix(new, new)) == unmixed


def test_files_that_cannot_be_compared_are_not_mixed(write, files, shell):
    content = synthetic.document(synthetic.samples(synthetic.cpu_configuration("heart", 1)))
    lonely = write(content, "heart.json")
    printed = shell("compare", f"--cpu-of={lonely}", f"--gpu-of={files[1]}", "--anyway", code=2)
    assert printed.out == "" and "name files of one sweep" in printed.err  # nothing in common
    content = of_machine("new", "shiny")
    content["context"]["crossover"]["software"]["build_type"] = "Debug"
    debug = write(content, "debug.json")
    arguments = ["compare", f"--cpu-of={files[0]}", f"--gpu-of={debug}"]
    assert "Release and Debug" in shell(*arguments, code=2).err
    printed = " ".join(shell(*arguments, "--anyway").out.split())
    assert "Release and Debug" in printed and CAVEAT in printed
    assert "old's CPU with new's GPU" in printed and "SPEEDUP = CPU time / GPU time" in printed
