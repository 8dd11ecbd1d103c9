# SPDX-License-Identifier: Apache-2.0
"""`report`: writes the page of everything, and its charts."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from crossover_bench.answers.command import (
    add_as,
    add_baseline,
    add_of,
    add_output,
    add_paths,
    add_sort,
    asked_programs,
    asked_with_sentences,
    complain,
    named_path,
    newest,
    quantity_of,
)
from crossover_bench.answers.predict.answer import Predictions, predictions
from crossover_bench.answers.report import report
from crossover_bench.answers.report.summary import since, summary
from crossover_bench.answers.two.flags import add_wanted, refuse, wanted
from crossover_bench.answers.two.problem_section import rows_section
from crossover_bench.counts.reference import REFERENCE, RESTORE
from crossover_bench.files import loading
from crossover_bench.files.file_order import gpus_first, newest_first
from crossover_bench.files.google_benchmark import split
from crossover_bench.files.losses import made_of
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import File
from crossover_bench.parallel import Pool
from crossover_bench.show.tables.formats import FORMATS
from crossover_bench.study.machines import UnknownMachineError, named
from crossover_bench.study.study import Study, studies_of
from crossover_bench.words.text import printable, whole

DESCRIPTION = (
    "Writes index.html into a folder: one page that needs nothing else, with the answer, charts "
    "and tables; and each chart as PNG and SVG. Several machines stand side by side first. Of "
    "several files from one machine the newest complete sweep is shown. Files of Google "
    "Benchmark are a section of it. Bad files are named and left out, and the exit code is then 2."
)
EXAMPLE = "report results -o report"
_DETAILED = 4


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_output(parser, "report")
    parser.add_argument(
        "--all", action="store_true", help="show every file, not only each machine's newest"
    )
    parser.add_argument(
        "--detail",
        type=_detail,
        default=_DETAILED,
        metavar="N|all",
        help="of how many files, the first in the table of machines, to show charts and all "
        f"tables; the others are a line each (default: {_DETAILED})",
    )
    parser.add_argument(
        "--tables",
        choices=list(FORMATS),
        default="",
        help="also write each table of the page beside it, as a file of this format",
    )
    add_as(parser)
    add_of(parser)
    add_sort(parser)
    add_baseline(parser, "the newest with a GPU, or the newest")
    parser.add_argument(
        "--summary",
        action="store_true",
        help="print the answer and a few times of these files as plain text as well",
    )
    parser.add_argument(
        "--since",
        type=named_path,
        metavar="FILE",
        help="for a run that goes on: keep the --summary in FILE, and where there is one already, "
        "print only what it does not say",
    )
    add_wanted(parser)


def run(options: argparse.Namespace) -> int:
    with Pool() as pool:
        paths, timings, problems = split(options.paths)
        if not timings:
            refuse(options, "report")
        more, faults = rows_section(timings, wanted(options), pool.map)
        files, unread = loading.load_files(paths, pool.map)
        problems += [*faults, *unread]
        files, older = (newest_first(files), []) if options.all else newest(files)
        if more and not files:
            try:
                page = report.contents_of(more, tables=options.tables)
                print(_wrote(report.write_report(page, options.output), options))
            except OSError as error:
                problems.append(_unwritten(error, options))
            return complain(problems)
        if not files:
            problems.append("no report was written, because there is no valid result file")
            return complain(problems)
        files, notes = asked_with_sentences(files, options)
        quantity = quantity_of(files, options)
        try:
            baseline = named(files, options.baseline) if options.baseline else None
        except UnknownMachineError as error:
            return complain([*problems, str(error)])
        try:
            known = partial(
                _known, older=older, quantity=quantity, pool=pool, programs=asked_programs(options)
            )
            files, predicted, studies = made_of(files, known, problems) or ([], None, {})
            if quantity is not TIME:
                notes += [
                    f"{printable(str(file.path))}: left out, because CPU and GPU have "
                    f"{quantity.noun} in common at fewer than two sizes"
                    for file in files
                    if not studies[file.path].comparisons
                ]
                files = [file for file in files if studies[file.path].comparisons]
            print(*notes, sep="\n", end="\n" if notes else "", file=sys.stderr)
            if not files:
                return complain([*problems, "no report was written, as no file is left"])
            build = partial(
                report.build_report,
                older=older,
                detailed=options.detail,
                apply=pool.map,
                sort=options.sort,
                baseline=baseline,
                studies=studies,
                predicted=predicted,
                tables=options.tables,
                quantity=quantity,
                notes=notes,
                more=more,
            )
            contents = made_of(files, build, problems)
            if contents is None:
                return complain([*problems, "no report was written, as no file is left"])
            # Before anything is printed: whoever closes a pipe early has the page all the same.
            written = report.write_report(contents, options.output)
        except OSError as error:
            problems.append(_unwritten(error, options))
        else:
            summaries = [
                summary(studies[file.path])
                for file in gpus_first(files)[: options.detail]
                if options.summary or options.since
            ]
            if options.since:
                summaries = [since(summaries, options.since)]
            for parts in summaries:
                print(*parts, sep="\n\n", end="\n\n")
            print(_wrote(written, options))
    return complain(problems)


def _wrote(written: Sequence[Path], options: argparse.Namespace) -> str:
    page, *others = written
    what = "charts and tables" if options.tables else "charts"
    beside = f", and {len(others)} files of {what} beside it" if others else ""
    return f"wrote {printable(str(page), 400)}{beside}"


def _unwritten(error: OSError, options: argparse.Namespace) -> str:
    place = Path(error.filename or options.output)
    remedy = RESTORE if place.parent == REFERENCE else "choose another folder with -o"
    return f"{printable(str(place))}: {error.strerror}, so no report was written; {remedy}"


def _known(
    files: Sequence[File],
    older: Sequence[File],
    quantity: Quantity,
    pool: Pool,
    programs: tuple[str, ...],
) -> tuple[list[File], Predictions | None, dict[Path, Study]]:
    """The files, what cards would do on their machines, and what follows from them."""
    predicted = predictions(files, older, pool.map) if quantity is TIME else None
    return list(files), predicted, studies_of(files, predicted, pool.map, programs)


def _detail(text: str) -> int | None:
    if text == "all":
        return None
    if number := whole(text):
        return number
    raise argparse.ArgumentTypeError(f"{text!r}: a number from 1 on, or all, is needed")
