# SPDX-License-Identifier: Apache-2.0
"""What each command prints of a few files, word for word: in plots/tests/snapshots.

`python -m plots.tests.test_snapshots` writes them anew; `git diff` then shows what has changed.
Tests of a feature ask for its numbers; its words stand here, once.
"""

import contextlib
import html
import io
import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

from plots.cli import main
from plots.features.predict.files import predictions
from plots.features.report import report
from plots.file import loading
from plots.tests import (
    synthetic,
    synthetic_machine,
    synthetic_peers,
    synthetic_steps,
)
from plots.tests.conftest import undraw

FOLDER = Path(__file__).with_name("snapshots")
# On files of write_files(); `page` is no command: the page of `report` without its tables.
COMMANDS = {
    "validate": "validate --strict machine.json steps.json",
    "times": "times machine.json steps.json",
    "crossover": "crossover machine.json",
    "crossover-steps": "crossover steps.json",
    "crossover-threads": "crossover --threads machine.json",
    "crossover-summary": "crossover --summary machine.json cpu.json other.json",
    "why": "why machine.json",
    "why-cpu": "why cpu.json",
    "why-steps": "why steps.json",
    "predict": "predict cpu.json --gpu=l4,h200",
    "predict-ranks": "predict cpu.json --gpu=h200 --ranks=2,8",
    "advise": "advise machine.json --mlp=784,512,10 --epochs=20",
    "advise-cards": "advise cpu.json --mlp=784,512,10",
    "compare": "compare machine.json slower.json",
    "compare-machines": "compare machine.json other.json cpu.json",
    "compare-mixed": "compare --cpu-of=cpu.json --gpu-of=other.json --anyway",
    "peers": "peers peers.json",
    "shi": "shi steps.json",
    "page": "page machine.json cpu.json",
}
MODELS = ("disc-2", "disc-5", "disc-7", "disc-9", "disc-11", "heart")
WAYS = (("eager", "pinned"), ("graph", "resident"))


def write_files(folder: Path) -> None:
    """A machine, itself a tenth slower, one without a GPU, another, training steps, PyTorch."""
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
        "peers": synthetic_peers.document(synthetic_peers.on_both(), gpu=True),
    }
    for name, document in documents.items():
        synthetic.write(folder / f"{name}.json", document)


def outline(names: str) -> str:
    """What the page on these files says outside of tables and pictures, a line an element."""
    files = loading.load_files(map(Path, names.split()))[0]
    contents = report.build_report(files, predicted=predictions(files))
    page = re.sub(r"(?s)<(svg|table|style|script)\b.*?</\1>", "", contents[report.PAGE].decode())
    said = re.findall(r"(?s)<(h[1-4]|p|li|caption|summary|pre)\b[^>]*>(.*?)</\1>", page)
    lines = [f"{tag}: {' '.join(re.sub('<[^>]+>', ' ', text).split())}" for tag, text in said]
    return html.unescape("\n".join(lines)) + "\n"


def printed(command: str) -> str:
    if command.startswith("page "):
        return outline(command.removeprefix("page "))
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command.split())
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
    assert printed(COMMANDS[name]) == expected, "python -m plots.tests.test_snapshots"


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        undraw(patch)
        write_files(Path(place))
        os.chdir(place)
        for name, command in COMMANDS.items():
            (FOLDER / f"{name}.txt").write_text(printed(command), encoding="utf-8")
            print(name, file=sys.stderr)
