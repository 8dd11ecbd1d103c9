# SPDX-License-Identifier: Apache-2.0
"""The C++ sources, and the two clang tools that look at them."""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tools.console import ROOT, cores
from tools.packages import version_of

HEADERS = {".h", ".cuh"}
SOURCES = {".cpp", ".cu"}
_TIDIED_FOLDERS = ("src", "bench")
_TIDY_FOLDER = "clang-tidy"  # in the build's, with one command for each source
_EMULATION = ROOT / "tests" / "cuda_host"
_TIDY_ARGUMENTS = [
    "--quiet",
    "--warnings-as-errors=*",
    # The compile commands are gcc's: options that clang lacks are no fault of the source.
    "--extra-arg=-Wno-unknown-warning-option",
    "--extra-arg=-Qunused-arguments",
    # clang 14 cannot read the <chrono> of gcc 13 (Ubuntu 24.04) as it stands.
    "--extra-arg=-Dconsteval=constexpr",
]
_NOT_OURS = {"build", ".venv", "brought", "report", ".git"}


def _every_file() -> Iterator[Path]:
    """Files of the project: git's and those it will be asked to add; all, where git is no help."""
    # safe.directory: in containers the checkout often belongs to another user.
    git = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    options = ["--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run([*git, *options], cwd=ROOT, capture_output=True, check=True).stdout
        yield from (ROOT / os.fsdecode(name) for name in listing.split(b"\0") if name)
    except (OSError, subprocess.SubprocessError):
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [name for name in folders if name not in _NOT_OURS]
            yield from (Path(folder, name) for name in names)


def cpp_files() -> list[Path]:
    suffixes = HEADERS | SOURCES
    return sorted({path for path in _every_file() if path.suffix in suffixes and path.exists()})


def check_format(clang_format: Path) -> bool:
    files = cpp_files()
    command: list[str | Path] = [clang_format, "--dry-run", "-Werror", *files]
    good = subprocess.run(command, cwd=ROOT, check=False).returncode == 0 if files else True
    verdict = "all formatted" if good else "some not formatted"
    print(f"clang-format: {len(files)} files, {verdict}", flush=True)
    return good


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _tidy_keys(clang_tidy: str, build: Path) -> dict[Path, str]:
    """For each source to look at, a hash of all that the verdict on it depends on in this tree."""
    files = cpp_files()
    folders = {ROOT / name for name in _TIDIED_FOLDERS}
    wanted = {path for path in files if path.suffix in SOURCES and folders & set(path.parents)}
    common = [str(version_of(clang_tidy, "--version")).encode()]
    checks = sorted({path for path in _every_file() if path.name == ".clang-tidy"})
    common += [path.read_bytes() for path in checks]
    common += [path.read_bytes() for path in files if path.suffix in HEADERS]
    keys: dict[Path, str] = {}
    commands: list[dict[str, str]] = []
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = Path(entry["directory"], entry["file"]).resolve()
        command = entry.get("command") or json.dumps(entry.get("arguments"))
        # clang-tidy 14 reads neither CUDA 13 nor the std::source_location of CUDA's emulation.
        readable = path.suffix != ".cu" and str(_EMULATION) not in command
        if path in wanted and readable and path not in keys:
            keys[path] = _digest([*common, command.encode(), path.read_bytes()])
            commands.append(entry)
    database = build / _TIDY_FOLDER
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
    left_out = sorted(str(path.relative_to(ROOT)) for path in wanted - keys.keys())
    if left_out:
        print(f"clang-tidy: not looked at: {', '.join(left_out)}")
    return keys


def check_tidy(clang_tidy: str, build: Path) -> bool:
    """Look at what has changed since it was last found clean, on all cores."""
    keys = _tidy_keys(clang_tidy, build)
    clean_file = build / "clang-tidy-clean.json"
    try:
        clean = set(json.loads(clean_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        clean = set()
    changed = sorted(path for path, key in keys.items() if key not in clean)
    print(f"clang-tidy: {len(keys) - len(changed)} of {len(keys)} sources unchanged since clean")
    clean &= set(keys.values())

    def look_at(path: Path) -> tuple[bool, str, float]:
        start = time.monotonic()
        command: list[str | Path] = [
            clang_tidy,
            "-p",
            build / _TIDY_FOLDER,
            *_TIDY_ARGUMENTS,
            path,
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        # stderr only counts what was suppressed, except when the tool itself fell over.
        text = done.stdout if done.stdout.strip() else done.stderr
        return done.returncode == 0, text, time.monotonic() - start

    faulty = 0
    with ThreadPoolExecutor(cores()) as pool:
        jobs = {pool.submit(look_at, path): path for path in changed}
        try:
            for number, job in enumerate(as_completed(jobs), 1):
                good, text, seconds = job.result()
                path = jobs[job]
                verdict = "clean" if good else "FAULTS"
                place = f"[{number}/{len(changed)}] {path.relative_to(ROOT)}"
                print(f"{place}: {verdict} ({seconds:.1f} s)", flush=True)
                if good:
                    clean.add(keys[path])
                    clean_file.write_text(json.dumps(sorted(clean)), encoding="utf-8")
                else:
                    faulty += 1
                    print(text, flush=True)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    print(f"clang-tidy: {faulty} of {len(keys)} sources with faults", flush=True)
    return faulty == 0
