# SPDX-License-Identifier: Apache-2.0
"""What bench counts and plans: the one place that asks the program."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peers.names import TRAINING, Configuration

# Flags that say what a network is, which --cost takes as well.
_OF_NETWORKS = ("--mlp", "--activation", "--optimizer", "--lr", "--weight-decay", "--rows")
_OF_MLP = ("--mlp", "--activation")


class BenchError(Exception):
    """What bench said, a sentence."""


def ask(bench: Path, *arguments: str) -> str:
    """What `bench` prints; BenchError where it refuses."""
    try:
        done = subprocess.run(
            [bench, *arguments], capture_output=True, encoding="utf-8", check=False
        )
    except OSError as error:
        raise BenchError(
            f"{bench} does not run ({error.strerror}); ./run --setup-only builds it"
        ) from None
    if done.returncode != 0:
        raise BenchError(done.stderr.strip() or f"{bench.name} ended with {done.returncode}")
    return done.stdout


def planned(bench: Path, arguments: Sequence[str]) -> list[str]:
    """The names of the rows that bench would measure with these arguments, in their order."""
    lines = ask(bench, "--plan", *arguments).splitlines()
    return [words[-1] for line in lines if "/" in (words := line.split())[-1]]


class Counts:
    """What `bench --cost` says of the networks of rows, asked once for each."""

    def __init__(self, bench: Path, arguments: Sequence[str]) -> None:
        self._bench = bench
        self._flags = [word for word in arguments if word.partition("=")[0] in _OF_NETWORKS]
        self._known: dict[tuple[str, ...], dict[str, Any]] = {}

    def of(self, configuration: Configuration) -> dict[str, Any] | None:
        """Of the row's network at its batch; None of a row without one. BenchError as ask()."""
        if "model" not in configuration:
            return None
        asked = self._arguments(configuration)
        if asked not in self._known:
            self._known[asked] = json.loads(ask(self._bench, "--cost", *asked))
        return self._known[asked]

    def _arguments(self, configuration: Configuration) -> tuple[str, ...]:
        model, batch = configuration["model"], configuration["batch"]
        flags = dict(word.partition("=")[::2] for word in self._flags)
        if not model.startswith("mlp-"):
            for name in _OF_MLP:
                flags.pop(name, None)
            flags["--model"] = model
        flags["--batch"] = batch
        if configuration["family"] not in TRAINING or configuration["family"] == "Minibatch":
            flags["--rows"] = batch
        return tuple(f"{name}={value}" for name, value in flags.items())
