# SPDX-License-Identifier: Apache-2.0
"""Made-up rows of the family Forward."""

from typing import Any

import numpy as np

from plots.tests import synthetic
from plots.tests.synthetic import MODELS

_QUANTILES = {"p50": 1.0, "p90": 1.1, "p99": 2.0, "p999": 5.0, "max": 40.0}


def passes(model: str, batch: int, device: str) -> list[dict[str, Any]]:
    """The entries of one row; a GPU takes 20 us at least, and a CPU as long as it computes."""
    params = MODELS[model][0]
    configuration = (
        synthetic.cpu_configuration(model, 2, batch, "Forward")
        if device == "cpu"
        else synthetic.gpu_configuration(model, batch=batch, family="Forward")
    )
    flops = 2.0 * params * batch
    seconds = 1e-6 + flops / 2e10 if device == "cpu" else 2e-5 + flops / 5e12
    noise = np.random.default_rng([params, batch, len(device)]).gamma(2.0, 0.015, 9)
    common: dict[str, Any] = {
        "name": synthetic.row_name(configuration),
        "configuration": configuration,
        "iterations": 100,
        "time_unit": "ms",
        "verification": {
            "reference": "float64 interpreter",
            "entries": 2 * batch,
            "entries_of": 2 * batch,
            "tolerance": 1e-5,
            "relative_error": 1e-7,
        },
        "params": params,
        "batch": batch,
        "flops": flops,
        "first_call_seconds": 0.05,
        "clock_seconds": 3e-8,
        **({"cpu_threads": 2} if device == "cpu" else {}),
    }
    return [
        {
            **common,
            "instance": place,
            "latency_passes": 10_000 - place,
            "real_time": own * 1e3,
            "cpu_time": own * 1e3,
            **{f"latency_{key}_seconds": own * times for key, times in _QUANTILES.items()},
        }
        for place, own in enumerate((seconds * (1 + noise)).tolist())
    ]
