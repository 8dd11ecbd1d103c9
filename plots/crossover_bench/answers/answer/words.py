# SPDX-License-Identifier: Apache-2.0
"""What an answer at a glance is made of: sentences of at most MOST_WORDS, strips, marks, and the
line to share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crossover_bench.curves.crossover import Comparison, SpeedUp
from crossover_bench.curves.crossover_words import claim
from crossover_bench.curves.headline import placement, unusual
from crossover_bench.curves.network import ODD
from crossover_bench.files.families import FORWARD
from crossover_bench.files.ladders import DISC
from crossover_bench.files.rows import File
from crossover_bench.show.strip import Mark, Strip, Strips, segments_of, side_of
from crossover_bench.study.machines import short_processor
from crossover_bench.study.programs import NAMES, Answered
from crossover_bench.study.study import OURS
from crossover_bench.words import units
from crossover_bench.words.text import printable

MOST_WORDS = 25
MOST_STRIPS = 5
MOST_LINES = 3
_MOST_MARKS = 6
NAME_LENGTH = 24  # characters of a name from the file
WITH_OURS = NAMES[OURS][0]
_DATA = {"resident": "data on the GPU", "copied": "each batch copied there"}
_PROGRAMS = {"eager": " launch by launch", "graph": " as graphs", "graph-epoch": " as one graph"}
_KINDS = {DISC.networks: "fully connected networks"}  # what people call the networks of a ladder


@dataclass(frozen=True, slots=True)
class Glance:
    """`strips` is None where no curve is compared; `sentences` has a fact for each pair of
    programs that is told of, the asker's first; `lines` say by how much,
    what moves it and what would change it, as far as the file knows. `to_share` says answer,
    machine and program in one line; empty where no curve over network sizes answers."""

    strips: Strips | None
    sentences: tuple[str, ...]
    lines: tuple[str, ...]
    to_share: str = ""

    @property
    def sentence(self) -> str:
        """All that it answers."""
        return " ".join(self.sentences)


def strip_of(
    label: str, curve: Comparison, marks: tuple[Mark, ...] = (), *, is_predicted: bool = False
) -> Strip:
    answer = curve.crossover
    return Strip(label, segments_of(answer), is_predicted, marks, answer.size)


def as_strips(strips: Iterable[Strip], first: Comparison, conditions: str = "") -> Strips:
    """`strips`, the first of which is of `first`, with what they ask."""
    quantity = first.gpu.quantity
    which = {"batch": "which batch size", "copies": "how many copies of a network"}
    title = f"From {which.get(first.measure, 'which network size')} does a GPU {quantity.win}?"
    return Strips(title, tuple(strips), first.measure, conditions, quantity)


def line_to_share(file: File, told: Sequence[Answered], gpu: str) -> str:
    curve = told[-1].comparison
    if curve.gpu.quantity.is_priced:
        return ""  # one line has no room for the prices
    cpu = file.machine.cpu
    processor = printable(short_processor(cpu.model), NAME_LENGTH)
    claims = (
        f"{each.label}: {claim(each.comparison.crossover).removeprefix('the ')}" for each in told
    )
    parts = (
        f"{'; '.join(claims)}; {work_of(curve)}{_data(curve)}",
        f"{processor}, {cpu.cores_words}, vs {gpu}",
        f"crossover {printable(file.software.commit[:7], 7)}".strip(),
    )
    return " · ".join(parts)


def sentence_of(curve: Comparison, predicted: str = "", lead: str = "") -> str:
    """Who wins from which size with the programs that `lead` names, and as much of the conditions
    as MOST_WORDS leave room for; `predicted` says of which card it is, which was not measured."""
    kind, batch = kind_of(curve), units.written(curve.batch)
    training = f" at batch {batch}" if batch else ""
    training = f" in forward passes{training}" if curve.family == FORWARD else training
    also = f", {name_of(unusual(curve))}" if unusual(curve) else ""
    data = _data(curve)
    places = [
        *(f", on {kind}{training}{also}{data}", f",{training}{also}{data}"),
        *(f",{training}{data}", f", on {kind}", ""),
    ]
    if predicted:
        ways = curve.gpu.configuration
        is_told = "program" not in ways and curve.family != FORWARD  # else the lead says enough
        how = _PROGRAMS.get(ways["execution"], "") if is_told else ""
        places = [f"{how}{place}" for place in places]
    wins = curve.gpu.quantity.wins
    article, beside = ("a", f" ({predicted})") if predicted else ("the", "")
    lead = f"{lead}, " if lead else ""
    if curve.crossover.kind == "ambiguous":  # of a few repetitions, whatever their medians say
        some = f"there is no sure winner on the {kind}{training}{beside}, see the strip"
    else:
        some = f"{article} GPU {wins} at some sizes of the {kind}{training} and not at"
        some += f" others{beside}, see the strip"
    words = claim(curve.crossover, article=article, beside=predicted)
    return shortest(f"{lead}{words}", places, _capitalized(f"{lead}{some}"))


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _data(curve: Comparison) -> str:
    """Where the data is while the GPU trains, behind a comma; empty of forward passes."""
    return "" if curve.family == FORWARD else f", {_DATA[placement(curve)]}"


def shortest(text: str, places: Sequence[str], instead: str = "") -> str:
    """`text` with the first of `places` that leaves it at MOST_WORDS; `instead` where none does."""
    text = _capitalized(text)
    for place in places:
        if len(f"{text}{place}".split()) <= MOST_WORDS:
            return f"{text}{place}."
    return f"{instead or ' '.join(text.split()[: MOST_WORDS - 1])}."


def kind_of(curve: Comparison) -> str:
    return _KINDS.get(curve.networks, name_of(curve.networks))


def mark_of(network: SpeedUp) -> Mark:
    return Mark(name_of(network.model), network.parameters, side_of(network))


def spread(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """At most _MOST_MARKS, the user's own networks before the others."""
    familiar = [mark for mark in marks if mark.name not in ODD]
    ordered = sorted(familiar, key=lambda mark: not mark.name.startswith("mlp-"))
    return tuple(ordered[:_MOST_MARKS])


def batch_of(curve: Comparison) -> str:
    return f"batch {units.written(curve.batch)}"


def work_of(curve: Comparison) -> str:
    """The batch; before it "forward passes at" where nothing was trained."""
    return f"{'forward passes at ' if curve.family == FORWARD else ''}{batch_of(curve)}"


def name_of(text: str) -> str:
    return printable(text, NAME_LENGTH)


def off_the_ladders(file: File, networks: Iterable[SpeedUp]) -> list[SpeedUp]:
    return [
        network
        for network in networks
        if not any(ladder.has(network.model) for ladder in file.ladders)
    ]
