"""Between the intent of an action and its outcome: what was sent is never denied, never sent again, always recorded."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pollcore import reading
from pollcore.actions import first_use
from pollcore.adapters.credential_ops import remove_credential
from pollcore.facts import (
    MINUTE,
    SECOND,
    ActionKind,
    ActionOutcome,
    ActionRecord,
    ChoiceKind,
    EventName,
    Operation,
    Refused,
    Stale,
    Status,
    StopDetail,
    StopReason,
    StoreUnusable,
)
from pollcore.ports import Filter, Write
from tests.controller.bank import DONE, LOST, RUNNING, Seen, refuses, says
from tests.controller.house import KEYS, OPERATOR, House, house, pick, until

CONFIRMS = ("[cancel]\n", "[not_found]\nconfirms_cancel = true\n[cancel]\n")
SHORT = ('total = "2s"', 'total = "1s"')
ORIGINAL: dict[str, Any] = {"params": {"input": "a"}, "idempotency_key": "k1"}


async def actions(h: House, kind: ActionKind) -> list[ActionRecord]:
    return [one for one in await h.core.store.actions("op-job-1") if one.kind is kind]


@contextlib.asynccontextmanager
async def while_out(
    h: House, path: str, press: Callable[[], Awaitable[Any]], answer: dict[str, Any] | None = None
) -> AsyncIterator[asyncio.Task[Any]]:
    """What happens while the one request to *path*, which *press* sends, is out; then it gets its *answer*."""
    bank: Any = h.bank
    gate, real = asyncio.Event(), bank._answer_to
    seen: list[Seen] = []

    async def slow(request: Seen) -> dict[str, Any]:
        if request.path.endswith(path) and request.method == "POST":
            seen.append(request)
            found = await real(request)
            await gate.wait()
            return answer or dict(found)
        return dict(await real(request))

    bank._answer_to = slow
    pressed = asyncio.ensure_future(press())
    await until(lambda: seen or pressed.done(), "it is out")
    try:
        yield pressed
    finally:
        gate.set()
        with contextlib.suppress(BaseException):
            await pressed
        bank._answer_to = real
    assert len(seen) == 1


async def poll_once(h: House) -> None:
    """One poll is due, sent and recorded, on a clock that stands."""
    h.clock.jump(12 * SECOND)
    h.clock.stand_still, stop = True, asyncio.Event()
    with h.worker() as controller:
        running = asyncio.create_task(controller.run(stop, watch=False))
        await until(lambda: controller.report.recorded >= 1, "it was polled")
        stop.set()
        await asyncio.wait_for(running, 20)
    h.clock.stand_still = False


async def running(h: House, *answers: dict[str, Any]) -> None:
    """`op-job-1` was seen running, and an operator's question on it is open; *answers* come next."""
    await h.submit("job-1", RUNNING, credential="key")
    await h.run(11 * SECOND)
    assert (await h.op()).completed_polls >= 1
    h.bank.scripts["job-1"] = [RUNNING] * len(h.bank.job("job-1")) + list(answers)
    await h.core.actions.open_question("op-job-1", OPERATOR)


def moving(h: House, times: int, error: Exception | None = None) -> list[int]:
    """Each write of an outcome finds the record moved, or fails with *error*, so many times; returns those."""
    store: Any = h.core.store
    real = store.commit
    moved: list[int] = []

    async def commit(now: Any, writes: tuple[Write, ...], **more: Any) -> Any:
        settles = any(w.action is not None and w.action.outcome is not ActionOutcome.INTENDED for w in writes)
        if settles and len(moved) < times:
            moved.append(now.wall)
            raise error or Stale("the record moved")
        return await real(now, writes, **more)

    store.commit = commit
    return moved


# --- known from the intent on -----------------------------------------------------------------------------------------


