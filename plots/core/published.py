# SPDX-License-Identifier: Apache-2.0
"""What others published on training on a CPU against a GPU, from plots/reference."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PUBLISHED_PATH = Path(__file__).parents[1] / "reference" / "published.json"
# What to do where a file of that folder is missing.
RESTORE = "restore it, or install crossover-plots again"

Layer = Sequence[str | int]  # kind, inputs, outputs, and what the kind needs besides


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a figure was published; `year` is None where the source does not give one."""

    author: str
    title: str
    year: int | None
    url: str

    @property
    def text(self) -> str:
        """Author, title and year."""
        return f"{self.author}: {self.title}{f', {self.year}' if self.year else ''}"


@dataclass(frozen=True, slots=True)
class Experiment:
    """One published comparison of CPU and GPU; None is what the source does not tell.

    Either `crossover_params` says from how many parameters the GPU was faster, or `seconds` hold
    the wall-clock time of `epochs` epochs or `steps` steps on each device (of the whole training
    without either), or `samples_per_second` the rate. `same_as` is the network of this project
    that is the same and trained alike, empty for most. `quoted` is the passage of the source, found
    at `where` in it. `params` are trainable; `layers` is what they can be counted from, if anything
    (count_parameters()).
    """

    id: str
    title: str
    kind: str
    network: str
    training: str
    framework: str
    finding: str
    where: str
    quoted: str
    citation: Citation
    same_as: str = ""
    cpu: str | None = None
    gpu: str | None = None
    layers: tuple[Layer, ...] = ()
    params: int | None = None
    batch: int | None = None
    rows: int | None = None
    crossover_params: int | None = None
    epochs: int | None = None
    steps: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    samples_per_second: dict[str, float] = field(default_factory=dict)

    @property
    def measured_on(self) -> str:
        """Both devices and the software, in words."""
        if not self.cpu and not self.gpu:
            return f"{self.framework}; machine not stated"
        return f"CPU: {self.cpu or 'not stated'}; GPU: {self.gpu or 'not stated'}; {self.framework}"

    @property
    def seconds_per_epoch(self) -> dict[str, float]:
        """Wall-clock seconds per epoch by device; empty where they were not published."""
        if self.epochs:
            return {device: total / self.epochs for device, total in self.seconds.items()}
        if self.rows:
            return {device: self.rows / rate for device, rate in self.samples_per_second.items()}
        return {}

    @property
    def timed(self) -> tuple[str, dict[str, float]]:
        """What is timed, in words, and its seconds by device: an epoch where that was published,
        else a step, else the whole training; nothing where only a crossover was."""
        if per_epoch := self.seconds_per_epoch:
            return "epoch", per_epoch
        if self.steps:
            return "step", {device: total / self.steps for device, total in self.seconds.items()}
        if self.samples_per_second:
            samples = self.batch or 1
            rates = self.samples_per_second.items()
            return ("step" if self.batch else "sample"), {at: samples / rate for at, rate in rates}
        return ("training" if self.seconds else ""), dict(self.seconds)

    @property
    def speed_up(self) -> float | None:
        """CPU time over GPU time, as the experiments print it; None without both times."""
        _, times = self.timed
        return times["CPU"] / times["GPU"] if {"CPU", "GPU"} <= times.keys() else None


def load_published(path: Path = PUBLISHED_PATH) -> list[Experiment]:
    """Every experiment in `path`; raises OSError where the file cannot be read."""
    experiments = json.loads(path.read_text(encoding="utf-8"))["experiments"]
    return [
        Experiment(
            **{
                **fields,
                "citation": Citation(**fields["citation"]),
                "layers": tuple(fields.get("layers", ())),
            }
        )
        for fields in experiments
    ]


def same_as_ours(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Those that train a network of this project in the same way, which charts show."""
    return [one for one in experiments if one.same_as]


def count_parameters(layers: Iterable[Layer]) -> int:
    """The trainable parameters of `layers`, written as "units" of published.json says."""
    return sum(_parameters(*layer) for layer in layers)


def _parameters(kind: str, inputs: int, outputs: int, more: int = 1) -> int:
    """`more`: the taps of a convolution, the biases that each gate of a recurrent unit has."""
    counts = {
        "linear": (inputs + 1) * outputs,
        "conv": (more * inputs + 1) * outputs,
        "embedding": inputs * outputs,
        "lstm": 4 * (inputs + outputs + more) * outputs,
        "rnn": (inputs + outputs + more) * outputs,
    }
    return counts[kind]
