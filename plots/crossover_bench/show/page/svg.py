# SPDX-License-Identifier: Apache-2.0
"""Makes an SVG file part of a page: its own ids, the page's colours, a description."""

import re
from collections.abc import Callable
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
_COLOUR = re.compile(r"#([0-9a-fA-F]{6})\b")
_FONT = re.compile(r"font-family: [^;]*;? ?")  # the page's style has it
_REFERENCE = re.compile(r"^#(.+)|url\(#([^)]+)\)")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_AROUND_COMMANDS = re.compile(r" ?([A-Za-z]) ?")  # in the data of a path
_URL = re.compile(r"url\(#([^)]+)\)")
_UNTURNED = re.compile(r"rotate\(-?0 [^)]*\)")
_NUMBERS = ("d", "x", "y", "width", "height", "transform", "points", "cx", "cy", "r")
_DROPPED = {f"{{{_SVG}}}{name}" for name in ("metadata", "style", "script")}
_GROUP = f"{{{_SVG}}}g"

ElementTree.register_namespace("", _SVG)


def inline(
    svg: bytes, prefix: str, texts: tuple[str, str], *, kind: str, styles: dict[str, str]
) -> str:
    """`svg`, a file written by matplotlib, as an element for an HTML page.

    Ids are numbers behind `prefix`, so that several pictures can share a page; those that nothing
    refers to go, as do hundredths of a point. Each colour #rrggbb becomes var(--c-rrggbb,#rrggbb),
    which the page may define otherwise on a dark screen. Styles become classes, which join
    `styles`: declarations → class. `texts`, title and description, are what a screen reader says,
    `kind` is its class. Raises ElementTree.ParseError.
    """
    root = ElementTree.fromstring(svg)
    names: dict[str, str] = {}
    for element in root.iter():
        element.text = (element.text or "").strip() or None
        element.tail = None
        _adapt(element, lambda name: names.setdefault(name, f"{prefix}{len(names)}"), styles)
    used = {
        reference
        for element in root.iter()
        for value in element.attrib.values()
        for match in _REFERENCE.finditer(value)
        for reference in match.groups()
    }
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
    _unwrap(root)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("class", kind)
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}title {prefix}desc")
    for place, (tag, text) in enumerate(zip(("title", "desc"), texts, strict=True)):
        element = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{prefix}{tag}"})
        element.text = text
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _unwrap(parent: ElementTree.Element) -> None:
    """Puts the elements of groups that say nothing of them in the groups' places."""
    for child in list(parent):
        _unwrap(child)
        place = list(parent).index(child)
        if child.tag in _DROPPED or (child.tag == _GROUP and not child.attrib):
            parent.remove(child)
            for each in reversed([] if child.tag in _DROPPED else list(child)):
                parent.insert(place, each)


def _adapt(
    element: ElementTree.Element, renamed: Callable[[str], str], styles: dict[str, str]
) -> None:
    attributes = element.attrib
    if "id" in attributes:
        attributes["id"] = renamed(attributes["id"])
    if target := attributes.pop(_XLINK_HREF, None) or attributes.get("href"):
        attributes["href"] = f"#{renamed(target[1:])}" if target.startswith("#") else target
    for name in ("style", "clip-path", "fill", "stroke"):
        if value := attributes.get(name):
            attributes[name] = _URL.sub(lambda match: f"url(#{renamed(match[1])})", value)
    for name in _NUMBERS:
        if value := attributes.get(name):
            shorter = _LONG_NUMBER.sub(
                lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), value
            )
            attributes[name] = " ".join(shorter.split())
    if data := attributes.get("d"):
        attributes["d"] = _AROUND_COMMANDS.sub(r"\1", data)
    if _UNTURNED.fullmatch(attributes.get("transform", "")):
        del attributes["transform"]
    if style := attributes.pop("style", None):
        style = _COLOUR.sub(
            lambda match: f"var(--c-{match[1].lower()},#{match[1].lower()})", _FONT.sub("", style)
        ).strip("; ")
        if "url(" in style:
            attributes["style"] = style
        else:
            attributes["class"] = styles.setdefault(style, f"z{len(styles)}")
