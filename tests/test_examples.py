# SPDX-License-Identifier: Apache-2.0
"""Each command of examples/README.md runs, in as little time as it can."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from bench_runs import ROOT, SHORT, environment, run
from scripts import ran

from crossover_bench.files import loading
from crossover_bench.place import ALONE
from crossover_bench.run import own_network
from crossover_bench.tests import synthetic, synthetic_sweep

PAGE = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line)
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]
RUNS = [words[1:] for words in COMMANDS if words[0] == "./run"]
SCRIPTS = [words[words.index(word) + 1 :] for words in COMMANDS for word in words if "bin" in word]
FEW = ("--threads=1", "--cuda=off", *SHORT)
ONNX = "build/net.onnx"


def measured(words: list[str], folder: Path) -> list[str]:
    """The networks that bench measures with `words`; an imported network is told by what
    own_network makes of it."""
    python = Path(sys.executable)
    words = own_network.as_it_is(own_network.imported(words, lambda: python), lambda: python)
    families = [] if any(word.startswith("--family=") for word in words) else ["--family=Epoch"]
    kept = [word for word in words if not word.startswith("--threads=")]
    run(folder, *kept, *families, *FEW)
    file = loading.load_file(folder / "result.json")
    rows = [row for row in (*file.rows, *file.peers) if row.family in ("Epoch", "Minibatch")]
    assert rows and not any(row.failure for row in rows)
    return [row.model for row in rows]


def named(words: list[str], part: str) -> bool:
    return any(word.startswith("--network=") and part in word for word in words)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(own_network, "FOLDER", tmp_path / "networks")


@pytest.mark.parametrize("words", [words for words in RUNS if not named(words, "")], ids=" ".join)
def test_a_network_by_its_widths(words, tmp_path):
    assert len(measured(words, tmp_path)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("words", [words for words in RUNS if named(words, ".py")], ids=" ".join)
def test_a_module(words, tmp_path):
    pytest.importorskip("torch")
    scales = next((word for word in words if word.startswith("--scale=")), "")
    assert len(set(measured(words, tmp_path))) == scales.count(",") + 1


@pytest.mark.slow
def test_onnx(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("onnx")
    (script,) = (words for words in SCRIPTS if words[-1] == ONNX)
    (words,) = (words for words in RUNS if named(words, ONNX))
    path = str(tmp_path / "net.onnx")
    ran(sys.executable, script[0], path, cwd=ROOT)
    assert measured([word.replace(ONNX, path) for word in words], tmp_path) == ["net"]


def test_the_script_on_result_files(tmp_path):
    path = synthetic.write(
        tmp_path / "file.json", synthetic.document(synthetic_sweep.known(), gpu="synthetic GPU")
    )
    (script,) = (words for words in SCRIPTS if words[-1] == "results")
    variables = {**environment(), "PYTHONPATH": os.pathsep.join([str(ALONE), *sys.path])}
    done = ran(sys.executable, script[0], path, cwd=ROOT, env=variables)
    first, *rest = done.stdout.splitlines()
    assert first.endswith(" rows of epochs") and len(rest) == 11
    assert re.fullmatch(r"disc-2 +22 parameters +\S+ s  \(\S+ to \S+\)", rest[0])
