# SPDX-License-Identifier: Apache-2.0
"""Whether a result file is fit to be committed under results/: what results/README.md asks for."""

import datetime
import re
from collections.abc import Iterator
from pathlib import Path

from crossover_bench.files.families import EPOCH, MINIBATCH
from crossover_bench.files.rows import MOST_DISTURBED, File
from crossover_bench.files.shortcomings import FEWEST_REPETITIONS, own_words
from crossover_bench.words.text import printable

MOST_BYTES = 2_500_000
_SLACK = datetime.timedelta(days=1)  # as zones are up to 14 hours ahead of UTC
LADDER = "ladder"  # the sweep that has what a crossover is made of, and nothing else
FEWEST_STEPS = 3  # repetitions of a training step, which takes up to seconds

# The table of 2016 may be a file of its own: its seven networks with the ceilings.
SEVEN = ("fcn-s", "alexnet-s", "resnet-50", "fcn-r", "alexnet-r", "resnet-56", "lstm")
_SEVEN_FAMILIES = ("Peak", "Minibatch")

_NAME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-(?P<commit>[0-9a-f]{7,40})(-[0-9]+)?\.json")
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")


def faults(file: File, in_place: bool = True) -> list[str]:
    """Why `file` is not fit, a phrase with its remedy each; empty where it is. `in_place`: it also
    has to lie at its place()."""
    phrases = [*_run_faults(file), *_row_faults(file)]
    machine, folder = file.machine.id, file.path.resolve().parent.name
    if not _FOLDER.fullmatch(machine):
        named = printable(machine, 60)
        phrases.append(f"its machine id {named} cannot name a folder: measure again")
    elif in_place and folder != machine:
        phrases.append(f"it lies in {printable(folder, 60)}: move it to results/{machine}/")
    if in_place and not _has_its_name(file):
        phrases.append(f"its name is {printable(file.path.name, 60)}: name it {place(file).name}")
    if file.date.date() > (datetime.datetime.now(datetime.UTC) + _SLACK).date():
        day = file.date.date().isoformat()
        phrases.append(f"its date, {day}, is still to come: set the clock and measure again")
    size = file.path.stat().st_size
    if size > MOST_BYTES:
        phrases.append(
            f"it has {size / 1e3:,.0f} kB, and a file at most {MOST_BYTES / 1e3:,.0f} kB: "
            "measure with fewer repetitions"
        )
    return phrases


def place(file: File) -> Path:
    """Where `file`, whose machine can name a folder, is to be committed."""
    named = _has_its_name(file)
    commit = file.software.commit[:7] or "<commit>"
    name = file.path.name if named else f"{file.date.date().isoformat()}-{commit}.json"
    return Path("results", file.machine.id, name)


def praise(file: File) -> str:
    """What makes `file` fit, in a phrase that names every row that failed."""
    rows = (*file.own_rows, *file.peers)
    failed = [row for row in rows if row.failure and row.failure.outcome == "failed"]
    skipped = sum(row.failure is not None for row in rows) - len(failed)
    flagged = sum(bool(row.warnings) for row in rows)
    parts = [
        f"{len(rows):,} rows of a {file.run.sweep} sweep at commit {file.software.commit[:7]}, "
        "every result verified"
    ]
    if skipped:
        parts.append(f"{skipped} skipped")
    if failed:
        named = ", ".join(
            f"{printable(row.name)} ({printable(row.failure.message)})"
            for row in failed
            if row.failure
        )
        parts.append(f"{len(failed)} failed: {named}")
    if flagged:
        parts.append(f"{flagged} flagged as doubtful")
    return "; ".join(parts)


def _run_faults(file: File) -> Iterator[str]:
    is_table = _is_table_of_2016(file)
    # The question's own rows alone, on a GPU's machine, which few have for long.
    answers = file.run.sweep == LADDER and file.machine.gpu is not None
    for shortcoming in file.shortcomings:
        is_no_fault = shortcoming.is_partial if is_table else answers and shortcoming.is_of_sweep
        if not is_no_fault:
            yield f"{shortcoming.fault}: {shortcoming.remedy}"
    if not file.software.commit:
        yield "it does not state its commit: build in a git checkout"
    if file.software.dirty:
        yield "it was measured with uncommitted changes: measure a clean checkout"


def _is_table_of_2016(file: File) -> bool:
    """Whether it was measured as docs/method/peers.md says for that table."""
    words = [word.partition("=") for word in own_words(file.run.command)]
    given = {name: set(values.split(",")) for name, _, values in words}
    return given == {"--family": set(_SEVEN_FAMILIES), "--model": set(SEVEN)}


def _row_faults(file: File) -> Iterator[str]:
    is_table = _is_table_of_2016(file)
    family, fewest = (MINIBATCH, FEWEST_STEPS) if is_table else (EPOCH, FEWEST_REPETITIONS)
    results = [row for row in file.rows if row.family == family and not row.failure]
    if not results:
        yield f"no {family} row has a result: measure again"
    if is_table and (missing := set(SEVEN) - {row.model for row in results}):
        yield f"it has no result of {', '.join(sorted(missing))}: measure again"
    disturbed = sum(row.is_disturbed for row in results)
    if disturbed > MOST_DISTURBED * len(results):
        yield (
            f"other programs used the processors during {disturbed} of {len(results)} {family} "
            "rows: measure again on an idle machine"
        )
    # How many pairs a size in between needs is its test's to say: few, where both sides are one.
    paired = {size.model for refinement in file.refinements for size in refinement.sizes}
    few = [row for row in results if len(row.samples) < fewest and row.model not in paired]
    if few and file.run.repetitions >= fewest:
        yield (
            f"{len(few)} {family} rows have fewer than {fewest} repetitions, such as "
            f"{printable(few[0].name)}: measure again"
        )
    unnamed = [
        row
        for row in (*file.own_rows, *file.peers)
        if row.failure and not row.failure.message.strip()
    ]
    if unnamed:
        yield (
            f"{len(unnamed)} rows failed without a reason, such as {printable(unnamed[0].name)}: "
            "measure again"
        )


def _has_its_name(file: File) -> bool:
    name = _NAME.fullmatch(file.path.name)
    return name is not None and file.software.commit.startswith(name["commit"])
