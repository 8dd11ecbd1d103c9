# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_sweep: arguments, stages, limits, and what --pack collects."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import ROOT, refused, script

from tools import cuda, gpu, limited, pack, sources
from tools.stages import weekly

INTERRUPTED = '{"context": {"crossover": {"complete": false}}, "rows": []}'


def test_the_calls_for_a_lent_machine_are_documented_and_lose_nothing():
    text = (gpu.ROOT / "docs" / "gpu.md").read_text("utf-8")
    for call in gpu.calls(gpu.ROOT / "brought"):
        assert f"\n{call}\n" in text
        parsed = gpu.parse(call.split()[1:])
        assert parsed.brought == Path("brought").absolute()
        assert parsed.out == gpu.parse([]).out, "what lies elsewhere stays on that machine"


# ---- one stage -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "seconds", "verdict"),
    [
        ("print('out')", 600, "passed"),
        ("print('out'); raise SystemExit(3)", 600, "failed (exit code 3)"),
        ("print('out')", 0, "no time left"),
    ],
)
def test_a_stage_ends_with_a_verdict_and_its_output(text, seconds, verdict, tmp_path):
    said = limited.run_limited([sys.executable, "-c", text], tmp_path / "log", seconds)
    assert said == (verdict, "out\n" if seconds else "")
    assert not (tmp_path / "log").exists()


@pytest.mark.slow
def test_a_stage_that_hangs_is_ended_even_if_it_will_not(tmp_path):
    text = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
    verdict, _ = limited.run_limited([sys.executable, "-c", text], tmp_path / "log", 1)
    assert verdict == "out of time after 1 s"


