# SPDX-License-Identifier: Apache-2.0
"""What tells rows apart: the axes of their names, and the fingerprint of what they train."""

import json
import re
from pathlib import Path

import pytest
from bench_runs import EMULATED, EPOCHS, MLP, SHORT, bench, measure, plan, samples

RESULTS = Path(__file__).parents[1] / "results"

ROWS = "1,2,0\n3,4,1\n5,6,1\n"


def workload(folder: Path, *arguments: str) -> str:
    (one,) = {row["workload"] for row in measure(folder, *arguments)["rows"]}
    assert re.fullmatch("[0-9a-f]{16}", one)
    return one


@pytest.mark.slow
def test_the_same_training_has_the_same_fingerprint(tmp_path):
    first = workload(tmp_path, *MLP)
    assert workload(tmp_path, *MLP, "--threads=1,2") == first
    assert workload(tmp_path, *MLP, "--optimizer=sgd", "--lr=0.1", "--rows=1000") == first


@pytest.mark.slow
def test_another_training_of_the_same_name_has_another_fingerprint(tmp_path):
    data, other = tmp_path / "data.csv", tmp_path / "other.csv"
    data.write_text(ROWS, "utf-8")
    other.write_text(ROWS.replace("6", "7"), "utf-8")
    variants = [
        (),
        ("--lr=0.2",),
        ("--optimizer=adamw",),
        ("--optimizer=adamw", "--weight-decay=0.5"),
        ("--rows=999",),
        ("--rows=3",),
        (f"--data={data}",),
        (f"--data={other}",),
    ]
    runs = [measure(tmp_path, *MLP, "--batch=3", *variant)["rows"] for variant in variants]
    assert len({row["name"] for rows in runs for row in rows}) == 1
    assert len({row["workload"] for rows in runs for row in rows}) == len(variants)
    # Data is known by its rows, not by its file.
    other.write_text("a,b,label\n" + ROWS.replace("1", "1.0"), "utf-8")
    same = workload(tmp_path, *MLP, "--batch=3", f"--data={other}")
    assert same == runs[variants.index((f"--data={data}",))][0]["workload"]


@pytest.mark.slow
def test_devices_train_the_same(tmp_path):
    arguments = ("--mlp=2,2", "--threads=1", "--family=Epoch", "--execution=eager,graph", *SHORT)
    rows = samples(measure(tmp_path, *arguments, program=EMULATED))
    ways = {(row["configuration"]["device"], row["configuration"]["execution"]) for row in rows}
    assert ways == {("cpu", "eager"), ("cuda", "eager"), ("cuda", "graph")}
    assert len({row["workload"] for row in rows}) == 1


@pytest.mark.slow
def test_the_file_says_what_is_an_axis(tmp_path):
    document = measure(tmp_path, "--mlp=2,2", "--threads=1", *EPOCHS, "--accumulate=2", *SHORT)
    axes = document["context"]["crossover"]["axes"]
    roles = {axis["key"]: axis["role"] for axis in axes}
    assert len(roles) == len(axes)
    assert {key for key, role in roles.items() if role == "alike"} == {"precision", "loss"}
    assert {key for key, role in roles.items() if role == "how"} == {
        *("program", "device", "execution", "memory", "mode", "data", "products", "cudnn"),
        *("zero", "loader", "ranks", "bucket", "cpu_threads", "step_count"),
    }
    values = {axis["key"]: axis.get("values") for axis in axes}
    assert values["execution"] == [
        *("eager", "winograd", "fused", "overlapped", "auto", "graph", "graph-epoch"),
        "persistent",
    ]
    assert values["device"] == ["cpu", "cuda"]
    assert values["data"] == ["resident", "pageable", "pinned", "pinned-async"]
    assert values["products"] == ["heuristic", "autotuned"]
    assert values["family"] == [
        *("Peak", "Copy", "Collective", "Gemm", "Layer", "Epoch", "Minibatch", "Forward", "Command")
    ]
    assert values["model"] is None
    for row in samples(document):
        keys = list(row["configuration"])
        assert keys == [axis["key"] for axis in axes if axis["key"] in keys]


@pytest.mark.slow
def test_names_have_their_keys_in_the_order_of_the_axes(tmp_path):
    """Of all rows that a full sweep plans, on both devices."""
    document = measure(tmp_path, *MLP)
    order = [axis["key"] for axis in document["context"]["crossover"]["axes"]]
    flags = ("--sweep=full", "--products=heuristic,autotuned", "--precision=f32,bf16")
    names = [row.name for row in plan(*flags)]
    assert any("/device:cuda/" in name for name in names)
    assert any("/products:autotuned" in name for name in names)
    for name in names:
        keys = [part.split(":")[0] for part in name.split("/")[1:]]
        assert keys == [key for key in order if key in keys], name


def test_the_table_of_counters_is_the_documents():
    done = bench("--context", "--cuda=off")
    known = json.loads(done.stdout)["crossover"]["counters"]
    text = (RESULTS / "README.md").read_text("utf-8").partition("\n## Counters\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (fact|once|repetition) \| (.*?) \|$", text, re.M)
    assert known == {
        key: {"unit": unit, "kind": kind, "description": description.replace("`", "")}
        for key, unit, kind, description in rows
    }
