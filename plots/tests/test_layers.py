# SPDX-License-Identifier: Apache-2.0
"""Imports run downwards: from features to core to file, and inside a feature from what is shown to
what is found out. Then whoever changes a feature reads that feature alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import plots

ROOT = Path(plots.__file__).parent
FLOORS = ("file", "core", "features")  # what has no folder is below them, or starts everything
START = {"__init__", "__main__", "cli", "commands"}
SHOWN = {"table": 1, "chart": 1, "summary": 1, "section": 2, "command": 3}
TOP = SHOWN["command"]  # a command composes; so does the report, which has every feature's section
# Whose analysis may use whose: those that stand before it.
ANALYSES = (
    *("shi", "predict", "why", "advise", "threads", "copies", "answer", "crossover"),
    *("site", "compare", "peers"),
)


def imports() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Each module of plots and each that it imports, as the parts of their names below plots."""
    names = {path.relative_to(ROOT).with_suffix("").parts for path in ROOT.rglob("*.py")}
    for path in sorted(ROOT.rglob("*.py")):
        importer = path.relative_to(ROOT).with_suffix("").parts
        if importer[0] == "tests":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("plots"):
                continue
            package = tuple((node.module or "").split("."))[1:]
            for alias in node.names:
                module = (*package, alias.name)
                yield importer, module if module in names else package


def floor(module: tuple[str, ...]) -> int:
    if module[:1] and module[0] in FLOORS:
        return 1 + FLOORS.index(module[0])
    return 1 + len(FLOORS) if module[:1] and module[0] in START else 0


def kind(module: tuple[str, ...]) -> int:
    """The step of a module inside its feature; 0 is analysis."""
    return SHOWN.get(module[2].rpartition("_")[2], SHOWN.get(module[2], 0))


def fault(importer: tuple[str, ...], imported: tuple[str, ...]) -> str:
    """Why `importer` may not import `imported`; empty where it may."""
    if floor(imported) > floor(importer):
        return "upwards"
    if not importer[0] == "features" == (imported or ("",))[0]:
        return ""
    if importer[1] == imported[1]:
        return "upwards in its feature" if kind(imported) > kind(importer) else ""
    if importer[1] == "report" or kind(importer) == TOP > kind(imported):
        return ""
    if kind(imported):
        return "what another feature shows"
    both = {importer[1], imported[1]} <= set(ANALYSES)
    return (
        "" if both and ANALYSES.index(imported[1]) < ANALYSES.index(importer[1]) else "out of order"
    )


def test_imports_run_downwards():
    pairs = list(imports())
    assert len(pairs) > 500
    wrong = [
        f"{'.'.join(importer)} imports {'.'.join(imported)}: {why}"
        for importer, imported in pairs
        if (why := fault(importer, imported))
    ]
    assert not wrong, "\n".join(wrong)


def test_an_upward_import_is_found():
    why = ("features", "why", "analysis")
    assert fault(("core", "bounds"), why) and fault(("units",), ("core", "bounds"))
    assert fault(why, ("features", "why", "table")) and fault(why, ("cli",))
    assert fault(("features", "answer", "section"), ("features", "why", "table"))
    assert fault(("features", "threads", "analysis"), ("features", "answer", "analysis"))
    assert not fault(("features", "answer", "analysis"), ("features", "threads", "analysis"))
    assert not fault(("features", "crossover", "command"), ("features", "machines", "table"))
