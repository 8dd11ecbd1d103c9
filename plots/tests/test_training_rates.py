# SPDX-License-Identifier: Apache-2.0
"""What others published of training on one GPU, from plots/reference."""

import csv
from urllib.parse import urlsplit

import pytest

from plots.features.predict.data import RATES_PATH, load_training_rates

YEARS = range(2007, 2027)  # CUDA is of 2007


def is_address(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" and "." in parts.netloc and len(parts.path) > 1


def is_at_a_commit(url: str) -> bool:
    """Whether a file of a repository is named with the commit that it was read at."""
    folders = urlsplit(url).path.split("/")
    return "blob" not in folders or len(folders[folders.index("blob") + 1]) == 40


@pytest.fixture(scope="module")
def rates():
    return load_training_rates()


def test_rates_are_of_the_networks_here(rates):
    assert len(rates) > 20 and {one.network for one in rates} == {"resnet-50", "alexnet-owt"}
    for one in rates:
        assert is_address(one.source_url) and is_at_a_commit(one.source_url)
        assert one.precision in ("f32", "tf32", "f16") and one.what in ("step", "forward-backward")
        assert one.data in ("synthetic", "images", "unstated") and one.year in YEARS
        # An image of 224² takes at least 3.7 · 10⁹ multiply-adds forward in ResNet-50, 0.6 · 10⁹ in
        # the narrower AlexNet, and twice that backward; no GPU here does 10¹⁵ operations in f16.
        operations = 6 * (3.7e9 if one.network == "resnet-50" else 0.6e9)
        assert 1e11 < operations * one.samples_per_second < 1e15, one
        assert one.seconds_per_batch == pytest.approx(one.batch / one.samples_per_second)
        assert one.differs or one.network == "resnet-50"
    lines = list(csv.DictReader(RATES_PATH.read_text(encoding="utf-8").splitlines()))
    assert len(lines) == len(rates) and {line["gpus"] for line in lines} == {"1"}


def test_no_rate_stands_twice(rates):
    told = [(one.card_name, one.batch, one.precision, one.framework, one.network) for one in rates]
    assert len(told) == len(set(told))


def test_cards_are_faster_in_fewer_bits(rates):
    """Of one card, framework and source, in the same kind of runs: AMP over TF32 or f32."""
    compared = 0
    for half in (one for one in rates if one.precision == "f16"):
        plain = [
            one
            for one in rates
            if one.card_name == half.card_name
            and one.framework.split(",")[0] == half.framework.split(",")[0]
            and one.precision != "f16"
        ]
        for one in plain:
            compared += 1
            assert 1 < half.samples_per_second / one.samples_per_second < 4, (half, one)
    assert compared > 20
