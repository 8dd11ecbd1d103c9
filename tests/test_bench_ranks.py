# SPDX-License-Identifier: Apache-2.0
"""Several ranks over MPI: their rows, how they are started, and what is lost when one ends."""

import functools
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bench_runs import (
    BENCH,
    EMULATED,
    EPOCHS,
    LIMIT_SECONDS,
    SHORT,
    Document,
    bench,
    children_of,
    environment,
    measure,
    running,
    samples,
    strict,
)
from scripts import ran

from tools.stages import weekly

# Tests may run as root in a container.
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SPIN = {"GOMP_SPINCOUNT": "1000"}
# The sums of a sweep, and how many there are: the two of megabytes, which take long to verify, are
# left to ./test --all.
SUMS = ("--family=Collective", "--benchmark_filter=" + ("." if weekly() else "-bytes:[0-9]{7}"))
SIZES = 7 if weekly() else 5


@functools.cache
def missing() -> str:
    """Why there are no ranks here; "" where there are."""
    if shutil.which("mpirun") is None:
        return "there is no mpirun here"
    alone = launched("-n", "2", "--oversubscribe", "true")
    if alone.returncode != 0:
        return f"mpirun starts no two processes here: {' '.join(alone.stderr.split())[:200]}"
    told = bench("--ranks=2", "--mlp=2,2", *EPOCHS, *SHORT, variables={**SPIN, **ROOT_MAY})
    return "bench was built without MPI" if "built without MPI" in told.stderr else ""


# --- over MPI


pytestmark = pytest.mark.slow

ONE_OR_TWO = ("--ranks=1,2", "--threads=1", *EPOCHS)


@pytest.fixture(autouse=True)
def _ranks() -> None:
    if reason := missing():
        pytest.skip(reason)


@pytest.fixture
def two_at_once() -> None:
    """For ranks that differ. Some packages of mpirun end by a signal there (open-mpi/ompi, issue
    13303), as Debian 13's does."""
    if launched("-n", "1", "true", ":", "-n", "1", "true").returncode != 0:
        pytest.skip("this mpirun starts no two programs at once")


def trained(folder: Path, *flags: str) -> Document:
    return measure(folder, *flags, *SHORT, **SPIN, **ROOT_MAY)


def of_ranks(document: Document, device: str) -> list[Document]:
    rows = [row for row in document["rows"] if "ranks" in row["configuration"]]
    return [row for row in rows if row["configuration"]["device"] == device]


def assert_alike(document: Document, device: str, executions: set[str]) -> list[Document]:
    """The rows of ranks on a device, which train what all rows train, in these executions."""
    shared = of_ranks(document, device)
    assert {row["configuration"]["execution"] for row in shared} == executions
    assert len({row["workload"] for row in document["rows"]}) == 1
    for row in shared:
        verification = row["verification"]
        assert verification["steps"] == verification["steps_of"] == 4
        assert 0 < verification["parameter_error"] < verification["parameter_tolerance"]
    return shared


def test_ranks_train_what_one_process_trains(tmp_path):
    document = trained(tmp_path, "--mlp=12,32,7", "--batch=30", "--rows=100", *ONE_OR_TWO)
    assert_alike(document, "cpu", {"eager", "overlapped"})
    counted = [row for row in samples(document) if "ranks:2" in row["name"]]
    assert all(row["ranks"] == 2 and row["rank_spread"] < 1 for row in counted)
    assert all(row["seconds_communication"] > 0 for row in counted)


def test_sums_are_rows_of_their_own(tmp_path):
    rows = trained(tmp_path, "--ranks=2", *SUMS, "--cuda=off")["rows"]
    assert len(rows) == SIZES
    assert all("bit for bit" in row["verification"]["reference"] for row in rows)


def described(folder: Path, layers: list[dict[str, Any]]) -> Path:
    """The file of a network of 4 numbers, these layers, and 3 classes."""
    network = {"name": "own", "input": {"shape": [4], "type": "f32"}, "classes": 3}
    whole = [*layers, {"type": "linear", "out_features": 3}]
    network |= {"loss": "cross_entropy", "layers": whole}
    path = folder / "net.json"
    path.write_text(json.dumps(network), encoding="utf-8")
    return path


