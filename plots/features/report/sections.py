# SPDX-License-Identifier: Apache-2.0
"""The sections of the report, one module each, in the order of the page.

A section's module has `build(files, context) -> Section | None`, see plots/core/page/section.py;
None leaves it out. A new section is a new module, listed in SECTIONS.
"""

from types import ModuleType

from plots.features.advise import own_section as own
from plots.features.advise import section as ask
from plots.features.answer import section as verdict
from plots.features.ceilings import section as ceilings
from plots.features.conditions import section as conditions
from plots.features.copies import section as copies
from plots.features.crossover import section as crossovers
from plots.features.doubts import section as doubts
from plots.features.machines import section as machines
from plots.features.peers import section as peers
from plots.features.predict import section as predicted
from plots.features.products import section as products
from plots.features.ranks import section as ranks
from plots.features.record import section as record
from plots.features.shi import section as shi_table
from plots.features.threads import section as threads
from plots.features.training import epochs_section as epochs
from plots.features.training import forward_section as forward
from plots.features.training import steps_section as steps
from plots.features.two import section as two
from plots.features.why import section as reasons

SECTIONS: tuple[ModuleType, ...] = (
    own,
    two,
    verdict,
    ask,
    machines,
    crossovers,
    epochs,
    steps,
    forward,
    predicted,
    threads,
    ranks,
    copies,
    reasons,
    peers,
    shi_table,
    ceilings,
    products,
    conditions,
    doubts,
    record,
)
# Those that say the same of another quantity than time.
OF_ANY_QUANTITY: tuple[ModuleType, ...] = (verdict, crossovers, copies, doubts, record)
