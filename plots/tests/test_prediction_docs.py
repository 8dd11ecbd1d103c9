# SPDX-License-Identifier: Apache-2.0
"""The documents say how far off predictions are as `predict --check` prints it.

python -m plots.tests.test_prediction_docs      write their tables again
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from plots.core.tables.formats import as_markdown
from plots.core.tables.table import Table
from plots.features.predict.check import (
    left_out_table,
    networks_left_out_table,
    parameters_table,
    points_table,
)
from plots.features.predict.data import observations, published_points
from plots.features.predict.fit import fit

DOCS = Path(__file__).parents[2] / "docs"
TABLE = re.compile(
    r"(<!-- (parameters|left out|networks|points) -->\n).*?(<!-- end -->)", re.DOTALL
)
PAGES = ("method.md", "method/prediction.md")


@cache
def tables() -> dict[str, Table]:
    fitted = fit(observations())
    return {
        "parameters": parameters_table(fitted),
        "left out": left_out_table(fitted),
        "networks": networks_left_out_table(fitted),
        "points": points_table(fitted, published_points()),
    }


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
