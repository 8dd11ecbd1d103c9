# SPDX-License-Identifier: Apache-2.0
"""The README and other pages show what a committed file and the program say, and name paths that
exist.

python tests/test_readme.py      draw its chart, and write its tables again
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "plots")]

from crossover_bench import __version__  # noqa: E402
from crossover_bench.answers.answer.glance import glance  # noqa: E402
from crossover_bench.answers.answer.words import Glance  # noqa: E402
from crossover_bench.answers.peers.analysis import failed_pairs  # noqa: E402
from crossover_bench.answers.peers.section import peer_tables  # noqa: E402
from crossover_bench.answers.predict.answer import Predictions, predictions  # noqa: E402
from crossover_bench.answers.shi.analysis import load_shi  # noqa: E402
from crossover_bench.answers.shi.section import ratio_table  # noqa: E402
from crossover_bench.answers.training.table import best_table, on_both  # noqa: E402
from crossover_bench.curves.network import epoch_rows  # noqa: E402
from crossover_bench.files import fitness, loading, rows  # noqa: E402
from crossover_bench.shell.cli import main  # noqa: E402
from crossover_bench.show.strip import strip_text  # noqa: E402
from crossover_bench.show.tables.formats import as_markdown, wrapped  # noqa: E402
from crossover_bench.show.tables.table import Cell, Table  # noqa: E402
from crossover_bench.study.study import Study, study_of  # noqa: E402
from crossover_bench.tests import days  # noqa: E402
from crossover_bench.words import units  # noqa: E402
from tools.sources import tracked_files  # noqa: E402

README = ROOT / "README.md"
CHART = ROOT / "docs" / "crossover.png"
TUTORIAL = ROOT / "docs" / "tutorial.md"
EVIDENCE = ROOT / "docs" / "evidence"
LESSON = ROOT / "docs" / "lesson.md"
SHOWN = ("disc-2", "disc-5", "disc-8", "disc-11")  # networks whose epochs the README shows
MOST_LINES = 120
MOST_WORDS_OF_A_SENTENCE = 25
STEP_COLUMNS = ["network", "on", "seconds", "published_cpu_seconds", "cpu_ratio"]
STEP_COLUMNS += ["published_gpu_seconds", "gpu_ratio"]
PEER_COLUMNS = ["network", "batch", "seconds", "how", "peer_seconds", "peer_how"]
PEER_COLUMNS += ["ratio", "low", "high", "most"]

H200_COLUMNS = ["network", "batch", "precision", "on", *PEER_COLUMNS[2:9]]


def linked(page: Path, words: str) -> rows.File:
    """The result file that `page` links with these words."""
    text = page.read_text(encoding="utf-8")
    pattern = words.replace(" ", r"\s+")
    link = re.search(rf"\[{pattern}\]\(([^)]*results/[^)]+\.json)\)", text)
    assert link, f"{page.name}: no link from '{words}' to a file under results/"
    return loading.load_file((page.parent / link[1]).resolve())


@cache
def measured() -> rows.File:
    return linked(README, "one file")


@cache
def predicted() -> Predictions:
    return predictions([measured()])


@cache
def at_a_glance() -> Glance:
    return glance(study_of(measured(), predicted()))


def answer() -> str:
    """The sentence that the page opens with, and what `validate --strict` says against its file."""
    lacks = "; ".join(phrase.partition(": ")[0] for phrase in fitness.faults(measured()))
    refused = f" (`validate --strict` refuses the file: {lacks}.)" if lacks else ""
    return f"> {at_a_glance().sentence}{refused}\n"


def tutorial() -> str:
    """What a terminal shows first of the file that the tutorial names: sentences and strips."""
    answer = of_the_tutorial()
    assert answer.strips
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        lines = [wrapped(answer.sentence, "", ""), "", strip_text(answer.strips)]
    return "\n".join(["```", *lines, "```", ""])


def of_the_tutorial(*others: rows.File) -> Glance:
    """The answer of its file, with `others` read beside it."""
    file = linked(TUTORIAL, "a file from an AMD EPYC with two cores")
    return glance(study_of(file, predictions([file, *others])))


def h200() -> str:
    """All that was measured beside PyTorch on an H200, what was lost or failed first; and by files
    of two days what failed on the day of its pair."""
    page = EVIDENCE / "peers.md"
    files = [linked(page, words) for words in ("training steps", "epochs", "passes", "copies")]
    tables = [
        replace(whole, columns=tuple(map(whole.columns.__getitem__, places)), lines=lines)
        for file in files
        for whole in peer_tables(Study(file))
        for keys in [[column.key for column in whole.columns]]
        for places in [[keys.index(key) for key in H200_COLUMNS if key in keys]]
        for lines in [tuple(tuple(line[i] for i in places) for line in whole.lines)]
    ]
    later = {row.name: row for row in linked(page, "next day").rows if not row.failure}
    sentences = [
        f"{pair.example.model} in {pair.example.precision}, a day later and not in turn: ours "
        f"{units.seconds(later[pair.ours.name].median)}, theirs "
        f"{units.seconds(pair.theirs.median)}, "
        f"{units.significant(pair.theirs.median / later[pair.ours.name].median)} times as long.\n"
        for file in files
        for pair in failed_pairs(file)
        if pair.ours.name in later
    ]
    return "\n".join([*map(as_markdown, tables), *sentences])


def chosen(whole: Table, keys: Sequence[str], lines: Sequence[tuple[Cell, ...]]) -> str:
    """The columns `keys` of these lines of `whole`, without marks and notes."""
    places = [[column.key for column in whole.columns].index(key) for key in keys]
    cells = tuple(tuple(replace(line[i], marks=()) for i in places) for line in lines)
    columns = tuple(whole.columns[i] for i in places)
    return as_markdown(replace(whole, columns=columns, lines=cells, notes=()))


def epochs() -> str:
    """The best times of the networks in SHOWN."""
    in_f32 = [row for row in epoch_rows(measured()) if row.precision == "f32"]
    whole = best_table(on_both(in_f32))
    lines = [line for line in whole.lines if line[0].text in SHOWN]
    times = [f"{side}_{key}" for side in ("cpu", "gpu") for key in ("seconds_per_epoch", "on")]
    return chosen(whole, ["network", "params", "speed_up", *times], lines)


def peers() -> str:
    """Epochs and steps beside PyTorch's on 2 threads."""
    tables = []
    for whole in peer_tables(Study(linked(EVIDENCE / "peers.md", "One run"))):
        keys = [column.key for column in whole.columns]
        if "network" in keys:
            place = keys.index("on")
            lines = [line for line in whole.lines if line[place].text == "CPU, 2 threads"]
            tables.append(chosen(whole, PEER_COLUMNS, lines))
    return "\n".join(tables)


