# SPDX-License-Identifier: Apache-2.0
"""Writes sections out as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache, partial
from itertools import count, groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from plots import svg
from plots.section import Picture, Section
from plots.table import Table
from plots.text import printable

_TEMPLATES = Path(__file__).with_name("templates")
_LONGEST = 1000  # characters of any text; what a result file holds may have millions
_UNIT = re.compile(r"(\d) (?=(?:[nµm]?s|%|[kKMGT]?i?(?:B|FLOP)(?:/s)?)(?:\W|$))")
_CODE = frozenset({"row", "command"})  # columns of what one types


def render_page(sections: Sequence[Section]) -> str:
    """The page with `sections`, in their order.

    Every text is escaped, shown on one line and shortened; only the templates in
    plots/templates make elements and attributes.
    """
    several = any(sum(bool(block.machine) for block in section.blocks) > 1 for section in sections)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            sections=sections,
            several=several,
            draw=partial(_inline, numbers=count(1)),
            style=Markup(_text("report.css")),
            script=Markup(_text("sort.js")),
            script_hash=_hash(_text("sort.js")),
        )
    )


def render_table(table: Table) -> str:
    """`table` as an element of a page; cells carry their value for a script that sorts."""
    module = _environment().get_template("table.html.j2").module
    return str(module.table(table)) + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    environment.globals.update(
        groups=_groups, is_code=lambda column: column.key in _CODE, https=_https
    )
    return environment


def _shown(value: Any) -> Any:
    # Markup is the templates' own; all else may come from a file.
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return _UNIT.sub("\\1\u00a0", printable(value, _LONGEST)) if is_text else value


def _groups(table: Table) -> list[tuple[str, int]]:
    """The headings above the columns' titles with their widths; none where no column has one."""
    if not any(column.group for column in table.columns):
        return []
    return [
        (name, len(list(columns)))
        for name, columns in groupby(table.columns, key=lambda column: column.group)
    ]


def _https(url: str) -> bool:
    return url.startswith("https://") and printable(url, _LONGEST) == url


def _inline(picture: Picture, numbers: Any) -> Markup:
    # ElementTree has written every character that means something to HTML as an entity.
    prefix = f"s{next(numbers)}-"
    return Markup(svg.inline(picture.pictures.svg, prefix, picture.caption, picture.alt))


@cache
def _text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8").strip()


def _hash(script: str) -> str:
    """What a Content-Security-Policy knows an inline script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
