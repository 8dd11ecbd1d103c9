# SPDX-License-Identifier: Apache-2.0
"""What Python and the processor take for a step of PyTorch's eager loop, whose operations they
start one by one, on the CPU and for a GPU; and what such a step takes on the CPU.

docs/evidence/prediction_pytorch.md defines the model. It is fitted to the rows of PyTorch that this
project measured, kept in reference/pytorch_loops.csv.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from crossover_bench.answers.predict.simulate import around, within
from crossover_bench.answers.predict.ways import Band, Estimate, several
from crossover_bench.counts.cards import overheads
from crossover_bench.counts.cost import Cost
from crossover_bench.counts.costs import find_cost
from crossover_bench.counts.reference import REFERENCE, lines_of

LOOPS_PATH = REFERENCE / "pytorch_loops.csv"
# Calls of PyTorch's for each launch of ours that updates nothing, with the views beside it: in
# networks with convolutions, whose views are few, and in others. peers/tests counts.
CALLS_OF_CONVOLUTIONS, CALLS = 1.7, 2.7
# Calls of an optimizer for each parameter. On a GPU one call serves all parameters (`foreach`), but
# takes longer for each of them, so that the same is counted.
UPDATES = {2: 1.0, 5: 3.0, 7: 8.4}  # by how many arrays ours reads and writes: sgd, momentum, adam
_ADAM = 7
# Seconds of an operation without gradients on the CPU of docs/evidence/prediction.md, beside which
# the published ones of machines with a GPU stand.
_OPERATION = 6.0e-6
VIEW = "view"  # the kind of what Python starts, and no kernel
_SMALL = 3_000  # parameters, up to which a step of ours tells how fast one thread is


@dataclass(frozen=True, slots=True)
class Loop:
    """A step that PyTorch's eager loop took `seconds` for on `machine`, 0 where it was not measured
    there; and `ours` on so many threads of the same processor, 0 where that was not."""

    machine: str
    network: str
    batch: float
    device: str
    threads: int
    seconds: float
    ours: float

    @property
    def cost(self) -> Cost:
        """What the step counts."""
        cost = find_cost(self.network, self.batch)
        assert cost, self.network  # as a test holds
        return cost


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """A step takes `call` seconds for each of its calls() and for `beside` or, with Adam, `adam`
    more; and on a CPU `work` times what a step of ours takes there. `calls` has for each machine
    the seconds of one."""

    beside: float
    adam: float
    work: float
    calls: Mapping[str, float]

    def count(self, cost: Cost) -> float:
        """How often such a step asks the host for something."""
        return calls(cost) + self.beside + (self.adam if _arrays(cost) >= _ADAM else 0.0)

    def seconds(self, cost: Cost, call: float, ours: float) -> float:
        """Of a step on a CPU on which a call takes so long, and ours so long."""
        return call * self.count(cost) + self.work * ours


def load_loops() -> list[Loop]:
    """All that was measured; raises OSError where the file cannot be read."""
    return [
        Loop(
            *(line["machine"], line["network"], float(line["batch"]), line["device"]),
            *(int(line["threads"] or 0), float(line["seconds"] or 0), float(line["ours"] or 0)),
        )
        for line in lines_of(LOOPS_PATH)
    ]


def calls(cost: Cost) -> float:
    """What PyTorch starts in a step, views included; as PyTorch counted it where it did."""
    if any(each.kind == VIEW for each in cost.operations):
        return sum(each.launches * each.count for each in cost.operations)
    updates = sum(each.launches * each.count for each in cost.operations if each.kind == "update")
    others = sum(each.launches * each.count for each in cost.operations) - updates
    has_convolutions = any(each.kind == "convolution" for each in cost.operations)
    of_each = CALLS_OF_CONVOLUTIONS if has_convolutions else CALLS
    return others * of_each + updates * UPDATES.get(_arrays(cost), 1.0)


def _arrays(cost: Cost) -> int:
    """How many arrays as large as the parameters an update of ours reads and writes."""
    moved = sum(each.bytes * each.count for each in cost.operations if each.kind == "update")
    return round(moved / (4 * cost.params)) if cost.params else 0


# ---- the fit


def host_of(loops: Sequence[Loop]) -> Host:
    """Fitted to the CPU's loops among these: least squares of logarithms, robust against what is
    far off, drawn to what is plausible."""
    from scipy.optimize import least_squares  # noqa: PLC0415 (takes long to load)

    steps = [loop for loop in loops if loop.device == "cpu" and loop.seconds and loop.ours]
    machines = list(dict.fromkeys(loop.machine for loop in steps))
    places = np.array([machines.index(loop.machine) for loop in steps])
    counted = np.array([calls(loop.cost) for loop in steps])
    adam = np.array([float(_arrays(loop.cost) == _ADAM) for loop in steps])
    ours, took = np.array([[loop.ours, loop.seconds] for loop in steps]).T
    expected, spreads = np.log([40.0, 40.0, 1.4]), np.array([0.5, 0.5, 0.3])

    def off(values: np.ndarray) -> np.ndarray:
        beside, of_adam, work = np.exp(values[:3])
        host = np.exp(values[3:])[places] * (counted + beside + adam * of_adam)
        errors = np.log((host + work * ours) / took) / 0.2
        return np.concatenate([errors, (values[:3] - expected) / spreads])

    start = np.concatenate([expected, np.full(len(machines), math.log(3e-6))])
    values = np.exp(least_squares(off, start, loss="soft_l1").x).tolist()
    beside, of_adam, work, *each = values
    return Host(beside, of_adam, work, dict(zip(machines, each, strict=True)))


def slowness(times: Mapping[str, float], loops: Sequence[Loop]) -> float | None:
    """How much slower one thread is than that of the machine with the most small networks in
    `loops`, as a logarithm: the median of the small networks of which `times` has our seconds of a
    step; None without any."""
    machines = (of_machine(name, loops) for name in dict.fromkeys(loop.machine for loop in loops))
    most = max(machines, key=len)
    logs = [math.log(times[name] / most[name]) for name in times.keys() & most.keys()]
    return float(np.median(logs)) if logs else None


def is_small(cost: Cost) -> bool:
    """Whether a step of ours tells how fast one thread is, whatever its vectors."""
    return cost.params <= _SMALL


def of_machine(machine: str, loops: Iterable[Loop]) -> dict[str, float]:
    """Our seconds of a step of its small networks on one thread."""
    return {
        loop.network: loop.ours
        for loop in loops
        if loop.machine == machine and loop.threads == 1 and loop.ours and is_small(loop.cost)
    }


def call_of(times: Mapping[str, float], host: Host, loops: Sequence[Loop]) -> Estimate:
    """Seconds of a call on a CPU of which `times` has our steps: what they are on other machines,
    as much longer as one thread is slower."""
    slow = slowness(times, loops)
    logs = []
    for machine, call in host.calls.items():
        its = slowness(of_machine(machine, loops), loops) if slow is not None else 0.0
        logs.append(math.log(call) - (its or 0.0))
    spread = math.inf  # of one machine nobody knows how far another is
    if len(logs) > 1:
        spread = float(np.std(logs, ddof=1)) * math.sqrt(1 + 1 / len(logs))
    return Estimate(spread, len(logs), math.exp(float(np.mean(logs)) + (slow or 0.0)))


def left_out(loops: Sequence[Loop]) -> list[tuple[Loop, float]]:
    """Each of the CPU's loops, and its seconds as foretold by a fit that has neither its machine
    nor its network."""
    hosts: dict[tuple[str, str], Host] = {}
    foretold = []
    for loop in loops:
        if loop.device != "cpu" or not loop.seconds or not loop.ours:
            continue
        key = loop.machine, loop.network
        if key not in hosts:
            kept = (other for other in loops if other.machine != key[0] and other.network != key[1])
            hosts[key] = host_of(list(kept))
        call = call_of(of_machine(loop.machine, loops), hosts[key], loops).middle
        foretold.append((loop, hosts[key].seconds(loop.cost, call, loop.ours)))
    return foretold


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """All of it: `error` is that of a network's step on a CPU more, `ratio` how many times as long
    as on the CPU a call takes where it starts work on a GPU, and `published` the seconds of such a
    call on a machine of which nothing else is known."""

    host: Host
    loops: tuple[Loop, ...]
    error: Estimate
    ratio: Band
    published: Estimate

    def cpu_draws(self, cost: Cost, ours: float | np.ndarray, call: Estimate) -> np.ndarray:
        """Draws of the seconds of a step on a CPU, where a step of ours takes so long, or takes so
        long in each draw."""
        starts = around(call, "operation") * self.host.count(cost)
        return (starts + self.host.work * ours) * around(self.error, "theirs")

    def gpu_call_draws(self, call: Estimate) -> np.ndarray:
        """Draws of the seconds of a call that starts work on a GPU, where the same processor takes
        `call` for one on the CPU: both sides have the same draws of that."""
        return within(self.ratio, "intercept") * around(call, "operation")


@cache
def fitted() -> Fitted:
    """To all that was measured. Raises OSError where reference figures cannot be read."""
    return fitted_to(load_loops())


def fitted_to(loops: Sequence[Loop]) -> Fitted:
    """To these alone."""
    host = host_of(loops)
    squares: dict[str, list[float]] = {}
    for loop, seconds in left_out(loops):
        squares.setdefault(loop.network, []).append(math.log(seconds / loop.seconds) ** 2)
    means = [float(np.mean(each)) for each in squares.values()]
    error = Estimate(math.sqrt(float(np.mean(means))), len(means))
    # Published operations were timed without gradients. Those of the GPUs that were measured here
    # tell how much longer a call takes; of n machines n / (n + 1) of it counts, as a logarithm.
    published = several(overheads("torch_operation"))
    ends = [each.low_seconds / _OPERATION for each in overheads("torch_operation")]
    between = Band(min(ends), max(ends))
    of_gpus = _calls_for_gpus(host, loops).values()
    longer, more = (
        math.exp(sum(map(math.log, factors)) / (len(factors) + 1))
        for factors in (
            [seconds / published.middle for seconds, _ in of_gpus],
            [seconds / call / between.middle for seconds, call in of_gpus],
        )
    )
    return Fitted(
        *(host, tuple(loops), error, between * more),
        replace(published, middle=published.middle * longer),
    )


def _calls_for_gpus(host: Host, loops: Sequence[Loop]) -> dict[str, tuple[float, float]]:
    """Of each machine whose GPU PyTorch ran on the seconds of a call that starts work there, and,
    by its processor, of one on the CPU."""
    machines: dict[str, list[float]] = {}
    for loop in loops:
        if loop.device == "cuda":
            machines.setdefault(loop.machine, []).append(loop.seconds / host.count(loop.cost))
    return {
        machine: (
            math.exp(float(np.mean(np.log(seconds)))),
            call_of(of_machine(machine, loops), host, loops).middle,
        )
        for machine, seconds in machines.items()
    }
