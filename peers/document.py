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

from peers.names import DEVICES, Configuration, name_of

Document = dict[str, Any]

LOSSES = ("loss_first_epoch", "loss_first_step")
# bench writes six significant digits: half a unit in the last of them, at worst.
_WRITTEN = 5e-6
_SMALL_LOSS = 0.1  # as in verification: relative to this
_TAKES_TURNS = "--take-turns="
WITH_PEERS = "--with-peers"
# What a peer's words on the command line are called; arguments.py has them.
PEER_FLAGS = ("--devices", "--layout", "--mode", "--pages")
_LIBRARY = "PyTorch"


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
    finished: bool = False

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


@dataclass(frozen=True)
class Framework:
    """What a file says of a peer: what it is, and the words that chose its rows."""

    described: Document
    words: tuple[str, ...] = ()

    def describe(self, document: Document, complete: bool) -> None:
        """Says so in the document's context."""
        crossover = document["context"]["crossover"]
        crossover["complete"] = complete
        asked = crossover["configuration"]
        command = [word for word in asked["command"] if not word.startswith(_TAKES_TURNS)]
        if len(command) < len(asked["command"]):
            command += [WITH_PEERS, *self.words]
        asked["command"] = command
        crossover["software"]["libraries"][_LIBRARY] = self.described["version"]
        crossover["peers"] = {"pytorch": self.described}


def merged(
    ours: Document, theirs: Iterable[PeerRow], framework: Framework, complete: bool
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
    framework.describe(document, complete)
    return document


def separated(document: Document) -> tuple[Document, list[PeerRow]]:
    """What merged() was made from: bench's document, which bench can go on with, and the peer's
    rows. Those that took turns with a row that failed are left out: bench tries that again."""
    ours = copy.deepcopy(document)
    crossover = ours["context"]["crossover"]
    asked = crossover["configuration"]
    flags = (WITH_PEERS, *PEER_FLAGS)
    command = [word for word in asked["command"] if word.partition("=")[0] not in flags]
    asked["command"] = [*command, f"{_TAKES_TURNS}0,0"]
    crossover["software"]["libraries"].pop(_LIBRARY, None)
    crossover.pop("peers", None)
    entries: dict[str, list[Document]] = {}
    for entry in document["benchmarks"]:
        entries.setdefault(entry["name"], []).append(entry)
    rows, theirs, lead = [], [], ""
    again: set[str] = set()
    parts = crossover.get("parts", [])
    of_parts = iter([place for place, part in enumerate(parts) for _ in range(part["rows"])])
    for part in parts:
        part["rows"] = 0
    for row in document["rows"]:
        place = next(of_parts, None)
        if row["configuration"].get("device", "") in DEVICES.values():
            if lead not in again:
                theirs.append(_peer_row(row, entries.get(row["name"], []), lead))
            continue
        lead = row["name"]
        if row.get("outcome") == "failed":
            again.add(lead)
        rows.append(row)
        if place is not None:
            parts[place]["rows"] += 1
    names = {row["name"] for row in rows}
    ours["rows"] = rows
    ours["benchmarks"] = [
        entry for entry in document["benchmarks"] if entry.get("run_name", entry["name"]) in names
    ]
    return ours, theirs


def _peer_row(stated: Document, entries: list[Document], lead: str) -> PeerRow:
    known = ("name", "configuration", "repetitions", "outcome", "error_message")
    return PeerRow(
        configuration=stated["configuration"],
        lead=lead,
        facts={key: value for key, value in stated.items() if key not in known},
        times=[
            {key: value for key, value in entry.items() if key not in ("name", "run_type")}
            for entry in entries
        ],
        outcome=stated.get("outcome", ""),
        error_message=stated.get("error_message", ""),
        finished=True,
    )


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
