# SPDX-License-Identifier: Apache-2.0
"""The answer for a module in hand: as data, as a few lines, and as a notebook shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from markupsafe import Markup

from crossover_bench.curves.statistics import FEWEST_SAMPLES, interval
from crossover_bench.files.samples import FEW
from crossover_bench.functions.isolated import INSTANCES
from crossover_bench.in_hand.own import OwnProgram
from crossover_bench.in_hand.prediction import OnCard
from crossover_bench.in_hand.turns import Side, ratio, replicates, replicates_on
from crossover_bench.show.page.section import Block, Section
from crossover_bench.show.page.text import text_of
from crossover_bench.show.tables.cells import for_programs, seconds_field, table_of, text_field
from crossover_bench.show.tables.table import Table
from crossover_bench.words import units
from crossover_bench.words.text import counted, listed, printable, sentence

Verdict = Literal["cpu", "gpu", "not sure", "unmeasured"]
Ends = tuple[float, float]

_MUCH = 0.2  # a share of a step that is worth a sentence
_LONG_SECONDS = 1.0  # of a first step
ONE_PROCESS = (
    "One process was measured: intervals add what lies between processes, as on other machines."
)
BUSY = "The machine was busy, so take this as a hint: "
_WINS = {"cpu": "the CPU wins", "gpu": "the GPU wins", "not sure": "too close to call"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table: seconds of a step, with its interval where it is known."""

    on: str
    seconds: float
    ends: Ends | None
    loader: float | None = None
    copy: float | None = None
    ready: float | None = None
    beside: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """What was measured of the loop of `module`: on the CPU and, where there is one, on a GPU; else
    what it would take on `cards`, or `no_cards`, why that is not known. `threads` are the CPU's,
    `steps` those of an epoch, None where nobody knows. `bench` is a step of our own program on the
    CPU, None where it was stopped before. `others` is how many processors other
    programs took from it; `is_stopped`: Ctrl-C ended it; `remarks` are
    sentences on how it was measured."""

    module: str
    threads: int
    cpu: Side
    gpu: Side | None
    gpu_name: str = ""
    steps: int | None = None
    bench: OwnProgram | None = None
    cards: tuple[OnCard, ...] = ()
    no_cards: str = ""
    others: float = 0.0
    is_stopped: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def cpu_seconds(self) -> float | None:
        """Of a step on the CPU, in the median of the turns; None where it failed there."""
        return self.cpu.seconds

    @property
    def gpu_seconds(self) -> float | None:
        """Of a step on the GPU; None where there is none, or it failed there."""
        return self.gpu.seconds if self.gpu else None

    @property
    def interval(self) -> Ends | None:
        """Between which times as long a step takes on the CPU as on the GPU, 95 % sure; None where
        either is not known, or by fewer than 5 turns."""
        return ratio(self.cpu, self.gpu) if self.gpu else None

    @property
    def verdict(self) -> Verdict:
        """Whose step is surely shorter, of those measured while no other program was at work."""
        if self.cpu_seconds is None or self.gpu_seconds is None:
            return "unmeasured"
        return "not sure" if self.others else _faster(self.interval)

    @property
    def why(self) -> tuple[str, ...]:
        """What the times are made of, what would change the answer, and what is doubtful: a
        sentence each."""
        return (*failures(self), *_parts(self), *changes(self), *doubts(self))

    @property
    def lead(self) -> str:
        """The answer in a sentence."""
        return sentence((BUSY if self.others else "") + _lead(self))

    @property
    def table(self) -> Table:
        """A line for each device."""
        fields = (
            text_field("on", "on", lambda line: line.on),
            seconds_field("step_seconds", "a step", lambda line: line.seconds, digits=2),
            text_field("range", "from … to", lambda line: _span(line.ends)),
            seconds_field("loader_seconds", "loader", lambda line: line.loader, digits=2),
            for_programs(seconds_field("copy_seconds", "copy", lambda line: line.copy)),
            seconds_field("ready_seconds", "batches ready", lambda line: line.ready, digits=2),
            text_field("beside", "than the CPU", lambda line: line.beside),
        )
        measured = [side for side in (self.cpu, self.gpu) if side and side.turns]
        rows = f", batch {measured[0].rows:,}" if measured and measured[0].rows else ""
        return table_of(f"{self.module}{rows}", list(_lines(self)), fields)

    def __repr__(self) -> str:
        block = Block(lead=self.lead, points=self.why, tables=(self.table,), emphasis=True)
        return text_of([Section("", "", blocks=(block,))]).strip()

    def _repr_html_(self) -> str:
        return html_of(self.lead, self.table, self.why)


