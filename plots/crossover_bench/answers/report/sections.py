# SPDX-License-Identifier: Apache-2.0
"""The sections of the report, in the order of the page.

A section is a function `build(files, context) -> Section | None` in section.py of a feature's
folder, see show/page/section.py; None leaves it out. A new one is listed in SECTIONS.
"""

from collections.abc import Callable, Sequence

from crossover_bench.answers.advise import own_section
from crossover_bench.answers.advise import section as ask
from crossover_bench.answers.answer import section as verdict
from crossover_bench.answers.ceilings import section as ceilings
from crossover_bench.answers.conditions import section as conditions
from crossover_bench.answers.copies import section as copies
from crossover_bench.answers.crossover import section as crossovers
from crossover_bench.answers.doubts import section as doubts
from crossover_bench.answers.machines import section as machines
from crossover_bench.answers.peers import section as peers
from crossover_bench.answers.predict import section as predicted
from crossover_bench.answers.products import section as products
from crossover_bench.answers.ranks import section as ranks
from crossover_bench.answers.record import section as record
from crossover_bench.answers.rows import section as rows
from crossover_bench.answers.shi import section as shi
from crossover_bench.answers.threads import section as threads
from crossover_bench.answers.training import section as training
from crossover_bench.answers.two import functions
from crossover_bench.answers.two import section as two
from crossover_bench.answers.why import section as why
from crossover_bench.files.rows import File
from crossover_bench.show.page.section import Context, Section

Build = Callable[[Sequence[File], Context], Section | None]

SECTIONS: tuple[Build, ...] = (
    own_section.build,
    two.build,
    functions.build,
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
