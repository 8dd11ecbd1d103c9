# SPDX-License-Identifier: Apache-2.0
"""The answer of a file at a glance: a strip and a sentence for PyTorch's loop and for the fastest
programs, and a few lines."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from crossover_bench.answers.answer.measured import (
    at_the_largest_batch,
    of_curves,
    of_measured,
    of_networks,
    of_passes,
)
from crossover_bench.answers.answer.predicted import measure_it, of_cards, other_networks, predicted
from crossover_bench.answers.answer.words import WITH_OURS, Glance, name_of
from crossover_bench.answers.copies.analysis import copies_sentences, over_copies
from crossover_bench.counts.bounds import Ceilings
from crossover_bench.curves.headline import over_batches
from crossover_bench.curves.network import best, epoch_rows, on_device, step_rows, training_rows
from crossover_bench.curves.series import device_label
from crossover_bench.files.families import FAMILIES, FORWARD, MINIBATCH
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import MOST_DISTURBED, File, Row
from crossover_bench.place import CROSSOVER
from crossover_bench.show.strip import Strips
from crossover_bench.study.programs import answered
from crossover_bench.study.study import Study, once
from crossover_bench.words import units
from crossover_bench.words.text import printable

_PLACES = {"batch": "training {} step by step", "copies": "training copies of {} at once"}


@once
def glance(study: Study) -> Glance:
    """What the file says of the study's programs (study/programs.py); where it has no GPU's
    times, what the study's verdicts predict of cards, the first of which answers."""
    answer = _answer(study)
    doubt = why_it_cannot_tell(study.file)
    if not doubt:
        return answer
    again = f"Measure again on an idle machine. Taken as it is, the file says: {answer.sentence}"
    return Glance(None, (doubt,), (again, *answer.lines))  # no strip, which would look sure


def why_it_cannot_tell(file: File) -> str:
    """Why no answer of `file` can be trusted, a sentence; empty where it can."""
    rows = [*epoch_rows(file), *step_rows(file)]
    disturbed = sum(row.is_disturbed for row in rows)
    if disturbed <= MOST_DISTURBED * len(rows):
        return ""
    return (
        f"This file cannot tell: other programs used the processors during {disturbed} of "
        f"{len(rows)} rows."
    )


def _answer(study: Study) -> Glance:
    file, programs = study.file, study.programs
    if told := [*filter(None, (answered(study, of) for of in programs))]:
        return of_measured(study, told)
    if curves := over_batches(study.comparisons) or over_copies(study):
        place, much = _PLACES[curves[0].measure], at_the_largest_batch(study, curves[0])
        return of_curves(curves, lambda curve: name_of(curve.model), place, much=much)
    if on_device([*epoch_rows(file), *step_rows(file)], "cuda"):
        return of_networks(study)
    if on_device(training_rows(file, FORWARD), "cuda"):
        return of_passes(study)
    pairs = {of: predicted(study, of) for of in programs}
    return of_cards(study, pairs) if any(pairs.values()) else _of_cpu(study)


def machines(glances: Iterable[tuple[File, Glance]]) -> Strips | None:
    """The first strip of each of several files, on one scale; None where none has a strip."""
    drawn = [(file, answer.strips) for file, answer in glances if answer.strips]
    if not drawn:
        return None
    first = drawn[0][1]
    shown = [(file, strips) for file, strips in drawn if strips.measure == first.measure]
    alike = len({strips.conditions for _, strips in shown}) == 1
    labelled = []
    for file, strips in shown:
        conditions = "" if alike else f" ({strips.conditions})"
        label = f"{printable(file.machine.id, 40)}, {strips.strips[0].label}{conditions}"
        labelled.append(replace(strips.strips[0], label=label))
    return replace(first, strips=tuple(labelled), conditions=first.conditions if alike else "")


# --- a CPU alone


def _of_cpu(study: Study) -> Glance:
    file, verdicts = study.file, study.verdicts
    rows = epoch_rows(file) or step_rows(file)
    if not rows:
        return Glance(None, (_no_training(file),), ())
    lines = [reach(file, rows)]
    copies = copies_sentences(study)[:1]
    if verdicts and not copies:
        lines += other_networks(file, verdicts[0], WITH_OURS)
    lines += [*copies, measure_it(file)]
    missing = "No GPU was measured, and no curve of networks to predict one from."
    if on_device([row for row in file.own_rows if not row.failure], "cuda"):
        missing = "The GPU trained no network in this file, so there is no answer on training."
    return Glance(None, (missing,), tuple(lines))


def _no_training(file: File) -> str:
    """Why there is no answer in a file without an epoch or step of bench's, a sentence."""
    if any(row.as_is and row.failure is None for row in file.peers):
        return (
            "PyTorch alone trained what was measured; the answer is under Your network on the "
            f"page, and in {CROSSOVER} advise."
        )
    if training_rows(file, FORWARD):
        return "Only forward passes on the CPU were measured; times says how long they take."
    if file.copies:
        return "Copies of networks alone were measured; crossover --copies says what they take."
    return "No training epoch was measured, so there is no answer in this file."


def reach(file: File, rows: Sequence[Row]) -> str:
    """What the largest network of `rows` takes, where a GPU would matter most: a sentence."""
    is_step = rows[0].family == MINIBATCH  # an epoch has steps of all sizes
    sizes = {
        row.index: (row.counters["params"], row.counters["batch"] if is_step else 0.0)
        for row in rows
    }
    largest, size = max(sizes.values())
    row = best([row for row in rows if sizes[row.index] == (largest, size)])
    samples = f" of {units.count(size)} samples" if size else ""
    of = ", the largest network measured" if len({row.model for row in rows}) > 1 else ""
    if row.quantity is not TIME:
        return (
            f"{row.quantity.of(FAMILIES[row.family].a)}{samples} of {row.model}{of} "
            f"({units.count(largest)} parameters) on {device_label(row).there}: "
            f"{row.quantity.show(row.median)}."
        )
    rate = row.counters["flops"] / row.median
    peak = Ceilings(file.rows).find("flops", row.configuration)
    # The fastest row may be of any precision, and the ceiling is that precision's.
    precision = "" if row.precision == "f32" else f" in {row.precision}"
    share = f", {100 * rate / peak:.0f} % of the multiply-adds it can do{precision}" if peak else ""
    return (
        f"The CPU trains {row.model}{of} ({units.count(largest)} parameters){precision} at "
        f"{units.seconds(row.median)} {FAMILIES[row.family].a}{samples} on "
        f"{device_label(row).there}: {units.rate(rate, 'FLOP/s')}{share}."
    )
