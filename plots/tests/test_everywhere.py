# SPDX-License-Identifier: Apache-2.0
"""Whatever `validate` accepts goes through every command, the report and the site.

Files are made by test_fuzz.py from one with everything that a file may hold. Within ./test they are
few and always the same, with --all more; for longer, from another seed every time:

    python -m plots.tests.test_everywhere SECONDS FOLDER    keeps in FOLDER the file that went wrong
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
from typing import Any

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plots import cli
from plots.commands import COMMANDS
from plots.features.advise import command as advise
from plots.features.predict import answer as predicted
from plots.features.predict import command as predict
from plots.features.predict import fit as fitting
from plots.features.predict.data import observations
from plots.features.report import report
from plots.features.site import command as site
from plots.file import loading
from plots.parallel import Pool, in_process
from plots.tests import conftest, synthetic, test_fuzz
from tools.stages import weekly

GOOD = Path(__file__).parents[2] / "results/amd-epyc-2c/2026-11-21-0a77ee4.json"
EXAMPLES = 300 if weekly() else 20
ASKED = (
    "validate --strict FILE",
    "times FILE",
    "crossover FILE",
    "crossover --threads FILE",
    "crossover --ranks FILE",
    "crossover --ranks --scaling=weak FILE",
    "crossover --copies FILE",
    "crossover --of=energy FILE",
    "crossover --of=latency-p99 FILE",
    "crossover --of=cost --price=cpu=1/h --price=gpu=2/h FILE",
    "predict --gpu=rtx-4060 FILE",
    "predict --gpu=rtx-4060 --ranks=2 FILE",
    "advise --mlp=784,512,10 FILE",
    "advise FILE",
    "why FILE",
    "advice-check FILE",
    "compare FILE GOOD",
    "compare --cpu-of FILE --gpu-of FILE",
    "peers FILE",
    "shi FILE",
    "two FILE",
    "share -o OUT/shared.json FILE",
    "check-statistics FILE",
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
    """What has been tried so far; `content` is what is being tried."""

    made: int = 0
    valid: int = 0
    commands: int = 0
    content: bytes = field(default=b"", repr=False)

    def everywhere(self, content: bytes) -> None:
        """Asks every command of `content`, where that is a file that loads."""
        self.made, self.content = self.made + 1, content
        with test_fuzz.held(content) as path, tempfile.TemporaryDirectory() as out:
            try:
                file = loading.load_file(path)
            except loading.BadFileError:
                return
            self.valid += 1
            # The page of a site is the report; the command leaves most of these files out.
            site.build_site([file], [], in_process)
            self.commands += 1
            for line in ASKED:
                words = {"FILE": str(path), "GOOD": str(GOOD)}
                ask([words.get(word, word.replace("OUT", out)) for word in line.split()])
                self.commands += 1


def ask(words: Sequence[str]) -> None:
    """One command line: it ends with an exit code, and what fails is raised."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as complaints,
    ):
        code = cli.main(words)
    assert code in (cli.EXIT_OK, cli.EXIT_BAD_INPUT), words
    assert "this program fails" not in complaints.getvalue(), f"{words}: {complaints.getvalue()}"


@contextlib.contextmanager
def quickly() -> Iterator[None]:
    """Nothing is drawn, no process is started, and what is the same of all files is made once."""
    with pytest.MonkeyPatch.context() as patch:
        conftest.undraw(patch)
        conftest.hide_bench(patch)
        patch.setattr(Pool, "map", lambda _, function, items: [function(item) for item in items])
        fitted = fitting.fit(observations())
        for module in (advise, predict, predicted):
            patch.setattr(module, "fit", lambda _: fitted)
        patch.setattr(report, "build_report", partial(report.build_report, tables="csv"))
        yield


@pytest.mark.slow
def test_what_is_valid_goes_everywhere() -> None:
    tried = Tried()
    few = settings(test_fuzz.FIXED, max_examples=EXAMPLES)
    with quickly():
        tried.everywhere(test_fuzz.start().encode())
        few(given(plausible())(tried.everywhere))()
    print(tried)
    assert tried.valid > EXAMPLES // 5


def test_every_command_is_asked() -> None:
    assert {line.split()[0] for line in ASKED} | {"report", "site"} == {*COMMANDS}


# --- for longer


def main(seconds: float, folder: Path) -> int:
    """Other files every time, until one fails or the time is up; 1 where one failed."""
    tried, end = Tried(), time.monotonic() + seconds
    many = settings(test_fuzz.FIXED, max_examples=100, derandomize=False)
    with quickly():
        while time.monotonic() < end:
            try:
                hypothesis.seed(time.time_ns())(many(given(plausible())(tried.everywhere)))()
            except Exception as fault:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "plots-everywhere.json").write_bytes(tried.content)
                traceback.print_exception(fault)
                return 1
            print(tried, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2])))
