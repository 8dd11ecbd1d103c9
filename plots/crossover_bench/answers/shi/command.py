# SPDX-License-Identifier: Apache-2.0
"""`shi`: the table of Shi et al. 2016, with one's own rows in it."""

import argparse

from crossover_bench.answers.command import (
    add_format,
    add_paths,
    complain,
    print_sections,
    tell_passed_over,
)
from crossover_bench.answers.shi.analysis import load_shi, newest_with_rows
from crossover_bench.answers.shi.section import build
from crossover_bench.counts.reference import REFERENCE, RESTORE
from crossover_bench.files import loading
from crossover_bench.files.file_order import by_id
from crossover_bench.show.page.section import Context
from crossover_bench.words.text import printable

DESCRIPTION = (
    "Prints Table 7 of Shi et al. 2016, the seconds per mini-batch of seven networks in five "
    "frameworks, with your rows of the same networks and batch sizes (bench --family=Minibatch), "
    "and how many times as fast they are as the fastest published CPU and GPU, in f32 and in a "
    "sentence. As text it shows how many times; other formats have the table, too. Without a file, "
    "prints the published table alone."
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
        with_rows = newest_with_rows(figures, files)
        options.all = not any(rows for _, rows in with_rows)
        shown = [file for file, _ in with_rows]
        tell_passed_over(shown, files, by_id)
        section = build(shown, Context(detailed=len(shown)))
    except OSError as error:
        place = error.filename or REFERENCE
        return complain([*problems, f"{printable(str(place))}: {error.strerror}; {RESTORE}"])
    print_sections([section], options)
    return complain(problems)
