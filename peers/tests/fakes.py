# SPDX-License-Identifier: Apache-2.0
"""A peer and a bench that compute nothing: their times are made up, and they run anywhere.

python -m peers.tests.fakes peer                  serves rows as peers/pytorch/worker.py does
python -m peers.tests.fakes bench --out=FILE ...  writes rows and lets the peer have its turns
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from peers.names import configuration_of, name_of
from peers.protocol import Answer, serve

LOSS = 0.598856
MODELS = ("disc-2", "disc-3")
REPETITIONS = 6
DESCRIBED: Answer = {"version": "0.0+fake", "gpu": None, "configuration": "none"}
_FACTS: dict[str, Any] = {
    "verification": {
        "reference": "float64",
        "steps": 10,
        "steps_of": 10,
        "tolerance": 1e-5,
        "relative_error": 1e-7,
    },
    "label": "sgd lr=0.1",
    "params": 22,
    "batch": 100,
    "rows": 1000,
    "steps": 10,
    "flops": 112440.0,
    "loss_first_epoch": LOSS,
    "cpu_threads": 1,
}


def ours(model: str, **changes: str) -> dict[str, str]:
    """The configuration of a row of bench's."""
    return {
        "family": "Epoch",
        "model": model,
        "batch": "100",
        "precision": "f32",
        "device": "cpu",
        "execution": "eager",
        "cpu_threads": "1",
        **changes,
    }


class FakePeer:
    """Every repetition takes 2 ms. What FAKE_PEER says goes wrong: "diverges" (another loss),
    "fails" (no row can be made), "ends" (the process does, in its second repetition)."""

    def __init__(self, trouble: str = "") -> None:
        self.trouble = trouble
        self.asked: list[str] = []

    def describe(self) -> Answer:
        return DESCRIBED

    def prepare(
        self, row: str, configuration: dict[str, str], counted: dict[str, Any] | None
    ) -> Answer:
        assert name_of(configuration) == row
        self.asked.append(f"prepare {row}")
        if self.trouble == "fails":
            return {"outcome": "failed", "error_message": "it is a fake"}
        loss = 2 * LOSS if self.trouble == "diverges" else LOSS
        return {"facts": {**_FACTS, "loss_first_epoch": loss}, "once": {"first_call_seconds": 0.5}}

    def repeat(self, row: str, min_time_seconds: float) -> Answer:
        self.asked.append(f"repeat {row}")
        if self.trouble == "ends" and len(self.asked) > 2:
            os._exit(7)
        times = {"real_time": 2.0, "cpu_time": 2.0, "time_unit": "ms", "iterations": 5}
        return {"times": times}

    def release(self, row: str) -> Answer:
        self.asked.append(f"release {row}")
        return {}


def context() -> dict[str, Any]:
    """Of a result file."""
    from plots.tests import synthetic  # noqa: PLC0415 - the peer has no such packages

    made: dict[str, Any] = synthetic.document([])["context"]
    made["crossover"] |= {"schema_version": 2, "complete": False}
    return made


def row_of(configuration: dict[str, str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A row of bench's and its repetitions, of 1 ms each."""
    name = name_of(configuration)
    row = {"name": name, "configuration": configuration, "repetitions": REPETITIONS, **_FACTS}
    row["workload"] = "0123456789abcdef"
    times = {"real_time": 1.0, "cpu_time": 1.0, "time_unit": "ms"}
    entries: list[dict[str, Any]] = [
        {"name": name, "run_type": "iteration", **times} for _ in range(REPETITIONS)
    ]
    entries[0] |= {"iterations": 10, "first_call_seconds": 0.1}
    return row, entries


def bench(arguments: list[str]) -> int:
    """Two rows; with FAKE_BENCH=stops it is interrupted after the first, with --resume it measures
    what the file lacks."""
    flags = dict(word.partition("=")[::2] for word in arguments)
    if "--cost" in flags:
        print(json.dumps({"model": flags["--model"]}))
        return 0
    if "--bad" in flags:
        print("bench: unknown argument", file=sys.stderr)
        return 2
    out = Path(flags["--out"])
    read, write = (int(text) for text in flags["--take-turns"].split(","))
    document: dict[str, Any] = {"context": context(), "rows": [], "benchmarks": []}
    crossover = document["context"]["crossover"]
    crossover["parts"] = []
    if "--resume" in flags:
        document = json.loads(out.read_text("utf-8"))
        crossover = document["context"]["crossover"]
    crossover["configuration"]["command"] = ["bench", *arguments]
    moment = {"start": "2020-01-01T00:00:00+00:00", "end": "2020-01-01T00:00:00+00:00"}
    loads = {"load_average": [0, 0, 0], "load_average_end": [0, 0, 0]}
    crossover["parts"].append({**moment, **loads, "rows": 0, "seconds": 1})

    def tell(**told: Any) -> None:
        os.write(write, (json.dumps(told) + "\n").encode())
        assert os.read(read, 1) == b"\n"

    for model in MODELS:
        row, entries = row_of(ours(model))
        if row["name"] in {known["name"] for known in document["rows"]}:
            continue
        for _ in range(REPETITIONS):
            tell(repeated=row["name"], min_time_seconds=0.01)
        document["rows"].append(row)
        document["benchmarks"] += entries
        crossover["parts"][-1]["rows"] += 1
        out.write_text(json.dumps(document), encoding="utf-8")
        tell(finished=row["name"])
        if os.environ.get("FAKE_BENCH") == "stops":
            return 130
    crossover["complete"] = True
    out.write_text(json.dumps(document), encoding="utf-8")
    return 0


def main(arguments: list[str]) -> int:
    if arguments[0] == "bench":
        return bench(arguments[1:])
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        serve(FakePeer(os.environ.get("FAKE_PEER", "")), sys.stdin, answers)
    return 0


if __name__ == "__main__":
    assert configuration_of(name_of(ours("disc-2"))) == ours("disc-2")
    sys.exit(main(sys.argv[1:]))
