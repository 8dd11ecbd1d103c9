# SPDX-License-Identifier: Apache-2.0
"""`predict`: what GPUs that were not measured would do on the machines of files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from crossover_bench.answers.command import (
    add_all,
    add_charts,
    add_format,
    add_of,
    add_paths,
    asked_of_times,
    asked_with_sentences,
    complain,
    newest,
    print_blocks,
    print_tables,
    save_charts,
)
from crossover_bench.answers.predict.analysis import Wanted
from crossover_bench.answers.predict.answer import Verdict, groups_of, in_pytorch
from crossover_bench.answers.predict.attention import FUSED, KINDS
from crossover_bench.answers.predict.cards import add_gpu, chosen_cards, problem_of
from crossover_bench.answers.predict.data import card_of, observations
from crossover_bench.answers.predict.fit import Fit, fit
from crossover_bench.answers.predict.links import link_of
from crossover_bench.answers.predict.model import HALVES
from crossover_bench.answers.predict.ranks import Plan, plan_sentences, prospect
from crossover_bench.answers.predict.section import block, draw
from crossover_bench.answers.predict.table import cards_table, paying_table, together_table
from crossover_bench.answers.predict.ways import (
    AUTO,
    EXECUTIONS,
    OURS,
    PLACEMENTS,
    PYTORCH,
    PYTORCH_WAY,
    Way,
)
from crossover_bench.counts.cards import NVIDIA, Card, load_cards, load_others
from crossover_bench.counts.cost import CostError
from crossover_bench.counts.mlp import PRECISIONS
from crossover_bench.files import loading
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import File
from crossover_bench.place import CROSSOVER
from crossover_bench.show.page.section import Block
from crossover_bench.study.machines import short_gpu
from crossover_bench.words.text import printable, whole

_PLACEMENTS = "resident,pinned-async"
DESCRIPTION = (
    "Predicts how long the networks of each file would train on graphics cards that were not "
    "measured, with a band from published times, and from which size the card would "
    "overtake the file's measured CPU; and where the file has forward passes, the same of using "
    "them. Of several files from one machine the newest complete "
    "sweep counts; the GPU's rows of all files join the fit. docs/method/prediction.md says how. "
    "Nothing predicted is written into a result file."
)
EXAMPLE = "predict results --gpu=rtx-4090,h200"
_MOST_RANKS = 1024


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser, "*")
    add_format(parser)
    add_all(parser)
    add_gpu(parser)
    add_of(parser)
    parser.add_argument("--gpus", action="store_true", help="list the cards, and exit")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="f32",
        help="arithmetic of the GPU's products (default: f32); the CPU's is f32 where it has no "
        "other",
    )
    parser.add_argument(
        "--execution",
        metavar="NAME,...",
        help="eager, graph, graph-epoch or auto (default: eager,graph,auto)",
    )
    parser.add_argument(
        "--placement",
        metavar="NAME,...",
        default=_PLACEMENTS,
        help="where the data is: resident, pinned or pinned-async (default: resident,pinned-async)",
    )
    parser.add_argument(
        "--as",
        dest="loop",
        choices=("ours", "pytorch"),
        help="whose loop trains on both sides: this program's, or PyTorch's eager one, which "
        "Python starts operation by operation (default: a sentence of each, tables of ours)",
    )
    parser.add_argument(
        "--attention",
        choices=KINDS,
        help="with --as=pytorch, whether attention is PyTorch's fused one, or products, softmax "
        "and dropout (default: fused)",
    )
    parser.add_argument("--batch", metavar="N", help="use only rows of this batch size")
    parser.add_argument(
        "--ranks",
        metavar="N,...",
        help="print instead what so many of each card would bring, and from which size they would "
        "train faster than one, as in 2,4,8 (docs/method/several.md)",
    )
    parser.add_argument(
        "--link",
        metavar="NAME",
        help="with --ranks, what the cards sum their gradients over: nvlink, pcie3, pcie4, pcie5 "
        "or ethernet-25g (default: sums that the file measured on them, else the card's fastest)",
    )
    parser.add_argument(
        "--scaling",
        choices=("strong", "weak"),
        help="with --ranks, whether the cards share each batch, or have one each (default: strong)",
    )
    add_charts(parser)


def run(options: argparse.Namespace) -> int:
    try:
        if options.gpus:
            print_tables([cards_table({**load_cards(), **load_others()})], options)
            return complain([])
        cards = chosen_cards(options.gpu)
        if options.loop is None and all(card.maker != NVIDIA for card in cards):
            options.loop = PYTORCH  # nothing else is predicted of them
            if options.placement == _PLACEMENTS:
                options.placement = "resident"
        _, second = asked_of_times("predict", options)
        wanted = replace(_wanted(options, cards), second=second["gpu"], cpu_second=second["cpu"])
        if not options.paths:
            raise CostError("predict: name result files, or folders; or ask for --gpus")
        ranks = _ranks(options)
        files, problems = loading.load_files(options.paths)
        fitted = fit(observations(files))
        answered, blocks = [], []
        for file in asked_with_sentences(newest(files)[0], options, is_predicted=True)[0]:
            if ranks:
                made, reasons = _several(file, fitted, wanted, ranks, options)
            else:
                groups, reasons = groups_of(file, fitted, wanted)
                theirs = _in_pytorch(file, fitted, wanted, options)
                made = block(file, groups, fitted, theirs) if groups else None
                answered.append((file, groups))
            if made:
                if options.gpu and not ranks and (measured := _measured(file, cards)):
                    reasons = [*reasons, measured]
                blocks.append(replace(made, notes=tuple(f"{reason}." for reason in reasons)))
            else:
                problems.append(_nothing(file, reasons, wanted))
    except (CostError, OSError) as error:
        return complain([problem_of(error)])
    print_blocks(blocks, options)
    if options.charts:
        drawn = (draw(answer, fitted) for answer in answered)
        problems += save_charts([file for file, _ in answered], drawn, options.charts)
    return complain(problems)


def _ranks(options: argparse.Namespace) -> tuple[int, ...]:
    """The numbers of cards of --ranks; none without."""
    if options.ranks is None:
        for flag in ("link", "scaling"):
            if getattr(options, flag) is not None:
                raise CostError(f"predict: --{flag} is about several cards; add --ranks=2,4,8")
        return ()
    for flag, is_given in (("charts", options.charts), ("of", options.of != TIME.name)):
        if is_given:
            raise CostError(f"predict: --ranks has no --{flag}; leave out one of them")
    numbers = [whole(part.strip()) or 0 for part in options.ranks.split(",")]
    if not all(2 <= ranks <= _MOST_RANKS for ranks in numbers):
        raise CostError(
            f"--ranks={printable(options.ranks, 40)}: numbers from 2 to {_MOST_RANKS:,} are "
            "needed, as in 2,4,8"
        )
    return tuple(dict.fromkeys(numbers))


def _in_pytorch(
    file: File, fitted: Fit, wanted: Wanted, options: argparse.Namespace
) -> list[Verdict]:
    """What the same cards would do in PyTorch's loop; none where ways of one loop are asked for,
    and in 16 bits, in which no step of PyTorch's was measured on a CPU."""
    if options.loop or options.execution or wanted.precision in HALVES:
        return []
    return in_pytorch(file, fitted, replace(wanted, ways=(PYTORCH_WAY,)))


