# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_sweep --pack: what is collected, and the commit that a copy without git knows by it."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from scripts import ROOT, refused

from tools import console, cuda, pack, sources
from tools.stages import weekly

needs_git = pytest.mark.skipif(
    not sources.git("rev-parse", "HEAD"), reason="git does not tell the commit"
)


def test_links_are_packed_with_what_they_point_to(tmp_path: Path) -> None:
    (tmp_path / "lib.so.1.2").write_text("code", encoding="utf-8")
    (tmp_path / "lib.so.1").symlink_to("lib.so.1.2")
    (tmp_path / "lib.so").symlink_to("lib.so.1")
    pack._copy(tmp_path / "lib.so", tmp_path / "to" / "lib.so")
    assert sorted(path.name for path in (tmp_path / "to").iterdir() if path.is_symlink()) == [
        "lib.so",
        "lib.so.1",
    ]
    assert (tmp_path / "to" / "lib.so").read_text(encoding="utf-8") == "code"


def test_wheels_are_packed_as_far_as_they_are_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(type(pack.MAIN), "ensure", lambda *_: None)
    monkeypatch.setattr(pack, "VENV", tmp_path / "venv")
    with pytest.raises(console.Failure, match="there is no oneDNN"):
        pack._wheels(tmp_path / "nothing")
    site = "lib/python3.11/site-packages/"
    wanted = ["include/dnnl.h", "include/oneapi/dnnl/dnnl.h", "lib/cmake/dnnl/a.cmake"]
    frontend = ["include/cudnn_frontend.h", "include/cudnn_frontend/plans.h"]
    frontend.append("include/cudnn_backend_base.h")  # which they include
    frontend.append("fastjsonschema/__init__.py")
    for name in (*wanted, *(site + name for name in frontend), site + "include/another.h"):
        (tmp_path / "venv" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "venv" / name).touch()
    (tmp_path / "venv/lib/libdnnl.so.3.2").touch()
    pack._wheels(tmp_path / "to")
    packed = {str(p.relative_to(tmp_path / "to")) for p in (tmp_path / "to").rglob("*.*")}
    libraries = {f"lib/libdnnl.so{version}" for version in ("", ".3", ".3.2")}
    assert packed == {*wanted, *frontend, *libraries}
    assert not capsys.readouterr().err
    (tmp_path / "venv" / site / "include/cudnn_frontend.h").unlink()
    pack._wheels(tmp_path / "less")
    assert "without nvidia-cudnn-frontend" in capsys.readouterr().err


def test_packing_never_writes_into_a_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with refused("is not empty"):
        pack.collect(tmp_path)


@needs_git
def test_an_earlier_pack_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for collected in ("_debian", "_wheels", "_bench"):
        monkeypatch.setattr(pack, collected, lambda _: None)
    folder = tmp_path / "brought"
    assert pack.collect(folder) == pack.collect(folder) == 0
    assert sorted(path.name for path in folder.iterdir()) == [pack.COMMIT, pack.ARCHIVE]
    monkeypatch.setattr(pack, "MOST_BYTES", 2**20)  # less than the sources
    with pytest.raises(console.Failure, match="more than the limit of 1 MiB"):
        pack.collect(folder)


def compiled(text: str, to: Path, *flags: str | Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    command = ["c++", "-x", "c++", "-", "-o", to, *flags]
    subprocess.run(command, input=text, text=True, check=True)
    return to


def test_a_packed_bench_starts_with_nothing_but_the_pack_or_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "_BUILD", tmp_path)
    monkeypatch.setattr(pack, "run_logged", lambda *_, **__: None)
    monkeypatch.setattr(cuda, "choose", lambda _: cuda.Choice("nvcc"))
    text = "#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }"
    compiled(text, tmp_path / "bench", "-fopenmp", "-Wl,-rpath,$ORIGIN/../lib")
    (tmp_path / "whole" / "lib").mkdir(parents=True)
    pack._bench(tmp_path / "whole")
    assert (tmp_path / "whole" / "lib" / "libgomp.so.1").is_file()
    assert subprocess.run([tmp_path / "whole/bin/bench"], env={}, check=False).returncode == 0
    mpi = compiled("int mpi() { return 0; }", tmp_path / "libmpi.so.40", "-shared", "-fPIC")
    subprocess.run(["cp", mpi, tmp_path / "libnccl.so.2"], check=True)
    libraries = ("-Wl,--no-as-needed", "-L", tmp_path, "-l:libmpi.so.40", "-l:libnccl.so.2")
    compiled("int main() {}", tmp_path / "bench", *libraries)
    with pytest.raises(
        console.Failure, match=r"needs libmpi\.so\.40, libnccl\.so\.2, which"
    ) as failed:
        pack._bench(tmp_path / "refused")
    assert failed.value.code == 1


@pytest.mark.slow
def test_a_packed_bench_is_linked_to_no_mpi(tmp_path: Path) -> None:
    flags = [*pack._CONFIGURE, "-DCROSSOVER_CUDA=OFF", f"-DCMAKE_PREFIX_PATH={pack.VENV}"]
    command = ["cmake", *flags, "-S", ROOT, "-B", tmp_path]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    build = (tmp_path / "build.ninja").read_text("utf-8")
    linked = re.search(r"^build bench: .*?LINK_LIBRARIES = (.*?)$", build, re.MULTILINE | re.DOTALL)
    assert linked is not None and "dnnl" in linked[1] and "mpi" not in linked[1]


