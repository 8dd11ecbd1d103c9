# SPDX-License-Identifier: Apache-2.0
"""What ./run and ./test set up: the Python environment, a CUDA compiler, CMake."""

import os
import re
import signal
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripts import ROOT, ran, refused, script

from crossover_bench.place import ALONE
from crossover_bench.run import build, console, cuda, drivers, environment, packages, run
from crossover_bench.run.environment import Environment
from crossover_bench.shell import command

# --- the Python environment


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


def test_an_environment_is_made_once_updated_and_added_to(done):
    ensure()
    assert done == [CREATED, INSTALLED]
    Path(PINS).write_text("numpy==2\n", encoding="utf-8")
    ensure()
    assert done == [CREATED, INSTALLED, INSTALLED]
    for pins in ([PINS, "more.txt"], [PINS], ["more.txt"]):
        ensure(*pins)
        assert done == [CREATED, *[INSTALLED] * 3]


def move() -> None:
    stamp = made().stamp
    text = stamp.read_text(encoding="utf-8").replace("/.venv", "/moved/.venv")
    stamp.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        lambda: made().stamp.write_text("{", encoding="utf-8"),
        lambda: Path.unlink(made().python),
        lambda: answer("3.12"),
        move,
    ],
)
def test_an_unsound_environment_is_made_anew(done, damage):
    ensure()
    damage()
    ensure()
    assert done == [CREATED, INSTALLED] * 2


@pytest.mark.parametrize("name", ["bin/python", "pyvenv.cfg"])
def test_a_users_own_environment_is_left_alone(done, name, capsys):
    theirs = Path.cwd() / ".venv" / name
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


def test_what_was_interrupted_is_not_taken_for_whole(done):
    """It is known from its first moment."""
    stopping.append(console.Stopped(signal.SIGINT))
    with pytest.raises(console.Stopped):
        ensure()
    (half := made().folder / "half").touch()
    failing.append(console.Stopped(signal.SIGINT))
    with pytest.raises(console.Stopped):
        ensure()
    assert done == [CREATED, INSTALLED] and not half.exists()
    ensure()
    assert done == [CREATED, INSTALLED] * 2


def test_a_failed_installation_says_the_remedy_and_leaves_the_rest_sound(done):
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


@pytest.mark.parametrize(
    ("pins", "told"),
    [
        (
            environment.FOR_FRAMEWORKS["pytorch"],
            "up to 3 GB (Ctrl-C stops it: --with-peers=PYTHON takes",
        ),
        (environment.FOR_CUDA, "up to 1.4 GB (Ctrl-C stops it: an installed CUDA toolkit"),
        (environment.FOR_RUN, "up to 120 MB\n"),
        (environment.FOR_TOOLKIT, ""),
    ],
)
@pytest.mark.usefixtures("done")
def test_a_large_download_is_announced_before_it_begins(pins, told, monkeypatch):
    written: list[str] = []

    def begins(what: str, *_: object) -> list[str]:
        written.append(what)
        return []

    monkeypatch.setattr(environment, "say", lambda text: written.append(f"{text}\n"))
    monkeypatch.setattr(environment, "run_logged", begins)
    made().ensure(pins)
    _, *sentences, last = written
    assert last == INSTALLED and len(sentences) == bool(told)
    assert all(sentence.startswith(f"to download: {told}") for sentence in sentences)


def test_each_file_of_requirements_says_how_much_it_downloads():
    assert environment.DOWNLOADS.keys() == {path.name for path in ROOT.glob("requirements*.txt")}


@pytest.mark.parametrize(
    ("told", "size"),
    [
        (
            "'http://a/b_1.deb' b_1.deb 1500000 MD5Sum:0\n'http://a/c.deb' c.deb 600000 MD5Sum:0\n",
            2,
        ),
        ("E: Unable to locate package b\n", None),
    ],
)
def test_apt_tells_how_much_it_downloads(told, size, monkeypatch):
    asked = []
    monkeypatch.setattr(packages, "output_of", lambda *words: asked.append(words) or told)
    assert packages._size(["b"]) == (f" ({size} MB to download)" if size else "")
    assert asked[0][:2] == ("apt-get", "install") and {"--print-uris", "b"} < {*asked[0]}


def pins_of(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [line.partition(";")[0] for line in lines if line and not line.startswith("#")]


def test_requirements_are_pinned():
    pins = [pin for path in ROOT.glob("requirements*.txt") for pin in pins_of(path)]
    assert len(pins) > 50 and all("==" in pin for pin in pins)
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]
    assert {requirement.partition(";")[0] for requirement in build["requires"]} <= {*pins}


