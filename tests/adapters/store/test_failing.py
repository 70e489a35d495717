"""Every statement of a turn fails once, with every error: all of it happened or nothing, and the store goes on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.adapters.store.builders import Chain, Seal, at, claim, inline, question, result, submit, take
from tests.adapters.store.failing import NAMES, unwrap, wrap
from tests.adapters.store.laws import broken

from pollcore.adapters import places
from pollcore.adapters.store import InlineStore
from pollcore.adapters.store.errors import MIN_FREE_BYTES
from pollcore.facts import Status, StoreUnusable
from pollcore.ports import Cooldown, Turn

MAX_STATEMENTS = 60


async def scene(store: Any) -> Turn:
    """A turn with a result, a stop with its question, a cool-down, and two claims."""
    flying = [await take(store, await submit(store, name), at(1)) for name in ("op-a", "op-b")]
    ready = [await submit(store, name) for name in ("op-c", "op-d")]
    stop = result(flying[1].operation, 1, at(2_000), status=Status.ESCALATED, version=2, due_boot=None)
    stop = msgspec.structs.replace(stop, open_question=question(flying[1].operation, at(2_000)))
    return Turn(
        now=at(2_000),
        owner="w-1",
        writes=(result(flying[0].operation, 1, at(2_000), envelope=b"{}"), stop),
        claims=tuple(claim(o, at(2_000), concurrency=9, per_minute=9) for o in ready),
        cooldowns=(
            Cooldown(provider="p", account="a", credential=None, until=at(9_000).wall, until_boot=at(9_000).boot),
        ),
        look=10,
    )


def dump(store: InlineStore) -> list[Any]:
    """All rows of all tables but the marks of the connection."""
    conn = store.turns.conn
    tables = [r[0] for r in conn.execute("SELECT name FROM sqlite_master WHERE type='table' AND name <> 'writer'")]
    return [(t, conn.execute(f'SELECT * FROM "{t}"').fetchall()) for t in sorted(tables)]


async def statements() -> int:
    """How many statements the turn has when nothing fails."""
    store = inline()
    turn = await scene(store)
    counting = wrap(store.turns, 0, "")
    await store.turn(turn)
    return counting.calls


@pytest.mark.rule("O6")
@pytest.mark.parametrize("name", NAMES)
async def test_a_turn_whose_nth_statement_fails_leaves_all_or_nothing(name: str) -> None:
    count = await statements()
    assert 15 < count < MAX_STATEMENTS
    for n in range(1, count + 1):
        store = inline()
        turn = await scene(store)
        before = dump(store)
        failing = wrap(store.turns, n, name)
        with pytest.raises(StoreUnusable) as told:
            await store.turn(turn)
        unwrap(store.turns, failing)
        assert failing.failed is not None
        assert name in str(told.value)
        assert dump(store) == before, f"statement {n}: {failing.failed}"
        store.turns.writer.was_full = False
        out = await store.turn(turn)
        assert (out.taken, [c is not None for c in out.claimed]) == ((True, True), [True, True])
        assert broken(store.turns.conn) == []
        await store.close()


@pytest.mark.rule("O6")
@pytest.mark.parametrize("name", ["SQLITE_IOERR_FSYNC", "SQLITE_BUSY", "SQLITE_FULL"])
async def test_a_commit_whose_answer_was_lost_is_read_again_and_not_repeated(name: str) -> None:
    store = inline()
    turn = await scene(store)
    for number in range(1, MAX_STATEMENTS):  # a few more than in one go: what was forgotten is asked again
        failing = wrap(store.turns, number, name, after=True)
        try:
            out = await store.turn(turn)
        except StoreUnusable:
            unwrap(store.turns, failing)
            store.turns.writer.was_full = False
            assert failing.failed != "COMMIT"
            continue
        unwrap(store.turns, failing)
        assert failing.failed == "COMMIT"
        break
    assert out.taken == (True, True)
    assert [c.intents for c in out.claimed] == [(1,), (1,)]
    again = await store.turn(turn)
    assert (again.taken, again.claimed) == ((False, False), (None, None))
    assert broken(store.turns.conn) == []


@pytest.mark.rule("O6")
async def test_after_a_full_disk_nothing_is_claimed_before_there_is_room(
    home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = InlineStore(Seal(), Chain(), str(home / "pollconsole.db"))
    first = await submit(store)
    free = MIN_FREE_BYTES - 1
    monkeypatch.setattr(places, "free_bytes", lambda folder: free)
    failing = wrap(store.turns, 4, "SQLITE_FULL")
    with pytest.raises(StoreUnusable, match="disk is full"):
        await take(store, first, at(1))
    unwrap(store.turns, failing)
    with pytest.raises(StoreUnusable, match="64 MiB"):
        await take(store, first, at(2))
    assert (await store.turn(Turn(now=at(2), owner="w-1", look=5))).due == (first,)
    free = MIN_FREE_BYTES
    assert await take(store, first, at(3)) is not None
    await store.close()


@pytest.mark.rule("O6")
async def test_an_error_names_the_file_what_happened_and_the_way_out() -> None:
    store = inline()
    wrap(store.turns, 1, "SQLITE_READONLY")
    with pytest.raises(StoreUnusable) as told:
        await submit(store)
    assert str(told.value) == (
        "store :memory:: it cannot be written while storing a submission (SQLITE_READONLY): "
        "give this user the right to write to the file and its folder"
    )
