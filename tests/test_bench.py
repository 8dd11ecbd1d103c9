# SPDX-License-Identifier: Apache-2.0
"""The built `bench` as its user meets it: command lines, and what it prints."""

from pathlib import Path

import pytest
from bench_runs import (
    ANCHORS,
    DISC,
    HEART,
    NAMES,
    SHORT,
    assert_refused,
    bench,
    epoch_name,
    listed,
    measure,
    refused,
    run,
    strict,
)

from plots import __version__
from plots.features.answer.glance import ODD


def test_the_version_is_that_of_the_project():
    assert bench("--version").stdout == f"bench {__version__}\n"


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
        (["--sweep=none"], ["--sweep=none", "quick, default, full"]),
        (["--mlp=2,2", "--activation=swish"], ["--activation=swish", "relu", "silu"]),
        (["--activation=relu"], ["--activation", "--mlp="]),
        (["--mlp=2,2", "--loss-function=l1"], ["--loss-function=l1", "cross-entropy", "bce"]),
        (["--loss-function=mse"], ["--loss-function", "--mlp="]),
        (["--mlp=2,2", "--optimizer=rprop"], ["--optimizer=rprop", "momentum", "adamw"]),
        (["--mlp=2,2", "--optimizer=adam", "--weight-decay=1"], ["trains with adam;"]),
        (["--model=disc-2", "--weight-decay=1"], ["--weight-decay", "--optimizer=adamw"]),
        (["--mlp=5"], ["--mlp", "two widths"]),
        (["--mlp=5,1"], ["--mlp", "classes, at least two"]),
        (["--mlp=5,,2"], ["--mlp: '' is not a whole number from 1 to"]),
        (["--data=some.csv"], ["--data", "--model=heart", "--mlp="]),
        ([*DISC, "--benchmark_filter=zzz"], ["--benchmark_filter=zzz", "--benchmark_list_tests"]),
        ([*DISC, "--benchmark_filter=["], ["--benchmark_filter=[", "regular expression"]),
        ([*DISC, "--benchmark_nonsense=1"], ["--benchmark_nonsense=1"]),
        (["--model=a\nb"], ["disc-2"]),
        ([*DISC, "--benchmark_filter=-disc"], ["--benchmark_filter=-disc"]),
        ([*DISC, "--benchmark_repetitions=x"], ["--benchmark_repetitions"]),
        ([*DISC, "--benchmark_repetitions=-1"], ["--benchmark_repetitions"]),
        ([*DISC, "--benchmark_repetitions=0"], ["--benchmark_repetitions"]),
        ([*DISC, "--benchmark_format=json"], ["--benchmark_format=json", "--out=FILE.json"]),
        ([*DISC, "--benchmark_out_format=csv"], ["--benchmark_out_format=csv"]),
        ([*DISC, "--execution=eagr"], ["'eagr' is not one of eager, winograd, fused, overlapped"]),
        ([*DISC, "--placement=disk"], ["'disk' is not one of resident, pageable, pinned, pinned-"]),
        ([*DISC, "--precision=f64"], ["'f64' is not one of f32, tf32, bf16, f16"]),
        ([*DISC, "--products=best"], ["'best' is not one of heuristic, autotuned"]),
        ([*DISC, "--loss=never"], ["'never' is not one of epoch, step"]),
        ([*DISC, "--cuda=maybe"], ["'maybe' is not one of auto, on, off"]),
        ([*DISC, "--family=Epochs"], ["'Epochs' is not one of"]),
        ([*DISC, "--shuffle=yes"], ["--shuffle=yes: 'yes' is not one of none, epoch"]),
        ([*DISC, "--zero=none"], ["--zero=none: 'none' is not one of overwrite, keep"]),
        ([*DISC, "--refine=maybe"], ["--refine=maybe", "auto, off, threads"]),
        ([*DISC, "--execution=graph-epoch", "--placement=pinned"], ["needs --placement=resident"]),
        ([*DISC, "--budget=5m", "--benchmark_enable_random_interleaving"], ["--budget", "random"]),
        (["--model=disc-3x1.50"], ["--model", "'disc-3x1.50'", "disc-8x1.5"]),
        (["--model=alexnet-r", f"--data={HEART}"], ["alexnet-r does not read rows of plain numb"]),
        (["--model=lstm", f"--data={HEART}"], ["--data", "lstm does not read rows of plain"]),
        (["--mlp=2,2", "--rows=5", f"--data={HEART}"], ["--rows", "--data"]),
        (["--mlp=auto,8,2"], ["--mlp", "add --data"]),
        (["--mlp=8,auto,2"], ["--mlp", "'auto'"]),
        (["--mlp=auto"], ["--mlp", "'auto'"]),
        (["--network=nowhere.json"], ["--network: nowhere.json: there is no file of this name"]),
        (["--scale=2"], ["--scale is of networks in files; name one with --network=FILE.json"]),
    ],
)
def test_refuses(tmp_path, arguments, words):
    refused(tmp_path, tuple(words), *arguments)


