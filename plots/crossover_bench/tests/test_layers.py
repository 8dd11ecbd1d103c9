# SPDX-License-Identifier: Apache-2.0
"""Imports run one way: rooms, the folders of crossover_bench, in no circle; inside answers from
what is shown to what is found out. So whoever changes an answer reads its folder alone; a
section is one file and one line, its command one file and one line more. (A quantity is an entry:
test_samples.py.)"""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from crossover_bench.place import PACKAGE, ROOT
from crossover_bench.tests import synthetic

Name = tuple[str, ...]  # of a module, its parts below crossover_bench
OUTSIDE = {"__init__", "__main__", "alone", "tests"}  # what starts everything, and what tests it
SHOWN = {"table": 1, "chart": 1, "summary": 1, "section": 2, "command": 3}
TOP = SHOWN["command"]  # a command composes; so does the report, which has every answer's section


@cache
def imports() -> list[tuple[Name, Name]]:
    """Each module and each that it imports."""
    every = {
        path.relative_to(PACKAGE).with_suffix("").parts: path for path in PACKAGE.rglob("*.py")
    }
    paths = {name: path for name, path in every.items() if not OUTSIDE.intersection(name)}
    pairs = []
    for importer, path in sorted(paths.items()):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom):
                continue
            top, *package = (node.module or "").split(".")
            for alias in node.names if top == PACKAGE.name else ():
                module = (*package, alias.name)
                pairs.append((importer, module if module in paths else tuple(package)))
    return pairs


def kind(module: Name) -> int:
    """The step of a module inside its answer; 0 is analysis."""
    return SHOWN.get(module[2].rpartition("_")[2], SHOWN.get(module[2], 0))


def circle(pairs: Iterable[tuple[str, str]]) -> str:
    """One in what imports what; empty where there is none."""
    graph = defaultdict(set)
    for importer, imported in pairs:
        if importer != imported:
            graph[importer].add(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " is imported by ".join(error.args[1])
    return ""


def fault(importer: Name, imported: Name) -> str:
    """Why one module of answers may not import another; empty where it may."""
    if len(imported) < 3:  # what answers share
        return ""
    if len(importer) < 3:
        return "one answer"
    if importer[1] == imported[1]:
        return "upwards in its answer" if kind(imported) > kind(importer) else ""
    if importer[1] == "report" or kind(importer) == TOP > kind(imported):
        return ""
    return "what another answer shows" if kind(imported) else ""


def faults(pairs: Sequence[tuple[Name, Name]]) -> list[str]:
    rooms = circle((importer[0], imported[0]) for importer, imported in pairs if imported)
    answers = [pair for pair in pairs if {name[:1] for name in pair} == {("answers",)}]
    wrong = [
        f"{'.'.join(importer)} imports {'.'.join(imported)}: {why}"
        for importer, imported in answers
        if (why := fault(importer, imported))
    ]
    analyses = circle(
        (importer[1], imported[1])
        for importer, imported in answers
        if importer[1] != "report" and len(importer) == len(imported) == 3 and kind(importer) < TOP
    )
    return [*filter(None, [rooms, analyses]), *wrong]


def test_imports_run_one_way():
    pairs = imports()
    assert len(pairs) > 900
    assert not faults(pairs)


def test_no_module_is_in_a_circle():
    """So whoever reads a file need not know what reads it."""
    assert not circle((".".join(importer), ".".join(imported)) for importer, imported in imports())


@pytest.mark.parametrize(
    "pair",
    [
        "counts.bounds answers.why.analysis",
        "words.units counts.bounds",
        "answers.why.analysis shell.cli",
        "answers.command answers.why.analysis",
        "answers.why.analysis answers.why.table",
        "answers.answer.section answers.why.table",
        "answers.predict.analysis answers.answer.glance",
    ],
)
def test_a_wrong_import_is_found(pair):
    importer, imported = (tuple(name.split(".")) for name in pair.split())
    assert len(faults([*imports(), (importer, imported)])) == 1


def test_a_command_composes():
    assert not fault(("answers", "crossover", "command"), ("answers", "machines", "table"))


# --- a section and its command

SECTION = '''
from collections.abc import Sequence

from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import number_field, table_of, text_field
from crossover_bench.files.rows import File


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

from crossover_bench.answers.command import (
    add_format,
    add_paths,
    complain,
    load_answering,
    print_sections,
)
from crossover_bench.show.page.section import Context
from crossover_bench.answers.counted.section import build

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
        "answers/report/sections.py",
        "from crossover_bench.answers.copies import section as copies\n",
        "from crossover_bench.answers.counted import section as counted\n",
    ),
    (
        "answers/report/sections.py",
        "    doubts.build,\n    record.build,\n",
        "    counted.build,\n",
    ),
    ("shell/commands.py", "COMMANDS = {\n", '    "counted": "count rows",\n'),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A copy of the package with another section and command."""
    root = tmp_path_factory.mktemp("adding")
    package = root / PACKAGE.name
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    folder = package / "answers" / "counted"
    folder.mkdir()
    (folder / "section.py").write_text(SECTION, encoding="utf-8")
    (folder / "command.py").write_text(COMMAND, encoding="utf-8")
    for name, place, line in LISTED:
        path = package / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(place, place + line, 1), encoding="utf-8")
    return root


@pytest.mark.slow
def test_a_section_and_its_command_are_added(root, write, tmp_path):
    """Takes long, as it starts the commands of a copy."""
    path = write(synthetic.document(synthetic.samples(synthetic.cpu_configuration("disc-3", 1))))

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", PACKAGE.name, *arguments]
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
        path for folder in ("plots", "tools", "tests") for path in (ROOT / folder).rglob("*.py")
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
