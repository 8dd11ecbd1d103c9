# SPDX-License-Identifier: Apache-2.0
"""Comparing files: verdicts on times that are known, what is refused, what is never dropped."""

import io
import json
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from plots.cli import main
from plots.core.crossover import comparisons
from plots.core.tables.formats import FORMATS, render
from plots.features.compare.analysis import Comparison, compare
from plots.features.compare.chart import MOST_NAMES, draw_comparison
from plots.features.compare.command import mix
from plots.features.compare.table import compare_tables, headline
from plots.file import loading, rows
from plots.file.row_names import short_names
from plots.tests import synthetic

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
            own = synthetic.samples(configuration, value)
            for place, entry in enumerate(own if name in disturbed.split() else ()):
                entry["cpu_wait"] = 0.3 + 0.01 * place
            entries += own
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


def test_rows_that_train_differently_are_counted_and_not_compared(command, write):
    first, second = (
        document(t1=times(), t2=times(), t4=times()),
        document(t1=times(2.0), t2=times(2.0), t4=times(2.0)),
    )
    trained = {"1": ("a" * 16, "b" * 16), "2": ("c" * 16, "c" * 16), "4": ("d" * 16, None)}
    for place, content in enumerate((first, second)):
        for entry in content["benchmarks"]:
            if workload := trained[entry["configuration"]["cpu_threads"]][place]:
                entry["workload"] = workload
    code, printed, _ = command(first, second)
    assert code == 0
    assert "2 rows compared" in printed  # a file that does not say may hold the same
    assert (
        "1 row has the same name but trains differently (optimizer, data or size), and is not "
        "compared." in printed
    )
    code, printed, errors = command(first, second, "--fail-on-slower=5%")
    assert code == 1 and "2 rows are slower" in errors


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

    result = compared(noise(), noise(), minimum_effect=0.0)
    assert result.count("better") + result.count("worse") <= 2
    covered = sum(pair.low <= 1 <= pair.high for pair in result.pairs)
    assert 0.90 <= covered / 200 <= 0.99


@pytest.mark.slow
def test_true_differences_among_many_rows_are_found(compared):
    first = document(**{f"t{k}": times() for k in range(1, 101)})
    second = document(**{f"t{k}": times(1.1 if k <= 10 else 1.0) for k in range(1, 101)})
    result = compared(first, second)
    assert (result.count("worse"), result.count("same")) == (10, 90)
    families, rows = compare_tables(result)
    assert len(rows.lines) == 10 and "90 rows the same, ambiguous or disturbed" in rows.notes[-1]
    assert families.records()[0]["slower"] == 10


def test_no_row_is_dropped(compared):
    first = document(t1=times(), t2=times(), t3="failed", t4="skipped", t5=times(), t7="failed")
    second = document(t1=times(), t3=times(), t4="skipped", t5="failed", t6=times(), t8="skipped")
    result = compared(first, second)
    assert [pair.baseline.configuration["cpu_threads"] for pair in result.pairs] == ["1"]
    reasons = {one.row.configuration["cpu_threads"]: one.reason for one in result.unmatched}
    assert reasons == {
        "2": "only in the baseline",
        "3": "baseline failed: why",
        "4": "in both files skipped: why",
        "5": "other file failed: why",
        "6": "only in the other file",
        "7": "only in the baseline, failed: why",
        "8": "only in the other file, skipped: why",
    }
    assert [one.row.configuration["cpu_threads"] for one in result.unmatched if one.lost] == ["5"]
    text = render(compare_tables(result, everything=True), "text")
    for count in range(1, 9):
        assert f"{count} thread" in text
    counted = compare_tables(result)[-1].records()
    assert sum(line["rows"] for line in counted) == 7
    assert {line["reason"] for line in counted} == set(reasons.values())


def test_rows_of_other_work_are_not_compared(compared):
    first, second = document(t1=times()), document(t1=times())
    for entry in second["benchmarks"]:
        entry["rows"] = 500
    (unmatched,) = compared(first, second).unmatched
    assert unmatched.reason == "not the same work: rows 1,000 and 500"


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


