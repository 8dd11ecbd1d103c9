# SPDX-License-Identifier: Apache-2.0
"""What the real cuDNN plans for each generation of GPUs, none of which has to be here.

python tests/test_cudnn_plans.py      ask again, and write the table
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tools.stages import weekly

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "tests" / "cudnn_plans"
TABLE = ROOT / "tests" / "fixtures" / "cudnn_plans.txt"
GENERATIONS = ("75", "86", "89", "90", "100", "120")
ALWAYS = "90"  # its networks have plans of every kind, and each generation takes a minute
HEAD = """\
# Which plans of cuDNN the networks' convolutions and attention get: how many forms which engine,
# and the largest workspace. Written by .venv/bin/python tests/test_cudnn_plans.py
"""


def ask(generation: str) -> str:
    path = [str(PROGRAM.parent / "driver_for_plans"), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = os.environ | {"LD_LIBRARY_PATH": ":".join(filter(None, path))}
    done = subprocess.run(
        [PROGRAM, generation], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_plans_are_those_of_the_table(generation: str) -> None:
    if generation != ALWAYS and not weekly():
        pytest.skip("runs with ./test --all")
    if not PROGRAM.exists():
        pytest.skip("this build has no cuDNN: ./test installs it where there is a CUDA 13 compiler")
    text = TABLE.read_text(encoding="utf-8")
    table = re.search(rf"^sm_{generation},.*\n(?: .*\n)+", text, re.MULTILINE)
    assert table is not None
    told = ask(generation)
    of, here = (found.partition("\n")[0].rpartition(", ")[2] for found in (table[0], told))
    if of != here:
        pytest.skip(f"the table is of {of}, the build of {here}")
    assert told == table[0]


if __name__ == "__main__":
    TABLE.write_text(HEAD + "".join(map(ask, GENERATIONS)), encoding="utf-8")
