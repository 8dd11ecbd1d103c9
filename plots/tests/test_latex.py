# SPDX-License-Identifier: Apache-2.0
"""Tables as LaTeX: what pdflatex makes of them, where there is a TeX installation."""

import shutil
import subprocess
from pathlib import Path

import pytest

from plots.core.crossover import comparisons
from plots.core.speed_up import speed_ups
from plots.core.tables.formats import as_latex
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.compare.analysis import compare
from plots.features.compare.table import compare_tables
from plots.features.crossover.table import crossover_table, speed_up_table
from plots.features.shi.analysis import load_shi
from plots.features.shi.table import shi_table
from plots.tests import synthetic, synthetic_sweep
from plots.text import latex

HOSTILE = (
    "\\input{/etc/passwd}",
    "\\end{tabular}",
    "}{",
    "$x^2_3$ & # % ~",
    "[3pt] starts a line",
    "* starts a line",
    "''quotes'' `code` \"q\" ?` !`",
    "<<tags>> --option ,, |",
    "ü ß é 中文 💥 \u202e \x00 \n\n \t",
    "µ × → – — … · ≤ ≥ ≈ ± − ² ³ “a” ’",
    "x" * 10_000,
)


def document(*tables: Table) -> str:
    """A LaTeX document of `tables`, with the packages that as_latex() names."""
    packages = "".join(
        rf"\usepackage{{{name}}}" for name in ("booktabs", "graphicx", "longtable", "rotating")
    )
    body = "\n\\clearpage\n".join(map(as_latex, tables))
    return (
        rf"\documentclass{{article}}{packages}\begin{{document}}" + f"\n{body}\\end{{document}}\n"
    )


@pytest.fixture
def pdf(tmp_path: Path):
    """Makes a PDF file of tables; fails with TeX's own words."""
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex here")

    def make(*tables: Table) -> Path:
        (tmp_path / "tables.tex").write_text(document(*tables), encoding="utf-8")
        finished = subprocess.run(
            [
                "pdflatex",
                "-interaction=nonstopmode",
                "-halt-on-error",
                "-no-shell-escape",
                "tables",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        assert finished.returncode == 0, finished.stdout[-2000:]
        assert "Missing character" not in (tmp_path / "tables.log").read_text(errors="replace")
        return tmp_path / "tables.pdf"

    return make


def plain(lines: int = 3, columns: int = 3, group: str = "", text: str = "1.5") -> Table:
    """A table of the size asked for, with a bold cell, a mark, a dash and a note."""
    heads = [
        Column("name", "name"),
        *(Column(f"c{k}", f"c{k}", True, group) for k in range(columns)),
    ]
    line = [Cell(text, 1.5, bold=True, marks=(1,)), *([NOTHING] * (columns - 1))]
    return Table(
        "A table",
        tuple(heads),
        tuple((Cell(f"line {number}"), *line) for number in range(lines)),
        ("a note",),
    )


def test_every_kind_of_table_compiles(pdf, read):
    baseline = read(synthetic.sweep(), "a.json")
    slower = synthetic.sweep()
    slower["benchmarks"] = slower["benchmarks"][20:]
    other = read(slower, "b.json")
    both = read(synthetic_sweep.wide_sweep(batches=(100,)), "c.json")
    tables = [
        shi_table(load_shi(), []),
        shi_table(load_shi(), [baseline]),
        *compare_tables(compare(baseline, other)),
        crossover_table([(both, comparisons(both))]),
        speed_up_table([(both, speed_ups(both))]),
        plain(),
        plain(lines=0),
        plain(group="a group"),
        plain(columns=40, group="a wide group"),
        plain(lines=200),
        plain(lines=200, columns=20, group="a wide and long group"),
    ]
    assert pdf(*tables).stat().st_size > 10_000


def test_hostile_text_compiles(pdf):
    texts = [Cell(text) for text in HOSTILE]
    short = Table(
        HOSTILE[0],
        tuple(Column(str(place), text, group=text) for place, text in enumerate(HOSTILE)),
        (tuple(texts), tuple(Cell(text, bold=True, marks=(1,)) for text in HOSTILE)),
        HOSTILE,
    )
    one = tuple((cell,) for cell in texts)
    tall = Table(HOSTILE[1], (Column("a", "[a]"),), one * 6, HOSTILE)
    assert pdf(short, tall, Table("", (Column("", ""),), one)).exists()


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="there is no pdftotext here")
def test_hostile_text_is_shown_literally(pdf):
    shown = ("$x$ & # % ~", "[3pt] *", "--option ---", "\\end{tabular}", "a<<b>>|", "!`")
    made = pdf(Table("t", (Column("a", "a"),), tuple((Cell(text),) for text in shown)))
    text = subprocess.run(
        ["pdftotext", "-layout", made, "-"], capture_output=True, text=True, check=True
    ).stdout
    for line in shown:
        assert line in text.replace("∼", "~").replace("˜", "~"), text


def test_wide_and_long_tables_say_how_they_fit():
    assert "resizebox" not in as_latex(plain()) and "longtable" not in as_latex(plain())
    assert r"\begin{table}" in as_latex(plain()) and "resizebox" in as_latex(plain(columns=20))
    assert "sidewaystable" in as_latex(plain(columns=40))
    assert "longtable" in as_latex(plain(lines=200)) and "\\tiny" in as_latex(
        plain(lines=200, columns=40)
    )


def test_ligatures_are_broken():
    assert latex("--a,,b") == "-{}-a,{},b"
