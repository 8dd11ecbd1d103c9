# SPDX-License-Identifier: Apache-2.0
"""Collect what a machine without a network lacks beside the sources: libraries to build with,
programs that are built already, and the commit, which a copy without .git cannot tell."""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tools import cuda
from tools.console import LOGS, ROOT, CommandFailed, Failure, friendly, run_logged, say, stage
from tools.environment import FOR_TOOLKIT, MAIN, VENV
from tools.sources import every_file, git

_PACKAGES = (
    *("libbenchmark-dev", "libgtest-dev", "libgmock-dev", "libhwy-dev", "libhwy1"),
    "nlohmann-json3-dev",
)
_LEFT_OUT = ("/usr/share/doc", "/usr/src", "/usr/share/man", "/usr/share/lintian")
_BUILD = ROOT / "build" / "pack"
# GPUs since 2018; later ones translate the code for the last.
_EVERY_GPU = "75-real;80-real;86-real;89-real;90-real;100-real;120"
_CONFIGURE = (
    *("--preset=default", "-DCROSSOVER_NATIVE=OFF"),
    "-DCROSSOVER_PROCESSOR=x86-64-v3",  # since 2013
    # A program is not started where MPI is missing. CUDA's libraries it loads when it calls them.
    "-DCROSSOVER_MPI=OFF",
    "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
    "-DCMAKE_INSTALL_RPATH=$ORIGIN/../lib;$ORIGIN/../lib/x86_64-linux-gnu",
)
# What a packed program may need to start: what every machine has, and what is packed.
_MAY_NEED = {"ld-linux-x86-64", "libc", "libdl", "libgcc_s", "libm", "libpthread", "librt"}
_MAY_NEED |= {"libstdc++", "libbenchmark", "libdnnl", "libgomp", "libhwy"}
MOST_BYTES = 64 * 2**20  # of the sources and the folder together
COMMIT = "commit.txt"
ARCHIVE = "pack.tar.gz"


def _copy(path: Path, to: Path) -> None:
    """A file, or a link together with what it points to beside it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() and (name := path.readlink().name) == str(path.readlink()):
        to.unlink(missing_ok=True)
        to.symlink_to(name)
        _copy(path.with_name(name), to.with_name(name))
    else:
        shutil.copy2(path, to)


def _strip(path: Path) -> None:
    """Make it smaller, where that can be done."""
    with suppress(OSError):
        subprocess.run(["strip", "--strip-unneeded", path], capture_output=True, check=False)


def _debian(folder: Path) -> None:
    query = ["dpkg-query", "-L", *_PACKAGES]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        raise Failure(
            f"--pack copies the Debian packages {', '.join(_PACKAGES)}, which are not all here; "
            "./test installs them",
            2,
        ) from None
    for path in map(Path, listed.splitlines()):
        is_wanted = str(path).startswith("/usr/") and not str(path).startswith(_LEFT_OUT)
        if is_wanted and not path.is_dir():
            _copy(path, folder / path.relative_to("/usr"))


def _wheels(folder: Path) -> None:
    """oneDNN, headers of cudnn-frontend, and fastjsonschema for `plots times`; cuDNN itself is too
    large to bring along."""
    with suppress(CommandFailed):
        MAIN.ensure(FOR_TOOLKIT)
    libraries = [path for path in VENV.glob("lib/libdnnl.so.*.*") if not path.is_symlink()]
    if len(libraries) != 1:
        raise Failure(f"--pack: there is no oneDNN in {friendly(VENV)}; ./run installs it", 2)
    copy = folder / "lib" / libraries[0].name
    _copy(libraries[0], copy)
    _strip(copy)
    # Wheels hold copies where there should be links.
    for name in ("libdnnl.so", "libdnnl.so." + copy.name.split(".")[2]):
        (folder / "lib" / name).symlink_to(copy.name)
    parts = [(VENV, "include/dnnl*"), (VENV, "include/oneapi/**/*"), (VENV, "lib/cmake/dnnl/*")]
    for site in VENV.glob("lib/python3*/site-packages"):
        parts += [(site, "include/cudnn*"), (site, "include/cudnn_frontend/**/*")]
        parts.append((site, "fastjsonschema/*.py"))
    for root, pattern in parts:
        for path in filter(Path.is_file, root.glob(pattern)):
            _copy(path, folder / path.relative_to(root))
    if not (folder / "include" / "cudnn_frontend.h").is_file():
        say("without nvidia-cudnn-frontend, which pip does not give: no convolutions on the GPU")


def needed_beyond_the_pack(program: Path) -> list[str]:
    """Libraries that the program is linked to and the other machine may lack."""
    command = ["readelf", "-d", str(program)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", told)
    return [name for name in needed if name.partition(".so")[0] not in _MAY_NEED]


def _openmp(program: Path, folder: Path) -> None:
    """libgomp comes with compilers, and not every machine has one."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = re.search(r"libgomp\.so\.1 => (/\S+)", told)
    if found is not None:
        shutil.copy(Path(found[1]).resolve(), folder / "lib" / "libgomp.so.1")


