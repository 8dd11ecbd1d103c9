# SPDX-License-Identifier: Apache-2.0
"""Networks imported and proved, by the command or by what it calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import nn

from crossover_bench.networks import importing
from crossover_bench.networks.__main__ import main
from crossover_bench.networks.tests import zoo, zoo_of_tokens
from crossover_bench.networks.user_module import Input

ZOO = Path(__file__).with_name("zoo.py")


def zoo_with(name: str) -> Any:
    """The file of the zoo that has this network."""
    return zoo_of_tokens if hasattr(zoo_of_tokens, name) else zoo


def kinds(described: dict[str, Any]) -> list[str]:
    return [layer["type"] for layer in described["layers"]]


def told(
    network: nn.Module, *wanted: Input, loss: str = "cross-entropy", output: int | str | None = None
) -> tuple[dict[str, Any], str]:
    """Proved, and the notes about it."""
    known = importing.imported(
        network.double, wanted, source="x", name="x", loss_function=loss, output=output
    )
    assert known.difference <= 1e-9 and known.tensors > 1
    return known.described, "; ".join(known.notes)


def _command(source: str | Path) -> list[str]:
    """To import a file of ONNX, or the network of the zoo that has this name."""
    is_of_zoo = isinstance(source, str)
    return ["import", f"{zoo_with(source).__file__}:{source}" if is_of_zoo else str(source)]


def imported(capsys: Any, source: str | Path, *flags: str) -> dict[str, Any]:
    code = main([*_command(source), *flags])
    given = capsys.readouterr()
    assert code == 0, given.err
    same = "the original's" if isinstance(source, str) else "those of onnx's reference"
    assert f"{same} on two random batches" in given.err
    return json.loads(given.out)


def refused(capsys: Any, source: str | Path, *flags: str) -> str:
    """The sentence, without the program's name."""
    assert main([*_command(source), *flags]) == 1
    given = capsys.readouterr()
    assert given.out == "" and given.err.count("\n") == 1
    return given.err.removeprefix("crossover networks: ").strip()
