# SPDX-License-Identifier: Apache-2.0
"""The time of an epoch of a network on the devices of a file: of one that nobody measured from the
file's other networks; of one that the file measured from its own rows, the only way for networks
with convolutions, as their rates depend too much on their shapes.

docs/method/prediction.md defines the model and its band; ask.js computes the same in a browser.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossover_bench.counts.cost import Cost, Work, has_own_rates, work_of
from crossover_bench.counts.mlp import network_of
from crossover_bench.curves.series import SeriesKey, series_key, series_labels
from crossover_bench.curves.statistics import conformal
from crossover_bench.files.axes import DEVICES
from crossover_bench.files.families import FAMILIES, TRAINING, steps_of
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import File, Row
from crossover_bench.words.text import counted, printable, whole

FEWEST_NETWORKS = 6
FARTHEST = 10.0  # times beyond the measured range in anything: no prediction
_RIDGE = 1e-9  # of a diagonal element: terms that always go together leave the matrix singular

Reasons = dict[str, tuple[str, ...]]  # why there is no prediction → for which series and cards


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the file's Peak rows reached at best on one device, per second; 0: not measured."""

    flops: float
    memory_bytes: float
    bytes_to_device: float


@dataclass(frozen=True, slots=True)
class Series:
    """One way to compute, fitted to the networks that a file measured in it.

    `weights` belong to `features`. `residuals` hold for each cluster of networks the largest
    |ln(measured / predicted)| when all of its rows are left out of the fit. `leverage` is the
    inverse of the moments of what was fitted, from which leverage_of() says how far a network is
    from these. `band` is half the width of the error band of a network without leverage, as a
    logarithm, and covers `coverage` of networks like these. `ranges` are the least and the most
    that was measured of each of sizes_of().
    """

    key: SeriesKey
    label: str
    ceilings: Ceilings
    features: tuple[str, ...]
    weights: np.ndarray
    leverage: np.ndarray
    residuals: dict[str, float]
    band: float
    coverage: float
    ranges: dict[str, tuple[float, float]]

    @property
    def typical_error(self) -> float:
        """The median of the residuals as a fraction: 0.12 is 12 %."""
        return math.expm1(float(np.median(list(self.residuals.values()))))

    @property
    def device(self) -> str:
        """As in the configuration: cpu, cuda."""
        return dict(self.key)["device"]

    @property
    def name(self) -> str:
        """In a sentence: "2 threads", "GPU"."""
        return name_of(dict(self.key))


@dataclass(frozen=True, slots=True)
class Prediction:
    """Seconds of one epoch of a network in one way to compute, or another `quantity` of it: the
    `middle` of the band from `low` to `high`.

    `device` is cpu, cuda for the file's own GPU, or the id of a card, whose `name` people know;
    `data` is where the data lies. Of a fitted `series`, `beyond` says how many times the network is
    outside of what was measured, 1 within; of a `row` of the network itself, `measured` says how.
    """

    label: str
    device: str
    name: str
    data: str
    middle: float
    low: float
    high: float
    series: Series | None = None
    beyond: float = 1.0
    measured: str = ""
    row: Row | None = None
    quantity: Quantity = TIME


def fit_series(file: File, precision: str, accumulate: int = 1) -> tuple[list[Series], Reasons]:
    """Every series of `file` that trains in `precision` with an update every so many batches,
    fitted to the networks without convolutions and normalization; and for each series of a device
    without any fit the reason."""
    alike = (row for row in file.rows if _is_alike(row, precision, accumulate))
    rows = [row for row in alike if not has_own_rates(row)]
    if not rows:
        shown = printable(precision, 40)
        reason = f"the file has no Epoch row in the precision of the network, {shown}"
        return [], {reason: ("this machine",)}
    series = {key: [row for row in rows if series_key(row) == key] for key in series_labels(rows)}
    answers = {
        key: _counted(file, dict(key), members, precision) for key, members in series.items()
    }
    works = {key: answer for key, answer in answers.items() if not isinstance(answer, str)}
    labels = series_labels([row for key in works for row in series[key]])
    fits = [
        _fit(key, labels[key], _ceilings(file, dict(key), precision), rows_and_work)
        for key, rows_and_work in works.items()
    ]
    fitted = {fit.device for fit in fits}
    problems: Reasons = {}
    for key, label in series_labels(rows).items():
        answer = answers[key]
        if isinstance(answer, str) and dict(key)["device"] not in fitted:
            problems[answer] = (*problems.get(answer, ()), label)
    return fits, problems


