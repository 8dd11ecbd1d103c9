# SPDX-License-Identifier: Apache-2.0
"""Files that Google Benchmark and nvbench write: which rows are whose, from which size the GPU
wins, and what is said of the rest."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossover_bench.answers.two.moved import move_words, moves
from crossover_bench.answers.two.naming import device_of, parse, words_of
from crossover_bench.answers.two.problems import Found, problems_of
from crossover_bench.answers.two.sides import AskError, Wanted
from crossover_bench.answers.two.threshold import Threshold, write
from crossover_bench.curves.problem import answer
from crossover_bench.curves.problem_words import lead
from crossover_bench.files.google_benchmark import Timing, timings_of
from crossover_bench.files.refusal import BadFileError, FaultError

SIZES = tuple(2**power for power in range(7, 18))
EQUAL = 7500
Entry = dict[str, Any]
REAL = Path(__file__).with_name("google_benchmark")  # by a program that states 7,500
SCALES = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}


def host(size: float) -> float:
    return 2e-9 * size


def device(size: float) -> float:
    return 12e-6 + 0.4e-9 * size


def copying(size: float) -> float:
    """With it both sides are equal at 41,000."""
    return 50e-6 + 0.0878e-9 * size


def rows(
    name: str,
    seconds: Callable[[float], float],
    *,
    sizes: Iterable[int] = SIZES,
    unit: str = "ns",
    count: int = 5,
    aggregates: bool = True,
) -> list[Entry]:
    """As JSON has them; `name` has {} in the place of the size. 2 % of noise."""
    entries = []
    for size in sizes:
        run = name.format(size)
        random = np.random.default_rng([*run.encode()])
        times = seconds(size) * SCALES[unit] * random.normal(1, 0.02, count)
        same = {"run_name": run, "threads": 1, "repetitions": count, "time_unit": unit}
        entries += [
            {"name": run, **same, "run_type": "iteration", "iterations": 10, **_times(time)}
            for time in times
        ]
        figures = {
            "mean": np.mean(times),
            "median": np.median(times),
            "stddev": np.std(times, ddof=min(1, count - 1)),
            "cv": 0.02,
        }
        for key, value in figures.items() if aggregates else ():
            kind = {"run_type": "aggregate", "aggregate_name": key, "iterations": count}
            share = {"aggregate_unit": "percentage" if key == "cv" else "time"}
            entries.append({"name": f"{run}_{key}", **same, **kind, **share, **_times(value)})
    return entries


def _times(value: float) -> Entry:
    """The processor's time tells the opposite."""
    return {"real_time": float(value), "cpu_time": 1 / (float(value) or 1)}


def fits(run: str) -> list[Entry]:
    return [
        {"name": f"{run}_{kind}", "run_name": run, "run_type": "aggregate", "aggregate_name": kind}
        | figures
        for kind, figures in (
            ("BigO", {"cpu_coefficient": 1.0, "real_coefficient": 1.0, "big_o": "N"}),
            ("RMS", {"rms": 0.03, "aggregate_unit": "percentage"}),
        )
    ]


def document(entries: Sequence[Entry], **context: Any) -> str:
    context = {"date": "2026-11-20", "executable": "./bench", "num_cpus": 12, **context}
    return json.dumps({"context": context, "benchmarks": entries})


def read(*texts: str, names: Sequence[str] = ("rows.json", "more.json")) -> list[Timing]:
    pairs = zip(names, texts, strict=False)
    return [timing for name, text in pairs for timing in timings_of(Path(name), text)]


def asked(entries: Sequence[Entry], **wanted: Any) -> Found:
    return problems_of(read(document(entries)), Wanted(**wanted))


def sizes_of(problems: Found) -> list[float | None]:
    return [answer(of.problem).crossover.size for of in problems.asked]


def equal(size: float = EQUAL) -> Any:
    return pytest.approx(size, rel=0.1)


# --- names


