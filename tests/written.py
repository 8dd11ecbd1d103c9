# SPDX-License-Identifier: Apache-2.0
"""The text of a result file, as bench writes it: a line for each row and for each repetition."""

from __future__ import annotations

import json
from typing import Any

_DIGITS = 6  # no clock and no machine is steadier than a millionth
_EXACT = 2.0**53  # below it a double tells whole numbers apart


def text_of(document: dict[str, Any]) -> str:
    """`document`, of the newest schema version, as JSON.

    Whole numbers are kept; others have six significant digits.
    """
    context = json.dumps(document["context"], indent=1, ensure_ascii=False)
    lists = [f' "{key}": {_lines(document[key])}' for key in ("rows", "benchmarks")]
    return "{\n" + ",\n".join([' "context": ' + context.replace("\n", "\n "), *lists]) + "\n}\n"


def _lines(items: list[dict[str, Any]]) -> str:
    lines = [
        json.dumps(_rounded(item), ensure_ascii=False, separators=(",", ":")) for item in items
    ]
    return "[\n  " + ",\n  ".join(lines) + "\n ]" if lines else "[]"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if not isinstance(value, float):
        return value
    kept = value if value.is_integer() else float(f"{value:.{_DIGITS}g}")
    return int(kept) if kept.is_integer() and abs(kept) < _EXACT else kept
