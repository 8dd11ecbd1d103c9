# SPDX-License-Identifier: Apache-2.0
"""The counters that follow from a row's others and the time of one iteration.

A result file does not hold them: they would be on every line, and could contradict it.
"""

from collections.abc import Mapping

from plots.file.families import FAMILIES, PROBES

_PROFILE = "seconds_"  # what the counters of a profile begin with
_NOT_PROFILED = frozenset({*(family.time for family in FAMILIES.values()), "seconds_unattributed"})


def derived(family: str, counters: Mapping[str, float], seconds: float) -> dict[str, float]:
    """What results/README.md says follows from `counters` where one iteration takes `seconds`.

    Times are in seconds, rates per second. Nothing follows in a family that is not known here.
    """
    words = FAMILIES.get(family)
    if words and words.time:
        found = {words.time: seconds}
        for rate, counter in (("samples_per_second", words.samples), ("flops_per_second", "flops")):
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
    if words or family in PROBES:
        one = seconds / counters["count"]
        # The work of an operation is that of one, the work of a probe that of an iteration.
        timed = one if words else seconds
        rates = {
            f"{counter}_per_second": counters[counter] / timed
            for counter in ("flops", "bytes")
            if counter in counters
        }
        if family == "Collective":  # nccl-tests' bus bandwidth
            ranks = counters["ranks"]
            rates["bus_bytes_per_second"] = rates["bytes_per_second"] * 2 * (ranks - 1) / ranks
        return {"seconds": one, **rates}
    return {}