@pytest.mark.parametrize(
    ("name", "text", "numbers"),
    [
        ("BM_x/128/real_time", "BM_x", [("#1", 128)]),
        ("sort<Kokkos_Cuda>/8/manual_time", "sort<Kokkos_Cuda>", [("#1", 8)]),
        ("F/run/n:64/batch:8/iterations:7/repeats:3", "F/run", [("n", 64), ("batch", 8)]),
        (
            "a/16/min_time:0.5/min_warmup_time:1.000/process_time/real_time/threads:4",
            "a",
            [("#1", 16)],
        ),
        ("axpy<float, 1024>/device:gpu", "axpy<float, #>/device:gpu", [("#1", 1024)]),
        ("BM_sort_1024_float32/2", "BM_sort_#_float32", [("#1", 1024), ("#2", 2)]),
    ],
)
def test_a_name_is_a_text_and_numbers(name, text, numbers):
    parsed = parse(name, threads=4)
    assert (parsed.text, list(parsed.numbers)) == (text, numbers)


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("BM_scan_host", "cpu"),
        ("sort<Kokkos::OpenMP>", "cpu"),
        ("fft/device:cpu", "cpu"),
        ("std::sort", "cpu"),
        ("KokkosCuda", "gpu"),
        ("omp_gpu", "gpu"),
        ("thrust::sort", "gpu"),
        ("thrust_omp", "cpu"),
        ("copy_host_to_device", None),
        ("BM_sort", None),
    ],
)
def test_words_speak_of_a_device(text, side):
    assert device_of(words_of(text)) == side


# --- what is read


def test_repetitions_count_and_fits_aggregates_and_shares_do_not():
    entries = [*rows("s<Serial>/{}", host), *rows("s<Cuda>/{}", device), *fits("s<Serial>")]
    problems = asked(entries)
    assert sizes_of(problems) == [equal()]
    assert {len(t) for way in problems.asked[0].problem.ways for t in way.seconds.values()} == {5}


def test_aggregates_alone_in_other_units_say_so():
    entries = [*rows("BM_s_host/{}", host, unit="us"), *rows("BM_s_device/{}", device, unit="ms")]
    problems = asked([entry for entry in entries if entry["run_type"] == "aggregate"])
    assert sizes_of(problems) == [equal()]
    assert "aggregates in the place of repetitions" in " ".join(problems.asked[0].problem.remarks)
    without = [entry for entry in entries if entry["name"].endswith("_mean")]
    told = answer(asked(without).asked[0].problem).crossover
    assert told.kind == "ambiguous" and told.medians and told.medians.size == equal()


def csv_of(entries: Sequence[Entry]) -> str:
    keys = ("name", "iterations", "real_time", "cpu_time", "time_unit", "error_occurred")
    buffer = io.StringIO("")
    buffer.write(",".join([*keys, "error_message"]) + "\n")
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerows([entry.get(key, "") for key in (*keys, "message")] for entry in entries)
    return "2026-11-20\nRunning ./bench\nRun on (12 X 3600 MHz)\n" + buffer.getvalue()


def test_csv_behind_lines_of_the_context_is_the_same():
    entries = [*rows("BM_s_cpu/{}", host), *rows("BM_s_gpu/{}", device)]
    entries.append({"name": "BM_s_gpu/4", "error_occurred": "true", "message": 'a, "b"'})
    timings = read(csv_of(entries), names=("rows.csv",))
    problems = problems_of(timings, Wanted())
    assert sizes_of(problems) == sizes_of(asked(entries[:-1]))
    (gpu,) = problems.asked[0].problem.of("gpu")
    assert gpu.failures == {4.0: 'a, "b"'}


def test_failed_skipped_and_absurd_rows_are_named():
    entries = [*rows("s_cpu/{}", host), *rows("s_gpu/{}", device, sizes=SIZES[4:])]
    bad = ({"error_occurred": True, "error_message": "out of memory"}, {"skipped": True})
    numbers = ({"real_time": float("nan")}, {"real_time": 10**400, "time_unit": "ns"})
    for size, fields in zip(SIZES[:4], (*bad, *numbers), strict=True):
        entries.append({"name": f"s_gpu/{size}", "run_type": "iteration", **fields})
    problems = asked(entries)
    (gpu,) = problems.asked[0].problem.of("gpu")
    assert [*gpu.failures][:2] == [float(size) for size in SIZES[:2]]
    assert [*gpu.failures.values()][:3] == ["out of memory", "failed", "its time is NaN ns"]
    assert sizes_of(problems) == [equal()]


