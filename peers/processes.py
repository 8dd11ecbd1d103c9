# SPDX-License-Identifier: Apache-2.0
"""A peer's processes: one for each setting of pages, started when first asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from peers.protocol import Answer, Peer

ROOT = Path(__file__).resolve().parent.parent

ENVIRONMENTS: dict[str, dict[str, str]] = {"default": {}, "huge": {"THP_MEM_ALLOC_ENABLE": "1"}}


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
            paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
            variables = {**ENVIRONMENTS[pages], "PYTHONPATH": os.pathsep.join(paths)}
            self._peers[pages] = Peer(self._command, variables)
            self._peers[pages].describe()  # what it sets up there belongs before its first row
        return self._peers[pages]

    def describe(self) -> Answer:
        """What a result file records of the framework."""
        return self.of("default").describe()

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()
