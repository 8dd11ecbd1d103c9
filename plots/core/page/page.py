# SPDX-License-Identifier: Apache-2.0
"""Writes sections out as one HTML file that needs nothing else: no network, no other file."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count

from markupsafe import Markup

from plots.core.page import svg
from plots.core.page.html import TEMPLATES, environment
from plots.core.page.section import Picture, Section


def render_page(
    sections: Sequence[Section],
    title: str = "Crossover report",
    about: str = "Is it worth training this network on a GPU? From what size, and why?",
    home: str = "",
) -> str:
    """The page with `sections`, in their order; for their text see plots/core/page/html.py. `home`
    is the page of all machines, where there is one."""
    named = [[block.machine for block in one.blocks if block.machine] for one in sections]
    several = any(len(machines) > 1 for machines in named)
    widgets = [section.widget for section in sections if section.widget]
    script = "\n".join([*map(_text, ("sort.js", "fit.js")), *(one.script for one in widgets)])
    styles: dict[str, str] = {}
    drawn = {picture.stem: picture for section in sections for picture in section.pictures}
    numbers = count(1)
    inlined = {stem: _inline(numbers, styles, picture) for stem, picture in drawn.items()}
    looks = "".join(f".chart .{name}{{{style}}}" for style, name in styles.items())
    digest = hashlib.sha256(script.encode()).digest()
    style = "\n".join([_text("report.css"), *(one.style for one in widgets), looks])
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
            draw=lambda picture: inlined[picture.stem],
            style=Markup(style),
            script=Markup(script),
            # What a Content-Security-Policy knows an inline script by.
            script_hash="sha256-" + base64.b64encode(digest).decode(),
        )
    )


def _inline(numbers: Iterator[int], styles: dict[str, str], picture: Picture) -> Markup:
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
