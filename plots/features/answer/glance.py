# SPDX-License-Identifier: Apache-2.0
"""The answer of a file at a glance: a strip and a sentence of at most MOST_WORDS for PyTorch's loop
and for the fastest programs, and a few lines."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from plots import units
from plots.core.bounds import Ceilings
from plots.core.cards import load_cards
from plots.core.crossover import Comparison, SpeedUp
from plots.core.crossover_words import claim, crossover_words, ratio_words, speed_up_words
from plots.core.headline import (
    Answer,
    foremost,
    ladders_of,
    over_batches,
    over_passes,
    placement,
    unusual,
)
from plots.core.machines import short_gpu, short_processor
from plots.core.network import ODD, best, epoch_rows, on_device, step_rows, training_rows
from plots.core.paired import pairs_sentence
from plots.core.programs import (
    NAMES,
    Answered,
    answered,
    loader_words,
    names_of,
    why_they_differ,
)
from plots.core.series import device_label
from plots.core.strip import Mark, Strip, Strips, segments_of, side_of
from plots.core.study import OURS, PYTORCH, Study, once
from plots.features.copies.analysis import copies_sentences, over_copies
from plots.features.predict.analysis import NOT_MEASURED
from plots.features.predict.answer import Verdict, if_one_kernel, shown_ways
from plots.features.predict.data import card_of
from plots.features.predict.fit import SO_FAR
from plots.file.families import EPOCH, FAMILIES, FORWARD, MINIBATCH, TRAINING
from plots.file.ladders import DISC
from plots.file.quantities import TIME
from plots.file.rows import MOST_DISTURBED, File, Row, median_of
from plots.text import counted, printable, whole

MOST_WORDS = 25
_MOST_STRIPS = 5
_MOST_LINES = 3
_MOST_MARKS = 6
_ALIKE = 4 / 3  # sizes of cards that differ by less are no difference beside their bands
_ANY = "any card"
_NAME = 24  # characters of a name from the file
_WITH_OURS = NAMES[OURS][0]
_NO_PYTORCH = (
    "PyTorch's own loop was not measured on both devices here; ./run --with-peers measures it."
)
_PLACES = {"batch": "training {} step by step", "copies": "training copies of {} at once"}
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


@once
def glance(study: Study) -> Glance:
    """What the file says of the study's programs (plots/core/programs.py); where it has no GPU's
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
        return _of_measured(study, told)
    if curves := over_batches(study.comparisons) or over_copies(study):
        place, much = _PLACES[curves[0].measure], _at_the_largest_batch(study, curves[0])
        return _of_curves(curves, lambda curve: _name(curve.model), place, much=much)
    if on_device([*epoch_rows(file), *step_rows(file)], "cuda"):
        return _of_networks(study)
    if on_device(training_rows(file, FORWARD), "cuda"):
        return _of_passes(study)
    predicted = {of: _predicted(study, of) for of in programs}
    return _of_cards(study, predicted) if any(predicted.values()) else _of_cpu(study)


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


# --- a measured GPU


def _of_measured(study: Study, told: Sequence[Answered]) -> Glance:
    """A strip for each of `told`; the lines are of the last, which has most ways and batches."""
    main, file = told[-1], study.file
    first, compared, answers = main.comparison, main.study.comparisons, main.study.headline
    batches = at_each_batch(compared, first)
    gpu = short_gpu(printable(file.machine.gpu or "GPU", _NAME))
    strips = [_strip(f"{gpu}, {each.label}", each.comparison) for each in told[:-1]]
    strips += [
        _strip(
            f"{gpu}, {main.label}{f', {_batch(curve)}' if len(batches) > 1 else ''}",
            curve,
            _marks(main.study, curve) if curve is first else (),
        )
        for curve in batches[: _MOST_STRIPS - len(strips)]
    ]
    largest = answers[0].largest
    lines = [*(loader_words(study) if PYTORCH in study.programs else ())]
    lines += [speed_up_words(largest)] if largest else []
    others = [foremost(compared, networks) for networks in ladders_of(compared)[1:]]
    lines += _moved(batches[1:], list(filter(None, others)), answers[0])
    lines += why_they_differ(told)
    lines += pairs_sentence(file, first, "the ") or _placed(answers)
    batch = "" if len(batches) > 1 else f", {_batch(first)}"
    shown = _strips(strips, first, f"{_kind(first)}{batch}")
    sentences = [_sentence(each.comparison, lead=each.lead) for each in told]
    if PYTORCH in study.programs and told[0].of != PYTORCH and first.gpu.quantity is TIME:
        sentence, curve = _pytorch_here(study, gpu)
        sentences.insert(0, sentence)
        if curve:
            strip = _strip(f"{gpu}, PyTorch", curve, is_predicted=True)
            shown = replace(shown, strips=(strip, *shown.strips))
            told = [Answered(PYTORCH, "", "PyTorch (predicted)", study, curve), *told]
    return Glance(shown, tuple(sentences), tuple(lines), _to_share(file, told, gpu))


