# SPDX-License-Identifier: Apache-2.0
"""The answer of a file in sentences: the headline, what disagrees with it, and by how much."""

import math
from collections.abc import Sequence

import numpy as np

from plots import units
from plots.core.bounds import Ceilings
from plots.core.crossover import Comparison, SpeedUp, regret, speed_ups
from plots.core.crossover_words import claim, ratio_words, size_range, speed_up_words
from plots.core.headline import (
    Answer,
    headline,
    ladders_of,
    over_batches,
    over_passes,
    unusual,
    way,
)
from plots.core.network import best, epoch_rows, on_device, step_rows
from plots.core.paired import pairs_sentence
from plots.core.series import device_label
from plots.features.copies.analysis import copies_sentences, over_copies
from plots.features.threads.analysis import more_threads, threads_sentence
from plots.file.families import FAMILIES, MINIBATCH
from plots.file.ladders import networks_of_any
from plots.file.rows import File, Row, median_of
from plots.text import printable, whole

LONGEST = 900  # characters that a sentence may have, with what it says of disagreement
_NO_LOSS = 0.0005  # a share of the time that is said as 0.0 %
_MOST = 3  # other batches, or networks, that a sentence names
_NAME = 60  # characters of a name from the file
ONLY_GPU = "Only the GPU was measured; without the CPU's times there is nothing to compare."
_NOTHING_ALIKE = (
    "CPU and GPU were measured, but no network on both with the same batch size and precision, so "
    "there is nothing to compare."
)
_DATA = {"resident": "with the data on the GPU", "copied": "copying each batch"}


def sentences(file: File, compared: Sequence[Comparison], predicted: str = "") -> list[str]:
    """What `file` says about the GPU, or without one about the CPU: the answer, then more.

    `compared` are its comparisons(), `predicted` a clause on GPUs that it did not measure, for a
    file without one. The first holds for what it names, and names what in the file
    disagrees with it. It is about epochs; about training steps where the file has no epoch.
    """
    epochs, steps = epoch_rows(file), step_rows(file)
    copies = copies_sentences(file, over_copies(file))
    if not epochs and not steps:
        passes = [
            f"In forward passes at batch {units.written(one.batch)} ({_way(one)}) "
            f"{claim(one.crossover)}."
            for one in over_passes(compared)
        ]
        if predicted and not passes:
            passes = [f"{predicted[:1].upper()}{predicted[1:]}."]
        return passes or copies or [no_training(file)]
    batches = _over_batches(compared)
    if not epochs:
        return _one_sided(file, steps, predicted) or _of_steps(file, batches)
    answered = _one_sided(file, epochs, predicted) or _of_epochs(file, compared)
    return [*answered, *batches, *copies]


def no_training(file: File) -> str:
    """Why there is no answer in a file without an epoch or step of bench's, a sentence."""
    if any(row.as_is and row.failure is None for row in file.peers):
        return (
            "PyTorch alone trained what was measured; the answer is under Your network on the "
            "page, and in python -m plots advise."
        )
    if file.copies:
        return "Copies of networks alone were measured; crossover --copies says what they take."
    return "No training epoch was measured, so there is no answer in this file."


def _one_sided(file: File, rows: Sequence[Row], predicted: str) -> list[str]:
    """What is said of `rows` that are all of one device; nothing where they are of both."""
    if not on_device(rows, "cpu"):
        return [ONLY_GPU]
    if not on_device(rows, "cuda"):
        clauses = [f"No GPU's times yet ({why_no_gpu(file)})", predicted, reach(file, rows)]
        first = "; ".join(filter(None, clauses)) + "."
        return [first, *(threads_sentence(file, one) for one in more_threads(file)[:1])]
    return []


def _of_epochs(file: File, compared: Sequence[Comparison]) -> list[str]:
    answered = []
    for networks in ladders_of(compared):
        if found := headline(file, compared, networks):
            answered += [_paragraph(file, answer) for answer in found]
            answered += [speed_up_words(found[0].largest)] if found[0].largest else []
    if answered:
        return answered
    ratios = speed_ups(file, compared=compared)
    if ratios:
        networks = _name(networks_of_any(file.ladders))
        return [
            f"CPU and GPU have fewer than two {networks} in common at one batch size, so there is "
            f"no crossover. {speed_up_words(_largest(ratios))}"
        ]
    return [_NOTHING_ALIKE]


def _of_steps(file: File, batches: Sequence[str]) -> list[str]:
    """The answer of a file without epochs; `batches` are _over_batches()."""
    ratios = speed_ups(file, MINIBATCH)
    if batches:
        return [*batches, speed_up_words(_largest(ratios))]
    if ratios:
        return [
            "CPU and GPU have no network in common at two batch sizes, so there is no crossover. "
            f"{speed_up_words(_largest(ratios))}"
        ]
    return [_NOTHING_ALIKE]


def _over_batches(compared: Sequence[Comparison]) -> list[str]:
    """From which batch size on the GPU wins, of each network in a clause; none without any."""
    found = over_batches(compared)
    clauses = []
    for one in found[:_MOST]:
        training = ", ".join(filter(None, [_way(one), _name(unusual(one))]))
        clauses.append(f"on {_name(one.model)} ({training}) {claim(one.crossover)}")
    if len(found) > _MOST:
        clauses.append(f"{len(found) - _MOST} more networks are in the table")
    return [f"Over batch size, step by step: {'; '.join(clauses)}."] if clauses else []