def test_a_number_that_is_an_axis_makes_a_problem_for_each_value():
    entries = []
    for batch in (1, 8):
        for side, time in (("cpu", host), ("gpu", device)):
            name = f"fft/device:{side}/n:{{}}/batch:{batch}/real_time"
            entries += rows(name, lambda size, time=time, batch=batch: time(size * batch))
    problems = asked(entries)
    assert [of.problem.title for of in problems.asked] == ["fft, batch 1", "fft, batch 8"]
    assert sizes_of(problems) == [equal(), equal(EQUAL / 8)]
    with pytest.raises(AskError, match=r"--size=rows is no number that varies; these do: --size=n"):
        asked(entries, size="rows")
    assert asked(entries, size="batch").asked[0].problem.common == {"n": "128"}


def test_rows_of_several_threads_are_no_single_piece_of_work():
    entries = [*rows("s_cpu/{}", host), *rows("s_gpu/{}", device)]
    many = rows("s_cpu/{}/threads:8", lambda size: host(size) / 2)
    every = [*entries, *({**entry, "threads": 8} for entry in many)]
    problems = asked(every)
    assert sizes_of(problems) == [equal()]
    assert problems.left_out[0].startswith(
        "11 rows of several threads left out: before release 1.9"
    )
    (alone, throughput) = problems_of(read(document(every, **V1_8)), Wanted()).asked
    assert answer(alone.problem).crossover.size == equal()
    assert "threads:8" not in alone.taken and "s_cpu/threads:8" in throughput.taken
    assert lead(answer(throughput.problem)).startswith(
        "throughput of s: the GPU does more pieces a second than up to 8 threads of the CPU from"
    )
    assert answer(throughput.problem).crossover.size == equal(20_000)


V1_8 = {"library_version": "v1.8.4"}


@pytest.mark.parametrize(
    ("context", "pieces"),
    [
        ({"library_build_type": "release"}, 1),  # before they said so
        (V1_8, 1),
        ({"library_version": "v1.9.0"}, 8),
        ({"library_version": "1.9.1-12-g267a1115-dirty"}, 8),
        ({"library_version": "v2.0.0"}, 8),
        ({"library_version": "v1.8.5-27-ga008bf82"}, None),
        ({"library_version": "v0.0.0", "library_build_type": "release"}, None),
        ({"library_version": [3]}, None),
        ({}, None),
    ],
)
def test_a_release_says_whether_times_of_threads_are_divided(context, pieces):
    text = document(rows("s_cpu/{}/threads:8", host, sizes=(512,)), **context)
    (timing,) = read(text.replace('"threads": 1', '"threads": 8'))
    assert timing.source.divides is (None if pieces is None else pieces == 1)
    assert timing.seconds[0] == pytest.approx(host(512) / (pieces or 1), rel=0.1)


def test_throughput_alone_and_threads_of_the_gpu_alone():
    many = [{**of, "threads": 4} for of in rows("s_cpu/{}/threads:4", host)]
    entries = [*many, *rows("s_gpu/{}", device)]
    (of,) = problems_of(read(document(entries, **V1_8)), Wanted()).asked
    assert lead(answer(of.problem)).startswith(
        "throughput of s: the GPU does more pieces a second than 4 threads of the CPU from n = 7,"
    )
    with pytest.raises(AskError, match="11 rows of several threads left out"):
        asked(many)
    feeding = [{**of, "threads": 4} for of in rows("s_gpu/{}/threads:4", device)]
    entries = [*rows("s_cpu/{}", host), *rows("s_gpu/{}", device), *feeding]
    problems = problems_of(read(document(entries, **V1_8)), Wanted())
    assert sizes_of(problems) == [equal()]
    assert problems.left_out == (
        "11 rows of several threads of the GPU left out: no row of the CPU has several.",
    )
    always = [*many, *rows("s_gpu/{}", lambda size: 1.0)]
    (of,) = problems_of(read(document(always, **V1_8)), Wanted()).asked
    assert "the CPU does more pieces a second than the GPU at every" in lead(answer(of.problem))


@pytest.mark.parametrize("name", ["threads_1.7.1.json", "threads_1.9.5.json"])
def test_releases_divide_times_of_threads_differently(name):
    """Two threads of the CPU do twice as many pieces, so that the GPU does more from 20,000 on."""
    timings = timings_of(Path(name), (REAL / name).read_text(encoding="utf-8"))
    asked = problems_of(timings, Wanted()).asked
    medians = [answer(of.problem).crossover.medians for of in asked]
    assert [of.size for of in medians if of] == [equal(), equal(20_000)]


