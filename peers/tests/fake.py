# SPDX-License-Identifier: Apache-2.0
"""A peer that computes nothing, on Python alone: every repetition takes 2 ms.

What FAKE_PEER says goes wrong: "diverges" (another loss), "fails" (no row can be made), "ends" (the
process does, in its second repetition), "mute" (it describes nothing), "slow" (it makes a row for
longer than anybody waits in silence, and says that it goes on).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from peers.protocol import alive, serve

TROUBLE = os.environ.get("FAKE_PEER", "")
TIMES = {"real_time": 2.0, "cpu_time": 2.0, "time_unit": "ms", "iterations": 5}


class Fake:
    repeated = 0

    def describe(self) -> dict[str, Any]:
        axis = {"key": "mood", "description": "its mood", "values": ["good", "bad"]}
        told = {"program": "fake", "libraries": {"Fake": "0.1"}, "version": "0.1"}
        return {} if TROUBLE == "mute" else {**told, "axes": [{**axis, "unsaid": "good"}]}

    def rows(self, configuration: dict[str, str]) -> dict[str, Any]:
        moods = (
            ("good", "bad")[: 1 if TROUBLE == "slow" else 2]
            if configuration["family"] == "Epoch"
            else ()
        )
        own = {**configuration, "program": "fake", "execution": "eager"}
        return {"rows": [{"configuration": {**own, "mood": mood}} for mood in moods]}

    def prepare(self, counted: dict[str, Any], **_: Any) -> dict[str, Any]:
        if TROUBLE == "fails":
            return {"outcome": "failed", "error_message": "it is a fake"}
        for _ in range(12 if TROUBLE == "slow" else 0):
            time.sleep(1)
            alive("verifying it")
        verification = {"reference": "none", "steps": 1, "steps_of": 1, "tolerance": 1e-3}
        loss = 12.0 if TROUBLE == "diverges" else float(os.environ.get("FAKE_LOSS", "0.598856"))
        facts = {"verification": {**verification, "relative_error": 0}, "loss_first_epoch": loss}
        told = {"label": f"{counted['network']['name']} of {counted['data']}"}
        sizes = {"params": counted["params"], "batch": counted["batch"], "rows": counted["rows"]}
        steps = {"steps": counted["steps"], "flops": counted["epoch"]["flops"], "cpu_threads": 1}
        return {"facts": {**facts, **told, **sizes, **steps}, "once": {"first_call_seconds": 0.5}}

    def repeat(self, **_: Any) -> dict[str, Any]:
        self.repeated += 1
        if TROUBLE == "ends" and self.repeated == 2:
            os._exit(7)
        return {"times": TIMES}

    def release(self, **_: Any) -> dict[str, Any]:
        return {}


if __name__ == "__main__":
    serve(Fake())
