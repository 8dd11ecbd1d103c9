# SPDX-License-Identifier: Apache-2.0
"""Whatever `validate` accepts goes through every command, the report and the site.

Files are made by test_fuzz.py from one with everything that a file may hold. Within ./test they are
few and always the same, with --all more; for longer, from another seed every time:

    python -m crossover_bench.tests.test_everywhere SECONDS FOLDER   keeps in FOLDER what goes wrong
"""

import contextlib
import io
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import hypothesis
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from crossover_bench.answers.advise import command as advise
from crossover_bench.answers.predict import answer as predicted
from crossover_bench.answers.predict import command as predict
from crossover_bench.answers.predict import data
from crossover_bench.answers.predict import fit as fitting
from crossover_bench.answers.report import report
from crossover_bench.answers.site import command as site
from crossover_bench.counts.cards import load_cards
from crossover_bench.files import loading
from crossover_bench.files.losses import words_of
from crossover_bench.parallel import Pool, in_process
from crossover_bench.shell import cli
from crossover_bench.shell.commands import COMMANDS
from crossover_bench.show.charts import style
from crossover_bench.tests import conftest, synthetic, test_fuzz
from tools.stages import thorough, weekly

GOOD = Path(__file__).parents[3] / "results/amd-epyc-2c/2026-11-21-0a77ee4.json"
EXAMPLES = 300 if weekly() else 16 if thorough() else 6
PUBLISHED = 6  # of so many published times one is fitted, which takes a fifth of the time
ASKED = (
    "validate --strict FILE",
    "times FILE",
    "times --all --format=json FILE",
    "crossover FILE",
    "crossover --all --format=csv FILE",
    "crossover --summary FILE",
    "crossover --threads FILE",
    "crossover --ranks FILE",
    "crossover --ranks --scaling=weak FILE",
    "crossover --copies FILE",
    "crossover --of=energy FILE",
    "crossover --of=latency-p99 FILE",
    "crossover --of=memory FILE",
    "crossover --of=products FILE",
    "crossover --of=cost-per-million-samples --price=cpu=1/h --price=gpu=2/h FILE",
    "predict --gpu=rtx-4060 FILE",
    "predict --gpu=rtx-4060 --ranks=2 FILE",
    "predict --all --as=pytorch --of=cost --price=cpu=1/h --price=gpu=2/h FILE",
    "advise --mlp=784,512,10 --gpu=rtx-4060 FILE",
    "advise FILE",
    "why FILE",
    "why --all --of=energy --tdp=cpu=65 --tdp=gpu=700 FILE",
    "advice-check FILE",
    "compare --all --rows FILE GOOD",
    "compare --cpu-of FILE --gpu-of FILE",
    "peers --all --format=markdown FILE",
    "shi FILE",
    "two FILE",
    "export FILE",
    "share -o OUT/shared.json FILE",
)


ODD_NUMBERS = (0, 1, 2, 7, 1e-9, 1e9, 1e30)
ODD_TEXTS = ("", "x", "1", "=1+1", "W" * 300, "\x1b[31m", "\u202e", "<b>", "é {n}")


