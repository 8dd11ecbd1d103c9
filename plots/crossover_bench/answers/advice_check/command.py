# SPDX-License-Identifier: Apache-2.0
"""`advice-check`: what the usual advice for fast training brought on one's own machine.

docs/method/comparing.md says which rows are compared.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crossover_bench.answers.command import (
    add_format,
    add_paths,
    complain,
    load_answering,
    print_blocks,
)
from crossover_bench.files.axes import OWN, Configuration
from crossover_bench.files.families import FAMILIES, TRAINING, steps_of
from crossover_bench.files.rows import File, Row, median_of
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Block
from crossover_bench.show.tables.cells import count_cell, number_cell, text_cell
from crossover_bench.show.tables.table import Cell, Column, Table
from crossover_bench.words import units
from crossover_bench.words.text import printable

DESCRIPTION = (
    "Lists what guides to fast training advise, and what each piece of advice brought in a file: "
    "of its Epoch and Minibatch rows those that differ in nothing else. Advice without such rows "
    "is named below the table with the flags that measure it."
)
EXAMPLE = "advice-check results"
_NOTHING = (
    f"no two rows differ only in what guides advise; measure some, as with {RUN} "
    "--execution=eager --zero=keep,overwrite"
)
_COLUMNS = (
    Column("advice", "advice"),
    Column("way", "followed"),
    Column("device", "on"),
    Column("pairs", "rows", numeric=True),
    Column("ratio", "median", numeric=True, group="times as fast"),
    Column("least", "least", numeric=True, group="times as fast"),
    Column("most", "most", numeric=True, group="times as fast"),
    Column("faster", "faster", numeric=True, group="surely"),
    Column("slower", "slower", numeric=True, group="surely"),
    Column("least_model", "gained least", for_programs=True),
    Column("most_model", "gained most", for_programs=True),
    Column("repaid", "repaid after steps"),
    Column("repaid_steps", "repaid after", numeric=True, for_programs=True),
    Column("low", "from", numeric=True, for_programs=True),
    Column("high", "to", numeric=True, for_programs=True),
)
_NOTES = (
    "Times as fast: the time without the advice over that with it, paired by repetition, of rows "
    "that differ in nothing else; median, least and most over these rows.",
    "Surely: the 95 % interval of that ratio lies above 1; or below it, where the advice costs "
    "time. Fewer than six instances of a row prove nothing (--benchmark_repetitions=12).",
)

Items = frozenset[tuple[str, str]]


class Claim(NamedTuple):
    """`advice` in the words of PyTorch's guides, and `flags` of bench that measure both sides.

    A row follows it if its value of the axis `key` is one of `better`, or any but `plain` where
    `better` is empty; and if it has `only`. But to _ACCUMULATE a row that sums no gradients is the
    larger batch of a row that sums those of several.
    """

    advice: str
    flags: str
    key: str
    plain: str
    better: tuple[str, ...] = ()
    only: tuple[str, str] | None = None


class Pair(NamedTuple):
    """One training in two rows: `ratio` is the median over the repetitions of the time without the
    advice over that with it; [`low`, `high`] is its 95 % interval, None where there are too few."""

    followed: Row
    plain: Row
    ratio: float
    low: float | None
    high: float | None

    @property
    def repaid(self) -> int | None:
        """After how many steps it has gained what its first call takes longer; None: never."""
        first, plain_first = (
            row.counters["first_call_seconds"] for row in (self.followed, self.plain)
        )
        step, plain_step = (row.median / steps_of(row) for row in (self.followed, self.plain))
        if step >= plain_step:
            return None
        return max(0, math.ceil((first - plain_first) / (plain_step - step)))

    @property
    def network(self) -> str:
        return f"{self.followed.model}, batch {self.followed.batch}"


_ACCUMULATE = "accumulate"
_COMPILE = "torch.compile"
_GRAPHS = ("fused", "graph", "graph-epoch", "persistent", "tailored")
CLAIMS = (
    Claim("pin_memory=True", "--placement=pageable,pinned", "data", "pageable", ("pinned",)),
    Claim(
        "non_blocking=True", "--placement=pinned,pinned-async", "data", "pinned", ("pinned-async",)
    ),
    Claim(
        "num_workers=N", "--shuffle=epoch --loader=0,1,2,4", "loader", "0", (), ("shuffle", "epoch")
    ),
    Claim("shuffle=True", "--shuffle=none,epoch", "shuffle", "none", ("epoch",)),
    Claim(
        *("set_to_none=True", "--execution=eager --zero=keep,overwrite", "zero", "keep"),
        ("overwrite",),
    ),
    Claim("larger batch, no accumulation", "--accumulate=1,2 --batch=50,100", _ACCUMULATE, ""),
    Claim("fused steps, graphs", "--execution=eager,fused,graph", "execution", "eager", _GRAPHS),
    Claim(_COMPILE, "--with-peers --mode=eager,compile", "compiler", "none"),
    Claim(
        *("batches ready, no loss.item()", "--with-peers --script=lean,usual", "script", "usual"),
        ("lean",),
    ),
    Claim("autocast", "--precision=f32,tf32,bf16,f16", "precision", "f32"),
)

# Advice whose first call compiles, captures or chooses.
_AT_FIRST = {claim.advice for claim in CLAIMS if claim.key in ("compiler", "execution")}

Answers = dict[tuple[str, str, str, str], list[Pair]]  # by advice, way, program, device


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    files, problems = load_answering(options.paths, lambda file: bool(check_advice(file)))
    blocks = []
    for file in files:
        if answers := check_advice(file):
            blocks.append(Block(machine=file.machine.id, tables=(advice_table(file, answers),)))
        else:
            problems.append(f"{printable(str(file.path))}: {_NOTHING}")
    if not (blocks or problems):
        problems.append(f"{printable(str(options.paths[0]))}: {_NOTHING}")
    if blocks:
        print_blocks(blocks, options)
    return complain(problems)


def check_advice(file: File) -> Answers:
    """What each piece of advice brought in `file`, followed in one way by one program on one
    device."""
    rows = [
        row
        for row in (*file.rows, *file.peers)
        if row.family in TRAINING and row.failure is None and len(row.samples)
    ]
    by_work = {_items(row, row.configuration): row for row in rows}
    answers: Answers = {}
    for claim in CLAIMS:
        for row in rows:
            for plain, way in _plain_rows(claim, row, rows, by_work):
                key = (claim.advice, way, row.program, row.device)
                answers.setdefault(key, []).append(_pair(row, plain))
    return answers


def advice_table(file: File, answers: Answers) -> Table:
    """A line for each way to follow each piece of advice, and a note for each that `file` does not
    answer."""
    answered = {advice for advice, *_ in answers}
    missing = (
        f"Not measured here: {claim.advice} ({RUN} {claim.flags})."
        for claim in CLAIMS
        if claim.advice not in answered
    )
    return Table(
        f"What guides advise, and what it brought on {file.machine.id}",
        _COLUMNS,
        tuple(_line(*key, pairs) for key, pairs in answers.items()),
        (*_NOTES, *_repaid_words(answers), *missing),
    )


def _line(
    advice: str, way: str, program: str, device: str, pairs: Sequence[Pair]
) -> tuple[Cell, ...]:
    least, most = (of(pairs, key=lambda pair: pair.ratio) for of in (min, max))
    only = pairs[0] if len(pairs) == 1 else None
    return (
        text_cell(advice),
        text_cell(way),
        text_cell(_where(program, device, pairs)),
        count_cell(len(pairs)),
        number_cell(median_of(np.array([pair.ratio for pair in pairs]))),
        number_cell(least.ratio),
        number_cell(most.ratio),
        count_cell(sum(pair.low is not None and pair.low > 1 for pair in pairs)),
        count_cell(sum(pair.high is not None and pair.high < 1 for pair in pairs)),
        *(text_cell(pair.network) for pair in (least, most)),
        text_cell(_steps_words(pairs) if advice in _AT_FIRST else None),
        number_cell(only.repaid if only and advice in _AT_FIRST else None),
        number_cell(only.low if only else None),
        number_cell(only.high if only else None),
    )


def _where(program: str, device: str, pairs: Sequence[Pair]) -> str:
    axes = pairs[0].followed.axes
    where = axes["device"].word(device)
    return where if program == OWN else f"{axes['program'].word(program)}, {where}"


def _steps_words(pairs: Sequence[Pair]) -> str:
    """After how many steps the first call is repaid, from the network of the fewest to that of the
    most."""
    steps = sorted(pair.repaid for pair in pairs if pair.repaid is not None)
    words = [units.size(count) for count in steps]
    if len(words) < len(pairs):
        words.append("never here")
    return words[0] if words[0] == words[-1] else f"{words[0]} … {words[-1]}"


def _repaid_words(answers: Answers) -> Iterator[str]:
    """When torch.compile has repaid itself, a sentence for each program and device."""
    for (advice, _, program, device), pairs in answers.items():
        if advice != _COMPILE:
            continue
        where = _where(program, device, pairs)
        known = [
            (pair.repaid, f"{FAMILIES[pair.followed.family].a} of {pair.network}{_cached(pair)}")
            for pair in pairs
            if pair.repaid is not None
        ]
        if not known:
            yield f"{advice} never repays itself here ({where}): its step is not shorter."
            continue
        (least, first), (most, last) = min(known), max(known)
        steps = f"{units.size(least)} steps ({first})"
        if len(known) > 1:
            steps = f"{units.size(least)} ({first}) to {units.size(most)} steps ({last})"
        never = len(pairs) - len(known)
        rest = f", and never for {never} of {len(pairs)} rows" if never else ""
        yield f"After {steps} {advice} has repaid itself here, by medians ({where}){rest}."


def _cached(pair: Pair) -> str:
    had = pair.followed.counters.get("cached_graphs")
    return ", compiled before into a cache on disk" if had else ""


def _plain_rows(
    claim: Claim, row: Row, rows: Sequence[Row], by_work: Mapping[Items, Row]
) -> Iterator[tuple[Row, str]]:
    """The rows that differ from `row` in not following `claim` alone, and how it is followed."""
    configuration = row.configuration
    if claim.key == _ACCUMULATE:
        if _ACCUMULATE not in configuration:
            yield from _accumulating(row, rows)
        return
    value = row.axes.value(configuration, claim.key) or claim.plain
    follows = value in claim.better if claim.better else value != claim.plain
    if follows and (claim.only is None or claim.only in configuration.items()):
        plain = by_work.get(_items(row, {**configuration, claim.key: claim.plain}))
        if plain is not None and plain is not row:
            yield plain, row.axes[claim.key].word(value)


def _accumulating(row: Row, rows: Sequence[Row]) -> Iterator[tuple[Row, str]]:
    """Those that sum the gradients of K batches whose rows together are the batch of `row`."""
    work = _items(row, row.configuration)
    for other in rows:
        batches = other.configuration.get(_ACCUMULATE, "")
        if not batches or not (row.batch.isdigit() and other.batch.isdigit()):
            continue
        if int(other.batch) * int(batches) == int(row.batch):
            alike = {**other.configuration, "batch": row.batch, _ACCUMULATE: "1"}
            if _items(other, alike) == work:
                yield other, f"instead of {batches} batches"


def _items(row: Row, configuration: Configuration) -> Items:
    """The configuration, without what goes without saying."""
    unsaid = {_ACCUMULATE: "1", "loader": "0"}
    return frozenset(
        (key, value)
        for key, value in configuration.items()
        if value != unsaid.get(key, row.axes[key].plainest)
    )


def _pair(followed: Row, plain: Row) -> Pair:
    # Imported here because scipy takes longer to load than a refusal takes.
    from crossover_bench.answers.peers.analysis import ratio_interval  # noqa: PLC0415

    if len(followed.samples) != len(plain.samples):
        return Pair(followed, plain, plain.median / followed.median, None, None)
    ratios = plain.samples / followed.samples
    low, high = ratio_interval(ratios, plain.instances, followed.instances) or (None, None)
    return Pair(followed, plain, median_of(ratios), low, high)
