# SPDX-License-Identifier: Apache-2.0
"""`crossover`: from which size on the GPU wins, and by how much."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from crossover_bench.answers.answer import section as answer
from crossover_bench.answers.answer.glance import glance
from crossover_bench.answers.command import (
    add_all,
    add_as,
    add_charts,
    add_format,
    add_of,
    add_paths,
    add_sort,
    asked_for,
    asked_programs,
    complain,
    load_answering,
    newest,
    print_sections,
    print_tables,
    quantity_of,
    save_charts,
)
from crossover_bench.answers.copies import section as copies
from crossover_bench.answers.crossover import section
from crossover_bench.answers.crossover.section import crossover_table, speed_up_table
from crossover_bench.answers.machines.table import summary_table
from crossover_bench.answers.ranks import section as ranks
from crossover_bench.answers.threads import section as threads
from crossover_bench.curves.crossover_words import other_work
from crossover_bench.files import loading
from crossover_bench.files.families import FAMILIES
from crossover_bench.files.quantities import QUANTITIES, TIME, Quantity
from crossover_bench.files.rows import File
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Context, Section
from crossover_bench.show.tables.table import Table
from crossover_bench.study.machines import side_by_side
from crossover_bench.study.programs import answered
from crossover_bench.study.study import PYTORCH, Study, study_of
from crossover_bench.words.text import printable

DESCRIPTION = (
    "Compares CPU and GPU in each file: the answer in a few sentences, the size from which the GPU "
    "wins with its 95 % interval for each way to compute on it, and the speedup of each network. "
    "--all shows each number of CPU threads and every precision, too. --of compares another "
    "quantity than time, such as memory. --charts draws the strip as "
    "well, of predicted cards where the file has no GPU. docs/method/crossover.md says how. Bad "
    "files are named and left out, and the exit code is then 2; as it is where --format has no "
    "table, or --charts nothing to draw."
)
EXAMPLE = "crossover results --charts charts"


# What is printed in place of the crossover of devices, by the flag that asks for it.
_INSTEAD = {"threads": threads, "ranks": ranks, "copies": copies}


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_format(parser)
    add_all(parser)
    add_as(parser)
    add_of(parser)
    add_charts(parser)
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--summary",
        action="store_true",
        help="print one line for each machine instead, with the crossover of its newest sweep",
    )
    either.add_argument(
        "--threads",
        action="store_true",
        help="print instead from which size more CPU threads pay, and what following that costs",
    )
    either.add_argument(
        "--ranks",
        action="store_true",
        help="print instead from which size several ranks train faster than one process, and "
        "several GPUs faster than one, and what their sums cost",
    )
    either.add_argument(
        "--copies",
        action="store_true",
        help="print instead from how many copies of a network on, trained at once, the GPU wins, "
        "and what a copy takes",
    )
    parser.add_argument(
        "--scaling",
        choices=("strong", "weak"),
        help="with --ranks: ranks share the batch of one process (strong, the default), or have "
        "one as large each (weak), where the file has both: --batch=100,200 --ranks=1,2",
    )
    add_sort(parser, "crossover", "of --summary")


def run(options: argparse.Namespace) -> int:
    load = loading.load_files if options.summary else load_answering
    files, problems = load(options.paths)
    if options.of != TIME.name and (options.summary or options.ranks):
        return complain(["crossover: --summary and --ranks are of time; leave out --of, or these"])
    files = asked_for(files, options)
    if options.scaling and not options.ranks:
        return complain(["crossover: --scaling is of --ranks; say that, too, or leave it out"])
    if options.summary:
        return _summarize(files, problems, options)
    if name := next((name for name in _INSTEAD if getattr(options, name)), ""):
        return _instead(files, problems, options, name)
    studies = _studies(files, options)
    quantity, is_text = QUANTITIES[options.of], options.format == "text"
    tables = [] if is_text else [*_tables(studies)]
    if is_text:
        print_sections([*_sections(studies, quantity_of(files, options))], options)
    else:
        print_tables(tables, options)
    untold = [_nothing_to_compare(study, quantity) for study in studies if not study.comparisons]
    if not (is_text or tables):
        problems += untold  # a program that reads tables is told by the exit code
    else:
        for sentence in untold:
            print(sentence, file=sys.stderr)
    if options.charts:
        problems += _draw(studies, options)
    return complain(problems)


def _studies(files: Sequence[File], options: argparse.Namespace) -> list[Study]:
    """With what is predicted where that is asked for: by charts, or as PyTorch's loop was measured
    on no GPU of a file that has one."""
    studies = [Study(file, programs=asked_programs(options)) for file in files]
    if options.of != TIME.name:
        return studies
    lacking = [
        study.file
        for study in studies
        if options.charts
        or (
            options.format == "text"
            and PYTORCH in study.programs
            and section.compares(study)
            and not answered(study, PYTORCH)
        )
    ]
    if not lacking:
        return studies
    # Imported here because the fit takes seconds.
    from crossover_bench.answers.predict.answer import predictions  # noqa: PLC0415

    predicted = predictions(lacking)
    return [study_of(of.file, predicted, of.comparisons, of.programs) for of in studies]


def _sections(studies: Sequence[Study], quantity: Quantity) -> Iterator[Section]:
    """What a page says of each file: the answer, and behind it from which size and how much."""
    for study in filter(section.compares, studies):
        context = Context(studies={study.file.path: study}, quantity=quantity, draws=False)
        built = (build([study.file], context) for build in (answer.build, section.build))
        yield from filter(None, built)


def _draw(studies: Sequence[Study], options: argparse.Namespace) -> list[str]:
    """Writes the charts; returns what is wrong, a sentence each."""
    # Imported here because matplotlib takes longer to load than the tables take to make.
    from crossover_bench.show.charts.crossover import draw_charts  # noqa: PLC0415
    from crossover_bench.show.charts.strip import draw_strips  # noqa: PLC0415

    files = [study.file for study in studies]
    drawn = (
        [
            *([draw_strips(strips)] if (strips := glance(study).strips) else []),
            *draw_charts(study.file, study.comparisons),
        ]
        for study in studies
    )
    return save_charts(files, drawn, options.charts)


def _tables(studies: Sequence[Study]) -> Iterator[Table]:
    """Epochs first: their crossovers and speedups; then those of training steps, then what products
    and layers do."""
    for family in FAMILIES:
        of_family = [(of.file, of.of_family(family)) for of in studies if of.comparisons]
        if any(compared for _, compared in of_family):
            yield crossover_table(of_family)
        if sped := [(of.file, ratios) for of in studies if (ratios := of.speed_ups(family))]:
            yield speed_up_table(sped)


def _nothing_to_compare(study: Study, quantity: Quantity) -> str:
    """Why the file has no crossover, and what would give one."""
    file = study.file
    place = f"{printable(str(file.path))}: no crossover, because"
    results = [row for row in file.rows if not row.failure]
    if not file.rows and file.copies:
        return f"{place} it has copies of networks alone; crossover --copies compares those"
    if not results and quantity is not TIME:
        reason = file.run.energy.get("reason") if quantity is QUANTITIES["energy"] else None
        why = (
            f": {printable(reason, 400)}"
            if reason
            else "; measure again with a bench that counts it"
        )
        if quantity is QUANTITIES["energy"]:
            why += "; or estimate it, with --tdp cpu=65 --tdp gpu=700"
        return f"{place} no row has {quantity.noun}{why}"
    if section.compares(study):
        return (
            f"{place} CPU and GPU have fewer than two sizes in common; measure disc-2 to disc-12 "
            f"on both ({RUN} without --model does), or one network at several batch sizes "
            "(--family=Minibatch --batch=8,64,512)"
        )
    if other := other_work(file):
        return f"{place} {other}; measure both in one run"
    if any(row.device != "cpu" for row in results):
        return (
            f"{place} no row of the CPU computes the same as one of the GPU; measure both in one "
            "run"
        )
    reason = f": {printable(file.machine.gpu_reason)}" if file.machine.gpu_reason else ""
    return (
        f"{place} it has no row of a GPU{reason}; {RUN} on a machine with an NVIDIA GPU gives the "
        "size from which that wins, its interval, and the speedup of each network; predict says "
        "what is known without one"
    )


def _instead(files: list[File], problems: list[str], options: argparse.Namespace, name: str) -> int:
    """Prints what a page says of more threads, ranks or copies; returns the exit code."""
    of, weak = _INSTEAD[name], {"weak": True} if options.scaling == "weak" else {}
    if options.charts and not hasattr(of, "draw_all"):
        return complain([f"crossover: --{name} has no charts; leave out --{name}, or --charts"])
    context = Context(quantity=quantity_of(files, options), draws=False)
    sections = []
    for file in files:
        if section := of.build([file], context, **weak):
            sections.append(section)
        else:
            print(f"{printable(str(file.path))}: {of.lacking(file, **weak)}", file=sys.stderr)
    print_sections(sections, options)
    if options.charts:
        problems += save_charts(
            files, (of.draw_all(file, **weak) for file in files), options.charts
        )
    return complain(problems)


def _summarize(files: list[File], problems: list[str], options: argparse.Namespace) -> int:
    """Prints the summary; returns the exit code."""
    if options.charts:
        return complain(["crossover: --summary has no charts; leave out --summary, or --charts"])
    if files:
        shown, older = newest(files)
        side = side_by_side(shown, older=older, sort=options.sort)
        print_tables([summary_table(side.standings)], options)
    return complain(problems)
