# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them."""

import math
from collections.abc import Callable, Sequence

from crossover_bench.words.text import printable, whole

_TIME_UNITS = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))
_ENERGY_UNITS = ((1e-9, "nJ"), (1e-6, "µJ"), (1e-3, "mJ"), (1.0, "J"), (1e3, "kJ"))
_COUNT_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_RATE_UNITS = ((1e12, "T"), *_COUNT_UNITS)


def significant(value: float, digits: int = 3) -> str:
    """`value` rounded to `digits` significant digits, without exponent: 0.0123, 31.2, 32,100."""
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    # Rounding may add a digit before the point: 9.996 is 10.0, not 10.00.
    decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(decimals, 0)}f}"


def size(value: float, digits: int = 3, rounded: Callable[[float], int] = math.ceil) -> str:
    """A size, which is a whole number of parameters, samples or copies: the first from which on a
    side wins, or by math.floor the last up to which, where the digits that are known reach that
    far."""
    whole = rounded(round(value, 6))  # 300 where interpolation gives a little more or less
    return count(whole) if value < 10**digits else significant(value, digits)


def money(value: float, digits: int = 3) -> str:
    """An amount of the currency that prices are in: 1,500, 1.20, 1.25e-5."""
    if value >= 1000:
        return count(value)
    if value >= 0.001:
        return significant(value, digits)
    return f"{value:.{digits - 1}e}".replace("e-0", "e-")


def _with_unit(value: float, units: Sequence[tuple[float, str]], digits: int) -> str:
    scale, unit = units[0]
    for candidate in units:
        # What rounds up to 1000 of a unit belongs to the next one.
        if value >= candidate[0] * (1 - 0.5 * 10**-digits):
            scale, unit = candidate
    return f"{significant(value / scale, digits)} {unit}"


def seconds(value: float, digits: int = 3) -> str:
    """A time of `value` seconds in the unit that suits it: 12.3 µs, 31.2 ms, 1.25 s."""
    return _with_unit(value, _TIME_UNITS, digits)


def joules(value: float, digits: int = 3) -> str:
    """An energy in the unit that suits it: 12.3 µJ, 31.2 mJ, 1.25 J, 2.50 kJ."""
    return _with_unit(value, _ENERGY_UNITS, digits)


def seconds_range(low: float, high: float) -> str:
    """The range from `low` to `high` seconds, the unit once where both share it."""
    first, second = seconds_ends(low, high)
    return second if seconds(low) == second else f"{first} – {second}"


def seconds_ends(low: float, high: float, digits: int = 3) -> tuple[str, str]:
    """Both times as seconds() gives them, the first without its unit where the second shares it."""
    return sharing_unit(seconds(low, digits), seconds(high, digits))


def sharing_unit(first: str, second: str) -> tuple[str, str]:
    """Both, the first without its unit where the second shares it."""
    number, _, unit = first.partition(" ")
    return number if unit and second.endswith(f" {unit}") else first, second


def power_of_ten_seconds(value: float) -> str:
    """Label of a tick of a logarithmic axis of seconds: 10 µs."""
    return seconds(value, digits=1)


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """`value` over the scale that suits it, and what stands for that; nearly 1000 is 1k."""
    scale, unit = next((pair for pair in units if value >= pair[0] * 0.9995), (1.0, ""))
    return value / scale, unit


def power_of_ten_count(value: float) -> str:
    """Label of a tick of a logarithmic axis of counts: 100, 10k, 1M."""
    number, unit = _scaled(value, _COUNT_UNITS)
    return f"{number:g}{unit}"


def short_count(value: float) -> str:
    """A count in three significant digits at most: 22, 2.73k, 703k, 11.2M."""
    number, unit = _scaled(value, _COUNT_UNITS)
    return f"{float(f'{number:.3g}'):g}{unit}"


def count(value: float) -> str:
    """A whole number with thousands separated: 703,142."""
    return f"{value:,.0f}"


def written(text: str) -> str:
    """A batch, say, as people read it: 1,000 for "1000"; what is no number as it is."""
    number = whole(text)
    return printable(text, 24) if number is None else count(number)


def rate(value: float, unit: str) -> str:
    """`value` of `unit`, which is per second, with the prefix that suits it: 118 GFLOP/s."""
    number, prefix = _scaled(value, _RATE_UNITS)
    return f"{significant(number)} {prefix}{unit}"


def power_of_ten_rate(value: float, unit: str) -> str:
    """Label of a tick of a logarithmic axis of rates: 10 GB/s."""
    number, prefix = _scaled(value, _RATE_UNITS)
    return f"{number:g} {prefix}{unit}"


def binary_bytes(value: float) -> str:
    """A number of bytes in powers of 1024: 1 KiB, 256 MiB."""
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= scale:
            shown = significant(value / scale) if value % scale else f"{value / scale:,.0f}"
            return f"{shown} {unit}"
    return f"{value:,.0f} B"
