# SPDX-License-Identifier: Apache-2.0
"""crossover_bench.two(): what is compared, what is waited for, what is refused, and the answer.

A made-up CuPy stands for a device: its calls return at once and its arrays are done later."""

import itertools
import json
import math
import re
import shutil
import subprocess
import sys
import time
from collections import namedtuple
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from crossover_bench import spawned
from crossover_bench.answers.two.answered import answered
from crossover_bench.answers.two.problems import problems_of
from crossover_bench.answers.two.sides import Wanted
from crossover_bench.curves.problem_words import lead_of_both, sentences
from crossover_bench.files.google_benchmark import timings_of
from crossover_bench.functions import isolated, kinds, measure
from crossover_bench.functions.equal import difference
from crossover_bench.functions.progress import teller
from crossover_bench.functions.side import Side
from crossover_bench.functions.tests import fake_device
from crossover_bench.functions.tests.fake_device import WORK
from crossover_bench.functions.timing import Sample
from crossover_bench.functions.two import two
from crossover_bench.place import PACKAGE
from crossover_bench.shell.cli import main


@pytest.fixture
def cupy(monkeypatch):
    module = fake_device.cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def make(n):
    return np.random.default_rng(1).random(n)


def ask(make=make, n=(64, 256), **asked):
    asked = {"seconds": 10.0, "progress": False, "n": [*n], **asked}
    return two(make=make, **asked)


def refused(**asked):
    with pytest.raises(ValueError) as told:
        ask(**asked)
    (sentence,) = str(told.value).splitlines()
    return sentence


# ---- what is measured


def test_a_device_is_waited_for(cupy):
    """All of its work is in the time, though its calls return at once."""
    answer = ask(cpu=np.sort, gpu=cupy.sort)
    rows = [row for row in answer.rows if row.side == "gpu"]
    assert all(row.seconds >= WORK for row in rows)
    assert all(row.brought_seconds > 0 and row.fetched_seconds > 0 for row in rows)
    assert answer.verdict.startswith("CPU at every size measured")
    first, *_ = answer.sentences
    assert first.startswith("sort: with the data there the CPU wins at every size measured")
    assert "; copied each time the CPU wins" in first


@pytest.fixture
def passed(monkeypatch):
    """Of a clock that is made up, so that no other program is in the times: the seconds."""
    ticks, seconds = itertools.count(), [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: seconds[0] + 1e-7 * next(ticks))
    return seconds


def test_a_wait_that_does_not_wait_is_refused(cupy):
    side = Side(cupy.slow, wait=lambda result: None)
    assert "before its work is done: its wait= does not wait" in refused(cpu=np.sort, gpu=side)
    answer = ask(cpu=np.sort, gpu=Side(cupy.slow, wait=lambda _: cupy.device.synchronize()))
    assert all(row.seconds >= 5 * WORK for row in answer.rows if row.side == "gpu")


def test_calls_back_to_back_stand_beside_one_that_is_waited_for(cupy, passed):
    """A device that takes a while to begin, and no time for the work, wins in a queue alone."""

    def late(array):
        cupy.device.done_at = time.perf_counter() + WORK
        return cupy.asarray(np.sort(array.values))

    def slow(array):
        passed[0] += WORK / 2
        return np.sort(array)

    answer = ask(cpu=slow, gpu=Side(late, to="cupy"))
    assert answer.sentences[0].endswith("the CPU wins at every size measured, n = 64 to 256.")
    told = "Calls back to back, waited for at their end: the GPU wins at every size measured"
    assert told in " ".join(answer.sentences)
    for row in answer.rows:
        assert (row.queued_seconds is None) == (row.side == "cpu")
        assert row.side == "cpu" or row.queued_seconds < row.seconds


def test_an_unknown_kind_of_result_is_told(cupy, passed):
    def lazy(array):
        passed[0] += WORK / 10
        return cupy.lazy(array)

    def sort(array):
        passed[0] += WORK
        return np.sort(array)

    told = " ".join(ask(cpu=sort, gpu=lazy).sentences)
    assert "gpu gives elsewhere.Lazy, of no library that is known" in told
    assert "It seems that gpu returns" in told
    waited = Side(lazy, wait=np.asarray)
    assert "no library" not in " ".join(ask(cpu=sort, gpu=waited).sentences)


