# SPDX-License-Identifier: Apache-2.0
"""`peers`: what another framework takes for the same work, measured in turn with bench."""

import argparse

from crossover_bench.answers.command import (
    add_format,
    add_paths,
    complain,
    load_answering,
    print_sections,
)
from crossover_bench.answers.peers.section import build, names_of, peer_tables
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Context
from crossover_bench.words.text import printable

DESCRIPTION = (
    f"Prints, for each file that {RUN} --with-peers has made, the time of each epoch, training "
    "step, product and copy with bench and with each framework, the median ratio of the "
    "repetitions that were measured in turn, and its 95 % interval; and from which size the GPU "
    "wins by either's curves. Of several ways to do the same the fastest of each side counts."
)
EXAMPLE = "peers results"


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "--all", action="store_true", help="show each of their rows, not the fastest alone"
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    files, problems = load_answering(options.paths, lambda file: bool(file.peers))
    with_peers = [file for file in files if file.peers]
    if not (with_peers or problems):
        problems.append(
            f"{printable(str(options.paths[0]))}: has no rows of another framework; {RUN} "
            "--with-peers measures PyTorch's"
        )
    context = Context(detailed=len(files))
    for file in with_peers:
        if not peer_tables(context.study(file), options.all):
            problems.append(
                f"{printable(str(file.path))}: has no rows of bench's that do the work of "
                f"{names_of(file)}; {RUN} --with-peers measures both in turn"
            )
    section = build(files, context, every=options.all)
    if section:
        print_sections([section], options)
    return complain(problems)
