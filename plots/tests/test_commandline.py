# SPDX-License-Identifier: Apache-2.0
"""The commands that measure a row again: they survive a shell and select that row alone."""

import re
import shlex

from plots.features.record.commandline import again, command
from plots.file.rows import Run

NAME = "Epoch/model:a.b+c/batch:100/precision:f32/device:cpu/execution:eager/cpu_threads:2"


def run_of(*words: str, **environment: str) -> Run:
    return Run(
        command=("bench", *words),
        sweep="default",
        repetitions=9,
        min_time_seconds=0.1,
        environment=environment,
        data="",
        flush_to_zero=None,
    )


def test_the_results_place_and_filter_are_left_out():
    words = ["--mlp=784,512,10", "--out=a.json", "--benchmark_out=b", "--benchmark_filter=x"]
    words.append("--resume")
    assert command(run_of(*words)) == "./build/bench --mlp=784,512,10"


def test_a_shell_gives_back_the_words():
    run = run_of("--data=it's $HOME `x`.csv", OMP_NUM_THREADS="2 ; rm x")
    assert shlex.split(command(run)) == [
        "OMP_NUM_THREADS=2 ; rm x",
        "./build/bench",
        "--data=it's $HOME `x`.csv",
    ]


def test_the_filter_matches_the_row_alone(small, read):
    (row,) = read(small).rows
    words = shlex.split(again(run_of(), row))
    assert words[:2] == ["./build/bench", "--execution=eager"]
    pattern = words[2].removeprefix("--benchmark_filter=")
    assert re.search(pattern, row.name) and not re.search(pattern, f"{row.name}0")


def test_what_is_special_in_a_pattern_is_escaped(small, read):
    for entry in small["benchmarks"]:
        entry["configuration"]["model"] = "a.b+c"
        entry["name"] = NAME
    (row,) = read(small).rows
    pattern = shlex.split(again(run_of(), row))[-1].removeprefix("--benchmark_filter=")
    assert re.search(pattern, NAME) and not re.search(pattern, NAME.replace("a.b", "aab"))
