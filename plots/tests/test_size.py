# SPDX-License-Identifier: Apache-2.0
"""Many files: the report stays small in memory, and shows most machines in a line each."""

import subprocess
import sys
from pathlib import Path

import pytest

from plots.parallel import MOST_PROCESSES
from plots.tests import synthetic_probes
from tools.stages import in_ci, weekly

ROOT = Path(__file__).parents[2]
FILES = 200 if weekly() else 70
GIBIBYTE = 2**30
# What processes need however few files there are (up to 660 MiB), and the files' share of the rest.
FIXED = 750 * 2**20
MOST = FIXED + (GIBIBYTE - FIXED) * FILES / 200

# The largest resident memory of the report's process, and of any process that it started.
MEASURE = """\
import resource, sys
from plots.cli import main
code = main(sys.argv[1:])
kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
kibibytes = [resource.getrusage(kind).ru_maxrss for kind in kinds]
print(*(1024 * amount for amount in kibibytes), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.skipif(
    not (in_ci() or weekly()),
    reason="20 s: continuous integration measures it, and ./test --all",
)
def test_200_files_of_500_entries_would_need_less_than_a_gibibyte(tmp_path):
    synthetic_probes.write_many(tmp_path / "in", FILES, entries=500)
    output = tmp_path / "out"
    command = [sys.executable, "-c", MEASURE, "report", str(tmp_path / "in"), "-o", str(output)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    own, largest_child = map(int, finished.stderr.split()[-2:])
    assert own + MOST_PROCESSES * largest_child < MOST
    page = (output / "index.html").read_text(encoding="utf-8")
    assert all(f">synthetic machine {number}<" in page for number in range(FILES))
    # The strips, and the curves, of all machines; of four of them: crossovers of epochs and
    # products, epochs, predictions, copies, products. Each for a wide and for a
    # narrow screen.
    assert page.count("<svg") == 52
    assert len(page) < 10e6
