# SPDX-License-Identifier: Apache-2.0
"""The built `bench` as its user meets it: command lines, data, result files, signals."""

import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BENCH = Path(os.environ.get("CROSSOVER_BENCH") or ROOT / "build" / "bench").absolute()
HEART = ROOT / "tests" / "fixtures" / "heart_train.csv"
LIMIT_SECONDS = 60
SHORT = ("--benchmark_min_time=0.001", "--benchmark_repetitions=2")
EPOCHS = ("--family=Epoch", "--cuda=off")
DISC = ("--model=disc-2", "--threads=1", *EPOCHS, *SHORT)
MLP = ("--mlp=2,2", "--threads=1", *EPOCHS, *SHORT)
OLD = b"measured last year"
NAMES = ["disc-" + str(depth) for depth in range(2, 13)] + ["heart", "fcn-r", "fcn-s"]

pytestmark = pytest.mark.skipif(not BENCH.is_file(), reason=f"{BENCH} has not been built")

Document = dict[str, Any]


def environment(**changes: str) -> dict[str, str]:
    """Without the variables by which a caller's shell would change what bench does."""
    prefixes = ("BENCHMARK_", "OMP_", "GOMP_", "DNNL_", "ONEDNN_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}
    return {**kept, **changes}


def bench(
    *arguments: str | Path,
    variables: dict[str, str] | None = None,
    prepare: Callable[[], None] | None = None,
    program: Path = BENCH,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        env=environment(**(variables or {})),
        preexec_fn=prepare,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def strict(path_or_text: Path | str) -> Document:
    """JSON without NaN, Infinity and repeated fields."""

    def unique(pairs: list[tuple[str, Any]]) -> Document:
        assert len(dict(pairs)) == len(pairs), "a field occurs twice"
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = path_or_text.read_text("utf-8") if isinstance(path_or_text, Path) else path_or_text
    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def samples(document: Document) -> list[Document]:
    return [row for row in document["benchmarks"] if row["run_type"] == "iteration"]


def validate(path: Path) -> None:
    command = [sys.executable, "-m", "plots", "validate", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def measure(folder: Path, *arguments: str | Path, code: int = 0) -> Document:
    """A run that writes a valid file."""
    path = folder / "result.json"
    done = bench(*arguments, f"--out={path}")
    assert done.returncode == code, done.stderr
    validate(path)
    return strict(path)


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("bench: ")
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr


def refused(folder: Path, words: tuple[str, ...], *arguments: str | Path) -> None:
    """Exit code 2, one line that has `words`, and the file from before as it was."""
    path = folder / "result.json"
    path.write_bytes(OLD)
    before = sorted(folder.iterdir())
    assert_refused(bench(f"--out={path}", *arguments), *words)
    assert path.read_bytes() == OLD
    assert sorted(folder.iterdir()) == before


# --- command lines that can't be carried out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--modle=disc-2"], ["--modle=disc-2", "did you mean --model?"]),
        (["--thread=1"], ["did you mean --threads?"]),
        (["--nonsense"], ["--nonsense", "--help"]),
        (["disc-2"], ["'disc-2'", "--help"]),
        ([""], ["''", "--help"]),
        (["--model=nope"], ["--model", "'nope'", *NAMES, "--mlp="]),
        (["--model=disc-2,nöpe"], ["'nöpe'"]),
        (["--model=" + "x" * 100_000], ["disc-2", "--mlp="]),
        (["--model="], ["--model=NAME"]),
        (["--model"], ["--model=NAME"]),
        (["--model=disc-2,"], ["''", "disc-2"]),
        (["--machine=1"], ["--machine takes no value"]),
        (["--sweep=none"], ["--sweep=none", "quick|default|full"]),
        (["--mlp=2,2", "--activation=tanh"], ["--activation=tanh", "relu", "sigmoid"]),
        (["--activation=relu"], ["--activation", "--mlp="]),
        (["--mlp=2,2", "--optimizer=adam"], ["--optimizer=adam", "sgd", "adamw"]),
        (["--model=disc-2", "--weight-decay=1"], ["--weight-decay", "--optimizer=adamw"]),
        (["--mlp=5"], ["--mlp", "two widths"]),
        (["--mlp=5,1"], ["--mlp", "classes, at least two"]),
        (["--mlp=5,,2"], ["--mlp: '' is no whole number from 1 to"]),
        (["--data=some.csv"], ["--data", "--model=heart", "--mlp="]),
        ([*DISC, "--benchmark_filter=zzz"], ["--benchmark_filter=zzz", "--benchmark_list_tests"]),
        ([*DISC, "--benchmark_filter=["], ["--benchmark_filter=[", "regular expression"]),
        ([*DISC, "--benchmark_nonsense=1"], ["--benchmark_nonsense=1"]),
        (["--model=a\nb"], ["disc-2"]),
        ([*DISC, "--benchmark_filter=-disc"], ["--benchmark_filter=-disc"]),
        ([*DISC, "--benchmark_repetitions=x"], ["--benchmark_repetitions"]),
        ([*DISC, "--benchmark_repetitions=-1"], ["--benchmark_repetitions"]),
        ([*DISC, "--benchmark_repetitions=0"], ["--benchmark_repetitions"]),
        ([*DISC, "--benchmark_format=xml"], ["--benchmark_format=xml"]),
        ([*DISC, "--benchmark_out_format=csv"], ["--benchmark_out_format=csv"]),
    ],
)
def test_refuses(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    refused(tmp_path, tuple(words), *arguments)


HUGE = "9" * 25


@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("--mlp", ["0,2", "2,0", "-3,2", f"{HUGE},2", "a,2", "2.5,2", "2, 2", "1e3,2"]),
        ("--batch", ["0", "-1", HUGE, "x", "1.5", "1e3", "1,", "0x10", " 1", "+1"]),
        ("--rows", ["0", "-1", HUGE, "x", "1.5"]),
        ("--accumulate", ["0", "-1", HUGE, "x"]),
        ("--threads", ["0", "-1", "5000", HUGE, "x", "1,0"]),
        ("--lr", ["-1", "nan", "inf", "1e999", "x"]),
        ("--weight-decay", ["-1", "nan", "x"]),
        ("--memory-limit", ["-1", "1k", HUGE]),
    ],
)
def test_refuses_sizes(tmp_path: Path, flag: str, values: list[str]) -> None:
    for value in values:
        refused(tmp_path, (flag + ": ", "number from"), "--model=disc-2", f"{flag}={value}")


