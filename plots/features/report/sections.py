# SPDX-License-Identifier: Apache-2.0
"""The sections of the report, in the order of the page.

A section is a function `build(files, context) -> Section | None` in section.py of a feature's
folder, see plots/core/page/section.py; None leaves it out. A new one is listed in SECTIONS.
"""

from collections.abc import Callable, Sequence

from plots.core.page.section import Context, Section
from plots.features.advise import own_section
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
from plots.features.rows import section as rows
from plots.features.shi import section as shi
from plots.features.threads import section as threads
from plots.features.training import section as training
from plots.features.two import section as two
from plots.features.why import section as why
from plots.file.rows import File

Build = Callable[[Sequence[File], Context], Section | None]

SECTIONS: tuple[Build, ...] = (
    own_section.build,
    two.build,
    verdict.build,
    ask.build,
    machines.build,
    crossovers.build,
    training.epochs,
    training.steps,
    training.passes,
    predicted.build,
    threads.build,
    ranks.build,
    copies.build,
    why.build,
    peers.build,
    shi.build,
    rows.build,
    ceilings.build,
    products.build,
    conditions.build,
    doubts.build,
    record.build,
)
# Those that say the same of another quantity than time.
OF_ANY_QUANTITY: tuple[Build, ...] = (
    verdict.build,
    crossovers.build,
    copies.build,
    doubts.build,
    record.build,
)
