# SPDX-License-Identifier: Apache-2.0
"""Clock, temperature and power of the GPU while it was measured."""

from plots.core.page.section import Context
from plots.features.conditions import section
from plots.file import loading
from plots.tests import synthetic


def _document(*, told=True):
    """Of two models on a GPU; the second was held back, and its temperature rose."""
    entries = synthetic.samples(synthetic.gpu_configuration("disc-2"))
    held = synthetic.samples(
        synthetic.gpu_configuration("disc-8"),
        warnings=["the GPU's clocks were held back: power cap"],
    )
    for place, (first, second) in enumerate(zip(entries, held, strict=True)):
        if told:
            first |= {"sm_clock_mhz_after": 1980 - place, "temperature_celsius_after": 40 + place}
            second |= {"sm_clock_mhz_after": 1700 + place, "temperature_celsius_after": 60 + place}
        second["joules_gpu"] = 0.3 * second["real_time"]
    entries += held
    return synthetic.document(entries, gpu="synthetic GPU")


def test_a_gpu_is_shown_as_it_was_while_measured(write):
    (block,) = section.build([loading.load_file(write(_document()))], Context()).blocks
    assert block.points == (
        "Clock: median 1840 MHz, 1700 to 1980; 1980 at first, 1708 in the end.",
        "Temperature: median 54 °C, 40 to 68; 40 at first, 68 in the end.",
        "Power: 300 W.",
        "The driver held clocks back in 1 of 2 rows: power cap.",
    )


def test_a_driver_that_tells_nothing_has_no_section(write):
    assert section.build([loading.load_file(write(_document(told=False)))], Context()) is None
