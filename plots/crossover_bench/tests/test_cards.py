# SPDX-License-Identifier: Apache-2.0
"""The graphics cards of reference: every figure has a source, and contradicts no other; and
what others published of training on one GPU.

The checks know how many cores a multiprocessor of an architecture has, what its matrix units do in
a clock (NVIDIA, CUDA C++ Programming Guide, Compute Capabilities; the whitepapers) and how wide and
fast a card's memory is, so that a figure that was copied wrongly contradicts others.
"""

import dataclasses
import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from crossover_bench.answers.predict.data import RATES_PATH
from crossover_bench.counts import cards as reference
from crossover_bench.counts.cards import (
    CARDS_PATH,
    NVIDIA,
    Card,
    load_cards,
    load_others,
    overheads,
)
from crossover_bench.counts.reference import lines_of

GIB = 2**30
# By compute capability the architecture, cores for f32 in a multiprocessor, and operations of its
# matrix units in a clock: f16 operands, f32 sums, dense.
_ARCHITECTURES = {
    **{"3.7": ("Kepler", 192, 0), "5.2": ("Maxwell", 128, 0), "6.0": ("Pascal", 64, 0)},
    **{"6.1": ("Pascal", 128, 0), "7.0": ("Volta", 64, 1024), "7.5": ("Turing", 64, 1024)},
    **{"8.0": ("Ampere", 64, 2048), "8.6": ("Ampere", 128, 1024), "8.7": ("Ampere", 128, 0)},
    **{"8.9": ("Ada Lovelace", 128, 1024), "9.0": ("Hopper", 128, 4096)},
    **{"10.0": ("Blackwell", 128, 8192), "12.0": ("Blackwell", 128, 1024)},
}
# KiB of L2 cache for each multiprocessor; since Ada Lovelace it is an order of magnitude more.
_CACHE_KIB = {
    **{"6.1": (90, 160), "7.5": (65, 130), "8.0": (370, 400), "8.7": (200, 300)},
    **{"8.9": (550, 1050), "9.0": (370, 400), "10.0": (800, 950), "12.0": (550, 1100)},
}
# Bytes per second of x16 in one direction, as NVIDIA prints it (A100 whitepaper) or doubles it.
_X16 = {3: 15.75e9, 4: 31.5e9, 5: 63e9}
_MEMORY_GIB = {4, 6, 8, 10, 11, 12, 16, 24, 32, 40, 48, 64, 80, 141, 180}
# Width of the memory in bits, and transfers of a bit per second: the second way to its rate.
_MEMORY = {
    **{"gtx-980": (256, 7e9), "gtx-1080": (256, 10e9), "gtx-1080-ti": (352, 11e9)},
    **{"k80": (384, 5e9), "p100": (4096, 1.406e9), "v100": (4096, 1.755e9), "t4": (256, 10e9)},
    **{"rtx-2080-ti": (352, 14e9), "gtx-1660-ti": (192, 12e9), "rtx-3060": (192, 15e9)},
    **{"rtx-3080": (320, 19e9), "rtx-3090": (384, 19.5e9), "rtx-a6000": (384, 16e9)},
    **{"a10": (384, 12.5e9), "a100": (5120, 2.43e9), "rtx-4060": (128, 17e9)},
    **{"rtx-4060-laptop": (128, 16e9), "rtx-4070": (192, 21e9), "rtx-4090": (384, 21e9)},
    **{"l4": (192, 12.5e9), "l40s": (384, 18e9), "h100": (5120, 5.238e9)},
    **{"rtx-5090": (512, 28e9), "jetson-agx-orin": (256, 6.4e9), "jetson-orin-nano": (128, 6.4e9)},
}
# Each is faster than the one before it in every rate that both have.
_LINES = [
    ("gtx-980", "gtx-1080", "gtx-1080-ti", "rtx-2080-ti", "rtx-3090", "rtx-4090", "rtx-5090"),
    ("rtx-3060", "rtx-3080", "rtx-3090"),
    ("rtx-4060-laptop", "rtx-4060", "rtx-4070", "rtx-4090"),
    ("k80", "p100", "v100", "a100", "h100", "b200"),
    ("a10", "l40s"),
    ("l4", "l40s"),
]
_RATES = ("f32_flops", "tf32_flops", "bf16_flops", "f16_flops", "memory_bytes_per_second")


