# SPDX-License-Identifier: Apache-2.0
"""The Python environment that ./run makes: when, when again, and when not."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import script

from tools import console, environment


def answering(version: str, folder: Path) -> str:
    return f"print({json.dumps(json.dumps({'python': version, 'prefix': str(folder)}))})"


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A repository of its own whose commands are only written down, in the list returned."""
    folder = tmp_path / ".venv"
    for name in ("requirements.txt", "requirements-test.txt"):
        (tmp_path / name).write_text("numpy==1\n", encoding="utf-8")
    monkeypatch.setattr(environment, "MAIN", environment.Environment(folder))
    monkeypatch.setattr(environment, "FOR_RUN", (tmp_path / "requirements.txt",))
    both = (*environment.FOR_RUN, tmp_path / "requirements-test.txt")
    monkeypatch.setattr(environment, "FOR_TEST", both)
    done: list[str] = []

    def run_logged(what: str, *_: object) -> list[str]:
        done.append(what)
        if what == "Creating .venv":
            assert not folder.exists()
            (folder / "bin").mkdir(parents=True)
            script(folder / "bin" / "python", answering("3.11", folder))
        return []

    monkeypatch.setattr(environment, "run_logged", run_logged)
    return done


WHOLE = ["Creating .venv", "pip install"]


def test_the_environment_is_made_once(venv: list[str]) -> None:
    environment.ensure(environment.FOR_RUN)
    assert venv == WHOLE
    environment.ensure(environment.FOR_RUN)
    assert venv == WHOLE


def test_new_requirements_update_the_environment_in_place(venv: list[str]) -> None:
    environment.ensure(environment.FOR_RUN)
    environment.FOR_RUN[0].write_text("numpy==2\n", encoding="utf-8")
    environment.ensure(environment.FOR_RUN)
    assert venv == [*WHOLE, "pip install"]
    environment.ensure(environment.FOR_RUN)
    assert venv == [*WHOLE, "pip install"]


def test_the_tests_packages_are_added_once_and_stay(venv: list[str]) -> None:
    environment.ensure(environment.FOR_RUN)
    for requirements in (environment.FOR_TEST, environment.FOR_RUN, environment.FOR_TEST):
        environment.ensure(requirements)
        assert venv == [*WHOLE, "pip install"]


def _move_repository() -> None:
    content = json.loads(environment.MAIN.stamp.read_text(encoding="utf-8"))
    content["prefix"] = "/elsewhere/.venv"
    environment.MAIN.stamp.write_text(json.dumps(content), encoding="utf-8")


def _replace_by_file() -> None:
    environment.MAIN.remove()
    environment.MAIN.folder.touch()


def _replace_by_dangling_link() -> None:
    environment.MAIN.remove()
    environment.MAIN.folder.symlink_to("/nowhere/at/all")


@pytest.mark.parametrize(
    "damage",
    [
        lambda: Path.unlink(environment.MAIN.stamp),
        lambda: environment.MAIN.stamp.write_text("{", encoding="utf-8"),
        lambda: Path.unlink(environment.MAIN.python),
        lambda: script(environment.MAIN.python, answering("3.12", environment.MAIN.folder)),
        _move_repository,
        _replace_by_file,
        _replace_by_dangling_link,
    ],
)
def test_an_unsound_environment_is_made_anew(venv: list[str], damage: Callable[[], None]) -> None:
    environment.ensure(environment.FOR_RUN)
    damage()
    environment.ensure(environment.FOR_RUN)
    assert venv == WHOLE + WHOLE
    environment.ensure(environment.FOR_RUN)
    assert venv == WHOLE + WHOLE


def test_an_interrupted_installation_is_not_taken_for_whole(
    venv: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise console.Stopped(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(environment.Environment, "_pip_install", interrupted)
        with pytest.raises(console.Stopped):
            environment.ensure(environment.FOR_RUN)
    environment.ensure(environment.FOR_RUN)
    assert venv == ["Creating .venv", *WHOLE]


def test_a_failed_addition_leaves_the_environment_sound(
    venv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.ensure(environment.FOR_RUN)
    more = tmp_path / "requirements-cuda.txt"
    more.write_text("nvidia-cublas==13\n", encoding="utf-8")

    def no_network(*_: object) -> None:
        raise console.CommandFailed("pip install", 1, ["no network"], tmp_path)

    with monkeypatch.context() as patch:
        patch.setattr(environment.Environment, "_pip_install", no_network)
        with pytest.raises(console.CommandFailed):
            environment.ensure((more,))
    environment.ensure(environment.FOR_RUN)
    assert venv == WHOLE
    environment.ensure((more,))
    assert venv == [*WHOLE, "pip install"]


def test_requirements_are_pinned() -> None:
    for path in (*environment.FOR_TEST, *environment.FOR_CUDA, *environment.FOR_PEERS):
        lines = path.read_text(encoding="utf-8").splitlines()
        pins = [line for line in lines if line and not line.startswith("#")]
        assert pins
        assert all("==" in pin.split(";")[0] for pin in pins)
