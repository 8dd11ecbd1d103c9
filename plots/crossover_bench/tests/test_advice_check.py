# SPDX-License-Identifier: Apache-2.0
"""What the usual advice brought in a file: from rows that differ in nothing else."""

from typing import Any

import numpy as np
import pytest

from crossover_bench.answers.advice_check.command import CLAIMS, advice_table, check_advice
from crossover_bench.tests import synthetic, synthetic_peers

MODELS = ("disc-4", "disc-6", "disc-8")


def rows(
    configuration: dict[str, str], factor: float, repetitions: int = 9
) -> list[dict[str, Any]]:
    """A row whose time is `factor` times that of the others, of the same noise."""
    noise = np.random.default_rng(7).gamma(2.0, 0.01, repetitions)
    seed = np.random.default_rng([3, round(1e6 * factor)]).gamma(2.0, 1e-3, repetitions)
    return synthetic.samples(configuration, (1e-3 * factor * (1 + noise + seed)).tolist())


def cpu(model: str, **changes: str) -> dict[str, str]:
    return {**synthetic.cpu_configuration(model, 1), **changes}


def gpu(model: str, **changes: str) -> dict[str, str]:
    return {**synthetic.gpu_configuration(model), **changes}


@pytest.fixture
def kept() -> dict[str, Any]:
    """A file of networks with gradients overwritten, and kept, some so many times as long."""
    entries = []
    for model, factor in zip(MODELS, (1.5, 2.0, 0.5), strict=True):
        entries += rows(cpu(model), 1) + rows(cpu(model, zero="keep"), factor)
    return synthetic.document(entries)


def answers(document: dict[str, Any], read) -> list[dict[str, Any]]:
    """The lines of the table of a file, as programs read them."""
    file = read(document)
    return advice_table(file, check_advice(file)).records()


