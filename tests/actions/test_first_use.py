"""The first use of a contract that does not prove that asking is read-only: one question, one answer for its digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from pollcore.actions import first_use
from pollcore.facts import (
    ChoiceKind,
    ContractUse,
    EventName,
    Operation,
    Refused,
    Stale,
    Status,
    StopReason,
)
from pollcore.ports import Write
from tests.controller.bank import DONE, RUNNING, says
from tests.controller.house import KEYS, OPERATOR, House, house, kinds, pick

UNTRIED = ('tested_live = "the bank of these tests"\n', "")
NEVER = ('tested_live = "the bank of these tests"', 'tested_live = "never"')
UNDECLARED = ('observation = "read_only"\nevidence = "the tests of this project"\n', "")
READ_ONLY, ACTION = "it is read-only", "as an action"


async def use(h: House, operation: Operation) -> ContractUse | None:
    """What is stored of the operation's contract."""
    digest = operation.contract_digest
    return (await h.core.store.contracts_known((digest,)))[digest].use


async def cause(h: House) -> str:
    """Of the one group that is asked."""
    (group,) = await h.core.actions.cards()
    return group.cause


@pytest.mark.rule("X7", "O1")
@pytest.mark.parametrize("change", [UNTRIED, NEVER, UNDECLARED])
async def test_nothing_is_sent_before_an_operator_said_what_asking_is(change: tuple[str, str], tmp_path: Path) -> None:
    async with house(tmp_path, change) as h:
        asked = await h.submit("job-1", RUNNING)
        assert (asked.status, asked.status_requests_used) == (Status.AWAITING_APPROVAL, 0)
        await h.run(10 * 60_000)
        question = await h.question()
        assert question is not None
        assert (question.reason, question.cause) == (StopReason.FIRST_USE, f"first_use:{asked.contract_digest}")
        assert kinds(await h.card()) == ["approve", "approve", "reject"]
        assert h.bank.requests == []


@pytest.mark.rule("X7")
async def test_a_contract_that_was_tried_and_says_what_asking_is_asks_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        assert await h.core.store.questions(open_only=False) == ()


