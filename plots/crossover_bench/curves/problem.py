# SPDX-License-Identifier: Apache-2.0
"""Any work that grows with its size, with ways to do it on a CPU and on a GPU: from which size the
GPU wins. Where its times are from does not matter: a file of another benchmark, Python's functions.

The rules are those of all crossovers (docs/method/crossover.md): the best of the CPU's ways at each
size stands for the CPU, and intervals add what lies between processes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from crossover_bench.curves.crossover import (
    Comparison,
    Crossover,
    SpeedUp,
    by_medians,
    find_crossover,
    speed_up_of,
)
from crossover_bench.curves.curves import Curve, best_of
from crossover_bench.files.axes import BARE, BUILT_IN, Axes, Axis, Label
from crossover_bench.files.rows import Instances, Spread, median_of
from crossover_bench.files.samples import FEW, assumed, by_instance, spread_between
from crossover_bench.words.text import listed, printable

Device = Literal["cpu", "gpu"]
SIDES: tuple[Device, Device] = ("cpu", "gpu")
_IN_FILES = {"cpu": "cpu", "gpu": "cuda"}  # what rows' configurations call the devices


class NoAnswerError(ValueError):
    """Why a problem has no answer, in a sentence."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to do the work, which `word` names, on `device`.

    `seconds` has for each size those of each repetition, in their order; `instances` which process
    ran each of them, a number for each, where not one process ran all of a size. `failures` says
    why there are no times at a size.
    """

    word: str
    device: Device
    seconds: Mapping[float, tuple[float, ...]]
    instances: Mapping[float, tuple[int, ...]] = field(default_factory=dict)
    failures: Mapping[float, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Problem:
    """Work called `name`, whose size is called `measure` ("n"), and the ways to do it. `common` has
    the other numbers that it has in all of them: {"batch": "64"}. `remarks` are sentences on how
    its times came about. `both` is the device of all ways where that is one: the device of a way is
    then a place alone, "cpu" that of the side to beat, "gpu" that of the others. `threads` is 0 for
    one piece of work; else times are those of a piece among many, of which ways of the CPU do as
    many as `threads` at once."""

    name: str
    measure: str
    ways: tuple[Way, ...]
    common: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    both: Device | None = None
    threads: int = 0

    @property
    def sides(self) -> tuple[str, str]:
        """What the two are called: "CPU" and "GPU", or by their ways where both are on one."""
        if self.both is None:
            return "CPU", "GPU"
        first, second = ([printable(way.word, 60) for way in self.of(device)] for device in SIDES)
        return _best_of(first), _best_of(second)

    @property
    def title(self) -> str:
        """ "fft, batch 64"; "throughput of fft, batch 64"."""
        others = (f"{key} {value}" for key, value in self.common.items())
        return ", ".join([f"throughput of {self.name}" if self.threads else self.name, *others])

    def of(self, device: Device) -> list[Way]:
        """The ways on `device`."""
        return [way for way in self.ways if way.device == device]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a problem's times say.

    `first` compares the best of the CPU's ways with the best of the GPU's; `compared` with each way
    of the GPU. `cpus` has a curve for each way of the CPU. `speed_ups` are those of `first`, at the
    sizes that both sides have. `spreads` are what lies between processes of each device, where its
    ways ran in few.
    """

    problem: Problem
    first: Comparison
    compared: tuple[Comparison, ...]
    cpus: tuple[Curve, ...]
    speed_ups: tuple[SpeedUp, ...]
    spreads: tuple[Spread, ...]

    @property
    def crossover(self) -> Crossover:
        """The answer itself."""
        return self.first.crossover

    @property
    def ends(self) -> tuple[SpeedUp, SpeedUp]:
        """The speedups at the smallest and at the largest size that both sides have."""
        return self.speed_ups[0], self.speed_ups[-1]

    @property
    def one_sided(self) -> tuple[float, ...]:
        """Sizes with times of one side alone, which the answer leaves out; not those at which a
        way of the other failed."""
        alone = np.setxor1d(self.first.cpu.sizes, self.first.gpu.sizes).tolist()
        failed = {size for way in self.problem.ways for size in way.failures}
        return tuple(size for size in alone if size not in failed)

    @property
    def fewest(self) -> int:
        """The smallest number of repetitions at the sizes that both sides have."""
        common = set(self.first.sizes.tolist())
        curves = [*self.cpus, *(each.gpu for each in self.compared)]
        pairs = [pair for curve in curves for pair in zip(curve.sizes, curve.samples, strict=True)]
        return min(len(samples) for size, samples in pairs if size in common)