@pytest.mark.rule("H4", "E5")
@pytest.mark.parametrize("code", [404, 410])
async def test_a_job_that_is_gone_while_its_cancel_is_out_is_cancelled(code: int, tmp_path: Path) -> None:
    async with house(tmp_path, CONFIRMS) as h:
        await running(h, refuses(code))
        async with while_out(h, "/cancel", lambda: h.choose(ChoiceKind.CANCEL_AT_PROVIDER)):
            await poll_once(h)
        op = await h.op()
        assert (op.status, op.stop_detail) == (Status.CANCELLED, None)
        assert await h.question() is None
        assert [one.outcome for one in await actions(h, ActionKind.CANCEL)] == [ActionOutcome.DONE]


@pytest.mark.rule("H4", "E5", "O5")
async def test_a_cancel_whose_answer_nobody_waited_for_is_known_to_the_polls_that_follow(tmp_path: Path) -> None:
    async with house(tmp_path, CONFIRMS) as h:
        await running(h, refuses(404))
        async with while_out(h, "/cancel", lambda: h.choose(ChoiceKind.CANCEL_AT_PROVIDER)) as pressed:
            pressed.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pressed
        assert [one.outcome for one in await actions(h, ActionKind.CANCEL)] == [ActionOutcome.INTENDED]
        await h.run()
        assert ((await h.op()).status, h.bank.cancels) == (Status.CANCELLED, 1)


@pytest.mark.rule("H4", "E5")
async def test_a_force_cancel_is_known_from_its_intent_on(tmp_path: Path) -> None:
    async with house(tmp_path, CONFIRMS) as h:
        await running(h, RUNNING, refuses(404))
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        first = (await h.op()).memory.cancel_sent_at
        h.clock.jump(30 * SECOND)
        await h.core.actions.open_question("op-job-1", OPERATOR)
        async with while_out(
            h, "/force-cancel", lambda: h.choose(ChoiceKind.CANCEL_AT_PROVIDER, label="force"), refuses(202)
        ):
            second = (await h.op()).memory.cancel_sent_at
        assert first is not None
        assert second == first + 30 * SECOND


@pytest.mark.rule("H4", "E5")
@pytest.mark.parametrize("unsent", [True, False])
async def test_a_cancel_that_was_refused_confirms_nothing(unsent: bool, tmp_path: Path) -> None:
    async with house(tmp_path, CONFIRMS) as h:
        h.bank.cancel_answer = refuses(409)
        await running(h, refuses(404))
        if unsent:
            await remove_credential(h.core.vault, h.core.credential_admin.meta, "key")
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        assert [one.outcome for one in await actions(h, ActionKind.CANCEL)] == [ActionOutcome.REFUSED]
        assert (await h.op()).memory.cancel_sent_at is None
        if unsent:
            await h.credential()
        await h.run()
        op = await h.op()
        assert (op.stop_reason, op.stop_detail) == (StopReason.INTEGRATION_FAILURE, StopDetail.NOT_FOUND)


@pytest.mark.rule("H4", "E5", "O5")
@pytest.mark.parametrize("first", [refuses(202), LOST])
async def test_a_second_cancel_that_was_refused_takes_nothing_from_the_first(
    first: dict[str, Any], tmp_path: Path
) -> None:
    async with house(tmp_path, CONFIRMS) as h:
        h.bank.cancel_answer = first
        await running(h, refuses(404))
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        sent = (await h.op()).memory.cancel_sent_at
        assert sent is not None
        h.clock.jump(1 * SECOND)
        h.bank.cancel_answer = refuses(409)
        await h.core.actions.open_question("op-job-1", OPERATOR)
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        assert (await h.op()).memory.cancel_sent_at == sent
        await h.run()
        assert (await h.op()).status is Status.CANCELLED


# --- a record that moves while the outcome is written -----------------------------------------------------------------


@pytest.mark.rule("O5", "G4", "G8")
async def test_a_cancel_whose_record_keeps_moving_is_recorded_and_not_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await running(h)
        moved = moving(h, 8)
        op = await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        assert (len(moved), op.operation_id, h.bank.cancels) == (8, "op-job-1", 1)
        assert [one.outcome for one in await actions(h, ActionKind.CANCEL)] == [ActionOutcome.DONE]
        assert await h.events(EventName.GRANT_REFUSED) == []


