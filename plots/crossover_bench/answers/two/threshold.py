# SPDX-License-Identifier: Apache-2.0
"""Sizes from which a GPU wins, as a header to compile in or as JSON.

A file has an entry for each problem and device; writing replaces entries of the same problem and
device, and keeps the others. In a header each entry stands in a comment as well, as JSON, from
which it is read again. Texts come from files, so none may end a comment or a literal.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from crossover_bench.answers.two.answered import Answered
from crossover_bench.curves.crossover import Crossover
from crossover_bench.curves.problem import Answer
from crossover_bench.curves.problem_words import verdict
from crossover_bench.files.google_benchmark import Source
from crossover_bench.files.reading import parsed, text_of
from crossover_bench.files.refusal import BadFileError, FaultError
from crossover_bench.words.text import printable

ENDINGS = (".h", ".hpp", ".json")
_KEY = "crossover_thresholds"
_MARK = "  // entry: "
_REMEDY = "name a file that crossover two --threshold has written"
_NEVER = 2**64 - 1
_LONGEST = 200  # characters of a text
_PLAIN = " _-.,:;=<>()[]/+*"  # stands for itself in a literal

_HEADER = """\
// From which size on the device's side wins, as `crossover two --threshold` has found it: on the
// machine that each entry names, with its 95 % interval [low, high]. Where all sides were on one
// device, `answer` says which of them wins. Measure again for other machines.
#pragma once

#include <cstdint>
#include <string_view>

namespace crossover {{

struct Threshold {{
  std::string_view problem;
  std::string_view device;  // part of the name of the GPU that was measured; empty: any
  std::uint64_t size;       // it wins from this size on; NEVER: at none that was measured
}};

inline constexpr std::uint64_t NEVER = UINT64_MAX;

inline constexpr Threshold THRESHOLDS[] = {{
{entries}
}};

/// From which size the GPU called `device` (cudaDeviceProp::name) wins `problem`; `otherwise` where
/// nothing was measured on it.
constexpr std::uint64_t threshold(std::string_view problem, std::string_view device,
                                  std::uint64_t otherwise = NEVER) {{
  const Threshold* best = nullptr;
  for (const Threshold& entry : THRESHOLDS) {{
    const bool fits = device.find(entry.device) != std::string_view::npos;
    if (entry.problem == problem && fits &&
        (!best || entry.device.size() > best->device.size())) {{
      best = &entry;
    }}
  }}
  return best ? best->size : otherwise;
}}

}}  // namespace crossover
"""


@dataclass(frozen=True, slots=True)
class Threshold:
    """From which `size` on the GPU called `device` wins `problem`, in what `measure` names: 0 for
    all sizes measured, None for none. [`low`, `high`] is its 95 % interval, of which an end beyond
    the sizes measured is None; both are None where nothing is sure. `answer` says it in words,
    `machine` where it was measured."""

    problem: str
    device: str
    measure: str
    size: int | None
    low: float | None
    high: float | None
    answer: str
    machine: str


def thresholds_of(known: Iterable[Answered], device: str = "") -> list[Threshold]:
    """Those of the answers; where data is copied each time as well, as problems of their own.
    `device` is the GPU's name, for files that lack it."""
    return [
        _threshold(answer, of.asked.sources, device)
        for of in known
        for answer in (of.answer, of.copied)
        if answer
    ]


def _threshold(answer: Answer, sources: Sequence[Source], device: str) -> Threshold:
    crossover = answer.crossover
    named = device or next((of.device_name for of in sources if of.device_name), "")
    low, high = _interval(crossover)
    return Threshold(
        problem=printable(answer.problem.title, _LONGEST),
        device=printable(named, _LONGEST),
        measure=printable(answer.problem.measure, _LONGEST),
        size=_size(crossover),
        low=low,
        high=high,
        answer=verdict(answer),
        machine=printable("; ".join(dict.fromkeys(map(_machine, sources))), 2 * _LONGEST),
    )


