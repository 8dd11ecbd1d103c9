# SPDX-License-Identifier: Apache-2.0
"""Files that nobody wrote by hand: each is loaded whole, or refused in one sentence.

Within ./test the examples are few and always the same; `./test --fuzz=10m` runs this for longer:

    python -m crossover_bench.tests.test_fuzz SECONDS FOLDER    keeps there what went wrong
"""

import itertools
import json
import math
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossover_bench.counts.cost import Cost, CostError, load_cost
from crossover_bench.files import loading
from crossover_bench.files.families import FAMILIES, PROBES
from crossover_bench.files.rows import File
from crossover_bench.tests import synthetic, synthetic_machine, synthetic_whole
from crossover_bench.words.text import printable

EXAMPLES = 200  # of each property, within ./test
MOST_SECONDS = 60  # of the processor, for one file, which takes milliseconds; what does not, hangs
LONGEST = 2000  # characters of a sentence

FIXED = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


# --- files to start from


@cache
def start() -> str:
    return json.dumps(synthetic.as_file(synthetic_whole.whole()))


@cache
def cost_start() -> str:
    cost = synthetic_machine.cost("disc-5", synthetic_machine.counts("disc-5"))
    product = {"pass": "forward", "m": 100, "n": 8, "k": 4}
    operation = {"kind": "convolution", "flops": 6400.0, "bytes": 5000.0, "launches": 1}
    step = {"operations": [{**operation, "products": [product]}]}
    return json.dumps({**cost, "step": step})


# --- what may happen to them

DEEP = "as deep as can be"  # in its place come lists within lists
ODD_NUMBERS = (0, -0.0, -1, 1, 2, 1e-320, 1e-16, 1e39, 1e41, 2**63, 10**400, math.nan, math.inf)
ODD_TEXTS = ("", " ", "\0", "\x1b[31m", "\x7f", "\u202e", "\ud800", "x" * 5000, "É" * 300, "a\nb")
WORDS = ("{}", "1", "cpu", "cuda", "Epoch", "failed", "ns")
ODD_PARTS = ([], {}, [[]], {"": 0}, {"name": "x"}, {"\ud800\n": {"a": 1}})
ODD = st.sampled_from(
    [None, True, False, -math.inf, *ODD_NUMBERS, *ODD_TEXTS, *WORDS, *ODD_PARTS, DEEP]
)
JSON = st.recursive(
    ODD | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def place_in(draw: Callable[..., Any], document: Any) -> tuple[Any, Any] | None:
    """A container somewhere in `document`, and a key of it."""
    holder = document
    while isinstance(holder, dict | list) and holder:
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        key = draw(st.sampled_from(keys))
        inner = holder[key]
        if not (isinstance(inner, dict | list) and inner) or draw(st.integers(0, 5)) == 0:
            return holder, key
        holder = inner
    return None


def _edit(draw: Callable[..., Any], document: Any) -> None:
    """One change at one place of `document`."""
    if (place := place_in(draw, document)) is None:
        return
    holder, key = place
    kind = draw(st.sampled_from(["replace", "delete", "double", "graft", "scale", "rename"]))
    value = holder[key]
    if kind == "delete":
        del holder[key]
    elif kind == "double" and isinstance(holder, list):
        holder.insert(key, deepcopy(value))
    elif kind == "graft" and (other := place_in(draw, document)):
        holder[key] = deepcopy(other[0][other[1]])
    elif kind == "scale" and type(value) in (int, float):
        holder[key] = value * draw(st.sampled_from([0, -1, 1 + 1e-9, 1.0009, 2, 1e-30, 1e30]))
    elif kind == "rename" and isinstance(holder, dict):
        name = draw(st.sampled_from(list(holder)) | st.text(max_size=8))
        holder[name] = holder.pop(key)
    else:
        holder[key] = deepcopy(draw(JSON))  # one of ODD stays as it is


@st.composite
def changed(draw: Callable[..., Any], start: st.SearchStrategy[str]) -> bytes:
    """The JSON of `start` after a few changes to its values."""
    document = json.loads(draw(start))
    for _ in range(draw(st.integers(1, 4))):
        _edit(draw, document)
    depth = draw(st.integers(0, 1200))
    return json.dumps(document).replace(f'"{DEEP}"', "[" * depth + "]" * depth).encode()


@st.composite
def damaged(draw: Callable[..., Any], start: st.SearchStrategy[str]) -> bytes:
    """The bytes of `start` after a few changes to them."""
    text = draw(start).encode()
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(0, len(text)))
        last = min(len(text), first + draw(st.sampled_from([0, 1, 2, 10, 100, 1000, 100_000])))
        new = draw(
            st.binary(max_size=8)
            | st.just(text[first:last] * 2)
            | st.sampled_from(
                [b'"', b"{", b"[" * 990, b"}", b"\xff", b"\\ud800", b"9" * 5000, b"//"]
            )
        )
        text = text[:first] + new + text[last:]
    return text


