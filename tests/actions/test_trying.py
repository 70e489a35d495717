"""`provider try`: one counted request behind the gate of every poll, closed at once, carried on by a later wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pollcore.actions import SubmitSpec, Tried
from pollcore.controller.exchange import Exchanger
from pollcore.facts import (
    MINUTE,
    ChoiceKind,
    CredentialMode,
    Escalate,
    EventName,
    Instant,
    Refused,
    Status,
    StopDetail,
    StopReason,
    Wait,
)
from pollcore.ports import Filter, Turn
from pollcore.report import Tally
from tests.controller.bank import DONE, LOST, RUNNING, refuses, says
from tests.controller.house import OPERATOR, SECRET, House, house, until

UNDECIDED = ('tested_live = "the bank of these tests"', 'tested_live = "no"')


async def attempt(h: House, job: str = "job-1", *answers: dict[str, Any], **spec: Any) -> Tried:
    if answers:
        h.bank.scripts[job] = list(answers)
    fields = {"provider": "acme", "job_id": job, "account": "acct", **spec}
    trial = h.core.trial()
    try:
        return await h.core.actions.try_provider(SubmitSpec(**fields), trial)
    finally:
        lock = h.core._lock
        assert lock is not None
        lock.release()


async def stored(h: House) -> int:
    return len(await h.core.store.operations(Filter()))


@pytest.mark.rule("B2", "B3", "O1")
async def test_a_try_sends_one_request_that_is_counted_and_closes(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        tried = await attempt(h, "job-1", RUNNING)
        assert len(h.bank.status_seen) == 1
        op = await h.op(tried.operation.operation_id)
        assert (op.status, op.stop_reason, op.stop_detail) == (Status.CLOSED, None, StopDetail.PROVIDER_TRY)
        assert (op.status_requests_used, op.max_status_requests, op.last_known_state) == (1, 1, "running")
        assert op.lease_owner is None
        assert len(await h.core.store.intents(op.operation_id)) == 1
        assert list(await h.core.store.check()) == []
        assert isinstance(tried.decision, Wait)
        assert tried.explained is not None
        assert tried.explained.rule == "states.waiting"
        await h.run(60 * MINUTE)
        assert len(h.bank.status_seen) == 1


@pytest.mark.rule("B3", "O1")
async def test_the_count_is_durable_before_the_request_leaves(tmp_path: Path, monkeypatch: Any) -> None:
    async with house(tmp_path) as h:

        async def dies(*_: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(Exchanger, "send", dies)
        with pytest.raises(KeyboardInterrupt):
            await attempt(h, "job-1", RUNNING)
        monkeypatch.undo()
        (op,) = await h.core.store.operations(Filter())
        assert (op.status, op.status_requests_used) == (Status.WAITING, 1)
        await h.run(60 * MINUTE)
        after = await h.op(op.operation_id)
        # the answer is recorded as lost, its failure spends the try's only one; nothing more was sent
        assert after.status is Status.ESCALATED
        assert after.status_requests_used == 1
        assert h.bank.status_seen == []


@pytest.mark.rule("B2")
async def test_a_wait_after_a_try_goes_on_with_its_count_and_asks_nobody(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await attempt(h, "job-1", RUNNING, RUNNING, DONE)
        later = (await h.core.actions.submit(_spec(operation_id="op-later"))).operation
        assert (later.status, later.status_requests_used, later.completed_polls) == (Status.WAITING, 1, 1)
        assert later.max_status_requests == 1 + 12
        assert later.last_known_state == "running"
        await h.run()
        ended = await h.op("op-later")
        assert (ended.status, ended.status_requests_used) == (Status.SUCCEEDED, 3)
        assert list(await h.core.store.check()) == []


def _spec(**more: Any) -> SubmitSpec:
    return SubmitSpec(**{"provider": "acme", "job_id": "job-1", "account": "acct", **more})


@pytest.mark.rule("B2", "G5")
async def test_only_a_try_frees_a_later_wait_and_only_the_first(tmp_path: Path) -> None:
    async with house(tmp_path, ("max_status_requests = 12", "max_status_requests = 2")) as h:
        await attempt(h, "job-1", RUNNING)
        await h.core.actions.submit(_spec(operation_id="op-1", caller="provider try", label="provider try"))
        await h.run()
        assert (await h.op("op-1")).stop_reason is StopReason.REQUEST_BUDGET_EXHAUSTED
        await h.core.actions.lower("op-1", ChoiceKind.CLOSE, "not wanted", "agent")
        asked = (await h.core.actions.submit(_spec(operation_id="op-2"))).operation
        assert (asked.status, asked.stop_detail) == (Status.ESCALATED, StopDetail.SECOND_SUBMISSION)
        assert asked.status_requests_used == 3


@pytest.mark.rule("B2")
async def test_a_job_that_has_an_operation_is_not_tried(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        await attempt(h, "job-2", RUNNING)
        for job in ("job-1", "job-2"):
            with pytest.raises(Refused, match="has an operation") as refused:
                await attempt(h, job)
            assert refused.value.code == "job_known"
        assert len(h.bank.status_seen) == 1


@pytest.mark.rule("G5", "G6", "X7")
async def test_what_the_gate_wants_is_told_and_nothing_is_sent_or_stored(tmp_path: Path) -> None:
    async with house(tmp_path, UNDECIDED) as h:
        with pytest.raises(Refused, match="first_use") as refused:
            await attempt(h, "job-1", RUNNING)
        assert (refused.value.code, refused.value.details["reason"]) == ("not_tried", "first_use")
        assert (len(h.bank.requests), await stored(h)) == (0, 0)
    action = ('observation = "read_only"\nevidence = "the tests of this project"', 'observation = "action"')
    async with house(tmp_path / "b", action) as h:
        with pytest.raises(Refused, match="call_approval"):
            await attempt(h, "job-1", RUNNING)
        assert (len(h.bank.requests), await stored(h)) == (0, 0)


@pytest.mark.rule("G6", "G7", "K2", "K3")
@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (CredentialMode.PER_CALL, "call_approval"),
        (CredentialMode.PER_SESSION, "session_approval"),
        (CredentialMode.STANDING, None),
    ],
)
async def test_a_credential_that_asks_is_not_used_by_a_try(
    mode: CredentialMode, told: str | None, tmp_path: Path
) -> None:
    least = ('kind = "bearer"', f'kind = "bearer"\nleast_mode = "{mode.value}"')
    async with house(tmp_path, least) as h:
        if told is None:
            await attempt(h, "job-1", RUNNING, credential="key")
            assert h.bank.requests[-1].secret is not None
            assert SECRET in (h.bank.requests[-1].secret or "")
            return
        with pytest.raises(Refused, match=told):
            await attempt(h, "job-1", RUNNING, credential="key")
        assert (len(h.bank.requests), await stored(h)) == (0, 0)
        with pytest.raises(Refused, match="credential_unavailable"):
            await attempt(h, "job-1", RUNNING, credential="none-of-that-name")


@pytest.mark.rule("T8", "G5")
async def test_a_paused_provider_is_not_tried(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        until = Instant(h.clock.now().wall + 30 * MINUTE)
        await h.core.actions.pause("acme", None, until, "ops")
        with pytest.raises(Refused, match="nothing goes to this provider now"):
            await attempt(h, "job-1", RUNNING)
        assert (len(h.bank.requests), await stored(h)) == (0, 0)


@pytest.mark.rule("T8", "H3")
async def test_what_a_try_learns_holds_for_the_waits_of_others(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await attempt(h, "job-1", refuses(429, {"Retry-After": "600"}))
        await h.submit("job-2", RUNNING)
        start = h.clock.now().wall
        await h.run(30 * MINUTE)
        first = next(seen for seen in h.bank.status_seen if seen.job == "job-2")
        assert first.at - start >= 599_000


@pytest.mark.rule("X1", "S2")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (says("compiling"), StopReason.UNKNOWN_STATE),
        (says("failed", error={"code": "E7"}), StopReason.JOB_FAILED),
        (refuses(401), StopReason.AUTHORIZATION_DENIED),
        (says("done"), StopReason.INTEGRATION_FAILURE),
    ],
)
async def test_a_try_says_what_a_wait_would_stop_with_and_asks_nobody(
    answer: dict[str, Any], reason: StopReason, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        tried = await attempt(h, "job-1", answer)
        assert isinstance(tried.decision, Escalate)
        assert tried.decision.reason is reason
        assert await h.core.store.questions() == ()
        assert (await h.op(tried.operation.operation_id)).status is Status.CLOSED


@pytest.mark.rule("B4")
async def test_a_request_without_an_answer_is_told_as_a_fault(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        tried = await attempt(h, "job-1", LOST)
        assert tried.fault is not None
        assert tried.explained is None
        op = await h.op(tried.operation.operation_id)
        assert (op.status, op.status_requests_used, op.transport_failures_used) == (Status.CLOSED, 1, 1)


@pytest.mark.rule("A1", "A2", "A5")
async def test_a_try_has_events_of_its_own_and_contradicts_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        tried = await attempt(h, "job-1", says("compiling"), caller="agent-7")
        name = tried.operation.operation_id
        told = await h.events(None, name)
        assert [event.event for event in told] == [
            EventName.SUBMITTED, EventName.SENT, EventName.POLLED, EventName.TRIED,
        ]  # fmt: skip
        polled, end = told[2], told[3]
        assert (polled.state, polled.reason, polled.next_poll_at) == ("compiling", None, None)
        assert (end.decision, end.reason) == ("escalate", "unknown_state")
        assert "agent-7" in (end.caller or "")
        tally = Tally(now=h.clock.now().wall)
        tally.add(await h.op(name), (), told, None)
        assert tally.report().contradictions == ()


@pytest.mark.rule("T8", "B3")
async def test_a_full_cap_sends_nothing_and_the_job_may_be_tried_again(tmp_path: Path) -> None:
    caps = ("[schedule]", "[caps]\nper_minute = 1\n[schedule]")
    async with house(tmp_path, caps) as h:
        await attempt(h, "job-1", RUNNING)
        with pytest.raises(Refused, match="a cap of this provider is reached"):
            await attempt(h, "job-2", RUNNING)
        assert len(h.bank.status_seen) == 1
        h.clock.jump(2 * MINUTE)
        await attempt(h, "job-2")
        assert [seen.job for seen in h.bank.status_seen] == ["job-1", "job-2"]
        assert list(await h.core.store.check()) == []


@pytest.mark.rule("T11", "B4", "S9")
async def test_a_try_whose_record_moved_while_it_was_out_teaches_once_and_is_recorded(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.bank.gate = asyncio.Event()
        h.bank.scripts["job-1"] = [LOST]
        tried = asyncio.ensure_future(attempt(h, "job-1", LOST))
        await until(lambda: len(h.bank.status_seen) == 1, "it is out")
        (op,) = await h.core.store.operations(Filter())
        await h.core.actions.open_question(op.operation_id, OPERATOR)
        h.bank.gate.set()
        assert (await tried).fault is not None
        after = await h.op(op.operation_id)
        assert (after.status, after.completed_polls, after.transport_failures_used) == (Status.CLOSED, 1, 1)
        (origin,) = (await h.core.store.turn(Turn(now=h.clock.now(), owner="looks"))).origins
        assert origin.faults_in_a_row == 1


@pytest.mark.rule("B4", "O1")
async def test_a_failure_of_ours_while_a_try_is_sent_is_a_lost_answer_and_closes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise RuntimeError("ours")

    async with house(tmp_path) as h:
        monkeypatch.setattr(h.core.transport, "send", broken)
        tried = await attempt(h, "job-1", RUNNING)
        assert tried.fault is not None
        assert tried.fault.may_have_been_sent
        op = await h.op(tried.operation.operation_id)
        assert (op.status, op.status_requests_used, op.lease_owner) == (Status.CLOSED, 1, None)
