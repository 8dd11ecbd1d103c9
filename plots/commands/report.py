# SPDX-License-Identifier: Apache-2.0
"""`report`: draws charts and writes a page of tables."""

from __future__ import annotations

import argparse
from pathlib import Path

from plots import rows
from plots.commands.shared import add_paths, complain
from plots.published import PUBLISHED_PATH, load_published
from plots.text import printable

NAME = "report"
HELP = "draw charts and write a page of tables"
DESCRIPTION = (
    "Writes README.md into a folder, with a chart (PNG and SVG) and a table of seconds per epoch "
    "for each machine. Of several files from one machine the newest is shown. Bad files are named "
    "and left out, and the exit code is then 2."
)
EXAMPLE = "python -m plots report results -o report"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add_paths(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="folder to write to, made if missing (default: report)",
    )
    parser.add_argument(
        "--all", action="store_true", help="show every file, not only each machine's newest"
    )
    parser.add_argument(
        "--summary", action="store_true", help="print the tables as plain text as well"
    )


def run(options: argparse.Namespace) -> int:
    """Writes the report; returns the exit code."""
    # Imported here because matplotlib takes longer to load than `validate` takes to run.
    from plots.report import (  # noqa: PLC0415
        build_report,
        newest_per_machine,
        summary,
        write_report,
    )

    files, problems = rows.load_files(options.paths)
    if not options.all:
        files = newest_per_machine(files)
    if not files:
        problems.append("no report was written, because there is no valid result file")
    elif options.summary:
        print("\n\n".join(summary(file) for file in files), end="\n\n")
    try:
        contents = build_report(files, load_published()) if files else {}
        written = write_report(contents, options.output) if files else []
    except OSError as error:
        place = printable(str(error.filename or options.output))
        published = error.filename == str(PUBLISHED_PATH)
        remedy = "restore it from the repository" if published else "choose another folder with -o"
        problems.append(f"{place}: {error.strerror}, so no report was written; {remedy}")
        written = []
    for path in written:
        print(f"wrote {printable(str(path), 400)}")
    return complain(problems)
