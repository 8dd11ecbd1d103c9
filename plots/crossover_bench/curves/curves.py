# SPDX-License-Identifier: Apache-2.0
"""Takes the rows of a file together to curves over size, and finds what can be compared.

docs/method/crossover.md, "What is compared", gives the rules.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossover_bench.curves.network import difference
from crossover_bench.files.axes import BUILT_IN, Axes, Items, Label
from crossover_bench.files.families import EPOCH, FAMILIES, OF_NETWORKS, TRAINING, Scale
from crossover_bench.files.ladders import DISC
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import File, Instances, Row, median_of
from crossover_bench.words.text import whole

BEST = "best"
AUTO = "auto"  # the execution that chooses another


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The times, or other values of `quantity`, of one way to compute, over a growing problem.

    `sizes` increase strictly; `samples[i]` are those measured at `sizes[i]`, one for each
    repetition. `configuration` says how and where (series_key() of the rows as a dictionary).
    For the best of all thread counts, `cpu_threads` is "best", `candidates[i]` are the samples of
    every thread count at `sizes[i]`, and `samples[i]` those of them with the best median. The best
    of all ways of a GPU has the same, but no `cpu_threads`.
    `instances[i]` are those of `candidates[i]`, or of `samples[i]` where there are no candidates;
    empty where times are known without noise between instances. `rows[i]` is the Row.index at
    `sizes[i]`; empty for the best of several. `flags` are the warnings of all samples, `axes` those
    of the file. `between` are the sizes of networks between two of a ladder, such as disc-8x1.5,
    which only some ways have. `own_batch` is that of the ladder's networks; empty without a ladder.
    """

    words: Label
    configuration: dict[str, str]
    sizes: np.ndarray
    samples: tuple[np.ndarray, ...]
    candidates: tuple[tuple[np.ndarray, ...], ...] = ()
    instances: tuple[tuple[Instances, ...], ...] = ()
    flags: tuple[str, ...] = ()
    axes: Axes = BUILT_IN
    between: frozenset[float] = frozenset()
    own_batch: str = ""
    rows: tuple[int, ...] = ()
    quantity: Quantity = TIME

    @property
    def label(self) -> str:
        """The way in words: "GPU, graph, pinned", "CPU, best of 1, 2 threads"."""
        return str(self.words)

    def meets(self, other: "Curve") -> bool:
        """Whether they have two sizes in common, which a crossover needs."""
        return len(np.intersect1d(self.sizes, other.sizes)) > 1

    def at(self, size: float) -> "Curve":
        """It at one of its sizes alone."""
        first = int(np.searchsorted(self.sizes, size))
        place = slice(first, first + 1)
        return replace(
            self,
            sizes=self.sizes[place],
            samples=self.samples[place],
            candidates=self.candidates[place],
            instances=self.instances[place],
            rows=self.rows[place],
        )


@dataclass(frozen=True, slots=True)
class Alike:
    """Curves that compute the same. `common` is what they have in common, in the order of the axes.
    Its model, for curves over the sizes of another ladder than disc, names the ladder's networks.
    """

    common: dict[str, str]

    @property
    def family(self) -> str:
        """The family of their rows."""
        return self.common["family"]

    @property
    def model(self) -> str:
        """The network; empty for curves over the sizes of several."""
        return self.common.get("model", "")

    @property
    def networks(self) -> str:
        """What the networks along the curves are called: "disc networks"."""
        return self.common.get("model", DISC.networks)

    @property
    def batch(self) -> str:
        """Samples in a training step; empty for curves over batch sizes, and without a batch."""
        return self.common.get("batch", "")

    @property
    def precision(self) -> str:
        """That of the GPU's products, with the CPU's where it differs; empty without products."""
        return self.common.get("precision", "")


@dataclass(frozen=True, slots=True)
class Pairing(Alike):
    """The curve of a `gpu`, those of each thread count of the CPU, and their `best`."""

    measure: str
    cpus: tuple[Curve, ...]
    best: Curve
    gpu: Curve

    @property
    def sides(self) -> tuple[Curve, ...]:
        """What the GPU is compared with: each thread count, then the best of all."""
        return (*self.cpus, self.best)


