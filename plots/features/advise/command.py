# SPDX-License-Identifier: Apache-2.0
"""`advise`: what a network nobody measured would take on CPU and GPU."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from plots.core.cards import Card, load_cards
from plots.core.command import add_format, add_paths, complain, named_path, newest, print_tables
from plots.core.cost import BENCH_PATH, Cost, CostError, load_cost, run_bench
from plots.core.tables.table import Table
from plots.features.predict.cards import add_gpu, chosen_cards, said
from plots.file import loading, rows
from plots.file.file_order import by_id
from plots.text import printable

if TYPE_CHECKING:
    from plots.features.advise.analysis import Prediction

NAME = "advise"
HELP = "predict times for a network that nobody measured, and where to train it"
DESCRIPTION = (
    "Predicts how long a network's epoch takes on the CPU and on the GPU, with an error band, from "
    "its cost (bench --cost) and from the ceilings and rows in each file. If a machine has several "
    "files, the newest complete sweep counts."
)
EXAMPLE = "advise --mlp 784,512,10 --batch 64 results"

# Passed on to bench --cost, which checks them.
_PASSED_ON = {
    "--mlp": ("IN,...,CLASSES", "layer widths of the network"),
    "--model": ("NAME", "a network that bench --models lists, instead of --mlp"),
    "--batch": ("N", "samples per batch"),
    "--rows": ("N", "samples per epoch"),
    "--activation": ("NAME", "relu or sigmoid"),
    "--optimizer": ("NAME", "sgd or adamw"),
    "--accumulate": ("K", "update once every K batches"),
    "--precision": ("NAME", "f32, tf32, bf16 or f16"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_format(parser)
    for flag, (value, text) in _PASSED_ON.items():
        parser.add_argument(flag, metavar=value, help=text)
    parser.add_argument("--threads", metavar="N", help="use only this CPU thread count")
    parser.add_argument(
        "--bench",
        type=named_path,
        default=BENCH_PATH,
        metavar="PATH",
        help="path of bench, which counts the cost (default: build/bench)",
    )
    parser.add_argument(
        "--cost",
        type=named_path,
        metavar="FILE",
        help="saved output of bench --cost, instead of a network and bench",
    )
    add_gpu(parser, default=None)


def run(options: argparse.Namespace) -> int:
    try:
        cost = _cost(options)
        cards = chosen_cards(options.gpu) if options.gpu is not None else ()
    except (CostError, OSError) as error:
        return complain([said(error)])
    files, problems = loading.load_files(options.paths)
    tables = []
    others = _Cards(cost, cards, files) if cards else None
    for file in reversed(newest(files, by_id)[0]):
        place = printable(str(file.path))
        found: list[Prediction] = []
        try:
            found, table = _table(file, cost, options)
            tables.append(table)
        except CostError as error:
            problems.append(f"{place}: {error}")
        if others:
            try:
                tables.append(others.table(file, found))
            except CostError as error:
                problems.append(f"{place}: {error}")
    print_tables(tables, options)
    return complain(problems)


class _Cards:
    """A network on cards that were not measured; the GPU's rows of all `files` are in the fit."""

    def __init__(self, cost: Cost, cards: Sequence[Card], files: Sequence[rows.File]) -> None:
        from plots.features.predict.data import observations  # noqa: PLC0415 (takes long to load)
        from plots.features.predict.fit import fit  # noqa: PLC0415

        self._cost, self._cards, self._fit = cost, cards, fit(observations(files))

    def table(self, file: rows.File, found: Sequence[Prediction]) -> Table:
        """Beside `found`, what is predicted of the file's own devices. Raises CostError where
        nothing is predicted of any card but the file's own."""
        from plots.features.advise.cards_table import advised_cards_table  # noqa: PLC0415
        from plots.features.predict.data import card_of  # noqa: PLC0415

        own = card_of(file, load_cards())
        cards = [card for card in self._cards if card != own]
        if not cards:
            raise CostError("the file has measured the card of --gpu; name others")
        table = advised_cards_table(file.machine.id, self._cost, self._fit, cards, found)
        if not table.lines:
            raise CostError(" ".join(table.notes[: len(cards)]))
        return table


def _flags(options: argparse.Namespace) -> dict[str, str]:
    values = {flag: getattr(options, flag[2:]) for flag in _PASSED_ON}
    return {flag: value for flag, value in values.items() if value is not None}


def _cost(options: argparse.Namespace) -> Cost:
    flags = _flags(options)
    if options.cost is None:
        return run_bench(options.bench, [f"{flag}={value}" for flag, value in flags.items()])
    if flags:
        raise CostError(f"--cost already describes a network; drop {next(iter(flags))} or --cost")
    return load_cost(options.cost)


def _table(
    file: rows.File, cost: Cost, options: argparse.Namespace
) -> tuple[list[Prediction], Table]:
    from plots.features.advise.analysis import Prediction, fit_series, predict  # noqa: PLC0415
    from plots.features.advise.table import (  # noqa: PLC0415 (scipy takes long to load)
        advice_table,
        meeting,
    )

    if options.threads is not None:
        counts = {row.configuration.get("cpu_threads", "") for row in file.rows} - {""}
        if options.threads not in counts:
            raise CostError(
                f"--threads {printable(options.threads, 40)}: the file has rows on "
                f"{', '.join(sorted(map(printable, counts), key=_by_number)) or 'no'} CPU threads"
            )
        kept = (None, options.threads)
        own = (row for row in file.rows if row.configuration.get("cpu_threads") in kept)
        file = replace(file, rows=tuple(own))
    series, problems = fit_series(file, cost)
    answers = [predict(item, cost) for item in series]
    predictions = [answer for answer in answers if isinstance(answer, Prediction)]
    problems += [answer for answer in answers if isinstance(answer, str)]
    if not predictions:
        raise CostError("nothing can be predicted: " + "; ".join(problems))
    where = meeting(series, cost, lambda factor: _scaled(options, factor))
    return predictions, advice_table(file.machine.id, cost, predictions, problems, where)


def _by_number(text: str) -> tuple[int, str]:
    return len(text), text


def _scaled(options: argparse.Namespace, factor: float) -> Cost | None:
    """The cost of --mlp with its hidden layers `factor` times as wide; None where not to be had."""
    flags = _flags(options)
    widths = flags.get("--mlp", "").split(",")
    if options.cost is not None or len(widths) < 3:
        return None
    hidden = [str(max(1, round(int(width) * factor))) for width in widths[1:-1]]
    flags["--mlp"] = ",".join([widths[0], *hidden, widths[-1]])
    try:
        return run_bench(options.bench, [f"{flag}={value}" for flag, value in flags.items()])
    except CostError:
        return None