def _interval(crossover: Crossover) -> tuple[float | None, float | None]:
    """That of a size beyond those measured begins at the largest of them, or ends at the
    smallest."""
    if crossover.kind == "always":
        return None, crossover.sizes[0]
    if crossover.kind == "never":
        return crossover.sizes[-1], None
    return crossover.low, crossover.high


def _size(crossover: Crossover) -> int | None:
    """The smallest size from which the GPU is to be taken; of an answer that is open, the one from
    which it wins at the latest."""
    told = crossover.medians or crossover
    if told.kind == "always":
        return 0
    size = told.size or (told.high if told.kind == "ambiguous" else None)
    return None if size is None else int(-(-size // 1))


def _machine(source: Source) -> str:
    facts = source.facts
    cpus = [f"{facts['num_cpus']} CPUs"] if "num_cpus" in facts else []
    keys = ("host_name", "device", "executable", "date")
    return ", ".join([*cpus, *(facts[key] for key in keys if facts.get(key))]) or source.path.name


# ---- files


def write(path: Path, thresholds: Sequence[Threshold]) -> list[Threshold]:
    """Writes `thresholds` into `path`, beside those of other problems and devices that it has;
    returns those that it had. Raises BadFileError where it is another file, and OSError."""
    before = read(path) if os.path.lexists(path) else []
    by_place = {(of.problem, of.device): of for of in (*before, *thresholds)}
    entries = [by_place[place] for place in sorted(by_place)]
    text = _as_json(entries) if path.suffix == ".json" else _as_header(entries)
    path.write_text(text, encoding="utf-8")
    return before


def _as_json(entries: Sequence[Threshold]) -> str:
    return json.dumps({_KEY: [asdict(of) for of in entries]}, indent=1, allow_nan=False) + "\n"


def _as_header(entries: Sequence[Threshold]) -> str:
    lines = []
    for of in entries:
        lines.append(_MARK + json.dumps(asdict(of), allow_nan=False))
        size = "NEVER" if of.size is None else f"{min(of.size, _NEVER - 1)}u"
        lines.append(f"  {{{_literal(of.problem)}, {_literal(of.device)}, {size}}},")
    return _HEADER.format(entries="\n".join(lines))


def _literal(text: str) -> str:
    """A literal of C++: what is not plain ASCII in octal digits, of which there are three, so that
    nothing behind them is taken for one more."""

    def written(character: str) -> str:
        if character.isascii() and (character.isalnum() or character in _PLAIN):
            return character
        return "".join(f"\\{byte:03o}" for byte in character.encode())

    return '"' + "".join(map(written, text)) + '"'


def read(path: Path) -> list[Threshold]:
    """What write() has written into `path`; raises BadFileError."""
    try:
        text = text_of(path, _REMEDY)
        if path.suffix == ".json":
            document = parsed(text, _REMEDY)
            entries = document.get(_KEY) if isinstance(document, dict) else None
        else:
            lines = [line for line in text.splitlines() if line.startswith(_MARK)]
            entries = [parsed(line.removeprefix(_MARK), _REMEDY) for line in lines] or None
        if not isinstance(entries, list):
            raise FaultError(f"has no thresholds; {_REMEDY}")
        return [_read(entry) for entry in entries]
    except FaultError as fault:
        raise BadFileError(f"{printable(str(path))}: {fault}") from None


def _read(entry: Any) -> Threshold:
    keys = {field.name for field in fields(Threshold)}
    if not isinstance(entry, dict) or set(entry) != keys:
        raise FaultError(f"has an entry that is no threshold; {_REMEDY}")
    texts = (entry[key] for key in ("problem", "device", "measure", "answer", "machine"))
    numbers = (entry[key] for key in ("low", "high"))
    if (
        not all(isinstance(text, str) for text in texts)
        or not all(of is None or isinstance(of, (int, float)) for of in numbers)
        or not (entry["size"] is None or (type(entry["size"]) is int and entry["size"] >= 0))
    ):
        raise FaultError(f"has an entry that is no threshold; {_REMEDY}")
    return Threshold(**entry)
