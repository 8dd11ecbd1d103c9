# SPDX-License-Identifier: Apache-2.0
"""Takes the rows of a file together to curves over size, and finds what can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from plots.rows import File, Row
from plots.text import whole

BEST = "best"

_DISC = re.compile(r"disc-[0-9]+")
_HOW = ("device", "execution", "data", "cpu_threads")  # how and where a row computes, not what
_PREFERRED = ("precision", "loss")  # compared with its like where the CPU has it
_SUBSTITUTE = {"precision": "f32"}  # where it does not
_COMMON_ORDER = ("family", "model", "batch", "precision")


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The times of one way to compute, over a growing problem.

    `sizes` increase strictly; `samples[i]` are the seconds measured at `sizes[i]`, one for each
    repetition. `configuration` says how and where (series_key() of the rows as a dictionary);
    for the best of all thread counts, `cpu_threads` is "best", `candidates[i]` are the samples of
    every thread count at `sizes[i]`, and `samples[i]` those of them with the smallest median.
    `flags` are the quality flags of all samples.
    """

    label: str
    configuration: dict[str, str]
    sizes: np.ndarray
    samples: tuple[np.ndarray, ...]
    candidates: tuple[tuple[np.ndarray, ...], ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """What `size` of a row the curves of a family grow with; None for rows on no curve.

    `replaces` are the keys of the configuration that the size stands for. An iteration is as many
    operations as the counter `repeats` says, which may differ between the devices.
    """

    measure: str
    size: Callable[[Row], float | None]
    replaces: tuple[str, ...] = ()
    repeats: str | None = None

    def seconds(self, row: Row) -> np.ndarray:
        """The samples of `row`, each of one operation or one epoch."""
        return row.samples / row.counters[self.repeats] if self.repeats else row.samples


@dataclass(frozen=True, slots=True)
class Pairing:
    """Curves that compute the same: `cpus`, one for each thread count, their `best`, and `gpu`.

    `common` is what they have in common, the family first.
    """

    common: dict[str, str]
    measure: str
    cpus: tuple[Curve, ...]
    best: Curve
    gpu: Curve

    @property
    def sides(self) -> tuple[Curve, ...]:
        """What the GPU is compared with: each thread count, then the best of all."""
        return (*self.cpus, self.best)


def is_disc(row: Row) -> bool:
    """Whether `row` trains a network of the disc family, whose sizes make a curve."""
    return _DISC.fullmatch(row.configuration.get("model", "")) is not None


def _disc_parameters(row: Row) -> float | None:
    return row.counters["params"] if is_disc(row) else None


def _whole(text: str) -> float | None:
    return float(whole(text) or 0) or None


def _edge(row: Row) -> float | None:
    edges = {row.configuration[key] for key in ("m", "n", "k")}
    return _whole(edges.pop()) if len(edges) == 1 else None


FAMILIES = {
    "Epoch": Family("parameters", _disc_parameters, ("model",)),
    "Gemm": Family("size", _edge, ("m", "n", "k"), "count"),
    "Layer": Family("width", lambda row: _whole(row.configuration["width"]), ("width",), "count"),
}
NETWORKS = {"Epoch": Family("parameters", lambda row: row.counters["params"])}  # one at a time


_Items = tuple[tuple[str, str], ...]


def pairings(file: File, families: dict[str, Family]) -> list[Pairing]:
    """Every GPU curve of `file` with the CPU curves that compute the same, in the file's order.

    A GPU's precision that no CPU curve has is compared with the CPU's f32, and `common` says so.
    """
    groups: dict[_Items, dict[_Items, list[Row]]] = {}  # what is computed → how → rows
    for row in file.rows:
        family = families.get(row.family)
        if family and not row.failure and family.size(row):
            ways = groups.setdefault(_part(row, family, how=False), {})
            ways.setdefault(_part(row, family, how=True), []).append(row)
    return [
        pairing
        for what, ways in groups.items()
        for pairing in _pairings(dict(what), list(ways.values()), families)
    ]


def _part(row: Row, family: Family, how: bool) -> _Items:
    """What `row` computes apart from its size, or how it does."""
    return tuple(
        sorted(
            (key, value)
            for key, value in row.configuration.items()
            if (key in _HOW or key in _PREFERRED) == how and key not in family.replaces
        )
    )


def _pairings(
    what: dict[str, str], ways: Sequence[Sequence[Row]], families: dict[str, Family]
) -> Iterable[Pairing]:
    family = families[what["family"]]
    cpus = [_curve(rows, family) for rows in ways if is_cpu(rows[0])]
    for rows in ways:
        like = [] if is_cpu(rows[0]) else _like(cpus, rows[0].configuration)
        if like:
            common = _common(what, like[0].configuration, rows[0].configuration)
            gpu = _curve(rows, family, common)
            yield Pairing(common, family.measure, tuple(like), _best(like), gpu)


def is_cpu(row: Row) -> bool:
    """Whether `row` was measured on a CPU."""
    return row.configuration.get("device") == "cpu"


def _like(cpus: Sequence[Curve], gpu: dict[str, str]) -> list[Curve]:
    """The curves of `cpus` that compute as `gpu` does, or come closest."""
    like = list(cpus)
    for key in _PREFERRED:
        same = [cpu for cpu in like if cpu.configuration.get(key) == gpu.get(key)]
        other = [cpu for cpu in like if cpu.configuration.get(key) == _SUBSTITUTE.get(key)]
        like = same or other
    return like


def _common(what: dict[str, str], cpu: dict[str, str], gpu: dict[str, str]) -> dict[str, str]:
    common = dict(what)
    for key in _PREFERRED:
        if key in gpu and gpu[key] == cpu.get(key):
            common[key] = gpu[key]
    if "precision" in gpu and "precision" not in common:
        common["precision"] = f"{gpu['precision']} (CPU: {cpu['precision']})"
    first = [key for key in _COMMON_ORDER if key in common]
    return {key: common[key] for key in (*first, *(key for key in common if key not in first))}


def _curve(rows: Sequence[Row], family: Family, common: Iterable[str] = ()) -> Curve:
    sized: dict[float, Row] = {}
    for row in rows:
        sized.setdefault(family.size(row) or 0.0, row)  # disc-7 and disc-07 are one network
    sizes = sorted(sized)
    configuration = {
        key: value
        for key, value in rows[0].configuration.items()
        if key not in ("family", "model", "batch", *family.replaces)
    }
    return Curve(
        label=_label(configuration, common),
        configuration=configuration,
        sizes=np.array(sizes),
        samples=tuple(family.seconds(sized[size]) for size in sizes),
        flags=tuple(dict.fromkeys(flag for size in sizes for flag in sized[size].quality)),
    )


def _label(configuration: dict[str, str], common: Iterable[str]) -> str:
    if configuration.get("device") == "cpu":
        threads = configuration.get("cpu_threads", "?")
        execution = configuration.get("execution", "eager")
        parts = ["CPU"] if execution == "eager" else ["CPU", execution]
        return ", ".join([*parts, f"{threads} thread{'' if threads == '1' else 's'}"])
    parts = [configuration[key] for key in ("execution", "data") if key in configuration]
    if "loss" in configuration and "loss" not in common:
        parts.append(f"loss {configuration['loss']}")
    return ", ".join(["GPU", *parts])


def _best(cpus: Sequence[Curve]) -> Curve:
    """At each size the curve of `cpus` with the smallest median."""
    candidates: dict[float, list[np.ndarray]] = {}
    for cpu in cpus:
        for size, samples in zip(cpu.sizes.tolist(), cpu.samples, strict=True):
            candidates.setdefault(size, []).append(samples)
    sizes = sorted(candidates)
    threads = [cpu.configuration.get("cpu_threads", "?") for cpu in cpus]
    counts = f"{', '.join(threads)} thread{'' if threads == ['1'] else 's'}"
    return Curve(
        label=f"CPU, best of {counts}",
        configuration={**cpus[0].configuration, "cpu_threads": BEST},
        sizes=np.array(sizes),
        samples=tuple(min(candidates[size], key=np.median) for size in sizes),
        candidates=tuple(tuple(candidates[size]) for size in sizes),
        flags=tuple(dict.fromkeys(flag for cpu in cpus for flag in cpu.flags)),
    )
