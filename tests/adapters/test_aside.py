"""Calls aside: a hanging one ends at its limit, blocks neither the others nor the exit, and cannot pile up threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from pollcore.adapters.aside import MAX_LEFT_BEHIND, Aside

LIMIT_S = 30.0
HANGS_S = 600
"""Longer than every limit here."""


@pytest.mark.rule("K2")
async def test_results_and_errors_come_back_from_both_kinds_of_call() -> None:
    aside = Aside("test")
    assert aside.call(lambda: 1, LIMIT_S) == 1
    assert await aside.acall(lambda: 2, LIMIT_S) == 2
    with pytest.raises(ZeroDivisionError):
        await aside.acall(lambda: 1 // 0, LIMIT_S)
    with pytest.raises(ZeroDivisionError):
        aside.call(lambda: 1 // 0, LIMIT_S)


@pytest.mark.rule("K2")
async def test_a_hanging_call_ends_at_its_limit_and_the_next_one_runs() -> None:
    aside = Aside("test")
    go_on = threading.Event()
    for _ in range(MAX_LEFT_BEHIND):
        with pytest.raises(TimeoutError):
            await aside.acall(lambda: go_on.wait(HANGS_S), 0.05)
    with pytest.raises(TimeoutError, match="still hang"):
        await aside.acall(lambda: 3, LIMIT_S)
    go_on.set()
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                assert await aside.acall(lambda: 4, LIMIT_S) == 4
                break
            except TimeoutError:
                await asyncio.sleep(0.01)


@pytest.mark.rule("K2")
async def test_a_call_behind_a_hanging_one_gets_a_thread_of_its_own() -> None:
    aside = Aside("test")
    go_on = threading.Event()
    with pytest.raises(TimeoutError):
        await aside.acall(lambda: go_on.wait(HANGS_S), 0.05)
    assert await aside.acall(lambda: 5, LIMIT_S) == 5
    go_on.set()


async def test_several_threads_run_calls_side_by_side() -> None:
    aside = Aside("test", threads=3)
    meet = threading.Barrier(3)
    places = await asyncio.gather(*(aside.acall(lambda: meet.wait(LIMIT_S), LIMIT_S) for _ in range(3)))
    assert sorted(places) == [0, 1, 2]


@pytest.mark.rule("K2")
def test_a_hanging_call_does_not_hold_the_exit() -> None:
    code = """
import asyncio, threading
from pollcore.adapters.aside import Aside
async def main():
    try:
        await Aside("t").acall(lambda: threading.Event().wait(600), 0.1)
    except TimeoutError:
        print("left")
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=True)
    assert done.stdout == "left\n"
