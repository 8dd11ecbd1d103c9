# SPDX-License-Identifier: Apache-2.0
"""`convert`: what is read from a file stays, what stands in it more than once goes."""

from __future__ import annotations

import dataclasses
import json
from math import isclose
from pathlib import Path

import numpy as np
import pytest

from plots.cli import main
from plots.file import loading
from plots.tests import synthetic, synthetic_machine, synthetic_probes, synthetic_sweep

# Written by bench when its files had schema version 1, but for line breaks.
OLD = Path(__file__).with_name("fixtures") / "schema_1.json"
# Six significant digits: half of the last one, of 1.00000.
ROUNDED = 5.1e-6
PARTS = ("verification", "bound", "minimum_work")


def converted(path):
    """The file `path` in the newest form, in a folder beside it."""
    folder = path.parent / "newest"
    assert main(["convert", str(path), "-o", str(folder)]) == 0
    return folder / path.name


def assert_same_rows(old, new):
    assert len(old.rows) == len(new.rows) > 0
    for before, after in zip(old.rows, new.rows, strict=True):
        np.testing.assert_allclose(after.samples, before.samples, rtol=ROUNDED)
        assert before.counters.keys() == after.counters.keys()
        epoch = after.counters.get("seconds_per_epoch", 0.0)
        for name, value in before.counters.items():
            # A difference of rounded times is as exact as they are.
            slack = 2 * ROUNDED * epoch if name == "seconds_unattributed" else 0.0
            assert isclose(after.counters[name], value, rel_tol=2 * ROUNDED, abs_tol=slack), name
        for part in PARTS:
            assert_alike(getattr(before, part), getattr(after, part))
        left_out = dict.fromkeys((*PARTS, "samples", "counters", "axes"))
        assert dataclasses.replace(before, **left_out) == dataclasses.replace(after, **left_out)


def assert_alike(before, after):
    """Equal but for digits."""
    assert type(before) is type(after)
    for field in dataclasses.fields(before) if before is not None else ():
        expected, value = getattr(before, field.name), getattr(after, field.name)
        is_number = type(expected) is float
        assert isclose(value, expected, rel_tol=ROUNDED) if is_number else value == expected


