# SPDX-License-Identifier: Apache-2.0
"""Short names for rows that are shown together: what all of them share is said once."""

from collections.abc import Iterable, Sequence

from plots.file.rows import Row


def short_names(rows: Iterable[Row]) -> tuple[dict[str, str], str]:
    """Name → short name of each of `rows`, and what all of them share ("" where nothing).

    A row that has no precision, say, does not keep the others from sharing theirs.

    No two rows have the same short name: those that would keep their own.
    """
    found = {row.name: row for row in rows}
    common = _common(list(found.values()))
    names = {
        name: " ".join(
            [
                row.family,
                ", ".join(
                    row.axes[key].word(value)
                    for key, value in row.configuration.items()
                    if key != "family" and key not in common
                ),
            ]
        ).strip()
        for name, row in found.items()
    }
    texts = list(names.values())
    unique = {
        name: text if texts.count(text) == 1 and text != name else name
        for name, text in names.items()
    }
    return unique, ", ".join(common.values())


def _common(rows: Sequence[Row]) -> dict[str, str]:
    """Key → value in words of what `rows` may be said to have in common, and do."""
    words: dict[str, set[str]] = {}
    for row in rows:
        # How and where first, then what.
        for axis, value in (
            *row.axes.of(row.configuration, "how", "alike"),
            *row.axes.of(row.configuration, "what"),
        ):
            if axis.is_common:
                words.setdefault(axis.key, set()).add(axis.word(value))
    return {key: next(iter(found)) for key, found in words.items() if len(found) == 1}
