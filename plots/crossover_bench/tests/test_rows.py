# SPDX-License-Identifier: Apache-2.0
"""Loading: what a good file gives, and the sentence that each kind of bad file gets."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from crossover_bench.answers.doubts import section as doubts
from crossover_bench.files import loading, rows
from crossover_bench.files.families import FAMILIES, OF_NETWORKS, PROBES
from crossover_bench.files.refusal import BadFileError
from crossover_bench.show.page.section import Context
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_whole import whole as every_kind

NAME = "Epoch/model:disc-3/batch:100/precision:f32/device:cpu/execution:eager/cpu_threads:2"
# What a row of each family says of itself, and its configuration; of networks whatever the family.
COUNTED = {
    "Epoch": "rows steps loss_first_epoch",
    "Minibatch": "loss_first_step",
    "Forward": "",
    "Gemm": "count flops bytes verified_entries verification",
    "Layer": "count flops bytes verified_entries verification",
    "Copy": "count bytes verification",
    "Collective": "count bytes ranks verification",
    "fma": "count flops verification",
    "triad": "count bytes verification",
    "launch": "count",
    "fork-join": "count",
}
CONFIGURED = {
    "Gemm": "m n k transpose cache precision device execution",
    "Layer": "width batch activation pass form precision device execution",
    "Copy": "direction mode device",
    "Collective": "op bytes device",
    "Peak": "quantity device",
}


def fault(path: Path) -> str:
    """The sentence about the bad file `path`, checked for what every such sentence has."""
    with pytest.raises(BadFileError) as caught:
        loading.load_file(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence and ";" in sentence
    return sentence


@pytest.fixture
def small(small):
    return synthetic.as_file(small)


def test_reads_every_part_of_a_file(small, read):
    small["rows"][0]["warnings"] = ["noisy"]
    file = read(small)
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
    assert row.counters["samples_per_second"] == pytest.approx(1000 / 0.020)
    assert row.counters["first_call_seconds"] == 0.05
    assert "real_time" not in row.counters and "iterations" not in row.counters
    assert row.warnings == ("noisy",)
    assert row.verification is not None and row.verification.steps == 10
    assert row.failure is None


@pytest.mark.parametrize(("unit", "seconds"), [("ns", 1e-9), ("us", 1e-6), ("s", 1.0)])
def test_samples_are_seconds_in_every_time_unit(small, read, unit, seconds):
    for entry in small["benchmarks"]:
        entry.update(time_unit=unit, real_time=5)
    np.testing.assert_allclose(read(small).rows[0].samples, 5 * seconds)


@pytest.mark.parametrize(
    ("failure", "kept"),
    [
        (rows.Failure("skipped", "no memory"), 0),
        (rows.Failure("failed", "lost the device"), 2),  # in the third repetition
        (rows.Failure("failed", "it differs", seconds=2e-3, relative_error=0.5, tolerance=1e-5), 0),
    ],
)
def test_a_failed_row_has_what_was_measured_of_it(small, read, failure, kept):
    small["rows"][0].update(outcome=failure.outcome, error_message=failure.message)
    if failure.seconds:
        names = ("seconds", "relative_error", "tolerance")
        small["rows"][0]["not_verified"] = {name: getattr(failure, name) for name in names}
    del small["benchmarks"][kept:]
    file = read(small)
    (row,) = file.rows
    assert row.failure == failure and len(row.samples) == kept and row.counters == {}
    (block,) = doubts.build([file], Context()).blocks
    wrong = [table for table in block.tables if table.title.startswith("Times of wrong")]
    texts = [[cell.text for cell in line] for table in wrong for line in table.lines]
    assert texts == ([[row.name, "2.00 ms", "0.500", "0.0000100"]] if failure.seconds else [])


def test_other_families_need_other_counters(small, read):
    configuration = {"family": "Other", "bytes": "4096", "device": "cpu"}
    name = synthetic.row_name(configuration)
    small["rows"][0].update(name=name, configuration=configuration)
    for key in ("params", "verification", "loss_first_epoch"):
        del small["rows"][0][key]
    for entry in small["benchmarks"]:
        entry.update(name=name, bytes_per_second=1e9)
    (row,) = read(small).rows
    assert row.family == "Other" and row.verification is None
    assert row.counters["bytes_per_second"] == 1e9


def test_what_varies_stands_in_each_repetition_and_what_follows_in_none(small, read):
    for entry, product in zip(small["benchmarks"], (0.021, 0.004, 0.015), strict=True):
        entry["seconds_product"] = product
    (row,) = read(small).rows
    assert row.counters["seconds_product"] == 0.015
    # Of 9, 6 and 5 ms: each repetition has a profile of its own.
    assert row.counters["seconds_unattributed"] == pytest.approx(0.006)


@pytest.mark.parametrize("threads", [1, 16])
@pytest.mark.parametrize(
    ("counters", "disturbed"),
    [
        ({"cpu_wait": (0.3, 0.3, 0.01)}, 2),
        ({"cpu_wait": (0.3, 0.01, 0.01)}, 0),
        ({"cpu_wait": (0.3,)}, 3),  # the same in all
        ({}, 0),
        ({"cpu_wait": (0.0,), "cpu_steal": (0.0, 0.3, 0.3)}, 2),
        ({"cpu_wait": (0.0,), "cpu_steal": (0.3, 0.0, 0.0)}, 0),
        ({"cpu_wait": (0.0, 0.03, 0.03), "cpu_steal": (0.03,)}, 2),
    ],
)
def test_a_row_is_disturbed_where_most_repetitions_waited(
    small, read, counters, disturbed, threads
):
    """In the mean over its threads, and what a hypervisor took over all processors."""
    small["rows"][0].update(threads_used=threads)
    small["context"]["crossover"]["machine"]["cpu"]["threads"] = threads
    counters = {
        counter: [threads * share for share in shares] for counter, shares in counters.items()
    }
    for counter, shares in counters.items():
        for entry, share in zip(small["benchmarks"], shares, strict=False):
            entry[counter] = share
    (row,) = read(small).rows
    warning = f"other programs used the processors in {disturbed} of 3 repetitions"
    assert row.is_disturbed is bool(disturbed)
    assert (warning in row.warnings) is bool(disturbed)


def test_times_that_cast_doubt_on_themselves_have_flags_whatever_bench_said(small, read):
    """Spreads above 25 %, of five repetitions or more, and steal above 1 % of a processor."""
    first = small["benchmarks"][0]
    times, stolen = (1.0, 1.3, 1.1, 1.1, 1.1), (0.0, 0.02, 0.5, 0.01, 0.0)
    small["benchmarks"] = [
        {**first, "real_time": first["real_time"] * time, "cpu_steal": share}
        for time, share in zip(times, stolen, strict=True)
    ]
    row = small["rows"][0]
    row.update(repetitions=5, warnings=["its slowest repetition took 30 % longer than its fastest"])
    flags = *row["warnings"], "a hypervisor took up to 50 % of a processor in 2 of 5 repetitions"
    assert read(small).rows[0].warnings == flags
    small["benchmarks"] = [{**first, "cpu_steal": 0.01} for _ in times]
    row.pop("warnings")
    assert read(small).rows[0].warnings == ()


@pytest.fixture
def whole():
    """A valid file with a row of each family and device, and of each ceiling."""
    return synthetic.as_file(every_kind())


def needed(row):
    """The fields without which `row` is refused, and those of its configuration."""
    configuration = row["configuration"]
    counted = COUNTED[configuration.get("quantity", configuration["family"])].split()
    if configuration["family"] not in OF_NETWORKS:
        return counted, CONFIGURED[configuration["family"]].split()
    on_cpu = ["cpu_threads"] if configuration["device"] == "cpu" else []
    counted += ["params", "batch", "flops", "verification", *on_cpu]
    return counted, ["model", "batch", "precision", "device", "execution", *(on_cpu or ["data"])]


@pytest.mark.parametrize("family", [*FAMILIES, *PROBES])
def test_each_family_needs_its_fields(whole, write, family):
    rows_of = [row for row in whole["rows"] if row["configuration"]["family"] == family]
    for row in (row for row in rows_of if "outcome" not in row):
        whole["rows"] = [row]
        whole["benchmarks"] = []
        for holder, fields, place in zip(
            (row, row["configuration"]), needed(row), ("", "configuration."), strict=True
        ):
            for field in fields:
                kept = holder.pop(field)
                assert f'field "{place}{field}": is missing' in fault(write(whole))
                holder[field] = kept


def test_rates_follow_from_what_is_counted(whole, read):
    counted = [row for row in read(whole).rows if "count" in row.counters]
    assert {row.family for row in counted} == {"Gemm", "Layer", *PROBES}
    for row in counted:
        seconds = row.median / row.counters["count"]
        assert row.counters["seconds"] == pytest.approx(seconds)
        # The work of an operation is that of one, the work of a probe that of an iteration.
        timed = row.median if row.family in PROBES else seconds
        for counter in {"flops", "bytes"} & row.counters.keys():
            rate = row.counters[f"{counter}_per_second"]
            assert rate == pytest.approx(row.counters[counter] / timed)
        assert row.verification and row.verification.steps is None
        assert (row.verification.entries, row.verification.entries_of) == (1, 1)


def test_fields_that_nobody_knows_and_a_byte_order_mark_are_allowed(small, tmp_path):
    small["context"]["crossover"]["machine"]["colour"] = "beige"
    small["rows"][0]["notes"] = small["benchmarks"][0]["notes"] = {"a": [1, 2]}
    small["rows"][0]["seconds_per_epoch"] = [0.02]  # a time that is no number is no counter
    path = tmp_path / "file.json"
    path.write_text(json.dumps(small), encoding="utf-8-sig")
    (row,) = loading.load_file(path).rows
    assert row.counters["seconds_per_epoch"] == pytest.approx(0.020)


def test_a_row_of_another_network_than_the_files_is_refused(small, write, read):
    model = small["rows"][0]["configuration"]["model"]
    small["context"]["crossover"]["network_fingerprints"] = {model: "a" * 16}
    assert len(read(small).rows) == 1  # of a file that does not say it
    small["rows"][0]["network"] = "a" * 16
    assert len(read(small).rows) == 1
    small["rows"][0]["network"] = "b" * 16
    assert f'another network than the file\'s "{model}"' in fault(write(small))


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
        (b'{"context": "a \\ud800"}', "holds \\ud800, half of a character"),
        (b'{"name": "x", "params": 1, "params": 2}', 'field "params" of row "x" occurs twice'),
        (
            b'{"context": {"crossover": {"schema_version": 2, "a": 1e999}}, "benchmarks": []}',
            'field "context.crossover.a": is infinite',
        ),
    ],
)
def test_files_that_are_something_else(tmp_path, content, expected):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    assert expected in fault(path)


def test_no_file_and_every_way_to_cut_one_off_is_a_sentence(small, tmp_path):
    text = json.dumps(small)
    path = tmp_path / "file.json"
    assert "no such file" in fault(path) and "not a regular file" in fault(tmp_path)
    for end in range(0, len(text), 97):
        path.write_text(text[:end])
        fault(path)


JUNK = (None, True, -1, 0, 1e39, "x", "", [], {}, [{}], {"name": 1})


def places(value, place=()):
    """Where there is anything in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*place, key)
        if isinstance(item, dict | list):
            yield from places(item, (*place, key))


