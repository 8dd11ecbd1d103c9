# SPDX-License-Identifier: Apache-2.0
"""What commands have in common: their arguments, their complaints, their exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossover_bench.counts import data_sheets
from crossover_bench.counts.prices import Price, lacking, per_second, read_prices, with_costs
from crossover_bench.counts.prices import sentences as price_sentences
from crossover_bench.files import loading
from crossover_bench.files.file_order import machine, newest_per_machine, passed_over
from crossover_bench.files.quantities import ESTIMATED_ENERGY, QUANTITIES, TIME, Quantity
from crossover_bench.files.rows import File
from crossover_bench.files.samples import in_quantity
from crossover_bench.files.sides import SIDES, FigureError, sides_of
from crossover_bench.show.page.section import Block, Section
from crossover_bench.show.page.text import tables_of, text_of
from crossover_bench.show.tables.formats import FORMATS, harmless, render
from crossover_bench.show.tables.table import Table
from crossover_bench.study.machines import SORTS
from crossover_bench.study.study import AS, BOTH
from crossover_bench.words.text import counted, printable

if TYPE_CHECKING:
    from crossover_bench.show.charts.style import Chart

EXIT_OK = 0
EXIT_SLOWER = 1  # `compare --fail-on-slower` found what it was asked to look for
EXIT_BAD_INPUT = 2
EXIT_STOPPED = 130  # by Ctrl-C, as a shell reports it


class WrongUsageError(Exception):
    """Arguments that do not go together, in a sentence."""


def named_path(text: str) -> Path:
    """The type of an argument that names a file or a folder; an empty one would be "."."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; for the current folder write .")
    return Path(text)


_PATHS = "result file, or a folder for every *.json below it"
# What is read where no PATH is given: `crossover` knows where results are.
KNOWN: list[Path] = []


def add_paths(parser: argparse.ArgumentParser, nargs: str = "+", help: str = _PATHS) -> None:
    """Adds the result files that a command reads, one at least unless `nargs` says otherwise or
    some are KNOWN."""
    default = KNOWN if nargs == "+" else []
    if default:
        nargs, help = "*", f"{help} (default: {' '.join(map(str, default))})"
    parser.add_argument(
        "paths", nargs=nargs, type=named_path, metavar="PATH", help=help, default=[*default]
    )


def add_output(parser: argparse.ArgumentParser, default: str, of: str = "to write to") -> None:
    """Adds --output, the folder `of` what the command writes."""
    parser.add_argument(
        "-o",
        "--output",
        type=named_path,
        default=Path(default),
        metavar="DIR",
        help=f"folder {of}, made if missing (default: {default})",
    )


def add_charts(
    parser: argparse.ArgumentParser,
    help: str = "also draw charts (PNG and SVG) into this folder, made if missing",
) -> None:
    parser.add_argument("--charts", type=named_path, metavar="DIR", help=help)


def add_format(parser: argparse.ArgumentParser) -> None:
    """Adds --format, which print_tables() obeys."""
    parser.add_argument(
        "--format",
        choices=list(FORMATS),
        default="text",
        help="format of the tables (default: text)",
    )


def add_all(
    parser: argparse.ArgumentParser,
    help: str = "print the full tables as text, too; all other formats have them anyway",
) -> None:
    """Adds --all, for a command whose text is short without it."""
    parser.add_argument("--all", action="store_true", help=help)


def add_as(parser: argparse.ArgumentParser) -> None:
    """Adds --as; asked_programs() says what it asks for."""
    parser.add_argument(
        "--as",
        dest="programs",
        choices=AS,
        help="whose programs the answer is about: pytorch, its loop on both devices; fastest, the "
        "fastest measured for each side; ours (default: pytorch, then fastest)",
    )


def asked_programs(options: argparse.Namespace) -> tuple[str, ...]:
    """Whose answers are told, the asker's first."""
    return (options.programs,) if options.programs else BOTH


def add_of(parser: argparse.ArgumentParser) -> None:
    """Adds --of, which asked_for() obeys."""
    parser.add_argument(
        "--of",
        choices=list(QUANTITIES),
        default=TIME.name,
        help="what to compare (default: time); rows without it are counted and left out",
    )
    parser.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="SIDE=PRICE|FILE",
        help="with --of=cost: what the machine of each side costs, cpu=0.10/h, gpu=1.20/h, "
        "gpu=2000/3y where it is bought, or a file of prices in JSON; may be given several times",
    )
    parser.add_argument(
        "--tdp",
        action="append",
        default=[],
        metavar="SIDE=WATTS",
        help="with --of=energy: where no meter was read, estimate it from the watts of data "
        "sheets, cpu=65 of all processors, gpu=700 of the card; each once",
    )


