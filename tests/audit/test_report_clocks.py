"""`report` accuses nobody of what a stepped clock or a dead process did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollconsole.bridge.reports import report_one
from pollconsole.cli.report import _all as shown
from pollconsole.cli.report import _one as shown_one
from pollcore.facts import (
    BY_ELAPSED_TIME,
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    AuditEvent,
    BootMs,
    ChoiceKind,
    DelaySource,
    EventName,
    Instant,
    Intent,
    StopReason,
)
from pollcore.report import requests_of
from tests.audit.test_report import told
from tests.controller.bank import DONE, LOST, RUNNING, refuses, says
from tests.controller.house import House, house

E = EventName
ASKED = refuses(503, {"retry-after": "60"})


async def stepped(h: House, ms: int) -> dict[str, Any]:
    """Guidance of 60 s, the wall clock set by *ms* in the middle of it, then the job is done."""
    await h.submit("job-1", ASKED, DONE, deadline_ms=4 * HOUR)
    began = h.clock.now().boot
    h.clock.at.append((began + 40 * SECOND, lambda: h.clock.step(ms)))
    await h.run()
    assert len(h.bank.status_seen) == 2
    return await told(h)


@pytest.mark.rule("A5", "T9", "T4")
@pytest.mark.parametrize("ms", [-DAY, -3650 * DAY, -30 * SECOND, 30 * SECOND])
async def test_guidance_that_was_obeyed_on_a_clock_that_was_set_is_obeyed(ms: int, tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        found = await stepped(h, ms)
        one = await report_one(h.core, "op-job-1", h.clock.now().wall)
    assert found["contradictions"] == []
    assert (found["guidance_given"], found["guidance_obeyed"], found["guidance_unprovable"]) == (1, 1, 0)
    assert [fact["obeyed"] for fact in one["requests"]] == [None, True]


@pytest.mark.rule("A5", "T9")
async def test_without_the_boot_times_of_its_requests_a_stepped_wait_is_not_provable_and_no_contradiction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def archived(_: str) -> tuple[Intent, ...]:
        return ()

    async with house(tmp_path) as h:
        await stepped(h, -DAY)
        monkeypatch.setattr(h.core.store, "intents", archived)
        found = await told(h)
        one = await report_one(h.core, "op-job-1", h.clock.now().wall)
    assert found["contradictions"] == []
    assert (found["guidance_given"], found["guidance_unprovable"]) == (0, 1)
    assert any("1 more not provable, the clock was stepped" in line for line in shown(found, chart=False))
    assert any("not provable" in line for line in shown_one(one))


def life(sent_at: int, boot: int) -> list[bool | None]:
    """Guidance of 60 s given 1 s after the first request; the second one is sent at these times."""
    asked = AuditEvent(
        at=Instant(1_001_000), event=E.POLLED, http=503, decision="wait", next_poll_at=Instant(1_061_000),
        delay_source=DelaySource.PROVIDER_RETRY_AFTER, retry_after="Retry-After 60",
    )  # fmt: skip
    found = [
        AuditEvent(at=Instant(1_000_000), event=E.SENT, requests_used=1),
        asked,
        AuditEvent(at=Instant(sent_at), event=E.SENT, requests_used=2),
    ]
    charges = [
        Intent("op", 1, 1, "status", 1, Instant(1_000_000), BootMs(5_000), 1),
        Intent("op", 2, 2, "status", 2, Instant(sent_at), BootMs(boot), 1),
    ]
    return [fact.obeyed for fact in requests_of(found, charges)]


@pytest.mark.rule("A5", "T4")
def test_a_request_that_was_sent_too_early_is_told_on_whatever_clock() -> None:
    assert life(1_061_000, 66_000) == [None, True]
    assert life(1_030_000, 35_000) == [None, False], "the clocks agree, and it was too early"
    assert life(-9_000_000, 35_000) == [None, False], "set back, and too early by elapsed time"
    assert life(9_000_000, 35_000) == [None, False], "set forward, which makes a wait no longer"
    assert life(9_000_000, 65_500) == [None, None], "by half a second nobody can say"


@pytest.mark.rule("A5", "T9", "X2")
async def test_a_stop_by_elapsed_time_on_a_clock_set_back_says_so_and_is_no_contradiction(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, deadline_ms=5 * MINUTE, max_status_requests=100)
        h.clock.step(-3 * HOUR)  # while no core runs: no loop sees the step
        await h.run()
        op = await h.op()
        assert op.stop_reason is StopReason.DEADLINE_EXCEEDED
        assert await h.events(E.CLOCK_STEP) == []
        stops = [event for event in await h.events() if event.reason == "deadline_exceeded"]
        assert BY_ELAPSED_TIME in stops[-1].notes
        assert (await told(h))["contradictions"] == []


@pytest.mark.rule("T9", "A5")
async def test_a_step_of_the_clock_is_on_record_before_the_next_request_is(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        h.clock.at.append((h.clock.now().boot + 12 * SECOND, lambda: h.clock.step(-DAY)))
        await h.run()
        names = [event.event for event in await h.events()]
        assert E.SENT in names[: names.index(E.CLOCK_STEP)]
        assert E.SENT in names[names.index(E.CLOCK_STEP) :]


@pytest.mark.rule("A5", "B4")
@pytest.mark.parametrize(("state", "reason"), [("strange", "unknown_state"), ("paused", "needs_human")])
@pytest.mark.parametrize("name", [E.ANSWER_LOST, E.FAULTED])
async def test_a_granted_check_that_brought_no_answer_leaves_the_stop_and_is_no_contradiction(
    name: EventName, state: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> Any:
        raise RuntimeError  # a failure of ours: recorded as a crash between send and record is

    async with house(tmp_path) as h:
        await h.submit("job-1", says(state), LOST)
        await h.run()
        await h.choose(ChoiceKind.CHECK_ONCE)
        if name is E.ANSWER_LOST:
            monkeypatch.setattr(h.core.transport, "send", fails)
        await h.run()
        (lost,) = await h.events(name)
        assert (lost.reason, lost.decision) == (reason, "escalate")
        assert (await told(h))["contradictions"] == []


@pytest.mark.rule("A5")
async def test_a_stop_that_no_check_preceded_is_still_one_that_no_answer_bears_out(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, RUNNING)
        await h.run(25 * SECOND)
        last = (await h.events(operation_id="op-job-1"))[-1]
        lost = msgspec.structs.replace(
            last, event=E.ANSWER_LOST, reason="unknown_state", decision="escalate", at=Instant(last.at + 1)
        )
        await h.core.store.record(h.clock.now(), [lost])
        assert any("but no answer was read" in one["text"] for one in (await told(h))["contradictions"])
