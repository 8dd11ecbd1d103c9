# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu_sweep decides by itself: arguments, stages, limits, the table, the pack."""

import fcntl
import hashlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import ROOT

from tools import console, gpu, pack
from tools.table import table, times


def test_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OUT", raising=False)
    parsed = gpu.parse([])
    assert (parsed.brought, parsed.out) == (tmp_path / "brought", tmp_path / "gpu-results")
    monkeypatch.setenv("OUT", "/elsewhere")
    assert gpu.parse([]).out == Path("/elsewhere")
    parsed = gpu.parse(["--out=o", "--brought=/b", "--minutes=2.5"])
    assert (parsed.brought, parsed.out) == (Path("/b"), tmp_path / "o")
    assert parsed.minutes == 2.5
    assert gpu.parse(["--sweep=quick"]).sweep == "quick"
    assert gpu.parse([]).sweep == "gpu"
    assert not gpu.parse(["--no-tests"]).tests
    assert gpu.parse(["--plan", "--cores=16"]).cores == 16
    assert gpu.parse(["--pack", "p"]).pack == gpu.parse(["--pack=p"]).pack == tmp_path / "p"


@pytest.mark.parametrize(
    "word", ["--pack", "--out=", "--minutes=x", "--minutes=nan", "brought", "--cores=0"]
)
def test_bad_arguments_are_usage_errors(word: str) -> None:
    with pytest.raises(console.Failure) as caught:
        gpu.parse([word])
    assert caught.value.code == 2