def asked_for(files: Iterable[File], options: argparse.Namespace) -> list[File]:
    """The files of asked_with_sentences(), with its sentences on stderr."""
    asked, sentences = asked_with_sentences(files, options)
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return asked


def asked_with_sentences(
    files: Iterable[File], options: argparse.Namespace, is_predicted: bool = False
) -> tuple[list[File], list[str]]:
    """`files` in the quantity of --of, or in estimated energy where --tdp stands in for a meter or
    the other side `is_predicted`; and sentences: the prices or watts, how exact meters are, and how
    many rows of a file lack the quantity. Raises WrongUsageError where prices or watts are missing.
    """
    quantity, prices, watts = QUANTITIES[options.of], _prices(options), _watts(options)
    files = list(files)
    sentences: list[str] = []
    if quantity.is_priced:
        if fault := lacking(sides_of(files), prices):
            raise WrongUsageError(fault)
        sentences += price_sentences(prices)
        files = [with_costs(file, prices) for file in files]
    if quantity.counter == data_sheets.JOULES:
        sentences += [
            f"{printable(str(file.path))}: {clause} (docs/method/bounds.md)"
            for file in files
            if (clause := data_sheets.error_of_meters(file))
        ]
    if watts and (is_predicted or any(map(data_sheets.unmetered, files))):
        if fault := data_sheets.lacking(files, watts):
            raise WrongUsageError(fault)
        quantity = ESTIMATED_ENERGY
        sentences += data_sheets.sentences(watts)
        sentences += [
            data_sheets.how_many(file, rows)
            for file in files
            if (rows := data_sheets.unmetered(file))
        ]
        files = [data_sheets.with_estimates(file, watts) for file in files]
    asked = [in_quantity(file, quantity) for file in files]
    for file, converted in zip(files, asked, strict=True):
        if left_out := len(file.own_rows) - len(converted.own_rows):
            of = counted(len(file.own_rows), "row")
            sentences.append(
                f"{printable(str(file.path))}: {left_out} of {of} left out, for want of "
                f"{quantity.noun} (counter {quantity.counter})"
            )
    return asked, sentences


def quantity_of(files: Iterable[File], options: argparse.Namespace) -> Quantity:
    """The quantity that asked_for() gave `files`: that of --of, or an estimate of it."""
    quantities = (row.quantity for file in files for row in file.own_rows if not row.failure)
    return next(quantities, QUANTITIES[options.of])


def asked_of_times(
    command: str, options: argparse.Namespace
) -> tuple[Quantity, Mapping[str, float]]:
    """The quantity of --of, which `command` predicts, and how much of it a second of each side is:
    a second, its cost, or with --tdp its energy. Prices or watts are told on stderr. Raises
    WrongUsageError where the quantity does not follow from times."""
    quantity, prices, watts = QUANTITIES[options.of], _prices(options), _watts(options)
    if quantity is TIME:
        return quantity, dict.fromkeys(SIDES, 1.0)
    if watts:
        if fault := data_sheets.lacking_sides(watts):
            raise WrongUsageError(fault)
        print(*data_sheets.sentences(watts), sep="\n", file=sys.stderr)
        return ESTIMATED_ENERGY, data_sheets.of_sides(watts)
    if not (quantity.is_priced and quantity.is_amount):
        is_energy = quantity.counter == data_sheets.JOULES
        estimate = ", or estimate it, with --tdp cpu=65 --tdp gpu=700" if is_energy else ""
        raise WrongUsageError(
            f"{command} tells times, and --of=cost what they cost; no {quantity.noun} follows from "
            f"these, so measure it, and say crossover --of={quantity.name}{estimate}"
        )
    if fault := lacking(SIDES, prices):
        raise WrongUsageError(fault)
    print(*price_sentences(prices), sep="\n", file=sys.stderr)
    return quantity, per_second(prices)


def _prices(options: argparse.Namespace) -> list[Price]:
    if options.price and not QUANTITIES[options.of].is_priced:
        raise WrongUsageError("--price is of costs; say --of=cost, too, or leave it out")
    try:
        return [price for text in options.price for price in read_prices(text)]
    except FigureError as error:
        raise WrongUsageError(f"--price: {error}") from error


