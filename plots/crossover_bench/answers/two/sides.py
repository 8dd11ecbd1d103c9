# SPDX-License-Identifier: Apache-2.0
"""Which rows of another program's benchmarks are the CPU's and which the GPU's, and which of them
do the same work."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crossover_bench.answers.two.naming import (
    Name,
    common_words,
    device_of,
    parse,
    speaks,
    without_sides,
    words_of,
)
from crossover_bench.curves.problem import SIDES, Device
from crossover_bench.files.google_benchmark import Timing
from crossover_bench.words.text import counted, listed, printable

_SHOWN = 60  # characters of a name
_MOST = 4  # names in a sentence


class AskError(ValueError):
    """What is not clear from files, in a sentence that ends with the flags that would tell."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user says: which rows are the `cpu`'s and the `gpu`'s, which number is the `size`,
    and which rows are what brings data there `once`."""

    cpu: re.Pattern[str] | None = None
    gpu: re.Pattern[str] | None = None
    size: str = ""
    once: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A row with its parsed `name`. `rest` are the words of its name that do not speak of the
    device: rows with the same do the same work. `way` names how."""

    timing: Timing
    name: Name
    device: Device | None = None
    rest: tuple[str, ...] = ()
    way: str = ""


def items_of(timings: Iterable[Timing]) -> list[Item]:
    """Each of `timings` with its name parsed."""
    return [Item(timing, parse(timing.name, timing.threads)) for timing in timings]


def with_sides(items: Sequence[Item], wanted: Wanted) -> list[Item]:
    """`items` that have a side, with it; raises AskError where a side has none."""
    asked = {"cpu": wanted.cpu, "gpu": wanted.gpu}
    sided = _by_words(items) if None in asked.values() else [*items]
    for device in SIDES:
        if pattern := asked[device]:
            sided = _by_pattern(sided, device, pattern, is_other_asked=all(asked.values()))
    if wanted.cpu or wanted.gpu:
        sided = _others(sided, asked)
    kept = [item for item in sided if item.device]
    for device in SIDES:
        if not _has(kept, device):
            raise AskError(_unclear(items, device))
    return kept


def _named(item: Item, device: Device, words: Sequence[str], way: str) -> Item:
    rest = tuple(word.lower() for word in without_sides(words, device))
    return replace(item, device=device, rest=rest, way=way)


# ---- by the words for devices


def _by_words(items: Sequence[Item]) -> list[Item]:
    """By what differs in names; of names without such words by that of files, then of programs."""
    texts = {item.name.text: item.name.words for item in items}
    common = common_words(texts.values())
    files = _tellers(items, lambda item: item.timing.source.path.stem)
    programs = _tellers(items, lambda item: Path(item.timing.source.executable).name)
    sided = []
    for item in items:
        words = [word for word in item.name.words if word.lower() not in common]
        device = item.timing.device or device_of(words)
        if device or speaks(words):  # or of both: a copy from host to device
            sided.append(_named(item, device, item.name.words, item.name.text) if device else item)
            continue
        source = item.timing.source
        name = Path(source.executable).name
        for way, known in ((source.path.stem, files), (name, programs)):
            if device := known.get(way):
                rest = _lower(item.name.words)
                sided.append(replace(item, device=device, rest=rest, way=way))
                break
        else:
            sided.append(item)
    if any(item.timing.device == "gpu" for item in items) and not _has(sided, "cpu"):
        return [
            item if item.device else _named(item, "cpu", item.name.words, item.name.text)
            for item in sided
        ]  # what nvbench measured is the GPU's
    return sided


def _has(items: Sequence[Item], device: Device) -> bool:
    return any(item.device == device for item in items)


def _tellers(items: Sequence[Item], of: Callable[[Item], str]) -> dict[str, Device]:
    """Names of files or programs that speak of a device by what differs in them."""
    words = {name: words_of(name) for name in dict.fromkeys(map(of, items))}
    common = common_words(words.values())
    known = {}
    for name, each in words.items() if len(words) > 1 else ():
        if device := device_of(word for word in each if word.lower() not in common):
            known[name] = device
    return known


def _lower(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)


# ---- by the user's patterns


def _by_pattern(
    items: Sequence[Item], device: Device, pattern: re.Pattern[str], is_other_asked: bool
) -> list[Item]:
    """`items` of which those that `pattern` matches are of `device`: by names, or where it matches
    none of these by files, or by programs."""
    ways: tuple[Callable[[Item], str], ...] = (
        lambda item: item.timing.name,
        lambda item: item.timing.source.path.name,
        lambda item: Path(item.timing.source.executable).name,
    )
    for place, text in enumerate(ways):
        if not any(pattern.search(text(item)) for item in items):
            continue
        return [
            _matched(item, device, pattern, "" if place == 0 else text(item), is_other_asked)
            if pattern.search(text(item))
            else (replace(item, device=None) if item.device == device else item)
            for item in items
        ]
    raise AskError(
        f"--{device}={printable(pattern.pattern, _SHOWN)!r} matches no row; rows are called "
        f"{_names(items)}"
    )


def _matched(
    item: Item, device: Device, pattern: re.Pattern[str], way: str, is_other_asked: bool
) -> Item:
    if item.device and item.device != device and is_other_asked:
        raise AskError(
            f'row "{printable(item.timing.name, _SHOWN)}" matches --cpu and --gpu; let each match '
            "the rows of its side alone"
        )
    if way:
        return replace(item, device=device, rest=_lower(item.name.words), way=Path(way).stem)
    return _named(item, device, words_of(pattern.sub(" ", item.name.text, 1)), item.name.text)


def _others(items: Sequence[Item], asked: dict[str, re.Pattern[str] | None]) -> list[Item]:
    """Where one side is asked for, and no word tells the other: all rows that are left."""
    missing = next((device for device in SIDES if not asked[device]), None)
    if missing is None or _has(items, missing):
        return [*items]
    return [
        item if item.device else _named(item, missing, item.name.words, item.name.text)
        for item in items
    ]


# ---- what is said


def _names(items: Sequence[Item]) -> str:
    texts = [*dict.fromkeys(item.name.text for item in items)]
    shown = listed([f'"{printable(text, _SHOWN)}"' for text in texts[:_MOST]])
    return f"{shown} and {len(texts) - _MOST} others" if len(texts) > _MOST else shown


def pattern_of(text: str) -> str:
    """A regular expression for a name's text, to be written between quotes."""
    pattern = re.escape(text).replace(r"\#", r"\d+").replace("'", ".")
    return printable(pattern, 2 * _SHOWN)


def _unclear(items: Sequence[Item], device: Device) -> str:
    texts = [*dict.fromkeys(item.name.text for item in items)]
    paths = [*dict.fromkeys(item.timing.source.path.name for item in items)]
    pair = texts if len(texts) > 1 else paths if len(paths) > 1 else ["HOST", "DEVICE"]
    flags = " ".join(
        f"--{side}='{pattern_of(text)}'" for side, text in zip(SIDES, pair, strict=False)
    )
    return (
        f"which rows are the {device.upper()}'s is not clear from {counted(len(texts), 'name')}, "
        f"{_names(items)}; say so with regular expressions, such as {flags}"
    )
