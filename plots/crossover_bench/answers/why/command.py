# SPDX-License-Identifier: Apache-2.0
"""`why`: where the time goes, what bounds it, and what would change the crossover."""

import argparse

from crossover_bench.answers.command import (
    WrongUsageError,
    add_all,
    add_charts,
    add_format,
    add_of,
    add_paths,
    asked_for,
    complain,
    load_answering,
    print_sections,
    quantity_of,
    save_charts,
)
from crossover_bench.answers.two import function_parts
from crossover_bench.answers.why.section import draw_all, of_quotients, of_times
from crossover_bench.files.quantities import QUANTITIES, TIME, Quantity
from crossover_bench.show.page.section import Context, Section
from crossover_bench.study.study import Study
from crossover_bench.words.text import printable

DESCRIPTION = (
    "Splits the time of each Epoch and Minibatch row into launches, copies, computation by kind, "
    "update and waits; names its bound; says what more CPU threads bring, what would change the "
    "crossover, and after how long the GPU's start-up is repaid. --of=energy and --of=cost say of "
    "what their quotient is made. As text it shows the fastest way of each device and what matters "
    "most; --all shows every row. Of a program that links crossover::two it splits calls into "
    "launch, wait and copies."
)
EXAMPLE = "why results --charts report"


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_format(parser)
    add_all(parser)
    add_of(parser)
    add_charts(
        parser, "also draw a chart of each file (PNG and SVG) into this folder, made if missing"
    )


def run(options: argparse.Namespace) -> int:
    quantity = QUANTITIES[options.of]
    if quantity is not TIME and (options.charts or not quantity.rate):
        raise WrongUsageError(_refusal(quantity))
    files, problems = load_answering(options.paths)
    sections: list[Section] = []
    asked = asked_for(files, options)
    quantity = quantity_of(asked, options)
    studies = list(map(Study, asked))
    context = Context(studies={study.file.path: study for study in studies}, draws=False)
    for file, study in zip(files, studies, strict=True):
        section = (
            of_times([file], context) if quantity is TIME else of_quotients(file, study, quantity)
        )
        of_functions = function_parts.section(file) if quantity is TIME else None
        sections += [each for each in (of_functions, section) if each]
        if not (of_functions or section):
            reason = "no Epoch or Minibatch row has a result"
            if quantity is not TIME:
                reason = f"no network was trained on both devices with {quantity.noun}"
            problems.append(f"{printable(str(file.path))}: {reason}")
    print_sections(sections, options)
    if options.charts:
        problems += save_charts(files, map(draw_all, studies), options.charts)
    return complain(problems)


def _refusal(quantity: Quantity) -> str:
    if quantity.rate:
        return "why --charts draws what times consist of; leave out --of, or --charts"
    grow = " and ".join(each.name for each in QUANTITIES.values() if each.rate)
    return (
        f"why splits time, {grow}, which grow with it; a row does not say of what its "
        f"{quantity.noun} consists, so say crossover --of={quantity.name}, which compares it"
    )
