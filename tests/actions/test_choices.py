"""Every choice of the table of group E on a real stop: each limit as shown, and what follows at the provider."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pollcore.facts import (
    MINUTE,
    SECOND,
    Choice,
    ChoiceKind,
    DelaySource,
    EventName,
    Operation,
    Refused,
    Stale,
    Status,
    StopDetail,
    StopReason,
)
from tests.controller.bank import DONE, RUNNING, refuses, says
from tests.controller.house import OPERATOR, House, changed_as_shown, house, kinds, pick

TWO_CHECKS = ("max_status_requests = 12", "max_status_requests = 2")
STRANGE = says("strange")


async def stop(h: House, *answers: dict[str, Any], **spec: Any) -> Operation:
    """`op-job-1` has stopped after *answers*."""
    await h.submit("job-1", *answers, **spec)
    await h.run()
    return await h.op()


async def grant(h: House, kind: ChoiceKind, label: str = "") -> tuple[Choice, Operation]:
    """Decide; the limits are what the card said."""
    before, shown = await h.op(), await h.card()
    choice = pick(shown, kind, label)
    await h.press(shown, choice)
    after = await h.op()
    changed_as_shown(before, choice, after)
    return choice, after


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


# --- what an answer means ---------------------------------------------------------------------------------------------


@pytest.mark.rule("E2", "S2")
async def test_check_once_goes_on_with_a_known_answer(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        stopped = await stop(h, STRANGE, RUNNING, DONE)
        assert stopped.stop_reason is StopReason.UNKNOWN_STATE
        assert kinds(await h.card()) == ["check_once", "hold", "cancel_at_provider"]
        await grant(h, ChoiceKind.CHECK_ONCE)
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        assert len(h.bank.status_seen) == 3


@pytest.mark.rule("E2", "S2")
@pytest.mark.parametrize("answer", [STRANGE, says("other"), refuses(500), refuses(418)])
async def test_check_once_sends_one_request_and_stops_again_with_an_unknown_answer(
    answer: dict[str, Any], tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        await stop(h, STRANGE, answer, RUNNING)
        first = await h.question()
        await grant(h, ChoiceKind.CHECK_ONCE)
        await h.run()
        op, again = await h.op(), await h.question()
        assert (op.status, op.status_requests_used, len(h.bank.status_seen)) == (Status.ESCALATED, 2, 2)
        assert first is not None
        assert again is not None
        assert again.escalation_id != first.escalation_id


@pytest.mark.rule("E2", "X3")
async def test_check_once_with_the_last_request_carries_a_size_that_is_listed(tmp_path: Path) -> None:
    async with house(tmp_path, ("max_status_requests = 12", "max_status_requests = 1")) as h:
        await stop(h, STRANGE, RUNNING)
        choice, after = await grant(h, ChoiceKind.CHECK_ONCE)
        assert (choice.minutes, choice.checks, after.extensions_used) == (15, 4, 1)


@pytest.mark.rule("E2", "E7")
@pytest.mark.parametrize("state", ["strange", "paused"])
async def test_a_held_stop_asks_nothing_of_the_provider_and_its_question_returns(state: str, tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        stopped = await stop(h, says(state))
        _, held = await grant(h, ChoiceKind.HOLD)
        assert (held.status, held.hold_until) == (Status.HELD, h.clock.now().wall + 30 * MINUTE)
        assert kinds(await h.card()) == ["end_hold", "cancel_at_provider"]
        await h.run()
        op, question = await h.op(), await h.question()
        assert question is not None
        assert (op.status, question.reason) == (Status.ESCALATED, stopped.stop_reason)
        assert len(h.bank.status_seen) == 1
        assert h.clock.now().wall >= held.hold_until


@pytest.mark.rule("E2", "E7")
async def test_a_held_wait_goes_on_by_itself_inside_its_limits(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await h.run(11 * SECOND)
        await h.core.actions.open_question("op-job-1", OPERATOR)
        assert kinds(await h.card()) == ["extend", "extend", "hold", "cancel_at_provider"]
        _, held = await grant(h, ChoiceKind.HOLD)
        await h.run()
        op = await h.op()
        assert (op.status, await h.question()) == (Status.SUCCEEDED, None)
        assert held.hold_until is not None
        assert h.bank.status_seen[1].at >= held.hold_until
        assert len(h.bank.status_seen) == 2


@pytest.mark.rule("E2")
async def test_end_hold_ends_it_early_and_three_holds_are_the_most(tmp_path: Path) -> None:
    async with house(tmp_path, ('deadline = "40m"', 'deadline = "4h"')) as h:
        await stop(h, says("paused"))
        for _ in range(3):
            await grant(h, ChoiceKind.HOLD)
            _, after = await grant(h, ChoiceKind.END_HOLD)
            assert after.status is Status.ESCALATED
        shown = await h.card()
        hold = pick(shown, ChoiceKind.HOLD)
        assert hold.unavailable is not None
        with pytest.raises(Refused):
            await h.press(shown, hold)


@pytest.mark.rule("E2", "X2")
async def test_a_hold_never_lasts_past_the_deadline(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        stopped = await stop(h, says("paused"))
        h.clock.jump(30 * MINUTE)
        _, held = await grant(h, ChoiceKind.HOLD)
        assert held.hold_until == stopped.deadline_at
        await h.run()
        assert (await h.op()).stop_reason is StopReason.DEADLINE_EXCEEDED


# --- a contract that has changed --------------------------------------------------------------------------------------


@pytest.mark.rule("S8", "E2")
async def test_an_edited_contract_does_not_reach_a_running_operation(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, says("strange"))
        before = await h.op()
        h.write_contract(('waiting = ["queued", "running"]', 'waiting = ["queued", "running", "strange"]'))
        await h.run()
        op = await h.op()
        assert (op.stop_reason, op.contract_digest) == (StopReason.UNKNOWN_STATE, before.contract_digest)
        assert "adopt_contract" in kinds(await h.card())


@pytest.mark.rule("S8", "E2", "G2")
@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (('"running"]', '"running", "strange"]'), Status.WAITING, None),
        (('succeeded = ["done"]', 'succeeded = ["done", "strange"]'), Status.SUCCEEDED, None),
        (('failed = ["failed"]', 'failed = ["failed", "strange"]'), Status.FAILED, StopReason.JOB_FAILED),
        (('expired = ["expired"]', 'expired = ["expired", "strange"]'), Status.EXPIRED, StopReason.JOB_EXPIRED),
        (('needs_human = ["paused"]', 'needs_human = ["strange"]'), Status.ESCALATED, StopReason.NEEDS_HUMAN),
    ],
)
async def test_an_adopted_contract_reads_the_stored_answer_again_without_a_request(
    change: tuple[str, str], status: Status, reason: StopReason | None, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        await stop(h, says("strange", result={"url": "https://files.example.test/r/1"}), DONE)
        assert "adopt_contract" not in kinds(await h.card())
        h.write_contract(change)
        _, after = await grant(h, ChoiceKind.ADOPT_CONTRACT)
        assert (after.status, after.stop_reason) == (status, reason)
        assert len(h.bank.status_seen) == 1
        if status is Status.SUCCEEDED:
            assert after.result is not None
            assert after.result.fields
        if status is Status.WAITING:
            await h.run()
            assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("S8", "E2")
async def test_a_changed_contract_that_does_not_know_the_state_is_not_offered(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await stop(h, STRANGE)
        h.write_contract(('expired = ["expired"]', 'expired = ["expired", "gone"]'))
        assert kinds(await h.card()) == ["check_once", "hold", "cancel_at_provider"]


@pytest.mark.rule("S8", "G4", "G2")
async def test_a_contract_that_changed_again_after_the_card_was_drawn_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        before = await stop(h, STRANGE)
        h.write_contract(('"running"]', '"running", "strange"]'))
        shown = await h.card()
        h.write_contract(('"running"]', '"running", "strange", "more"]'))
        with pytest.raises(Stale):
            await h.press(shown, pick(shown, ChoiceKind.ADOPT_CONTRACT))
        assert (await h.op()).contract_digest == before.contract_digest


@pytest.mark.rule("S8", "E2")
async def test_a_running_wait_adopts_a_changed_contract_by_the_operators_question(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, says("finished", result={"url": "https://files.example.test/r"}))
        await h.run(11 * SECOND)
        h.write_contract(('succeeded = ["done"]', 'succeeded = ["done", "finished"]'))
        await h.core.actions.open_question("op-job-1", OPERATOR)
        _, after = await grant(h, ChoiceKind.ADOPT_CONTRACT)
        assert after.status is Status.WAITING
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("E2", "S4")
async def test_an_unvalidated_result_is_accepted_as_what_it_is(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        stopped = await stop(h, says("done", result={"url": "not a link"}))
        assert stopped.stop_reason is StopReason.INTEGRATION_FAILURE
        assert "accept_unvalidated_result" in kinds(await h.card())
        _, after = await grant(h, ChoiceKind.ACCEPT_UNVALIDATED_RESULT)
        assert after.status is Status.SUCCEEDED
        assert after.result is not None
        assert after.result.validated is False
        assert (await h.core.actions.result("op-job-1", False, "me"))["validated"] is False
        assert await h.question() is None


@pytest.mark.rule("E2", "S4")
async def test_a_success_without_any_result_offers_nothing_to_accept(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        stopped = await stop(h, says("done"))
        assert stopped.stop_detail is StopDetail.SUCCEEDED_WITHOUT_RESULT
        assert "accept_unvalidated_result" not in kinds(await h.card())


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
