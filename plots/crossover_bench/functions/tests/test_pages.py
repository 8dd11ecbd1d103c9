# SPDX-License-Identifier: Apache-2.0
"""docs/howto/two-functions-in-python.md and colab.ipynb run as they stand, with fewer values."""

import ast
import json
import os
import re
import sys
from importlib.util import find_spec

import numpy as np
import pytest

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


SETUP = """
import sys
from crossover_bench.functions.tests import fake_device
sys.modules["torch"] = fake_device.torch()
"""


def test_the_notebook_runs_in_a_kernel(monkeypatch):
    """As Jupyter runs it, without its %pip, for which there is no wheel: what it shows is the
    answer's text and picture, and the plot."""
    for name in ("nbclient", "ipykernel", "matplotlib"):
        pytest.importorskip(name, reason=f"{name} is not installed in this Python")
    import nbclient  # noqa: PLC0415
    import nbformat  # noqa: PLC0415

    book = nbformat.reads(smaller((HOWTO / "colab.ipynb").read_text("utf-8")), as_version=4)
    nbformat.validate(book)
    book.cells = [cell for cell in book.cells if not cell.source.startswith("%")]
    if not find_spec("torch"):
        book.cells.insert(0, nbformat.v4.new_code_cell(SETUP))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    answer, plot = (cell.outputs for cell in book.cells[-2:])
    (shown,) = (of for of in answer if of.output_type == "execute_result")
    assert len(shown.data["text/plain"].splitlines()) == 3
    assert re.match(r"<p>.*</svg>", shown.data["text/html"], re.DOTALL)
    (progress,) = (of.data for of in answer if of.output_type == "display_data")
    assert progress["text/plain"] == ""
    assert [of.output_type for of in plot] == ["stream", "display_data"]
    assert "image/png" in plot[1].data
