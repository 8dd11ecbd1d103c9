# SPDX-License-Identifier: Apache-2.0
"""The README, and what it links to, show what a committed file says, not what an older one said.

python tests/test_readme.py      draw its chart and write its tables again
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from plots import (  # noqa: E402
    loading,
    rows,
    units,
)
from plots.analysis.answer import sentences  # noqa: E402
from plots.analysis.bounds import bounds  # noqa: E402
from plots.analysis.crossover import comparisons  # noqa: E402
from plots.analysis.peers import Pair, pairs  # noqa: E402
from plots.analysis.predict_files import predictions  # noqa: E402
from plots.analysis.shi import load_shi  # noqa: E402
from plots.families import TRAINING  # noqa: E402
from plots.network import epoch_rows  # noqa: E402
from plots.tables.epochs import best_table  # noqa: E402
from plots.tables.formats import as_markdown  # noqa: E402
from plots.tables.peers import peer_tables  # noqa: E402
from plots.tables.shi import ratio_table  # noqa: E402
from plots.tables.table import NOTHING, Cell, Column, Table  # noqa: E402

README = ROOT / "README.md"
CHART = ROOT / "docs" / "epochs.png"
LIMITS = ROOT / "docs" / "method" / "cpu_limits.md"
ANSWER = re.compile(r"(<!-- answer -->\n).*?(<!-- end -->)", re.DOTALL)
EPOCHS = re.compile(r"(<!-- best epochs -->\n).*?(<!-- end -->)", re.DOTALL)
PEERS = re.compile(r"(<!-- peers -->\n).*?(<!-- end -->)", re.DOTALL)
STEPS = re.compile(r"(<!-- steps -->\n).*?(<!-- end -->)", re.DOTALL)
SHARES = re.compile(r"(<!-- shares -->\n).*?(<!-- end -->)", re.DOTALL)
STEP_COLUMNS = (
    "network",
    "on",
    "seconds",
    "published_cpu_seconds",
    "cpu_ratio",
    "published_gpu_seconds",
    "gpu_ratio",
)
PEER_COLUMNS = (
    "network",
    "batch",
    "seconds",
    "how",
    "peer_seconds",
    "peer_how",
    "ratio",
    "low",
    "high",
    "most",
)


def linked(words: str) -> rows.File:
    """The file that the README links with these words."""
    text = README.read_text(encoding="utf-8")
    found = re.search(rf"\[{words}\]\((results/[^)]+\.json)\)", text)
    assert found, f"README.md: no link from '{words}' to a file under results/"
    return loading.load_file(ROOT / found[1])


def measured() -> rows.File:
    return linked("one file")


def table() -> str:
    return as_markdown(best_table(epoch_rows(measured())))


def steps() -> str:
    """The ratios to the published figures, without who published them, and without notes."""
    whole = ratio_table(load_shi(), [linked("this file")])
    kept = [i for i, column in enumerate(whole.columns) if column.key in STEP_COLUMNS]
    lines = tuple(tuple(replace(line[i], marks=()) for i in kept) for line in whole.lines)
    columns = tuple(whole.columns[i] for i in kept)
    return as_markdown(replace(whole, columns=columns, lines=lines, notes=()))


def peers() -> str:
    """Epochs and steps beside PyTorch's on 2 threads, without notes."""
    tables = []
    for whole in peer_tables(measured()):
        keys = [column.key for column in whole.columns]
        if "network" not in keys:
            continue
        kept = [keys.index(key) for key in PEER_COLUMNS]
        lines = [line for line in whole.lines if line[keys.index("on")].text == "CPU, 2 threads"]
        cells = tuple(tuple(replace(line[i], marks=()) for i in kept) for line in lines)
        columns = tuple(whole.columns[i] for i in kept)
        tables.append(as_markdown(replace(whole, columns=columns, lines=cells, notes=())))
    return "\n".join(tables)