@pytest.mark.slow
def test_whatever_stands_in_a_field_is_read_or_a_sentence(small, tmp_path):
    path = tmp_path / "file.json"
    small["benchmarks"][0]["seconds_product"] = 0.01
    small["rows"][0] |= {"warnings": ["x"], "minimum_work": {"flops": 1.0}, "label": "x"}
    text = json.dumps(small)
    faults = 0
    for place in places(small):
        for junk in (*JUNK, "missing"):
            mutated = json.loads(text)
            holder = mutated
            for key in place[:-1]:
                holder = holder[key]
            if junk == "missing":
                del holder[place[-1]]
            else:
                holder[place[-1]] = junk
            path.write_text(json.dumps(mutated), encoding="utf-8")
            try:
                loading.load_file(path)
            except loading.BadFileError as error:
                faults += 1
                assert str(error).startswith(str(path)) and "\n" not in str(error)
    assert faults > 500


def test_a_number_in_a_configuration_is_a_number(small, write):
    row = small["rows"][0]
    row["configuration"]["batch"] = "all"
    row["name"] = synthetic.row_name(row["configuration"])
    for entry in small["benchmarks"]:
        entry["name"] = row["name"]
    assert 'field "configuration.batch" is the text "all" but must be a whole' in fault(
        write(small)
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda told: told["peers"].pop("command"), "is of a command, and the file lacks"),
        (lambda told: told["peers"]["command"].update(steps=[9, 9]), "one element twice"),
        (lambda told: told["peers"]["command"].update(steps=[1, 2, 3]), "at most 2 elements"),
        (lambda told: told["networks"][0].update(training="x"), "but must be an object"),
        (lambda told: told["networks"][0]["training"].update(rows="many"), "a whole number"),
        (lambda told: told.update(odd=json.loads("[" * 70 + "]" * 70)), "nested too deeply"),
    ],
)
def test_what_commands_would_fail_on_is_refused(whole, write, change, expected):
    change(whole["context"]["crossover"])
    assert expected in fault(write(whole))


