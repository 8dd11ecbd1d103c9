# SPDX-License-Identifier: Apache-2.0
"""crossover_bench.ask: whether a GPU pays for the training loop that a program holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import torch

from crossover_bench.answers.predict.ways import Band
from crossover_bench.curves.statistics import interval
from crossover_bench.in_hand.answer import Answer
from crossover_bench.in_hand.copies import Given, released
from crossover_bench.in_hand.isolated import measured, sent
from crossover_bench.in_hand.kept import AskError, process_kept, untouched
from crossover_bench.in_hand.loop import Batches, Loop, parted, unnamed_words
from crossover_bench.in_hand.others import Others
from crossover_bench.in_hand.own import OwnProgram, OwnSteps
from crossover_bench.in_hand.prediction import OnCard, counted, on_cards
from crossover_bench.in_hand.progress import Progress, progress
from crossover_bench.in_hand.sizes import BatchesAnswer, check, resized
from crossover_bench.in_hand.turns import Side, measure, replicates
from crossover_bench.peers.pytorch.devices import first, is_there, kinds, name_of
from crossover_bench.spawned import NotSentError
from crossover_bench.study.machines import short_gpu
from crossover_bench.words.text import printable

_LEAST_SECONDS = 0.1
_FOR_PROCESSES = 0.7  # of the seconds; the rest is our own program's


def ask(
    model: torch.nn.Module,
    loader: Any,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any,
    seconds: float = 30.0,
    batches: Sequence[int] | None = None,
    compile: bool = False,
    devices: Sequence[str | torch.device] | None = None,
    isolated: bool = False,
) -> Answer | BatchesAnswer:
    """Times the loop over `loader` that trains `model` by `loss` and `optimizer`, as they stand, on
    the CPU and on the GPU that PyTorch sees, in about so many `seconds`.

    Copies are trained; what the caller holds is as before. Ctrl-C ends it with what is known, and
    is raised where that is nothing. `loader` is a DataLoader, a list of batches, a function that
    gives an iterator of them, or one batch as a tuple (inputs, targets) or as a dictionary.
    Without `loss` the module gives its own. With `batches` each of these sizes is measured, for a
    share of the seconds; with `compile` torch.compile of the module is, too, which takes its own
    time. `devices` are one or two, the CPU first. `isolated` measures in new processes, several one
    after the other, which get copies by pickling. Where bench is built, it measures a step in the
    time that is left. Raises AskError, a ValueError, with a sentence where nothing can be measured.
    """
    if not isinstance(seconds, int | float) or not _LEAST_SECONDS <= seconds < float("inf"):
        raise AskError(f"seconds={seconds!r} is no number of seconds from {_LEAST_SECONDS} on")
    given, places = Given(model, loss, optimizer), _devices(devices)
    sizes = {} if batches is None else {rows: resized(loader, rows) for rows in check(batches)}
    held = (*Batches.of(loader).held, model, loss)
    with (
        progress(given.name, seconds) as shown,
        process_kept(places, held),
        untouched(given.modules, optimizer),
    ):
        question = _Question(given, places, compile, isolated, shown)
        try:
            return question.of_sizes(sizes, seconds) if sizes else question.of(loader, seconds)
        finally:
            released(places)


def _devices(devices: Sequence[str | torch.device] | None) -> list[torch.device]:
    if devices is None:
        kind = first()
        return [torch.device("cpu"), *([torch.device(kind)] if kind else [])]
    try:
        places = [torch.device(device) for device in devices]
    except (RuntimeError, TypeError) as error:
        raise AskError(f"devices={devices!r}: {' '.join(str(error).split())[:200]}") from error
    if not 1 <= len(places) <= 2 or places[0].type != "cpu":
        raise AskError(f"devices={devices!r} is not the CPU and at most one other")
    for kind in {place.type for place in places} - {"cpu"}:
        if kind not in kinds() or not is_there(kind):
            raise AskError(f"devices={devices!r}: this PyTorch sees no {kind} here")
    return places


@dataclass(frozen=True)
class _Question:
    """What is asked of the devices at `places`."""

    given: Given
    places: Sequence[torch.device]
    compiles: bool
    isolated: bool
    shown: Progress
    bench: OwnSteps = field(default_factory=OwnSteps)

    def of_sizes(self, loaders: Mapping[int, Any], seconds: float) -> BatchesAnswer:
        """Of loaders by their batch size, in so many seconds together."""
        answers: dict[int, Answer] = {}
        for rows, loader in loaders.items():
            try:
                answers[rows] = self.of(loader, seconds / len(loaders))
            except KeyboardInterrupt:
                if not answers:
                    raise
                break
            if answers[rows].is_stopped:
                break
        return BatchesAnswer(answers)

    def of(self, loader: Any, seconds: float) -> Answer:
        """Of the loader."""
        end = perf_counter() + seconds
        sides = [Side(device) for device in self.places]

        def make(device: torch.device) -> Loop:
            return Loop(self.given, loader, device)

        threads, others = torch.get_num_threads(), Others()
        is_stopped, remarks = self._measured(sides, make, loader, seconds)
        if not any(side.turns for side in sides):
            reason = printable(sides[0].problem, 500) + self._remedy(loader)
            raise AskError(f"{self.given.name} can't be trained: {reason}") from sides[0].error
        for side in sides:
            side.error = None  # whose frames hold copies
        # Workers of a loader would count among others.
        disturbed = 0.0 if Batches.of(loader).ahead else others.disturbed(threads)
        cpu, gpu = sides[0], sides[1] if len(sides) > 1 else None
        bench = None
        if cpu.turns and not is_stopped:
            bench, is_stopped = self._own_step(lambda: make(cpu.device), end - perf_counter())
        cards: tuple[OnCard, ...] = ()
        no_cards = "" if gpu else "it was stopped"
        if not gpu and not is_stopped:
            self.shown.say("predicting cards")
            cards, no_cards = _predicted(make, cpu)
            # Cards are compared with an idle CPU or not at all.
            cards = tuple(replace(card, side=None) for card in cards) if disturbed else cards
        return Answer(
            module=self.given.words,
            threads=threads,
            cpu=cpu,
            gpu=gpu,
            gpu_name=short_gpu(name_of(self.places[-1])) if gpu else "",
            steps=Batches.of(loader).steps,
            bench=bench,
            cards=cards,
            no_cards=no_cards,
            others=disturbed,
            is_stopped=is_stopped,
            remarks=remarks,
        )

    def _measured(
        self, sides: list[Side], make: Callable[[torch.device], Loop], loader: Any, seconds: float
    ) -> tuple[bool, tuple[str, ...]]:
        """Fills `sides` in. Whether Ctrl-C ended it, which is raised where nothing is known yet;
        and what was in the way, a sentence each."""
        remarks: tuple[str, ...] = ()
        if self.isolated:
            try:
                task = sent(self.given, loader, self.places, self.compiles)
                return False, measured(task, sides, _FOR_PROCESSES * seconds, self.shown.say)
            except NotSentError as error:
                remarks = (f"It was measured in this process, as new ones can't have it: {error}.",)
            except KeyboardInterrupt:
                if not any(side.turns for side in sides):
                    raise
                return True, ()
        say = self.shown.say
        return measure(sides, make, seconds, say, compiles=self.compiles), remarks

    def _remedy(self, loader: Any) -> str:
        """A clause where the batches may be why it fails; empty where nothing is known."""
        with suppress(Exception):  # the user's code may raise anything
            return unnamed_words(self.given.model, Batches.of(loader).first())
        return ""

    def _own_step(self, make: Callable[[], Loop], seconds: float) -> tuple[OwnProgram | None, bool]:
        """Of our own program; and whether Ctrl-C ended it."""
        try:
            return self.bench.step(make, seconds, self.shown.say), False
        except KeyboardInterrupt:
            return None, True


def _predicted(make: Callable[[torch.device], Loop], cpu: Side) -> tuple[tuple[OnCard, ...], str]:
    """Cards, by what a step of the loop starts; and why there are none."""
    try:
        loop = make(cpu.device)
        x, y = parted(loop.batches.first(), loop.has_loss)
        operations, reason = counted(loop.model, loop.optimizer, lambda: loop.loss(x, y))
        if reason:
            return (), reason
        here = interval(replicates(cpu, 0))
        return on_cards(operations, Band(*here), cpu.part("data"))
    except ModuleNotFoundError as missing:
        return (), f"this Python has no {missing.name}"
    except KeyboardInterrupt:
        return (), "it was stopped"