def configuration(key: str, value: Any):
    return lambda content: content["context"]["crossover"]["configuration"].update({key: value})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (software("build_type", "Debug"), "build type: Release and Debug"),
        (configuration("data", "mine.csv"), "data: generated and mine.csv"),
        (configuration("flush_to_zero", False), "flush_to_zero: on and off"),
        (configuration("environment", {}), "OMP_NUM_THREADS: 2 and not stated"),
    ],
)
def test_what_makes_ratios_meaningless_is_refused(command, change, said):
    first, second = document(t1=times()), document(t1=times())
    change(second)
    code, out, err = command(first, second)
    assert (code, out) == (2, "")
    assert said in err and "--anyway" in err and err.count("\n") == 1
    code, out, _ = command(first, second, "--anyway")
    assert code == 0 and "1 row compared" in out
    assert f"{said[0].upper()}{said[1:]}." in out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (software("compiler", "GNU 99"), "Compiler: synthetic and GNU 99"),
        (software("libraries", {}), "Library benchmark: 1.7.1 and absent"),
        (software("dirty", True), "uncommitted changes"),
        (configuration("repetitions", 5), "Repetitions: 9 and 5"),
        (configuration("min_time_seconds", 0.5), "0.1 and 0.5"),
        (lambda content: content["context"]["crossover"].update(complete=False), "interrupted"),
        (lambda content: content["context"]["crossover"]["configuration"].pop("data"), "Data: "),
    ],
)
def test_what_may_differ_is_noted(command, change, said):
    first, second = document(t1=times()), document(t1=times())
    change(second)
    code, out, err = command(first, second)
    assert (code, err) == (0, "") and said in out


def test_the_environment_of_another_machine_may_differ(command):
    second = synthetic.document(document(t1=times())["benchmarks"], machine="another")
    configuration("environment", {"OMP_NUM_THREADS": "64"})(second)
    code, out, _ = command(document(t1=times()), second)
    assert code == 0 and "OMP_NUM_THREADS: 2 and 64" in out


def test_fail_on_slower(command):
    first = document(t1=times(), t2=times())
    for factor, threshold, code in ((1.1, 5, 1), (1.1, 15, 0), (1.0, 5, 0), (0.5, 5, 0)):
        second = document(t1=times(), t2=times(factor))
        found, _, err = command(first, second, f"--fail-on-slower={threshold}%")
        assert found == code
        assert ("1 row is slower by more than 5 %" in err) == bool(code)
    assert command(first, document(t1=times(), t2=times(1.1)))[0] == 0  # nobody asked


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


def test_the_whole_interval_is_beyond_what_fails(command):
    spread = [0.1 * (1 + 0.02 * step) for step in (3, 0, 7, 1, 5, 2, 8, 4, 6)]
    first, second = document(t1=spread), document(t1=times(1.12, spread))
    code, out, _ = command(first, second, "--fail-on-slower=8%", "--minimum-effect=1%")
    assert code == 0 and "1 row compared: 0 faster, 1 slower" in out
    assert command(first, second, "--fail-on-slower=1%", "--minimum-effect=1%")[0] == 1


def test_too_few_repetitions_are_no_pass(command):
    few = document(t1=times()[:3], t2=times()[:4])
    code, out, err = command(few, few, "--fail-on-slower=5%")
    assert code == 2 and "2 rows compared" in out
    assert err.count("\n") == 1 and "--benchmark_repetitions" in err
    some = document(t1=times()[:3], t2=times())
    assert command(some, some, "--fail-on-slower=5%")[0] == 0


def test_a_row_that_fails_now_is_no_pass(command):
    first = document(t1=times(), t2=times())
    for outcome, code in (("failed", 1), ("skipped", 0)):
        second = document(t1=times(), t2=outcome)
        assert command(first, second, "--fail-on-slower=5%")[0] == code


def test_a_row_that_others_disturbed_has_no_verdict(command):
    names = [f"t{count}" for count in range(1, 6)]
    first = document(**{name: times() for name in names})
    slower = {name: times(1.2) for name in names}
    code, out, err = command(first, document(disturbed="t1", **slower), "--fail-on-slower=5%")
    assert code == 1 and "4 rows are slower" in err
    assert "5 rows compared: 0 faster, 4 slower, 0 same, 0 ambiguous, 1 disturbed" in out
    code, out, err = command(first, document(disturbed="t1 t2", **slower), "--fail-on-slower=5%")
    told = "This comparison cannot tell: other programs used the processors during 2 of 5 rows"
    assert code == 2 and told in " ".join(out.split()) and told in err


def test_what_lies_between_runs_is_that_of_each_rows_instances(compared):
    instances = [*(0,) * 9, *(0, 1, 2, 3) * 2]  # one, then four
    rows = document(t1=times(), t2=times()[:8])
    for entry, instance in zip(rows["benchmarks"], instances, strict=True):
        entry["instance"] = instance
    one, four = compared(rows, rows).pairs
    assert one.between == pytest.approx(2 * four.between) and four.between > 0


