# SPDX-License-Identifier: Apache-2.0
"""The C++ sources, and the two clang tools that look at them."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
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
# Of the sources that only include what changed; the rest is left to --all, as each takes seconds.
_MOST_LOOKS = 25
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_UNITY = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")
_NOT_OURS = {"build", ".venv", "brought", "report", ".git"}


def every_file() -> Iterator[Path]:
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
    return sorted({path for path in every_file() if path.suffix in suffixes and path.exists()})


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


def _quoted(path: Path) -> list[str]:
    """What a file includes in quotation marks: the project's own."""
    try:
        return _INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return []


def _reached(source: Path, command: str) -> set[Path]:
    """The project's files that a source includes, itself among them; those left out by #if too."""
    folders = [Path(name) for name in re.findall(r" -I(\S+)", command)]
    reached, open_ = {source}, [source]
    while open_:
        path = open_.pop()
        for name in _quoted(path):
            places = ((folder / name).resolve() for folder in (path.parent, *folders))
            found = next((place for place in places if place.is_file()), None)
            # What the build writes (the commit) changes with every commit, and says nothing new.
            if not found or ROOT not in found.parents or ROOT / "build" in found.parents:
                continue
            if found not in reached:
                reached.add(found)
                open_.append(found)
    return reached


def _commands(build: Path) -> Iterator[tuple[Path, str]]:
    """Each source with the command that compiles it, also where it is compiled with others."""
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = Path(entry["directory"], entry["file"]).resolve()
        command = entry.get("command") or shlex.join(entry.get("arguments", []))
        command = re.sub(r" -o \S+", "", command)
        together = _quoted(path) if _UNITY.search(str(path)) else []
        for name in together:
            yield Path(name), command.replace(entry["file"], name)
        if not together:
            yield path, command


@dataclass
class _Look:
    """A source for clang-tidy: `key` hashes all that the verdict depends on in this tree."""

    key: str
    files: set[Path]


def _to_look_at(clang_tidy: str, build: Path, more: Sequence[str] = ()) -> dict[Path, _Look]:
    files = cpp_files()
    folders = {ROOT / name for name in _TIDIED_FOLDERS}
    wanted = {path for path in files if path.suffix in SOURCES and folders & set(path.parents)}
    common = [str(version_of(clang_tidy, "--version")).encode(), json.dumps(list(more)).encode()]
    checks = sorted({path for path in every_file() if path.name == ".clang-tidy"})
    common += [path.read_bytes() for path in checks]
    looks: dict[Path, _Look] = {}
    commands: list[dict[str, str]] = []
    for path, command in _commands(build):
        # clang-tidy 14 reads neither CUDA 13 nor the std::source_location of CUDA's emulation.
        readable = path.suffix != ".cu" and str(_EMULATION) not in command
        if path in wanted and readable and path not in looks:
            used = _reached(path, command)
            parts = [*common, command.encode()]
            for file in sorted(used):
                parts += [str(file.relative_to(ROOT)).encode(), file.read_bytes()]
            looks[path] = _Look(_digest(parts), {*used, *checks})
            commands.append({"directory": str(build), "file": str(path), "command": command})
    database = build / _TIDY_FOLDER
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
    left_out = sorted(str(path.relative_to(ROOT)) for path in wanted - looks.keys())
    if left_out:
        print(f"clang-tidy: not looked at: {', '.join(left_out)}")
    return looks


def _git(*arguments: str) -> list[str] | None:
    """NUL-separated names or a word; None where git cannot tell."""
    command = ["git", "-c", f"safe.directory={ROOT}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    return os.fsdecode(done.stdout).rstrip("\n").split("\0") if done.returncode == 0 else None


def changed_files() -> set[Path] | None:
    """What differs from main; on main, from the commit before. None where git does not know."""
    try:
        head = _git("rev-parse", "HEAD")
        bases = (_git("merge-base", "HEAD", main) for main in ("origin/main", "main"))
        base = next((base for base in bases if base), None)
        if base is None or base == head:
            base = _git("rev-parse", "--verify", "HEAD^")
        if base is None:
            return None
        differing = _git("diff", "--name-only", "-z", base[0])
        new = _git("ls-files", "--others", "--exclude-standard", "-z")
    except OSError:
        return None
    if differing is None or new is None:
        return None
    return {ROOT / name for name in differing + new if name}


def check_tidy(clang_tidy: str, build: Path, everything: bool = False) -> bool:
    """Look at what has changed since it was last found clean, on all cores.

    Of that, at sources that differ from main or include a file that does. `everything`: at all, and
    with clang's analyzer too, which takes a third of the time and follows paths, not style.
    """
    more = [] if everything else ["--checks=-clang-analyzer-*"]
    looks = _to_look_at(clang_tidy, build, more)
    keys = {path: look.key for path, look in looks.items()}
    touched = None if everything else changed_files()
    if touched is not None:
        as_on_main = [path for path, look in looks.items() if not look.files & touched]
        print(f"clang-tidy: {len(as_on_main)} of {len(keys)} sources as on main; --all checks them")
        for path in as_on_main:
            del keys[path]
        rest = sorted(path for path in keys if path not in touched)[_MOST_LOOKS:]
        for path in rest:
            del keys[path]
        if rest:
            print(f"clang-tidy: {len(rest)} that include what changed are left to --all")
    clean_file = build / "clang-tidy-clean.json"
    try:
        clean = set(json.loads(clean_file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        clean = set()
    changed = sorted(path for path, key in keys.items() if key not in clean)
    print(f"clang-tidy: {len(keys) - len(changed)} of {len(keys)} sources unchanged since clean")
    clean &= {look.key for look in looks.values()}

    def look_at(path: Path) -> tuple[bool, str, float]:
        start = time.monotonic()
        command: list[str | Path] = [
            clang_tidy,
            "-p",
            build / _TIDY_FOLDER,
            *_TIDY_ARGUMENTS,
            *more,
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