def html_of(lead: str, table: Table, points: Sequence[str]) -> str:
    """As a notebook shows it, with all text in it escaped."""
    columns = [place for place, column in enumerate(table.columns) if not column.for_programs]
    shown = [[table.columns[place].title for place in columns]]
    shown += [[line[place].text for place in columns] for line in table.lines]
    row, cell, point = (Markup(f"<{tag}>{{}}</{tag}>") for tag in ("tr", "td", "li"))
    rows = Markup().join(row.format(Markup().join(map(cell.format, line))) for line in shown)
    page = Markup("<p><b>{}</b></p><table><caption>{}</caption>{}</table><ul>{}</ul>")
    return str(page.format(lead, table.title, rows, Markup().join(map(point.format, points))))


def _faster(ends: Ends | None) -> Verdict:
    """Whose step is surely shorter, by an interval of CPU time / GPU time."""
    low, high = ends or (0.0, math.inf)
    return "gpu" if low > 1 else "cpu" if high < 1 else "not sure"


def _span(ends: Ends | None) -> str | None:
    return " to ".join(units.seconds_ends(*ends, 2)) if ends else None


def _ends(side: Side, place: int) -> Ends | None:
    return interval(replicates(side, place)) if side.is_sure else None


def _cpu(answer: Answer) -> str:
    return f"CPU, {counted(answer.threads, 'thread')}"


def _lines(answer: Answer) -> Iterator[Line]:
    beside = {"gpu": "*faster", "cpu": "slower", "not sure": "not sure", "unmeasured": ""}
    for place, (side, name) in enumerate(
        ((answer.cpu, _cpu(answer)), (answer.gpu, answer.gpu_name))
    ):
        if side is None or side.seconds is None:
            continue
        yield Line(
            *(name, side.seconds, _ends(side, place), side.part("data"), side.part("copy")),
            ready=median(side.ready) if side.ready else None,
            beside=beside[answer.verdict] if place else "–",
        )
    if answer.bench and answer.bench.seconds is not None:
        here = replicates(answer.cpu, 0)
        mine = replicates_on("cpu", answer.bench.samples, 2)
        is_sure = answer.cpu.is_sure and not (answer.others or answer.bench.is_disturbed)
        faster = beside[_faster(interval(here / mine) if is_sure else None)]
        yield Line("CPU, our own program", answer.bench.seconds, interval(mine), beside=faster)
    alike = are_alike(answer)
    for card in answer.cards[:1] if alike else answer.cards:
        name = f"each of {len(answer.cards)} cards" if alike else card.name
        faster = beside[card.side or "not sure"]
        yield Line(f"{name}, predicted", card.seconds, (card.low, card.high), beside=faster)


def are_alike(answer: Answer) -> bool:
    """Whether a step takes as long on each of several cards, as far as is shown."""
    cards = answer.cards
    shown = {(_seconds(card.seconds), _span((card.low, card.high)), card.side) for card in cards}
    return len(cards) > 1 == len(shown)


def _lead(answer: Answer) -> str:
    cpu, gpu = answer.cpu_seconds, answer.gpu_seconds
    if cpu is not None and gpu is not None:
        times = f"a step takes {_seconds(gpu)} on the {answer.gpu_name} and {_seconds(cpu)} here"
        if answer.interval is None:
            return f"not sure, by fewer than {FEWEST_SAMPLES} turns: {times}, on the CPU"
        low, high = (units.significant(end) for end in answer.interval)
        factor = units.significant(cpu / gpu)
        sure = f"{factor} times as long on the CPU ({low} to {high}, 95 % sure)"
        return f"{_WINS[answer.verdict]}: {times}, {sure}"
    known = cpu if cpu is not None else gpu
    assert known is not None, "ask() raises where nothing is known"
    where = "on the CPU" if gpu is None else f"on the {answer.gpu_name}"
    return f"a step takes {_seconds(known)} {where}{_elsewhere(answer)}"


def _elsewhere(answer: Answer) -> str:
    if answer.gpu:
        return f"; on the {answer.gpu_name if answer.cpu_seconds else 'CPU'} it failed"
    if not answer.cards:
        return "; PyTorch sees no GPU here"
    card = answer.cards[0]
    range_ = _span((card.low, card.high))
    wins = _WINS[card.side or "not sure"]
    return f"; PyTorch sees no GPU here, and on an {card.name} it would take {range_}: {wins}"


def _seconds(value: float) -> str:
    return units.seconds(value, 2)


# ---- why


def failures(answer: Answer) -> Iterator[str]:
    """What there was in the way."""
    if answer.others:
        yield (
            f"Other programs used {units.significant(answer.others, 2)} processors meanwhile, so "
            "the CPU's time is too long: measure again on an idle machine."
        )
    for side, name in ((answer.cpu, "CPU"), (answer.gpu, answer.gpu_name)):
        if side and side.problem:
            yield f"On the {name} it fails: {printable(side.problem, 400).rstrip('.')}."