def _pytorch_here(study: Study, gpu: str) -> tuple[str, Comparison | None]:
    """What PyTorch's loop would do on the GPU that others measured, a sentence, and the curve that
    it is of; that it is not known, and None."""
    card = card_of(study.file, load_cards())
    for verdict, curve in _predicted(study, PYTORCH):
        if verdict.card == card:
            beside = f"predicted for the {gpu}{_of_this_cpu(verdict)}"
            return _sentence(curve, beside, lead=names_of(study, PYTORCH)[0]), curve
    return _NO_PYTORCH, None


def _strip(
    label: str, curve: Comparison, marks: tuple[Mark, ...] = (), *, is_predicted: bool = False
) -> Strip:
    answer = curve.crossover
    return Strip(label, segments_of(answer), is_predicted, marks, answer.size)


def at_each_batch(compared: Sequence[Comparison], first: Comparison) -> list[Comparison]:
    """`first`, and the same way at other batches, the smallest first."""
    others = {
        curve.batch: curve
        for curve in compared
        if curve.family == EPOCH
        and curve.networks == first.networks
        and curve.cpu.candidates
        and curve.gpu.configuration == first.gpu.configuration
        and unusual(curve) == unusual(first)
        and curve.batch != first.batch
    }
    return [first, *sorted(others.values(), key=lambda curve: whole(curve.batch) or 0)]


def _moved(
    batches: Sequence[Comparison], ladders: Sequence[Comparison], answer: Answer
) -> list[str]:
    """In one line: other batches, other ladders, and networks on no curve that disagree."""
    moves = [f"{_batch(curve)}: {crossover_words(curve.crossover)}" for curve in batches[:3]]
    moves += [f"{_kind(curve)}: {crossover_words(curve.crossover)}" for curve in ladders[:2]]
    for network in answer.exceptions[:2]:
        size = f"{units.count(network.parameters)} parameters"
        moves.append(f"on {_name(network.model)} ({size}) {ratio_words(network, 2)}")
    return [f"What moves it: {'; '.join(moves)}."] if moves else []


def _placed(answers: Sequence[Answer]) -> list[str]:
    """What the other placement of the data would change."""
    if len(answers) < 2:
        return ["What would change it: ./run --refine narrows the interval."]
    other = answers[1]
    how = {"resident": "with all data on the GPU", "copied": "copying each batch to the GPU"}
    words = crossover_words(other.comparison.crossover)
    return [f"What would change it: {how[other.data]}: {words}."]


def _marks(study: Study, first: Comparison) -> tuple[Mark, ...]:
    """The networks on no ladder, in the way of `first`, or in the fastest where it lacks them."""
    chosen: dict[str, SpeedUp] = {}
    for family in TRAINING:
        for network in _off_the_ladders(study.file, study.speed_ups(family)):
            is_its_way = network.gpu.configuration == first.gpu.configuration
            if not unusual(network) and (is_its_way or network.model not in chosen):
                chosen[network.model] = network
    return _spread(map(_mark, chosen.values()))