def _counted(
    file: File, configuration: dict[str, str], rows: Sequence[Row], precision: str
) -> list[tuple[Row, Work]] | str:
    """The rows of a series with what they counted, or the reason why it can't be fitted."""
    ceilings = _ceilings(file, configuration, precision)
    if not ceilings.flops or not ceilings.memory_bytes:
        return (
            "the file has no Peak rows for its arithmetic or memory; measure with "
            "--family=Peak,Epoch"
        )
    counts = [(row, work) for row in rows if (work := _work_of(row))]
    networks = {row.model for row, _ in counts}
    if len(networks) < FEWEST_NETWORKS:
        return (
            f"{counted(len(networks), 'network')} measured, and a fit needs {FEWEST_NETWORKS}; "
            "measure more networks"
        )
    if any(work.bytes_to_device is None for _, work in counts):
        return "the rows do not say what they copy (bytes_to_device); measure again"
    return counts


def of_threads(file: File, threads: str) -> File:
    """`file` with the rows of that CPU thread count, and those of the GPU; all of them where none
    is named."""
    kept = (None, threads)
    rows = (row for row in file.rows if row.configuration.get("cpu_threads") in kept)
    return replace(file, rows=tuple(rows)) if threads else file


def _is_alike(row: Row, precision: str, accumulate: int) -> bool:
    configuration = row.configuration
    return (
        row.family in TRAINING
        and row.failure is None
        and configuration["precision"] == precision
        and configuration.get("accumulate", "1") == str(accumulate)
        and "shuffle" not in configuration
        and "loss" not in configuration  # which waits behind each step
        and "script" not in configuration  # which also loads
    )


def _work_of(row: Row) -> Work | None:
    """What `row` counted; rows of older files do not say their products and logits, but their
    networks do."""
    mlp = network_of(row.model)
    if mlp is not None and mlp.params == row.counters["params"]:
        samples = row.counters[FAMILIES[row.family].samples]
        known = {"products": mlp.products * steps_of(row), "logits": mlp.widths[-1] * samples}
        row = replace(row, counters=known | row.counters)
    if row.device == "cpu" and "products" not in row.counters:
        return None
    return work_of(row)


def _ceilings(file: File, configuration: dict[str, str], precision: str) -> Ceilings:
    """The best sample of each Peak row of the same device and number of threads."""

    threads = configuration.get("cpu_threads")
    peaks = [
        row
        for row in file.rows
        if row.family == "Peak" and row.failure is None and row.device == configuration["device"]
        if row.configuration.get("cpu_threads", threads) == threads
    ]

    def best(counter: str, **wanted: str) -> float:
        # Counters are medians; work over the shortest time is the best.
        rates = (
            row.counters[counter] * row.median / row.minimum
            for row in peaks
            if wanted.items() <= row.configuration.items()
        )
        return max(rates, default=0.0)

    return Ceilings(
        flops=max(
            best("flops_per_second", quantity=quantity, precision=precision)
            for quantity in ("fma", "matrix")
        ),
        memory_bytes=best("bytes_per_second", quantity="triad"),
        bytes_to_device=best("bytes_per_second", quantity="copy", direction="h2d"),
    )


