# SPDX-License-Identifier: Apache-2.0
"""One machine's CPU with another's GPU: what would it be like to buy that card?"""

from dataclasses import replace
from pathlib import Path

from plots.file.rows import File
from plots.text import printable

CAVEAT = (
    "Launches and copies are made by the host: GPU rows are those of the other machine's host. "
    "Where data is not resident on the GPU, and in small networks, whose time is that of launches, "
    "the card may be faster or slower in your machine."
)


class NothingToMixError(Exception):
    """A file lacks the rows it was to give; the message is one sentence with a remedy."""


def mix(cpu_file: File, gpu_file: File) -> File:
    """A file with the CPU's rows of `cpu_file` and all other rows of `gpu_file`.

    It says of itself what both have in common. Raises NothingToMixError.
    """
    cpu_rows = [row for row in cpu_file.rows if row.device == "cpu"]
    gpu_rows = [row for row in gpu_file.rows if row.configuration.get("device", "cpu") != "cpu"]
    for file, rows, device in ((cpu_file, cpu_rows, "CPU"), (gpu_file, gpu_rows, "GPU")):
        if not rows:
            raise NothingToMixError(
                f"{printable(str(file.path))}: has no row of a {device}; name a file that has"
            )
    same_commit = cpu_file.software.commit == gpu_file.software.commit
    return File(
        path=Path(f"{cpu_file.path.name} with {gpu_file.path.name}"),
        date=max(cpu_file.date, gpu_file.date),
        complete=cpu_file.complete and gpu_file.complete,
        machine=replace(
            cpu_file.machine,
            id=f"{cpu_file.machine.id}'s CPU with {gpu_file.machine.id}'s GPU",
            gpu=gpu_file.machine.gpu,
            gpu_reason=gpu_file.machine.gpu_reason,
        ),
        software=replace(
            cpu_file.software,
            commit=cpu_file.software.commit if same_commit else "",
            dirty=cpu_file.software.dirty or gpu_file.software.dirty,
        ),
        run=cpu_file.run,
        rows=(*cpu_rows, *gpu_rows),
    )
