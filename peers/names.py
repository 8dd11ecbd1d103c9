# SPDX-License-Identifier: Apache-2.0
"""Rows by name: what bench's are, and which of a peer's do the same work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Configuration = dict[str, str]

FAMILIES = ("Epoch", "Minibatch", "Gemm", "Copy")
TRAINING = ("Epoch", "Minibatch")
PRECISIONS = ("f32", "bf16")
OF_IMAGES = ("alexnet-r", "alexnet-s", "resnet-56", "resnet-50")
DEVICES = {"cpu": "torch-cpu", "cuda": "torch-cuda"}
LAYOUTS = ("default", "channels-last")
MODES = ("eager", "compile", "graph")
PAGES = ("default", "huge")

# Axes of a peer's own, which stand before the threads in names, with the value that goes unsaid.
_OWN = {"layout": "default", "compiler": "none", "pages": "default"}
# How bench computes; a peer's row that does the same work is one for all of its ways.
_WAYS = ("execution", "data", "products", "cudnn", *_OWN)


@dataclass(frozen=True)
class Wanted:
    """Which of a peer's rows are to be measured; the first layout is that of other networks."""

    devices: tuple[str, ...] = ("cpu", "cuda")
    layouts: tuple[str, ...] = LAYOUTS
    modes: tuple[str, ...] = ("eager",)
    pages: tuple[str, ...] = ("default",)


def name_of(configuration: Configuration) -> str:
    """The row's name: {"family": "Epoch", "model": "disc-2"} -> "Epoch/model:disc-2"."""
    rest = (f"{key}:{value}" for key, value in configuration.items() if key != "family")
    return "/".join([configuration["family"], *rest])


def configuration_of(name: str) -> Configuration:
    """What name_of() was made from; ValueError where it is the name of no row."""
    family, *pairs = name.split("/")
    configuration = {"family": family}
    for pair in pairs:
        key, colon, value = pair.partition(":")
        if not colon or not key:
            raise ValueError(f"{name!r} is not the name of a row: {pair!r} is no key:value")
        configuration[key] = value
    return configuration


def counterparts(ours: Configuration, wanted: Wanted) -> list[Configuration]:
    """The rows of PyTorch that do the work of a row of bench's, plainest first; none where it has
    no such thing: other families, precisions without a setting of their own, cold products,
    summed gradients, losses waited for step by step."""
    device = ours.get("device", "")
    family = ours["family"]
    if (
        family not in FAMILIES
        or device not in wanted.devices
        or ours.get("precision", "f32") not in PRECISIONS
        or ours.get("cache", "warm") != "warm"
        or "accumulate" in ours
        or "loss" in ours
    ):
        return []
    return [_completed(ours, device, own) for own in _ways(ours, device, wanted)]


def _ways(ours: Configuration, device: str, wanted: Wanted) -> Iterator[Configuration]:
    if ours["family"] == "Copy":
        yield {}
        return
    trains = ours["family"] in TRAINING
    layouts = wanted.layouts if trains and ours["model"] in OF_IMAGES else ("default",)
    modes = wanted.modes if trains else ("eager",)
    pages = wanted.pages if device == "cpu" else ("default",)
    for mode in modes:
        if mode == "graph" and device != "cuda":
            continue
        for layout in layouts:
            for page in pages:
                yield {
                    "execution": "graph" if mode == "graph" else "eager",
                    "layout": layout,
                    "compiler": "inductor" if mode == "compile" else "none",
                    "pages": page,
                }


def _completed(ours: Configuration, device: str, own: Configuration) -> Configuration:
    """In the order of names: that of `ours`, with what is its own before the threads."""
    theirs: Configuration = {}
    for key, value in ours.items():
        if key == "cpu_threads":
            theirs |= _said(own)
        if key == "device":
            theirs["device"] = DEVICES[device]
            if "execution" in own:
                theirs["execution"] = own["execution"]
        elif key not in _WAYS:
            theirs[key] = value
        elif key == "data":
            theirs["data"] = "resident"
    if "cpu_threads" not in ours:
        theirs |= _said(own)
    return theirs


def _said(own: Configuration) -> Configuration:
    return {key: own[key] for key, unsaid in _OWN.items() if own.get(key, unsaid) != unsaid}
