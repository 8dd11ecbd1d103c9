# SPDX-License-Identifier: Apache-2.0
"""Charts for wide and for narrow screens: no text lies on another or beyond the edge."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from plots import units
from plots.core.charts import style
from plots.core.charts.crossover import by_work, draw_crossovers
from plots.core.charts.lines import MOST_LINES
from plots.core.charts.rates import MOST_PANELS, draw_rates, panels
from plots.core.charts.style import NARROW, WIDE, thinned
from plots.core.crossover import comparisons
from plots.core.network import epoch_rows, training_rows
from plots.core.rates import lines
from plots.features.training.chart import (
    best_of_devices,
    draw_throughput,
    draw_times,
)
from plots.features.why.analysis import splits
from plots.features.why.chart import chosen, draw_why
from plots.file import loading
from plots.file.families import FORWARD, MINIBATCH
from plots.tests import (
    synthetic,
    synthetic_machine,
    synthetic_probes,
    synthetic_steps,
    synthetic_sweep,
)
from plots.tests.synthetic_steps import passes

pytestmark = pytest.mark.slow


@dataclass
class Drawn:
    """What was on a figure when all had its place."""

    figure: Figure
    edges: Bbox
    texts: dict[str, Bbox]
    bars: list[tuple[Axes, Bbox]]


@pytest.fixture
def drawn(monkeypatch) -> Callable[..., list[Drawn]]:
    """Calls a function that draws; returns its figures, the wide one first."""
    found: list[Drawn] = []
    place = style.place

    def spy(figure: Figure) -> None:
        place(figure)
        texts = {}
        hidden = _hidden(figure)
        for number, text in enumerate(figure.findobj(Text)):
            if text.get_visible() and text.get_text().strip() and text not in hidden:
                texts[f"{number} {text.get_text()}"] = text.get_window_extent()
        bars = [
            (axes, patch.get_bbox())
            for axes in figure.axes
            for patch in axes.patches
            if isinstance(patch, Rectangle)
        ]
        found.append(Drawn(figure, figure.bbox.frozen(), texts, bars))

    def call(draw: Callable[..., object], *arguments: object, **options: object) -> list[Drawn]:
        draw(*arguments, **options)
        assert [one.figure.get_figwidth() for one in found] == [WIDE, NARROW]
        return found

    monkeypatch.setattr(style, "place", spy)
    return call


def _hidden(figure: Figure) -> set[Text]:
    """Texts that are not drawn: on axes without use, and of ticks beyond their ends."""
    found = {text for axes in figure.axes if not axes.get_visible() for text in axes.findobj(Text)}
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    found |= {tick.label1, tick.label2}
    return found


def check(figures: list[Drawn]) -> None:
    for one in figures:
        edges = one.edges
        for name, box in one.texts.items():
            assert box.x0 >= edges.x0 - 1 and box.x1 <= edges.x1 + 1, name
            assert box.y0 >= edges.y0 - 1 and box.y1 <= edges.y1 + 1, name
        for (name, box), (other, second) in combinations(one.texts.items(), 2):
            width = min(box.x1, second.x1) - max(box.x0, second.x0)
            height = min(box.y1, second.y1) - max(box.y0, second.y0)
            assert width <= 1 or height <= 1, (one.figure.get_figwidth(), name, other)


@pytest.fixture
def machine(read):
    """CPU and GPU with ceilings and profiles, in more ways than a chart can hold."""
    modes = tuple(
        (execution, data)
        for execution in ("eager", "graph")
        for data in ("resident", "pageable", "pinned", "pinned-async")
    )
    document = synthetic_machine.machine(threads=(1, 2, 8), modes=modes)
    crossover = document["context"]["crossover"]["machine"]
    crossover["cpu"]["model"] = "Synthetic(R) Processor 8480+ with a long name"
    crossover["gpu"]["name"] = "NVIDIA Synthetic 80GB HBM3e"
    return read(document, "machine.json")


def test_epochs(machine, drawn):
    figures = drawn(draw_times, machine, epoch_rows(machine))
    check(figures)
    for one in figures:
        assert any("heart, batch 10" in name for name in one.texts)
        # Of all that others published, the same networks alone.
        assert len([name for name in one.texts if "published" in name]) == 2


def test_crossovers_of_epochs(read, drawn):
    file = read(synthetic_sweep.wide_sweep((100,)))
    group = next(iter(by_work(comparisons(file))))
    check(drawn(draw_crossovers, file, group))


MANY = {
    "epochs": lambda file: (draw_times, file, best_of_devices(epoch_rows(file))),
    "crossovers": lambda file: (draw_crossovers, file, by_work(comparisons(file))[0]),
}


@pytest.mark.parametrize("chart", MANY)
@pytest.mark.parametrize("which", ["machine", "wide"])
def test_of_many_ways_few_are_drawn_in_each_chart(chart, which, request, drawn):
    figures = drawn(*MANY[chart](request.getfixturevalue(which)))
    check(figures)
    for one in figures:
        for axes in one.figure.axes:
            named = [line for line in axes.lines if line.get_label()[0] != "_"]
            assert len([line for line in named if len(line.get_xdata()) > 2]) <= MOST_LINES


def test_crossovers_over_batch_size(read, drawn):
    entries = synthetic_steps.steps(["alexnet-r"], batches=(2, 3, 4, 8, 16, 100, 128, 512))
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    figures = drawn(draw_crossovers, file, comparisons(file))
    check(figures)
    shown = {name.partition(" ")[2] for name in figures[0].texts}
    assert {"2", "1,024", "samples in a batch"} <= shown


EDGES = (32, 33, 64, 65, 127, 128, 256, 512, 1000, 1023, 1024, 2048)


def products(write):
    entries = []
    for device in ({"device": "cpu", "cpu_threads": "2"}, {"device": "cuda"}):
        for edge in EDGES:
            shape = dict.fromkeys(("m", "n", "k"), str(edge))
            kind = {"transpose": "nn", "precision": "f32", "cache": "warm"}
            configuration = {"family": "Gemm", **shape, **kind, **device, "execution": "eager"}
            seconds = 1e-9 * edge**2 if device["device"] == "cuda" else 1e-11 * edge**3
            entries += synthetic_probes.operation(
                configuration, seconds, 10, flops=2 * edge**3, bytes=edge**2, verified_entries=1
            )
    return loading.load_file(write(synthetic.document(entries, gpu="synthetic GPU")))


def test_products_of_neighbouring_sizes(write, drawn):
    file = products(write)
    figures = drawn(draw_crossovers, file, comparisons(file))
    check(figures)
    shown = {name.partition(" ")[2] for name in figures[0].texts}
    assert {"32", "64", "1,024", "2,048"} <= shown
    assert not shown & {"33", "65", "1,000", "1,023"}


def test_thinned_keeps_powers_of_two():
    assert thinned(EDGES, np.log(1.5)) == [32, 64, 128, 256, 512, 1024, 2048]
    assert thinned(EDGES, np.log(3.9)) == [32, 128, 512, 2048]
    assert thinned([0, 100, 1000], 1.0) == [100, 1000]


def layers(write):
    """24 kinds of layers on the CPU and on the GPU, as a full sweep has them."""
    entries = []
    for device in ({"device": "cpu", "cpu_threads": "2"}, {"device": "cuda"}):
        for batch in ("10", "100", "1000"):
            for kind in range(8):
                own = {
                    "batch": batch,
                    "activation": ("relu", "sigmoid")[kind & 1],
                    "pass": ("forward", "backward")[kind >> 1 & 1],
                    "form": ("separate", "fused")[kind >> 2],
                    "execution": "eager",
                    "precision": "f32",
                }
                for width in (16, 256, 4096):
                    entries += synthetic_probes.operation(
                        {"family": "Layer", "width": str(width), **own, **device},
                        1e-6 * width,
                        10,
                        flops=1e3 * width**2,
                        bytes=1.0,
                        verified_entries=1,
                        width=width,
                        batch=int(batch),
                    )
    return loading.load_file(write(synthetic.document(entries, gpu="synthetic GPU")))


def test_of_many_kinds_of_layers_cpu_and_gpu_are_drawn(write, drawn):
    file = layers(write)
    found = panels(
        lines(file.rows, lambda row: row.counters["width"], ("width",), "flops"), ("width",)
    )
    assert len(found) == 24
    figures = drawn(
        draw_rates,
        file,
        found[:MOST_PANELS],
        title="Layers: arithmetic by width",
        size_label="inputs and outputs",
        rate_label="operations per second",
        unit="FLOP/s",
    )
    check(figures)
    for one in figures:
        shown = [name.partition(" ")[2] for name in one.texts]
        assert shown.count("CPU, 2 threads") == shown.count("GPU, eager") == 1
        assert all(len(axes.lines) == 2 for axes in one.figure.axes)


def test_copies(read, drawn):
    file = read(synthetic_probes.everything())
    rows = [row for row in file.rows if row.family == "Copy"]
    found = panels(lines(rows, lambda row: row.counters["bytes"], ("bytes",), "bytes"), ("bytes",))
    options = {"title": "Copies", "size_label": "size", "rate_label": "bandwidth", "unit": "B/s"}
    check(drawn(draw_rates, file, found, **options, tick=units.binary_bytes))


def test_forward_passes(read, drawn):
    entries = [
        entry
        for model in ("disc-3", "disc-7", "disc-11", "heart", "fcn-r")
        for batch in (1, 32, 1024)
        for device in ("cpu", "cuda")
        for entry in passes(model, batch, device)
    ]
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    rows = training_rows(file, FORWARD)
    figures = drawn(draw_throughput, file, rows)
    check(figures)
    for one in figures:
        assert [len(axes.lines) for axes in one.figure.axes] == 4 * [2]  # of five networks
    assert draw_throughput(file, [row for row in rows if row.batch == "1"]) is None


def test_where_the_time_goes(machine, drawn):
    assert len({split.row.execution for split in splits(epoch_rows(machine))}) == 2
    assert len(chosen(splits(epoch_rows(machine)))) == 4  # of 3 thread counts and 8 modes
    figures = drawn(draw_why, machine)
    check(figures)
    wide = figures[0].figure
    assert wide.get_figheight() < 7
    for one in figures:
        assert all(text.get_rotation() == 0 for text in one.figure.findobj(Text) if text.get_text())


def test_where_the_time_of_steps_goes(read, drawn):
    file = read(synthetic_steps.machine(epochs=False))
    figures = drawn(draw_why, file, MINIBATCH)
    check(figures)
    for one in figures:
        shown = [name.partition(" ")[2] for name in one.texts]
        assert {"convolution", "normalization", "pooling", "reorders"} <= set(shown)


def test_a_bar_that_ends_beyond_100_is_whole(read, drawn):
    document = synthetic_machine.machine(models=("disc-3", "heart"))
    for entry in document["benchmarks"]:
        if "seconds_product" in entry:  # the profiled epochs were the slower ones
            seconds = entry["real_time"] / 1e3
            profiled = sum(value for key, value in entry.items() if key.startswith("seconds_"))
            entry["seconds_product"] += 1.08 * seconds - profiled
    figures = drawn(draw_why, read(document))
    for one in figures:
        ends = []
        for axes, box in one.bars:
            low, high = axes.get_xlim()
            assert low <= box.xmin + 1e-9 and box.xmax <= high + 1e-9
            ends.append(box.xmax)
        assert max(ends) > 105
