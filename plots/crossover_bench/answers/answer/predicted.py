# SPDX-License-Identifier: Apache-2.0
"""The answer of a file without a GPU's times: what cards that were not measured would do."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from crossover_bench.answers.answer.words import (
    MOST_STRIPS,
    Glance,
    as_strips,
    kind_of,
    line_to_share,
    mark_of,
    name_of,
    off_the_ladders,
    sentence_of,
    spread,
    strip_of,
    work_of,
)
from crossover_bench.answers.predict.analysis import NOT_MEASURED
from crossover_bench.answers.predict.answer import Verdict, if_one_kernel, shown_ways
from crossover_bench.answers.predict.fit import SO_FAR
from crossover_bench.curves.crossover import Comparison, SpeedUp
from crossover_bench.curves.network import on_device
from crossover_bench.files.families import FAMILIES, MINIBATCH
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import File, median_of
from crossover_bench.place import RUN
from crossover_bench.show.strip import Strip
from crossover_bench.study.machines import short_gpu
from crossover_bench.study.programs import Answered, names_of
from crossover_bench.study.study import PYTORCH, Study
from crossover_bench.words import units
from crossover_bench.words.text import printable

_ALIKE = 4 / 3  # sizes of cards that differ by less are no difference beside their bands
_ANY = "any card"
Predicted = Sequence[tuple[Verdict, Comparison]]


def predicted(study: Study, of: str) -> Predicted:
    """What each card would do, and from which size it would win, with the programs `of`."""
    verdicts = study.pytorch_verdicts if of == PYTORCH else study.verdicts
    return [(verdict, verdict.comparison) for verdict in verdicts if verdict.comparison]


def of_cards(study: Study, by_program: dict[str, Predicted]) -> Glance:
    file, strips, sentences, told = study.file, list[Strip](), list[str](), list[Answered]()
    decide = card = ""
    for of, pairs in by_program.items():
        if not pairs:
            continue
        verdict, first = pairs[0]
        made = _each_once(
            strip_of(
                short_gpu(of_card.card.name),
                curve,
                spread(map(mark_of, _others(file, of_card))) if of != PYTORCH else (),
                is_predicted=True,
            )
            for of_card, curve in pairs[:MOST_STRIPS]
        )
        card = f"the {short_gpu(verdict.card.name)}"
        if len(made) == 1 < len(pairs):
            made, card, decide = [replace(made[0], label=_ANY)], _ANY, "; launches decide"
        lead, label = names_of(study, of)
        told.append(Answered(of, lead, label, study, first))
        strips += [replace(strip, label=f"{strip.label}, {label}") for strip in made]
        beside = f"predicted for {card}{of_this_cpu(verdict)}"
        sentences.append(sentence_of(first, beside, lead=lead))
    # The lines are of our programs where these are told of: theirs have the most networks.
    verdict, main = next(pairs[0] for pairs in reversed(by_program.values()) if pairs)
    lines = (*_by_how_much(verdict, main, told[-1].lead),)
    lines += (*_what_moves(file, verdict, told[-1].lead), f"{measure_it(file)} {SO_FAR}")
    shown = as_strips(strips, main, f"{kind_of(main)}, {work_of(main)}{decide}")
    share = line_to_share(file, told, f"{card.removeprefix('the ')} (predicted)")
    return Glance(shown, tuple(sentences), lines, share)


def of_this_cpu(verdict: Verdict) -> str:
    """That the CPU's side was predicted, too, where it was."""
    was_measured = verdict.chosen is None or verdict.chosen.was_measured
    return "" if was_measured else " and for this CPU"


def _each_once(strips: Iterable[Strip]) -> list[Strip]:
    """Those of several cards that do not differ as one, which names them all."""
    groups: list[list[Strip]] = []
    for strip in strips:
        alike = (group for group in groups if _are_alike(group[0], strip))
        if group := next(alike, None):
            group.append(strip)
        else:
            groups.append([strip])
    return [replace(group[0], label=", ".join(each.label for each in group)) for group in groups]


def _are_alike(first: Strip, second: Strip) -> bool:
    """Whether the same device wins, from about the same sizes on. Marks are the first strip's."""
    sides = [[segment.side for segment in strip.segments] for strip in (first, second)]
    if sides[0] != sides[1]:
        return False
    segments = zip(first.segments, second.segments, strict=True)
    ends = [(one.high, other.high) for one, other in segments]
    return all(1 / _ALIKE <= one / other <= _ALIKE for one, other in ends)


def _by_how_much(verdict: Verdict, first: Comparison, lead: str) -> list[str]:
    largest = float(first.sizes[-1])
    for _, network in shown_ways(verdict):
        if network.parameters != largest or network.family == MINIBATCH or not network.low:
            continue
        cpu = units.seconds(median_of(network.cpu.samples[0]))
        low, _, high = network.gpu.samples[0].tolist()
        return [
            f"{lead}, the {short_gpu(verdict.card.name)} would be {_factor(network)} times as fast "
            f"on the largest, {name_of(network.model)} with {units.count(largest)} parameters: "
            f"{cpu} {FAMILIES[network.family].a} on this CPU, "
            f"{' to '.join(units.seconds_ends(low, high, 2))} {NOT_MEASURED}."
        ]
    return []


def _what_moves(file: File, verdict: Verdict, lead: str) -> list[str]:
    """One kernel for the epoch, and other networks, in a line."""
    kept = if_one_kernel(verdict)
    kernel = [f"Crossover of our programs: {kept}."] if kept else []
    moves = " ".join([*other_networks(file, verdict, lead), *kernel])
    return [moves] if moves else []


def other_networks(file: File, verdict: Verdict, lead: str) -> list[str]:
    """By how much the card would win or lose on networks on no ladder, a line."""
    networks = [network for network in _others(file, verdict) if network.low]
    if not networks:
        return []
    factors = ", ".join(f"{name_of(network.model)} {_factor(network)}" for network in networks[:4])
    times = f"the {short_gpu(verdict.card.name)}'s speed over this CPU's"
    return [f"What moves it: the kind of network. {lead}, {times}: {factors}."]


def _others(file: File, verdict: Verdict) -> list[SpeedUp]:
    """The predicted networks that are on no ladder of `file`."""
    return off_the_ladders(file, (network for _, network in shown_ways(verdict)))


def _factor(ratio: SpeedUp) -> str:
    return f"{units.significant(ratio.low or 0, 2)} to {units.significant(ratio.high or 0, 2)}"


def measure_it(file: File) -> str:
    reason = file.machine.gpu_reason.removeprefix("none ").strip("()") or "no GPU"
    if file.machine.gpu:
        results = on_device([row for row in file.own_rows if not row.failure], "cuda")
        wanted = "of it trains a network" if results else f"of it has {_wanted(file)}"
        reason = f"there is a GPU, {file.machine.gpu}, but no row {wanted}"
    return (
        f"What would change it: {RUN} on a machine with a GPU measures it "
        f"(here: {printable(reason, 100)})."
    )


def _wanted(file: File) -> str:
    """What rows are asked for: a time is a result."""
    quantity = next((row.quantity for row in file.own_rows if not row.failure), TIME)
    return "a result" if quantity is TIME else quantity.noun
