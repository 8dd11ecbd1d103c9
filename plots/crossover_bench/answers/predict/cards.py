# SPDX-License-Identifier: Apache-2.0
"""The cards that a command line asks for: by name, or by what their data sheet says."""

import argparse
import difflib
import re
from collections.abc import Iterator

from crossover_bench.counts.cards import CARDS_PATH, Card, load_cards, load_others
from crossover_bench.counts.cost import CostError
from crossover_bench.counts.reference import RESTORE
from crossover_bench.words.text import printable

# What --gpu=tflops:82.6,bandwidth:1008 may say, and which figure of a card it is, in what unit.
_TERA, _GIGA = 1e12, 1e9
SHEET = {
    "tflops": ("f32_flops", _TERA),
    "bandwidth": ("memory_bytes_per_second", _GIGA),
    "tf32": ("tf32_flops", _TERA),
    "bf16": ("bf16_flops", _TERA),
    "f16": ("f16_flops", _TERA),
    "link": ("link_bytes_per_second", _GIGA),
    "multiprocessors": ("multiprocessors", 1.0),
    "watts": ("watts", 1.0),
}
_NEEDED = ("tflops", "bandwidth")
# Where a sheet does not say its multiprocessors: f32 operations per second of one of those since
# Ampere; docs/evidence/prediction.md says what difference it makes.
_OF_A_MULTIPROCESSOR = 0.55e12
_OF_NPUS = re.compile(r"\bnpu|neural engine|hexagon|xdna")
_OF_AMD = re.compile(r"\b(amd|radeon|rdna|rx[ _-]?\d)")
_NO_PART_OF_NAMES = re.compile(
    r"nvidia|geforce|tesla|amd|radeon|instinct|intel|graphics|card|gpu|[^a-z0-9]"
)


def add_gpu(parser: argparse.ArgumentParser, default: str | None = "") -> None:
    """Adds --gpu, the cards to predict; without a default none is."""
    which = "" if default is not None else ", where the file has no GPU"
    parser.add_argument(
        "--gpu",
        metavar="CARD,...",
        default=default,
        help="cards to predict, as predict --gpus lists them (4090 is enough), or one by its data "
        "sheet: f32 TFLOP/s without tensor cores, and GB/s of memory, as in "
        f"tflops:82.6,bandwidth:1008 (default: four that span the market{which})",
    )


def chosen_cards(names: str) -> tuple[Card, ...]:
    """The cards of --gpu; raises CostError for one that is not known, OSError without the file."""
    from crossover_bench.answers.predict.analysis import DEFAULT_CARDS  # noqa: PLC0415

    cards = {**load_cards(), **load_others()}
    if not names:
        return tuple(cards[name] for name in DEFAULT_CARDS)
    chosen = (_sheet(name) if ":" in name else _named(name, cards) for name in _asked(names))
    return tuple({card.id: card for card in chosen}.values())


def _asked(names: str) -> Iterator[str]:
    """Each card of the list. A data sheet is one card, although it has commas itself."""
    sheet: list[str] = []
    for part in (name.strip() for name in names.split(",")):
        if not part:
            raise CostError(f"--gpu={printable(names, 40)}: there is an empty name; leave it out")
        key = part.partition(":")[0]
        # A key that comes again begins another card.
        if sheet and (":" not in part or any(figure.startswith(f"{key}:") for figure in sheet)):
            yield ",".join(sheet)
            sheet = []
        if ":" in part:
            sheet.append(part)
        else:
            yield part
    if sheet:
        yield ",".join(sheet)


def _named(asked: str, cards: dict[str, Card]) -> Card:
    """The card of that id or name, whatever its case and punctuation, or the only one whose id
    ends so: "RTX 4090", "rtx4090" and "4090" are rtx-4090."""
    plain = _plain(asked)
    exact = [card for card in cards.values() if plain in (_plain(card.id), _plain(card.name))]
    has_number = any(char.isdigit() for char in plain)  # "Orin" alone names several
    ending = [card for card in cards.values() if has_number and _plain(card.id).endswith(plain)]
    matches = exact or ending
    if len(matches) == 1:
        return matches[0]
    problem = f"--gpu={printable(asked, 40)}: no such card"
    if _OF_NPUS.search(asked.lower()):
        raise CostError(f"{problem}: NPUs run networks, and PyTorch trains none on them")
    if _OF_AMD.search(asked.lower()):
        raise CostError(
            f"{problem} of AMD's is known; describe it as --gpu=tflops:30.7,bandwidth:960, of a "
            "Radeon RX 7000 or later by half of the TFLOP/s on its data sheet, which counts two "
            "instructions at once"
        )
    known = {_plain(card.id): card.id for card in cards.values()}
    near = [card.id for card in matches] or [id for name, id in known.items() if plain in name]
    near = near or [known[name] for name in difflib.get_close_matches(plain, known, cutoff=0.6)]
    if plain and near:
        raise CostError(f"{problem}; did you mean {' or '.join(near[:3])}?")
    raise CostError(
        f"{problem}; predict --gpus lists those that are known, and any other is described as "
        "--gpu=tflops:82.6,bandwidth:1008"
    )


def _plain(name: str) -> str:
    return _NO_PART_OF_NAMES.sub("", name.lower())


def _sheet(text: str) -> Card:
    """The card that a data sheet describes."""
    figures: dict[str, float] = {}
    place = f"--gpu={printable(text, 60)}"
    for part in text.split(","):
        key, _, number = part.partition(":")
        if key not in SHEET:
            raise CostError(f"{place}: a data sheet says {', '.join(SHEET)}, each as tflops:82.6")
        try:
            figures[key] = float(number)
        except ValueError:
            figures[key] = 0.0
        if not 1e-3 <= figures[key] <= 1e6:
            raise CostError(f"{place}: {key} needs a number, as in {key}:82.6")
    missing = [key for key in _NEEDED if key not in figures]
    if missing:
        raise CostError(f"{place}: needs {missing[0]} too, as in tflops:82.6,bandwidth:1008")
    guessed = max(1, round(figures["tflops"] * _TERA / _OF_A_MULTIPROCESSOR))
    return Card(
        id=text,
        name=f"GPU of {figures['tflops']:g} TFLOP/s, {figures['bandwidth']:g} GB/s",
        year=0,
        architecture="",
        compute_capability="",  # so that its floors are those of all architectures
        kind="desktop",
        figures={"multiprocessors": guessed}
        | {SHEET[key][0]: figure * SHEET[key][1] for key, figure in figures.items()},
    )


def problem_of(error: Exception) -> str:
    """What went wrong, with its remedy."""
    if isinstance(error, OSError):
        return f"{printable(str(error.filename or CARDS_PATH))}: {error.strerror}; {RESTORE}"
    return str(error)
