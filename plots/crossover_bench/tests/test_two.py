# SPDX-License-Identifier: Apache-2.0
"""Two commands: whose step is shorter, and after how many steps a start-up is repaid."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from crossover_bench.answers.two.section import (
    SIDES,
    answers,
    at_answer,
    repaid_words,
    size_of,
    sizes_of,
    step_answer,
    two_table,
)
from crossover_bench.files.rows import Failure, PairedInterval, PairedSize, Refinement

STEPS = (10, 100)
Line = tuple[float, float]  # seconds of start-up and of a step


def runs(first: Line, second: Line, noise: float = 0.0, seed: int = 0, count: int = 9) -> Any:
    random = np.random.default_rng(seed)
    times = [start + steps * step for start, step in (first, second) for steps in STEPS]
    return np.array(times)[:, None] * (1 + noise * random.exponential(size=(4, count)))


def sized(first: Line, second: Line, noise: float = 0.01) -> Any:
    return size_of(1000, runs(first, second, noise), STEPS)


def test_repaid_steps_are_where_the_two_lines_meet():
    kinds = {(True, True): "after", (True, False): "never", (False, True): "at once"}
    met = set()
    for start, step, other_start, other_step in np.random.default_rng(1).uniform(0.1, 10, (99, 4)):
        repaid = size_of(1, runs((start, step), (other_start, other_step)), STEPS)
        assert repaid.kind == kinds.get((other_start > start, other_step < step), "until")
        met.add(repaid.kind)
        if repaid.steps is not None:
            count = repaid.steps.value
            assert start + count * step == pytest.approx(other_start + count * other_step)
    assert met == {*kinds.values(), "until"}


def test_the_interval_of_repaid_steps_covers_them():
    """They are 200; 9 repetitions are resampled, of which the interval is of 96 %."""
    covered = 0
    for seed in range(200):
        repaid = size_of(1, runs((0.1, 0.02), (2.1, 0.01), 0.01, seed), STEPS)
        assert repaid.steps is not None
        covered += repaid.steps.low <= 200 * 1.02 and repaid.steps.high >= 200 * 0.98
    assert covered >= 190


@pytest.mark.parametrize(
    ("first", "second", "winner", "words"),
    [
        ((0.1, 0.02), (2.1, 0.01), "second", "after 20"),
        ((0.1, 0.02), (2.1, 0.03), "first", "never"),
        ((2.1, 0.02), (0.1, 0.03), "first", "ahead for the first "),
        ((2.1, 0.02), (0.1, 0.01), "second", "from the first step"),
        ((0.1, 0.02), (2.1, 0.02), None, "not decided"),
        ((1.0, 1e-7), (2.0, 1e-7), None, "steps do not show"),
    ],
)
def test_each_answer(first, second, winner, words):
    size = sized(first, second)
    assert size.winner == winner
    assert repaid_words(size).startswith(words)


def commands(*, equal: str = "", intervals: Any = (), refined: bool = True) -> Any:
    """A file's part that is looked at: the second wins a step from n = 2000 on."""
    rows = []
    for n in (1000, 4000, 16000):
        lines = runs((0.1, 0.00001 * n), (2.1, 0.01 + 0.000005 * n), 0.001)
        ways = [(side, steps) for side in SIDES for steps in STEPS]
        for (side, steps), samples in zip(ways, lines, strict=True):
            how = {"size": str(n), "program": side, "step_count": str(steps)}
            doubts = ("left processes",) if side == "first" and n > 1000 else ()
            rows.append(
                mock.Mock(configuration=how, samples=samples, failure=None, warnings=doubts)
            )
    sides = [{"program": side} for side in SIDES]
    sizes = (PairedSize("2054", 2054.0, 20, 3, 0, "second"),)
    refinement = Refinement(
        *("command", {"family": "Command"}, *sides, True, (), sizes, intervals),
    )
    refinements = (refinement,) if refined else ()
    told = {"steps": STEPS, "equal": equal, "first": "a", "second": "b"}
    return mock.Mock(commands=tuple(rows), refinements=refinements, two=told)


def test_says_both_answers_and_what_is_not_known():
    file = commands(intervals=(PairedInterval("first", 1911.0, 2054.0),))
    sizes = sizes_of(file)
    crossing, repaid, outputs, doubt = answers(file, sizes)
    assert crossing == (
        "The second program won reliably from between n = 1,911 and 2,054: a step, in 20 pairs of "
        "runs, 95 % sure."
    )
    assert repaid.startswith("The second program has repaid its start-up at n = 4,000 after 20")
    assert outputs == "Outputs were not compared; --equal=COMMAND does that."
    assert doubt == "Left processes (4 of 6 rows of the first program)."
    assert "by 'cmp'" in answers(commands(equal="cmp"), sizes)[2]
    assert at_answer(sizes, 5000).startswith("At n = 5,000: unmeasured; ./run two ... --at=5000")
    assert at_answer(sizes, 1000) == (
        "At n = 1,000 the first program wins a step; the second never repays its start-up."
    )
    table = two_table(file, sizes)
    assert [record["winner"] for record in table.records()] == ["first", "second", "second"]


def test_the_sizes_answer_without_a_refinement_and_beside_one_without_both_ends():
    by_repetitions = (
        "he first program wins a step at n = 1,000; the second program wins a step at n = 4,000 "
        "and 16,000."
    )
    file = commands(refined=False)
    sizes = sizes_of(file)
    assert step_answer(file, sizes) == f"T{by_repetitions}"
    assert step_answer(file, sizes[1:]) == (
        "The second program wins a step at each n measured, from 4,000 to 16,000."
    )
    file = commands(intervals=(PairedInterval("first", 1911.0, None),))
    assert step_answer(file, sizes_of(file)) == (
        "The first program last won reliably at n = 1,911, the second program at no larger size: a "
        f"step, in 20 pairs of runs, 95 % sure. By repetitions, t{by_repetitions}"
    )


def test_what_has_no_times_is_unmeasured():
    file = commands()
    file.commands[0].failure = Failure("failed", "'a 1000 10' ended with exit code 3")
    file.commands[4].samples = file.commands[4].samples[:2]
    sizes = sizes_of(file)
    reasons = [size.reason for size in sizes]
    assert reasons == ["'a 1000 10' ended with exit code 3", "2 repetitions, and 5 are needed", ""]
    assert at_answer(sizes, 1000).startswith("At n = 1,000: unmeasured ('a 1000 10' ended")
    assert "unmeasured" in step_answer(mock.Mock(refinements=()), sizes[:2])
    assert sizes_of(mock.Mock(commands=(), refinements=())) == []
