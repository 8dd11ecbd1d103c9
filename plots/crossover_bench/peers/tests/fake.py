# SPDX-License-Identifier: Apache-2.0
"""A peer that computes nothing, on Python alone: every repetition takes 2 ms.

What FAKE_PEER says goes wrong: "diverges" (another loss), "fails" (no row can be made), "ends" (the
process does, in its second repetition, and says why), "mute" (it describes nothing), "doubts" (it
has some), "slow" (it makes a row for longer than anybody waits in silence, and says that it goes
on), a request's name (that one is answered with nonsense), that and ":silent" (it is not
answered), "wavers" (from its third answer on its rows train another network; until then any loss
will do); or what else it does: "brings" (a row of its own), "images" (rows of networks of images
alone).

FAKE_TOLD and FAKE_ROWS are what it says of itself, and of each row's configuration, in place of its
own. FAKE_CASES is a file of [request, place in its answer, what stands there]: it has a row of its
own of each. The request "fail" is a row that can't be made.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from crossover_bench.peers.protocol import alive, serve

TROUBLE = os.environ.get("FAKE_PEER", "")
OWN = {"family": "Epoch", "model": "its-own", "batch": "4", "program": "fake", "mood": "bad"}
OWN |= {"device": "cpu", "execution": "eager", "cpu_threads": "1", "precision": "f32"}
OWN_COUNTED = {"network": {"name": "its own"}, "data": "its own", "params": 3, "batch": 4}
OWN_COUNTED |= {"rows": 8, "steps": 2, "epoch": {"flops": 5}}
TIMES = {"real_time": 2.0, "cpu_time": 2.0, "time_unit": "ms", "iterations": 5}


def _asked(variable: str) -> dict[str, Any]:
    """What it is to say beside what it would, or in place of that."""
    told: dict[str, Any] = json.loads(os.environ.get(variable, "{}"))
    return told


class Fake:
    repeated = 0
    asked_for_rows = 0

    def describe(self) -> dict[str, Any]:
        axis = {"key": "mood", "description": "its mood", "values": ["good", "bad"]}
        axis |= {"role": "alike"}
        told = {"program": "fake", "libraries": {"Fake": "0.1"}, "version": "0.1"}
        if TROUBLE == "brings":
            told["rows"] = [{"configuration": OWN, "environment": {"FAKE_LOSS": "7"}}]
            told["ladders"] = {"its": ["its-own", "its-ownx2"]}
            told["ladder_batches"] = {"its": 4}
        told |= {"axes": [{**axis, "unsaid": "good"}], **_asked("FAKE_TOLD")}
        return {} if TROUBLE == "mute" else told

    def rows(self, configuration: dict[str, str], *, shape: Sequence[int] = ()) -> dict[str, Any]:
        joins = configuration["family"] in ("Epoch", "Forward") and TROUBLE != "brings"
        joins &= TROUBLE != "images" or len(shape) == 3
        moods = ("good", "bad")[: (1 if TROUBLE == "slow" else 2) if joins else 0]
        row = {**configuration, "program": "fake", "execution": "eager", **_asked("FAKE_ROWS")}
        self.asked_for_rows += 1
        if TROUBLE == "wavers" and self.asked_for_rows > 2:
            row["model"] = "no-such"
        return {"rows": [{"configuration": {**row, "mood": mood}} for mood in moods]}

    def prepare(
        self, configuration: dict[str, str], counted: dict[str, Any] | None = None, **_: Any
    ) -> dict[str, Any]:
        counted = counted or OWN_COUNTED
        if TROUBLE == "fails":
            return {"outcome": "failed", "error_message": "it is a fake"}
        for _ in range(5 if TROUBLE == "slow" else 0):
            time.sleep(1)
            alive("verifying it")
        is_pass = configuration["family"] == "Forward"
        unit = "entries" if is_pass else "steps"
        tolerance = 1 if TROUBLE == "wavers" else 1e-3
        verification = {"reference": "none", unit: 1, f"{unit}_of": 1, "tolerance": tolerance}
        loss = 12.0 if TROUBLE == "diverges" else float(os.environ.get("FAKE_LOSS", "0.598856"))
        facts = {"verification": {**verification, "relative_error": 0}, "loss_first_epoch": loss}
        told = {"label": f"{counted['network']['name']} of {counted['data']}"}
        if is_pass:
            told["label"] += f", {counted['pass']['flops']:.0f} flops, {counted['optimizer']}"
        sizes = {"params": counted["params"], "batch": counted["batch"], "rows": counted["rows"]}
        steps = {"steps": counted["steps"], "flops": counted["epoch"]["flops"], "cpu_threads": 1}
        return {"facts": {**facts, **told, **sizes, **steps}, "once": {"first_call_seconds": 0.5}}

    def repeat(self, **_: Any) -> dict[str, Any]:
        self.repeated += 1
        if TROUBLE == "ends" and self.repeated == 2:
            print("it has had enough", file=sys.stderr, flush=True)
            os._exit(7)
        return {"times": TIMES} | ({"doubts": ["it is a fake"]} if TROUBLE == "doubts" else {})

    def release(self, **_: Any) -> dict[str, Any]:
        return {}


class Wrong(Fake):
    """Has a row for each of the cases, in which an answer is wrong, and one with no fault."""

    def __init__(self, cases: list[tuple[str, list[str], Any]]) -> None:
        self._cases = cases
        self._case: tuple[str, list[str], Any] = ("", [], None)

    def describe(self) -> dict[str, Any]:
        told = super().describe()
        axis = {"key": "case", "description": "what is wrong", "values": []}
        named = ["none", *map(str, range(len(self._cases)))]
        rows = [{"configuration": {**OWN, "mood": "good", "case": name}} for name in named]
        return {**told, "axes": [*told["axes"], axis], "rows": rows}

    def prepare(self, configuration: dict[str, str], **more: Any) -> dict[str, Any]:
        name = configuration["case"]
        self._case = ("", [], None) if name == "none" else self._cases[int(name)]
        if self._case[0] == "fail":
            return self._spoilt("fail", {"outcome": "failed", "error_message": "it is a fake"})
        return self._spoilt("prepare", super().prepare(configuration, **more))

    def repeat(self, **more: Any) -> dict[str, Any]:
        return self._spoilt("repeat", super().repeat(**more))

    def _spoilt(self, request: str, answer: dict[str, Any]) -> dict[str, Any]:
        of_request, place, value = self._case
        if request == of_request:
            answer = json.loads(json.dumps(answer))
            holder = answer
            for name in place[:-1]:
                if not isinstance(holder.get(name), dict):
                    holder[name] = {}
                holder = holder[name]
            holder[place[-1]] = value
        return answer


def nonsense(**_: Any) -> dict[str, Any]:
    if TROUBLE.endswith(":silent"):
        time.sleep(1000)
    return {"rows": 1, "times": {"real_time": "fast"}}


if __name__ == "__main__":
    cases = os.environ.get("FAKE_CASES")
    fake = Wrong(json.loads(Path(cases).read_text("utf-8"))) if cases else Fake()
    if hasattr(fake, wrong := TROUBLE.partition(":")[0]):
        setattr(fake, wrong, nonsense)
    serve(fake)
