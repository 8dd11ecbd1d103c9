# SPDX-License-Identifier: Apache-2.0
"""What a result file holds, as the analysis sees it; files/loading.py reads it.

The names of the JSON fields are known there and in files/entries.py alone.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crossover_bench.files.axes import BUILT_IN, OWN, Axes
from crossover_bench.files.ladders import DISC, Ladder
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.shortcomings import Shortcoming, shortcomings
from crossover_bench.words.text import counted, whole

# Of a file's rows of one kind: with more that other programs disturbed it cannot answer.
MOST_DISTURBED = 0.25
STOLEN = 0.01  # of a processor: more of it, taken by a hypervisor, tells a busy machine


def median_of(samples: np.ndarray) -> float:
    """Median of a few samples, for which NumPy's own takes 30 times as long."""
    return float(statistics.median(samples.tolist()))


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor; what is None the system does not tell."""

    model: str
    sockets: int
    cores: int
    threads: int
    numa_nodes: int
    governor: str | None
    simd: str
    turbo: bool | None = None
    virtual: bool | None = None

    @property
    def cores_words(self) -> str:
        """How many it has; a virtual machine's may be hardware threads of fewer cores."""
        return counted(self.cores, "virtual processor" if self.virtual else "core")

    @property
    def words(self) -> str:
        """Its model and its cores."""
        return f"{self.model}, {self.cores_words}"


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a file was measured; `gpu` is None without a usable GPU, `gpu_reason` says why;
    `wsl_gpu` of WSL alone is whether Windows lends it one."""

    id: str
    cpu: Cpu
    memory_bytes: int
    gpu: str | None
    gpu_reason: str
    os: str
    kernel: str
    wsl_gpu: bool | None = None


@dataclass(frozen=True, slots=True)
class Software:
    """What was measured; `commit` is empty outside a git checkout."""

    commit: str
    dirty: bool
    compiler: str
    flags: str
    build_type: str
    libraries: dict[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """How the measurement was started; `data` is empty and `flush_to_zero` None where unknown.
    `energy` has what its meters told before and after the rows, in W."""

    command: tuple[str, ...]
    sweep: str
    repetitions: int
    min_time_seconds: float
    environment: dict[str, str]
    data: str
    flush_to_zero: bool | None
    budget_seconds: float | None = None  # that ended it
    energy: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared: of an epoch, `steps` of its `steps_of` steps; of a training step, `steps`
    steps at `batch` samples, which may be fewer than the row's; of the results of one operation,
    `entries` of their `entries_of`. The updates of `undetermined_updates` of the steps hang on
    rounding, and were not compared."""

    reference: str
    tolerance: float
    relative_error: float
    steps: int | None = None
    steps_of: int | None = None
    undetermined_updates: int | None = None
    batch: int | None = None
    entries: int | None = None
    entries_of: int | None = None


