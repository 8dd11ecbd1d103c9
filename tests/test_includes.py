# SPDX-License-Identifier: Apache-2.0
"""The folders of bench include one way: a reader of one need not know those behind it."""

import re
from pathlib import Path

from tools.console import ROOT

BENCH = ROOT / "bench"
# Each may include itself and those before it.
ORDER = ("base", "command_line", "rows", "file", "worker", "check", "run")


def included(path: Path) -> set[str]:
    named = re.findall(r'^#include "(\w+)/', path.read_text(encoding="utf-8"), re.MULTILINE)
    return {folder for folder in named if folder in ORDER}


def test_the_folders_of_bench_include_one_way():
    assert {path.name for path in BENCH.iterdir() if path.is_dir()} == set(ORDER)
    for place, folder in enumerate(ORDER):
        sources = [path for path in (BENCH / folder).rglob("*") if path.suffix in (".h", ".cpp")]
        assert sources, folder
        for path in sources:
            against = included(path) - set(ORDER[: place + 1])
            assert not against, f"{path.relative_to(ROOT)} includes {', '.join(sorted(against))}"
