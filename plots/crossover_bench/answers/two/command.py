# SPDX-License-Identifier: Apache-2.0
"""`two`: two commands that ./run two has measured, functions of crossover::two, or the rows of
another program's benchmark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from crossover_bench.answers.command import (
    add_charts,
    add_format,
    add_paths,
    charts_missing,
    complain,
    load_answering,
    print_sections,
    print_tables,
    tell_written,
)
from crossover_bench.answers.two import functions, problem_section, threshold
from crossover_bench.answers.two.answered import Answered, answered
from crossover_bench.answers.two.flags import add_threshold, add_wanted, refuse, wanted
from crossover_bench.answers.two.function_problems import asked_of
from crossover_bench.answers.two.moved import move_words, moves
from crossover_bench.answers.two.problems import problems_of
from crossover_bench.answers.two.section import build
from crossover_bench.answers.two.sides import AskError
from crossover_bench.files.google_benchmark import Timing, split
from crossover_bench.files.refusal import BadFileError
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Context
from crossover_bench.words.text import printable, whole

DESCRIPTION = (
    f"Of a file that {RUN} two has made: from which n the second command wins a step, after how "
    "many steps it has repaid its start-up, and a table of both at each n with 95 % intervals. Of "
    "a program that links crossover::two: from which size which function wins. Of "
    "files that Google Benchmark has written, JSON or CSV, or nvbench as JSON: from which size the "
    "GPU's rows win. Their sides are told by names, of rows or files; --cpu and --gpu say which. "
    "docs/howto has two-programs.md, two-functions.md and google-benchmark.md."
)
EXAMPLE = "two bench.json --cpu=Serial --gpu=Cuda"
_OF_SIZES = ("threshold", "device", "charts")  # flags on whatever has problems over sizes
_WITH_SIZES = "with functions, or that Google Benchmark or nvbench has written"


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(
        parser, help="result file, file of Google Benchmark or nvbench, or a folder: its *.json"
    )
    parser.add_argument("--at", type=_size, metavar="N", help="of two commands: what holds at n")
    add_wanted(parser)
    add_threshold(
        parser,
        "also write from which size the GPU wins into this file, by problem and device: a header "
        "for C++17, or JSON; entries of other problems and devices stay in it",
    )
    parser.add_argument(
        "--device",
        default="",
        metavar="NAME",
        help="with --threshold: the GPU's name, or part of it, where the files lack it",
    )
    add_charts(parser, "also draw both sides over the size, as PNG and SVG, into DIR")
    add_format(parser)


def _size(text: str) -> int:
    if number := whole(text, 10):
        return number
    raise argparse.ArgumentTypeError(f"{text!r}: a whole number from 1 on is needed")


def run(options: argparse.Namespace) -> int:
    paths, timings, problems = split(options.paths)
    if timings:
        problems += _of_rows(timings, options)
    else:
        refuse(options, "two")
    if paths:
        problems += _of_results(paths, options, is_alone=not (timings or problems))
    return complain(problems)


def _of_results(paths: list[Path], options: argparse.Namespace, is_alone: bool) -> list[str]:
    files, problems = load_answering(paths, lambda file: bool(file.commands or file.functions))
    if is_alone and not any(file.functions for file in files):
        refuse(options, "two", _OF_SIZES, _WITH_SIZES)
    context = Context(detailed=len(files))
    sections = build(files, context, options.at), functions.build(files, context)
    if answering := [section for section in sections if section]:
        print_sections(answering, options)
    elif not problems and is_alone:
        problems.append(f"{printable(str(paths[0]))}: has no two commands; {RUN} two measures them")
    known = [of for file in files for of in answered(asked_of(file))[0]]
    return problems + _written(known, options)


def _of_rows(timings: Sequence[Timing], options: argparse.Namespace) -> list[str]:
    try:
        asked = problems_of(timings, wanted(options))
    except AskError as error:
        return [f"{printable(str(timings[0].source.path))}: {error}"]
    known, problems = answered(asked)
    if options.format == "text":
        context = Context(draws=False)
        print_sections([problem_section.section(known, asked.left_out, context)], options)
    elif known:
        print_tables(problem_section.tables(known, asked.left_out), options)
    return problems + _written(known, options)


def _written(known: Sequence[Answered], options: argparse.Namespace) -> list[str]:
    """Writes what `options` ask for beside the answer."""
    problems = _write_thresholds(known, options) if options.threshold and known else []
    return problems + (_draw(known, options) if options.charts and known else [])


def _write_thresholds(known: Sequence[Answered], options: argparse.Namespace) -> list[str]:
    made = threshold.thresholds_of(known, options.device)
    try:
        moved = moves(threshold.write(options.threshold, made), made)
    except BadFileError as error:
        return [str(error)]
    except OSError as error:
        place = printable(str(options.threshold))
        return [f"{place}: {error.strerror}, so no thresholds were written; name another file"]
    tell_written([options.threshold])
    for move in moved:
        if move.verdict.startswith("moved"):
            print(printable(move_words(move), 600), file=sys.stderr)
    if not all(of.device for of in made):
        print(
            "the files name no GPU, so the thresholds are for any; --device=NAME says which",
            file=sys.stderr,
        )
    return []


def _draw(known: Sequence[Answered], options: argparse.Namespace) -> list[str]:
    # Imported here because matplotlib takes long to load.
    from crossover_bench.show.charts.crossover import draw_problem  # noqa: PLC0415
    from crossover_bench.show.charts.files import write_pictures  # noqa: PLC0415

    written: list[Path] = []
    try:
        for of in known:
            chart = draw_problem(of.answer)
            written += write_pictures(chart.pictures, options.charts, chart.name, written)
    except OSError as error:
        return [charts_missing(error, options.charts)]
    tell_written(written)
    return []