def steps() -> str:
    """The ratios to the published figures, without who published them."""
    whole = ratio_table(load_shi(), [linked(EVIDENCE / "peers.md", "this file")])
    return chosen(whole, STEP_COLUMNS, whole.lines)


def chart() -> bytes:
    """The answers of one machine: PyTorch's loop, and the fastest programs."""
    from crossover_bench.show.charts.strip import draw_strips  # noqa: PLC0415

    strips = at_a_glance().strips
    assert strips
    return draw_strips(strips).pictures.png


class Block(NamedTuple):
    """What stands between <!-- NAME --> and <!-- end --> of a page."""

    page: Path
    write: Callable[[], str]


BLOCKS = {
    **{
        write.__name__: Block(EVIDENCE / "another_day.md", write)
        for write in (days.instances, days.times, days.answers)
    },
    "answer": Block(README, answer),
    "epochs": Block(README, epochs),
    "h200": Block(EVIDENCE / "peers.md", h200),
    "tutorial": Block(TUTORIAL, tutorial),
    "peers": Block(EVIDENCE / "peers.md", peers),
    "steps": Block(EVIDENCE / "peers.md", steps),
}


def written(name: str) -> str:
    """The page of this block as it should be."""
    page, write = BLOCKS[name]
    text = page.read_text(encoding="utf-8")
    block = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    assert block.search(text), f"{page.name}: no <!-- {name} -->"
    return block.sub(lambda match: f"{match[1]}{write()}{match[2]}", text)


@pytest.mark.parametrize("name", BLOCKS)
def test_the_block_is_of_the_file_that_its_page_names(name):
    assert BLOCKS[name].page.read_text(encoding="utf-8") == written(name), (
        "python tests/test_readme.py"
    )


@pytest.mark.slow
def test_the_tutorials_answer_is_that_of_the_page_and_of_the_site():
    """A prediction is of its own file, whatever is read beside it: a measured GPU, too. Takes long,
    as it is made of all files."""
    assert of_the_tutorial(measured()) == of_the_tutorial()


