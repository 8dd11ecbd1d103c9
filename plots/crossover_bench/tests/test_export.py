# SPDX-License-Identifier: Apache-2.0
"""`export`: another reader of Google Benchmark's format sees one point for each row, and
compare.py pairs the rows of two files to three digits."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crossover_bench.answers.export.analysis import exported
from crossover_bench.files.google_benchmark import timings_of
from crossover_bench.files.loading import load_file
from crossover_bench.tests.synthetic import as_file, sweep

COMPARE = Path("/usr/share/benchmark/compare.py")  # of libbenchmark-tools
STANDARD = {
    *("run_name", "repetitions", "repetition_index", "threads"),
    *("family_index", "per_family_instance_index"),
}


@pytest.fixture
def measured(tmp_path):
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(as_file(sweep(gpu=False))), encoding="utf-8")
    return file


def test_each_row_with_a_result_is_one_entry(shell, measured):
    """Its median, which our own reader of other programs' files finds again."""
    given = shell("export", measured)
    rows = [
        row
        for part in ("rows", "copies", "peers", "builds", "commands", "functions")
        for row in getattr(load_file(measured), part)
    ]
    medians = {f"{row.name}/real_time": row.median for row in rows if row.failure is None}
    timings = timings_of(Path("out.json"), given.out)
    assert {timing.name: timing.seconds[0] for timing in timings} == pytest.approx(
        medians, rel=1e-5
    )
    assert len(timings) == len(medians) < len(rows)
    assert f"{len(rows) - len(medians)} of {len(rows)} rows left out" in given.err
    entries = json.loads(given.out)["benchmarks"]
    assert all(entry.keys() >= STANDARD for entry in entries)
    indices = [(entry["family_index"], entry["per_family_instance_index"]) for entry in entries]
    assert len({*indices}) == len(entries)


def test_a_file_without_results_gives_none(shell, measured):
    document = json.loads(measured.read_text(encoding="utf-8"))
    failed = [row for row in document["rows"] if "outcome" in row]
    names = {row["name"] for row in failed}
    document["rows"] = failed
    document["benchmarks"] = [each for each in document["benchmarks"] if each["name"] in names]
    document["context"]["crossover"].pop("parts", None)
    measured.write_text(json.dumps(document), encoding="utf-8")
    given = shell("export", measured, code=2)
    assert given.out == ""
    assert given.err == f"{measured}: no row has a result, so there is no entry\n"


@pytest.mark.skipif(not COMPARE.exists(), reason="libbenchmark-tools is not installed")
def test_compare_py_shows_three_digits_of_each_row(measured, tmp_path):
    """Also of epochs that take microseconds."""
    document = exported(json.loads(measured.read_text(encoding="utf-8")))
    slower = json.loads(json.dumps(document))
    for entry in slower["benchmarks"]:
        entry["real_time"] *= 1.25
    for name, content in (("old", document), ("new", slower)):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    command = [sys.executable, "-B", str(COMPARE), "--no-color", "benchmarks", "old", "new"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if "/" in line}
    for entry in document["benchmarks"]:
        time, _, old, *_ = lines[entry["name"]]
        assert time == "+0.2500"
        assert float(old) == pytest.approx(entry["real_time"], rel=0.005)
        assert re.fullmatch(r"\d{3,}", old)