def _of_curves(
    curves: Sequence[Comparison],
    name: Callable[[Comparison], str],
    place: str,
    of: str = "",
    much: Sequence[str] = (),
) -> Glance:
    """Of a file without epochs: from which size on the GPU wins on each of `curves`. `place` says
    what the first is of, and the sentences of `much` by how much the GPU wins there."""
    strips = [_strip(name(curve), curve) for curve in curves[:_MOST_STRIPS]]
    others = (f"{name(curve)}: {crossover_words(curve.crossover)}." for curve in curves[1:4])
    first = curves[0]
    words = f"{_WITH_OURS}, {claim(first.crossover)}"
    sentence = _shortest(words, [f", {place.format(name(first))}", ""])
    return Glance(_strips(strips, first, of), (sentence,), (*much, *others)[:_MOST_LINES])


def _at_the_largest_batch(study: Study, first: Comparison) -> list[str]:
    """By how much the same way wins there, a sentence; none of copies."""
    alike = [
        ratio
        for ratio in study.speed_ups(MINIBATCH)
        if ratio.model == first.model and ratio.gpu.configuration == first.gpu.configuration
    ]
    largest = max(alike, key=lambda ratio: whole(ratio.batch) or 0, default=None)
    return [speed_up_words(largest)] if largest else []


def _of_networks(study: Study, families: Sequence[str] = TRAINING, does: str = "trains") -> Glance:
    """Of a file with a GPU's times and no curve of both devices: of each network the plainest
    training of `families`."""
    rows = [row for family in families for row in training_rows(study.file, family)]
    if not on_device(rows, "cpu"):
        missing = "Only the GPU was measured; without the CPU's times there is nothing to compare."
        return Glance(None, (missing,), ())
    ratios = [ratio for family in families for ratio in study.speed_ups(family)]
    if not ratios:
        missing = (
            "CPU and GPU were measured, but no network on both, so there is nothing to compare."
        )
        return Glance(None, (missing,), ())
    ratios.sort(key=lambda ratio: (not unusual(ratio), ratio.ratio))
    networks = list({ratio.model: ratio for ratio in ratios}.values())
    lines = tuple(
        ": ".join(filter(None, (unusual(ratio), speed_up_words(ratio)))) for ratio in networks[:3]
    )
    how = networks[0].gpu.quantity.how
    if len(networks) == 1:
        return Glance(None, (_of_one(networks[0], does, how),), lines)
    wins = sum(ratio.winner == "gpu" for ratio in networks)
    of = f"{wins} of {counted(len(networks), 'network')}"
    sentence = f"{_WITH_OURS}, the GPU {does} {of} {how} than the CPU."
    return Glance(None, (sentence,), lines)


def _of_one(only: SpeedUp, does: str, how: str) -> str:
    """Which device does it better with the only network that both have, a sentence."""
    sides = {"cpu": ("CPU", "GPU"), "gpu": ("GPU", "CPU")}.get(only.winner or "")
    if sides is None:
        return f"{_WITH_OURS}, it is not sure which device {does} {_name(only.model)} {how}."
    winner, other = sides
    return f"{_WITH_OURS}, the {winner} {does} {_name(only.model)} {how} than the {other}."


def _of_passes(study: Study) -> Glance:
    """Of a file in which nothing was trained on the GPU."""
    if passes := over_passes(study.comparisons):
        return _of_curves(passes, _batch, "in forward passes at {}", "forward passes")
    return _of_networks(study, (FORWARD,), "computes forward passes of")


# --- cards that were predicted


_Predicted = Sequence[tuple[Verdict, Comparison]]


def _predicted(study: Study, of: str) -> _Predicted:
    """What each card would do, and from which size it would win, with the programs `of`."""
    verdicts = study.pytorch_verdicts if of == PYTORCH else study.verdicts
    return [(verdict, verdict.comparison) for verdict in verdicts if verdict.comparison]