def test_last_of_a_repeated_flag_counts() -> None:
    done = bench("--model=nope", *DISC, "--benchmark_list_tests")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    assert "/model:disc-2/" in done.stdout


# --- data

BAD_DATA = {
    "empty": (b"", ["no rows of data"]),
    "header only": (b"a,b,label\n", ["no rows of data"]),
    "ragged": (b"1,2,0\n3,1\n", ["row 2", "2 columns, not 3"]),
    "too wide": (b"1,2,3,0\n", ["row 1", "4 columns, not 3"]),
    "semicolons": (b"1;2;0\n", ["row 1", "1 columns, not 3"]),
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
    "UTF-16": ("1,2,0\n".encode("utf-16"), ["row 2"]),
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
    words = ("--data", "row 1", "3 columns, not 30", "heart reads 29 features")
    refused(tmp_path, words, "--model=heart", f"--data={three}")


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


@pytest.mark.parametrize("content", GOOD_DATA.values(), ids=GOOD_DATA)
def test_reads_data(tmp_path: Path, content: bytes) -> None:
    data = tmp_path / "data.csv"
    data.write_bytes(content)
    document = measure(tmp_path, *MLP, f"--data={data}")
    assert {row["rows"] for row in samples(document)} == {3}
    assert document["context"]["crossover"]["configuration"]["data"] == data.name


def test_reads_a_number_below_the_smallest_double(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("1e-400,2,0\n", "utf-8")
    measure(tmp_path, *MLP, f"--data={data}")


@pytest.mark.parametrize(("batch", "steps"), [(1, 3), (2, 2), (3, 1), (1000, 1)])
def test_last_batch_may_be_short(tmp_path: Path, three: Path, batch: int, steps: int) -> None:
    document = measure(tmp_path, *MLP, f"--data={three}", f"--batch={batch}")
    for row in samples(document):
        assert (row["rows"], row["batch"], row["steps"]) == (3, batch, steps)


@pytest.mark.skipif(not HEART.is_file(), reason=f"{HEART} is not there")
def test_real_data(tmp_path: Path) -> None:
    document = measure(
        tmp_path, "--model=heart", f"--data={HEART}", "--threads=1", "--family=Epoch", *SHORT
    )
    for row in samples(document):
        assert (row["params"], row["rows"], row["steps"]) == (1522, 709, 71)


# --- where results go


def test_output_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ünï code" / "result.json"
    assert bench(*DISC, f"--out={path}").returncode == 0
    validate(path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("file/result.json", ["can't be written"]),
        ("folder", ["is a folder", "name a file in it"]),
        ("x" * 300, ["can't be written"]),
    ],
)
def test_unwritable_output_is_found_first(tmp_path: Path, name: str, words: list[str]) -> None:
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "folder").mkdir()
    # assert_refused wants an empty stdout: no row has been run.
    assert_refused(bench(*DISC, f"--out={tmp_path / name}"), "--out", name, *words)
    assert (tmp_path / "file").read_bytes() == OLD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize("value", ["--out=", "--out"])
def test_output_needs_a_name(value: str) -> None:
    assert_refused(bench(*DISC, value), "--out=FILE.json")


