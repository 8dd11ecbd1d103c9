# SPDX-License-Identifier: Apache-2.0
"""The Python environment .venv: what is pinned for it, oneDNN for the C++ side included."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.console import LOGS, ROOT, CommandFailed, Failure, run_logged, stage

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
FOR_RUN = (ROOT / "requirements.txt",)
FOR_TEST = (*FOR_RUN, ROOT / "requirements-test.txt")
# Only where tools/cuda.py wants them; pinned to packages that the others do not use.
FOR_TOOLKIT = (ROOT / "requirements-cudnn-frontend.txt",)
FOR_CUDA = (
    ROOT / "requirements-cuda.txt",
    ROOT / "requirements-cudnn-nccl.txt",
    *FOR_TOOLKIT,
)
# Written last and removed first, so an interrupted installation is never taken for a whole one.
STAMP = VENV / "complete.json"

_SHOW = "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix, sep='\\n')"


def tool(name: str) -> Path:
    """A program that one of the packages brings."""
    return VENV / "bin" / name


def hashes(requirements: Sequence[Path]) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in requirements}


def _base_interpreter() -> str:
    """The interpreter to build on: not that of .venv, should the user have activated it."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(sys.base_prefix, "bin", name)
    return str(base) if base.exists() else sys.executable


def _answers() -> tuple[str, str] | None:
    """Version and prefix as .venv's interpreter tells them; None where it does not run."""
    try:
        shown = subprocess.run(
            [PYTHON, "-I", "-c", _SHOW], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version, prefix = shown.splitlines()
    return version, prefix


def _stamp() -> dict[str, Any]:
    try:
        content = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _remove() -> None:
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        STAMP.unlink(missing_ok=True)
        shutil.rmtree(VENV)


def _pip_install(requirements: Sequence[Path]) -> None:
    # --only-binary: a source build would need more than is there, and fail much later.
    options = ["--disable-pip-version-check", "--no-input", "--progress-bar=off"]
    command: list[str | Path] = [PYTHON, "-m", "pip", "install", *options, "--only-binary=:all:"]
    for path in requirements:
        command += ["-r", path]
    run_logged("pip install", command, LOGS / "pip.log", {"PIP_USER": "0"})


def _write_stamp(requirements: dict[str, str], python: str, prefix: str) -> None:
    content = {"requirements": requirements, "python": python, "prefix": prefix}
    STAMP.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def ensure(requirements: Sequence[Path]) -> None:
    """Create or update .venv; where it is as it should be, see that in milliseconds.

    CommandFailed where pip fails; what earlier calls installed from other files stays sound.
    """
    stamp = _stamp()
    answers = _answers() if stamp else None
    sound = answers is not None and answers == (stamp.get("python"), stamp.get("prefix"))
    sound = sound and stamp.get("prefix") == str(VENV)  # not so after the repository moved
    wanted = hashes(requirements)
    have = stamp.get("requirements")
    have = have if sound and isinstance(have, dict) else {}
    if sound and wanted.items() <= have.items():
        return
    if not sound:
        with stage("Creating the Python environment .venv"):
            _remove()
            command: list[str | Path] = [_base_interpreter(), "-m", "venv", VENV]
            run_logged("Creating .venv", command, LOGS / "venv.log")
    names = " and ".join(path.name for path in requirements)
    with stage(f"Installing the Python packages in {names} into .venv"):
        STAMP.unlink(missing_ok=True)
        try:
            _pip_install(requirements)
        except CommandFailed:
            kept = {name: have[name] for name in have if name not in wanted}
            if sound and kept:
                _write_stamp(kept, stamp["python"], stamp["prefix"])
            raise
    fresh = _answers()
    if fresh is None:
        raise Failure(f"{PYTHON} does not run; remove {VENV} and start this again")
    _write_stamp({**have, **wanted}, *fresh)
