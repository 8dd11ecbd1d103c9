# SPDX-License-Identifier: Apache-2.0
"""The Python environments: .venv, with oneDNN for the C++ side, and those of other frameworks:
.venv-peers, with PyTorch, and .venv-jax."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crossover_bench.peers.frameworks import FRAMEWORKS
from crossover_bench.place import ALONE, IS_CHECKOUT, ROOT, RUN
from crossover_bench.run.console import (
    HOME,
    LOGS,
    CommandFailed,
    Failure,
    friendly,
    output_of,
    run_logged,
    say,
    stage,
    stored,
)

FOR_RUN = (ROOT / "requirements.txt",)
FOR_TEST = (*FOR_RUN, ROOT / "requirements-test.txt")
FOR_FRAMEWORKS = {
    name: tuple(ROOT / f"requirements-{part}.txt" for part in framework.requirements)
    for name, framework in FRAMEWORKS.items()
}
# What ./test --only=outside runs the suites of others with.
FOR_OUTSIDE = (*FOR_FRAMEWORKS["pytorch"], ROOT / "requirements-outside.txt")
# Only where run/cuda.py wants them; pinned to packages that the others do not use.
FOR_TOOLKIT = (ROOT / "requirements-cudnn-frontend.txt",)
FOR_CUDNN = (ROOT / "requirements-cudnn.txt", *FOR_TOOLKIT)
FOR_CUDA = (ROOT / "requirements-cuda.txt", *FOR_CUDNN)


@dataclass(frozen=True)
class Download:
    """What pip gets for a file of requirements where nothing is there yet, and what does without
    it."""

    megabytes: int
    instead: str = ""

    @property
    def size(self) -> str:
        gigabytes = self.megabytes / 1000
        return f"{gigabytes:.2g} GB" if gigabytes >= 1 else f"{self.megabytes} MB"


_WITHOUT_WHEELS = "an installed CUDA toolkit serves as well, and --cuda=off takes none"
# By the file's name; on x86-64 Linux.
DOWNLOADS = {
    "requirements.txt": Download(120),
    "requirements-test.txt": Download(35),
    **{
        f"requirements-{framework.requirements[-1]}.txt": Download(
            framework.megabytes, framework.instead
        )
        for framework in FRAMEWORKS.values()
    },
    "requirements-outside.txt": Download(61),
    "requirements-cudnn-frontend.txt": Download(2),
    "requirements-cudnn.txt": Download(440, _WITHOUT_WHEELS),
    "requirements-cuda.txt": Download(930, _WITHOUT_WHEELS),
}
_LARGE_MEGABYTES = 100

_SHOW = "import sys; print(sys.prefix, *sys.version_info[:2])"


@dataclass(frozen=True)
class Environment:
    """A folder with an interpreter and what was installed for it."""

    place: Path
    remedy: str  # what to see to where pip fails

    @property
    def folder(self) -> Path:
        """`place`, or beside it where that holds an environment of the user's own."""
        beside = self.place.with_name(f"{self.place.name}-crossover")
        return beside if _is_foreign(self.place) else self.place

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """Written last and removed first, so an interrupted installation is never taken for a
        whole one."""
        return self.folder / "complete.json"

    def ensure(self, requirements: Sequence[Path]) -> None:
        """Create or update it; where it is as it should be, see that in milliseconds.

        CommandFailed where pip fails; what earlier calls installed from other files stays sound.
        """
        stamp, answer = stored(self.stamp), output_of(self.python, "-I", "-c", _SHOW)
        is_sound = bool(answer) and stamp.get("python") == answer  # it is not after a move of it
        have = dict(stamp.get("requirements", {})) if is_sound else {}
        wanted = {path.name: path.read_text(encoding="utf-8") for path in requirements}
        if is_sound and wanted.items() <= have.items():
            return
        self.stamp.unlink(missing_ok=True)
        if not is_sound:
            self._create()
        # --only-binary: a source build would need more than is there, and fail much later.
        # --no-compile: of most packages a small part is ever imported, and compiled then.
        pip: list[str | Path] = ["env", "PIP_USER=0", self.python, "-m", "pip", "install"]
        pip += ["--only-binary=:all:", "--no-compile", "--disable-pip-version-check", "--no-input"]
        pip += ["--progress-bar=off", *(f"-r{path}" for path in requirements)]
        files = " and ".join(wanted)
        _announce([name for name, text in wanted.items() if have.get(name) != text])
        try:
            with stage(f"Installing the Python packages in {files} into {self.folder.name}"):
                run_logged("pip install", pip, LOGS / "pip.log")
        except CommandFailed as failure:
            self._write({file: text for file, text in have.items() if file not in wanted})
            failure.args = (f"{failure}\n{self.remedy}",)
            raise
        self._write(have | wanted)

    def _write(self, requirements: dict[str, str]) -> None:
        answer = output_of(self.python, "-I", "-c", _SHOW)
        content = {"python": answer, "requirements": requirements}
        self.stamp.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def _create(self) -> None:
        if _is_foreign(self.folder):
            raise Failure(
                f"{friendly(self.place)} and {friendly(self.folder)} are not made by {RUN} or "
                "./test, which replace nothing of yours; rename one of them",
                2,
            )
        name = self.folder.name
        if self.folder != self.place:
            say(
                f"{friendly(self.place)} is yours and stays as it is; where the documentation "
                f"says {self.place.name}/, it is {name}/ here"
            )
        with stage(f"Creating the Python environment {name}"):
            if self.folder.exists():
                shutil.rmtree(self.folder)
            self.folder.mkdir()
            (self.folder / _MARK).write_text(_MARKED, encoding="utf-8")
            command = [sys.executable, "-m", "venv", str(self.folder)]
            run_logged(f"Creating {name}", command, LOGS / "venv.log")