# Stand-ins for /dev/null and /dev/full: as root, bench would replace the real ones.
def test_output_that_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = bench(*DISC, f"--out={pipe}")
    assert pipe.is_fifo()
    assert_refused(done, "--out", str(pipe))


def test_output_through_a_link_goes_to_its_target(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_bytes(OLD)
    link.symlink_to(target)
    assert bench(*DISC, f"--out={link}").returncode == 0
    assert link.is_symlink()
    validate(target)


def test_output_from_the_environment_keeps_the_format(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert bench(*DISC, variables={"BENCHMARK_OUT": str(path)}).returncode == 0
    validate(path)


def test_filter_from_the_environment_that_matches_nothing() -> None:
    assert_refused(bench(*DISC, variables={"BENCHMARK_FILTER": "zzz"}), "zzz")


def test_benchmark_out_is_the_same_as_out(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert bench(*DISC, f"--benchmark_out={path}").returncode == 0
    validate(path)


def test_successful_run_replaces_an_older_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(OLD)
    assert measure(tmp_path, *DISC)["context"]["crossover"]["complete"] is True
    assert list(tmp_path.iterdir()) == [path]


def test_failed_run_leaves_an_older_file(tmp_path: Path) -> None:
    path, partial = tmp_path / "result.json", tmp_path / "result.json.partial"
    path.write_bytes(OLD)
    done = bench(*DISC, "--memory-limit=1", f"--out={path}")
    assert done.returncode == 1
    assert str(partial) in done.stderr
    assert path.read_bytes() == OLD
    validate(partial)
    assert sorted(tmp_path.iterdir()) == [path, partial]


def small_disk() -> None:
    """A file may have 12 KiB: more is refused as where the disk is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_288, 12_288))


@pytest.mark.parametrize(
    "repetitions",
    [
        1,
        40,
    ],
)
def test_disk_that_fills_up_keeps_the_finished_rows(tmp_path: Path, repetitions: int) -> None:
    path = tmp_path / "result.json"
    batches = "--batch=" + ",".join(str(batch) for batch in range(100, 120))
    arguments = [*DISC, batches, f"--benchmark_repetitions={repetitions}"]
    done = bench(*arguments, f"--out={path}", prepare=small_disk)
    assert done.returncode == 1
    assert done.stderr.startswith(f"bench: {path} can't be written")
    assert list(tmp_path.iterdir()) == [path]
    rows = samples(strict(path))
    # Of 40 repetitions not even one row fits.
    assert len(rows) > 0 if repetitions == 1 else rows == []
    validate(path)


def test_closed_standard_output_loses_nothing(tmp_path: Path) -> None:
    measured = tmp_path / "result.json"
    done = bench(*DISC, f"--out={measured}", prepare=lambda: os.close(1))
    assert done.returncode == 0
    validate(measured)


# --- rows that can't be measured, or only with a remark


def test_too_many_threads_are_flagged(tmp_path: Path) -> None:
    cores = strict(bench("--machine").stdout)["cpu"]["cores"]
    document = measure(
        tmp_path, "--model=disc-2", f"--threads={cores + 1}", "--family=Epoch", *SHORT
    )
    for row in samples(document):
        assert row["cpu_threads"] == cores + 1
        assert row["quality"] == [f"oversubscribed: {cores + 1} threads on {cores} cores"]


def test_too_little_memory_skips_a_row_and_the_others_run(tmp_path: Path) -> None:
    # disc-10 alone holds 703,142 parameters of 4 bytes.
    arguments = [
        "--model=disc-10,disc-2",
        "--threads=1",
        "--family=Epoch",
        *SHORT,
        "--memory-limit=2000000",
    ]
    skipped, *measured = samples(measure(tmp_path, *arguments, code=1))
    assert skipped["configuration"]["model"] == "disc-10"
    assert skipped["error_occurred"] is True
    assert skipped["outcome"] == "skipped"
    assert "too little memory" in skipped["error_message"]
    assert "real_time" not in skipped
    assert [row["configuration"]["model"] for row in measured] == ["disc-2"] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--mlp=1099511627776,2"],
        ["--mlp=1000000000,1000000000,2"],
        ["--mlp=2,2", "--rows=1099511627776", "--batch=1099511627776"],
        (["--mlp=2,2", "--rows=1099511627776"]),
    ],
)
def test_a_model_beyond_any_memory_is_skipped(arguments: list[str]) -> None:
    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    done = bench(*arguments, "--threads=1", "--family=Epoch", *SHORT, prepare=bounded)
    assert done.returncode == 1
    assert "too little memory" in done.stderr
    assert "1 of 1 rows were not measured" in done.stderr


def test_diverging_training_fails_and_the_others_run(tmp_path: Path) -> None:
    # Without a hidden layer the gradients are bounded: the same rate diverges in disc-2 only.
    path = tmp_path / "result.json"
    done = bench("--model=disc-2", *MLP, "--lr=1e20", f"--out={path}")
    assert done.returncode == 1
    assert done.stderr.startswith(f"bench: {name('disc-2', 100, 1)}: the training diverges")
    assert "--lr" in done.stderr
    assert "1 of 2 rows were not measured" in done.stderr
    validate(path)
    outcomes = [
        (row["configuration"]["model"], row.get("outcome")) for row in samples(strict(path))
    ]
    assert outcomes == [("mlp-2-2", None)] * 2 + [("disc-2", "failed")]


def test_divergence_beyond_single_precision_is_called_by_its_name() -> None:
    done = bench(
        "--mlp=2,4,2",
        "--rows=200",
        "--batch=10",
        "--lr=1e20",
        "--threads=1",
        "--family=Epoch",
        *SHORT,
    )
    assert done.returncode == 1
    assert "diverges" in done.stderr


# --- what bench prints


def test_listing_prints_names_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    done = bench(
        "--model=disc-2",
        "--threads=1,2",
        "--family=Epoch",
        "--benchmark_list_tests",
        f"--out={path}",
    )
    assert done.returncode == 0
    assert done.stdout.splitlines() == [name("disc-2", 100, threads) for threads in (1, 2)]
    assert not path.exists()


def test_no_listing_writes_the_file(tmp_path: Path) -> None:
    measure(tmp_path, *DISC, "--benchmark_list_tests=no")


def test_json_on_standard_output() -> None:
    done = bench(*DISC, "--benchmark_format=json")
    assert done.returncode == 0
    assert len(samples(strict(done.stdout))) == 2


def test_information() -> None:
    assert strict(bench("--machine").stdout)["id"]
    assert bench("--models").stdout.split() == NAMES
    assert bench("--commit").stdout.strip()
    done = bench("--help")
    assert done.returncode == 0
    own = "sweep model mlp activation optimizer lr weight-decay batch accumulate rows data threads"
    for flag in [
        *own.split(),
        "out",
        "memory-limit",
        "models",
        "cost",
        "machine",
        "commit",
        "help",
    ]:
        assert f"\n  --{flag}" in done.stdout
    assert "--benchmark_filter" in done.stdout


# --- what a network costs, counted by hand


def test_cost_of_a_small_network() -> None:
    done = bench("--cost", "--mlp=4,3,2", "--batch=5", "--rows=13")
    assert done.returncode == 0
    assert done.stderr == ""
    cost = strict(done.stdout)
    assert cost["model"] == "mlp-4-3-2"
    assert cost["params"] == 4 * 3 + 3 + 3 * 2 + 2
    assert (cost["batch"], cost["rows"], cost["steps"]) == (5, 13, 3)
    assert (cost["precision"], cost["optimizer"], cost["accumulate"]) == ("f32", "sgd lr=0.1", 1)
    flops = [  # of a batch of 5
        ("Linear", "product", 2 * 5 * 4 * 3 + 5 * 3),
        ("Activate", "elementwise", 5 * 3),
        ("Linear", "product", 2 * 5 * 3 * 2 + 5 * 2),
        ("SoftmaxCrossEntropy", "loss", 5 * (5 * 2) + 2 * 5),
        ("LinearGrad", "product", 2 * (2 * 5 * 3 * 2) + 5 * 2),
        ("ActivateGrad", "elementwise", 5 * 3),
        ("LinearGrad", "product", 2 * 5 * 4 * 3 + 5 * 3),
        ("Sgd", "update", 2 * 23),
    ]
    step = cost["step"]
    counted = [(op["operation"], op["kind"], op["flops"]) for op in step["operations"]]
    assert counted == flops
    first = step["operations"][0]
    assert first["products"] == [{"pass": "forward", "m": 5, "n": 3, "k": 4}]
    assert first["bytes"] == 4 * (5 * 4 + 3 * 4 + 3 + 5 * 3)
    assert step["flops"] == sum(count for _, _, count in flops) == 606
    assert step["bytes"] == sum(op["bytes"] for op in step["operations"])
    assert step["bytes_to_device"] == 5 * (4 * 4 + 4)
    epoch = cost["epoch"]
    assert epoch["flops"] == 2 * 606 + (606 - 46) * 3 / 5 + 46  # the last batch has 3 rows
    assert epoch["launches"] == 3 * 15
    assert epoch["products"] == 3 * 5
    assert epoch["bytes_to_device"] == 13 * (4 * 4 + 4)
    launches = epoch["device_launches"]
    assert launches["cpu"] == 3 * 9
    assert launches["cuda"]["eager"] == {
        "resident": 3 * 7,
        **dict.fromkeys(("pageable", "pinned", "pinned-async"), 3 * 9),
    }
    assert launches["cuda"]["graph-epoch"] == {"resident": 3 * 7}


def test_cost_is_that_of_the_measured_row(grid: Path) -> None:
    for row in samples(strict(grid)):
        model, batch = row["configuration"]["model"], row["configuration"]["batch"]
        cost = strict(bench("--cost", f"--model={model}", f"--batch={batch}").stdout)
        for field in ("params", "batch", "rows", "steps"):
            assert cost[field] == row[field]
        assert cost["optimizer"] == row["label"]
        assert cost["epoch"]["flops"] == row["flops"]
        assert cost["epoch"]["bytes"] == row["bytes"]
        assert cost["epoch"]["products"] == row["products"]
        assert cost["epoch"]["device_launches"]["cpu"] == row["launches"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["one network", "--mlp=", "--model="]),
        (["--model=disc-2,disc-3"], ["one network", "--mlp="]),
        (["--mlp=2,2", "--model=disc-2"], ["one network"]),
        (["--mlp=2,2", "--batch=1,2"], ["one size of batch"]),
        (["--mlp=2,2", "--precision=f32,bf16"], ["one --precision"]),
        (["--mlp=2,2", f"--data={HEART}"], ["--rows=N"]),
        (["--mlp=1099511627776,1099511627776,2"], ["mlp-1099511627776"]),
        (["--mlp=2,2", "--batch=1", "--rows=1099511627776"], ["too little memory", "mlp-2-2"]),
        (["--mlp=2,2", "--cost=1"], ["--cost takes no value"]),
        (["--mlp=0,2"], ["--mlp: '0' is no whole number from 1"]),
    ],
)
def test_cost_refuses(arguments: list[str], words: list[str]) -> None:
    assert_refused(bench("--cost", *arguments), *words)


def test_every_row_has_a_line(tmp_path: Path) -> None:
    done = bench(
        "--model=disc-2",
        "--threads=1,2",
        "--family=Epoch",
        *SHORT,
        f"--out={tmp_path / 'result.json'}",
    )
    first, second = done.stdout.splitlines()
    assert first.startswith("[1/2] " + name("disc-2", 100, 1))
    assert second.startswith("[2/2] " + name("disc-2", 100, 2))
    assert str(tmp_path / "result.json") in done.stderr


# --- the result file


def name(model: str, batch: int, threads: int) -> str:
    device = f"device:cpu/execution:eager/cpu_threads:{threads}"
    return f"Epoch/model:{model}/batch:{batch}/precision:f32/{device}"


PARAMETERS = {"disc-2": 22, "disc-4": 230, "heart": 1522}
GRID = [
    "--model=" + ",".join(PARAMETERS),
    "--batch=100,300",
    "--threads=1,2",
    "--family=Epoch",
    *SHORT,
]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result file of three models, two batch sizes and two thread counts."""
    folder = tmp_path_factory.mktemp("grid")
    measure(folder, *GRID)
    return folder / "result.json"


def test_names_and_repetitions(grid: Path) -> None:
    expected = [
        (name(model, batch, threads), repetition)
        for model in PARAMETERS
        for batch in (100, 300)
        for threads in (1, 2)
        for repetition in (0, 1)
    ]
    rows = samples(strict(grid))
    assert [(row["name"], row["repetition_index"]) for row in rows] == expected
    for row in rows:
        pairs = [f"{key}:{value}" for key, value in list(row["configuration"].items())[1:]]
        assert row["name"] == "/".join([row["configuration"]["family"], *pairs])
        assert row["repetitions"] == 2
        assert row["run_name"] == row["name"]


def test_counters(grid: Path) -> None:
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    for row in samples(strict(grid)):
        configuration, seconds = row["configuration"], row["seconds_per_epoch"]
        assert row["params"] == PARAMETERS[configuration["model"]]
        assert row["batch"] == int(configuration["batch"])
        assert row["cpu_threads"] == int(configuration["cpu_threads"])
        assert row["steps"] == math.ceil(row["rows"] / row["batch"])
        assert seconds == pytest.approx(row["real_time"] * units[row["time_unit"]])
        assert row["samples_per_second"] == pytest.approx(row["rows"] / seconds)
        assert row["flops_per_second"] == pytest.approx(row["flops"] / seconds)
        assert row["flops"] > row["params"] * row["rows"]
        assert row["first_call_seconds"] > 0
        assert 0 < row["loss_first_epoch"] < 10


def test_verification(grid: Path) -> None:
    for row in samples(strict(grid)):
        verification = row["verification"]
        assert verification["reference"]
        assert 0 < verification["steps"] <= verification["steps_of"] == row["steps"]
        assert 0 <= verification["relative_error"] <= verification["tolerance"] < 1e-2


def test_loss_does_not_depend_on_threads(grid: Path) -> None:
    losses: dict[tuple[str, str], list[float]] = {}
    for row in samples(strict(grid)):
        key = (row["configuration"]["model"], row["configuration"]["batch"])
        losses.setdefault(key, []).append(row["loss_first_epoch"])
    for found in losses.values():
        assert len(found) == 4
        assert max(found) == pytest.approx(min(found), rel=1e-5)


def test_context(grid: Path) -> None:
    crossover = strict(grid)["context"]["crossover"]
    assert crossover["complete"] is True
    command = crossover["configuration"]["command"]
    assert command[1 : 1 + len(GRID)] == GRID
    assert not any("/" in word for word in command), "folders of the user's machine"
    assert crossover["configuration"]["repetitions"] == 2
    assert crossover["configuration"]["min_time_seconds"] == 0.001
    assert crossover["machine"] == strict(bench("--machine").stdout)


def test_load_average_at_the_end(grid: Path) -> None:
    assert strict(grid)["context"]["crossover"]["load_average_end"]


def test_context_of_the_command_line(tmp_path: Path) -> None:
    assert measure(tmp_path, *DISC, "--benchmark_context=where=lab")["context"]["where"] == "lab"


@pytest.mark.parametrize("what", ["report", "display"])
def test_refuses_a_result_file_without_samples(tmp_path: Path, what: str) -> None:
    refused(tmp_path, ("samples", "--out"), *DISC, f"--benchmark_{what}_aggregates_only=true")
    assert bench(*DISC, f"--benchmark_{what}_aggregates_only=true").returncode == 0


def test_flags_a_policy_that_slows_threads(tmp_path: Path) -> None:
    variables = {"OMP_WAIT_POLICY": "passive"}
    path = tmp_path / "result.json"
    assert (
        bench(
            "--model=disc-2",
            "--threads=2",
            "--family=Epoch",
            *SHORT,
            f"--out={path}",
            variables=variables,
        ).returncode
        == 0
    )
    for row in samples(strict(path)):
        assert any("OMP_WAIT_POLICY" in sentence for sentence in row["quality"])


def test_random_interleaving(tmp_path: Path) -> None:
    interleaved = "--benchmark_enable_random_interleaving=true"
    document = measure(
        tmp_path, "--model=disc-2", "--threads=1,2", "--family=Epoch", *SHORT, interleaved
    )
    keys = {(row["name"], row["repetition_index"]) for row in samples(document)}
    assert keys == {(name("disc-2", 100, t), repetition) for t in (1, 2) for repetition in (0, 1)}


# --- interrupted


@pytest.mark.parametrize("existing", [False, True], ids=["new", "existing"])
@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["SIGINT", "SIGTERM", "SIGKILL"],
)
def test_finished_rows_survive(
    tmp_path: Path, sent: signal.Signals, code: int, existing: bool
) -> None:
    path = tmp_path / "result.json"
    rows = tmp_path / "result.json.partial" if existing else path
    if existing:
        path.write_bytes(OLD)
    # Far more rows than fit into the time that passes until the signal.
    batches = "--batch=" + ",".join(str(batch) for batch in range(100, 400))
    command = [BENCH, "--model=disc-2", "--threads=1", batches, f"--out={path}"]
    log = tmp_path / "stderr"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            # With one repetition a row is one object: no signal falls between two of them.
            [*command, "--benchmark_min_time=0.05", "--benchmark_repetitions=1"],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=environment(),
        ) as process,
    ):
        try:
            deadline = time.monotonic() + LIMIT_SECONDS
            while not (rows.exists() and samples(strict(rows))):
                assert process.poll() is None, log.read_text("utf-8")
                assert time.monotonic() < deadline, "no row was finished in time"
                time.sleep(0.01)
            process.send_signal(sent)
            assert process.wait(LIMIT_SECONDS) == code
        finally:
            process.kill()
    document = strict(rows)
    validate(rows)
    assert document["context"]["crossover"]["complete"] is False
    assert samples(document)
    left = {file.name for file in tmp_path.iterdir()} - {"stderr"}
    if sent == signal.SIGKILL:
        left.discard(rows.name + ".tmp")
    else:
        assert str(rows) in log.read_text("utf-8")
    assert left == {path.name, rows.name}
    if existing:
        assert path.read_bytes() == OLD


