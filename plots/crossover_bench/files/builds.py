# SPDX-License-Identifier: Apache-2.0
"""Other builds of bench in a result file: ./run --compare-with measures them in turn with its own.

Their rows are those of `program` bench-NAME (peers/bench.py).
"""

from dataclasses import replace
from pathlib import Path

from crossover_bench.files.rows import File, Row

SAME = "same"  # the name of this very build, measured once more
_PREFIX = "bench-"


def is_build(program: str) -> bool:
    return program.startswith(_PREFIX)


def path_of_build(file: File, program: str) -> Path:
    """What the part of `file` is called that this program measured."""
    return file.path.with_name(f"{program.removeprefix(_PREFIX)} in {file.path.name}")


def other_builds(file: File) -> dict[str, File]:
    """The name of each other build → what it measured, as a file of its own of the same machine."""
    rows_of: dict[str, list[Row]] = {}
    for row in file.builds:
        name = row.name.replace(f"/program:{row.program}", "")
        rest = {key: value for key, value in row.configuration.items() if key != "program"}
        build = row.program.removeprefix(_PREFIX)
        rows_of.setdefault(build, []).append(replace(row, name=name, configuration=rest))
    return {
        name: replace(
            file,
            path=path_of_build(file, name),
            software=replace(file.software, commit=file.software.commit if name == SAME else name),
            rows=tuple(rows),
            refinements=(),
            peers=(),
            builds=(),
            code_versions=file.code_versions if name == SAME else {},
        )
        for name, rows in rows_of.items()
    }
