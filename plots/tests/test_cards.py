# SPDX-License-Identifier: Apache-2.0
"""The graphics cards of plots/reference: every figure has a source, and contradicts no other; and
what others published of training on one GPU."""

import csv
import dataclasses
import json
import math
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from plots.core.cards import CARDS_PATH, Card, Figure, load_cards, load_units, overheads
from plots.features.predict.data import RATES_PATH, load_training_rates
from plots.tests.card_checks import complaints

REQUIRED = (
    *("gtx-980", "gtx-1080", "k80", "p100", "t4", "v100", "rtx-2080-ti", "rtx-3060", "rtx-3090"),
    *("a100", "a10", "l4", "rtx-4060", "rtx-4090", "l40s", "h100", "h200", "rtx-5090", "b200"),
)
# What a prediction cannot do without.
NEEDED = ("f32_flops", "memory_bytes_per_second", "memory_bytes", "multiprocessors", "clock_hz")


@pytest.fixture
def content():
    """The file as it is."""
    return json.loads(CARDS_PATH.read_text(encoding="utf-8"))


@pytest.fixture
def cards() -> dict[str, Card]:
    return load_cards()


def changed(cards: dict[str, Card], id: str, name: str, factor: float) -> dict[str, Card]:
    """The same with one figure multiplied."""
    figures = dict(cards[id].figures)
    old = figures[name]
    figures[name] = Figure(old.value * factor, old.source)
    return {**cards, id: dataclasses.replace(cards[id], figures=figures)}


def test_the_market_is_spanned(cards):
    assert set(REQUIRED) <= cards.keys() and len(cards) >= 22
    assert {card.kind for card in cards.values()} == {"desktop", "server", "laptop", "embedded"}
    for card in cards.values():
        assert [name for name in NEEDED if card.figure(name) is None] == [], card.id
        assert card.id == card.id.lower() and " " not in card.id
        assert "NVIDIA" in card.name and 2014 <= card.year <= datetime.now(UTC).year


def test_no_card_stands_twice(content):
    for field in ("id", "name"):
        values = [card[field] for card in content["cards"]]
        assert sorted(set(values)) == sorted(values)
    told = [json.dumps(band, sort_keys=True) for band in content["overheads"]]
    assert sorted(set(told)) == sorted(told)


def test_every_figure_has_a_unit_a_value_and_a_source(content):
    units = load_units()
    used = {"pcie"}
    for card in content["cards"]:
        for name, figure in card["figures"].items():
            assert name in units and figure.keys() <= {"value", "source", "derivation"}
            assert math.isfinite(figure["value"]) and figure["value"] > 0
            assert figure["source"] in content["sources"], (card["id"], name)
            used.add(figure["source"])
    used |= {band["source"] for name in ("overheads", "links") for band in content[name]}
    assert used == content["sources"].keys()  # and no source is there for nothing


def test_the_readme_names_every_figure_and_every_kind_of_overhead(content):
    readme = CARDS_PATH.with_name("README.md").read_text(encoding="utf-8")
    assert f"{len(content['cards'])} NVIDIA GPUs" in readme
    bands = content["overheads"] + content["links"]
    for name in (*load_units(), *(band["id"] for band in bands)):
        assert f"`{name}`" in readme, name


def test_every_source_can_be_found(content):
    for id, source in content["sources"].items():
        assert source.keys() <= {"title", "publisher", "year", "url", "quoted", "note"}, id
        assert all(source[field].strip() for field in ("title", "publisher", "quoted")), id
        assert source["url"].startswith("https://") and " " not in source["url"], id
        assert 2009 <= source["year"] <= datetime.now(UTC).year, id
    passages = [source["quoted"] for source in content["sources"].values()]
    assert sorted(set(passages)) == sorted(passages)


def test_no_source_is_older_than_its_card(cards):
    for card in cards.values():
        for name, figure in card.figures.items():
            assert figure.source.year >= card.year, (card.id, name)


def test_nothing_is_implausible(cards):
    assert complaints(cards) == []