@pytest.mark.rule("X7", "X2")
async def test_the_deadline_runs_while_the_first_use_is_undecided(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        await h.submit("job-1", RUNNING)
        h.clock.jump(41 * 60_000)
        await h.run(60_000)
        assert (await h.op()).stop_reason is StopReason.DEADLINE_EXCEEDED
        question = await h.question()
        assert question is not None
        assert question.reason is StopReason.DEADLINE_EXCEEDED
        assert h.bank.requests == []


@pytest.mark.rule("X7", "E3")
async def test_the_card_tells_what_the_contract_states_and_what_the_request_is(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        await h.submit("job-1", RUNNING)
        text = (await h.card()).card.text()
        assert f"Status request: GET {h.bank.url}/v1/jobs/job-1" in text
        assert "Declared: read_only" in text
        assert "Evidence: the tests of this project" in text
        assert "Tried live: not that its author knows" in text
        shown = await h.core.actions.group(await cause(h))
        group = "\n".join(map(str, shown.card.lines))
        assert "Evidence: the tests of this project" in group


@pytest.mark.rule("X7", "G4", "A1")
async def test_read_only_lets_the_wait_go_on_and_no_later_submission_asks(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        asked = await h.submit("job-1", RUNNING, DONE)
        after = await h.choose(ChoiceKind.APPROVE, label=READ_ONLY)
        assert after.status is Status.WAITING
        later = await h.submit("job-2", DONE)
        assert later.status is Status.WAITING
        async with h.open() as other:
            assert await other.snapshots.use(other.contracts.find("acme")) is ContractUse.READ_ONLY
        await h.run()
        assert [(await h.op(f"op-{job}")).status for job in ("job-1", "job-2")] == [Status.SUCCEEDED] * 2
        assert len(await h.core.store.questions(open_only=False)) == 1
        known = (await h.core.store.contracts_known((asked.contract_digest,)))[asked.contract_digest]
        assert (known.use, known.decided_by) == (ContractUse.READ_ONLY, str(OPERATOR))
        (told,) = await h.events(EventName.CONTRACT_DECIDED)
        assert (told.text, told.decision, told.operator) == (asked.contract_digest, "read_only", str(OPERATOR))


@pytest.mark.rule("X7", "G7")
async def test_as_an_action_each_request_still_asks(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        await h.submit("job-1", RUNNING)
        after = await h.choose(ChoiceKind.APPROVE, label=ACTION)
        assert await use(h, after) is ContractUse.ACTION
        await h.run(10 * 60_000)
        question = await h.question()
        assert question is not None
        assert question.reason is StopReason.CALL_APPROVAL
        assert h.bank.requests == []


@pytest.mark.rule("X7", "G5")
async def test_a_reject_closes_the_operation_and_decides_nothing_of_the_contract(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        await h.submit("job-1", RUNNING)
        closed = await h.core.actions.lower("op-job-1", ChoiceKind.REJECT, "not ours", "agent")
        assert closed.status is Status.CLOSED
        assert await use(h, closed) is None
        again = await h.submit("job-2", RUNNING)
        assert again.status is Status.AWAITING_APPROVAL
        await h.run()
        assert h.bank.requests == []


@pytest.mark.rule("G5")
async def test_no_one_but_the_console_can_say_what_asking_is(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        asked = await h.submit("job-1", RUNNING)
        with pytest.raises(Refused):
            await h.core.actions.lower("op-job-1", ChoiceKind.APPROVE, "please", "agent")
        assert await use(h, asked) is None


@pytest.mark.rule("X7", "E10")
@pytest.mark.parametrize("way", ["the group", "one of them"])
async def test_one_answer_is_the_answer_for_every_operation_under_the_digest(way: str, tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        jobs = [f"job-{n}" for n in range(5)]
        for job in jobs:
            await h.submit(job, DONE)
        if way == "the group":
            shown = await h.core.actions.group(await cause(h))
            await h.submit("job-late", DONE)
            choice = next(c for c in shown.card.choices if READ_ONLY in c.label)
            outcome = await h.core.actions.decide_group(shown.cause, choice.key, shown.digest, KEYS, OPERATOR)
            assert (len(outcome.done), outcome.refused) == (5, ())
            jobs.append("job-late")
        else:
            await h.choose(ChoiceKind.APPROVE, "op-job-3", READ_ONLY)
        assert await h.core.store.asked() == ()
        assert len(await h.events(EventName.CONTRACT_DECIDED)) == 1
        await h.run()
        assert {(await h.op(f"op-{job}")).status for job in jobs} == {Status.SUCCEEDED}


@pytest.mark.rule("X7", "E7")
async def test_after_a_crash_between_two_operations_the_rest_is_asked_with_the_one_answer_left(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        await h.submit("job-1", DONE)
        await h.submit("job-2", DONE)
        with pytest.MonkeyPatch.context() as patched:

            async def dies(*_: object) -> int:
                raise RuntimeError("killed")

            patched.setattr(first_use, "settle", dies)
            with pytest.raises(RuntimeError, match="killed"):
                await h.choose(ChoiceKind.APPROVE, label=ACTION)
        shown = await h.card("op-job-2")
        assert [c.unavailable is None for c in shown.choices if c.kind is ChoiceKind.APPROVE] == [False, True]
        with pytest.raises(Refused, match="decided once"):
            await h.press(shown, pick(shown, ChoiceKind.APPROVE, READ_ONLY))
        await h.press(shown, pick(shown, ChoiceKind.APPROVE, ACTION))
        assert await use(h, await h.op()) is ContractUse.ACTION


@pytest.mark.rule("X7", "O1")
async def test_the_question_survives_a_restart_and_is_answered_there(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        await h.submit("job-1", DONE)
        before = await h.question()
    again = House(tmp_path / "home", 2)
    again.bank.port, again.clock, again.keyring = h.bank.port, h.clock, h.keyring
    async with again.open() as again.core:
        assert await again.question() == before
        await again.choose(ChoiceKind.APPROVE, label=READ_ONLY)
        assert (await again.op()).status is Status.WAITING


@pytest.mark.rule("A4", "X7")
async def test_what_cannot_be_anchored_decides_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        asked = await h.submit("job-1", DONE)
        shown = await h.card()
        h.keyring.locked = True
        with pytest.raises(Refused) as refused:
            await h.press(shown, pick(shown, ChoiceKind.APPROVE, READ_ONLY))
        assert refused.value.code == "unanchored"
        h.keyring.locked = False
        assert await use(h, asked) is None
        assert (await h.op()).status is Status.AWAITING_APPROVAL


@pytest.mark.rule("X7", "G2")
async def test_what_asking_is_cannot_be_stored_without_a_grant(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h:
        asked = await h.submit("job-1", DONE)
        write = Write(after=asked, fence_change=asked.change, contract_use=ContractUse.READ_ONLY)
        with pytest.raises(Stale, match="by a grant alone"):
            await h.core.store.commit(h.clock.now(), (write,))
        assert await use(h, asked) is None


@pytest.mark.rule("X7", "S8")
async def test_a_contract_that_is_adopted_asks_before_it_sends(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", says("compiling"), RUNNING)
        await h.run(60_000)
        h.write_contract(UNTRIED, ('"queued", "running"', '"queued", "running", "compiling"'))
        await h.choose(ChoiceKind.ADOPT_CONTRACT)
        sent = len(h.bank.requests)
        await h.run(60_000)
        question = await h.question()
        assert question is not None
        assert question.reason is StopReason.FIRST_USE
        assert len(h.bank.requests) == sent
        await h.choose(ChoiceKind.APPROVE, label=READ_ONLY)
        await h.run(60_000)
        assert len(h.bank.requests) > sent


@pytest.mark.rule("X7")
async def test_an_answer_that_comes_while_a_submission_is_stored_counts_for_it(tmp_path: Path) -> None:
    async with house(tmp_path, UNTRIED) as h, h.open() as other:
        await h.submit("job-1", DONE)
        real = first_use.ask

        async def ask(*arguments: object) -> object:
            asked = await real(*arguments)  # type: ignore[arg-type]
            await h.choose(ChoiceKind.APPROVE, label=READ_ONLY)
            return asked

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(first_use, "ask", ask)
            h.core, mine = other, h.core
            late = await h.submit("job-2", DONE)
            h.core = mine
        assert late.status is Status.WAITING
        assert await h.core.store.asked() == ()


@pytest.mark.rule("G5")
async def test_a_contract_file_is_marked_until_an_operator_has_seen_it(tmp_path: Path) -> None:
    mark = "Contract file: new or changed, no operator has looked at it"
    async with house(tmp_path, UNTRIED) as h:
        asked = await h.submit("job-1", RUNNING)
        assert mark in (await h.card()).card.text()
        assert await h.core.actions.contract_seen(asked.contract_digest)
        assert not await h.core.actions.contract_seen(asked.contract_digest)
        assert mark not in (await h.card()).card.text()
        (told,) = await h.events(EventName.CONTRACT_SEEN)
        assert told.detail == asked.contract_digest
        assert told.operator
        h.write_contract(UNTRIED, ('["failed"]', '["failed", "broken"]'))
        assert mark in (await h.card()).card.text()


@pytest.mark.rule("G5", "X7")
async def test_a_contract_whose_first_use_was_approved_was_looked_at_by_that_operator(tmp_path: Path) -> None:
    unseen = "Contract file: new or changed, no operator has looked at it"
    async with house(tmp_path, UNTRIED) as h:
        asked = await h.submit("job-1", RUNNING)
        assert unseen in (await h.card()).card.text()
        await h.choose(ChoiceKind.APPROVE, label=ACTION)
        await h.run(10 * 60_000)
        question = await h.question()
        assert question is not None
        assert question.reason is StopReason.CALL_APPROVAL
        assert unseen not in (await h.card()).card.text()
        known = (await h.core.store.contracts_known((asked.contract_digest,)))[asked.contract_digest]
        assert (known.seen_at, known.seen_by) == (known.decided_at, str(OPERATOR))