FILES = {
    "sweep": synthetic.sweep,
    "machine": synthetic_machine.machine,
    "families": synthetic_probes.everything,
    "wide sweep": lambda: synthetic_sweep.wide_sweep((100,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FILES, "old"])
def test_a_converted_file_has_the_same_rows(write, tmp_path, name):
    path = tmp_path / "old.json"
    path.write_bytes(OLD.read_bytes()) if name == "old" else write(FILES[name](), "old.json")
    newest = converted(path)
    old, new = loading.load_file(path), loading.load_file(newest)
    assert_same_rows(old, new)
    assert (old.date, old.machine, old.software, old.run) == (
        new.date,
        new.machine,
        new.software,
        new.run,
    )
    assert newest.stat().st_size < path.stat().st_size / 2


def test_every_number_of_an_old_file_is_read_from_the_new_one(tmp_path):
    """By the old file's text alone: medians of all that its entries state."""
    path = tmp_path / "old.json"
    path.write_bytes(OLD.read_bytes())
    stated: dict[str, dict[str, list[float]]] = {}
    for entry in json.loads(OLD.read_text())["benchmarks"]:
        if entry["run_type"] == "iteration":
            for field, value in entry.items():
                if type(value) in (int, float):
                    stated.setdefault(entry["name"], {}).setdefault(field, []).append(value)
    formal = {"family_index", "per_family_instance_index", "repetitions", "repetition_index"}
    formal |= {"threads", "iterations", "real_time", "cpu_time"}
    rows = {row.name: row for row in loading.load_file(converted(path)).rows}
    assert rows.keys() == stated.keys()
    for name, fields in stated.items():
        counters = rows[name].counters
        renamed = {
            field.replace("unexplained", "unattributed"): values
            for field, values in fields.items()
            if field not in formal
        }
        assert counters.keys() == renamed.keys()
        for field, values in renamed.items():
            slack = 2 * ROUNDED * counters.get("seconds_per_epoch", 0.0)
            expected = pytest.approx(np.median(values), rel=2 * ROUNDED, abs=slack)
            assert counters[field] == expected, (name, field)


def test_facts_stand_once_and_an_entry_on_a_line(tmp_path):
    path = tmp_path / "old.json"
    path.write_bytes(OLD.read_bytes())
    text = converted(path).read_text(encoding="utf-8")
    document = json.loads(text)
    lines = text.splitlines()
    names = {entry["name"] for entry in json.loads(OLD.read_text())["benchmarks"]}
    for place in ("rows", "benchmarks"):
        first = lines.index(f' "{place}": [') + 1
        own = [json.loads(line.rstrip(",")) for line in lines[first : first + len(document[place])]]
        assert own == document[place]
    measured = dict.fromkeys(entry["name"] for entry in document["benchmarks"])
    assert [row["name"] for row in document["rows"]] == list(measured)
    assert not any("second" in field for row in document["rows"] for field in row)
    needed = {"name", "run_type", "real_time", "cpu_time", "time_unit"}
    for entry in document["benchmarks"]:
        assert needed <= entry.keys() and entry["name"] in names
        times = {field for field in entry if "seconds" in field or field == "iterations"}
        assert entry.keys() <= needed | times
        assert not any("_per_" in field or field == "seconds" for field in times)
        assert float(f"{entry['real_time']:.6g}") == entry["real_time"]


def test_the_worst_verification_and_every_warning_of_a_row_are_kept(small, write):
    errors, flags = (1e-8, 9e-6, 2e-8), (["slow"], [], ["slow", "hot"])
    for entry, error, own in zip(small["benchmarks"], errors, flags, strict=True):
        entry["verification"] = {**entry["verification"], "relative_error": error}
        entry["quality"] = own
    (row,) = loading.load_file(converted(write(small))).rows
    assert row.verification is not None and row.verification.relative_error == 9e-6
    assert row.warnings == ("slow", "hot")


def test_a_failed_repetition_and_a_false_rate_stay(small, write):
    small["benchmarks"][0]["flops_per_second"] = 7.0
    failed = synthetic.failure(synthetic.cpu_configuration("disc-3", 2), "lost the device")
    for last in (small["benchmarks"][2], {**failed, "repetition_index": 2}):
        small["benchmarks"][2] = last
        path = write(small)
        assert_same_rows(loading.load_file(path), loading.load_file(converted(path)))


def test_converting_again_changes_nothing(small, write, capsys):
    path = write(small)
    assert main(["convert", str(path), "--in-place"]) == 0
    text = path.read_bytes()
    assert "schema version 1 with" in capsys.readouterr().out
    assert main(["convert", str(path), "--in-place"]) == 0
    assert "schema version 2 already" in capsys.readouterr().out
    assert path.read_bytes() == text
    assert converted(path).read_bytes() == text
    assert [file.name for file in path.parent.iterdir() if file.is_file()] == ["file.json"]


def test_a_link_keeps_pointing_to_the_file(small, write, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(write(small))
    assert main(["convert", str(link), "--in-place"]) == 0
    assert link.is_symlink() and loading.version_of(loading.read(link)) == 2


def test_files_of_a_folder_keep_their_places(small, write, tmp_path):
    write(small, "in/a/1.json")
    write(small, "in/b/1.json")
    assert main(["convert", str(tmp_path / "in"), "-o", str(tmp_path / "out")]) == 0
    out = [path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.glob("out/**/*.json")]
    assert sorted(out) == ["a/1.json", "b/1.json"]


def test_two_files_of_one_name_do_not_replace_each_other(small, write, tmp_path, capsys):
    paths = [str(write(small, f"{folder}/1.json")) for folder in "ab"]
    assert main(["convert", *paths, "-o", str(tmp_path / "out")]) == 2
    assert "would have the same name" in capsys.readouterr().err


def test_a_bad_file_stays_and_the_others_are_converted(small, write, capsys):
    good = write(small, "good.json")
    del small["benchmarks"][1]["params"]
    bad = write(small, "bad.json")
    before = bad.read_bytes()
    assert main(["convert", str(bad.parent), "--in-place"]) == 2
    assert 'bad.json: benchmarks[1] ("Epoch/' in capsys.readouterr().err
    assert bad.read_bytes() == before
    assert loading.version_of(loading.read(good)) == 2


def test_a_fact_that_varies_is_refused(small, write, capsys):
    small["benchmarks"][1]["params"] = 71
    path = write(small)
    before = path.read_bytes()
    for command in (["validate", str(path)], ["convert", str(path), "--in-place"]):
        assert main(command) == 2
        assert '"params": is missing' in capsys.readouterr().err
    assert path.read_bytes() == before


def test_an_output_that_cannot_be_written_is_a_sentence(small, write, tmp_path, capsys):
    path = write(small)
    assert main(["convert", str(path), "-o", str(path)]) == 2
    sentence = capsys.readouterr().err
    assert sentence.count("\n") == 1 and "was not converted; choose another folder" in sentence
    assert [file.name for file in tmp_path.iterdir()] == ["file.json"]


@pytest.mark.parametrize("where", [[], ["-o", ""], ["-o", "x", "--in-place"]])
def test_where_to_write_must_be_clear(small, write, capsys, where):
    with pytest.raises(SystemExit) as ended:
        main(["convert", str(write(small)), *where])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_lone_surrogate_survives(small, write):
    small["context"]["crossover"]["machine"]["os"] = "\ud800"
    path = converted(write(small))
    assert loading.load_file(path).machine.os == "\ud800"
