# SPDX-License-Identifier: Apache-2.0
"""What tests of peers share."""


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