# By numbers, as a failed test prints how its example was drawn.
START = st.none().map(lambda _: start())
COST_START = st.none().map(lambda _: cost_start())
ANYTHING = JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60)
NESTED = st.builds(
    lambda opening, closing, depth: opening * depth + b"1" + closing * depth,
    *map(st.sampled_from, ([b"[", b'{"a":', b'{"context":['], [b"]", b"}", b"]}", b""])),
    st.integers(0, 3000),
)


# --- what is asked of the readers


class HangsError(Exception):
    """A reader that does not come to an end."""


@contextmanager
def held(content: bytes) -> Iterator[Path]:
    """A file with that content, to be read before a limit that only what hangs can reach."""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
    path = Path(folder, f"crossover-fuzz-{os.getpid()}.json")
    path.write_bytes(content)

    def hangs(_signum: int, _frame: object) -> None:
        raise HangsError(f"more than {MOST_SECONDS} s of the processor for one file")

    before = signal.signal(signal.SIGPROF, hangs)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield path
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        path.unlink()


def check_sentence(path: Path, sentence: str) -> None:
    """`sentence` is one line that names the file and what to do about it, whatever stands in it."""
    assert sentence.startswith(f"{printable(str(path))}: ") and ";" in sentence, sentence
    assert sentence.isprintable() and len(sentence) < LONGEST, sentence


def check_file(file: File) -> None:
    """`file` keeps what the analysis relies on."""
    names = [row.name for row in file.rows]
    assert len(set(names)) == len(names)
    places = [row.index for row in file.rows]
    assert places == sorted(set(places))
    assert file.date.tzinfo is not None
    for row in file.rows:
        assert row.samples.dtype == float and row.samples.ndim == 1
        if not row.failure:
            assert np.isfinite(row.samples).all() and 0 < row.minimum <= row.median <= row.maximum
        assert all(type(count) is float and math.isfinite(count) for count in row.counters.values())
        assert all(key in row.axes for key in row.configuration)
        checked = row.verification
        assert not checked or 0 <= checked.relative_error <= checked.tolerance


def check_cost(cost: Cost) -> None:
    """`cost` has finite counts for each configuration that it tells of."""
    assert cost.accumulate >= 1 and cost.batch > 0 and cost.params > 0
    for device, execution, data in itertools.product(
        ("cpu", "cuda", "other"), ("eager", "graph", "other"), ("resident", "pinned", "other")
    ):
        work = cost.work({"device": device, "execution": execution, "data": data})
        for field in fields(work) if work else ():
            value = getattr(work, field.name)
            assert math.isfinite(value) and value >= 0, field.name


def read_or_refuse(content: bytes) -> None:
    with held(content) as path:
        try:
            check_file(loading.load_file(path))
        except loading.BadFileError as error:
            check_sentence(path, str(error))


def read_or_refuse_cost(content: bytes) -> None:
    with held(content) as path:
        try:
            check_cost(load_cost(path))
        except CostError as error:
            check_sentence(path, str(error))


def read_or_refuse_either(content: bytes) -> None:
    read_or_refuse(content)
    read_or_refuse_cost(content)


PROPERTIES = {
    "result-file-with-other-values": (changed(START), read_or_refuse),
    "result-file-with-other-bytes": (damaged(START), read_or_refuse),
    "cost-with-other-values": (changed(COST_START), read_or_refuse_cost),
    "cost-with-other-bytes": (damaged(COST_START), read_or_refuse_cost),
    "anything": (ANYTHING | NESTED, read_or_refuse_either),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROPERTIES)
def test_a_file_is_read_or_refused(name: str) -> None:
    """Takes long for files with other values, which are read to their end."""
    contents, check = PROPERTIES[name]
    FIXED(given(contents)(check))()


def test_the_files_to_start_from_are_valid() -> None:
    with held(start().encode()) as path:
        file = loading.load_file(path)
        assert {row.family for row in file.rows} == {*FAMILIES, *PROBES}
    with held(cost_start().encode()) as path:
        check_cost(load_cost(path))


# --- for longer


def look(name: str, seed: int) -> tuple[int, bytes, Exception | None]:
    """Examples of one property: how many, and the content and fault of the smallest that failed."""
    contents, check = PROPERTIES[name]
    executions, last = 0, b""

    def counted(content: bytes) -> None:
        nonlocal executions, last
        executions, last = executions + 1, content
        check(content)

    many = settings(FIXED, max_examples=10 * EXAMPLES, derandomize=False)
    try:
        hypothesis.seed(seed)(many(given(contents)(counted)))()
    except Exception as fault:
        return executions, last, fault
    return executions, last, None


def main(seconds: float, folder: Path) -> int:
    """Each property in turn, on other examples every time; 1 where one failed."""
    end = time.monotonic() + seconds
    executions, failed = 0, set[str]()
    for name in itertools.cycle(PROPERTIES):
        if time.monotonic() >= end or len(failed) == len(PROPERTIES):
            break
        if name in failed:
            continue
        count, content, fault = look(name, time.time_ns())
        executions += count
        print(f"#{executions} {name}", flush=True)
        if fault:
            failed.add(name)
            folder.mkdir(parents=True, exist_ok=True)
            kept = folder / f"plots-{name}.json"
            kept.write_bytes(content)
            traceback.print_exception(fault)
            print(f"kept in {kept}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), Path(sys.argv[2])))
