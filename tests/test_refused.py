# SPDX-License-Identifier: Apache-2.0
"""What bench, ./run, ./test and tools/gpu_sweep say of command lines that they refuse stands word
for word in fixtures/refused.txt.

python tests/test_refused.py      ask again, and write it
"""

import os
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("", "plots", "tests")]

from bench_runs import BENCH, OLD, built, environment  # noqa: E402
from scripts import ran  # noqa: E402

from crossover_bench.run import run  # noqa: E402
from crossover_bench.run.console import Failure  # noqa: E402
from tools import test  # noqa: E402

TEXTS = ROOT / "tests" / "fixtures" / "refused.txt"
HEAD = "# Written by .venv/bin/python tests/test_refused.py from the lines with $.\n\n"


def entries() -> dict[str, str]:
    """By command line what is said of it."""
    parts = TEXTS.read_text("utf-8").removeprefix(HEAD).split("$ ")[1:]
    return {command: text for command, _, text in (part.partition("\n") for part in parts)}


def refusal(command: str, out: Path) -> str:
    """With exit code 2, in a line, and the file from before as it was."""
    program, *words = shlex.split(command)
    if program == "bench":
        out.write_bytes(OLD)
        # --out first, as the last of a repeated flag counts.
        line = [built(BENCH), f"--out={out}", *words]
        done = ran(*line, code=2, cwd=ROOT, env=environment())
        assert done.stdout == ""
        assert out.read_bytes() == OLD and os.listdir(out.parent) == [out.name]
        assert done.stderr.startswith("bench: ") and done.stderr.count("\n") == 1
        return done.stderr
    if program == "tools/gpu_sweep":
        done = ran(ROOT / program, *words, code=2, cwd=ROOT)
        assert done.stdout == "" and done.stderr.count("\n") == 1
        return done.stderr
    with pytest.raises(Failure) as caught:
        (run if program == "./run" else test).parse(words)
    assert caught.value.code == 2
    return f"{program}: {caught.value}\n"


@pytest.mark.parametrize("command", entries())
def test_what_is_refused_is_said(tmp_path, command):
    assert refusal(command, tmp_path / "result.json") == entries()[command].rstrip("\n") + "\n"


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder, "result.json")
        texts = [f"$ {command}\n{refusal(command, path)}" for command in entries()]
    TEXTS.write_text(HEAD + "\n".join(texts), "utf-8")