def _row(draw: Callable[..., Any], document: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """A row of `document`, and its repetitions."""
    row = draw(st.sampled_from(document["rows"]))
    return row, [entry for entry in document["benchmarks"] if entry["name"] == row["name"]]


def _without(draw: Callable[..., Any], document: dict[str, Any]) -> None:
    """Some of its rows."""
    rows = document["rows"]
    kept = draw(st.sampled_from([rows[1:], rows[::2], rows[:1], rows[len(rows) // 2 :]]))
    names = {row["name"] for row in kept}
    document["rows"] = list(kept)
    document["benchmarks"] = [each for each in document["benchmarks"] if each["name"] in names]
    document["context"]["crossover"].pop("parts", None)


def _of_another_way(draw: Callable[..., Any], document: dict[str, Any]) -> None:
    """A row of another configuration, with its name."""
    row, entries = _row(draw, document)
    other, _ = _row(draw, document)
    key = draw(st.sampled_from([*other["configuration"]]))
    row["configuration"][key] = draw(st.sampled_from([other["configuration"][key], "1", "x", "9"]))
    for each in (row, *entries):
        each["name"] = synthetic.row_name(row["configuration"])


def _repeated_less(draw: Callable[..., Any], document: dict[str, Any]) -> None:
    row, entries = _row(draw, document)
    if entries:
        kept = draw(st.integers(1, len(entries)))
        row["repetitions"] = kept
        for entry in entries[kept:]:
            document["benchmarks"].remove(entry)


def _value(draw: Callable[..., Any], document: dict[str, Any]) -> None:
    """A value of a kind that may stand there, or none."""
    crossover = document["context"]["crossover"]
    part = draw(st.sampled_from([crossover, document["rows"], document["benchmarks"]]))
    place = test_fuzz.place_in(draw, part)
    if place is None:
        return
    holder, key = place
    value = holder[key]
    if key in ("name", "family") or draw(st.integers(0, 3)) == 0:
        if key != "name":
            del holder[key]
    elif type(value) in (int, float):
        holder[key] = draw(st.sampled_from([type(value)(odd) for odd in ODD_NUMBERS]))
    elif isinstance(value, str):
        holder[key] = draw(st.sampled_from(ODD_TEXTS))
    elif isinstance(value, list):
        holder[key] = draw(st.sampled_from([[], value[:1], value * 2]))
    elif isinstance(value, bool):
        holder[key] = not value


@st.composite
def plausible(draw: Callable[..., Any]) -> bytes:
    """A file that may well be valid: the one with everything, after a few changes."""
    document = json.loads(test_fuzz.start())
    changes = (_without, _of_another_way, _repeated_less, _value, _value, _value)
    for _ in range(draw(st.integers(1, 3))):
        draw(st.sampled_from(changes))(draw, document)
    return json.dumps(document).encode()


@dataclass
class Tried:
    """What has been tried so far. What goes wrong is raised, or with a `folder` kept there: the
    file, and a line with the command and the place, once for each place."""

    folder: Path | None = None
    made: int = 0
    valid: int = 0
    commands: int = 0
    refused: list[str] = field(default_factory=list, repr=False)
    faults: set[str] = field(default_factory=set)

    def everywhere(self, content: bytes) -> None:
        """Asks every command of `content`, where that is a file that loads."""
        self.made += 1
        with test_fuzz.held(content) as path, tempfile.TemporaryDirectory() as out:
            try:
                file = loading.load_file(path)
            except loading.BadFileError:
                return
            self.valid += 1
            # The page of a site is the report; the command leaves most of these files out.
            self.ask("site", content, partial(site.build_site, [file], [], in_process))
            for line in ASKED:
                words = {"FILE": str(path), "GOOD": str(GOOD)}
                asked = [words.get(word, word.replace("OUT", out)) for word in line.split()]
                self.ask(line, content, partial(answer, asked))

    def ask(self, line: str, content: bytes, command: Callable[[], object]) -> None:
        self.commands += 1
        try:
            if command() == cli.EXIT_BAD_INPUT:
                self.refused.append(line)
        except Exception as fault:
            if self.folder is None:
                raise
            self.keep(self.folder, line, content, fault)

    def keep(self, folder: Path, line: str, content: bytes, fault: Exception) -> None:
        if (words := words_of(fault)) in self.faults:
            return
        self.faults.add(words)
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / f"plots-everywhere-{len(self.faults)}.json"
        kept.write_bytes(content)
        with (folder / "plots-everywhere.txt").open("a", encoding="utf-8") as list_of_faults:
            print(f"{kept.name}: {line}: {words}", file=list_of_faults)
            traceback.print_exception(fault, file=list_of_faults)


def answer(words: Sequence[str]) -> int:
    """The exit code of one command line; raises what fails."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as complaints,
    ):
        code = cli.main(words)
    assert code in (cli.EXIT_OK, cli.EXIT_BAD_INPUT), words
    assert "Traceback" not in complaints.getvalue(), words
    return code


def raises(fault: Exception) -> NoReturn:
    raise fault


@contextlib.contextmanager
def quickly() -> Iterator[None]:
    """Nothing is drawn, no process is started, the same bytes are read and fitted once, and of the
    published times few stand beside a file's own."""
    with pytest.MonkeyPatch.context() as patch:
        conftest.undraw(patch)
        conftest.hide_bench(patch)
        patch.setattr(style, "text_width", lambda _, text, kind="line": 5.0 * len(text))
        patch.setattr(cli, "words_of", raises)
        patch.setattr(Pool, "map", lambda _, function, items: [function(item) for item in items])
        patch.setattr(report, "build_report", partial(report.build_report, tables="csv"))
        for name in ("_published", "_single"):
            few = list(vars(data)[name](load_cards()))[::PUBLISHED]
            patch.setattr(data, name, lambda _, few=few: few)
        for module in (fitting, predicted, advise, predict):
            patch.setattr(module, "fit", conftest.fit_once)
        yield


@pytest.mark.slow
def test_what_is_valid_goes_everywhere() -> None:
    """Takes long, as each file is asked by thirty commands, with a fit of its own."""
    tried = Tried()
    few = settings(test_fuzz.FIXED, max_examples=EXAMPLES)
    with quickly():
        tried.everywhere(test_fuzz.start().encode())
        # It has what each command is about, but not its name.
        assert tried.valid and tried.refused == ["validate --strict FILE"]
        few(given(plausible())(tried.everywhere))()
    print(tried)
    assert tried.valid > EXAMPLES // 5


def test_every_command_is_asked() -> None:
    assert {line.split()[0] for line in ASKED} | {"report", "site"} == {*COMMANDS}


# --- for longer


def main(seconds: float, folder: Path) -> int:
    """Other files every time, until the time is up; 1 where one failed."""
    tried, end = Tried(folder), time.monotonic() + seconds
    many = settings(test_fuzz.FIXED, max_examples=20, derandomize=False, phases=[Phase.generate])
    with quickly():
        while time.monotonic() < end:
            hypothesis.seed(time.time_ns())(many(given(plausible())(tried.everywhere)))()
            print(tried, flush=True)
    return 1 if tried.faults else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2])))
