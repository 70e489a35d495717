"""The system clock and chance keep the contract of their ports."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.adapters import system
from pollcore.adapters.audit_plain import PlainAudit
from pollcore.adapters.system import SystemChance, SystemClock, boot_id
from pollcore.ports import AuditLog, Chance, Clock


def test_the_adapters_fit_their_ports() -> None:
    clock: Clock = SystemClock()
    chance: Chance = SystemChance()
    audit: AuditLog = PlainAudit()
    assert clock.now().boot_id
    assert 0.0 <= chance.draw() < 1.0
    assert audit.links(None, ()) == ()


@pytest.mark.rule("T9")
def test_a_reading_holds_wall_boot_and_the_boot_it_belongs_to() -> None:
    before = time.time_ns() // 1_000_000
    one, two = SystemClock().now(), SystemClock().now()
    assert before <= one.wall <= time.time_ns() // 1_000_000
    assert one.boot <= two.boot
    assert one.boot_id == two.boot_id


@pytest.mark.rule("T9")
@pytest.mark.skipif(sys.platform != "linux", reason="the boot clock of Linux")
def test_on_linux_time_counts_from_boot_suspend_included() -> None:
    now = SystemClock().now()
    assert abs(now.boot - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000) < 60_000
    other = subprocess.run(
        [sys.executable, "-c", "from pollcore.adapters.system import boot_id; print(boot_id())"],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    assert other.stdout.strip() == now.boot_id


@pytest.mark.rule("T9")
def test_without_a_boot_id_each_process_is_a_boot_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(system, "_BOOT_ID", tmp_path / "none")
    monkeypatch.setattr(sys, "platform", "plan9")
    assert boot_id() != boot_id()


@pytest.mark.rule("T9")
@pytest.mark.parametrize(("asked", "slept"), [(40_000, 15.0), (15_001, 15.0), (9_000, 9.0), (0, 0.0)])
async def test_a_wait_is_one_slice_of_at_most_15_s(asked: int, slept: float, monkeypatch: pytest.MonkeyPatch) -> None:
    slices: list[float] = []

    class Skip:
        def __init__(self, seconds: float) -> None:
            slices.append(seconds)

        async def __aenter__(self) -> None:
            raise TimeoutError

        async def __aexit__(self, *_: object) -> None:
            raise AssertionError

    monkeypatch.setattr("pollcore.adapters.system.asyncio.timeout", Skip)
    await SystemClock().wait(asyncio.Event(), asked)
    assert slices == [slept]


async def test_an_event_ends_the_wait_also_one_that_was_set_before_and_stays_set() -> None:
    clock, event = SystemClock(), asyncio.Event()
    waiting = asyncio.create_task(clock.wait(event, 10**9))
    await asyncio.sleep(0)
    event.set()
    await asyncio.wait_for(waiting, 10)
    await asyncio.wait_for(clock.wait(event, 10**9), 10)
    assert event.is_set()


async def test_a_wait_ends_by_itself_and_a_cancelled_one_at_once() -> None:
    await asyncio.wait_for(SystemClock().wait(asyncio.Event(), 10), 10)
    waiting = asyncio.create_task(SystemClock().wait(asyncio.Event(), 10**9))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.rule("T1")
@given(seed=st.integers())
def test_draws_lie_in_the_half_open_unit_interval_and_repeat_with_a_seed(seed: int) -> None:
    one, two = SystemChance(seed), SystemChance(seed)
    draws = [one.draw() for _ in range(20)]
    assert draws == [two.draw() for _ in range(20)]
    assert all(0.0 <= draw < 1.0 for draw in draws)


def test_ids_are_hex_of_the_size_asked_for_and_never_repeat() -> None:
    chance = SystemChance(1)
    made = {chance.token(16) for _ in range(1_000)}
    assert len(made) == 1_000
    assert all(len(token) == 32 and int(token, 16) >= 0 for token in made)
