# SPDX-License-Identifier: Apache-2.0
"""Predicts the time of an epoch of a network that nobody measured.

docs/method/advice.md defines the model and its error band.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from plots.core.cost import Cost, Work, convolves, work_of
from plots.core.series import SeriesKey, series_key, series_labels
from plots.core.statistics import conformal
from plots.file.families import TRAINING
from plots.file.rows import File, Row
from plots.text import counted, printable

FEWEST_NETWORKS = 6
FARTHEST = 10.0  # times beyond the measured range in anything: no prediction


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the file's Peak rows reached at best on one device, per second; 0: not measured."""

    flops: float
    memory_bytes: float
    bytes_to_device: float


@dataclass(frozen=True, slots=True)
class Series:
    """One way to compute, fitted to the networks that `rows` measured.

    `weights` belong to `features`. `residuals` hold for each network the largest
    |log(measured / predicted)|, in natural logarithms, when all of its rows are left out of the
    fit; `band` is half the width of the error band, in the same unit, and covers `coverage` of
    networks like these.
    """

    key: SeriesKey
    label: str
    ceilings: Ceilings
    features: tuple[str, ...]
    weights: np.ndarray
    works: tuple[Work, ...]
    residuals: dict[str, float]
    band: float
    coverage: float

    @property
    def typical_error(self) -> float:
        """The median of the residuals as a fraction: 0.12 is 12 %."""
        return math.expm1(float(np.median(list(self.residuals.values()))))

    @property
    def device(self) -> str:
        """As in the configuration: cpu, cuda."""
        return dict(self.key)["device"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds of one epoch of a network, in the band from `low` to `high`.

    `beyond` says how many times the network is outside of what was measured, 1 within.
    """

    series: Series
    seconds: float
    low: float
    high: float
    steps: float
    beyond: float


def fit_series(file: File, cost: Cost) -> tuple[list[Series], list[str]]:
    """Every series of `file` that computes as `cost` does (precision, accumulation), fitted to the
    networks of its kind: with convolutions, or without.

    Also one sentence for each that can't be.
    """
    rows = [row for row in file.rows if _is_alike(row, cost)]
    if not rows:
        precision = printable(cost.precision, 40)
        what = "no row of a network with convolutions" if cost.convolves else "no Epoch row"
        remedy = f"; {_itself(cost)}" if cost.convolves else ""
        return [], [f"the file has {what} in the precision of the network, {precision}{remedy}"]
    found, problems = [], []
    for key, label in series_labels(rows).items():
        own = [row for row in rows if series_key(row) == key]
        ceilings = _ceilings(file, dict(key), cost.precision)
        if not ceilings.flops or not ceilings.memory_bytes:
            problems.append(
                f"{label}: the file has no Peak rows for its arithmetic or memory; measure with "
                "--family=Peak,Epoch"
            )
            continue
        counted = [(row, work) for row in own if (work := work_of(row))]
        networks = {row.model for row, _ in counted}
        if len(networks) < FEWEST_NETWORKS:
            problems.append(_too_few(label, len(networks), cost))
            continue
        works = [work for _, work in counted]
        if any(work.bytes_to_device is None for work in works):
            problems.append(
                f"{label}: the rows do not say what they copy (bytes_to_device); measure again"
            )
            continue
        found.append(_fit(key, label, ceilings, [row for row, _ in counted], works))
    return found, problems


def _too_few(label: str, networks: int, cost: Cost) -> str:
    if not cost.convolves:
        return (
            f"{label}: {networks} networks have the counters for a fit, which needs "
            f"{FEWEST_NETWORKS}; measure more networks"
        )
    return (
        f"{label}: {counted(networks, 'network')} with convolutions measured, and a fit needs "
        f"{FEWEST_NETWORKS}, as rates of convolutions differ with their shapes more than those of "
        f"products; {_itself(cost)}"
    )


def _itself(cost: Cost) -> str:
    name = printable(cost.model, 60)
    return f"measure the network itself with --family=Minibatch --model={name}"


def _is_alike(row: Row, cost: Cost) -> bool:
    configuration = row.configuration
    return (
        row.family in TRAINING
        and row.failure is None
        and convolves(row) == cost.convolves
        and configuration["precision"] == cost.precision
        and configuration.get("accumulate", "1") == str(cost.accumulate)
        and "loss" not in configuration  # which waits behind each step
    )


def _ceilings(file: File, configuration: dict[str, str], precision: str) -> Ceilings:
    """The best sample of each Peak row of the same device and number of threads."""

    def best(counter: str, **wanted: str) -> float:
        rates = [0.0]
        for row in file.rows:
            has = row.configuration
            alike = all(has.get(key) == value for key, value in wanted.items())
            same = has.get("device") == configuration["device"]
            threads = "cpu_threads" not in has or (
                has["cpu_threads"] == configuration.get("cpu_threads")
            )
            if row.family == "Peak" and row.failure is None and alike and same and threads:
                # Counters are medians; work over the shortest time is the best.
                rates.append(row.counters[counter] * row.median / row.minimum)
        return max(rates)

    return Ceilings(
        flops=max(
            best("flops_per_second", quantity=quantity, precision=precision)
            for quantity in ("fma", "matrix")
        ),
        memory_bytes=best("bytes_per_second", quantity="triad"),
        bytes_to_device=best("bytes_per_second", quantity="copy", direction="h2d"),
    )


def _features(work: Work, names: Sequence[str], ceilings: Ceilings) -> list[float]:
    """Counts, and seconds at the ceilings: what a weight is of each is its dimension."""
    values = {
        "products": work.products or 0.0,
        "launches": work.launches,
        "rows": work.rows,
        "compute": work.flops / ceilings.flops,
        "memory": work.bytes / ceilings.memory_bytes,
        "copy": (work.bytes_to_device or 0.0) / (ceilings.bytes_to_device or math.inf),
    }
    return [values[name] for name in names]


def _names(works: Sequence[Work], device: str, ceilings: Ceilings) -> tuple[str, ...]:
    """What a time is made of. A CPU's own loops cost little beside its calls of products; a GPU's
    launches all cost alike."""
    calls = "launches"
    if device == "cpu" and all(work.products is not None for work in works):
        calls = "products"
    copies = any(work.bytes_to_device for work in works) and ceilings.bytes_to_device > 0
    return (calls, "rows", "compute", "memory", *(("copy",) if copies else ()))


def _weights(matrix: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Non-negative weights with the least squares of the relative errors."""
    relative = matrix / times[:, None]
    scale = np.where(relative.max(axis=0) > 0, relative.max(axis=0), 1.0)
    found, _ = nnls(relative / scale, np.ones(len(times)))
    return found / scale


def _fit(
    key: SeriesKey,
    label: str,
    ceilings: Ceilings,
    rows: Sequence[Row],
    works: Sequence[Work],
) -> Series:
    names = _names(works, dict(key)["device"], ceilings)
    matrix = np.array([_features(work, names, ceilings) for work in works])
    times = np.array([row.median for row in rows])
    models = np.array([row.model for row in rows])
    residuals = {}
    for model in dict.fromkeys(models.tolist()):
        out = models == model
        predicted = matrix[out] @ _weights(matrix[~out], times[~out])
        floor = matrix[out][:, names.index("compute")]
        errors = np.abs(np.log(np.maximum(predicted, floor) / times[out]))
        residuals[model] = float(errors.max())
    band, coverage = conformal(list(residuals.values()))
    weights = _weights(matrix, times)
    return Series(key, label, ceilings, names, weights, tuple(works), residuals, band, coverage)


def predict(series: Series, cost: Cost) -> Prediction | str:
    """The time of an epoch of `cost` in that series, or the reason why none is given."""
    work = cost.work(dict(series.key))
    if work is None:
        return f"{series.label}: bench --cost does not count this configuration"
    if work.bytes_to_device and "copy" not in series.features:
        return (
            f"{series.label}: the file has no Peak row for copies to the GPU; measure with "
            "--family=Peak,Epoch"
        )
    name, beyond = _beyond(work, series.works)
    if beyond > FARTHEST:
        return (
            f"{series.label}: the network is {beyond:,.0f} times beyond the measured range of "
            f"{name}, too far for a prediction; measure a network closer to it"
        )
    features = np.array(_features(work, series.features, series.ceilings))
    floor = work.flops / series.ceilings.flops
    seconds = max(float(features @ series.weights), floor)
    # Each factor beyond what was measured widens the band, at FARTHEST to twice its width.
    width = math.exp(series.band * (1 + math.log(beyond, FARTHEST)))
    return Prediction(
        series=series,
        seconds=seconds,
        low=max(seconds / width, floor),
        high=seconds * width,
        steps=work.steps,
        beyond=beyond,
    )


def _beyond(work: Work, works: Sequence[Work]) -> tuple[str, float]:
    """In what, and how many times, `work` is outside the range of `works`; at least 1."""
    sizes = {
        "parameters": lambda each: each.params,
        "batch size": lambda each: each.batch,
        "operations per step": lambda each: each.flops / each.steps,
        "launches per step": lambda each: each.launches / each.steps,
    }
    worst = ("parameters", 1.0)
    for name, size in sizes.items():
        measured = [size(each) for each in works]
        ratio = max(size(work) / max(measured), min(measured) / size(work))
        worst = max(worst, (name, ratio), key=lambda pair: pair[1])
    return worst


def best(predictions: Sequence[Prediction], on_cpu: bool) -> Prediction | None:
    """The fastest prediction of one side; None where it has none."""
    side = [item for item in predictions if (item.series.device == "cpu") == on_cpu]
    return min(side, key=lambda item: item.seconds, default=None)
