# SPDX-License-Identifier: Apache-2.0
"""One machine's CPU with another's GPU."""

import pytest

from plots.core.crossover import comparisons
from plots.features.compare import command as mix
from plots.file import loading, rows
from plots.tests import synthetic


def document(machine: str, gpu: str | None, commit: str = "") -> dict:
    content = synthetic.sweep(gpu=gpu is not None)
    crossover = content["context"]["crossover"]
    crossover["machine"]["id"] = machine
    crossover["machine"]["gpu"] = {"name": gpu} if gpu else None
    crossover["machine"]["cpu"]["model"] = f"CPU of {machine}"
    crossover["software"]["commit"] = commit
    return content


@pytest.fixture
def files(write):
    """The paths of a machine without a GPU and of one with a GPU."""
    return (
        write(document("old", None, "a" * 40), "old.json"),
        write(document("new", "shiny", "b" * 40), "new.json"),
    )


def test_rows_are_of_the_machine_that_has_the_device(files):
    old, new = map(loading.load_file, files)
    mixed = mix.mix(old, new)
    assert mixed.machine.id == "old's CPU with new's GPU"
    assert (mixed.machine.cpu.model, mixed.machine.gpu) == ("CPU of old", "shiny")
    assert mixed.software.commit == ""  # the two differ
    cpu = [row for row in mixed.rows if row.device == "cpu"]
    gpu = [row for row in mixed.rows if row.device == "cuda"]
    assert cpu == list(old.rows) and len(cpu) + len(gpu) == len(mixed.rows)
    assert gpu == [row for row in new.rows if row.device == "cuda"] != []
    assert len({row.name for row in mixed.rows}) == len(mixed.rows)


def test_one_machine_with_itself_is_itself(files):
    new = loading.load_file(files[1])
    mixed = mix.mix(new, new)
    assert mixed.software == new.software
    assert {row.name for row in mixed.rows} == {row.name for row in new.rows}


def test_gpu_rows_that_train_differently_are_left_out(write, shell):
    old, new = document("old", None), document("new", "shiny")
    for content, digit in ((old, "a"), (new, "b")):
        for entry in content["benchmarks"]:
            if entry.get("configuration", {}).get("model") == "disc-3":
                entry["workload"] = digit * 16
    paths = write(old, "old.json"), write(new, "new.json")
    found = comparisons(mix.mix(*map(loading.load_file, paths)))
    assert found
    for one in found:
        assert synthetic.MODELS["disc-2"][0] in one.gpu.sizes
        assert synthetic.MODELS["disc-3"][0] not in (*one.gpu.sizes, *one.cpu.sizes)
    printed = " ".join(shell("compare", "--cpu-of", paths[0], "--gpu-of", paths[1]).out.split())
    assert "2 rows of the CPU and 1 row of the GPU are not compared, as they do other" in printed
    assert "(trains differently)" in printed


def test_a_slower_processor_moves_the_crossover(read):
    # The CPU of "slow" takes four times as long; the GPU's rows of "old" must not matter.
    new = read(document("new", "shiny"), "new.json")
    content = document("slow", "none")
    for entry in content["benchmarks"]:
        if entry.get("configuration", {}).get("device") == "cpu" and "real_time" in entry:
            entry["real_time"] *= 4
        elif entry.get("configuration", {}).get("device") == "cuda":
            entry["real_time"] *= 1e3
    slow = read(content, "slow.json")

    def sizes(file: rows.File) -> list[float]:
        return [found.crossover.size for found in comparisons(file)]

    own, mixed = sizes(new), sizes(mix.mix(slow, new))
    assert len(own) == len(mixed) > 0
    assert all(size < before for size, before in zip(mixed, own, strict=True))
    assert sizes(mix.mix(new, new)) == own


def test_nothing_in_common_is_refused(files, write, shell):
    content = synthetic.document(synthetic.samples(synthetic.cpu_configuration("heart", 1)))
    lonely = write(content, "heart.json")
    printed = shell("compare", f"--cpu-of={lonely}", f"--gpu-of={files[1]}", "--anyway", code=2)
    assert printed.out == "" and "name files of one sweep" in printed.err


def test_files_that_cannot_be_compared_are_not_mixed(write, files, shell):
    content = document("new", "shiny")
    content["context"]["crossover"]["software"]["build_type"] = "Debug"
    debug = write(content, "debug.json")
    arguments = ["compare", f"--cpu-of={files[0]}", f"--gpu-of={debug}"]
    assert "Release and Debug" in shell(*arguments, code=2).err
    assert "Release and Debug" in shell(*arguments, "--anyway").out
