# SPDX-License-Identifier: Apache-2.0
"""The wheel without bench, for every system: built, and used as macOS and Windows would."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from scripts import ROOT, ran

from crossover_bench import __version__
from tools.sources import tracked_files

_BUILD = "import scikit_build_core.build as build; build.build_wheel('made')"
# What Python of Windows lacks.
_AS_ON_WINDOWS = """
import os, signal, sys
sys.modules["fcntl"] = sys.modules["pwd"] = sys.modules["resource"] = None
del signal.SIGHUP, signal.SIGPIPE, os.sched_getaffinity
sys.argv[0] = "crossover"
from crossover_bench.shell.command import main
sys.exit(main())
"""
_TWO = """
import numpy as np
import crossover_bench as crossover
answer = crossover.two(
    quick=np.sort, stable=lambda values: np.sort(values, kind="stable"),
    devices={"quick": "cpu", "stable": "cpu"},
    make=lambda n: np.arange(n)[::-1], n=[200, 400, 800], seconds=1)
print(answer)
answer.save("two.json")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("scikit_build_core", reason="what makes the wheel is missing")
    root = tmp_path_factory.mktemp("pure")
    for path in tracked_files():
        if path.suffix != ".json" or "results" not in path.parts:
            (root / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path.relative_to(ROOT))
    variables = {**os.environ, "CROSSOVER_PURE": "1", "PYTHONSAFEPATH": "1", "PATH": ""}
    ran(sys.executable, "-c", _BUILD, cwd=root, env=variables)
    (made,) = (root / "made").iterdir()
    return made


def python(site: Path, code: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Where only the wheel and its dependencies are, and no program is found."""
    command = [sys.executable, "-P", "-c", code, *words]
    variables = {"PYTHONPATH": str(site), "PATH": "", "HOME": str(site.parent)}
    return ran(*command, cwd=site.parent, env=variables, code=None)


def test_it_is_for_every_system_and_says_what_it_lacks(wheel, tmp_path):
    assert wheel.name == f"crossover_bench-{__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 2e6
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(site)
    assert "crossover_bench/docs/howto/two-functions-in-python.md" in names
    assert not [name for name in names if re.search(r"/tests/|/build/|\.so$", name)]

    told = python(site, _TWO)
    assert told.returncode == 0 and len(told.stdout.splitlines()) == 3, told.stderr
    words = ("two", tmp_path / "two.json", "--cpu=quick", "--gpu=stable")
    read = python(site, _AS_ON_WINDOWS, *words)
    assert read.returncode == 0 and "At n = 200 " in read.stdout, read.stderr
    for words in ((), ("run",), ("run", "two", "--n=1:2", "--steps=1,2", "a {n} {steps}", "b")):
        refused = python(site, _AS_ON_WINDOWS, *words)
        assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert "this copy has no bench and measures no networks" in python(site, _AS_ON_WINDOWS).stderr
    checked = python(site, _AS_ON_WINDOWS, "--check")
    assert checked.returncode == 0 and "This copy has no bench" in checked.stderr, checked.stderr
