# SPDX-License-Identifier: Apache-2.0
"""The project's files, and the two clang tools that look at the C++ sources."""

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from tools.console import ROOT, cores

_SOURCES = {".cpp", ".cu"}
_CPP = {".h", ".cuh", *_SOURCES}
_TIDIED_FOLDERS = {ROOT / "src", ROOT / "bench"}
_EMULATION = ROOT / "tests" / "cuda_host"
_TIDY_ARGUMENTS = (
    # The compile commands are gcc's: options that clang lacks are no fault of the source.
    "-extra-arg=-Wno-unknown-warning-option",
    "-extra-arg=-Qunused-arguments",
    # clang 14 cannot read the <chrono> of gcc 13 (Ubuntu 24.04) as it stands.
    "-extra-arg=-Dconsteval=constexpr",
)
# Sources that ./test looks at; the rest is left to --all, as each takes half a minute of a core.
_MOST_LOOKS = 30
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_NOT_OURS = {"build", "brought", "report", "gpu-results", "tries", ".git"}


def git(*arguments: str) -> list[str] | None:
    """NUL-separated names or a word; None where git cannot tell."""
    # A copy without .git may lie in somebody else's repository, which knows nothing of it.
    if not (ROOT / ".git").exists():
        return None
    # safe.directory: in containers the checkout often belongs to another user.
    command = ["git", "-c", f"safe.directory={ROOT}", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [word for word in os.fsdecode(done.stdout).rstrip("\n").split("\0") if word]


def tracked_files() -> set[Path]:
    """Files that git tracks: what else lies in the checkout is its user's, and changes no test.

    Where git is no help: those in the project's folders, in so far as ./run has not made them.
    """
    names = git("ls-files", "-z")
    if names is not None:
        return {ROOT / name for name in names}
    found = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in _NOT_OURS and not f.startswith(".venv")]
        found |= {Path(folder, name) for name in files}
    return {path for path in found if path.parent != ROOT or path.suffix not in {*_CPP, ".py"}}


def tracked_results() -> list[Path]:
    """The result files that git tracks, or that may be, in order: none of the user's own."""
    folder = ROOT / "results"
    return sorted(p for p in tracked_files() if p.suffix == ".json" and folder in p.parents)


def every_file() -> set[Path]:
    """Files of the project: git's, and those in its folders that it will be asked to add."""
    files = tracked_files()
    new = git("ls-files", "-z", "--others", "--exclude-standard", "--", ":!results") or []
    folders = {path.relative_to(ROOT).parts[0] for path in files if path.parent != ROOT}
    return files | {ROOT / name for name in new if name.partition("/")[0] in folders}


def check_format(clang_format: Path) -> bool:
    files = sorted(path for path in tracked_files() if path.suffix in _CPP and path.exists())
    command: list[str | Path] = [clang_format, "--dry-run", "-Werror", *files]
    good = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    print(
        f"clang-format: {len(files)} files, {'all' if good else 'some not'} formatted", flush=True
    )
    return good


def _python_files() -> tuple[list[Path], dict[str, Any]]:
    """The Python sources, commands without .py too, and what pyproject.toml says of tools."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    commands = {ROOT / name for name in tools["ruff"]["extend-include"]}
    found = (p for p in tracked_files() if (p.suffix == ".py" or p in commands) and p.exists())
    return sorted(found), tools


def check_ruff(ruff: Path) -> bool:
    files, _ = _python_files()
    checks: list[list[str | Path]] = [[ruff, "check"], [ruff, "format", "--check"]]
    ends = [subprocess.run([*check, *files], cwd=ROOT, check=False) for check in checks]
    return not any(done.returncode for done in ends)


def check_mypy(mypy: Path) -> bool:
    files, tools = _python_files()
    left_out = re.compile("|".join(tools["mypy"]["exclude"]))
    files = [path for path in files if not left_out.match(str(path.relative_to(ROOT)))]
    command: list[str | Path] = [mypy, "--scripts-are-modules", *files]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


# ---- clang-tidy


def _quoted(path: Path) -> list[str]:
    """What a file includes in quotation marks: the project's own."""
    return _INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))


def _options(build: Path) -> dict[Path, list[str]]:
    """What each source that clang-tidy can read is compiled with, alone or with others."""
    wanted = {p for p in every_file() if p.suffix in _SOURCES and _TIDIED_FOLDERS & {*p.parents}}
    options: dict[Path, list[str]] = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = Path(entry["directory"], entry["file"]).resolve()
        words = shlex.split(entry["command"])
        own = [word.startswith("-") for word in words].index(True)  # the compiler comes before
        words = words[own : words.index("-o")]
        # What CMake compiles as one is a .cxx that includes them.
        together = map(Path, _quoted(path)) if path.suffix == ".cxx" else (path,)
        for source in wanted.intersection(together):
            # clang-tidy 14 reads neither CUDA 13 nor the std::source_location of CUDA's emulation.
            if source.suffix != ".cu" and f"-I{_EMULATION}" not in words:
                options.setdefault(source, words)
    left_out = sorted(str(path.relative_to(ROOT)) for path in wanted - options.keys())
    if left_out:
        print(f"clang-tidy: not looked at: {', '.join(left_out)}")
    return options


def _including(changed: set[Path]) -> set[Path]:
    """The project's files that include one of these, or what does, by the names of files."""
    files = [path for path in every_file() if path.suffix in _CPP and path.is_file()]
    included = {path: {Path(name).name for name in _quoted(path)} for path in files}
    found: set[Path] = set()
    names = {path.name for path in changed}
    while new := {path for path in files if included[path] & names} - found:
        found |= new
        names |= {path.name for path in new}
    return found


def changed_files() -> set[Path] | None:
    """What differs from main; on main, from the commit before. None where git does not know."""
    bases = (git("merge-base", "HEAD^", main) for main in ("origin/main", "main", "HEAD^"))
    base = next(filter(None, bases), None)
    differing = base and git("diff", "--name-only", "-z", base[0])
    new = git("ls-files", "--others", "--exclude-standard", "-z")
    if differing is None or new is None:
        return None
    return {ROOT / name for name in differing + new}


def _chosen(sources: set[Path]) -> list[Path]:
    """The first of the sources that differ from main, and of those that include what does."""
    changed = changed_files()
    if changed is None or any(path.name == ".clang-tidy" for path in changed):
        chosen = sorted(sources)
    else:
        own = sources & changed
        chosen = sorted(own) + sorted(sources & _including(changed) - own)
    left = len(chosen) - _MOST_LOOKS
    if left > 0:
        print(f"clang-tidy: {left} more, which differ or include what does, are left to --all")
    return chosen[:_MOST_LOOKS]


def check_tidy(run_clang_tidy: str, build: Path, everything: bool = False) -> bool:
    """Look at sources that differ from main or include a file that does, on all cores.

    `everything`: at all, and with clang's analyzer too, which takes a third of the time and follows
    paths, not style.
    """
    options = _options(build)
    chosen = sorted(options) if everything else _chosen({*options})
    print(f"clang-tidy: {len(chosen)} of {len(options)} sources to look at", flush=True)
    alone = [
        {"directory": str(ROOT), "file": str(path), "arguments": ["c++", *options[path], str(path)]}
        for path in chosen
    ]
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(alone), encoding="utf-8")
    command = [run_clang_tidy, "-quiet", "-p", str(folder), "-j", str(cores()), *_TIDY_ARGUMENTS]
    command += [] if everything else ["-checks=-clang-analyzer-*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout, done.stderr, flush=True)
    return done.returncode == 0
