# SPDX-License-Identifier: Apache-2.0
"""From which size several ranks pay, what they cost, and what their sums lead to expect."""

from typing import Any

import numpy as np
import pytest

from plots.cli import main
from plots.core.crossover import comparisons
from plots.core.curves import thread_pairs
from plots.core.page.section import Context
from plots.features.ranks import section
from plots.features.ranks.analysis import more_ranks, ranks_sentence, shared, sum_seconds
from plots.features.ranks.table import shared_table
from plots.tests import synthetic
from plots.tests.synthetic_probes import operation
from plots.tests.synthetic_sweep import DISC_MODELS

CROSSING = 100_000.0


def on_ranks(model: str, ranks: int, batch: str) -> dict[str, str]:
    configuration = synthetic.cpu_configuration(model, 1)
    return {**configuration, "batch": batch, "execution": "eager", "ranks": str(ranks)}


def sums(ranks: int = 2) -> list[dict[str, Any]]:
    """A microsecond, and a nanosecond a byte."""
    entries = []
    for size in (4, 4096, 4_194_304):
        configuration = {
            **{"family": "Collective", "op": "allreduce", "bytes": str(size)},
            **{"device": "cpu", "ranks": str(ranks)},
        }
        entries += operation(configuration, 1e-6 + 1e-9 * size, 1, bytes=size, ranks=ranks)
    return entries


def sweep(batch: str = "100") -> list[dict[str, Any]]:
    """One process on 1 and 2 threads; two ranks, with batches of `batch`, which pay from CROSSING
    parameters."""
    generator = np.random.default_rng(3)
    entries = []
    for model in DISC_MODELS:
        params = float(synthetic.MODELS[model][0])
        one = 1e-3 * (params / CROSSING) ** 0.9
        two = 1e-3 * (params / CROSSING) ** 0.6
        for configuration, centre, more in (
            (synthetic.cpu_configuration(model, 1), one, {}),
            (synthetic.cpu_configuration(model, 2), 1.2 * one, {}),
            (on_ranks(model, 2, batch), two, {"ranks": 2, "seconds_communication": 0.25 * two}),
        ):
            times = centre * (1 + generator.gamma(2.0, 0.005, 9))
            entries += synthetic.samples(configuration, times.tolist(), **more)
    return entries


@pytest.fixture
def file(read):
    return read(synthetic.document([*sweep(), *sums()]))


def test_ranks_pay_where_the_curves_cross(file):
    (one,) = more_ranks(file)
    assert one.sides == ("1 process", "2 ranks")
    assert one.crossover.size == pytest.approx(CROSSING, rel=0.05)
    assert one.crossover.low < CROSSING < one.crossover.high
    assert ranks_sentence(one).startswith(
        "At batch 100, 2 ranks train disc networks faster than 1 process from "
    )


def test_what_ranks_share_is_no_row_of_one_process(file):
    ((_, fewest, most),) = thread_pairs(file)
    assert "ranks" not in fewest.configuration and "ranks" not in most.configuration
    assert comparisons(file) == []


def test_each_network_stands_beside_its_fastest_process(file):
    found = {one.row.model: one for one in shared(file)}
    assert found.keys() == set(DISC_MODELS)
    large = found[DISC_MODELS[-1]]
    assert large.alone and large.alone.threads == 1
    assert large.speed_up == pytest.approx(large.alone.median / large.row.median)
    assert large.efficiency == pytest.approx(large.speed_up / 2)
    assert large.communication == pytest.approx(0.25, rel=0.05)
    records = shared_table(list(found.values())).records()
    assert records[0]["ranks"] == "2 ranks of 1 thread"


def test_weak_scaling_gives_each_rank_the_batch_of_one_process(write, read, capsys):
    file = read(synthetic.document(sweep(batch="200")))
    assert more_ranks(file) == []
    (one,) = more_ranks(file, weak=True)
    assert one.crossover.low < CROSSING < one.crossover.high and one.batch == "100"
    assert "2 ranks with a batch each train" in ranks_sentence(one)
    assert {each.row.batch for each in shared(file, weak=True) if each.like} == {"100"}
    path = str(write(synthetic.document(sweep())))
    assert main(["crossover", "--ranks", "--scaling=weak", path]) == 0
    assert "--batch=100,200" in capsys.readouterr().err
    assert main(["crossover", "--scaling=weak", path]) == 2
    assert "--scaling is of --ranks" in capsys.readouterr().err


def test_what_is_expected_is_a_share_and_a_sum_for_each_step(file):
    known = 1e-6 + 1e-9 * 4_194_304
    assert sum_seconds(file, 2, 4_194_304) == pytest.approx(known, rel=0.1)  # its noise
    assert sum_seconds(file, 2, 2 * 4_194_304) == pytest.approx(2 * known, rel=0.1)
    assert sum_seconds(file, 2, 4) < sum_seconds(file, 2, 100) < sum_seconds(file, 2, 4096)
    assert sum_seconds(file, 3, 4096) is None
    one = next(one for one in shared(file) if one.row.model == "disc-7")
    summed = sum_seconds(file, 2, 4 * one.row.counters["params"])
    assert one.modelled == pytest.approx(one.like.median / 2 + one.row.counters["steps"] * summed)


def test_a_file_without_ranks_says_how_to_get_them(write, read, capsys):
    document = synthetic.document(synthetic.samples(synthetic.cpu_configuration("disc-4", 1)))
    assert section.build([read(document)], Context()) is None
    assert main(["crossover", "--ranks", str(write(document))]) == 0
    assert "--ranks=1,2" in capsys.readouterr().err


def test_the_page_and_the_terminal_say_the_same(write, read, capsys):
    document = synthetic.document([*sweep(), *sums()])
    built = section.build([read(document)], Context())
    assert built and built.title == "More than one"
    assert main(["crossover", "--ranks", str(write(document))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert built.blocks[0].points[0] in said
