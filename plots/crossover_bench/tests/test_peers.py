# SPDX-License-Identifier: Apache-2.0
"""Ours beside another framework: pairs, intervals, crossovers, tables, and nothing elsewhere."""

import re
from itertools import product
from math import comb

import numpy as np
import pytest

from crossover_bench.answers.answer.glance import glance
from crossover_bench.answers.doubts import section as doubts
from crossover_bench.answers.peers import section
from crossover_bench.answers.peers.analysis import order_statistics, pairs, ratio_interval
from crossover_bench.answers.peers.section import missing_table, peer_tables
from crossover_bench.curves.crossover import comparisons
from crossover_bench.files import loading
from crossover_bench.files.again import command
from crossover_bench.files.axes import BUILT_IN
from crossover_bench.files.rows import File, Instances
from crossover_bench.show.page.section import Context
from crossover_bench.show.tables.formats import render
from crossover_bench.study.programs import by_program
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic, synthetic_peers, synthetic_probes
from crossover_bench.tests.synthetic_peers import (
    CROSSOVER,
    RATIO,
    is_theirs,
    on_both,
    on_cpu,
    theirs,
)
from crossover_bench.tests.synthetic_sweep import DISC_MODELS, operation
from crossover_bench.words import units


@pytest.fixture
def load(read):
    def loaded(entries, gpu: bool = False) -> File:
        return read(synthetic_peers.document(entries, gpu))

    return loaded


OWN = synthetic.cpu_configuration("disc-3", 1)


@pytest.fixture
def beside(load):
    """A file of rows of ours and theirs: a configuration, and seconds of repetitions."""
    return lambda *rows: load([entry for row in rows for entry in synthetic.samples(*row)])


def lines(table) -> list[dict[str, str]]:
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, (cell.text for cell in line), strict=True)) for line in table.lines]


