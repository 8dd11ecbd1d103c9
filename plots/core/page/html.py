# SPDX-License-Identifier: Apache-2.0
"""HTML from the templates in plots/core/page/templates, which alone make elements and attributes.

Every text they are given is escaped, shown on one line and shortened: it may come from a file.
"""

import re
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from plots.core.tables.table import Table
from plots.text import printable

TEMPLATES = Path(__file__).with_name("templates")
_LONGEST = 900  # characters of any text; what a result file holds may have millions
# A number and its unit stay on one line.
_UNIT = re.compile(r"(\d) (?=(?:[nµm]?s|%|[kKMGT]?i?(?:B|FLOP)(?:/s)?)(?:\W|$))")
_CODE = frozenset({"row", "command"})  # columns of what one types
_NAMES = frozenset({"machine", "gpu"})  # columns of names that may take two lines


@cache
def environment() -> Environment:
    """Where the templates are and how they treat text."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    made.globals.update(
        groups=_groups,
        is_code=lambda column: column.key in _CODE,
        is_name=lambda column: column.key in _NAMES,
        https=_https,
    )
    return made


def _shown(value: Any) -> Any:
    # Markup is the templates' own; all else may come from a file.
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _UNIT.sub("\\1\u00a0", printable(value, _LONGEST))


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
