# SPDX-License-Identifier: Apache-2.0
"""docs/adding.md adds a network, an operation, an activation, a layer, a norm, a backend, an
execution, a family of benchmarks and a framework."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench_runs import BENCH, SHORT, bench, built, plan
from scripts import ROOT, ran

from crossover_bench.run.environment import VENV
from tools.stages import thorough, weekly

GUIDE = ROOT / "docs" / "adding.md"
_BLOCK = re.compile(r"^```(\w+) file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LIBRARY = (
    "CMakeLists.txt",
    "cmake",
    "include",
    "src",
    "bench",
    "tests/fixtures",
    "plots",
)


@dataclass(frozen=True)
class Block:
    """A file that the guide writes whole (cpp, cmake), or lines that it changes (diff)."""

    language: str
    path: str
    text: str

    def apply(self, root: Path) -> None:
        file = root / self.path
        if self.language != "diff":
            assert not file.exists(), f"{self.path} is there already"
            file.parent.mkdir(exist_ok=True)
            file.write_text(self.text, encoding="utf-8")
            return
        lines = self.text.splitlines()
        before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
        after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
        old = file.read_text(encoding="utf-8")
        assert old.count(before) == 1, f"{self.path} does not have these lines once:\n{before}"
        file.write_text(old.replace(before, after), encoding="utf-8")


def blocks(section: str = "") -> list[Block]:
    text = GUIDE.read_text(encoding="utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [Block(*parts) for parts in _BLOCK.findall(text)]


def copied(root: Path) -> Path:
    """A copy of what the library is built from, as the guide finds it."""
    root.mkdir()
    for name in _LIBRARY:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, root / name)
    return root


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with everything added."""
    root = copied(tmp_path_factory.mktemp("adding") / "project")
    for block in blocks():
        block.apply(root)
    return root