HUGE = "9" * 25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("--mlp", ["0,2", "2,0", "-3,2", f"{HUGE},2", "a,2", "2.5,2", "2, 2", "1e3,2"]),
        ("--batch", ["0", "-1", HUGE, "x", "1.5", "1e3", "1,", "0x10", " 1", "+1"]),
        ("--rows", ["0", "-1", HUGE, "x", "1.5"]),
        ("--accumulate", ["0", "-1", HUGE, "x"]),
        ("--threads", ["0", "-1", "5000", HUGE, "x", "1,0"]),
        ("--loader", ["-1", "4097"]),
        ("--lr", ["-1", "nan", "inf", "1e999", "x"]),
        ("--weight-decay", ["-1", "nan", "x"]),
        ("--memory-limit", ["-1", "1k", HUGE]),
    ],
)
def test_refuses_sizes(tmp_path, flag, values):
    for value in values:
        refused(tmp_path, (flag + ": ", "number from"), "--model=disc-2", f"{flag}={value}")


def test_last_of_a_repeated_flag_counts():
    assert listed("--model=nope", *DISC) == [epoch_name("disc-2", 100, 1)]


# --- what bench prints


def test_listing_prints_names_and_writes_nothing(tmp_path):
    path = tmp_path / "result.json"
    names = listed("--model=disc-2", "--threads=1,2", "--family=Epoch", f"--out={path}")
    assert names == [epoch_name("disc-2", 100, threads) for threads in (1, 2)]
    assert not path.exists()


@pytest.mark.slow
def test_no_listing_writes_the_file(tmp_path):
    measure(tmp_path, *DISC, "--benchmark_list_tests=no")


@pytest.mark.slow
def test_information():
    assert strict(bench("--machine").stdout)["id"]
    assert bench("--models").stdout.split() == NAMES
    assert set(ANCHORS) == ODD
    assert bench("--commit").stdout.strip()
    done = bench("--help")
    assert done.returncode == 0
    flags = "sweep model mlp activation optimizer lr weight-decay batch accumulate rows data"
    flags += " threads out memory-limit models cost describe machine commit help"
    for flag in flags.split():
        assert f"\n  --{flag}" in done.stdout
    assert "--benchmark_filter" in done.stdout


# --- a network as JSON


def test_describe_prints_what_the_docs_show():
    page = (Path(__file__).parent.parent / "docs" / "networks.md").read_text(encoding="utf-8")
    shown = page.split("```json\n")[1].split("```")[0]
    done = bench("--describe", "--mlp=784,512,10")
    assert (done.returncode, done.stderr) == (0, "")
    assert strict(done.stdout) == strict(shown)


def test_describe_is_of_one_network():
    assert_refused(bench("--describe"), "one network", "--mlp=", "--model=")
    layers = strict(bench("--describe", "--model=resnet-56").stdout)["layers"]
    joins = [layer["inputs"] for layer in layers if layer["type"] == "add"]
    assert len(joins) == 27 and all(len(inputs) == 2 for inputs in joins)


# --- what a network costs, counted by hand


def test_cost_of_a_small_network():
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
    assert launches["cuda"]["graph"] == {
        "resident": 3 * 8,  # one that gathers rows and labels
        **dict.fromkeys(("pageable", "pinned", "pinned-async"), 3 * 9),
    }
    assert launches["cuda"]["graph-epoch"] == {"resident": 3 * 8}
    assert launches["cuda"]["persistent"] == {"resident": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["one network", "--mlp=", "--model="]),
        (["--model=disc-2,disc-3"], ["one network", "--mlp="]),
        (["--mlp=2,2", "--model=disc-2"], ["one network"]),
        (["--mlp=2,2", "--batch=1,2"], ["one batch size"]),
        (["--mlp=2,2", "--precision=f32,bf16"], ["one --precision"]),
        (["--mlp=2,2", "--accumulate=1,2"], ["one --accumulate"]),
        (["--mlp=2,2", f"--data={HEART}"], ["--rows=N"]),
        (["--mlp=1099511627776,1099511627776,2"], ["mlp-1099511627776"]),
        (["--mlp=2,2", "--batch=1", "--rows=1099511627776"], ["not enough memory", "mlp-2-2"]),
        (["--mlp=2,2", "--cost=1"], ["--cost takes no value"]),
        (["--mlp=0,2"], ["--mlp: '0' is not a whole number from 1"]),
    ],
)
def test_cost_refuses(arguments, words):
    assert_refused(bench("--cost", *arguments), *words)


def test_every_row_has_a_line(tmp_path):
    flags = ("--model=disc-2", "--threads=1,2", "--family=Epoch", *SHORT)
    _, done = run(tmp_path, *flags)
    first, second = done.stdout.splitlines()
    assert first.startswith("[1/2] " + epoch_name("disc-2", 100, 1))
    assert second.startswith("[2/2] " + epoch_name("disc-2", 100, 2))
    assert str(tmp_path / "result.json") in done.stderr