def test_a_function_that_changes_its_input_gets_a_copy_each_time():
    seen = []

    def in_place(array):
        seen.append(bool(np.all(np.diff(array) >= 0)))
        array.sort()

    both = {"first": in_place, "second": np.ndarray.sort}
    answer = ask(**both, devices=dict.fromkeys(both, "cpu"))
    assert not any(seen)
    assert "first and second change the input" in " ".join(answer.sentences)


def test_make_runs_once_a_size_and_its_data_stay():
    made = {}

    def once(n):
        assert n not in made
        made[n] = make(n), make(n)
        return made[n]

    def spoil(first, second):
        first[:] = 0
        return np.sort(second)

    ask(make=once, cpu=lambda first, second: np.sort(second), other=spoil, devices={"other": "cpu"})
    assert all((pair[0] == make(n)).all() for n, pair in made.items())


def busy(seconds):
    def call(array):
        end = time.perf_counter() + seconds(len(array))
        while time.perf_counter() < end:
            pass
        return len(array)

    return call


def test_a_known_crossing_is_found_between_the_sizes_of_a_range(passed):
    """At n = 1,000, by times of a formula; sizes come between those of the range."""

    def first(array):
        passed[0] += len(array) * 1e-7
        return len(array)

    def second(array):
        passed[0] += 5e-5 + len(array) * 5e-8
        return len(array)

    asked = {"first": first, "second": second}
    answer = two(
        **asked,
        make=np.zeros,
        n=(100, 10_000),
        seconds=4.0,
        progress=False,
        devices=dict.fromkeys(asked, "cpu"),
    )
    assert answer.size and 500 < answer.size < 2_000
    sizes = sorted({row.n for row in answer.rows})
    assert len([n for n in sizes if 300 < n < 3_000]) > 2
    assert "second wins from n = " in answer.sentences[0]
    assert all(row.samples >= measure.FEWEST for row in answer.rows)


def known(seconds, sizes):
    """A measurement of the sides in `seconds`, by their formulas, without running any."""
    sides = [SimpleNamespace(name=name, on_device=False) for name in seconds]
    measured = measure.Measurement(sides, np.zeros, measure.Check(), 1.0, lambda line: None)
    for size in sizes:
        measured.prepared[size] = [
            SimpleNamespace(side=side, samples=[sample], sample=lambda: None)
            for side, sample in ((side, Sample(seconds[side.name](size))) for side in sides)
        ]
    return measured


def test_sizes_come_between_where_each_side_overtakes_the_first():
    """The second at n = 1,000; the third, which is never the fastest, at 6,000."""
    formulas = {
        "first": lambda n: n * 1e-7,
        "second": lambda n: 5e-5 + n * 5e-8,
        "third": lambda n: 12e-5 + n * 8e-8,
    }
    measured = known(formulas, (100, 500, 3_000, 20_000))
    assert [low for _, low, _ in measured._between()] == [500, 500, 3_000, 3_000]
    del formulas["third"]
    assert [low for _, low, _ in known(formulas, (100, 500, 3_000))._between()] == [500, 500]


def test_a_size_between_gives_way_before_the_largest_does():
    measured = known({"first": float, "second": float}, (100, 500, 3_000))
    measured._costs = dict.fromkeys(measured.prepared, 1e3)
    measured._passes([100, 500, 3_000], 5, 0.0, (500,))
    assert [*measured.prepared] == [100, 3_000] and measured.last is None


def test_what_does_not_fit_into_the_budget_is_left_out_and_told():
    """Takes seconds, as its functions take some."""
    slow = busy(lambda n: n * 1e-3)
    answer = ask(
        n=(1, 10, 20, 5_000),
        first=slow,
        second=slow,
        seconds=0.8,
        devices={"first": "cpu", "second": "cpu"},
    )
    assert max(row.n for row in answer.rows) < 5_000
    assert "do not fit into 0.8 s" in " ".join(answer.sentences)


def test_an_interrupt_gives_what_is_known():
    calls = []

    def interrupted(array):
        calls.append(len(array))
        if len(calls) > 20 and len(array) == 3:
            raise KeyboardInterrupt
        return len(array)

    slow = busy(lambda n: 2e-3)
    answer = ask(
        n=(1, 2, 3), first=slow, second=interrupted, devices={"first": "cpu", "second": "cpu"}
    )
    assert "was interrupted" in " ".join(answer.sentences)
    cpus = {"first": "cpu", "second": "cpu"}
    with pytest.raises(KeyboardInterrupt):
        calls.extend([0] * 20)
        ask(n=(3, 4), first=slow, second=interrupted, devices=cpus)


