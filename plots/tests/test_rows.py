# SPDX-License-Identifier: Apache-2.0
"""Loading: what a good file gives, and the sentence that each kind of bad file gets."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from plots import loading, rows
from plots.tests import synthetic

NAME = "Epoch/model:disc-3/batch:100/precision:f32/device:cpu/execution:eager/cpu_threads:2"


def fault(path: Path) -> str:
    """The sentence about the bad file `path`, checked for what every such sentence has."""
    with pytest.raises(loading.BadFileError) as caught:
        loading.load_file(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence and ";" in sentence
    return sentence


def test_reads_every_part_of_a_file(small, write):
    small["benchmarks"][1]["quality"] = ["noisy"]
    small["benchmarks"].append(synthetic.aggregate(small["benchmarks"]))
    file = loading.load_file(write(small))
    assert file.complete
    assert file.machine.id == "synthetic machine"
    assert file.machine.gpu is None
    assert file.machine.cpu.governor is None
    assert file.run.command == ("bench", "--sweep=default")
    (row,) = file.rows
    assert row.name == NAME
    assert row.configuration["cpu_threads"] == "2"
    np.testing.assert_allclose(row.samples, [0.030, 0.010, 0.020])
    assert row.median == pytest.approx(0.020)
    assert (row.minimum, row.maximum) == pytest.approx((0.010, 0.030))
    assert row.counters["params"] == 70
    assert row.counters["seconds_per_epoch"] == pytest.approx(0.020)
    assert "real_time" not in row.counters and "threads" not in row.counters
    assert row.quality == ("noisy",)
    assert row.verification is not None and row.verification.steps == 10
    assert row.failure is None


@pytest.mark.parametrize(("unit", "seconds"), [("ns", 1e-9), ("us", 1e-6), ("s", 1.0)])
def test_samples_are_seconds_in_every_time_unit(small, write, unit, seconds):
    for entry in small["benchmarks"]:
        entry.update(time_unit=unit, real_time=5, seconds_per_epoch=5 * seconds)
    np.testing.assert_allclose(loading.load_file(write(small)).rows[0].samples, 5 * seconds)


def test_a_failed_row_needs_no_times(small, write):
    configuration = synthetic.cpu_configuration("disc-4", 2)
    small["benchmarks"].append(synthetic.failure(configuration, "no memory", "skipped"))
    row = loading.load_file(write(small)).rows[1]
    assert row.failure == rows.Failure("skipped", "no memory")
    assert row.index == 3 and len(row.samples) == 0 and row.counters == {}


def test_a_row_with_one_failed_repetition_has_failed(small, write):
    failed = synthetic.failure(synthetic.cpu_configuration("disc-3", 2), "lost the device")
    small["benchmarks"][2] = {**failed, "repetition_index": 2}
    row = loading.load_file(write(small)).rows[0]
    assert row.failure == rows.Failure("failed", "lost the device")
    assert len(row.samples) == 2


def test_other_families_need_other_counters(small, write):
    for entry in small["benchmarks"]:
        name = "Other/bytes:4096/device:cpu"
        entry.update(name=name, run_name=name, bytes_per_second=1e9)
        entry["configuration"] = {"family": "Other", "bytes": "4096", "device": "cpu"}
        for key in ("params", "seconds_per_epoch", "verification", "loss_first_epoch"):
            del entry[key]
    (row,) = loading.load_file(write(small)).rows
    assert row.family == "Other" and row.verification is None
    assert row.counters["bytes_per_second"] == 1e9


PROBES = {  # configuration: counters that it needs
    "Peak/quantity:fma/precision:f32/device:cpu/cpu_threads:2": ("flops", "flops_per_second"),
    "Peak/quantity:triad/device:cuda": ("bytes", "bytes_per_second"),
    "Peak/quantity:copy/direction:h2d/device:cuda": ("bytes", "bytes_per_second"),
    "Peak/quantity:launch/device:cuda": (),
    "Copy/direction:h2d/bytes:4096/device:cuda/memory:pinned/mode:async": (
        "bytes",
        "bytes_per_second",
    ),
    "Copy/direction:h2h/model:heart/batch:10/device:cpu/memory:pageable/mode:sync/cpu_threads:1": (
        "bytes",
        "bytes_per_second",
    ),
}


def probe_file(small, name):
    """The file `small`, its row turned into a probe's."""
    family, *rest = name.split("/")
    configuration = {"family": family, **dict(part.split(":") for part in rest)}
    for entry in small["benchmarks"]:
        entry.update(name=name, run_name=name, configuration=configuration, count=8, seconds=1e-6)
        entry.update(dict.fromkeys(PROBES[name], 1000000000.0))
        exact = {"reference": "every result", "tolerance": 0, "relative_error": 0}
        if PROBES[name]:
            entry["verification"] = exact
        else:
            del entry["verification"]
        for counter in {"flops", "flops_per_second"} - set(PROBES[name]):
            del entry[counter]
    return small