# --- Google Benchmark's compare.py


# ---- other families -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """Ceilings and copies, and an epoch that they bound."""
    only = "Peak|bytes:1024/|model:heart|model:disc-2/"
    return measure(
        tmp_path_factory.mktemp("probes"),
        "--sweep=quick",
        "--cuda=off",
        "--threads=1,2",
        f"--benchmark_filter={only}",
        *SHORT,
    )


def by_name(document: Document) -> dict[str, Document]:
    return {row["name"]: row for row in samples(document)}


def test_probes_have_their_rows(probes: Document) -> None:
    copy = "device:cpu/memory:pageable/mode:sync/cpu_threads:1"
    per_threads = ["quantity:fma/precision:f32", "quantity:triad", "quantity:fork-join"]
    expected = [f"Peak/{q}/device:cpu/cpu_threads:{t}" for t in (1, 2) for q in per_threads] + [
        "Peak/quantity:copy/direction:h2h/device:cpu/cpu_threads:1",
        f"Copy/direction:h2h/bytes:1024/{copy}",
        f"Copy/direction:h2h/model:disc-2/batch:100/{copy}",
        f"Copy/direction:h2h/model:heart/batch:10/{copy}",
    ]
    names = [name for name in by_name(probes) if not name.startswith("Epoch")]
    assert names == expected  # ceilings before everything that they bound


