"""Leave for each call and for a session: asked at its time, bound to one request, used once, inside its bounds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollcore.actions import perform
from pollcore.adapters.credential_ops import change_mode
from pollcore.assembly import Core
from pollcore.contract import requests
from pollcore.escalation import call_digest
from pollcore.escalation.approvals import CANCEL, FETCH
from pollcore.facts import (
    MINUTE,
    BootMs,
    ChoiceKind,
    CredentialMode,
    EventName,
    Instant,
    Moment,
    Operation,
    Refused,
    Session,
    Stale,
    Status,
    StopReason,
)
from pollcore.ports import Turn, Worker, Write
from tests.controller.bank import DONE, RUNNING
from tests.controller.house import LIMIT_S, SECRET, House, house, kinds, pick

PER_CALL = ('kind = "bearer"', 'kind = "bearer"\nleast_mode = "per_call"')
PER_SESSION = (
    'kind = "bearer"',
    'kind = "bearer"\nleast_mode = "per_session"\nsession_minutes = 30\nsession_calls = 3',
)
ACTION = ('observation = "read_only"\nevidence = "the tests of this project"', 'observation = "action"')
BEAT_MS = 10_000
CALL, SESSION = StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL


def console(now: Moment, started: Instant) -> Worker:
    """The heartbeat of a console that was started then."""
    return Worker(
        owner=f"console-{started}",
        pid=1,
        host="here",
        kind="console",
        started_at=started,
        beat_at=now.wall,
        beat_boot=now.boot,
        boot_id=now.boot_id,
    )


async def with_console(h: House, ms: int) -> None:
    """*ms* pass while a console is open and a run works."""
    started = h.clock.now().wall
    for _ in range(ms // BEAT_MS):
        now = h.clock.now()
        await h.core.store.turn(Turn(now=now, owner="console", beat=console(now, started)))
        await run_for(h, BEAT_MS)


async def run_for(h: House, ms: int, core: Core | None = None) -> None:
    """The loop for so long, whether or not anything waits."""
    with h.worker(core) as controller:
        async with asyncio.timeout(LIMIT_S):
            await controller.run(asyncio.Event(), for_ms=ms, watch=False)


async def asked(h: House, reason: StopReason, operation_id: str = "op-job-1") -> Operation:
    op, question = await h.op(operation_id), await h.question(operation_id)
    assert question is not None
    assert (op.status, question.reason) == (Status.AWAITING_APPROVAL, reason)
    return op


@pytest.mark.rule("G6", "G7", "G2", "O7")
async def test_each_request_of_a_per_call_credential_is_asked_at_its_time_and_sent_once(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", RUNNING, DONE, credential="key")
        for number in (1, 2):
            due = (await h.op()).next_poll_at
            await h.run()
            op = await asked(h, CALL)
            assert due is not None
            assert h.clock.now().wall >= due
            assert (len(h.bank.job("job-1")), op.status_requests_used) == (number - 1, number - 1)
            await h.choose(ChoiceKind.APPROVE_ONCE)
            await run_for(h, 1_000)
            assert len(h.bank.job("job-1")) == number
        op = await h.op()
        assert (op.status, op.status_requests_used) == (Status.SUCCEEDED, 2)
        assert [seen.secret for seen in h.bank.job("job-1")] == [f"Bearer {SECRET}"] * 2
        assert len(await h.events(EventName.GRANTED)) == 2


@pytest.mark.rule("G6", "G7")
async def test_the_mode_of_the_credential_itself_asks_like_the_contracts(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await change_mode(h.core.credential_admin.meta, "key", CredentialMode.PER_CALL)
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        await asked(h, CALL)
        assert h.bank.job("job-1") == []


@pytest.mark.rule("G7", "G4", "K4")
async def test_the_card_shows_the_exact_request_and_masks_its_query(tmp_path: Path) -> None:
    asks = ('url = "{url}/v1/jobs/{{job_id}}"\nobs', 'url = "{url}/v1/jobs/{{job_id}}?sig=SIGNATURE"\nobs')
    reveals = ("optional = true", 'optional = true\nreveals = "state and file names"')
    async with house(tmp_path, PER_CALL, reveals) as h:
        h.write_contract(
            PER_CALL,
            reveals,
            (
                asks[0].format(url=h.bank.url).replace("{{", "{").replace("}}", "}"),
                asks[1].format(url=h.bank.url).replace("{{", "{").replace("}}", "}"),
            ),
        )
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        shown = await h.card()
        text = "\n".join(shown.card.text())
        for line in (
            "Credential: key",
            "Method: GET",
            f"Host: {h.bank.url}",
            "Path: /v1/jobs/job-1 (its query is masked)",
            "Purpose: status request",
            "Operation: op-job-1",
            "Request number: 1 of 12",
            "Credential mode: per_call",
            f"Credential scope: {h.bank.url}",
            "Can reveal: state and file names",
        ):
            assert line in text
        assert "SIGNATURE" not in text
        assert shown.use is not None
        assert shown.use.digest == pick(shown, ChoiceKind.APPROVE_ONCE).call
        assert f"Request digest: {(shown.use.digest or '')[:16]}" in text
        assert kinds(shown) == ["approve_once", "deny"]
        deny = pick(shown, ChoiceKind.DENY)
        assert (deny.grants, deny.decides) == (False, True)


@pytest.mark.rule("G4")
async def test_an_approval_serves_no_other_credential_secret_or_origin(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        shown = await h.card()
        await h.credential("key", "another-secret")
        with pytest.raises(Stale):
            await h.press(shown, pick(shown, ChoiceKind.APPROVE_ONCE))
        await h.choose(ChoiceKind.APPROVE_ONCE)
        h.clock.jump(1)
        await h.credential("key", "a-third-secret")
        await run_for(h, 1_000)
        await asked(h, CALL)
        assert h.bank.job("job-1") == []
        (_, told) = await h.events(EventName.QUESTION_OPENED)
        (note,) = told.notes
        assert note.endswith("was not used: what it was given for moved")


@pytest.mark.rule("G7")
async def test_an_approval_that_nobody_used_in_time_lapses_and_is_asked_anew(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        await h.choose(ChoiceKind.APPROVE_ONCE)
        h.clock.jump(3 * MINUTE)
        await run_for(h, 1_000)
        await asked(h, CALL)
        assert (h.bank.job("job-1"), (await h.op()).status_requests_used) == ([], 0)


@pytest.mark.rule("G7", "T9")
async def test_an_approval_that_lapsed_by_the_boot_clock_is_asked_anew_though_the_wall_clock_went_back(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        await h.choose(ChoiceKind.APPROVE_ONCE)
        h.clock.jump(3 * MINUTE)
        h.clock.step(-20 * MINUTE)
        with h.worker() as controller:
            async with asyncio.timeout(LIMIT_S):
                await controller.run(asyncio.Event(), for_ms=1_000, watch=False)
        assert controller.report.turns < 100
        await asked(h, CALL)
        assert (h.bank.job("job-1"), (await h.op()).status_requests_used) == ([], 0)


@pytest.mark.rule("O2")
async def test_two_workers_use_one_approval_once(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h, h.open() as other:
        await h.submit("job-1", RUNNING, credential="key")
        await h.run()
        await h.choose(ChoiceKind.APPROVE_ONCE)
        await h.run_together(other)
        await asked(h, CALL)
        assert (len(h.bank.job("job-1")), (await h.op()).status_requests_used) == (1, 1)


@pytest.mark.rule("E2", "G5", "G8")
async def test_a_denial_stops_the_wait_and_ask_again_asks_anew(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        await h.core.actions.lower("op-job-1", ChoiceKind.DENY, "nobody started this", "agent")
        op = await h.op()
        assert (op.status, op.stop_reason) == (Status.ESCALATED, StopReason.APPROVAL_DENIED)
        assert kinds(await h.card()) == ["ask_again", "cancel_at_provider"]
        await h.choose(ChoiceKind.ASK_AGAIN)
        await asked(h, CALL)
        await h.run()
        assert h.bank.job("job-1") == []
        await h.choose(ChoiceKind.APPROVE_ONCE)
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        assert len(h.bank.job("job-1")) == 1


# --- expiry -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("G7")
async def test_the_time_of_a_question_runs_only_while_a_console_is_open(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        first = await h.question()
        await run_for(h, 10 * MINUTE)
        assert await h.question() == first
        await with_console(h, 60_000)
        running = await h.question()
        assert running is not None
        assert first is not None
        assert running.escalation_id == first.escalation_id
        assert running.expires_at is not None
        assert 50_000 <= running.expires_at - h.clock.now().wall <= 60_000
        await run_for(h, 5 * MINUTE)
        stands = await h.question()
        assert stands is not None
        assert (stands.escalation_id, stands.expires_at) == (first.escalation_id, None)
        assert stands.left_ms is not None
        assert 40_000 <= stands.left_ms <= 60_000
        await with_console(h, 70_000)
        anew = await h.question()
        assert anew is not None
        assert anew.escalation_id != first.escalation_id


@pytest.mark.rule("G7", "T9")
async def test_a_wall_clock_that_is_set_back_prolongs_no_question(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        with h.worker() as controller:

            async def passes(ms: int) -> None:
                for _ in range(ms // BEAT_MS):
                    now = h.clock.now()
                    await h.core.store.turn(Turn(now=now, owner="console", beat=console(now, started)))
                    async with asyncio.timeout(LIMIT_S):
                        await controller.run(asyncio.Event(), for_ms=BEAT_MS, watch=False)

            started = h.clock.now().wall
            await passes(20_000)
            first = await h.question()
            assert first is not None
            await passes(60_000)
            h.clock.step(-60 * MINUTE)
            await passes(30_000)
            shown = await h.question()
            assert shown is not None
            assert shown.escalation_id == first.escalation_id
            assert shown.expires_at is not None
            assert shown.expires_at - h.clock.now().wall <= 60_000
            await passes(60_000)
        anew = await h.question()
        assert anew is not None
        assert anew.escalation_id != first.escalation_id
        (told,) = await h.events(EventName.APPROVAL_EXPIRED)
        assert told.decision == "expire"
        assert h.bank.status_seen == []


@pytest.mark.rule("G7", "G8", "B2")
@pytest.mark.parametrize(("painted", "how"), [(False, "unseen"), (True, "seen and not answered")])
async def test_an_expiry_is_told_as_such_spends_nothing_and_asks_anew(painted: bool, how: str, tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        old, shown = await h.question(), await h.card()
        assert old is not None
        if painted:
            assert await h.core.actions.seen("op-job-1", old.escalation_id)
            assert await h.core.actions.seen("op-job-1", old.escalation_id)
        await with_console(h, 130_000)
        op = await asked(h, CALL)
        (told,) = await h.events(EventName.APPROVAL_EXPIRED)
        assert (told.decision, told.detail) == ("expire", how)
        assert await h.events(EventName.REJECTED) == []
        assert (op.status_requests_used, op.deadline_at) == (0, shown.operation.deadline_at)
        decided = (await h.core.store.questions_by_id([old.escalation_id]))[old.escalation_id]
        assert (decided.decision, decided.decision_text) == ("expired", how)
        with pytest.raises(Stale):
            await h.press(shown, pick(shown, ChoiceKind.APPROVE_ONCE))
        assert not await h.core.actions.seen("op-job-1", old.escalation_id)
        await h.choose(ChoiceKind.APPROVE_ONCE)
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("G7")
async def test_a_key_after_the_time_is_over_grants_nothing_before_anybody_wrote_the_expiry_down(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        await with_console(h, 20_000)
        question = await h.question()
        assert question is not None
        assert question.expires_at is not None
        h.clock.jump(question.expires_at - h.clock.now().wall)
        shown = await h.card()
        with pytest.raises(Stale, match="expired"):
            await h.press(shown, pick(shown, ChoiceKind.APPROVE_ONCE))
        assert await h.core.store.approval("op-job-1") is None


@pytest.mark.rule("G7", "X2")
async def test_the_deadline_runs_while_a_question_waits_and_ends_it(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        await run_for(h, 50 * MINUTE)
        op, question = await h.op(), await h.question()
        assert (op.status, op.stop_reason) == (Status.ESCALATED, StopReason.DEADLINE_EXCEEDED)
        assert question is not None
        assert question.reason is StopReason.DEADLINE_EXCEEDED
        assert (h.bank.job("job-1"), op.status_requests_used) == ([], 0)


# --- sessions ---------------------------------------------------------------------------------------------------------


class Running:
    """One run of the core that goes on while the test acts: a session belongs to it."""

    def __init__(self, h: House, core: Core | None = None) -> None:
        self.h = h
        self.core = core or h.core

    async def __aenter__(self) -> Running:
        self._worker = self.h.worker(self.core)
        self.controller = self._worker.__enter__()
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(self.controller.run(self.stop, watch=True))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop.set()
        async with asyncio.timeout(LIMIT_S):
            await self.task
        self._worker.__exit__(None, None, None)

    async def until(self, condition: Any) -> None:
        """The clock runs until *condition* holds."""
        async with asyncio.timeout(LIMIT_S):
            while not await condition():
                await asyncio.sleep(0.002)


async def all_asked(h: House, jobs: int, reason: StopReason = SESSION) -> bool:
    found = await h.core.store.questions()
    return len(found) == jobs and {question.reason for question in found} == {reason}


@pytest.mark.rule("G6", "E10")
async def test_one_answer_opens_one_session_for_all_and_its_count_is_never_passed(tmp_path: Path) -> None:
    async with house(tmp_path, PER_SESSION) as h:
        for n in (1, 2):
            await h.submit(f"job-{n}", RUNNING, credential="key")
        async with Running(h) as run:
            await run.until(lambda: all_asked(h, 2))
            (card,) = await h.core.actions.cards()
            assert card.count == 2
            drawn = await h.core.actions.group((await h.core.store.questions())[0].cause)
            choice = next(c for c in drawn.card.choices if c.kind is ChoiceKind.APPROVE_SESSION)
            assert choice.label == "approve session, 30 min / 3 calls"
            done = await h.core.actions.decide_group(
                drawn.cause, choice.key, drawn.digest, {"kind": "test"}, h.core.actions.operator()
            )
            assert len(done.done) == 2
            (live,) = await h.core.actions.sessions()
            assert (live.credential, live.calls) == ("key", 3)
            assert 29 * MINUTE < live.until - h.clock.now().wall <= 30 * MINUTE
            await run.until(lambda: all_asked(h, 2))
            assert len(h.bank.status_seen) == 3
            assert await h.core.actions.sessions() == ()


@pytest.mark.rule("G6")
async def test_a_session_ends_with_its_time_and_with_its_run(tmp_path: Path) -> None:
    long = (PER_SESSION[0], PER_SESSION[1].replace("minutes = 30", "minutes = 1").replace("calls = 3", "calls = 100"))
    async with house(tmp_path, long) as h:
        await h.submit("job-1", RUNNING, credential="key")
        async with Running(h) as run:
            await run.until(lambda: all_asked(h, 1))
            h.clock.stand_still = True
            await h.choose(ChoiceKind.APPROVE_SESSION)
            (live,) = await h.core.actions.sessions()
            h.clock.stand_still = False
            await run.until(lambda: all_asked(h, 1))
            assert h.bank.status_seen
            assert all(seen.at < live.until for seen in h.bank.status_seen)
            await h.choose(ChoiceKind.APPROVE_SESSION)
        used = len(h.bank.status_seen)
        assert await h.core.store.sessions() == ()
        async with Running(h) as run:
            await run.until(lambda: all_asked(h, 1))
        assert len(h.bank.status_seen) == used


@pytest.mark.rule("G6", "G5")
async def test_ending_a_session_asks_before_the_next_request_and_is_told(tmp_path: Path) -> None:
    async with house(tmp_path, PER_SESSION) as h:
        await h.submit("job-1", RUNNING, credential="key")
        async with Running(h) as run:
            await run.until(lambda: all_asked(h, 1))
            h.clock.stand_still = True
            await h.choose(ChoiceKind.APPROVE_SESSION)
            assert await h.core.actions.end_session("key", "enough", "agent") == 1
            assert await h.core.actions.end_session("key", "enough", "agent") == 0
            h.clock.stand_still = False
            await run.until(lambda: all_asked(h, 1))
            assert await h.core.actions.sessions() == ()
        (told,) = await h.events(EventName.SESSION_ENDED)
        assert (told.caller, told.text, told.detail) == ("agent", "enough", "sessions of key")


@pytest.mark.rule("G6")
async def test_a_session_answered_on_one_card_settles_the_other_questions_of_its_run(tmp_path: Path) -> None:
    async with house(tmp_path, PER_SESSION) as h:
        for n in (1, 2):
            await h.submit(f"job-{n}", DONE, credential="key")
        async with Running(h) as run:
            await run.until(lambda: all_asked(h, 2))
            await h.choose(ChoiceKind.APPROVE_SESSION)

            async def both_done() -> bool:
                return {(await h.op(f"op-job-{n}")).status for n in (1, 2)} == {Status.SUCCEEDED}

            await run.until(both_done)
        assert len(await h.events(EventName.GRANTED)) == 1


# --- actions ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("X7", "G6")
async def test_requests_that_are_actions_are_asked_one_by_one_also_without_a_credential(tmp_path: Path) -> None:
    async with house(tmp_path, ACTION) as h:
        await h.submit("job-1", RUNNING, DONE)
        for number in (1, 2):
            await h.run()
            await asked(h, CALL)
            assert len(h.bank.job("job-1")) == number - 1
            assert "Credential mode: none: it goes without a credential" in "\n".join((await h.card()).card.text())
            await h.choose(ChoiceKind.APPROVE_ONCE)
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("G2", "E5")
async def test_the_grant_of_a_cancel_that_shows_its_credential_is_the_approval_of_that_call(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", RUNNING, credential="key")
        await h.run()
        await h.core.actions.lower("op-job-1", ChoiceKind.DENY, "no", "agent")
        shown = await h.card()
        cancel = pick(shown, ChoiceKind.CANCEL_AT_PROVIDER)
        said = "\n".join(shown.card.text())
        assert f"uses credential key (per_call): POST {h.bank.url}/v1/jobs/job-1/cancel" in said
        assert "this grant is the approval of that one call" in said
        await h.press(shown, cancel)
        assert h.bank.cancels == 1
        assert h.bank.requests[-1].secret == f"Bearer {SECRET}"
        await h.run()
        await asked(h, CALL)
        assert h.bank.job("job-1") == []


@pytest.mark.rule("G6", "O5")
async def test_a_fetch_with_a_per_call_credential_asks_and_is_done_once_approved(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        await h.choose(ChoiceKind.APPROVE_ONCE)
        await h.run()
        to = tmp_path / "result"
        for _ in range(2):
            with pytest.raises(Refused) as told:
                await h.core.actions.fetch("op-job-1", to, "agent")
            assert told.value.code == "approval_wanted"
        assert (h.bank.fetches, to.exists()) == (0, False)
        shown = await h.card()
        text = "\n".join(shown.card.text())
        assert "Purpose: fetch of the result" in text
        assert "Path: /files/job-1" in text
        await h.press(shown, pick(shown, ChoiceKind.APPROVE_ONCE))
        assert (await h.op()).status is Status.SUCCEEDED
        await h.core.actions.fetch("op-job-1", to, "agent")
        assert (h.bank.fetches, to.exists()) == (1, True)
        with pytest.raises(Refused):
            await h.core.actions.fetch("op-job-1", tmp_path / "again", "agent")
        assert h.bank.fetches == 1


@pytest.mark.rule("G6", "G5")
async def test_a_denied_fetch_leaves_the_success_as_it_is(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.run()
        await change_mode(h.core.credential_admin.meta, "key", CredentialMode.PER_CALL)
        with pytest.raises(Refused):
            await h.core.actions.fetch("op-job-1", tmp_path / "r", "agent")
        await h.core.actions.lower("op-job-1", ChoiceKind.DENY, "no", "agent")
        assert (await h.op()).status is Status.SUCCEEDED
        assert await h.question() is None
        with pytest.raises(Refused):
            await h.core.actions.fetch("op-job-1", tmp_path / "r", "agent")
        assert h.bank.fetches == 0


@pytest.mark.rule("G4", "G2")
async def test_an_action_sends_no_secret_for_another_request_than_the_one_that_was_granted(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h:
        await h.submit("job-1", RUNNING, credential="key")
        desk, op = h.core.actions._desk, await h.op()
        contract = await desk.contract(op)
        request = requests.cancel_request(contract, op, op.credential)
        info = await desk.credentials().info("key")
        granted = call_digest(op, request, purpose=CANCEL, binding=info.binding)
        assert await perform.secret_for(desk, contract, op, request, CANCEL, granted) is not None
        for other in (None, "0" * 64, call_digest(op, request, purpose=FETCH, binding=info.binding)):
            with pytest.raises(Refused) as told:
                await perform.secret_for(desk, contract, op, request, CANCEL, other)
            assert told.value.code == "approval_needed"


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("G1")
async def test_a_standing_credential_costs_no_look_at_approvals_or_sessions(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        asked_for: list[str] = []
        store = h.core.store
        for name in ("approval", "sessions", "workers", "screens"):

            async def counted(*_: Any, name: str = name) -> Any:
                asked_for.append(name)
                raise AssertionError(name)

            setattr(store, name, counted)
        await h.submit("job-1", *[RUNNING] * 9, DONE, credential="key")
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        assert asked_for == []


@pytest.mark.rule("G6")
async def test_operations_of_a_session_are_left_to_the_run_that_has_it_while_that_run_lives(tmp_path: Path) -> None:
    """One slot, so that more is left alone than one look loads: nothing is hidden behind it, and nothing spins."""
    async with house(tmp_path, PER_SESSION) as h, h.open(slots=1) as small:
        theirs = [await h.submit(f"job-{n}", RUNNING, credential="key") for n in range(1, 6)]
        op = theirs[0]
        h.clock.jump(5_000)
        await h.submit("job-9", DONE)
        now, info = h.clock.now(), await h.core.credentials.info("key")
        other = msgspec.structs.replace(console(now, now.wall), owner="run-other", kind="run")
        live = Session(
            session_id="ses-1", credential="key", owner="run-other", binding=info.binding, started_at=now.wall,
            until=Instant(now.wall + 30 * MINUTE), boot_id=now.boot_id, until_boot=BootMs(now.boot + 30 * MINUTE),
            calls=3, granted_by="ops", grant_id="grant-1",
        )  # fmt: skip
        await h.core.store.turn(Turn(now=now, owner="run-other", beat=other))
        await h.core.store.commit(now, (Write(after=op, fence_change=op.change, release_lease=False, session=live),))
        with h.worker(small) as controller:
            async with asyncio.timeout(LIMIT_S):
                await controller.run(asyncio.Event(), for_ms=25_000, watch=False)
        assert controller.report.turns < 100
        assert [seen.job for seen in h.bank.status_seen] == ["job-9"]
        assert await h.core.store.questions() == ()
        assert (await h.op("op-job-9")).status is Status.SUCCEEDED
        await run_for(h, 60_000)
        await asked(h, SESSION)
