# SPDX-License-Identifier: Apache-2.0
"""docs/howto/two-functions-in-python.md and colab.ipynb run as they stand, with fewer values."""

import ast
import json
import re
import sys
from importlib.util import find_spec

import numpy as np

from crossover_bench.functions.tests import fake_device
from crossover_bench.place import ROOT

HOWTO = ROOT / "docs" / "howto"


def smaller(text):
    return text.replace("10_000_000", "4_000")


def test_the_page_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "cupy", fake_device.cupy())
    monkeypatch.chdir(tmp_path)
    text = (HOWTO / "two-functions-in-python.md").read_text("utf-8")
    first, sides, answer = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    exec(smaller(first), names)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3 and shown[0].startswith("sort: with the data there the ")
    exec(sides, names)
    exec(answer, names)
    assert " stable " in capsys.readouterr().out
    assert (tmp_path / "sort.json").is_file()
    assert names["answer"].plot(relative_to="quick").lines


def test_the_notebook_runs_on_the_cpu(monkeypatch, capsys):
    """With PyTorch where this Python has it, else with what stands for it."""
    book = json.loads((HOWTO / "colab.ipynb").read_text("utf-8"))
    assert (book["nbformat"], len(book["cells"])) == (4, 5)
    assert len({cell["id"] for cell in book["cells"]}) == 5
    if not find_spec("torch"):
        monkeypatch.setitem(sys.modules, "torch", fake_device.torch())
    names: dict[str, object] = {}
    for cell in book["cells"]:
        text = smaller("".join(cell["source"]))
        if cell["cell_type"] != "code" or text.startswith("%"):
            continue
        assert cell["outputs"] == [] and ast.parse(text)
        if ".plot(" in text and not find_spec("matplotlib"):
            continue
        exec(text, names)
    answer = names["answer"]
    assert {row.device for row in answer.rows} == {"cpu"}
    assert re.match(r"<p>.*<p>", answer._repr_html_())
    assert np.isfinite([row.seconds for row in answer.rows]).all()
