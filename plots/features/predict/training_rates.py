# SPDX-License-Identifier: Apache-2.0
"""How fast others train networks on one GPU, from plots/reference."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from plots.core.reference import REFERENCE

RATES_PATH = REFERENCE / "training_rates.csv"

What = Literal["step", "forward-backward"]
Data = Literal["synthetic", "images", "unstated"]


@dataclass(frozen=True, slots=True)
class TrainingRate:
    """Samples that one `card` trains in a second, as published; plots/reference/README.md has the
    columns. `differs` says how the network is not the one of that name here, empty where it is."""

    network: str
    differs: str
    batch: int
    card: str
    card_name: str
    precision: str
    framework: str
    year: int
    samples_per_second: float
    what: What
    data: Data
    source_url: str

    @property
    def seconds_per_batch(self) -> float:
        """Seconds of one mini-batch."""
        return self.batch / self.samples_per_second


def load_training_rates(path: Path = RATES_PATH) -> list[TrainingRate]:
    """Every rate in `path`, all of single GPUs; raises OSError where the file cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            TrainingRate(
                network=line["network"],
                differs=line["differs"],
                batch=int(line["batch"]),
                card=line["card"],
                card_name=line["card_name"],
                precision=line["precision"],
                framework=line["framework"],
                year=int(line["year"]),
                samples_per_second=float(line["samples_per_second"]),
                what=cast(What, line["what"]),
                data=cast(Data, line["data"]),
                source_url=line["source_url"],
            )
            for line in csv.DictReader(file)
            if line["gpus"] == "1"
        ]
