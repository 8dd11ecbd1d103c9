# SPDX-License-Identifier: Apache-2.0
"""Two builds of bench that were measured in turn, in one file."""

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

from crossover_bench.answers.check_statistics.__main__ import main, questions
from crossover_bench.files import loading
from crossover_bench.files.builds import SAME, other_builds
from crossover_bench.files.loading import refinement_of
from crossover_bench.place import ROOT
from crossover_bench.run import run
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_answers import FIRST, pairs

MODELS = tuple(f"disc-{depth}" for depth in range(2, 13))
EQUAL = (1.0,) * len(MODELS)


@pytest.fixture
def two_builds(write):
    """A file with the disc networks on one thread, of this build and of `name`; the latter's times
    are `factors` of this one's, one for each network."""

    def written(name=SAME, factors=EQUAL, noise=0.02):
        random = np.random.default_rng(1)
        entries = []
        for model, factor in zip(MODELS, factors, strict=True):
            this = synthetic.cpu_configuration(model, 1)
            other = {**this, "program": f"bench-{name}"}
            for configuration, by in ((this, 1.0), (other, factor)):
                times = 1e-3 * by * np.exp(noise * random.standard_normal(9))
                entries += synthetic.samples(configuration, times.tolist())
        return write(synthetic.document(entries))

    return written


def test_other_builds_are_files_of_their_own(two_builds):
    file = loading.load_file(two_builds("abc1234"))
    (name, other) = next(iter(other_builds(file).items()))
    assert name == other.software.commit == "abc1234"
    assert [row.name for row in other.rows] == [row.name for row in file.rows]
    assert not file.peers
    assert not any(row.program != "bench" for row in (*file.rows, *other.rows))
    # What lies between instances counts in both.
    spreads = {row.instances.spread for row in (*file.rows, *file.builds)}
    assert spreads == {file.spreads["Epoch", "cpu"].deviation}


@pytest.mark.parametrize(
    "worse, flags",
    [("slower", []), ("dearer", ["--of=cost", "--price=cpu=0.10/h"])],
)
def test_one_file_is_compared_with_the_other_build_in_it(two_builds, shell, worse, flags):
    path = two_builds("abc1234", factors=[*(1.0,) * 10, 0.5])
    printed = shell("compare", path, "--fail-on-slower=20%", *flags, code=1)
    assert "abc1234 in" in printed.out
    assert f"1 row is {worse} by more than 20 %" in printed.err


@pytest.mark.parametrize(("factor", "code"), [(0.5, 1), (1.0, 0)])
def test_the_guide_to_continuous_integration_runs(two_builds, shell, factor, code):
    guide = (ROOT / "docs" / "howto" / "ci.md").read_text(encoding="utf-8")
    commands = [shlex.split(line) for line in re.findall(r"- run: (.*)", guide)]
    measured, compared = (words for words in commands)
    here = [word.replace("origin/main", "HEAD") for word in measured[1:]]
    assert run.parse(here).bench == ["--budget=10m", "--out=speed.json"]
    path = two_builds("abc1234", factors=[*(1.0,) * 10, factor])
    words = [path if word == "speed.json" else word for word in compared]
    assert words[0] == ".venv/bin/crossover"
    shell(*words[1:], code=code)


def with_pairs(path, sizes):
    """`path`, whose file has pairs of both builds at these `sizes`."""
    document = json.loads(path.read_text("utf-8"))
    second = {**FIRST, "program": "bench-abc1234"}
    document["context"]["crossover"]["refinements"] = [
        pairs(kind="program", second=second, sizes=sizes)
    ]
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_pairs_say_which_networks_are_slower(two_builds, shell):
    size = pairs()["sizes"][0]
    sizes = [
        {**size, "model": "disc-7", "won_by_first": 1, "pairs": 20, "winner": "second"},
        {**size, "model": "disc-8", "params": 44710, "won_by_first": 12, "winner": None},
    ]
    path = with_pairs(two_builds("abc1234", factors=[0.95] * len(MODELS), noise=0.05), sizes)
    printed = shell("compare", path, "--fail-on-slower=3%", code=1)
    title, table, *_ = printed.out.split("\n\n")
    assert title.startswith("Networks measured in pairs")
    assert re.search(r"disc-8 +44,710 +open +12 +14", table)
    assert re.search(r"disc-7 +25,504 +\*slower +1 +20 +1\.[01]", table)
    assert "1 row is slower by more than 3 %, most of all Epoch/model:disc-7/" in printed.err


def test_a_row_that_is_slower_in_pairs_as_well_counts_once(two_builds, shell):
    size = {**pairs()["sizes"][0], "model": MODELS[0], "winner": "second"}
    slow = two_builds("abc1234", factors=[0.8, *(1.0,) * 10], noise=0.003)
    path = with_pairs(slow, [size])
    for fraction in ("3%", "5%"):
        printed = shell("compare", path, f"--fail-on-slower={fraction}", code=1)
        assert "1 row is slower by" in printed.err


def test_one_program_measured_twice_is_seldom_called_different(two_builds, capsys):
    path = two_builds()
    file = loading.load_file(path)
    asked = {question: differ for question, differ, _ in questions(file, other_builds(file)[SAME])}
    assert asked["compare: rows called faster or slower"] == [False] * len(MODELS)
    assert asked["crossover: curves with a winner at any size"]
    assert len(asked["peers: ratios whose 95 % interval excludes 1"]) == len(MODELS)
    assert main([str(path)]) == 0
    assert "nominal" in capsys.readouterr().out
    committed = next((ROOT / "results" / "amd-epyc-25-17-2c").glob("*.json"))
    assert main([str(committed)]) == 2
    assert capsys.readouterr().err.endswith("; ./run --check-statistics measures one\n")
    # Sizes that two programs were measured at in pairs are counted; those of threads are not.
    refinements = tuple(refinement_of(pairs(kind=kind)) for kind in ("program", "threads"))
    counted = questions(replace(file, refinements=refinements), other_builds(file)[SAME])
    assert [differ for question, differ, _ in counted if "refine" in question] == [[True]]


def test_a_difference_that_is_there_is_counted(two_builds):
    file = loading.load_file(two_builds(factors=(1.5,) * len(MODELS)))
    assert all(all(differ) for _, differ, _ in questions(file, other_builds(file)[SAME]))