def _several(
    file: File, fitted: Fit, wanted: Wanted, ranks: tuple[int, ...], options: argparse.Namespace
) -> tuple[Block | None, list[str]]:
    """What several of each card would bring, and why there is no more, as groups_of()."""
    machine = printable(file.machine.id)
    prospects = []
    for card in wanted.cards:
        link = link_of(card, options.link or "", file)
        plan = Plan(card, link, ranks, options.scaling or "strong")
        prospects.append(prospect(file, fitted, wanted, plan))
    tables = [together_table(each, machine) for each in prospects if each.networks]
    points = tuple(chain.from_iterable(map(plan_sentences, prospects)))
    reasons = {
        f"no prediction of {', '.join(names)}: {reason}": None
        for each in prospects
        for reason, names in each.problems.items()
    }
    if not tables:
        return None, list(reasons)
    tables = [paying_table(prospects, machine).as_folded(), *tables]
    return Block(file.machine.id, points=points, tables=tuple(tables)), list(reasons)


def _wanted(options: argparse.Namespace, cards: tuple[Card, ...]) -> Wanted:
    def listed(flag: str, text: str, known: Sequence[str]) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        for name in names:
            if name not in known:
                raise CostError(f"--{flag}={printable(name, 40)}: is none of {', '.join(known)}")
        return list(dict.fromkeys(names))

    if options.loop == PYTORCH and options.execution not in (None, "eager"):
        raise CostError(
            f"--execution={printable(options.execution, 40)}: of PyTorch the eager loop alone is "
            "predicted; leave out --execution"
        )
    if options.attention and options.loop != PYTORCH:
        raise CostError("--attention is of PyTorch's; add --as=pytorch")
    executions = options.execution or ("eager" if options.loop == PYTORCH else "eager,graph,auto")
    ways = tuple(
        Way(execution, data, options.loop or OURS, options.attention or FUSED)
        for execution in listed("execution", executions, EXECUTIONS)
        for data in listed("placement", options.placement, PLACEMENTS)
        if execution != AUTO or data == "resident"  # what `auto` is chosen for
    )
    if not ways:
        raise CostError(
            "--execution=auto is predicted with the data on the GPU alone: --placement=resident"
        )
    if options.batch is not None and not whole(options.batch):
        raise CostError(f"--batch={printable(options.batch, 40)}: a number from 1 on is needed")
    batch = None if options.batch is None else str(whole(options.batch))
    return Wanted(cards, ways, options.precision, batch)


def _measured(file: File, cards: Sequence[Card]) -> str:
    """Why one of `cards` is not predicted: the file has what it does; empty where it has not."""
    card = card_of(file, load_cards())
    return f"the file measured the {short_gpu(card.name)} itself" if card and card in cards else ""


def _nothing(file: File, reasons: Sequence[str], wanted: Wanted) -> str:
    place = f"{printable(str(file.path))}: nothing can be predicted"
    measured = _measured(file, wanted.cards)
    if measured and len(wanted.cards) == 1:
        return f"{place}: {measured}; name others with --gpu"
    if reasons:
        return f"{place}: {printable('; '.join(reasons), 600)}"
    if wanted.batch is not None:
        return (
            f"{place}, because no row of its CPU trains in batches of {wanted.batch}; leave out "
            "--batch"
        )
    if any(row.as_is for row in file.peers):
        return (
            f"{place}, because no row of bench's trains a network; {CROSSOVER} advise FILE "
            "answers for the modules that PyTorch trained as they are"
        )
    return f"{place}, because no row of its CPU trains a network; measure with --family=Epoch"
