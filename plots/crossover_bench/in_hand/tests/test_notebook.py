# SPDX-License-Identifier: Apache-2.0
"""ask() in a notebook's kernel, on a class of the notebook's own: one output that says how far it
is and is empty at the end, and the answer as a notebook shows it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed here")
pytest.importorskip("ipykernel", reason="ipykernel is not installed here")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed here")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed here")

from crossover_bench.place import PACKAGE  # noqa: E402

HELD = f"""
import sys
sys.path.insert(0, {str(PACKAGE.parent)!r})
import torch, crossover_bench

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 3)
    def forward(self, x):
        return self.a(x)

torch.set_num_threads(1)
model, loss = Net(), torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.rand(16, 8), torch.arange(16) % 3
"""
ONE = (
    "answer = crossover_bench.ask(model, batch, loss=loss, optimizer=optimizer, seconds=2)\nanswer"
)
SIZES = (
    "crossover_bench.ask(model, batch, loss=loss, optimizer=optimizer, seconds=3, "
    "batches=[8, 32], devices=['cpu', 'cpu:0'])"
)
PRINTED = "print(answer)"


@pytest.fixture(scope="module")
def cells():
    """The outputs of each, and what was shown meanwhile."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in (HELD, ONE, PRINTED, SIZES)]
    shown: list[str] = []

    class Client(nbclient.NotebookClient):
        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"] in ("display_data", "update_display_data"):
                shown.append(msg["content"]["data"]["text/plain"])
            return super().process_message(msg, cell, cell_index)

    Client(notebook, timeout=600, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells], shown


def test_progress_is_one_output_that_is_empty_at_the_end(cells):
    """Takes seconds, as a kernel starts."""
    outputs, shown = cells
    for of in (outputs[1], outputs[3]):
        (progress,) = (output for output in of if output.output_type == "display_data")
        assert progress.data["text/plain"] == ""
    assert any(line.startswith("Net: ") and line.endswith(" s left") for line in shown)
    errors = [o for of in outputs for o in of if o.get("name") == "stderr"]
    assert not errors


def test_the_answer_is_shown_as_a_page_and_printed_as_lines(cells):
    (answer,) = (o for o in cells[0][1] if o.output_type == "execute_result")
    page = answer.data["text/html"]
    assert page.startswith("<p><b>") and "<table><caption>Net (27 parameters), batch 16" in page
    (printed,) = cells[0][2]
    assert "Net (27 parameters), batch 16" in printed.text and "<" not in printed.text


def test_over_batch_sizes_a_strip_is_shown(cells):
    (answer,) = (o for o in cells[0][3] if o.output_type == "execute_result")
    assert "<table>" in answer.data["text/html"] and answer.data["text/html"].endswith("</svg>\n")
