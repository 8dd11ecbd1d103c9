# SPDX-License-Identifier: Apache-2.0
"""`site`: writes a static site of everybody's results. Its ladder tells of each machine and card
from which size the GPU wins at the usual batches: a table, a form that filters it, and a picture.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from markupsafe import Markup

from crossover_bench.answers.advise import section as ask
from crossover_bench.answers.answer.glance import glance, why_it_cannot_tell
from crossover_bench.answers.answer.glance import machines as strips_of
from crossover_bench.answers.answer.measured import at_each_batch
from crossover_bench.answers.command import add_output, add_paths, complain
from crossover_bench.answers.machines import section as machines
from crossover_bench.answers.predict.answer import predictions
from crossover_bench.answers.report import report
from crossover_bench.curves.crossover import Comparison
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.files import loading
from crossover_bench.files.file_order import gpus_first, machine, newest_per_machine
from crossover_bench.files.losses import made_of
from crossover_bench.files.rows import File
from crossover_bench.parallel import Map, Pool
from crossover_bench.place import CROSSOVER, RUN
from crossover_bench.show.charts.files import stems
from crossover_bench.show.charts.strip import draw_strips
from crossover_bench.show.page.page import render_page
from crossover_bench.show.page.section import Block, Context, Section, Widget
from crossover_bench.show.tables.cells import Field, date_cell, table_of, text_field
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.study.machines import (
    SideBySide,
    crossover_number,
    networks_of,
    processor_words,
    short_gpu,
    side_by_side,
)
from crossover_bench.study.study import Study, studies_of
from crossover_bench.words.text import counted, printable

BATCHES = ("10", "100", "1000")


def ladder_table(
    side: SideBySide, studies: Mapping[Path, Study], links: Mapping[Path, str]
) -> Table:
    """A line for each machine and GPU of `side`, the measured ones first. `studies` are the files'
    by path, `links` where each file's page is."""
    notes: dict[str, int] = {}
    lines = [line for standing in side.standings for line in _lines(studies[standing.file.path])]
    lines.sort(key=lambda line: line.source != "measured")

    def machine(line: _Line) -> Cell:
        name, doubt = line.file.machine.id, why_it_cannot_tell(line.file)
        lacks = "; ".join(each.fault for each in line.file.shortcomings)
        unfit = f"no complete default or full sweep: {lacks}." if lacks else ""
        doubts = [f"{name}: {text}" for text in (doubt, unfit) if text]
        return Cell(name, name, marks=marks(doubts, notes), link=links[line.file.path])

    def gpu(line: _Line) -> Cell:
        beside = ", predicted" if line.source == "predicted" else ""
        return Cell(f"{line.gpu}{beside}", line.gpu) if line.gpu else NOTHING

    def crossover(batch: str) -> Field:
        def cell(line: _Line) -> Cell:
            curve = line.by_batch.get(batch)
            if curve is None:
                return NOTHING
            return Cell(crossover_words(curve.crossover), crossover_number(curve))

        return Column(f"batch_{batch}", f"batch {batch}", group="GPU wins"), cell

    # What a machine is stands behind the sizes, as on a phone the first columns are shown.
    fields = (
        (Column("machine", "machine"), machine),
        (Column("gpu", "GPU"), gpu),
        *(crossover(batch) for batch in BATCHES if any(batch in line.by_batch for line in lines)),
        text_field("cpu", "CPU", lambda line: processor_words(line.file.machine)),
        (Column("measured", "measured"), lambda line: date_cell(line.file)),
        text_field("commit", "commit", lambda line: line.file.software.commit[:7] or None),
    )
    title = f"From which size of the {networks_of(side.standings)} a GPU wins"
    return table_of(title, lines, fields, notes)


@dataclass(frozen=True, slots=True)
class _Line:
    """A machine and a card: the comparison at each batch, and its `source`: "measured", "predicted"
    or, where there is none, empty."""

    file: File
    gpu: str
    source: str
    by_batch: dict[str, Comparison]


def _lines(study: Study) -> Iterator[_Line]:
    """Of the GPU of a file, and of each card that is predicted for its CPU."""
    file, first = study.file, study.foremost

    def line(gpu: str, source: str, curves: Sequence[Comparison], first: Comparison) -> _Line:
        by_batch = {curve.batch: curve for curve in at_each_batch(curves, first)}
        return _Line(file, short_gpu(gpu), source, by_batch)

    if first:
        yield line(file.machine.gpu or "GPU", "measured", study.comparisons, first)
    verdicts = [verdict for verdict in study.verdicts if verdict.comparison]
    for verdict in verdicts:
        assert verdict.chosen and verdict.comparison
        yield line(verdict.card.name, "predicted", verdict.chosen.crossovers, verdict.comparison)
    if not first and not verdicts:
        yield _Line(file, short_gpu(file.machine.gpu or ""), "", {})


