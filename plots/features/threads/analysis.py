# SPDX-License-Identifier: Apache-2.0
"""From which size more CPU threads pay: the crossover that every machine has.

As plots/core/crossover.py, with the fewest threads in the place of the CPU and the most in that
of the GPU; docs/method/refinement.md gives the rules.
"""

from dataclasses import dataclass

from plots.core.crossover import EQUAL_WITHIN, Crossover, Regret, find_crossover, regret
from plots.core.crossover_words import faster
from plots.core.curves import Alike, Curve, thread_pairs
from plots.core.paired import PAIRED, disagree, pairs_of, pairs_words
from plots.file.rows import File, Refinement
from plots.text import printable

_NAME = 60


@dataclass(frozen=True, slots=True)
class MoreThreads(Alike):
    """The epochs of a ladder's networks on the fewest and on the most threads of a file.

    `pairs` are the file's pairs of both, None where it has none; `disagrees` says that they
    contradict the bootstrap.
    """

    fewest: Curve
    most: Curve
    crossover: Crossover
    regret: Regret | None
    pairs: Refinement | None

    @property
    def sides(self) -> tuple[str, str]:
        """What both are called: "1 thread", "2 threads"."""
        return side_words(self.fewest), side_words(self.most)

    @property
    def disagrees(self) -> bool:
        """Whether bootstrap and pairs can't both be right."""
        return self.pairs is not None and disagree(self.crossover, self.pairs)

    @property
    def pairs_say(self) -> str:
        """The answer of the pairs in words; empty where there are none."""
        return pairs_words(self.pairs, self.sides) if self.pairs else ""


def side_words(curve: Curve) -> str:
    """The threads of `curve` in words."""
    return curve.axes["cpu_threads"].word(curve.configuration["cpu_threads"])


def more_threads(file: File) -> list[MoreThreads]:
    """One for each batch size, precision and so on of the epochs of `file` that have several thread
    counts, in the file's order."""
    found = []
    programs = {row.index: row.runs_as for row in file.rows}
    for common, fewest, most in thread_pairs(file):
        by_size = dict(zip(fewest.sizes.tolist(), fewest.rows, strict=True))
        crossover = find_crossover(
            fewest,
            most,
            sides=(side_words(fewest), side_words(most)),
            equal_within=EQUAL_WITHIN,
            same=tuple(
                size
                for size, row in zip(most.sizes.tolist(), most.rows, strict=True)
                if size in by_size and programs[row] == programs[by_size[size]]
            ),
        )
        found.append(
            MoreThreads(
                common,
                fewest,
                most,
                crossover,
                regret(crossover, fewest, most),
                pairs_of(file, common, fewest, most),
            )
        )
    return found


def threads_sentence(one: MoreThreads) -> str:
    """The answer in a sentence, with what the pairs say."""
    claim = faster(one.crossover, printable(one.networks, _NAME))
    batch = printable(one.batch or "?", _NAME)
    said = f"At batch {batch}, {claim}."
    if one.pairs:
        begin = "Paired measurements contradict that:" if one.disagrees else PAIRED
        said += f" {begin} {one.pairs_say}."
    return said
