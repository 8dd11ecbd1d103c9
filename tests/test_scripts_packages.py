# SPDX-License-Identifier: Apache-2.0
"""Which system packages ./run asks for, and how."""

from pathlib import Path

import pytest
from scripts import refused, script

from tools import console, packages

LINE = "\n    apt-get install -y --no-install-recommends cmake ninja-build"


def need(package: str, present: bool = False, optional: bool = False) -> packages.Need:
    return packages.Need(package, f"what {package} is", lambda: present, optional)


NEEDS = [need("g++", present=True), need("cmake"), need("ninja-build")]


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An apt-get, for root, which has not been asked for its lists yet."""
    script(tmp_path / "apt-get", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(packages, "_privilege", list)
    monkeypatch.setattr(packages, "_APT_LISTS", tmp_path)


POLICY = "clang-tidy-14:\n  Installed: (none)\n  Candidate: 1:14.0.6-12\n  Version table:\n"


@pytest.mark.usefixtures("apt")
def test_optional_packages_that_a_release_lacks_are_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = POLICY.replace("clang-tidy-14", "libomp-14-dev").replace("1:14.0.6-12", "(none)")
    monkeypatch.setattr(packages, "said", lambda *_: POLICY + lacking)
    names = ("clang-tidy-14", "libomp-14-dev", "unheard-of")
    optional = [need(name, optional=True) for name in names]
    assert packages.missing(NEEDS + optional) == NEEDS[1:] + optional
    (tmp_path / "a_main_binary-amd64_Packages.lz4").touch()
    assert packages.missing(NEEDS + optional) == NEEDS[1:] + optional[:1]


@pytest.mark.usefixtures("apt")
def test_without_root_the_line_to_ask_for_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_privilege", lambda: None)
    with refused(LINE + "\n"):
        packages.ensure(NEEDS)


def test_without_apt_the_things_themselves_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(
        "no apt .*:\n\n    what cmake is\n    what ninja-build is\n\nSee docs/building.md"
    ):
        packages.ensure([*NEEDS, need("x", optional=True)])


@pytest.mark.usefixtures("apt")
@pytest.mark.parametrize("failing", ["", "dpkg-configure", "apt-update", "apt-install"])
def test_apt_installs_what_is_missing_after_repairs(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a failure of the installation itself ends it; else what was installed is looked for."""
    commands: list[str] = []

    def run_logged(what: str, command: list[str], log: Path, **_: float) -> None:
        commands.append(what)
        if what == failing:
            raise console.CommandFailed(what, 100, ["E: what apt says"], log)

    monkeypatch.setattr(packages, "run_logged", run_logged)
    with pytest.raises(console.Failure) as caught:
        packages.ensure(NEEDS)
    said = str(caught.value)
    if failing == "apt-install":
        assert "E: what apt says" in said and "the network and apt's sources" in said
        assert said.endswith(LINE)
    else:
        assert "apt has installed cmake ninja-build, but what cmake is, what ninja" in said
    assert commands == ["apt-update", "dpkg-configure", "apt-install"]


def test_the_things_themselves_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = script(tmp_path / "cmake", "print('cmake version 3.25.1\\n\\nCMake suite')")
    assert packages.version_of(str(tool), "--version") == (3, 25, 1)
    assert packages.version_of(str(tmp_path / "absent"), "--version") == ()
    assert packages._has_header("vector")() and not packages._has_header("no/such.h")()
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert not packages._has_header("vector")() and not packages._has_compiler()