def answer(problem: Problem) -> Answer:
    """What the times of `problem` say; raises NoAnswerError where that is nothing."""
    axes = _axes(problem)
    spreads = {
        device: _spread(problem.of(device), _IN_FILES[problem.both or device]) for device in SIDES
    }
    cpus, gpus = (
        [
            _curve(way, problem.both or device, spreads[device], axes)
            for way in problem.of(device)
            if way.seconds
        ]
        for device in SIDES
    )
    for curves, word in zip((cpus, gpus), problem.sides, strict=True):
        if not curves:
            raise NoAnswerError(f"{printable(problem.title)}: no row of the {word} has a time")
    best, best_gpu = best_of(cpus), gpus[0] if len(gpus) == 1 else best_of(gpus)
    if not best.meets(best_gpu):
        both = len(np.intersect1d(best.sizes, best_gpu.sizes))
        raise NoAnswerError(
            f"{printable(problem.title)}: {' and '.join(problem.sides)} have times at "
            f"{both or 'no'} common size{'' if both == 1 else 's'}, and two are needed; measure "
            "both at the same sizes"
        )
    common = {"family": problem.name, **{_key(key): text for key, text in problem.common.items()}}
    compared = [
        Comparison(
            *(common, problem.measure, best, gpu),
            _crossover(best, gpu, problem, "" if gpu is best_gpu else gpu.words.how),
        )
        for gpu in dict.fromkeys((best_gpu, *gpus))
        if best.meets(gpu)
    ]
    return Answer(
        problem=problem,
        first=compared[0],
        compared=tuple(compared if len(gpus) == 1 else compared[1:]),
        cpus=tuple(cpus),
        speed_ups=tuple(_speed_ups(compared[0], cpus, gpus)),
        spreads=tuple(spreads[device] for device in SIDES if _runs_in_few(problem.of(device))),
    )


def _best_of(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"the best of {listed(words)}"


def _crossover(cpu: Curve, gpu: Curve, problem: Problem, way: str) -> Crossover:
    """The crossover; where repetitions are too few, the medians of which are all that is known.
    `way` names one of several that stand for the second side."""
    sides = (problem.sides[0], way) if way and problem.both else problem.sides
    crossover = find_crossover(cpu, gpu, problem.measure, sides)
    return (
        replace(crossover, medians=by_medians(cpu, gpu, problem.measure, sides))
        if crossover.medians
        else crossover
    )


def _key(name: str) -> str:
    """That of a problem's number `name` among axes, which know names of their own."""
    return f"number {name}"


def _axes(problem: Problem) -> Axes:
    numbers = (Axis(_key(name), "what", phrase=f"{name} {{}}") for name in problem.common)
    return Axes([BUILT_IN["device"], *numbers, Axis("way", "how", phrase=BARE)])


def _curve(way: Way, device: Device, spread: Spread, axes: Axes) -> Curve:
    sizes = sorted(size for size, seconds in way.seconds.items() if seconds)
    configuration = {"device": _IN_FILES[way.device], "way": way.word}
    return Curve(
        words=Label(device.upper(), way.word),
        configuration=configuration,
        sizes=np.array(sizes, dtype=float),
        samples=tuple(np.array(way.seconds[size], dtype=float) for size in sizes),
        instances=tuple(
            (spread.of(Instances(tuple(way.instances.get(size, ())))),) for size in sizes
        ),
        axes=axes,
    )


def _runs(way: Way) -> Iterator[list[np.ndarray]]:
    """Of each size the logarithms of times of each process."""
    for size, seconds in way.seconds.items():
        if seconds:
            yield by_instance(np.log(seconds), way.instances.get(size, ()))


def _spread(ways: Sequence[Way], device: str) -> Spread:
    """What lies between processes of `ways`: what they show, else what other machines do."""
    return spread_between([runs for way in ways for runs in _runs(way)], assumed(device))


def _runs_in_few(ways: Sequence[Way]) -> bool:
    return any(len(runs) < FEW for way in ways for runs in _runs(way))


def _speed_ups(
    first: Comparison, cpus: Sequence[Curve], gpus: Sequence[Curve]
) -> Iterator[SpeedUp]:
    """Of the best of both sides at each size, with the way that is the fastest there."""
    crossover = first.crossover
    winners = dict(zip(crossover.sizes, crossover.winners, strict=True))
    for size in first.sizes.tolist():
        at_size = [
            [curve.at(size) for curve in curves if size in curve.sizes] for curves in (cpus, gpus)
        ]
        speed_up = speed_up_of(
            *(first.common, at_size[0], first.cpu.at(size), first.gpu.at(size)),
            None if crossover.medians else winners.get(size),
        )
        fastest = min(at_size[1], key=lambda curve: median_of(curve.samples[0]))
        yield replace(speed_up, gpu=fastest)
