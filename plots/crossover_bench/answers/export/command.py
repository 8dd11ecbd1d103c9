# SPDX-License-Identifier: Apache-2.0
"""`export`: the rows of a result file as tools of Google Benchmark's format want them."""

import argparse
import json
import sys

from crossover_bench.answers.command import EXIT_OK, complain, named_path
from crossover_bench.answers.export.analysis import exported
from crossover_bench.files import loading
from crossover_bench.files.refusal import BadFileError
from crossover_bench.words.text import counted, printable

DESCRIPTION = (
    "Prints the rows of a result file for tools that draw or compare what Google Benchmark writes, "
    "such as compare.py, Conbench and github-action-benchmark: one entry for each row, its median, "
    "in nanoseconds."
)
EXAMPLE = "export results/my-machine/2026-11-24-6056b93.json > benchmark.json"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=named_path, metavar="FILE", help="the result file")


def run(options: argparse.Namespace) -> int:
    path = options.path
    try:
        loading.load_file(path)
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except BadFileError as error:
        return complain([str(error)])
    written = exported(document)
    if not written["benchmarks"]:
        return complain([f"{printable(str(path))}: no row has a result, so there is no entry"])
    print(json.dumps(written, indent=1))
    if left_out := len(document["rows"]) - len(written["benchmarks"]):
        of = counted(len(document["rows"]), "row")
        print(f"{left_out} of {of} left out, which have no result", file=sys.stderr)
    return EXIT_OK
