# SPDX-License-Identifier: Apache-2.0
"""The answer in words: which crossover it is about, what it names, and that no word goes against
the rows."""

import re
from dataclasses import replace

import numpy as np
import pytest

from plots.core.crossover import GPU_WINS, Question, comparisons
from plots.core.crossover_words import doubt
from plots.core.headline import Answer, headline
from plots.core.strip import SIDES, segments_of
from plots.features.answer.analysis import LONGEST, reach, sentences
from plots.tests import synthetic
from plots.tests.synthetic_sweep import (
    ALL,
    DISC_MODELS,
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


@pytest.fixture
def told(read):
    """The sentences of a file with `configurations`, whose times are `seconds`."""

    def tell(configurations: list[dict[str, str]], seconds: Seconds, **options: int) -> list[str]:
        file = read(trained(configurations, seconds, **options))
        return sentences(file, comparisons(file))

    return tell


def test_it_takes_no_words_apart(read):
    file = read(trained(ways(100, RESIDENT), by_batch(b100="cuda")))
    named = Question(sides=("slow cores", "fast card"))
    compared = [
        replace(one, crossover=replace(one.crossover, question=named)) for one in comparisons(file)
    ]
    first, *_ = sentences(file, compared)
    assert "the fast card wins at every size measured, 22 to 11,201,190 parameters." in first


def test_a_gpu_that_wins_small_sizes_only(told):
    first, *_ = told(ways(100, RESIDENT), lambda way, params: 1 / crossing(22_500.0)(way, params))
    assert re.search(r"the GPU wins only up to 22,\d00 parameters; measured: 11 sizes", first)


def test_equal_devices_are_not_called_faster(told):
    first, speed_up = told(ways(100, RESIDENT), lambda way, params: 1.0)
    assert "there is no sure winner (equal within noise at 11 of 11 sizes)" in first
    assert "neither surely wins" in speed_up and "times as fast" not in speed_up
    assert "holds 1" in speed_up


def test_too_few_repetitions_tell_nothing(told):
    first, speed_up = told(ways(100, RESIDENT), crossing(5e4), repetitions=2)
    assert "there is no sure winner (fewer than 5 repetitions; " in first
    assert "too few repetitions tell who wins" in speed_up


def test_the_share_of_a_ceiling_names_its_precision(read):
    ways = [
        {**synthetic.cpu_configuration("disc-10", 1), "precision": precision}
        for precision in ("f32", "bf16")
    ]
    entries = [
        entry
        for way, seconds in zip(ways, (2.0, 1.0), strict=True)
        for entry in synthetic.samples(way, [seconds] * 9)
    ]
    file = read(synthetic.document(entries))
    assert "parameters) in bf16 at 1" in reach(file, file.rows)
    assert " in " not in reach(file, file.rows[:1])


def test_other_training_is_named(told):
    first, *_ = told(ways(100, RESIDENT, precision="tf32"), crossing(5e4))
    assert first.startswith("On disc networks at batch 100, tf32 (CPU: f32), with the data on ")


def test_many_batches_are_counted(told):
    batches = (10, 20, 50, 100, 200, 500, 1000)
    configurations = [each for batch in batches for each in ways(batch, RESIDENT)]
    first, *_ = told(
        configurations, lambda way, params: crossing(50 * int(way["batch"]))(way, params)
    )
    assert first.count("at batch") == 4 and "3 more batch sizes differ, too" in first


def test_of_many_batches_those_that_differ_most_are_named(told):
    batches = (10, 20, 50, 100, 200, 500)
    configurations = [each for batch in batches for each in ways(batch, RESIDENT)]

    def seconds(way: dict[str, str], params: float) -> float:
        if way["batch"] == "500":
            return 1.0 if way["device"] == "cpu" else 2.0
        return crossing(50 * int(way["batch"]))(way, params)

    first, *_ = told(configurations, seconds)
    named = re.findall(r"at batch (\d+)", first)
    assert named == ["100", "10", "20", "500"]
    assert "at batch 500 the CPU wins at every size measured" in first


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
    document = synthetic.document(entries, gpu="synthetic GPU", axes=axes)
    file = read(document)
    said = sentences(file, comparisons(file))
    assert "(10,0" in said[0] and "2 more batch sizes" not in said[0]
    assert max(map(len, said)) < LONGEST


def test_one_network_has_a_speed_up(told):
    (only,) = told(ways(10, RESIDENT, models=["heart"]), heart_on("cpu"))
    assert "there is no crossover" in only and "(heart, batch 10) the CPU is" in only


def test_nothing_to_compare_is_said(read):
    cpu = synthetic.samples(synthetic.cpu_configuration("disc-3", 1))
    gpu = synthetic.samples(synthetic.gpu_configuration("disc-4"))
    for entries, expected in (
        (cpu + gpu, "nothing to compare"),
        (gpu, "Only the GPU was measured"),
        ([synthetic.failure(synthetic.cpu_configuration("disc-3", 1), "why")], "no answer"),
    ):
        document = synthetic.document(entries, gpu="synthetic GPU")
        (said,) = sentences(read(document), [])
        assert expected in said


# --- the property: every clause that names a winner is held against the rows


_CLAUSE = re.compile(
    r"at batch (?P<batch>[\d,]+)(?:, (?:with the data on the GPU|copying each batch))?"
    r"(?: \((?P<way>[^)]*)\))?,? the (?P<winner>GPU|CPU) wins (?P<where>(?:[^;.]|\.\d)*)"
)


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
def test_no_clause_claims_a_winner_that_the_rows_deny(told):
    checked = 0
    for seed in range(60):
        configurations, truth = random_file(np.random.default_rng(seed))
        if not configurations:
            continue

        for sentence in told(configurations, _speed_up(truth), seed=seed):
            main = None
            for clause in _CLAUSE.finditer(sentence):
                main = main or clause["way"]
                key = (clause["batch"].replace(",", ""), clause["way"] or main)
                rows = {size: ratio for (*own, size), ratio in truth.items() if tuple(own) == key}
                sizes = np.array(sorted(rows), dtype=float)
                wins = np.array([rows[size] > 1 for size in sizes])
                inside = claimed(clause["where"], sizes)
                if clause["winner"] == "CPU":
                    assert not wins[inside].any(), (seed, sentence)
                else:
                    assert (wins == inside).all(), (seed, clause, sentence)
                checked += 1
    assert checked > 100


def test_neither_strip_nor_doubt_denies_a_sure_winner(read):
    early = 0
    for seed in range(12):
        configurations, truth = random_file(np.random.default_rng(seed), is_open=True)
        file = read(trained(configurations, _speed_up(truth), seed=seed))
        for one in (each.crossover for each in comparisons(file)):
            segments = segments_of(one)
            for size, winner in zip(one.sizes, one.winners, strict=True):
                shown = {each.side for each in segments if each.low <= size <= each.high}
                assert not winner or shown & {"open", SIDES[winner]}, (seed, one)
            if one.kind == "ambiguous" and one.low and GPU_WINS in one.winners:
                assert re.match("GPU at .* parameters, and at every size from ", doubt(one))
                early += 1
    assert early > 3


@pytest.fixture
def answered(read):
    """The headline of a file with `configurations`, whose times are `seconds`."""

    def answer(configurations: list[dict[str, str]], seconds: Seconds) -> list[Answer]:
        file = read(trained(configurations, seconds))
        return headline(file, comparisons(file))

    return answer


def test_the_batch_is_not_the_one_that_suits_the_gpu(answered):
    configurations = [*ways(10, RESIDENT), *ways(100, RESIDENT), *ways(1000, RESIDENT)]
    found = answered(configurations, by_batch(b10="cpu", b100="5e4", b1000="cuda"))
    assert found[0].comparison.batch == "100"
    assert found[0].comparison.crossover.size == pytest.approx(5e4, rel=0.1)
    (answer,) = found
    assert [(one.batch, one.crossover.kind) for one in answer.elsewhere] == [
        ("10", "never"),
        ("1000", "always"),
    ]


def test_of_two_other_batches_the_smaller_answers(answered):
    found = answered(
        [*ways(1000, RESIDENT), *ways(10, RESIDENT)], by_batch(b10="cpu", b1000="cuda")
    )
    assert found[0].comparison.batch == "10"
    assert found[0].comparison.crossover.kind == "never"


@pytest.mark.parametrize(("sizes", "batch"), [(2, "1000"), (5, "1000"), (6, "100"), (11, "100")])
def test_a_batch_with_few_sizes_does_not_answer(answered, sizes, batch):
    configurations = [*ways(100, RESIDENT, models=ALL[-sizes:]), *ways(1000, RESIDENT)]
    found = answered(configurations, by_batch(b100="cuda", b1000="cpu"))
    assert found[0].comparison.batch == batch


def test_a_way_with_few_sizes_does_not_beat_a_full_curve(answered):
    configurations = [*ways(100, EAGER), *ways(100, RESIDENT, models=LARGE)]
    found = answered(configurations, crossing(5e4))
    assert found[0].comparison.gpu.configuration["execution"] == "eager"
    assert found[0].comparison.crossover.kind == "once" and len(found[0].comparison.sizes) == 11


def test_resident_data_with_few_sizes_does_not_come_first(answered):
    configurations = [*ways(100, PINNED), *ways(100, RESIDENT, models=LARGE)]
    found = answered(configurations, crossing(5e4))
    assert [answer.data for answer in found] == ["copied", "resident"]
    found = answered([*ways(100, PINNED), *ways(100, RESIDENT)], crossing(5e4))
    assert [answer.data for answer in found] == ["resident", "copied"]


def test_of_ways_with_the_same_sizes_the_earliest_win(answered):
    def seconds(way: dict[str, str], params: float) -> float:
        slow = 4.0 if way["execution"] == "eager" and way["device"] == "cuda" else 1.0
        return slow * crossing(5e4)(way, params)

    found = answered(ways(100, EAGER, RESIDENT), seconds)
    assert found[0].comparison.gpu.configuration["execution"] == "graph"


AUTO = ("auto", "resident")


def test_auto_answers_for_the_gpu_as_it_does_for_the_cpu(answered):
    def seconds(way: dict[str, str], params: float) -> float:
        slow = 1.2 if way["execution"] == "auto" and way["device"] == "cuda" else 1.0
        return slow * crossing(5e4)(way, params)

    found = answered(ways(100, EAGER, RESIDENT, AUTO, PINNED), seconds)
    assert [answer.data for answer in found] == ["resident", "copied"]
    assert found[0].comparison.gpu.configuration["execution"] == "auto", (
        "not what chance made earliest"
    )
    assert found[1].comparison.gpu.configuration["execution"] == "graph"


def test_auto_with_fewer_sizes_does_not_answer(answered):
    configurations = [*ways(100, EAGER, RESIDENT), *ways(100, AUTO, models=ALL[1:])]
    found = answered(configurations, crossing(5e4))
    assert found[0].comparison.gpu.configuration["execution"] != "auto"
    assert len(found[0].comparison.sizes) == 11


def test_a_way_that_wins_small_sizes_only_is_not_the_earliest(answered):
    def seconds(way: dict[str, str], params: float) -> float:
        if way["device"] == "cpu":
            return 1.0
        small_only = (params / 1e6) ** 0.3 if params < 3e6 else 2.0
        return small_only if way["execution"] == "graph" else (1e4 / params) ** 0.3

    found = answered(ways(100, RESIDENT, EAGER), seconds)
    assert found[0].comparison.gpu.configuration["execution"] == "eager"


def test_other_batches_that_agree_are_not_named(answered):
    found = answered([*ways(10, RESIDENT), *ways(100, RESIDENT)], crossing(5e4))
    assert found[0].elsewhere == ()


def test_a_network_on_no_curve_that_disagrees_is_an_exception(answered):
    configurations = [*ways(100, RESIDENT), *ways(10, RESIDENT, models=["heart"])]
    (answer,) = answered(configurations, heart_on("cpu"))
    (exception,) = answer.exceptions
    assert exception.common["model"] == "heart" and exception.winner == "cpu"
    assert exception.ratio == pytest.approx(0.5, rel=0.05)
    (answer,) = answered(configurations, heart_on("cuda"))
    assert answer.exceptions == ()
    assert answer.largest.parameters == 11_201_190


def test_plain_training_answers_before_any_other(answered):
    other = ways(100, RESIDENT, precision="tf32")
    plain = ways(100, RESIDENT, models=ALL[:5])
    assert answered([*other, *plain], crossing(100))[0].comparison.common["precision"] == "f32"
    assert answered(other, crossing(100))[0].comparison.common["precision"] == "tf32 (CPU: f32)"


def test_waiting_for_each_loss_is_not_plain(answered):
    def seconds(way: dict[str, str], params: float) -> float:
        return crossing(5e4 if way.get("loss") != "step" else 500.0)(way, params)

    stepwise = ways(100, RESIDENT, loss="step")
    found = answered([*stepwise, *ways(100, RESIDENT)], seconds)
    assert found[0].comparison.crossover.size == pytest.approx(5e4, rel=0.1)
    assert answered(stepwise, seconds)[0].comparison.gpu.configuration["loss"] == "step"


def test_one_size_has_no_headline(answered):
    assert answered(ways(100, RESIDENT, models=["disc-3"]), crossing(100)) == []
    assert answered(ways(10, RESIDENT, models=["heart"]), crossing(100)) == []
