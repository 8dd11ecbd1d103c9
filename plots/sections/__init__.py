# SPDX-License-Identifier: Apache-2.0
"""The sections of the report, one module each, in the order of the page.

A section's module has `build(files, context) -> Section | None`, see plots/section.py; None leaves
it out. A new section is a new module, listed in SECTIONS.
"""

from __future__ import annotations

from types import ModuleType

from plots.sections import (
    ceilings,
    copies,
    doubts,
    epochs,
    products,
    published,
    record,
    verdict,
)

SECTIONS: tuple[ModuleType, ...] = (
    verdict,
    # crossover, why
    epochs,
    # shi
    ceilings,
    copies,
    products,
    published,
    doubts,
    record,
)
