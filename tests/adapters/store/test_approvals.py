"""Leave to use a credential, in the store: used up or counted with the charge, never twice, over migrations too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.adapters.store.builders import Chain, Seal, at, claim, event, operation, question, result, submit, take

from pollcore.adapters.store import InlineStore, connecting, opening, schema
from pollcore.adapters.store.library import utilities
from pollcore.facts import (
    BootMs,
    CallGrant,
    EventName,
    Instant,
    Moment,
    Operation,
    Session,
    Stale,
    Status,
    StopReason,
)
from pollcore.ports import Turn, Window, Write

MINUTE = 60_000


def leave(o: Operation, now: Moment, name: str = "g-1", **fields: Any) -> CallGrant:
    """The leave for the next request of *o*, two minutes long."""
    given: dict[str, Any] = {
        "grant_id": name,
        "operation_id": o.operation_id,
        "digest": "d" * 64,
        "number": o.status_requests_used + 1,
        "purpose": "status",
        "credential": "key",
        "granted_at": now.wall,
        "expires_at": Instant(now.wall + 2 * MINUTE),
        "boot_id": now.boot_id,
        "expires_boot": BootMs(now.boot + 2 * MINUTE),
    }
    return CallGrant(**given | fields)


def session(now: Moment, name: str = "s-1", owner: str = "w-1", **fields: Any) -> Session:
    """A session of one minute and two calls."""
    given: dict[str, Any] = {
        "session_id": name,
        "credential": "key",
        "owner": owner,
        "binding": "b",
        "started_at": now.wall,
        "until": Instant(now.wall + MINUTE),
        "boot_id": now.boot_id,
        "until_boot": BootMs(now.boot + MINUTE),
        "calls": 2,
        "granted_by": "ops",
        "grant_id": f"grant of {name}",
    }
    return Session(**given | fields)


async def keep(store: Any, o: Operation, now: Moment, **parts: Any) -> Operation:
    """Store an approval or a session with a write of *o*."""
    await store.commit(now, (Write(after=o, fence_change=o.change, release_lease=False, **parts),))
    found: Operation = await store.operation(o.operation_id)
    return found


@pytest.mark.rule("G4", "G6")
async def test_an_approval_is_used_up_with_the_charge_and_serves_nothing_else(store: Any) -> None:
    o = await submit(store)
    given = leave(o, at(1))
    o = await keep(store, o, at(1), approval=given)
    assert await store.approval("op-1") == given
    other = msgspec.structs.replace(given, digest="e" * 64)
    assert await take(store, o, at(2), approval=other) is None
    assert (await store.operation("op-1")).status_requests_used == 0
    claimed = await take(store, o, at(2), approval=given)
    assert claimed is not None
    assert await store.approval("op-1") is None
    await store.turn(Turn(now=at(3), owner="w-1", writes=(result(claimed.operation, 1, at(3)),)))
    again = await store.operation("op-1")
    assert await take(store, again, at(4), approval=given) is None
    assert (await store.operation("op-1")).status_requests_used == 1


@pytest.mark.rule("G4", "G7")
@pytest.mark.parametrize("late", ["wall", "boot"])
async def test_an_approval_is_not_used_after_its_end_by_either_clock(late: str, store: Any) -> None:
    o = await submit(store)
    short = {"expires_at": Instant(at(2).wall)} if late == "wall" else {"expires_boot": BootMs(at(2).boot)}
    o = await keep(store, o, at(1), approval=leave(o, at(1), **short))
    found = await store.approval("op-1")
    assert await take(store, o, at(2), approval=found) is None
    assert (await store.operation("op-1")).status_requests_used == 0


@pytest.mark.rule("G4", "O2")
async def test_of_two_claims_with_one_approval_in_one_turn_one_is_taken(store: Any) -> None:
    o = await submit(store)
    given = leave(o, at(1))
    o = await keep(store, o, at(1), approval=given)
    both = (claim(o, at(2), approval=given), claim(o, at(2), approval=given))
    out = await store.turn(Turn(now=at(2), owner="w-1", claims=both))
    assert [one is not None for one in out.claimed] == [True, False]
    assert (await store.operation("op-1")).status_requests_used == 1


@pytest.mark.rule("G4", "O5")
async def test_an_action_uses_its_leave_up_with_its_intent_or_does_not_happen(store: Any) -> None:
    o = await submit(store)
    given = leave(o, at(1), purpose="fetch_result")
    o = await keep(store, o, at(1), approval=given)
    used = msgspec.structs.replace(given, used_for="act-1")
    o = await keep(store, o, at(2), uses=used)
    assert await store.approval("op-1") is None
    with pytest.raises(Stale, match="used up"):
        await keep(store, o, at(3), uses=used)
    assert (await store.operation("op-1")).change == o.change


@pytest.mark.rule("G4")
async def test_a_newer_approval_takes_the_place_of_an_unused_one(store: Any) -> None:
    o = await submit(store)
    first, second = leave(o, at(1)), leave(o, at(2), "g-2", digest="e" * 64)
    o = await keep(store, o, at(1), approval=first)
    o = await keep(store, o, at(2), approval=second)
    assert await store.approval("op-1") == second
    assert await take(store, o, at(3), approval=first) is None
    assert await take(store, o, at(3), approval=second) is not None


@pytest.mark.rule("G6")
async def test_a_session_is_counted_with_each_charge_and_never_beyond_its_calls(store: Any) -> None:
    names = ("op-1", "op-2", "op-3")
    made = [await _submit(store, name) for name in names]
    live = session(at(1))
    made[0] = await keep(store, made[0], at(1), session=live)
    taken = [await take(store, o, at(2), session=live) for o in made]
    assert [one is not None for one in taken] == [True, True, False]
    (found,) = await store.sessions()
    assert (found.used, found.calls_left) == (2, 0)
    assert (await store.operation("op-3")).status_requests_used == 0


async def _submit(store: Any, name: str) -> Operation:
    now = at()
    o = operation(name, now)
    given = msgspec.structs.replace(o.submitted, job_id=name)
    return await submit(store, name, now, submitted=given)


@pytest.mark.rule("G6")
@pytest.mark.parametrize(
    ("owner", "when", "changes"),
    [
        ("w-2", 2, {}),
        ("w-1", 60_001, {}),
        ("w-1", 2, {"binding": "another secret"}),
        ("w-1", 2, {"credential": "other"}),
        ("w-1", 2, {"session_id": "s-unknown"}),
    ],
    ids=["another run", "its time is over", "the credential changed", "another credential", "no such session"],
)
async def test_a_session_serves_its_run_its_time_and_its_credential(
    owner: str, when: int, changes: dict[str, Any], store: Any
) -> None:
    o = await submit(store)
    live = session(at(1))
    o = await keep(store, o, at(1), session=live)
    shown = msgspec.structs.replace(live, **changes)
    assert await take(store, o, at(when), owner=owner, session=shown) is None
    assert ((await store.sessions())[0].used, (await store.operation("op-1")).status_requests_used) == (0, 0)


@pytest.mark.rule("G6", "E10")
async def test_one_session_is_stored_once_and_a_newer_one_of_its_run_ends_it(store: Any) -> None:
    o = await submit(store)
    o = await keep(store, o, at(1), session=session(at(1)))
    o = await keep(store, o, at(2), session=session(at(2)))
    assert [one.started_at for one in await store.sessions()] == [at(1).wall]
    o = await keep(store, o, at(3), session=session(at(3), "s-2"))
    o = await keep(store, o, at(4), session=session(at(4), "s-3", owner="w-2"))
    assert [one.session_id for one in await store.sessions()] == ["s-2", "s-3"]


@pytest.mark.rule("G5", "G6")
async def test_ending_sessions_is_for_good_and_told_once(store: Any) -> None:
    o = await submit(store)
    live = session(at(1))
    o = await keep(store, o, at(1), session=live)
    told = event("op-1", at(2), EventName.SESSION_ENDED)
    told = msgspec.structs.replace(told, operation_id=None)
    assert await store.end_sessions(at(2), "enough", credential="other", event=told) == 0
    assert await store.end_sessions(at(2), "enough", credential="key", event=told) == 1
    assert await store.end_sessions(at(3), "enough", owner="w-1", event=told) == 0
    assert await store.sessions() == ()
    assert await take(store, o, at(3), session=live) is None
    ended = [one for _, one in await store.events() if one.event is EventName.SESSION_ENDED]
    assert len(ended) == 1


@pytest.mark.rule("G7")
async def test_the_time_of_a_question_moves_only_where_it_is_as_it_was_read(store: Any) -> None:
    o = await submit(store)
    asked = msgspec.structs.replace(o, status=Status.AWAITING_APPROVAL, version=2)
    o = await keep(store, asked, at(1), open_question=question(asked, at(1), reason=StopReason.CALL_APPROVAL))
    ends = Instant(at(1).wall + MINUTE)
    runs = Window(escalation_id="q-1", before=None, expires_at=ends, left_ms=None)
    before = await store.change()
    assert await store.set_windows(at(2), (runs,)) == 1
    assert await store.change() > before
    assert await store.set_windows(at(2), (runs,)) == 0
    (found,) = await store.questions("op-1")
    assert (found.expires_at, found.left_ms, found.seen_at) == (ends, None, None)
    assert [q.escalation_id for _, q in await store.asked(reasons=(StopReason.CALL_APPROVAL,))] == ["q-1"]
    assert await store.asked(reasons=(StopReason.SESSION_APPROVAL,)) == ()


@pytest.mark.rule("G7")
async def test_a_card_was_first_seen_once_and_only_while_it_is_open(store: Any) -> None:
    o = await submit(store)
    o = await keep(store, o, at(1), open_question=question(o, at(1)))
    assert not await store.mark_seen(at(2), "op-1", "q-other")
    assert not await store.mark_seen(at(2), "op-other", "q-1")
    assert await store.mark_seen(at(2), "op-1", "q-1")
    assert await store.mark_seen(at(9), "op-1", "q-1")
    (found,) = await store.questions("op-1")
    assert found.seen_at == at(2).wall
    done = msgspec.structs.replace(found, decided_at=at(3).wall, decision="close")
    await keep(store, o, at(3), close_question=done)
    assert not await store.mark_seen(at(4), "op-1", "q-1")


@pytest.mark.rule("O6")
async def test_a_store_of_schema_1_gets_the_tables_and_keeps_what_it_held(home: Path) -> None:
    path = str(home / "pollconsole.db")
    conn = connecting.connect(path)
    conn.execute("BEGIN IMMEDIATE")
    schema.STEPS[1](utilities(conn))
    conn.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
    conn.execute("COMMIT")
    conn.execute("INSERT INTO boot(no, boot_id) VALUES(1, 'boot-0')")
    conn.execute(
        "INSERT INTO contract(no, digest, name, text, instance) VALUES(1, 'd', 'n', 't', '{}')",
    )
    conn.close()
    store = InlineStore(Seal(), Chain(), path)
    tables = {name for (name,) in store.turns.conn.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    assert {"approval", "session"} <= tables
    assert store.turns.conn.execute("SELECT schema FROM meta").fetchone() == (schema.SCHEMA,)
    assert store.turns.conn.execute("SELECT digest FROM contract").fetchall() == [("d",)]
    assert (home / "pollconsole.db.before-schema-2").exists()
    o = await submit(store)
    o = await keep(store, o, at(1), open_question=question(o, at(1)), approval=leave(o, at(1)))
    assert await store.mark_seen(at(2), "op-1", "q-1")
    assert await store.approval("op-1") is not None
    await store.close()


@pytest.mark.rule("O6")
def test_a_new_store_is_made_whole_at_once_without_copies_of_nothing(home: Path) -> None:
    opening.open_writer(str(home / "pollconsole.db")).close()
    assert list(home.glob("*before-schema*")) == []
