# SPDX-License-Identifier: Apache-2.0
"""What ./run and ./test decide by themselves: arguments, set-up, names, messages, signals."""

import datetime
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from tools import build, console, cuda, environment, packages, results, setup, sources

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> ModuleType:
    """A command without .py as a module."""
    loader = SourceFileLoader(f"command_{name}", str(ROOT / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module
    handler = signal.getsignal(signal.SIGINT)
    cached = sys.dont_write_bytecode
    try:
        sys.dont_write_bytecode = True  # it would lie beside the commands as `runc`, `testc`
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = cached
        signal.signal(signal.SIGINT, handler)
    return module


RUN = load("run")
TEST = load("test")


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(0o755)
    return path


# --- arguments


def test_own_flags_are_taken_and_the_rest_goes_to_bench() -> None:
    parsed = RUN.parse(["--sweep=quick", "--no-report", "--setup-only", "--model=disc-10"])
    assert parsed.setup_only
    assert not parsed.report
    assert not parsed.help
    assert parsed.bench == ["--sweep=quick", "--model=disc-10"]


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_ours_first(flag: str) -> None:
    assert RUN.parse(["--sweep=quick", flag]).help


@pytest.mark.parametrize(
    ("argument", "tells"),
    [
        ("--benchmark_list_tests", True),
        ("--benchmark_list_tests=true", True),
        ("--benchmark_list_tests=false", False),
        ("--benchmark_list_tests=0", False),
        ("--machine", True),
        ("--models", True),
        ("--commit", True),
        ("--cost", True),
        ("--model=disc-2", False),
        ("--benchmark_filter=--machine", False),
    ],
)
def test_flags_that_only_tell_something_make_no_results(argument: str, tells: bool) -> None:
    assert RUN.parse([argument]).only_tells is tells


def test_an_output_file_is_found_and_the_last_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert RUN.parse(["--sweep=quick"]).out is None
    assert RUN.parse(["--benchmark_out=a.json"]).out == tmp_path / "a.json"
    assert RUN.parse(["--out=a.json", "--out=/x/b.json"]).out == Path("/x/b.json")
    assert RUN.parse(["--benchmark_out_format=json"]).out is None


def test_stages_come_with_what_they_need() -> None:
    def names(*arguments: str) -> list[str]:
        return [stage.name for stage in TEST.chosen(arguments)]

    assert names() == [stage.name for stage in TEST.STAGES]
    assert names("--only=ruff") == ["ruff"]
    assert names("--only=ruff,ctest") == ["build", "ctest", "ruff"]


@pytest.mark.parametrize("argument", ["--only=nonsense", "--only=", "--fast", "ruff"])
def test_unknown_stages_and_arguments_are_usage_errors(argument: str) -> None:
    with pytest.raises(console.Failure) as caught:
        TEST.chosen([argument])
    assert caught.value.code == 2


@pytest.mark.parametrize("command", ["run", "test"])
def test_help_works_from_any_directory_and_sets_nothing_up(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert f"usage: ./{command}" in done.stdout
    assert done.stderr == ""


def test_a_failed_stage_fails_those_that_need_it_and_a_skip_fails_only_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fall_over() -> bool:
        raise console.Failure("a sentence")

    def skip() -> bool:
        raise TEST.Skip("not here")

    needing = TEST.Stage("b", "", lambda: True, needs="a")
    assert TEST._perform(needing, {"a": "FAILED"}) == "FAILED"
    assert TEST._perform(needing, {"a": "passed"}) == "passed"
    assert TEST._perform(TEST.Stage("c", "", fall_over), {}) == "FAILED"
    monkeypatch.delenv("CI", raising=False)
    assert TEST._perform(TEST.Stage("d", "", skip), {}) == "skipped"
    monkeypatch.setenv("CI", "true")
    assert TEST._perform(TEST.Stage("d", "", skip), {}) == "FAILED"


# --- system packages


def need(package: str, present: bool = False, optional: bool = False) -> packages.Need:
    return packages.Need(package, f"what {package} is", lambda: present, optional)


def no_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "has_apt", lambda: False)


def with_apt(monkeypatch: pytest.MonkeyPatch, *have: str) -> None:
    monkeypatch.setattr(packages, "has_apt", lambda: True)
    monkeypatch.setattr(packages, "installed", lambda names: set(names) & set(have))


def test_dpkg_query_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = "g++ installed\\ncmake config-files\\nninja-build half-installed\\nodd\\n"
    script(tmp_path / "dpkg-query", f"import sys; print('{listing}'); sys.exit(1)")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert packages.installed(["g++", "cmake", "ninja-build", "git"]) == {"g++"}


def test_what_dpkg_lacks_may_still_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with_apt(monkeypatch, "g++")
    needs = [need("g++"), need("cmake", present=True), need("git")]
    assert [lacking.package for lacking in packages.missing(needs)] == ["git"]


POLICY = """\
clang-tidy-14:
  Installed: (none)
  Candidate: 1:14.0.6-12
  Version table:
libomp-14-dev:
  Installed: (none)
  Candidate: (none)
  Version table:
"""


def test_optional_packages_that_a_release_lacks_are_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_apt(monkeypatch)
    monkeypatch.setattr(packages, "_APT_LISTS", tmp_path)
    monkeypatch.setattr(packages, "_output", lambda *_: POLICY)
    needs = [need(name, optional=True) for name in ("clang-tidy-14", "libomp-14-dev", "unheard-of")]
    assert packages.missing(needs) == needs  # apt has not been asked for its lists yet
    (tmp_path / "a_main_binary-amd64_Packages.lz4").touch()
    assert packages.missing(needs) == needs[:1]
    assert packages.missing([need("g++")]) != []


def test_python_venv_is_asked_of_this_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    with_apt(monkeypatch, "python3-venv")
    lacking = packages.Need("python3-venv", "", lambda: False)
    assert packages.missing([lacking]) == [lacking]


def test_without_root_the_line_to_ask_for_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    with_apt(monkeypatch, "g++")
    monkeypatch.setattr(packages, "_privilege", lambda: None)
    with pytest.raises(console.Failure) as caught:
        packages.ensure([need("g++"), need("cmake"), need("ninja-build")])
    assert caught.value.code == 2
    assert "\n    apt-get install -y --no-install-recommends cmake ninja-build\n" in str(
        caught.value
    )


def test_without_apt_the_things_themselves_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    no_apt(monkeypatch)
    with pytest.raises(console.Failure) as caught:
        packages.ensure([need("cmake"), need("g++", present=True), need("x", optional=True)])
    assert caught.value.code == 2
    assert "what cmake is" in str(caught.value)
    assert "g++" not in str(caught.value)
    assert "what x is" not in str(caught.value)
    assert "Building by hand" in str(caught.value)


def failing_apt(monkeypatch: pytest.MonkeyPatch, *said: str) -> list[str]:
    """Let `apt-get install` fail once with those words; return the commands as they come."""
    commands: list[str] = []

    def run_logged(
        what: str, command: list[str], log: Path, *, wait_if_stopped: bool = False
    ) -> list[str]:
        commands.append(what)
        if what == "apt-get install" and commands.count(what) == 1:
            raise console.CommandFailed(what, 100, list(said), log)
        return []

    monkeypatch.setattr(packages, "run_logged", run_logged)
    return commands


def test_an_interrupted_dpkg_is_repaired_and_the_installation_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands = failing_apt(monkeypatch, "E: you must manually run 'dpkg --configure -a' to ...")
    packages._install(["cmake"], [], True)
    assert commands == [
        "apt-get install",
        "dpkg --configure -a",
        "apt-get install",
    ]


def test_a_failed_installation_shows_what_apt_said_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing_apt(monkeypatch, "E: Unable to locate package cmake")
    with pytest.raises(console.Failure) as caught:
        packages._install(["cmake"], [], True)
    assert "E: Unable to locate package cmake" in str(caught.value)
    assert "This release lacks a package" in str(caught.value)
    assert "apt-get install -y --no-install-recommends cmake" in str(caught.value)


def test_versions_are_read_from_what_a_program_prints(tmp_path: Path) -> None:
    tool = script(tmp_path / "cmake", "print('cmake version 3.25.1\\n\\nCMake suite')")
    assert packages.version_of(str(tool), "--version") == (3, 25, 1)
    assert packages.version_of(str(tmp_path / "absent"), "--version") == ()


# --- the Python environment


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A repository of its own whose commands are only written down, in the list returned."""
    folder = tmp_path / ".venv"
    for name in ("requirements.txt", "requirements-test.txt"):
        (tmp_path / name).write_text("numpy==1\n", encoding="utf-8")
    monkeypatch.setattr(environment, "VENV", folder)
    monkeypatch.setattr(environment, "PYTHON", folder / "bin" / "python")
    monkeypatch.setattr(environment, "FOR_RUN", (tmp_path / "requirements.txt",))
    both = (*environment.FOR_RUN, tmp_path / "requirements-test.txt")
    monkeypatch.setattr(environment, "FOR_TEST", both)
    monkeypatch.setattr(environment, "STAMP", folder / "complete.json")
    done: list[str] = []

    def run_logged(what: str, *_: object) -> list[str]:
        done.append(what)
        if what == "Creating .venv":
            assert not folder.exists()
            (folder / "bin").mkdir(parents=True)
            text = f"print('3.11\\n{folder}')"
            script(folder / "bin" / "python", text)
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


def _lose_stamp() -> None:
    environment.STAMP.unlink()


def _break_stamp() -> None:
    environment.STAMP.write_text("{", encoding="utf-8")


def _lose_interpreter() -> None:
    environment.PYTHON.unlink()


def _change_interpreter() -> None:
    script(environment.PYTHON, f"print('3.12\\n{environment.VENV}')")


def _move_repository() -> None:
    content = json.loads(environment.STAMP.read_text(encoding="utf-8"))
    content["prefix"] = "/elsewhere/.venv"
    environment.STAMP.write_text(json.dumps(content), encoding="utf-8")


def _replace_by_file() -> None:
    environment._remove()
    environment.VENV.write_text("", encoding="utf-8")


def _replace_by_dangling_link() -> None:
    environment._remove()
    environment.VENV.symlink_to("/nowhere/at/all")


@pytest.mark.parametrize(
    "damage",
    [
        _lose_stamp,
        _break_stamp,
        _lose_interpreter,
        _change_interpreter,
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
    def interrupted(_: object) -> None:
        raise console.Stopped(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(environment, "_pip_install", interrupted)
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

    def no_network(_: object) -> None:
        raise console.CommandFailed("pip install", 1, ["no network"], tmp_path)

    with monkeypatch.context() as patch:
        patch.setattr(environment, "_pip_install", no_network)
        with pytest.raises(console.CommandFailed):
            environment.ensure((more,))
    environment.ensure(environment.FOR_RUN)
    assert venv == WHOLE
    environment.ensure((more,))
    assert venv == [*WHOLE, "pip install"]


def test_requirements_are_pinned() -> None:
    for path in (*environment.FOR_TEST, *environment.FOR_CUDA):
        lines = path.read_text(encoding="utf-8").splitlines()
        pins = [line for line in lines if line and not line.startswith("#")]
        assert pins
        assert all("==" in pin.split(";")[0] for pin in pins)


# --- the CUDA compiler


def test_the_mode_is_taken_and_bench_gets_it_too() -> None:
    parsed = RUN.parse(["--cuda=off", "--sweep=quick", "--cuda=on"])
    assert parsed.cuda == "on"
    assert parsed.bench == ["--cuda=off", "--sweep=quick", "--cuda=on"]
    assert RUN.parse([]).cuda == "auto"
    assert [stage.name for stage in TEST.chosen(["--cuda=off", "--only=ruff"])] == ["ruff"]


@pytest.mark.parametrize("argument", ["--cuda", "--cuda=", "--cuda=ON", "--cuda=yes"])
@pytest.mark.parametrize("command", [RUN.parse, TEST.chosen])
def test_an_unknown_mode_is_a_usage_error(
    argument: str, command: Callable[[list[str]], object]
) -> None:
    with pytest.raises(console.Failure, match=r"--cuda=auto\|on\|off is needed") as caught:
        command([argument])
    assert caught.value.code == 2


def nvcc_of(folder: Path, release: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return script(folder / "nvcc", f"print('Cuda compilation tools, release {release}, V1')")


def test_the_toolkit_is_the_one_that_cmake_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.setattr(environment, "ensure", ensure)
    return asked


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_driver_without_a_toolkit_gets_the_wheels(mode: str, wheels: list[str]) -> None:
    choice = cuda.choose(mode)
    assert wheels == ["requirements-cuda.txt", "requirements-cudnn-nccl.txt"]
    assert choice.version == "13.0"
    assert choice.nvcc is not None
    root = Path(choice.nvcc).parent.parent
    assert root.parts[-2:] == ("nvidia", "cu13")
    assert f"-DCUDAToolkit_ROOT={root}" in choice.switches


def _no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "driver_version", lambda: None)


def _old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "driver_version", lambda: (12, 8))


def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure(_: object) -> None:
        lines = ["Retrying", "ERROR: No matching distribution found", ""]
        raise console.CommandFailed("pip install", 1, lines, Path("pip.log"))

    monkeypatch.setattr(environment, "ensure", ensure)


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        (_no_driver, "no nvcc was found, and there is no NVIDIA driver here"),
        (_old_driver, "the driver here runs CUDA 12.8, for which there are no wheels"),
        (_no_network, "could not be installed (pip: ERROR: No matching distribution found)"),
    ],
)
def test_without_a_compiler_auto_goes_on_and_on_does_not(
    lacking: Callable[[pytest.MonkeyPatch], None],
    said: str,
    wheels: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lacking(monkeypatch)
    choice = cuda.choose("auto")
    assert choice.switches == ["-DCROSSOVER_CUDA=OFF"]
    assert said in capsys.readouterr().err
    with pytest.raises(console.Failure) as caught:
        cuda.choose("on")
    assert caught.value.code == 2
    assert said in str(caught.value)
    assert wheels == []


def test_off_asks_nobody(wheels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "find_toolkit", lambda: cuda.Choice("/usr/bin/nvcc", "13.0"))
    assert cuda.choose("off").switches == ["-DCROSSOVER_CUDA=OFF"]
    assert wheels == []


def test_the_driver_tells_its_version_through_nvidia_smi_where_its_library_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(_: str) -> None:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(cuda.ctypes, "CDLL", hidden)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cuda.driver_version() is None
    script(tmp_path / "nvidia-smi", "print('| NVIDIA-SMI 580.1  CUDA Version: 13.0  |')")
    assert cuda.driver_version() == (13, 0)


@pytest.mark.parametrize(("answer", "version"), [(13020, (13, 2)), (12080, (12, 8))])
def test_the_driver_tells_its_version(
    answer: int, version: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Library:
        @staticmethod
        def cuDriverGetVersion(number: object) -> int:  # noqa: N802 - its name
            number._obj.value = answer  # type: ignore[attr-defined]
            return 0

    monkeypatch.setattr(cuda.ctypes, "CDLL", lambda _: Library)
    assert cuda.driver_version() == version


# --- configuring


def build_folder(path: Path, home: Path, compiler: str = sys.executable) -> Path:
    (path / "build.ninja").write_text("", encoding="utf-8")
    (path / "CMakeCache.txt").write_text(
        f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\nCMAKE_CXX_COMPILER:FILEPATH={compiler}\n"
        f"CMAKE_MAKE_PROGRAM:FILEPATH={sys.executable}\n",
        encoding="utf-8",
    )
    return path


def test_a_sound_cache_is_kept(tmp_path: Path) -> None:
    assert not build._is_stale(tmp_path)
    assert not build._is_stale(build_folder(tmp_path, ROOT))


def test_a_cache_is_dropped_when_moved_unfinished_or_without_compiler(tmp_path: Path) -> None:
    assert build._is_stale(build_folder(tmp_path, Path("/elsewhere")))
    assert build._is_stale(build_folder(tmp_path, ROOT, "/gone/c++"))
    (build_folder(tmp_path, ROOT) / "build.ninja").unlink()
    assert build._is_stale(tmp_path)


NO_CUDA = cuda.Choice(reason="not in this test")


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A folder that CMake configures by writing down its command, in the list returned."""
    commands: list[list[str]] = []

    def run_logged(_what: str, command: list[str], _log: Path) -> list[str]:
        commands.append(command)
        build_folder(tmp_path, ROOT)
        return []

    monkeypatch.setattr(build, "run_logged", run_logged)
    monkeypatch.setattr(build, "folder", lambda _: tmp_path)
    monkeypatch.setattr(build, "version_of", lambda *_: (3, 25))
    return commands


def test_a_folder_is_configured_once_and_again_for_the_tests(configured: list[list[str]]) -> None:
    for tests, count in ((False, 1), (False, 1), (True, 2), (True, 2), (False, 2)):
        build.configure("default", tests, NO_CUDA)
        assert len(configured) == count
    assert "-DCROSSOVER_TESTS=OFF" in configured[0]
    assert "-DCROSSOVER_TESTS=ON" in configured[1]
    assert "--fresh" not in configured[0] + configured[1]


def test_another_compiler_reconfigures_and_another_toolkit_afresh(
    configured: list[list[str]], tmp_path: Path
) -> None:
    nvcc, other = tmp_path / "a" / "bin" / "nvcc", tmp_path / "b" / "bin" / "nvcc"
    first = cuda.Choice(str(nvcc), "13.0")
    compiler = None
    for choice, count, fresh in (
        (NO_CUDA, 1, False),
        (first, 2, False),
        (first, 2, False),
        (NO_CUDA, 3, False),
        (first, 4, False),
        (cuda.Choice(str(nvcc), "13.1"), 5, True),
        (cuda.Choice(str(other), "13.1"), 6, True),
        (NO_CUDA, 7, False),
        (NO_CUDA, 7, False),
        (first, 8, True),
    ):
        build.configure("default", True, choice)
        assert len(configured) == count
        assert ("--fresh" in configured[-1]) == fresh
        if choice.nvcc is None:
            assert "-DCROSSOVER_CUDA=OFF" in configured[-1]
        else:
            assert "-DCROSSOVER_CUDA=ON" in configured[-1]
            assert f"-DCMAKE_CUDA_COMPILER={choice.nvcc}" in configured[-1]
            compiler = choice.nvcc
        if compiler:  # CMake keeps it, also where it is told to do without
            with (tmp_path / "CMakeCache.txt").open("a", encoding="utf-8") as cache:
                cache.write(f"CMAKE_CUDA_COMPILER:FILEPATH={compiler}\n")


def test_an_unsound_folder_is_configured_afresh(
    configured: list[list[str]], tmp_path: Path
) -> None:
    build.configure("default", True, NO_CUDA)
    build_folder(tmp_path, Path("/elsewhere"))
    build.configure("default", True, NO_CUDA)
    assert "--fresh" in configured[1]


def test_a_cmake_that_is_too_old_is_said_so(
    configured: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "version_of", lambda *_: (3, 22, 1))
    with pytest.raises(console.Failure, match=r"CMake 3\.22\.1 found, 3\.25 needed"):
        build.configure("default", True, NO_CUDA)
    assert configured == []


def test_presets_have_their_folders() -> None:
    presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
    folders = {
        preset["name"]: preset["binaryDir"]
        for preset in presets["configurePresets"]
        if "binaryDir" in preset and not preset.get("hidden")
    }
    for name, binary_folder in folders.items():
        resolved = binary_folder.replace("${sourceDir}", str(ROOT)).replace("${presetName}", name)
        assert Path(resolved) == build.folder(name)


# --- commands, logs, endings


def test_a_failed_command_shows_its_last_lines_and_its_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "x.log"
    command = [sys.executable, "-c", "print(*range(100), sep='\\n'); raise SystemExit(3)"]
    with pytest.raises(console.CommandFailed) as caught:
        console.run_logged("Counting", command, log)
    text = str(caught.value)
    assert text.startswith("Counting failed (exit code 3)")
    assert text.splitlines()[1:-1] == [f"    {number}" for number in range(60, 100)]
    assert str(log) in text
    assert len(log.read_text(encoding="utf-8").splitlines()) == 100


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (console.Failure("a sentence", 2), 2, "./x: a sentence\n"),
        (console.Stopped(signal.SIGINT), 130, "\n./x: stopped; start it again"),
        (console.Stopped(signal.SIGTERM), 143, "\n./x: stopped; start it again"),
        (PermissionError(13, "Permission denied", "/f"), 1, "./x: /f: Permission denied\n"),
        (OSError(28, "No space left on device"), 1, "./x: No space left on device\n"),
    ],
)
def test_whatever_goes_wrong_ends_as_a_sentence(
    error: BaseException,
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def main(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(console, "_heed_signals", lambda: None)
    assert console.guarded("./x", main) == code
    assert capsys.readouterr().err.startswith(said)


def test_a_build_folder_that_cannot_be_written_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "build").write_text("a file in the way", encoding="utf-8")
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    with pytest.raises(console.Failure, match="cannot write in"), setup.alone():
        pass


# --- results


TODAY = datetime.date(2025, 3, 9)


def test_results_are_named_by_machine_date_and_commit_and_never_reused(tmp_path: Path) -> None:
    for name in ("2025-03-09-abc.json", "2025-03-09-abc-2.json", "2025-03-09-abc-3.json"):
        path = results.new_file("m", "abc", TODAY, tmp_path)
        assert path == tmp_path / "m" / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    other = results.new_file("m", "abd-dirty", TODAY, tmp_path)
    assert other.name == "2025-03-09-abd-dirty.json"


@pytest.mark.parametrize("identity", ["..", "a/b", "", ".hidden", "a b"])
def test_an_identity_that_is_no_folder_name_is_refused(identity: str, tmp_path: Path) -> None:
    bench = script(tmp_path / "bench", f"import json; print(json.dumps(dict(id={identity!r})))")
    with pytest.raises(console.Failure, match="cannot be a folder's name"):
        results.machine_of(bench)


def test_bench_is_asked_for_machine_and_commit(tmp_path: Path) -> None:
    text = "import sys; print('{\"id\": \"epyc-4c\"}' if '--machine' in sys.argv else 'abc1234')"
    bench = script(tmp_path / "bench", text)
    assert results.machine_of(bench) == "epyc-4c"
    assert results.commit_of(bench) == "abc1234"
    failing = script(tmp_path / "failing", "import sys; sys.exit('no library')")
    with pytest.raises(console.Failure, match="no library"):
        results.commit_of(failing)


def test_a_folder_for_results_that_cannot_be_made_is_found_first(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file in the way", encoding="utf-8")
    with pytest.raises(console.Failure, match="cannot write results to") as caught:
        results.make_folder(tmp_path / "results" / "m")
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('{"benchmarks": [{"run_name": "a"}, {"run_name": "b"}, {"run_name": "b"}]}', 2),
        ('{"benchmarks": []}', 0),
        ("{", 0),
        ("[]", 0),
        ("", 0),
    ],
)
def test_finished_rows_are_counted(text: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    assert results.finished_rows(path) == rows
    assert results.finished_rows(tmp_path / "absent.json") == 0


# --- after bench


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    paths: list[Path] = []
    monkeypatch.setattr(RUN, "draw", lambda path: not paths.append(path))
    return paths


def result_file(folder: Path) -> Path:
    path = folder / "x.json"
    path.write_text('{"benchmarks": [{"run_name": "a"}]}', encoding="utf-8")
    return path


@pytest.mark.parametrize("code", [0, 1])
def test_finished_rows_are_drawn_even_if_others_failed(
    code: int, drawn: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = result_file(tmp_path)
    assert RUN.conclude(path, code, 0.0, True) == code
    assert drawn == [path]
    assert f"results: {path}" in capsys.readouterr().out


def test_after_a_signal_the_kept_rows_are_named_and_not_drawn(
    drawn: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = result_file(tmp_path)
    assert RUN.conclude(path, 130, 0.0, True) == 130
    assert drawn == []
    assert f"1 finished row kept in {path}" in capsys.readouterr().err


def test_nothing_is_drawn_from_no_rows_an_older_file_or_on_request(
    drawn: list[Path], tmp_path: Path
) -> None:
    path = result_file(tmp_path)
    assert RUN.conclude(tmp_path / "absent.json", 1, 0.0, True) == 1
    assert RUN.conclude(path, 1, time.time() + 60, True) == 1
    assert RUN.conclude(path, 0, 0.0, False) == 0
    assert drawn == []


def test_rows_beside_an_older_file_are_found(drawn: list[Path], tmp_path: Path) -> None:
    asked = result_file(tmp_path)
    os.utime(asked, (1000, 1000))
    partial = tmp_path / "x.json.partial"
    partial.write_text('{"benchmarks": [{"run_name": "a"}]}', encoding="utf-8")
    assert RUN.conclude(asked, 1, time.time(), True) == 1
    assert drawn == [partial]


def test_a_new_file_without_rows_is_removed_and_one_with_rows_is_not(tmp_path: Path) -> None:
    kept = result_file(tmp_path)
    results.remove_if_empty(kept)
    assert kept.exists()
    empty = tmp_path / "m" / "x.json"
    empty.parent.mkdir()
    empty.write_text('{"benchmarks": []}', encoding="utf-8")
    results.remove_if_empty(empty)
    assert not empty.parent.exists()


def test_a_report_that_fails_does_not_pass_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RUN, "draw", lambda _: False)
    assert RUN.conclude(result_file(tmp_path), 0, 0.0, True) == 1


def test_an_exit_code_and_a_fatal_signal_of_bench_are_handed_back() -> None:
    assert RUN.measure([sys.executable, "-c", "raise SystemExit(2)"]) == 2
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert RUN.measure([sys.executable, "-c", kill]) == 137


WAITING_BENCH = """\
import os, signal, time
def end(signum, frame):
    os.write(1, b"kept\\n")
    os._exit(128 + signum)
signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
os.write(1, b"ready\\n")
time.sleep(60)
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_bench_keep_its_rows(signum: int, tmp_path: Path) -> None:
    bench = script(tmp_path / "bench", WAITING_BENCH)
    caller = (
        "import sys; sys.path.insert(0, 'tests'); from test_scripts import RUN; "
        f"sys.exit(RUN.measure([{str(bench)!r}]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", caller],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    if signum == signal.SIGINT:
        os.killpg(process.pid, signum)  # as a terminal does
    else:
        os.kill(process.pid, signum)
    out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == ("kept\n", "", 128 + signum)


# --- clang-tidy's memory


def test_a_source_is_looked_at_again_when_anything_it_depends_on_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    source, header = tmp_path / "src" / "a.cpp", tmp_path / "src" / "a.h"
    source.write_text("int a;\n", encoding="utf-8")
    header.write_text("int b;\n", encoding="utf-8")
    (tmp_path / ".clang-tidy").write_text("Checks: '*'\n", encoding="utf-8")
    database = tmp_path / "compile_commands.json"

    def write_database(flags: str) -> None:
        other = {"directory": "/", "file": "/usr/src/gtest.cc", "command": "c++"}
        ours = {"directory": str(tmp_path), "file": "src/a.cpp", "command": f"c++ {flags}"}
        database.write_text(json.dumps([other, ours]), encoding="utf-8")

    def key() -> str:
        keys = sources._tidy_keys("no-clang-tidy", tmp_path)
        assert list(keys) == [source]
        return keys[source]

    write_database("-O2")
    seen = {key()}
    assert key() in seen
    changes: list[Callable[[], object]] = [
        lambda: source.write_text("int c;\n", encoding="utf-8"),
        lambda: header.write_text("int d;\n", encoding="utf-8"),
        lambda: (tmp_path / ".clang-tidy").write_text("Checks: '-*'\n", encoding="utf-8"),
        lambda: write_database("-O3"),
    ]
    for change in changes:
        change()
        assert key() not in seen
        seen.add(key())
