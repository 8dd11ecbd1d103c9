# SPDX-License-Identifier: Apache-2.0
"""Crossover: measures on CPU and GPU, reads result files and shows what is in them.

load() and Study are for programs of your own and for notebooks (docs/howto/notebook.md), two() and
Side for two functions of your own (docs/howto/two-functions-in-python.md), ask() and watch() for a
module of PyTorch's in hand (docs/howto/module-in-hand.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossover_bench.files.samples import Samples
    from crossover_bench.functions.side import Side as Side
    from crossover_bench.functions.two import two as two
    from crossover_bench.in_hand.asking import ask as ask
    from crossover_bench.in_hand.watching import watch as watch
    from crossover_bench.notebook import Study as Study

__version__ = "0.1.0"  # the project's: pyproject.toml and CMakeLists.txt take it from here


def load(*paths: str) -> Samples:
    """The samples of the result files that `paths` name: files, folders, and patterns such as
    "results/*/*.json". Raises ValueError with a sentence for each file that cannot be used."""
    # Imported here, so that `crossover` can say what this Python lacks.
    from glob import glob  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from crossover_bench.files.loading import load_files  # noqa: PLC0415
    from crossover_bench.files.samples import long_table  # noqa: PLC0415

    named = [Path(name) for path in paths for name in (sorted(glob(path)) or [path])]
    files, problems = load_files(named)
    if problems:
        raise ValueError("\n".join(problems))
    return long_table(files)


# What others get by its name, from the module that has it, which imports what `crossover` does not
# need at first; ask and watch need PyTorch.
_ELSEWHERE = {
    "Study": "notebook",
    "Side": "functions.side",
    "two": "functions.two",
    "ask": "in_hand.asking",
    "watch": "in_hand.watching",
}


def __getattr__(name: str) -> object:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    try:
        return getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        from sys import executable  # noqa: PLC0415

        raise ImportError(
            f"crossover_bench.{name} needs PyTorch, and this Python ({executable}) has no torch"
        ) from None
