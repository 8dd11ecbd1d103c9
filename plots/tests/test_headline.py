# SPDX-License-Identifier: Apache-2.0
"""Which crossover answers first: the batch, the way, and what disagrees with it."""

import pytest

from plots.core.crossover import comparisons
from plots.core.headline import Headline, headline
from plots.tests.synthetic_batches import (
    ALL,
    EAGER,
    LARGE,
    PINNED,
    RESIDENT,
    Seconds,
    by_batch,
    crossing,
    heart_on,
    trained,
    ways,
)


@pytest.fixture
def answered(read):
    """The headline of a file with `configurations`, whose times are `seconds`."""

    def answer(configurations: list[dict[str, str]], seconds: Seconds) -> Headline | None:
        file = read(trained(configurations, seconds))
        return headline(file, comparisons(file))

    return answer


def test_the_batch_is_not_the_one_that_suits_the_gpu(answered):
    configurations = [*ways(10, RESIDENT), *ways(100, RESIDENT), *ways(1000, RESIDENT)]
    found = answered(configurations, by_batch(b10="cpu", b100="5e4", b1000="cuda"))
    assert found.batch == "100"
    assert found.first.crossover.size == pytest.approx(5e4, rel=0.1)
    (answer,) = found.answers
    assert [(one.batch, one.crossover.kind) for one in answer.elsewhere] == [
        ("10", "never"),
        ("1000", "always"),
    ]


def test_of_two_other_batches_the_smaller_answers(answered):
    found = answered(
        [*ways(1000, RESIDENT), *ways(10, RESIDENT)], by_batch(b10="cpu", b1000="cuda")
    )
    assert found.batch == "10"
    assert found.first.crossover.kind == "never"


@pytest.mark.parametrize(("sizes", "batch"), [(2, "1000"), (5, "1000"), (6, "100"), (11, "100")])
def test_a_batch_with_few_sizes_does_not_answer(answered, sizes, batch):
    configurations = [*ways(100, RESIDENT, models=ALL[-sizes:]), *ways(1000, RESIDENT)]
    found = answered(configurations, by_batch(b100="cuda", b1000="cpu"))
    assert found.batch == batch


def test_a_way_with_few_sizes_does_not_beat_a_full_curve(answered):
    configurations = [*ways(100, EAGER), *ways(100, RESIDENT, models=LARGE)]
    found = answered(configurations, crossing(5e4))
    assert found.first.gpu.configuration["execution"] == "eager"
    assert found.first.crossover.kind == "once" and len(found.first.sizes) == 11


def test_resident_data_with_few_sizes_does_not_come_first(answered):
    configurations = [*ways(100, PINNED), *ways(100, RESIDENT, models=LARGE)]
    found = answered(configurations, crossing(5e4))
    assert [answer.data for answer in found.answers] == ["copied", "resident"]
    found = answered([*ways(100, PINNED), *ways(100, RESIDENT)], crossing(5e4))
    assert [answer.data for answer in found.answers] == ["resident", "copied"]


def test_of_ways_with_the_same_sizes_the_earliest_win(answered):
    def seconds(way: dict[str, str], params: float) -> float:
        slow = 4.0 if way["execution"] == "eager" and way["device"] == "cuda" else 1.0
        return slow * crossing(5e4)(way, params)

    found = answered(ways(100, EAGER, RESIDENT), seconds)
    assert found.first.gpu.configuration["execution"] == "graph"


AUTO = ("auto", "resident")


def test_auto_answers_for_the_gpu_as_it_does_for_the_cpu(answered):
    def seconds(way: dict[str, str], params: float) -> float:
        slow = 1.2 if way["execution"] == "auto" and way["device"] == "cuda" else 1.0
        return slow * crossing(5e4)(way, params)

    found = answered(ways(100, EAGER, RESIDENT, AUTO, PINNED), seconds)
    assert [answer.data for answer in found.answers] == ["resident", "copied"]
    assert found.first.gpu.configuration["execution"] == "auto", "not what chance made earliest"
    assert found.answers[1].comparison.gpu.configuration["execution"] == "graph"


def test_auto_with_fewer_sizes_does_not_answer(answered):
    configurations = [*ways(100, EAGER, RESIDENT), *ways(100, AUTO, models=ALL[1:])]
    found = answered(configurations, crossing(5e4))
    assert found.first.gpu.configuration["execution"] != "auto"
    assert len(found.first.sizes) == 11


def test_a_way_that_wins_small_sizes_only_is_not_the_earliest(answered):
    def seconds(way: dict[str, str], params: float) -> float:
        if way["device"] == "cpu":
            return 1.0
        small_only = (params / 1e6) ** 0.3 if params < 3e6 else 2.0
        return small_only if way["execution"] == "graph" else (1e4 / params) ** 0.3

    found = answered(ways(100, RESIDENT, EAGER), seconds)
    assert found.first.gpu.configuration["execution"] == "eager"


def test_other_batches_that_agree_are_not_named(answered):
    found = answered([*ways(10, RESIDENT), *ways(100, RESIDENT)], crossing(5e4))
    assert found.answers[0].elsewhere == ()


def test_a_network_on_no_curve_that_disagrees_is_an_exception(answered):
    configurations = [*ways(100, RESIDENT), *ways(10, RESIDENT, models=["heart"])]
    (answer,) = answered(configurations, heart_on("cpu")).answers
    (exception,) = answer.exceptions
    assert exception.common["model"] == "heart" and exception.winner == "cpu"
    assert exception.ratio == pytest.approx(0.5, rel=0.05)
    (answer,) = answered(configurations, heart_on("cuda")).answers
    assert answer.exceptions == ()
    assert answer.largest.parameters == 11_201_190


def test_plain_training_answers_before_any_other(answered):
    other = ways(100, RESIDENT, precision="tf32")
    plain = ways(100, RESIDENT, models=ALL[:5])
    assert answered([*other, *plain], crossing(100)).first.common["precision"] == "f32"
    assert answered(other, crossing(100)).first.common["precision"] == "tf32 (CPU: f32)"


def test_waiting_for_each_loss_is_not_plain(answered):
    def seconds(way: dict[str, str], params: float) -> float:
        return crossing(5e4 if way.get("loss") != "step" else 500.0)(way, params)

    stepwise = ways(100, RESIDENT, loss="step")
    found = answered([*stepwise, *ways(100, RESIDENT)], seconds)
    assert found.first.crossover.size == pytest.approx(5e4, rel=0.1)
    assert answered(stepwise, seconds).first.gpu.configuration["loss"] == "step"


def test_one_size_has_no_headline(answered):
    assert answered(ways(100, RESIDENT, models=["disc-3"]), crossing(100)) is None
    assert answered(ways(10, RESIDENT, models=["heart"]), crossing(100)) is None
