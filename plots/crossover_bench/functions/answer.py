# SPDX-License-Identifier: Apache-2.0
"""What two() found out: in words, in numbers, as a picture, and as a file."""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from crossover_bench.curves import problem as problems
from crossover_bench.curves import problem_words as words
from crossover_bench.curves.problem import SIDES, Device, Problem, Way
from crossover_bench.files.samples import Samples
from crossover_bench.functions.kinds import CPU
from crossover_bench.functions.measure import FEWEST, Measurement, Taken, split
from crossover_bench.functions.side import Ready
from crossover_bench.functions.timing import Prepared, Sample
from crossover_bench.peers.pytorch import devices
from crossover_bench.words import units
from crossover_bench.words.text import listed, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbered = tuple[int, Sample]  # a sample with the number of its process
_MEASURE = "n"


@dataclass(frozen=True, slots=True)
class Row:
    """One side at one n: medians of `samples` samples, in seconds of a call that is waited for, of
    its first call, of bringing its input to the device and of fetching its result. `calls` were
    made for a sample. `queued_seconds` are those of a call of several back to back, None where no
    call need be waited for, or the budget did not reach."""

    n: int
    side: str
    device: str
    seconds: float
    first_seconds: float
    brought_seconds: float
    fetched_seconds: float
    samples: int
    calls: int
    queued_seconds: float | None = None


