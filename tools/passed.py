# SPDX-License-Identifier: Apache-2.0
"""A test repeats if the hash of its program, or of the files that it reads, has changed."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.console import stored

ALL = "CROSSOVER_TEST_ALL"  # set by ./test --all; tests in C++ ask for it as well
# bench/file/built_from.h: what a program says of its commit, which changes no result of its tests.
_TREE = re.compile(rb"[0-9a-f]{40}-(?:clean|dirty)\0")


def in_ci() -> bool:
    return bool(os.environ.get("CI"))


def weekly() -> bool:
    """./test --all: tests that thin out their cases run all of them."""
    return bool(os.environ.get(ALL))


class Passed:
    """The key that each test passed on, kept in a file; a key hashes all that the test reads."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._keys = stored(file)

    def unchanged(self, keys: Mapping[str, str]) -> set[str]:
        """Those that need no repetition; none in continuous integration and with --all."""
        if in_ci() or weekly():
            return set()
        return {name for name, key in keys.items() if self._keys.get(name) == key}

    def record(self, ran: Mapping[str, str], good: Iterable[str]) -> None:
        """Of the tests that ran with these keys, those in `good` passed."""
        others = {name: key for name, key in self._keys.items() if name not in ran}
        self._keys = {**others, **{name: ran[name] for name in good}}
        self._file.write_text(json.dumps(self._keys, indent=1, sort_keys=True), encoding="utf-8")


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def of_files(paths: Iterable[Path]) -> str:
    """Names and contents, but for the commit in them."""
    files = [path for path in sorted(paths) if path.is_file()]
    return digest(
        *((path, hashlib.sha256(_TREE.sub(b"", path.read_bytes())).hexdigest()) for path in files)
    )
