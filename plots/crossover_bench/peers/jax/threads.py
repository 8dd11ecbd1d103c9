# SPDX-License-Identifier: Apache-2.0
"""How many threads of the CPU JAX computes with: settled before it is imported, for a process.

XLA makes two pools when a program first asks for its CPU, each of NPROC threads, or of as many as
the process may use processors. No call changes that later, and its flag for Eigen's threads leaves
both as they are.
"""

from __future__ import annotations

import os
from pathlib import Path

from crossover_bench.peers.protocol import Configuration

VARIABLE = "NPROC"


def environment(configuration: Configuration) -> dict[str, str]:
    """Variables that a process for that row begins with. By itself JAX takes three quarters of a
    GPU's memory when it starts, and bench has rows there too."""
    if configuration["device"] == "cuda":
        return {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    count = configuration.get("cpu_threads")
    return {VARIABLE: count} if count else {}


def limited() -> int:
    """The number of threads of this process, which from here on runs on no more processors: the two
    pools together could take more. One thread needs no such bound, as then one pool computes."""
    available = sorted(os.sched_getaffinity(0), key=lambda one: (_rank(one), one))
    count = int(os.environ.get(VARIABLE, len(available)))
    if 1 < count < len(available):
        os.sched_setaffinity(0, available[:count])
    return count


def _rank(processor: int) -> int:
    """Its place among those of one core, from 0: first one of each core is taken."""
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        siblings = path.read_text("ascii").strip().replace("-", ",").split(",")
    except OSError:
        return 0
    return siblings.index(str(processor)) if str(processor) in siblings else 0
