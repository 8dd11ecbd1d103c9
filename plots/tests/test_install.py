# SPDX-License-Identifier: Apache-2.0
"""`pip install .` in a fresh environment: the command works away from the repository."""

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from plots import __version__
from plots.cli import main
from plots.commands import COMMANDS
from plots.tests import synthetic

ROOT = Path(__file__).parents[2]


def _left() -> set[Path]:
    """What building a package leaves in a checkout, perhaps long ago."""
    return {*ROOT.glob("*.egg-info"), *ROOT.glob("build/lib")}


BEFORE = _left()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command crossover-plots of a new environment, which sees this one's dependencies."""
    flit = pytest.importorskip(
        "flit_core", reason="flit_core, which builds the package, is missing"
    )
    pytest.importorskip("pip", reason="this Python has no pip")
    root = tmp_path_factory.mktemp("installed")
    _done([sys.executable, "-m", "venv", "--without-pip", root / "venv"], root)
    python = root / "venv" / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(_done([python, "-c", where], root).stdout.strip())
    borrowed = {str(Path(module.__file__).parents[1]) for module in (flit, numpy)}
    (packages / "borrowed.pth").write_text("\n".join(sorted(borrowed)), encoding="utf-8")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    _done([*_pip(python), "install", *options, ROOT], root)
    return python.with_name("crossover-plots")


def _pip(python: Path) -> list[str | Path]:
    return [sys.executable, "-m", "pip", "--python", python]


def _run(command: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)


def _done(command: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    done = _run(command, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_the_installed_package_is_the_one_that_runs(installed, tmp_path):
    where = "import plots; print(plots.__file__, plots.__version__)"
    found, version = _done([installed.with_name("python"), "-c", where], tmp_path).stdout.split()
    assert Path(found).is_relative_to(installed.parents[1]) and version == __version__
    names = _done([*_pip(installed.with_name("python")), "list"], tmp_path).stdout
    assert "crossover-plots" in names


@pytest.mark.slow
def test_the_installed_command_reads_files_from_any_folder(installed, tmp_path):
    entries = []
    for model in ("disc-3", "disc-12"):
        entries += synthetic.samples(synthetic.cpu_configuration(model, 2))
        entries += synthetic.samples(synthetic.gpu_configuration(model))
    document = synthetic.document(entries, gpu="synthetic GPU")
    synthetic.write(tmp_path / "in" / "a.json", document)
    theirs = tmp_path / "build" / "bench"  # came with the files, and is not run
    theirs.parent.mkdir()
    theirs.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n", encoding="utf-8")
    theirs.chmod(0o755)
    assert "in/a.json: valid, " in _done([installed, "validate", "in"], tmp_path).stdout
    told = _done([installed, "crossover", "in"], tmp_path)
    assert told.stderr == "" and "the GPU wins" in told.stdout
    assert _done([installed, "report", "in", "-o", "out"], tmp_path).stdout.startswith("wrote ")
    assert "<svg" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "LSTM" in _done([installed, "shi"], tmp_path).stdout  # the published table
    asked = _run([installed, "advise", "--model=alexnet-r", "--batch=37", "in"], tmp_path)
    assert asked.returncode == 2 and "name it with --bench PATH" in asked.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_the_installed_command_says_its_own_name(installed, tmp_path):
    assert _done([installed, "--version"], tmp_path).stdout == f"crossover-plots {__version__}\n"
    assert "example: crossover-plots why " in _done([installed, "why", "-h"], tmp_path).stdout
    refused = _run([installed, "x"], tmp_path)
    assert refused.returncode == 2 and refused.stderr.startswith("crossover-plots: ")


@pytest.mark.slow
def test_installing_leaves_nothing_in_the_checkout(installed):
    assert _left() == BEFORE


def test_the_module_tells_its_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"crossover-plots {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_example_follows_how_the_program_was_started(command, capsys, monkeypatch):
    for started, name in (
        ("/x/plots/__main__.py", "python -m plots"),
        ("/x/bin/crossover-plots", "crossover-plots"),
    ):
        monkeypatch.setattr(sys, "argv", [started])
        with pytest.raises(SystemExit):
            main([command, "--help"])
        printed = " ".join(capsys.readouterr().out.split())
        assert f"usage: {name} {command} " in printed
        assert f"example: {name} {command} " in printed