SCALES = {name: family.scale for name, family in FAMILIES.items()}
# One network in one batch size at a time.
NETWORKS = {
    family: Scale("parameters", lambda row: row.counters["params"]) for family in OF_NETWORKS
}


def pairings(file: File, families: Mapping[str, Scale]) -> Iterator[Pairing]:
    """Every GPU curve of `file` with the CPU curves that compute the same, in the file's order.

    A value that should be alike but that no CPU curve has, such as a GPU's precision, is compared
    with the CPU's plainest, f32, and `common` says so. Sizes at which the two do other work are
    left out (left_out()).
    """
    for what, ways in _groups(file, families).items():
        family = families[dict(what)["family"]]
        curves: dict[tuple[str, ...], Curve] = {}  # each of the CPU is in many pairings
        for sides in _sides(ways):
            gpu, cpus = _same_work(*sides, family)
            if gpu and cpus:
                yield _pairing(dict(what), gpu, cpus, family, curves)


def thread_pairs(file: File) -> Iterator[tuple[dict[str, str], Curve, Curve]]:
    """What both have in common, and of epochs on the CPU the curves of the fewest and of the most
    threads, up to the number of cores, where the two have two sizes in common. Where rows of
    several executions compute the same, auto's are what anyone would run."""
    family = SCALES[EPOCH]
    for what, ways in _groups(file, {EPOCH: family}).items():
        alike: dict[Items, list[tuple[int, list[Row]]]] = {}
        for rows in ways:
            how = rows[0].configuration
            threads = rows[0].threads if rows[0].device == "cpu" else None
            if threads and threads <= file.machine.cpu.cores:
                rest = rows[0].axes.how(how, (*family.replaces, "cpu_threads"))
                alike.setdefault(rest, []).append((threads, rows))
        automatic = {rest for rest in alike if ("execution", AUTO) in rest}
        for rest, counts in alike.items():
            with_auto = tuple((key, AUTO if key == "execution" else value) for key, value in rest)
            if rest not in automatic and with_auto in automatic:
                continue
            counts.sort(key=lambda pair: pair[0])
            fewest, most = (_curve(counts[place][1], family, ()) for place in (0, -1))
            if len(counts) > 1 and fewest.meets(most):
                yield {**dict(what), **_alike(counts[0][1][0])}, fewest, most


def left_out(file: File) -> list[tuple[Row, Row]]:
    """The CPU and GPU rows of one network that are not compared, as they do other work."""
    return [
        pair
        for what, ways in _groups(file, NETWORKS).items()
        for gpu, cpus in _sides(ways)
        for pair in _other_work(
            gpu, [row for rows in cpus for row in rows], NETWORKS[dict(what)["family"]]
        )
    ]


def rank_pairs(file: File) -> Iterator[tuple[dict[str, str], int, Curve, Curve]]:
    """Of what several ranks train on a device, for each number of them: what is alike, that number,
    the best of one process and the best of the ranks, at two sizes or more in common."""
    for what, ways in _groups(file, {name: SCALES[name] for name in TRAINING}, shared=True).items():
        family = SCALES[dict(what)["family"]]
        alike: dict[tuple[str, Items], dict[int, list[Curve]]] = {}
        for rows in ways:
            same = tuple(_alike(rows[0]).items())
            by_ranks = alike.setdefault((rows[0].device, same), {})
            by_ranks.setdefault(rows[0].ranks, []).append(_curve(rows, family, ()))
        for (_, same), by_ranks in alike.items():
            alone = best_of(by_ranks.pop(1)) if 1 in by_ranks else None
            for ranks, curves in sorted(by_ranks.items()):
                many = best_of(curves)
                if alone and alone.meets(many):
                    yield {**dict(what), **dict(same)}, ranks, alone, many


def _alike(row: Row) -> dict[str, str]:
    """What `row` says of what both sides of a comparison should have the same."""
    return {axis.key: value for axis, value in row.axes.of(row.configuration, "alike")}