@pytest.mark.parametrize("name", PROBES)
def test_probes_need_their_counters(small, write, name):
    small = probe_file(small, name)
    (row,) = loading.load_file(write(small)).rows
    assert row.counters["seconds"] == pytest.approx(1e-6)
    assert (row.verification is None) == (PROBES[name] == ())
    required = ["count", "seconds", *PROBES[name]] + ["verification"] * bool(PROBES[name])
    for field in required:
        kept = small["benchmarks"][2].pop(field)
        assert f'field "{field}": is missing' in fault(write(small))
        small["benchmarks"][2][field] = kept


@pytest.mark.parametrize("name", PROBES)
def test_probes_need_their_configuration(small, write, name):
    small = probe_file(small, name)
    configuration = small["benchmarks"][0]["configuration"]
    optional = {"family", "bytes", "batch", "model", "precision", "cpu_threads", "memory"}
    if configuration["family"] == "Peak":
        optional.add("direction")
    for key in configuration.keys() - optional:
        fewer = {k: v for k, v in configuration.items() if k != key}
        for entry in small["benchmarks"]:
            entry.update(
                name=synthetic.row_name(fewer),
                run_name=synthetic.row_name(fewer),
                configuration=fewer,
            )
        assert f'"configuration.{key}": is missing' in fault(write(small))


def test_fields_that_nobody_knows_are_allowed(small, write):
    small["context"]["crossover"]["machine"]["colour"] = "beige"
    small["benchmarks"][0]["notes"] = {"a": [1, 2]}
    assert len(loading.load_file(write(small)).rows) == 1


def test_an_interrupted_run_and_a_byte_order_mark_are_read(small, tmp_path):
    small["context"]["crossover"]["complete"] = False
    path = tmp_path / "file.json"
    path.write_text(json.dumps(small), encoding="utf-8-sig")
    assert not loading.load_file(path).complete


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"hello", "line 1, column 1: is not JSON"),
        (b'{"context": {}', "cut off"),
        (b'{"context": "abc', "cut off"),
        (b"[]", "not in Google Benchmark's format"),
        (b'{"context": {}}', "not in Google Benchmark's format"),
        (b'{"context": {}, "benchmarks": {}}', "not in Google Benchmark's format"),
        (b'{"context": {}, "benchmarks": []}', '"context.crossover": is missing'),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"context": ' + b"1" * 5000 + b"}", "too large"),
    ],
)
def test_files_that_are_something_else(tmp_path, content, expected):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    assert expected in fault(path)


def test_every_way_to_cut_a_file_off_is_a_sentence(small, tmp_path):
    text = json.dumps(small)
    path = tmp_path / "file.json"
    for end in range(0, len(text), 97):
        path.write_text(text[:end])
        fault(path)