def complaints(cards: dict[str, Card]) -> list[str]:
    """What is implausible, a line each: figures that contradict each other, the architecture, or
    the other cards."""
    return [text for check in (_arithmetic, _memory, _link, _lines) for text in check(cards)]


def _arithmetic(cards: dict[str, Card]) -> Iterator[str]:
    for card in cards.values():
        capability = card.compute_capability
        major = int(capability.split(".")[0])
        f32, tf32, bf16, f16, _ = map(card.figure, _RATES)
        count, clock = map(card.figure, ("multiprocessors", "clock_hz"))
        architecture, cores, units = _ARCHITECTURES[capability]
        if architecture != card.architecture:
            yield f"{card.id}: {card.architecture} has no compute capability {capability}"
        made = 2 * cores * count * clock  # two operations a core and clock
        if not math.isclose(f32, made, rel_tol=0.01):
            yield f"{card.id}: f32 is {f32:.4g}, its cores and clock make {made:.4g}"
        without = card.id.startswith("gtx") or major < 7
        if (without and (tf32 or bf16 or f16)) or (major < 8 and (tf32 or bf16)):
            yield f"{card.id}: has no such matrix units"
        if f16 and not without:
            # GeForce halves the rate with f32 sums; these units' boost clock may be 10 % lower.
            geforce = "GeForce" in card.name and capability != "7.0"
            made = units / (2 if geforce else 1) * count * clock
            if not 0.9 < f16 / made < 1.015:
                yield f"{card.id}: f16 is {f16:.4g}, its matrix units make {made:.4g}"
            if f16 < 1.99 * f32:
                yield f"{card.id}: f16 on the matrix units is not twice f32"
            for name, rate, of_f16 in (("bf16", bf16, 1), ("tf32", tf32, 0.5)):
                if rate and not math.isclose(rate, of_f16 * f16, rel_tol=0.012):
                    yield f"{card.id}: {name} is {rate / f16:.3f} of f16"
        if not 0.8e9 <= clock <= 2.7e9:
            yield f"{card.id}: {clock / 1e9:.3f} GHz"


def _memory(cards: dict[str, Card]) -> Iterator[str]:
    for card in cards.values():
        f32, rate = map(card.figure, (_RATES[0], _RATES[-1]))
        memory, cache, count = map(card.figure, ("memory_bytes", "cache_bytes", "multiprocessors"))
        if not 9 < f32 / rate < 110:  # 10 of a B200, 106 of an L40S
            yield f"{card.id}: {f32 / rate:.1f} operations per byte of memory"
        width, transfers = _MEMORY.get(card.id, (0, 0))
        if width and not math.isclose(rate, width / 8 * transfers, rel_tol=0.005):
            yield f"{card.id}: {rate:.4g} bytes per second of memory {width} bits wide"
        sold = re.search(r"(\d+) GB", card.name)
        if memory / GIB not in _MEMORY_GIB or (sold and memory != int(sold[1]) * GIB):
            yield f"{card.id}: {memory / GIB:.3f} GiB of memory"
        if cache and not (2**20 <= cache <= 2**27 and cache % 2**16 == 0):
            yield f"{card.id}: {cache / 2**20:.3f} MiB of L2 cache"
        if count not in range(8, 193):
            yield f"{card.id}: {count} multiprocessors"
        low, high = _CACHE_KIB.get(card.compute_capability, (70, 130))
        if cache and not low < cache / count / 1024 < high:
            yield f"{card.id}: {cache / count / 1024:.0f} KiB of L2 cache for each multiprocessor"


