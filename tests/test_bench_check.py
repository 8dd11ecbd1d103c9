# SPDX-License-Identifier: Apache-2.0
"""`bench --check`: what it tells of this machine and of an emulated GPU, whatever happens to it."""

import json
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from bench_runs import (
    BENCH,
    EMULATED,
    LIMIT_SECONDS,
    Document,
    assert_refused,
    bench,
    children_of,
    listed,
    running,
    strict,
    until,
)

from tools.stages import weekly

ON_CPU = ("--check", "--cuda=off")
VERDICTS = {"ok", "refused", "wrong", "failed", "crashed", "hung", "not reached"}


def checked(
    folder: Path, *arguments: str, program: Path = BENCH, **variables: str
) -> tuple[Document, str]:
    """What it wrote, and what it printed: the same."""
    path = folder / "machine.check"
    command = ("--check", *arguments, f"--out={path}")
    done = bench(*command, program=program, variables=variables, code=0)
    document = strict(path)
    assert document["crossover_check"] == 1
    assert done.stdout.endswith("\n" + document["summary"] + "\n")
    for check in document["checks"]:
        assert check["verdict"] in VERDICTS
        shown = [check[key] for key in ("device", "what", "precision", "how")]
        assert check["name"] == " ".join(filter(None, shown))
        if check["verdict"] != "not reached":
            reason = f" ({check['reason']})" if check["reason"] else ""
            pattern = " +".join(map(re.escape, filter(None, shown)))
            line = re.escape(check["verdict"] + reason)
            assert re.search(f"^{pattern} +{line}$", done.stdout, re.MULTILINE), check
    names = [check["name"] for check in document["checks"]]
    assert len(set(names)) == len(names)
    return document, done.stdout


def verdicts(document: Document, device: str = "") -> Counter[str]:
    checks = document["checks"]
    return Counter(check["verdict"] for check in checks if device in ("", check["device"]))


def ways_of(document: Document, what: str, device: str) -> set[tuple[str, str]]:
    checks = [check for check in document["checks"] if check["device"] == device]
    return {(check["precision"], check["how"]) for check in checks if check["what"] == what}


@pytest.mark.slow
def test_all_that_the_cpu_does_is_checked(tmp_path):
    """Takes long: all of it, with a reference."""
    document, printed = checked(tmp_path, "--cuda=off", "--budget=10m")
    assert set(verdicts(document)) <= {"ok", "refused"}
    refused = {check["what"] for check in document["checks"] if check["verdict"] == "refused"}
    assert refused <= {"products"}
    whats = {check["what"] for check in document["checks"]}
    assert whats >= {"Linear", "LstmGrad", "copy h2h", "fork-join probe"}
    assert whats >= {"tiny-mlp", "tiny-adamw", "tiny-cnn", "tiny-resnet", "tiny-lstm", "tiny-gpt"}
    assert whats >= {"tiny-vit", "tiny-gru", "tiny-unet"}
    ways = ways_of(document, "tiny-mlp", "cpu")
    assert {how.partition(",")[0] for _, how in ways} == {"eager", "fused", "auto"}
    assert printed.startswith("bench ")
    assert "\ngpu    none (--cuda=off)\n" in printed


def test_the_time_of_a_check_can_be_given(tmp_path):
    document, printed = checked(tmp_path, "--cuda=off", "--budget=1s")
    open_ = verdicts(document)["not reached"]
    assert open_ > 0
    assert f"{open_} not reached in " in printed


def test_a_filter_selects_checks_by_name(tmp_path):
    asked = ("--cuda=off", "--benchmark_filter=probe")
    document, _ = checked(tmp_path, *asked)
    names = [check["name"] for check in document["checks"]]
    assert len(names) > 2 and all("probe" in name for name in names)
    assert listed("--check", *asked) == names
    assert_refused(bench(*ON_CPU, "--benchmark_filter=none"), "matches no row")
    done = bench(*ON_CPU, f"--out={tmp_path}/none/x.check", code=2)
    assert "can't be written" in done.stderr


