# SPDX-License-Identifier: Apache-2.0
"""What each command prints of a few files, word for word: in tests/snapshots.

`python -m crossover_bench.tests.test_snapshots` writes them anew; `git diff` shows what changed.
Tests of a feature ask for its numbers; its words stand here, once.
"""

import contextlib
import html
import io
import json
import math
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from crossover_bench.answers.predict.answer import predictions
from crossover_bench.answers.report import report
from crossover_bench.files import loading
from crossover_bench.shell.cli import main
from crossover_bench.tests import synthetic, synthetic_machine, synthetic_peers, synthetic_steps
from crossover_bench.tests.conftest import hide_bench, undraw

FOLDER = Path(__file__).with_name("snapshots")
# On files of write_files(). Three are no commands: `page`, that of `report` without its tables, and
# `refusals` and `faults`.
COMMANDS = {
    "validate": "validate --strict machine.json steps.json",
    "times": "times machine.json steps.json",
    "crossover": "crossover h200.json",
    "crossover-steps": "crossover steps.json",
    "crossover-threads": "crossover --threads machine.json",
    "crossover-summary": "crossover --summary machine.json cpu.json other.json",
    "why": "why h200.json",
    "why-steps": "why steps.json",
    "predict": "predict cpu.json --gpu=l4,h200",
    "predict-ranks": "predict cpu.json --gpu=h200 --ranks=2,8",
    "advise": "advise machine.json --mlp=784,512,10 --epochs=20",
    "advise-cards": "advise cpu.json --mlp=784,512,10",
    "compare": "compare machine.json slower.json",
    "compare-machines": "compare machine.json other.json cpu.json",
    "peers": "peers peers.json",
    "shi": "shi steps.json",
    "summary": "report machine.json cpu.json -o out --summary",
    "page": "page machine.json cpu.json",
    "refusals": "refusals",
    "faults": "faults",
}
# Each has a sentence of its own in refusals.txt.
REFUSED = (
    "advise machine.json",
    "advise machine.json --mlp=2,2 --params=9",
    "advise machine.json --mlp=5",
    "advise machine.json --mlp=a,b",
    "advise machine.json --mlp=2,1 --loss-function=cross-entropy",
    "advise machine.json --mlp=2,2 --batch=2000 --rows=1000",
    "advise machine.json --mlp=2,2 --precision=f8",
    "advise machine.json --mlp=2,2 --epochs=0",
    "advise machine.json --mlp=2,2 --threads=3",
    "advise machine.json --model=heart --loss-function=mse",
    "advise machine.json --model=resnet-56",
    "advise machine.json --cost=missing.json",
    "advise machine.json --mlp=2,2 --of=energy",
    "advise machine.json --cost=machine.json --mlp=2,2",
    "advise peers.json --mlp=2,2",
    "advice-check machine.json",
    "compare",
    "compare machine.json",
    "compare machine.json other.json --cpu-of=cpu.json --gpu-of=other.json",
    "compare --cpu-of=cpu.json",
    "compare --cpu-of=cpu.json --gpu-of=other.json --charts=d",
    "compare --cpu-of=machine.json --gpu-of=cpu.json",
    "compare machine.json cpu.json --baseline=nobody",
    "compare missing.json machine.json",
    "compare machine.json slower.json --fail-on-slower=5",
    "crossover cpu.json",
    "crossover --ranks machine.json",
    "crossover --scaling=weak machine.json",
    "crossover --summary machine.json --charts=d",
    "crossover --threads --charts=d machine.json",
    "crossover machine.json --tdp=cpu=65",
    "crossover machine.json --of=energy --tdp=cpu=65kW",
    "crossover machine.json --of=energy --tdp=gpu=700 --tdp=gpu=72",
    "crossover machine.json --of=energy --tdp=gpu=700",
    "peers machine.json",
    "predict",
    "predict machine.json --gpu=rtx-9090",
    "predict machine.json --gpu=RTX-4080-Ti",
    "predict machine.json --gpu=108",
    "predict machine.json --gpu=foo",
    "predict machine.json --gpu=l4,,t4",
    "predict machine.json --gpu=tflops:82.6",
    "predict machine.json --gpu=tflops:many,bandwidth:1",
    "predict machine.json --gpu=speed:9",
    "predict machine.json --gpu=gtx-980 --precision=tf32",
    "predict machine.json --execution=lazy",
    "predict machine.json --placement=pageable",
    "predict machine.json --attention=fused",
    "predict machine.json --batch=many",
    "predict machine.json --batch=77",
    "predict machine.json --link=nvlink",
    "predict machine.json --scaling=weak",
    "predict machine.json --ranks=1,2",
    "predict machine.json --ranks=two",
    "predict machine.json --ranks=2 --charts=c",
    "predict machine.json --ranks=2 --link=rope",
    "predict machine.json --gpu=rtx-4090 --ranks=2 --link=nvlink",
    "predict peers.json --gpu=l4 --ranks=101",
    "report missing.json -o out",
    "report machine.json -o out --detail=0",
    "why missing.json",
)
GONE = object()
PART = {"start": "2026-11-22T05:16:11+00:00", "end": "2026-11-22T05:17:11+00:00", "rows": 1}
PART |= {"load_average": [1, 1, 1], "load_average_end": [2.5, 2, 1], "seconds": 60}
# What is changed in a good file of one row of three repetitions: where, and to what. The sentence
# about each is in faults.txt.
FAULTS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("context/date", ("yesterday",)),
    ("context/crossover/schema_version", (0, 3, 2.0, "2", None, True, [2])),
    ("context/crossover/complete", ("yes",)),
    ("context/crossover/machine/cpu/cores", (0,)),
    ("context/crossover/machine/gpu", ({}, "A100")),
    ("context/crossover/software/commit", ("abc",)),
    ("context/crossover/axes", ([{"key": "Two words", "role": "how", "description": ""}],)),
    ("context/crossover/axes", ([{"key": "nodes", "role": "who", "description": ""}],)),
    ("context/crossover/counters", ({"joules": {"kind": "repetition", "description": "of it"}},)),
    ("context/crossover/parts", ([{**PART, "rows": 1}, {**PART, "rows": 0}], [PART, PART])),
    ("rows", (GONE, {}, {"x": {"params": math.inf}})),
    ("rows/0", (3,)),
    ("rows/0/name", (GONE, "", {})),
    ("rows/0/configuration", (GONE, [])),
    ("rows/0/configuration/nodes", ("4",)),
    ("rows/0/configuration/cpu_threads", ("4",)),
    ("rows/0/configuration/family", ("Other",)),
    ("rows/0/repetitions", (GONE, 0, 4)),
    ("rows/0/outcome", ("failed", 3)),
    ("rows/0/verification", (GONE, {})),
    ("rows/0/verification/relative_error", (0.5,)),
    ("rows/0/params", (GONE, -5)),
    ("rows/0/warnings", ("noisy", [1])),
    ("rows/0/chosen", ({"execution": "auto"}, {"cpu_threads": "1"})),
    ("rows/0/chosen", ({"execution": "graph", "products": "guessed"},)),
    ("rows/0/chosen", tuple({"execution": "fused", "cpu_threads": count} for count in (1, "0"))),
    ("rows/0/workload", ("x", "a" * 15, "A" * 16, 7)),
    ("benchmarks/0", (3,)),
    ("benchmarks/0/seconds_per_epoch", (0.5,)),
    ("benchmarks/1/name", (GONE, "", ["x"], "Epoch/model:other", "\ud800")),
    ("benchmarks/1/name", ("Epoch/\x1b[31m\n" + "x" * 10_000,)),
    ("benchmarks/1/run_type", (GONE, "aggregate")),
    ("benchmarks/1/instance", (-1,)),
    ("benchmarks/1/real_time", (GONE, "31", None, True, 0, 1e-300)),
    ("benchmarks/1/real_time", (math.nan, math.inf, -math.inf, 10**400, 1e41)),
    ("benchmarks/1/cpu_time", (GONE, -1)),
    ("benchmarks/1/time_unit", (GONE, "h")),
    ("benchmarks/1/iterations", (1.5,)),
    ("benchmarks/2/params", (71,)),
)
# Real files show what those that follow formulas do not.
H200 = Path(__file__).parents[3] / "results/intel-xeon-6-207-16c/2026-11-27-7050029.json"
MODELS = ("disc-2", "disc-5", "disc-7", "disc-9", "disc-11", "heart")
PEERS = ("disc-2", "disc-8", "disc-9", "disc-12")
WAYS = (("eager", "pinned"), ("graph", "resident"))


