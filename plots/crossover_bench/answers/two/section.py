# SPDX-License-Identifier: Apache-2.0
"""Two commands of a user's own: who wins a step at which n, and after how many steps a start-up is
repaid; in words, as a table with a line for each n, and on the page.

A command with k steps takes start + k * step. Repetition i of few and of many steps are a pair,
whose difference is the time of the steps between; docs/howto/two-programs.md says more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Literal

import numpy as np

from crossover_bench.answers.paired import pairs_words
from crossover_bench.curves import statistics
from crossover_bench.files.rows import File, Refinement, Side
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import (
    Field,
    count_field,
    for_programs,
    number_field,
    table_of,
    text_field,
)
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.words import units
from crossover_bench.words.text import listed, printable, sentence

SIDES: tuple[Side, Side] = ("first", "second")
_SEED = 20_260_000

Kind = Literal["at once", "after", "until", "never", "open", "hidden", "unmeasured"]


# Signs of what a step of the second takes less, and of what its start-up takes more.
_KINDS: dict[tuple[int, int], Kind] = {
    **{(1, debt): "after" for debt in (0, 1)},
    (1, -1): "at once",
    (-1, 1): "never",
    (-1, -1): "until",
}
_HIDDEN = "the steps do not show in the times of runs; give more steps"


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies on one side of 0, else 0."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0


@dataclass(frozen=True, slots=True)
class Size:
    """What is known at `n`, of each side: seconds of a `step` and of its `start`-up. `winner` is
    whose step is surely shorter.

    `kind` is after how many `steps` the second command has repaid its start-up: `after` so many.
    `at once`: it starts sooner, and its step is faster. `until`: it starts sooner and its step is
    slower, so that it is ahead for the first `steps`. `never`: both are worse. `open`: not decided.
    `hidden`: a step is no longer than the noise of a run. `unmeasured`: for this `reason`.
    """

    n: int
    kind: Kind
    reason: str = ""
    steps: Measured | None = None
    repetitions: int = 0
    step: tuple[Measured, Measured] | None = None
    start: tuple[Measured, Measured] | None = None
    winner: Side | None = None


def refined(file: File) -> list[Refinement]:
    """The pairs of runs at sizes between; a resumed run adds the last."""
    return [refinement for refinement in file.refinements if refinement.kind == "command"]


def sizes_of(file: File) -> list[Size]:
    """What is known at each n; nothing where `file` has no commands."""
    sizes = (size for refinement in refined(file) for size in refinement.sizes)
    paired = {int(size.parameters): size.winner for size in sizes if size.winner}
    numbers = sorted({int(row.configuration["size"]) for row in file.commands})
    return [_size(file, n, paired.get(n)) for n in numbers]


def _size(file: File, n: int, paired: Side | None) -> Size:
    few, many = sorted(file.two["steps"])
    by_what = {
        (row.configuration["program"], row.configuration["step_count"]): row
        for row in file.commands
        if row.configuration["size"] == str(n)
    }
    rows = [by_what.get((side, str(count))) for side in SIDES for count in (few, many)]
    for row in rows:
        if row is not None and row.failure is not None:
            return Size(n, "unmeasured", row.failure.message)
    samples = [row.samples for row in rows if row is not None]
    count = min(map(len, samples)) if len(samples) == len(rows) else 0
    if count < statistics.FEWEST_SAMPLES:
        needed = f"{count} repetitions, and {statistics.FEWEST_SAMPLES} are needed"
        return Size(n, "unmeasured", needed)
    return size_of(n, np.array([times[:count] for times in samples]), (few, many), paired)


def size_of(
    n: int, seconds: np.ndarray, steps: tuple[int, int], paired: Side | None = None
) -> Size:
    """What is known at `n`. `seconds` has a line for the first command with few and one with many
    `steps`, then two for the second. `paired` is who surely won the pairs of a refinement."""
    few, many = steps
    count = seconds.shape[1]
    # Repetitions are resampled whole, since what disturbs one run may disturb its neighbours.
    chosen = np.random.default_rng([_SEED, count]).integers(
        count, size=(statistics.REPLICATES, count)
    )
    points, drawn = [], []
    for less, more in (seconds[:2], seconds[2:]):
        step = (more - less) / (many - few)
        for times in (step, less - few * step):
            points.append(float(np.median(times)))
            drawn.append(np.median(times[chosen], axis=1))
    step, other_step = (_measured(points[at], drawn[at]) for at in (0, 2))
    start, other_start = (_measured(points[at], drawn[at]) for at in (1, 3))
    gain = _measured(points[0] - points[2], drawn[0] - drawn[2])
    debt = _measured(points[3] - points[1], drawn[3] - drawn[1])
    winner: Side | None = paired or {1: SIDES[1], -1: SIDES[0], 0: None}[gain.sign]
    kind: Kind = "hidden"
    repaid = None
    if min(step.low, other_step.low) > 0:
        kind = _KINDS.get((gain.sign, debt.sign), "open")
        if kind in ("after", "until"):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = (drawn[3] - drawn[1]) / (drawn[0] - drawn[2])
            quotient = _measured(debt.value / gain.value, ratios)
            repaid = Measured(*(max(0.0, end) for end in astuple(quotient)))
    sides = (step, other_step), (start, other_start)
    return Size(n, kind, _HIDDEN if kind == "hidden" else "", repaid, count, *sides, winner)


def _measured(value: float, replicates: np.ndarray) -> Measured:
    low, high = statistics.interval(np.nan_to_num(replicates, nan=math.inf))
    return Measured(value, min(low, value), max(high, value))


def build(files: Sequence[File], context: Context, at: int | None = None) -> Section | None:
    """The section on `files`; None where none has commands. `at`: what holds at this n."""
    blocks = tuple(
        Block(
            machine=file.machine.id,
            points=answers(file, sizes, at),
            facts=(("first", file.two["first"]), ("second", file.two["second"])),
            tables=(two_table(file, sizes),),
        )
        for file in files[: context.detailed]
        if (sizes := sizes_of(file))
    )
    if not blocks:
        return None
    return Section(
        title="Two programs",
        anchor="two",
        lead="Two commands, measured in turn: nothing of what they compute is verified here.",
        blocks=blocks,
    )


# ---- in words, and as a table


_PROGRAMS = (f"the {SIDES[0]} program", f"the {SIDES[1]} program")
_AT = {  # what holds at an n, of repaid_words()
    "after": "the second has repaid its start-up {}",
    "at once": "the second is ahead {}",
    "until": "the second is {}",
    "never": "the second {} repays its start-up",
    "open": "whether the second repays its start-up is {}",
    "hidden": _HIDDEN,
}
_REPAID = {
    "after": "after {} steps ({} – {})",
    "at once": "from the first step",
    "until": "ahead for the first {} steps ({} – {})",
    "never": "never",
    "open": "not decided",
    "hidden": "steps do not show",
    "unmeasured": "unmeasured",
}


def answers(file: File, sizes: Sequence[Size], at: int | None = None) -> tuple[str, ...]:
    """Both answers, and what is known of the outputs, a sentence each."""
    compared = "Outputs were not compared; --equal=COMMAND does that."
    if command := file.two["equal"]:
        compared = f"Outputs were compared by '{command}'; a size where they differ has no times."
    second = repaid_answer(sizes) if at is None else at_answer(sizes, at)
    return step_answer(file, sizes), second, compared, *doubts(file)


def doubts(file: File) -> Iterator[str]:
    """What is doubtful of the rows of each side, such as work that went on after a run."""
    for side in SIDES:
        rows = [row for row in file.commands if row.configuration["program"] == side]
        counts = Counter(warning for row in rows for warning in row.warnings)
        for warning, count in counts.items():
            yield sentence(
                f"{printable(warning, 400)} ({count} of {len(rows)} rows of the {side} program)"
            )


def step_answer(file: File, sizes: Sequence[Size]) -> str:
    """From which n on the second wins a step."""
    measured = [size for size in sizes if size.step]
    if not measured:
        return "From which n the second program wins a step: unmeasured."
    if all(size.kind == "hidden" and not size.winner for size in measured):
        return sentence(_HIDDEN)
    last = next(reversed(refined(file)), None)
    if last is None or not last.intervals:
        return sentence(by_size(measured))
    pairs = sum(size.pairs for size in last.sizes)
    where = sentence(
        f"{pairs_words(last, _PROGRAMS)}: a step, in {pairs:,} pairs of runs, 95 % sure"
    )
    is_whole = all(interval.low and interval.high for interval in last.intervals)
    return where if is_whole else f"{where} By repetitions, {by_size(measured)}."


def by_size(measured: Sequence[Size]) -> str:
    """Who wins a step at which n, in clauses."""
    clauses = []
    for winner in (*SIDES, None):
        numbers = [size.n for size in measured if size.winner == winner]
        place = f"n = {listed([f'{n:,}' for n in numbers])}"
        if len(numbers) == len(measured) > 1:
            place = f"each n measured, from {numbers[0]:,} to {numbers[-1]:,}"
        clauses += [f"{_wins(winner)} at {place}"] if numbers else []
    return "; ".join(clauses)


def _wins(winner: Side | None) -> str:
    return f"the {winner} program wins a step" if winner else "who wins a step is not decided"


def repaid_answer(sizes: Sequence[Size]) -> str:
    """After how many steps the second has repaid its start-up: over all n."""
    after = [size for size in sizes if size.kind in ("after", "at once")]
    if not after:
        return "At no n measured has the second program surely repaid its start-up."
    parts = [f"at n = {size.n:,} {repaid_words(size)}" for size in (after[0], after[-1])]
    return f"The second program has repaid its start-up {', and '.join(dict.fromkeys(parts))}."


def at_answer(sizes: Sequence[Size], n: int) -> str:
    """What holds at the n that was asked for."""
    size = next((size for size in sizes if size.n == n), None)
    if size is None:
        return f"At n = {n:,}: unmeasured; {RUN} two ... --at={n} measures it."
    if not size.step:
        return f"At n = {n:,}: unmeasured ({size.reason})."
    return f"At n = {n:,} {_wins(size.winner)}; {_AT[size.kind].format(repaid_words(size))}."


def repaid_words(size: Size) -> str:
    """ "after 120 steps (100 – 150)"; "never"."""
    steps = size.steps
    ends = astuple(steps) if steps else ()
    words = ("more" if math.isinf(end) else f"{math.ceil(end):,}" for end in ends)
    return _REPAID[size.kind].format(*words)


def two_table(file: File, sizes: Sequence[Size]) -> Table:
    """A line for each n."""
    notes: dict[str, int] = {}
    few, many = sorted(file.two["steps"])

    def repaid(size: Size) -> Cell:
        words = repaid_words(size)
        reasons = [size.reason] if size.reason else []
        return Cell(words, words, marks=marks(reasons, notes))

    def steps(size: Size) -> float | None:
        return size.steps.value if size.steps else None

    fields = (
        count_field("n", "n", lambda size: size.n),
        *(
            _figure(f"{side}_{key}_seconds", title, f"{side} program", key, place)
            for place, side in enumerate(SIDES)
            for key, title in (("step", "step"), ("start", "start-up"))
        ),
        text_field(
            *("winner", "a step is won by"),
            lambda size: size.winner or ("not decided" if size.step else "unmeasured"),
            "answer",
        ),
        (Column("repaid", "second repaid", group="answer"), repaid),
        for_programs(number_field("repaid_steps", "after steps", steps)),
        count_field("repetitions", "repetitions", lambda size: size.repetitions, "answer"),
    )
    title = f"Two programs, runs of {few:,} and {many:,} steps, each in a new process"
    return table_of(title, sizes, fields, notes)


def _figure(key: str, title: str, group: str, of: str, place: int) -> Field:
    """A column of seconds; a start-up below nothing, or a step, is noise."""

    def cell(size: Size) -> Cell:
        figures: tuple[Measured, Measured] | None = getattr(size, of)
        if figures is None:
            return NOTHING
        figure = figures[place]
        if figure.sign <= 0:
            return Cell(f"≈ 0 (below {units.seconds(max(figure.high, 1e-9))})", figure.value)
        ends = units.seconds_range(figure.low, figure.high)
        return Cell(f"{units.seconds(figure.value)} ({ends})", figure.value)

    return Column(key, title, True, group), cell