def test_counters_of_probes(probes: Document) -> None:
    for name, row in by_name(probes).items():
        if name.startswith("Epoch"):
            continue
        seconds = row["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[row["time_unit"]]
        assert row["count"] == 1
        assert row["seconds"] == pytest.approx(seconds)
        for amount in ("flops", "bytes"):
            if amount in row:
                assert row[f"{amount}_per_second"] == pytest.approx(row[amount] / seconds)
        assert ("verification" in row) == ("fork-join" not in name)
        assert "device_seconds" not in row  # a CPU has no clock but the wall's
    rows = by_name(probes)
    fma = rows["Peak/quantity:fma/precision:f32/device:cpu/cpu_threads:2"]
    assert fma["flops"] == 2 * 2 * 3072 * 16384
    (heart,) = (row for name, row in rows.items() if "Copy" in name and "heart" in name)
    assert heart["bytes"] == 10 * (29 * 4 + 4)  # samples and labels


def test_epochs_are_bound_by_measured_ceilings(probes: Document) -> None:
    epochs = [row for name, row in by_name(probes).items() if name.startswith("Epoch")]
    assert epochs
    for row in epochs:
        assert row["bound"]["name"] in ("compute", "memory")
        assert row["bound"]["percent"] > 0


def test_probes_beyond_the_memory_limit_are_skipped(tmp_path: Path) -> None:
    document = measure(
        tmp_path,
        "--family=Copy",
        "--cuda=off",
        "--memory-limit=1000",
        "--benchmark_filter=bytes:1024/",
        *SHORT,
        code=1,
    )
    (row,) = document["benchmarks"]
    assert row["outcome"] == "skipped"
    assert "the row needs 2048 bytes, 1000 are available" in row["error_message"]


def seconds_of(row: Document) -> float:
    return row["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[row["time_unit"]]


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return measure(
        tmp_path_factory.mktemp("products"),
        "--family=Gemm",
        "--sweep=quick",
        "--cuda=off",
        "--model=disc-2,disc-3",
        "--batch=10",
        "--benchmark_filter=m:(10|4|8|2|127|128|512)/.*(warm|m:128.*cold)",
        *SHORT,
    )


def test_products_of_the_networks_and_squares_have_rows(products: Document) -> None:
    rows = [row for row in samples(products) if row["repetition_index"] == 0]
    at = "precision:f32/cache:warm/device:cpu/execution:eager/cpu_threads:1"
    shapes = ["m:10/n:4/k:2/transpose:nt", "m:10/n:2/k:4/transpose:nt"]  # disc-2: 2 -> 4 -> 2
    shapes += [
        "m:10/n:4/k:2/transpose:nn",
        "m:2/n:4/k:10/transpose:tn",
        "m:4/n:2/k:10/transpose:tn",
    ]
    names = [row["name"] for row in rows]
    for shape in shapes:
        assert f"Gemm/{shape}/{at}" in names
    labels = {row["name"]: row["label"] for row in rows}
    assert labels[f"Gemm/{shapes[0]}/{at}"] == "forward: disc-2 disc-3"
    assert labels[f"Gemm/{shapes[3]}/{at}"] == "dw: disc-2"
    assert {row["label"] for row in rows if "m:128/" in row["name"]} == {"square"}
    transposes = [n for n in names if "m:512/n:512/k:512/" in n and n.endswith("cpu_threads:1")]
    assert [re.sub(".*transpose:(..).*", r"\1", n) for n in transposes] == ["nn", "nt", "tn"]


def test_counters_of_products(products: Document) -> None:
    for row in samples(products):
        m, n, k = (int(row["configuration"][extent]) for extent in "mnk")
        assert row["flops"] == 2 * m * n * k
        assert row["bytes"] == 4 * (m * k + k * n + m * n)
        assert row["seconds"] * row["count"] == pytest.approx(seconds_of(row))
        assert row["flops_per_second"] == pytest.approx(row["flops"] / row["seconds"])
        assert row["bytes_per_second"] == pytest.approx(row["bytes"] / row["seconds"])
        assert row["launches"] == 1
        checked = row["verification"]
        assert checked["entries"] == row["verified_entries"] <= checked["entries_of"]
        assert checked["entries_of"] == m * n * row["operand_sets"]
        if m * n * k <= 1e7 and row["operand_sets"] == 1:
            assert checked["entries"] == m * n
        else:
            assert checked["entries"] >= 256


def test_cold_products_exceed_the_cache(products: Document) -> None:
    levels = products["context"]["caches"]
    last = max(levels, key=lambda cache: cache["level"])
    rows = samples(products)
    warm = [row for row in rows if row["configuration"]["cache"] == "warm"]
    assert {row["operand_sets"] for row in warm} == {1}
    cold = [row for row in rows if row["configuration"]["cache"] == "cold"]
    for row in cold:  # none where the cache is so large that a set is too small for it
        assert row["count"] == row["operand_sets"]
        assert row["operand_sets"] * row["bytes"] >= 4 * last["size"]


def test_layers_have_both_passes_in_both_forms(tmp_path: Path) -> None:
    document = measure(
        tmp_path,
        "--family=Layer",
        "--sweep=quick",
        "--cuda=off",
        "--batch=7",
        "--threads=1",
        "--benchmark_filter=width:(16|256)/",
        *SHORT,
    )
    rows = {row["name"]: row for row in samples(document)}
    assert list(rows) == [
        f"Layer/width:{width}/batch:7/activation:relu/pass:{way}/form:{form}/precision:f32"
        "/device:cpu/execution:eager/cpu_threads:1"
        for width in (16, 256)
        for way in ("forward", "backward")
        for form in ("fused", "separate")
    ]
    for row in rows.values():
        width = int(row["configuration"]["width"])
        one = 2 * 7 * width * width
        forward = row["configuration"]["pass"] == "forward"
        bias_and_relu = 2 * 7 * width
        assert row["flops"] == (one if forward else 2 * one) + bias_and_relu
        assert row["seconds"] * row["count"] == pytest.approx(seconds_of(row))
        fused = row["configuration"]["form"] == "fused"
        results = (1 if fused else 2) * 7 * width + (0 if forward else width * width + width)
        assert row["verified_entries"] == results == row["verification"]["entries_of"]


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("--memory-limit=1000", "too little memory"),
        ("--precision=tf32", "tf32"),
        ("--precision=f16", "f16"),
    ],
)
def test_operations_that_can_not_be_had_are_skipped(tmp_path: Path, flag: str, reason: str) -> None:
    document = measure(
        tmp_path,
        "--family=Gemm,Layer",
        "--cuda=off",
        "--threads=1",
        "--sweep=quick",
        "--benchmark_filter=(m:33/|width:16/.*forward/form:fused)",
        flag,
        *SHORT,
        code=1,
    )
    rows = document["benchmarks"]
    assert {row["configuration"]["family"] for row in rows} == {"Gemm", "Layer"}
    for row in rows:
        assert row["outcome"] == "skipped"
        assert reason in row["error_message"]


