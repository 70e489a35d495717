"""`report` over real stores: honest lives add up, and each contradiction that is planted is named."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollconsole.bridge.reports import report, report_one
from pollconsole.cli.report import _all as shown
from pollcore.facts import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    AuditEvent,
    ChoiceKind,
    DelaySource,
    EventName,
    Instant,
    StopReason,
)
from pollcore.report import Tally
from tests.controller.bank import DONE, LOST, RUNNING, refuses, says
from tests.controller.batch_house import registry, shared_house
from tests.controller.house import House, house, pick

E = EventName
SHORT = ("max_status_requests = 12", "max_status_requests = 2")


async def told(h: House) -> dict[str, Any]:
    now = h.clock.now().wall
    return await report(h.core, Instant(now - 30 * DAY), now)


@pytest.mark.rule("A5", "B2")
async def test_a_request_that_operations_share_is_sent_once_and_counted_for_each(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        for name in ("a", "b", "c", "d"):
            await h.submit(name, RUNNING, DONE)
        await h.run()
        found = await told(h)
        alone = await report_one(h.core, "op-a", h.clock.now().wall)
        sent = len(registry(h).asked)
    assert sent < found["requests"] == 8
    assert found["requests_sent"] == sent
    assert [(one["requests"], one["requests_sent"]) for one in found["by_provider"]] == [(8, sent)]
    assert alone["requests_sent"] == len(alone["requests"]) == 2
    lines = shown(found, chart=False)
    assert f"requests: {sent} sent; a request every 10 s would have been {found['fixed_interval_requests']}" in lines
    assert "counted for each operation: 8, 8 of them permitted when sent" in lines


@pytest.mark.rule("A5")
async def test_without_the_numbers_of_its_requests_each_counted_one_is_taken_for_one_of_its_own(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await h.run()
        events = [event for _, event in await h.core.store.events("op-job-1")]
        tally = Tally(now=h.clock.now().wall)
        tally.add(await h.op("op-job-1"), (), events)
        found = tally.report()
    assert (found.requests, found.requests_sent) == (2, 2)


async def texts(h: House) -> list[str]:
    return [one["text"] for one in (await told(h))["contradictions"]]


@pytest.mark.rule("A5")
async def test_honest_lives_of_every_kind_hold_no_contradiction(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await h.submit("job-1", RUNNING, RUNNING)  # spends its budget
        await h.submit("job-2", refuses(429, {"retry-after": "30"}), DONE)
        await h.submit("job-3", says("failed"))
        await h.submit("job-4", LOST, DONE)
        await h.submit("job-5", says("strange"))
        await h.submit("job-6", refuses(401))
        await h.submit("job-7", refuses(429, {"retry-after": "90000"}), account="other")
        await h.submit("job-8", says("paused"))
        await h.submit("job-9", RUNNING, DONE)
        await h.core.actions.lower("op-job-9", ChoiceKind.HOLD, "later", "me")
        await h.run()
        h.clock.jump(3 * MINUTE)
        shown = await h.card("op-job-1")
        h.bank.scripts["job-1"] = [RUNNING, DONE]
        await h.press(shown, pick(shown, ChoiceKind.EXTEND))
        await h.core.actions.lower("op-job-5", ChoiceKind.CLOSE, "not ours", "me")
        await h.run()
        found = await told(h)
    assert found["contradictions"] == []
    assert found["requests"] == found["requests_permitted"] > 10
    assert (found["guidance_given"], found["share_guidance_obeyed"]) == (1, 1.0)
    assert found["share_ended_or_escalated"] == 1.0
    assert [(one["operator"], one["operation_id"]) for one in found["extensions"]] == [("ops@here (pty)", "op-job-1")]
    assert found["fixed_interval_requests"] > found["requests"] / 10
    assert [one["provider"] for one in found["by_provider"]] == ["acme"]
    by_reason = {one["reason"]: one for one in found["by_reason"]}
    budget = by_reason["request_budget_exhausted"]
    assert (budget["questions"], budget["open"], budget["times"]["decisions"]) == (1, 0, 1)
    assert budget["times"]["median_ms"] >= 3 * MINUTE
    assert by_reason["job_failed"]["open"] == 1
    assert sum(one["requests"] for one in found["by_time"]) == found["requests"]
    assert found["bucket_ms"] == DAY


async def lived(h: House) -> list[AuditEvent]:
    """One life that ended well; its events."""
    await h.submit("job-1", RUNNING, RUNNING, DONE)
    await h.run()
    return await h.events(operation_id="op-job-1")


def change(sql: str) -> Callable[[House, list[AuditEvent]], Awaitable[None]]:
    async def plant(h: House, events: list[AuditEvent]) -> None:
        await h.core.store._write(lambda s: s.conn.execute(sql))

    return plant


def add(name: EventName, after_ms: int = SECOND, **fields: Any) -> Callable[[House, list[AuditEvent]], Awaitable[None]]:
    """One more event, as the last one says, but for *fields*."""

    async def plant(h: House, events: list[AuditEvent]) -> None:
        last = events[-1]
        base = {
            "operation_id": "op-job-1", "requests_used": last.requests_used, "max_requests": last.max_requests,
            "deadline_at": last.deadline_at,
        }  # fmt: skip
        made = {key: value(last) if callable(value) else value for key, value in fields.items()}
        event = AuditEvent(at=Instant(last.at + after_ms), event=name, **{**base, **made})
        await h.core.store.record(h.clock.now(), [event])

    return plant


PLANTED: list[tuple[str, Callable[[House, list[AuditEvent]], Awaitable[None]], str]] = [
    ("sent beyond the budget", add(E.GRANTED, operator="x", decision="extend"), ""),
    ("stop", add(E.STOPPED, decision="escalate", reason="deadline_exceeded"), "before the deadline"),
    (
        "budget",
        add(E.STOPPED, decision="escalate", reason="request_budget_exhausted"),
        "only 3 of 12 requests were used",
    ),
    ("fate", add(E.STOPPED, decision="escalate", reason="job_failed"), "but no answer said so"),
    ("unknown", add(E.STOPPED, decision="escalate", reason="unknown_state"), "but no answer was read"),
    ("denied", add(E.POLLED, decision="escalate", reason="authorization_denied", http=200), "the answer was HTTP 200"),
    ("rated", add(E.POLLED, decision="escalate", reason="rate_limited", http=200), "the answer was HTTP 200"),
    ("provider", add(E.POLLED, decision="escalate", reason="provider_failure", http=200, state="x"), "with state x"),
    (
        "guidance",
        add(E.POLLED, decision="escalate", reason="guidance_beyond_deadline", retry_after="Retry-After 20"),
        "the guidance ended",
    ),
    (
        "listed",
        add(E.POLLED, decision="escalate", reason="unknown_state", state="running", http=200),
        "lists as waiting",
    ),
    ("said", add(E.POLLED, decision="escalate", reason="job_failed", state="running", http=200), "lists as waiting"),
    ("wrongly", add(E.POLLED, decision="succeed", state="running", http=200), "succeeded, but the last parsed state"),
    ("success", add(E.STOPPED, decision="escalate", reason="provider_failure"), "lists as succeeded"),
    ("twice", add(E.POLLED, decision="succeed", state="done", http=200), "and again at"),
    ("after", add(E.SENT, requests_used=4), "after the stop of"),
    ("again", add(E.SENT, requests_used=3), "a number was used twice"),
    ("over", add(E.SENT, requests_used=13), "request 13 was sent, 12 were allowed"),
    ("late", add(E.SENT, 2 * HOUR, requests_used=4), "the deadline was"),
    ("raised", add(E.SCHEDULED, deadline_at=lambda last: Instant(last.deadline_at + HOUR)), "nobody granted it"),
    ("more", add(E.SCHEDULED, max_requests=99), "from 12 to 99, and nobody granted it"),
    ("fewer", add(E.SCHEDULED, requests_used=1), "the requests used went from 3 to 1"),
    ("nameless", add(E.GRANTED, decision="extend", detail="extend 15 min / 4 checks"), "nobody is named"),
    ("counted", change("UPDATE operation SET status_requests_used=2"), "3 requests were sent, 2 are counted"),
    ("deadline", change("UPDATE operation SET deadline_at=deadline_at+60000"), "the record's deadline is"),
    ("allowed", change("UPDATE operation SET max_status_requests=50"), "the record allows 50 requests"),
    ("failed", change("UPDATE operation SET status='failed'"), "the record says failed, and no event does"),
    ("closed", change("UPDATE operation SET status='closed'"), "the record says closed, and no event does"),
    (
        "failures",
        change("UPDATE operation SET status='escalated', stop_reason='provider_failure'"),
        "only 0 of 3 failures were used",
    ),
    (
        "limited",
        change("UPDATE operation SET status='escalated', stop_reason='rate_limited'"),
        "only 0 of 3 rate-limit answers were used",
    ),
    ("live", change("UPDATE operation SET status='waiting', deadline_at=submitted_at"), "still waiting after"),
]


@pytest.mark.rule("A5")
@pytest.mark.parametrize(("name", "plant", "says_it"), PLANTED, ids=[row[0] for row in PLANTED])
async def test_each_planted_contradiction_is_named(
    name: str, plant: Callable[[House, list[AuditEvent]], Awaitable[None]], says_it: str, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        events = await lived(h)
        assert await texts(h) == []
        await plant(h, events)
        found = await texts(h)
        assert any(says_it in text for text in found) if says_it else found == [], (name, found)
        one = await report_one(h.core, "op-job-1", h.clock.now().wall)
        assert [c["text"] for c in one["contradictions"]] == found


@pytest.mark.rule("A5", "T4")
async def test_guidance_that_was_not_obeyed_is_named_with_its_request(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        events = await lived(h)
        last = events[-1]
        asked = AuditEvent(
            at=Instant(last.at + 1), event=E.POLLED, operation_id="op-job-1", http=503, decision="wait",
            delay_source=DelaySource.PROVIDER_RETRY_AFTER, retry_after="Retry-After 120",
            next_poll_at=Instant(last.at + 120_001),
        )  # fmt: skip
        early = AuditEvent(at=Instant(last.at + 60_000), event=E.SENT, operation_id="op-job-1", requests_used=4)
        granted = AuditEvent(
            at=Instant(last.at), event=E.GRANTED, operation_id="op-job-1", operator="x", decision="extend"
        )
        await h.core.store.record(h.clock.now(), [granted, asked, early])
        assert any("the provider had asked to wait until" in text for text in await texts(h))
        one = await report_one(h.core, "op-job-1", h.clock.now().wall)
        assert [(fact["n"], fact["obeyed"], fact["permitted"]) for fact in one["requests"]][-1] == (4, False, True)


@pytest.mark.rule("A5")
async def test_one_operation_tells_of_each_request_what_permitted_it(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", refuses(503, {"retry-after": "30"}), LOST, RUNNING, DONE)
        await h.run()
        one = await report_one(h.core, "op-job-1", h.clock.now().wall)
    facts = one["requests"]
    assert [(f["n"], f["permitted"], f["obeyed"]) for f in facts] == [
        (1, True, None), (2, True, True), (3, True, None), (4, True, None)
    ]  # fmt: skip
    assert [f["answer"] for f in facts] == ["HTTP 503", "reset", "running", "done"] or facts[1]["answer"] is not None
    assert [f["decided"] for f in facts] == ["wait", "wait", "wait", "succeed"]
    assert one["contradictions"] == []


@pytest.mark.rule("A5")
async def test_the_command_tells_it_in_lines_and_in_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncio

    from pollconsole.cli import entry

    async with house(tmp_path) as h:
        await lived(h)
        await add(E.SENT, requests_used=13, state="\x1b[31mred")(h, await h.events(operation_id="op-job-1"))
    at = ("--home", str(h.home))
    words = ("report", "--since", "2026-01-01T00:00:00Z", "--chart", *at)
    code = await asyncio.to_thread(entry.run, words)
    text = capsys.readouterr().out
    assert code == 0
    assert "ended or bounded: 100.0% of 1" in text
    assert "request 13 was sent, 12 were allowed" in text
    assert "requests by the day" in text
    assert "#" in text
    code = await asyncio.to_thread(entry.run, ("report", "op-job-1", "--json", *at))
    found = json.loads(capsys.readouterr().out)
    assert (code, found["requests"][-1]["permitted"], found["requests"][0]["permitted"]) == (0, False, True)
    code = await asyncio.to_thread(entry.run, ("report", "op-job-1", *at))
    assert (code, "NO" in capsys.readouterr().out) == (0, True)
    assert await asyncio.to_thread(entry.run, ("report", "op-job-1", "--chart", *at)) == 2


@pytest.mark.rule("A5", "S7")
async def test_an_archived_story_makes_no_false_contradiction(tmp_path: Path) -> None:
    from tests.audit.test_archive import archive, old_life

    async with house(tmp_path) as h:
        await old_life(h)
        await h.run()
        before = await told(h)
        await archive(h)
        after = await told(h)
    assert (before["contradictions"], after["contradictions"]) == ([], [])
    assert (before["operations"], after["operations"]) == (3, 3)
    assert StopReason.DEADLINE_EXCEEDED.value not in json.dumps(after["by_reason"])
    assert msgspec.json.encode(after)
