# SPDX-License-Identifier: Apache-2.0
"""What of a result file is private: it names a person, a computer, or where things lie on it.

bench reduces the paths that it knows of to their file names. Others come from libraries' messages,
the compiler's flags, environment variables, Google Benchmark's own flags, and people. So every text
of the file is searched, and fields of `context` that are not defined are left out.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from crossover_bench.answers.share.private import (
    IDENTIFIES,
    OF_VERSIONS,
    RULES,
    Rule,
    Stays,
    nothing,
)
from crossover_bench.files.loading import SCHEMA_PATH

# Fields of context that are an object, by where they are defined: all else in them is unknown.
_DEFINED = {
    "context": "context",
    "context.crossover": "crossover",
    "context.crossover.machine": "machine",
    "context.crossover.software": "software",
    "context.crossover.configuration": "run_configuration",
}
_CPU, _GPU = "context.crossover.machine.cpu", "context.crossover.machine.gpu"
# Fields with bench's own words, in which the name of a host or a user is only by chance.
_VOCABULARY = (
    *("axes", "counters", "networks", "network_fingerprints", "ladders", "ladder_batches"),
    "refinements",
)
# The fields of rows that hold messages. All others hold names, and what these are made of.
_MESSAGES = ("label", "warnings", "error_message", "as_is")
# Fields whose whole value may be a version, of four numbers as an address is.
_VERSIONED = ("libraries", "version", "driver", "kernel")
_VERSION = re.compile(r"[\w.+~-]*")
_HOSTS = ("HOSTID", "COMM_ID")  # ends of variables whose value is a host's
_OWN_WORDS = re.compile(r"(?<=^--benchmark_context=).+", re.DOTALL)  # any that the user wants
_ALL = re.compile(".+", re.DOTALL)
_ROW = re.compile(r"(rows|benchmarks)\[\d+\]")
_OF_ROW = re.compile(r"row|[a-z]+_row")  # their definitions
# Names that tell nothing, as many have them.
_COMMON = ("root", "user", "ubuntu", "debian", "admin", "runner", "localhost", "home", "host")


@dataclass
class Shared:
    """`document` without what is private, and what was done to it: the fields `removed`, and in
    others what was `changed`: the field, the words, and what stands in their place."""

    document: dict[str, Any]
    removed: list[str] = field(default_factory=list)
    changed: list[tuple[str, str, str]] = field(default_factory=list)


def without_private(document: dict[str, Any], names: Collection[str] = ()) -> Shared:
    """A copy of the valid `document` without what is private. `names` are those of this computer
    and of who uses it."""
    telling = [name for name in names if len(name) > 2 and name.lower() not in _COMMON]
    telling.sort(key=len, reverse=True)
    words = "|".join(map(re.escape, telling))
    shared = Shared({})
    pattern = re.compile(rf"(?<!\w)(?:{words})(?!\w)" if words else "(?!)", re.IGNORECASE)
    shared.document = _copy(document, "", shared, pattern)
    return shared


def _copy(value: Any, place: str, shared: Shared, names: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        kept: dict[str, Any] = {}
        for key, part in value.items():
            here = f"{place}.{key}" if place else key
            # Of a key, what is private would be of the place in which it stands.
            public = _without(key, place, shared, names)
            if _is_known(place, key, part) and public not in kept:
                kept[public] = _copy(part, here, shared, names)
            else:
                shared.removed.append(here)
        return kept
    if isinstance(value, list):
        return [_copy(part, f"{place}[{at}]", shared, names) for at, part in enumerate(value)]
    return _without(value, place, shared, names) if isinstance(value, str) else value


def _without(text: str, place: str, shared: Shared, names: re.Pattern[str]) -> str:
    """`text`, which stands at `place`, without what is private in it."""
    for pattern, what_stays in _rules(text, place, names):

        def replaced(match: re.Match[str], what_stays: Stays = what_stays) -> str:
            stays = what_stays(match)
            shared.changed.append((place, match[0], stays))
            return stays

        text = pattern.sub(replaced, text)
    return text


def _is_known(place: str, key: str, part: Any) -> bool:
    """Whether the field `key` of what is at `place` is defined, or a number in an object that may
    have any: a counter of a row, a fact of a GPU."""
    row = _ROW.fullmatch(place)
    known = _fields().get(row[1] if row else place)  # None where others are allowed
    if known is None or key in known:
        return True
    is_number = isinstance(part, bool | int | float) and (row is not None or place == _GPU)
    return is_number and not IDENTIFIES.search(key)


@cache
def _fields() -> Mapping[str, Collection[str]]:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))["definitions"]
    machine = schema["machine"]["properties"]
    defined = {place: schema[name]["properties"] for place, name in _DEFINED.items()}
    of_rows = [kind["properties"] for name, kind in schema.items() if _OF_ROW.fullmatch(name)]
    return defined | {
        _CPU: machine["cpu"]["properties"],
        _GPU: machine["gpu"]["properties"],
        "rows": {key for properties in of_rows for key in properties},
        "benchmarks": schema["entry"]["properties"],
    }


def _rules(text: str, place: str, names: re.Pattern[str]) -> Iterator[Rule]:
    """What is private in the `text` at `place`."""
    key = place.removeprefix("context.crossover.")
    is_setting = key.startswith("configuration.environment.")
    is_command = key.startswith("configuration.command[")
    if is_setting and (key.endswith(_HOSTS) or IDENTIFIES.search(key)):
        yield _ALL, nothing
    if is_command:
        yield _OWN_WORDS, nothing
    is_version = any(part in _VERSIONED for part in key.split(".")) and _VERSION.fullmatch(text)
    yield from RULES if not is_version else OF_VERSIONS
    first, last = (re.sub(r"\[.*", "", key.split(".")[at]) for at in (0, -1))
    in_rows = first in ("rows", "benchmarks")
    if last in _MESSAGES if in_rows else first not in _VOCABULARY:  # not in bench's own words
        yield names, nothing


def text_of(document: dict[str, Any]) -> str:
    """`document` as bench writes it: a line for each row and each repetition."""
    context = json.dumps(document["context"], indent=1, ensure_ascii=False).replace("\n", "\n ")
    parts = [f'{{\n "context": {context}']
    for name in ("rows", "benchmarks"):
        lines = (
            json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in document[name]
        )
        parts.append(f' "{name}": [\n  ' + ",\n  ".join(lines) + "\n ]")
    return ",\n".join(parts) + "\n}\n"
