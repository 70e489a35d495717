"""Choices of the table of group E on a real stop, each limit as shown: extend, another credential, close, reject."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pollcore.facts import (
    MINUTE,
    SECOND,
    ChoiceKind,
    DelaySource,
    EventName,
    Refused,
    Status,
    StopReason,
)
from tests.actions.stops import grant, stop
from tests.controller.bank import DONE, RUNNING, refuses, says
from tests.controller.house import house, kinds, pick

TWO_CHECKS = ("max_status_requests = 12", "max_status_requests = 2")
STRANGE = says("strange")


# --- extend -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("E2", "E4", "T5")
@pytest.mark.parametrize(("minutes", "checks"), [(15, 4), (60, 8)])
async def test_each_size_extends_by_exactly_what_it_says_after_a_spent_budget(
    minutes: int, checks: int, tmp_path: Path
) -> None:
    async with house(tmp_path, TWO_CHECKS) as h:
        stopped = await stop(h, RUNNING)
        assert kinds(await h.card()) == ["extend", "extend", "cancel_at_provider"]
        now = h.clock.now().wall
        _, after = await grant(h, ChoiceKind.EXTEND, f"extend {minutes} min / {checks} checks")
        assert after.max_status_requests == 2 + checks
        assert after.deadline_at == stopped.deadline_at + minutes * MINUTE
        assert (after.status, after.extensions_used) == (Status.WAITING, 1)
        assert after.delay_source is DelaySource.MANUAL_EXTENSION
        assert after.next_poll_at == now + 5 * SECOND
        await h.run()
        assert len(h.bank.status_seen) == 2 + checks


@pytest.mark.rule("E4", "X2")
async def test_an_extension_after_the_deadline_counts_from_the_grant(tmp_path: Path) -> None:
    async with house(tmp_path, ('deadline = "40m"', 'deadline = "1m"')) as h:
        stopped = await stop(h, RUNNING)
        assert stopped.stop_reason is StopReason.DEADLINE_EXCEEDED
        h.clock.jump(30 * MINUTE)
        now = h.clock.now().wall
        _, after = await grant(h, ChoiceKind.EXTEND, "15 min")
        assert after.deadline_at == now + 15 * MINUTE
        h.bank.scripts["job-1"] = [DONE]
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("E4")
async def test_no_more_extensions_than_the_contract_allows(tmp_path: Path) -> None:
    changes = (TWO_CHECKS, ("extend = [", "max_extensions = 2\nextend = ["))
    async with house(tmp_path, *changes) as h:
        await stop(h, RUNNING)
        for _ in range(2):
            await grant(h, ChoiceKind.EXTEND, "15 min")
            await h.run()
        shown = await h.card()
        extend = pick(shown, ChoiceKind.EXTEND)
        assert extend.unavailable is not None
        with pytest.raises(Refused):
            await h.press(shown, extend)
        assert (await h.op()).extensions_used == 2


@pytest.mark.rule("E4", "B4", "X6")
async def test_an_extension_gives_a_spent_failure_budget_the_number_that_the_size_names(tmp_path: Path) -> None:
    size = ("checks = 8 }]", "checks = 8, transport_failures = 2, rate_limited = 2 }]")
    async with house(tmp_path, size) as h:
        stopped = await stop(h, refuses(500))
        assert stopped.stop_reason is StopReason.PROVIDER_FAILURE
        choice, after = await grant(h, ChoiceKind.EXTEND, "60 min")
        assert (choice.transport_failures, choice.rate_limited) == (2, 0)
        assert (after.max_transport_failures, after.max_rate_limited) == (5, 3)
        await h.run()
        assert (await h.op()).transport_failures_used == 5
        choice, after = await grant(h, ChoiceKind.EXTEND, "15 min")
        assert after.max_transport_failures == 6


@pytest.mark.rule("E2", "T7", "T8")
async def test_a_rate_limited_stop_is_extended_not_before_the_cool_down_ends(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        stopped = await stop(
            h, refuses(429), refuses(429), refuses(429, {"Retry-After": "200"}), DONE, credential="key"
        )
        assert (stopped.stop_reason, stopped.rate_limited_used) == (StopReason.RATE_LIMITED, 3)
        shown = await h.card()
        early = pick(shown, ChoiceKind.EXTEND)
        assert early.unavailable is not None
        assert "cool-down" in early.unavailable
        h.clock.jump(201 * SECOND)
        _, after = await grant(h, ChoiceKind.EXTEND, "15 min")
        assert after.max_rate_limited == 4
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("T5", "E4")
async def test_the_first_check_after_a_grant_waits_for_open_guidance(tmp_path: Path) -> None:
    async with house(tmp_path, TWO_CHECKS) as h:
        await stop(h, RUNNING, says("running", headers={"Retry-After": "300"}), DONE)
        answered = h.bank.status_seen[-1].at
        _, after = await grant(h, ChoiceKind.EXTEND, "15 min")
        assert after.next_poll_at is not None
        assert after.next_poll_at >= answered + 300 * SECOND
        await h.run()
        assert h.bank.status_seen[-1].at >= answered + 300 * SECOND


@pytest.mark.rule("B5", "E3")
async def test_an_extension_past_usefulness_moves_it_and_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        useful = h.clock.now().wall + 3 * MINUTE
        stopped = await stop(h, RUNNING, useful_until=useful, max_status_requests=100)
        assert stopped.stop_reason is StopReason.USEFULNESS_ENDED
        choice, after = await grant(h, ChoiceKind.EXTEND, "15 min")
        assert after.useful_until == after.deadline_at
        assert any("useful_until" in warning for warning in choice.warnings)


@pytest.mark.rule("E2", "X6")
async def test_an_ambiguous_delivery_offers_extend_cancel_and_resubmit(tmp_path: Path) -> None:
    async with house(tmp_path, ('total = "2s"', 'total = "1s"')) as h:
        h.bank.gate = asyncio.Event()
        given = {"params": {"input": "a"}, "idempotency_key": "k1", "max_transport_failures": 1}
        stopped = await stop(h, RUNNING, **given)
        assert stopped.stop_reason is StopReason.DELIVERY_AMBIGUOUS
        assert kinds(await h.card()) == ["extend", "extend", "cancel_at_provider", "resubmit"]


# --- credentials ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("E2", "G2", "K3")
async def test_another_credential_takes_over_and_only_those_of_the_origin_are_offered(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.credential("second", "the-second-secret")
        await h.credential("stray", origins=["https://elsewhere.example.test"])
        h.bank.by_secret = lambda seen: None if seen == "Bearer the-second-secret" else refuses(403)
        stopped = await stop(h, RUNNING, DONE, credential="key")
        assert stopped.stop_reason is StopReason.AUTHORIZATION_DENIED
        shown = await h.card()
        offered = [c.credential for c in shown.choices if c.kind is ChoiceKind.USE_OTHER_CREDENTIAL]
        assert offered == ["second"]
        _, after = await grant(h, ChoiceKind.USE_OTHER_CREDENTIAL)
        assert (after.credential, after.submitted.account) == ("second", "acct")
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED


# --- close and reject -------------------------------------------------------------------------------------------------


@pytest.mark.rule("E8", "E2")
async def test_close_ends_the_watch_of_an_escalated_wait_and_keeps_the_fate_of_a_failed_job(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await stop(h, STRANGE)
        _, after = await grant(h, ChoiceKind.CLOSE)
        assert after.status is Status.CLOSED
        await h.submit("job-2", says("failed"))
        await h.run()
        assert kinds(await h.card("op-job-2")) == []
        await h.choose(ChoiceKind.CLOSE, "op-job-2")
        assert (await h.op("op-job-2")).status is Status.FAILED
        assert await h.core.store.questions() == ()
        await h.run()
        assert len(h.bank.status_seen) == 2


@pytest.mark.rule("E2", "E7")
async def test_a_rejected_request_for_more_leaves_the_wait_as_it_was(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, RUNNING, DONE)
        await h.run(11 * SECOND)
        before = await h.op()
        await h.core.actions.request_extension("op-job-1", 60, 8, "slow today", "agent")
        assert (await h.card()).choices[0].label == "extend 60 min / 8 checks"
        _, after = await grant(h, ChoiceKind.REJECT)
        assert (after.status, after.next_poll_at, after.extensions_used) == (Status.WAITING, before.next_poll_at, 0)
        assert len(await h.events(EventName.REJECTED)) == 1
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("E2", "E7")
async def test_a_granted_request_for_more_gives_exactly_the_size_asked_for(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        await h.run(11 * SECOND)
        before = await h.op()
        await h.core.actions.request_extension("op-job-1", 60, 8, "slow today", "agent")
        _, after = await grant(h, ChoiceKind.EXTEND)
        assert after.deadline_at == before.deadline_at + 60 * MINUTE
        assert after.max_status_requests == before.max_status_requests + 8