def test_missing_file_and_no_file(tmp_path):
    assert "no such file" in fault(tmp_path / "missing.json")
    assert "not a regular file" in fault(tmp_path)


def test_wrong_schema_version(small, write):
    for version in (2, "1", None, True):
        small["context"]["crossover"]["schema_version"] = version
        assert "context.crossover.schema_version" in fault(write(small))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 10**400, 1e41])
def test_numbers_that_are_not_finite_name_their_place(small, write, value):
    small["benchmarks"][1]["real_time"] = value
    sentence = fault(write(small))
    assert f'row benchmarks[1] ("{NAME}"): field "real_time"' in sentence
    assert "finite" in sentence


def test_a_time_that_nothing_takes_is_refused(small, write):
    small["benchmarks"][1]["real_time"] = 1e-300
    assert 'field "real_time" is 1e-303 s but no iteration is shorter' in fault(write(small))


def test_a_number_that_overflows_names_its_place(small, tmp_path):
    path = tmp_path / "file.json"
    path.write_text(
        json.dumps(small).replace('"memory_bytes": 16000000000', '"memory_bytes": 1e999')
    )
    assert 'field "context.crossover.machine.memory_bytes": is infinite' in fault(path)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("real_time", "31", 'field "real_time": is the text "31" but must be a number'),
        ("real_time", None, 'field "real_time": is null but must be a number'),
        ("real_time", True, 'field "real_time": is true but must be a number'),
        ("real_time", 0, 'field "real_time": is 0 but must be greater than 0'),
        ("cpu_time", -1, 'field "cpu_time": is -1 but must be at least 0'),
        ("time_unit", "h", 'is the text "h" but must be one of ns, us, ms, s'),
        ("iterations", 1.5, 'field "iterations": is 1.5 but must be a whole number'),
        ("quality", "noisy", 'field "quality": is the text "noisy" but must be a list'),
        ("quality", [1], 'field "quality.0": is 1 but must be text'),
        ("run_type", "other", "must be one of iteration, aggregate"),
        ("params", -5, 'field "params": is -5 but must be greater than 0'),
        ("configuration", [], 'field "configuration": is a list but must be an object'),
        ("name", "", 'field "name": is the text "" but must not be empty'),
        ("error_occurred", "yes", 'field "error_message": is missing'),
        ("verification", {}, 'field "verification.reference": is missing'),
    ],
)
def test_wrong_values_name_row_and_field(small, write, field, value, expected):
    small["benchmarks"][1][field] = value
    sentence = fault(write(small))
    assert "row benchmarks[1]" in sentence and expected in sentence


@pytest.mark.parametrize(
    "field",
    [
        "name",
        "run_name",
        "run_type",
        "configuration",
        "quality",
        "repetitions",
        "repetition_index",
        "iterations",
        "real_time",
        "cpu_time",
        "time_unit",
        "verification",
        "params",
        "batch",
        "cpu_threads",
        "rows",
        "steps",
        "seconds_per_epoch",
        "samples_per_second",
        "flops",
        "flops_per_second",
        "first_call_seconds",
        "loss_first_epoch",
    ],
)
def test_missing_fields_name_row_and_field(small, write, field):
    del small["benchmarks"][2][field]
    sentence = fault(write(small))
    assert "row benchmarks[2]" in sentence and f'field "{field}": is missing' in sentence


def test_a_gpu_row_needs_no_cpu_threads(write):
    entries = synthetic.samples(synthetic.gpu_configuration("disc-3"))
    assert "cpu_threads" not in entries[0]
    assert loading.load_file(write(synthetic.document(entries))).rows[0].failure is None


