# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a card that was not measured, against PyTorch on the CPU of a file: as measured there,
or predicted, too. Neither side is ever compared with this program.

docs/method/prediction.md says how.
"""

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace

import numpy as np

from crossover_bench.answers.predict import host
from crossover_bench.answers.predict.analysis import (
    Outlook,
    Wanted,
    cost_for,
    measured_rows,
    predict_draws,
    predicted_as,
    with_card,
)
from crossover_bench.answers.predict.attention import has_attention
from crossover_bench.answers.predict.data import card_of, is_plain
from crossover_bench.answers.predict.fit import Fit
from crossover_bench.answers.predict.simulate import DRAWS, ends
from crossover_bench.answers.predict.ways import PYTORCH, Estimate, Way
from crossover_bench.counts.cards import Card, load_cards
from crossover_bench.counts.cost import Cost
from crossover_bench.curves.crossover import Comparison, Question, SpeedUp, drawn_crossover
from crossover_bench.curves.curves import NETWORKS, SCALES, Pairing, pairings
from crossover_bench.files.axes import Items
from crossover_bench.files.families import steps_of
from crossover_bench.files.rows import File, Row

_ON_CPU = {"program": PYTORCH, "device": "cpu", "execution": "eager"}
# Rows of PyTorch's that are eager; of scripts, the one that people write.
_PLAIN = {**_ON_CPU, "compiler": "none", "precision": "f32"}
_SCRIPT, _USUAL = "script", "usual"
_OF_HOST = 0.5  # the share of a step that calls must take, for the step to tell what one takes


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """A network on the CPU: the `row` that stands for it, its seconds of an iteration in each draw,
    and whether that was measured. `beside` are those of them that both devices pay, as for a
    loader."""

    row: Row
    draws: np.ndarray
    is_measured: bool
    has_attention: bool = False
    beside: float = 0.0


def pytorch_outlooks(file: File, fit: Fit, wanted: Wanted) -> list[Outlook]:
    """What each card would do in each way of PyTorch's loop; none without such a way."""
    ways = [way for way in wanted.ways if way.loop == PYTORCH]
    has_it = any(row.program == PYTORCH and row.device == "cuda" for row in file.peers)
    measured_card = card_of(file, load_cards()) if has_it else None
    cards = [card for card in wanted.cards if card != measured_card]
    if not ways or not cards:
        return []
    call = call_of(file, wanted)
    sides = _sides(file, call, wanted)
    return [
        _outlook(file, sides, fit, card, way=way, wanted=wanted, call=call)
        for card in cards
        for way in ways
    ]


def cpu_rows(file: File, wanted: Wanted, *, usual: bool) -> list[Row]:
    """The rows of PyTorch's eager loop on the CPU: of the script that people `usual`ly write, with
    its loader, or of the plain loop."""
    return [
        row
        for row in file.peers
        if row.family in wanted.families
        and row.failure is None
        and not row.as_is
        and row.copies == row.ranks == 1
        and all(row.configuration.get(key, value) == value for key, value in _PLAIN.items())
        and wanted.batch in (None, row.batch)
        and (row.configuration.get(_SCRIPT) == _USUAL) == usual
    ]


def call_of(file: File, wanted: Wanted) -> Estimate:
    """Seconds of a call of PyTorch's on the CPU of `file`: from its own rows of PyTorch where calls
    take most of them, else from how fast one thread is in its rows of ours."""
    known = host.fitted()
    ours = _fastest(measured_rows(file, replace(wanted, batch=None)))
    logs = []
    lean = cpu_rows(file, replace(wanted, batch=None), usual=False)
    for what, row in _fastest(lean).items():
        cost = _cost(file, row)
        if cost is None or what not in ours:
            continue
        work = known.host.work * ours[what].median / steps_of(row) / wanted.cpu_second
        left = row.median / steps_of(row) / wanted.cpu_second - work
        if left > _OF_HOST * (left + work):
            logs.append(math.log(left / known.host.count(cost)))
    if logs:
        spread = known.error.spread / math.sqrt(len(logs))
        return replace(known.error, spread=spread, middle=math.exp(float(np.mean(logs))))
    times: dict[str, float] = {}
    for row in measured_rows(file, replace(wanted, batch=None)):
        cost = _cost(file, row)
        if row.threads == 1 and cost and host.is_small(cost):
            seconds = row.median / steps_of(row) / wanted.cpu_second
            times[row.model] = min(seconds, times.get(row.model, math.inf))
    return host.call_of(times, known.host, known.loops)


