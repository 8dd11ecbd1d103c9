# SPDX-License-Identifier: Apache-2.0
"""How far a measurement is: a line that changes, on a terminal or in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Tell = Callable[[str], object]  # gets a line; "" when it is over
_WIDTH = 79


def teller(progress: Tell | bool | None) -> Tell:
    """What is told how far the measurement is. None: a terminal's standard error or a notebook,
    nobody elsewhere; True: standard error; False: nobody; else the function itself."""
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
        if not progress and (display := _notebook()):
            return _InNotebook(display)
    return _on_terminal if progress else lambda _: None


def _on_terminal(line: str) -> None:
    sys.stderr.write(f"\r{line[:_WIDTH]:{_WIDTH}}\r")
    sys.stderr.flush()


def _notebook() -> Any:
    """IPython's display module where a notebook asks; None elsewhere."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    if shell is None or type(shell).__name__ == "TerminalInteractiveShell":
        return None
    return module


class _InNotebook:
    """One output of a cell that is written again and again, and empty at the end."""

    def __init__(self, ipython: Any) -> None:
        self._display = ipython.display
        self._handle: Any = None

    def __call__(self, line: str) -> None:
        text = {"text/plain": line}
        if self._handle is None:
            self._handle = self._display.display(text, raw=True, display_id=True)
        else:
            self._handle.update(text, raw=True)
