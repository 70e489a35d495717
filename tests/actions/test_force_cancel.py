"""A cancel was taken and the job runs on: the stronger one, granted by itself, sent once, recorded on its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pollcore.actions import perform
from pollcore.contract import requests
from pollcore.facts import (
    FORCE,
    MINUTE,
    ActionKind,
    ActionOutcome,
    ActionRecord,
    Choice,
    ChoiceKind,
    CredentialMode,
    CredentialUnavailable,
    EventName,
    Instant,
    Stale,
    Status,
    StopReason,
    iso,
)
from pollcore.report import contradictions
from pollcore.story import story
from tests.controller.bank import LOST, RUNNING, refuses, says
from tests.controller.house import KEYS, OPERATOR, START, House, changed_as_shown, house, kinds, pick
from tests.trust.authority import rows

CANCEL = ChoiceKind.CANCEL_AT_PROVIDER
FORCED = "force-cancel"
STRANGE = says("strange")


async def cancelled(h: House, *answers: dict[str, Any], by: dict[str, Any] | None = None, **spec: Any) -> None:
    """`op-job-1` stopped at an unknown state, its cancel was granted and answered *by*, and it stopped there again."""
    h.bank.cancel_answer = by or refuses(202)
    await h.submit("job-1", STRANGE, *(answers or (STRANGE,)), **spec)
    await h.run()
    await h.press(shown := await h.card(), pick(shown, CANCEL))
    await h.run()


async def forced(h: House) -> list[ActionRecord]:
    return [one for one in await h.core.store.actions("op-job-1") if one.kind is ActionKind.FORCE_CANCEL]


def force_of(found: Any) -> list[Choice]:
    return [choice for choice in found.choices if choice.step == FORCE]


@pytest.mark.rule("E5", "O5", "G2", "A1", "A2")
async def test_a_cancel_is_taken_the_job_runs_on_and_the_force_cancel_ends_it(tmp_path: Path) -> None:
    async with house(tmp_path, ("max_status_requests = 12", "max_status_requests = 3")) as h:
        h.bank.cancel_answer, h.bank.force_answer = refuses(202), refuses(202)
        await h.submit("job-1", RUNNING, credential="key")
        await h.run()
        first = await h.card()
        assert (first.question.reason, kinds(first)) == (
            StopReason.REQUEST_BUDGET_EXHAUSTED, ["extend", "extend", "cancel_at_provider"],
        )  # fmt: skip
        await h.press(first, pick(first, CANCEL))
        await h.run()
        before, second = await h.op(), await h.card()
        assert kinds(second) == ["extend", "extend", "cancel_at_provider", "cancel_at_provider"]
        choice = pick(second, CANCEL, FORCED)
        text = "\n".join(second.card.text())
        assert f"[{choice.key}] force-cancel at provider" in text
        assert "consequences, as documented: the job is killed without clean-up" in text
        assert "status requests 5 -> 8" in text
        h.bank.scripts["job-1"] = [RUNNING] * before.status_requests_used + [says("cancelled")]
        await h.press(second, choice)
        changed_as_shown(before, choice, await h.op())
        (record,) = await forced(h)
        assert (record.outcome, record.http_code) == (ActionOutcome.DONE, 202)
        await h.run()
        op = await h.op()
        assert (op.status, await h.question()) == (Status.CANCELLED, None)
        assert (h.bank.cancels, h.bank.forces, len(h.bank.status_seen)) == (1, 1, op.status_requests_used)
        (sent,) = [seen for seen in h.bank.requests if seen.path == "/v1/jobs/job-1/force-cancel"]
        assert (sent.method, sent.secret) == ("POST", "Bearer canary-secret-of-the-house")
        told = [event for event in await h.events() if event.event is EventName.GRANTED]
        assert [event.detail for event in told] == ["cancel at provider", "force-cancel at provider"]
        lines = "\n".join(story(await h.events(operation_id="op-job-1")))
        assert "granted force-cancel at provider by ops@here" in lines
        assert "force-cancel answered, which does not mean cancelled, received 202, accepted" in lines
        assert len([one for one in await h.core.store.actions("op-job-1") if one.kind is ActionKind.CANCEL]) == 1
        assert list(contradictions(op, await h.events(operation_id="op-job-1"), h.clock.now().wall)) == []


@pytest.mark.rule("O5", "O1", "G4", "A4")
async def test_grant_and_intent_are_stored_before_the_request_leaves(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await cancelled(h)
        seen: list[tuple[list[ActionRecord], list[str | None]]] = []

        async def look() -> None:
            told = [event.detail for event in await h.events(EventName.GRANTED)]
            seen.append((await forced(h), told))

        h.bank.on_force = look
        await h.choose(CANCEL, label=FORCED)
        ((records, told),) = seen
        assert [one.outcome for one in records] == [ActionOutcome.INTENDED]
        assert told[-1] == "force-cancel at provider"


@pytest.mark.rule("O5", "E5", "E7")
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (LOST, ActionOutcome.UNKNOWN),
        (refuses(503), ActionOutcome.UNKNOWN),
        (refuses(409), ActionOutcome.REFUSED),
    ],
)
async def test_it_is_sent_once_whatever_becomes_of_it_and_without_an_end_the_question_returns(
    answer: dict[str, Any], outcome: ActionOutcome, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        await cancelled(h)
        h.bank.force_answer = answer
        await h.choose(CANCEL, label=FORCED)
        (record,) = await forced(h)
        assert record.outcome is outcome
        (told,) = await h.events(EventName.FORCE_CANCEL_ANSWERED)
        assert told.decision == outcome.value
        await h.run()
        assert ((await h.op()).stop_reason, h.bank.forces) == (StopReason.UNKNOWN_STATE, 1)
        again = pick(await h.card(), CANCEL, FORCED)
        assert any(f"its outcome is {outcome.value}: this sends another" in warning for warning in again.warnings)
        assert h.bank.forces == 1


@pytest.mark.rule("E5")
@pytest.mark.parametrize(
    ("by", "there"), [(refuses(409), False), (refuses(401), False), (LOST, True), (refuses(202), True)]
)
async def test_a_cancel_that_was_refused_is_followed_by_no_stronger_one(
    by: dict[str, Any], there: bool, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", STRANGE)
        await h.run()
        assert force_of(await h.card()) == []
        h.bank.cancel_answer = by
        await h.choose(CANCEL)
        await h.run()
        assert bool(force_of(await h.card())) is there


@pytest.mark.rule("G4", "E7", "G8")
async def test_it_is_refused_when_the_record_moved_since_its_card_was_drawn(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await cancelled(h)
        shown = await h.card()
        choice = pick(shown, CANCEL, FORCED)
        await h.choose(ChoiceKind.CHECK_ONCE)
        await h.run()
        with pytest.raises(Stale):
            await h.press(shown, choice)
        assert (h.bank.forces, await forced(h)) == (0, [])
        assert len(await h.events(EventName.GRANT_REFUSED)) == 1
        # of the ordinary cancel's choice nothing can be taken for the stronger one
        fresh = await h.card()
        await h.press(fresh, pick(fresh, CANCEL))
        assert (h.bank.cancels, h.bank.forces) == (2, 0)


@pytest.mark.rule("E5", "E7")
async def test_a_running_wait_is_force_cancelled_by_the_operators_question(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        await h.run(11_000)
        for label, left in (("cancel at", 1), (FORCED, 0)):
            await h.core.actions.open_question("op-job-1", OPERATOR)
            assert bool(force_of(await h.card())) is not bool(left)
            await h.choose(CANCEL, label=label)
        h.bank.scripts["job-1"] = [says("cancelled")]
        await h.run()
        assert ((await h.op()).status, h.bank.cancels, h.bank.forces) == (Status.CANCELLED, 1, 1)


@pytest.mark.rule("E5", "E3")
async def test_it_waits_for_the_time_that_a_status_answer_names(tmp_path: Path) -> None:
    named = 'consequences = "the job is killed without clean-up"\n'
    async with house(tmp_path, (named, named + 'available_at = "body.force_at"\n')) as h:
        later = Instant(START + 30 * MINUTE)
        await cancelled(h)
        (choice,) = force_of(await h.card())
        assert "does not name the time" in (choice.unavailable or "")
        h.bank.scripts["job-1"] = [says("strange", force_at=iso(later))]
        await h.choose(ChoiceKind.CHECK_ONCE)
        await h.run()
        early = await h.card()
        (choice,) = force_of(early)
        assert choice.unavailable == "not before 10:30:00 UTC, as the provider's last answer says"
        assert await h.core.actions.aged(early) == 0
        many = await h.core.actions.group(early.question.cause)
        h.clock.jump(MINUTE)
        assert (await h.core.actions.aged(early), await h.core.actions.aged(many)) == (0, 0), "a clock alone runs"
        sent = len(h.bank.requests)
        h.clock.jump(later - h.clock.now().wall)
        assert (await h.core.actions.aged(early), await h.core.actions.aged(many)) == (1, 1), (
            "a choice may be taken now"
        )
        assert len(h.bank.requests) == sent
        with pytest.raises(Stale):  # what can be chosen has changed: another card
            await h.press(early, choice)
        await h.choose(CANCEL, label=FORCED)
        assert h.bank.forces == 1


@pytest.mark.rule("G2", "G6", "G7", "E5")
async def test_with_a_per_call_credential_its_card_shows_its_own_request_and_the_grant_approves_that_one(
    tmp_path: Path,
) -> None:
    mode = ('kind = "bearer"', 'kind = "bearer"\nleast_mode = "per_call"')
    async with house(tmp_path, mode) as h:
        await h.submit("job-1", RUNNING, credential="key")
        await h.run()
        for label in ("cancel at", FORCED):
            await h.core.actions.lower("op-job-1", ChoiceKind.DENY, "nobody started this", "agent")
            shown = await h.card()
            choice = pick(shown, CANCEL, label)
            said = " ".join(choice.warnings)
            assert f"({CredentialMode.PER_CALL.value}): POST" in said
            await h.press(shown, choice)
            await h.run()
        op = await h.op()
        contract = await h.core.snapshots.of(op.contract_digest)
        wanted = requests.cancel_request(contract, op, op.credential, FORCE)
        assert f"POST {wanted.url}, purpose: force-cancel request" in said
        assert (h.bank.cancels, h.bank.forces, len(h.bank.status_seen)) == (1, 1, 0)
        leaves = await rows(h, "SELECT used_for, digest FROM approval WHERE purpose = 'force_cancel'")
        (record,) = await forced(h)
        assert leaves == [(record.action_id, choice.call)]


@pytest.mark.rule("H4", "E5")
async def test_a_job_that_is_gone_after_a_cancel_was_taken_is_cancelled_where_the_contract_says_so(
    tmp_path: Path,
) -> None:
    confirms = ("[error]", "[not_found]\nconfirms_cancel = true\n[error]")
    async with house(tmp_path, confirms) as h:
        await h.submit("job-1", STRANGE, refuses(404))
        await h.run()
        h.bank.cancel_answer = refuses(409)
        await h.choose(CANCEL)
        await h.run()
        assert (await h.op()).stop_reason is StopReason.INTEGRATION_FAILURE, "a cancel that was refused did nothing"
        h.bank.cancel_answer = refuses(202)
        await h.choose(CANCEL)
        await h.run()
        op = await h.op()
        assert (op.status, await h.question()) == (Status.CANCELLED, None)


@pytest.mark.rule("O5", "E3", "G2")
async def test_after_a_crash_before_the_send_the_card_says_that_what_became_of_it_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await cancelled(h)

        async def dies(*_: object) -> None:
            raise asyncio.CancelledError

        with monkeypatch.context() as patched:
            patched.setattr(perform, "send", dies)
            with pytest.raises(asyncio.CancelledError):
                await h.choose(CANCEL, label=FORCED)
        await h.run()
        (choice,) = force_of(await h.card())
        assert any("its outcome is unknown: this sends another" in said for said in choice.warnings)
        assert [one.outcome for one in await forced(h)] == [ActionOutcome.INTENDED]
        assert h.bank.forces == 0


@pytest.mark.rule("E3", "E5")
async def test_what_never_left_for_want_of_its_secret_is_not_told_as_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await h.credential()
        await cancelled(h, credential="key")

        async def locked(*_: object) -> None:
            raise CredentialUnavailable("the keyring is locked", detail="locked")

        with monkeypatch.context() as patched:
            patched.setattr(perform, "secret_for", locked)
            await h.choose(CANCEL, label=FORCED)
        (record,) = await forced(h)
        assert (record.outcome, record.http_code, h.bank.forces) == (ActionOutcome.REFUSED, None, 0)
        await h.run()
        (choice,) = force_of(await h.card())
        assert not any("already sent" in said for said in choice.warnings)


@pytest.mark.rule("E7", "G2")
async def test_of_two_consoles_that_press_at_once_one_sends_it(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await cancelled(h)
        h.bank.force_answer = refuses(202)
        async with h.open() as second:
            shown = await h.card()
            choice = pick(shown, CANCEL, FORCED)
            ends = await asyncio.gather(
                *(
                    core.actions.decide(
                        "op-job-1", shown.question.escalation_id, choice.key, shown.digest, KEYS, OPERATOR
                    )
                    for core in (h.core, second)
                ),
                return_exceptions=True,
            )
        assert sorted(type(one).__name__ for one in ends) == ["Operation", "Stale"]
        assert h.bank.forces == 1
