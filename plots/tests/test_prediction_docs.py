# SPDX-License-Identifier: Apache-2.0
"""The documents say how far off predictions are as `predict --check` prints it.

python -m plots.tests.test_prediction_docs      write their tables again
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from plots.core.cards import load_cards
from plots.core.tables.cells import number_cell, text_cell
from plots.core.tables.formats import as_markdown
from plots.core.tables.table import Cell, Column, Table
from plots.features.predict.analysis import Wanted, outlooks
from plots.features.predict.answer import ends, verdicts
from plots.features.predict.check import (
    cards_left_out_table,
    errors_table,
    floors_table,
    left_out_table,
    networks_left_out_table,
    parameters_table,
    points_table,
)
from plots.features.predict.check_scaling import scaling_table
from plots.features.predict.data import observations, published_points
from plots.features.predict.fit import LEFT, Fit, fit
from plots.features.predict.scaling import load_scaling
from plots.features.predict.ways import PYTORCH, Way
from plots.file import loading

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FILE = ROOT / "results" / "amd-epyc-25-17-2c" / "2026-11-23-bfe530f.json"
CARDS = (
    *("t4", "rtx-2080-ti", "gtx-1650", "rtx-3060", "rtx-3060-laptop", "rtx-3090", "a10", "a100"),
    *("rtx-4050-laptop", "rtx-4060", "rtx-4060-laptop", "rtx-4090", "l4", "l40s", "h100", "h200"),
    *("rtx-5060", "rtx-5090", "b200", "jetson-orin-nano", "jetson-agx-orin"),
)
WAYS = (Way("graph", "resident"), Way("eager", "resident", PYTORCH))
TABLE = re.compile(
    r"(<!-- (parameters|left out|errors|cards|networks|floors|points|widths|scaling) -->\n).*?"
    r"(<!-- end -->)",
    re.DOTALL,
)
PAGES = ("method.md", "method/prediction.md", "method/ranks.md")


@cache
def tables() -> dict[str, Table]:
    fitted = fit(observations(), LEFT)
    return {
        "parameters": parameters_table(fitted),
        "left out": left_out_table(fitted),
        "errors": errors_table(fitted),
        "cards": cards_left_out_table(fitted),
        "networks": networks_left_out_table(fitted),
        "floors": floors_table(),
        "widths": widths_table(fitted),
        "points": points_table(fitted, published_points()),
        "scaling": scaling_table(load_scaling()),
    }


@cache
def crossovers(way: Way) -> dict[str, tuple[float, float, float]]:
    """The earliest, likeliest and latest crossover of each card of CARDS with the CPU of FILE."""
    file, fitted = loading.load_file(FILE), fit(observations())
    cards = tuple(load_cards()[name] for name in CARDS)
    found = {}
    for verdict in verdicts(outlooks(file, fitted, Wanted(cards, (way,), batch="100"))):
        assert verdict.comparison and verdict.comparison.crossover.size
        low, high = ends(verdict.comparison.crossover)
        found[verdict.card.id] = (low, verdict.comparison.crossover.size, high)
    return found


def widths_table(fitted: Fit) -> Table:
    """How wide the bands of the crossover are."""
    groups = ("this program, graph", "PyTorch, eager")
    columns = [Column("card", "card")]
    for group in groups:
        columns += [
            Column("size", "wins from", numeric=True, group=group),
            Column("low", "earliest", numeric=True, group=group),
            Column("high", "latest", numeric=True, group=group),
            Column("width", "latest over earliest", numeric=True, group=group),
        ]
    lines = []
    for card in crossovers(WAYS[0]):
        cells: list[Cell] = [text_cell(card)]
        for way in WAYS:
            low, size, high = crossovers(way)[card]
            cells += [*(number_cell(each, 2) for each in (size, low, high))]
            cells.append(number_cell(high / low, 2))
        lines.append(tuple(cells))
    title = f"Crossovers with the CPU of {FILE.parent.name}, 100 rows a batch, data on the GPU"
    return Table(title, tuple(columns), tuple(lines))


def test_the_bands_of_the_crossover_are_narrow():
    """A factor of five from end to end on each of CARDS, but where a board shares its
    memory and has few multiprocessors."""
    for card, (low, size, high) in crossovers(WAYS[0]).items():
        assert low < size < high
        assert high / low < (8 if card == "jetson-orin-nano" else 5), card


def written(text: str) -> str:
    """`text` with its tables as they should be."""
    return TABLE.sub(lambda found: f"{found[1]}{as_markdown(tables()[found[2]])}{found[3]}", text)


def names(text: str) -> Iterator[str]:
    return (found[2] for found in TABLE.finditer(text))


@pytest.mark.parametrize("page", PAGES)
def test_the_documents_have_the_tables_of_the_check(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == written(text), "python -m plots.tests.test_prediction_docs"


def test_every_table_is_in_a_document():
    found = {name for page in PAGES for name in names((DOCS / page).read_text(encoding="utf-8"))}
    assert found == set(tables())


if __name__ == "__main__":
    for page in PAGES:
        path = DOCS / page
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
