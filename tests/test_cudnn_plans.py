# SPDX-License-Identifier: Apache-2.0
"""What the real cuDNN plans for each generation of GPUs, none of which has to be here.

python tests/test_cudnn_plans.py      ask again, and write the table
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("", "plots", "tests")]

from scripts import ran  # noqa: E402

from tools.stages import weekly  # noqa: E402

PROGRAM = ROOT / "build" / "tests" / "cudnn_plans"
TABLE = ROOT / "tests" / "fixtures" / "cudnn_plans.txt"
GENERATIONS = ("75", "86", "89", "90", "100", "120")
ALWAYS = "90"  # its networks have plans of every kind, and each generation takes a minute
OLDER = "the libcudnn.so.9 that is loaded has no cudnnGetVersion: it is older than"
HEAD = """\
# Which plans of cuDNN the networks' convolutions and attention get: how many forms which engine,
# and the largest workspace. Written by .venv/bin/python tests/test_cudnn_plans.py
"""


def run(
    generation: str, *libraries: Path, program: Path = PROGRAM, code: int | None = None
) -> subprocess.CompletedProcess[str]:
    path = [*map(str, libraries), str(PROGRAM.parent / "driver_for_plans")]
    path.append(os.environ.get("LD_LIBRARY_PATH", ""))
    environment = os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, path))}
    return ran(program, generation, code=code, env=environment)


def ask(generation: str) -> str:
    return run(generation, code=0).stdout


needs_cudnn = pytest.mark.skipif(
    not PROGRAM.exists(),
    reason="this build has no cuDNN: ./test installs it where there is a CUDA 13 compiler",
)


@needs_cudnn
def test_a_library_is_loaded_when_it_is_called_and_what_is_wrong_with_it_is_said(tmp_path):
    library = tmp_path / "libcudnn.so.9"
    library.write_text("not a library")
    reason = run(ALWAYS, tmp_path).stderr
    assert f"there is no libcudnn.so.9 ({library}: " in reason
    assert "): install the Python package nvidia-cudnn-cu" in reason
    library.unlink()
    make_empty(library)
    assert OLDER in run(ALWAYS, tmp_path).stderr


@needs_cudnn
def test_a_python_package_beside_an_installed_program_comes_first(tmp_path):
    """As pip lays them out: site-packages/nvidia/cudnn and site-packages/crossover_bench/build."""
    program = tmp_path / "crossover_bench" / "build" / PROGRAM.name
    make_empty(tmp_path / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9")
    (tmp_path / "nvidia" / "without_libraries").mkdir()
    program.parent.mkdir(parents=True)
    shutil.copy(PROGRAM, program)
    assert OLDER in run(ALWAYS, program=program).stderr


def make_empty(library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    source = library.with_name("empty.cpp")
    source.touch()
    ran("c++", "-shared", "-o", library, source)


@needs_cudnn
@pytest.mark.slow
@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_plans_are_those_of_the_table(generation):
    if generation != ALWAYS and not weekly():
        pytest.skip("runs with ./test --all")
    text = TABLE.read_text(encoding="utf-8")
    table = re.search(rf"^sm_{generation},.*\n(?: .*\n)+", text, re.MULTILINE)
    assert table is not None
    told = ask(generation)
    of, here = (text.partition("\n")[0].rpartition(", ")[2] for text in (table[0], told))
    if of != here:
        pytest.skip(f"the table is of {of}, the build of {here}")
    assert told == table[0]


if __name__ == "__main__":
    TABLE.write_text(HEAD + "".join(map(ask, GENERATIONS)), encoding="utf-8")
