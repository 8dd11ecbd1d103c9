# SPDX-License-Identifier: Apache-2.0
"""Ask the page: a browser answers what `advise` does, to the last digit that matters."""

import html
import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from crossover_bench.answers.advise import section
from crossover_bench.answers.advise.advice import Adviser, Network
from crossover_bench.answers.advise.table import both
from crossover_bench.answers.predict.answer import Predictions
from crossover_bench.counts.cards import load_cards
from crossover_bench.counts.mlp import Mlp, of_size, widths_in
from crossover_bench.files import loading
from crossover_bench.files.rows import File
from crossover_bench.show.page.page import render_page
from crossover_bench.show.page.section import Context
from crossover_bench.tests import synthetic_machine
from crossover_bench.tests.conftest import browse, with_browser

pytestmark = with_browser

RESULTS = Path(__file__).parents[3] / "results"
NETWORKS = (
    ((784, 512, 10), 100, 1000),
    ((784, 512, 10), 64, 1000),  # the last batch is smaller
    ((2, 4, 8, 16, 32, 64, 128, 256, 2), 100, 1000),
    ((10, 10000, 2), 100, 1000),
    ((30, 5, 2), 10, 709),
    ((1, 1, 3), 100, 1000),
    ((784, 2048, 4096, 1024, 1000), 1024, 4096),
    ((5, 4), 2500, 5000),
)
USUAL = {"activation": "relu", "optimizer": "sgd", "loss": "cross_entropy"}
CARDS = ("rtx-4060", "h200", "gtx-980", "jetson-orin-nano", "rtx-4060-laptop")
# Fills in the form, each question in turn, and leaves what the page answers.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body><script>
const frame = document.createElement("iframe");
frame.onload = () => {
  const page = frame.contentDocument, form = page.querySelector("#ask form");
  const answers = QUESTIONS.map(question => {
    for (const [name, value] of Object.entries(question)) form.elements[name].value = value;
    form.dispatchEvent(new frame.contentWindow.Event("input"));
    const rows = [...page.querySelectorAll("#ask tbody tr")];
    return {
      hidden: form.hidden,
      sentence: page.querySelector("#ask output p")?.textContent,
      command: page.querySelector("#ask pre").textContent.trim(),
      notes: [...page.querySelectorAll("#ask output .note")].map(note => note.textContent),
      lines: rows.map(row => [row.cells[0].textContent, row.cells[4].textContent,
        ...[1, 2, 3].map(i => Number(row.cells[i].dataset.value))]),
    };
  });
  document.body.textContent = "FOUND" + JSON.stringify(answers) + "END";
};
frame.srcdoc = SOURCE;
document.body.append(frame);
</script></body>"""


@pytest.fixture(scope="module")
def cpu_file() -> File:
    return loading.load_file(RESULTS / "amd-epyc-25-17-2c" / "2026-11-23-bfe530f.json")


def page_of(file: File, fitted) -> str:
    made = section.build([file], Context(predictions=Predictions(fitted)))
    assert made is not None
    return render_page([made])


def answers(page: str, questions: list[dict[str, str]], place: Path) -> list[dict[str, Any]]:
    def embedded(value: Any) -> str:
        return json.dumps(value).replace("<", "\\u003c")

    path = place / "probe.html"
    text = PROBE.replace("QUESTIONS", embedded(questions)).replace("SOURCE", embedded(page))
    path.write_text(text, encoding="utf-8")
    opened = browse(path, place / "profile")
    assert "CONSOLE" not in opened.stderr
    match = re.search(r"FOUND(.*)END", opened.stdout, re.DOTALL)
    assert match, opened.stderr
    return json.loads(html.unescape(match[1]))


def check(file: File, fitted, question: dict[str, str], widths, answer) -> None:
    """What the page answers is what advise says of a network of these `widths`."""
    threads, epochs = question["threads"], int(question["epochs"])
    sizes = int(question["batch"]), int(question["rows"])
    how = (question[what] for what in USUAL)
    mlp = Mlp(widths, *sizes, question["precision"], *how)
    cards = (load_cards()[question["card"]],) if question["card"] else ()
    adviser = Adviser(file, mlp.precision, cards=cards, asked=True, fit=fitted, threads=threads)
    advice = adviser.advice(Network(mlp.cost(), mlp))
    expected = advice.shortened()
    assert [line[0] for line in answer["lines"]] == [prediction.label for prediction in expected], (
        question
    )
    for line, prediction in zip(answer["lines"], expected, strict=True):
        times = [epochs * each for each in (prediction.middle, prediction.low, prediction.high)]
        assert line[2:] == pytest.approx(times, rel=1e-6), (question, line[0])
    if expected:
        pytorch = adviser.in_pytorch(advice.network, advice)
        assert answer["sentence"] == both(advice, pytorch, epochs), question


def question(widths: Sequence[int], batch: int, rows: int, **how: str) -> dict[str, str]:
    network = {"network": ",".join(map(str, widths)), "batch": str(batch), "rows": str(rows)}
    return {**USUAL, "precision": "f32", "threads": "", "epochs": "1", **network, **how}


def test_the_page_answers_as_advise_does(cpu_file, fitted, tmp_path):
    hows = (
        {"card": CARDS[0]},
        {"card": CARDS[1], "threads": "1", "epochs": "20"},
        {"precision": "bf16", "card": CARDS[1], "threads": "2", "epochs": "3"},
        {"precision": "tf32", "card": CARDS[3]},
        {"card": CARDS[2], "threads": "2"},
        {"precision": "f16", "card": CARDS[2]},
        {"activation": "tanh", "optimizer": "adam", "loss": "mse", "card": CARDS[0]},
        {"activation": "gelu", "optimizer": "adamw", "precision": "bf16", "card": CARDS[4]},
        {"activation": "sigmoid", "optimizer": "momentum", "loss": "bce", "card": CARDS[1]},
        {"optimizer": "adamw", "precision": "f16", "card": CARDS[2]},
    )
    questions = [
        question(*network, **how)
        for network, how in product([*NETWORKS, ((2, 20, 20, 1), 50, 120)], hows)
        if network[0][-1] > 1 or "loss" in how
    ]
    shown = answers(page_of(cpu_file, fitted), questions, tmp_path)
    for asked, answer in zip(questions, shown, strict=True):
        assert not answer["hidden"]
        check(cpu_file, fitted, asked, widths_in(asked["network"]), answer)
    assert any("was trained with gelu," in note for note in shown[7]["notes"])


def test_a_measured_gpu_answers_too_and_its_rows_take_over(read, fitted, tmp_path):
    modes = (("eager", "resident"), ("graph", "resident"), ("eager", "pinned"))
    file = read(synthetic_machine.machine(noise=0.1, modes=modes))
    observations = tuple(
        replace(observation, kind="measured") for observation in fitted.observations
    )
    over = replace(fitted, observations=observations, scores=dict.fromkeys("abcdefghi", 0.4))
    networks = ((784, 512, 10), of_size(44_710), of_size(50_000))
    sizes = ((784, 512, 10), (44_710,), (50_000,))
    questions = [question(size, 100, 1000, card=card) for size in sizes for card in ("l4", "")]
    shown = answers(page_of(file, over), questions, tmp_path)
    asked_networks = [widths for widths in networks for _ in range(2)]
    for asked, widths, answer in zip(questions, asked_networks, shown, strict=True):
        check(file, over, asked, widths, answer)
    on_the_card, on_its_own = shown[:2]
    assert any(line[0].startswith("GPU, ") for line in on_the_card["lines"])
    assert " on an L4: " in on_the_card["sentence"] and " on its GPU: " in on_its_own["sentence"]


def test_the_command_asks_what_the_form_does(cpu_file, fitted, shell, tmp_path):
    questions = [
        question((784, 512, 10), 100, 1000, card="l4"),
        question((20, 64, 64, 1), 32, 500, card="h200", loss="", epochs="3"),
        question((20, 64, 1), 2000, 2000, card="h200", loss="bce", optimizer="adam", threads="2"),
        question((50_000,), 100, 1000, card="l4", activation="leaky_relu"),
        question((784, 512, 10), 100, 1000, card="l4") | {"network": "784-512-10"},
    ]
    shown = answers(page_of(cpu_file, fitted), questions, tmp_path)
    for answer in shown:
        program, *words = shlex.split(answer["command"])
        assert words[0] == "advise" and program == ".venv/bin/crossover"
        printed = " ".join(shell(*words).out.split())
        assert answer["sentence"] in printed, answer["command"]
    assert "--loss" not in shown[1]["command"]
    assert shown[4]["command"] == shown[0]["command"]


def test_what_cannot_be_answered_is_a_sentence(cpu_file, fitted, tmp_path):
    wrong = {
        "Layer widths are whole numbers": {"network": "784,x,10"},
        "Cross-entropy needs two classes": {"network": "784,1"},
        "whole numbers from 1 on": {"batch": "0"},
        "An epoch has 1,000 rows": {"batch": "1001"},
    }
    questions = [question((784, 512, 10), 100, 1000) | change for change in wrong.values()]
    shown = answers(page_of(cpu_file, fitted), questions, tmp_path)
    for words, answer in zip(wrong, shown, strict=True):
        assert words in answer["sentence"] and not answer["lines"]


def test_without_script_the_form_is_hidden(cpu_file, fitted):
    page = page_of(cpu_file, fitted)
    assert "<form hidden>" in page and "crossover advise --mlp" in page
    data = re.search(r'id="ask-data">(.*?)</script>', page, re.DOTALL)
    assert data and len(data[1]) < 23_000
