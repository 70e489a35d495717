"""Choices about what an answer means: check once, hold, adopt the changed contract, accept an unvalidated result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pollcore.facts import (
    MINUTE,
    SECOND,
    ChoiceKind,
    Refused,
    Stale,
    Status,
    StopDetail,
    StopReason,
)
from tests.actions.stops import grant, stop
from tests.controller.bank import DONE, RUNNING, refuses, says
from tests.controller.house import OPERATOR, house, kinds, pick

STRANGE = says("strange")


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
