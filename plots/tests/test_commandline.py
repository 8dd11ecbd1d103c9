# SPDX-License-Identifier: Apache-2.0
"""The command that measures a file again: it survives a shell."""

import shlex

from plots.features.record.section import command
from plots.file.rows import Run


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
