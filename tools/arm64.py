# SPDX-License-Identifier: Apache-2.0
"""64-bit Arm on another processor: cross-compiled, and emulated by qemu, whose times mean nothing.

Google Benchmark, GoogleTest, Highway and JSON are Debian 12's, as where the rest is tested; oneDNN
and what it asks for, the C library among it, are Debian 13's, whose oneDNN is version 3.
"""

import shutil
import tempfile
from pathlib import Path

from crossover_bench.place import ROOT
from crossover_bench.run import build, cuda, environment, setup
from crossover_bench.run.console import LOGS, CommandFailed, Missing, run_logged, stored
from tools.stages import passes

PRESET = "arm64"
LIBRARIES = ROOT / "build" / "arm64-root"  # cmake/arm64.cmake looks there
_QEMU = "qemu-aarch64-static"
_PROGRAMS = ("mmdebstrap", "aarch64-linux-gnu-g++", _QEMU)
_PACKAGES = (
    *("libbenchmark-dev", "libgmock-dev", "libgtest-dev", "libhwy-dev", "nlohmann-json3-dev"),
    *("libgomp1", "libdnnl-dev/trixie", "libstdc++6/trixie"),
)
# Debian 13's packages lie in /usr alone, Debian 12's partly beside it.
_BOTH = (
    'cd "$1" && mkdir -p usr/lib && ln -s usr/lib lib && '
    "sed s/bookworm/trixie/ etc/apt/sources.list >etc/apt/sources.list.d/trixie.list"
)


def _unpack() -> None:
    unfinished = LIBRARIES.with_suffix(".partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    command: list[str | Path] = ["mmdebstrap", "--variant=extract", "--architectures=arm64"]
    command += ['--aptopt=APT::Default-Release "bookworm"', f"--setup-hook={_BOTH}"]
    command += [f"--include={','.join(_PACKAGES)}", "bookworm", unfinished]
    try:
        run_logged("Unpacking Debian for arm64", command, LOGS / "arm64-root.log")
    except CommandFailed as failed:
        raise Missing(f"Debian's packages for arm64 could not be had: {failed}") from failed
    unfinished.rename(LIBRARIES)


def make() -> None:
    """Bring the build up to date; raises Missing where there can be none."""
    lacking = [name for name in _PROGRAMS if shutil.which(name) is None]
    if lacking:
        raise Missing(f"{', '.join(lacking)}: not installed (docs/building.md)")
    with setup.alone(PRESET):
        if not LIBRARIES.exists():
            _unpack()
        build.everything(PRESET, cuda.Choice())


def sweep() -> bool:
    """Whether a few networks train there as the reference does: each row is verified."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "arm64.json"
        command: list[str | Path] = [_QEMU, "-L", LIBRARIES, build.folder(PRESET) / "bench"]
        command += ["--sweep=quick", "--model=heart,disc-2", "--refine=off"]
        command += ["--family=Epoch,Forward", "--in-process", "--patience=1h", f"--out={out}"]
        if not passes(command, environment.variables()):
            return False
        return any("outcome" not in row for row in stored(out).get("rows", []))