@pytest.mark.parametrize(
    ("id", "name", "factor"),
    [
        ("h100", "bf16_flops", 2),  # with sparsity
        ("b200", "f16_flops", 2),
        ("l4", "tf32_flops", 2),
        ("rtx-4090", "f16_flops", 2),  # with f16 sums
        ("rtx-3090", "bf16_flops", 2),
        ("k80", "f32_flops", 2),  # both GPUs of the board
        ("gtx-980", "f32_flops", 1126 / 1216),  # at the base clock
        ("v100", "f32_flops", 14 / 15.7),  # the PCI Express board
        ("a100", "clock_hz", 1e-3),
        ("t4", "memory_bytes_per_second", 8),  # bits
        ("rtx-4060", "memory_bytes_per_second", 0.125),
        ("a100", "memory_bytes", 1e9 / 2**30),
        ("k80", "memory_bytes", 1.5),
        ("rtx-2080-ti", "multiprocessors", 0.5),  # TPCs
        ("rtx-3060", "multiprocessors", 128),  # cores
        ("l40s", "cache_bytes", 1e6 / 2**20),
        ("v100", "cache_bytes", 2),
        ("l4", "link_bytes_per_second", 2),  # both directions
        ("rtx-4060", "link_lanes", 2),
        ("h100", "link_generation", 0.8),
        ("rtx-3080", "memory_bytes_per_second", 0.3),  # slower than an RTX 3060
        ("h200", "memory_bytes_per_second", 0.6),  # less than an H100's
    ],
)
def test_a_wrong_figure_is_noticed(cards, id, name, factor):
    assert any(id in text for text in complaints(changed(cards, id, name, factor)))


def test_a_card_of_another_architecture_is_noticed(cards):
    wrong = dataclasses.replace(cards["l4"], compute_capability="8.6")
    found = complaints({**cards, "l4": wrong})
    assert "l4: Ada Lovelace has no compute capability 8.6" in found


@pytest.mark.parametrize(("id", "name"), [("gtx-1660-ti", "f16_flops"), ("v100", "bf16_flops")])
def test_matrix_units_that_a_card_has_not_are_noticed(cards, id, name):
    figures = {**cards[id].figures, name: cards["a100"].figures[name]}
    wrong = dataclasses.replace(cards[id], figures=figures)
    assert any("matrix units" in text for text in complaints({**cards, id: wrong}))


def test_what_is_unknown_is_none(cards):
    assert cards["gtx-980"].figure("bf16_flops") is None
    assert cards["gtx-980"].source("bf16_flops") is None
    assert cards["jetson-agx-orin"].figure("link_bytes_per_second") is None
    source = cards["a100"].source("tf32_flops")
    assert source and (source.id, source.year) == ("a100-whitepaper", 2020)
    assert cards["a100"].figure("tf32_flops") == 156e12


def test_the_link_follows_from_the_line_code(cards):
    linked = [card for card in cards.values() if card.figure("link_lanes")]
    assert len(linked) >= 20
    for card in linked:
        gigatransfers = {3: 8e9, 4: 16e9, 5: 32e9}[int(card.figure("link_generation"))]
        expected = gigatransfers * 128 / 130 / 8 * card.figure("link_lanes")
        assert card.figure("link_bytes_per_second") == pytest.approx(expected, rel=1e-9)


def test_overheads_are_bands_of_plausible_seconds(content):
    kinds = {band["id"] for band in content["overheads"]}
    assert {"launch", "graph_node", "wait", "small_copy", "framework_operation"} <= kinds
    for kind in kinds:
        for band in overheads(kind):
            least = 1e-9 if kind == "product_inner" else 1e-7
            assert least < band.low_seconds <= band.high_seconds < 1e-3, (kind, band.source.id)
            assert band.note and band.source.url
            depends = kind in ("graph_node", "product_inner")
            assert bool(band.compute_capability) == depends, (kind, band.source.id)
    assert overheads("no such kind") == []


def test_a_node_of_a_graph_takes_less_than_a_launch_and_that_less_than_a_wait():
    nodes = [one for one in overheads("graph_node") if one.source.id == "gpu-benches-graph"]
    launch = next(band for band in overheads("launch") if band.source.id == "gpu-benches")
    assert all(node.high_seconds < launch.low_seconds for node in nodes)
    assert all(band.low_seconds > launch.high_seconds for band in overheads("wait"))
    for one in overheads("product_inner"):
        assert 10 * one.low_seconds < min(node.low_seconds for node in nodes)


def test_a_missing_file_is_an_os_error(tmp_path):
    for read in (load_cards, load_units, lambda path: overheads("launch", path)):
        with pytest.raises(OSError, match="no-cards"):
            read(tmp_path / "no-cards.json")


# --- what others published of training on one GPU


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
