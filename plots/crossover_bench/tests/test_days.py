# SPDX-License-Identifier: Apache-2.0
"""How far instances of one program are apart: as a file shows it, and as committed files do."""

import numpy as np
import pytest

from crossover_bench.files.samples import assumed
from crossover_bench.tests import days, synthetic

TIMES = ((1.0, 1.1), (2.0, 1.9), (3.0, 3.0))  # of one program under two names, by network


def document(*, again: bool = True, stolen: float = 0.0) -> dict:
    """Epochs of networks on one thread, and on two where auto came to one, if `again`."""
    entries = []
    for model, both in zip(("disc-2", "disc-3", "disc-4"), TIMES, strict=True):
        for threads, milliseconds in enumerate(both[: 1 + again], 1):
            way = {**synthetic.cpu_configuration(model, threads), "execution": "auto"}
            rows = synthetic.samples(way, [milliseconds] * 9)
            for row in rows:
                row["chosen"] = {"execution": "fused", "cpu_threads": "1"}
                row["cpu_steal"] = stolen
                row["instance"] = 0
            entries += rows
    return synthetic.document(entries)


def test_what_statistics_assume_is_what_committed_files_show():
    assert days.WRITTEN.read_text(encoding="utf-8") == days.text(), (
        "python -m crossover_bench.tests.days"
    )


def test_rows_that_came_to_one_program_are_instances_of_it(read):
    spread = read(document()).spreads["Epoch", "cpu"]
    committed = assumed("cpu")
    squares = sum(np.log(first / second) ** 2 / 2 for first, second in TIMES)
    squares += committed.freedom * committed.deviation**2
    assert spread.programs == 3 and spread.freedom == committed.freedom + 3
    assert spread.deviation == pytest.approx((squares / spread.freedom) ** 0.5)


def test_a_machine_that_shows_nothing_is_as_those_of_committed_files(read):
    file, busy = (read(document(again=False, stolen=share)) for share in (0.005, 0.02))
    assert file.spreads["Epoch", "cpu"] == assumed("cpu")
    assert busy.spreads["Epoch", "cpu"] == assumed("cpu", is_busy=True)
    assert assumed("cpu", is_busy=True).deviation > 1.5 * assumed("cpu").deviation
    assert {row.instances.freedom for row in file.rows} == {assumed("cpu").freedom}