def test_the_site_is_built_with_the_packages_of_the_report_by_their_digests():
    pins = [pin.split() for pin in pins_of(ROOT / ".github" / "site-requirements.txt")]
    for _, *digests in pins:
        assert digests and all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", word) for word in digests)
    of_report = {pin for pin in pins_of(ROOT / "requirements.txt") if not pin.startswith("onednn")}
    assert {pin for pin, *_ in pins} == of_report


def test_what_is_fetched_is_named_by_its_commit():
    """A tag may be moved."""
    paths = [*(ROOT / ".github/workflows").glob("*.yml"), *(ROOT / "cmake").glob("*.cmake")]
    text = "\n".join(path.read_text("utf-8") for path in paths)
    named = re.findall(r"(?:\buses: *\S+@|GIT_TAG +)([^\s)]+)", text)
    assert len(named) > 8
    assert [name for name in named if not re.fullmatch("[0-9a-f]{40}", name)] == []


def _somebody_elses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that must not be taken for ours, in the current folder and in PYTHONPATH."""
    for name in ("numpy", "crossover_bench", "json"):
        (folder / f"{name}.py").write_text("raise SystemExit('somebody else')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("PYTHONWARNINGS", "error")


def test_the_report_is_drawn_by_our_own_modules(tmp_path, monkeypatch, capfd):
    _somebody_elses(tmp_path, monkeypatch)
    monkeypatch.setattr(environment, "PYTHON", sys.executable)
    assert run.plots("why", "no such file.json") is False
    assert "no such file.json: no such file" in capfd.readouterr().err
    assert environment.module_path(own_paths=True) == f"{ALONE}:{tmp_path}"


def test_the_command_works_from_anywhere(tmp_path, monkeypatch):
    prefix = tmp_path / "it's a $HOME"
    prefix.symlink_to(sys.prefix)
    command, python = tmp_path / "crossover", Path(sys.executable).relative_to(sys.prefix)
    monkeypatch.setattr(environment, "PYTHON", prefix / python)
    monkeypatch.setattr(environment, "COMMAND", command)
    _somebody_elses(tmp_path, monkeypatch)
    environment.install_command()
    complaint = ran(command, "why", "no such file.json", code=2, cwd=tmp_path).stderr
    assert "no such file.json: no such file" in complaint
    assert ran(command, "x", code=2, cwd=tmp_path).stderr.startswith("crossover: ")


def test_networks_are_imported_by_the_pytorch_that_was_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "PEERS", Environment(tmp_path, ""))
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    for path in (python, tmp_path / "made-by-crossover.txt"):
        path.touch()
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(command.os, "execve", lambda *how: pytest.fail(repr(how[1])))
    monkeypatch.setattr(sys, "argv", ["crossover", "networks", "show", "net.json"])
    words = [str(python), "-m", "crossover_bench.networks", "show", "net.json"]
    with pytest.raises(pytest.fail.Exception, match=re.escape(repr(words))):
        command.main()


# --- the CUDA compiler


def nvcc_of(folder: Path, release: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return script(folder / "nvcc", f"print('Cuda compilation tools, release {release}, V1')")


def test_the_toolkit_is_the_one_that_cmake_finds(tmp_path, monkeypatch):
    on_path = nvcc_of(tmp_path / "bin", "12.4")
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}{os.environ['PATH']}")
    assert cuda.find_toolkit() == cuda.Choice(str(on_path), "12.4")
    named = nvcc_of(tmp_path / "named", "13.1")
    monkeypatch.setenv("CUDACXX", str(named))
    assert cuda.find_toolkit() == cuda.Choice(str(named), "13.1")
    nvcc_of(tmp_path / "named", "11.8")
    assert cuda.find_toolkit().nvcc is None
    assert "is of CUDA 11.8, older than 12" in cuda.find_toolkit().reason


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No toolkit, a driver for CUDA 13.2; names of the requirements asked for, as they come."""
    asked: list[str] = []
    nvcc = tmp_path / ".venv/lib/python3.11/site-packages/nvidia/cu13/bin"

    def ensure(requirements: tuple[Path, ...]) -> None:
        asked.extend(path.name for path in requirements)
        nvcc_of(nvcc, "13.0")

    monkeypatch.setattr(cuda, "find_toolkit", lambda: cuda.Choice(reason="no nvcc was found"))
    monkeypatch.setattr(cuda, "driver_version", lambda: (13, 2))
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment, "MAIN", SimpleNamespace(ensure=ensure))
    return asked


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_driver_without_a_toolkit_gets_the_wheels(mode, wheels):
    choice = cuda.choose(mode)
    assert wheels == [path.name for path in environment.FOR_CUDA]
    assert choice.version == "13.0" and choice.nvcc is not None
    root = Path(choice.nvcc).parent.parent
    assert root.parts[-2:] == ("nvidia", "cu13")
    assert f"-DCUDAToolkit_ROOT={root}" in choice.switches
    assert f"-DCROSSOVER_CUDA={mode.upper()}" in choice.switches


