# SPDX-License-Identifier: Apache-2.0
"""What is implausible about a set of graphics cards; each check says it in one line per figure.

The checks know how many cores a multiprocessor of an architecture has, what its matrix units do in
a clock (NVIDIA, CUDA C++ Programming Guide, Compute Capabilities; the whitepapers) and how wide and
fast a card's memory is, so that a figure that was copied wrongly contradicts others.
"""

import math
import re
from collections.abc import Iterator
from itertools import pairwise

from plots.core.cards import Card

GIB = 2**30
# Cores for f32 in a multiprocessor, by compute capability.
_CORES = {
    **{"3.7": 192, "5.2": 128, "6.0": 64, "6.1": 128, "7.0": 64, "7.5": 64, "8.0": 64},
    **{"8.6": 128, "8.7": 128, "8.9": 128, "9.0": 128, "10.0": 128, "12.0": 128},
}
# Operations of a multiprocessor's matrix units in a clock: f16 operands, f32 sums, dense.
_MATRIX = {
    **{"7.0": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.9": 1024},
    **{"9.0": 4096, "10.0": 8192, "12.0": 1024},
}
_ARCHITECTURES = {
    **{"3.7": "Kepler", "5.2": "Maxwell", "6.0": "Pascal", "6.1": "Pascal", "7.0": "Volta"},
    **{"7.5": "Turing", "8.0": "Ampere", "8.6": "Ampere", "8.7": "Ampere", "8.9": "Ada Lovelace"},
    **{"9.0": "Hopper", "10.0": "Blackwell", "12.0": "Blackwell"},
}
# KiB of L2 cache for each multiprocessor; since Ada Lovelace it is an order of magnitude more.
_CACHE_KIB = {
    "6.1": (90, 160),
    "7.5": (65, 130),
    "8.0": (370, 400),
    "8.7": (200, 300),
    "8.9": (550, 1050),
}
_CACHE_KIB |= {"9.0": (370, 400), "10.0": (800, 950), "12.0": (550, 1100)}
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
    """Everything that is implausible; empty where nothing is."""
    checks = (_architecture, _cores, _matrix_units, _memory_rate, _sizes, _link)
    found = [text for card in cards.values() for check in checks for text in check(card)]
    return [*found, *_lines(cards), *_same_chip(cards)]


def _architecture(card: Card) -> Iterator[str]:
    if _ARCHITECTURES[card.compute_capability] != card.architecture:
        yield f"{card.id}: {card.architecture} has no compute capability {card.compute_capability}"


def _cores(card: Card) -> Iterator[str]:
    """f32 outside the matrix units is two operations per core and clock."""
    flops, count = card.figure("f32_flops"), card.figure("multiprocessors")
    clock = card.figure("clock_hz")
    if flops and count and clock:
        expected = 2 * _CORES[card.compute_capability] * count * clock
        if not math.isclose(flops, expected, rel_tol=0.01):
            yield f"{card.id}: f32 is {flops:.4g}, its cores and clock make {expected:.4g}"


def _matrix_units(card: Card) -> Iterator[str]:
    """GeForce halves the rate with f32 sums; the boost clock of these units may be 10 % lower."""
    present = {name: card.figure(name) for name in ("tf32_flops", "bf16_flops", "f16_flops")}
    major = int(card.compute_capability.split(".")[0])
    without = card.id.startswith("gtx") or major < 7
    if (without and any(present.values())) or (major < 8 and present["bf16_flops"]):
        yield f"{card.id}: has no such matrix units"
    if major < 8 and present["tf32_flops"]:
        yield f"{card.id}: tf32 came with compute capability 8.0"
    f16, count, clock = (
        present["f16_flops"],
        card.figure("multiprocessors"),
        card.figure("clock_hz"),
    )
    if not f16 or without:
        return
    geforce = "GeForce" in card.name and card.compute_capability != "7.0"
    if count and clock:
        expected = _MATRIX[card.compute_capability] / (2 if geforce else 1) * count * clock
        if not 0.9 < f16 / expected < 1.015:
            yield f"{card.id}: f16 is {f16:.4g}, its matrix units make {expected:.4g}"
    f32 = card.figure("f32_flops")
    if f32 and f16 < 1.99 * f32:
        yield f"{card.id}: f16 on the matrix units is not twice f32"
    for name, of_f16 in (("bf16_flops", 1), ("tf32_flops", 0.5)):
        rate = present[name]
        if rate and not math.isclose(rate, of_f16 * f16, rel_tol=0.012):
            yield f"{card.id}: {name} is {rate / f16:.3f} of f16"


def _memory_rate(card: Card) -> Iterator[str]:
    """f32 operations per byte of memory: 10 of a B200, 106 of an L40S."""
    flops, rate = card.figure("f32_flops"), card.figure("memory_bytes_per_second")
    if flops and rate and not 9 < flops / rate < 110:
        yield f"{card.id}: {flops / rate:.1f} operations per byte of memory"
    width, transfers = _MEMORY.get(card.id, (0, 0))
    if rate and width and not math.isclose(rate, width / 8 * transfers, rel_tol=0.005):
        yield f"{card.id}: {rate:.4g} bytes per second of memory {width} bits wide"


def _sizes(card: Card) -> Iterator[str]:
    memory, cache = card.figure("memory_bytes"), card.figure("cache_bytes")
    sold = re.search(r"(\d+) GB", card.name)
    if sold and memory != int(sold[1]) * GIB:
        yield f"{card.id}: {(memory or 0) / GIB:.3f} GiB of memory"
    if memory and memory / GIB not in _MEMORY_GIB:
        yield f"{card.id}: {memory / GIB:.3f} GiB of memory"
    if cache and not (2**20 <= cache <= 2**27 and cache % 2**16 == 0):
        yield f"{card.id}: {cache / 2**20:.3f} MiB of L2 cache"
    count = card.figure("multiprocessors")
    if count not in (None, *range(8, 193)):
        yield f"{card.id}: {count} multiprocessors"
    low, high = _CACHE_KIB.get(card.compute_capability, (70, 130))
    if cache and count and not low < cache / count / 1024 < high:
        yield f"{card.id}: {cache / count / 1024:.0f} KiB of L2 cache for each multiprocessor"
    clock = card.figure("clock_hz")
    if clock and not 0.8e9 <= clock <= 2.7e9:
        yield f"{card.id}: {clock / 1e9:.3f} GHz"


def _link(card: Card) -> Iterator[str]:
    names = ("link_generation", "link_lanes", "link_bytes_per_second")
    generation, lanes, rate = (card.figure(name) for name in names)
    if (generation, lanes, rate) == (None, None, None):
        return
    if not (generation and lanes and rate):
        yield f"{card.id}: the link is known in part"
        return
    if generation not in _X16 or lanes not in (8, 16):
        yield f"{card.id}: PCI Express {generation} x{lanes}"
    elif not math.isclose(rate, _X16[int(generation)] * lanes / 16, rel_tol=0.001):
        yield f"{card.id}: {rate:.5g} bytes per second over PCI Express {generation} x{lanes}"
    # The first NVIDIA GPUs with generation 4 were of 2020, those with 5 of 2022.
    if generation > (3 if card.year < 2020 else 4 if card.year < 2022 else 5):
        yield f"{card.id}: PCI Express {generation} in {card.year}"
    if generation < (3 if card.year < 2020 else 4):
        yield f"{card.id}: PCI Express {generation} in {card.year}"


def _lines(cards: dict[str, Card]) -> Iterator[str]:
    for line in _LINES:
        for less, more in pairwise(cards[id] for id in line):
            for name in _RATES:
                low, high = less.figure(name), more.figure(name)
                if low and high and not low < high:
                    yield f"{name} of {less.id} is not below that of {more.id}"


def _same_chip(cards: dict[str, Card]) -> Iterator[str]:
    """An H200 is an H100 with more and faster memory."""
    less, more = cards["h100"], cards["h200"]
    for name in ("f32_flops", "tf32_flops", "bf16_flops", "f16_flops", "multiprocessors"):
        if less.figure(name) != more.figure(name):
            yield f"{name} of h100 and h200 differ"
    for name in ("memory_bytes", "memory_bytes_per_second"):
        if not (less.figure(name) or 0) < (more.figure(name) or 0):
            yield f"{name} of h100 is not below that of h200"