def _features(work: Work, names: Sequence[str], ceilings: Ceilings) -> list[float]:
    """Counts, whose weights are seconds, and seconds at the ceilings, whose weights are factors."""
    values = {
        "calls": work.calls,
        "logits": work.logits,
        "compute": work.flops / ceilings.flops,
        "memory": work.bytes / ceilings.memory_bytes,
        "copy": (work.bytes_to_device or 0.0) / (ceilings.bytes_to_device or math.inf),
    }
    return [values[name] for name in names]


def name_of(configuration: dict[str, str]) -> str:
    """What a sentence calls where it computes: "2 threads" of the CPU, "GPU"."""
    threads = whole(configuration.get("cpu_threads", ""))
    if threads is None:
        return DEVICES.get(configuration["device"], configuration["device"])
    return counted(threads, "thread")


def sizes_of(work: Work) -> dict[str, float]:
    """The sizes in which a network may lie beyond those measured."""
    return {
        "parameters": work.params,
        "batch size": work.batch,
        "operations per step": work.flops / work.steps,
        "products or launches per step": work.calls / work.steps,
    }


def clusters(rows: Sequence[Row]) -> list[str]:
    """Of each row the network that it is left out with. A size between the rungs of a ladder tells
    of its neighbours, so it goes with the nearest rung."""
    rungs = {row.model: row.counters["params"] for row in rows if row.ladder and not row.is_between}

    def name(row: Row) -> str:
        if not row.is_between or not rungs:
            return row.model
        return min(rungs, key=lambda rung: abs(math.log(rungs[rung] / row.counters["params"])))

    return [name(row) for row in rows]


