# SPDX-License-Identifier: Apache-2.0
"""A peer's processes: one for each setting of pages, started when first asked for."""

from __future__ import annotations

from collections.abc import Sequence

from peers.protocol import Answer, Peer

ENVIRONMENTS = {"default": {}, "huge": {"THP_MEM_ALLOC_ENABLE": "1"}}


class Processes:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._peers: dict[str, Peer] = {}

    def of(self, pages: str) -> Peer:
        """The process; a new one where the last has ended."""
        known = self._peers.get(pages)
        if known is None or not known.is_running():
            if known is not None:
                known.close()
            self._peers[pages] = Peer(self._command, ENVIRONMENTS[pages])
            self._peers[pages].describe()  # what it sets up there belongs before its first row
        return self._peers[pages]

    def describe(self) -> Answer:
        """What a result file records of the framework."""
        return self.of("default").describe()

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()


