# SPDX-License-Identifier: Apache-2.0
"""Networks of a suite by bench: its kernels beside its reference, and PyTorch's network, which was
compared with the suite's numbers, beside the same reference. So the three are one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.outside.results import Suite, Verdict

# Once, and no time: what is wanted is that the row is verified.
_FLAGS = (
    *("--family=Minibatch", "--threads=1", "--execution=eager"),
    *("--benchmark_repetitions=1", "--benchmark_min_time=1e-6"),
)
_OWN = "bench"
_UNTRAINED = "there is nothing to train"  # says bench of a network without parameters


class Kernels:
    """`peer`: the command line of PyTorch's worker; `batch`: samples of each step."""

    def __init__(self, bench: Path, peer: str, folder: Path, batch: int) -> None:
        self._bench, self._peer, self._folder, self._batch = bench, peer, folder, batch

    def verified(
        self, suite: Suite, networks: dict[str, dict[str, Any]], trained: Sequence[str]
    ) -> Suite:
        """The suite, whose cases are faults where bench refuses their network, or one of the
        `trained`, which have parameters, has no verified row."""
        reasons = self._reasons(networks, trained)
        verdicts = [
            Verdict(verdict.case, "fault", reasons[verdict.case], verdict.apart)
            if reasons.get(verdict.case) and verdict.outcome == "equal"
            else verdict
            for verdict in suite.verdicts
        ]
        count = sum(not reasons[case] for case in trained)
        note = note_of(len(trained), count, self._batch)
        return replace(suite, verdicts=verdicts, notes=[*suite.notes, note])

    def _reasons(
        self, networks: dict[str, dict[str, Any]], trained: Sequence[str]
    ) -> dict[str, str]:
        """By case: why its network has no verified row; empty where it has."""
        reasons = dict.fromkeys(networks, "")
        files: dict[str, Path] = {}
        for case, described in networks.items():
            files[case] = self._folder / f"{case}.json"
            files[case].write_text(json.dumps({**described, "name": case}), encoding="utf-8")
            done = self._run("--describe", f"--network={files[case]}")
            last = (done.stderr.strip().splitlines() or [""])[-1].replace(f"{self._folder}/", "")
            if done.returncode and (case in trained or _UNTRAINED not in last):
                reasons[case] = f"bench refuses it: {last}"
        rows = self._rows([files[case] for case in trained if not reasons[case]])
        return reasons | {case: reasons[case] or _reason(rows.get(case, [])) for case in trained}

    def _rows(self, files: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
        """Those that bench measures, by case."""
        out = self._folder / "rows.json"
        names = ",".join(map(str, files))
        if names:
            flags = (*_FLAGS, f"--batch={self._batch}")
            self._run(*flags, f"--network={names}", self._peer, f"--out={out}")
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in json.loads(out.read_text(encoding="utf-8"))["rows"] if out.exists() else []:
            rows.setdefault(row["configuration"]["model"], []).append(row)
        return rows

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._bench), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)


def note_of(tried: int, verified: int, batch: int) -> str:
    return (
        f"{verified} of the {tried} networks that came in and have parameters have a verified row "
        f"of the CPU's kernels and one of PyTorch's, both beside bench's reference (batch {batch})"
        ". Of others that came in bench has no row, as there is nothing to train."
    )


def _reason(rows: Sequence[dict[str, Any]]) -> str:
    programs = {row["configuration"].get("program", _OWN) for row in rows}
    if len(programs) < 2:
        return f"only {' and '.join(programs) or 'nobody'} has a row"
    return next(
        (
            f"{row['configuration'].get('program', _OWN)}: {row['error_message']}"
            for row in rows
            if "outcome" in row
        ),
        "",
    )