def test_passes_say_how_long_the_first_took(whole, write):
    for entry in whole["benchmarks"]:
        if entry["name"].startswith("Forward/"):
            entry.pop("first_call_seconds", None)
    assert 'field "first_call_seconds": is missing in its repetitions' in fault(write(whole))


@pytest.mark.parametrize("field", ["iterations", "first_call_seconds"])
def test_what_is_measured_once_stands_in_one_repetition(small, write, read, field):
    small["benchmarks"][2][field] = small["benchmarks"][0].pop(field)
    read(small)
    del small["benchmarks"][2][field]
    sentence = fault(write(small))
    assert f'row "{NAME}": field "{field}": is missing in its repetitions' in sentence


def test_two_rows_of_one_name(small, write):
    small["rows"].append(small["rows"][0])
    sentence = fault(write(small))
    assert f'rows[1] ("{NAME}")' in sentence and "that of another row as well" in sentence


def test_a_folder_stands_for_its_result_files(small, write, tmp_path):
    for name in ("b/2.json", "a/1.json", ".hidden/x.json", "a/.x.json"):
        write(small, name)
    (tmp_path / "a" / "notes.txt").write_text("")
    files, problems = loading.find_files([tmp_path, tmp_path / "a" / "1.json"])
    assert [file.relative_to(tmp_path).as_posix() for file in files] == ["a/1.json", "b/2.json"]
    assert problems == []
    (tmp_path / "b" / "bad.json").write_text("{")  # the good ones are loaded beside it
    files, problems = loading.load_files([tmp_path])
    assert [file.path.name for file in files] == ["1.json", "2.json"]
    assert len(problems) == 1 and "bad.json" in problems[0]
    (tmp_path / "empty").mkdir()
    assert "no result file" in loading.find_files([tmp_path / "empty"])[1][0]