def test_a_number_of_threads_that_is_an_argument_makes_ways():
    entries = rows("s_gpu/{}", device)
    for threads in (1, 2):
        entries += rows(f"s_cpu/{{}}/threads:{threads}", lambda size, by=threads: host(size) / by)
    (problem,) = (of.problem for of in asked(entries).asked)
    assert len(problem.of("cpu")) == 2
    assert answer(problem).crossover.size == equal(20_000)


def test_several_ways_of_the_host_are_the_best_of_it():
    parallel = rows("s<OpenMP>/{}", lambda size: 3e-6 + host(size) / 2)
    entries = [*rows("s<Serial>/{}", host), *parallel, *rows("s<Cuda>/{}", device)]
    (problem,) = (of.problem for of in asked(entries).asked)
    assert [way.word for way in problem.of("cpu")] == ["s<Serial>", "s<OpenMP>"]
    assert answer(problem).crossover.size == equal(15_000)


@pytest.mark.parametrize("told_by", ["name", "executable", "pattern"])
def test_a_file_a_side(told_by):
    texts = [
        document(
            rows("BM_h/{}", time), executable=f"./run_{side}" if told_by == "executable" else "b"
        )
        for side, time in (("cpu", host), ("gpu", device))
    ]
    names = ("h_cpu.json", "h_gpu.json") if told_by == "name" else ("a.json", "b.json")
    timings = read(*texts, names=names)
    if told_by == "pattern":
        with pytest.raises(AskError, match=r"--cpu='a\\.json' --gpu='b\\.json'"):
            problems_of(timings, Wanted())
    wanted = Wanted(*map(re.compile, ("a.json", "b.json")))
    problems = problems_of(timings, wanted if told_by == "pattern" else Wanted())
    assert sizes_of(problems) == [equal()]
    assert problems.asked[0].problem.title == "h"


def test_several_runs_say_how_far_they_lie_apart_and_machines_are_not_mixed():
    texts = [
        document(
            [
                *rows("s_cpu/{}", lambda size, by=faster: host(size) * by),
                *rows("s_gpu/{}", lambda size, by=faster: device(size) * by),
            ]
        )
        for faster in (1, 1.01, 0.99, 1.02, 0.98)
    ]
    names = [f"{place}.json" for place in range(5)]
    (of,) = problems_of(read(*texts, names=names), Wanted()).asked
    told = answer(of.problem)
    alone = answer(problems_of(read(texts[0]), Wanted()).asked[0].problem)
    assert not told.spreads and alone.spreads
    assert told.crossover.high / told.crossover.low < alone.crossover.high / alone.crossover.low
    assert "5 files have the same rows: each is a run of its own." in of.problem.remarks
    other = document(rows("s_cpu/{}", host), host_name="b")
    texts[0] = texts[0].replace('"num_cpus"', '"host_name": "a", "num_cpus"')
    with pytest.raises(AskError, match="were measured on a and b; name the files of one machine"):
        problems_of(read(texts[0], other), Wanted())


def nvbench(seconds: Callable[[float], float]) -> str:
    def summary(tag: str, value: object) -> Entry:
        return {"tag": f"nv/cold/{tag}", "data": [{"name": "value", "value": str(value)}]}

    states = [
        {
            "axis_values": [{"name": "Elements", "type": "int64", "value": str(size)}],
            "summaries": [
                summary("sample_size", 900),
                summary("time/cpu/mean", 1),
                summary("time/gpu/mean", seconds(size)),
                summary("time/gpu/stdev/relative", 0.02),
            ],
        }
        for size in SIZES
    ]
    states.append({"axis_values": [], "is_skipped": True, "skip_reason": "too large"})
    benchmarks = [{"name": "sort", "states": states}]
    return json.dumps({"devices": [{"name": "NVIDIA H200"}], "benchmarks": benchmarks})


def test_nvbench_is_a_side_of_the_gpu_without_copies():
    timings = read(document(rows("BM_sort/{}", host)), nvbench(device))
    problems = problems_of(timings, Wanted())
    assert sizes_of(problems) == [equal()]
    assert problems.asked[0].problem.measure == "elements"
    assert "neither copies nor" in " ".join(problems.asked[0].problem.remarks)