@pytest.mark.parametrize("count", [*range(1, 16), 30])
def test_order_statistics_cover_the_median(count):
    """By counting all ways in which `count` numbers can lie on either side of their median."""
    k = order_statistics(count)
    covered = [
        sum(comb(count, below) for below in range(rank, count - rank + 1)) / 2**count
        for rank in range(1, count // 2 + 1)
    ]
    enough = [rank for rank, share in enumerate(covered, 1) if share >= 0.95]
    assert k == (max(enough) if enough else None)
    assert (k is None) == (count < 6)
    if count == 6:  # and by listing them
        sides = [sum(way) for way in product((0, 1), repeat=6)]
        assert sum(1 <= below <= 5 for below in sides) / 64 >= 0.95


def test_pairs_share_their_noise(load):
    file = load(on_cpu())
    assert command(file.run).endswith("./build/bench --sweep=default")  # of bench alone
    paired = pairs(file)
    assert [pair.ours.configuration["model"] for pair in paired] == list(DISC_MODELS)
    for pair in paired:
        assert pair.in_turn and pair.ratio == pytest.approx(RATIO, rel=1e-4)
        assert pair.low == pytest.approx(RATIO, rel=1e-4)
        assert pair.high == pytest.approx(RATIO, rel=1e-4)
        spread = pair.ours.maximum / pair.ours.minimum
        assert spread > 1.05  # the medians alone would not tell so well


@pytest.mark.parametrize(
    ("ratios", "bold", "note"),
    [
        ([2.0] * 6, (True, False), ""),
        ([0.5] * 6, (False, True), ""),
        ([2.0] * 5, (False, False), "Too few pairs"),
        ([2.0] * 5 + [0.5], (False, False), ""),
        ([3.0] * 7, (False, False), "Not measured in turn"),  # and so not paired
    ],
)
def test_a_time_is_bold_where_the_interval_says_so(beside, ratios, bold, note):
    ours = [1e-3] * (9 if len(ratios) == 7 else len(ratios))
    file = beside((OWN, ours), (theirs(OWN), [1e-3 * ratio for ratio in ratios]))
    (pair,), (table,) = pairs(file), peer_tables(Study(file))
    cells = dict(zip((column.key for column in table.columns), table.lines[0], strict=True))
    assert (cells["seconds"].bold, cells["peer_seconds"].bold) == bold
    assert cells["ratio"].value == pytest.approx(ratios[0])
    assert pair.in_turn == (len(ours) == len(ratios)) and (pair.low is None) == bool(note)
    assert " ".join(table.notes).startswith(note)


def test_at_the_bound_the_ratio_is_theirs_over_what_the_ceilings_allow(load):
    least = {"bytes_to_device": 0, "bytes_from_device": 0, "launches": 0, "graph": False}
    ceiling = {"family": "Peak", "quantity": "fma", "precision": "f32", "device": "cpu"}
    peak = synthetic_probes.operation({**ceiling, "cpu_threads": "1"}, 1e-3, flops=2e6)
    work = {"flops": 1e6, "memory_bytes": 0, **least}
    rows = synthetic.samples(OWN, [2e-3] * 9, minimum_work=work)
    rows += synthetic.samples(theirs(OWN), [3e-3] * 9)
    (pair,) = pairs(load([*peak, *rows]))
    assert (pair.ratio, pair.most) == (pytest.approx(1.5), pytest.approx(6, rel=0.1))
    (table,) = peer_tables(Study(load([*peak, *rows])))
    assert lines(table)[0]["most"] == f"{pair.most:.2f}"
    (pair,) = pairs(load(rows))
    assert pair.most is None


def test_what_is_lost_stands_first_and_what_failed_has_its_reason(load):
    seconds = {"disc-2": (1, 2), "disc-3": (None, 1), "disc-4": (1, None), "disc-5": (1, 0.5)}
    entries = []
    for model, sides in seconds.items():
        ours = synthetic.cpu_configuration(model, 1)
        for configuration, time in zip((ours, theirs(ours)), sides, strict=True):
            if time is None:
                entries.append(synthetic.failure(configuration, f"{model} is wrong"))
            else:
                entries += synthetic.samples(configuration, [time] * 9)
    file = load(entries)
    (table,) = peer_tables(Study(file))
    assert [line["network"] for line in table.records()] == ["disc-5", "disc-3", "disc-2", "disc-4"]
    assert [line["ratio"] for line in table.records()] == [0.5, None, 2, None]
    text = " ".join(render([table], "text").split())
    assert "Ours of disc-3 in f32 failed: disc-3 is wrong." in text
    assert "PyTorch of disc-4 in f32 failed: disc-4 is wrong." in text
    assert len(pairs(file)) == 2


def test_the_fastest_of_each_side_counts_and_all_are_there(load, beside):
    file = beside(
        (OWN, [2e-3] * 9),
        ({**OWN, "execution": "fused"}, [1e-3] * 9),
        (theirs(OWN), [4e-3] * 9),
        ({**theirs(OWN), "compiler": "inductor"}, [3e-3] * 9),
    )
    ((line,),) = map(lines, peer_tables(Study(file)))
    assert (line["how"], line["peer_how"], line["ratio"]) == ("fused", "torch.compile", "3.00")
    (table,) = peer_tables(Study(file), every=True)
    assert [line["ratio"] for line in lines(table)] == ["4.00", "3.00"]
    auto = {**OWN, "execution": "auto"}
    chosen = {"execution": "fused", "cpu_threads": "1"}
    entries = synthetic.samples(auto, [1e-3] * 9, chosen=chosen)
    entries += synthetic.samples(theirs(auto, execution="eager"), [2e-3] * 9)
    (table,) = peer_tables(Study(load(entries)))
    assert lines(table)[0]["how"] == "auto: fused"  # what auto chose is told


def test_each_framework_has_its_tables_and_its_name(beside):
    jax = theirs(OWN, program="jax", compiler="xla")
    times = zip((OWN, theirs(OWN), jax, {**jax, "loop": "unrolled"}), (1, 4, 3, 2), strict=True)
    file = beside(*((way, [1e-3 * time] * 9) for way, time in times))
    tables = peer_tables(Study(file))
    what = "What {} takes for the same epoch"
    assert [table.title for table in tables] == [what.format("PyTorch"), what.format("JAX")]
    assert "JAX / ours" in [column.title for column in tables[1].columns]
    hows = [line["peer_how"] for table in tables for line in lines(table)]
    assert hows == ["eager", "jit, unrolled steps"]
    assert [len(table.lines) for table in peer_tables(Study(file), every=True)] == [1, 2]
    built = section.build([file], Context())
    assert built is not None and built.title == "What you would get from PyTorch and JAX"
    assert built.blocks[0].lead == "PyTorch 0.0+synthetic, JAX of an unknown version."


def test_other_work_makes_no_pair(load, beside):
    entries = synthetic.samples(OWN, [1e-3] * 9, label="sgd lr=0.1")
    entries += synthetic.samples(theirs(OWN), [2e-3] * 9, label="sgd lr=0.5")
    assert pairs(load(entries)) == []
    assert pairs(beside((OWN, [1e-3] * 9), (theirs(OWN, cpu_threads="2"), [2e-3] * 9))) == []


def test_both_crossovers_are_shown_where_pytorch_has_both_devices(load):
    file = load(on_both(), gpu=True)
    ours, others = by_program(Study(file))
    assert (ours.label, others.label) == ("ours", "PyTorch")
    assert ours.comparison.crossover.size == pytest.approx(CROSSOVER, rel=0.05)
    assert others.comparison.crossover.size == pytest.approx(2 * CROSSOVER, rel=0.05)
    table = peer_tables(Study(file))[-1]
    assert [line["whose"] for line in lines(table)] == ["ours", "PyTorch"]
    assert not by_program(Study(load(on_cpu())))
    assert len(peer_tables(Study(load(on_cpu())))) == 1


def on_mps() -> list:
    """PyTorch's loop as people write it on both devices of a Mac, of which bench trains on one."""
    entries = []
    for entry in on_both():
        how = entry["configuration"]
        if is_theirs(entry):
            how["script"] = "usual"
        elif how["device"] != "cpu":
            continue
        if how["device"] != "cpu":
            how["torch_device"] = "mps"
        entries.append({**entry, "name": synthetic.row_name(how)})
    return entries


def test_a_gpu_that_pytorch_alone_sees_is_named(read, shell):
    document = synthetic_peers.document(on_mps())
    crossover = document["context"]["crossover"]
    crossover["peers"] = {"pytorch": {"version": "2.8.0", "gpu": "Apple M2", "torch_device": "mps"}}
    file = read(document)
    assert file.machine.gpu == "Apple M2"
    page = file.path.with_name("page")
    text = " ".join(shell("report", file.path, "-o", page, "--summary").out.split())
    assert "In PyTorch, as people write it, the GPU wins from 9" in text
    assert "Apple M2, PyTorch" in text and "vs Apple M2" in text and "PyTorch's mps" in text
    written = (page / "index.html").read_text("utf-8")
    assert "CUDA" not in text and "CUDA" not in written
    assert "had another GPU" in written and "had a GPU" not in written
    crossover["peers"]["pytorch"]["gpu"] = None
    assert read(document).machine.gpu is None
    alone = synthetic_peers.document(on_cpu())
    alone["context"]["crossover"]["peers"] = {"pytorch": {"version": "2", "gpu": "Apple M2"}}
    assert read(alone).machine.gpu is None  # no row is on it


def test_another_program_answers_as_bench_does(load):
    study = Study(load(on_both(), gpu=True))
    theirs = study.of_program("pytorch")
    assert theirs is study.of_program("pytorch") and theirs is not study
    assert {row.program for row in theirs.file.rows} == {"pytorch"}
    assert [pair.common for pair in theirs.comparisons] == [
        pair.common for pair in study.comparisons
    ]
    size = theirs.headline[0].comparison.crossover.size
    assert size == pytest.approx(2 * CROSSOVER, rel=0.05)
    assert f"the GPU wins from {units.size(size)} parameters" in glance(theirs).sentence
    assert [each.model for each in theirs.speed_ups()] == list(DISC_MODELS)
    assert not study.of_program("jax").comparisons


def test_a_loop_as_people_write_it_is_a_line_of_its_own_and_no_pair(load, beside):
    usual = theirs(OWN, script="usual")
    file = beside((OWN, [1e-3] * 9), (theirs(OWN), [3e-3] * 9), (usual, [2e-3] * 9))
    assert [pair.ratio for pair in pairs(file, every=True)] == pytest.approx([3])
    table, script = peer_tables(Study(file))
    assert lines(table)[0]["peer_seconds"] == "3.00 ms"
    (line,) = lines(script)
    shown = [line[key] for key in ("iteration", "on", "seconds", "usual_seconds", "ratio", "low")]
    assert shown == ["an epoch", "PyTorch, CPU, 1 thread", "3.00 ms", "2.00 ms", "0.667", "0.667"]
    (alone,) = peer_tables(Study(beside((OWN, [1e-3] * 9), (usual, [2e-3] * 9))))
    assert [(line["seconds"], line["usual_seconds"]) for line in lines(alone)] == [("–", "2.00 ms")]
    assert str(BUILT_IN.label(usual)) == "PyTorch on the CPU, eager, 1 thread, as people write it"


def test_each_script_has_its_crossover_of_rows_of_that_script(load):
    entries = on_both()
    for entry in filter(is_theirs, on_both()):
        configuration = {**entry["configuration"], "script": "usual"}
        time = entry["real_time"] * (10 if configuration["device"] == "cpu" else 1)
        name = synthetic.row_name(configuration)
        entries.append({**entry, "name": name, "configuration": configuration, "real_time": time})
    file = load(entries, gpu=True)
    _, lean, usual = (each.comparison.crossover.size for each in by_program(Study(file)))
    assert lean == pytest.approx(2 * CROSSOVER, rel=0.05)
    assert usual < CROSSOVER
    whose = [line["whose"] for line in lines(peer_tables(Study(file))[-1])]
    assert whose == ["ours", "PyTorch", "PyTorch, as people write it"]


def test_compiled_pytorch_has_an_answer_of_its_own(load):
    """The plain loop's is told without it, and the answer has a line of it."""
    entries = on_both()
    for entry in filter(is_theirs, on_both()):
        configuration = {**entry["configuration"], "compiler": "inductor"}
        time = entry["real_time"] / (2 if configuration["device"] == "cpu" else 1)
        name = synthetic.row_name(configuration)
        entries.append({**entry, "name": name, "configuration": configuration, "real_time": time})
    study = Study(load(entries, gpu=True))
    told = {each.label: each.comparison.crossover.size for each in by_program(study)}
    assert list(told) == ["ours", "PyTorch", "PyTorch, torch.compile"]
    assert told["PyTorch"] == pytest.approx(2 * CROSSOVER, rel=0.05)
    assert told["PyTorch, torch.compile"] > 1.5 * told["PyTorch"]
    line = "Other programs on both devices: PyTorch, torch.compile: from "
    assert any(each.startswith(line) for each in glance(study).lines)


def test_ours_are_as_if_there_were_no_peer(load, read):
    entries = on_both()
    alone = [entry for entry in entries if not is_theirs(entry)]
    plain = read(synthetic.document(alone, gpu="synthetic GPU"), "plain.json")
    both = load(entries, gpu=True)
    assert [row.name for row in both.rows] == [row.name for row in plain.rows]
    assert [pair.crossover for pair in comparisons(both)] == [
        pair.crossover for pair in comparisons(plain)
    ]
    assert {row.device for row in both.peers} == {"cpu", "cuda"}
    assert {row.program for row in both.peers} == {"pytorch"}


def test_what_trains_comes_first_and_parts_are_folded(load):
    generator = np.random.default_rng(1)
    gemm = {"family": "Gemm", "m": "8", "n": "8", "k": "8", "transpose": "nn"}
    gemm |= {"precision": "f32", "cache": "warm", "device": "cpu", "execution": "eager"}
    gemm["cpu_threads"] = "1"
    parts = operation(gemm, 1e-6, 10, generator)
    parts += operation(theirs(gemm), 2e-6, 10, generator)
    file = load([*parts, *on_cpu()])
    titles = [table.title for table in peer_tables(Study(file))]
    assert [title.rsplit(" ", 1)[1] for title in titles] == ["epoch", "product"]
    built = section.build([file], Context())
    assert built is not None
    (block,) = built.blocks
    assert [table.title for table in block.tables if not table.folded] == titles[:1]


def test_a_row_without_a_result_is_listed(load):
    failed = synthetic.failure(theirs(OWN), "the loss of step 2 is off")
    file = load([*synthetic.samples(OWN, [1e-3] * 9), failed])
    ((name, outcome, reason),) = missing_table(file).lines
    assert name.text.count("/program:pytorch/device:cpu") == 1
    assert (outcome.text, reason.text) == ("failed", "the loss of step 2 is off")
    built = section.build([file], Context())
    assert built is not None and built.blocks[0].tables[-1] == missing_table(file).as_folded()


def test_modules_as_they_are_have_a_table_and_no_pair(load):
    compiled = {**theirs(OWN), "compiler": "inductor"}
    entries = synthetic.samples(synthetic.cpu_configuration("disc-4", 1), [1e-3] * 9)
    entries += synthetic.samples(compiled, [2e-3] * 9, as_is="no layer is called that")
    wrong = synthetic.failure({**compiled, "batch": "7"}, "it drifts")
    file = load([*entries, {**wrong, "not_verified": {"seconds": 3e-3}}])
    assert pairs(file) == []
    table = peer_tables(Study(file))[0]
    assert table.title == "Modules as they are, in PyTorch alone"
    (line,) = lines(table)
    texts = [line[key] for key in ("iteration", "on", "how", "seconds")]
    assert texts == ["an epoch", "CPU, 1 thread", "torch.compile", "2.00 ms"]
    assert table.notes == ("disc-3: no layer is called that",)
    assert table.title in str(section.build([file], Context()))
    assert "3.00 ms" in str(doubts.build([file], Context()))


def test_a_file_of_pytorch_alone_is_said_so(write, shell):
    alone = [entry for entry in on_cpu() if is_theirs(entry)]
    path = write(synthetic_peers.document(alone))
    assert len(loading.load_file(path).peers) == len(DISC_MODELS)
    assert "has no rows of bench's that do the work" in shell("peers", path, code=2).err


def test_a_devices_words_say_whose_it_is():
    label = BUILT_IN.label({"program": "pytorch", "device": "cpu", "cpu_threads": "2"})
    assert str(label) == "PyTorch on the CPU, 2 threads" and label.there == "2 threads"


def test_older_files_name_the_program_in_the_device(write):
    path = write(synthetic_peers.document(on_cpu()))
    newest = loading.load_file(path)
    text = path.read_text(encoding="utf-8").replace("/program:pytorch/device:", "/device:torch-")
    path.write_text(
        re.sub(r'"program": "pytorch",\s*"device": "', '"device": "torch-', text), encoding="utf-8"
    )
    assert "program" not in path.read_text(encoding="utf-8")
    older = loading.load_file(path)
    assert [row.name for row in older.peers] == [row.name for row in newest.peers] != []
    assert [row.configuration for row in older.peers] == [r.configuration for r in newest.peers]


def test_an_interval_is_of_order_statistics_and_wider_for_few_instances(beside):
    """Pairs of instances count once where they are many, as in the bootstrap of a crossover."""
    ratios = np.array([5.0, 1.0, 6.0, 2.0, 7.0, 3.0, 8.0, 4.0, 9.0])
    (pair,) = pairs(beside((OWN, [1e-3] * 9), (theirs(OWN), list(1e-3 * ratios))))
    assert (pair.ratio, pair.low, pair.high) == pytest.approx((5, 2, 8))
    many, few = Instances(tuple(range(9)), 0.1), Instances((), 0.1)
    low, high = ratio_interval(ratios, many, many)
    assert (low, high) == (2, 8)
    equal = np.full(9, 2.0)
    low, high = ratio_interval(equal, many, few)
    assert (low, high) == pytest.approx((2 * np.exp(-0.196), 2 * np.exp(0.196)), rel=0.03)
    wider = ratio_interval(equal, few, few)
    assert wider == pytest.approx((2 * np.exp(-0.277), 2 * np.exp(0.277)), rel=0.03)
    six = Instances((0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5), 0.1)
    assert ratio_interval(np.repeat(ratios[:6], 2), six, six) == (1, 7)
    five = Instances((0, 0, 1, 1, 2, 2, 3, 3, 4, 4), 0.1)
    assert ratio_interval(np.repeat(ratios[:5], 2), five, five) is None
