# SPDX-License-Identifier: Apache-2.0
"""Crossover, installed: the command `crossover`, and load() and Study for programs and notebooks.

tools/wheel.py makes this the package's __init__.py. The packages plots, networks, peers and tools
stand in its folder, where they import each other by the names that they have in the repository.
Only a process of the command finds them by these names before a user's own; load() and Study find
them after the user's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plots.file.samples import Samples

_FOLDER = str(Path(__file__).resolve().parent)


def main() -> int:
    sys.path.insert(0, _FOLDER)
    from tools.command import main as command  # noqa: PLC0415

    return command()


def load(*paths: str) -> Samples:
    """What plots.load says of the result files that `paths` name."""
    samples: Samples = _plots().load(*paths)
    return samples


def __getattr__(name: str) -> Any:
    """Study, which is that of plots."""
    if name != "Study":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _plots().Study


def _plots() -> Any:
    if _FOLDER not in sys.path:
        sys.path.append(_FOLDER)
    import plots  # noqa: PLC0415

    if not str(plots.__file__).startswith(_FOLDER):
        raise ImportError(f"{plots.__file__} has the name of a package that is needed; move it")
    return plots
