# SPDX-License-Identifier: Apache-2.0
"""Short names for rows that are shown together: what all of them share is said once."""

from __future__ import annotations

from collections.abc import Iterable

from plots.rows import Row

# Keys whose values speak for themselves.
_BARE = frozenset(
    {
        "model", "precision", "device", "execution", "quantity", "direction", "memory", "mode",
        "transpose", "cache", "activation", "pass", "form",
    }
)  # fmt: skip

_SHARED = ("device", "precision", "execution", "batch")  # what rows may have in common


def short_names(rows: Iterable[Row]) -> tuple[dict[str, str], str]:
    """Name → short name of each of `rows`, and what all of them share ("" where nothing).

    A row that has no precision, say, does not keep the others from sharing theirs.

    No two rows have the same short name: those that would keep their own.
    """
    configurations = {row.name: row.configuration for row in rows}
    common = _common(list(configurations.values()))
    names = {
        name: " ".join([configuration["family"], ", ".join(_words(configuration, common))]).strip()
        for name, configuration in configurations.items()
    }
    texts = list(names.values())
    unique = {
        name: text if texts.count(text) == 1 and text != name else name
        for name, text in names.items()
    }
    return unique, ", ".join(_words(common, {}))


def _common(configurations: list[dict[str, str]]) -> dict[str, str]:
    values = {
        key: {configuration[key] for configuration in configurations if key in configuration}
        for key in _SHARED
    }
    return {key: next(iter(found)) for key, found in values.items() if len(found) == 1}


def _words(configuration: dict[str, str], known: dict[str, str]) -> list[str]:
    return [
        _word(key, value)
        for key, value in configuration.items()
        if key != "family" and key not in known
    ]


def _word(key: str, value: str) -> str:
    if key == "cpu_threads":
        return f"{value} thread" if value == "1" else f"{value} threads"
    if key == "device":
        return {"cpu": "CPU", "cuda": "GPU"}.get(value, value)
    return value if key in _BARE else f"{key} {value}"
