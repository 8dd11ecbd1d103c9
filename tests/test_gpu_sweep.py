# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu_sweep decides by itself: arguments, limits, families, the table."""

import fcntl
import json
import sys
from pathlib import Path

import pytest

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
    assert gpu.parse(["--pack", "p"]).pack == gpu.parse(["--pack=p"]).pack == tmp_path / "p"


@pytest.mark.parametrize("word", ["--pack", "--out=", "--minutes=x", "--minutes=nan", "brought"])
def test_bad_arguments_are_usage_errors(word: str) -> None:
    with pytest.raises(console.Failure) as caught:
        gpu.parse([word])
    assert caught.value.code == 2


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


def test_families_are_those_that_bench_names(tmp_path: Path) -> None:
    old = "  --sweep=NAME   a sweep\n  --model=NAME   as in rows of Epoch, or Copy\n"
    assert gpu.families(helping(tmp_path, old)) == []
    new = "  --family=LIST  Epoch,Gemm or\n                 Peak\n  --copy=N  not of Layer\n"
    assert gpu.families(helping(tmp_path, new)) == ["Peak", "Gemm", "Epoch"]


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
        {"run_name": name, "run_type": "iteration", "real_time": value, "time_unit": "ms"}
        for name, values in rows.items()
        for value in values
    ]
    entries.append(entries[0] | {"run_type": "aggregate", "real_time": 1e-9})
    entries.append({"run_name": "E/bad/device:gpu", "run_type": "iteration", "skipped": True})
    path.write_text(json.dumps({"benchmarks": entries}), encoding="utf-8")
    return path


def test_the_best_median_of_each_device_counts(tmp_path: Path) -> None:
    rows = {
        "E/a/device:cpu/cpu_threads:1": [9.0, 1.0, 8.0],
        "E/a/device:cpu/cpu_threads:2": [4.0, 5.0, 6.0],
        "E/a/device:gpu/execution:graph": [2.5],
        "E/b/device:cpu": [7.0],
    }
    path = result_file(tmp_path / "Epoch.json", rows)
    assert times(path) == {
        "E/a": {"cpu": pytest.approx(5e-3), "gpu": pytest.approx(2.5e-3)},
        "E/b": {"cpu": pytest.approx(7e-3)},
    }
    lines = table([path])
    assert lines[1].split() == ["E/a", "5", "ms", "2.5", "ms", "2.00"]
    assert lines[2].split() == ["E/b", "7", "ms", "-", "-"]


def test_the_table_stays_short_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    paths = [
        result_file(
            tmp_path / f"{name}.json", {f"{name}/n:{i}/device:cpu": [1.0] for i in range(50)}
        )
        for name in ("Peak", "Copy", "Gemm", "Layer", "Epoch")
    ]
    lines = table(paths)
    assert len(lines) < 40
    assert "Peak (45 of 50 rows left out)" in lines[0]
    assert any("Epoch/n:49" in line for line in lines)


def test_an_unreadable_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    assert times(tmp_path / "x.json") == {}
    assert table([]) == ["no results"]


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


def test_packing_never_writes_into_a_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(console.Failure, match="is not empty") as caught:
        pack.collect(tmp_path)
    assert caught.value.code == 2