def commit_of(source: Path, packed: Path, written: Path) -> tuple[str, bool]:
    """As cmake/commit.cmake writes it into bench."""
    defined = {"source": source, "packed": packed, "written": written}
    flags = [f"-D{name}={value}" for name, value in defined.items()]
    command = ["cmake", *flags, "-P", ROOT / "cmake" / "commit.cmake"]
    subprocess.run(command, capture_output=True, check=True)
    found = re.search(r'tree = "(?:(\w{40})-(clean|dirty))?";', written.read_text("utf-8"))
    assert found is not None
    return found[1] or "", found[2] == "dirty"


def test_a_copy_without_git_knows_its_commit_and_whether_it_was_changed(tmp_path: Path) -> None:
    """Also where a repository lies around the copy."""
    source, written = tmp_path / "around" / "source", tmp_path / "built_from.cpp"
    source.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", source.parent], check=True)
    (source / "a.cpp").write_text("int a;\n", encoding="utf-8")
    packed = tmp_path / "commit.txt"
    assert commit_of(source, packed, written) == ("", False)
    hashed = hashlib.sha256(b"int a;\n").hexdigest()
    text = f"commit {'ab' * 20}\ndirty false\n{hashed}  a.cpp\n"
    packed.write_text(text, encoding="utf-8")
    assert commit_of(source, packed, written) == ("ab" * 20, False)
    (source / "a.cpp").write_text("int b;\n", encoding="utf-8")
    assert commit_of(source, packed, written) == ("ab" * 20, True)
    (source / "a.cpp").unlink()
    assert commit_of(source, packed, written) == ("ab" * 20, True)
    packed.write_text(f"commit {'ab' * 20}\ndirty true\n", encoding="utf-8")
    assert commit_of(source, packed, written) == ("ab" * 20, True)


@needs_git
def test_the_packed_commit_is_that_of_git(tmp_path: Path) -> None:
    pack._commit(tmp_path)
    lines = (tmp_path / pack.COMMIT).read_text("utf-8").splitlines()
    ask = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    head = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    assert lines[0] == f"commit {head}"
    assert any(line.endswith("  bench/main.cpp") for line in lines)
    assert not any("  results/" in line for line in lines)


# What every machine has: the C library in all its parts, and the compiler's runtime.
ON_EVERY_MACHINE = {"ld-linux-x86-64", "libc", "libdl", "libgcc_s", "libm", "libpthread", "librt"}
ON_EVERY_MACHINE |= {"libstdc++"}


def run_in_a_bare_root(
    root: Path, packed: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """bin/bench of the pack, in a root with nothing but that and what every machine has."""
    shutil.copytree(packed, root / "pack", symlinks=True)
    told = subprocess.run(
        ["ldd", packed / "bin" / "bench"], capture_output=True, text=True, check=True
    ).stdout
    for found in map(Path, re.findall(r"(/\S+) \(0x", told)):
        if found.name.partition(".so")[0] in ON_EVERY_MACHINE:
            to = root / found.relative_to("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found.resolve(), to)
    (root / "tmp").mkdir()
    become_root = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    enter = [*become_root, shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin"), str(root)]
    if None in enter or (become_root and not shutil.which("unshare")):
        pytest.skip("neither chroot nor unshare is here")
    done = subprocess.run(
        [*enter, "/pack/bin/bench", *arguments],
        # Without /proc the loader does not know where the program lies.
        env={"LD_LIBRARY_PATH": "/pack/lib:/pack/lib/x86_64-linux-gnu"},
        capture_output=True,
        text=True,
        check=False,
    )
    if re.match(r"(unshare|chroot): (unshare failed|cannot change root)", done.stderr):
        pytest.skip(f"nobody may change the root here: {done.stderr.strip()}")
    return done


def test_what_is_missing_in_a_bare_root_shows_there(tmp_path: Path) -> None:
    library, pack_of = tmp_path / "libneeded.so", {n: tmp_path / n for n in ("whole", "cut")}
    compiler = ["c++", "-x", "c++", "-"]
    text = "int needed() { return 0; }"
    flags = ["-shared", "-fPIC", "-o", library]
    subprocess.run([*compiler, *flags], input=text, text=True, check=True)
    text = "#include <string>\nint needed(); int main(int n, char**) { return needed() + n - 2; }"
    for name, packed in pack_of.items():
        (packed / "bin").mkdir(parents=True)
        (packed / "lib").mkdir()
        if name == "whole":
            shutil.copy(library, packed / "lib")
        flags = ["-o", packed / "bin" / "bench", "-L", tmp_path, "-lneeded"]
        subprocess.run([*compiler, *flags], input=text, text=True, check=True, cwd=tmp_path)
    assert run_in_a_bare_root(tmp_path / "a", pack_of["whole"], "--version").returncode == 0
    failed = run_in_a_bare_root(tmp_path / "b", pack_of["cut"], "--version")
    assert failed.returncode != 0 and "libneeded.so" in failed.stderr


@pytest.mark.slow
def test_the_packed_bench_measures_in_a_bare_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is built for another machine, but without the GPU backend."""
    if not weekly():
        pytest.skip("runs with ./test --all")
    monkeypatch.setattr(pack, "_BUILD", tmp_path / "build")
    monkeypatch.setattr(cuda, "choose", lambda _: cuda.Choice(None))
    packed = tmp_path / "packed"
    for collected in (pack._debian, pack._wheels, pack._bench):
        collected(packed)
    assert run_in_a_bare_root(tmp_path / "started", packed, "--version").returncode == 0
    quick = ("--model=disc-2", "--threads=1", "--budget=10s", "--out=/tmp/quick.json")
    root = tmp_path / "measured"
    measured = run_in_a_bare_root(root, packed, *quick)
    assert measured.returncode == 0, measured.stderr
    assert '"disc-2"' in (root / "tmp" / "quick.json").read_text("utf-8")
