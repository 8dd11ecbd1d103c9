# SPDX-License-Identifier: Apache-2.0
"""`site`: writes a static site of everybody's results."""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from plots.core.charts.files import stems
from plots.core.command import add_output, add_paths, complain
from plots.core.machines import side_by_side
from plots.core.page.page import render_page
from plots.core.page.section import Context
from plots.features.advise import section as ask
from plots.features.machines import section as machines
from plots.features.predict.answer import predictions
from plots.features.report import report
from plots.features.site import section as ladder
from plots.file import loading
from plots.file.file_order import gpus_first, newest_per_machine
from plots.file.rows import File
from plots.parallel import Map, Pool
from plots.text import counted, printable

DESCRIPTION = (
    "Writes index.html into a folder: every machine and card with the size from which the GPU "
    "wins, the machines side by side, and the form that asks what this CPU and that GPU would do; "
    "and in a folder of each machine the report of its newest complete default or full sweep. "
    "Other files are left out. The site needs no server and no network. Bad files are named, and "
    "the exit code is then 2."
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
        whole = [file for file in files if not file.shortcomings]
        shown, _ = newest_per_machine(whole)
        if not shown:
            problems.append(
                "no site was written, because no file is a complete default or full sweep; measure "
                "one with ./run"
            )
            return complain(problems)
        older = [file for file in files if all(file is not one for one in shown)]
        try:
            pages = build_site(gpus_first(shown), older, pool.map)
            for folder, contents in pages.items():
                report.write_report(contents, options.output / folder)
        except OSError as error:
            place = printable(str(error.filename or options.output))
            problems.append(
                f"{place}: {error.strerror}, so the site is not whole; choose another folder "
                "with -o"
            )
        else:
            index = printable(str(options.output / report.PAGE), 400)
            print(f"wrote {index}, and pages of {counted(len(pages) - 1, 'machine')} beside it")
            if left := len(files) - len(whole):
                print(f"left out {counted(left, 'file')}: no complete default or full sweep")
    return complain(problems)


def build_site(
    files: Sequence[File], older: Sequence[File], apply: Map
) -> dict[str, dict[str, bytes]]:
    """The site of `files`, each of another machine or card: folder, whose name is made as that of
    a chart's file is, to file name, to content."""
    predicted = predictions(files, older, apply)
    compared = report.compared_files(files, apply)
    folders = {file.path: stem for file, stem in zip(files, stems(files), strict=True)}
    context = Context(
        detailed=len(files),
        stems=folders,
        compared=compared,
        side=side_by_side(files, compared=[compared[file.path] for file in files]),
        predictions=predicted,
        map=apply,
    )
    links = {path: f"{folder}/{report.PAGE}" for path, folder in folders.items()}
    built = [
        ladder.build(files, context, predicted, links),
        machines.build(files, context),
        ask.build(files, context),
    ]
    sections = [section for section in built if section is not None]
    index = {report.PAGE: render_page(sections, "Crossover", _ABOUT).encode()}
    for section in sections:
        index |= report.charts_of(section)
    page = partial(report.build_report, apply=apply, predicted=predicted, home="../index.html")
    each = {folders[file.path]: page([file], compared=compared) for file in files}
    return {"": index, **each}
