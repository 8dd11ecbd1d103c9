# SPDX-License-Identifier: Apache-2.0
"""The answer of a file that measured a GPU: of curves over sizes, batches or copies, or of single
networks."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from crossover_bench.answers.answer.predicted import of_this_cpu, predicted
from crossover_bench.answers.answer.words import (
    MOST_LINES,
    MOST_STRIPS,
    NAME_LENGTH,
    WITH_OURS,
    Glance,
    as_strips,
    batch_of,
    kind_of,
    line_to_share,
    mark_of,
    name_of,
    off_the_ladders,
    sentence_of,
    shortest,
    spread,
    strip_of,
)
from crossover_bench.answers.paired import pairs_sentence
from crossover_bench.answers.predict import host
from crossover_bench.answers.predict.data import card_of
from crossover_bench.counts.cards import load_cards
from crossover_bench.counts.costs import find_cost
from crossover_bench.curves.crossover import Comparison, SpeedUp
from crossover_bench.curves.crossover_words import (
    claim,
    crossover_words,
    ratio_words,
    speed_up_words,
)
from crossover_bench.curves.headline import Answer, foremost, ladders_of, over_passes, unusual
from crossover_bench.curves.network import on_device, training_rows
from crossover_bench.files.families import EPOCH, FORWARD, MINIBATCH, TRAINING, steps_of
from crossover_bench.files.quantities import TIME
from crossover_bench.place import RUN
from crossover_bench.show.strip import Mark
from crossover_bench.study.machines import short_gpu
from crossover_bench.study.programs import (
    OTHERS,
    Answered,
    by_program,
    loader_words,
    names_of,
    pytorch_loop,
    seconds,
)
from crossover_bench.study.study import PYTORCH, Study
from crossover_bench.words import units
from crossover_bench.words.text import counted, printable, whole

_NO_PYTORCH = (
    f"PyTorch's own loop was not measured on both devices here; {RUN} --with-peers measures it."
)


def of_measured(study: Study, told: Sequence[Answered]) -> Glance:
    """A strip for each of `told`; the lines are of the last, which has most ways and batches."""
    main, file = told[-1], study.file
    first, compared, answers = main.comparison, main.study.comparisons, main.study.headline
    batches = at_each_batch(compared, first)
    gpu = short_gpu(printable(file.machine.gpu or "GPU", NAME_LENGTH))
    strips = [strip_of(f"{gpu}, {each.label}", each.comparison) for each in told[:-1]]
    strips += [
        strip_of(
            f"{gpu}, {main.label}{f', {batch_of(curve)}' if len(batches) > 1 else ''}",
            curve,
            _marks(main.study, curve) if curve is first else (),
        )
        for curve in batches[: MOST_STRIPS - len(strips)]
    ]
    largest = answers[0].largest
    lines = [*(loader_words(study) if PYTORCH in study.programs else ())]
    lines += [speed_up_words(largest, main.lead)] if largest else []
    others = [foremost(compared, networks) for networks in ladders_of(compared)[1:]]
    lines += _moved(batches[1:], list(filter(None, others)), answers[0])
    lines += _why_they_differ(study, told)
    lines += _with_one_program(study)
    lines += pairs_sentence(file, first, "the ") or _placed(answers)
    batch = "" if len(batches) > 1 else f", {batch_of(first)}"
    shown = as_strips(strips, first, f"{kind_of(first)}{batch}")
    sentences = [sentence_of(each.comparison, lead=each.lead) for each in told]
    if PYTORCH in study.programs and told[0].of != PYTORCH and first.gpu.quantity is TIME:
        sentence, curve = _pytorch_here(study, gpu)
        sentences.insert(0, sentence)
        if curve:
            strip = strip_of(f"{gpu}, PyTorch", curve, is_predicted=True)
            shown = replace(shown, strips=(strip, *shown.strips))
            told = [Answered(PYTORCH, "", "PyTorch (predicted)", study, curve), *told]
    return Glance(shown, tuple(sentences), tuple(lines), line_to_share(file, told, gpu))


def _pytorch_here(study: Study, gpu: str) -> tuple[str, Comparison | None]:
    """What PyTorch's loop would do on the GPU that others measured, a sentence, and the curve that
    it is of; that it is not known, and None."""
    card = card_of(study.file, load_cards())
    for verdict, curve in predicted(study, PYTORCH):
        if verdict.card == card:
            beside = f"predicted for the {gpu}{of_this_cpu(verdict)}"
            return sentence_of(curve, beside, lead=names_of(study, PYTORCH)[0]), curve
    return _NO_PYTORCH, None


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
    moves = [f"{batch_of(curve)}: {crossover_words(curve.crossover)}" for curve in batches[:3]]
    moves += [f"{kind_of(curve)}: {crossover_words(curve.crossover)}" for curve in ladders[:2]]
    for network in answer.exceptions[:2]:
        size = f"{units.count(network.parameters)} parameters"
        moves.append(f"on {name_of(network.model)} ({size}) {ratio_words(network, 2)}")
    return [f"What moves it: {'; '.join(moves)}."] if moves else []


def _placed(answers: Sequence[Answer]) -> list[str]:
    """What the other placement of the data would change."""
    if len(answers) < 2:
        return [f"What would change it: {RUN} --refine narrows the interval."]
    other = answers[1]
    how = {"resident": "with all data on the GPU", "copied": "copying each batch to the GPU"}
    words = crossover_words(other.comparison.crossover)
    return [f"What would change it: {how[other.data]}: {words}."]


def _marks(study: Study, first: Comparison) -> tuple[Mark, ...]:
    """The networks on no ladder, in the way of `first`, or in the fastest where it lacks them."""
    chosen: dict[str, SpeedUp] = {}
    for family in TRAINING:
        for network in off_the_ladders(study.file, study.speed_ups(family)):
            is_its_way = network.gpu.configuration == first.gpu.configuration
            if not unusual(network) and (is_its_way or network.model not in chosen):
                chosen[network.model] = network
    return spread(map(mark_of, chosen.values()))


def of_curves(
    curves: Sequence[Comparison],
    name: Callable[[Comparison], str],
    place: str,
    of: str = "",
    much: Sequence[str] = (),
) -> Glance:
    """Of a file without epochs: from which size on the GPU wins on each of `curves`. `place` says
    what the first is of, and the sentences of `much` by how much the GPU wins there."""
    strips = [strip_of(name(curve), curve) for curve in curves[:MOST_STRIPS]]
    others = (f"{name(curve)}: {crossover_words(curve.crossover)}." for curve in curves[1:4])
    first = curves[0]
    words = f"{WITH_OURS}, {claim(first.crossover)}"
    sentence = shortest(words, [f", {place.format(name(first))}", ""])
    return Glance(as_strips(strips, first, of), (sentence,), (*much, *others)[:MOST_LINES])


def at_the_largest_batch(study: Study, first: Comparison) -> list[str]:
    """By how much the same way wins there, a sentence; none of copies."""
    alike = [
        ratio
        for ratio in study.speed_ups(MINIBATCH)
        if ratio.model == first.model and ratio.gpu.configuration == first.gpu.configuration
    ]
    largest = max(alike, key=lambda ratio: whole(ratio.batch) or 0, default=None)
    return [speed_up_words(largest)] if largest else []


def of_networks(study: Study, families: Sequence[str] = TRAINING, does: str = "trains") -> Glance:
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
    sentence = f"{WITH_OURS}, the GPU {does} {of} {how} than the CPU."
    return Glance(None, (sentence,), lines)


def _of_one(only: SpeedUp, does: str, how: str) -> str:
    """Which device does it better with the only network that both have, a sentence."""
    sides = {"cpu": ("CPU", "GPU"), "gpu": ("GPU", "CPU")}.get(only.winner or "")
    if sides is None:
        return f"{WITH_OURS}, it is not sure which device {does} {name_of(only.model)} {how}."
    winner, other = sides
    return f"{WITH_OURS}, the {winner} {does} {name_of(only.model)} {how} than the {other}."


def of_passes(study: Study) -> Glance:
    """Of a file in which nothing was trained on the GPU."""
    if passes := over_passes(study.comparisons):
        return of_curves(passes, batch_of, "in forward passes at {}", "forward passes")
    return of_networks(study, (FORWARD,), "computes forward passes of")


def _why_they_differ(study: Study, told: Sequence[Answered]) -> list[str]:
    """How many times as long PyTorch's loop takes as the fastest on the smallest network of both,
    and what it does meanwhile, a sentence; none where one of them is not told."""
    sides = {each.of: each.study.speed_ups() for each in told}
    if len(sides) < 2 or PYTORCH not in sides:
        return []
    loop, fastest = (
        {each.model: each for each in reversed(networks) if not unusual(each) or of == PYTORCH}
        for of, networks in sides.items()
    )
    both = [loop[model] for model in loop if model in fastest]
    if not both:
        return []
    first = min(both, key=lambda each: each.parameters)
    ratios = (
        seconds(getattr(first, side)) / seconds(getattr(fastest[first.model], side))
        for side in ("cpu", "gpu")
    )
    cpu, gpu = (units.significant(ratio, 2) for ratio in ratios)
    does = _operations(study, first) or "starts each operation by itself"
    return [
        f"Why they differ: in a step of {name_of(first.model)} Python {does}; the loop takes {cpu} "
        f"times as long as the fastest program on the CPU, {gpu} times on the GPU. One CUDA graph "
        "of the step, torch.compile or a larger batch closes the gap."
    ]


def _with_one_program(study: Study) -> list[str]:
    """From which size the GPU wins where programs that no sentence tells of train on both devices,
    a line; none without any."""
    told = [each for each in by_program(study) if each.of == OTHERS]
    claims = (f"{each.label}: {crossover_words(each.comparison.crossover)}" for each in told)
    return [f"Other programs on both devices: {'; '.join(claims)}."] if told else []


def _operations(study: Study, network: SpeedUp) -> str:
    """How many operations Python starts in a step of `network`, and what each takes of it where
    batches lie ready, a phrase; empty where that is not known of both devices."""
    loop = pytorch_loop(study)
    lean = next((each for each in loop.speed_ups() if each.model == network.model), None)
    cost = find_cost(network.model, float(network.batch or 0))
    if lean is None or cost is None or lean.batch != network.batch:
        return ""
    alike = (row for row in loop.file.rows if (row.model, row.batch) == (lean.model, lean.batch))
    count, steps = host.calls(cost), steps_of(next(alike))
    cpu, gpu = (units.seconds(seconds(side) / steps / count, 2) for side in (lean.cpu, lean.gpu))
    return f"starts about {count:.0f} operations, in {cpu} each on the CPU and {gpu} on the GPU"
