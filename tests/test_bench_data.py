# SPDX-License-Identifier: Apache-2.0
"""The rows that `bench` trains on: the user's CSV file."""

from pathlib import Path

import pytest
from bench_runs import HEART, MLP, SHORT, measure, needs_bench, refused, samples

pytestmark = needs_bench

BAD_DATA = {
    "empty": (b"", ["no rows of data"]),
    "header only": (b"a,b,label\n", ["no rows of data"]),
    "ragged": (b"1,2,0\n3,1\n", ["row 2", "2 columns, not 3"]),
    "too wide": (b"1,2,3,0\n", ["row 1", "4 columns, not 3"]),
    "semicolons": (b"1;2;0\n", ["row 1", "1 column, not 3", "not semicolons"]),
    "text": (b"a,b,label\n1,2,0\n3,x,1\n", ["row 3", "column 2", "'x'"]),
    "hexadecimal": (b"1,0x10,0\n", ["row 1", "column 2", "'0x10'"]),
    "empty cell": (b"1,2,0\n,2,1\n", ["row 2", "column 1", "empty"]),
    "nan": (b"a,b,label\n1,nan,0\n", ["row 2", "column 2", "not finite"]),
    "inf": (b"1,2,0\n-inf,1,0\n", ["row 2", "column 1", "not finite"]),
    "beyond float": (b"1,2,0\n1e39,1,0\n", ["row 2", "column 1", "single precision"]),
    "label too large": (b"1,2,0\n1,1,2\n", ["row 2", "column 3", "'2'", "0 to 1"]),
    "label negative": (b"1,2,-1\n", ["row 1", "column 3", "0 to 1"]),
    "label fractional": (b"1,2,0.5\n", ["row 1", "column 3", "'0.5'", "whole number"]),
    "blank in between": (b"1,2,0\n\n1,2,1\n", ["row 2", "blank"]),
    "UTF-16": ("1,2,0\n".encode("utf-16"), ["UTF-16", "UTF-8"]),
    "zero byte": (b"1,2,0\0\n", ["row 1", "column 3"]),
}


@pytest.mark.parametrize(("content", "words"), BAD_DATA.values(), ids=BAD_DATA)
def test_refuses_data(tmp_path: Path, content: bytes, words: list[str]) -> None:
    data = tmp_path / "data.csv"
    data.write_bytes(content)
    refused(tmp_path, ("--data", str(data), *words), *MLP, f"--data={data}")


def test_refuses_data_that_is_no_file(tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    refused(tmp_path, (str(missing), "can't be opened"), *MLP, f"--data={missing}")
    refused(tmp_path, (str(tmp_path), "is a directory"), *MLP, f"--data={tmp_path}")


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three rows of two features."""
    path = tmp_path / "three.csv"
    path.write_text("1,2,0\n3,4,1\n5,6,1\n", "utf-8")
    return path


def test_refuses_data_of_another_width(tmp_path: Path, three: Path) -> None:
    words = ("--data", "row 1", "3 columns, not 30", "heart reads 29 features", "--mlp=2,32,2")
    refused(tmp_path, words, "--model=heart", f"--data={three}")


@pytest.mark.slow
@pytest.mark.parametrize("widths", ["auto,8,auto", "2,8,auto", "auto,8,2"])
def test_takes_widths_from_data(tmp_path: Path, three: Path, widths: str) -> None:
    document = measure(tmp_path, f"--mlp={widths}", *MLP[1:], f"--data={three}")
    assert {row["name"].split("/")[1] for row in samples(document)} == {"model:mlp-2-8-2"}


@pytest.mark.parametrize(
    ("widths", "words"),
    [
        ("auto,8,2", ("--mlp", "add --data")),
        ("8,auto,2", ("--mlp", "'auto'")),
        ("auto", ("--mlp", "'auto'")),
    ],
)
def test_refuses_auto(tmp_path: Path, widths: str, words: tuple[str, ...]) -> None:
    refused(tmp_path, words, f"--mlp={widths}", *MLP[1:])


def test_refuses_rows_together_with_data(tmp_path: Path, three: Path) -> None:
    refused(tmp_path, ("--rows", "--data"), *MLP, f"--data={three}", "--rows=5")


GOOD_DATA = {
    "header": b"a,b,label\n1,2,0\n3,4,1\n5,6,1\n",
    "no header": b"1,2,0\n3,4,1\n5,6,1\n",
    "CRLF": b"1,2,0\r\n3,4,1\r\n5,6,1\r\n",
    "byte-order mark": b"\xef\xbb\xbf1,2,0\n3,4,1\n5,6,1\n",
    "byte-order mark and header": b"\xef\xbb\xbfa,b,label\r\n1,2,0\r\n3,4,1\r\n5,6,1\r\n",
    "blank lines at the end": b"1,2,0\n3,4,1\n5,6,1\n\n  \n\r\n",
    "no newline at the end": b"1,2,0\n3,4,1\n5,6,1",
    "spaces, quotes, signs": b' 1 ,"2",0\n+3,4e0,1.0\n5,-6,1\n',
}


@pytest.mark.slow
@pytest.mark.parametrize("content", GOOD_DATA.values(), ids=GOOD_DATA)
def test_reads_data(tmp_path: Path, content: bytes) -> None:
    data = tmp_path / "data.csv"
    data.write_bytes(content)
    document = measure(tmp_path, *MLP, f"--data={data}")
    assert {row["rows"] for row in samples(document)} == {3}
    assert document["context"]["crossover"]["configuration"]["data"] == data.name


@pytest.mark.slow
def test_reads_a_number_below_the_smallest_double(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("1e-400,2,0\n", "utf-8")
    measure(tmp_path, *MLP, f"--data={data}")


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "steps"), [(1, 3), (2, 2), (3, 1), (1000, 1)])
def test_last_batch_may_be_short_and_none_is_larger_than_the_data(
    tmp_path: Path, three: Path, batch: int, steps: int
) -> None:
    document = measure(tmp_path, *MLP, f"--data={three}", f"--batch={batch}")
    for row in samples(document):
        assert (row["rows"], row["batch"], row["steps"]) == (3, min(batch, 3), steps)
        assert row["configuration"]["batch"] == str(min(batch, 3))


@pytest.mark.slow
@pytest.mark.skipif(not HEART.is_file(), reason=f"{HEART} is not there")
def test_real_data(tmp_path: Path) -> None:
    document = measure(
        tmp_path, "--model=heart", f"--data={HEART}", "--threads=1", "--family=Epoch", *SHORT
    )
    for row in samples(document):
        assert (row["params"], row["rows"], row["steps"]) == (1522, 709, 71)
