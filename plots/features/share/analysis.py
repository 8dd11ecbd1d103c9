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

from plots.file.loading import SCHEMA_PATH

_GONE = "…"
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
# A path from the root: not a name such as Epoch/model:x, whose / stands behind a letter.
_PATH = re.compile(
    r"(?:(?<![\w.)\]%/-])|(?<=-[ILB]))(?:~[\w.-]*|[A-Za-z]:)?(?:[/\\]+[^\s/\\:;,'\"()]+)+[/\\]*"
)
_HOME = re.compile(r"/(?:home|Users|root)/[^\s:;,'\"()]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_AT = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*")
_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])(?::\d+)?")
_HOSTS = ("HOSTID", "COMM_ID")  # ends of variables whose value is a host's
_OWN_WORDS = re.compile(r"(?<=^--benchmark_context=).+", re.DOTALL)  # any that the user wants
_ALL = re.compile(".+", re.DOTALL)
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
    pattern = re.compile(rf"(?<!\w)(?:{words})(?!\w)" if words else "(?!)")
    shared.document = _copy(document, "", shared, pattern)
    return shared


def _copy(value: Any, place: str, shared: Shared, names: re.Pattern[str]) -> Any:
    if isinstance(value, dict):
        known = _fields().get(place)  # None where others are allowed
        kept = {}
        for key, part in value.items():
            here = f"{place}.{key}" if place else key
            is_fact = place == _GPU and isinstance(part, bool | int | float)
            if known is not None and key not in known and not is_fact:
                shared.removed.append(here)
            else:
                kept[key] = _copy(part, here, shared, names)
        return kept
    if isinstance(value, list):
        return [_copy(part, f"{place}[{at}]", shared, names) for at, part in enumerate(value)]
    if not isinstance(value, str):
        return value
    for pattern in _patterns(place, names):
        for private in dict.fromkeys(match[0] for match in pattern.finditer(value)):
            after = _file_name(private) if pattern in (_PATH, _HOME) else _GONE
            shared.changed.append((place, private, after))
            value = value.replace(private, after)
    return value


@cache
def _fields() -> Mapping[str, Collection[str]]:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))["definitions"]
    machine = schema["machine"]["properties"]
    defined = {place: schema[name]["properties"] for place, name in _DEFINED.items()}
    return defined | {_CPU: machine["cpu"]["properties"], _GPU: machine["gpu"]["properties"]}


def _patterns(place: str, names: re.Pattern[str]) -> Iterator[re.Pattern[str]]:
    """What is private in the text at `place`."""
    key = place.removeprefix("context.crossover.")
    is_setting = key.startswith("configuration.environment.")
    is_command = key.startswith("configuration.command[")
    if is_setting and key.endswith(_HOSTS):
        yield _ALL
    if is_command:
        yield _OWN_WORDS
    yield from (_PATH, _HOME, _UUID, _AT)
    if is_command or is_setting:  # elsewhere four numbers may be a version
        yield _ADDRESS
    first, last = (re.sub(r"\[.*", "", key.split(".")[at]) for at in (0, -1))
    in_rows = first in ("rows", "benchmarks")
    if last in _MESSAGES if in_rows else first not in _VOCABULARY:  # not in bench's own words
        yield names


def _file_name(path: str) -> str:
    """The last part of `path`, as bench keeps it; of somebody's home folder nothing."""
    parts = [part for part in re.split(r"[/\\]+", path) if part]
    is_home = len(parts) == 2 and parts[0] in ("home", "Users")
    return _GONE if is_home or not parts else parts[-1]


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
