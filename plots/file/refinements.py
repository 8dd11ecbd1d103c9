# SPDX-License-Identifier: Apache-2.0
"""Reads what a file says of the sizes between those of its sweep: `refinements`."""

from typing import Any

from plots.file.rows import PairedInterval, PairedSize, Refinement


def refinement_of(fields: dict[str, Any]) -> Refinement:
    """One of a file's `refinements`, which is valid by the schema."""
    return Refinement(
        kind=fields["kind"],
        common=fields["common"],
        first=fields["first"],
        second=fields["second"],
        complete=fields["complete"],
        ladder=tuple((float(rung["params"]), rung["winner"]) for rung in fields["ladder"]),
        sizes=tuple(
            PairedSize(
                size["model"],
                float(size["params"]),
                size["pairs"],
                size["won_by_first"],
                size["ties"],
                size["winner"],
            )
            for size in fields["sizes"]
        ),
        intervals=tuple(
            PairedInterval(interval["below"], _number(interval["low"]), _number(interval["high"]))
            for interval in fields["intervals"]
        ),
    )


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
