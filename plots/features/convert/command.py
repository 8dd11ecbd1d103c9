# SPDX-License-Identifier: Apache-2.0
"""`convert`: rewrites result files in the newest schema version."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from plots.core.command import add_paths, complain, named_path
from plots.file import loading
from plots.file.upgrade import upgraded
from plots.file.writing import text_of
from plots.text import printable

NAME = "convert"
HELP = "rewrite older result files in the newest schema version, which is smaller"
DESCRIPTION = (
    "Rewrites result files of older schema versions in the newest one, which needs a sixth of the "
    "space, and in which a diff of two runs shows only times. Everything that the other commands "
    "read is kept; times are cut to six digits. Invalid files are named and left unchanged, and "
    "the exit code is then 2."
)
EXAMPLE = "convert results --in-place"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add_paths(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "-o",
        "--output",
        type=named_path,
        metavar="DIR",
        help="folder to write to, made if missing; files from a folder keep their place in it",
    )
    where.add_argument("--in-place", action="store_true", help="replace the files themselves")


def run(options: argparse.Namespace) -> int:
    """Converts every file; returns the exit code."""
    problems: list[str] = []
    taken: dict[Path, Path] = {}  # target → source
    for given in options.paths:
        sources, missing = loading.find_files([given])
        problems += missing
        for source in sources:
            target = source.resolve()
            if not options.in_place:
                inside = source.relative_to(given) if os.path.isdir(given) else Path(source.name)
                target = options.output / inside
            if taken.setdefault(target, source) != source:
                problems.append(
                    f"{printable(str(source))}: {printable(str(taken[target]))} would have the "
                    "same name in the output; convert them into two folders"
                )
                continue
            try:
                print(_convert(source, target))
            except loading.BadFileError as error:
                problems.append(str(error))
            except OSError as error:
                place = printable(str(error.filename or target))
                problems.append(
                    f"{place}: {error.strerror}, so {printable(str(source))} was not converted; "
                    "choose another folder with -o"
                )
    return complain(problems)


def _convert(source: Path, target: Path) -> str:
    """Writes `target`, whole or not at all, and says what it was and is."""
    document = loading.read(source)
    newest = upgraded(source, document)
    # A lone surrogate, which JSON can spell and UTF-8 cannot, stays spelled.
    text = text_of(newest).encode(errors="backslashreplace")
    written = json.loads(text)
    loading.check_schema(source, written)
    loading.file_of(source, written)
    version = loading.version_of(document)
    in_place = target == source.resolve()
    shown = printable(str(source if in_place else target), 400)
    if in_place and document is newest:
        return f"{shown}: schema version {version} already"
    before = source.stat().st_size
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.tmp")
    try:
        temporary.write_bytes(text)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return (
        f"{shown}: schema version {version} with {before:,} bytes, now "
        f"{loading.SCHEMA_VERSION} with {len(text):,}"
    )
