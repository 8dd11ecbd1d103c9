# SPDX-License-Identifier: Apache-2.0
"""The README shows what a committed file says, and not what an older one said.

python tests/test_readme.py      draw its chart and write its table again
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from plots import loading, rows  # noqa: E402
from plots.network import epoch_rows  # noqa: E402
from plots.tables.epochs import best_table  # noqa: E402
from plots.tables.formats import as_markdown  # noqa: E402

README = ROOT / "README.md"
CHART = ROOT / "docs" / "epochs.png"
TABLE = re.compile(r"(<!-- best epochs -->\n).*?(<!-- end -->)", re.DOTALL)


def measured() -> rows.File:
    """The file that the README names below its table."""
    text = README.read_text(encoding="utf-8")
    found = re.search(r"\[one file\]\((results/[^)]+\.json)\)", text)
    assert found, "README.md: no link to one file under results/"
    return loading.load_file(ROOT / found[1])


def table() -> str:
    return as_markdown(best_table(epoch_rows(measured())))


def chart() -> bytes:
    from plots.page.sections.epochs import draw  # noqa: PLC0415
    from plots.published import load_published  # noqa: PLC0415

    return draw(measured(), load_published()).png


def test_the_table_is_of_the_file_it_names() -> None:
    found = TABLE.search(README.read_text(encoding="utf-8"))
    assert found and found[0] == f"{found[1]}{table()}{found[2]}"


def test_the_example_row_is_of_that_file() -> None:
    example = re.search(
        r"^\[\d+/\d+\] (\S+)  ([\d.]+) ms  ", README.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert example
    (row,) = [row for row in measured().rows if row.name == example[1]]
    assert f"{row.median * 1e3:.3g}" == example[2]


def write() -> None:
    text = README.read_text(encoding="utf-8")
    README.write_text(
        TABLE.sub(lambda found: f"{found[1]}{table()}{found[2]}", text), encoding="utf-8"
    )
    CHART.write_bytes(chart())


if __name__ == "__main__":
    write()
