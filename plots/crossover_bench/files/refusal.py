# SPDX-License-Identifier: Apache-2.0
"""What is said of a file that cannot be used: one sentence with file, place, fault and remedy."""

import json
import math
from typing import Any

from crossover_bench.words.text import printable


class BadFileError(Exception):
    """A file that cannot be used; the message is one sentence that names file, place, remedy."""


class FaultError(Exception):
    """What is wrong with a file, and where in it, in words; they end with a remedy."""

    def __init__(self, *words: str) -> None:
        super().__init__(": ".join(filter(None, words)))


def element_words(place: str, index: int, name: object) -> str:
    """An element of a list in words: `benchmarks[3] ("Epoch/…")`."""
    quoted = f' ("{printable(name)}")' if isinstance(name, str) else ""
    return f"{place}[{index}]{quoted}"


def row_words(name: str) -> str:
    """A row in words: `row "Epoch/…"`."""
    return f'row "{printable(name)}"'


def located(place: list[str | int], name: object) -> str:
    """An element and its field in words: `rows[3] ("Epoch/…"): field "params"`."""
    element = ""
    if len(place) > 1 and place[0] in ("rows", "benchmarks") and isinstance(place[1], int):
        element = element_words(str(place[0]), place[1], name)
        place = place[2:]
    field = ".".join(printable(str(part), 60) for part in place)
    return ": ".join(part for part in (element, f'field "{field}"' if field else "") if part)


def shown(value: object) -> str:
    """A value of a file in words: 3, the text "x", a list."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return f'the text "{printable(value, 40)}"'
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinite"
    return printable(str(value), 40)


_KINDS = {
    "string": "text",
    "object": "an object",
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
}
_RULES = {
    "const": "must be {}",
    "minimum": "must be at least {}",
    "exclusiveMinimum": "must be greater than {}",
    "minLength": "must not be empty",
    "minItems": "must have at least {} elements",
    "maxItems": "must have at most {} elements",
    "uniqueItems": "must not have one element twice",
    "pattern": "must match {}",
}


def rule_words(rule: str, definition: Any) -> str:
    """The rule of the schema that a value breaks, in words."""
    if rule == "type":
        kinds = definition if isinstance(definition, list) else [definition]
        return f"must be {' or '.join(_KINDS[kind] for kind in kinds)}"
    if rule == "enum":
        return f"must be one of {', '.join(map(str, definition))}"
    limit = definition if isinstance(definition, str) else json.dumps(definition)
    return _RULES.get(rule, f"breaks the rule {rule} of files/schema.json").format(limit)
