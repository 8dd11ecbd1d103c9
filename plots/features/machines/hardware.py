# SPDX-License-Identifier: Apache-2.0
"""Names of processors and cards, without what says nothing beside others."""

from __future__ import annotations


def short_processor(name: str) -> str:
    """`name` without what says nothing beside other processors: "Intel Xeon Platinum 8480+"."""
    words = name.replace("(R)", "").replace("(TM)", "").split(" @ ")[0].split()
    kept = [word for word in words if word not in ("CPU", "Processor") and "-Core" not in word]
    return " ".join(kept) or name


def short_gpu(name: str) -> str:
    """`name` without its vendor's: "H100 PCIe"."""
    return name.removeprefix("NVIDIA ").removeprefix("GeForce ") or name