@dataclass(frozen=True, slots=True)
class MinimumWork:
    """What one iteration of a row takes at least, counted, not measured.

    `memory_bytes` are those that no cache can save. `graph`: the launches are nodes of CUDA graphs.
    """

    flops: float = 0.0
    memory_bytes: float = 0.0
    bytes_to_device: float = 0.0
    bytes_from_device: float = 0.0
    launches: float = 0.0
    graph: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """What a row can't be faster than, by the ceilings of its file (counts/bounds.py).

    `name` is compute, memory, copy or launch; `seconds` are of one iteration, `percent` is their
    share of the median time measured. Where ceilings are missing, only `reason` is set.
    """

    name: str | None
    seconds: float | None
    percent: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a row has no result; `outcome` is "failed" or "skipped".

    Where its results were wrong, `seconds` are what an iteration took, and `relative_error` and
    `tolerance` how far off they were, as far as that can be said in a number.
    """

    outcome: str
    message: str
    seconds: float | None = None
    relative_error: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Instances:
    """Which instance of its program ran each repetition of a row, and how far such are apart.

    `of` is empty where one instance ran all. `spread` is the standard deviation of the logarithms
    of times between the instances of one row, of rows of its family on its device; it is known as
    one of so many degrees of `freedom` is.
    """

    of: tuple[int, ...] = ()
    spread: float = 0.0
    freedom: float = inf


@dataclass(frozen=True, slots=True)
class Spread:
    """The `deviation` between instances (Instances.spread), measured on so many `programs`, 0 where
    it is assumed; those are of another `file` of the machine where that is not empty. `freedom` as
    of Instances."""

    deviation: float
    programs: int = 0
    file: str = ""
    freedom: float = inf

    def of(self, instances: Instances) -> Instances:
        """`instances` that are known to be so far apart."""
        return replace(instances, spread=self.deviation, freedom=self.freedom)


@dataclass(frozen=True, slots=True)
class Row:
    """One configuration with all its repetitions.

    `index` is its place among the file's rows, counted from 0. `samples` are values of `quantity`,
    one for each repetition, seconds per iteration unless files/samples.py was asked for
    another; a failed row may have none. `measured` are the counters that were measured in each
    repetition, or only once; `counters` the medians of these, the facts of the row, and what
    follows from both (derived() in files/families.py), in the unit their names give.
    `warnings` cast doubt on the samples; `is_disturbed` where other programs used the processors in
    more than half of the repetitions. `workload` is the fingerprint of the computation with its
    optimizer, rows and data, None in older files; those may have a `bound` in place of a
    `minimum_work`. `optimizer` is that of a row that trains, in words, empty where the file does
    not say. `chosen` is what a row of execution auto came to: execution and `cpu_threads`, on a GPU
    execution and the choices of algorithms that are not the plainest. `convolutions` are how many
    of a step run by which engine of a GPU's library. `instances` are of its `samples`. `axes` and
    `ladders` are the file's.
    """

    name: str
    index: int
    configuration: dict[str, str]
    samples: np.ndarray
    counters: dict[str, float]
    warnings: tuple[str, ...]
    verification: Verification | None
    failure: Failure | None
    bound: Bound | None = None
    workload: str | None = None
    optimizer: str = ""
    minimum_work: MinimumWork | None = None
    chosen: Mapping[str, str] | None = None
    convolutions: Mapping[str, int] = field(default_factory=dict)
    instances: Instances = Instances()
    is_disturbed: bool = False
    as_is: str = ""  # why PyTorch trained a module as it is; empty of bench's networks
    cost: Mapping[str, Any] | None = None  # what its worker counted of a step of such a module
    axes: Axes = BUILT_IN
    ladders: tuple[Ladder, ...] = (DISC,)
    quantity: Quantity = TIME
    measured: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """What kind of row this is, such as Epoch; it decides which counters there are."""
        return self.configuration["family"]

    @property
    def program(self) -> str:
        """What computes: bench, or another framework such as pytorch."""
        return self.configuration.get("program", OWN)

    @property
    def script(self) -> str:
        """How a framework's training loop is written; empty where its batches lie ready."""
        return self.configuration.get("script", "")

    @property
    def model(self) -> str:
        """The network; empty where the row has none."""
        return self.configuration.get("model", "")

    @property
    def ladder(self) -> Ladder | None:
        """The ladder that its network stands on; None where it stands on none."""
        return next((ladder for ladder in self.ladders if ladder.has(self.model)), None)

    @property
    def is_between(self) -> bool:
        """Whether its network lies between two sizes of a ladder."""
        return any(ladder.is_between(self.model) for ladder in self.ladders)

    @property
    def batch(self) -> str:
        """Samples in a training step; empty where the row does not say."""
        return self.configuration.get("batch", "")

    @property
    def precision(self) -> str:
        """The arithmetic of products; the plainest where the row does not say."""
        return self.axes.value(self.configuration, "precision") or ""

    @property
    def device(self) -> str:
        """Where it computes: cpu or cuda; empty where the row does not say."""
        return self.configuration.get("device", "")

    @property
    def execution(self) -> str:
        """How it computes there, such as eager; empty where the row does not say."""
        return self.configuration.get("execution", "")

    @property
    def ranks(self) -> int:
        """How many processes share each batch."""
        return whole(self.configuration.get("ranks", "")) or 1

    @property
    def copies(self) -> int:
        """How many networks train at once."""
        return whole(self.configuration.get("copies", "")) or 1

    @property
    def threads(self) -> int | None:
        """The CPU's threads; None for a row of a GPU."""
        return whole(self.configuration.get("cpu_threads", ""))

    @property
    def runs_as(self) -> dict[str, str]:
        """Its configuration with what execution auto came to, and with the threads that have any
        work: rows that agree in it run one program."""
        used = self.counters.get("threads_used")
        threads = {} if used is None else {"cpu_threads": f"{used:.0f}"}
        return {**self.configuration, **(self.chosen or {}), **threads}

    @property
    def is_one_kernel(self) -> bool:
        """Whether one kernel of a GPU trains the whole epoch, so that no part has a time of its
        own: seconds_product is all of it."""
        return self.runs_as.get("execution") in ("persistent", "tailored")

    @property
    def count(self) -> float:
        """How many operations, launches or copies a sample is of; 1 for an epoch or a step, and
        where a counter is of one operation already."""
        return 1.0 if self.quantity.counter else self.counters.get("count", 1.0)

    @property
    def median(self) -> float:
        return median_of(self.samples)

    @property
    def minimum(self) -> float:
        return float(self.samples.min())

    @property
    def maximum(self) -> float:
        return float(self.samples.max())


