# SPDX-License-Identifier: Apache-2.0
"""Assembles the report: one HTML page, and its charts as files."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from crossover_bench.answers.predict.answer import Predictions
from crossover_bench.answers.report.sections import OF_ANY_QUANTITY, SECTIONS
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import File
from crossover_bench.parallel import Map, in_process
from crossover_bench.show.charts.files import stems, unused
from crossover_bench.show.page.page import render_page
from crossover_bench.show.page.section import Context, Section
from crossover_bench.show.tables.formats import ENDINGS, FORMATS
from crossover_bench.show.tables.table import Table
from crossover_bench.study.machines import SORTS, side_by_side
from crossover_bench.study.study import Study, studies_of
from crossover_bench.words.text import slug

PAGE = "index.html"


def build_report(
    files: Sequence[File],
    older: Sequence[File] = (),
    detailed: int | None = None,
    apply: Map = in_process,
    *,
    sort: str = SORTS[0],
    baseline: File | None = None,
    studies: Mapping[Path, Study] | None = None,
    predicted: Predictions | None = None,
    tables: str = "",
    home: str = "",
    quantity: Quantity = TIME,
    notes: Sequence[str] = (),
    more: Sequence[Section] = (),
) -> dict[str, bytes]:
    """The report on `files`, one or more: file name → content, ready to be written.

    `sort` and `baseline` are those of side_by_side(), `studies` is what studies_of() gives,
    where a caller has it, `predicted` what GPUs would do on the machines, `tables` the format in
    which each table of the page is a file as well (empty: none is), `home` the page of all
    machines, to link to. The first `detailed` files (None: all) are shown in full, the others as
    lines of a table; of `older` files a section shows what no file of their machine has. They are
    in `quantity`; the `notes` on that stand below the answer, and only the sections that know it
    are there. Sections of other files, `more`, stand first.
    Names are made of lower case letters, digits, hyphens and dots between them whatever the
    files hold, so nothing lands outside the folder they are written to.
    """
    studies = studies or studies_of(files, predicted, apply)
    side = side_by_side(files, studies=studies, older=older, baseline=baseline, sort=sort)
    files = [standing.file for standing in side.standings]
    every = [*files, *older]
    context = Context(
        detailed=len(files) if detailed is None else detailed,
        older=tuple(older),
        stems={file.path: stem for file, stem in zip(every, stems(every), strict=True)},
        studies=dict(studies),
        side=side,
        predictions=predicted,
        quantity=quantity,
        notes=tuple(notes),
        map=apply,
    )
    asked = SECTIONS if quantity is TIME else OF_ANY_QUANTITY
    built = [build(files, context) for build in asked]
    sections = [*more, *(section for section in built if section is not None)]
    title = "Crossover report" if quantity is TIME else f"Crossover report: {quantity.noun}"
    return contents_of(sections, title, home=home, tables=tables)


def contents_of(
    sections: Sequence[Section],
    title: str = "Crossover report",
    *,
    home: str = "",
    tables: str = "",
) -> dict[str, bytes]:
    """The page of `sections`, their charts, and where `tables` is a format their tables: file name
    → content."""
    contents = {PAGE: render_page(sections, title, home=home).encode()}
    for section in sections:
        contents |= charts_of(section)
        if tables:
            contents |= _tables(section, tables)
    return contents


def write_report(contents: dict[str, bytes], folder: Path) -> list[Path]:
    """Writes `contents` into `folder`, which it makes; returns the paths. Raises OSError.

    Files of these names are replaced, also where they are links to elsewhere; others stay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in contents.items():
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            raise IsADirectoryError(21, "Is a directory", str(path))
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.umask(mask := os.umask(0))
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        paths.append(path)
    return paths


def charts_of(section: Section) -> dict[str, bytes]:
    """The charts of `section`: file name → content."""
    contents = {}
    for picture in section.pictures:
        contents[f"{picture.name}.svg"] = picture.pictures.svg
        contents[f"{picture.name}.png"] = picture.pictures.png
    return contents


def _tables(section: Section, name: str) -> dict[str, bytes]:
    """The tables of `section` in the format `name`: MACHINE.SECTION.TITLE."""
    contents: dict[str, bytes] = {}
    tables: list[tuple[str, Table]] = [("", table) for table in section.tables]
    for block in section.blocks:
        tables += [(block.machine, table) for part in block.parts for table in part.tables]
    for machine, table in tables:
        names = [*([slug(machine)] if machine else []), section.anchor, slug(table.title)]
        stem = unused(".".join(names), [key.rpartition(".")[0] for key in contents])
        contents[f"{stem}.{ENDINGS[name]}"] = FORMATS[name](table).encode()
    return contents