@pytest.mark.slow
def test_a_check_that_hangs_or_crashes_costs_itself_alone(tmp_path):
    """Takes long, as what hangs is waited for."""
    path = tmp_path / "machine.check"

    def hurt(signum: signal.Signals, after: str) -> None:
        """The child that has answered since this verdict came."""
        until(lambda: verdicts(strict(path))[after], process)
        known = verdicts(strict(path))["ok"]
        until(lambda: verdicts(strict(path))["ok"] > known, process)
        os.kill(until(lambda: children_of(process.pid), process)[0], signum)

    with running(path, *ON_CPU, "--budget=48s", part="checks") as process:
        hurt(signal.SIGSTOP, "refused")
        hurt(signal.SIGABRT, "hung")
        assert process.wait(LIMIT_SECONDS) == 0
    document = strict(path)
    assert verdicts(document)["hung"] > 0  # more than one where others have the processor
    assert verdicts(document)["crashed"] == 1
    for check in document["checks"]:
        if check["verdict"] == "hung":
            assert "did not answer within 4 s" in check["reason"]
        elif check["verdict"] == "crashed":
            assert "was ended by a signal (Aborted)" in check["reason"]
        else:
            assert check["verdict"] in ("ok", "refused", "not reached")


@pytest.mark.emulated
def test_what_a_gpu_does_is_checked(tmp_path):
    """All of it, which takes minutes on the emulation, with ./test --all."""
    some = "--benchmark_filter=^cuda (.*probe|copy|NVML|cuDNN's|Linear f32|tiny-mlp (f32|bf16))"
    asked = ("--budget=60m", *([] if weekly() else [some]))
    drivers = {"LD_LIBRARY_PATH": str(EMULATED.parent / "fake_nvml")}
    document, _ = checked(tmp_path, *asked, program=EMULATED, **drivers)
    assert set(verdicts(document)) <= ({"ok", "refused"} if weekly() else {"ok"})
    whats = {check["what"] for check in document["checks"] if check["device"] == "cuda"}
    assert whats >= {"NVML", "copy h2d", "copy d2d", "launch probe", "graph probe", "Linear"}
    ways = ways_of(document, "tiny-mlp", "cuda")
    executions = ("eager", "graph", "graph-epoch", "auto")
    assert ways >= {(p, e) for p in ("f32", "bf16") for e in executions}
    assert ("f32", "persistent") in ways
    if weekly():
        assert whats >= {"cuBLASLt epilogues", "cuDNN plans", "tiny-cnn", "tiny-resnet"}
        assert whats >= {"tiny-lstm", "tiny-gpt", "tiny-vit"}
        assert ways >= {(p, e) for p in ("tf32", "f16") for e in executions}
        assert ("f32", "graph, autotuned") in ways
        assert {how for _, how in ways_of(document, "Convolution", "cuda")} == {"eager", "graph"}


FAULTS = {
    "cuda triad probe": ("illegal", "crashed", "illegal"),
    "cuda Activate f32 eager": ("endless kernel", "hung", "while checking Activate of tiny-"),
    "cuda ActivateGrad f32 eager": ("abort", "crashed", "signal (Aborted)"),
    "cuda AdamW f32 eager": ("segmentation", "crashed", "signal (Segmentation fault)"),
}


@pytest.mark.emulated
def test_what_a_gpu_does_wrong_costs_one_check_each(tmp_path):
    """Takes long, as what hangs is waited for."""
    faults = tmp_path / "faults.json"
    faults.write_text(json.dumps({name: [fault] for name, (fault, *_) in FAULTS.items()}))
    # What the sanitizer would make of a signal is not what a user's program does.
    signals = "exitcode=99:handle_segv=0:handle_abort=0"
    variables = {"EMULATED_FAULTS": str(faults), "ASAN_OPTIONS": signals}
    few = "--benchmark_filter=^(cuda ((launch|fma|triad|graph) probe|A.* f32 eager)|cpu copy)"
    document, printed = checked(tmp_path, "--budget=120s", few, program=EMULATED, **variables)
    checks = {check["name"]: check for check in document["checks"]}
    for name, (_, verdict, reason) in FAULTS.items():
        assert checks[name]["verdict"] == verdict
        assert reason in checks[name]["reason"]
        assert name.split()[1] in printed.rpartition("\nFailed:\n")[2]
    others = [check for name, check in checks.items() if name not in FAULTS]
    assert {check["verdict"] for check in others} <= {"ok", "refused", "hung", "not reached"}


@pytest.mark.emulated
def test_a_gpu_that_is_gone_leaves_the_cpu(tmp_path):
    faults = tmp_path / "faults.json"
    faults.write_text('{"cuda copy h2d pinned": ["gone"]}')
    few = ("--budget=120s", "--benchmark_filter=^(cuda|cpu copy)")
    document, _ = checked(tmp_path, *few, program=EMULATED, EMULATED_FAULTS=str(faults))
    assert verdicts(document, "cuda")["crashed"] == 1
    assert verdicts(document, "cuda")["not reached"] > 100
    assert set(verdicts(document, "cuda")) <= {"ok", "refused", "crashed", "not reached"}
    assert verdicts(document, "cpu")["ok"] > 0