@pytest.mark.rule("O5", "O6", "G4", "G8")
@pytest.mark.parametrize("error", [None, StoreUnusable("the disk is full")])
async def test_an_outcome_that_cannot_be_written_is_unknown_and_nobody_says_that_nothing_was_done(
    error: Exception | None, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        await running(h)
        moving(h, 1_000, error)
        with pytest.raises(StoreUnusable, match="unknown, and is not repeated") as told:
            await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        assert "nothing was done" not in str(told.value)
        assert f"({error or 'the record kept moving'})" in str(told.value)
        assert h.bank.cancels == 1
        assert [one.outcome for one in await actions(h, ActionKind.CANCEL)] == [ActionOutcome.INTENDED]
        assert await h.events(EventName.GRANT_REFUSED) == []
        await h.core.actions.open_question("op-job-1", OPERATOR)
        again = pick(await h.card(), ChoiceKind.CANCEL_AT_PROVIDER)
        assert any("its outcome is unknown" in warning for warning in again.warnings)


@pytest.mark.rule("O5", "S9")
async def test_a_fetch_whose_record_keeps_moving_is_recorded_with_its_file(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        await h.run()
        moved = moving(h, 8)
        record = await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert (len(moved), record.outcome, h.bank.fetches) == (8, ActionOutcome.DONE, 1)
        assert (tmp_path / "out").read_text() == "the result"


@pytest.mark.rule("O5", "E6")
@pytest.mark.parametrize("kind", [ChoiceKind.CANCEL_AT_PROVIDER, ChoiceKind.RESUBMIT])
async def test_an_answer_that_we_cannot_read_is_an_outcome_that_is_unknown(
    kind: ChoiceKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("ours")

    async with house(tmp_path, SHORT) as h:
        cancels = kind is ChoiceKind.CANCEL_AT_PROVIDER
        await (running(h) if cancels else timed_out(h))
        monkeypatch.setattr(reading, "read_cancel" if cancels else "read_submit", broken)
        await h.choose(kind)
        (record,) = await actions(h, ActionKind.CANCEL if cancels else ActionKind.RESUBMIT)
        assert record.outcome is ActionOutcome.UNKNOWN
        assert record.detail is not None
        assert "could not read" in record.detail
        assert h.bank.cancels + len(h.bank.submissions) == 1


@pytest.mark.rule("O5")
async def test_a_failure_of_ours_while_it_is_sent_is_an_outcome_that_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await running(h)

        async def broken(*_: Any) -> Any:
            raise RuntimeError("ours")

        monkeypatch.setattr(h.core.transport, "send", broken)
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        assert [one.outcome for one in await actions(h, ActionKind.CANCEL)] == [ActionOutcome.UNKNOWN]


# --- a resubmission ---------------------------------------------------------------------------------------------------


async def timed_out(h: House, **spec: Any) -> Operation:
    """`op-job-1` stopped with `delivery_ambiguous`: no final answer was seen."""
    h.bank.gate = asyncio.Event()
    await h.submit("job-1", RUNNING, **{"max_transport_failures": 1, **ORIGINAL, **spec})
    await h.run()
    h.bank.gate.set()
    op = await h.op()
    assert op.stop_reason is StopReason.DELIVERY_AMBIGUOUS
    return op


async def stored(h: House) -> dict[str, Operation]:
    """All operations, by the id of their job."""
    return {op.submitted.job_id: op for op in await h.core.store.operations(Filter(limit=10))}


@pytest.mark.rule("E6", "E7", "O5", "G4")
async def test_a_limit_that_passes_while_a_resubmission_is_out_loses_no_job(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await timed_out(h, credential="key")
        h.clock.jump(38 * MINUTE)
        async with while_out(h, "/v1/jobs", lambda: h.choose(ChoiceKind.RESUBMIT)) as pressed:
            version, stop = (await h.op()).version, asyncio.Event()
            h.clock.jump(5 * MINUTE)
            h.clock.stand_still = True
            with h.worker() as controller:
                loop = asyncio.create_task(controller.run(stop, watch=False))

                async def passed() -> bool:
                    return (await h.op()).version > version

                await until(passed, "the deadline passed")
                stop.set()
                await asyncio.wait_for(loop, 20)
        new = pressed.result()
        assert (new.submitted.job_id, new.submitted.resubmit_of) == ("job-new", "op-job-1")
        found = await stored(h)
        assert (found["job-1"].status, found["job-new"].status) == (Status.CLOSED, Status.WAITING)
        assert found["job-1"].version > version + 1
        assert await h.question() is None
        (record,) = await actions(h, ActionKind.RESUBMIT)
        assert (record.outcome, record.detail) == (ActionOutcome.DONE, new.operation_id)
        assert await h.events(EventName.GRANT_REFUSED) == []
        assert len(h.bank.submissions) == 1


@pytest.mark.rule("E6", "E7", "O5")
@pytest.mark.parametrize(
    ("kind", "then"),
    [(ChoiceKind.CLOSE, Status.CLOSED), (ChoiceKind.EXTEND, Status.WAITING), (None, Status.CLOSED)],
)
async def test_what_an_operator_decided_while_a_resubmission_was_out_stands_and_its_job_is_waited_for(
    kind: ChoiceKind | None, then: Status, tmp_path: Path
) -> None:
    async with house(tmp_path, SHORT) as h:
        await timed_out(h)
        async with while_out(h, "/v1/jobs", lambda: h.choose(ChoiceKind.RESUBMIT)) as pressed:
            if kind is None:
                await h.core.actions.lower("op-job-1", ChoiceKind.CLOSE, "enough", "agent")
            else:
                await h.choose(kind)
            decided = await h.op()
        found = await stored(h)
        assert (found["job-1"].status, found["job-1"].version) == (then, decided.version)
        assert found["job-new"].operation_id == pressed.result().operation_id
        assert found["job-new"].status is Status.WAITING
        (record,) = await actions(h, ActionKind.RESUBMIT)
        assert (record.outcome, record.detail) == (ActionOutcome.DONE, found["job-new"].operation_id)


@pytest.mark.rule("E6", "O5", "S7")
async def test_a_resubmission_that_returns_the_job_of_a_wait_that_goes_on_by_then_says_what_it_did(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, SHORT) as h:
        h.bank.created = [says("queued", status=201, id="job-1")]
        await timed_out(h)
        async with while_out(h, "/v1/jobs", lambda: h.choose(ChoiceKind.RESUBMIT)) as pressed:
            await h.choose(ChoiceKind.EXTEND)
        with pytest.raises(Refused, match="the provider took it as job job-1") as told:
            pressed.result()
        assert "op-job-1" in str(told.value)
        (record,) = await actions(h, ActionKind.RESUBMIT)
        assert record.outcome is ActionOutcome.DONE
        assert list(await stored(h)) == ["job-1"]
        assert ((await h.op()).status, await h.question()) == (Status.WAITING, None)
        assert await h.events(EventName.GRANT_REFUSED) == []


@pytest.mark.rule("E6", "O1", "O5")
@pytest.mark.parametrize("final", [True, False])
async def test_the_outcome_of_a_resubmission_is_stored_with_the_new_operation(final: bool, tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        if final:
            await h.submit("job-1", says("failed"), **ORIGINAL)
            await h.run()
        else:
            await timed_out(h)
        store: Any = h.core.store
        real = store.submit

        async def submit(*given: Any, **more: Any) -> Operation:
            found: Operation = await real(*given, **more)
            moving(h, 1_000)
            return found

        store.submit = submit
        new = await h.choose(ChoiceKind.RESUBMIT)
        (record,) = await actions(h, ActionKind.RESUBMIT)
        assert (record.outcome, record.detail, record.http_code) == (ActionOutcome.DONE, new.operation_id, 201)
        assert len(await h.events(EventName.RESUBMITTED)) == 1


@pytest.mark.rule("E6", "O5", "G4")
@pytest.mark.parametrize("error", [Stale("the record moved"), StoreUnusable("the disk is full")])
async def test_a_resubmission_whose_record_never_stands_still_names_the_job_and_is_not_refused(
    error: Exception, tmp_path: Path
) -> None:
    async with house(tmp_path, SHORT) as h:
        await timed_out(h)

        async def submit(*_: Any, **__: Any) -> Operation:
            raise error

        held: Any = h.core.store
        held.submit = submit
        with pytest.raises(StoreUnusable, match="job-new") as told:
            await h.choose(ChoiceKind.RESUBMIT)
        assert "nothing was done" not in str(told.value)
        assert len(h.bank.submissions) == 1
        assert await h.events(EventName.GRANT_REFUSED) == []
        question = await h.question()
        assert question is not None
        assert question.detail == StopDetail.OUTCOME_UNKNOWN.value


@pytest.mark.rule("E6", "O5", "E7")
async def test_a_record_that_moves_once_more_while_the_new_job_is_stored_is_read_again(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await timed_out(h)
        store: Any = h.core.store
        real, tried = store.submit, []

        async def submit(*given: Any, **more: Any) -> Operation:
            tried.append(more["resubmit"].fence_change)
            if len(tried) == 1:
                await h.core.actions.lower("op-job-1", ChoiceKind.CLOSE, "enough", "agent")
            found: Operation = await real(*given, **more)
            return found

        store.submit = submit
        new = await h.choose(ChoiceKind.RESUBMIT)
        assert len(tried) == 2
        assert tried[0] < tried[1]
        found = await stored(h)
        assert (found["job-1"].status, found["job-new"].operation_id) == (Status.CLOSED, new.operation_id)
        (record,) = await actions(h, ActionKind.RESUBMIT)
        assert (record.outcome, len(h.bank.submissions)) == (ActionOutcome.DONE, 1)


@pytest.mark.rule("G4", "G8", "E6")
async def test_a_record_that_moves_before_the_intent_is_stored_is_decided_again_and_sent_once(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await timed_out(h)
        store: Any = h.core.store
        real = store.commit
        moved: list[int] = []

        async def commit(now: Any, writes: tuple[Write, ...], **more: Any) -> Any:
            if len(moved) < 2:
                moved.append(now.wall)
                raise Stale("a poll came between")
            return await real(now, writes, **more)

        store.commit = commit
        new = await h.choose(ChoiceKind.RESUBMIT)
        assert (new.submitted.job_id, len(h.bank.submissions), len(moved)) == ("job-new", 1, 2)


# --- decided with what was shown --------------------------------------------------------------------------------------


@pytest.mark.rule("S8", "G4")
async def test_a_contract_file_that_changes_while_it_is_adopted_is_not_read_in_place_of_the_shown_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    knows = ('waiting = ["queued", "running"]', 'waiting = ["queued", "running", "compiling"]')
    ends = (
        ('succeeded = ["done"]', 'succeeded = ["done"]\n# compiling ends it'),
        ('failed = ["failed"]', 'failed = ["failed", "compiling"]'),
    )
    async with house(tmp_path) as h:
        for job in ("job-1", "job-2"):
            await h.submit(job, says("compiling"), RUNNING)
        await h.run(11 * SECOND)
        h.write_contract(knows)
        shown_digest = (await h.choose(ChoiceKind.ADOPT_CONTRACT, "op-job-2")).contract_digest
        before, shown = await h.op(), await h.card()
        real: Any = h.core.store.actions_of
        looks: list[int] = []

        async def actions_of(ids: Any) -> Any:
            found = await real(ids)
            looks.append(len(looks))
            h.write_contract(*ends)
            return found

        monkeypatch.setattr(h.core.store, "actions_of", actions_of)
        with contextlib.suppress(Stale, Refused):
            await h.press(shown, pick(shown, ChoiceKind.ADOPT_CONTRACT))
        op = await h.op()
        assert looks
        if op.contract_digest == before.contract_digest:
            assert (op.version, op.status, op.memory) == (before.version, before.status, before.memory)
        else:
            assert (op.contract_digest, op.status, op.last_known_state) == (shown_digest, Status.WAITING, "compiling")


# --- one answer for many ----------------------------------------------------------------------------------------------


async def strange(h: House, jobs: int = 3) -> str:
    """So many operations stopped at one unknown state; returns the cause that they share."""
    for n in range(1, jobs + 1):
        await h.submit(f"job-{n}", says("strange"))
    await h.run()
    (group,) = await h.core.actions.cards()
    return group.cause


@pytest.mark.rule("E10", "G8", "O6")
async def test_what_one_answer_did_before_the_store_failed_is_told_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        shown = await h.core.actions.group(await strange(h))
        store: Any = h.core.store
        commit_each, asked = store.commit_each, store.asked

        async def cannot(*_: Any, **__: Any) -> Any:
            raise StoreUnusable("the disk is full")

        async def one_moves(now: Any, writes: Any) -> Any:
            monkeypatch.setattr(store, "asked", cannot)
            found = await commit_each(now, [w for w in writes if w.after.operation_id != "op-job-3"])
            return (*found, "moved: a poll came between")

        monkeypatch.setattr(store, "commit_each", one_moves)
        choice = next(c for c in shown.card.choices if c.kind is ChoiceKind.CLOSE)
        done = await h.core.actions.decide_group(shown.cause, choice.key, shown.digest, KEYS, OPERATOR)
        monkeypatch.setattr(store, "asked", asked)
        assert done.done == ("op-job-1", "op-job-2")
        assert done.refused == (("op-job-3", "not tried: the disk is full"),)
        ends = [(await h.op(f"op-job-{n}")).status for n in (1, 2, 3)]
        assert ends == [Status.CLOSED, Status.CLOSED, Status.ESCALATED]


@pytest.mark.rule("E10", "O6")
async def test_one_answer_of_which_nothing_was_done_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with house(tmp_path) as h:
        shown = await h.core.actions.group(await strange(h))

        async def cannot(*_: Any, **__: Any) -> Any:
            raise StoreUnusable("the disk is full")

        monkeypatch.setattr(h.core.store, "asked", cannot)
        choice = next(c for c in shown.card.choices if c.kind is ChoiceKind.CLOSE)
        with pytest.raises(StoreUnusable, match="the disk is full"):
            await h.core.actions.decide_group(shown.cause, choice.key, shown.digest, KEYS, OPERATOR)
        assert {(await h.op(f"op-job-{n}")).status for n in (1, 2, 3)} == {Status.ESCALATED}


@pytest.mark.rule("X7", "E10", "O6")
@pytest.mark.parametrize("way", ["alone", "together", "submit"])
async def test_an_answer_for_a_contract_stands_where_the_others_cannot_be_reached_now(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    untried = ('tested_live = "the bank of these tests"\n', "")

    async def cannot(*_: Any) -> int:
        raise StoreUnusable("the disk is full")

    async with house(tmp_path, untried) as h:
        await h.submit("job-1", DONE)
        shown = await h.core.actions.group((await h.core.actions.cards())[0].cause)
        monkeypatch.setattr(first_use, "settle", cannot)
        late = await h.submit("job-2", DONE)
        assert late.status is Status.AWAITING_APPROVAL
        if way == "alone":
            op = await h.choose(ChoiceKind.APPROVE, label="it is read-only")
            assert op.status is Status.WAITING
        elif way == "together":
            choice = next(c for c in shown.card.choices if "it is read-only" in c.label)
            done = await h.core.actions.decide_group(shown.cause, choice.key, shown.digest, KEYS, OPERATOR)
            assert (done.done, done.refused) == (("op-job-1",), ())
        assert (await h.question("op-job-2")) is not None
