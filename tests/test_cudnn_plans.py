# SPDX-License-Identifier: Apache-2.0
"""What the real cuDNN plans for each generation of GPUs, none of which has to be here."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "tests" / "cudnn_plans"
TABLE = ROOT / "tests" / "fixtures" / "cudnn_plans.txt"


def parts(text: str) -> dict[str, str]:
    """By generation, and what stands before the first one."""
    head, *gpus = re.split(r"^sm_", text, flags=re.MULTILINE)
    return {"": head} | {gpu.partition(",")[0]: gpu for gpu in gpus}


@pytest.mark.slow
@pytest.mark.parametrize("generation", ["75", "86", "89", "90", "100", "120"])
def test_the_plans_are_those_of_the_table(generation: str) -> None:
    if not PROGRAM.exists():
        pytest.skip("this build has no cuDNN: ./test installs it where there is a CUDA 13 compiler")
    done = subprocess.run([PROGRAM, generation], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told, table = parts(done.stdout), parts(TABLE.read_text(encoding="utf-8"))
    if told[""] != table[""]:
        pytest.skip(f"the table is of {table[''].splitlines()[-1]}, not {told[''].split()[-1]}")
    assert told[generation] == table[generation]