def test_tests_get_cudnn_where_the_toolkit_lacks_it(tmp_path, wheels, monkeypatch):
    toolkit = cuda.Choice(str(tmp_path / "bin" / "nvcc"), "13.1")
    monkeypatch.setattr(cuda, "find_toolkit", lambda: toolkit)
    cuda.choose("auto")
    assert wheels == ["requirements-cudnn-frontend.txt"]
    assert cuda.choose("auto", tests=True) == replace(toolkit, required=False)
    assert wheels[1:] == [path.name for path in environment.FOR_CUDNN]


def _no_network(_: object) -> None:
    lines = ["Retrying", "ERROR: No matching distribution found", ""]
    raise console.CommandFailed("pip install", 1, lines, Path("pip.log"))


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        (None, "no nvcc was found, and no NVIDIA driver is installed"),
        ((12, 8), "the driver here runs CUDA 12.8, for which there are no wheels"),
        ((13, 2), "could not be installed (pip: ERROR: No matching distribution found)"),
    ],
)
@pytest.mark.usefixtures("wheels")
def test_without_a_compiler_auto_goes_on_and_on_does_not(driver, reason, monkeypatch, capsys):
    monkeypatch.setattr(cuda, "driver_version", lambda: driver)
    monkeypatch.setattr(environment, "MAIN", SimpleNamespace(ensure=_no_network))
    assert cuda.choose("auto", tests=True).switches == ["-DCROSSOVER_CUDA=OFF"]
    assert reason in capsys.readouterr().err
    assert cuda.choose("auto").switches == ["-DCROSSOVER_CUDA=OFF"]
    told = "no NVIDIA driver is installed here; --cuda=on builds with it"
    assert (told in capsys.readouterr().err) == (driver is None)
    with refused(re.escape(reason)):
        cuda.choose("on")


# --- what CMake is told to configure, and when afresh


Configure = Callable[..., set[str]]
NO_CUDA = cuda.Choice(reason="not in this test")
TOOLKIT = cuda.Choice("/t/bin/nvcc", "13.0")


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """The words that CMake is started with, which keeps in its cache what it is told, and the
    toolkit. It refuses a folder that holds a file `moved`."""
    commands: list[list[str]] = []

    def run_logged(_what: str, command: list[str], log: Path) -> list[str]:
        commands.append(command)
        if (tmp_path / "moved").exists() and "--fresh" not in command:
            raise console.CommandFailed("Configuring", 1, [], log)
        cache = build._cache(tmp_path)
        cache |= dict(word[2:].split("=") for word in command if word.startswith("-DCROSSOVER"))
        if checked:
            cache["CROSSOVER_CUDA_CHECKED"] = f"{checked[-1].nvcc}|{checked[-1].version}||"
        text = "".join(f"{name}:INTERNAL={value}\n" for name, value in cache.items())
        (tmp_path / "CMakeCache.txt").write_text(text, encoding="utf-8")
        return ["-- No GPU backend: there is no cublasLt"]

    checked: list[cuda.Choice] = []
    monkeypatch.setattr(build, "run_logged", run_logged)
    monkeypatch.setattr(build, "folder", lambda _: tmp_path)

    def run(tests: bool = True, choice: cuda.Choice = NO_CUDA) -> set[str]:
        checked.extend([choice] if choice.nvcc else [])
        build.configure("default", tests, choice)
        return {*map(str, commands[-1])}

    return run


def test_a_folder_keeps_its_tests_and_all_its_kernels(configured):
    tests, generations = "-DCROSSOVER_TESTS=ON", "-DCROSSOVER_CUDA_GENERATIONS="
    assert {tests, f"{generations}newest"} <= configured(tests=True)
    wanted = {tests, f"{generations}all", "-UCMAKE_CUDA_ARCHITECTURES"}
    assert f"{generations}newest" in configured(tests=False), "nothing here runs them"
    assert wanted <= configured(tests=False, choice=TOOLKIT)
    assert {tests, f"{generations}all"} <= configured(tests=True)