def _groups(
    file: File, families: Mapping[str, Scale], shared: bool = False
) -> dict[Items, list[list[Row]]]:
    """What is computed → the rows of each way to compute it. Rows of several ranks, which are no
    answer for one CPU, are among them only where `shared`."""
    groups: dict[Items, dict[Items, list[Row]]] = {}
    for row in file.rows:
        family = families.get(row.family)
        if family and not row.failure and family.size(row) and (shared or row.ranks == 1):
            what = row.axes.what(row.configuration, family.replaces)
            if "model" in family.replaces and row.ladder and row.ladder.name != DISC.name:
                what = (*what, ("model", row.ladder.networks))
            ways = groups.setdefault(what, {})
            ways.setdefault(row.axes.how(row.configuration, family.replaces), []).append(row)
    return {
        what: _one_network_a_size(list(ways.values()), families[dict(what)["family"]])
        for what, ways in groups.items()
    }


def _one_network_a_size(ways: list[list[Row]], family: Scale) -> list[list[Row]]:
    """`ways` with one network of each size, as rounding may give two the same size: the first
    stays, and its rows say so."""
    first: dict[float | None, Row] = {}
    others: dict[str, str] = {}  # the network that stays → what its rows say
    dropped = set()
    for row in (row for rows in ways for row in rows):
        kept = first.setdefault(family.size(row), row)
        if row.model != kept.model and row.workload != kept.workload:
            dropped.add(row.model)
            others[kept.model] = f"{row.model}, another network of the same size, is left out"
    if not dropped:
        return ways
    return [
        [
            replace(row, warnings=(*row.warnings, others[row.model]))
            if row.model in others
            else row
            for row in rows
            if row.model not in dropped
        ]
        for rows in ways
        if any(row.model not in dropped for row in rows)
    ]


def _sides(ways: Sequence[list[Row]]) -> Iterator[tuple[list[Row], list[list[Row]]]]:
    """The rows of each way of a GPU, with those of each way of the CPU that computes alike."""
    cpus = [rows for rows in ways if rows[0].device == "cpu"]
    for rows in ways:
        if rows[0].device != "cpu":
            yield rows, _like(cpus, rows[0])


def _other_work(gpu: Sequence[Row], cpus: Iterable[Row], family: Scale) -> list[tuple[Row, Row]]:
    """The rows of `cpus` that do other work than the row of `gpu` at their size, with that row."""
    sized = {family.size(row): row for row in gpu}
    return [
        (row, sized[size])
        for row in cpus
        if (size := family.size(row)) in sized and difference(row, sized[size])
    ]


def _same_work(
    gpu: list[Row], cpus: list[list[Row]], family: Scale
) -> tuple[list[Row], list[list[Row]]]:
    """`gpu` and `cpus` without the rows that do other work than the other side at their size."""
    pairs = _other_work(gpu, [row for rows in cpus for row in rows], family)
    if not pairs:
        return gpu, cpus
    other = {row.name for row, _ in pairs}
    kept = list(filter(None, ([row for row in rows if row.name not in other] for rows in cpus)))
    alone = {family.size(row) for _, row in pairs}
    alone -= {family.size(row) for rows in kept for row in rows}
    return [row for row in gpu if family.size(row) not in alone], kept


def _pairing(
    what: dict[str, str],
    gpu: list[Row],
    cpus: list[list[Row]],
    family: Scale,
    curves: dict[tuple[str, ...], Curve],
) -> Pairing:
    common = _common(what, cpus[0][0], gpu[0])
    alike = [axis.key for axis in gpu[0].axes if axis.role == "alike"]
    like = []
    for rows in cpus:
        names = tuple(row.name for row in rows)
        if names not in curves:
            curves[names] = _curve(rows, family, alike)
        like.append(curves[names])
    names = (BEST, *(row.name for rows in cpus for row in rows))
    if names not in curves:
        curves[names] = best_of(like)
    gpu_curve = _curve(gpu, family, common)
    return Pairing(common, family.measure, tuple(like), curves[names], gpu_curve)


def _like(cpus: Sequence[list[Row]], gpu: Row) -> list[list[Row]]:
    """The ways of `cpus` that compute as `gpu` does, or come closest."""
    like = list(cpus)
    for axis in (axis for axis in gpu.axes if axis.role == "alike"):
        wanted = gpu.axes.value(gpu.configuration, axis.key)
        values = [rows[0].axes.value(rows[0].configuration, axis.key) for rows in like]
        if wanted not in values:
            wanted = axis.plainest
        like = [rows for rows, value in zip(like, values, strict=True) if value == wanted]
    return like


