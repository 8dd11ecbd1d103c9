# SPDX-License-Identifier: Apache-2.0
"""Collect what a build needs beside the sources into one folder, for a machine without a network:
the libraries, and the commit, which a copy without .git cannot tell."""

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.console import ROOT, Failure, friendly, say
from tools.environment import FOR_TOOLKIT, PYTHON, VENV
from tools.sources import every_file

_PACKAGES = (
    "libbenchmark-dev",
    "libgtest-dev",
    "libgmock-dev",
    "libhwy-dev",
    "libhwy1",
    "nlohmann-json3-dev",
)
_LEFT_OUT = ("/usr/share/doc", "/usr/src", "/usr/share/man", "/usr/share/lintian")
MOST_BYTES = 64 * 2**20  # of the sources and the folder together
COMMIT = "commit.txt"


def _copy(path: Path, to: Path) -> None:
    """A file, or a link together with what it points to beside it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        target = path.readlink()
        if target.name == str(target):
            to.unlink(missing_ok=True)
            to.symlink_to(target)
            _copy(path.with_name(target.name), to.with_name(target.name))
            return
    shutil.copy2(path, to)


def _debian(folder: Path) -> None:
    try:
        listed = subprocess.run(
            ["dpkg-query", "-L", *_PACKAGES], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        raise Failure(
            f"--pack copies the Debian packages {', '.join(_PACKAGES)}, which are not all here; "
            "./test installs them",
            2,
        ) from None
    for line in listed.splitlines():
        path = Path(line)
        if line.startswith("/usr/") and not line.startswith(_LEFT_OUT) and not path.is_dir():
            _copy(path, folder / path.relative_to("/usr"))


def _onednn(folder: Path) -> None:
    libraries = [path for path in VENV.glob("lib/libdnnl.so.*.*") if not path.is_symlink()]
    if len(libraries) != 1:
        raise Failure(f"--pack: there is no oneDNN in {friendly(VENV)}; ./run installs it", 2)
    copy = folder / "lib" / libraries[0].name
    _copy(libraries[0], copy)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", copy], check=True)
    # Wheels hold copies where there should be links.
    for name in ("libdnnl.so", "libdnnl.so." + libraries[0].name.split(".")[2]):
        (folder / "lib" / name).symlink_to(copy.name)
    for path in [*VENV.glob("include/dnnl*"), *VENV.glob("include/oneapi/**/*")]:
        if path.is_file():
            _copy(path, folder / path.relative_to(VENV))
    shutil.copytree(VENV / "lib/cmake/dnnl", folder / "lib/cmake/dnnl")


def _cudnn_frontend(folder: Path) -> None:
    """NVIDIA's headers, which are a Python package; cuDNN itself is too large to bring along."""
    pinned = [
        line.strip()
        for line in FOR_TOOLKIT[0].read_text(encoding="utf-8").splitlines()
        if line.startswith("nvidia-cudnn-frontend==")
    ]
    with tempfile.TemporaryDirectory() as temporary:
        headers = [*VENV.glob("lib/python3*/site-packages/include/cudnn_frontend.h")]
        if not headers:
            command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            command += ["--no-deps", "--only-binary=:all:", "--target", temporary, *pinned]
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run(command, capture_output=True, check=True, timeout=300)
            headers = [*Path(temporary).glob("include/cudnn_frontend.h")]
        if not headers:
            say(f"without {pinned[0]}, which pip does not give: the GPU gets no convolutions")
            return
        include = headers[0].parent
        for path in [*include.glob("cudnn_frontend*.h"), *include.glob("cudnn_frontend/**/*")]:
            if path.is_file():
                _copy(path, folder / "include" / path.relative_to(include))


def _git(*words: str) -> str:
    try:
        return subprocess.run(
            ["git", "-C", ROOT, "-c", f"safe.directory={ROOT}", *words],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise Failure(f"--pack notes the commit, but git {words[0]}: {said.strip()}", 2) from None


def _commit(folder: Path) -> None:
    """As cmake/commit.cmake reads it: the hashes tell whether the copy is still that commit."""
    changes = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")
    lines = [
        f"commit {_git('rev-parse', 'HEAD').strip()}",
        f"dirty {'true' if changes else 'false'}",
    ]
    for name in _git("ls-files", "-z", "--", ".", ":!results").rstrip("\0").split("\0"):
        path = ROOT / name
        if path.is_file():
            lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}")
    (folder / COMMIT).write_text("\n".join(lines) + "\n", encoding="utf-8")


def collect(folder: Path) -> int:
    if folder.exists() and any(folder.iterdir()):
        if not (folder / COMMIT).is_file():
            raise Failure(f"--pack: {friendly(folder)} is not empty; name a new folder", 2)
        shutil.rmtree(folder)  # an earlier one of ours
    folder.mkdir(parents=True, exist_ok=True)
    _commit(folder)
    _debian(folder)
    _onednn(folder)
    _cudnn_frontend(folder)
    size = sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
    total = size + sum(path.lstat().st_size for path in every_file() if path.is_file())
    if total >= MOST_BYTES:
        raise Failure(
            f"--pack: the sources and {friendly(folder)} hold {total} bytes, more than the "
            f"limit of {MOST_BYTES}"
        )
    say(f"{friendly(folder)}: {size / 2**20:.1f} MiB, {total / 2**20:.1f} MiB with the sources")
    return 0
