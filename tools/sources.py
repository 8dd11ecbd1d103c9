# SPDX-License-Identifier: Apache-2.0
"""The project's files, and the tools that look at them."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from crossover_bench.place import ROOT
from crossover_bench.run import environment
from crossover_bench.run.console import LOGS, cores, git, run_logged
from crossover_bench.run.cuda import Choice
from tools.stages import passes

_CPP = {".h", ".cuh", ".cpp", ".cu"}
_TIDY_BUILD = ROOT / "build" / "tidy"
_TIDY_ARGUMENTS = (
    # The compile commands are gcc's: options that clang lacks are no fault of the source.
    "-extra-arg=-Wno-unknown-warning-option",
    "-extra-arg=-Qunused-arguments",
    # clang 14 cannot read the <chrono> of gcc 13 (Ubuntu 24.04) as it stands.
    "-extra-arg=-Dconsteval=constexpr",
)
# clang-tidy 14 reads no CUDA 13, so no .cu.
_TIDIED = re.compile(r"(src|bench)/.*\.cpp")
_NOT_OURS = {"build", "brought", "report", "gpu-results", "tries", ".git"}


def _told_by_git(*words: str) -> list[str] | None:
    """NUL-separated names or a word; None where git cannot tell."""
    try:
        answer = git(*words)
    except OSError:
        return None
    names = answer.stdout.rstrip("\n").split("\0")
    return [name for name in names if name] if answer.returncode == 0 else None


def tracked_files() -> set[Path]:
    """Files that git tracks: what else lies in the checkout is its user's, and changes no test.

    Where git is no help: those in the project's folders, in so far as ./run has not made them.
    """
    names = _told_by_git("ls-files", "-z")
    if names is not None:
        return {ROOT / name for name in names}
    paths: set[Path] = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in _NOT_OURS and not f.startswith(".venv")]
        paths.update(Path(folder, name) for name in files)
    return {path for path in paths if path.parent != ROOT or path.suffix not in {*_CPP, ".py"}}


def tracked_results() -> list[Path]:
    """The result files that git tracks, or that may be, in order: none of the user's own."""
    folder = ROOT / "results"
    return sorted(p for p in tracked_files() if p.suffix == ".json" and folder in p.parents)


def check_format() -> bool:
    files = sorted(path for path in tracked_files() if path.suffix in _CPP and path.exists())
    good = passes([environment.tool("clang-format"), "--dry-run", "-Werror", *files])
    verdict = "all" if good else "some not"
    print(f"clang-format: {len(files)} files, {verdict} formatted", flush=True)
    return good


def _python_files() -> tuple[list[Path], dict[str, Any]]:
    """The Python sources, commands without .py too, and what pyproject.toml says of tools."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    commands = {ROOT / name for name in tools["ruff"]["extend-include"]}
    paths = (p for p in tracked_files() if (p.suffix == ".py" or p in commands) and p.exists())
    return sorted(paths), tools


def check_ruff() -> bool:
    ruff, (files, _) = environment.tool("ruff"), _python_files()
    return all([passes([ruff, "check", *files]), passes([ruff, "format", "--check", *files])])


def check_mypy() -> bool:
    files, tools = _python_files()
    left_out = re.compile("|".join(tools["mypy"]["exclude"]))
    files = [path for path in files if not left_out.match(str(path.relative_to(ROOT)))]
    return passes([environment.tool("mypy"), "--scripts-are-modules", *files])


def changed_files() -> set[Path] | None:
    """What differs from main; on main, from the commit before. None where git does not know."""
    mains = ("origin/main", "main", "HEAD^")
    base = next(filter(None, (_told_by_git("merge-base", "HEAD^", main) for main in mains)), None)
    names = base and _told_by_git("diff", "--name-only", "-z", base[0])
    return None if names is None else {ROOT / name for name in names}


def check_tidy(run_clang_tidy: str, cuda: Choice, everything: bool = False) -> bool:
    """Look at the sources that differ from main, on all cores.

    `everything`: at all, and with clang's analyzer too, which takes a third of the time and follows
    paths, not style.
    """
    changed = None if everything else changed_files()
    sources = sorted(
        path
        for path in (tracked_files() if changed is None else changed)
        if _TIDIED.match(str(path.relative_to(ROOT))) and path.exists()
    )
    print(f"clang-tidy: {len(sources)} sources to look at", flush=True)
    if not sources:
        return True
    # Each source by itself, as clang-tidy reads it; none as CUDA's emulation in tests compiles it,
    # whose std::source_location clang-tidy 14 does not know.
    configure: list[str | Path] = ["cmake", "--preset", "default", "-B", _TIDY_BUILD]
    configure += ["-DCMAKE_UNITY_BUILD=OFF", "-DCROSSOVER_TESTS=OFF"]
    configure += [f"-DCMAKE_PREFIX_PATH={environment.VENV}", *cuda.switches]
    run_logged("Configuring (tidy)", configure, LOGS / "configure-tidy.log")
    compiled = json.loads((_TIDY_BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    known = {Path(entry["directory"], entry["file"]).resolve() for entry in compiled}
    if left_out := [str(path.relative_to(ROOT)) for path in sources if path not in known]:
        print(f"clang-tidy: not looked at without CUDA: {', '.join(left_out)}", flush=True)
    command = [run_clang_tidy, "-quiet", "-p", str(_TIDY_BUILD), "-j", str(cores())]
    command += [*_TIDY_ARGUMENTS, *([] if everything else ["-checks=-clang-analyzer-*"])]
    command += [f"^{re.escape(str(path))}$" for path in sources]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout, done.stderr, flush=True)
    return done.returncode == 0
