# SPDX-License-Identifier: Apache-2.0
"""Which files of the project a file of pytest's tests reads."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.console import ROOT

# What programs are made from, and the scripts: tests of plots/ and peers/ read it only if they
# import it or say so.
_OF_PROGRAMS = frozenset(
    {"CMakeLists.txt", "CMakePresets.json", "bench", "cmake", "include", "src", "tests"}
    | {".ci", ".clang-tidy", ".github", "run", "test", "tools"}
)


def _imported(syntax: ast.Module) -> Iterator[str]:
    """What is imported anywhere in it, functions included; of `from a import b` a and a.b."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _modules(name: str, beside: Path) -> Iterator[Path]:
    """A module's file, where it is the project's, and those of the packages around it."""
    parts = name.split(".")
    for start in (ROOT, beside):
        for end in range(1, len(parts) + 1):
            path = start.joinpath(*parts[:end])
            yield from (p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file())


class Readers:
    """Test files, and what each reads. No test file reads another.

    A test file may say in READS what it reads besides the Python modules that it imports: files and
    folders from the project's root, or "programs" for what is built. If it says nothing, what those
    modules say counts; if they do not either, it reads everything, in plots/ and peers/ all but the
    scripts and what programs are made from.
    """

    def __init__(self, files: set[Path], programs: set[Path]) -> None:
        self.tests = sorted(path for path in files if path.match("tests/test_*.py"))
        self._others = files.difference(self.tests)
        self._programs = programs
        self._syntax: dict[Path, ast.Module] = {}
        self._named_by: dict[Path, set[Path]] = {}

    def read_by(self, test: Path) -> set[Path]:
        beside = {test.parent / "conftest.py"} & self._others
        modules = self._imports({test} | beside)
        said = set(self._said(test)) or {name for path in modules for name in self._said(path)}
        if said:
            return modules | self._named(said)
        if test.relative_to(ROOT).parts[0] == "tests":
            return {test} | self._others | self._programs
        return modules | {
            path for path in self._others if path.relative_to(ROOT).parts[0] not in _OF_PROGRAMS
        }

    def _imports(self, start: set[Path]) -> set[Path]:
        found, new = set(start), set(start)
        while new:
            reached = self._reached(new.pop()) - found
            found |= reached
            new |= reached
        return found

    def _reached(self, path: Path) -> set[Path]:
        """The modules that a file names."""
        if path not in self._named_by:
            names = set(_imported(self._parsed(path)))
            self._named_by[path] = {each for name in names for each in _modules(name, path.parent)}
        return self._named_by[path]

    def _said(self, module: Path) -> tuple[str, ...]:
        for node in self._parsed(module).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "READS":
                return tuple(ast.literal_eval(node.value))
        return ()

    def _named(self, names: set[str]) -> set[Path]:
        roots = {ROOT / name for name in names}
        found = {path for path in self._others if not roots.isdisjoint({path, *path.parents})}
        return found | self._programs if "programs" in names else found

    def _parsed(self, path: Path) -> ast.Module:
        if path not in self._syntax:
            self._syntax[path] = ast.parse(path.read_bytes())
        return self._syntax[path]
