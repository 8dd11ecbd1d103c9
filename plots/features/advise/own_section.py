# SPDX-License-Identifier: Apache-2.0
"""A network of one's own, first on the page: how long it trains here, with other programs and on
GPUs, from where on a GPU wins, what limits each side, and what memory it takes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plots import units
from plots.core.cards import Card, load_cards
from plots.core.charts.looks import CPU_COLOURS, GPU_COLOURS
from plots.core.charts.style import (
    CARD_COLOURS,
    PREDICTED_DASH,
    Chart,
    devices,
    finish,
    is_narrow,
    name_sizes,
    render,
    set_logarithmic_axes,
    write_above,
)
from plots.core.cost import BENCH_PATH, Cost
from plots.core.costs import described_cost
from plots.core.page.section import Block, Context, Section
from plots.features.advise.advice import (
    CPU,
    GPU,
    Adviser,
    Own,
    Size,
    cost_of_row,
    key_of,
    own_network,
    own_networks,
    rows_of,
    title_of,
)
from plots.features.advise.analysis import Prediction, nearest
from plots.features.advise.as_is_summary import as_is, cards_of, module_block, modules
from plots.features.advise.table import own_block, own_sentences, own_table, sentence
from plots.features.predict.analysis import DEFAULT_CARDS, NOT_MEASURED
from plots.features.predict.answer import Predictions
from plots.features.predict.data import card_of
from plots.features.predict.fit import Fit, band_notes
from plots.file.rows import File, Row
from plots.text import printable, slug

_NOT_COUNTED = (
    "What GPUs would do, and the memory, are missing, because bench is not built here to count the "
    "network: ./run --setup-only, then python -m plots report again."
)

Answer = tuple[Own, Block]


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has a network in a file of its user's."""
    predicted = context.predictions
    fit = predicted.fit if isinstance(predicted, Predictions) else None
    asked = [
        (file, name)
        for file in files[: context.detailed]
        for name in (*own_networks(file), *modules(file))
    ]
    found = context.map(partial(_answer, fit=fit), asked)
    is_predicted = any(gpu.row is None for one in found if one for gpu in one[0].gpus)
    blocks = tuple(
        _block(file, *one, context)
        for (file, _), one in zip(asked, found, strict=True)
        if one is not None
    )
    if not blocks:
        return None
    return Section(
        title="Your network" if len(blocks) == 1 else "Your networks",
        anchor="own",
        blocks=blocks,
        notes=band_notes(fit)[:1] if fit and is_predicted else (),
    )


def _answer(pair: tuple[File, str], fit: Fit | None) -> Answer | None:
    """What is known of one network; None where nothing is."""
    file, name = pair
    if name in modules(file):
        module = as_is(file, name, cards_of(file, name, _cards_of(file)), fit)
        if module is None:
            return None
        return module.own, module_block(module)
    rows = rows_of(file, name)
    model = name if name in file.networks else rows[0].model
    own = [row for row in rows if row.model == model]
    if not own or model not in file.networks:
        return None
    training = json.loads(file.networks[model]).get("training", {})
    first = nearest(own, float(training.get("batch") or own[0].counters["batch"]))

    def count(model: str, batch: int) -> Cost | None:
        alike = [row for row in rows if row.model == model and row.counters["batch"] == batch]
        return _cost_of(file, alike)

    cost = count(model, int(first.counters["batch"]))
    if cost is None:
        return None
    cards = _cards_of(file) if cost.operations else []
    adviser = Adviser(file, cost.precision, cost.accumulate, cards=cards, fit=fit)
    found = own_network(file, adviser, cost, count)
    said = own_sentences(found, adviser) + ([] if cost.operations else [_NOT_COUNTED])
    return found, own_block(found, sentence(found), said, own_table(found))


def _cards_of(file: File) -> list[Card]:
    """Those that are told of, but for the one that it measured."""
    known = load_cards()
    measured = card_of(file, known)
    return [known[key] for key in DEFAULT_CARDS if known[key] != measured]


