# SPDX-License-Identifier: Apache-2.0
"""Work on several processes gives what work on one gives, whatever happens to them."""

import os

import pytest

from plots import parallel


def _square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def _end_elsewhere(parent: int) -> str:
    if os.getpid() != parent:
        os._exit(1)
    return "done"


def _fail(number: int) -> int:
    raise ValueError(number)


def test_results_are_in_order_and_come_from_other_processes():
    with parallel.Pool(2) as pool:
        results = pool.map(_square, range(5))
    assert [square for square, _ in results] == [0, 1, 4, 9, 16]
    assert os.getpid() not in {process for _, process in results}


def test_one_item_or_one_core_needs_no_process():
    with parallel.Pool(1) as pool:
        assert {process for _, process in pool.map(_square, range(3))} == {os.getpid()}
    with parallel.Pool(2) as pool:
        assert pool.map(_square, [3]) == [(9, os.getpid())]


def test_a_killed_process_is_made_up_for():
    with parallel.Pool(2) as pool:
        assert pool.map(_end_elsewhere, [os.getpid()] * 3) == ["done"] * 3


def test_without_processes_the_work_is_done_here(monkeypatch):
    def refuse(*_arguments, **_options):
        raise NotImplementedError("no semaphores here")

    monkeypatch.setattr(parallel, "ProcessPoolExecutor", refuse)
    with parallel.Pool(2) as pool:
        assert [square for square, _ in pool.map(_square, range(3))] == [0, 1, 4]


def test_an_exception_comes_back():
    with parallel.Pool(2) as pool, pytest.raises(ValueError, match="0"):
        pool.map(_fail, range(3))