def _watts(options: argparse.Namespace) -> Mapping[str, float]:
    if options.tdp and QUANTITIES[options.of].counter != data_sheets.JOULES:
        raise WrongUsageError("--tdp is of energy; say --of=energy, too, or leave it out")
    try:
        return data_sheets.read_watts(options.tdp)
    except FigureError as error:
        raise WrongUsageError(f"--tdp: {error}") from error


def print_tables(tables: Sequence[Table], options: argparse.Namespace) -> None:
    text = render(tables, options.format)
    # CSV has text as the file has it, which a reader of CSV needs and a terminal would carry out.
    sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)


def print_sections(sections: Sequence[Section], options: argparse.Namespace) -> None:
    """Prints `sections` as --format says: as text (all of it with --all, or where there is no such
    flag), or in other formats their tables."""
    if options.format == "text":
        sys.stdout.write(text_of(sections, getattr(options, "all", True)))
    else:
        print_tables(tables_of(sections), options)


def print_blocks(blocks: Iterable[Block], options: argparse.Namespace) -> None:
    """Prints `blocks`, which no page has, as print_sections() does."""
    print_sections([Section(title="", anchor="", blocks=tuple(blocks))], options)


def tell_written(paths: Iterable[Path]) -> None:
    for path in paths:
        print(f"wrote {printable(str(path), 400)}", file=sys.stderr)


def save_charts(files: Sequence[File], drawn: Iterable[Sequence[Chart]], folder: Path) -> list[str]:
    """Writes what is `drawn` of each of `files` into `folder`, and says so; returns what went
    wrong, a sentence each."""
    # Imported here because matplotlib takes long to load.
    from crossover_bench.show.charts.files import write_charts  # noqa: PLC0415

    try:
        written = write_charts(files, drawn, folder)
    except OSError as error:
        return [charts_missing(error, folder)]
    tell_written(written)
    if written:
        return []
    names = " and ".join(printable(str(file.path)) for file in files)
    where = f" in {names}" if names else ""
    return [f"no chart was drawn, because there are no rows{where} that this command's charts show"]


def charts_missing(error: OSError, folder: Path) -> str:
    """That the charts could not be written into `folder`, and why, in a sentence."""
    place = printable(str(error.filename or folder))
    return f"{place}: {error.strerror}, so charts are missing; choose another folder with --charts"


def complain(problems: Sequence[str]) -> int:
    """Says what is wrong, a sentence each; returns the exit code."""
    for problem in problems:
        print(problem, file=sys.stderr)
    return EXIT_BAD_INPUT if problems else EXIT_OK


def add_sort(
    parser: argparse.ArgumentParser, default: str = SORTS[0], of: str = "of machines"
) -> None:
    """Adds --sort, the order of machines that stand beside each other; `of` says where."""
    parser.add_argument(
        "--sort",
        choices=SORTS,
        default=default,
        help=f"order {of}, those with a GPU first: latest date; name; smallest crossover; "
        "name of CPU or GPU; shortest time of disc-10 or heart; smallest ratio of epochs to the "
        f"baseline (default: {default})",
    )


def add_baseline(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds --baseline; `default` says in words which machine is taken without it."""
    parser.add_argument(
        "--baseline",
        metavar="MACHINE",
        help=f"machine, or its file, that the ratios of machines are to (default: {default})",
    )


def newest(
    files: Iterable[File], key: Callable[[File], Hashable] = machine
) -> tuple[list[File], list[File]]:
    """newest_per_machine(), with a sentence on stderr for each machine whose newer files do not
    count."""
    shown, others = newest_per_machine(files, key)
    tell_passed_over(shown, others, key)
    return shown, others


def tell_passed_over(
    shown: Iterable[File], others: Iterable[File], key: Callable[[File], Hashable] = machine
) -> None:
    """Tells which of `others` are newer than the file `shown` of their machine, but say less."""
    for passed in passed_over(shown, others, key):
        print(passed.sentence, file=sys.stderr)


def load_answering(
    paths: Sequence[Path], wanted: Callable[[File], bool] = lambda _: True
) -> tuple[list[File], list[str]]:
    """load_files() for a command that shows one file after the other: each file that `paths` name,
    but of a folder only newest() of those `wanted`."""
    files, problems = loading.load_files(paths)
    is_named = {file.path: file.path in paths for file in files}
    in_folders = [file for file in files if not is_named[file.path] and wanted(file)]
    counting = {file.path for file in newest(in_folders)[0]}
    return [file for file in files if is_named[file.path] or file.path in counting], problems
