# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_sweep with programs that stand in for bench and its tests; and what it packs."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from bench_runs import BENCH, built
from scripts import ROOT, ran, script

from tools.stages import weekly

SWEEP = ROOT / "tools" / "gpu_sweep"
# As docs/gpu.md has them, in its order.
PAGE = (ROOT / "docs" / "gpu.md").read_text("utf-8")
_, FIRST, SECOND, THIRD = (
    shlex.split(words, comments=True)
    for words in re.findall(r"^tools/gpu_sweep (.*)", PAGE, re.MULTILINE)
)
INTERRUPTED = '{"context": {"crossover": {"complete": false}}, "rows": []}'
STAND_IN = """
import os, sys, time
from pathlib import Path
words = sys.argv[1:]
if "--benchmark_list_tests" in words:
    sys.exit("--cuda=on" in words and not os.environ["FINDS_GPU"] and "bench: there is no GPU")
with open(os.environ["CALLS"], "a") as calls:
    calls.write(f"{' '.join(words)}\\n")
if os.environ["TROUBLE"] in " ".join(words):
    os.abort()
for word in words:
    if word.startswith("--out="):
        Path(word[6:]).write_text('{"rows": [1], "benchmarks": []}')
"""
TESTS = """
import os, sys, time
if os.environ["TROUBLE"] == f"shard {os.environ.get('GTEST_SHARD_INDEX')}":
    os.abort()
if os.environ["TROUBLE"] == "hangs":
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(600)
time.sleep(0.3)
print(f"[  PASSED  ] {1 + int(os.environ['GTEST_SHARD_INDEX'])} tests.", end="", flush=True)
time.sleep(0.3)  # others write behind it
print()
"""


class Commands:
    """A machine with a GPU and what was packed for it; what the sweep starts there, by the names of
    files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self._calls = folder, folder / "out", folder / "calls"
        self.sweep = folder / "tools" / SWEEP.name
        self.variables = {"CALLS": str(self._calls), "TROUBLE": "nothing", "FINDS_GPU": "yes"}
        for name in ("tools", "programs", "brought", "tree/bin"):
            (folder / name).mkdir(parents=True)
        shutil.copy(SWEEP, folder / "tools")
        script(folder / "tree/bin/bench", STAND_IN)
        script(folder / "tree/bin/crossover_tests", TESTS)
        shutil.make_archive(str(folder / "brought/pack"), "gztar", folder / "tree")
        self.program("nvidia-smi", "print('GPU 0: H200')")
        self.program("nproc", "print(8)")
        self.program("compute-sanitizer", "import sys; sys.exit('race' in str(sys.argv))")

    def program(self, name: str, text: str) -> None:
        script(self.folder / "programs" / name, text)

    def run(self, *words: str) -> tuple[int, list[str]]:
        self._calls.write_text("")
        path = f"{self.folder / 'programs'}:{os.environ['PATH']}"
        variables = {**os.environ, **self.variables, "PATH": path, "OUT": str(self.out)}
        done = ran(self.sweep, *words, code=None, cwd=self.folder, env=variables)
        calls = (line.split()[0] for line in self._calls.read_text("utf-8").splitlines())
        return done.returncode, [Path(call).name for call in calls]

    def log(self) -> str:
        return (self.out / "gpu_sweep.log").read_text("utf-8")


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


@pytest.mark.parametrize("trouble", ["nothing", "--check", "ladder.json"])
def test_a_stage_that_fails_does_not_prevent_the_others(trouble, commands):
    commands.variables["TROUBLE"] = trouble
    assert commands.run(*FIRST) == (trouble != "nothing", ["--check", "ladder.json"])
    verdicts = re.findall(r"^(\w+) +\d+ s  (\w+)", commands.log(), re.MULTILINE)
    failed = {"--check": "check", "ladder.json": "ladder"}.get(trouble)
    ends = {name: "failed" if name == failed else "passed" for name in ("check", "ladder")}
    assert dict(verdicts) == ends | {"racecheck": "failed"}, "which may fail"


def test_a_gpu_that_bench_does_not_find_is_not_paid_for(commands):
    commands.variables["FINDS_GPU"] = ""
    assert commands.run() == (1, [])
    assert "nothing is measured: bench: there is no GPU" in commands.log()
    commands.program("nvidia-smi", "")
    assert commands.run() == (0, ["--check", "ladder.json"]), "there is none to find"
    shutil.rmtree(commands.folder / "brought")
    assert commands.run() == (1, []), "nothing was brought"


def test_a_second_command_goes_on_with_the_rows_of_the_first(commands):
    commands.variables["TROUBLE"] = "pytorch"  # which may fail
    (earlier := commands.folder / "brought" / "first").mkdir()
    (earlier / "ladder.json.partial").write_text(INTERRUPTED)
    (earlier / "seven.json").write_text(INTERRUPTED.replace("false", "true"))
    code, calls = commands.run(*SECOND)
    names = ("ladder", "tailored", "pytorch", "jax", "batch", "gpu", "transformers")
    assert (code, calls) == (0, [f"{name}.json" for name in names])
    assert (commands.out / "ladder.json.partial").read_text("utf-8") == INTERRUPTED
    log = commands.log()
    assert re.search(r"/ladder\.json --sweep=ladder --cuda=on --resume\n", log)
    assert re.search(r"--threads=1,4,8 .*--peer=\S+ -m peers\.pytorch --devices=cpu,cuda ", log)


@pytest.mark.parametrize("trouble", ["nothing", "shard 3"])
def test_the_third_command_tests_and_measures(trouble, commands):
    """Each of 8 shards once, though one crashes; racecheck may fail."""
    commands.variables["TROUBLE"] = trouble
    assert commands.run(*THIRD) == (trouble != "nothing", ["between.json"])
    stages = re.findall(r"^([\w ]+?) +\d+ s  (?:passed|failed)", commands.log(), re.MULTILINE)
    assert stages == ["GPU tests", "memcheck", "racecheck", "profile", "between"]
    of_shards = (commands.folder / "build/brought/GPU_tests.log").read_text("utf-8")
    assert f"\n{36 if trouble == 'nothing' else 32} PASSED\n" in commands.log(), of_shards


@pytest.mark.slow
def test_a_stage_that_hangs_is_ended_even_if_it_will_not(commands):
    commands.variables["TROUBLE"] = "hangs"
    assert commands.run("--tests", "--minutes=0.1") == (1, ["between.json"])
    # Of six seconds it has four, or on a busy machine what is left.
    ended = r"^GPU tests +\d+ s  out of time after [1-4] s"
    assert re.search(ended, commands.log(), re.MULTILINE)
    ran("pgrep", "-f", commands.folder, code=1)  # nothing that it started is left


def test_sanitizers_are_given_tests_that_exist():
    sources = [path.read_text("utf-8") for path in Path(__file__).parent.glob("*.cpp")]
    for suite, name in re.findall(r"--gtest_filter=(\w+)/(\w+)\*'", SWEEP.read_text("utf-8")):
        assert any(f"INSTANTIATE_TEST_SUITE_P({suite}, {name}," in source for source in sources)


# --- what is packed

# What every machine has: the C library in all its parts, and the compiler's runtime.
ON_EVERY_MACHINE = {"ld-linux-x86-64", "libc", "libdl", "libgcc_s", "libm", "libpthread", "librt"}
ON_EVERY_MACHINE |= {"libstdc++"}
BUILDS = f"""
import shutil, sys
if "--build" in sys.argv:
    shutil.copy({str(BENCH)!r}, "build/pack/bench")