class Answer:
    """From which n on a side wins: printed, in three lines; as a picture where a notebook shows it.

    `sentences` are the whole answer, the most useful first; `verdict` is it in a few words. `size`
    is the n from which on the second side wins, None where there is none; `interval` is its 95 %
    interval, an end None beyond the sizes measured. All are of data that stay where they are;
    `copied` is the verdict with both copies in each call, empty where no side is on a device.
    `rows` have the medians of each side at each n.
    """

    def __init__(
        self,
        stay: problems.Answer,
        copied: problems.Answer | None,
        rows: Sequence[Row],
        samples: Mapping[str, Mapping[int, Sequence[Numbered]]],
    ) -> None:
        self._stay, self._copied, self._samples = stay, copied, samples
        self.rows = tuple(rows)

    @property
    def size(self) -> float | None:
        return self._stay.crossover.size

    @property
    def interval(self) -> tuple[float | None, float | None]:
        return self._stay.crossover.low, self._stay.crossover.high

    @property
    def verdict(self) -> str:
        return words.verdict(self._stay)

    @property
    def copied(self) -> str:
        return words.verdict(self._copied) if self._copied else ""

    @property
    def sentences(self) -> tuple[str, ...]:
        first, *rest = words.sentences(self._stay)
        if self._copied:
            first = words.lead_of_both(self._stay, self._copied)
        return (first, *rest)

    def __repr__(self) -> str:
        first, second, *rest = self.sentences
        return "\n".join([first, second, " ".join(rest)])

    def _repr_html_(self) -> str:
        shown = Markup("").join(Markup("<p>{}</p>").format(text) for text in self.sentences)
        if not find_spec("matplotlib"):
            return shown
        # Imported here because matplotlib takes long to load.
        from crossover_bench.show.charts.crossover import draw_problem  # noqa: PLC0415

        svg = draw_problem(self._stay).pictures.svg.decode()
        return shown + Markup(svg[svg.index("<svg") :])

    def plot(self, relative_to: str = "", axes: Axes | None = None) -> Axes:
        """Draws the medians of each side over n, on matplotlib's `axes` or on new ones, and shades
        the interval. `relative_to` names a side whose times the others are divided by."""
        names = list(dict.fromkeys(row.side for row in self.rows))
        if relative_to and relative_to not in names:
            raise ValueError(f"relative_to={relative_to!r} is no side; {listed(names)} are")
        if axes is None:
            from matplotlib import pyplot  # noqa: PLC0415

            axes = pyplot.subplots()[1]
        base = {row.n: row.seconds for row in self.rows if row.side == relative_to}
        for name in names:
            points = [row for row in self.rows if row.side == name and (row.n in base or not base)]
            values = [row.seconds / base.get(row.n, 1.0) for row in points]
            axes.plot([row.n for row in points], values, marker="o", label=name)
        low, high = self.interval
        if low and high:
            axes.axvspan(low, high, alpha=0.15, linewidth=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(_MEASURE)
        axes.set_ylabel(f"time / time of {relative_to}" if relative_to else "seconds of a call")
        axes.legend()
        return axes

    def to_frame(self) -> Any:
        """All samples as a data frame of polars or of pandas, a sample in each line; raises
        ImportError where neither is installed."""
        return Samples(self._columns()).to_frame()

    def _columns(self) -> dict[str, list[Any]]:
        lines = [
            (row.n, row.side, row.device, number, *sample)
            for row in self.rows
            for number, sample in self._samples[row.side][row.n]
        ]
        names = ("n", "side", "device", "process", "seconds", "brought_seconds", "fetched_seconds")
        return {name: [line[place] for line in lines] for place, name in enumerate(names)}

    def save(self, path: str | Path) -> None:
        """Writes all samples as Google Benchmark writes its repetitions; `crossover two` gives the
        same answer of them. A row's name has device, side and n; its time is that of a call."""
        text = json.dumps({"context": self._context(), "benchmarks": [*self._entries()]}, indent=1)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def _entries(self) -> Iterator[dict[str, Any]]:
        stems = self._stems()
        for row in self.rows:
            samples = self._samples[row.side][row.n]
            name = f"{stems[row.side]}/{_MEASURE}:{row.n}"
            for place, (number, sample) in enumerate(samples):
                yield {
                    "name": name,
                    "run_name": name,
                    "run_type": "iteration",
                    "repetitions": len(samples),
                    "repetition_index": place,
                    "threads": 1,
                    "iterations": row.calls,
                    "real_time": 1e9 * sample.call,
                    "cpu_time": 1e9 * sample.call,
                    "time_unit": "ns",
                    "process": number,
                    "brought_seconds": sample.brought,
                    "fetched_seconds": sample.fetched,
                }
        for side, way in zip(stems, self._stay.problem.ways, strict=True):
            for size, reason in way.failures.items():
                yield {
                    "name": f"{stems[side]}/{_MEASURE}:{size:.0f}",
                    "run_type": "iteration",
                    "error_occurred": True,
                    "error_message": reason,
                }

    def _stems(self) -> dict[str, str]:
        """What names of rows begin with, by side."""
        title, both = self._stay.problem.name, self._stay.problem.both
        work = title if title.isidentifier() else "two"
        devices = {row.side: row.device for row in self.rows}
        return {
            side: f"{work}/{side}"
            if both or side == devices[side]
            else f"{work}/{side}_{devices[side]}"
            for side in self._samples
        }

    def _gpu(self) -> str:
        """What the GPU is called, where a side is on one and PyTorch is there to say it."""
        is_on_gpu = any(row.device != CPU for row in self.rows)
        kind = devices.first() if is_on_gpu and "torch" in sys.modules else ""
        return devices.name_of(devices.of_kind(kind)) if kind else ""

    def _context(self) -> dict[str, Any]:
        problem = self._stay.problem
        ways = zip(self._stems().values(), problem.ways, strict=True)
        return {
            "date": datetime.now().astimezone().isoformat(timespec="seconds"),
            "executable": "crossover_bench.two",
            "num_cpus": os.cpu_count() or 1,
            "library_build_type": "release",
            **({"gpu": name} if (name := self._gpu()) else {}),
            "two": {
                "name": problem.name,
                "measure": problem.measure,
                "both": problem.both,
                "sides": {stem: [way.word, way.device] for stem, way in ways},
                "remarks": list(problem.remarks),
            },
        }


def answer_of(measured: Measurement, name: str = "", separate: Taken | None = None) -> Answer:
    """The answer of `measured`; by what `separate` processes have measured where there are any.
    Raises ValueError with a sentence where the times say nothing."""
    taken = separate or measured.taken
    samples = taken.samples
    name = printable(name, 80) or _shared_name(measured.sides)
    groups = split(measured.sides)
    apart = groups[0][0].on_device != groups[1][0].on_device
    both = None if apart else groups[0][0].device
    queued = _back_to_back(measured, taken, name, groups, both)
    remarks = (*queued, *_remarks(measured, bool(separate)), *measured.remarks)

    def problem(with_copies: bool) -> Problem:
        ways = tuple(
            _way(side, slot, samples[side.name], measured.failures, with_copies)
            for slot, group in zip(SIDES, groups, strict=True)
            for side in group
        )
        return Problem(name, _MEASURE, ways, remarks=remarks, both=both)

    stay = problems.answer(problem(with_copies=False))
    copied = problems.answer(problem(with_copies=True)) if apart else None
    return Answer(stay, copied, [*_rows(measured, taken)], samples)


def _way(
    side: Ready,
    slot: Device,
    samples: Mapping[int, Sequence[Numbered]],
    failures: Mapping[tuple[str, int], str],
    with_copies: bool,
) -> Way:
    return Way(
        word=side.words,
        device=slot,
        seconds={
            size: tuple(sum(sample) if with_copies else sample.call for _, sample in known)
            for size, known in samples.items()
        },
        instances={size: tuple(number for number, _ in known) for size, known in samples.items()},
        failures={size: why for (name, size), why in failures.items() if name == side.name},
    )


def _rows(measured: Measurement, taken: Taken) -> Iterator[Row]:
    for size, pair in sorted(measured.prepared.items()):
        for ready in pair:
            known = taken.samples[ready.side.name].get(size, ())
            queued = _queued(taken, ready, size)
            if known:
                medians = [
                    statistics.median(values)
                    for values in zip(*(sample for _, sample in known), strict=True)
                ]
                yield Row(
                    *(size, ready.side.name, ready.side.device, medians[0], ready.first),
                    *(medians[1], medians[2], len(known), ready.calls * ready.batches),
                    statistics.median(seconds for _, seconds in queued) if queued else None,
                )


def _queued(taken: Taken, ready: Prepared, size: int) -> Sequence[tuple[int, float]]:
    """Seconds of a call back to back with others; nothing where too few are known."""
    known = taken.queued[ready.side.name].get(size, ())
    return known if len(known) >= FEWEST else ()


def _back_to_back(
    measured: Measurement,
    taken: Taken,
    name: str,
    groups: Sequence[Sequence[Ready]],
    both: Device | None,
) -> Iterator[str]:
    """Who wins where calls are not waited for one by one, in a sentence; none where no call need
    be, or where fewer than two sizes were measured so."""
    timed: dict[str, dict[int, Sequence[tuple[int, float]]]] = {
        side.name: {} for side in measured.sides
    }
    for size, pair in sorted(measured.prepared.items()):
        for ready in pair:
            known = taken.samples[ready.side.name].get(size, ())
            calls = [(number, sample.call) for number, sample in known]
            timed[ready.side.name][size] = _queued(taken, ready, size) if ready.wait else calls
    sizes = [size for size in measured.prepared if all(of.get(size) for of in timed.values())]
    is_waited = any(ready.wait for pair in measured.prepared.values() for ready in pair)
    if not is_waited or len(sizes) < 2:
        return

    def way(side: Ready, slot: Device) -> Way:
        known = {size: timed[side.name][size] for size in sorted(sizes)}
        return Way(
            side.words,
            slot,
            {size: tuple(seconds for _, seconds in of) for size, of in known.items()},
            {size: tuple(number for number, _ in of) for size, of in known.items()},
        )

    pairs = zip(SIDES, groups, strict=True)
    ways = tuple(way(side, slot) for slot, group in pairs for side in group)
    queued = problems.answer(Problem(name, _MEASURE, ways, both=both))
    yield f"Calls back to back, waited for at their end: {words.who_wins(queued)}."


def _remarks(measured: Measurement, separate: bool) -> Iterator[str]:
    """What is to be known of how it was measured, a sentence each."""
    changing = [
        side.name
        for place, side in enumerate(measured.sides)
        if any(pair[place].changes for pair in measured.prepared.values())
    ]
    if changing:
        verb = "changes" if len(changing) == 1 else "change"
        yield f"{listed(changing)} {verb} the input: each call got a copy, outside the clock."
    if not separate:
        yield "One process ran all of it; isolated=True runs several of each side."
    if measured.last:
        yield (
            f"Sizes above n = {measured.last:,} were left out, as they do not fit into "
            f"{measured.seconds:g} s; seconds= gives more."
        )
    for (name, size), reason in measured.failures.items():
        if name == "make":
            yield f"make failed at n = {size:,}: {reason}."
    smallest = min(measured.prepared, default=0)
    firsts = [
        f"{units.seconds(ready.first)} ({ready.side.name})"
        for ready in measured.prepared.get(smallest, ())
    ]
    yield f"The first calls, at n = {smallest:,}, took {listed(firsts)}, and are not in the times."


def _shared_name(sides: Sequence[Ready]) -> str:
    """The name that all functions have, or else what the sides are called."""
    names = {getattr(side.function, "__name__", "") for side in sides}
    name = names.pop() if len(names) == 1 else ""
    return name if name.isidentifier() else listed([side.words for side in sides])