def test_an_entry_that_is_no_object(small, write):
    small["benchmarks"].append(3)
    assert "row benchmarks[3]: is 3 but must be an object" in fault(write(small))


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (("date",), "yesterday", 'field "context.date"'),
        (("crossover", "complete"), "yes", 'field "context.crossover.complete"'),
        (("crossover", "machine", "cpu", "cores"), 0, '"context.crossover.machine.cpu.cores"'),
        (("crossover", "machine", "gpu"), {}, '"context.crossover.machine.gpu.name": is missing'),
        (("crossover", "machine", "gpu"), "A100", "must be an object or null"),
        (("crossover", "software", "commit"), "abc", '"context.crossover.software.commit"'),
    ],
)
def test_wrong_context_names_the_field(small, write, place, value, expected):
    fields = small["context"]
    for key in place[:-1]:
        fields = fields[key]
    fields[place[-1]] = value
    assert expected in fault(write(small))


def test_duplicate_rows(small, write):
    small["benchmarks"].append(small["benchmarks"][0])
    sentence = fault(write(small))
    assert "row benchmarks[3]" in sentence and "repeats that of benchmarks[0]" in sentence


def test_a_field_that_occurs_twice(small, tmp_path):
    path = tmp_path / "file.json"
    path.write_text(json.dumps(small).replace('"iterations": 12', '"iterations": 12, "rows": 3', 1))
    sentence = fault(path)
    assert f'field "rows" of row "{NAME}" occurs twice' in sentence


def test_missing_repetitions(small, write):
    del small["benchmarks"][1]
    assert '"repetitions" is 3 but the file has 2' in fault(write(small))


def test_aggregates_alone(small, write):
    small["benchmarks"] = [synthetic.aggregate(small["benchmarks"])]
    assert "no repetitions" in fault(write(small))


def test_a_configuration_that_contradicts_the_name(small, write):
    for entry in small["benchmarks"]:
        entry["configuration"] = {**entry["configuration"], "cpu_threads": "4"}
    assert '"configuration.cpu_threads" is the text "4"' in fault(write(small))
    for entry in small["benchmarks"]:
        entry["configuration"] = {**entry["configuration"], "family": "Other"}
    assert '"configuration.family"' in fault(write(small))


def test_repetitions_that_differ_in_configuration(small, write):
    extended = {**small["benchmarks"][2]["configuration"], "model": "disc-4"}
    small["benchmarks"][2]["configuration"] = extended
    assert "row benchmarks[2]" in fault(write(small))


def test_a_result_beyond_its_tolerance(small, write):
    small["benchmarks"][0]["verification"] = {
        **small["benchmarks"][0]["verification"],
        "relative_error": 0.5,
    }
    assert "verification.relative_error" in fault(write(small))


def test_a_counter_that_contradicts_the_time(small, write):
    small["benchmarks"][0]["seconds_per_epoch"] = 0.5
    assert '"seconds_per_epoch" is 0.5 but real_time is 0.03 s' in fault(write(small))


def test_long_and_hostile_names_stay_short_and_on_one_line(small, write):
    for entry in small["benchmarks"]:
        entry["name"] = "Epoch/\x1b[31m\n" + "x" * 10_000
    sentence = fault(write(small))
    assert len(sentence) < 1000
    assert "\x1b" not in sentence and "\\x1b" in sentence and "(10,012 characters)" in sentence


def test_a_lone_surrogate_can_be_printed(small, write):
    for entry in small["benchmarks"]:
        entry["name"] = "Epoch/\ud800"
    fault(write(small)).encode()


def test_a_folder_stands_for_its_result_files(small, write, tmp_path):
    for name in ("b/2.json", "a/1.json", ".hidden/x.json", "a/.x.json"):
        write(small, name)
    (tmp_path / "a" / "notes.txt").write_text("")
    files, problems = loading.find_files([tmp_path, tmp_path / "a" / "1.json"])
    assert [file.relative_to(tmp_path).as_posix() for file in files] == ["a/1.json", "b/2.json"]
    assert problems == []


def test_a_folder_without_result_files_is_a_problem(tmp_path):
    files, problems = loading.find_files([tmp_path])
    assert files == [] and "no result file" in problems[0]