def _cost(file: File, row: Row) -> Cost | None:
    cost = cost_for(file, row, row.counters["batch"], "f32", "")
    return None if isinstance(cost, str) else cost


def _fastest(rows: Iterable[Row]) -> dict[Items, Row]:
    """Of rows that do the same but for how, the fastest."""
    fastest: dict[Items, Row] = {}
    for row in rows:
        key = row.axes.what(row.configuration, without=(_SCRIPT,))
        if key not in fastest or row.median < fastest[key].median:
            fastest[key] = row
    return fastest


def _sides(file: File, call: Estimate, wanted: Wanted) -> dict[Items, _Side | tuple[Row, str]]:
    """Each network on the CPU, or the reason why that is not known, with the row that has it."""
    sides: dict[Items, _Side | tuple[Row, str]] = {}
    for what, row in _fastest(measured_rows(file, wanted)).items():
        cost = cost_for(file, row, row.counters["batch"], "f32", "its cost")
        if not is_plain(row):
            sides[what] = row, "only plain training is predicted: an update each batch"
        elif isinstance(cost, str):
            sides[what] = row, cost
        else:
            steps = steps_of(row)
            ours = row.median / steps / wanted.cpu_second
            draws = steps * host.fitted().cpu_draws(cost, ours, call)
            made = predicted_as(
                row, {**_ON_CPU, "precision": "f32"}, ends(draws), wanted.cpu_second
            )
            sides[what] = _Side(made, draws, False, has_attention(cost))
    for what, row in _fastest(cpu_rows(file, wanted, usual=False)).items():
        sides[what] = _measured(file, row, wanted)
    return _as_written(sides, file, wanted)


def _measured(file: File, row: Row, wanted: Wanted) -> _Side:
    what = dict(row.axes.what(row.configuration, without=(_SCRIPT,)))
    plain = replace(row, configuration={**what, **_ON_CPU, "precision": "f32"})
    counted = _cost(file, row)
    draws = _resampled(plain) / wanted.cpu_second
    return _Side(plain, draws, True, bool(counted and has_attention(counted)))


def _as_written(
    sides: dict[Items, _Side | tuple[Row, str]], file: File, wanted: Wanted
) -> dict[Items, _Side | tuple[Row, str]]:
    """`sides` as the script that people write has them, where `file` has rows of it: what it takes
    beside the plain loop in each step both devices pay. Networks of which it has no such row are
    predicted, by the median of that."""
    written, beside = dict[Items, _Side](), dict[Items, float]()
    for what, row in _fastest(cpu_rows(file, wanted, usual=True)).items():
        written[what] = _measured(file, row, wanted)
        plain = sides.get(what)
        if isinstance(plain, _Side):
            more = float(np.median(written[what].draws) - np.median(plain.draws))
            beside[what] = max(more, 0.0) / steps_of(row)
    if not beside:
        return {**sides, **written}
    usual = float(np.median(list(beside.values())))
    for what, side in sides.items():
        if isinstance(side, _Side) and what not in written:
            more = usual * steps_of(side.row)
            draws = side.draws + more
            samples = wanted.cpu_second * np.array(astuple(ends(draws)))
            made = replace(side.row, samples=samples)
            written[what] = replace(side, row=made, draws=draws, is_measured=False, beside=more)
    return {
        what: replace(written[what], beside=beside.get(what, usual) * steps_of(written[what].row))
        if what in written
        else side
        for what, side in {**sides, **written}.items()
    }


