# SPDX-License-Identifier: Apache-2.0
"""How the GPU was while it was measured: clock, temperature and power of each repetition."""

from collections.abc import Iterator, Sequence

import numpy as np

from plots.core.page.section import Block, Context, Section
from plots.file.rows import File, Row

_HELD_BACK = "held back: "  # of the warning that GpuWatch::doubts() writes (bench/rows/watches.cpp)
_CLOCK = "sm_clock_mhz_after"
_ENDS = 0.1  # share of the repetitions that are the first ones, and the last ones
_NOTES = (
    "Of each repetition; clock and temperature are the driver's, right after it. Power is the "
    "energy of a repetition over its time. At first, in the end: medians of the first and the last "
    "tenth of all repetitions, in the order of the file.",
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where no driver told of a GPU."""
    shown = [(file, tuple(_points(file))) for file in files[: context.detailed]]
    blocks = [Block(machine=file.machine.id, points=points) for file, points in shown if points]
    if not blocks:
        return None
    return Section(
        title="The GPU meanwhile",
        anchor="conditions",
        lead="How fast and how warm the GPU ran while it was measured. A clock that falls explains "
        "times that grow.",
        blocks=tuple(blocks),
        notes=_NOTES,
    )


def _points(file: File) -> Iterator[str]:
    """What the driver told, a sentence each."""
    rows = [row for row in file.own_rows if row.samples.size and _CLOCK in row.measured]
    if not rows:
        return
    watts = _each(rows, "joules_gpu") / np.concatenate([row.samples for row in rows])
    for name, unit, values in (
        ("Clock", "MHz", _each(rows, _CLOCK)),
        ("Temperature", "°C", _each(rows, "temperature_celsius_after")),
        ("Power", "W", watts),
    ):
        known = values[np.isfinite(values)]
        if known.size:
            count = max(1, round(_ENDS * known.size))
            first, last = (np.median(part) for part in (known[:count], known[-count:]))
            low, middle, high = np.quantile(known, (0, 0.5, 1))
            said = f"median {middle:.0f} {unit}, {low:.0f} to {high:.0f}"
            said += f"; {first:.0f} at first, {last:.0f} in the end"
            yield f"{name}: {said if round(low) < round(high) else f'{low:.0f} {unit}'}."
    told = ([text for text in row.warnings if _HELD_BACK in text] for row in rows)
    held = [[text.partition(_HELD_BACK)[2] for text in texts] for texts in told if texts]
    named = sorted({reason for texts in held for text in texts for reason in text.split(", ")})
    said = f": {', '.join(named)}" if named else ""
    yield f"The driver held clocks back in {len(held) or 'none'} of {len(rows)} rows{said}."


def _each(rows: Sequence[Row], counter: str) -> np.ndarray:
    """Of each repetition, NaN where the driver did not tell. What is the same in all of a row
    stands once in the file."""
    missing = np.array([np.nan])
    values = [row.measured.get(counter, missing) for row in rows]
    sizes = [row.samples.size for row in rows]
    pairs = zip(values, sizes, strict=True)
    return np.concatenate([np.resize(own, size) if own.size == 1 else own for own, size in pairs])