def _cost_of(file: File, rows: Sequence[Row]) -> Cost | None:
    """What bench counts of a network that `rows` train in one batch, or else what they counted."""
    if not rows or rows[0].model not in file.networks:
        return None
    row = min(rows, key=lambda one: one.precision != "f32")
    epochs = [int(one.counters["rows"]) for one in rows if "rows" in one.counters]
    text, batch = file.networks[row.model], int(row.counters["batch"])
    samples = epochs[0] if epochs else json.loads(text).get("training", {}).get("rows", batch)
    if BENCH_PATH.is_file():
        flags = {"batch": batch, "rows": max(samples, batch), "precision": row.precision}
        flags["accumulate"] = row.configuration.get("accumulate", "1")
        given = tuple(f"--{flag}={value}" for flag, value in flags.items())
        cost = described_cost(text, given, BENCH_PATH)
        if cost is not None and cost.params == row.counters["params"]:
            return cost
    nothing = {"flops": 0.0, "bytes": 0.0, "products": 0, "bytes_to_device": 0}
    return cost_of_row(row, samples, {**nothing, "device_launches": {}})


def _block(file: File, own: Own, block: Block, context: Context) -> Block:
    charts = [chart] if (chart := draw_own(file, own)) else []
    return replace(
        block,
        machine=file.machine.id,
        title=f"{own.cost.model}: {own.cost.params:,.0f} parameters",
        pictures=context.pictures(file, charts),
    )


# ---- the chart: over its batches and over its sizes


def draw_own(file: File, own: Own) -> Chart | None:
    """The chart of `own`; None where one size and batch alone was measured."""
    lines = [
        (what, line)
        for what, line in (("samples in a batch", own.batches), ("parameters", own.widths))
        if len(line) > 1
    ]
    if not lines:
        return None
    pictures = render(partial(_draw, file, own, lines))
    over = " and over ".join(what for what, _ in lines)
    who = ["measured here", *(["with other programs"] if own.peers else [])]
    who += [f"on cards, {NOT_MEASURED}"] if any(one.row is None for one in own.gpus) else []
    alt = (
        f"Time of one epoch of {printable(own.cost.model, 60)} over {over}: {', '.join(who)}. The "
        "table has the figures."
    )
    return Chart(slug(f"own-{own.cost.model}", 80), pictures, alt)


def _draw(
    file: File, own: Own, lines: Sequence[tuple[str, list[tuple[float, Size]]]], figure: Figure
) -> None:
    narrow = is_narrow(figure)
    rows, columns = (len(lines), 1) if narrow else (1, len(lines))
    figure.set_figheight(3.4 * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=not narrow).flat
    handles: dict[str, Line2D] = {}
    for axes, (what, line) in zip(panels, lines, strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        set_logarithmic_axes(axes, what)
        name_sizes(axes, [size for size, _ in line], units.short_count)
        _draw_lines(axes, line, handles)
    write_above(figure.axes[0], "wall-clock time of one epoch", figure.get_figwidth() - 1)
    fixed = f"{own.cost.precision}; over sizes: batch {own.cost.batch:,.0f}"
    text = [devices(file), fixed, f"dashed and shaded: {NOT_MEASURED}"]
    drawn = text if any(one.row is None for one in own.gpus) else text[:2]
    finish(figure, f"{printable(own.cost.model, 60)}: one epoch", drawn, list(handles.values()))


def _draw_lines(axes: Axes, line: Sequence[tuple[float, Size]], handles: dict[str, Line2D]) -> None:
    """Each of all that is known at any place of `line`; a GPU that is predicted in its band."""
    series: dict[str, list[tuple[float, Prediction]]] = {}
    for place, size in line:
        for one in size.known:
            series.setdefault(key_of(one), []).append((place, one))
    cards = [key for key, points in series.items() if points[0][1].row is None]
    for key, points in series.items():
        places = [place for place, _ in points]
        first = points[0][1]
        name = title_of(first)
        style = _style(first, cards.index(key) if key in cards else 0)
        (drawn,) = axes.plot(
            places, [one.middle for _, one in points], label=name, markersize=4.5, **style
        )
        if first.row is None:
            low, high = ([getattr(one, end) for _, one in points] for end in ("low", "high"))
            axes.fill_between(places, low, high, color=style["color"], alpha=0.1, linewidth=0)
        handles.setdefault(name, drawn)


def _style(one: Prediction, place: int) -> dict[str, Any]:
    if one.row is None:
        return {
            "color": CARD_COLOURS[place % len(CARD_COLOURS)],
            "linestyle": PREDICTED_DASH,
            "linewidth": 1.6,
        }
    colour = CPU_COLOURS[1] if one.device == CPU else GPU_COLOURS["resident"]
    is_peer = key_of(one) not in (f"bench-{CPU}", f"bench-{GPU}")
    shape = {"marker": "s", "linestyle": (0, (1, 1.5))} if is_peer else {"marker": "o"}
    return {"color": colour, "linewidth": 1.8, "markerfacecolor": "white", **shape}
