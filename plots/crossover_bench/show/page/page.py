# SPDX-License-Identifier: Apache-2.0
"""Writes sections out as one HTML file that needs nothing else: no network, no other file."""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from crossover_bench.show.page import svg
from crossover_bench.show.page.section import Section
from crossover_bench.show.tables.table import letters, runs_of_columns
from crossover_bench.words.text import printable

if TYPE_CHECKING:  # matplotlib takes long to load
    from crossover_bench.show.charts.style import Chart


def render_page(
    sections: Sequence[Section],
    title: str = "Crossover report",
    about: str = "Is it worth training this network on a GPU? From what size, and why?",
    home: str = "",
) -> str:
    """The page with `sections`, in their order; `home` is the page of all machines, if any.

    Every text is escaped, shown on one line and shortened: it may come from a file."""
    named = [[block.machine for block in each.blocks if block.machine] for each in sections]
    several = any(len(machines) > 1 for machines in named)
    widgets = [section.widget for section in sections if section.widget]
    script = "\n".join([*map(_text, SCRIPTS), *(widget.script for widget in widgets)])
    styles: dict[str, str] = {}
    drawn = {picture.name: picture for section in sections for picture in section.pictures}
    numbers = count(1)
    inlined = {stem: _inline(numbers, styles, picture) for stem, picture in drawn.items()}
    looks = "".join(f".chart .{name}{{{style}}}" for style, name in styles.items())
    digest = hashlib.sha256(script.encode()).digest()
    style = "\n".join([_text("report.css"), *(widget.style for widget in widgets), looks])
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            sections=sections,
            title=title,
            about=about,
            home=home,
            several=several,
            # Of several machines the page compares first; what each file says opens when asked to.
            folded=any(len(set(machines)) > 1 for machines in named),
            covered={name for widget in widgets for name in widget.covers},
            draw=lambda picture: inlined[picture.name],
            style=Markup(style),
            script=Markup(script),
            # What a Content-Security-Policy knows an inline script by.
            script_hash="sha256-" + base64.b64encode(digest).decode(),
        )
    )


def _inline(numbers: Iterator[int], styles: dict[str, str], picture: "Chart") -> Markup:
    """The wide and the narrow picture; the screen's width decides which of them is shown."""
    title, _, description = picture.alt.partition(". ")
    texts = title, description
    drawn = {"wide": picture.pictures.svg, "narrow": picture.pictures.narrow}
    # ElementTree writes every character that means something to HTML as an entity.
    return Markup("").join(
        Markup(svg.inline(content, f"s{next(numbers)}-", texts, kind=kind, styles=styles))
        for kind, content in drawn.items()
    )


@cache
def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8").strip()


# ---- the templates, which alone make elements and attributes


TEMPLATES = Path(__file__).with_name("templates")
SCRIPTS = ("units.js", "sort.js", "fit.js", "charts.js")  # before those of widgets
_LONGEST = 900  # characters of any text; what a result file holds may have millions
# A number and its unit stay on one line.
_UNIT = re.compile(r"(\d) (?=(?:[nµm]?s|%|[kKMGT]?i?(?:B|FLOP)(?:/s)?)(?:\W|$))")
_CODE = frozenset({"row", "command"})  # columns of what one types
_NAMES = frozenset({"machine", "gpu"})  # columns of names that may take two lines


@cache
def environment() -> Environment:
    """Where the templates are and how they treat text."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    made.filters["letters"] = letters
    made.filters["printable"] = printable
    made.filters["sortable"] = lambda value: f"{value:.6g}" if isinstance(value, float) else value
    made.globals.update(
        runs_of_columns=runs_of_columns,
        is_code=lambda column: column.key in _CODE,
        is_name=lambda column: column.key in _NAMES,
    )
    return made


def _shown(value: Any) -> Any:
    # Markup is the templates' own; all else may come from a file.
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _UNIT.sub("\\1\u00a0", printable(value, _LONGEST))
