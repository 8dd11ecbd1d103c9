# SPDX-License-Identifier: Apache-2.0
"""Which system packages ./run asks for, and how."""

from pathlib import Path

import pytest
from scripts import script

from tools import console, packages


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
    monkeypatch.setattr(packages, "said", lambda *_: POLICY)
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
    assert "docs/building.md" in str(caught.value)


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


def test_headers_are_looked_for_with_the_compiler_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert packages._has_header("vector")() and not packages._has_header("no/such.h")()
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert not packages._has_header("vector")() and not packages._has_compiler()
