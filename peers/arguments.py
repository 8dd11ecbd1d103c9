# SPDX-License-Identifier: Apache-2.0
"""Command lines: which of a peer's rows are wanted. All other arguments are bench's."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from peers.document import PEER_FLAGS
from peers.names import DEVICES, LAYOUTS, MODES, PAGES, Wanted

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "build" / "bench"

REFUSED = {
    "--data": "PyTorch's side trains on generated data; leave out --data",
    "--budget": "--budget plans the time of bench alone; leave it out, or --with-peers",
}


def add_wanted(parser: argparse.ArgumentParser) -> None:
    """The flags from which wanted() follows."""
    parser.add_argument(
        "--devices", default=",".join(DEVICES), help="cpu, cuda (default: those that both have)"
    )
    parser.add_argument(
        "--layout",
        default=",".join(LAYOUTS),
        help="of images: default, channels-last (default: both)",
    )
    parser.add_argument(
        "--mode",
        default="eager",
        help="eager, compile (torch.compile), graph (a CUDA graph of each step; default: eager)",
    )
    parser.add_argument(
        "--pages",
        default="default",
        help="of PyTorch's memory on the CPU: default, huge (default: default)",
    )
    parser.add_argument(
        "--bench", type=Path, default=BENCH, help="the built program (default: build/bench)"
    )


def wanted(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Wanted:
    """Ends the program with a sentence where a value is none."""

    def values(flag: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
        given = tuple(dict.fromkeys(text.split(",")))
        for value in given:
            if value not in known:
                parser.error(f"--{flag}={text}: choose from {', '.join(known)}")
        return given

    return Wanted(
        devices=values("devices", options.devices, tuple(DEVICES)),
        layouts=values("layout", options.layout, LAYOUTS),
        modes=values("mode", options.mode, MODES),
        pages=values("pages", options.pages, PAGES),
    )


def peer_words(arguments: Sequence[str]) -> tuple[str, ...]:
    """Those of `arguments` that choose a peer's rows."""
    return tuple(word for word in arguments if word.partition("=")[0] in PEER_FLAGS)


# Variables that keep threads spinning for ever, with the values that do.
_SPINS = {
    "OMP_WAIT_POLICY": ("active",),
    "GOMP_SPINCOUNT": ("infinite", "infinity"),
    "KMP_BLOCKTIME": ("infinite",),
}


def require_rest(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Ends the program where the side that waits would take the other's cores."""
    for name, values in _SPINS.items():
        if environment.get(name, "").lower() in values:
            parser.error(
                f"{name}={environment[name]} keeps the threads of one side spinning while the "
                "other computes; unset it"
            )


def refuse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Ends the program where a flag of bench's has no meaning here."""
    for word in arguments:
        if reason := REFUSED.get(word.partition("=")[0]):
            parser.error(reason)