def test_nothing_in_common_is_no_success(command):
    code, out, err = command(document(t1=times()), document(t2=times()))
    assert code == 2 and "nothing was compared" in err
    assert "only in the baseline" in out and "only in the other file" in out


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
    code, out, err = command(
        document(t1=times(), t2=times()),
        document(t1=times(1.1), t2=times()),
        f"--charts={tmp_path / 'new' / 'charts'}",
    )
    assert code == 0 and "wrote" not in out
    assert "from 1 to 1.1. 2 rows compared: 0 faster, 1 slower, 1 same" in err
    names = sorted(path.name for path in (tmp_path / "new" / "charts").iterdir())
    assert names == ["synthetic-machine.compare-b.png", "synthetic-machine.compare-b.svg"]
    (tmp_path / "taken").write_text("keep me")
    code, _, err = command(
        document(t1=times()), document(t1=times()), f"--charts={tmp_path / 'taken'}"
    )
    assert code == 2 and err.count("\n") == 1 and "--charts" in err


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, MOST_NAMES, MOST_NAMES + 1])
def test_charts_of_few_and_many_rows(compared, count):
    first = document(**{f"t{k}": times() for k in range(1, count + 1)})
    second = document(**{f"t{k}": times(10.0 ** (k % 5 - 2)) for k in range(1, count + 1)})
    result = compared(first, second)
    chart = draw_comparison(result)
    assert chart == draw_comparison(result)
    pictures = chart.pictures
    picture = imread(io.BytesIO(pictures.png))
    assert 300 < picture.shape[0] < 3000 and picture.shape[1] > 1000
    svg = pictures.svg.decode()
    ElementTree.fromstring(svg)
    assert ("1 thread" in svg) == (count <= MOST_NAMES)
    assert chart.alt.endswith(f"{headline(result)}.")


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
    result = compared(content, content)
    for name in FORMATS:
        text = render(compare_tables(result, everything=True), name)
        assert "<script>" not in text or name in ("text", "csv", "json")
    assert len(render(compare_tables(result), "text")) < 20_000
    assert len(draw_comparison(result).pictures.png) > 1000


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
    cpu = [row for row in mixed.rows if row.device == "cpu"]
    gpu = [row for row in mixed.rows if row.device == "cuda"]
    assert cpu == list(old.rows) and len(cpu) + len(gpu) == len(mixed.rows)
    assert gpu == [row for row in new.rows if row.device == "cuda"] != []
    assert len({row.name for row in mixed.rows}) == len(mixed.rows)


def test_one_machine_with_itself_is_itself(files):
    new = loading.load_file(files[1])
    mixed = mix(new, new)
    assert mixed.software == new.software
    assert {row.name for row in mixed.rows} == {row.name for row in new.rows}


def test_gpu_rows_that_train_differently_are_left_out(write, shell):
    old, new = of_machine("old", None), of_machine("new", "shiny")
    for content, digit in ((old, "a"), (new, "b")):
        for entry in content["benchmarks"]:
            if entry.get("configuration", {}).get("model") == "disc-3":
                entry["workload"] = digit * 16
    paths = write(old, "old.json"), write(new, "new.json")
    found = comparisons(mix(*map(loading.load_file, paths)))
    assert found
    for one in found:
        assert synthetic.MODELS["disc-2"][0] in one.gpu.sizes
        assert synthetic.MODELS["disc-3"][0] not in (*one.gpu.sizes, *one.cpu.sizes)
    printed = " ".join(shell("compare", "--cpu-of", paths[0], "--gpu-of", paths[1]).out.split())
    assert "2 rows of the CPU and 1 row of the GPU are not compared, as they do other" in printed
    assert "(trains differently)" in printed


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
        return [found.crossover.size for found in comparisons(file)]

    own, mixed = sizes(new), sizes(mix(slow, new))
    assert len(own) == len(mixed) > 0
    assert all(size < before for size, before in zip(mixed, own, strict=True))
    assert sizes(mix(new, new)) == own


def test_nothing_in_common_is_refused(files, write, shell):
    content = synthetic.document(synthetic.samples(synthetic.cpu_configuration("heart", 1)))
    lonely = write(content, "heart.json")
    printed = shell("compare", f"--cpu-of={lonely}", f"--gpu-of={files[1]}", "--anyway", code=2)
    assert printed.out == "" and "name files of one sweep" in printed.err


def test_files_that_cannot_be_compared_are_not_mixed(write, files, shell):
    content = of_machine("new", "shiny")
    content["context"]["crossover"]["software"]["build_type"] = "Debug"
    debug = write(content, "debug.json")
    arguments = ["compare", f"--cpu-of={files[0]}", f"--gpu-of={debug}"]
    assert "Release and Debug" in shell(*arguments, code=2).err
    assert "Release and Debug" in shell(*arguments, "--anyway").out
