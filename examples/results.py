# SPDX-License-Identifier: Apache-2.0
"""Result files in a script or a notebook: each cell is one step.

.venv/bin/python examples/results.py results
"""

# %% Read the files: the valid ones, and a sentence for each that is not.
import sys
from pathlib import Path

import numpy as np

from crossover_bench.files.loading import load_files
from crossover_bench.files.rows import Row

files, problems = load_files([Path(word) for word in sys.argv[1:]])
print(*problems, sep="\n", end="")

# %% A row has its configuration, its counters, and the seconds of each repetition.
for file in files:
    epochs = [row for row in file.rows if row.family == "Epoch" and not row.failure]
    print(f"{file.machine.id}, {file.date.date()}: {len(epochs)} rows of epochs")

# %% The fastest way of each network: its median, and the middle half of its repetitions.
for file in files:
    fastest: dict[str, Row] = {}
    for row in file.rows:
        if row.family == "Epoch" and not row.failure:
            fastest[row.model] = min(row, fastest.get(row.model, row), key=lambda row: row.median)
    for model, row in fastest.items():
        low, high = np.quantile(row.samples, [0.25, 0.75])
        name = f"{model:<12}{row.counters['params']:>12,.0f} parameters"
        print(f"{name}  {row.median:.3g} s  ({low:.3g} to {high:.3g})")
