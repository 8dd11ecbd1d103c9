# SPDX-License-Identifier: Apache-2.0
"""Rows of one operation: matrix products (Gemm) and copies (Copy), in bench's sizes."""

from __future__ import annotations

from typing import Any

import torch

from crossover_bench.peers.generator import INPUTS, uniform
from crossover_bench.peers.protocol import Configuration
from crossover_bench.peers.pytorch.devices import of_row, waits_for
from crossover_bench.peers.verification import Mismatch

_APART = 0x9E3779B1  # between the operands, more than any of them has elements
_FLOPS_OF_AN_ITERATION, _MOST_PRODUCTS = 1e9, 100
_MOST_MULTIPLICATIONS = 1e10  # that a product's verification takes in float64
_IN_FLIGHT = 8  # asynchronous copies, with one wait for all
_SPOILED = 0xA5
_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Product:
    """c [m, n] = op(a) [m, k] op(b) [k, n], `count` times an iteration."""

    def __init__(self, configuration: Configuration) -> None:
        self.device = of_row(configuration)
        self._wait = waits_for(self.device)
        m, n, k = (int(configuration[key]) for key in "mnk")
        dtype = _DTYPES[configuration["precision"]]
        first, second = [*configuration["transpose"]]
        stored = ((k, m) if first == "t" else (m, k), (n, k) if second == "t" else (k, n))
        a, b = (self._operand(shape, place, dtype) for place, shape in enumerate(stored))
        self.a = a.t() if first == "t" else a
        self.b = b.t() if second == "t" else b
        self.c = torch.empty(m, n, dtype=dtype, device=self.device)
        flops = 2 * m * n * k
        self.count = int(min(max(_FLOPS_OF_AN_ITERATION / flops, 1), _MOST_PRODUCTS))
        self.facts: dict[str, Any] = {
            "count": self.count,
            "flops": flops,
            "bytes": (m * k + k * n + m * n) * self.c.element_size(),
            "operand_sets": 1,
        }

    def _operand(self, shape: tuple[int, int], place: int, dtype: torch.dtype) -> torch.Tensor:
        values = 2 * uniform(INPUTS, _APART * place, shape[0] * shape[1]) - 1
        return torch.from_numpy(values).reshape(shape).to(dtype).to(self.device)

    def restart(self) -> None:
        pass

    def run(self) -> None:
        a, b, c = self.a, self.b, self.c
        for _ in range(self.count):
            torch.mm(a, b, out=c)
        self._wait()

    def verify(self) -> dict[str, Any]:
        """Against sums in float64, of rows spread over the result; bench's tolerances."""
        self.run()
        (m, k), n = self.a.shape, self.b.shape[1]
        rows = max(1, min(m, int(_MOST_MULTIPLICATIONS / (n * k))))
        chosen = torch.linspace(0, m - 1, rows).long()
        a, b = self.a.cpu()[chosen].double(), self.b.double().cpu()
        error = (self.c.cpu()[chosen].double() - a @ b).abs() / (a.abs() @ b.abs())
        is_f32 = self.c.dtype == torch.float32
        sums = k * (2.0**-24 if is_f32 else 2.0**-23)
        tolerance = sums / (1 - sums) + (0 if is_f32 else 2.0**-7)
        worst = float(error.max())
        if not worst <= tolerance:
            raise Mismatch(
                f"an entry of the product differs from float64 by {worst:.3g} of the sum of "
                f"magnitudes, and rounding explains {tolerance:.3g}"
            )
        self.facts["verified_entries"] = rows * n
        return {
            "reference": "float64 product",
            "entries": rows * n,
            "entries_of": m * n,
            "tolerance": tolerance,
            "relative_error": worst,
        }

    def check(self) -> None:
        if not bool(torch.isfinite(self.c).all()):
            raise Mismatch("the product is not finite")


class Copy:
    """Bytes from one block to another, as the configuration says where and how."""

    def __init__(self, configuration: Configuration, size: int) -> None:
        self.device = of_row(configuration)
        self._wait = waits_for(self.device)
        self.is_asynchronous = configuration["mode"] == "async"
        pinned = configuration.get("memory") == "pinned"
        direction = configuration["direction"]
        blocks = {"h2d": "hd", "d2h": "dh", "d2d": "dd", "h2h": "hh"}
        ways = ["hd", "dh"] if direction == "both" else [blocks[direction]]
        self.pairs = [
            (self._block(way[0], size, pinned), self._block(way[1], size, pinned)) for way in ways
        ]
        self.streams = [torch.cuda.Stream() for _ in ways] if len(ways) > 1 else []
        self.count = _IN_FLIGHT if self.is_asynchronous else 1
        self.facts: dict[str, Any] = {"count": self.count, "bytes": size * self.count * len(ways)}
        pattern = torch.arange(size, dtype=torch.int64).remainder_(251).to(torch.uint8)
        for source, _ in self.pairs:
            source.copy_(pattern)

    def _block(self, place: str, size: int, pinned: bool) -> torch.Tensor:
        if place == "d":
            return torch.empty(size, dtype=torch.uint8, device=self.device)
        return torch.empty(size, dtype=torch.uint8, pin_memory=pinned)

    def restart(self) -> None:
        pass

    def run(self) -> None:
        if self.streams:
            for (source, to), stream in zip(self.pairs, self.streams, strict=True):
                with torch.cuda.stream(stream):
                    for _ in range(self.count):
                        to.copy_(source, non_blocking=True)
        else:
            ((source, to),) = self.pairs
            for _ in range(self.count):
                to.copy_(source, non_blocking=self.is_asynchronous)
        self._wait()

    def verify(self) -> dict[str, Any]:
        self.run()
        self.check()
        return {
            "reference": "every result, bit for bit, here and behind each sample",
            "tolerance": 0,
            "relative_error": 0,
        }

    def check(self) -> None:
        """Spoils what it has seen, so that the next copies must be made anew."""
        for source, to in self.pairs:
            if not torch.equal(source.cpu(), to.cpu()):
                raise Mismatch("the copy is not what was copied")
            to.fill_(_SPOILED)