else:
    __import__("pathlib").Path("build/pack").mkdir(parents=True)
"""


@pytest.fixture
def packed(commands: Commands) -> Path:
    """What --pack makes of the bench that is here, or with ./test --all of one that it builds,
    without the GPU backend; unpacked in a root with nothing but what every machine has."""
    told = ran("ldd", built(BENCH)).stdout
    if weekly():
        commands.sweep = SWEEP
    else:
        commands.program("cmake", BUILDS)
    answers = f"{sys.prefix!r} if '-c' in sys.argv else '-DCROSSOVER_CUDA=OFF'"
    commands.program("python3", f"import sys\nprint({answers})")
    assert commands.run("--pack=packed")[0] == 0
    root = commands.folder / "root"
    shutil.unpack_archive(commands.folder / "packed" / "pack.tar.gz", root / "pack")
    for library in map(Path, re.findall(r"(/\S+) \(0x", told)):
        if library.name.partition(".so")[0] in ON_EVERY_MACHINE:
            to = root / library.relative_to("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library.resolve(), to)
    (root / "tmp").mkdir()
    return root


@pytest.mark.slow
def test_the_packed_bench_measures_in_a_bare_root(packed):
    become_root = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if chroot is None or (become_root and not shutil.which("unshare")):
        pytest.skip("neither chroot nor unshare is here")
    # Without /proc neither bench nor the loader knows where the program lies.
    quick = ("--in-process", "--mlp=2,2", "--threads=1", "--budget=2s", "--out=/tmp/quick.json")
    command = (*become_root, chroot, packed, "/pack/bin/bench", *quick)
    done = ran(*command, code=None, env={"LD_LIBRARY_PATH": "/pack/lib"})
    if re.match(r"(unshare|chroot): (unshare failed|cannot change root)", done.stderr):
        pytest.skip(f"nobody may change the root here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert '"mlp-2-2"' in (packed / "tmp" / "quick.json").read_text("utf-8")
