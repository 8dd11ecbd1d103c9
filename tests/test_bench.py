# SPDX-License-Identifier: Apache-2.0
"""The built `bench` as its user meets it: command lines, and what it prints."""

from pathlib import Path

import pytest
from bench_runs import DISC, HEART, bench, epoch_name, listed, refused, strict

from plots import __version__
from plots.core.network import ODD


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--modle=disc-2"], ["--modle=disc-2", "did you mean --model?"]),
        (["--thread=1"], ["did you mean --threads?"]),
        (["disc-2"], ["'disc-2'", "--help"]),
        (["--model=nope"], ["--model", "'nope'", "disc-2", "mobilenet-v2", "--mlp="]),
        (["--model=" + "x" * 100_000], ["disc-2", "--mlp="]),
        (["--model"], ["--model=NAME"]),
        (["--model=disc-2,"], ["''", "disc-2"]),
        (["--machine=1"], ["--machine takes no value"]),
        (["--sweep=none"], ["--sweep=none", "quick, default, full"]),
        (["--mlp=2,2", "--activation=swish"], ["--activation=swish", "relu", "silu"]),
        (["--activation=relu"], ["--activation", "--mlp="]),
        (["--mlp=2,2", "--loss-function=l1"], ["--loss-function=l1", "cross-entropy", "bce"]),
        (["--mlp=2,2", "--optimizer=rprop"], ["--optimizer=rprop", "momentum", "adamw"]),
        (["--mlp=2,2", "--optimizer=adam", "--weight-decay=1"], ["trains with adam;"]),
        (["--model=disc-2", "--weight-decay=1"], ["--weight-decay", "--optimizer=adamw"]),
        (["--mlp=5"], ["--mlp", "two widths"]),
        (["--data=some.csv"], ["--data", "--model=heart", "--mlp="]),
        ([*DISC, "--benchmark_filter=zzz"], ["--benchmark_filter=zzz", "--benchmark_list_tests"]),
        ([*DISC, "--benchmark_filter=["], ["--benchmark_filter=[", "regular expression"]),
        ([*DISC, "--benchmark_nonsense=1"], ["--benchmark_nonsense=1"]),
        ([*DISC, "--benchmark_repetitions=0"], ["--benchmark_repetitions"]),
        ([*DISC, "--benchmark_format=json"], ["--benchmark_format=json", "--out=FILE.json"]),
        ([*DISC, "--execution=eagr"], ["'eagr' is not one of eager, winograd, fused, overlapped"]),
        ([*DISC, "--refine=maybe"], ["--refine=maybe", "auto, off, threads"]),
        ([*DISC, "--execution=graph-epoch", "--placement=pinned"], ["needs --placement=resident"]),
        ([*DISC, "--budget=5m", "--benchmark_enable_random_interleaving"], ["--budget", "random"]),
        (["--model=disc-3x1.50"], ["--model", "'disc-3x1.50'", "disc-8x1.5"]),
        (["--model=alexnet-r", f"--data={HEART}"], ["alexnet-r does not read rows of plain numb"]),
        (["--mlp=2,2", "--rows=5", f"--data={HEART}"], ["--rows", "--data"]),
        (["--mlp=auto,8,2"], ["--mlp", "add --data"]),
        (["--mlp=8,auto,2"], ["--mlp", "'auto'"]),
        (["--network=nowhere.json"], ["--network: nowhere.json: there is no file of this name"]),
        (["--scale=2"], ["--scale is of networks in files; name one with --network=FILE.json"]),
        (["--mlp=5,,2"], ["--mlp: '' is not a whole number from 1 to"]),
        (["--model=disc-2", "--batch=0"], ["--batch: '0' is not a whole number from 1 to"]),
        (["--model=disc-2", f"--rows={'9' * 25}"], ["--rows: '999", "a whole number from 1 to"]),
        (["--model=disc-2", "--threads=1,x"], ["--threads: 'x' is not a whole number from 1 to"]),
        (["--model=disc-2", "--lr=nan"], ["--lr: 'nan' is not a number from"]),
        (["--model=disc-2", "--memory-limit=1k"], ["--memory-limit: '1k' is not a whole number"]),
        (["--describe"], ["one network", "--mlp=", "--model="]),
        (["--cost", "--model=disc-2,disc-3"], ["one network", "--mlp="]),
        (["--cost", "--mlp=2,2", "--batch=1,2"], ["one batch size"]),
        (["--cost", "--mlp=2,2", "--precision=f32,bf16"], ["one --precision"]),
        (["--cost", "--mlp=2,2", "--accumulate=1,2"], ["one --accumulate"]),
        (["--cost", "--mlp=2,2", f"--data={HEART}"], ["--rows=N"]),
        (["--cost", "--mlp=1099511627776,1099511627776,2"], ["mlp-1099511627776"]),
        (["--cost", "--mlp=2,2", "--batch=1", "--rows=1099511627776"], ["not enough memory"]),
    ],
)
def test_refuses(tmp_path, arguments, words):
    refused(tmp_path, tuple(words), *arguments)


def test_information():
    assert bench("--version").stdout == f"bench {__version__}\n"
    assert strict(bench("--machine").stdout)["id"]
    assert {name for name in bench("--models").stdout.split() if name.startswith("mlp-")} == ODD
    assert bench("--commit").stdout.strip()
    done = bench("--help")
    assert done.returncode == 0
    assert "\n  --model" in done.stdout and "--benchmark_filter" in done.stdout


def test_listing_prints_names_and_writes_nothing(tmp_path):
    path = tmp_path / "result.json"
    # The last of a repeated flag counts.
    names = listed("--model=nope", *DISC, "--threads=1,2", f"--out={path}")
    assert names == [epoch_name("disc-2", 100, threads) for threads in (1, 2)]
    assert not path.exists()


def test_describe_prints_what_the_docs_show():
    page = (Path(__file__).parent.parent / "docs" / "networks.md").read_text(encoding="utf-8")
    shown = page.split("```json\n")[1].split("```")[0]
    done = bench("--describe", "--mlp=784,512,10")
    assert (done.returncode, done.stderr) == (0, "")
    assert strict(done.stdout) == strict(shown)