def test_a_copy_on_top_of_the_gpus_time():
    entries = [*rows("s_cpu/{}", host), *rows("s_gpu/{}", device), *rows("h2d/{}", copying)]
    (of,) = asked(entries, once=re.compile("h2d")).asked
    assert answer(of.problem).crossover.size == equal()
    assert of.copied and answer(of.copied).crossover.size == equal(41_000)


def test_a_copy_comes_on_top_of_each_piece_of_throughput():
    many = rows("s_cpu/{}/threads:8", lambda size: host(size) / 2)
    entries = [*rows("s_gpu/{}", device), *({**entry, "threads": 8} for entry in many)]
    entries += rows("h2d/{}", lambda size: 6e-6 + 0.1e-9 * size)
    (of,) = problems_of(read(document(entries, **V1_8)), Wanted(once=re.compile("h2d"))).asked
    assert answer(of.problem).crossover.size == equal(20_000)
    assert of.copied and answer(of.copied).crossover.size == equal(36_000)
    assert of.copied.title == "throughput of s, data copied"
    assert "no copy overlaps with work" in of.problem.remarks[-1]


@pytest.mark.parametrize(
    "name", ["aggregates_1.7.1.json", "once_1.9.5.json", "repetitions_1.7.1.csv"]
)
def test_files_that_releases_have_written(name):
    timings = timings_of(Path(name), (REAL / name).read_text(encoding="utf-8"))
    failed = [timing for timing in timings if timing.failure]
    assert {timing.failure for timing in failed} == {'out, of "memory"'}
    problems = problems_of(timings, Wanted())
    (problem,) = (of.problem for of in problems.asked)
    crossover = answer(problem).crossover
    assert (crossover.medians or crossover).size == pytest.approx(EQUAL, rel=0.15)
    assert bool(crossover.medians) == name.startswith("once")


# --- what is not clear, and bad input


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (
            ("a/{}", "b/{}"),
            r"CPU's is not clear from 2 names, \"a\" and \"b\"; say .*--cpu='a' --gpu='b'",
        ),
        (("s_cpu", "s_gpu"), "no number varies"),
        (("s_gpu/{}", "t_gpu/{}"), "which rows are the CPU's is not clear"),
    ],
)
def test_what_is_not_clear_is_asked_for(names, fault):
    entries = [entry for name in names for entry in rows(name, host)]
    with pytest.raises(AskError, match=fault):
        asked(entries)


def test_two_numbers_that_could_be_the_size_are_asked_for():
    names = [f"s_{side}/{{}}/{other}" for side in ("cpu", "gpu") for other in (3, 4)]
    entries = [entry for name in names for entry in rows(name, host, sizes=(1, 2))]
    with pytest.raises(AskError, match=r"say --size=1 \(1 to 2\) or --size=2 \(3 to 4\)"):
        asked(entries)