def test_a_stage_leaves_nothing_running(tmp_path):
    lock, outlived = tmp_path / "lock", tmp_path / "outlived"
    child = f"import time; time.sleep(20); open({str(outlived)!r}, 'w')"
    text = (
        f"import fcntl, subprocess, sys; file = open({str(lock)!r}, 'w'); fcntl.flock(file, 2); "
        f"subprocess.Popen([sys.executable, '-c', {child!r}], pass_fds=[file.fileno()])"
    )
    command = [sys.executable, "-c", text]
    assert limited.run_limited(command, tmp_path / "log", 600)[0] == "passed"
    with lock.open(encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # held by the child for as long as it lives
    assert not outlived.exists()


# ---- the commands, with programs that stand in for bench and its tests ---------------------------
STAND_IN = """
import json, os, sys
from pathlib import Path
me, words = Path(__file__), sys.argv[1:]
if "--machine" in words:
    gpu = {"name": "H200"} if me.parent.name in os.environ["FINDS_GPU"].split() else None
    print(json.dumps({"gpu": gpu, "gpu_reason": "none"}))
    sys.exit()
with open(os.environ["CALLS"], "a") as calls:
    calls.write(f"{me.parent.name} {' '.join(words)}\\n")
out = [word.partition("=")[2] for word in words if word.startswith("--out=")]
if os.environ["TROUBLE"] in " ".join(words):
    os.abort()
if out:
    Path(out[0]).write_text('{"rows": [1], "benchmarks": []}')
"""
TESTS = """
import os, time
if os.environ["TROUBLE"] == f"shard {os.environ['GTEST_SHARD_INDEX']}":
    os.abort()
time.sleep(0.3)
print(f"[  PASSED  ] {1 + int(os.environ['GTEST_SHARD_INDEX'])} tests.")
"""


class Commands:
    """What the sweep started, by name and words. The machine has a GPU, which every bench finds."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch, self.out = folder, monkeypatch, folder / "out"
        self._calls = folder / "calls"
        for name, place in {
            "BUILD": "build",
            "NATIVE": "build/bench",
            "PREFIX": "build/prefix",
            "PACKED": "build/prefix/bin/bench",
        }.items():
            monkeypatch.setattr(gpu, name, folder / place)
        monkeypatch.setattr(gpu, "times", lambda path: f"times of {path.name}")
        self.set(CALLS=str(self._calls), TROUBLE="nothing", FINDS_GPU="bin build")
        made, built = script(folder / "made", STAND_IN), folder / "build"
        self.make(f"mkdir -p {built}; cp {made} {built}/bench")
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        script(folder / "nvidia-smi", "print('GPU 0: H200')")

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self.patch.setenv(name, value)

    def make(self, text: str) -> None:
        """What builds the native bench."""
        self.patch.setattr(gpu.Sweep, "make", lambda _, program: ["sh", "-c", text])

    def packed(self) -> None:
        (self.folder / "tree/bin").mkdir(parents=True)
        script(self.folder / "tree/bin/bench", STAND_IN)
        script(self.folder / "tree/bin/crossover_tests", TESTS)
        shutil.make_archive(str(self.folder / "brought/pack"), "gztar", self.folder / "tree")

    def run(self, *words: str) -> tuple[int, list[str]]:
        """The exit code, and of each command the folder of its program and the name of its file."""
        self._calls.write_text("")
        code = gpu.main([*words, f"--out={self.out}", f"--brought={self.folder / 'brought'}"])
        calls = (line.split() for line in self._calls.read_text("utf-8").splitlines())
        return code, [f"{call[0]} {Path(call[1]).name or call[1]}" for call in calls]

    def log(self) -> str:
        return (self.out / "gpu_sweep.log").read_text("utf-8")


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(tmp_path, monkeypatch)


@pytest.mark.parametrize("trouble", ["nothing", "--check", "gpu.json"])
def test_a_packed_bench_measures_without_a_build(trouble, commands):
    """And no stage prevents the others."""
    commands.packed()
    commands.make("exit 3")
    commands.set(TROUBLE=trouble)
    assert commands.run() == (trouble != "nothing", ["bin --check", "bin gpu.json"])
    assert ("times of gpu.json\n" in commands.log()) == (trouble != "gpu.json")


def test_the_build_is_for_a_machine_whose_gpu_no_packed_bench_finds(commands):
    native = ["build --check", "build gpu.json"]
    assert commands.run() == (0, native)
    commands.packed()
    commands.set(FINDS_GPU="build")
    assert commands.run() == (0, native)
    commands.set(FINDS_GPU="")
    assert commands.run() == (1, []), "a GPU that bench does not find is not paid for"
    script(commands.folder / "nvidia-smi", "")
    assert commands.run() == (0, ["bin --check", "bin gpu.json"]), "there is none to find"


def test_a_second_command_goes_on_with_the_rows_of_the_first(commands):
    commands.packed()
    commands.set(TROUBLE="pytorch")
    (earlier := commands.folder / "earlier").mkdir()
    (earlier / "gpu.json.partial").write_text(INTERRUPTED)
    (earlier / "seven.json").write_text(INTERRUPTED.replace("false", "true"))
    code, calls = commands.run(f"--resume={earlier}")
    assert (code, calls) == (0, ["bin gpu.json", "bin pytorch.json", "bin transformers.json"])
    assert re.search(r"/gpu\.json --sweep=gpu --resume\n", commands.log())
    assert re.search(r"'--peer=\S+ -m peers\.pytorch [^']+'", commands.log())


@pytest.mark.parametrize(("is_packed", "trouble"), [(True, "shard 3"), (False, "nothing")])
def test_the_third_command_tests_and_measures(is_packed, trouble, commands):
    """Each of 8 shards once, though one crashes; racecheck may fail."""
    if is_packed:
        commands.packed()
    commands.set(TROUBLE=trouble)
    commands.patch.setattr(gpu, "TESTS", script(commands.folder / "crossover_tests", TESTS))
    commands.patch.setattr(gpu, "cores", lambda: 16)
    sanitizer = "import sys; print(*sys.argv); sys.exit('race' in str(sys.argv))"
    script(commands.folder / "compute-sanitizer", sanitizer)
    place = "bin" if is_packed else "build"
    assert commands.run("--tests") == (trouble != "nothing", [f"{place} between.json"])
    stages = re.findall(r"^([\w ]+?) +[\d.]+ s  (?:passed|failed)", commands.log(), re.MULTILINE)
    built = [] if is_packed else ["build", "build tests"]
    assert stages == [*built, "GPU tests", "memcheck", "racecheck", "profile", "between"]
    sanitized = re.findall(r"\n\$ .*--tool=.* \S+/(\S+) '--gtest_filter=", commands.log())
    assert sanitized == ["crossover_tests"] * 2
    assert f"; {36 if trouble == 'nothing' else 32} passed\n" in commands.log()


def test_sanitizers_are_given_tests_that_exist():
    sources = [path.read_text("utf-8") for path in Path(__file__).parent.glob("*.cpp")]
    for _, tests in gpu.SANITIZED.values():
        suite = f"INSTANTIATE_TEST_SUITE_P({tests.removesuffix('*').replace('/', ', ')},"
        assert any(suite in source for source in sources)


def test_packing_never_writes_into_a_folder_in_use(tmp_path):
    (tmp_path / "mine").touch()
    with refused("is not empty"):
        pack.collect(tmp_path, [])


# --- what --pack collects, and the commit that a copy without git knows by it


needs_git = pytest.mark.skipif(
    not sources.git("rev-parse", "HEAD"), reason="git does not tell the commit"
)


def commit_of(source: Path, packed: Path, written: Path) -> tuple[str, bool]:
    """As cmake/commit.cmake writes it into bench."""
    defined = {"source": source, "packed": packed, "written": written}
    flags = [f"-D{name}={value}" for name, value in defined.items()]
    command = ["cmake", *flags, "-P", ROOT / "cmake" / "commit.cmake"]
    subprocess.run(command, capture_output=True, check=True)
    found = re.search(r'tree = "(?:(\w{40})-(clean|dirty))?";', written.read_text("utf-8"))
    assert found is not None
    return found[1] or "", found[2] == "dirty"


def test_a_copy_without_git_knows_its_commit_and_whether_it_was_changed(tmp_path):
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
def test_the_packed_commit_is_that_of_git(tmp_path):
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


@pytest.mark.slow
def test_the_packed_bench_measures_in_a_bare_root(tmp_path, monkeypatch):
    """As it is built for another machine, but without the GPU backend."""
    if not weekly():
        pytest.skip("runs with ./test --all")
    monkeypatch.setattr(pack, "_BUILD", tmp_path / "build")
    monkeypatch.setattr(cuda, "choose", lambda _: cuda.Choice(None))
    packed = tmp_path / "packed"
    pack._debian(packed)
    pack._wheels(packed)
    pack._programs(packed, [])
    assert run_in_a_bare_root(tmp_path / "started", packed, "--version").returncode == 0
    quick = ("--model=disc-2", "--threads=1", "--budget=10s", "--out=/tmp/quick.json")
    root = tmp_path / "measured"
    measured = run_in_a_bare_root(root, packed, *quick)
    assert measured.returncode == 0, measured.stderr
    assert '"disc-2"' in (root / "tmp" / "quick.json").read_text("utf-8")
