# SPDX-License-Identifier: Apache-2.0
"""The cards that a command line asks for."""

import argparse

from plots.core.cards import CARDS_PATH, Card, load_cards
from plots.core.cost import CostError
from plots.core.published import RESTORE
from plots.text import printable


def add_gpu(parser: argparse.ArgumentParser, default: str | None = "") -> None:
    """Adds --gpu, the cards to predict; without a default none is."""
    said = "four that span the market" if default is not None else "none; those four if empty"
    parser.add_argument(
        "--gpu",
        metavar="CARD,...",
        default=default,
        help=f"cards to predict, as predict --gpus lists them (default: {said})",
    )


def chosen_cards(names: str) -> tuple[Card, ...]:
    """The cards of --gpu; raises CostError for one that is not known, OSError without the file."""
    from plots.features.predict.analysis import DEFAULT_CARDS  # noqa: PLC0415

    cards = load_cards()
    wanted = [name.strip() for name in names.split(",")] if names else list(DEFAULT_CARDS)
    if "" in wanted:
        raise CostError(f"--gpu={printable(names, 40)}: there is an empty name; leave it out")
    unknown = [name for name in wanted if name not in cards]
    if unknown:
        raise CostError(
            f"--gpu={printable(unknown[0], 40)}: no such card; there are {', '.join(cards)}"
        )
    return tuple(cards[name] for name in dict.fromkeys(wanted))


def said(error: Exception) -> str:
    """What went wrong, with its remedy."""
    if isinstance(error, OSError):
        return f"{printable(str(error.filename or CARDS_PATH))}: {error.strerror}; {RESTORE}"
    return str(error)
