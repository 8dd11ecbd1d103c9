# SPDX-License-Identifier: Apache-2.0
"""SPEEDUP = CPU time / GPU time, for each network: also for those that stand on no curve."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from plots.core import statistics
from plots.core.crossover import CPU_WINS, GPU_WINS, Comparison
from plots.core.curves import NETWORKS, Alike, Curve, pairings
from plots.core.replicates import estimate, fewest_samples
from plots.file.families import EPOCH
from plots.file.rows import File, median_of

Winner = Literal["cpu", "gpu"]
_WINNERS: dict[int, Winner | None] = {CPU_WINS: "cpu", GPU_WINS: "gpu", 0: None}


@dataclass(frozen=True, slots=True)
class SpeedUp(Alike):
    """One network on the best thread count of the CPU and on the GPU in one configuration.

    `cpu` and `gpu` are curves of one size. [`low`, `high`] is the 95 % interval of `ratio`, None
    where a row has too few repetitions. `verdict` is that of the crossover's winners for this size
    (CPU_WINS, GPU_WINS or 0), None for a network on no curve. Of `repetitions` in order, `against`
    have the other device ahead than the winner.
    """

    parameters: float
    cpu: Curve
    gpu: Curve
    ratio: float
    low: float | None
    high: float | None
    verdict: int | None = None
    against: int = 0
    repetitions: int = 0

    @property
    def winner(self) -> Winner | None:
        """The faster device, where that is sure: on a curve as its crossover says, so that both
        agree, and else where the interval excludes 1."""
        verdict = self.verdict
        if self.low is None or self.high is None:
            return None
        if verdict is None:
            verdict = GPU_WINS * (self.low > 1) + CPU_WINS * (self.high < 1)
        return _WINNERS[verdict]


def speed_ups(
    file: File, family: str = EPOCH, compared: Sequence[Comparison] = ()
) -> list[SpeedUp]:
    """The speedup of every network of `file` on every GPU configuration, in the file's order: of
    the rows of `family`, which is one of TRAINING. `compared` are the file's comparisons().

    The CPU's curve is that of the thread count with the smallest median; the ratio is that of the
    best, which is a little slower where several are about equally fast (estimate()).
    """
    found = []
    verdicts = _verdicts(compared)
    for pairing in pairings(file, {family: NETWORKS[family]}):
        best, gpu = pairing.best, pairing.gpu
        chosen = min(pairing.cpus, key=lambda curve: median_of(curve.samples[0]))
        cpu_times, gpu_times = estimate(best, 0), estimate(gpu, 1)
        low = high = None
        if min(fewest_samples(best), fewest_samples(gpu)) >= statistics.FEWEST_SAMPLES:
            replicates = np.exp(cpu_times.replicates - gpu_times.replicates)
            low, high = statistics.interval(replicates[:, 0])
        ratio = float(np.exp(cpu_times.logs - gpu_times.logs)[0])
        size = float(gpu.sizes[0])
        verdict = verdicts.get(gpu.rows[0])
        one = SpeedUp(pairing.common, size, chosen, gpu, ratio, low, high, verdict)
        found.append(_counted(one))
    return found


def _counted(one: SpeedUp) -> SpeedUp:
    ahead = [cpu > gpu for cpu, gpu in zip(one.cpu.samples[0], one.gpu.samples[0], strict=False)]
    against = ahead.count(one.winner == "cpu") if one.winner else 0
    return replace(one, against=against, repetitions=len(ahead))


def _verdicts(compared: Sequence[Comparison]) -> dict[int, int]:
    """Row.index of the GPU → who wins there against the best thread count, on the curves that it
    stands on."""
    return {
        row: winner
        for one in compared
        if one.cpu.candidates
        for size, winner in zip(one.crossover.sizes, one.crossover.winners, strict=True)
        for row in (one.gpu.rows[one.gpu.sizes.tolist().index(size)],)
    }
