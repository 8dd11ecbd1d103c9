# SPDX-License-Identifier: Apache-2.0
"""`shi`: the table of Shi et al. 2016, with one's own rows in it."""

import argparse
import sys

from plots.core.command import add_format, add_paths, complain, print_tables, tell_passed_over
from plots.core.reference import REFERENCE, RESTORE
from plots.core.tables.formats import wrapped
from plots.features.shi.analysis import load_shi, newest_with_rows
from plots.features.shi.section import brought, ratio_table, shi_table
from plots.file import loading
from plots.file.file_order import by_id
from plots.text import printable

DESCRIPTION = (
    "Prints Table 7 of Shi et al. 2016, the seconds per mini-batch of seven networks in five "
    "frameworks, with your rows of the same networks and batch sizes (bench --family=Minibatch), "
    "and how many times as fast they are as the fastest published CPU and GPU, in f32 and in a "
    "sentence. Without a file, prints the published table alone."
)
EXAMPLE = "shi results --format=markdown"


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(
        parser,
        "*",
        "file or folder; of each machine the newest complete sweep with such rows counts",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    files, problems = loading.load_files(options.paths)
    try:
        figures = load_shi()
        shown = [file for file, _ in newest_with_rows(figures, files)]
        tell_passed_over(shown, files, by_id)
        tables = [shi_table(figures, shown)]
        ratios = ratio_table(figures, shown)
        sentences = brought(figures, shown)
    except OSError as error:
        place = error.filename or REFERENCE
        return complain([*problems, f"{printable(str(place))}: {error.strerror}; {RESTORE}"])
    if ratios.lines:
        tables.insert(0, ratios)
    if options.format == "text":
        sys.stdout.writelines(f"{wrapped(printable(each, 900))}\n\n" for each in sentences)
    print_tables(tables, options)
    return complain(problems)
