# SPDX-License-Identifier: Apache-2.0
"""The families of rows: what an iteration is, what follows from its time, what curves grow with.

Peak, Copy and Collective have no entry: they are PROBES, on no curve, with sections of their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from crossover_bench.files.rows import Row
from crossover_bench.words.text import whole


@dataclass(frozen=True, slots=True)
class Scale:
    """What `size` of a row curves grow with; None for rows on no curve. `replaces` are the keys of
    the configuration that the size stands for."""

    measure: str
    size: Callable[[Row], float | None]
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """`noun` names an iteration, or one operation of several; `title` begins a heading; `short`
    heads columns of its time, and begins their keys. `over` says in titles what curves of it are
    over, where that is not the size of the network.

    Of families of networks, `time` is the counter of an iteration's seconds, `samples` counts the
    samples in it, and `steps` the training steps, unless it is one; empty for the others.
    `trains`: it trains networks, else it uses them.
    """

    noun: str
    title: str
    short: str
    scale: Scale
    time: str = ""
    samples: str = ""
    steps: str = ""
    over: str = ""
    trains: bool = True

    def beside(self, preposition: str) -> str:
        """What titles on its rows add, so that no two are the same: " in training steps". Titles on
        epochs add nothing."""
        return "" if self.noun == "epoch" else f" {preposition} {self.many}"

    @property
    def many(self) -> str:
        """The plural of `noun`."""
        return f"{self.noun}{'es' if self.noun.endswith('s') else 's'}"

    @property
    def a(self) -> str:
        """`noun` with its article."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"


def _whole(text: str) -> float | None:
    return float(whole(text) or 0) or None


def _edge(row: Row) -> float | None:
    edges = {row.configuration[key] for key in ("m", "n", "k")}
    return _whole(edges.pop()) if len(edges) == 1 else None


EPOCH, MINIBATCH, FORWARD = "Epoch", "Minibatch", "Forward"

_NETWORKS = Scale(
    "parameters", lambda row: row.counters["params"] if row.ladder else None, ("model",)
)

# In the order in which they are shown.
FAMILIES = {
    EPOCH: Family(
        *("epoch", "Epochs", "epoch"),
        _NETWORKS,
        time="seconds_per_epoch",
        samples="rows",
        steps="steps",
    ),
    MINIBATCH: Family(
        *("training step", "Training steps", "step"),
        Scale("batch", lambda row: row.counters["batch"], ("batch",)),
        time="seconds_per_step",
        samples="batch",
        over=" over batch size",
    ),
    FORWARD: Family(
        *("forward pass", "Forward passes", "pass"),
        _NETWORKS,
        time="seconds_per_pass",
        samples="batch",
        trains=False,
    ),
    "Gemm": Family(
        *("product", "Matrix products", "product"), Scale("size", _edge, ("m", "n", "k"))
    ),
    "Layer": Family(
        *("layer", "Layers", "layer"),
        Scale("width", lambda row: _whole(row.configuration["width"]), ("width",)),
    ),
}
PROBES = ("Peak", "Copy", "Collective")
COMMAND = "Command"  # a run of a user's own: outside of what is verified, in a section of its own
FUNCTION = "Function"  # a call of a user's own: see docs/howto/two-functions.md
OF_NETWORKS = tuple(name for name, family in FAMILIES.items() if family.time)
TRAINING = tuple(name for name, family in FAMILIES.items() if family.time and family.trains)


def steps_of(row: Row) -> float:
    """How many training steps one iteration of `row` has, which trains."""
    counter = FAMILIES[row.family].steps
    return row.counters[counter] if counter else 1.0


_PROFILE = "seconds_"  # what the counters of a profile begin with
_NOT_PROFILED = frozenset({*(family.time for family in FAMILIES.values()), "seconds_unattributed"})


def derived(family: str, counters: Mapping[str, float], seconds: float) -> dict[str, float]:
    """What follows from `counters`, by results/README.md, where one iteration takes `seconds`:
    times in seconds, rates per second. Nothing follows in a family that is not known here."""
    words = FAMILIES.get(family)
    if words and words.time:
        figures = {words.time: seconds}
        for rate, counter in (("samples_per_second", words.samples), ("flops_per_second", "flops")):
            if counter in counters:
                figures[rate] = counters[counter] / seconds
        profile = [
            value
            for name, value in counters.items()
            if name.startswith(_PROFILE) and name not in _NOT_PROFILED
        ]
        if profile:
            figures["seconds_unattributed"] = seconds - sum(profile)
        return figures
    if words or family in PROBES:
        operation_seconds = seconds / counters["count"]
        # Work is counted per operation, but of a probe per iteration.
        work_seconds = operation_seconds if words else seconds
        rates = {
            f"{counter}_per_second": counters[counter] / work_seconds
            for counter in ("flops", "bytes")
            if counter in counters
        }
        if family == "Collective":  # nccl-tests' bus bandwidth
            ranks = counters["ranks"]
            rates["bus_bytes_per_second"] = rates["bytes_per_second"] * 2 * (ranks - 1) / ranks
        return {"seconds": operation_seconds, **rates}
    if family == FUNCTION:
        return {
            f"{counter}_per_second": counters[counter] / seconds
            for counter in ("bytes", "items")
            if counter in counters
        }
    return {}
