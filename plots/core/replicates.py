# SPDX-License-Identifier: Apache-2.0
"""What repetitions tell of a curve: its times, and what they would be had one measured again.

docs/method/crossover.md says how the best thread count is chosen, and how well intervals cover.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plots.core import statistics
from plots.core.curves import Curve
from plots.file.rows import Instances, median_of

_VALUE, _CHOICE = 0, 1  # names the random numbers of each purpose
_Samples = tuple[np.ndarray, Instances]


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Natural logarithms of the seconds of a curve.

    `logs` has one a size; `replicates` one line a replicate, one column a size.
    """

    logs: np.ndarray
    replicates: np.ndarray


def estimate(curve: Curve, side: int) -> Estimate:
    """The times of `curve`, and of the best of several thread counts without the favour of choice.

    `side` is 0 for a CPU, 1 for a GPU, so that the two are independent.
    """
    sizes = [
        _estimate_at(candidates, side, place) for place, candidates in enumerate(_candidates(curve))
    ]
    return Estimate(
        logs=np.array([log for log, _ in sizes]),
        replicates=np.stack([drawn for _, drawn in sizes], axis=1),
    )


def _estimate_at(candidates: Sequence[_Samples], side: int, place: int) -> tuple[float, np.ndarray]:
    """The logarithm of the smallest of the medians of `candidates`, and its replicates.

    The smallest of several noisy medians is too small: it was chosen for its noise as well. So
    each replicate chooses by one resample and takes the time from another, and the estimate is the
    mean of the candidates' medians, weighted by how often each is chosen (C. D'Eramo, M. Restelli
    and A. Nuara, Estimating maximum expected value through Gaussian approximation, ICML 2016).
    """
    medians = np.log([median_of(samples) for samples, _ in candidates])
    values = _resampled(candidates, side, place, _VALUE)
    if len(candidates) == 1:
        return float(medians[0]), values[0]
    chosen = np.argmin(_resampled(candidates, side, place, _CHOICE), axis=0)
    shares = np.bincount(chosen, minlength=len(candidates)) / len(chosen)
    return float(shares @ medians), np.take_along_axis(values, chosen[None, :], axis=0)[0]


def _resampled(candidates: Sequence[_Samples], side: int, place: int, purpose: int) -> np.ndarray:
    return np.log(
        [
            statistics.resampled_medians(samples, purpose, side, place, number, instances=instances)
            for number, (samples, instances) in enumerate(candidates)
        ]
    )


def log_medians(curve: Curve) -> np.ndarray:
    """Logarithms of the medians of `curve`, one a size; of the best of several thread counts the
    smallest."""
    return np.log([median_of(samples) for samples in curve.samples])


def fewest_samples(curve: Curve, place: int = 0) -> int:
    """The smallest number, at a size of `curve`, of what is resampled: of repetitions, or of
    instances where there are enough."""
    return min(
        len(statistics.units(samples, instances))
        for samples, instances in _candidates(curve)[place]
    )


def _candidates(curve: Curve) -> list[tuple[_Samples, ...]]:
    of_sizes = curve.candidates or [(samples,) for samples in curve.samples]
    known = curve.instances or [(statistics.ONE_INSTANCE,) * len(each) for each in of_sizes]
    return [tuple(zip(*each, strict=True)) for each in zip(of_sizes, known, strict=True)]