def _of_cards(study: Study, predicted: dict[str, _Predicted]) -> Glance:
    file, strips, sentences, told = study.file, list[Strip](), list[str](), list[Answered]()
    decide = card = ""
    for of, pairs in predicted.items():
        if not pairs:
            continue
        verdict, first = pairs[0]
        made = _each_once(
            _strip(
                short_gpu(of_card.card.name),
                curve,
                _spread(map(_mark, _others(file, of_card))) if of != PYTORCH else (),
                is_predicted=True,
            )
            for of_card, curve in pairs[:_MOST_STRIPS]
        )
        card = f"the {short_gpu(verdict.card.name)}"
        if len(made) == 1 < len(pairs):
            made, card, decide = [replace(made[0], label=_ANY)], _ANY, "; launches decide"
        lead, label = names_of(study, of)
        told.append(Answered(of, lead, label, study, first))
        strips += [replace(strip, label=f"{strip.label}, {label}") for strip in made]
        beside = f"predicted for {card}{_of_this_cpu(verdict)}"
        sentences.append(_sentence(first, beside, lead=lead))
    # The lines are of our programs where these are told of: theirs have the most networks.
    verdict, main = next(pairs[0] for pairs in reversed(predicted.values()) if pairs)
    lines = (*_by_how_much(verdict, main, short_gpu(verdict.card.name)),)
    lines += (*_what_moves(file, verdict), f"{_measure_it(file)} {SO_FAR}")
    shown = _strips(strips, main, f"{_kind(main)}, {_work(main)}{decide}")
    share = _to_share(file, told, f"{card.removeprefix('the ')} (predicted)")
    return Glance(shown, tuple(sentences), lines, share)


def _of_this_cpu(verdict: Verdict) -> str:
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


def _by_how_much(verdict: Verdict, first: Comparison, name: str) -> list[str]:
    largest = float(first.sizes[-1])
    for _, network in shown_ways(verdict):
        if network.parameters != largest or network.family == MINIBATCH or not network.low:
            continue
        cpu = units.seconds(median_of(network.cpu.samples[0]))
        low, _, high = network.gpu.samples[0].tolist()
        return [
            f"At the largest, {_name(network.model)} with {units.count(largest)} parameters, the "
            f"{name} would be {_factor(network)} times as fast: {cpu} "
            f"{FAMILIES[network.family].a} on this CPU, "
            f"{' to '.join(units.seconds_ends(low, high, 2))} {NOT_MEASURED}."
        ]
    return []


def _what_moves(file: File, verdict: Verdict) -> list[str]:
    """One kernel for the epoch, and other networks, in a line."""
    kept = if_one_kernel(verdict)
    kernel = [f"Crossover of our programs: {kept}."] if kept else []
    moves = " ".join([*_other_networks(file, verdict), *kernel])
    return [moves] if moves else []


def _other_networks(file: File, verdict: Verdict) -> list[str]:
    networks = [network for network in _others(file, verdict) if network.low]
    if not networks:
        return []
    factors = ", ".join(f"{_name(network.model)} {_factor(network)}" for network in networks[:4])
    times = f"{short_gpu(verdict.card.name)}'s speed over this CPU's"
    return [f"What moves it: the kind of network. The {times}: {factors}."]


def _others(file: File, verdict: Verdict) -> list[SpeedUp]:
    """The predicted networks that are on no ladder of `file`."""
    return _off_the_ladders(file, (network for _, network in shown_ways(verdict)))


def _factor(ratio: SpeedUp) -> str:
    return f"{units.significant(ratio.low or 0, 2)} to {units.significant(ratio.high or 0, 2)}"


def _measure_it(file: File) -> str:
    reason = file.machine.gpu_reason.removeprefix("none ").strip("()") or "no GPU"
    if file.machine.gpu:
        results = on_device([row for row in file.own_rows if not row.failure], "cuda")
        wanted = "of it trains a network" if results else f"of it has {_wanted(file)}"
        reason = f"there is a GPU, {file.machine.gpu}, but no row {wanted}"
    return (
        "What would change it: ./run on a machine with a GPU measures it "
        f"(here: {printable(reason, 100)})."
    )


def _wanted(file: File) -> str:
    """What rows are asked for: a time is a result."""
    quantity = next((row.quantity for row in file.own_rows if not row.failure), TIME)
    return "a result" if quantity is TIME else quantity.noun


# --- a CPU alone