@pytest.mark.parametrize(("needed", "code"), [(540.0, 0), (547.4, 1)])
def test_a_plan_that_is_too_long_says_how_long_it_takes(
    needed: float,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    built = tmp_path / "bench"
    built.touch()
    monkeypatch.setattr(gpu, "BENCH", built)
    monkeypatch.setattr(gpu, "planned", lambda *_: [f"together {needed} s of 540 s"])
    assert gpu.plan(gpu.parse([])) == code
    said = capsys.readouterr().err
    assert ("7 s too long" in said and "--minutes=10 " in said) == bool(code)


@pytest.mark.parametrize(
    ("text", "seconds", "verdict"),
    [
        ("print('out')", 600, "passed"),
        ("print('out'); raise SystemExit(3)", 600, "failed (exit code 3)"),
        ("print('out')", 0, "no time left"),
    ],
)
def test_a_stage_ends_and_its_output_is_in_the_log(
    text: str, seconds: float, verdict: str, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    with path.open("w", encoding="utf-8") as log:
        said = gpu.run_limited([sys.executable, "-c", text], log, seconds)
    assert said[0] == verdict
    assert ("out" in said[1].splitlines()) == (seconds > 0)
    assert path.read_text(encoding="utf-8").endswith(said[1])


@pytest.mark.slow
def test_a_stage_that_hangs_is_ended_even_if_it_will_not(tmp_path: Path) -> None:
    text = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
    with (tmp_path / "log").open("w", encoding="utf-8") as log:
        verdict, _ = gpu.run_limited([sys.executable, "-c", text], log, 1)
    assert verdict == "out of time after 1 s"


def test_a_stage_leaves_nothing_running(tmp_path: Path) -> None:
    lock, outlived = tmp_path / "lock", tmp_path / "outlived"
    child = f"import time; time.sleep(20); open({str(outlived)!r}, 'w')"
    text = (
        f"import fcntl, subprocess, sys; file = open({str(lock)!r}, 'w'); fcntl.flock(file, 2); "
        f"subprocess.Popen([sys.executable, '-c', {child!r}], pass_fds=[file.fileno()])"
    )
    with (tmp_path / "log").open("w", encoding="utf-8") as log:
        assert gpu.run_limited([sys.executable, "-c", text], log, 600)[0] == "passed"
    with lock.open(encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # held by the child for as long as it lives
    assert not outlived.exists()


def test_memcheck_names_tests_that_exist() -> None:
    suite = gpu._MEMCHECK_FILTER.removesuffix("*").replace("/", ", ")
    sources = Path(__file__).parent.glob("*.cpp")
    assert any(
        f"INSTANTIATE_TEST_SUITE_P({suite}," in path.read_text(encoding="utf-8") for path in sources
    )


def test_a_command_that_is_not_there_is_a_verdict(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as log:
        verdict, _ = gpu.run_limited([tmp_path / "absent"], log, 60)
    assert verdict == "cannot start: No such file or directory"


def helping(folder: Path, text: str) -> Path:
    path = folder / "bench"
    path.write_text(f"#!{sys.executable}\nprint({text!r})\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"gpu": {"name": "NVIDIA H100"}, "gpu_reason": ""}', (True, "NVIDIA H100")),
        ('{"gpu": null, "gpu_reason": "none (no driver)"}', (False, "none (no driver)")),
        ("Segmentation fault", (False, "bench --machine does not tell")),
    ],
)
def test_bench_tells_of_the_gpu(text: str, answer: tuple[bool, str], tmp_path: Path) -> None:
    assert gpu.gpu_of(helping(tmp_path, text)) == answer


def result_file(path: Path, rows: dict[str, list[float]]) -> Path:
    entries = [
        {"name": name, "run_type": "iteration", "real_time": value, "time_unit": "ms"}
        for name, values in rows.items()
        for value in values
    ]
    entries.append(entries[0] | {"run_type": "aggregate", "real_time": 1e-9})
    path.write_text(json.dumps({"rows": [], "benchmarks": entries}), encoding="utf-8")
    return path


def test_the_best_median_of_each_device_counts(tmp_path: Path) -> None:
    rows = {
        "E/a/device:cpu/cpu_threads:1": [9.0, 1.0, 8.0],
        "E/a/device:cpu/cpu_threads:2": [4.0, 5.0, 6.0],
        "E/a/device:gpu/execution:graph": [2.5],
        "E/b/device:cpu": [7.0],
    }
    path = result_file(tmp_path / "gpu.json", rows)
    assert times(path) == {
        "E/a": {"cpu": pytest.approx(5e-3), "gpu": pytest.approx(2.5e-3)},
        "E/b": {"cpu": pytest.approx(7e-3)},
    }
    lines = table(path)
    assert lines[0].split() == ["E", "CPU", "GPU", "CPU/GPU"]
    assert lines[1].split() == ["E/a", "5", "ms", "2.5", "ms", "2.00"]
    assert lines[2].split() == ["E/b", "7", "ms", "-", "-"]


def test_the_table_stays_short_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    names = ("Peak", "Copy", "Gemm", "Layer", "Epoch")
    rows = {f"{name}/n:{i}/device:cpu": [1.0] for name in names for i in range(50)}
    lines = table(result_file(tmp_path / "gpu.json", rows))
    assert len(lines) < 40
    assert "Peak (45 of 50 rows left out)" in lines[0]
    assert any("Epoch/n:49" in line for line in lines)


def test_an_unreadable_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    assert times(tmp_path / "x.json") == {}
    assert table(tmp_path / "x.json") == table(None) == ["no results"]


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


def test_the_headers_of_cudnn_are_packed_or_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    include = tmp_path / "venv/lib/python3.11/site-packages/include"
    (include / "cudnn_frontend").mkdir(parents=True)
    for name in ("cudnn_frontend.h", "cudnn_frontend/plans.h", "another.h"):
        (include / name).touch()
    monkeypatch.setattr(pack, "VENV", tmp_path / "venv")
    pack._cudnn_frontend(tmp_path / "to")
    packed = [path for path in (tmp_path / "to").rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path / "to/include")) for path in packed) == [
        "cudnn_frontend.h",
        "cudnn_frontend/plans.h",
    ]
    monkeypatch.setattr(pack, "VENV", tmp_path / "none")
    monkeypatch.setattr(pack, "PYTHON", tmp_path / "none")  # and so no pip
    pack._cudnn_frontend(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    assert "without nvidia-cudnn-frontend==" in capsys.readouterr().err


def test_packing_never_writes_into_a_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(console.Failure, match="is not empty") as caught:
        pack.collect(tmp_path)
    assert caught.value.code == 2


def test_an_earlier_pack_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for collected in ("_debian", "_onednn", "_cudnn_frontend"):
        monkeypatch.setattr(pack, collected, lambda _: None)
    folder = tmp_path / "brought"
    assert pack.collect(folder) == 0
    (folder / "libold.so").touch()
    assert pack.collect(folder) == 0
    assert [path.name for path in folder.iterdir()] == [pack.COMMIT]
    monkeypatch.setattr(pack, "MOST_BYTES", 1000)  # less than the sources
    with pytest.raises(console.Failure, match="more than the limit of 1000"):
        pack.collect(folder)


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


def test_the_packed_commit_is_that_of_git(tmp_path: Path) -> None:
    pack._commit(tmp_path)
    lines = (tmp_path / pack.COMMIT).read_text("utf-8").splitlines()
    ask = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    head = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    assert lines[0] == f"commit {head}"
    assert any(line.endswith("  bench/main.cpp") for line in lines)
    assert not any("  results/" in line for line in lines)


class Log(io.StringIO):
    name = ""


def swept(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    found: tuple[bool, str] = (True, "NVIDIA H200"),
    **verdicts: str,
) -> tuple[int, str]:
    """A sweep whose commands give these verdicts by the stage's name, else "passed"."""
    said = Log()

    def stage(
        self: gpu.Sweep,
        stage: gpu.Stage,
        command: object,
        note: object = None,
        required: bool = True,
    ) -> bool:
        self.allot(stage)
        verdict = verdicts.get(stage.name.replace(" ", "_"), "passed")
        self.say(f"{stage.name}: {verdict}: {' '.join(map(str, command))}")  # type: ignore[call-overload]
        self.bad |= required and verdict != "passed"
        return verdict == "passed"

    monkeypatch.setattr(gpu.Sweep, "stage", stage)
    monkeypatch.setattr(gpu.Sweep, "note", lambda *_: None)
    monkeypatch.setattr(gpu, "gpu_of", lambda _: found)
    monkeypatch.setattr(gpu, "compute_sanitizer", lambda: "/bin/compute-sanitizer")
    code = gpu.sweep_all(gpu.parse([f"--brought={tmp_path / 'b'}", f"--out={tmp_path}"]), said)
    return code, said.getvalue()


def test_gpu_tests_come_first_and_one_process_measures_into_one_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, said = swept(monkeypatch, tmp_path)
    assert code == 0
    order = ["configure", "build bench", "build tests", "GPU tests", "measure", "memcheck"]
    assert [line.partition(":")[0] for line in said.splitlines() if ": passed: " in line] == order
    assert said.count(f"--out={tmp_path / 'gpu.json'} --sweep=gpu") == 1


def test_memcheck_looks_at_own_kernels_and_may_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, said = swept(monkeypatch, tmp_path, memcheck="failed (exit code 255)")
    assert code == 0
    (line,) = (line for line in said.splitlines() if line.startswith("memcheck"))
    assert "--kernel-regex kns=crossover" in line
    assert gpu._MEMCHECK_FILTER in line


def test_failed_tests_fail_the_sweep_and_do_not_stop_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, said = swept(monkeypatch, tmp_path, GPU_tests="failed (exit code 8)")
    assert code == 1
    assert "measure: passed" in said


def test_a_gpu_that_bench_does_not_have_is_not_paid_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu, "driver_lists_a_gpu", lambda: True)
    code, said = swept(monkeypatch, tmp_path, found=(False, "none (built without CUDA)"))
    assert code == 1
    assert "nvidia-smi lists a GPU, but bench finds none" in said
    assert "measure: " not in said


def test_a_stage_that_talks_too_much_is_cut_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "_MOST_LOGGED", 1000)
    path = tmp_path / "log"
    with path.open("w", encoding="utf-8") as log:
        text = "print('first'); print('x' * 5000); print('last')"
        verdict, output = gpu.run_limited([sys.executable, "-c", text], log, 60)
        log.write("after\n")
    assert verdict == "passed"
    assert output.startswith("first\n")
    assert output.endswith("x\nlast\n")
    kept = path.read_text(encoding="utf-8")
    assert "characters left out]" in kept
    assert kept.endswith("last\nafter\n")
    assert len(kept) < 1200
