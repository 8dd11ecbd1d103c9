# SPDX-License-Identifier: Apache-2.0
"""Another build of bench as a peer: its rows are those of the same names, as program bench-NAME.

    python -m peers.bench NAME BENCH [FLAGS...]

FLAGS are those that the asking bench plans its rows by. ./run --compare-with=COMMIT starts it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import IO, Any

_PREFIX = "bench-"


class Relay:
    """Hands requests on to `bench --worker`, and its answers back."""

    def __init__(self, name: str, command: list[str]) -> None:
        self._name = name
        self._program = f"{_PREFIX}{name}"
        self._worker = subprocess.Popen(
            [*command, "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the program that asks
        )

    def answer(self, asked: dict[str, Any], answers: IO[str]) -> None:
        """Writes the answer, behind what the worker says that it is doing meanwhile."""
        if asked["do"] == "rows":
            configuration = {**asked["configuration"], "program": self._program}
            _write(answers, {"rows": [{"configuration": configuration}]})
            return
        asked.pop("counted", None)  # it knows its networks
        asked.get("configuration", {}).pop("program", None)
        if "row" in asked:
            asked["row"] = asked["row"].replace(f"/program:{self._program}", "")
        assert self._worker.stdin and self._worker.stdout
        _write(self._worker.stdin, asked)
        for line in self._worker.stdout:
            answer = json.loads(line)
            if asked["do"] == "describe":
                answer |= {"program": self._program, "libraries": {}, "version": self._name}
                answer.setdefault("gpu", next(iter(answer.get("devices", {}).values()), None))
            _write(answers, answer)
            if "doing" not in answer:
                return
        raise SystemExit(self._worker.wait())


def _write(file: IO[str], message: dict[str, Any]) -> None:
    file.write(json.dumps(message) + "\n")
    file.flush()


def main(words: list[str]) -> None:
    name, *command = words
    relay = Relay(name, command)
    for line in sys.stdin:
        relay.answer(json.loads(line), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
