# SPDX-License-Identifier: Apache-2.0
"""Two commands of a user's own: in words, a table with a line for each n, and on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plots import units
from plots.core.page.section import Block, Context, Section
from plots.core.paired import pairs_words
from plots.core.tables.cells import count_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.features.two.analysis import SIDES, Measured, Size, Two, two
from plots.file.rows import File
from plots.text import listed, sentence


def build(files: Sequence[File], context: Context, at: int | None = None) -> Section | None:
    """The section on `files`; None where none has commands. `at`: what holds at this n."""
    found = [(file, two(file)) for file in files[: context.detailed]]
    blocks = tuple(
        Block(
            machine=file.machine.id,
            points=answers(file, own, at),
            facts=(("first", file.two["first"]), ("second", file.two["second"])),
            tables=(two_table(file, own),),
        )
        for file, own in found
        if own
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
_HIDDEN = "the steps do not show in the times of runs; give more steps"
_REPAID = {
    "after": "the second has repaid its start-up {}",
    "at once": "the second is ahead {}",
    "until": "the second is {}",
    "never": "the second {} repays its start-up",
    "open": "whether the second repays its start-up is {}",
    "hidden": _HIDDEN,
}
_COLUMNS = (
    Column("n", "n", numeric=True),
    *(
        Column(f"{side}_{key}", title, numeric=True, group=f"{side} program")
        for side in SIDES
        for key, title in (("step_seconds", "step"), ("start_seconds", "start-up"))
    ),
    Column("winner", "a step is won by", group="answer"),
    Column("repaid", "second repaid", group="answer"),
    Column("repaid_steps", "after steps", numeric=True, for_programs=True),
    Column("repetitions", "repetitions", numeric=True, group="answer"),
)


def answers(file: File, found: Two, at: int | None = None) -> tuple[str, ...]:
    """Both answers, and what is known of the outputs, a sentence each."""
    said = [step_answer(found), *([] if at is None else [at_answer(found, at)])]
    if at is None:
        said.append(repaid_answer(found))
    return (*said, outputs_answer(file))


def step_answer(found: Two) -> str:
    """From which n on the second wins a step."""
    measured = [size for size in found.sizes if size.step]
    if not measured:
        return "From which n the second program wins a step: unmeasured."
    if all(size.repaid.kind == "hidden" and not size.winner for size in measured):
        return sentence(_HIDDEN)
    one = found.refinement
    if one is None or not one.intervals:
        said = by_size(measured)
        return said[0].upper() + said[1:]
    pairs = sum(size.pairs for size in one.sizes)
    where = sentence(
        f"{pairs_words(one, _PROGRAMS)}: a step, in {pairs:,} pairs of runs, 95 % sure"
    )
    is_whole = all(interval.low and interval.high for interval in one.intervals)
    return where if is_whole else f"{where} By repetitions, {by_size(measured)}"


def by_size(measured: Sequence[Size]) -> str:
    """Who wins a step at which n."""
    by = {winner: _range(measured, winner) for winner in (*SIDES, None)}
    parts = [f"the {side} program wins a step at {by[side]}" for side in SIDES if by[side]]
    if by[None]:
        parts.append(f"who wins a step is not decided at {by[None]}")
    return "; ".join(parts) + "."


def _range(sizes: Sequence[Size], winner: str | None) -> str:
    own = [size.n for size in sizes if size.winner == winner]
    if len(own) == len(sizes) > 1:
        return f"each n measured, from {own[0]:,} to {own[-1]:,}"
    return f"n = {listed([f'{n:,}' for n in own])}" if own else ""


def repaid_answer(found: Two) -> str:
    """After how many steps the second has repaid its start-up: over all n."""
    after = [size for size in found.sizes if size.repaid.kind in ("after", "at once")]
    if not after:
        return "At no n measured has the second program surely repaid its start-up."
    parts = [f"at n = {size.n:,} {repaid_words(size)}" for size in (after[0], after[-1])]
    return f"The second program has repaid its start-up {', and '.join(dict.fromkeys(parts))}."


def at_answer(found: Two, n: int) -> str:
    """What holds at the n that was asked for."""
    size = found.at(n)
    if size is None:
        return f"At n = {n:,}: unmeasured; ./run two ... --at={n} measures it."
    if not size.step:
        return f"At n = {n:,}: unmeasured ({size.repaid.reason})."
    wins = "who wins a step is not decided"
    if size.winner:
        wins = f"the {size.winner} program wins a step"
    return f"At n = {n:,} {wins}; {_REPAID[size.repaid.kind].format(repaid_words(size))}."


def outputs_answer(file: File) -> str:
    command = file.two["equal"]
    if not command:
        return "Outputs were not compared; --equal=COMMAND does that."
    return f"Outputs were compared by '{command}'; a size where they differ has no times."


def repaid_words(size: Size) -> str:
    """ "after 120 steps (100 – 150)"; "never"."""
    repaid = size.repaid
    if repaid.kind == "unmeasured":
        return "unmeasured"
    if repaid.kind == "open":
        return "not decided"
    if repaid.kind == "hidden":
        return "steps do not show"
    if repaid.steps is None:
        return {"at once": "from the first step", "never": "never"}[repaid.kind]
    ends = f"{_steps(repaid.steps.low)} – {_steps(repaid.steps.high)}"
    if repaid.kind == "until":
        return f"ahead for the first {_steps(repaid.steps.value)} steps ({ends})"
    return f"after {_steps(repaid.steps.value)} steps ({ends})"


def _steps(count: float) -> str:
    return "more" if math.isinf(count) else f"{math.ceil(count):,}"


def two_table(file: File, found: Two) -> Table:
    """A line for each n."""
    notes: dict[str, int] = {}
    few, many = sorted(file.two["steps"])
    title = f"Two programs, runs of {few:,} and {many:,} steps, each in a new process"
    lines = tuple(_line(size, notes) for size in found.sizes)
    return Table(title, _COLUMNS, lines, tuple(notes))


def _line(size: Size, notes: dict[str, int]) -> tuple[Cell, ...]:
    reason = size.repaid.reason
    if size.repaid.kind == "hidden":
        reason = _HIDDEN
    figures = [
        _seconds_cell(figure)
        for side in range(2)
        for figure in (
            (size.step[side], size.start[side]) if size.step and size.start else (None,) * 2
        )
    ]
    steps = size.repaid.steps
    words = repaid_words(size)
    return (
        count_cell(size.n),
        *figures,
        text_cell(size.winner or ("not decided" if size.step else "unmeasured")),
        Cell(words, words, marks=marks([reason] if reason else [], notes)),
        NOTHING if steps is None else Cell(_steps(steps.value), steps.value),
        count_cell(size.repetitions),
    )


def _seconds_cell(figure: Measured | None) -> Cell:
    """A start-up below nothing, or a step, is noise."""
    if figure is None:
        return NOTHING
    if figure.sign <= 0:
        return Cell(f"≈ 0 (below {units.seconds(max(figure.high, 1e-9))})", figure.value)
    ends = units.seconds_range(figure.low, figure.high)
    return Cell(f"{units.seconds(figure.value)} ({ends})", figure.value)