def write_files(folder: Path) -> None:
    """A machine, itself a tenth slower, one without a GPU, another, training steps, PyTorch; and
    an H200, which was measured."""
    slower = synthetic_machine.machine(models=MODELS, modes=WAYS, noise=0.01)
    for entry in slower["benchmarks"]:
        for time in ("real_time", "cpu_time"):
            entry[time] *= 1.1
    other = synthetic_machine.machine(models=MODELS, modes=WAYS[1:], seed=1)
    cpu = synthetic_machine.machine(models=MODELS, modes=())
    for document, name in ((other, "other"), (cpu, "without a GPU")):
        document["context"]["crossover"]["machine"]["id"] = name
    cpu["benchmarks"] += synthetic_steps.steps(["alexnet-r"], ways=())
    steps = synthetic_steps.steps(["alexnet-r", "lstm"], ways=WAYS, batches=(2, 8, 32, 128))
    documents = {
        "machine": synthetic_machine.machine(models=MODELS, modes=WAYS, noise=0.01),
        "slower": slower,
        "other": other,
        "cpu": cpu,
        "steps": synthetic.document(steps, gpu="synthetic GPU"),
        "peers": synthetic_peers.document(synthetic_peers.on_both(PEERS), gpu=True),
    }
    for name, document in documents.items():
        synthetic.write(folder / f"{name}.json", document)
    shutil.copy(H200, folder / "h200.json")