def _programs(folder: Path, gpus: Sequence[str]) -> None:
    """For any machine, so that measuring there can begin at once; tests only for the GPUs named, as
    for all they would be too large. The pack's libraries are found beside them, those of CUDA by
    tools/gpu_sweep."""
    programs = [_BUILD / "bench", *([_BUILD / "tests" / "crossover_tests"] if gpus else [])]
    codes = ";".join(f"{gpu}-real" for gpu in gpus) or _EVERY_GPU
    configure = ["cmake", *_CONFIGURE, "-B", str(_BUILD), f"-DCMAKE_PREFIX_PATH={VENV}"]
    configure += [f"-DCMAKE_CUDA_ARCHITECTURES={codes}"]
    configure += [f"-DCROSSOVER_TESTS={'ON' if gpus else 'OFF'}"]
    make = ["cmake", "--build", str(_BUILD), "--target", *(path.name for path in programs)]
    try:
        with stage("Building for any machine (many minutes the first time)"):
            configure += cuda.choose("on").switches
            run_logged("configuring", configure, LOGS / "pack-configure.log")
            run_logged("building", make, LOGS / "pack-build.log")
    except Failure as failure:
        say(f"without programs that are built already: {failure}")
        return
    for path in programs:
        if strange := needed_beyond_the_pack(path):
            raise Failure(
                f"--pack: {path.name} needs {', '.join(strange)}, which the other machine may "
                f"lack, and would not start there; remove {friendly(_BUILD)} and try again"
            )
        _copy(path, folder / "bin" / path.name)
        _strip(folder / "bin" / path.name)
    _openmp(folder / "bin" / "bench", folder)


def _commit(folder: Path) -> None:
    """As cmake/commit.cmake reads it: the hashes tell whether the copy is still that commit."""
    head, sources = git("rev-parse", "HEAD"), (".", ":!results")
    changes = git("status", "-z", "--porcelain", "--untracked-files=no", "--", *sources)
    names = git("ls-files", "-z", "--", *sources)
    if head is None or changes is None or names is None:
        raise Failure("--pack notes the commit, but git does not tell it", 2)
    lines = [f"commit {head[0]}", f"dirty {'true' if changes else 'false'}"]
    for name in names:
        if (ROOT / name).is_file():
            lines.append(f"{hashlib.sha256((ROOT / name).read_bytes()).hexdigest()}  {name}")
    (folder / COMMIT).write_text("\n".join(lines) + "\n", encoding="utf-8")


def collect(folder: Path, gpus: Sequence[str]) -> int:
    if folder.exists() and not {path.name for path in folder.iterdir()} <= {COMMIT, ARCHIVE}:
        raise Failure(f"--pack: {friendly(folder)} is not empty; name a new folder", 2)
    folder.mkdir(parents=True, exist_ok=True)
    _commit(folder)
    with tempfile.TemporaryDirectory() as temporary:
        _debian(Path(temporary))
        _wheels(Path(temporary))
        _programs(Path(temporary), gpus)
        shutil.make_archive(str(folder / ARCHIVE.partition(".")[0]), "gztar", temporary)
    size = sum(path.stat().st_size for path in folder.iterdir())
    total = size + sum(path.lstat().st_size for path in every_file() if path.is_file())
    sizes = f"{friendly(folder)}: {size / 2**20:.1f} MiB, {total / 2**20:.1f} with the sources"
    if total >= MOST_BYTES:
        raise Failure(
            f"--pack: {sizes}, more than the limit of {MOST_BYTES / 2**20:g} MiB; name fewer GPUs "
            "with --gpu"
        )
    say(sizes)
    return 0
