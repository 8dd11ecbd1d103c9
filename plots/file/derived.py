# SPDX-License-Identifier: Apache-2.0
"""The counters that follow from a row's others and the time of one iteration.

A result file does not hold them: they would be on every line, and could contradict it.
"""

from __future__ import annotations

from collections.abc import Mapping

_PROFILE = "seconds_"  # what the counters of a profile begin with
_NOT_PROFILED = frozenset({"seconds_per_epoch", "seconds_per_step", "seconds_unattributed"})
# Of rows that train: what an iteration's time is called, and what counts the samples in it.
PER_ITERATION = {"Epoch": "seconds_per_epoch", "Minibatch": "seconds_per_step"}
SAMPLES = {"Epoch": "rows", "Minibatch": "batch"}
OPERATIONS = frozenset({"Gemm", "Layer"})  # whose iterations repeat one operation
_PROBES = frozenset({"Peak", "Copy"})


def derived(family: str, counters: Mapping[str, float], seconds: float) -> dict[str, float]:
    """What results/README.md says follows from `counters` where one iteration takes `seconds`.

    Times are in seconds, rates per second. Nothing follows in a family that is not known here.
    """
    if family in PER_ITERATION:
        found = {PER_ITERATION[family]: seconds}
        samples = SAMPLES[family]
        for rate, counter in (("samples_per_second", samples), ("flops_per_second", "flops")):
            if counter in counters:
                found[rate] = counters[counter] / seconds
        profile = [
            value
            for name, value in counters.items()
            if name.startswith(_PROFILE) and name not in _NOT_PROFILED
        ]
        if profile:
            found["seconds_unattributed"] = seconds - sum(profile)
        return found
    if family in OPERATIONS or family in _PROBES:
        one = seconds / counters["count"]
        # The work of an operation is that of one, the work of a probe that of an iteration.
        timed = one if family in OPERATIONS else seconds
        rates = {
            f"{counter}_per_second": counters[counter] / timed
            for counter in ("flops", "bytes")
            if counter in counters
        }
        return {"seconds": one, **rates}
    return {}
