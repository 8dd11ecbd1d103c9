# SPDX-License-Identifier: Apache-2.0
"""The answer: which crossover it is about, that no word goes against the rows, and what it is at a
glance."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from crossover_bench.answers.answer.glance import glance, reach
from crossover_bench.answers.answer.measured import at_each_batch
from crossover_bench.answers.answer.words import MOST_WORDS, Glance
from crossover_bench.answers.predict import answer as predicting
from crossover_bench.answers.predict.answer import predictions
from crossover_bench.curves.crossover import GPU_WINS, Comparison, Crossover, Question, comparisons
from crossover_bench.curves.crossover_words import claim, doubt
from crossover_bench.curves.headline import Answer, foremost, way
from crossover_bench.files import loading
from crossover_bench.files.rows import File
from crossover_bench.show.charts.strip import draw_strips
from crossover_bench.show.page.svg import inline
from crossover_bench.show.strip import SIDES, Segment, segments_of, strip_text
from crossover_bench.study.study import OURS, Study
from crossover_bench.tests import synthetic, synthetic_steps
from crossover_bench.tests.synthetic_sweep import (
    ALL,
    DISC_MODELS,
    DISC_SIZES,
    EAGER,
    LARGE,
    PINNED,
    RESIDENT,
    Seconds,
    by_batch,
    crossing,
    epochs,
    heart_on,
    trained,
    ways,
)
from tools.sources import tracked_results
from tools.stages import thorough

AUTO = ("auto", "resident")
# The newest of each machine; in continuous integration all.
RESULTS = tracked_results()
if not thorough():
    RESULTS = [*{path.parent: path for path in sorted(RESULTS)}.values()]


@pytest.fixture
def told(read):
    """What is said of a file with `configurations`, whose times are `seconds`."""

    def tell(configurations: list[dict[str, str]], seconds: Seconds, **options: int) -> Glance:
        file = read(trained(configurations, seconds, **options))
        return glance(Study(file, programs=(OURS,)))

    return tell


# --- words


def test_it_takes_no_words_apart(read):
    file = read(trained(ways(100, RESIDENT), by_batch(b100="cuda")))
    named = Question(sides=("slow cores", "fast card"))
    compared = [
        replace(pair, crossover=replace(pair.crossover, question=named))
        for pair in comparisons(file)
    ]
    sentence = glance(Study(file, compared=compared, programs=(OURS,))).sentence
    assert (
        "programs, the fast card wins at every size measured, 22 to 11,201,190 parameters,"
        in sentence
    )


def _alternating(way, params):
    """The GPU wins at every second size of disc."""
    place = sorted(DISC_SIZES).index(params)
    return 1.0 if way["device"] == "cpu" else 0.5 + place % 2


@pytest.mark.parametrize(
    ("seconds", "repetitions", "sentence", "words"),
    [
        (
            *(lambda way, params: 1 / crossing(22_500.0)(way, params), 9),
            *(r"With our own programs, the GPU wins only up to 22,\d00 parameters", ()),
        ),
        # Too many words for a sentence: what is not sure stays so.
        (
            *(_alternating, 9),
            *(r"With our own programs, the GPU wins at some sizes of the fully connected", ()),
        ),
        (
            *(lambda way, params: 1.0 if params > 1e7 else _alternating(way, params), 9),
            *(
                r"With our own programs, there is no sure winner on the fully connected",
                (),
            ),
        ),
        (
            *(lambda way, params: 1.0, 9),
            r"With our own programs, there is no sure winner \(equal within noise at 11 of 11 ",
            ("neither surely wins", "holds 1"),
        ),
        (
            *(crossing(5e4), 2),
            r"With our own programs, there is no sure winner \(fewer than 5 repetitions; ",
            ("too few repetitions tell who wins",),
        ),
    ],
)
def test_a_winner_of_small_sizes_or_none_is_said(told, seconds, repetitions, sentence, words):
    answer = told(ways(100, RESIDENT), seconds, repetitions=repetitions)
    assert re.match(sentence, answer.sentence)
    assert all(phrase in answer.lines[0] for phrase in words)
    assert "holds 1" not in words or "times as fast" not in answer.lines[0]
    if repetitions == 2:
        assert {each.side for each in answer.strips.strips[0].segments} == {"open"}


def test_the_share_of_a_ceiling_names_its_precision(read):
    plain = synthetic.cpu_configuration("disc-10", 1)
    entries = synthetic.samples(plain, [2.0] * 9)
    entries += synthetic.samples({**plain, "precision": "bf16"}, [1.0] * 9)
    file = read(synthetic.document(entries))
    assert "parameters) in bf16 at 1" in reach(file, file.rows)
    assert " in " not in reach(file, file.rows[:1])


def test_other_training_is_named(told):
    answer = told(ways(100, RESIDENT, precision="tf32"), crossing(5e4))
    assert answer.sentence.endswith(" at batch 100, tf32 (CPU: f32), data on the GPU.")


@pytest.mark.slow
def test_long_names_make_no_long_answer(read):
    way = {"tiling": "y" * 10_000}
    configurations = [
        {**each, **(way if each["device"] == "cuda" else {})}
        for batch in (10, 20, 50, 100, 200)
        for each in ways(batch, RESIDENT, PINNED)
    ]
    entries = epochs(
        configurations, lambda way, params: crossing(50 * int(way["batch"]))(way, params)
    )
    axes = ({**synthetic.TILING, "values": ["plain", "y" * 10_000]},)
    file = read(synthetic.document(entries, gpu="synthetic GPU", axes=axes))
    answer = glance(Study(file))
    assert "(10,0" in answer.lines[0] and max(map(len, (answer.sentence, *answer.lines))) < 900


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ({"cpu": "disc-3", "cuda": "disc-4"}, "nothing to compare"),
        ({"cuda": "disc-4"}, "Only the GPU was measured"),
        ({"cpu": "disc-3"}, "No GPU was measured, and no curve"),
        (
            {"cpu": "heart", "cuda": "heart"},
            "With our own programs, the CPU trains heart faster than the GPU.",
        ),
        ({}, "No training epoch was measured, so there is no answer"),
    ],
)
def test_without_a_curve_it_says_what_there_is(models, expected, read):
    made = {"cpu": lambda model: synthetic.cpu_configuration(model, 1)}
    made["cuda"] = synthetic.gpu_configuration
    entries = [synthetic.failure(synthetic.cpu_configuration("disc-5", 1), "why")]
    for device, model in models.items():
        entries += synthetic.samples(made[device](model), [{"cpu": 1.0, "cuda": 2.0}[device]] * 9)
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    answer = glance(Study(file))
    assert expected in answer.sentence and answer.strips is None
    assert len(models) < 2 or "disc" in str(models) or "times as fast" in answer.lines[0]


# --- the property: every clause that names a winner is held against the rows


def claimed(where: str, sizes: np.ndarray) -> np.ndarray:
    """At which of `sizes` a clause says that its device wins."""
    where = re.sub(r"(?<=\d),(?=\d)", "", where)
    numbers = [float(text) for text in re.findall(r"\d[\d.]*", where)]
    if where.startswith(("at every size measured", "at no size measured")):
        assert not numbers or numbers == [sizes[0], sizes[-1]]
        return np.full(len(sizes), "every" in where)
    inside = np.zeros(len(sizes), dtype=bool)
    for span in where.partition(" (")[0].split(" and "):
        ends = [float(text) for text in re.findall(r"\d[\d.]*", span)]
        low = ends[0] if "from" in span else 0.0
        high = ends[-1] if "up to" in span or len(ends) == 2 else np.inf
        inside |= (sizes >= low) & (sizes <= high)
    return inside


def random_file(
    generator: np.random.Generator, is_open: bool = False
) -> tuple[list[dict[str, str]], dict]:
    """Ways at random batches and sizes, and the true speedup of each: far from 1, so that nine
    repetitions decide it; 1 at the largest sizes of those that are open there."""
    configurations, truth = [], {}
    for batch in generator.choice([10, 50, 100, 500, 1000], generator.integers(1, 4), False):
        for mode in (RESIDENT, ("eager", "resident"), PINNED):
            if generator.random() < 0.3:
                continue
            count = generator.integers(2, len(DISC_MODELS) + 1)
            first = generator.integers(0, len(DISC_MODELS) - count + 1)
            models = DISC_MODELS[first : first + count]
            configurations += ways(int(batch), mode, models=models)
            signs = generator.choice([-1, 1]) * np.ones(count)
            for place in generator.integers(0, count, generator.integers(0, 3)):
                signs[place:] *= -1
            if is_open:
                signs[-generator.integers(1, 3) :] = 0
            for model, sign in zip(models, signs, strict=True):
                ratio = np.exp(sign * generator.uniform(0.3, 1.5))
                truth[str(batch), ", ".join(mode), synthetic.MODELS[model][0]] = ratio
    return configurations, truth


def _speed_up(truth: dict) -> Seconds:
    def seconds(way: dict[str, str], params: float) -> float:
        mode = f"{way.get('execution')}, {way.get('data')}"
        return 1.0 if way["device"] == "cpu" else 1 / truth[way["batch"], mode, params]

    return seconds


@pytest.mark.slow
def test_no_clause_claims_a_winner_that_the_rows_deny(read):
    """Takes long, as sixty files are needed for each kind of clause."""
    checked = 0
    for seed in range(60):
        configurations, truth = random_file(np.random.default_rng(seed))
        if not configurations:
            continue
        file = read(trained(configurations, _speed_up(truth), seed=seed))
        compared = comparisons(file)
        for pair in compared:
            clause = re.fullmatch(r"the (GPU|CPU) wins (.*)", claim(pair.crossover))
            if clause is None:
                continue
            wins = np.array([truth[pair.batch, way(pair), size] > 1 for size in pair.sizes])
            inside = claimed(clause[2], pair.sizes)
            if clause[1] == "CPU":
                assert not wins[inside].any(), (seed, clause[0])
            else:
                assert (wins == inside).all(), (seed, clause[0])
            checked += 1
        if first := foremost(compared):
            first_claim = claim(first.crossover).removeprefix("the ")
            sentence = glance(Study(file, compared=compared, programs=(OURS,))).sentence
            assert first_claim in sentence or "at some sizes of the" in sentence, (seed, sentence)
    assert checked > 100


def test_neither_strip_nor_doubt_denies_a_sure_winner(read):
    early = 0
    for seed in range(12):
        configurations, truth = random_file(np.random.default_rng(seed), is_open=True)
        file = read(trained(configurations, _speed_up(truth), seed=seed))
        for crossover in (each.crossover for each in comparisons(file)):
            segments = segments_of(crossover)
            for size, winner in zip(crossover.sizes, crossover.winners, strict=True):
                shown = {each.side for each in segments if each.low <= size <= each.high}
                assert not winner or shown & {"open", SIDES[winner]}, (seed, crossover)
            if crossover.kind == "ambiguous" and crossover.low and GPU_WINS in crossover.winners:
                assert re.match("GPU at .* parameters, and at every size from ", doubt(crossover))
                early += 1
    assert early > 3


# --- which crossover answers


@pytest.fixture
def answered(read):
    """The headline of a file with `configurations`, whose times are `seconds`."""

    def answer(configurations: list[dict[str, str]], seconds: Seconds) -> list[Answer]:
        file = read(trained(configurations, seconds))
        return Study(file).headline

    return answer


def slower(execution: str, times: float) -> Seconds:
    """Of a crossover at 50,000 parameters: the GPU is so many `times` as slow in one execution."""
    return lambda way, params: (
        (times if (way["device"], way.get("execution")) == ("cuda", execution) else 1.0)
        * crossing(5e4)(way, params)
    )


def small_only(way: dict[str, str], params: float) -> float:
    """Of graphs, which win small sizes and lose all others."""
    if way["device"] == "cpu":
        return 1.0
    if way["execution"] == "graph":
        return (params / 1e6) ** 0.3 if params < 3e6 else 2.0
    return (1e4 / params) ** 0.3


def late_unless_stepwise(way: dict[str, str], params: float) -> float:
    return crossing(500.0 if way.get("loss") == "step" else 5e4)(way, params)


def execution(pair: Comparison) -> str:
    return pair.gpu.configuration["execution"]


def precision(pair: Comparison) -> str:
    return pair.common["precision"]


TF32 = ways(100, RESIDENT, precision="tf32")
STEPWISE = ways(100, RESIDENT, loss="step")


@pytest.mark.parametrize(
    ("configurations", "seconds", "fact", "expected"),
    [
        # The batch is the networks' own, and not the one that suits the GPU.
        *(
            ([*ways(10, RESIDENT), *ways(100, RESIDENT), *ways(1000, RESIDENT)], times, fact, value)
            for times in (by_batch(b10="cpu", b100="5e4", b1000="cuda"),)
            for fact, value in (
                (lambda pair: pair.batch, "100"),
                (lambda pair: pair.crossover.size, pytest.approx(5e4, rel=0.1)),
            )
        ),
        # Of two other batches the smaller answers.
        (
            *([*ways(1000, RESIDENT), *ways(10, RESIDENT)], by_batch(b10="cpu", b1000="cuda")),
            *(lambda pair: (pair.batch, pair.crossover.kind), ("10", "never")),
        ),
        # A batch with less than half as many sizes as another does not.
        *(
            (
                [*ways(100, RESIDENT, models=ALL[-sizes:]), *ways(1000, RESIDENT)],
                *(by_batch(b100="cuda", b1000="cpu"), lambda pair: pair.batch, batch),
            )
            for sizes, batch in ((2, "1000"), (5, "1000"), (6, "100"), (11, "100"))
        ),
        # A way with few sizes does not beat a full curve, nor does auto.
        (
            *([*ways(100, EAGER), *ways(100, RESIDENT, models=LARGE)], crossing(5e4)),
            lambda pair: (execution(pair), pair.crossover.kind, len(pair.sizes)),
            ("eager", "once", 11),
        ),
        (
            [*ways(100, EAGER, RESIDENT), *ways(100, AUTO, models=ALL[1:])],
            *(
                crossing(5e4),
                lambda pair: (execution(pair) == "auto", len(pair.sizes)),
                (False, 11),
            ),
        ),
        # Of ways with the same sizes the earliest wins, but for auto; small sizes are no early win.
        (ways(100, EAGER, RESIDENT), slower("eager", 4), execution, "graph"),
        (ways(100, EAGER, RESIDENT, AUTO, PINNED), slower("auto", 1.2), execution, "auto"),
        (ways(100, RESIDENT, EAGER), small_only, execution, "eager"),
        # Plain training answers before any other.
        ([*TF32, *ways(100, RESIDENT, models=ALL[:5])], crossing(100), precision, "f32"),
        (TF32, crossing(100), precision, "tf32 (CPU: f32)"),
        (
            *([*STEPWISE, *ways(100, RESIDENT)], late_unless_stepwise),
            *(lambda pair: pair.crossover.size, pytest.approx(5e4, rel=0.1)),
        ),
        (STEPWISE, late_unless_stepwise, lambda pair: pair.gpu.configuration["loss"], "step"),
    ],
)
def test_the_first_answer_is_about(
    configurations: list[dict[str, str]],
    seconds: Seconds,
    fact: Callable[[Comparison], object],
    expected: object,
    answered,
):
    assert fact(answered(configurations, seconds)[0].comparison) == expected


def test_resident_data_with_few_sizes_does_not_come_first(answered):
    answers = answered([*ways(100, PINNED), *ways(100, RESIDENT, models=LARGE)], crossing(5e4))
    assert [answer.data for answer in answers] == ["copied", "resident"]
    answers = answered(ways(100, EAGER, RESIDENT, AUTO, PINNED), slower("auto", 1.2))
    assert [answer.data for answer in answers] == ["resident", "copied"]
    assert execution(answers[1].comparison) == "graph"


def test_the_same_way_is_shown_at_other_batches(read):
    batches = (10, 100, 1000)
    file = read(
        trained(
            [configuration for batch in batches for configuration in ways(batch, RESIDENT)],
            by_batch(b10="cpu", b100="5e4", b1000="cuda"),
        )
    )
    compared = comparisons(file)
    shown = at_each_batch(compared, foremost(compared))
    assert [(pair.batch, pair.crossover.kind) for pair in shown] == [
        ("100", "once"),
        ("10", "never"),
        ("1000", "always"),
    ]


def test_a_network_on_no_curve_that_disagrees_is_an_exception(answered):
    configurations = [*ways(100, RESIDENT), *ways(10, RESIDENT, models=["heart"])]
    (answer,) = answered(configurations, heart_on("cpu"))
    (exception,) = answer.exceptions
    assert exception.common["model"] == "heart" and exception.winner == "cpu"
    assert exception.ratio == pytest.approx(0.5, rel=0.05)
    (answer,) = answered(configurations, heart_on("cuda"))
    assert answer.exceptions == ()
    assert answer.largest.parameters == 11_201_190


@pytest.mark.parametrize(("batch", "model"), [(100, "disc-3"), (10, "heart")])
def test_one_size_has_no_headline(batch, model, answered):
    assert answered(ways(batch, RESIDENT, models=[model]), crossing(100)) == []


# --- at a glance


PROGRAMS = re.compile("In PyTorch|PyTorch's own loop |With the fastest programs, ")


def seen(file: File) -> Glance:
    compared = comparisons(file)
    predicted = predictions([file]).of(file)
    for lists in ([], predicted):
        answer = glance(study := Study(file, lists, compared))
        for sentence in answer.sentences:
            assert 0 < len(sentence.split()) <= MOST_WORDS
            assert sentence.endswith(".") and sentence.count(". ") == 0
            assert answer.strips is None or PROGRAMS.match(sentence) or study.foremost is None
        assert len(answer.lines) <= (4 if "cannot tell" in answer.sentence else 3)
        if answer.strips:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("COLUMNS", "80")
                assert max(map(len, strip_text(answer.strips).splitlines())) <= 80
    return glance(Study(file, predicted, compared))


@pytest.mark.slow
@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_every_committed_file_has_a_short_sentence(path):
    file = loading.load_file(path)
    answer = seen(file)
    assert "predicted" in answer.sentence or not answer.strips or file.machine.gpu


@pytest.fixture
def few_cards(monkeypatch):
    """To predict a card takes as long as all else; the files above have each of them."""
    monkeypatch.setattr(predicting, "DEFAULT_CARDS", predicting.DEFAULT_CARDS[::2])


@pytest.mark.slow
@pytest.mark.usefixtures("few_cards")
@pytest.mark.parametrize(
    "configurations",
    [
        ways(100, RESIDENT),
        ways(100, RESIDENT, PINNED),
        ways(100, RESIDENT, precision="tf32"),
        [*ways(10, RESIDENT), *ways(100, RESIDENT), *ways(1000, RESIDENT)],
        [*ways(100, PINNED), *ways(100, RESIDENT, models=LARGE)],
        ways(10, RESIDENT, models=["heart"]),
    ],
)
# Few repetitions decide less: whatever else, one of these two.
@pytest.mark.parametrize(
    ("at", "repetitions"), [(1.0, 9), (5e4, 9), (5e4, 2), (1e9, 9), ("equal", 2), ("small", 9)]
)
def test_every_synthetic_file_has_a_short_sentence(read, configurations, at, repetitions):
    seconds = {
        "equal": lambda way, params: 1.0,
        "small": lambda way, params: 1 / crossing(22_500.0)(way, params),
    }.get(at) or crossing(at)
    seen(read(trained(configurations, seconds, repetitions=repetitions)))


@pytest.mark.slow
@pytest.mark.usefixtures("few_cards")
def test_sweeps_without_epochs_or_devices_have_a_short_sentence(read, wide, five_files):
    """Takes long, as each file is predicted for."""
    cpu = synthetic.samples(synthetic.cpu_configuration("disc-3", 1))
    gpu = synthetic.samples(synthetic.gpu_configuration("disc-4"))
    failed = [synthetic.failure(synthetic.cpu_configuration("disc-3", 1), "why " * 99)]
    for entries in (cpu, gpu, cpu + gpu, failed):
        seen(read(synthetic.document(entries, gpu="W" * 10_000)))
    alone = read(synthetic_steps.machine(epochs=False), "alone.json")
    assert seen(alone).strips.measure == "batch"
    for file in (wide, *five_files, read(synthetic.sweep()), read(synthetic_steps.machine())):
        seen(file)


def test_a_file_of_a_busy_machine_cannot_tell(read):
    document = synthetic.sweep()
    calm = glance(Study(read(document)))
    for place, entry in enumerate(document["benchmarks"]):
        entry["cpu_wait"] = 0.2 + place / 1000
    busy = seen(read(document))
    assert busy.sentence.startswith("This file cannot tell: other programs used the processors")
    assert calm.sentence in busy.lines[0] and busy.lines[1:] == calm.lines
    assert calm.to_share and not busy.to_share


@pytest.mark.parametrize("faster", ["cpu", "cuda"])
def test_a_network_on_no_curve_has_a_mark_in_its_own_colour(read, faster):
    file = read(
        trained([*ways(100, RESIDENT), *ways(10, RESIDENT, models=["heart"])], heart_on(faster))
    )
    (mark,) = seen(file).strips.marks
    side = {"cpu": "cpu", "cuda": "gpu"}[faster]
    assert (mark.name, mark.size, mark.side) == ("heart", 1522.0, side)


# --- segments

SIZES = (10.0, 100.0, 1000.0, 10_000.0)
ONCE = Crossover("once", 300.0, 200.0, 400.0, (300.0,), sizes=SIZES, winners=(-1, -1, 1, 1))


def undecided(kind: str, low: float | None, *winners: int) -> Crossover:
    return Crossover(kind, None, low, None, (), sizes=SIZES, winners=winners)


@pytest.mark.parametrize(
    ("crossover", "expected"),
    [
        (undecided("always", None, 1, 1, 1, 1), [(10, 10_000, "gpu")]),
        (undecided("never", None, -1, -1, -1, -1), [(10, 10_000, "cpu")]),
        (undecided("ambiguous", None, 0, 0, 0, 0), [(10, 10_000, "open")]),
        (undecided("ambiguous", 50.0, -1, 0, 0, 0), [(10, 50, "cpu"), (50, 10_000, "open")]),
        (undecided("ambiguous", 1500.0, 1, 1, -1, 0), [(10, 100, "gpu"), (100, 10_000, "open")]),
        (
            undecided("ambiguous", 2000.0, -1, 1, 1, 0),
            [(10, 100, "open"), (100, 1000, "gpu"), (1000, 10_000, "open")],
        ),
        (
            undecided("several", None, 1, 1, -1, -1),
            [(10, 100, "gpu"), (100, 1000, "open"), (1000, 10_000, "cpu")],
        ),
        # The interval is open.
        (ONCE, [(10, 200, "cpu"), (200, 400, "open"), (400, 10_000, "gpu")]),
        (replace(ONCE, low=None), [(10, 400, "open"), (400, 10_000, "gpu")]),
        (replace(ONCE, high=None), [(10, 200, "cpu"), (200, 10_000, "open")]),
    ],
)
def test_segments_by_hand(crossover, expected):
    assert segments_of(crossover) == tuple(Segment(*each) for each in expected)


def test_what_is_predicted_is_hatched_and_said_to_be(read):
    file = read(synthetic.sweep(gpu=False))
    answer = seen(file)
    strips = answer.strips
    assert " vs any card (predicted) · " in answer.to_share
    assert [strip.label for strip in strips.strips] == ["any card, fastest"]
    assert strips.conditions.endswith("; launches decide")
    assert "; predicted for any card) as graphs" in answer.sentence
    assert answer.lines[1].endswith(" if one kernel keeps the card.")
    assert strips.is_predicted and "predicted, not measured" in strip_text(strips)
    chart = draw_strips(strips)
    assert b"<pattern" in chart.pictures.svg and b"predicted, not measured" in chart.pictures.svg
    assert "predicted" in chart.alt
    shown = inline(chart.pictures.svg, "s1-", ("strips", ""), kind="wide", styles={})
    references = set(re.findall(r'(?:url\(#|href="#)([^")]+)', shown))
    assert references <= set(re.findall(r' id="([^"]+)"', shown)) and "<pattern" in shown
    measured = draw_strips(seen(read(synthetic.sweep(), "gpu.json")).strips)
    assert b"<pattern" not in measured.pictures.svg and b"predicted" not in measured.pictures.svg
