# SPDX-License-Identifier: Apache-2.0
"""Several batch sizes of a module in hand: loaders of other sizes, and from which size the GPU
wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from crossover_bench.curves import problem, problem_words
from crossover_bench.in_hand.answer import (
    BUSY,
    ONE_PROCESS,
    Answer,
    Verdict,
    are_alike,
    changes,
    doubts,
    failures,
    html_of,
)
from crossover_bench.in_hand.kept import AskError
from crossover_bench.in_hand.loop import as_tensors, is_batch, rows_of, tensors_of
from crossover_bench.show.page.section import Block, Section
from crossover_bench.show.page.text import text_of
from crossover_bench.show.strip import Strip, Strips, segments_of
from crossover_bench.show.tables.cells import Field, count_field, seconds_field, table_of
from crossover_bench.show.tables.problem import sizes_table
from crossover_bench.show.tables.table import Table
from crossover_bench.words.text import listed, printable, sentence

_MOST_ROWS = 1 << 24


def resized(loader: Any, rows: int) -> Any:
    """A loader as the user's, whose batches have so many rows: of the same data in a DataLoader, of
    the rows of a single batch again and again."""
    if not (isinstance(rows, int) and 0 < rows <= _MOST_ROWS):
        raise AskError(f"batches= has {rows!r}, and is to have numbers from 1 to {_MOST_ROWS:,}")
    if is_batch(loader):
        batch = as_tensors(loader)
        return _repeated(batch, rows_of(batch), rows)
    if not isinstance(loader, DataLoader) or loader.batch_size is None:
        raise AskError(
            "batches= needs a DataLoader with a batch_size, or one batch as a tuple (inputs, "
            "targets) or as a dictionary, of which batches of other sizes can be made"
        )
    data = loader.dataset
    if isinstance(data, IterableDataset):
        options: dict[str, Any] = {}
    elif len(data) < rows:
        raise AskError(f"batches= has {rows:,}, and the loader's data has {len(data):,} rows")
    else:
        options = {"sampler": loader.sampler}
    names = (
        *("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "generator"),
        *("multiprocessing_context", "prefetch_factor", "persistent_workers"),
    )
    options |= {name: getattr(loader, name) for name in names}
    return DataLoader(data, batch_size=rows, drop_last=loader.drop_last, **options)


def _repeated(value: Any, had: int, rows: int) -> Any:
    """`value` with so many rows in each tensor that `had` others."""
    if isinstance(value, Mapping):
        return {key: _repeated(each, had, rows) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_repeated(each, had, rows) for each in value)
    if not [*tensors_of(value)] or not value.ndim or value.shape[0] != had or not had:
        return value
    times = -(-rows // had)
    return value.repeat(times, *(1 for _ in value.shape[1:]))[:rows].clone()


@dataclass(frozen=True, repr=False)
class BatchesAnswer:
    """The `answers` by batch size, and what they say together."""

    answers: Mapping[int, Answer]

    @cached_property
    def curve(self) -> problem.Answer | None:
        """From which batch on the GPU wins, with its interval; None where fewer than two sizes were
        measured on both sides."""
        ways = tuple(map(self._way, problem.SIDES))
        try:
            return problem.answer(problem.Problem(self._first.module, "batch", ways))
        except problem.NoAnswerError:
            return None

    def _way(self, device: problem.Device) -> problem.Way:
        sides = {
            float(rows): side
            for rows, answer in self.answers.items()
            if (side := answer.cpu if device == "cpu" else answer.gpu)
        }
        return problem.Way(
            "PyTorch" if device == "cpu" else self._first.gpu_name,
            device,
            {rows: tuple(side.samples) for rows, side in sides.items() if side.turns},
            {rows: tuple(side.processes) for rows, side in sides.items() if side.processes},
            failures={rows: side.problem for rows, side in sides.items() if side.problem},
        )

    @property
    def _first(self) -> Answer:
        return next(iter(self.answers.values()))

    @property
    def verdicts(self) -> dict[int, Verdict]:
        """Who wins at each batch size."""
        return {rows: answer.verdict for rows, answer in self.answers.items()}

    @property
    def lead(self) -> str:
        """The answer in a sentence."""
        is_busy = any(answer.others for answer in self.answers.values())
        busy = BUSY if is_busy else ""
        if self.curve:
            return busy + problem_words.lead(self.curve)
        names: dict[str, list[str]] = {}
        for place in range(self._cards):
            names.setdefault(self._predicted(place), []).append(self._first.cards[place].name)
        told = (f"{listed(of)} (predicted): {where}" for where, of in names.items())
        return sentence("; ".join(told) or self._first.lead.rstrip("."))

    @property
    def _cards(self) -> int:
        return min(len(answer.cards) for answer in self.answers.values())

    def _predicted(self, place: int) -> str:
        """From which of the sizes on a card is surely ahead."""
        sides = {rows: answer.cards[place].side for rows, answer in self.answers.items()}
        last = max((rows for rows, side in sides.items() if side != "gpu"), default=0)
        wins = [rows for rows in sides if rows > last]
        if len(wins) == len(sides):
            return "the GPU wins at every batch measured"
        return (
            f"the GPU wins from batch {wins[0]:,} on" if wins else "the GPU wins for sure nowhere"
        )

    @property
    def why(self) -> tuple[str, ...]:
        """By how much, and what is doubtful, a sentence each."""
        told = problem_words.sentences(self.curve)[1:] if self.curve else ()
        of_sizes: dict[str, list[int]] = {}
        for rows, answer in self.answers.items():
            for line in (*failures(answer), *changes(answer), *doubts(answer)):
                of_sizes.setdefault(line, []).append(rows)
        each = (
            line if len(at) == len(self.answers) else f"Batch {listed([*map(str, at)])}: {line}"
            for line, at in of_sizes.items()
        )
        # What lies between processes a curve says itself.
        return (*told, *(line for line in each if not (told and line == ONE_PROCESS)))

    @property
    def table(self) -> Table:
        """A line for each size."""
        if self.curve:
            return sizes_table(self.curve)
        cards = [card.name for card in self._first.cards]
        fields: list[Field] = [
            count_field("batch", "batch", lambda of: of[0]),
            seconds_field("cpu_seconds", "a step here", lambda of: of[1].cpu_seconds, digits=2),
        ]
        if self._first.gpu:
            fields.append(
                seconds_field("gpu_seconds", "on the GPU", lambda of: of[1].gpu_seconds, digits=2)
            )
        if self._cards and all(map(are_alike, self.answers.values())):
            fields.append(_card_field(0, f"each of {self._cards} cards"))
        else:
            fields += [_card_field(place, name) for place, name in enumerate(cards[: self._cards])]
        title = printable(self._first.module)
        return table_of(title, list(self.answers.items()), fields)

    def __repr__(self) -> str:
        block = Block(lead=self.lead, points=self.why, tables=(self.table,), emphasis=True)
        return text_of([Section("", "", blocks=(block,))]).strip()

    def _repr_html_(self) -> str:
        words = html_of(self.lead, self.table, self.why)
        if self.curve is None:
            return words
        # Imported here because matplotlib takes long to load.
        from crossover_bench.show.charts.strip import draw_strips  # noqa: PLC0415

        crossover = self.curve.crossover
        strip = Strip(self._first.gpu_name, segments_of(crossover), crossover=crossover.size)
        drawn = draw_strips(Strips("From which batch a GPU wins", (strip,), "batch"))
        svg = drawn.pictures.svg.decode()
        return words + svg[svg.index("<svg") :]


def _card_field(place: int, name: str) -> Field:
    def seconds(of: tuple[int, Answer]) -> float:
        return of[1].cards[place].seconds

    return seconds_field(f"{name}_seconds", f"{name}, predicted", seconds, digits=2)


def check(batches: Sequence[int]) -> list[int]:
    """In their order, each once."""
    if isinstance(batches, (str, bytes)) or not list(batches):
        raise AskError(f"batches={batches!r} is no list of numbers of rows such as [16, 64, 256]")
    return sorted(set(batches))