def _parts(answer: Answer) -> Iterator[str]:
    """Where a step's time goes."""
    for side, name in ((answer.cpu, "CPU"), (answer.gpu, answer.gpu_name)):
        if not side or not side.seconds:
            continue
        shares = {
            "is waiting for the loader": side.part("data") / side.seconds,
            "is copying the batch": side.part("copy") / side.seconds,
        }
        large = [f"{100 * share:.0f} % {what}" for what, share in shares.items() if share >= _MUCH]
        if large:
            yield f"Of a step on the {name}, {listed(large)}."
        if side.first_seconds > max(_LONG_SECONDS, 10 * side.seconds):
            yield f"The first step takes {_seconds(side.first_seconds)} on the {name}."
    sides = [side for side in (answer.cpu, answer.gpu) if side and side.seconds]
    if len(sides) > 1 and all(side.part("data") > side.part("rest") for side in sides):
        yield (
            "Both devices wait for the loader, so that what gives batches sooner (num_workers=) "
            "changes more than the device does."
        )
    if answer.steps and answer.cpu_seconds:
        epochs = [f"{_seconds(answer.steps * answer.cpu_seconds)} on the CPU"]
        if answer.gpu_seconds:
            epochs.append(f"{_seconds(answer.steps * answer.gpu_seconds)} on the {answer.gpu_name}")
        yield f"An epoch of {counted(answer.steps, 'step')} takes {listed(epochs)}."


def changes(answer: Answer) -> Iterator[str]:
    """What would change the answer."""
    cpu, gpu = answer.cpu, answer.gpu
    sides = [side for side in (cpu, gpu) if side and side.ready and side.seconds]
    for side in sides:
        name = "CPU" if side is cpu else answer.gpu_name
        ready, whole = median(side.ready), side.seconds or 0.0
        if ready < (1 - _MUCH) * whole:
            yield (
                f"With batches that lie ready, and one loss read of many, a step on the {name} "
                f"takes {_seconds(ready)}."
            )
    yield from _compiled(answer)
    if (bench := answer.bench) and bench.seconds is not None and cpu.seconds:
        less = "".join(f", without the {word}" for word in bench.out)
        yield (
            f"Our own program takes {_seconds(bench.seconds)} a step on this CPU, with batches in "
            f"memory{less}; your loop takes {_seconds(cpu.seconds)}."
        )
    if gpu is None or len(sides) < 2:
        return
    ends = ratio(cpu, gpu, ready=True)
    ready_verdict = _faster(ends)
    if ends and ready_verdict != answer.verdict:
        yield f"So the answer would be another one then: {_WINS[ready_verdict]}."


def _compiled(answer: Answer) -> Iterator[str]:
    for side, name in ((answer.cpu, "CPU"), (answer.gpu, answer.gpu_name)):
        if side and side.not_compiled:
            yield f"torch.compile fails on the {name}: {printable(side.not_compiled, 300)}."
        if not side or not side.compiled or not side.seconds:
            continue
        after, whole = median(side.compiled), side.seconds
        text = f"torch.compile takes {_seconds(side.compile_seconds)} on the {name}"
        text += f", and then a step takes {_seconds(after)}"
        if after < whole:
            steps = units.size(side.compile_seconds / (whole - after))
            text += f": it is repaid after {steps} steps"
        yield f"{text}."


def doubts(answer: Answer) -> Iterator[str]:
    """What its times are worth."""
    sides = [side for side in (answer.cpu, answer.gpu) if side and side.turns]
    if answer.is_stopped:
        yield "It was stopped, so that less is known than could be."
    few = [side for side in sides if not side.is_sure]
    if few:
        fewest = min(len(side.turns) for side in few)
        yield (
            f"A device had only {counted(fewest, 'turn')}, and {FEWEST_SAMPLES} are needed for an "
            "interval: give more seconds=."
        )
    if not all(side.is_finite for side in sides):
        yield "A loss was not finite after the timed steps: the training diverges."
    if answer.bench and answer.bench.problem:
        yield f"Our own program was not measured: {printable(answer.bench.problem, 300)}."
    if answer.no_cards and not answer.gpu:
        yield f"What it would take on a GPU is not predicted: {printable(answer.no_cards, 300)}."
    if are_alike(answer):
        names = listed([card.name for card in answer.cards])
        yield f"A step would take equally long on {names}, as they wait for the CPU."
    if answer.cards:
        yield (
            "Predicted are steps of PyTorch's eager loop, in a range for 90 % of cards "
            "(docs/method/peers.md#what-is-counted); ask again where there is a GPU."
        )
    yield from answer.remarks
    yield _processes(sides)


def _processes(sides: Sequence[Side]) -> str:
    fewest = min((len(set(side.processes)) for side in sides), default=0)
    if not fewest:
        return ONE_PROCESS
    if fewest < FEW:
        known = f"Of {INSTANCES} new processes {fewest} measured it"
        return f"{known}: intervals add what lies between processes, as on other machines."
    return f"{fewest} new processes measured it: intervals hold what lies between processes."
