# SPDX-License-Identifier: Apache-2.0
"""The looks of lines: one for each way to compute in all charts, told apart by every reader."""

import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from crossover_bench.answers.why.chart import COLOURS as PARTS
from crossover_bench.curves.series import series_key
from crossover_bench.show.charts.looks import CPU_COLOURS, GPU_COLOURS, Looks
from crossover_bench.show.charts.style import INK
from crossover_bench.show.page.page import TEMPLATES
from crossover_bench.tests import synthetic_probes

# Machado, Oliveira and Fernandes (2009), doi:10.1109/TVCG.2009.113: linear RGB as readers without
# red, green or blue receptors see it.
VISIONS = {
    "all": np.eye(3),
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Ottosson's OKLab (2020): a difference of 0.02 is just seen side by side.
TO_CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]
APART = 0.1
LINES = (*CPU_COLOURS, *GPU_COLOURS.values())


def on_dark_paper(colour: str) -> str:
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    match = re.search(rf"--c-{colour[1:].lower()}: (#[0-9a-f]{{6}})", style)
    assert match, colour
    return match[1]


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(colour: str, vision: str) -> np.ndarray:
    seen = np.clip(np.array(VISIONS[vision]) @ linear(colour), 0, 1)
    return np.array(TO_LAB) @ np.cbrt(np.array(TO_CONES) @ seen)


def contrast(colour: str, paper: str) -> float:
    """As WCAG 2.2 defines it."""
    luminances = [linear(each) @ [0.2126, 0.7152, 0.0722] + 0.05 for each in (colour, paper)]
    return max(luminances) / min(luminances)


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("colours", [LINES, [c for p, c in PARTS.items() if p != "unattributed"]])
def test_colours_are_apart_for_every_reader(colours, dark, vision):
    shown = [on_dark_paper(colour) if dark else colour for colour in colours]
    for colour, other in combinations(shown, 2):
        assert np.linalg.norm(lab(colour, vision) - lab(other, vision)) > APART, (colour, other)


def test_lines_stand_out_from_the_paper_and_the_bound_from_the_parts():
    for colour in LINES:
        assert contrast(colour, "#ffffff") > 2.6, colour
        assert contrast(on_dark_paper(colour), on_dark_paper("#ffffff")) > 3, colour
    assert len({*PARTS.values(), INK}) == len(PARTS) + 1


def test_each_way_to_compute_has_a_look_of_its_own(read):
    file = read(synthetic_probes.everything())
    looks = Looks(file.rows)
    epochs = {
        series_key(row): looks.of(row.configuration) for row in file.rows if row.family == "Epoch"
    }
    assert len(epochs) == 11  # 1 and 2 threads, 9 modes of the GPU
    assert len(set(epochs.values())) == 11
    assert {look.colour for look in epochs.values()} == {*CPU_COLOURS[:2], *GPU_COLOURS.values()}
    for row in file.rows:  # whatever the family
        look = looks.of(row.configuration)
        threads = row.configuration.get("cpu_threads")
        assert look.filled != bool(threads)
        if threads:
            assert look.colour == CPU_COLOURS[int(threads) - 1]
        elif "data" in row.configuration or "memory" in row.configuration:
            place = row.configuration.get("data") or row.configuration["memory"]
            assert look.colour == GPU_COLOURS[place]
    # What colour and dash do not tell the marker does.
    way = next(row for row in file.rows if "data" in row.configuration)
    other = replace(way, configuration={**way.configuration, "precision": "tf32"})
    looks = Looks([*file.rows, other])
    first, second = looks.of(way.configuration), looks.of(other.configuration)
    assert first.marker != second.marker
    assert (first.colour, first.dash) == (second.colour, second.dash)