def _announce(files: Sequence[str]) -> None:
    """Says what is downloaded for these files, where that is much, before it begins."""
    every = [DOWNLOADS[name] for name in files if name in DOWNLOADS]
    whole = Download(sum(download.megabytes for download in every))
    if whole.megabytes >= _LARGE_MEGABYTES:
        instead = "; ".join(dict.fromkeys(each.instead for each in every if each.instead))
        say(f"to download: up to {whole.size}{instead and f' (Ctrl-C stops it: {instead})'}")


# In an environment from its first moment: one without is a user's own, and left alone.
_MARK = "made-by-crossover.txt"
_MARKED = f"Made by {RUN} or ./test, which may delete this folder and make it anew.\n"


def _is_foreign(folder: Path) -> bool:
    if not os.path.lexists(folder):
        return False
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:
        return True  # a file, a link to nowhere
    return bool(names) and not names & {_MARK, "complete.json"}


MAIN = Environment(
    HOME / ".venv",
    "Check that the Python package index (or the mirror in pip's configuration) can be reached, "
    "and start this again.",
)
OF_FRAMEWORKS = {
    name: Environment(
        HOME / f".venv-{framework.requirements[0]}",
        f"{framework.word} could not be installed: check that the Python package index can be "
        f"reached and that {framework.gigabytes} GB are free; {framework.instead}",
    )
    for name, framework in FRAMEWORKS.items()
}
PEERS = OF_FRAMEWORKS["pytorch"]
VENV = MAIN.folder
# An installed copy runs in an environment that has what it needs.
PYTHON = MAIN.python if IS_CHECKOUT else Path(sys.executable)
COMMAND = VENV / "bin" / "crossover"

# Of what a shell tells Python these change no module that is found, and no warning to an error.
_HARMLESS = {"PYTHONIOENCODING", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}


def variables(own_paths: bool = False) -> dict[str, str]:
    """The variables of a Python process of ours: it finds our package first, then those of its
    environment. `own_paths`: and what the user's PYTHONPATH names, but nothing of the current
    folder, whose numpy.py is none of ours."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON") or k in _HARMLESS}
    safe = {"PYTHONSAFEPATH": "1"} if own_paths else {}
    return {**kept, **safe, "PYTHONPATH": module_path(own_paths)}


def module_path(own_paths: bool) -> str:
    given = os.environ.get("PYTHONPATH") if own_paths else None
    return os.pathsep.join([str(ALONE), *([given] if given else [])])


def as_peer(python: Path, module: str, *words: str, own_paths: bool = False) -> str:
    """The flag that has bench start this module as a peer."""
    return f"--peer={started(python, module, *words, own_paths=own_paths)}"


def started(python: Path, module: str, *words: str, own_paths: bool = False) -> str:
    """The command by which bench starts this module. Safe: without the current folder, whose
    peers.py or numpy.py is none of ours."""
    start = ["env", "PYTHONSAFEPATH=1", f"PYTHONPATH={module_path(own_paths)}"]
    return shlex.join([*start, str(python), "-m", module, *words])


def install_command() -> None:
    """The command of this checkout (shell/command.py), which works from anywhere."""
    start = (
        f"import sys; sys.path.insert(0, {str(ALONE)!r}); "
        "from crossover_bench.shell.command import main; sys.exit(main())"
    )
    # -I: neither the current folder nor PYTHONPATH, which may hold a numpy.py of somebody else's.
    text = f'#!/bin/sh\nexec {shlex.quote(str(PYTHON))} -I -c {shlex.quote(start)} "$@"\n'
    if not COMMAND.exists() or COMMAND.read_text(encoding="utf-8") != text:
        COMMAND.write_text(text, encoding="utf-8")
        COMMAND.chmod(0o755)


def tool(name: str) -> Path:
    """A program that one of the packages in .venv brings."""
    return VENV / "bin" / name
