# SPDX-License-Identifier: Apache-2.0
"""Every row of a file in one table with filters, from data in the page: what other sections cut
their tables from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, pairwise, starmap, takewhile
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

from markupsafe import Markup

from crossover_bench.answers.peers.analysis import pairs
from crossover_bench.answers.why.analysis import PARTS, UNATTRIBUTED, repayments, splits
from crossover_bench.counts.bounds import bounds
from crossover_bench.counts.peaks import doubts
from crossover_bench.curves.rates import rate
from crossover_bench.curves.series import chosen_words
from crossover_bench.files.again import template
from crossover_bench.files.families import FAMILIES, OF_NETWORKS, TRAINING
from crossover_bench.files.rows import File, Row
from crossover_bench.place import RUN
from crossover_bench.show.page.page import environment
from crossover_bench.show.page.section import Context, Section, Widget
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table
from crossover_bench.study.study import Study
from crossover_bench.words import units
from crossover_bench.words.text import printable

_FOLDER = Path(__file__).parent
_FIRST = 10  # rows that stand there until the script has run
_LONGEST = 400  # characters of a text
_DIGITS = 3
_MOST_PARTS = 3  # of a row's time
_NAMES = {**PARTS, UNATTRIBUTED: UNATTRIBUTED}
Ratio = tuple[float | None, float | None, float | None]  # and its interval
_NONE: Ratio = (None, None, None)


@dataclass(frozen=True, slots=True)
class Line:
    """A row, and what its file says of it beside others: `percent` of its time is its bound, a
    GPU's `speed_up` over the CPU and the time of another framework over `ours` have an interval, a
    GPU's start-up is `repaid` after so many iterations, and `parts` are the shares of its time in
    percent, the largest first."""

    row: Row
    percent: float | None = None
    speed_up: Ratio = _NONE
    ours: Ratio = _NONE
    repaid: float | None = None
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def network(self) -> str:
        """What it computes."""
        words = self.row.axes.words(self.row.configuration, roles=["what"], without=_ELSEWHERE)
        return ", ".join(filter(None, [self.row.model, *words]))

    @property
    def way(self) -> str:
        """How, in what has no column of its own."""
        axes, configuration = self.row.axes, self.row.configuration
        return ", ".join(axes.words(configuration, roles=["how", "alike"], without=_ELSEWHERE))

    @property
    def remarks(self) -> list[str]:
        """Why it has no result, or what casts doubt on it."""
        failure = self.row.failure
        return [f"{failure.outcome}: {failure.message}"] if failure else list(doubts(self.row))

    @property
    def head(self) -> str:
        """The part of its name that it shares with rows that compute the same elsewhere."""
        return self.row.name.removesuffix(self.tail)

    @property
    def tail(self) -> str:
        """The rest of its name: where and how."""
        name = self.row.name
        places = [at for key in ("/program:", "/device:") if (at := name.find(key)) >= 0]
        return name[min(places, default=len(name)) :]

    def time(self, of: Callable[[Row], float]) -> float | None:
        """Seconds of one iteration, or of one operation."""
        return None if self.row.failure else of(self.row) / self.row.count

    def count(self, counter: str) -> float | None:
        return None if self.row.failure else self.row.counters.get(counter)

    def rate(self, counter: str) -> float | None:
        """What it does in a second, of copies alone bytes."""
        does = next((each for each in ("flops", "bytes") if self.row.counters.get(each)), "")
        return rate(self.row, counter) if counter == does and not self.row.failure else None

    def ratio(self, of: str, place: int) -> float | None:
        ratios: Ratio = getattr(self, of)
        return ratios[place]


_ELSEWHERE = ("family", "model", "batch", "precision", "device", "cpu_threads", "program")


def lines_of(study: Study) -> list[Line]:
    """A line for each row of the file, its peers' among them: networks by their size, then what is
    measured by itself; of each the fastest first."""
    file, order = study.file, [*FAMILIES]
    bound = {index: each.percent for index, each in bounds(file).items()}
    trained = [row for row in file.rows if row.family in TRAINING and not row.failure]
    speed_ups = {
        each.gpu.rows[0]: (each.ratio, each.low, each.high)
        for family in OF_NETWORKS
        for each in study.speed_ups(family)
        if each.gpu.rows
    }
    repaid = {
        each.gpu.index: each.iterations
        for family in TRAINING
        for each in repayments([row for row in trained if row.family == family])
    }
    ours = {each.theirs.name: (each.ratio, each.low, each.high) for each in pairs(file, every=True)}
    split_of = {split.row.index: split for split in splits(trained)}

    def line(row: Row) -> Line:
        split, index = split_of.get(row.index), row.index
        parts = {**split.parts, UNATTRIBUTED: split.unattributed} if split else {}
        shares = {name: 100 * part / row.median for name, part in parts.items()}
        largest = sorted(shares.items(), key=lambda share: -abs(share[1]))[:_MOST_PARTS]
        shown = {name: percent for name, percent in largest if abs(percent) >= 0.5}
        ratio = speed_ups.get(index, _NONE)
        return Line(row, bound.get(index), ratio, repaid=repaid.get(index), parts=shown)

    def place(line: Line) -> tuple[Any, ...]:
        row = line.row
        family = order.index(row.family) if row.family in order else len(order)
        seconds = line.time(lambda row: row.median) or 0.0
        return family, row.family, row.counters.get("params", 0.0), line.network, seconds

    peers = (Line(row, ours=ours.get(row.name, _NONE)) for row in file.peers)
    return sorted([*map(line, file.rows), *map(Line, file.copies), *peers], key=place)


# ---- the columns


@dataclass(frozen=True, slots=True)
class Fact:
    """A column of texts, or of numbers of a `kind` that `show` words as the script does. What has
    no title is no column: the script needs it beside the table."""

    key: str
    title: str
    of: Callable[[Line], Any]
    kind: str = ""
    show: Callable[[float], str] = str
    group: str = ""


def _percent(value: float) -> str:
    return f"{units.significant(value, 2)} %"


def _times(value: float) -> str:
    return f"{units.significant(value)}×"


# What the script calls each: rows.js.
_SHOWN: dict[str, Callable[[float], str]] = {
    "s": units.seconds,
    "n": units.count,
    "x": _times,
    "%": _percent,
    "B": units.binary_bytes,
    "FLOP/s": partial(units.rate, unit="FLOP/s"),
    "B/s": partial(units.rate, unit="B/s"),
}


def _facts() -> Iterator[Fact]:
    def number(key: str, title: str, kind: str, of: Callable[[Line], Any], group: str = "") -> Fact:
        return Fact(key, title, of, kind, _SHOWN[kind], group)

    def text(key: str, title: str, of: Callable[[Line], str]) -> Fact:
        return Fact(key, title, lambda line: printable(of(line), _LONGEST))

    def given(key: str) -> Callable[[Line], str]:
        return lambda line: line.row.configuration.get(key, "")

    def word(key: str) -> Callable[[Line], str]:
        return lambda line: line.row.axes[key].word(getattr(line.row, key) or "")

    def counted(key: str, title: str, kind: str, group: str = "") -> Fact:
        return number(key, title, kind, lambda line: line.count(key), group)

    def ratios(key: str, title: str, group: str) -> Iterator[Fact]:
        for place, end in enumerate(("", "_low", "_high")):
            of = partial(Line.ratio, of=key, place=place)
            yield number(f"{key}{end}", ("from", "to")[place - 1] if end else title, "x", of, group)

    yield text("network", "network or operation", lambda line: line.network)
    yield number("seconds", "median", "s", lambda line: line.time(lambda row: row.median))
    yield text("device", "device", word("device"))
    yield text("way", "way", lambda line: line.way)
    yield text("threads", "threads", given("cpu_threads"))
    yield text("batch", "batch", given("batch"))
    yield text("precision", "precision", given("precision"))
    yield text("family", "family", given("family"))
    yield from ratios("speed_up", "speedup", "over the CPU")
    yield number("shortest", "from", "s", lambda line: line.time(lambda row: row.minimum), "range")
    yield number("longest", "to", "s", lambda line: line.time(lambda row: row.maximum), "range")
    yield counted("params", "parameters", "n")
    for key, title, unit in (("flops", "operations", "FLOP/s"), ("bytes", "bytes", "B/s")):
        yield number(f"{key}_per_second", title, unit, partial(Line.rate, counter=key))
    yield from ratios("ours", "time", "over ours")
    yield number("bound_percent", "of its bound", "%", lambda line: line.percent)
    yield Fact("parts", "largest parts", _parts)
    yield counted("first_call_seconds", "first call", "s")
    yield number("repaid", "repaid after", "n", lambda line: line.repaid)
    yield counted("peak_bytes", "most memory", "B")
    yield counted("reorder_bytes", "reorders", "B")
    for quantile in ("p50", "p90", "p99", "p999", "max"):
        yield counted(f"latency_{quantile}_seconds", quantile, "s", "latency")
    yield text("chosen", "auto chose", lambda line: chosen_words(line.row))
    yield text("program", "program", word("program"))
    yield text("remarks", "in doubt", lambda line: " ".join(line.remarks))
    yield Fact("head", "", lambda line: line.head)
    yield Fact("tail", "", lambda line: line.tail)


def _parts(line: Line) -> str:
    return ", ".join(f"{_NAMES[name]} {percent:.0f} %" for name, percent in line.parts.items())


FACTS = tuple(_facts())
FILTERS = ("family", "network", "batch", "precision", "device", "way", "threads", "program")


def facts_of(lines: Iterable[Line]) -> list[Fact]:
    """Those that any of `lines` has."""
    lines = list(lines)
    return [fact for fact in FACTS if any(fact.of(line) not in (None, "") for line in lines)]


def short(value: float) -> str:
    """`value` in three digits and as few characters as spell them: 123e-7."""
    mantissa, _, exponent = f"{value:.{_DIGITS - 1}e}".partition("e")
    whole = mantissa.replace(".", "").rstrip("0") or "0"
    power = int(exponent) - len(whole.lstrip("-")) + 1
    scaled = f"{whole}e{power}" if whole != "0" else whole
    return min(f"{float(scaled):.15g}", scaled, key=len)


_WHOLE = ("n", "B")


def _spelled(fact: Fact, line: Line) -> str:
    value = fact.of(line)
    return "" if value is None else f"{value:.0f}" if fact.kind in _WHOLE else short(value)


def table_of(machine: str, lines: Iterable[Line], facts: Sequence[Fact]) -> Table:
    """`lines` as the script shows them."""

    def cell(fact: Fact, line: Line) -> Cell:
        text = _spelled(fact, line) if fact.kind else fact.of(line)
        if not text:
            return NOTHING
        return Cell(fact.show(float(text)), float(text)) if fact.kind else Cell(text, text)

    shown = [fact for fact in facts if fact.title]
    columns = (Column(fact.key, fact.title, bool(fact.kind), fact.group) for fact in shown)
    cells = (tuple(cell(fact, line) for fact in shown) for line in lines)
    return Table(f"Rows of {machine}", tuple(columns), tuple(cells))


_DIGITS_OF_36 = digits + ascii_lowercase


def _after(before: str, word: str) -> str:
    # The script counts some characters beyond ASCII twice.
    pairs_of_both = zip(before, word, strict=False)
    same = takewhile(lambda pair: pair[0] == pair[1] and pair[0].isascii(), pairs_of_both)
    shared = min(sum(1 for _ in same), len(_DIGITS_OF_36) - 1)
    return _DIGITS_OF_36[shared] + word[shared:]


def _runs(texts: Iterable[str]) -> str:
    counted = ((text, sum(1 for _ in run)) for text, run in groupby(texts))
    return ",".join(text if count == 1 else f"{text}*{count}" for text, count in counted)


def data_of(file: File, lines: Sequence[Line], facts: Sequence[Fact]) -> dict[str, Any]:
    """`lines` by column, each as one text: numbers, or places among a column's words, with commas
    between them, runs of the same as "0*16". A word begins with the number of characters, 35 at
    most, that are those of the word before. And what measures a row again."""
    words, values = dict[str, list[str]](), dict[str, str]()
    for fact in facts:
        if fact.kind:
            values[fact.key] = _runs(_spelled(fact, line) for line in lines)
            continue
        texts = [str(fact.of(line)) for line in lines]
        places = {text: str(at) for at, text in enumerate(dict.fromkeys(texts))}
        words[fact.key] = list(starmap(_after, pairwise(["", *places])))
        values[fact.key] = _runs(places[text] for text in texts)
    told = {"again": template(file.run), "with_peers": f"{RUN} --with-peers="}
    return {**told, "words": words, "values": values}


# ---- the section

_NOTES = {  # by the column that they are on
    "": "Figures have three digits; report --tables=csv writes the tables of all sections with all "
    "digits.",
    "speed_up": "Over the CPU: the time of its best number of threads over the row's, with the "
    "95 % interval. Repaid after: from so many epochs or steps on the GPU has taken less time than "
    "the CPU, the first call included.",
    "ours": "Over ours: the time of another framework's row over that of our fastest row of the "
    "same work, with the 95 % interval.",
}


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has a row."""
    shown = [(file, lines_of(context.study(file))) for file in files[: context.detailed]]
    shown = [(file, lines) for file, lines in shown if lines]
    if not shown:
        return None
    facts = facts_of(line for _, lines in shown for line in lines)
    ids = [file.machine.id for file, _ in shown]
    names = [
        printable(name if ids.count(name) == 1 else f"{name}, {file.path.name}")
        for name, (file, _) in zip(ids, shown, strict=True)
    ]
    known = {
        "kinds": {fact.key: fact.kind for fact in facts if fact.kind},
        "filters": FILTERS,
        "files": [
            {"name": name, **data_of(file, lines, facts)}
            for name, (file, lines) in zip(names, shown, strict=True)
        ],
    }
    lines = shown[0][1]
    first = table_of(names[0], lines[:_FIRST], facts)
    alone = tuple(name for name in ids if ids.count(name) == 1)
    return Section(
        title="Every row",
        anchor="rows",
        lead="All that was measured, in one table: choose, sort, copy. The page's address keeps "
        "the choice, so a link shows it.",
        widget=_widget(known, first, len(lines), alone),
        notes=tuple(note for key, note in _NOTES.items() if not key or key in known["kinds"]),
    )


def _widget(known: dict[str, Any], first: Table, count: int, covers: tuple[str, ...]) -> Widget:
    # Nothing in a row's name may end the element.
    data = json.dumps(known, separators=(",", ":")).replace("<", "\\u003c")
    html = environment().from_string((_FOLDER / "rows.html.j2").read_text(encoding="utf-8"))
    return Widget(
        html=Markup(html.render(first=first, count=count, data=Markup(data))),
        script=(_FOLDER / "rows.js").read_text(encoding="utf-8").strip(),
        style=(_FOLDER / "rows.css").read_text(encoding="utf-8").strip(),
        covers=covers,
    )
