# SPDX-License-Identifier: Apache-2.0
"""What tests of ranks need of the machine, and how they start there."""

import functools
import os
import shutil
import subprocess

from bench_runs import EPOCHS, SHORT, bench

from tools.stages import weekly

# Tests may run as root in a container.
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SPIN = {"GOMP_SPINCOUNT": "1000"}
# The sums of a sweep, and how many there are: the two of megabytes, which take long to verify, are
# left to ./test --all.
SUMS = ("--family=Collective", "--benchmark_filter=" + ("." if weekly() else "-bytes:[0-9]{7}"))
SIZES = 7 if weekly() else 5


@functools.cache
def missing() -> str:
    """Why there are no ranks here; "" where there are."""
    if shutil.which("mpirun") is None:
        return "there is no mpirun here"
    two = ["mpirun", "-n", "2", "--oversubscribe", "true"]
    alone = subprocess.run(
        two, capture_output=True, text=True, env={**os.environ, **ROOT_MAY}, check=False
    )
    if alone.returncode != 0:
        said = " ".join(alone.stderr.split())[:200]
        return f"mpirun starts no two processes here: {said}"
    told = bench("--ranks=2", "--mlp=2,2", *EPOCHS, *SHORT, variables={**SPIN, **ROOT_MAY})
    return "bench was built without MPI" if "built without MPI" in told.stderr else ""