def of(records: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    """Those of the advice with these words."""
    return [record for record in records if words in record["advice"]]


def test_gradients_that_are_overwritten(read, kept):
    file = read(kept)
    table = advice_table(file, check_advice(file))
    (record,) = table.records()
    assert (record["advice"], record["way"]) == ("set_to_none=True", "gradients overwritten")
    counts = (record["device"], record["pairs"], record["faster"], record["slower"])
    assert counts == ("CPU", 3, 2, 1)
    ratios = [record[key] for key in ("ratio", "least", "most")]
    assert ratios == pytest.approx([1.5, 0.5, 2], rel=0.01)
    models = (record["least_model"], record["most_model"])
    assert models == ("disc-8, batch 100", "disc-6, batch 100")
    ((_, pairs),) = check_advice(file).items()
    assert all(pair.low < pair.ratio < pair.high for pair in pairs)
    for claim in CLAIMS:  # what is not in the file is named with its flags
        note = f"Not measured here: {claim.advice} (./run {claim.flags})."
        assert (note in " ".join(table.notes)) == (claim.advice != "set_to_none=True")


def test_equal_times_are_neither(read):
    entries = rows(cpu("disc-4"), 1) + rows(cpu("disc-4", zero="keep"), 1)
    (record,) = answers(synthetic.document(entries), read)
    assert record["faster"] == record["slower"] == 0 and record["low"] <= 1 <= record["high"]
    few = rows(cpu("disc-4"), 1, 3) + rows(cpu("disc-4", zero="keep"), 2, 3)
    (record,) = answers(synthetic.document(few), read)
    assert record["low"] is None and record["faster"] == 0


def test_each_way_to_follow_it_is_a_line(read):
    entries = []
    for workers, factor in (("0", 2.0), ("1", 1.5), ("4", 1.0)):
        loader = {} if workers == "0" else {"loader": workers}
        entries += rows(cpu("disc-4", shuffle="epoch", **loader), factor)
        entries += rows(cpu("disc-4", **loader), 0.5 * factor)  # in order: no workers are needed
    records = answers(synthetic.document(entries), read)
    loaders = {record["way"]: record["ratio"] for record in of(records, "num_workers")}
    assert loaders == pytest.approx(
        {"1 loading thread": 2 / 1.5, "4 loading threads": 2.0}, rel=0.01
    )
    (shuffled,) = of(records, "shuffle")
    assert shuffled["ratio"] == pytest.approx(0.5, rel=0.01) and shuffled["pairs"] == 3


def test_copies_and_precisions_are_a_gpus(read):
    entries = rows(gpu("disc-4", data="pageable"), 3) + rows(gpu("disc-4", data="pinned"), 2)
    entries += rows(gpu("disc-4", data="pinned-async"), 1)
    entries += rows(gpu("disc-4", data="pinned", precision="bf16"), 0.5)
    records = answers(synthetic.document(entries, gpu="synthetic GPU"), read)
    for words, ratio in (("pin_memory", 1.5), ("non_blocking", 2), ("autocast", 4)):
        (record,) = of(records, words)
        assert record["ratio"] == pytest.approx(ratio, rel=0.01) and record["device"] == "GPU"


def test_a_larger_batch_is_as_many_rows_as_are_accumulated(read):
    entries = rows(cpu("disc-4", batch="50", accumulate="2"), 3) + rows(cpu("disc-4"), 1)
    entries += rows(cpu("disc-4", batch="50"), 2)  # another training
    entries += rows(cpu("disc-4", batch="50", accumulate="4"), 2)
    (record,) = of(answers(synthetic.document(entries), read), "accumulation")
    assert (record["way"], record["pairs"]) == ("instead of 2 batches", 1)
    assert record["ratio"] == pytest.approx(3, rel=0.01)


def test_a_compiler_is_another_programs(read):
    ours = cpu("disc-4")
    plain = synthetic_peers.theirs(ours, compiler="none")
    compiled = synthetic_peers.theirs(ours, compiler="inductor")
    entries = rows(ours, 1) + rows(plain, 3) + rows(compiled, 2)
    (record,) = of(answers(synthetic_peers.document(entries), read), "torch.compile")
    assert (record["device"], record["way"]) == ("PyTorch, CPU", "torch.compile")
    assert record["ratio"] == pytest.approx(1.5, rel=0.01)


def test_a_compiler_has_repaid_itself_after_so_many_steps(read):
    """(First call compiled - eager) / (step eager - compiled), which are 10 to an epoch."""

    def entries(model: str, eager: float, compiled: float, **more: int) -> list[dict[str, Any]]:
        plain = synthetic_peers.theirs(cpu(model), compiler="none")
        other = synthetic_peers.theirs(cpu(model), compiler="inductor")
        made = synthetic.samples(plain, [eager] * 9, first_call_seconds=0.5)
        return made + synthetic.samples(other, [compiled] * 9, first_call_seconds=20.5, **more)

    def said(*models: tuple[str, float, float], **more: int) -> tuple[dict[str, Any], str]:
        measured = [entry for each in models for entry in entries(*each, **more)]
        file = read(synthetic_peers.document(measured))
        table = advice_table(file, check_advice(file))
        (record,) = of(table.records(), "torch.compile")
        return record, " ".join(table.notes)

    once, never = ("disc-4", 3e-3, 1e-3), ("disc-6", 1e-3, 2e-3)
    record, notes = said(once)
    assert (record["repaid"], record["repaid_steps"]) == ("100,000", 100_000)
    assert (
        "After 100,000 steps (an epoch of disc-4, batch 100) torch.compile has repaid itself here, "
        "by medians (PyTorch, CPU)."
    ) in notes
    assert "batch 100, compiled before into a cache on disk)" in said(once, cached_graphs=2)[1]
    record, notes = said(never)
    assert (record["repaid"], record["repaid_steps"]) == ("never here", None)
    assert "torch.compile never repays itself here (PyTorch, CPU)" in notes
    record, notes = said(once, never, ("disc-8", 5e-3, 1e-3))
    assert record["repaid"] == "50,000 … never here"
    assert (
        "After 50,000 (an epoch of disc-8, batch 100) to 100,000 steps (an epoch of disc-4, batch "
        "100) torch.compile has repaid itself here, by medians (PyTorch, CPU), and never for 1 of "
        "3 rows."
    ) in notes


def test_a_loop_of_batches_that_lie_ready_is_advice(read):
    lean = synthetic_peers.theirs(cpu("disc-4"))
    entries = rows(lean, 1) + rows({**lean, "script": "usual"}, 3)
    (record,) = of(answers(synthetic_peers.document(entries), read), "batches ready")
    assert (record["device"], record["way"]) == ("PyTorch, CPU", "batches ready")
    assert record["ratio"] == pytest.approx(3, rel=0.01) and record["repaid"] is None


def test_failed_rows_are_no_pairs(read):
    entries = [*rows(cpu("disc-4"), 1), synthetic.failure(cpu("disc-4", zero="keep"), "why")]
    assert not check_advice(read(synthetic.document(entries)))


def test_the_command_prints_one_screen(write, shell, kept):
    out = shell("advice-check", write(kept)).out
    assert "1.50" in out and "gradients overwritten" in out and "--placement=pageable,pinned" in out
    assert len(out.splitlines()) < 30 and max(map(len, out.splitlines())) <= 100
