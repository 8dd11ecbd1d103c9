# SPDX-License-Identifier: Apache-2.0
"""Makes text from a file, which may hold anything, safe to show: messages, Markdown, file names."""

import re
from collections.abc import Sequence

_MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")
_AUTOLINK = re.compile(r"(?i)\b(https?|ftp)(:)(?=//)|\b(www)(\.)")


def printable(text: str, limit: int = 160) -> str:
    """`text` on one line: unprintable characters escaped as in Python, shortened to `limit`.

    Shortened text says how many characters it had.
    """
    kept = text if len(text) <= limit else text[:limit]
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in kept
    )
    return shown if kept is text else f"{shown}… ({len(text):,} characters)"


def markdown(text: str, limit: int = 160) -> str:
    """`text` as Markdown that shows it literally, in a paragraph or in a cell of a table.

    No markup, HTML or link that `text` holds takes effect.
    """
    escaped = _MARKDOWN_SPECIAL.sub(r"\\\1", printable(text, limit))
    return _AUTOLINK.sub(lambda match: f"{match[1] or match[3]}\\{match[2] or match[4]}", escaped)


def whole(text: str, digits: int = 9) -> int | None:
    """The number that `text` spells in at most `digits` decimal digits, and nothing else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def sentence(phrase: str) -> str:
    """`phrase` with a capital letter and a full stop."""
    return f"{phrase[:1].upper()}{phrase[1:]}."


def counted(number: int, thing: str) -> str:
    """So many of a `thing`: "1 core", "2 cores"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def slug(text: str, limit: int = 60) -> str:
    """A file name made from `text`: lower case letters, digits and hyphens, never empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:limit].strip("-") or "unnamed"