def test_good_files_are_loaded_beside_bad_ones(small, write, tmp_path):
    write(small, "good.json")
    (tmp_path / "bad.json").write_text("{")
    files, problems = loading.load_files([tmp_path])
    assert [file.path.name for file in files] == ["good.json"]
    assert len(problems) == 1 and "bad.json" in problems[0]


def test_loading_makes_few_calls_a_sample(tmp_path):
    """Work is counted because a clock depends on the machine: a schema that is compiled for each
    file, or a validator that walks it, makes many times as many calls."""
    entries = []
    for number in range(56):
        configuration = {**synthetic.cpu_configuration("disc-3", 2), "loss": str(number)}
        entries += synthetic.samples(configuration)
    path = synthetic.write(tmp_path / "file.json", synthetic.document(entries))
    loading.load_file(path)  # compiles the schema
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        file = loading.load_file(path)
    finally:
        sys.setprofile(None)
    assert len(file.rows) == 56
    assert calls < 450 * len(entries)


def test_the_schema_is_a_valid_one_and_agrees_with_an_independent_validator(small):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(loading.SCHEMA_PATH.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    assert validator.is_valid(small)
    assert validator.is_valid(synthetic.sweep())
    del small["benchmarks"][0]["params"]
    assert not validator.is_valid(small)


OPERATIONS = [
    "Gemm/m:100/n:64/k:32/transpose:nt/precision:f32/cache:warm"
    "/device:cpu/execution:eager/cpu_threads:2",
    "Gemm/m:64/n:32/k:100/transpose:tn/precision:tf32/cache:cold/device:cuda/execution:graph",
    "Layer/width:256/batch:100/activation:relu/pass:backward/form:fused/precision:f32"
    "/device:cpu/execution:eager/cpu_threads:1",
]


def operation_file(small, name):
    """The file `small`, its row turned into that of an operation which an iteration repeats."""
    family, *rest = name.split("/")
    configuration = {"family": family, **dict(part.split(":") for part in rest)}
    for entry in small["benchmarks"]:
        for counter in ("params", "batch", "rows", "steps", "seconds_per_epoch"):
            del entry[counter]
        entry.update(name=name, run_name=name, configuration=configuration, count=100)
        entry.update(seconds=entry["real_time"] / 1e3 / 100, verified_entries=256)
        entry.update(bytes=4e6, bytes_per_second=1e9, flops=1e6, flops_per_second=1e9)
        entry["verification"] = {
            "reference": "float64 product",
            "entries": 256,
            "entries_of": 6400,
            "tolerance": 4e-6,
            "relative_error": 1e-7,
        }
    return small


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_need_their_counters(small, write, name):
    small = operation_file(small, name)
    (row,) = loading.load_file(write(small)).rows
    assert row.verification is not None
    assert (row.verification.entries, row.verification.entries_of) == (256, 6400)
    assert row.verification.steps is None
    for field in ("verification", "count", "seconds", "flops", "bytes", "verified_entries"):
        kept = small["benchmarks"][1].pop(field)
        assert f'field "{field}": is missing' in fault(write(small))
        small["benchmarks"][1][field] = kept


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_need_their_configuration(small, write, name):
    small = operation_file(small, name)
    configuration = small["benchmarks"][0]["configuration"]
    for key in configuration.keys() - {"family", "cpu_threads"}:
        fewer = {k: v for k, v in configuration.items() if k != key}
        small["benchmarks"][0]["configuration"] = fewer
        assert f'"configuration.{key}": is missing' in fault(write(small))


def test_the_time_of_an_operation_is_that_of_its_iteration(small, write):
    small = operation_file(small, OPERATIONS[0])
    small["benchmarks"][0]["seconds"] = 0.5
    sentence = fault(write(small))
    assert '"seconds" is 0.5 but real_time is 0.0003 s' in sentence and "one operation" in sentence
