# SPDX-License-Identifier: Apache-2.0
"""In a checkout `python -m peers.pytorch` and the like are those of crossover_bench.peers."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "plots"))

from crossover_bench import peers

__path__ = peers.__path__
