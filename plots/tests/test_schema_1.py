# SPDX-License-Identifier: Apache-2.0
"""Files of schema version 1, whose repetitions repeat the facts of their row, stay readable."""

from __future__ import annotations

import numpy as np
import pytest

from plots.file import loading, rows
from plots.tests import synthetic
from plots.tests.row_cases import NAME, OPERATIONS, fault
from plots.tests.row_cases import PROBES as NEEDED


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
    assert row.warnings == ("noisy",)
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
    assert row.index == 1 and len(row.samples) == 0 and row.counters == {}


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


PROBES = {  # configuration: counters that it needs, here with what follows from them
    name: (counter, f"{counter}_per_second") if counter else () for name, counter in NEEDED.items()
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


def test_a_time_that_nothing_takes_is_refused(small, write):
    small["benchmarks"][1]["real_time"] = 1e-300
    assert 'field "real_time" of repetition 2 is 1e-303 s but no' in fault(write(small))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 10**400, 1e41])
def test_numbers_that_are_not_finite_name_their_place(small, write, value):
    small["benchmarks"][1]["real_time"] = value
    sentence = fault(write(small))
    assert f'benchmarks[1] ("{NAME}"): field "real_time"' in sentence
    assert "finite" in sentence


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
    assert "benchmarks[1]" in sentence and expected in sentence


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
    assert "benchmarks[2]" in sentence and f'field "{field}": is missing' in sentence


def test_an_entry_that_is_no_object(small, write):
    small["benchmarks"].append(3)
    assert "benchmarks[3]: is 3 but must be an object" in fault(write(small))


def test_duplicate_rows(small, write):
    small["benchmarks"].append(small["benchmarks"][0])
    sentence = fault(write(small))
    assert "benchmarks[3]" in sentence and "repeats that of benchmarks[0]" in sentence


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
    assert "benchmarks[2]" in fault(write(small))


def test_a_result_beyond_its_tolerance(small, write):
    small["benchmarks"][0]["verification"] = {
        **small["benchmarks"][0]["verification"],
        "relative_error": 0.5,
    }
    assert "verification.relative_error" in fault(write(small))


def test_a_counter_that_contradicts_the_time(small, write):
    small["benchmarks"][0]["seconds_per_epoch"] = 0.5
    assert '"seconds_per_epoch" is 0.5 but real_time of repetition 1 is 0.03 s' in fault(
        write(small)
    )


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
    assert (
        '"seconds" is 0.5 but real_time of repetition 1 is 0.0003 s' in sentence
        and "one operation" in sentence
    )