def _of_cpu(study: Study) -> Glance:
    file, verdicts = study.file, study.verdicts
    rows = epoch_rows(file) or step_rows(file)
    if not rows:
        return Glance(None, (_no_training(file),), ())
    lines = [reach(file, rows)]
    copies = copies_sentences(study)[:1]
    if verdicts and not copies:
        lines += _other_networks(file, verdicts[0])
    lines += [*copies, _measure_it(file)]
    missing = "No GPU was measured, and no curve of networks to predict one from."
    if on_device([row for row in file.own_rows if not row.failure], "cuda"):
        missing = "The GPU trained no network in this file, so there is no answer on training."
    return Glance(None, (missing,), tuple(lines))


def _no_training(file: File) -> str:
    """Why there is no answer in a file without an epoch or step of bench's, a sentence."""
    if any(row.as_is and row.failure is None for row in file.peers):
        return (
            "PyTorch alone trained what was measured; the answer is under Your network on the "
            "page, and in python -m plots advise."
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


# --- words


def _strips(strips: Iterable[Strip], first: Comparison, conditions: str = "") -> Strips:
    """`strips`, the first of which is of `first`, with what they ask."""
    quantity = first.gpu.quantity
    which = {"batch": "which batch size", "copies": "how many copies of a network"}
    title = f"From {which.get(first.measure, 'which network size')} does a GPU {quantity.win}?"
    return Strips(title, tuple(strips), first.measure, conditions, quantity)


def _to_share(file: File, told: Sequence[Answered], gpu: str) -> str:
    curve = told[-1].comparison
    if curve.gpu.quantity.is_priced:
        return ""  # one line has no room for the prices
    cpu = file.machine.cpu
    processor = printable(short_processor(cpu.model), _NAME)
    claims = (
        f"{each.label}: {claim(each.comparison.crossover).removeprefix('the ')}" for each in told
    )
    parts = (
        f"{'; '.join(claims)}; {_work(curve)}{_data(curve)}",
        f"{processor}, {cpu.cores_words}, vs {gpu}",
        f"crossover {printable(file.software.commit[:7], 7)}".strip(),
    )
    return " · ".join(parts)


def _sentence(curve: Comparison, predicted: str = "", lead: str = "") -> str:
    """Who wins from which size with the programs that `lead` names, and as much of the conditions
    as MOST_WORDS leave room for; `predicted` says of which card it is, which was not measured."""
    kind, batch = _kind(curve), units.written(curve.batch)
    training = f" at batch {batch}" if batch else ""
    training = f" in forward passes{training}" if curve.family == FORWARD else training
    also = f", {_name(unusual(curve))}" if unusual(curve) else ""
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
    return _shortest(f"{lead}{words}", places, _capitalized(f"{lead}{some}"))


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _data(curve: Comparison) -> str:
    """Where the data is while the GPU trains, behind a comma; empty of forward passes."""
    return "" if curve.family == FORWARD else f", {_DATA[placement(curve)]}"


def _shortest(text: str, places: Sequence[str], instead: str = "") -> str:
    """`text` with the first of `places` that leaves it at MOST_WORDS; `instead` where none does."""
    text = _capitalized(text)
    for place in places:
        if len(f"{text}{place}".split()) <= MOST_WORDS:
            return f"{text}{place}."
    return f"{instead or ' '.join(text.split()[: MOST_WORDS - 1])}."


def _kind(curve: Comparison) -> str:
    return _KINDS.get(curve.networks, _name(curve.networks))


def _mark(network: SpeedUp) -> Mark:
    return Mark(_name(network.model), network.parameters, side_of(network))


def _spread(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """At most _MOST_MARKS, the user's own networks before the others."""
    familiar = [mark for mark in marks if mark.name not in ODD]
    ordered = sorted(familiar, key=lambda mark: not mark.name.startswith("mlp-"))
    return tuple(ordered[:_MOST_MARKS])


def _batch(curve: Comparison) -> str:
    return f"batch {units.written(curve.batch)}"


def _work(curve: Comparison) -> str:
    """The batch; before it "forward passes at" where nothing was trained."""
    return f"{'forward passes at ' if curve.family == FORWARD else ''}{_batch(curve)}"


def _name(text: str) -> str:
    return printable(text, _NAME)


def _off_the_ladders(file: File, networks: Iterable[SpeedUp]) -> list[SpeedUp]:
    return [
        network
        for network in networks
        if not any(ladder.has(network.model) for ladder in file.ladders)
    ]
