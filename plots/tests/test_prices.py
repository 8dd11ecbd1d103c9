# SPDX-License-Identifier: Apache-2.0
"""What training costs, from times and the user's prices."""

import json
import re
from pathlib import Path

import pytest

import plots
from plots.file.prices import read_prices, with_costs
from plots.file.quantities import QUANTITIES
from plots.file.samples import in_quantity
from plots.tests import synthetic, synthetic_probes

GUIDE = Path(plots.__file__).parents[1] / "docs" / "howto" / "money.md"
PRICES = ("--price", "cpu=0.10/h", "--price", "gpu=1.20/h")


def test_the_gpu_costs_less_from_a_larger_size_than_it_wins_from(write, shell):
    path = write(synthetic.sweep())
    printed = shell("crossover", path, "--of=cost", *PRICES)
    assert printed.err == "CPU: 0.100 an hour.\nGPU: 1.20 an hour.\n"
    text = " ".join(printed.out.split())
    assert "From which network size does a GPU cost less?" in text
    assert "the CPU costs 4.26 times as much: 2.07e-5 an epoch on the CPU" in text
    assert "from which size the gpu trains disc networks more cheaply than the cpu" in text.lower()
    # A row of the file has no result, and so no quotient.
    assert "what makes the cost" in shell("why", path, "--of=cost", *PRICES).out
    table = ("crossover", path, "--format=json")
    times, costs = (json.loads(shell(*table, *more).out) for more in ((), ("--of=cost", *PRICES)))
    sizes = [tables[0]["rows"][0]["crossover"] for tables in (times, costs)]
    assert sizes[1] > 5 * sizes[0]
    for time, cost in zip(times[1]["rows"], costs[1]["rows"], strict=True):
        assert cost["speed_up"] == pytest.approx(time["speed_up"] / 12, rel=1e-3)
        assert cost["gpu_money"] == pytest.approx(time["gpu_seconds"] * 1.2 / 3600, rel=1e-6)
    million = json.loads(shell(*table, "--of=cost-per-million-samples", *PRICES).out)
    epoch, samples = costs[1]["rows"][0]["gpu_money"], synthetic.ROWS["disc"]
    assert million[1]["rows"][0]["gpu_money"] == pytest.approx(epoch / samples * 1e6)


def test_a_file_of_prices_is_that_of_the_docs(write, shell, tmp_path):
    (example,) = re.findall(r"```json\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    prices = tmp_path / "prices.json"
    prices.write_text(example, "utf-8")
    flags = ("crossover", write(synthetic.sweep()), "--of=cost")
    assert shell(*flags, "--price", prices, "--price=gpu=1.20/h").err.splitlines() == [
        "CPU: 0.100 an hour (a provider, 2 cores, 2026-11-26).",
        "GPU: 1.20 an hour.",
        "GPU: bought for 2,000, it costs less than rented after 1,667 hours of use.",
    ]
    bought = shell(*flags, "--price", prices).err.splitlines()
    assert bought[1] == "GPU: 0.333 an hour, bought for 2,000 (a shop)."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cpu=0.10", "--price: cpu=0.10 is no price; say cpu=0.10/h, gpu=1.20/h"),
        ("gpu=-1/h", "gpu=-1/h: per_hour is -1, and must be a number above 0"),
        ("gpu=1e99/h", "must be a number above 0 and below 1e12"),
        ("gpu=2000/0y", "gpu=2000/0y: years is 0, and must be a number above 0"),
        ("none.json", "none.json: No such file or directory; say cpu="),
        ("{", "is not JSON: "),
        ('{"for": "gpu"}', "holds no list of prices"),
        ('[{"for": "tpu", "per_hour": 1}]', 'has no "for": "cpu" or "gpu"'),
        ('[{"for": "gpu", "cost": 1}]', "has a key that is not known, cost; the keys are for, "),
        ('[{"for": "gpu", "per_hour": "much"}]', "per_hour is much, and must be a number"),
        ('[{"for": "gpu", "purchase": 1}]', "needs per_hour alone, or purchase with years"),
        ('[{"for": "gpu", "per_hour": 1, "years": 1}]', "needs per_hour alone, or purchase"),
    ],
)
def test_what_is_no_price_is_said(write, shell, tmp_path, text, why):
    if text[0] in "[{":
        (tmp_path / "prices.json").write_text(text)
        text = tmp_path / "prices.json"
    flags = ("crossover", write(synthetic.sweep()), "--of=cost", f"--price={text}")
    assert why in shell(*flags, code=2).err


def test_costs_need_prices_and_prices_costs(write, shell):
    path = write(synthetic.sweep())
    assert "--of=cost needs --price, of the gpu: say" in (
        shell("crossover", path, "--of=cost", "--price=cpu=1/h", code=2).err
    )
    assert "--price is of costs; say --of=cost, too" in (
        shell("crossover", path, "--price=cpu=1/h", code=2).err
    )
    assert "cheaper" in shell("compare", path, path, "--of=cost", *PRICES).out


def test_a_cost_is_of_one_operation_where_a_repetition_has_many(read):
    file = read(synthetic_probes.everything())
    priced = in_quantity(with_costs(file, read_prices("cpu=3600/h")), QUANTITIES["cost"])
    times = {row.name: row for row in file.rows}
    products = [row for row in priced.rows if row.family == "Gemm" and not row.failure]
    assert products
    for row in products:
        time = times[row.name]
        assert time.count > 1
        assert row.median == pytest.approx(time.median / time.count)