def test_batch_normalization_goes_by_shares(tmp_path):
    layers = [{"type": "linear", "out_features": 8}, {"type": "batch_norm"}]
    steps = ("--batch=8", "--family=Minibatch", "--execution=eager", *ONE_OR_TWO[:2])
    flags = (f"--network={described(tmp_path, layers)}", *steps, "--cuda=off")
    alone, shared = trained(tmp_path, *flags)["rows"]
    assert "ranks:2" in shared["name"] and "error_message" not in shared
    assert alone["workload"] != shared["workload"]  # statistics of a share are another training


def ranks_of(process: int) -> list[int]:
    """The processes that mpirun, a child of `process`, has started; Open MPI 5 calls it prterun."""
    for child in children_of(process):
        command = Path(f"/proc/{child}/cmdline").read_text()
        if "mpirun" in command or "prterun" in command:
            return children_of(child)
    return []


@pytest.mark.parametrize("place", [0, 1])
def test_a_rank_that_dies_costs_one_row(tmp_path, place):
    out = tmp_path / "result.json"
    networks = ("--model=disc-2,disc-3", "--execution=eager")
    flags = (*networks, "--ranks=2", "--threads=1", *EPOCHS)
    # Ranks that share their cores with other tests may be slow.
    repeat = ("--benchmark_repetitions=1", "--benchmark_min_time=0.5", "--patience=5m")
    with running(out, *flags, *repeat, **SPIN, **ROOT_MAY) as process:
        os.kill(ranks_of(process.pid)[place], signal.SIGKILL)
        _, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 1, errors
    rows = strict(out)["rows"]
    assert len(rows) == 2
    failed = [row["error_message"] for row in rows if "error_message" in row]
    assert len(failed) == 1 and "ended by a signal (Killed)" in failed[0], failed


def test_mpirun_may_start_bench_itself(tmp_path):
    out = tmp_path / "result.json"
    both = (str(BENCH), "--mlp=12,32,7", "--threads=1", *EPOCHS, *SHORT)
    done = launched("-n", "2", *both, f"--out={out}")
    assert done.returncode == 0, done.stderr
    assert all(row["configuration"]["ranks"] == "2" for row in strict(out)["rows"])
    told = launched("-n", "2", *both, "--ranks=1,2")
    assert "bench was started as 2 ranks" in told.stderr and told.returncode != 0


@pytest.mark.usefixtures("two_at_once")
def test_ranks_with_other_flags_are_refused():
    both = (str(BENCH), "--mlp=12,32,7", "--threads=1", *EPOCHS, *SHORT)
    other = launched("-n", "1", *both, ":", "-n", "1", *both, "--rows=50")
    assert "has other flags, than rank 0" in other.stderr and other.returncode != 0


def launched(*words: str, by: tuple[str, ...] = ("mpirun",)) -> subprocess.CompletedProcess[str]:
    variables = {**environment(), **ROOT_MAY, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return ran(*by, *words, code=None, env=variables, timeout=120)


@pytest.mark.usefixtures("two_at_once")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="ranks on other cores need two")
def test_ranks_on_other_machines_are_mixed_only_where_they_may_be(tmp_path):
    out = tmp_path / "result.json"
    rank = (str(BENCH), "--mlp=12,32,7", "--threads=1", *EPOCHS, *SHORT, f"--out={out}")
    core = str(min(os.sched_getaffinity(0)))
    free, pinned = ("-n", "1", "--bind-to", "none"), ("taskset", "-c", core)
    refused = launched(*free, *rank, ":", *free, *pinned, *rank)
    assert refused.returncode != 0
    assert "rank 1 has another processor, or other cores, than rank 0" in refused.stderr
    rank = (*rank, "--mixed")
    allowed = launched(*free, *rank, ":", *free, *pinned, *rank)
    assert allowed.returncode == 0, allowed.stderr
    assert all(
        any("--mixed" in warning for warning in row["warnings"]) for row in samples(strict(out))
    )


@pytest.mark.usefixtures("two_at_once")
def test_ranks_with_another_network_of_that_name_are_refused(tmp_path):
    words: list[str] = []
    for width, folder in ((8, tmp_path / "one"), (9, tmp_path / "other")):
        folder.mkdir()
        described(folder, [{"type": "linear", "out_features": width}, {"type": "tanh"}])
        rank = (str(BENCH), "--network=net.json", "--threads=1", *EPOCHS, *SHORT, "--out=r.json")
        words += [*([":"] if words else []), "-n", "1", "--wdir", str(folder), *rank]
    done = launched(*words)
    assert done.returncode != 0
    assert "rank 1: it has another network 'own' than rank 0" in done.stderr, done.stderr