def _paragraph(file: File, answer: Answer) -> str:
    """The answer, what the file's pairs say of it, what it costs, then what disagrees with it."""
    one = answer.comparison
    batch = units.written(one.batch or "?")
    training = ", ".join(filter(None, [f"batch {batch}", _name(unusual(one))]))
    place = f"On {one.networks} at {training}, {_DATA[answer.data]} ({_way(one)})"
    said = f"{place}, {claim(one.crossover)}"
    if one.crossover.kind not in ("always", "never"):
        said += f"; measured: {len(one.sizes)} sizes, {size_range(one.sizes, one.measure)}"
    said += "."
    more = [
        *pairs_sentence(file, one, "the "),
        *_cost(one),
        *_elsewhere(answer),
        *_exceptions(answer),
    ]
    return " ".join([said, *more])


def _cost(one: Comparison) -> list[str]:
    """What following the crossover loses, in a sentence; none where it loses nothing that shows."""
    lost = regret(one.crossover, one.cpu, one.gpu)
    if lost is None or lost.largest < _NO_LOSS:
        return []
    return [
        f"Following that at each size measured loses {100 * lost.mean:.1f} % of the "
        f"{one.gpu.quantity.noun}, "
        f"{100 * lost.largest:.1f} % at most (at {units.count(lost.at)} parameters)."
    ]


def _elsewhere(answer: Answer) -> list[str]:
    """What other batches say, in a sentence; none where they agree."""
    clauses = []
    most = sorted(answer.elsewhere, key=lambda one: _nearness(one, answer.comparison))[:_MOST]
    for one in answer.elsewhere:
        if one not in most:
            continue
        own = _way(one)
        how = "" if own == _way(answer.comparison) else f" ({own})"
        are_said = np.array_equal(one.sizes, answer.comparison.sizes)
        said = claim(one.crossover, with_sizes=not are_said)
        clauses.append(f"at batch {units.written(one.batch or '?')}{how} {said}")
    return _differing("batch sizes", clauses, len(answer.elsewhere))


def _nearness(one: Comparison, main: Comparison) -> tuple[bool, float]:
    """Sorts what differs most first: another kind of answer, then the farther crossover."""
    size, of_main = one.crossover.size, main.crossover.size
    distance = abs(math.log(size / of_main)) if size and of_main else 0.0
    return one.crossover.kind == main.crossover.kind, -distance


def _exceptions(answer: Answer) -> list[str]:
    """The networks that the curve does not speak for, in a sentence."""
    clauses = []
    for one in sorted(answer.exceptions, key=lambda one: -abs(math.log(one.ratio)))[:_MOST]:
        clauses.append(
            f"on {_name(one.model)} ({units.count(one.parameters)} parameters, batch "
            f"{units.written(one.batch or '?')}) {ratio_words(one)}"
        )
    return _differing("networks", clauses, len(answer.exceptions))


def _differing(what: str, clauses: Sequence[str], count: int) -> list[str]:
    """Some of `count` that differ, a clause each, and how many more there are; none of none."""
    if not clauses:
        return []
    more = [f"{count - _MOST} more {what} differ, too"] if count > _MOST else []
    return [f"Other {what} differ: {'; '.join([*clauses, *more])}."]


def _largest(ratios: Sequence[SpeedUp]) -> SpeedUp:
    """Of the largest network, in f32 where that was measured, on the GPU's fastest way; of training
    steps in the largest batch."""
    return max(
        ratios,
        key=lambda one: (
            one.parameters,
            one.precision == "f32",
            (whole(one.batch) or 0) if one.family == MINIBATCH else 0,
            -one.gpu.quantity.cost(median_of(one.gpu.samples[0])),
        ),
    )


def _way(one: Comparison) -> str:
    return _name(way(one))


def _name(text: str) -> str:
    return printable(text, _NAME)


def reach(file: File, rows: Sequence[Row]) -> str:
    """What the largest network of `rows` takes: where a GPU would matter most."""
    is_step = rows[0].family == MINIBATCH  # an epoch has steps of all sizes
    sizes = {
        row.index: (row.counters["params"], row.counters["batch"] if is_step else 0.0)
        for row in rows
    }
    largest, size = max(sizes.values())
    row = best([row for row in rows if sizes[row.index] == (largest, size)])
    samples = f" of {units.count(size)} samples" if size else ""
    rate = row.counters["flops"] / row.median
    peak = Ceilings(file.rows).find("flops", row.configuration)
    models = {row.configuration["model"] for row in rows}
    counted = f"({units.count(largest)} parameters)"
    network = f", the largest network measured {counted}," if len(models) > 1 else f" {counted}"
    # The fastest of the largest network may be of any precision, and its ceiling is that one's.
    precision = "" if row.precision == "f32" else f" in {row.precision}"
    share = f", {100 * rate / peak:.0f} % of the multiply-adds it can do{precision}" if peak else ""
    return (
        f"the CPU trains {row.configuration['model']}{network}{precision} at "
        f"{units.seconds(row.median)} {FAMILIES[row.family].a}{samples} on "
        f"{device_label(row).there}: {units.rate(rate, 'FLOP/s')}{share}"
    )


def why_no_gpu(file: File) -> str:
    if file.machine.gpu:
        return f"there is a GPU, {file.machine.gpu}, but no row of it has a result"
    return file.machine.gpu_reason.removeprefix("none ").strip("()") or "no GPU"