def _resampled(row: Row) -> np.ndarray:
    """Draws of the median of a measured row."""
    random = np.random.default_rng(0)
    picked = random.choice(row.samples, (DRAWS, len(row.samples)))
    return np.median(picked, axis=1)


def _outlook(
    file: File,
    sides: dict[Items, _Side | tuple[Row, str]],
    fit: Fit,
    card: Card,
    *,
    way: Way,
    wanted: Wanted,
    call: Estimate,
) -> Outlook:
    of_gpu = host.fitted().gpu_call_draws(call)
    rows: list[Row] = []
    gains: dict[int, np.ndarray] = {}  # of each row by its index: the logarithm of the speedup
    problems: dict[str, dict[str, None]] = {}
    measured = 0
    for index, side in enumerate(sides.values()):
        if not isinstance(side, _Side):
            problems.setdefault(side[1], {})[side[0].model] = None
            continue
        row = side.row
        draws = _on_card(file, row, fit, card, way=way, wanted=wanted, call=of_gpu)
        if isinstance(draws, str):
            problems.setdefault(draws, {})[row.model] = None
            continue
        draws = draws + side.beside
        configuration = {**way.configuration, "program": PYTORCH, "precision": wanted.precision}
        made = predicted_as(row, configuration, ends(draws), wanted.second)
        rows += [replace(each, index=index) for each in (row, made)]
        prices = math.log(wanted.cpu_second / wanted.second)
        gains[index] = np.log(side.draws / draws) + prices
        measured += side.is_measured
    virtual = with_card(file, card, rows)
    pairs = pairings(virtual, {family: SCALES[family] for family in wanted.families})
    return Outlook(
        card=card,
        way=way,
        crossovers=tuple(_comparison(pair, gains) for pair in pairs if pair.best.meets(pair.gpu)),
        networks=tuple(_speed_up(pair, gains) for pair in pairings(virtual, NETWORKS)),
        problems={reason: tuple(names) for reason, names in problems.items()},
        cpu=_words(measured, len(gains)),
        was_measured=measured == len(gains),
        has_attention=any(
            isinstance(side, _Side) and side.has_attention for side in sides.values()
        ),
    )


def _words(measured: int, count: int) -> str:
    if measured == count:
        return "PyTorch on this CPU, measured"
    of = f" but for {measured} of {count}" if measured else ""
    return f"PyTorch on this CPU, predicted{of}"


def _on_card(
    file: File, row: Row, fit: Fit, card: Card, *, way: Way, wanted: Wanted, call: np.ndarray
) -> np.ndarray | str:
    batch = row.counters["batch"]
    cost = cost_for(file, row, batch, wanted.precision, f"its cost at batch {batch:,.0f}")
    if isinstance(cost, str):
        return cost
    return predict_draws(fit, cost, card, way, steps_of(row), call=call)


def _comparison(pair: Pairing, gains: dict[int, np.ndarray]) -> Comparison:
    indexes = dict(zip(pair.gpu.sizes.tolist(), pair.gpu.rows, strict=True))
    sizes = np.intersect1d(pair.best.sizes, pair.gpu.sizes)
    draws = np.array([gains[indexes[size]] for size in sizes.tolist()]).T
    question = Question(pair.measure, is_band=True, quantity=pair.gpu.quantity)
    crossover = drawn_crossover(sizes, draws, question)
    return Comparison(pair.common, pair.measure, pair.best, pair.gpu, crossover)


def _speed_up(pair: Pairing, gains: dict[int, np.ndarray]) -> SpeedUp:
    times = ends(np.exp(gains[pair.gpu.rows[0]]))
    size = float(pair.gpu.sizes[0])
    cpu = pair.cpus[0]
    return SpeedUp(pair.common, size, cpu, pair.gpu, times.seconds, times.low, times.high)
