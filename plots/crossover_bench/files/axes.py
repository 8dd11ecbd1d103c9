# SPDX-License-Identifier: Apache-2.0
"""The axes: the keys of rows' configurations, what they mean, and how they are said.

This is the one place that knows them: series, curves, labels, tables and pairings follow from it.
bench has the same table (bench/axes/axes.cpp) and writes it into its files
(`context.crossover.axes`), so that an axis of a newer bench is known here, too: by its role, with
its key for words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from crossover_bench.peers.frameworks import FRAMEWORKS

Role = Literal["what", "alike", "how"]
Configuration = Mapping[str, str]
Items = tuple[tuple[str, str], ...]  # of a configuration, sorted: what groups of rows share

OWN = "bench"  # the program of a row that names none
DEVICES = {"cpu": "CPU", "cuda": "GPU"}  # in words
_WHERE = ("program", "device")


@dataclass(frozen=True, slots=True)
class Axis:
    """One key of configurations.

    `role` says what it decides: "what" is computed; "how" and where; "alike" is what both sides of
    a comparison should have the same where the CPU has it. `values` are all there are, the
    plainest first, which is that of a row without the key; empty where they are whole numbers
    (`counts`) or names at large.

    `phrase` words a value, unless `words` has a word for it. `in_labels` tells when labels show it:
    "always", only where it "varies", or never, as it has a place "elsewhere". `is_common` axes may
    be named once for all rows that are shown together. `ladder` has values from what one does first
    to what one does for speed (`values` where it is None), and `changes` word a step up to a value:
    "with the data resident".
    """

    key: str
    role: Role
    values: tuple[str, ...] = ()
    phrase: str = ""
    counts: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    in_labels: Literal["always", "varies", "elsewhere"] = "always"
    is_common: bool = False
    ladder: tuple[str, ...] | None = None
    changes: Mapping[str, str] = field(default_factory=dict)

    @property
    def plainest(self) -> str | None:
        """The value of a row that does not state any; None where there is no such value."""
        return self.values[0] if self.values else None

    @property
    def steps(self) -> tuple[str, ...]:
        """The ladder: values from what one does first to what one does for speed."""
        if self.role == "what":
            return ()
        return self.values if self.ladder is None else self.ladder

    def word(self, value: str) -> str:
        """How `value` is said: "2 threads", "GPU", "loss step"."""
        phrase = self.phrase or f"{self.key} {{}}"
        return self.words.get(value) or phrase.replace("{}", value)

    def change(self, value: str) -> str:
        """What a step up the ladder to `value` is, in words."""
        return self.changes.get(value) or f"with {self.word(value)}"


@dataclass(frozen=True, slots=True)
class Label:
    """A way to compute in words: on which device (`where`), and how there. `best_of` are the thread
    counts of which the fastest counts, `chosen` is what an execution that chooses came to. A field
    with nothing to say is empty."""

    where: str = ""
    how: str = ""
    best_of: str = ""
    chosen: str = ""

    def __str__(self) -> str:
        best = f"best of {self.best_of}" if self.best_of else ""
        words = ", ".join(filter(None, (self.where, self.how, best)))
        return f"{words} ({self.chosen})" if self.chosen else words

    @property
    def there(self) -> str:
        """The words without the device: "graph, pinned"."""
        return str(replace(self, where=""))


BARE = "{}"


class Axes:
    """The axes of a file, in the order in which labels say them."""

    def __init__(self, axes: Iterable[Axis]) -> None:
        self._axes = {axis.key: axis for axis in axes}

    def __getitem__(self, key: str) -> Axis:
        return self._axes[key]

    def __contains__(self, key: object) -> bool:
        return key in self._axes

    def __iter__(self) -> Iterator[Axis]:
        return iter(self._axes.values())

    def extended(self, entries: Iterable[Mapping[str, Any]]) -> Axes:
        """These axes and those of `entries`, as a file has them, that are not among them."""
        new = [
            Axis(entry["key"], entry["role"], tuple(entry.get("values", ())))
            for entry in entries
            if entry["key"] not in self
        ]
        return Axes([*self, *new]) if new else self

    def of(self, configuration: Configuration, *roles: Role) -> list[tuple[Axis, str]]:
        """The axes of `configuration` in their order, with its values; of these `roles` alone."""
        return [
            (axis, configuration[axis.key])
            for axis in self
            if axis.key in configuration and (not roles or axis.role in roles)
        ]

    def value(self, configuration: Configuration, key: str) -> str | None:
        """What `configuration` has, or the plainest value where it does not say."""
        return configuration.get(key, self[key].plainest)

    def words(
        self,
        configuration: Configuration,
        *,
        roles: Sequence[Role] = (),
        without: Collection[str] = (),
    ) -> list[str]:
        """Each value of `configuration` as it is said, without the keys in `without`."""
        return [
            axis.word(value)
            for axis, value in self.of(configuration, *roles)
            if axis.key not in without
        ]

    def label(
        self,
        configuration: Configuration,
        others: Sequence[Configuration] = (),
        without: Collection[str] = (),
    ) -> Label:
        """A configuration in words: "GPU, graph, pinned", "CPU, 2 threads".

        It leaves out the keys in `without`, axes that are shown elsewhere, a precision that all
        `others` have, and on the CPU a plainest value that all others on the CPU have.
        """
        program, device = where = tuple(configuration.get(key, "") for key in _WHERE)
        same_device = [
            other for other in others if tuple(other.get(key, "") for key in _WHERE) == where
        ]
        places = [self[key].word(configuration[key]) for key in _WHERE if configuration.get(key)]
        words = []
        for axis, value in self.of(configuration):
            if axis.key in (*_WHERE, *without) or axis.in_labels == "elsewhere":
                continue
            beside = others if axis.in_labels == "varies" else same_device
            is_plain = (device, program) == ("cpu", "") and value == axis.plainest
            silent = axis.in_labels == "varies" or is_plain
            if not silent or any(other.get(axis.key) != value for other in beside):
                words.append(axis.word(value))
        return Label(" on the ".join(places), ", ".join(words))

    def what(self, configuration: Configuration, without: Collection[str] = ()) -> Items:
        """The part of `configuration` that says what is computed."""
        return self._items(configuration, ("what",), without)

    def how(self, configuration: Configuration, without: Collection[str] = ()) -> Items:
        """The part of `configuration` that says how and where, with what should be alike."""
        return self._items(configuration, ("how", "alike"), without)

    def _items(
        self, configuration: Configuration, roles: Sequence[Role], without: Collection[str]
    ) -> Items:
        return tuple(
            sorted(
                (key, value)
                for key, value in configuration.items()
                if self[key].role in roles and key not in without
            )
        )


_OPERATIONS = ("Peak", "Copy", "Collective", "Gemm", "Layer")
_NETWORKS = ("Epoch", "Minibatch", "Forward")
_EXECUTIONS = ("eager", "winograd", "fused", "overlapped", "auto")
_GPU_EXECUTIONS = ("graph", "graph-epoch", "persistent", "tailored")
# The order is that of labels. Keys, roles and values are bench's; a test holds them equal, and
# bench/axes/axes.cpp says what each of them means.
BUILT_IN = Axes(
    [
        Axis(
            *("family", "what", (*_OPERATIONS, *_NETWORKS, "Command", "Function"), BARE),
            in_labels="elsewhere",
        ),
        Axis("model", "what", phrase=BARE, in_labels="elsewhere"),
        *(Axis(key, "what", counts=True) for key in ("m", "n", "k", "width")),
        Axis("batch", "what", counts=True, in_labels="elsewhere", is_common=True),
        Axis("transpose", "what", ("nn", "nt", "tn", "tt"), phrase=BARE),
        Axis("cache", "what", ("warm", "cold"), phrase=BARE),
        Axis("activation", "what", ("relu", "sigmoid"), phrase=BARE),
        Axis("pass", "what", ("forward", "backward"), phrase=BARE),
        Axis("form", "what", ("separate", "fused"), phrase=BARE),
        Axis("quantity", "what", phrase=BARE),
        Axis("direction", "what", ("h2h", "h2d", "d2h", "both", "d2d"), phrase=BARE),
        Axis("op", "what", ("allreduce",), phrase=BARE),
        Axis("bytes", "what", counts=True),
        Axis(
            *("program", "how", (OWN, *FRAMEWORKS), BARE),
            words={name: framework.word for name, framework in FRAMEWORKS.items()},
            is_common=True,
            ladder=(),
        ),
        Axis(
            *("device", "how", tuple(DEVICES), BARE),
            words=DEVICES,
            is_common=True,
            ladder=(),
        ),
        Axis(
            *("precision", "alike", ("f32", "tf32", "bf16", "f16"), BARE),
            in_labels="varies",
            is_common=True,
            changes={"tf32": "in TF32", "bf16": "in bf16", "f16": "in f16"},
        ),
        Axis("size", "what", phrase="{} rows", counts=True),
        Axis("step_count", "how", phrase="{} steps", counts=True),
        Axis("memory", "how", ("pageable", "pinned"), phrase=BARE),
        Axis("mode", "how", ("sync", "async"), phrase=BARE),
        Axis(
            *("execution", "how", (*_EXECUTIONS, *_GPU_EXECUTIONS), BARE),
            is_common=True,
            changes={
                "winograd": "with Winograd's products",
                "fused": "with fused steps",
                "overlapped": "with sums of gradients beside the backward pass",
                "auto": "with the fastest of its executions",
                "graph": "with CUDA graphs",
                "graph-epoch": "with one CUDA graph for the epoch",
                "persistent": "with one kernel for the epoch",
                "tailored": "with one kernel made for the network",
            },
        ),
        Axis(
            *("data", "how", ("resident", "pageable", "pinned", "pinned-async"), BARE),
            ladder=("pageable", "pinned", "pinned-async", "resident"),
            changes={
                "pinned": "with the data in pinned memory",
                "pinned-async": "with copies that overlap the steps",
                "resident": "with the data resident",
            },
        ),
        Axis(
            *("zero", "how", ("overwrite", "keep"), "gradients {}"),
            words={"overwrite": "gradients overwritten", "keep": "gradients kept"},
            ladder=("keep", "overwrite"),
        ),
        Axis("loader", "how", (), "{} loading threads", True, {"1": "1 loading thread"}),
        Axis("ranks", "how", (), "{} ranks", True, {"1": "1 rank"}),
        Axis("bucket", "how", phrase="buckets of {} B", counts=True),
        Axis("cpu_threads", "how", (), "{} threads", True, {"1": "1 thread"}),
        Axis("accumulate", "what", counts=True),
        Axis("copies", "what", phrase="{} copies", counts=True),
        Axis(
            *("shuffle", "what", ("none", "epoch")),
            words={"none": "rows in order", "epoch": "shuffled"},
        ),
        Axis("loss", "alike", ("epoch", "step"), ladder=()),
        Axis("products", "how", ("heuristic", "autotuned"), "{} products"),
        Axis(
            *("cudnn", "how", ("heuristic", "benchmark"), "{} convolutions"),
            words={"benchmark": "cudnn.benchmark"},
        ),
        Axis(
            *("layout", "how", ("default", "channels-last"), "{} layout"),
            words={"channels-last": "channels last"},
        ),
        Axis(
            *("compiler", "how", ("none", "inductor", "xla")),
            words={"inductor": "torch.compile", "xla": "jit"},
        ),
        Axis("loop", "how", ("scan", "unrolled"), "{} steps"),
        Axis("pages", "how", ("default", "huge"), "{} pages"),
        Axis(
            *("script", "alike", ("lean", "usual")),
            words={"lean": "batches ready", "usual": "as people write it"},
            ladder=(),
        ),
        Axis("torch_device", "how", ("cuda", "mps", "xpu"), "PyTorch's {}"),
    ]
)
