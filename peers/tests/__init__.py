# SPDX-License-Identifier: Apache-2.0
"""What tests of peers share."""

import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
NETWORKS: dict[str, Any] = json.loads((FIXTURES / "networks.json").read_text("utf-8"))


def ours(model: str, **changes: str) -> dict[str, str]:
    """The configuration of a row of bench's."""
    return {
        "family": "Epoch",
        "model": model,
        "batch": "100",
        "precision": "f32",
        "device": "cpu",
        "execution": "eager",
        "cpu_threads": "1",
        **changes,
    }


def configuration_of(name: str) -> dict[str, str]:
    """Of the row of that name."""
    family, *pairs = name.split("/")
    return {"family": family, **dict(pair.split(":", 1) for pair in pairs)}


def trained(model: str) -> dict[str, Any]:
    """What bench tells of a network beside its costs."""
    data = "disc points" if model.startswith("disc-") else "uniform"
    if model.startswith("gpt-"):
        data = "uniform sentences"
    return {"network": NETWORKS[model], "data": data}
