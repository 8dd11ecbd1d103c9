# SPDX-License-Identifier: Apache-2.0
"""A user's own network, first on the page: how long it trains here, with other programs and on
GPUs, from where on a GPU wins, what limits each side, and what memory it takes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from crossover_bench.answers.advise.advice import (
    Adviser,
    OwnNetwork,
    cost_of_row,
    own_network,
    own_networks,
    rows_of,
    title_of,
)
from crossover_bench.answers.advise.analysis import Prediction, nearest
from crossover_bench.answers.advise.as_is_summary import as_is, cards_of, module_block, modules
from crossover_bench.answers.advise.table import own_block, own_sentences, own_table
from crossover_bench.answers.predict.analysis import DEFAULT_CARDS
from crossover_bench.answers.predict.answer import Predictions
from crossover_bench.answers.predict.data import card_of
from crossover_bench.answers.predict.fit import Fit, band_notes
from crossover_bench.counts.cards import Card, load_cards
from crossover_bench.counts.cost import BENCH_PATH, Cost
from crossover_bench.counts.costs import described_cost
from crossover_bench.files.rows import File, Row
from crossover_bench.place import CROSSOVER, RUN
from crossover_bench.show.charts.strip import draw_strips
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.strip import Mark, Side, Strip, Strips, between
from crossover_bench.words.text import printable, slug

_NOT_COUNTED = (
    "What GPUs would do, and the memory, are missing, because bench is not built here to count the "
    f"network: {RUN} --setup-only, then {CROSSOVER} report again."
)

Answer = tuple[OwnNetwork, Block]


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has a user's own network."""
    predicted = context.predictions
    fit = predicted.fit if isinstance(predicted, Predictions) else None
    asked = [
        (file, name)
        for file in files[: context.detailed]
        for name in (*own_networks(file), *modules(file))
    ]
    answers = context.map(partial(_answer, fit=fit), asked)
    known = [(file, *answer) for (file, _), answer in zip(asked, answers, strict=True) if answer]
    if not known:
        return None
    is_predicted = any(gpu.row is None for _, network, _ in known for gpu in network.gpus)
    blocks = tuple(_block(file, network, block, context) for file, network, block in known)
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
        return module.network, module_block(module)
    rows = rows_of(file, name)
    model = name if name in file.networks else rows[0].model
    of_model = [row for row in rows if row.model == model]
    if not of_model or model not in file.networks:
        return None
    training = json.loads(file.networks[model]).get("training", {})
    batch = float(training.get("batch") or of_model[0].counters["batch"])

    def count(model: str, batch: int) -> Cost | None:
        alike = [row for row in rows if row.model == model and row.counters["batch"] == batch]
        return _cost_of(file, alike)

    cost = count(model, int(nearest(of_model, batch).counters["batch"]))
    if cost is None:
        return None
    cards = _cards_of(file) if cost.operations else []
    adviser = Adviser(file, cost.precision, cost.accumulate, cards=cards, fit=fit)
    network = own_network(file, adviser, cost, count)
    points = own_sentences(network, adviser) + ([] if cost.operations else [_NOT_COUNTED])
    return network, own_block(network, points, own_table(network))


def _cards_of(file: File) -> list[Card]:
    """The cards to predict: the default ones without the one that `file` measured."""
    known = load_cards()
    measured = card_of(file, known)
    return [known[key] for key in DEFAULT_CARDS if known[key] != measured]


def _cost_of(file: File, rows: Sequence[Row]) -> Cost | None:
    """What bench counts of a network that `rows` train in one batch, or else what they counted."""
    if not rows or rows[0].model not in file.networks:
        return None
    first = min(rows, key=lambda row: row.precision != "f32")
    epochs = [int(row.counters["rows"]) for row in rows if "rows" in row.counters]
    text, batch = file.networks[first.model], int(first.counters["batch"])
    samples = epochs[0] if epochs else json.loads(text).get("training", {}).get("rows", batch)
    if BENCH_PATH.is_file():
        flags = {"batch": batch, "rows": max(samples, batch), "precision": first.precision}
        flags["accumulate"] = first.configuration.get("accumulate", "1")
        given = tuple(f"--{flag}={value}" for flag, value in flags.items())
        cost = described_cost(text, given, BENCH_PATH)
        if cost is not None and cost.params == first.counters["params"]:
            return cost
    nothing = {"flops": 0.0, "bytes": 0.0, "products": 0, "bytes_to_device": 0}
    return cost_of_row(first, samples, {**nothing, "device_launches": {}})


def _block(file: File, network: OwnNetwork, block: Block, context: Context) -> Block:
    """`block` on the page: with the strips over its batches and over its sizes."""
    charts = [
        draw_strips(strips, slug(f"own-{network.cost.model}-{strips.measure}", 80))
        for strips in (strips_over(network, "batch"), strips_over(network, "parameters"))
        if strips
    ]
    return replace(
        block,
        machine=file.machine.id,
        title=f"{network.cost.model}: {network.cost.params:,.0f} parameters",
        pictures=context.pictures(file, charts),
    )


def strips_over(network: OwnNetwork, measure: str) -> Strips | None:
    """Where each GPU surely wins, over the batches of its size or over the sizes in its batch; None
    where only one was measured, or there is no GPU to compare with."""
    by_batch = measure == "batch"
    line = network.batches if by_batch else network.widths
    if len(line) < 2 or not network.gpus:
        return None

    def strip(gpu: Prediction) -> Strip:
        sides: list[Side] = [size.winner(gpu.device) or "open" for _, size in line]
        names = [f"{at:,.0f}" if by_batch else size.cost.model for at, size in line]
        places = [at for at, _ in line]
        marks = tuple(map(Mark, names, places, sides))
        return Strip(title_of(gpu), between(places, sides), gpu.row is None, marks)

    fixed = network.cost.model if by_batch else f"batch {network.cost.batch:,.0f}"
    return Strips(
        f"From which {'batch' if by_batch else 'network'} size does a GPU win?",
        tuple(map(strip, network.gpus)),
        measure,
        f"{printable(fixed, 60)}, {network.cost.precision}",
        circles="the sizes measured",
    )