# ---- what is refused


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("single", "not equal at n = 64: their types differ: float64 and float32"),
        ("wrong", "not equal at n = 64: their values differ by"),
        ("fetched", "should compute on the GPU, and its result, numpy.ndarray, is on the CPU"),
    ],
)
def test_a_result_that_is_wrong_or_elsewhere_is_refused(cupy, name, sentence):
    assert sentence in refused(cpu=np.sort, gpu=getattr(cupy, name))


def test_data_on_the_wrong_side_are_refused(cupy):
    """As cupy.sort of a NumPy array would, a function of the CPU's on a device's data or none."""
    assert "How its input gets to the GPU is not known of gpu" in refused(cpu=np.sort, gpu=np.sort)
    stays = Side(np.sort, to=lambda array: array)
    assert "its result, numpy.ndarray, is on the CPU" in refused(cpu=np.sort, gpu=stays)
    scalar = Side(lambda array: 1.0, to=lambda array: array)
    assert "nothing it gets or gives is there" in refused(cpu=lambda _: 1.0, gpu=scalar)
    side = Side(cupy.sort, device="cpu", to="cupy")
    assert "CuPy has no arrays on the CPU" in refused(cpu=side, gpu=cupy.sort)
    side = Side(cupy.sort, device="cpu", to=cupy.asarray)
    assert "cpu should compute on the CPU, and its result, cupy.Array, is on cuda:0" in refused(
        cpu=side, gpu=cupy.sort
    )
    given = refused(make=lambda n: cupy.asarray(make(n)), cpu=np.sort, gpu=cupy.sort)
    assert given.startswith("make gives cupy.Array on cuda:0")


CPU2 = {"first": np.sort, "second": np.sort, "devices": {"first": "cpu", "second": "cpu"}}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"cpu": np.sort}, "Two sides are needed"),
        ({"cpu": 1, "gpu": 2}, "cpu is no function and no Side, but int"),
        ({"cpu": np.sort, "mine": np.sort}, "Where mine computes is not said"),
        ({**CPU2, "devices": {"first": "tpu", "second": "cpu"}}, "Where first computes is 'tpu'"),
        ({**CPU2, "devices": {"x": "cpu"}}, "Where first computes is not said"),
        ({"cpu": np.sort, "gpu": np.sort, "to": "tpu"}, "to='tpu' of gpu is not known"),
        ({**CPU2, "n": (1,)}, "n has 1 size, and two are needed"),
        ({**CPU2, "n": [0, 5]}, "n has 0, and sizes are whole numbers from 1"),
        ({**CPU2, "n": [math.nan, 5]}, "n has nan, and sizes are whole numbers"),
        ({**CPU2, "n": [10**400, 5]}, "and sizes are whole numbers"),
        ({**CPU2, "n": range(1, 10**9)}, "n has 999,999,999 sizes; give at most"),
        ({**CPU2, "seconds": math.nan}, "seconds=nan is no time"),
        ({**CPU2, "seconds": 10**400}, "is no time"),
        ({**CPU2, "tolerance": -1}, "tolerance=-1 is no share"),
        ({**CPU2, "make": 3}, "make is no function of n"),
        ({**CPU2, "make": lambda n: 1 / 0}, "make failed at n = 64 with ZeroDivisionError"),
        ({**CPU2, "second": lambda a: a.nothing}, "second failed at n = 64 with AttributeError"),
        ({**CPU2, "second": lambda a: (a,)}, "they are numpy.ndarray and tuple"),
        ({**CPU2, "equal": lambda first, second: False}, "n = 64: equal= says so"),
    ],
)
def test_bad_input_is_a_sentence(asked, sentence):
    n = asked.get("n")
    asked = {"make": make, "n": [64, 256], "progress": False, **asked}
    asked["n"] = n if isinstance(n, range) else asked["n"]
    with pytest.raises(ValueError) as told:
        two(**asked)
    assert sentence in str(told.value)
    assert len(str(told.value).splitlines()) == 1