def _link(cards: dict[str, Card]) -> Iterator[str]:
    names = ("link_generation", "link_lanes", "link_bytes_per_second")
    for card in cards.values():
        generation, lanes, rate = known = [card.figure(name) for name in names]
        if not any(known):
            continue
        if not all(known):
            yield f"{card.id}: the link is known in part"
            continue
        link = f"{card.id}: PCI Express {generation} x{lanes} of {card.year}"
        # The first NVIDIA GPUs with generation 4 were of 2020, those with 5 of 2022.
        newest = 3 if card.year < 2020 else 4 if card.year < 2022 else 5
        if generation not in range(min(newest, 4), newest + 1) or lanes not in (8, 16):
            yield link
        elif not math.isclose(rate, _X16[int(generation)] * lanes / 16, rel_tol=0.001):
            yield f"{link} with {rate:.5g} bytes per second"


def _lines(cards: dict[str, Card]) -> Iterator[str]:
    for line in _LINES:
        for less, more in pairwise(cards[id] for id in line):
            for name in _RATES:
                low, high = less.figure(name), more.figure(name)
                if low and high and not low < high:
                    yield f"{name} of {less.id} is not below that of {more.id}"
    # An H200 is an H100 with more and faster memory.
    h100, h200 = cards["h100"].figure, cards["h200"].figure
    for name in (*_RATES[:-1], "multiprocessors"):
        if h100(name) != h200(name):
            yield f"{name} of h100 and h200 differ"
    for name in ("memory_bytes", "memory_bytes_per_second"):
        if not h100(name) < h200(name):
            yield f"{name} of h100 is not below that of h200"


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
    figures = {**cards[id].figures, name: cards[id].figures[name] * factor}
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
        values = [card[field] for card in (*content["cards"], *content["others"])]
        assert sorted(set(values)) == sorted(values)
    told = [json.dumps(band, sort_keys=True) for band in content["overheads"]]
    assert sorted(set(told)) == sorted(told)


def test_every_figure_has_a_unit_a_value_and_a_source(content):
    units = content["units"]
    used = {"pcie"}
    for card in (*content["cards"], *content["others"]):
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
    assert f"{len(content['others'])} GPUs of other makers" in readme
    bands = content["overheads"] + content["links"]
    for name in (*content["units"], *(band["id"] for band in bands)):
        assert f"`{name}`" in readme, name


def test_every_source_can_be_found(content):
    for id, source in content["sources"].items():
        assert source.keys() <= {"title", "publisher", "year", "url", "quoted", "note"}, id
        assert all(source[field].strip() for field in ("title", "publisher", "quoted")), id
        assert source["url"].startswith("https://") and " " not in source["url"], id
        assert 2009 <= source["year"] <= datetime.now(UTC).year, id
    passages = [source["quoted"] for source in content["sources"].values()]
    assert sorted(set(passages)) == sorted(passages)


def test_no_source_is_older_than_its_card(content):
    for card in (*content["cards"], *content["others"]):
        for name, figure in card["figures"].items():
            assert content["sources"][figure["source"]]["year"] >= card["year"], (card["id"], name)


def test_cards_of_other_makers_have_what_a_step_of_pytorch_needs():
    makers = {"AMD": (64, 128), "Intel": (128,), "Apple": (128,)}  # cores of a multiprocessor
    others = load_others()
    assert {card.maker for card in others.values()} == {*makers}
    assert {card.maker for card in load_cards().values()} == {NVIDIA}
    for card in others.values():
        f32, rate, count, clock = (card.figures[name] for name in NEEDED if name != "memory_bytes")
        cores = f32 / 2 / clock / count
        assert any(math.isclose(cores, each, rel_tol=0.01) for each in makers[card.maker]), card.id
        assert 9 < f32 / rate < 110 and card.name.startswith(card.maker), card.id
        shares = card.maker == "Apple" or card.id == "radeon-8060s"  # the processor's memory
        assert shares == (card.figure("memory_bytes") is None), card.id


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
    complaint = "l4: Ada Lovelace has no compute capability 8.6"
    assert complaint in complaints({**cards, "l4": wrong})