def compile_alone(root: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Check one source as the build would, without making anything of it."""
    command = ["c++", "-std=c++20", "-fopenmp", "-fsyntax-only", "-Iinclude", "-Ibench", source]
    headers = VENV / "include"  # oneDNN's, where it came as a package
    command += ["-isystem", str(headers)] if headers.exists() else []
    return ran(*command, cwd=root, code=None)


def forgotten() -> Iterator[tuple[str, str, str, str, str]]:
    """What is left out, where it stands, its line, the source that then does not compile, why."""
    member = "include/crossover/operations/elementwise.h"
    listed = "src/operations/operations.cpp"
    for line in (
        '  static constexpr const char* name = "Scale";\n',
        "  static constexpr OpCategory category = OpCategory::elementwise;\n",
        "  void check(const Fit& fit) const;\n",
        "  [[nodiscard]] Cost cost(const Workload& workload) const;\n",
        "  void execute(ReferenceRun& run) const;\n",
    ):
        yield line.split("(")[0].split(" =")[0].split()[-1], member, line, listed, "Operation"
    lower = "void lower(const Scale& op, Lowering& to);\n"
    yield "cpu", "src/cpu/operations/operations.h", lower, "src/cpu/operations/lower.cpp", "Scale"
    rule = "void plan_operation(const Scale& scale, StepPlanner& step);\n"
    planner = "src/cuda/plan/step_planner.cpp"
    yield "cuda", "src/cuda/plan/operations/operations.h", rule, planner, "Scale"
    backward = "  void backward(LayerBackward& step) const;\n"
    layer = "include/crossover/layers.h"
    yield "backward", layer, backward, "src/models/model.cpp", "LayerKindType"


FORGOTTEN = [case for case in forgotten() if thorough() or case[0] in ("cost", "cpu", "backward")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "line", "source", "why"), [pytest.param(*case[1:], id=case[0]) for case in FORGOTTEN]
)
def test_a_place_that_is_forgotten_does_not_compile(added, path, line, source, why):
    file = added / path
    whole = file.read_text(encoding="utf-8")
    added_from = whole.rindex("\n", 0, whole.index("Scale")) + 1
    before, after = whole[:added_from], whole[added_from:]
    assert line in after
    file.write_text(before + after.replace(line, "", 1), encoding="utf-8")
    try:
        done = compile_alone(added, source)
    finally:
        file.write_text(whole, encoding="utf-8")
    assert done.returncode != 0
    assert "error" in done.stderr
    assert why in done.stderr


@pytest.mark.slow
def test_what_is_added_compiles(added):
    """Each source that the guide writes or adds to; all are built together with ./test --all.

    Takes long because headers do: those of src are compiled as one, those of bench too, what the
    guide writes whole first, as it has to include all that it uses.
    """
    sources = sorted({block.path for block in blocks() if block.path.endswith(".cpp")})
    folders = {path.split("/")[1] for path in sources}
    library = {"models", "operations", "cpu", "cuda", "layers", "plain", "backends.cpp"}
    assert folders == {*library, "families", "axes"}
    whole = [block.path for block in blocks() if block.language == "cpp"]
    for top in ("src", "bench"):
        every = sorted(
            (path for path in sources if path.startswith(f"{top}/")),
            key=lambda path: path not in whole,
        )
        assert every[0] in whole
        joined = added / f"{top}.cpp"
        joined.write_text("".join(f'#include "{path}"\n' for path in every), "utf-8")
        done = compile_alone(added, joined.name)
        assert done.returncode == 0, done.stderr


NETWORK = """
from torch import nn

def make():
    return nn.Sequential(nn.Linear(4, 6), nn.Mish(), nn.Linear(6, 3))
"""


@pytest.mark.slow
def test_an_activation_is_one_entry_for_both_importers_and_what_shows(added, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed here")
    onnx = pytest.importorskip("onnx", reason="onnx is not installed here")
    module, file = tmp_path / "net.py", tmp_path / "net.onnx"
    module.write_text(NETWORK, encoding="utf-8")
    shapes = (("x", ["n", 4]), ("y", ["n", 4]))
    ends = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes]
    node = onnx.helper.make_node("Mish", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "net", ends[:1], ends[1:])
    opset = [onnx.helper.make_opsetid("", 18)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), file)

    def networks(*words: str) -> str:
        command = (sys.executable, "-m", "crossover_bench.networks", *words)
        return ran(*command, cwd=added / "plots").stdout

    described = networks("import", str(file))
    assert [layer["type"] for layer in json.loads(described)["layers"]] == ["mish"]
    described = networks("import", f"{module}:make", "--input=4")
    assert [layer["type"] for layer in json.loads(described)["layers"]] == [
        *("linear", "mish", "linear")
    ]
    shown = tmp_path / "net.json"
    shown.write_text(described, encoding="utf-8")
    (line,) = [line.split() for line in networks("show", str(shown)).splitlines() if "mish" in line]
    assert line[-1] == "36"  # of 6 numbers


def verified_rows(program: Path, out: Path, *flags: str) -> set[str]:
    """The devices of the rows that it measured, each of which is verified."""
    done = bench(*flags, *SHORT, f"--out={out}", program=program)
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert rows and all("outcome" not in row and row["verification"] for row in rows), done.stdout
    return {row["configuration"]["device"] for row in rows}


@pytest.mark.slow
def test_a_backend_that_is_added_has_rows_that_are_planned_verified_and_measured(tmp_path):
    """Its source and the table, linked with what bench was built of, which is compiled as before.
    They stand before the library, whose own table is then left out."""
    build = built(BENCH).parent
    if not (build / "build.ninja").exists():
        pytest.skip(f"{build} was not built by ninja")
    root = copied(tmp_path / "project")
    for block in blocks("A backend"):
        block.apply(root)
    commands = ran("ninja", "-C", build, "-t", "commands", "bench").stdout.splitlines()
    named = re.compile(rf" -c (['\"]?){re.escape(str(ROOT))}/src/backends\.cpp\1$")  # with a space
    (compiles,) = filter(named.search, commands)
    compiles = compiles.partition(" -MD ")[0].replace(f"{ROOT}/include", f"{root}/include")
    objects = []
    for source in ("src/backends.cpp", "src/plain/backend.cpp"):
        objects.append(tmp_path / f"{len(objects)}.o")
        ran("sh", "-c", f"{compiles} -o {objects[-1]} -c {root / source}", cwd=build)
    program = tmp_path / "bench"
    link, place = commands[-1], " -o bench "
    assert place in link
    link = link.replace(place, f" {' '.join(map(str, objects))} -o {program} ")
    ran("sh", "-c", link, cwd=build)

    words = ("--family=Epoch,Gemm,Peak", "--sweep=quick", "--threads=1", "--execution=eager")
    rows = {row.name: row.axes["device"] for row in plan(*words, program=program)}
    on_cpu = {name for name, device in rows.items() if device == "cpu"}
    of_it = {name for name, device in rows.items() if device == "plain"}
    assert of_it == {name.replace("/device:cpu/", "/device:plain/") for name in on_cpu}
    before = {row.name for row in plan(*words)}
    assert rows.keys() - of_it == before
    assert {row.name for row in plan(*words, "--plain=off", program=program)} == before
    flags = ("--model=disc-2", "--threads=1", "--cuda=off", "--execution=eager")
    every = ("--family=Epoch,Minibatch,Forward", "--batch=1,32")
    assert verified_rows(program, tmp_path / "own.json", *flags, *every) == {"cpu", "plain"}


@pytest.mark.slow
@pytest.mark.skipif(not weekly(), reason="builds everything: ./test --all")
def test_what_is_added_works(added):
    tests = added / "tests"
    (tests / "CMakeLists.txt").write_text(
        "find_package(GTest 1.11 REQUIRED)\n"
        "add_executable(adding_test fixtures/adding_test.cpp)\n"
        "target_link_libraries(adding_test PRIVATE crossover GTest::gtest_main)\n",
        encoding="utf-8",
    )
    build = added / "build"
    options = ["-DCROSSOVER_CUDA=OFF", "-DCROSSOVER_NATIVE=OFF", "-DCMAKE_BUILD_TYPE=Debug"]
    options += [f"-DCMAKE_PREFIX_PATH={VENV}", "-DCMAKE_CXX_FLAGS_DEBUG=-O0"]
    # For one kind of processor: Highway's kernels are compiled for each.
    options += ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=40"]
    options += ["-DCMAKE_CXX_FLAGS=-DHWY_COMPILE_ONLY_STATIC"]
    ran("cmake", "-G", "Ninja", "-S", added, "-B", build, *options)
    ran("cmake", "--build", build, "--target", "adding_test", "bench")
    done = ran(build / "tests" / "adding_test", "--gtest_brief=1", cwd=added)
    tests = (added / "tests/fixtures/adding_test.cpp").read_text(encoding="utf-8").count("\nTEST(")
    assert f"[  PASSED  ] {tests} tests." in done.stdout
    small = ("--family=OwnGemm", "--sweep=quick", "--benchmark_filter=n:32/")
    assert verified_rows(build / "bench", added / "own.json", *small) == {"cpu"}
    plain = ("--model=disc-2", "--threads=1", "--benchmark_filter=device:plain")
    assert verified_rows(build / "bench", added / "plain.json", *plain) == {"plain"}


_ASKED = """
from crossover_bench.files.axes import BUILT_IN
from crossover_bench.run import environment, peers, resume, run
print(*peers.named("tinygrad,pytorch")[0])
print("tinygrad: measures fully connected networks; 30 MB to" in " ".join(run.HELP.split()))
print(BUILT_IN["program"].words["tinygrad"], "--jit" in resume.HARMLESS)
print(*(path.name for path in environment.FOR_FRAMEWORKS["tinygrad"]))
"""


def test_a_framework_is_one_entry(added):
    """For what ./run takes, says, downloads and goes on with, and for what pages call it."""
    done = ran(sys.executable, "-c", _ASKED, cwd=added / "plots")
    assert done.stdout.split("\n")[:-1] == [
        *("tinygrad pytorch", "True", "tinygrad True", "requirements-tinygrad.txt")
    ]
