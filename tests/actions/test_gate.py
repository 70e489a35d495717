"""The gate: one decision, bound to what was shown; nothing asks inside the limits; nobody else gives authority."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from pollcore.facts import (
    LOWERS_AUTHORITY,
    MINUTE,
    ChoiceKind,
    EventName,
    Refused,
    Stale,
    Status,
    StopReason,
)
from tests.controller.bank import DONE, RUNNING, says
from tests.controller.house import KEYS, OPERATOR, House, changed_as_shown, house, kinds, pick, until

SHORT = ("max_status_requests = 12", "max_status_requests = 2")


async def spent(h: House) -> None:
    """`op-job-1` has used up its two requests."""
    await h.submit("job-1", RUNNING)
    await h.run()
    assert (await h.op()).stop_reason is StopReason.REQUEST_BUDGET_EXHAUSTED


@pytest.mark.rule("G1")
async def test_inside_its_limits_nothing_asks(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", *[RUNNING] * 9, DONE, credential="key")
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        assert await h.core.store.questions(open_only=False) == ()
        told = {event.event for event in await h.events()}
        assert told <= {EventName.SUBMITTED, EventName.SENT, EventName.POLLED, EventName.CREDENTIAL_CHANGED}


@pytest.mark.rule("G5", "G3")
@pytest.mark.parametrize("kind", sorted(set(ChoiceKind) - LOWERS_AUTHORITY - {ChoiceKind.END_HOLD}))
async def test_what_raises_authority_is_refused_to_everyone_but_the_console(kind: ChoiceKind, tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await spent(h)
        before = await h.op()
        with pytest.raises(Refused):
            await h.core.actions.lower("op-job-1", kind, "please", "agent")
        assert await h.op() == before
        assert await h.question() is not None


@pytest.mark.rule("E7", "G4", "G8")
async def test_a_question_takes_one_decision_and_the_second_is_stale_and_told(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await spent(h)
        shown = await h.card()
        extend = pick(shown, ChoiceKind.EXTEND)
        after = await h.press(shown, extend)
        with pytest.raises(Stale):
            await h.press(shown, extend)
        assert await h.op() == msgspec.structs.replace(after, change=(await h.op()).change)
        assert len(await h.events(EventName.GRANTED)) == 1
        (told,) = await h.events(EventName.GRANT_REFUSED)
        assert told.operator == str(OPERATOR)


@pytest.mark.rule("E7", "G4")
async def test_of_two_decisions_at_the_same_moment_one_holds(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h, h.open() as other:
        await spent(h)
        shown = await h.card()
        extend, close = pick(shown, ChoiceKind.EXTEND), pick(shown, ChoiceKind.CLOSE)
        question = shown.question.escalation_id
        both = await asyncio.gather(
            h.core.actions.decide("op-job-1", question, extend.key, shown.digest, KEYS, OPERATOR),
            other.actions.decide("op-job-1", question, close.key, shown.digest, KEYS, OPERATOR),
            return_exceptions=True,
        )
        lost = [one for one in both if isinstance(one, BaseException)]
        assert len(lost) == 1
        # which of the two words it is depends on how far the loser had come
        assert isinstance(lost[0], Stale | Refused)
        told = await h.events()
        assert sum(event.event in (EventName.GRANTED, EventName.CLOSED) for event in told) == 1


@pytest.mark.rule("G4", "G8")
async def test_a_digest_of_something_else_is_refused_and_told(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await spent(h)
        before, shown = await h.op(), await h.card()
        key = pick(shown, ChoiceKind.EXTEND).key
        with pytest.raises(Stale):
            await h.core.actions.decide("op-job-1", shown.question.escalation_id, key, "0" * 64, KEYS, OPERATOR)
        with pytest.raises(Stale):
            await h.core.actions.decide("op-job-1", "esc-other", key, shown.digest, KEYS, OPERATOR)
        assert msgspec.structs.replace(await h.op(), change=0) == msgspec.structs.replace(before, change=0)
        assert len(await h.events(EventName.GRANT_REFUSED)) == 2


@pytest.mark.rule("G4")
async def test_a_choice_that_is_not_there_or_cannot_be_chosen_does_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await spent(h)
        shown = await h.card()
        inspect = pick(shown, ChoiceKind.INSPECT)
        for choice in (inspect, msgspec.structs.replace(inspect, key="9"), msgspec.structs.replace(inspect, key="")):
            with pytest.raises(Refused):
                await h.press(shown, choice)
        assert await h.question() == shown.question


@pytest.mark.rule("G4", "E7")
async def test_a_card_drawn_before_a_limit_changed_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        await h.run(30_000)
        await h.core.actions.open_question("op-job-1", OPERATOR)
        shown = await h.card()
        await h.press(shown, pick(shown, ChoiceKind.EXTEND))
        await h.core.actions.open_question("op-job-1", OPERATOR)
        before = await h.op()
        with pytest.raises(Stale):
            await h.press(shown, pick(shown, ChoiceKind.EXTEND))
        after = await h.op()
        assert (after.version, after.max_status_requests) == (before.version, before.max_status_requests)


@pytest.mark.rule("G4", "E7")
async def test_a_poll_between_drawing_and_deciding_does_not_spoil_the_card_of_a_running_wait(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, says("queued"), RUNNING)
        await h.run(11_000)
        await h.core.actions.open_question("op-job-1", OPERATOR)
        shown = await h.card()
        await h.run(25_000)
        polled = await h.op()
        assert polled.status_requests_used > shown.operation.status_requests_used
        extend = pick(shown, ChoiceKind.EXTEND)
        after = await h.press(shown, extend)
        changed_as_shown(polled, extend, after)


@pytest.mark.rule("G4", "E7")
async def test_a_decision_while_a_request_is_out_holds_and_so_does_its_answer(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await h.core.actions.open_question("op-job-1", OPERATOR)
        shown = await h.card()
        h.bank.gate, stop = asyncio.Event(), asyncio.Event()
        h.clock.jump(11_000)
        with h.worker() as controller:
            running = asyncio.create_task(controller.run(stop, watch=False))
            await until(lambda: len(h.bank.status_seen) == 1, "it is out")
            await h.press(shown, pick(shown, ChoiceKind.EXTEND))
            h.bank.gate.set()
            await until(lambda: controller.report.recorded == 1, "it is recorded")
            stop.set()
            await asyncio.wait_for(running, 60)
        op = await h.op()
        assert op.max_status_requests == shown.operation.max_status_requests + 4
        assert (op.extensions_used, op.completed_polls) == (1, op.status_requests_used)
        assert op.completed_polls >= 1


@pytest.mark.rule("E7", "G4")
async def test_a_deadline_that_passes_under_an_open_card_makes_it_another_card(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", says("strange"))
        await h.run()
        shown = await h.card()
        assert "hold" in kinds(shown)
        h.clock.jump(41 * MINUTE)
        await h.run(30_000)
        with pytest.raises(Stale):
            await h.press(shown, pick(shown, ChoiceKind.CHECK_ONCE))
        fresh = await h.card()
        assert "hold" not in kinds(fresh)
        again = pick(fresh, ChoiceKind.CHECK_ONCE)
        assert (again.minutes, again.checks) == (15, 4)
        before = await h.op()
        assert before.version > shown.operation.version
        changed_as_shown(before, again, await h.press(fresh, again))


# --- questions on a running wait --------------------------------------------------------------------------------------


@pytest.mark.rule("E7", "G5")
async def test_an_agents_question_leaves_the_wait_going_and_ends_with_its_success(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, RUNNING, DONE)
        await h.run(11_000)
        before = await h.op()
        await h.core.actions.request_extension("op-job-1", 15, 4, "slow today", "agent")
        asked = await h.op()
        limits = ("deadline_at", "max_status_requests", "next_poll_at", "status")
        assert [getattr(asked, name) for name in limits] == [getattr(before, name) for name in limits]
        assert kinds(await h.card()) == ["extend", "reject", "cancel_at_provider"]
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        assert await h.question() is None


@pytest.mark.rule("E7")
@pytest.mark.parametrize("asker", ["agent", "operator"])
async def test_a_real_stop_takes_an_open_question_over(asker: str, tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, says("strange"))
        await h.run(11_000)
        if asker == "agent":
            first = await h.core.actions.request_extension("op-job-1", 15, 4, "slow today", "agent")
        else:
            first = await h.core.actions.open_question("op-job-1", OPERATOR)
        await h.run()
        all_of_it = await h.core.store.questions("op-job-1", open_only=False)
        assert len(all_of_it) == 2
        now_open = await h.question()
        assert now_open is not None
        assert now_open.reason is StopReason.UNKNOWN_STATE
        (old,) = [one for one in all_of_it if one.escalation_id == first.escalation_id]
        assert old.decision == "superseded"


@pytest.mark.rule("G5", "E4", "E7")
async def test_an_agent_may_ask_only_for_a_size_of_the_contract_and_only_while_nothing_else_is_asked(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, ("extend = [", "max_extensions = 1\nextend = [")) as h:
        await h.submit("job-1", RUNNING)
        ask = h.core.actions.request_extension
        with pytest.raises(Refused, match="15 min / 4 checks"):
            await ask("op-job-1", 20, 4, "x", "agent")
        await ask("op-job-1", 15, 4, "x", "agent")
        with pytest.raises(Refused):
            await ask("op-job-1", 15, 4, "x", "agent")
        await h.choose(ChoiceKind.EXTEND)
        with pytest.raises(Refused, match="max_extensions"):
            await ask("op-job-1", 15, 4, "x", "agent")
        await h.run()
        with pytest.raises(Refused):
            await ask("op-job-1", 15, 4, "x", "agent")


@pytest.mark.rule("A1", "G4")
async def test_a_decision_tells_who_saw_what_and_what_it_gave(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await spent(h)
        shown = await h.card()
        await h.press(shown, pick(shown, ChoiceKind.EXTEND), "the export is nearly done")
        (told,) = await h.events(EventName.GRANTED)
        assert (told.operator, told.text) == (str(OPERATOR), "the export is nearly done")
        assert told.reason == "request_budget_exhausted"
        assert f"card {shown.digest[:16]}" in told.notes
        assert "guard: kind test" in told.notes
        assert any(note.startswith("status_requests 2 -> 6") for note in told.notes)