def weights_of(matrix: np.ndarray, times: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Non-negative weights with the least squares of the relative errors, each of which counts as
    its `share` says."""
    from scipy.optimize import nnls  # noqa: PLC0415 (takes long to load)

    root = np.sqrt(share)
    relative = matrix / times[:, None] * root[:, None]
    scale = np.where(relative.max(axis=0) > 0, relative.max(axis=0), 1.0)
    weights, _ = nnls(relative / scale, root)
    return weights / scale


class _Rows:
    """The features and times of rows, and the share of each: a cluster counts as one row."""

    def __init__(self, matrix: np.ndarray, times: np.ndarray, names: np.ndarray, floor: int):
        self.matrix, self.times, self.names = matrix, times, names
        self._floor = floor
        _, inverse, counts = np.unique(names, return_inverse=True, return_counts=True)
        self.share = 1 / counts[inverse]

    def where(self, chosen: np.ndarray) -> "_Rows":
        return _Rows(self.matrix[chosen], self.times[chosen], self.names[chosen], self._floor)

    def weights(self) -> np.ndarray:
        return weights_of(self.matrix, self.times, self.share)

    def predicted(self, weights: np.ndarray) -> np.ndarray:
        return np.maximum(self.matrix @ weights, self.matrix[:, self._floor])

    def leverage(self, weights: np.ndarray) -> np.ndarray:
        relative = self.matrix / self.predicted(weights)[:, None]
        moments = (relative * self.share[:, None]).T @ relative
        diagonal = np.where(np.diag(moments) > 0, np.diag(moments), 1.0)
        return np.linalg.inv(moments + _RIDGE * np.diag(diagonal))


def leverage_of(features: np.ndarray, seconds: float, leverage: np.ndarray) -> float:
    """How much the fit's uncertainty adds to the variance of a prediction: x' M x, where x are the
    shares of the time that its features make up."""
    shares = features / seconds
    return float(shares @ leverage @ shares)


def _fit(
    key: SeriesKey, label: str, ceilings: Ceilings, counts: Sequence[tuple[Row, Work]]
) -> Series:
    works = [work for _, work in counts]
    copies = any(work.bytes_to_device for work in works) and ceilings.bytes_to_device > 0
    features = ("calls", "logits", "compute", "memory", *(("copy",) if copies else ()))
    rows = _Rows(
        np.array([_features(work, features, ceilings) for work in works]),
        np.array([row.median for row, _ in counts]),
        np.array(clusters([row for row, _ in counts])),
        features.index("compute"),
    )
    residuals, scores = {}, []
    for name in dict.fromkeys(rows.names.tolist()):
        out, rest = rows.where(rows.names == name), rows.where(rows.names != name)
        weights = rest.weights()
        predicted, leverage = out.predicted(weights), rest.leverage(weights)
        errors = np.abs(np.log(predicted / out.times))
        residuals[name] = float(errors.max())
        scores.append(
            max(
                error / math.sqrt(1 + leverage_of(terms, seconds, leverage))
                for error, terms, seconds in zip(errors, out.matrix, predicted, strict=True)
            )
        )
    band, coverage = conformal(scores)
    weights = rows.weights()
    sizes = [sizes_of(work) for work in works]
    ranges = {
        name: (min(size[name] for size in sizes), max(size[name] for size in sizes))
        for name in sizes[0]
    }
    return Series(
        key=key,
        label=label,
        ceilings=ceilings,
        features=features,
        weights=weights,
        leverage=rows.leverage(weights),
        residuals=residuals,
        band=band,
        coverage=coverage,
        ranges=ranges,
    )


def predict(series: Series, cost: Cost) -> Prediction | str:
    """The time of an epoch of `cost` in that series, or why none is given, a phrase."""
    work = cost.work(dict(series.key))
    if work is None:
        return "bench --cost does not count this configuration"
    if work.bytes_to_device and "copy" not in series.features:
        return "the file has no Peak row for copies to the GPU; measure with --family=Peak,Epoch"
    name, beyond = _beyond(work, series.ranges)
    if beyond > FARTHEST:
        return (
            f"the network is {beyond:,.0f} times beyond the measured range of "
            f"{name}, too far for a prediction; measure a network closer to it"
        )
    features = np.array(_features(work, series.features, series.ceilings))
    floor = work.flops / series.ceilings.flops
    seconds = max(float(features @ series.weights), floor)
    wider = math.sqrt(1 + leverage_of(features, seconds, series.leverage))
    # A rule of thumb for what the leverage cannot know: at FARTHEST at least twice the width.
    width = math.exp(series.band * max(wider, 1 + math.log(beyond, FARTHEST)))
    return Prediction(
        label=series.label,
        device=series.device,
        name=series.name,
        data=dict(series.key).get("data", "resident"),
        middle=seconds,
        low=max(seconds / width, floor),
        high=seconds * width,
        series=series,
        beyond=beyond,
    )


def _beyond(work: Work, ranges: dict[str, tuple[float, float]]) -> tuple[str, float]:
    """In what, and how many times, `work` is outside of `ranges`; at least 1."""
    ratios = (
        (name, max(size / ranges[name][1], ranges[name][0] / size))
        for name, size in sizes_of(work).items()
    )
    return max(("parameters", 1.0), *ratios, key=lambda pair: pair[1])


def from_own_rows(measured: Sequence[Row], cost: Cost) -> list[Prediction]:
    """An epoch of `cost` in each way in which `measured` trained that network, from the row of the
    nearest batch size; none where they did not train it.

    Another batch size takes between the same time per sample and the same time per step. The band
    has both ends, with the range of the repetitions.
    """
    rows = [
        row
        for row in measured
        if _is_alike(row, cost.precision, cost.accumulate)
        and row.model == cost.model
        and row.counters["params"] == cost.params
    ]
    return [
        _scaled(nearest([row for row in rows if series_key(row) == key], cost.batch), label, cost)
        for key, label in series_labels(rows).items()
    ]


def nearest(rows: Sequence[Row], batch: float) -> Row:
    """The row whose batch is nearest to `batch`, by the ratio of both."""

    def times_apart(row: Row) -> float:
        measured = row.counters["batch"]
        return max(measured, batch) / min(measured, batch)

    return min(rows, key=times_apart)


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
