# SPDX-License-Identifier: Apache-2.0
"""How often a difference is seen where there is none, in a file whose two builds are the same one:
what `./run --check-statistics` ends with. docs/method/comparing.md."""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace

from crossover_bench.answers.command import add_format, complain, named_path, print_tables
from crossover_bench.answers.compare.analysis import FEWEST_REPETITIONS, compare
from crossover_bench.answers.peers.analysis import pairs
from crossover_bench.curves.crossover import comparisons
from crossover_bench.files import loading
from crossover_bench.files.builds import SAME, other_builds
from crossover_bench.files.families import TRAINING
from crossover_bench.files.refusal import BadFileError
from crossover_bench.files.rows import File
from crossover_bench.place import RUN
from crossover_bench.show.tables.cells import Field, Of, count_field, table_of, text_field
from crossover_bench.show.tables.table import Cell, Column
from crossover_bench.words.text import printable


def _percent(key: str, title: str, of: Of) -> Field:
    column = Column(key, title, numeric=True)
    return column, lambda line: Cell(f"{100 * of(line):.1f} %", 100 * of(line))


_FIELDS = (
    text_field("question", "question", lambda line: line[0]),
    count_field("asked", "asked", lambda line: len(line[1])),
    count_field("differences", "differences found", lambda line: sum(line[1])),
    _percent("share_percent", "share", lambda line: sum(line[1]) / len(line[1])),
    _percent("nominal_percent", "nominal share", lambda line: line[2]),
)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=named_path, metavar="FILE")
    add_format(parser)
    options = parser.parse_args(words)
    try:
        file = loading.load_file(options.file)
    except BadFileError as error:
        return complain([str(error)])
    same = other_builds(file).get(SAME)
    asked = [line for line in (questions(file, same) if same else ()) if line[1]]
    if not asked:
        why = f"has no program measured twice; {RUN} --check-statistics measures one"
        return complain([f"{printable(str(options.file))}: {why}"])
    title = f"Differences found between two measurements of one program, on {file.machine.id}"
    print_tables([table_of(title, asked, _FIELDS)], options)
    return complain([])


def questions(ours: File, theirs: File) -> Iterator[tuple[str, list[bool], float]]:
    """Each question, whether each answer of the two files, of one program, is a difference, and the
    share of differences that the statistics allow themselves."""
    compared = [
        pair for pair in compare(theirs, ours).pairs if pair.repetitions >= FEWEST_REPETITIONS
    ]
    # One in the place of another framework.
    framed = [pair for pair in pairs(replace(ours, peers=theirs.rows)) if pair.low and pair.high]
    # One in the place of the CPU, the other in that of a GPU.
    crossovers = [
        comparison.crossover
        for threads in sorted({row.threads for row in ours.rows if row.threads})
        for comparison in comparisons(_as_two_devices(ours, theirs, threads))
    ]
    # Sizes that were measured in pairs, one program against the other; the last may be half done.
    sizes = [
        size
        for refined in ours.refinements
        if refined.kind == "program"
        for size in (refined.sizes if refined.complete else refined.sizes[:-1])
    ]
    yield (
        "compare: rows called faster or slower",
        [pair.verdict in ("better", "worse") for pair in compared if not pair.is_disturbed],
        0.0,
    )
    for question, asked in (("compare: rows", compared), ("peers: ratios", framed)):
        ends = [(pair.low, pair.high) for pair in asked]
        apart = [bool(low and high and not low <= 1 <= high) for low, high in ends]
        yield f"{question} whose 95 % interval excludes 1", apart, 0.05
    won = [any(crossover.winners) for crossover in crossovers]
    yield "crossover: curves with a winner at any size", won, 0.05
    sure = [size.winner is not None for size in sizes]
    yield "refine: sizes with a sure winner", sure, 0.05 / 32


def _as_two_devices(ours: File, theirs: File, threads: int) -> File:
    on_a_cpu, others = (
        [row for row in file.rows if row.family in TRAINING and row.threads == threads]
        for file in (ours, theirs)
    )
    on_a_gpu = []
    for row in others:
        configuration = {**row.configuration, "device": "cuda", "execution": "eager"}
        del configuration["cpu_threads"]
        on_a_gpu.append(replace(row, configuration=configuration, index=-1 - row.index))
    return replace(ours, rows=(*on_a_cpu, *on_a_gpu), refinements=(), peers=(), builds=())


if __name__ == "__main__":
    sys.exit(main())