def test_another_toolkit_is_configured_afresh(configured):
    for choice, fresh in (
        (NO_CUDA, False),
        (TOOLKIT, False),
        (NO_CUDA, False),
        (TOOLKIT, False),
        (cuda.Choice("/t/bin/nvcc", "13.1"), True),
        (cuda.Choice("/u/bin/nvcc", "13.1"), True),
        (NO_CUDA, False),
        (TOOLKIT, True),
    ):
        words = configured(choice=choice)
        assert ("--fresh" in words) == fresh
        assert {*choice.switches} <= words


@pytest.mark.parametrize("is_done", [True, False])
def test_a_build_with_cuda_serves_a_run_without(is_done, configured, tmp_path, monkeypatch):
    """While its part has nothing to compile."""
    configured(tests=False, choice=TOOLKIT)
    lines = ["rule make", "  command = touch $out"]
    lines += [f"build {part}: make" for part in ("crossover_cuda", "crossover_kernels")]
    (tmp_path / "build.ninja").write_text("\n".join([*lines, ""]), encoding="utf-8")
    if is_done:
        ran("ninja", "-C", tmp_path)
    choices: list[cuda.Choice] = []
    monkeypatch.setattr(build, "BENCH", tmp_path / "build.ninja")
    monkeypatch.setattr(build, "configure", lambda *words: choices.append(words[2]))
    monkeypatch.setattr(build, "_make", lambda *_: None)
    build.program(cuda.choose("off"))
    assert [choice.nvcc for choice in choices] == [TOOLKIT.nvcc if is_done else None]


def test_a_folder_that_cmake_refuses_is_configured_afresh_and_a_new_one_not(configured, tmp_path):
    (tmp_path / "moved").touch()
    with pytest.raises(console.CommandFailed):
        configured()
    (tmp_path / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/moved\n", "utf-8")
    assert "--fresh" in configured()


def test_a_toolkit_that_lacks_something_is_told(configured, capsys):
    assert "-DCROSSOVER_CUDA=OFF" in configured()
    assert capsys.readouterr().err == ""
    assert "-DCROSSOVER_CUDA=AUTO" in configured(choice=cuda.Choice("/n", "13.0", required=False))
    assert "  building without CUDA: there is no cublasLt\n" in capsys.readouterr().err


# --- what --check says of drivers


_IN_PYTORCH = "crossover_bench.ask and two measure the GPU in your own PyTorch"


@pytest.mark.parametrize(
    ("driver", "major", "starts", "measures"),
    [
        ("", 13, "No NVIDIA driver is here, and bench's GPU part needs 580 or newer", False),
        ("570.86.16", 13, "NVIDIA's driver here is 570.86.16, and bench needs 580", False),
        ("570.86.16", 12, "NVIDIA's driver here is 570.86.16, which is what bench needs", True),
        ("580.65.06", 13, "NVIDIA's driver here is 580.65.06, which is what bench needs", True),
    ],
)
def test_a_sentence_names_the_driver_the_one_needed_and_what_does_without(
    driver, major, starts, measures
):
    told = drivers.nvidia_words(driver, major)
    assert told.startswith(starts) and (_IN_PYTORCH in told) != measures


@pytest.mark.parametrize(
    ("kernel", "has_device", "told"),
    [
        ("6.6.87.2-microsoft-standard-WSL2", True, "WSL 2 with a GPU (/dev/dxg)"),
        ("6.6.87.2-microsoft-standard-WSL2", False, "Windows lends it no GPU"),
        ("4.4.0-19041-Microsoft", False, "WSL 1, which has no GPU"),
        ("6.1.0-40-amd64", True, ""),
        (None, False, ""),
    ],
)
def test_wsl_is_known_by_its_kernel_and_the_device_that_windows_lends(
    kernel, has_device, told, tmp_path, monkeypatch
):
    monkeypatch.setattr(drivers, "nvidia_driver", lambda: "")
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "dev").mkdir()
    if kernel is not None:
        (tmp_path / "proc/sys/kernel/osrelease").write_text(f"{kernel}\n", encoding="utf-8")
    if has_device:
        (tmp_path / "dev/dxg").touch()
    first, *others = drivers.words(root=tmp_path)
    assert told in first and len(others) == bool(told)


def test_a_mac_is_told_of_mps(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "darwin")
    (sentence,) = drivers.words(root=tmp_path)
    assert "PyTorch, by its device mps" in sentence and "NVIDIA" not in sentence