def test_a_citation_names_the_newest_release():
    cited = dict(re.findall(r"^([\w-]+): (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M))
    release = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert release and (cited["version"], cited["date-released"]) == release.groups()
    assert cited["version"] == __version__


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    assert all(len(each.split()) <= MOST_WORDS_OF_A_SENTENCE for each in at_a_glance().sentences)


def test_a_file_that_the_readme_quotes_is_fit_or_quoted_with_what_it_lacks():
    assert bool(fitness.faults(measured())) == ("`validate --strict` refuses the file" in answer())


def test_the_example_row_is_of_that_file():
    example = re.search(
        r"^\[ *\d+/\d+\] (\S+)  ([\d.]+) ms  ", README.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert example
    (row,) = [row for row in measured().rows if row.name == example[1]]
    assert f"{row.median * 1e3:.3g}" == example[2]


FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
SPAN = re.compile(r"`([\w.-]+(?:/[\w.*-]+)+/?)`")
TREE = re.compile(r"^```tree\n(.*?)^```", re.DOTALL | re.MULTILINE)
MADE = ("results/tries", "build/", "report/", "brought/", "gpu-results/", ".venv")  # by commands


def paths_of(page: Path) -> set[str]:
    """The paths that `page` links, has in `code`, or lists in a tree, from the root."""
    text = page.read_text(encoding="utf-8")
    prose = FENCE.sub("", text)
    linked = {str((page.parent / path).resolve().relative_to(ROOT)) for path in LINK.findall(prose)}
    spans = {path for path in SPAN.findall(prose) if (ROOT / path.split("/")[0]).exists()}
    lines = [line for tree in TREE.findall(text) for line in tree.splitlines()]
    return linked | spans | {line.split()[0] for line in lines if line.strip()}


PAGES = sorted(
    path
    for path in tracked_files()
    if path.suffix == ".md" and path.parent != ROOT / "tests" / "cuda_host"
)


def anchors(page: Path) -> set[str]:
    """What a link can name after its #, as GitHub makes it from the headings."""
    headings = re.findall(
        r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page):
    """The paths, the sections that it links, and the one command that reads files."""
    named = paths_of(page)
    gone = [path for path in named if not path.startswith(MADE) and not list(ROOT.glob(path))]
    assert gone == []
    text = page.read_text(encoding="utf-8")
    assert page.name == "CHANGELOG.md" or not re.search(r"-m plots(?!\.)", text), "it is crossover"
    prose = FENCE.sub("", text)
    for path, anchor in re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)", prose):
        assert anchor in anchors(page.parent / path if path else page), f"{path}#{anchor}"


# Looked up, or of few: no page that is read from its beginning to its end.
BESIDE = {
    *("CHANGELOG.md", "docs/building.md", "docs/cluster.md", "docs/golden.md", "docs/gpu.md"),
    *("docs/hardware.md", "docs/protocol.md", "docs/published.md", "docs/warnings.md"),
    "plots/crossover_bench/reference/README.md",
}
MOST_WORDS = {"": 20_000, "README.md": 900, "docs/method/": 12 * 450}  # of pages that begin so


def prose_of(page: Path) -> str:
    """What people wrote, without code."""
    return MADE_BY_PROGRAMS.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))


def test_the_shelf_is_short():
    """All that is read on the way from the README to a change of one's own. No path leads through
    the evidence, which the index alone names."""
    shelf = {
        str(page.relative_to(ROOT)): prose_of(page)
        for page in PAGES
        if page.parent != EVIDENCE and str(page.relative_to(ROOT)) not in BESIDE
    }
    assert [
        name for name in shelf if "](evidence" in shelf[name] or "/evidence" in shelf[name]
    ] == ["docs/index.md"]
    words = {
        name: sum(any(map(str.isalnum, word)) for word in text.split())
        for name, text in shelf.items()
    }
    for start, most in MOST_WORDS.items():
        assert sum(words[name] for name in words if name.startswith(start)) <= most, start


EXERCISES = LESSON.read_text(encoding="utf-8").split("\n## ")[1:]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.partition("\n")[0])
def test_an_exercise_of_the_lesson_is_answered(exercise, monkeypatch):
    """Its command runs, and the rows that it names are in a file of the command."""
    (command,) = re.findall("^```sh\ncrossover (.*)$", exercise, re.MULTILINE)
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)) == 0
    paths = re.findall(r"results/\S+", command)
    files = "".join((ROOT / path).read_text(encoding="utf-8") for path in paths)
    names = re.findall(r"^- `(Epoch/.*)`$", exercise, re.MULTILINE)
    assert names and [name for name in names if f'"name":"{name}"' not in files] == []


MOST_COLUMNS = 120
NO_PROSE = re.compile(r"\s*(?:[|#>]|!\[)")  # tables, headings, quotes, pictures
MADE_BY_PROGRAMS = re.compile(r"^<!-- \w+ -->.*?<!-- end -->", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_is_wider_than_a_screen(page):
    # An address cannot be divided.
    lines = re.sub(r"\(https?://[^)]*\)", "()", prose_of(page)).splitlines()
    wide = [line for line in lines if len(line) > MOST_COLUMNS and not NO_PROSE.match(line)]
    assert wide == []


def fields(schema: object) -> Iterator[str]:
    """The names of all properties in a JSON schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
    if isinstance(schema, dict | list):
        for part in schema.values() if isinstance(schema, dict) else schema:
            yield from fields(part)


def test_every_field_of_the_schema_is_defined():
    schema = json.loads(loading.SCHEMA_PATH.read_text(encoding="utf-8"))
    text = FENCE.sub("", (ROOT / "results/README.md").read_text(encoding="utf-8"))
    defined = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert set(fields(schema)) - defined == set()


def write() -> None:
    for name, block in BLOCKS.items():
        block.page.write_text(written(name), encoding="utf-8")
    CHART.write_bytes(chart())


if __name__ == "__main__":
    write()
