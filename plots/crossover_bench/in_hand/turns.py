# SPDX-License-Identifier: Apache-2.0
"""Loops on several devices, timed in turns of drawn order until the seconds are used up."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean, median, mode
from time import perf_counter

import numpy as np
import torch

from crossover_bench.curves.statistics import FEWEST_SAMPLES, interval, resampled_medians
from crossover_bench.files.rows import Instances
from crossover_bench.files.samples import assumed
from crossover_bench.in_hand.kept import AskError
from crossover_bench.in_hand.loop import Loop, Step
from crossover_bench.peers.pytorch.user_file import failure

_TURNS = 20  # that are enough
_TURN_SECONDS = 0.25  # of a turn, unless a step takes longer
_LONG = 0.05  # seconds of a step before which no other is taken to warm up
_COMPILED_SHARE = 0.25  # of the seconds, for the turns of compiled modules
_SHORTEST = 40  # turns for which the seconds are to be enough
_WARM_UP_SHARE = 0.05
_WAITS = 0.05  # of a step: with more of it in the loader, the loop waits for that
_SEED = 20_270_000
Say = Callable[[str], None]


@dataclass(slots=True)
class Side:
    """What is known of the loop on one device: the steps of each turn; and in each turn the seconds
    of a step with batches that lie `ready`, and with a `compiled` module, whose first step took
    `compile_seconds`. `problem` says why it ended early, in a phrase, and `not_compiled` why
    nothing was compiled. `processes` has which one took each turn, `ready` or not; it is empty
    where one took all."""

    device: torch.device
    first_seconds: float = 0.0
    turns: list[list[Step]] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    compiled: list[float] = field(default_factory=list)
    compile_seconds: float = 0.0
    not_compiled: str = ""
    problem: str = ""
    error: Exception | None = None
    is_finite: bool = True
    processes: list[int] = field(default_factory=list)
    ready_processes: list[int] = field(default_factory=list)

    def add(self, other: Side, process: int) -> None:
        """What another process knows of the same loop."""
        self.first_seconds = self.first_seconds or other.first_seconds
        self.compile_seconds = self.compile_seconds or other.compile_seconds
        self.problem = self.problem or other.problem
        self.not_compiled = self.not_compiled or other.not_compiled
        self.is_finite = self.is_finite and other.is_finite
        self.turns += other.turns
        self.ready += other.ready
        self.compiled += other.compiled
        self.processes += [process] * len(other.turns)
        self.ready_processes += [process] * len(other.ready)

    @property
    def samples(self) -> list[float]:
        """Seconds of a step in each turn."""
        return [fmean(step.seconds for step in turn) for turn in self.turns]

    @property
    def seconds(self) -> float | None:
        """Of a step, in the median of the turns."""
        return median(self.samples) if self.turns else None

    @property
    def is_sure(self) -> bool:
        """Whether there are turns enough for an interval."""
        return len(self.turns) >= FEWEST_SAMPLES

    @property
    def rows(self) -> int:
        """Of most batches."""
        return mode(step.rows for turn in self.turns for step in turn)

    def part(self, name: str) -> float:
        """Seconds of the `data`, the `copy` or the `rest` of a step."""
        return median(fmean(getattr(step, name) for step in turn) for turn in self.turns)


def replicates(side: Side, place: int, *, ready: bool = False) -> np.ndarray:
    """What the median of its turns, or of those with batches that lie `ready`, could have been in
    other processes; `place` names the random numbers of the side."""
    samples, of = (side.ready, side.ready_processes) if ready else (side.samples, side.processes)
    return replicates_on("cpu" if side.device.type == "cpu" else "cuda", samples, place, of)


def replicates_on(
    device: str, samples: Sequence[float], place: int, processes: Sequence[int] = ()
) -> np.ndarray:
    """The same on a `device` of bench's; one process alone ran all where none are named."""
    instances = assumed(device).of(Instances(tuple(processes)))
    return resampled_medians(np.array(samples), place, instances=instances)


def ratio(first: Side, second: Side, *, ready: bool = False) -> tuple[float, float] | None:
    """The 95 % interval of how many times as long the turns of the first side take as those of the
    second; None where there are too few."""
    fewest = min(len(side.ready if ready else side.turns) for side in (first, second))
    if fewest < FEWEST_SAMPLES:
        return None
    pair = [replicates(side, place, ready=ready) for place, side in enumerate((first, second))]
    return interval(pair[0] / pair[1])


