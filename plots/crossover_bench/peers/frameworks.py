# SPDX-License-Identifier: Apache-2.0
"""The frameworks that --with-peers measures beside bench, an entry each. Its package in this folder
answers by docs/protocol.md; what it needs stands in requirements-*.txt of the repository."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Framework:
    word: str  # in sentences
    flags: tuple[str, ...]  # which choose among its rows
    # Its environment is .venv-<the first>, and holds requirements-<each>.txt.
    requirements: tuple[str, ...]
    megabytes: int  # that pip downloads for the last of them, on x86-64 Linux
    gigabytes: int  # that must be free
    instead: str  # what does without: the end of "pip failed: see to the index, or ..."
    measures: str = ""  # what of bench's rows, where that is not all


FRAMEWORKS = {
    "pytorch": Framework(
        word="PyTorch",
        flags=(
            *("--beside", "--devices", "--layout", "--mode", "--pages", "--script"),
            "--torch-device",
        ),
        requirements=("peers",),
        megabytes=3000,
        gigabytes=6,
        instead="--with-peers=PYTHON takes the PyTorch of an interpreter of yours",
    ),
    "jax": Framework(
        word="JAX",
        flags=("--devices", "--loop"),
        requirements=("jax",),
        megabytes=150,
        gigabytes=1,
        instead="--with-peers alone measures without JAX",
    ),
    "onnxruntime": Framework(
        word="ONNX Runtime",
        flags=("--devices",),
        requirements=("peers", "onnxruntime"),
        megabytes=20,
        gigabytes=6,
        instead="--with-peers alone measures without ONNX Runtime",
        measures="forward passes (--family=Forward)",
    ),
}
