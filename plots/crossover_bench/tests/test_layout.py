# SPDX-License-Identifier: Apache-2.0
"""Charts for wide and for narrow screens: no text lies on another or beyond the edge."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from crossover_bench.answers.training.chart import (
    best_of_devices,
    draw_latencies,
    draw_throughput,
    draw_times,
)
from crossover_bench.answers.why.analysis import splits
from crossover_bench.answers.why.chart import draw_why
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.network import epoch_rows, training_rows
from crossover_bench.curves.rates import lines
from crossover_bench.files.families import FORWARD, MINIBATCH
from crossover_bench.show.charts import style
from crossover_bench.show.charts.crossover import by_work, draw_crossovers
from crossover_bench.show.charts.lines import MOST_LINES
from crossover_bench.show.charts.rates import MOST_PANELS, draw_rates, panels
from crossover_bench.show.charts.style import NARROW, WIDE, thinned
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic, synthetic_machine, synthetic_probes, synthetic_steps
from crossover_bench.tests.synthetic_steps import passes
from crossover_bench.words import units

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
    pictures: list[Drawn] = []
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
        pictures.append(Drawn(figure, figure.bbox.frozen(), texts, bars))

    def call(draw: Callable[..., object], *arguments: object, **options: object) -> list[Drawn]:
        draw(*arguments, **options)
        assert [picture.figure.get_figwidth() for picture in pictures] == [WIDE, NARROW]
        check(pictures)
        return pictures

    monkeypatch.setattr(style, "place", spy)
    return call


def _hidden(figure: Figure) -> set[Text]:
    """Texts that are not drawn: on axes without use, and of ticks beyond their ends."""
    hidden = {text for axes in figure.axes if not axes.get_visible() for text in axes.findobj(Text)}
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    hidden |= {tick.label1, tick.label2}
    return hidden


def check(pictures: list[Drawn]) -> None:
    for picture in pictures:
        edges = picture.edges
        for name, box in picture.texts.items():
            assert box.x0 >= edges.x0 - 1 and box.x1 <= edges.x1 + 1, name
            assert box.y0 >= edges.y0 - 1 and box.y1 <= edges.y1 + 1, name
        for (name, box), (other, second) in combinations(picture.texts.items(), 2):
            width = min(box.x1, second.x1) - max(box.x0, second.x0)
            height = min(box.y1, second.y1) - max(box.y0, second.y0)
            assert width <= 1 or height <= 1, (picture.figure.get_figwidth(), name, other)


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
    pictures = drawn(draw_times, machine, epoch_rows(machine))
    for picture in pictures:
        assert any("heart, batch 10" in name for name in picture.texts)
        # Of all that others published, the same networks alone.
        assert len([name for name in picture.texts if "published" in name]) == 2


MANY = {
    "epochs": lambda file: (draw_times, file, best_of_devices(epoch_rows(file))),
    "crossovers": lambda file: (draw_crossovers, file, by_work(comparisons(file))[0]),
}


@pytest.mark.parametrize("chart", MANY)
@pytest.mark.parametrize("which", ["machine", "wide"])
def test_of_many_ways_few_are_drawn_in_each_chart(chart, which, request, drawn):
    pictures = drawn(*MANY[chart](request.getfixturevalue(which)))
    for picture in pictures:
        for axes in picture.figure.axes:
            named = [line for line in axes.lines if line.get_label()[0] != "_"]
            assert len([line for line in named if len(line.get_xdata()) > 2]) <= MOST_LINES


def test_crossovers_over_batch_size(read, drawn):
    entries = synthetic_steps.steps(["alexnet-r"], batches=(2, 3, 4, 8, 16, 100, 128, 512))
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    pictures = drawn(draw_crossovers, file, comparisons(file))
    shown = {name.partition(" ")[2] for name in pictures[0].texts}
    assert {"2", "1,024", "samples in a batch"} <= shown


EDGES = (32, 33, 64, 65, 127, 128, 256, 512, 1000, 1023, 1024, 2048)


def test_products_of_neighbouring_sizes(read, drawn):
    entries = synthetic_probes.products(edges=EDGES)
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    pictures = drawn(draw_crossovers, file, by_work(comparisons(file))[0])
    shown = {name.partition(" ")[2] for name in pictures[0].texts}
    assert {"32", "64", "1,024", "2,048"} <= shown
    assert not shown & {"33", "65", "1,000", "1,023"}


def test_thinned_keeps_powers_of_two():
    assert thinned(EDGES, np.log(1.5)) == [32, 64, 128, 256, 512, 1024, 2048]
    assert thinned(EDGES, np.log(3.9)) == [32, 128, 512, 2048]
    assert thinned([0, 100, 1000], 1.0) == [100, 1000]


def test_of_many_kinds_of_layers_cpu_and_gpu_are_drawn(read, drawn):
    """24 kinds, as a full sweep has them."""
    kinds = product(("10", "100", "1000"), ("relu", "sigmoid"), ("separate", "fused"))
    entries = synthetic_probes.layers(kinds=[*kinds])
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    every_panel = panels(
        lines(file.rows, lambda row: row.counters["width"], ("width",), "flops"), ("width",)
    )
    assert len(every_panel) == 24
    pictures = drawn(
        draw_rates,
        file,
        every_panel[:MOST_PANELS],
        title="Layers: arithmetic by width",
        size_label="inputs and outputs",
        rate_label="operations per second",
        unit="FLOP/s",
    )
    for picture in pictures:
        shown = [name.partition(" ")[2] for name in picture.texts]
        assert shown.count("CPU, 2 threads") == shown.count("GPU, eager") == 1
        assert all(len(axes.lines) == 2 for axes in picture.figure.axes)


def test_copies(read, drawn):
    file = read(synthetic_probes.everything())
    rows = [row for row in file.rows if row.family == "Copy"]
    every_panel = panels(
        lines(rows, lambda row: row.counters["bytes"], ("bytes",), "bytes"), ("bytes",)
    )
    options = {"title": "Copies", "size_label": "size", "rate_label": "bandwidth", "unit": "B/s"}
    drawn(draw_rates, file, every_panel, **options, tick=units.binary_bytes)


@pytest.mark.parametrize(("draw", "panels"), [(draw_throughput, 4), (draw_latencies, 1)])
def test_forward_passes(read, drawn, draw, panels):
    entries = [
        entry
        for model in ("disc-3", "disc-7", "disc-11", "heart", "fcn-r")
        for batch in (1, 32, 1024)
        for device in ("cpu", "cuda")
        for entry in passes(model, batch, device)
    ]
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    rows = training_rows(file, FORWARD)
    pictures = drawn(draw, file, rows if panels > 1 else [row for row in rows if row.batch == "1"])
    for picture in pictures:
        assert [len(axes.lines) for axes in picture.figure.axes] == panels * [2]  # of five networks
    assert draw_throughput(file, [row for row in rows if row.batch == "1"]) is None


def test_where_the_time_goes(machine, drawn):
    assert len({split.row.execution for split in splits(epoch_rows(machine))}) == 2
    pictures = drawn(draw_why, Study(machine))
    assert [len(picture.figure.axes) for picture in pictures] == [
        2,
        2,
    ]  # of 3 thread counts and 8 modes
    wide = pictures[0].figure
    assert wide.get_figheight() < 7
    for picture in pictures:
        assert all(
            text.get_rotation() == 0 for text in picture.figure.findobj(Text) if text.get_text()
        )


def test_where_the_time_of_steps_goes(read, drawn):
    file = read(synthetic_steps.machine(epochs=False))
    pictures = drawn(draw_why, Study(file), MINIBATCH)
    for picture in pictures:
        shown = [name.partition(" ")[2] for name in picture.texts]
        assert {"convolution", "normalization", "pooling", "reorders"} <= set(shown)


def test_a_bar_that_ends_beyond_100_is_whole(read, drawn):
    document = synthetic_machine.machine(models=("disc-3", "heart"))
    for entry in document["benchmarks"]:
        if "seconds_product" in entry:  # the profiled epochs were the slower ones
            seconds = entry["real_time"] / 1e3
            profiled = sum(value for key, value in entry.items() if key.startswith("seconds_"))
            entry["seconds_product"] += 1.08 * seconds - profiled
    pictures = drawn(draw_why, Study(read(document)))
    for picture in pictures:
        ends = []
        for axes, box in picture.bars:
            low, high = axes.get_xlim()
            assert low <= box.xmin + 1e-9 and box.xmax <= high + 1e-9
            ends.append(box.xmax)
        assert max(ends) > 105
