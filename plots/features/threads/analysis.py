# SPDX-License-Identifier: Apache-2.0
"""From which size more CPU threads pay: the crossover that every machine has.

As plots/core/crossover.py, with the fewest threads in the place of the CPU and the most in that
of the GPU; docs/method/refinement.md gives the rules.
"""

from plots.core.crossover import EQUAL_WITHIN, Comparison, find_crossover
from plots.core.crossover_words import faster
from plots.core.curves import thread_pairs
from plots.core.paired import pairs_sentence
from plots.file.rows import File
from plots.text import printable

_NAME = 60


def more_threads(file: File) -> list[Comparison]:
    """One for each batch size, precision and so on of the epochs of `file` that have several thread
    counts, in the file's order."""
    found = []
    programs = {row.index: row.runs_as for row in file.rows}
    for common, *curves in thread_pairs(file):
        fewest, most = curves
        by_size = dict(zip(fewest.sizes.tolist(), fewest.rows, strict=True))
        one, other = (
            curve.axes["cpu_threads"].word(curve.configuration["cpu_threads"]) for curve in curves
        )
        crossover = find_crossover(
            fewest,
            most,
            sides=(one, other),
            equal_within=EQUAL_WITHIN,
            same=tuple(
                size
                for size, row in zip(most.sizes.tolist(), most.rows, strict=True)
                if size in by_size and programs[row] == programs[by_size[size]]
            ),
        )
        found.append(Comparison(common, "parameters", fewest, most, crossover))
    return found


def threads_sentence(file: File, one: Comparison) -> str:
    """The answer in a sentence, with what the file's pairs say."""
    claim = faster(one.crossover, printable(one.networks, _NAME))
    said = f"At batch {printable(one.batch or '?', _NAME)}, {claim}."
    return " ".join([said, *pairs_sentence(file, one)])
