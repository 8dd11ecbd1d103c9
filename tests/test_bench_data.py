# SPDX-License-Identifier: Apache-2.0
"""The rows that `bench` trains on: the user's CSV file, of whose reader data_test.cpp asks more."""

from pathlib import Path

import pytest
from bench_runs import HEART, MLP, SHORT, measure, refused, samples


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,b,label\n", ["no rows of data"]),
        (b"1;2;0\n", ["row 1", "1 column, not 3", "not semicolons"]),
        (b"a,b,label\n1,2,0\n3,x,1\n", ["row 3", "column 2", "'x'"]),
        (b"1,0x10,0\n", ["row 1", "column 2", "'0x10'"]),
        (b"1,2,0\0\n", ["row 1", "column 3"]),
        ("1,2,0\n".encode("utf-16"), ["UTF-16", "UTF-8"]),
    ],
)
def test_refuses_data(tmp_path, content, words):
    data = tmp_path / "data.csv"
    data.write_bytes(content)
    refused(tmp_path, ("--data", str(data), *words), *MLP, f"--data={data}")


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
@pytest.mark.parametrize("widths", ["auto,8,auto", "2,8,auto", "auto,8,2"])
def test_takes_widths_from_data(tmp_path, three, widths):
    document = measure(tmp_path, f"--mlp={widths}", *MLP[1:], f"--data={three}")
    assert {row["name"].split("/")[1] for row in samples(document)} == {"model:mlp-2-8-2"}
    assert document["context"]["crossover"]["configuration"]["data"] == three.name


@pytest.mark.slow
def test_last_batch_may_be_short_and_none_is_larger_than_the_data(tmp_path, three):
    document = measure(tmp_path, *MLP, f"--data={three}", "--batch=1,2,3,1000")
    sizes = [(row["rows"], row["batch"], row["steps"]) for row in document["rows"]]
    assert sizes == [(3, 1, 3), (3, 2, 2), (3, 3, 1)]
    assert [row["configuration"]["batch"] for row in document["rows"]] == ["1", "2", "3"]


@pytest.mark.slow
@pytest.mark.skipif(not HEART.is_file(), reason=f"{HEART} is not there")
def test_real_data(tmp_path):
    flags = ("--model=heart", f"--data={HEART}", "--threads=1", "--family=Epoch")
    for row in samples(measure(tmp_path, *flags, *SHORT)):
        assert (row["params"], row["rows"], row["steps"]) == (1522, 709, 71)
