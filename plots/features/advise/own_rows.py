# SPDX-License-Identifier: Apache-2.0
"""A network that a file measured itself, from its own rows: the only way to a network with
convolutions, whose rates hang on their shapes too much for a prediction from others."""

from collections.abc import Sequence

from plots.core.cost import Cost
from plots.core.series import series_key, series_labels
from plots.features.advise.analysis import Prediction, name_of
from plots.file.families import FAMILIES, TRAINING, steps_of
from plots.file.rows import Row


def from_own_rows(measured: Sequence[Row], cost: Cost) -> list[Prediction]:
    """An epoch of `cost` in each way in which `measured` trained that network, from the row of the
    nearest batch size; none where they did not.

    Of another batch size it is known that an epoch takes between as long per sample, and as long
    per step; both ends are in the band, with the range of the repetitions.
    """
    rows = [row for row in measured if _is_of(row, cost)]
    found = []
    for key, label in series_labels(rows).items():
        own = [row for row in rows if series_key(row) == key]
        row = min(own, key=lambda one: times_apart(one.counters["batch"], cost.batch))
        found.append(_scaled(row, label, cost))
    return found


def _is_of(row: Row, cost: Cost) -> bool:
    configuration = row.configuration
    return (
        row.family in TRAINING
        and row.failure is None
        and row.model == cost.model
        and row.counters["params"] == cost.params
        and configuration["precision"] == cost.precision
        and configuration.get("accumulate", "1") == str(cost.accumulate)
        and "shuffle" not in configuration
        and "loss" not in configuration
    )


def times_apart(one: float, other: float) -> float:
    """How many times the larger is the smaller; both above 0."""
    return max(one, other) / min(one, other)


def _scaled(row: Row, label: str, cost: Cost) -> Prediction:
    asked_rows, asked_steps = float(cost.fields["rows"]), float(cost.fields["steps"])
    rows = row.counters[FAMILIES[row.family].samples]
    steps = steps_of(row)
    by_sample, by_step = asked_rows / rows, asked_steps / steps
    ends = by_sample, by_step if row.counters["batch"] != cost.batch else by_sample
    return Prediction(
        label=label,
        device=row.device,
        name=name_of(row.configuration),
        data=row.configuration.get("data", "resident"),
        middle=row.median * by_sample,
        low=row.minimum * min(ends),
        high=row.maximum * max(ends),
        measured=f"measured at batch {row.counters['batch']:,.0f}, scaled by the number of rows",
        row=row,
    )
