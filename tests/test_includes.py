# SPDX-License-Identifier: Apache-2.0
"""Folders include one way: a reader of one need not know those behind it."""

import os
import re
from pathlib import Path

import pytest
from scripts import ROOT, ran

from crossover_bench.run.environment import VENV
from tools.stages import weekly

# Each may include itself and those before it.
HARNESS = ("base", "axes", "rows", "file", "worker", "run")
ORDERS = {
    "bench": (*HARNESS, "two", "command_line", "families", "process", "check"),
    "src": (
        *("data", "machine", "models", "reference", "operations", "layers", "step"),
        *("automatic", "probe", "cpu", "cuda", "copies", "loader", "ranks"),
    ),
    "src/cpu": ("base", "plan", "run", "winograd", "fused", "operations", "backend"),
    "src/cuda": ("plan", "base", "libraries", "kernels", "probes", "run"),
}
SOURCES = (".h", ".cpp", ".cu", ".cuh")


def included(path: Path, tree: Path) -> set[str]:
    """The folders of `tree` that `path` includes."""
    folders = set()
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
        for base in (path.parent, tree):
            place = Path(os.path.normpath(base / name))
            if place.is_file() and place.is_relative_to(tree):
                folders.add(place.relative_to(tree).parts[0])
    return folders


@pytest.mark.parametrize("name", ORDERS)
def test_folders_include_one_way(name):
    tree, order = ROOT / name, ORDERS[name]
    assert {path.name for path in tree.iterdir() if path.is_dir()} == set(order)
    for place, folder in enumerate(order):
        sources = [path for path in (tree / folder).rglob("*") if path.suffix in SOURCES]
        assert sources, folder
        for path in sources:
            against = included(path, tree) - set(order[: place + 1])
            assert not against, f"{path.relative_to(ROOT)} includes {', '.join(sorted(against))}"


# What the harness reads of the library: no network, and nothing that computes.
VALUES = {
    *("activation", "backend", "backends", "executions", "fingerprint", "ladder", "machine"),
    *("names", "probe", "regular_expression", "tensor", "verify"),
}


def test_the_harness_knows_no_network():
    for folder in HARNESS:
        for path in (ROOT / "bench" / folder).rglob("*"):
            if path.suffix in SOURCES:
                text = path.read_text(encoding="utf-8")
                others = set(re.findall(r'^#include "crossover/(.*)\.h"', text, re.M)) - VALUES
                assert not others, (path, others)


def test_what_plans_a_gpu_needs_no_cuda():
    for path in (ROOT / "src" / "cuda" / "plan").rglob("*"):
        if path.suffix in SOURCES:
            system = re.findall(r"^#include <(cu|nv)", path.read_text(encoding="utf-8"), re.M)
            assert not system, path


@pytest.mark.slow
@pytest.mark.skipif(not weekly(), reason="a minute of compiling: ./test --all")
@pytest.mark.parametrize("folder", ["include/crossover", "src/cpu/plan", "src/cuda/plan"])
def test_a_header_compiles_by_itself(folder):
    """Of what others build on. The last also shows that it needs no header of CUDA's; what asks for
    one by its name is compiled with the examples, where there is a toolkit."""
    left_out = ("-inl", "_cuda")
    headers = [path for path in (ROOT / folder).rglob("*.h") if not path.stem.endswith(left_out)]
    command = ["c++", "-std=c++20", "-fsyntax-only", "-w", "-x", "c++", "-I", "include"]
    libraries = ["-isystem", str(VENV / "include")]  # oneDNN's
    done = ran(*command, *libraries, *sorted(headers), code=None, cwd=ROOT)
    assert len(headers) > 1 and done.returncode == 0, done.stderr