def test_what_fails_at_a_larger_size_is_told():
    def fails(array):
        if len(array) > 100:
            raise MemoryError("no room")
        return np.sort(array)

    answer = ask(n=(10, 20, 200), **{**CPU2, "second": fails})
    assert "MemoryError: no room" in " ".join(answer.sentences)


# ---- what is equal


Pair = namedtuple("Pair", "values places")


@pytest.mark.parametrize(
    ("first", "second", "phrase"),
    [
        ([1.0, {"a": np.arange(3)}], (1.0, {"a": np.arange(3)}), ""),
        (Pair(1, 2), (1, 2), ""),
        ({"a": 1}, {"b": 1}, "their keys differ"),
        ([np.zeros(2), np.ones(2)], [np.zeros(2)], "they hold 2 and 1 values"),
        ({"a": [0, np.ones(2)]}, {"a": [0, np.ones(3)]}, "their shapes differ at ['a'][1]"),
        (np.ones(2), np.ones(2, np.float32), "their types differ: float64 and float32"),
        (np.arange(4), np.arange(4) + np.array([0, 0, 1, 1]), "2 of 4 values differ"),
        (np.array([1, np.nan, np.inf]), np.array([1 + 1e-13, np.nan, np.inf]), ""),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), "not a number or infinite in one"),
        (np.ones(3), np.ones(3) * (1 + 1e-6), "by 0.0000010 of the largest value"),
        (np.ones(3, "f4"), np.ones(3, "f4") * np.float32(1 + 1e-6), ""),
        (np.zeros(3), np.full(3, 1e-20), ""),
        (np.array(["a", "b"]), np.array(["a", "c"]), "1 of 2 values differ"),
        ("text", "other", "they differ"),
        (True, 1, "their types differ: bool and int64"),
        (np.array([1 + 2j]), np.array([1 - 2j]), "their values differ by"),
    ],
)
def test_equal_is_structure_type_shape_and_value(first, second, phrase):
    told = difference(first, second)
    assert phrase in told and bool(phrase) == bool(told)


def test_a_tolerance_is_the_callers():
    first, second = np.ones(3), np.ones(3) * 1.01
    assert difference(first, second) and not difference(first, second, 0.02)
    assert difference(np.arange(3), np.arange(3) + 1, 0.9)
    for kind in ("float64", "float32", "float16", "complex64", "bfloat16"):
        assert 0 < difference.__globals__["allowed"](kind) < 0.1


# ---- libraries


def test_a_library_is_known_by_the_function():
    fake = ModuleType("cupy")
    fake.sort = SimpleNamespace(__module__="cupy")
    known = {"cp": fake, "np": np}
    calls = eval("lambda x: cp.sort(x)", known), eval("lambda x: np.sort(x)", known)
    assert [kinds.used_by(each) for each in calls] == ["cupy", ""]
    assert kinds.used_by(partial(calls[0], axis=0)) == "cupy"
    assert kinds.used_by(len) == kinds.used_by(np.add) == ""