_FOLDER = Path(__file__).parent
_MOST_STRIPS = 12
_NOTES = (
    "The 95 % interval is in brackets; of a predicted card it is the band of the prediction. "
    "A dash: the file did not measure that batch. The fastest thread count of the CPU stands "
    "against the GPU's best way. Of each machine the newest complete default or full sweep counts, "
    "or without one the file that trained most, with a note on what it lacks; its page has "
    "everything that this file says, and what others add to it. The form below is fitted to the "
    "GPUs of all files, a machine's line and page to its own file.",
    f"To add your machine: {RUN}, then {CROSSOVER} share FILE, which prints where to send it.",
)


def build(files: Sequence[File], context: Context, links: Mapping[Path, str]) -> Section:
    """The ladder of `files`; `links` say where the page of each is."""
    assert context.side
    glances = [glance(context.study(file)) for file in files]
    strips = strips_of(zip(files[:_MOST_STRIPS], glances, strict=False))
    chart = draw_strips(strips, "strips") if strips else None
    return Section(
        title="Machines",
        anchor="ladder",
        lead="From how many parameters on a GPU trains faster than the CPU beside it.",
        widget=Widget(
            # The script fills it in from the table; without it every line is there to read.
            html=Markup('<form class="filter" hidden><output aria-live="polite"></output></form>'),
            script=(_FOLDER / "filter.js").read_text(encoding="utf-8").strip(),
            style=(_FOLDER / "filter.css").read_text(encoding="utf-8").strip(),
        ),
        blocks=(
            Block(tables=(ladder_table(context.side, context.studies, links),)),
            Block(pictures=(chart,) if chart else (), notes=_NOTES),
        ),
    )


DESCRIPTION = (
    "Writes index.html into a folder: every machine and card with the size from which the GPU "
    "wins, the machines side by side, and the form that asks what this CPU and that GPU would do; "
    "and in a folder of each machine the report of its newest complete default or full sweep, or "
    "without one of the file that trained most, which then says what it lacks. The site needs no "
    "server and no network. Bad files are named, and the exit code is then 2."
)
EXAMPLE = "site -o public"
_ABOUT = (
    "From which network size does a GPU pay? What everybody's machines measured, and what is "
    "predicted of cards that they lack."
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser, "*", "result file, or folder: every *.json below it (default: results)")
    add_output(parser, "public")


def run(options: argparse.Namespace) -> int:
    with Pool() as pool:
        files, problems = loading.load_files(options.paths or [Path("results")], pool.map)
        shown, _ = newest_per_machine(files)
        if not shown:
            problems.append("no site was written, because there is no valid result file")
            return complain(problems)
        try:
            pages = made_of(files, partial(_site_of, apply=pool.map), problems)
            for folder, contents in (pages or {}).items():
                report.write_report(contents, options.output / folder)
        except OSError as error:
            place = printable(str(error.filename or options.output))
            problems.append(
                f"{place}: {error.strerror}, so the site is not whole; choose another folder "
                "with -o"
            )
        else:
            if pages is None:
                return complain([*problems, "no site was written, as no file is left"])
            index = printable(str(options.output / report.PAGE), 400)
            print(f"wrote {index}, and pages of {counted(len(pages) - 1, 'machine')} beside it")
            if unfit := sum(bool(file.shortcomings) for file in shown):
                print(f"of {counted(unfit, 'machine')} no file is a complete default or full sweep")
    return complain(problems)


def _site_of(files: Sequence[File], apply: Map) -> dict[str, dict[str, bytes]]:
    shown, older = newest_per_machine(files)
    return build_site(gpus_first(shown), older, apply)


def build_site(
    files: Sequence[File], older: Sequence[File], apply: Map
) -> dict[str, dict[str, bytes]]:
    """The site of `files`, each of another machine or card: folder, whose name is made as that of
    a chart's file is, to file name, to content."""
    predicted = predictions(files, older, apply)
    studies = studies_of(files, predicted, apply)
    folders = {file.path: stem for file, stem in zip(files, stems(files), strict=True)}
    context = Context(
        detailed=len(files),
        stems=folders,
        studies=studies,
        side=side_by_side(files, studies=studies),
        predictions=predicted,
        map=apply,
    )
    links = {path: f"{folder}/{report.PAGE}" for path, folder in folders.items()}
    built = [
        build(files, context, links),
        machines.build(files, context),
        ask.build(files, context),
    ]
    sections = [section for section in built if section is not None]
    index = {report.PAGE: render_page(sections, "Crossover", _ABOUT).encode()}
    for section in sections:
        index |= report.charts_of(section)
    page = partial(report.build_report, apply=apply, studies=studies, home="../index.html")
    pages = {
        folders[file.path]: page(
            [file],
            older=[other for other in older if machine(other) == machine(file)],
            predicted=predicted.alone(file),
        )
        for file in files
    }
    return {"": index, **pages}
