# SPDX-License-Identifier: Apache-2.0
"""Which system packages ./run asks for, and how."""

from pathlib import Path

import pytest
from scripts import script

from tools import console, packages


def need(package: str, present: bool = False, optional: bool = False) -> packages.Need:
    return packages.Need(package, f"what {package} is", lambda: present, optional)


def with_apt(monkeypatch: pytest.MonkeyPatch, *have: str) -> None:
    monkeypatch.setattr(packages, "has_apt", lambda: True)
    monkeypatch.setattr(packages, "installed", lambda names: set(names) & set(have))


def refusal(*needs: packages.Need) -> str:
    """Of ensure(), which ends with exit code 2."""
    with pytest.raises(console.Failure) as caught:
        packages.ensure(needs)
    assert caught.value.code == 2
    return str(caught.value)


def test_what_dpkg_lacks_may_still_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = "g++ installed\\ncmake config-files\\nninja-build half-installed\\nodd\\n"
    for name, text in (
        ("dpkg-query", f"import sys; print('{listing}'); sys.exit(1)"),
        ("apt-get", ""),
    ):
        script(tmp_path / name, text)
    monkeypatch.setenv("PATH", str(tmp_path))
    needs = [need("g++"), need("cmake", present=True), need("ninja-build"), need("git")]
    assert packages.missing(needs) == needs[2:]
    # Python's own venv module is asked of the interpreter that runs, not of dpkg.
    with_apt(monkeypatch, "python3-venv")
    assert packages.missing([need("python3-venv")]) != []


POLICY = "clang-tidy-14:\n  Installed: (none)\n  Candidate: 1:14.0.6-12\n  Version table:\n"


def test_optional_packages_that_a_release_lacks_are_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_apt(monkeypatch)
    monkeypatch.setattr(packages, "_APT_LISTS", tmp_path)
    lacking = POLICY.replace("clang-tidy-14", "libomp-14-dev").replace("1:14.0.6-12", "(none)")
    monkeypatch.setattr(packages, "said", lambda *_: POLICY + lacking)
    needs = [need(name, optional=True) for name in ("clang-tidy-14", "libomp-14-dev", "unheard-of")]
    assert packages.missing(needs) == needs  # apt has not been asked for its lists yet
    (tmp_path / "a_main_binary-amd64_Packages.lz4").touch()
    assert packages.missing(needs) == needs[:1]
    assert packages.missing([need("g++")]) != []


def test_without_root_the_line_to_ask_for_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    with_apt(monkeypatch, "g++")
    monkeypatch.setattr(packages, "_privilege", lambda: None)
    line = "\n    apt-get install -y --no-install-recommends cmake ninja-build\n"
    assert line in refusal(need("g++"), need("cmake"), need("ninja-build"))


def test_without_apt_the_things_themselves_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "has_apt", lambda: False)
    said = refusal(need("cmake"), need("g++", present=True), need("x", optional=True))
    assert "    what cmake is\n" in said and "docs/building.md" in said
    assert "g++" not in said and "what x is" not in said


@pytest.mark.parametrize("failing", ["", "dpkg-configure", "apt-update", "apt-install"])
def test_apt_installs_what_is_missing_after_repairs(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a failure of the installation itself ends it; else what was installed is looked for."""
    with_apt(monkeypatch)
    monkeypatch.setattr(packages, "_privilege", list)
    commands: list[str] = []

    def run_logged(what: str, command: list[str], log: Path, **_: bool) -> None:
        commands.append(what)
        if what == failing:
            raise console.CommandFailed(what, 100, ["E: what apt says"], log)

    monkeypatch.setattr(packages, "run_logged", run_logged)
    with pytest.raises(console.Failure) as caught:
        packages.ensure([need("cmake")])
    said = str(caught.value)
    if failing == "apt-install":
        assert "E: what apt says" in said and "the network and apt's sources" in said
        assert "    apt-get install -y --no-install-recommends cmake" in said
    else:
        assert "apt has installed cmake, but what cmake is cannot be found" in said
    assert commands == ["apt-update", "dpkg-configure", "apt-install"]


def test_the_things_themselves_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = script(tmp_path / "cmake", "print('cmake version 3.25.1\\n\\nCMake suite')")
    assert packages.version_of(str(tool), "--version") == (3, 25, 1)
    assert packages.version_of(str(tmp_path / "absent"), "--version") == ()
    assert packages._has_header("vector")() and not packages._has_header("no/such.h")()
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert not packages._has_header("vector")() and not packages._has_compiler()