def test_torch_beside_numpy_on_the_cpu():
    """NumPy's and PyTorch's own sort, in PyTorch's environment."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed in this Python")
    answer = ask(
        numpy=np.sort,
        torch=lambda array: torch.sort(array).values,
        devices={"numpy": "cpu", "torch": "cpu"},
        n=(100, 1_000),
    )
    assert {row.side for row in answer.rows} == {"numpy", "torch"}
    assert "sees no GPU" in refused(cpu=np.sort, gpu=torch.sort) or torch.cuda.is_available()
    assert "their types differ: float64 and float32" in refused(
        numpy=np.sort,
        torch=lambda array: torch.sort(array.float()).values,
        devices={"numpy": "cpu", "torch": "cpu"},
    )
    assert "numpy.ndarray and torch.return_types.sort" in refused(
        numpy=np.sort, torch=torch.sort, devices={"numpy": "cpu", "torch": "cpu"}
    )


def test_numba_beside_numpy_on_the_cpu():
    """Functions that are compiled for the CPU take NumPy's arrays, and compile in their first
    call."""
    numba = pytest.importorskip("numba", reason="numba is not installed in this Python")
    asked = {"numpy": lambda array: array * 2.0, "devices": {"numpy": "cpu", "numba": "cpu"}}
    answer = ask(**asked, numba=numba.njit(lambda array: array * 2.0))
    assert all(row.first_seconds > row.seconds for row in answer.rows if row.n == 64)
    in_place = numba.njit(lambda array: array.sort())
    answer = ask(numpy=np.ndarray.sort, numba=in_place, devices=asked["devices"])
    assert "numpy and numba change the input" in " ".join(answer.sentences)


def test_jax_beside_numpy_on_the_cpu(monkeypatch):
    """In an environment of JAX, whose calls return before their work is done on a CPU, too: each is
    waited for."""
    jax = pytest.importorskip("jax", reason="JAX is not installed in this Python")
    asked = {"numpy": np.sort, "devices": {"numpy": "cpu", "jax": "cpu"}, "n": (100, 1_000)}
    waits, block = [], jax.block_until_ready
    monkeypatch.setattr(jax, "block_until_ready", lambda of: waits.append(0) or block(of))
    answer = ask(**asked, jax=jax.numpy.sort, make=lambda n: make(n).astype(np.float32))
    rows = [row for row in answer.rows if row.side == "jax"]
    assert len(waits) >= sum(row.samples * row.calls for row in rows)
    assert all(row.first_seconds > row.seconds for row in answer.rows)
    assert "their types differ: float64 and float32" in refused(**asked, jax=jax.numpy.sort)
    assert "JAX sees no GPU" in refused(cpu=np.sort, gpu=jax.numpy.sort) or jax.devices("gpu")


# ---- the answer


def test_the_answer_as_text_picture_frame_and_file(cupy, tmp_path, monkeypatch):
    answer = ask(cpu=np.sort, gpu=cupy.sort)
    assert len(repr(answer).splitlines()) == 3
    page = answer._repr_html_()
    assert page.startswith("<p>") and page.rstrip().endswith("</svg>")
    axes = answer.plot(relative_to="cpu")
    assert [line.get_label() for line in axes.lines] == ["cpu", "gpu"]
    assert set(axes.lines[0].get_ydata()) == {1.0}
    with pytest.raises(ValueError, match="'tpu' is no side; cpu and gpu are"):
        answer.plot(relative_to="tpu")
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(DataFrame=dict))
    frame = answer.to_frame()
    assert set(frame["n"]) == {64, 256} and len(frame["seconds"]) == len(frame["side"])
    answer.save(tmp_path / "file.json")
    rows = json.loads((tmp_path / "file.json").read_text("utf-8"))["benchmarks"]
    assert len(rows) == len(frame["n"])


def read_again(answer, path, **wanted):
    """The answers that `crossover two` gives of the saved file."""
    answer.save(path)
    problems = problems_of(timings_of(path, path.read_text("utf-8")), Wanted(**wanted))
    known, faults = answered(problems)
    assert not faults and not problems.left_out
    return known


def test_a_saved_file_has_the_same_answer(cupy, tmp_path):
    devices = {"numpy": "cpu", "stable": "cpu", "slow": "gpu", "fast": "gpu"}
    sides = {"numpy": np.sort, "stable": partial(np.sort, kind="stable")}
    answer = ask(**sides, slow=cupy.slow, fast=cupy.sort, devices=devices)
    (known,) = read_again(answer, tmp_path / "file.json")
    assert lead_of_both(known.answer, known.copied) == answer.sentences[0]
    assert sentences(known.answer)[1:] == answer.sentences[1:]
    for told, saved in ((answer._stay, known.answer), (answer._copied, known.copied)):
        for way, same in zip(told.problem.ways, saved.problem.ways, strict=True):
            assert (way.word, way.device, way.instances) == (same.word, same.device, same.instances)
            assert all(same.seconds[n] == pytest.approx(way.seconds[n]) for n in way.seconds)


def test_a_saved_file_of_one_device_has_the_same_answer_and_what_failed(tmp_path, monkeypatch):
    def fails(array):
        if len(array) > 100:
            raise MemoryError("no room")
        return np.sort(array)

    answer = ask(n=(10, 20, 200), **{**CPU2, "second": fails})
    (known,) = read_again(answer, tmp_path / "file.json")
    assert sentences(known.answer) == answer.sentences and known.copied is None
    wanted = {"cpu": re.compile("second"), "gpu": re.compile("first")}
    (known,) = read_again(answer, tmp_path / "file.json", **wanted)
    assert known.asked.problem.of("cpu")[0].word == "two/second"


@pytest.mark.parametrize(
    "two",
    [
        3,
        {"both": "x", "sides": {}, "remarks": []},
        {"sides": {"sort/cpu": ["a", "tpu"], "x": 3, "y": [[], "cpu"]}, "remarks": []},
        {"sides": {"sort/x": ["a", "cpu"], "sort/none": ["b", "gpu"]}, "remarks": [[]]},
        {"both": "cpu", "sides": {"sort/x": ["", "cpu"], "sort/none": ["", "gpu"]}, "remarks": []},
    ],
)
def test_what_a_saved_file_says_wrongly_is_no_traceback(cupy, tmp_path, capsys, two):
    path = tmp_path / "file.json"
    ask(cpu=np.sort, gpu=cupy.sort).save(path)
    document = json.loads(path.read_text("utf-8"))
    document["context"]["two"] = two
    path.write_text(json.dumps(document), encoding="utf-8")
    is_without_rows = isinstance(two, dict) and "sort/none" in two["sides"]
    assert main(["two", str(path)]) == (2 if is_without_rows else 0)
    assert ("has a time" in capsys.readouterr().err) == is_without_rows


def test_more_sides_are_compared_by_name(cupy):
    answer = ask(
        numpy=np.sort,
        stable=partial(np.sort, kind="stable"),
        slow=cupy.slow,
        fast=cupy.sort,
        devices={"numpy": "cpu", "stable": "cpu", "slow": "gpu", "fast": "gpu"},
    )
    told = " ".join(answer.sentences)
    assert "fastest of numpy and stable" in told and "fastest of slow and fast" in told


def test_progress_is_told(capsys):
    lines = []
    ask(**CPU2, progress=lines.append)
    assert any("pass 2 of" in line for line in lines) and lines[-1] == ""
    teller(True)("x" * 500)
    assert len(capsys.readouterr().err) < 100
    teller(None)("nobody is there")
    assert capsys.readouterr().err == ""
    shown = []
    display = SimpleNamespace(
        display=lambda text, **_: SimpleNamespace(update=lambda text, **_: shown.append(text))
    )
    tell = teller.__globals__["_InNotebook"](SimpleNamespace(display=display))
    tell("a"), tell("b")
    assert shown == [{"text/plain": "b"}]


# ---- other processes


@pytest.mark.slow
def test_isolated_runs_several_processes_of_each_side(tmp_path, monkeypatch):
    """Takes seconds, as ten processes start."""
    (tmp_path / "their_functions.py").write_text(
        "import os\nimport numpy\n"
        "def make(n): return numpy.arange(n)[::-1].copy()\n"
        "def first(array): print(os.getpid()); return numpy.sort(array)\n"
        "def second(array): return numpy.sort(array, kind='stable')\n"
        "def wait(result): pass\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import their_functions as theirs  # noqa: PLC0415

    answer = ask(
        make=theirs.make,
        first=theirs.first,
        second=Side(theirs.second, wait=theirs.wait),
        isolated=True,
        seconds=600.0,
        devices={"first": "cpu", "second": "cpu"},
    )
    frame = answer._columns()
    assert set(frame["process"]) == set(range(isolated.INSTANCES))
    assert {row.side: bool(row.queued_seconds) for row in answer.rows} == {
        "first": False,
        "second": True,
    }
    assert sum("Calls back to back, waited for" in text for text in answer.sentences) == 1
    assert "fewer than 5 instances" not in " ".join(answer.sentences)


def test_what_cannot_be_pickled_is_named(monkeypatch):
    monkeypatch.setattr(spawned, "find_spec", lambda name: None)
    told = refused(cpu=np.sort, other=lambda a: a, devices={"other": "cpu"}, isolated=True)
    assert "isolated=True sends make" not in told
    assert "sends other to other processes, and it can't be pickled" in told
    assert "install cloudpickle" in told


ALONE = """
import crossover_bench as crossover
import numpy as np
answer = crossover.two(
    first=np.sort, second=lambda a: np.sort(a, kind="stable"), make=lambda n: np.arange(n)[::-1],
    n=[100, 200], devices={"first": "cpu", "second": "cpu"}, seconds=0.5)
print(answer)
"""


def test_it_needs_no_bench(tmp_path):
    """Only the package is there, without the checkout and its build."""
    shutil.copytree(
        PACKAGE,
        tmp_path / "site" / "crossover_bench",
        ignore=shutil.ignore_patterns("__pycache__", "tests"),
    )
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        cwd=tmp_path / "elsewhere",
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
