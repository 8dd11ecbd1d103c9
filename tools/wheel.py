# SPDX-License-Identifier: Apache-2.0
"""The Python part of an installed copy: python tools/wheel.py FOLDER (cmake/wheel.cmake calls it).

FOLDER becomes the package crossover_bench: plots, networks, peers and tools without their tests,
and what an installed copy's texts call its commands; and the pages that they name.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("plots", "networks", "peers", "tools")
FILES = (
    "LICENSE",
    "requirements-peers.txt",
    "requirements-jax.txt",
    "requirements-onnxruntime.txt",
)
PAGES = "docs/**/*.md"
ENTRY = "tools/installed.py"
START = """\
import sys

from crossover_bench import main

if __name__ == "__main__":
    sys.exit(main())
"""
# Of the repository alone: its tests, what ./test starts, tools/gpu_sweep, and this.
_LEFT_OUT = re.compile(
    r"(^|/)(tests|__pycache__)/|\.pyc$|"
    r"^tools/(fuzz|gpu_sweep|installed|sources|stages|test|wheel)(\.py)?$"
)
_WITH_TEXTS = {".py", ".js", ".j2"}
# It says how to measure a commit again, which takes the repository.
_OF_A_CHECKOUT = "plots/features/record/section.py"
_COMMANDS = (
    # What only the ./run of a checkout does: measure several ranks, and build.
    (
        re.compile(r"\./run\b(?= --compare-with| --family=Coll)|(?<=build it with )\./run\b"),
        "a checkout's ./run",
    ),
    (re.compile(r"(?<!a checkout's )\./run\b"), "crossover run"),
    (re.compile(r"(\.venv/bin/)?python -m plots\b"), "crossover"),
    (re.compile(r"python -m networks\b"), "crossover networks"),
)


def translated(name: str, text: str) -> str:
    """The text of the file `name` with the commands as an installed copy has them."""
    for there, here in _COMMANDS if name != _OF_A_CHECKOUT else ():
        text = there.sub(here, text)
    return text


def names() -> list[str]:
    """The files of the packages, from the repository's root."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file())
    every = sorted(str(path.relative_to(ROOT)) for path in paths)
    return [name for name in every if not _LEFT_OUT.search(name)]


def write(folder: Path) -> None:
    pages = ["results/README.md", *(str(path.relative_to(ROOT)) for path in ROOT.glob(PAGES))]
    for name in [*names(), *FILES, *pages]:
        _copy(name, folder / name)
    _copy(ENTRY, folder / "__init__.py")
    (folder / "__main__.py").write_text(START, encoding="utf-8")


def _copy(name: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in _WITH_TEXTS:
        text = translated(name, (ROOT / name).read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
    else:
        shutil.copyfile(ROOT / name, path)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
