# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is: after each repetition of a row of bench's, the peer's rows of the same work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from peers.counts import BenchError, Counts
from peers.document import PeerRow
from peers.names import Configuration, Wanted, configuration_of, counterparts, name_of
from peers.protocol import PeerEnded, Requests

Start = Callable[[str], Requests]  # of the process for these pages


class Turns:
    """The peer's rows. Each takes turns with one row of bench's, the first that does its work."""

    def __init__(
        self,
        wanted: Wanted,
        counts: Counts,
        start: Start,
        has_gpu: bool,
        earlier: Iterable[PeerRow] = (),
    ) -> None:
        self._wanted = wanted
        self._counts = counts
        self._start = start
        self._has_gpu = has_gpu
        self._rows = {row.name: row for row in earlier}
        self._prepared: set[str] = set()

    @property
    def rows(self) -> list[PeerRow]:
        """All that had a turn, in the order of their first."""
        return list(self._rows.values())

    def followers(self, ours: str) -> list[PeerRow]:
        """Those that take turns with that row."""
        return [row for row in self._rows.values() if row.lead == ours]

    def take(self, ours: str, min_time_seconds: float) -> None:
        """The turn after a repetition of the row `ours`."""
        for configuration in counterparts(configuration_of(ours), self._wanted):
            row = self._rows.setdefault(name_of(configuration), PeerRow(configuration, ours))
            if row.lead == ours and not row.outcome and not row.finished:
                self._repeat(row, min_time_seconds)

    def finish(self, ours: str) -> list[PeerRow]:
        """Frees what the followers of that row hold, and returns those that it ends."""
        found = [row for row in self.followers(ours) if not row.finished]
        for row in found:
            row.finished = True
            if row.name in self._prepared:
                self._prepared.discard(row.name)
                self._asked(row, lambda peer, row=row: peer.release(row.name))
        return found

    def _repeat(self, row: PeerRow, min_time_seconds: float) -> None:
        if row.name not in self._prepared and not self._prepare(row):
            return
        answer = self._asked(row, lambda peer: peer.repeat(row.name, min_time_seconds))
        if not row.end(answer):
            row.times.append(answer["times"])

    def _prepare(self, row: PeerRow) -> bool:
        if row.configuration["device"] == "torch-cuda" and not self._has_gpu:
            row.end({"outcome": "skipped", "error_message": "this PyTorch sees no GPU"})
            return False
        try:
            counted = self._counts.of(row.configuration)
        except BenchError as error:
            row.end({"outcome": "failed", "error_message": str(error)})
            return False
        answer = self._asked(row, lambda peer: peer.prepare(row.name, row.configuration, counted))
        if row.end(answer):
            return False
        self._prepared.add(row.name)
        row.facts, row.once = answer["facts"], answer["once"]
        return True

    def _asked(self, row: PeerRow, ask: Callable[[Requests], dict[str, Any]]) -> dict[str, Any]:
        """A process that ends takes the row with it; the next one gets a new process."""
        pages = _pages(row.configuration)
        try:
            return ask(self._start(pages))
        except PeerEnded as ended:
            self._prepared.clear()
            for other in self._rows.values():
                if other.times and not other.outcome and other.lead == row.lead:
                    other.end({"outcome": "failed", "error_message": str(ended)})
            return {"outcome": "failed", "error_message": str(ended)}


def _pages(configuration: Configuration) -> str:
    return configuration.get("pages", "default")