def _common(what: dict[str, str], cpu: Row, gpu: Row) -> dict[str, str]:
    """`what`, and what is alike: "f32", or "tf32 (CPU: f32)" where the CPU has no such."""
    common = dict(what)
    for axis, value in gpu.axes.of(gpu.configuration, "alike"):
        if axis.key in cpu.configuration:
            on_cpu = cpu.configuration[axis.key]
            common[axis.key] = value if on_cpu == value else f"{value} (CPU: {on_cpu})"
    return {axis.key: common[axis.key] for axis in gpu.axes if axis.key in common}


def _curve(rows: Sequence[Row], family: Scale, without: Collection[str]) -> Curve:
    """The curve through `rows`; its label leaves out the keys in `without`."""
    sized: dict[float, Row] = {}
    for row in rows:
        sized.setdefault(family.size(row) or 0.0, row)  # disc-7 and disc-07 are one network
    sizes = sorted(sized)
    axes = rows[0].axes
    configuration = {
        key: value
        for key, value in rows[0].configuration.items()
        if axes[key].in_labels != "elsewhere" and key not in family.replaces
    }
    return Curve(
        words=axes.label(dict(axes.how(configuration)), without=without),
        configuration=configuration,
        sizes=np.array(sizes),
        samples=tuple(sized[size].samples / sized[size].count for size in sizes),
        instances=tuple((sized[size].instances,) for size in sizes),
        flags=tuple(dict.fromkeys(flag for size in sizes for flag in sized[size].warnings)),
        axes=axes,
        between=frozenset(size for size in sizes if sized[size].is_between),
        own_batch=rows[0].ladder.batch if rows[0].ladder else "",
        rows=tuple(sized[size].index for size in sizes),
        quantity=rows[0].quantity,
    )


def best_of(curves: Sequence[Curve]) -> Curve:
    """At each size the curve of `curves`, of one device, with the best median."""
    candidates: dict[float, list[np.ndarray]] = {}
    instances: dict[float, list[Instances]] = {}
    for curve in curves:
        of_sizes = zip(curve.sizes.tolist(), curve.samples, curve.instances, strict=True)
        for size, samples, of_size in of_sizes:
            candidates.setdefault(size, []).append(samples)
            instances.setdefault(size, []).extend(of_size)
    sizes = sorted(candidates)
    axes, first = curves[0].axes, curves[0].configuration
    has_threads = first.get("device") != "cuda" and "cpu_threads" in axes
    keys = (*first, "cpu_threads") if has_threads else first
    configurations = [curve.configuration for curve in curves]
    values = {key: list(dict.fromkeys(of.get(key, "?") for of in configurations)) for key in keys}
    shared = {key: known[0] for key, known in values.items() if len(known) == 1}
    of = [
        " or ".join(axis.word(value) for value in values[axis.key])
        for axis in axes
        if len(values.get(axis.key, ())) > 1 and axis.key != "cpu_threads"
    ]
    if threads := values.get("cpu_threads"):
        counts = sorted(threads, key=lambda count: whole(count) or 0)
        of.insert(0, axes["cpu_threads"].word(", ".join(counts)))
        shared["cpu_threads"] = BEST
    how = dict(axes.how(shared, [axis.key for axis in axes if axis.role == "alike"]))
    how.pop("cpu_threads", None)
    cost = curves[0].quantity.cost
    return replace(
        curves[0],
        words=replace(axes.label(how), best_of=", ".join(of)),
        configuration=shared,
        sizes=np.array(sizes),
        samples=tuple(
            min(candidates[size], key=lambda samples: cost(median_of(samples))) for size in sizes
        ),
        candidates=tuple(tuple(candidates[size]) for size in sizes),
        instances=tuple(tuple(instances[size]) for size in sizes),
        flags=tuple(dict.fromkeys(flag for curve in curves for flag in curve.flags)),
        between=frozenset().union(*(curve.between for curve in curves)),
        rows=(),
    )
