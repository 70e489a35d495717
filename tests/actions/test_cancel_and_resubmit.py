"""Cancel and resubmit: granted once, sent once, recorded on their own; an answer that was lost is unknown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollcore.adapters.credential_ops import remove_credential
from pollcore.facts import (
    MINUTE,
    ActionKind,
    ActionOutcome,
    ChoiceKind,
    EventName,
    Operation,
    Refused,
    Status,
    StopReason,
    StoreUnusable,
)
from tests.controller.bank import DONE, LOST, RUNNING, refuses, says
from tests.controller.house import CONTRACT, OPERATOR, House, changed_as_shown, house, kinds, pick

STRANGE = says("strange")
ORIGINAL: dict[str, Any] = {"params": {"input": "a"}, "idempotency_key": "k1"}


async def cancelled(h: House, *answers: dict[str, Any], by: dict[str, Any], **spec: Any) -> Operation:
    """`op-job-1` stopped at an unknown state, then a cancel was granted and answered *by*."""
    h.bank.cancel_answer = by
    await h.submit("job-1", STRANGE, *answers, **spec)
    await h.run()
    before, shown = await h.op(), await h.card()
    choice = pick(shown, ChoiceKind.CANCEL_AT_PROVIDER)
    await h.press(shown, choice)
    after = await h.op()
    changed_as_shown(before, choice, after)
    assert (choice.minutes, choice.checks) == (5, 2)
    assert after.deadline_at == before.deadline_at + 5 * MINUTE
    assert (after.status, after.extensions_used) == (Status.WAITING, 0)
    assert after.status_requests_used == before.status_requests_used
    return after


async def record(h: House, kind: ActionKind) -> Any:
    """The one record of an action of *kind*."""
    (found,) = [one for one in await h.core.store.actions("op-job-1") if one.kind is kind]
    return found


@pytest.mark.rule("E5", "O5", "G2")
async def test_a_confirmed_cancel_ends_cancelled_and_asks_nothing_more(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await cancelled(h, RUNNING, says("cancelled"), by=refuses(202), credential="key")
        assert (await record(h, ActionKind.CANCEL)).outcome is ActionOutcome.DONE
        await h.run()
        op = await h.op()
        assert (op.status, op.status_requests_used) == (Status.CANCELLED, len(h.bank.status_seen))
        assert await h.question() is None
        (sent,) = [seen for seen in h.bank.requests if seen.path.endswith("/cancel")]
        assert (sent.method, sent.secret) == ("POST", "Bearer canary-secret-of-the-house")


@pytest.mark.rule("E5", "S10")
async def test_a_job_that_finishes_under_a_cancel_has_succeeded(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await cancelled(h, DONE, by=refuses(202))
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("E5", "O5")
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (refuses(409), ActionOutcome.REFUSED),
        (refuses(401), ActionOutcome.REFUSED),
        (refuses(503), ActionOutcome.UNKNOWN),
        (LOST, ActionOutcome.UNKNOWN),
    ],
)
async def test_a_cancel_is_sent_once_whatever_becomes_of_it_and_without_a_final_answer_the_usual_stop_follows(
    answer: dict[str, Any], outcome: ActionOutcome, tmp_path: Path
) -> None:
    async with house(tmp_path, ("max_status_requests = 12", "max_status_requests = 1")) as h:
        await cancelled(h, RUNNING, by=answer)
        assert (await record(h, ActionKind.CANCEL)).outcome is outcome
        (told,) = await h.events(EventName.CANCEL_ANSWERED)
        assert told.decision == outcome.value
        await h.run()
        op = await h.op()
        assert (op.stop_reason, op.status_requests_used) == (StopReason.REQUEST_BUDGET_EXHAUSTED, 3)
        assert h.bank.cancels == 1
        again = pick(await h.card(), ChoiceKind.CANCEL_AT_PROVIDER)
        assert any(f"outcome is {outcome.value}" in warning for warning in again.warnings)


@pytest.mark.rule("E5", "O5", "K2")
async def test_a_cancel_whose_credential_cannot_be_read_is_not_sent_and_recorded_as_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.bank.cancel_answer = refuses(202)
        await h.submit("job-1", STRANGE, credential="key")
        await h.run()
        await remove_credential(h.core.vault, h.core.credential_admin.meta, "key")
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        assert h.bank.cancels == 0
        assert (await record(h, ActionKind.CANCEL)).outcome is ActionOutcome.REFUSED


@pytest.mark.rule("E5", "K3")
async def test_a_cancel_takes_no_credential_to_an_origin_that_it_is_not_pinned_to(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", STRANGE, credential="key")
        await h.run()
        await h.credential("key", "moved-secret", ["https://elsewhere.example.test"])
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        assert h.bank.cancels == 0
        assert (await record(h, ActionKind.CANCEL)).outcome is ActionOutcome.REFUSED


@pytest.mark.rule("E5", "E2")
async def test_a_cancel_that_the_contract_does_not_document_is_not_offered(tmp_path: Path) -> None:
    text = CONTRACT[CONTRACT.index("[cancel]") : CONTRACT.index("[result]")]
    async with house(tmp_path) as h:
        h.write_contract((text.format(url=h.bank.url).replace("{{", "{"), ""))
        await h.submit("job-1", STRANGE)
        await h.run()
        assert kinds(await h.card()) == ["check_once", "hold"]


@pytest.mark.rule("E5", "E7")
async def test_a_running_wait_is_cancelled_by_the_operators_question(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, says("cancelled"))
        await h.run(11_000)
        await h.core.actions.open_question("op-job-1", OPERATOR)
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        await h.run()
        assert ((await h.op()).status, h.bank.cancels) == (Status.CANCELLED, 1)


# --- resubmit ---------------------------------------------------------------------------------------------------------


async def timed_out(h: House, **spec: Any) -> Operation:
    """`op-job-1` stopped with `delivery_ambiguous`: no final answer was seen."""
    h.bank.gate = asyncio.Event()
    await h.submit("job-1", RUNNING, **{"max_transport_failures": 1, **ORIGINAL, **spec})
    await h.run()
    h.bank.gate.set()
    op = await h.op()
    assert op.stop_reason is StopReason.DELIVERY_AMBIGUOUS
    return op


SHORT = ('total = "2s"', 'total = "1s"')


@pytest.mark.rule("E6", "G2", "O5")
async def test_an_unfinished_job_is_resubmitted_with_the_same_key_as_a_new_linked_operation(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        h.bank.scripts["job-new"] = [DONE]
        await timed_out(h, credential="key", max_status_requests=7)
        new = await h.choose(ChoiceKind.RESUBMIT)
        (sent,) = h.bank.submissions
        assert (sent.headers["idempotency-key"], sent.body) == ("k1", b'{"input":"a"}')
        assert sent.secret == "Bearer canary-secret-of-the-house"
        old = await h.op()
        assert old.status is Status.CLOSED
        assert (new.submitted.job_id, new.submitted.resubmit_of) == ("job-new", "op-job-1")
        assert (new.status, new.max_status_requests, new.status_requests_used) == (Status.WAITING, 12, 0)
        assert new.deadline_at == h.clock.now().wall + 40 * MINUTE
        assert new.submitted.request_fingerprint == old.submitted.request_fingerprint
        assert (await record(h, ActionKind.RESUBMIT)).outcome is ActionOutcome.DONE
        await h.run()
        assert (await h.op(new.operation_id)).status is Status.SUCCEEDED


@pytest.mark.rule("E6", "B2")
async def test_a_resubmission_that_returns_the_same_job_goes_on_with_its_counters(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        h.bank.created = [says("queued", status=201, id="job-1")]
        old = await timed_out(h)
        new = await h.choose(ChoiceKind.RESUBMIT)
        assert (new.status, new.submitted.job_id) == (Status.WAITING, "job-1")
        assert new.status_requests_used == old.status_requests_used == 1
        assert new.max_status_requests == 1 + 12
        assert new.transport_failures_used == old.transport_failures_used == 1


@pytest.mark.rule("E6", "X4")
async def test_a_failed_job_is_resubmitted_with_a_new_key_and_stays_failed(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.bank.scripts["job-new"] = [DONE]
        await h.submit("job-1", says("failed"), **ORIGINAL)
        await h.run()
        assert h.bank.submissions == []
        assert kinds(await h.card()) == ["resubmit"]
        new = await h.choose(ChoiceKind.RESUBMIT)
        (sent,) = h.bank.submissions
        assert sent.headers["idempotency-key"] not in ("k1", "")
        assert (await h.op()).status is Status.FAILED
        assert await h.question() is None
        await h.run()
        assert (await h.op(new.operation_id)).status is Status.SUCCEEDED


@pytest.mark.rule("E6", "S7")
async def test_a_resubmitted_job_is_stored_with_the_key_that_it_was_sent_with(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", says("failed"), **ORIGINAL)
        await h.run()
        new = await h.choose(ChoiceKind.RESUBMIT)
        (sent,) = h.bank.submissions
        assert new.submitted.idempotency_key == sent.headers["idempotency-key"]


@pytest.mark.rule("E6", "S7")
@pytest.mark.parametrize("missing", ["fingerprint", "template", "key"])
async def test_resubmit_is_not_offered_without_template_key_or_matching_fingerprint(
    missing: str, tmp_path: Path
) -> None:
    key = 'idempotency = { header = "Idempotency-Key", max_length = 64, lifetime = "24h" }\n'
    changes = [(key, "")] if missing == "key" else []
    async with house(tmp_path, *changes) as h:
        spec = dict(ORIGINAL)
        if missing == "fingerprint":
            spec["request_fingerprint"] = "ab" * 32
        if missing == "template":
            spec["params"] = {}
        await h.submit("job-1", says("failed"), **spec)
        await h.run()
        assert kinds(await h.card()) == []


@pytest.mark.rule("E6", "O5")
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (LOST, ActionOutcome.UNKNOWN),
        (refuses(503), ActionOutcome.UNKNOWN),
        (refuses(400), ActionOutcome.REFUSED),
    ],
)
async def test_a_resubmission_is_sent_once_and_a_lost_answer_is_unknown(
    answer: dict[str, Any], outcome: ActionOutcome, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        h.bank.created = [answer]
        await h.submit("job-1", says("failed"), **ORIGINAL)
        await h.run()
        await h.choose(ChoiceKind.RESUBMIT)
        assert (await record(h, ActionKind.RESUBMIT)).outcome is outcome
        await h.run()
        assert len(h.bank.submissions) == 1
        assert len(await h.events(EventName.RESUBMITTED)) == 1


@pytest.mark.rule("E6", "O5")
async def test_the_new_key_is_stored_before_it_is_sent_so_that_a_lost_answer_can_be_looked_for(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.bank.created = [LOST]
        await h.submit("job-1", says("failed"), **ORIGINAL)
        await h.run()
        await h.choose(ChoiceKind.RESUBMIT)
        (sent,) = h.bank.submissions
        kept = [await h.op(), await h.core.store.actions("op-job-1"), await h.events()]
        assert sent.headers["idempotency-key"] in msgspec.json.encode(kept).decode()


@pytest.mark.rule("E6", "O5")
@pytest.mark.parametrize("answer", [LOST, refuses(400)])
async def test_an_escalated_operation_is_not_closed_by_a_resubmission_of_which_no_operation_came(
    answer: dict[str, Any], tmp_path: Path
) -> None:
    async with house(tmp_path, SHORT) as h:
        h.bank.created = [answer]
        await timed_out(h)
        await h.choose(ChoiceKind.RESUBMIT)
        question = await h.question()
        assert (await h.op()).status is Status.ESCALATED
        assert question is not None
        assert question.reason is StopReason.DELIVERY_AMBIGUOUS
        assert (question.detail == "outcome_unknown") is (answer is LOST)
        h.bank.created = [says("queued", status=201, id="job-new")]
        new = await h.choose(ChoiceKind.RESUBMIT)
        assert [seen.headers["idempotency-key"] for seen in h.bank.submissions] == ["k1", "k1"]
        assert ((await h.op()).status, new.status) == (Status.CLOSED, Status.WAITING)


@pytest.mark.rule("E6")
async def test_an_unfinished_job_whose_key_is_not_known_is_not_resubmitted(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await timed_out(h, idempotency_key=None)
        assert "resubmit" not in kinds(await h.card())


@pytest.mark.rule("E6", "O5", "S7")
async def test_a_resubmission_that_returns_a_job_that_is_waited_for_already_is_settled(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-new", RUNNING)
        await h.submit("job-1", says("failed"), **ORIGINAL)
        await h.run(11_000)
        with pytest.raises(Refused, match="op-job-new"):
            await h.choose(ChoiceKind.RESUBMIT)
        assert len(h.bank.submissions) == 1
        assert (await record(h, ActionKind.RESUBMIT)).outcome is ActionOutcome.DONE


@pytest.mark.rule("E6", "O1")
async def test_the_old_operation_closes_in_the_transaction_that_stores_the_new_one(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await timed_out(h)
        shown = await h.card()
        real: Any = h.core.store.submit

        async def cannot(*_: Any, **__: Any) -> Operation:
            raise StoreUnusable("the disk is full")

        h.core.store.submit = cannot  # type: ignore[method-assign]
        with pytest.raises(StoreUnusable):
            await h.press(shown, pick(shown, ChoiceKind.RESUBMIT))
        h.core.store.submit = real  # type: ignore[method-assign]
        assert (await h.op()).status is Status.ESCALATED
