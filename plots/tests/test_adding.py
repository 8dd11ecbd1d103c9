# SPDX-License-Identifier: Apache-2.0
"""A section is one file and one line; a command of it one file and one line more. A quantity is an
entry: test_samples.py."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plots
from plots.tests import synthetic

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
    shutil.copytree(Path(plots.__file__).parent, root / "plots", ignore=ignored)
    folder = root / "plots" / "features" / "counted"
    folder.mkdir()
    (folder / "section.py").write_text(SECTION, encoding="utf-8")
    (folder / "command.py").write_text(COMMAND, encoding="utf-8")
    for name, place, line in LISTED:
        path = root / "plots" / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(place, place + line, 1), encoding="utf-8")
    return root


def test_a_section_and_its_command_are_added(root, write, tmp_path):
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
