# SPDX-License-Identifier: Apache-2.0
"""What the names of other programs' benchmarks say: on which device, and which numbers.

Google Benchmark writes BM_sort<Kokkos_Cuda>/n:1024/16/manual_time/threads:2: what the program calls
it, its arguments with or without a name, and how it was measured.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from crossover_bench.curves.problem import SIDES, Device

# How it was measured, which is no size.
_OPTION = re.compile(
    r"(iterations|min_time|min_warmup_time|repeats):\S*|(process|real|manual)_time"
)
_NAMED = re.compile(r"([^:<>]+):(-?\d{1,18})")
_NUMBER = re.compile(r"-?\d{1,18}")
_INSIDE = re.compile(r"(?<![A-Za-z0-9.])\d{1,18}(?![A-Za-z0-9.])")  # of a template, of BM_sort_1024
_MOST_NUMBERS = 16  # of a name
_WORD = re.compile(r"OpenMP|OpenCL|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Words for a device; the first line that speaks of one side alone decides: omp_gpu is on a GPU.
_SPEAK: tuple[dict[Device, frozenset[str]], ...] = tuple(
    {"cpu": frozenset(cpu), "gpu": frozenset(gpu)}
    for cpu, gpu in (
        ({"cpu"}, {"gpu"}),
        (
            {"host", "serial", "seq", "sequential", "omp", "openmp", "tbb", "pthread", "numpy"},
            {"cuda", "device", "hip", "rocm", "sycl", "opencl", "metal", "vulkan", "cupy"},
        ),
        (
            {"std", "stl", "eigen", "mkl", "openblas", "fftw", "simd", "avx", "neon", "par"}
            | {"parallel", "pocketfft"},
            {"thrust", "cub", "cublas", "cufft", "cusparse", "cusolver", "cudnn", "cudf", "raft"}
            | {"rocblas", "rocfft", "rocthrust", "rocprim", "hipblas", "hipcub"},
        ),
    )
)
_OF_SIDES = frozenset(word for line in _SPEAK for words in line.values() for word in words)


@dataclass(frozen=True, slots=True)
class Name:
    """A benchmark's name without how it was measured. `numbers` has each with its key in lower
    case, or with "#1" for the first without one. `text` has "#" in the place of a number inside of
    it, and no arguments."""

    text: str
    numbers: tuple[tuple[str, int], ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Those of the text, as they are written."""
        return words_of(self.text)


def parse(name: str, threads: int = 1) -> Name:
    """What the name of a benchmark consists of, which ran on so many `threads`: a name ends in
    these, where an argument of that name may stand elsewhere, or has another number."""
    first, *rest = name.removesuffix(f"/threads:{threads}").split("/")
    numbers: list[tuple[str, int]] = []

    def take(key: str, digits: str) -> None:
        if len(numbers) == _MOST_NUMBERS:
            return
        unnamed = sum(known.startswith("#") for known, _ in numbers)
        taken = {known for known, _ in numbers}
        key = key if key and key not in taken else f"#{unnamed + 1}"
        numbers.append((key, int(digits)))

    def inside(text: str) -> str:
        for match in _INSIDE.finditer(text):
            take("", match[0])
        return _INSIDE.sub("#", text)

    kept = [inside(first)]
    for part in rest:
        if _OPTION.fullmatch(part):
            continue
        if named := _NAMED.fullmatch(part):
            take(named[1].lower(), named[2])
        elif _NUMBER.fullmatch(part):
            take("", part)
        else:
            kept.append(inside(part))
    return Name("/".join(kept), tuple(numbers))


def words_of(text: str) -> tuple[str, ...]:
    """The words in `text`, as they are written; of "device:gpu" the value alone."""
    parts = (part.rpartition(":")[2] if _is_choice(part) else part for part in text.split("/"))
    return tuple(_split("/".join(parts)))


def _is_choice(part: str) -> bool:
    """Whether it is key:value, of which the key may be "device"; no std::sort."""
    return part.count(":") == 1


def _split(text: str) -> Iterator[str]:
    for run in re.findall(r"[A-Za-z]+", text):
        if run.lower() in _OF_SIDES:
            yield run
        else:
            yield from _WORD.findall(run)


def device_of(words: Iterable[str]) -> Device | None:
    """The device that `words` speak of; None where they speak of none, or of both alike."""
    lower = {word.lower() for word in words}
    for line in _SPEAK:
        spoken = [device for device in SIDES if lower & line[device]]
        if spoken:
            return spoken[0] if len(spoken) == 1 else None
    return None


def speaks(words: Iterable[str]) -> bool:
    """Whether any of `words` is one for a device."""
    return any(word.lower() in _OF_SIDES for word in words)


def without_sides(words: Sequence[str], device: Device) -> list[str]:
    """`words` without those for `device`."""
    of_side = {word for line in _SPEAK for word in line[device]}
    return [word for word in words if word.lower() not in of_side]


def common_words(texts: Collection[Sequence[str]]) -> set[str]:
    """The words that all of several texts have, in lower case: they tell nothing apart."""
    sets = [{word.lower() for word in words} for words in texts]
    return set.intersection(*sets) if len(sets) > 1 else set()
