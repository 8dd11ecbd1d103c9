# SPDX-License-Identifier: Apache-2.0
"""The answer at a glance: a strip that no row denies, and a sentence of few words."""

import re
from dataclasses import replace

import pytest

from plots.core.charts.strip import draw_strips
from plots.core.crossover import Crossover, comparisons
from plots.core.page.svg import inline
from plots.core.strip import Segment, segments_of, strip_text
from plots.features.answer.glance import MOST_WORDS, Glance, glance
from plots.features.predict.answer import predictions
from plots.file import loading
from plots.file.rows import File
from plots.tests import synthetic, synthetic_steps
from plots.tests.synthetic_sweep import (
    LARGE,
    PINNED,
    RESIDENT,
    crossing,
    heart_on,
    trained,
    ways,
)
from tools.sources import tracked_results

RESULTS = tracked_results()


def seen(file: File) -> Glance:
    compared = comparisons(file)
    predicted = predictions([file]).of(file)
    for lists in ([], predicted):
        answer = glance(file, compared, lists)
        assert 0 < len(answer.sentence.split()) <= MOST_WORDS
        assert answer.sentence.endswith(".") and answer.sentence.count(". ") == 0
        assert len(answer.lines) <= (4 if "cannot tell" in answer.sentence else 3)
        if answer.strips:
            text = strip_text(answer.strips).splitlines()
            assert max(map(len, text)) <= 80
    return glance(file, compared, predicted)


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.slow
@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_every_committed_file_has_a_short_sentence(path):
    file = loading.load_file(path)
    answer = seen(file)
    assert "predicted" in answer.sentence or not answer.strips or file.machine.gpu


@pytest.mark.slow
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
def test_sweeps_without_epochs_or_devices_have_a_short_sentence(read, wide, five_files):
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
    calm = glance(read(document), comparisons(read(document)))
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


def test_too_few_repetitions_decide_nothing(read):
    answer = seen(read(trained(ways(100, RESIDENT), crossing(5e4), repetitions=2)))
    assert {each.side for each in answer.strips.strips[0].segments} == {"open"}


def test_what_is_predicted_is_hatched_and_said_to_be(read):
    file = read(synthetic.sweep(gpu=False))
    answer = seen(file)
    strips = answer.strips
    assert " (predicted) · " in answer.to_share
    assert strips.is_predicted and "predicted, not measured" in strip_text(strips)
    chart = draw_strips(strips)
    assert b"<pattern" in chart.pictures.svg and b"predicted, not measured" in chart.pictures.svg
    assert "predicted" in chart.alt
    shown = inline(chart.pictures.svg, "s1-", ("strips", ""), kind="wide", styles={})
    references = set(re.findall(r'(?:url\(#|href="#)([^")]+)', shown))
    assert references <= set(re.findall(r' id="([^"]+)"', shown)) and "<pattern" in shown
    measured = draw_strips(seen(read(synthetic.sweep(), "gpu.json")).strips)
    assert b"<pattern" not in measured.pictures.svg and b"predicted" not in measured.pictures.svg
