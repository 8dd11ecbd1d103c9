# SPDX-License-Identifier: Apache-2.0
"""Imports run downwards: from features to core to file, and inside a feature from what is shown to
what is found out. So whoever changes a feature reads that feature alone; a section is one file and
one line, its command one file and one line more. (A quantity is an entry: test_samples.py.)"""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import plots
from plots.tests import synthetic

ROOT = Path(plots.__file__).parent
FLOORS = ("file", "core", "features")  # what has no folder is below them, or starts everything
START = {"__init__", "__main__", "cli", "commands", "notebook"}
SHOWN = {"table": 1, "chart": 1, "summary": 1, "section": 2, "command": 3}
TOP = SHOWN["command"]  # a command composes; so does the report, which has every feature's section
# Whose analysis may use whose: those that stand before it.
ANALYSES = (
    *("shi", "predict", "why", "advise", "threads", "copies", "answer", "crossover"),
    *("site", "compare", "peers", "rows"),
)


PACKAGES = ("plots", "networks", "peers", "tools")


def all_imports() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Each module of the packages and each of theirs that it imports, as the parts of their names;
    those that only types need, too."""
    paths = {
        path.relative_to(ROOT.parent).with_suffix("").parts: path
        for package in PACKAGES
        for path in sorted((ROOT.parent / package).rglob("*.py"))
    }
    for importer, path in paths.items():
        if "tests" in importer:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            package = tuple((getattr(node, "module", None) or "").split("."))
            if isinstance(node, ast.ImportFrom) and package[0] in PACKAGES:
                for alias in node.names:
                    module = (*package, alias.name)
                    yield importer, module if module in paths else package


def imports() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Those inside plots, below it."""
    for importer, imported in all_imports():
        if importer[0] == imported[0] == "plots":
            yield importer[1:], imported[1:]


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


def test_imports_have_no_circle():
    """So whoever reads a file need not know what reads it; and networks stands on peers."""
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for importer, imported in all_imports():
        graph.setdefault(importer, set()).add(imported)
        assert (importer[0], imported[0]) != ("peers", "networks"), importer
    assert len([*TopologicalSorter(graph).static_order()]) > 200  # CycleError names a circle


def test_an_upward_import_is_found():
    why = ("features", "why", "analysis")
    assert fault(("core", "bounds"), why) and fault(("units",), ("core", "bounds"))
    assert fault(why, ("features", "why", "table")) and fault(why, ("cli",))
    assert fault(("features", "answer", "section"), ("features", "why", "table"))
    assert fault(("features", "threads", "analysis"), ("features", "answer", "analysis"))
    assert not fault(("features", "answer", "analysis"), ("features", "threads", "analysis"))
    assert not fault(("features", "crossover", "command"), ("features", "machines", "table"))


# --- a section and its command

SECTION = '''
from collections.abc import Sequence

from plots.core.page.section import Block, Context, Section
from plots.core.tables.cells import number_field, table_of, text_field
from plots.file.rows import File


def build(files: Sequence[File], context: Context) -> Section:
    """How many rows each file has."""
    blocks = []
    for file in files[: context.detailed]:
        fields = (
            text_field("family", "family", lambda of: of[0]),
            number_field("rows", "rows", lambda of: of[1]),
        )
        families = [row.family for row in file.rows]
        counts = [(name, families.count(name)) for name in dict.fromkeys(families)]
        table = table_of(f"Rows, on {file.machine.id}", counts, fields)
        lead = f"{len(families)} rows were counted."
        blocks.append(Block(file.machine.id, lead=lead, tables=(table,)))
    return Section(title="Counted", anchor="counted", blocks=tuple(blocks))
'''
COMMAND = """
import argparse

from plots.core.command import add_format, add_paths, complain, load_answering, print_sections
from plots.core.page.section import Context
from plots.features.counted.section import build

DESCRIPTION = "Counts rows."
EXAMPLE = "counted results"


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    files, problems = load_answering(options.paths)
    print_sections([build(files, Context(detailed=len(files)))], options)
    return complain(problems)
"""
# Where each is listed: the file, what stands there, and the line that follows it then.
LISTED = (
    (
        "features/report/sections.py",
        "from plots.features.copies import section as copies\n",
        "from plots.features.counted import section as counted\n",
    ),
    (
        "features/report/sections.py",
        "    doubts.build,\n    record.build,\n",
        "    counted.build,\n",
    ),
    ("commands.py", "COMMANDS = {\n", '    "counted": "count rows",\n'),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A copy of plots with another section and command."""
    root = tmp_path_factory.mktemp("adding")
    ignored = shutil.ignore_patterns("__pycache__", "tests")
    shutil.copytree(ROOT, root / "plots", ignore=ignored)
    folder = root / "plots" / "features" / "counted"
    folder.mkdir()
    (folder / "section.py").write_text(SECTION, encoding="utf-8")
    (folder / "command.py").write_text(COMMAND, encoding="utf-8")
    for name, place, line in LISTED:
        path = root / "plots" / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(place, place + line, 1), encoding="utf-8")
    return root


@pytest.mark.slow
def test_a_section_and_its_command_are_added(root, write, tmp_path):
    """Takes long, as it starts the commands of a copy."""
    path = write(synthetic.document(synthetic.samples(synthetic.cpu_configuration("disc-3", 1))))

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "plots", *arguments]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "1 rows were counted.\n\nRows\n" in run("counted", str(path))
    ((table,),) = [json.loads(run("counted", str(path), "--format=json"))]
    assert table["rows"] == [{"family": "Epoch", "rows": 1}]
    run("report", str(path), f"--output={tmp_path / 'out'}")
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<section id="counted">\s*<h2>Counted</h2>', page)
    assert "1 rows were counted." in page


# --- names

SAY_NOTHING = {"one", "found", "own", "said"}


def bindings(tree: ast.AST) -> Iterator[str]:
    """The names of variables, parameters and declared fields; not of what a comprehension or lambda
    binds, which ends with its line."""
    brief = [
        node.target if isinstance(node, ast.comprehension) else node.args
        for node in ast.walk(tree)
        if isinstance(node, (ast.comprehension, ast.Lambda))
    ]
    ends = {id(node) for bound in brief for node in ast.walk(bound)}
    for node in ast.walk(tree):
        if id(node) not in ends and isinstance(node, ast.arg):
            yield node.arg
        if id(node) not in ends and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_names_say_what_a_value_is():
    sources = [
        path
        for folder in ("plots", "peers", "networks", "tools", "tests")
        for path in (ROOT.parent / folder).rglob("*.py")
    ]
    assert len(sources) > 200
    empty = [
        f"{path}: {name}"
        for path in sources
        for name in bindings(ast.parse(path.read_text(encoding="utf-8")))
        if name in SAY_NOTHING
    ]
    assert not empty, "\n".join(empty)
    made_up = ast.parse("one: int\ndef f(found):\n  for said, _ in found: g(x for own in said)")
    assert sorted(SAY_NOTHING.intersection(bindings(made_up))) == ["found", "one", "said"]