def shares() -> str:
    """What part of its bound each network's training reaches on the CPU, and PyTorch's time over
    ours, by the number of threads."""
    file = measured()
    bound_of = bounds(file)
    found = {
        (pair.ours.configuration["model"], pair.ours.configuration["cpu_threads"]): pair
        for pair in pairs(file)
        if pair.ours.family in TRAINING
    }
    threads = sorted({count for _, count in found}, key=int)
    columns = [Column("network", "network")]
    for count in threads:
        group = f"{count} thread" if count == "1" else f"{count} threads"
        columns += [
            Column(f"share_{count}", "of the bound", numeric=True, group=group),
            Column(f"ratio_{count}", "PyTorch / ours", numeric=True, group=group),
            Column(f"most_{count}", "at our bound", numeric=True, group=group),
        ]

    def cells(pair: Pair | None) -> list[Cell]:
        if pair is None or pair.most is None:
            return [NOTHING] * 3
        percent = bound_of[pair.ours.index].percent
        return [
            Cell(f"{percent:.0f} %", percent),
            Cell(units.significant(pair.ratio), pair.ratio),
            Cell(units.significant(pair.most), pair.most),
        ]

    lines = [
        (Cell(model), *(cell for count in threads for cell in cells(found.get((model, count)))))
        for model in dict.fromkeys(model for model, _ in found)
    ]
    title = "Shares of the bound, and PyTorch's time over ours"
    return as_markdown(Table(title, tuple(columns), tuple(lines)))


def answer() -> str:
    """The sentences that the page of that file opens with."""
    file = measured()
    said = sentences(file, comparisons(file), predictions([file]).clause(file))
    return "".join(f"> {line}\n>\n" for line in said).removesuffix(">\n")


def chart() -> bytes:
    from plots.charts.predicted import draw_predicted  # noqa: PLC0415

    file = measured()
    predicted = predictions([file])
    return draw_predicted(file, predicted.of(file), predicted.fit)[0].pictures.png


def test_the_table_is_of_the_file_it_names() -> None:
    found = EPOCHS.search(README.read_text(encoding="utf-8"))
    assert found and found[0] == f"{found[1]}{table()}{found[2]}"


def test_the_answer_is_that_of_the_file() -> None:
    found = ANSWER.search(README.read_text(encoding="utf-8"))
    assert found and found[0] == f"{found[1]}{answer()}{found[2]}"


def test_the_table_of_steps_is_of_the_file_it_names() -> None:
    found = STEPS.search(README.read_text(encoding="utf-8"))
    assert found and found[0] == f"{found[1]}{steps()}{found[2]}"


def test_the_table_of_pytorch_is_of_the_file_it_names() -> None:
    found = PEERS.search(README.read_text(encoding="utf-8"))
    assert found and found[0] == f"{found[1]}{peers()}{found[2]}"


def test_the_table_of_shares_is_of_the_file_the_readme_names() -> None:
    found = SHARES.search(LIMITS.read_text(encoding="utf-8"))
    assert found and found[0] == f"{found[1]}{shares()}{found[2]}"


def test_the_example_row_is_of_that_file() -> None:
    example = re.search(
        r"^\[\d+/\d+\] (\S+)  ([\d.]+) ms  ", README.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert example
    (row,) = [row for row in measured().rows if row.name == example[1]]
    assert f"{row.median * 1e3:.3g}" == example[2]


def write() -> None:
    text = README.read_text(encoding="utf-8")
    text = ANSWER.sub(lambda found: f"{found[1]}{answer()}{found[2]}", text)
    text = EPOCHS.sub(lambda found: f"{found[1]}{table()}{found[2]}", text)
    text = PEERS.sub(lambda found: f"{found[1]}{peers()}{found[2]}", text)
    text = STEPS.sub(lambda found: f"{found[1]}{steps()}{found[2]}", text)
    README.write_text(text, encoding="utf-8")
    limits = LIMITS.read_text(encoding="utf-8")
    limits = SHARES.sub(lambda found: f"{found[1]}{shares()}{found[2]}", limits)
    LIMITS.write_text(limits, encoding="utf-8")
    CHART.write_bytes(chart())


if __name__ == "__main__":
    write()
