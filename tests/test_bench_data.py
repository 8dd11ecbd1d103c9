# SPDX-License-Identifier: Apache-2.0
"""The rows that `bench` trains on: the user's CSV file, of whose reader data_test.cpp asks more."""

from pathlib import Path

import pytest
from bench_runs import MLP, measure, refused


def test_what_is_wrong_in_a_file_is_said_with_its_name(tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes(b"a,b,label\n1,2,0\n3,x,1\n")
    words = ("--data", str(data), "row 3", "column 2", "'x'")
    refused(tmp_path, words, *MLP, f"--data={data}")


def test_refuses_data_that_is_no_file(tmp_path):
    missing = tmp_path / "missing.csv"
    refused(tmp_path, (str(missing), "can't be opened"), *MLP, f"--data={missing}")
    refused(tmp_path, (str(tmp_path), "is a directory"), *MLP, f"--data={tmp_path}")


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three rows of two features, below a byte-order mark and a header."""
    path = tmp_path / "three.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b,label\r\n1,2,0\r\n3,4,1\r\n5,6,1\r\n")
    return path


def test_refuses_data_of_another_width(tmp_path, three):
    words = ("--data", "row 1", "3 columns, not 30", "heart reads 29 features", "--mlp=2,32,2")
    refused(tmp_path, words, "--model=heart", f"--data={three}")


@pytest.mark.slow
def test_widths_and_batches_are_those_of_the_data(tmp_path, three):
    flags = ("--mlp=auto,8,auto", *MLP[1:], f"--data={three}", "--batch=1,2,3,1000")
    document = measure(tmp_path, *flags)
    # The last batch may be short, and none is larger than the data.
    sizes = [(row["rows"], row["batch"], row["steps"]) for row in document["rows"]]
    assert sizes == [(3, 1, 3), (3, 2, 2), (3, 3, 1)]
    assert [row["configuration"]["batch"] for row in document["rows"]] == ["1", "2", "3"]
    assert {row["configuration"]["model"] for row in document["rows"]} == {"mlp-2-8-2"}
    assert document["context"]["crossover"]["configuration"]["data"] == three.name


def workload(folder: Path, *arguments: str) -> str:
    (one,) = {row["workload"] for row in measure(folder, *MLP, "--batch=3", *arguments)["rows"]}
    return one


@pytest.mark.slow
def test_flags_and_data_change_the_fingerprint(tmp_path, three):
    """fingerprint_test.cpp asks what else does."""
    variants = ((), ("--lr=0.2",), ("--optimizer=adamw",), ("--rows=3",), (f"--data={three}",))
    found = [workload(tmp_path, *variant) for variant in variants]
    assert len({*found}) == len(variants)
    # Data is known by its rows, not by its file.
    again = tmp_path / "again.csv"
    again.write_text("1.0,2,0\n3,4,1\n5,6,1\n", "utf-8")
    assert workload(tmp_path, f"--data={again}") == found[-1]
