# SPDX-License-Identifier: Apache-2.0
"""Makes an SVG file part of a page: its own ids, the page's colours, a description."""

import re
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
_COLOUR = re.compile(r"#([0-9a-fA-F]{6})\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_DROPPED = {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style", f"{{{_SVG}}}script"}

ElementTree.register_namespace("", _SVG)


def inline(svg: bytes, prefix: str, title: str, description: str, kind: str) -> str:
    """`svg`, a file written by matplotlib, as an element for an HTML page.

    Ids get `prefix`, so that several pictures can share a page. Each colour #rrggbb becomes
    var(--c-rrggbb,#rrggbb), which the page may define otherwise on a dark screen. `title` and
    `description` are what a screen reader says, `kind` is its class. Raises ElementTree.ParseError.
    """
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in _DROPPED:
                parent.remove(child)
    for element in root.iter():
        _adapt(element, prefix)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("class", kind)
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}title {prefix}desc")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{prefix}{tag}"})
        element.text = text
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(element: ElementTree.Element, prefix: str) -> None:
    attributes = element.attrib
    if "id" in attributes:
        attributes["id"] = prefix + attributes["id"]
    target = attributes.pop(_XLINK_HREF, None) or attributes.get("href")
    if target:
        attributes["href"] = re.sub("^#", f"#{prefix}", target)
    for name in ("style", "clip-path", "fill", "stroke"):
        value = attributes.get(name)
        if value:
            attributes[name] = _REFERENCE.sub(rf"url(#{prefix}\1)", value)
    style = attributes.get("style")
    if style:
        attributes["style"] = _COLOUR.sub(
            lambda found: f"var(--c-{found[1].lower()},#{found[1].lower()})", style
        )