def test_srun_may_start_bench(tmp_path):
    srun = (str(Path(__file__).with_name("slurm_here.sh")), "srun")
    tools = ("srun", "slurmd", "slurmctld", "munged", "ip")
    if os.geteuid() != 0 or not all(map(shutil.which, tools)):
        pytest.skip("a Slurm of one's own needs root, munge, slurm-wlm and ip")
    listed = launched("--mpi=list", by=srun)
    if "pmix" not in listed.stdout + listed.stderr:
        pytest.skip("Slurm does not run here, or has no PMIx")

    out = tmp_path / "result.json"
    two = (str(BENCH), "--mlp=12,32,7", "--threads=1", *EPOCHS, *SHORT, f"--out={out}")
    without = launched("-n", "2", *two, by=srun)
    assert without.returncode != 0
    assert without.stderr.count("say srun --mpi=pmix") == 1, without.stderr
    for nodes in ("1", "2"):
        done = launched("-n", "2", "--mpi=pmix", "-N", nodes, *two, by=srun)
        assert done.returncode == 0, done.stderr
        rows = strict(out)["rows"]
        assert rows and all(row["configuration"]["ranks"] == "2" for row in rows)
        assert not any("error_message" in row for row in rows)


def test_what_is_missing_is_said_in_a_sentence():
    flags = ("--ranks=2", "--mlp=2,2", *EPOCHS, *SHORT)
    alone = bench(*flags, "--in-process", variables=ROOT_MAY, code=2)
    assert "a process alone has one rank" in alone.stderr
    nowhere = bench(*flags, variables={**SPIN, **ROOT_MAY, "PATH": "/nowhere"}, code=2)
    assert "no mpirun in the PATH" in nowhere.stderr
    if os.geteuid() == 0:
        refused = bench(*flags, variables={**SPIN, **dict.fromkeys(ROOT_MAY, "")}, code=2)
        assert "refuses to run as root" in refused.stderr


# --- on GPUs: emulated ones, and a made-up NCCL


MLP_OF_GPUS = ("--mlp=12,32,7", "--batch=30", "--rows=100", "--threads=1")
# Open MPI does not free all that it takes.
MPI_LEAKS = {"ASAN_OPTIONS": "exitcode=99:malloc_context_size=2:detect_leaks=0"}
TWO = ("--ranks=2", *MLP_OF_GPUS, "--family=Epoch", *SHORT)


def emulated(folder: Path, *flags: str, gpus: int, code: int = 0, **variables: str) -> Document:
    shell = {**SPIN, **ROOT_MAY, **MPI_LEAKS, "EMULATED_GPUS": str(gpus), **variables}
    return measure(folder, *flags, code=code, program=EMULATED, **shell)


@pytest.mark.emulated
def test_ranks_train_what_one_gpu_trains(tmp_path):
    """Takes long, as two ranks emulate a GPU each."""
    flags = ("--ranks=1,2", *MLP_OF_GPUS, "--family=Epoch", "--bucket=1000", *SHORT)
    document = emulated(tmp_path, *flags, gpus=2)
    shared = assert_alike(document, "cuda", {"eager", "graph", "graph-epoch", "overlapped"})
    assert not any("GPU" in warning for row in shared for warning in row.get("warnings", []))
    alone = [row for row in document["rows"] if "ranks" not in row["configuration"]]
    assert all(row["configuration"]["execution"] != "overlapped" for row in alone)


@pytest.mark.emulated
def test_more_ranks_than_gpus_cost_their_rows_alone(tmp_path):
    document = emulated(tmp_path, *TWO, "--execution=eager", gpus=1, code=1)
    (row,) = of_ranks(document, "cuda")
    assert "there are more ranks than GPUs" in row["error_message"]
    assert "start as many ranks as there are GPUs" in row["error_message"]
    measured = [row for row in document["rows"] if "error_message" not in row]
    assert [row["configuration"]["device"] for row in measured] == ["cpu"]


@pytest.mark.emulated
def test_ranks_that_share_a_gpu_say_so(tmp_path):
    shared = {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
    (row,) = of_ranks(emulated(tmp_path, *TWO, "--execution=overlapped", gpus=1, **shared), "cuda")
    assert "error_message" not in row
    assert any("NCCL_MULTI_RANK_GPU_ENABLE=1" in warning for warning in row["warnings"])