Side = Literal["first", "second"]


@dataclass(frozen=True, slots=True)
class PairedSize:
    """A size at which two sides were measured in pairs; `winner` is None where neither is sure."""

    model: str
    parameters: float
    pairs: int
    won_by_first: int
    ties: int
    winner: Side | None


@dataclass(frozen=True, slots=True)
class PairedInterval:
    """From the last sure win of `below` to the first sure win of the other side, in parameters. An
    end is None where its side is sure nowhere."""

    below: Side
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Refinement:
    """What pairs of two sides say (docs/method/runs.md): `first` and `second` are how each
    computes, `common` what both compute. `ladder` are the sizes of the sweep, with the side that
    is plainly faster there."""

    kind: str
    common: dict[str, str]
    first: dict[str, str]
    second: dict[str, str]
    complete: bool
    ladder: tuple[tuple[float, Side | None], ...]
    sizes: tuple[PairedSize, ...]
    intervals: tuple[PairedInterval, ...]


PARTS = ("rows", "copies", "peers", "builds", "commands", "functions")  # of a file, each with rows


@dataclass(frozen=True, slots=True)
class File:
    """One valid result file; `complete` is False where the run ended before its last row. `rows`
    are bench's, `peers` those that other frameworks measured of the same work. `spreads` are by
    family and device, `networks` are the JSON of those that the file holds, by name.
    `code_versions` number the code that rows run through, by "family/device", where known."""

    path: Path
    date: datetime
    complete: bool
    machine: Machine
    software: Software
    run: Run
    rows: tuple[Row, ...]
    refinements: tuple[Refinement, ...] = ()
    copies: tuple[Row, ...] = ()  # bench's, of several networks that train at once
    peers: tuple[Row, ...] = ()  # of other frameworks: no reader of `rows` meets them
    builds: tuple[Row, ...] = ()  # of other builds of bench, measured in turn with this one
    commands: tuple[Row, ...] = ()  # of ./run two; nothing of theirs is verified
    functions: tuple[Row, ...] = ()  # of programs that link crossover::two
    two: Mapping[str, Any] = field(default_factory=dict)  # what ./run two was asked
    ladders: tuple[Ladder, ...] = (DISC,)
    spreads: Mapping[tuple[str, str], Spread] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)
    code_versions: Mapping[str, int] = field(default_factory=dict)

    def mapped(self, change: Callable[[Row], Row | None]) -> "File":
        """This file with each row as `change` returns it, without a row where that is None."""
        changed: dict[str, Any] = {
            part: tuple(filter(None, map(change, getattr(self, part)))) for part in PARTS
        }
        return replace(self, **changed)

    @property
    def own_rows(self) -> tuple[Row, ...]:
        """All of bench's."""
        return (*self.rows, *self.copies)

    @property
    def ended(self) -> str:
        """Of a run of which rows are missing, as it goes on or has ended: "not finished"; empty
        where none are."""
        if self.complete:
            return ""
        budget = self.run.budget_seconds
        return "not finished" + ("" if budget is None else f", with a budget of {budget:,.0f} s")

    @property
    def shortcomings(self) -> tuple[Shortcoming, ...]:
        """What keeps the file from answering for its machine; empty where nothing does."""
        return tuple(
            shortcomings(
                command=self.run.command,
                data=self.run.data,
                ended=self.ended,
                sweep=self.run.sweep,
                repetitions=self.run.repetitions,
            )
        )
