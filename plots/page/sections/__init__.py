# SPDX-License-Identifier: Apache-2.0
"""The sections of the report, one module each, in the order of the page.

A section's module has `build(files, context) -> Section | None`, see plots/page/section.py; None
leaves it out. A new section is a new module, listed in SECTIONS.
"""

from __future__ import annotations

from types import ModuleType

from plots.page.sections import (
    ceilings,
    copies,
    crossovers,
    doubts,
    epochs,
    machines,
    peers,
    predicted,
    products,
    published,
    reasons,
    record,
    shi_table,
    steps,
    threads,
    verdict,
)

SECTIONS: tuple[ModuleType, ...] = (
    machines,
    verdict,
    crossovers,
    epochs,
    steps,
    predicted,
    threads,
    reasons,
    peers,
    shi_table,
    ceilings,
    copies,
    products,
    published,
    doubts,
    record,
)