@pytest.mark.parametrize(("id", "name"), [("gtx-1660-ti", "f16_flops"), ("v100", "bf16_flops")])
def test_matrix_units_that_a_card_has_not_are_noticed(cards, id, name):
    figures = {**cards[id].figures, name: cards["a100"].figures[name]}
    wrong = dataclasses.replace(cards[id], figures=figures)
    assert any("matrix units" in text for text in complaints({**cards, id: wrong}))


def test_what_is_unknown_is_none(cards):
    assert cards["gtx-980"].figure("bf16_flops") is None
    assert cards["jetson-agx-orin"].figure("link_bytes_per_second") is None
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
            assert least < band.low_seconds <= band.high_seconds < 1e-3, (kind, band.source)
            assert band.note
            depends = kind in ("graph_node", "product_inner")
            assert bool(band.compute_capability) == depends, (kind, band.source)
    assert overheads("no such kind") == []


def test_a_node_of_a_graph_takes_less_than_a_launch_and_that_less_than_a_wait():
    nodes = [band for band in overheads("graph_node") if band.source == "gpu-benches-graph"]
    launch = next(band for band in overheads("launch") if band.source == "gpu-benches")
    assert all(node.high_seconds < launch.low_seconds for node in nodes)
    assert all(band.low_seconds > launch.high_seconds for band in overheads("wait"))
    for band in overheads("product_inner"):
        assert 10 * band.low_seconds < min(node.low_seconds for node in nodes)


def test_a_missing_file_is_an_os_error(tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "CARDS_PATH", tmp_path / "no-cards.json")
    with pytest.raises(OSError, match="no-cards"):
        load_cards()


# --- what others published of training on one GPU


YEARS = range(2007, 2027)  # CUDA is of 2007


@pytest.fixture(scope="module")
def rates() -> list[dict[str, str]]:
    return lines_of(RATES_PATH)


def test_rates_are_of_the_networks_here(rates):
    assert len(rates) > 20 and {rate["network"] for rate in rates} == {"resnet-50", "alexnet-owt"}
    known = {
        "gpus": ("1",),
        "precision": ("f32", "tf32", "f16"),
        "what": ("step", "forward-backward"),
        "data": ("synthetic", "images", "unstated"),
    }
    for rate in rates:
        parts = urlsplit(rate["source_url"])
        folders = parts.path.split("/")
        assert parts.scheme == "https" and "." in parts.netloc and len(parts.path) > 1
        # A file of a repository is named with the commit that it was read at.
        assert "blob" not in folders or len(folders[folders.index("blob") + 1]) == 40
        assert all(rate[key] in values for key, values in known.items())
        assert int(rate["year"]) in YEARS and int(rate["batch"]) > 0
        # An image of 224² takes at least 3.7 · 10⁹ multiply-adds forward in ResNet-50, 0.6 · 10⁹ in
        # the narrower AlexNet, and twice that backward; no GPU here does 10¹⁵ operations in f16.
        operations = 6 * (3.7e9 if rate["network"] == "resnet-50" else 0.6e9)
        assert 1e11 < operations * float(rate["samples_per_second"]) < 1e15, rate
        assert rate["differs"] or rate["network"] == "resnet-50"
    keys = ("card_name", "batch", "precision", "framework", "network")
    assert len({tuple(rate[key] for key in keys) for rate in rates}) == len(rates)


def test_cards_are_faster_in_fewer_bits(rates):
    """Of one card, framework and source, in the same kind of runs: AMP over TF32 or f32."""
    of = {"f16": [], "plain": []}
    for rate in rates:
        key = (rate["card_name"], rate["framework"].split(",")[0])
        kind = "f16" if rate["precision"] == "f16" else "plain"
        of[kind].append((key, float(rate["samples_per_second"])))
    ratios = [
        half / plain for key, half in of["f16"] for other, plain in of["plain"] if key == other
    ]
    assert len(ratios) > 20 and all(1 < ratio < 4 for ratio in ratios), ratios