def outline(names: str) -> str:
    """What the page on these files says outside of tables and pictures, a line an element."""
    files = loading.load_files(map(Path, names.split()))[0]
    contents = report.build_report(files, predicted=predictions(files))
    page = re.sub(r"(?s)<(svg|table|style|script)\b.*?</\1>", "", contents[report.PAGE].decode())
    elements = re.findall(r"(?s)<(h[1-4]|p|li|caption|summary|pre)\b[^>]*>(.*?)</\1>", page)
    lines = [f"{tag}: {' '.join(re.sub('<[^>]+>', ' ', text).split())}" for tag, text in elements]
    return html.unescape("\n".join(lines)) + "\n"


def fault(place: str, value: object) -> str:
    """The sentence about a file with `value` in that place."""
    row = synthetic.samples(synthetic.cpu_configuration("disc-3", 2), [0.03, 0.01, 0.02])
    document = synthetic.as_file(synthetic.document(row))
    *holders, last = (int(part) if part.isdigit() else part for part in place.split("/"))
    holder: Any = document
    for key in holders:
        holder = holder[key]
    if value is GONE:
        del holder[last]
    else:
        holder[last] = value
    Path("fault.json").write_text(json.dumps(document), encoding="utf-8")
    try:
        return f"{place}: read as {loading.load_file(Path('fault.json')).rows[0].name}\n"
    except loading.BadFileError as error:
        sentence = str(error).removeprefix("fault.json: ")
        return f"{sentence.replace(row[0]['name'], 'ROW')}\n"


def printed(command: str) -> str:
    if command.startswith("page "):
        return outline(command.removeprefix("page "))
    if command == "refusals":
        return "\n".join(map(printed, REFUSED))
    if command == "faults":
        return "".join(fault(place, value) for place, values in FAULTS for value in values)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = main(command.split())
        except SystemExit as ended:
            code = ended.code
    return f"$ {command}\n{out.getvalue()}{err.getvalue()}exit code {code}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("snapshots")
    write_files(folder)
    return folder


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_it_printed(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    expected = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert printed(COMMANDS[name]) == expected, "python -m crossover_bench.tests.test_snapshots"


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        undraw(patch)
        hide_bench(patch)
        write_files(Path(place))
        os.chdir(place)
        for name, command in COMMANDS.items():
            (FOLDER / f"{name}.txt").write_text(printed(command), encoding="utf-8")
            print(name, file=sys.stderr)