def test_loading_makes_few_calls_a_sample(tmp_path):
    """Work is counted because a clock depends on the machine: a schema that is compiled for each
    file, or a validator that walks it, makes many times as many calls."""
    entries = []
    for number in range(56):
        configuration = {**synthetic.cpu_configuration("disc-3", 2), "loss": str(number)}
        entries += synthetic.samples(configuration)
    document = synthetic.as_file(synthetic.document(entries))
    path = synthetic.write(tmp_path / "file.json", document)
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


@pytest.mark.slow
def test_the_schema_is_a_valid_one_and_agrees_with_an_independent_validator():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(loading.SCHEMA_PATH.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["$id"] == f"urn:crossover:result-file:{loading.SCHEMA_VERSION}"
    validator = jsonschema.Draft7Validator(schema)
    sweep = synthetic.as_file(synthetic.sweep())
    assert validator.is_valid(sweep)
    del sweep["rows"][0]["params"]
    assert not validator.is_valid(sweep)


def test_the_time_of_an_operation_is_that_of_its_iteration(whole, write):
    entry = next(entry for entry in whole["benchmarks"] if entry["name"].startswith("Gemm"))
    entry["seconds"] = 0.5
    sentence = fault(write(whole))
    assert (
        f'"seconds" is 0.5 but real_time of repetition 1 is {entry["real_time"] / 1e4:g} s'
        in sentence
    )
    assert "one operation" in sentence