def test_layers_in_bf16_are_measured_where_the_cpu_has_it(tmp_path: Path) -> None:
    layer = ("--family=Layer", "--cuda=off", "--threads=1", "--sweep=quick", "--precision=bf16")
    only = "--benchmark_filter=width:16/.*forward/form:fused"
    done = bench(*layer, only, *SHORT, f"--out={tmp_path / 'layers.json'}")
    row, *_ = strict(tmp_path / "layers.json")["benchmarks"]
    assert done.returncode == ("outcome" in row)
    if "outcome" in row:
        assert row["outcome"] == "skipped"
        assert row["error_message"].startswith("the CPU has no instructions for products of bf16")
    else:
        assert row["verification"]["tolerance"] == 1e-5 + 2**-7


def compare_script() -> Path | None:
    """Where libbenchmark-tools has put it."""
    if shutil.which("dpkg") is None:
        return None
    command = ["dpkg", "-L", "libbenchmark-tools"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.endswith("/compare.py")]
    return Path(found[0]) if found else None


@pytest.fixture(scope="module")
def compare() -> Callable[..., str]:
    """Runs compare.py and returns what it prints."""
    script = compare_script()
    if script is None:
        pytest.skip("libbenchmark-tools, which has compare.py, is not installed")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", script, "--no-color", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    probe = run("--help")
    if probe.returncode != 0:
        pytest.skip(f"{script} can't start: {probe.stderr.strip().splitlines()[-1]}")

    def output(*arguments: str | Path) -> str:
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return output


def test_compare_two_files(grid: Path, tmp_path: Path, compare: Callable[..., str]) -> None:
    other = tmp_path / "result.json"
    measure(tmp_path, "--model=disc-2", "--threads=1,2", "--family=Epoch", *SHORT)
    lines = compare("benchmarks", grid, other).splitlines()
    for threads in (1, 2):
        assert any(line.startswith(name("disc-2", 100, threads) + " ") for line in lines)
    assert not any("disc-4" in line for line in lines)


def test_compare_thread_counts(grid: Path, compare: Callable[..., str]) -> None:
    pair = ("cpu_threads:1", "cpu_threads:2")
    lines = compare("filters", grid, *pair).splitlines()
    for model in PARAMETERS:
        row = name(model, 100, 1).replace(pair[0], f"[{pair[0]} vs. {pair[1]}]")
        assert any(line.startswith(row) for line in lines)
