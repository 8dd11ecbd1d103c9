# SPDX-License-Identifier: Apache-2.0
"""The table of Shi et al. 2016, seconds per mini-batch, and this project's rows beside it.

docs/method/peers.md says what is compared, and how sure it is.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from crossover_bench.counts.reference import REFERENCE, lines_of
from crossover_bench.curves import statistics
from crossover_bench.curves.curves import Curve
from crossover_bench.curves.statistics import estimate, fewest_samples
from crossover_bench.files.axes import Label
from crossover_bench.files.families import MINIBATCH, TRAINING, steps_of
from crossover_bench.files.file_order import by_id, newest_per_machine
from crossover_bench.files.rows import File, Row, median_of

SHI_PATH = REFERENCE / "shi2016_table7.csv"
YEAR = 2016
PRECISION = "f32"  # that of the published figures
DEVICES: dict[str, str] = {  # in words, of the published figures
    "desktop": "Intel i7-3820",
    "server": "two Intel E5-2630 v3",
    "g980": "GTX 980",
    "g1080": "GTX 1080",
    "k80": "Tesla K80",
}
CPUS = ("desktop", "server")

Side = Literal["cpu", "gpu"]
SIDES: tuple[Side, ...] = ("cpu", "gpu")


@dataclass(frozen=True, slots=True)
class Figure:
    """One cell of the published table: `threads` is None on a GPU, `seconds` where it has a dash.

    `text` is the time in seconds with the digits that were published.
    """

    network: str
    batch: str
    framework: str
    device: str
    threads: str | None
    seconds: float | None
    text: str

    @property
    def side(self) -> Side:
        """The kind of its device."""
        return "cpu" if self.device in CPUS else "gpu"

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit that was published, in seconds."""
        return 0.5 * 10.0 ** -len(self.text.partition(".")[2])


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast ours is as the fastest published `figures` of one side, one for each
    network: their time over ours, the geometric mean over several.

    [`low`, `high`] is the 95 % interval from our repetitions, widened by the rounding of what was
    published; None with too few repetitions.
    """

    figures: tuple[Figure, ...]
    ratio: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Ours:
    """One of our devices in one precision: its fastest way on one network, `row`, or without a row
    the mean over all `networks` that it has. `against` has the ratios to the figures of each side.
    """

    side: Side
    precision: str
    networks: tuple[str, ...]
    row: Row | None
    against: dict[Side, Ratio]


def load_shi(path: Path = SHI_PATH) -> list[Figure]:
    """The published table; raises OSError where the file cannot be read."""
    return [
        Figure(
            network=line["network"],
            batch=line["batch"],
            framework=line["framework"],
            device=line["device"],
            threads=line["threads"] or None,
            seconds=float(text) if (text := line["seconds_per_minibatch"]) else None,
            text=text,
        )
        for line in lines_of(path)
    ]


def load_differences() -> dict[str, str]:
    """Published network → how ours differs, a phrase, for those that do; raises OSError."""
    lines = lines_of(REFERENCE / "shi2016_networks.csv")
    return {line["network"]: line["difference"] for line in lines if line["difference"]}


def shi_rows(file: File, figures: Iterable[Figure]) -> list[Row]:
    """The rows of `file` that train a network of `figures` in its batch size, failed ones too: its
    training steps, and the epochs of networks that have none."""
    networks = {(figure.network.lower(), figure.batch) for figure in figures}
    rows = [row for row in file.rows if row.family in TRAINING and _key(row) in networks]
    in_steps = {_key(row) for row in rows if row.family == MINIBATCH}
    return [row for row in rows if row.family == MINIBATCH or _key(row) not in in_steps]


def newest_with_rows(
    figures: Sequence[Figure], files: Sequence[File]
) -> list[tuple[File, list[Row]]]:
    """Of each machine the file that answers for it among those with such rows, or else among all,
    with its shi_rows()."""
    rows = {file.path: shi_rows(file, figures) for file in files}
    with_rows, _ = newest_per_machine([file for file in files if rows[file.path]], by_id)
    chosen = {file.machine.id: file for file in newest_per_machine(files, by_id)[0]}
    chosen |= {file.machine.id: file for file in with_rows}
    return [(file, rows[file.path]) for _, file in sorted(chosen.items())]


def seconds_of(row: Row) -> float:
    """Median seconds of a mini-batch."""
    return row.median / steps_of(row)


def ours(figures: Sequence[Figure], rows: Sequence[Row]) -> list[Ours]:
    """What `rows`, the shi_rows() of one file, reach: of each network, device and precision the
    fastest, in the order of the table."""
    order = list(dict.fromkeys(figure.network for figure in figures))
    fastest = [reached for reached in _devices(figures, rows) if reached.row]
    return sorted(fastest, key=lambda reached: order.index(reached.networks[0]))


def means(figures: Sequence[Figure], rows: Sequence[Row]) -> list[Ours]:
    """The geometric means over all networks of each of our devices, in the published precision."""
    every = (reached for reached in _devices(figures, rows) if reached.row is None)
    return [mean for mean in every if mean.precision == PRECISION]


def _key(row: Row) -> tuple[str, str]:
    return row.model, row.batch


def _devices(figures: Sequence[Figure], rows: Sequence[Row]) -> Iterator[Ours]:
    """Of each device and precision each network, and all of them together."""
    names = {figure.network.lower(): figure.network for figure in figures}
    groups: dict[tuple[Side, str], dict[str, list[Row]]] = {}
    for row in rows:
        if row.failure is None:
            side: Side = "cpu" if row.device == "cpu" else "gpu"
            networks = groups.setdefault((side, row.precision), {})
            networks.setdefault(names[row.model], []).append(row)
    for (side, precision), networks in groups.items():
        best = {kind: [_fastest(figures, name, kind) for name in networks] for kind in SIDES}
        estimates = _estimated(list(networks.values()), side)
        each: list[tuple[Row | None, list[int]]] = [
            (min(ways, key=seconds_of), [place]) for place, ways in enumerate(networks.values())
        ]
        for row_or_none, places in (*each, (None, [*range(len(networks))])):
            against = {
                kind: _ratio([best[kind][place] for place in places], places, estimates)
                for kind in SIDES
            }
            published = tuple(best["cpu"][place].network for place in places)
            yield Ours(side, precision, published, row_or_none, against)


@dataclass(frozen=True, slots=True, eq=False)
class _Estimates:
    """Natural logarithms of seconds of a mini-batch by network, their replicates, and which
    networks have repetitions enough for an interval."""

    logs: np.ndarray
    replicates: np.ndarray
    enough: np.ndarray


def _estimated(networks: Sequence[Sequence[Row]], side: Side) -> _Estimates:
    """The fastest way of each of `networks` without the favour of choice (estimate())."""
    candidates = tuple(tuple(row.samples / steps_of(row) for row in rows) for rows in networks)
    curve = Curve(
        words=Label(),
        configuration={},
        sizes=np.arange(1.0, len(networks) + 1),
        samples=tuple(min(samples, key=median_of) for samples in candidates),
        candidates=candidates,
        instances=tuple(tuple(row.instances for row in rows) for rows in networks),
    )
    times = estimate(curve, SIDES.index(side))
    counts = np.array([fewest_samples(curve, place) for place in range(len(networks))])
    return _Estimates(times.logs, times.replicates, counts >= statistics.FEWEST_SAMPLES)


def _ratio(figures: Sequence[Figure], places: Sequence[int], estimates: _Estimates) -> Ratio:
    """The geometric mean of the times of `figures` over those at `places`."""

    def mean(rounding: int) -> float:
        times = [(figure.seconds or 0.0) + rounding * figure.rounding for figure in figures]
        return float(np.mean(np.log(np.maximum(times, 1e-9))))

    ratio = math.exp(mean(0) - float(np.mean(estimates.logs[places])))
    if not estimates.enough[places].all():
        return Ratio(tuple(figures), ratio, None, None)
    low, high = statistics.interval(np.mean(estimates.replicates[:, places], axis=1))
    return Ratio(tuple(figures), ratio, math.exp(mean(-1) - high), math.exp(mean(+1) - low))


def _fastest(figures: Iterable[Figure], network: str, side: Side) -> Figure:
    """Of each network a figure of each side was published."""
    of_side = (figure for figure in figures if (figure.network, figure.side) == (network, side))
    return min(of_side, key=lambda figure: figure.seconds or math.inf)
