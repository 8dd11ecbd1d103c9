# SPDX-License-Identifier: Apache-2.0
"""What measures PyTorch's GPU, on one that is none of NVIDIA's: a stand-in that computes behind a
queue, and sleeps before each kernel. Who does not wait for it finds too short a time."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from crossover_bench.tests import stand_in

pytestmark = pytest.mark.slow  # 15 s of a compiler, and as much of sleep
_SLEEP = 4e-3  # as whole_way.py has it


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What whole_way.py found."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("no C++ compiler is here, which makes the stand-in")
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed here")
    library = stand_in.compiled(compiler, tmp_path_factory.mktemp("stand-in"))
    command = [sys.executable, "-m", "crossover_bench.tests.stand_in.whole_way", library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_loop_in_hand_waits_and_names_the_device(told):
    asked = told["ask"]
    assert asked["problem"] == "" and asked["is_finite"]
    # The update may still run when the loss is read, and each step begins with one behind it.
    assert asked["seconds"] >= _SLEEP * asked["before_the_loss"]
    assert f"on the {stand_in.NAME}" in asked["text"] and "CUDA" not in asked["text"]


@pytest.mark.parametrize("script", ["lean", "usual"])
def test_rows_of_the_worker_are_verified_wait_and_name_the_device(told, script):
    worker = told["worker"]
    assert worker["gpu"] == stand_in.NAME and stand_in.KIND in worker["axis"]["values"]
    row = worker[script]
    assert 0 < row["verification"]["relative_error"] <= row["verification"]["tolerance"]
    assert row["kernels"] > 100 and row["seconds"] >= _SLEEP * row["kernels"]
    # Who does not wait returns before the work is done.
    assert row["pending"] == 0 < told["worker"]["pending without a wait"]


def test_a_module_as_it_is_finds_the_device_by_itself(told):
    module = told["module"]
    assert module["row"]["torch_device"] == stand_in.KIND
    assert module["seconds"] >= _SLEEP * module["kernels"]
    assert module["verification"]["steps"] == module["verification"]["steps_of"]


def test_two_functions_take_it_as_a_side(told):
    assert "cpu and gpu: with the data there the CPU wins at every size" in told["two"]["text"]
    assert told["two"]["gpu"] == stand_in.NAME
