# SPDX-License-Identifier: Apache-2.0
"""`advise`: what a network nobody measured would take on CPU and GPU."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossover_bench.answers.advise.advice import Adviser, Network, nearest_batch, own_network
from crossover_bench.answers.advise.analysis import of_threads
from crossover_bench.answers.advise.as_is_summary import as_is, cards_of, module_block, modules
from crossover_bench.answers.advise.table import (
    advice_table,
    both,
    meeting_words,
    own_block,
    own_sentences,
    own_table,
)
from crossover_bench.answers.answer.glance import why_it_cannot_tell
from crossover_bench.answers.command import (
    add_all,
    add_format,
    add_of,
    add_paths,
    asked_of_times,
    complain,
    named_path,
    newest,
    print_blocks,
)
from crossover_bench.answers.predict.cards import add_gpu, chosen_cards, problem_of
from crossover_bench.answers.predict.data import card_of, observations
from crossover_bench.answers.predict.fit import Fit, fit
from crossover_bench.counts.cards import Card, load_cards
from crossover_bench.counts.cost import BENCH_PATH, Cost, CostError, load_cost, run_bench
from crossover_bench.counts.costs import kept_cost
from crossover_bench.counts.mlp import (
    ACTIVATIONS,
    OPTIMIZERS,
    PRECISIONS,
    Mlp,
    network_of,
    of_size,
    usual_loss,
    widths_in,
)
from crossover_bench.files import loading, rows
from crossover_bench.files.file_order import by_id
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Block
from crossover_bench.words.text import printable, whole

DESCRIPTION = (
    "Says how long a network trains on the machine of each file and on graphics cards, with an "
    "error band, and which is faster. It counts fully connected networks itself; bench --cost "
    "counts others. Without a network it answers for the modules that PyTorch trained as they are "
    "in the files. If a machine has several files, the newest complete sweep counts."
)
EXAMPLE = "advise --mlp 784,512,10 --batch 64 --epochs 20 results"

_MODULE = ".module.json"  # ends the names of files that tell of modules as they are
_NETWORK = {
    "--mlp": ("IN,...,CLASSES", "layer widths of a fully connected network"),
    "--params": ("N", "about so many parameters, shaped as the disc networks are"),
    "--model": ("NAME", "a network that bench --models lists"),
    "--network": (
        "FILE.json",
        "a network of your own (docs/networks.md), in all sizes measured; a "
        f"module as it is by what {RUN} wrote of it, FILE.module.json",
    ),
}
_TRAINING = {
    "--batch": ("N", "samples per batch (default: the network's own, or 100)"),
    "--rows": ("N", "samples per epoch (default: the network's own, or 1000)"),
    "--activation": ("NAME", ", ".join(ACTIVATIONS)),
    "--optimizer": ("NAME", ", ".join(OPTIMIZERS)),
    "--loss-function": (
        "NAME",
        "cross-entropy, mse or bce, of --mlp and --params (default: mse of one output, else "
        "cross-entropy)",
    ),
    "--accumulate": ("K", "update once every K batches"),
    "--precision": ("NAME", f"{', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}"),
}
_DESCRIBING = _NETWORK | _TRAINING


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_format(parser)
    for flag, (value, text) in _DESCRIBING.items():
        parser.add_argument(flag, metavar=value, help=text)
    parser.add_argument(
        "--epochs", metavar="N", default="1", help="how many epochs to train (default: 1)"
    )
    parser.add_argument("--threads", metavar="N", help="use only this CPU thread count")
    add_gpu(parser, default=None)
    add_of(parser)
    add_all(parser, "show every way of each device, not only the best; other formats have them")
    parser.add_argument(
        "--bench",
        type=named_path,
        default=BENCH_PATH,
        metavar="PATH",
        help="path of bench, which counts other networks (default: build/bench of the checkout)",
    )
    parser.add_argument(
        "--cost",
        type=named_path,
        metavar="FILE",
        help="saved output of bench --cost, instead of a network",
    )


def run(options: argparse.Namespace) -> int:
    asked_quantity = asked_of_times("advise", options)
    files, problems = loading.load_files(options.paths)
    shown, others = newest(files, by_id)
    shown.reverse()
    try:
        _number("--epochs", options.epochs)
        flags = _given(options)
        module = _module(flags, options)
        is_unnamed = (
            flags.keys() <= {"--batch"} and options.threads is None and options.cost is None
        )
        is_module = bool(module) or (is_unnamed and any(map(modules, shown)))
        if is_module and options.of != TIME.name:
            raise CostError("advise: of a module as it is only times are known; leave out --of")
        network = None if is_module else _network(flags, options)
        asked_cards = chosen_cards(options.gpu or "")
    except (CostError, OSError) as error:
        return complain([problem_of(error)])
    if network is not None:
        shown = [_knowing(file, others, network) for file in shown]
    # The file's GPU is what is asked about, unless cards are named.
    is_own_gpu = options.gpu is None and not is_module
    cards = [() if is_own_gpu and file.machine.gpu else asked_cards for file in shown]
    try:
        fitted = fit(observations(files)) if any(cards) or network is not None else None
    except OSError as error:
        return complain([problem_of(error)])
    blocks: list[Block] = []
    for file, file_cards in zip(shown, cards, strict=True):
        try:
            if network is None:
                names = [module] if module else modules(file)
                blocks += [_as_is(file, name, file_cards, options, fitted=fitted) for name in names]
            else:
                blocks.append(
                    _answer(file, network, file_cards, options, fitted=fitted, of=asked_quantity)
                )
        except CostError as error:
            problems.append(f"{printable(str(file.path))}: {error}")
    print_blocks(blocks, options)
    return complain(problems)


def _knowing(file: rows.File, others: Sequence[rows.File], network: Network) -> rows.File:
    """`file`, or else another of its machine from which something is known of the network here."""
    alike = [other for other in others if by_id(other) == by_id(file)]
    cost = network.cost

    def knows(known: rows.File) -> bool:
        return Adviser(known, cost.precision, cost.accumulate).advice(network).cpu is not None

    return next(filter(knows, [file, *alike]), file) if alike else file


def _answer(
    file: rows.File,
    network: Network,
    cards: tuple[Card, ...],
    options: argparse.Namespace,
    *,
    fitted: Fit | None,
    of: tuple[Quantity, Mapping[str, float]],
) -> Block:
    """In words, and as tables behind them; `of` is the quantity, and how much of it a second of
    each side is. Raises CostError where nothing is predicted."""
    cost, threads = network.cost, _threads(file, options.threads)
    epochs = _number("--epochs", options.epochs)
    measured = card_of(file, load_cards())
    adviser = Adviser(
        file,
        cost.precision,
        cost.accumulate,
        cards=[card for card in cards if card != measured],
        asked=options.gpu is not None and measured not in cards,
        fit=fitted,
        quantity=of[0],
        second=of[1],
        threads=threads,
    )
    file = of_threads(file, threads)
    flags = _flags(file, network, options)
    if options.network is not None:
        batch = int(flags.get("--batch") or nearest_batch(file, cost) or cost.batch)
        cost = _size_of(options, flags, "", batch)
        network = replace(network, cost=cost)
    advice = adviser.advice(network)
    if not advice.predictions:
        raise CostError(" ".join(advice.reason_sentences()).removesuffix("."))
    table = advice_table(advice, adviser, epochs)
    if options.network is None or adviser.quantity is not TIME:
        doubt, meeting = why_it_cannot_tell(file), meeting_words(adviser, network)
        return Block(
            machine=file.machine.id,
            lead=both(advice, adviser.in_pytorch(network, advice), epochs),
            points=tuple(filter(None, (doubt, meeting))),
            tables=(table,),
        )

    def count(model: str, batch: int) -> Cost:
        scale = model.removeprefix(cost.model).removeprefix("x")
        return _size_of(options, flags, scale, batch)

    in_sizes = own_network(file, adviser, cost, count)
    table = table.shortened(own_table(in_sizes, epochs))
    points = own_sentences(in_sizes, adviser)
    block = own_block(in_sizes, points, table, both(in_sizes, in_sizes.pytorch, epochs))
    return replace(block, machine=file.machine.id)


def _as_is(
    file: rows.File,
    module: str,
    cards: tuple[Card, ...],
    options: argparse.Namespace,
    *,
    fitted: Fit | None,
) -> Block:
    """Of a module that PyTorch trained as it is. Raises CostError."""
    epochs = _number("--epochs", options.epochs)
    others = cards_of(file, module, cards, options.gpu is not None)
    batch = options.batch and _number("--batch", options.batch)
    known = as_is(file, module, others, fitted, batch)
    if known is None:
        reasons = [row.failure.message for row in file.peers if row.failure]
        why = f": {printable(reasons[0], 400)}" if reasons else ""
        raise CostError(f"there is no result of {printable(module, 60)}{why}")
    return replace(module_block(known, epochs), machine=file.machine.id)


def _module(flags: dict[str, str], options: argparse.Namespace) -> str:
    """The name of the module as it is that --network tells of; empty where it is another network.
    Raises CostError."""
    if not (options.network or "").endswith(_MODULE):
        return ""
    given = [*flags, *(["--threads"] if options.threads is not None else [])]
    if others := [flag for flag in given if flag not in ("--network", "--batch")]:
        raise CostError(f"{others[0]}: a module as it is was trained as its rows say; leave it out")
    try:
        return str(json.loads(Path(options.network).read_text(encoding="utf-8"))["name"])
    except (OSError, ValueError, KeyError, TypeError):
        raise CostError(
            f"--network={printable(options.network, 400)}: is not what {RUN} writes of a module, "
            "in build/networks"
        ) from None


def _flags(file: rows.File, network: Network, options: argparse.Namespace) -> dict[str, str]:
    """How the network of --network is trained: as asked, or else as `file` trained it."""
    training = json.loads(file.networks.get(network.cost.model, "{}")).get("training", {})
    measured = {f"--{key}": training[key] for key in ("rows", "optimizer") if key in training}
    if options.batch and "--rows" in measured:  # a larger batch needs more rows
        measured["--rows"] = max(measured["--rows"], _number("--batch", options.batch))
    return {flag: str(value) for flag, value in (measured | _given(options)).items()}


def _size_of(options: argparse.Namespace, flags: dict[str, str], scale: str, batch: int) -> Cost:
    """The cost of one size of the network of --network. Raises CostError."""
    sizes = {"--batch": str(batch), **({"--scale": scale} if scale else {})}
    return _counted(options, {**flags, **sizes})


def _counted(options: argparse.Namespace, flags: dict[str, str]) -> Cost:
    """What bench counts. An epoch has at least as many rows as the batch, unless --rows says
    otherwise. Raises CostError."""
    cost = run_bench(options.bench, [f"{flag}={value}" for flag, value in flags.items()])
    if "--batch" in flags and "--rows" not in flags and cost.batch < int(flags["--batch"]):
        return _counted(options, {**flags, "--rows": flags["--batch"]})
    return cost


def _threads(file: rows.File, threads: str | None) -> str:
    """The CPU thread count that is asked for; empty for any. Raises CostError where `file` has no
    row of it."""
    if threads is None:
        return ""
    counts = {row.configuration.get("cpu_threads", "") for row in file.rows} - {""}
    if threads not in counts:
        known = sorted(map(printable, counts), key=lambda text: (len(text), text))
        raise CostError(
            f"--threads {printable(threads, 40)}: the file has rows on "
            f"{', '.join(known) or 'no'} CPU threads"
        )
    return threads


def _network(flags: dict[str, str], options: argparse.Namespace) -> Network:
    """What --mlp, --params, --model or --cost describe. Raises CostError."""
    if options.cost is not None:
        if flags:
            raise CostError(
                f"--cost already describes a network; drop {next(iter(flags))} or --cost"
            )
        cost = load_cost(options.cost)
        return Network(cost, network_of(cost.model))
    named = [flag for flag in _NETWORK if flag in flags]
    if len(named) != 1:
        both = f"{named[0]} and {named[1]} name two networks" if named else "which network?"
        raise CostError(
            f"{both}; give one of --mlp=784,512,10, --params=50000, --model=NAME or "
            "--network=FILE.json"
        )
    if "--loss-function" in flags and not {"--mlp", "--params"} & flags.keys():
        raise CostError(
            f"--loss-function is of --mlp and --params; the network of {named[0]} has its own"
        )
    mlp = _mlp(flags)
    if mlp is not None and "--accumulate" not in flags:
        return Network(mlp.cost(), mlp)
    if (
        flags.keys() <= {"--model", "--precision"}
        and "--model" in flags
        and (kept := kept_cost(flags["--model"], flags.get("--precision", "f32")))
    ):
        return Network(kept)
    if "--params" in flags and mlp:
        flags = {"--mlp": ",".join(map(str, mlp.widths)), **flags}
        del flags["--params"]
    if "--batch" in flags:
        _number("--batch", flags["--batch"])
    return Network(_counted(options, flags), mlp=None)


def _given(options: argparse.Namespace) -> dict[str, str]:
    """The flags that describe a network and its training, as far as they are given."""
    values = {flag: getattr(options, flag[2:].replace("-", "_")) for flag in _DESCRIBING}
    return {flag: value for flag, value in values.items() if value is not None}


def _mlp(flags: dict[str, str]) -> Mlp | None:
    """The fully connected network; None where it is of another kind."""
    loss = flags.get("--loss-function", "cross-entropy").replace("-", "_")
    if "--mlp" in flags:
        widths = widths_in(flags["--mlp"])
        plain = Mlp(widths, loss=loss if "--loss-function" in flags else usual_loss(widths))
    elif "--params" in flags:
        plain = Mlp(of_size(_number("--params", flags["--params"])), loss=loss)
    elif named := network_of(flags.get("--model", "")):
        plain = named
    else:
        return None
    changes: dict[str, Any] = {
        flag[2:]: _number(flag, text) if flag in ("--batch", "--rows") else text
        for flag, text in flags.items()
        if flag in ("--activation", "--optimizer", "--precision", "--batch", "--rows")
    }
    if "batch" in changes and "rows" not in changes:
        changes["rows"] = max(plain.rows, changes["batch"])
    return replace(plain, **changes)


def _number(flag: str, text: str) -> int:
    number = whole(text)
    if not number:
        raise CostError(f"{flag}={printable(text, 40)}: a number from 1 on is needed")
    return number