@dataclass(slots=True)
class _Running:
    """A loop in its turns. `settle` are steps before a turn that are not timed: the batches that
    workers made in the turn of another, where the loop waits for them, or one step where steps are
    short."""

    side: Side
    loop: Loop
    longest: float  # seconds of a turn, unless a step takes longer
    step_seconds: float = 0.0
    settle: int = 0

    def warm_up(self, seconds: float) -> None:
        """The first step, and some more for at most so many seconds."""
        start = perf_counter()
        self.loop.take(1)
        self.side.first_seconds = self.step_seconds = perf_counter() - start
        taken: list[Step] = []
        while len(taken) < 100 and perf_counter() + self.step_seconds < start + seconds:
            taken += self.loop.take(1)
            self.step_seconds = median(step.seconds for step in taken)
        self.settle = int(self.step_seconds < _LONG)
        waits = bool(taken) and median(step.data / step.seconds for step in taken) > _WAITS
        if waits or not taken:
            self.settle += self.loop.batches.ahead

    @property
    def count(self) -> int:
        """Steps of a turn."""
        return max(1, min(10_000, round(self.longest / max(self.step_seconds, 1e-9))))

    @property
    def turn_seconds(self) -> float:
        """About how long a turn takes."""
        return (self.count + self.settle) * self.step_seconds

    def turn(self) -> None:
        """As the user's loop has it."""
        self.loop.take(self.settle)
        steps = self.loop.take(self.count)
        self.side.turns.append(steps)
        self.step_seconds = fmean(step.seconds for step in steps)

    def ready_turn(self) -> None:
        """The same with batches that lie ready."""
        self.loop.take_ready(1)
        self.side.ready.append(self.loop.take_ready(self.count))

    def compiled_turn(self) -> None:
        """As the user's loop has it, with the compiled module."""
        self.loop.take(max(1, self.settle))
        steps = self.loop.take(self.count)
        self.side.compiled.append(fmean(step.seconds for step in steps))

    def lays_ready(self) -> bool:
        """Whether batches could be laid ready."""
        try:
            self.loop.lay_ready()
        except Exception:  # such as a lack of memory: the loop itself is measured
            return False
        return True

    def compiles(self) -> bool:
        """Whether the module could be compiled, in a first step."""
        start = perf_counter()
        try:
            self.loop.compile()
            self.loop.take(1)
        except Exception as error:
            self.side.not_compiled = failure(error)
            return False
        self.side.compile_seconds = perf_counter() - start
        return True


def measure(
    sides: Sequence[Side],
    make: Callable[[torch.device], Loop],
    seconds: float,
    say: Say,
    *,
    compiles: bool = False,
) -> bool:
    """Measures what `make` makes for each of `sides`, for about so many seconds, and fills them in;
    `say` hears what is done; what `compiles` takes longer. Returns whether Ctrl-C ended it, which
    is raised where nothing is known yet."""
    start = perf_counter()
    longest = min(_TURN_SECONDS, seconds / _SHORTEST / len(sides))
    running: list[_Running] = []
    try:
        for side in sides:
            say(f"the first steps on {side.device}")
            with _told(side):
                running.append(_Running(side, make(side.device), longest))
                running[-1].warm_up(_WARM_UP_SHARE * seconds)
        well = [each for each in running if not each.side.problem]
        left = start + seconds - perf_counter()
        is_enough = 2 * FEWEST_SAMPLES * sum(each.turn_seconds for each in well) < left
        ready = [each for each in well if is_enough and each.lays_ready()]
        turns = [*product(well, [_Running.turn]), *product(ready, [_Running.ready_turn])]
        _rounds(turns, start + seconds, say)
        for each in well:
            each.side.is_finite = math.isfinite(each.loop.last_loss)
        say("torch.compile")
        compiled = [each for each in well if compiles and each.compiles()]
        end = perf_counter() + _COMPILED_SHARE * seconds
        _rounds([*product(compiled, [_Running.compiled_turn])], end, say)
    except KeyboardInterrupt:
        if not any(side.turns for side in sides):
            raise
        return True
    finally:
        for each in running:
            each.loop.close()
    return False


def _rounds(
    turns: Sequence[tuple[_Running, Callable[[_Running], None]]], end: float, say: Say
) -> None:
    """All `turns` in drawn orders, while there is time for another round; the first is there for
    what nothing is known of."""
    order = random.Random(_SEED)
    for number in range(_TURNS):
        left = [(each, turn) for each, turn in turns if not each.side.problem]
        needed = sum(each.turn_seconds for each, _ in left)
        is_first = any(not each.side.turns for each, _ in left)
        if not left or (perf_counter() + needed > end and not is_first):
            return
        order.shuffle(left)
        for each, turn in left:
            say(f"round {number + 1}, on {each.side.device}")
            if not each.side.problem:
                with _told(each.side):
                    turn(each)


@contextmanager
def _told(side: Side) -> Iterator[None]:
    """What fails is told of the side, and others go on."""
    try:
        yield
    except Exception as error:
        side.error = error
        side.problem = str(error) if isinstance(error, AskError) else failure(error)
