# SPDX-License-Identifier: Apache-2.0
"""The Python environment that ./run makes: when, when again, and when not."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import ROOT, RUN, refused, script

from tools import console, environment
from tools.environment import Environment

PINS = "requirements.txt"
CREATED, INSTALLED = "Creating .venv", "pip install"


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commands are only written down, in this list."""
    monkeypatch.chdir(tmp_path)
    done: list[str] = []

    def run_logged(what: str, *_: object) -> list[str]:
        if what.startswith(CREATED):
            assert not made().stamp.exists()
            if stopping:
                raise stopping.pop()
            made().python.parent.mkdir(parents=True, exist_ok=True)
            answer("3.11")
        done.append(what)
        if what == INSTALLED and failing:
            raise failing.pop()
        return []

    failing.clear()
    stopping.clear()
    monkeypatch.setattr(environment, "run_logged", run_logged)
    return done


failing: list[BaseException] = []  # by pip
stopping: list[BaseException] = []  # while an environment is created


def made() -> Environment:
    return Environment(Path.cwd() / ".venv", "the remedy")


def answer(version: str) -> None:
    """Let its interpreter say that it is of that version."""
    script(made().python, f"print({str(made().folder)!r}, {version!r})")


def ensure(*pins: str) -> None:
    """Asks twice, as nothing is to be done the second time."""
    paths = [Path(pin) for pin in pins or (PINS,)]
    for path in paths:
        path.touch()
    made().ensure(paths)
    made().ensure(paths)


def test_an_environment_is_made_once_updated_and_added_to(done: list[str]) -> None:
    ensure()
    assert done == [CREATED, INSTALLED]
    next(made().folder.glob("*.txt")).unlink()  # older versions left no mark
    Path(PINS).write_text("numpy==2\n", encoding="utf-8")
    ensure()
    assert done == [CREATED, INSTALLED, INSTALLED]
    for pins in ([PINS, "more.txt"], [PINS], ["more.txt"]):
        ensure(*pins)
        assert done == [CREATED, *[INSTALLED] * 3]


@pytest.mark.parametrize(
    "damage",
    [
        lambda: made().stamp.write_text("{", encoding="utf-8"),
        lambda: Path.unlink(made().python),
        lambda: answer("3.12"),
        lambda: made().stamp.write_text(
            made().stamp.read_text(encoding="utf-8").replace("/.venv", "/moved/.venv"),
            encoding="utf-8",
        ),
    ],
)
def test_an_unsound_environment_is_made_anew(done: list[str], damage: Callable[[], None]) -> None:
    ensure()
    damage()
    ensure()
    assert done == [CREATED, INSTALLED] * 2


@pytest.mark.parametrize("own", ["bin/python", "pyvenv.cfg"])
def test_a_users_own_environment_is_left_alone(
    done: list[str], own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = Path.cwd() / ".venv" / own
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine", encoding="utf-8")
    ensure()
    assert done == [f"{CREATED}-crossover", INSTALLED]
    assert theirs.read_text(encoding="utf-8") == "mine" and made().folder.name == ".venv-crossover"
    assert ".venv is yours and stays as it is" in capsys.readouterr().err
    made().stamp.unlink()
    for path in made().folder.glob("*.txt"):  # by which it would be known
        path.unlink()
    with refused("which replace nothing of yours"):
        ensure()


def test_an_environment_is_known_from_its_first_moment(done: list[str]) -> None:
    stopping.append(console.Stopped(signal.SIGINT))
    with pytest.raises(console.Stopped):
        ensure()
    (Path.cwd() / ".venv" / "half").touch()
    ensure()
    assert done == [CREATED, INSTALLED] and not (Path.cwd() / ".venv" / "half").exists()


def test_an_interrupted_installation_is_not_taken_for_whole(done: list[str]) -> None:
    failing.append(console.Stopped(signal.SIGINT))
    with pytest.raises(console.Stopped):
        ensure()
    ensure()
    assert done == [CREATED, INSTALLED] * 2


def test_a_failed_installation_says_the_remedy_and_leaves_the_rest_sound(done: list[str]) -> None:
    for pins, commands in (((PINS,), [CREATED, INSTALLED]), (("more.txt",), [INSTALLED])):
        failing.append(console.CommandFailed(INSTALLED, 1, ["no network"], Path("pip.log")))
        with pytest.raises(console.CommandFailed, match=r"(?s)no network.*\nthe remedy"):
            ensure(*pins)
        assert done == commands
        ensure(*pins)
        assert done == [*commands, INSTALLED]
        ensure()
        assert done == [*commands, INSTALLED]
        done.clear()


def test_requirements_are_pinned() -> None:
    for path in (*environment.FOR_TEST, *environment.FOR_CUDA, *environment.FOR_PEERS):
        lines = path.read_text(encoding="utf-8").splitlines()
        pins = [line for line in lines if line and not line.startswith("#")]
        assert pins
        assert all("==" in pin.split(";")[0] for pin in pins)


def _somebody_elses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that must not be taken for ours, in the current folder and in PYTHONPATH."""
    for name in ("numpy", "plots", "json"):
        (folder / f"{name}.py").write_text("raise SystemExit('somebody else')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("PYTHONWARNINGS", "error")


def test_the_report_is_drawn_by_our_own_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _somebody_elses(tmp_path, monkeypatch)
    monkeypatch.setattr(environment, "PYTHON", sys.executable)
    assert RUN.plots("why", "no such file.json") is False
    assert "no such file.json: no such file" in capfd.readouterr().err
    assert environment.module_path(own_paths=True) == f"{ROOT}:{tmp_path}"


def test_the_command_works_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "it's a $HOME"
    own.symlink_to(sys.prefix)
    command = tmp_path / "crossover-plots"
    monkeypatch.setattr(environment, "PYTHON", own / Path(sys.executable).relative_to(sys.prefix))
    monkeypatch.setattr(environment, "COMMAND", command)
    _somebody_elses(tmp_path, monkeypatch)
    environment.install_command()
    words = [command, "why", "no such file.json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no such file.json: no such file" in done.stderr
    done = subprocess.run([command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("crossover-plots: ")
