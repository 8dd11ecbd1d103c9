# SPDX-License-Identifier: Apache-2.0
"""What a file says of the sizes in between (`refinements`), for tests."""

from typing import Any

FIRST = {"device": "cpu", "execution": "eager", "cpu_threads": "1"}
COMMON = {"family": "Epoch", "batch": "100", "precision": "f32"}


def pairs(*intervals: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "kind": "threads",
        "common": COMMON,
        "first": FIRST,
        "second": {**FIRST, "cpu_threads": "2"},
        "error": 0.05,
        "most_sizes": 32,
        "most_pairs": 100,
        "complete": True,
        "ladder": [
            {"model": "disc-7", "params": 11430, "winner": "first"},
            {"model": "disc-8", "params": 44710, "winner": "second"},
        ],
        "sizes": [
            {
                "model": "disc-7x1.5",
                "params": 25504,
                "pairs": 14,
                "won_by_first": 14,
                "ties": 0,
                "winner": "first",
            }
        ],
        "intervals": list(intervals),
        **changes,
    }


def interval(low: float | None, high: float | None, below: str = "first") -> dict[str, Any]:
    return {"below": below, "low": low, "high": high}
