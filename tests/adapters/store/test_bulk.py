"""Many at once: bulk reads say the same as single ones, and in a commit for many each write stands for itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.adapters.store.builders import Seal, at, event, operation, question, result, submit, take

from pollcore.facts import (
    ActionKind,
    ActionOutcome,
    ActionRecord,
    EventName,
    Operation,
    Status,
    StopReason,
    Submitted,
)
from pollcore.ports import Write

URL = "https://acme.example/jobs/7?sig=canary"


async def asked(store: Any, name: str, cause: str, ms: int = 0, **changes: Any) -> Operation:
    """A stopped operation with its open question under *cause*."""
    made: Operation = await submit(store, name, at(ms), **changes)
    after = msgspec.structs.replace(
        made, status=Status.ESCALATED, stop_reason=StopReason.PROVIDER_FAILURE, version=2, due_boot=None
    )
    opened = msgspec.structs.replace(question(after, at(ms), f"q-{name}"), cause=cause)
    await store.commit(at(ms), [Write(after=after, fence_change=made.change, open_question=opened)])
    found = await store.operation(name)
    assert found is not None
    return found


def closing(o: Operation, name: str, **fields: Any) -> Write:
    """A decision that closes *o*."""
    opened = msgspec.structs.replace(question(o, at()), escalation_id=f"q-{name}")
    after = msgspec.structs.replace(o, status=Status.CLOSED, version=o.version + 1)
    return Write(
        after=after,
        fence_change=o.change,
        fence_version=o.version,
        events=(event(name, at(), EventName.CLOSED),),
        close_question=msgspec.structs.replace(opened, decided_at=at().wall, decision="close", operator="ana"),
        **fields,
    )


@pytest.mark.rule("E10")
async def test_what_is_asked_comes_with_its_operations_oldest_first_and_by_cause(store: Any) -> None:
    given = Submitted(provider="acme", account="team", job_id="job-x", status_url=URL)
    await asked(store, "op-b", "down", 20, submitted=given)
    await asked(store, "op-a", "down", 30)
    await asked(store, "op-c", "other", 10)
    await submit(store, "op-runs")
    for cause, names in ((None, ["op-c", "op-b", "op-a"]), ("down", ["op-b", "op-a"]), ("none", [])):
        pairs = await store.asked(cause)
        assert [op.operation_id for op, _ in pairs] == names
        for op, open_question in pairs:
            assert op == await store.operation(op.operation_id)
            assert (open_question,) == tuple(await store.questions(op.operation_id))
    assert len(await store.asked(limit=2)) == 2
    assert (await store.asked("down"))[0][0].submitted.status_url == URL


@pytest.mark.rule("E10", "E7")
async def test_a_question_is_found_by_its_own_id_also_when_it_was_decided(store: Any) -> None:
    one = await asked(store, "op-1", "down")
    await asked(store, "op-2", "down")
    await store.commit(at(5), [closing(one, "op-1")])
    found = await store.questions_by_id(["q-op-1", "q-op-2", "q-none"])
    assert set(found) == {"q-op-1", "q-op-2"}
    assert (found["q-op-1"].decision, found["q-op-1"].operator) == ("close", "ana")
    assert found["q-op-2"].decided_at is None
    assert [op.operation_id for op, _ in await store.asked("down")] == ["op-2"]


@pytest.mark.rule("E10")
async def test_answers_and_actions_of_many_are_those_of_each(store: Any, seal: Seal) -> None:
    for name in ("op-1", "op-2"):
        o = await submit(store, name)
        for n in (1, 2):
            claimed = await take(store, o, at(n * 1_000))
            assert claimed is not None
            write = result(claimed.operation, n, at(n * 1_000 + 10), envelope=f"{name} {n}".encode(), delay=0)
            await store.turn(_turn(write, at(n * 1_000 + 10)))
            found = await store.operation(name)
            assert found is not None
            o = found
        record = ActionRecord(
            action_id=f"act-{name}",
            operation_id=name,
            kind=ActionKind.CANCEL,
            outcome=ActionOutcome.INTENDED,
            at=at().wall,
        )
        await store.commit(at(9_000), [Write(after=o, fence_change=o.change, action=record)])
    await submit(store, "op-3")
    names = ["op-1", "op-2", "op-3", "op-none"]
    answers, actions = await store.last_answers(names), await store.actions_of(names)
    assert set(answers) == set(actions) == {"op-1", "op-2"}
    for name in answers:
        assert answers[name] == await store.last_answer(name)
        assert answers[name].envelope == f"{name} 2".encode()
        assert actions[name] == tuple(await store.actions(name))
    seal.readable = False
    assert await store.last_answers(names) == {}


def _turn(write: Write, now: Any) -> Any:
    from pollcore.ports import Turn

    return Turn(now=now, owner="w-1", writes=(write,))


@pytest.mark.rule("E10", "G4", "E7")
async def test_of_many_writes_those_that_hold_are_taken_whole_and_the_others_leave_nothing(store: Any) -> None:
    ops = [await asked(store, f"op-{n}", "down") for n in range(4)]
    await store.commit(at(5), [closing(ops[1], "op-1")])
    newer = msgspec.structs.replace(ops[2], last_known_state="later")
    await store.commit(at(6), [Write(after=newer, fence_change=ops[2].change)])
    writes = [closing(o, o.operation_id) for o in ops]
    unknown = msgspec.structs.replace(operation("op-none"), change=1)
    found = await store.commit_each(at(7), [*writes, closing(unknown, "op-none")])
    assert found[0] is None
    assert found[3] is None
    assert found[1] is not None
    assert found[1].startswith("ended")
    assert found[2] is not None
    assert found[2].startswith("moved")
    assert found[4] == "no such operation"
    statuses = [(await store.operation(o.operation_id)).status for o in ops]
    assert statuses == [Status.CLOSED, Status.CLOSED, Status.ESCALATED, Status.CLOSED]
    closed = [[e.event for _, e in await store.events(o.operation_id)].count(EventName.CLOSED) for o in ops]
    assert closed == [1, 1, 0, 1]
    assert list(await store.check()) == []
    # nothing of them holds any more; the same writes once more leave nothing
    again = await store.commit_each(at(8), writes)
    assert None not in again
    assert [(await store.operation(o.operation_id)).status for o in ops] == statuses
