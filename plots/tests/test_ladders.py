# SPDX-License-Identifier: Apache-2.0
"""A ladder that a file declares beside disc has crossovers, charts and sentences of its own."""

import pytest

from plots.cli import main
from plots.core.crossover import comparisons
from plots.file.ladders import DISC, Ladder, declared, networks_of_any
from plots.tests import synthetic
from plots.tests.synthetic_sweep import DISC_MODELS

DEMO = {"demo-1": 1_000, "demo-2": 4_000_000}


def rows_of(model, params, cpu, gpu):
    entries = []
    for threads, seconds in ((1, cpu), (2, cpu / 2)):
        configuration = {**synthetic.cpu_configuration("disc-3", threads), "model": model}
        entries += own(configuration, seconds, params)
    return entries + own({**synthetic.gpu_configuration("disc-3"), "model": model}, gpu, params)


def own(configuration, seconds, params):
    times = [seconds * (1 + 0.001 * place) for place in range(5)]
    return synthetic.samples(configuration, times, params=params, rows=1000)


def document(discs=True, **ladders):
    entries = []
    for model, params in DEMO.items():
        entries += rows_of(model, params, 1e-6 * params, 1e-2)
    for model in DISC_MODELS if discs else ():
        params = synthetic.MODELS[model][0]
        entries += rows_of(model, params, 1e-7 * params, 1e-3)
    made = synthetic.document(entries, gpu="synthetic GPU")
    if ladders:
        made["context"]["crossover"]["ladders"] = ladders
    return made


BOTH = {"disc": list(DISC_MODELS), "demo": list(DEMO)}


def best(file):
    """The crossovers against the best of the CPU, by what their networks are called."""
    found = [one for one in comparisons(file) if one.cpu.candidates]
    return {one.common.get("model", "disc networks"): one.crossover.size for one in found}


def test_each_ladder_has_a_crossover_of_its_own(read):
    file = read(document(**BOTH))
    found = best(file)
    assert found == {
        "disc networks": pytest.approx(20_000, rel=0.3),
        "demo networks": pytest.approx(20_000, rel=0.3),
    }
    assert best(read(document())).keys() == {"disc networks"}
    assert best(read(document(discs=False, demo=[*DEMO]))).keys() == {"demo networks"}


def test_the_answer_has_a_sentence_for_each(write, shell):
    printed = " ".join(shell("crossover", write(document(**BOTH))).out.split())
    for networks in BOTH:
        assert f"On {networks} networks at batch 100" in printed
    assert "epoch of demo networks" in printed
    assert "demo networks" in shell("crossover", "--threads", write(document(**BOTH))).out


@pytest.mark.slow
def test_the_page_has_charts_of_each(write, tmp_path):
    path = write(document(**BOTH), "in/both.json")
    assert main(["report", str(path), "-o", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "epoch of demo networks" in page and "On demo networks at batch 100" in page
    assert "demo networks against trainable parameters" in page
    assert "demo networks train faster on 2 threads" in page


def test_networks_of_a_ladder_are_called_as_people_do():
    ladders = declared({"ladders": {"disc": ["disc-2"], "gpt": ["gpt-16"]}})
    assert [one.networks for one in ladders] == ["disc networks", "transformers"]
    assert networks_of_any(ladders) == "disc networks or transformers"


def test_networks_stand_on_the_ladder_that_names_them():
    (demo,) = declared({"ladders": {"demo": ["demo-1", "demo-x2"]}})
    assert demo == Ladder("demo", ("demo-1", "demo-x2"))
    assert [demo.has(name) for name in ("demo-1", "demo-1x1.5", "demo-3", "demo-x2", "disc-2")] == [
        *(True, True, False, True, False)
    ]
    assert demo.is_between("demo-1x1.5") and not demo.is_between("demo-x2")
    assert declared({}) == (DISC,) and DISC.is_between("disc-8x1.5")
    batches = {"ladders": BOTH, "ladder_batches": {"demo": 50}}
    assert [ladder.batch for ladder in declared(batches)] == ["100", "50"]
