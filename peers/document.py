# SPDX-License-Identifier: Apache-2.0
"""A peer's rows in a result file, beside those of bench (results/README.md defines both)."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from peers.names import Configuration, name_of

Document = dict[str, Any]

LOSSES = ("loss_first_epoch", "loss_first_step")
# bench writes six significant digits: half a unit in the last of them, at worst.
_WRITTEN = 5e-6
_SMALL_LOSS = 0.1  # as in verification: relative to this
_TAKES_TURNS = "--take-turns="
WITH_PEERS = "--with-peers"


@dataclass
class PeerRow:
    """A row of a peer's; `lead` is the row of bench's that it takes turns with, "" where none."""

    configuration: Configuration
    lead: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    once: dict[str, float] = field(default_factory=dict)
    times: list[dict[str, Any]] = field(default_factory=list)
    outcome: str = ""
    error_message: str = ""

    @property
    def name(self) -> str:
        return name_of(self.configuration)

    @property
    def seconds(self) -> list[float]:
        """Of an iteration, by repetition."""
        units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
        return [times["real_time"] * units[times["time_unit"]] for times in self.times]

    def end(self, answer: dict[str, Any]) -> bool:
        """Takes over how the row ended, if the answer says so."""
        if "outcome" in answer:
            self.outcome, self.error_message = answer["outcome"], answer["error_message"]
        return bool(self.outcome)


def check_against(theirs: PeerRow, ours: Document) -> None:
    """Compares the first loss with that of the row of bench's, and takes over the fingerprint of
    what both train; the row fails where they differ by more than both tolerances."""
    if theirs.outcome or "outcome" in ours:
        return
    for counter in LOSSES:
        if counter in ours and counter in theirs.facts:
            here, there = theirs.facts[counter], ours[counter]
            error = abs(here - there) / max(abs(there), _SMALL_LOSS)
            tolerance = (
                theirs.facts["verification"]["tolerance"]
                + ours["verification"]["tolerance"]
                + _WRITTEN
            )
            if not error <= tolerance:
                theirs.outcome = "failed"
                theirs.error_message = (
                    f"{counter} is {here:.6g}, and {there:.6g} in {ours['name']}: they differ by "
                    f"{error:.3g} of it, and the tolerances of both are {tolerance:.3g}"
                )
            elif "workload" in ours:
                theirs.facts["workload"] = ours["workload"]
    if "warnings" in ours:
        theirs.facts.setdefault("warnings", ours["warnings"])


def merged(
    ours: Document, theirs: Iterable[PeerRow], described: Document, complete: bool
) -> Document:
    """The document of bench with the peer's rows, each behind the one it took turns with."""
    document = copy.deepcopy(ours)
    followers: dict[str, list[PeerRow]] = {}
    for row in theirs:
        followers.setdefault(row.lead, []).append(row)
    rows: list[Document] = []
    parts = document["context"]["crossover"].get("parts", [])
    of_parts = [part["rows"] for part in parts] or [len(ours["rows"])]
    left = iter(ours["rows"])
    for place, count in enumerate(of_parts):
        before = len(rows)
        for _ in range(count):
            row = next(left)
            rows.append(row)
            rows += [_facts(their) for their in followers.get(row["name"], ())]
        if parts:
            parts[place]["rows"] = len(rows) - before
    lone = [_facts(their) for their in followers.get("", ())]
    if parts:
        parts[-1]["rows"] += len(lone)
    document["rows"] = rows + lone
    shown = {row["name"] for row in document["rows"]}
    document["benchmarks"] += [
        entry
        for their in (row for own in followers.values() for row in own)
        if their.name in shown
        for entry in _repetitions(their)
    ]
    describe(document, described, complete)
    return document


def describe(document: Document, described: Document, complete: bool) -> None:
    """Says in the context what the peer is."""
    crossover = document["context"]["crossover"]
    crossover["complete"] = complete
    command = crossover["configuration"]["command"]
    crossover["configuration"]["command"] = [
        WITH_PEERS if word.startswith(_TAKES_TURNS) else word for word in command
    ]
    crossover["software"]["libraries"]["PyTorch"] = described["version"]
    crossover["peers"] = {"pytorch": described}


def _facts(row: PeerRow) -> Document:
    stated: Document = {"name": row.name, "configuration": row.configuration}
    if row.outcome:
        stated |= {"outcome": row.outcome, "error_message": row.error_message}
        if row.times:
            stated["repetitions"] = len(row.times)
        return stated
    return stated | {"repetitions": len(row.times)} | _rounded(row.facts)


def _repetitions(row: PeerRow) -> list[Document]:
    entries = []
    for place, times in enumerate(row.times):
        entry = {"name": row.name, "run_type": "iteration", **_rounded(times)}
        if place == 0:
            entry |= _rounded(row.once)
        else:
            entry.pop("iterations", None)
        entries.append(entry)
    return entries


def _rounded(fields: Document) -> Document:
    """Floating-point numbers with the six significant digits that bench writes."""
    return {
        key: _rounded(value)
        if isinstance(value, dict)
        else float(f"{value:.6g}")
        if isinstance(value, float)
        else value
        for key, value in fields.items()
    }


def median_seconds(document: Document, name: str) -> float | None:
    """Of an iteration of the row; None where it has no repetition."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    found = [
        entry["real_time"] * units[entry["time_unit"]]
        for entry in document["benchmarks"]
        if entry["name"] == name and entry["run_type"] == "iteration"
    ]
    return median(found) if found else None


def write(path: Path, document: Document) -> None:
    """Replaces the file at once, so that a reader, or a crash, never meets half of it."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    text = (
        f'{{\n "context": {_indented(document["context"])},\n'
        f' "rows": {_lines(document["rows"])},\n'
        f' "benchmarks": {_lines(document["benchmarks"])}\n}}\n'
    )
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _indented(context: Document) -> str:
    return json.dumps(context, indent=1, ensure_ascii=False).replace("\n", "\n ")


def _lines(entries: Sequence[Document]) -> str:
    if not entries:
        return "[]"
    lines = (json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries)
    return "[\n  " + ",\n  ".join(lines) + "\n ]"