def test_a_number_of_one_side_makes_ways_and_what_follows_the_size_does_not():
    gpu = [entry for block in (64, 256) for entry in rows(f"s_gpu/{{0}}/block:{block}", device)]
    (problem,) = (of.problem for of in asked([*rows("s_cpu/{0}/{0}", host), *gpu]).asked)
    assert [way.word for way in problem.ways] == ["s_cpu", "s_gpu/block:64", "s_gpu/block:256"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "ends too early"),
        ("no header", "is neither JSON nor CSV"),
        ('{"benchmarks": [3]}', r"benchmarks\[0\]: has no text"),
        ('{"benchmarks": 3}', 'has no list "benchmarks"'),
        ("[" * 100_000, "nested too deeply"),
        ("name,iterations,real_time,cpu_time,time_unit\na,1", "fewer fields than the header"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence(text, fault):
    with pytest.raises(FaultError, match=fault):
        timings_of(Path("x"), text)


def test_the_command_answers_writes_and_refuses(shell, tmp_path, capsys):
    path = tmp_path / "rows.json"
    entries = [*rows("s<Serial>/{}", host), *rows("s<Cuda>/{}", device)]
    path.write_text(document(entries, gpu="NVIDIA H200"), encoding="utf-8")
    header = tmp_path / "sizes.h"
    text = shell("two", path, f"--threshold={header}").out
    assert text.startswith("s: the GPU wins from n = 7,")
    assert "Taken for the CPU s<Serial>, for the GPU s<Cuda>; for the size n." in text
    first, times = json.loads(shell("two", path, "--format=json").out)
    assert first["rows"][0]["kind"] == "once" and len(times["rows"]) == len(SIZES)
    assert '{"s", "NVIDIA H200", 7' in header.read_text(encoding="utf-8")
    path.write_text(document(rows("x/{}", host)), encoding="utf-8")
    assert "say so with regular expressions" in shell("two", path, code=2).err
    for flag, fault in (("--cpu=(", "no regular expression"), ("--threshold=x", "must end in .h")):
        with pytest.raises(SystemExit):
            shell("two", path, flag)
        assert fault in capsys.readouterr().err


def test_compare_says_what_moved_and_the_report_has_a_section(shell, tmp_path):
    """Takes some seconds, as a report starts processes and draws."""
    paths = [tmp_path / name for name in ("before.json", "after.json", "fewer.json")]
    for path, faster, count in zip(paths, (1, 16, 1), (5, 5, 1), strict=True):
        entries = rows("s_cpu/{}", lambda size, by=faster: host(size) * by, count=count)
        entries += rows("s_gpu/{}", device, count=count)
        path.write_text(document(entries), encoding="utf-8")
    text = shell("compare", *paths).out
    assert "- s, moved down: from n = 7," in text and "- s, not sure: " in text
    shell("report", paths[0], f"--output={tmp_path / 'page'}", "--cpu=s_gpu", "--gpu=s_cpu")
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "s: the GPU wins only up to n = 7," in page
    shell("report", paths[0], f"--output={tmp_path / 'page'}")
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert '<section id="google-benchmark">' in page and "s: the GPU wins from n = 7," in page
    assert (tmp_path / "page" / "crossover-s.svg").is_file()


def test_compare_says_which_thresholds_have_moved(shell, tmp_path):
    """Those of the machine's GPU; an entry without a name is of any."""
    before, after, sizes = (tmp_path / name for name in ("a.json", "b.json", "sizes.json"))
    for path, faster in ((before, 1), (after, 4)):
        entries = rows("s/{}/x", lambda size, by=faster: host(size) * by) + rows("s/{}/y", device)
        path.write_text(document(entries, gpu="NVIDIA H200"), encoding="utf-8")
    sides = ("--cpu=x", "--gpu=y")
    assert "is not clear" in shell("two", before, code=2).err
    shell("two", before, *sides, f"--threshold={sizes}")
    asked = "compare", after, f"--threshold={sizes}"
    assert "is not clear" in shell(*asked, code=2).err
    assert "- s on NVIDIA H200, moved down: from n = 7," in shell(*asked, *sides).out
    told = shell("compare", before, *sides, f"--threshold={sizes}", "--format=json").out
    assert json.loads(told)[0]["rows"][0]["verdict"] == "same within intervals"
    assert "moved down" in shell("compare", before, after, *sides).out
    after.write_text(document(entries, gpu="NVIDIA A100"), encoding="utf-8")
    assert f"has no problem of {sizes}" in shell(*asked, *sides, code=2).err
    shell("two", before, *sides, f"--threshold={sizes}", "--device=NVIDIA")
    assert "s on NVIDIA A100, moved down" in shell(*asked, *sides).out
    assert (
        "crossover two --threshold has written"
        in shell(*("compare", after, *sides, f"--threshold={after}"), code=2).err
    )


def test_a_size_beyond_those_measured_has_not_moved_where_more_are_measured(shell, tmp_path):
    """The first file ends below the size from which the GPU wins."""
    few, more = tmp_path / "few.json", tmp_path / "more.json"
    for path, sizes in ((few, SIZES[:5]), (more, SIZES)):
        entries = rows("s_cpu/{}", host, sizes=sizes) + rows("s_gpu/{}", device, sizes=sizes)
        path.write_text(document(entries), encoding="utf-8")
    assert "s, same within intervals: CPU at every size" in shell("compare", few, more).out


def test_flags_need_a_file_of_google_benchmark(shell, tmp_path):
    path = tmp_path / "other.json"
    path.write_text("{}", encoding="utf-8")
    for command in (["two"], ["report"], ["compare", path]):
        err = shell(*command, path, "--cpu=x", code=2).err
        assert f"{command[0]}: --cpu is of files that Google Benchmark or nvbench has" in err


HOSTILE = [
    {"name": "a/" + "/".join(map(str, range(5000))) + "_cpu", "real_time": 1},
    {"name": "\x1b[31m<script>_cpu/0", "real_time": "x", "time_unit": [7], "threads": 10**30},
    {"name": "", "real_time": {}, "run_type": [], "iterations": {}},
    {
        "name": f"z_gpu/{'9' * 400}",
        "real_time": 1e-300,
        "aggregate_name": 3,
        "run_type": "aggregate",
    },
    {"name": "y_gpu/-7", "real_time": True, "error_occurred": "yes", "repetitions": -1},
]


def test_hostile_rows_change_no_answer(shell, tmp_path):
    long = "x" * 10_000
    entries = [*rows(f"{long}_cpu/{{}}", host), *rows(f"{long}_gpu/{{}}", device)]
    path = tmp_path / "rows.json"
    context = {"host_name": "\x1b[2J*/", "gpu": [], "executable": 3}
    path.write_text(document([*entries, *HOSTILE], **context), encoding="utf-8")
    text = shell("two", path, f"--threshold={tmp_path / 'sizes.h'}").out
    assert "the GPU wins from n = 7," in text and "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


INPUTS = Path("/usr/share/benchmark/gbench/Inputs")  # of Debian's libbenchmark-tools


def test_google_benchmarks_own_files_ask_or_answer(shell):
    """Those by which it tests its compare.py: without sizes, with failed rows, one called "#"."""
    if not INPUTS.is_dir():
        pytest.skip(f"{INPUTS} is not there; Debian's libbenchmark-tools has it")
    for path in INPUTS.glob("*.json"):
        told = shell("two", path, code=2)
        (sentence,) = told.err.splitlines()
        assert re.search(r"say so with regular expressions, such as --cpu='.*' --gpu='", sentence)
        assert not told.out


# --- thresholds to compile in


EVIL = '*/ \\"; int x; //\\\n??/ $(id) é {}" '
PROGRAM = """
#include "sizes.h"
using crossover::threshold;
static_assert(threshold("sort", "NVIDIA H200 141GB") == 7500);
static_assert(threshold("sort", "NVIDIA A100") == crossover::NEVER);
static_assert(threshold("sort", "NVIDIA A100", 99) == 99);
static_assert(threshold("copy", "any") == crossover::NEVER);
static_assert(threshold("mandelbrot", "any") == 0);
int main() { return threshold(crossover::THRESHOLDS[1].problem, "any") == 5 ? 0 : 1; }
"""


def entry(problem: str, gpu: str, size: int | None, text: str = "") -> Threshold:
    ends = (0.5 * size, 1.5 * size) if size else (None, None)
    words = text or "{} to {}".format(*ends)
    ends = ends if size != 0 else (None, 1)
    return Threshold(problem, gpu, "n", size, *ends, words, text)


def test_a_header_looks_sizes_up_and_no_text_breaks_out_of_it(tmp_path):
    header = tmp_path / "sizes.h"
    write(header, [entry("sort", "H200", 1), entry("mandelbrot", "", 0), entry("copy", "", None)])
    now = [entry("sort", "H200", 7500, EVIL), entry(f"evil {EVIL}", "", 5)]
    (move,) = moves(write(header, now), now)
    assert move_words(move).startswith("sort on H200, moved up: 0.5 to 1.5 before, ")
    assert header.read_text(encoding="utf-8").count("// entry:") == 4
    source = tmp_path / "program.cpp"
    source.write_text(PROGRAM, encoding="utf-8")
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-trigraphs"]
    command = [compiler, *flags, str(source), "-o", str(tmp_path / "program")]
    subprocess.run(command, check=True)
    subprocess.run([tmp_path / "program"], check=True)


def test_thresholds_in_json_stay_and_another_file_is_kept(tmp_path):
    path = tmp_path / "sizes.json"
    write(path, [entry("a", "x", 1)])
    write(path, [entry("b", "x", None)])
    sizes: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert [of["size"] for of in sizes["crossover_thresholds"]] == [1, None]
    for content in ('{"a": 1}', '{"crossover_thresholds": [{"size": 1}]}', "x"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(BadFileError, match="name a file that crossover two --threshold"):
            write(path, [entry("a", "x", 1)])
        assert path.read_text(encoding="utf-8") == content
