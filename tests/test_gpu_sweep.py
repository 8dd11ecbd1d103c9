# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_sweep with programs that stand in for bench and its tests; and what it packs."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
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
print(f"[  PASSED  ] {1 + int(os.environ['GTEST_SHARD_INDEX'])} tests.")
"""


class Commands:
    """A machine with a GPU and what was packed for it; what the sweep starts there, by the names of
    files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self._calls = folder, folder / "out", folder / "calls"
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
        sweep = self.folder / "tools/gpu_sweep"
        done = ran(sweep, *words, code=None, cwd=self.folder, env=variables)
        calls = (line.split()[0] for line in self._calls.read_text("utf-8").splitlines())
        return done.returncode, [Path(call).name for call in calls]

    def log(self, name: str = "gpu_sweep") -> str:
        return (self.out / f"{name}.log").read_text("utf-8")


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path)


@pytest.mark.parametrize("trouble", ["nothing", "--check", "gpu.json"])
def test_a_stage_that_fails_does_not_prevent_the_others(trouble, commands):
    commands.variables["TROUBLE"] = trouble
    assert commands.run(*FIRST) == (trouble != "nothing", ["--check", "gpu.json"])
    verdicts = re.findall(r"^(\w+) +\d+ s  (\w+)", commands.log(), re.MULTILINE)
    failed = {"--check": "check", "gpu.json": "gpu"}.get(trouble)
    assert verdicts == [(one, "failed" if one == failed else "passed") for one in ("check", "gpu")]


def test_a_gpu_that_bench_does_not_find_is_not_paid_for(commands):
    commands.variables["FINDS_GPU"] = ""
    assert commands.run() == (1, [])
    assert "nothing is measured: bench: there is no GPU" in commands.log()
    commands.program("nvidia-smi", "")
    assert commands.run() == (0, ["--check", "gpu.json"]), "there is none to find"
    shutil.rmtree(commands.folder / "brought")
    assert commands.run() == (1, []), "nothing was brought"


def test_a_second_command_goes_on_with_the_rows_of_the_first(commands):
    commands.variables["TROUBLE"] = "pytorch"  # which may fail
    (earlier := commands.folder / "brought" / "first").mkdir()
    (earlier / "gpu.json.partial").write_text(INTERRUPTED)
    (earlier / "seven.json").write_text(INTERRUPTED.replace("false", "true"))
    code, calls = commands.run(*SECOND)
    assert (code, calls) == (0, ["gpu.json", "pytorch.json", "transformers.json"])
    assert (commands.out / "gpu.json.partial").read_text("utf-8") == INTERRUPTED
    assert re.search(r"/gpu\.json --sweep=gpu --cuda=on --resume\n", commands.log("gpu"))
    assert re.search(r"--peer=\S+ -m peers\.pytorch ", commands.log("pytorch"))


@pytest.mark.parametrize("trouble", ["nothing", "shard 3"])
def test_the_third_command_tests_and_measures(trouble, commands):
    """Each of 8 shards once, though one crashes; racecheck may fail."""
    commands.variables["TROUBLE"] = trouble
    assert commands.run(*THIRD) == (trouble != "nothing", ["between.json"])
    stages = re.findall(r"^([\w ]+?) +\d+ s  (?:passed|failed)", commands.log(), re.MULTILINE)
    assert stages == ["GPU tests", "memcheck", "racecheck", "profile", "between"]
    assert f"\n{36 if trouble == 'nothing' else 32} PASSED\n" in commands.log()


@pytest.mark.slow
def test_a_stage_that_hangs_is_ended_even_if_it_will_not(commands):
    commands.variables["TROUBLE"] = "hangs"
    assert commands.run("--tests", "--minutes=0.1") == (1, ["between.json"])
    assert re.search(r"^GPU tests +[2-9] s  out of time after 4 s", commands.log(), re.MULTILINE)


def test_sanitizers_are_given_tests_that_exist():
    sources = [path.read_text("utf-8") for path in Path(__file__).parent.glob("*.cpp")]
    for suite, name in re.findall(r"--gtest_filter=(\w+)/(\w+)\*'", SWEEP.read_text("utf-8")):
        assert any(f"INSTANTIATE_TEST_SUITE_P({suite}, {name}," in source for source in sources)


# What every machine has: the C library in all its parts, and the compiler's runtime.
ON_EVERY_MACHINE = {"ld-linux-x86-64", "libc", "libdl", "libgcc_s", "libm", "libpthread", "librt"}
ON_EVERY_MACHINE |= {"libstdc++"}


def run_in_a_bare_root(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """bin/bench of the pack, in a root with nothing but that and what every machine has."""
    bench = root / "pack" / "bin" / "bench"
    for found in map(Path, re.findall(r"(/\S+) \(0x", ran("ldd", bench).stdout)):
        if found.name.partition(".so")[0] in ON_EVERY_MACHINE:
            to = root / found.relative_to("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found.resolve(), to)
    (root / "tmp").mkdir()
    become_root = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    enter = [*become_root, shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin"), str(root)]
    if None in enter or (become_root and not shutil.which("unshare")):
        pytest.skip("neither chroot nor unshare is here")
    # Without /proc the loader does not know where the program lies.
    variables = {"LD_LIBRARY_PATH": "/pack/lib"}
    done = ran(*enter, "/pack/bin/bench", *arguments, code=None, env=variables)
    if re.match(r"(unshare|chroot): (unshare failed|cannot change root)", done.stderr):
        pytest.skip(f"nobody may change the root here: {done.stderr.strip()}")
    return done


@pytest.mark.slow
@pytest.mark.skipif(not weekly(), reason="builds bench for one GPU: ./test --all")
def test_the_packed_bench_measures_in_a_bare_root(tmp_path):
    done = ran(SWEEP, f"--pack={tmp_path / 'brought'}", "--gpu=90", code=None)
    if "--cuda=on, but" in done.stderr:
        pytest.skip("there is no CUDA compiler to pack with")
    assert done.returncode == 0, done.stderr
    shutil.unpack_archive(tmp_path / "brought" / "pack.tar.gz", tmp_path / "pack")
    assert (tmp_path / "pack" / "bin" / "crossover_tests").is_file()
    quick = ("--model=disc-2", "--threads=1", "--budget=10s", "--out=/tmp/quick.json")
    measured = run_in_a_bare_root(tmp_path, *quick)
    assert measured.returncode == 0, measured.stderr
    assert '"disc-2"' in (tmp_path / "tmp" / "quick.json").read_text("utf-8")
