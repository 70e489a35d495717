"""One answer for thousands: each operation decided once, by itself, on the list that was frozen, and nothing else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollcore.actions import Actions, ShownGroup
from pollcore.actions.one_answer import KEPT_MOVING, MOVED
from pollcore.actions.together import BATCH
from pollcore.facts import (
    MINUTE,
    ChoiceKind,
    CredentialUnavailable,
    EventName,
    Moment,
    Operation,
    Refused,
    Stale,
    Status,
    StopReason,
    StoreUnusable,
)
from pollcore.ports import Write
from tests.console.seed import Seeded, stopped
from tests.outage.made import CAUSE, OUTLIERS, home_in, opened, others, outage, seed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = {"card_digest": "d", "step1_key": "1", "step2_key": "v"}
LIMIT_S = 60
FEW = 450
"""More than two transactions."""


def key_of(shown: ShownGroup, kind: ChoiceKind, label: str = "") -> str:
    return next(c.key for c in shown.card.choices if c.kind is kind and c.label.startswith(label))


async def answer(core: Any, shown: ShownGroup, kind: ChoiceKind, label: str = "", cause: str = CAUSE) -> Any:
    actions = core.actions
    key = key_of(shown, kind, label)
    return await actions.decide_group(cause, key, shown.digest, EVIDENCE, actions.operator(), "the origin is back")


async def sql(core: Any, text: str) -> list[tuple[Any, ...]]:
    """What the tables hold, read on the store's own connection."""
    found: list[tuple[Any, ...]] = await core.store._read(lambda reads: reads.conn.execute(text).fetchall())
    return found


async def records(core: Any, cause: str = CAUSE) -> dict[str, Operation]:
    return {op.operation_id: op for op, _ in await core.store.asked(cause)}


async def events_of(core: Any, operation_id: str) -> list[Any]:
    return [event for _, event in await core.store.events(operation_id)]


class Counting:
    """Counts how often the store is asked for anything."""

    def __init__(self, store: Any) -> None:
        self.reads = self.writes = 0
        self._store = store
        self._read, self._write = store._read, store._write

    def __enter__(self) -> Counting:
        async def read(call: Callable[[Any], Any]) -> Any:
            self.reads += 1
            return await self._read(call)

        async def write(call: Callable[[Any], Any]) -> Any:
            self.writes += 1
            return await self._write(call)

        self._store._read, self._store._write = read, write
        return self

    def __exit__(self, *_: object) -> None:
        del self._store._read, self._store._write


@pytest.mark.rule("E10", "G4", "E7", "A1")
async def test_an_outage_of_three_thousand_is_a_handful_of_cards_and_one_answer(tmp_path: Path) -> None:
    async with opened(home_in(tmp_path)) as core:
        now = core.clock.now()
        await seed(core, outage(now) + others(now))
        cards = await core.actions.cards()
        assert len(cards) == 3
        assert sorted(found.count for found in cards) == [1, 1, 3_000]
        before = await records(core)
        with Counting(core.store) as drawing:
            shown = await core.actions.group(CAUSE)
        assert drawing.reads + drawing.writes < 12
        assert shown.card.outliers_count == OUTLIERS
        assert set(shown.operation_ids) == set(before)
        assert shown.versions == tuple(before[name].version for name in shown.operation_ids)
        with Counting(core.store) as deciding:
            outcome = await answer(core, shown, ChoiceKind.EXTEND, "extend 15")
        # a transaction for each batch, its anchor before and behind it, never one for each operation
        batches = -(-3_000 // BATCH)
        assert deciding.writes <= 3 * batches + 5
        assert deciding.reads <= 8 * batches + 12
        tired = {name for name, op in before.items() if op.extensions_used == 3}
        assert (len(outcome.done), outcome.refused, set(outcome.untouched)) == (2_990, (), tired)
        assert set(await records(core)) == tired
        await extended_exactly(core, shown, before, set(outcome.done))
        assert len(await core.store.questions()) == len(tired) + 2


async def extended_exactly(core: Any, shown: ShownGroup, before: dict[str, Operation], done: set[str]) -> None:
    """Each of *done* got 15 minutes, 4 checks and a failure by a grant and an event of its own; no other did."""
    granted = await sql(
        core, 'SELECT o.id, g.version, g.body FROM "grant" g JOIN operation o ON o.op=g.operation ORDER BY o.id'
    )
    assert [name for name, _, _ in granted] == sorted(done)
    for name, version, body in granted:
        grant = msgspec.json.decode(body)
        assert (version, grant["card_digest"]) == (before[name].version, shown.digest)
        assert grant["evidence"] == EVIDENCE
        assert (grant["choice"]["minutes"], grant["choice"]["checks"]) == (15, 4)
    for name, op in before.items():
        after = await core.store.operation(name)
        if name not in done:
            assert after == op
            continue
        assert after.status is Status.WAITING
        assert after.version == op.version + 1
        assert after.max_status_requests - op.max_status_requests == 4
        assert after.max_transport_failures - op.max_transport_failures == 1
        assert after.status_requests_used == op.status_requests_used
        assert after.deadline_at >= op.deadline_at + 15 * MINUTE
    told = await sql(
        core,
        "SELECT o.id, e.text, e.notes FROM event e JOIN operation o ON o.op=e.operation "
        f"WHERE e.event='{EventName.GRANTED.value}'",
    )
    assert Counter(name for name, _, _ in told) == Counter(done)
    assert all(text == "the origin is back" and "step2_key v" in notes for _, text, notes in told)
    assert list(await core.store.check()) == []


@pytest.mark.rule("E10", "G4")
async def test_the_list_is_bound_to_each_operations_own_card(tmp_path: Path) -> None:
    async with opened(home_in(tmp_path)) as core:
        await seed(core, outage(core.clock.now(), 8, 4))
        shown = await core.actions.group(CAUSE)
        for frozen in shown.card.members:
            own = await core.actions.card(frozen.operation_id)
            assert own.digest == frozen.digest
            assert own.question.escalation_id == frozen.escalation_id


@pytest.mark.rule("E10", "G4", "G8")
async def test_what_moved_since_the_list_was_drawn_is_refused_alone_and_told(tmp_path: Path) -> None:
    async with opened(home_in(tmp_path)) as core:
        await seed(core, outage(core.clock.now(), FEW, 0))
        shown = await core.actions.group(CAUSE)
        moved, closed, *_ = shown.operation_ids
        op = await core.store.operation(moved)
        longer = msgspec.structs.replace(op, version=op.version + 1)
        await core.store.commit(core.clock.now(), [Write(after=longer, fence_change=op.change)])
        await core.actions.lower(closed, ChoiceKind.CLOSE, "by hand", "bo")
        joined = stopped(0x50, StopReason.PROVIDER_FAILURE, now=core.clock.now(), cause=CAUSE)
        await seed(core, [joined])
        outcome = await answer(core, shown, ChoiceKind.EXTEND, "extend 15")
        assert set(outcome.done) == set(shown.operation_ids) - {moved, closed}
        assert dict(outcome.refused) == {moved: MOVED, closed: "decided already: close by bo"}
        assert set(await records(core)) == {moved, joined.operation.operation_id}
        for name in (moved, closed):
            [refusal] = [e for e in await events_of(core, name) if e.event is EventName.GRANT_REFUSED]
            assert (refusal.decision, refusal.text) == ("extend", dict(outcome.refused)[name])
            assert refusal.operator == str(core.actions.operator())
        granted = await sql(core, 'SELECT count(*), count(DISTINCT operation) FROM "grant"')
        assert granted == [(FEW - 2, FEW - 2)]
        assert (await core.store.operation(closed)).status is Status.CLOSED
        # the same answer again: nothing of that list is as it was
        with pytest.raises(Stale, match="nothing was done"):
            await answer(core, shown, ChoiceKind.EXTEND, "extend 15")
        assert await sql(core, 'SELECT count(*) FROM "grant"') == [(FEW - 2,)]


@pytest.mark.rule("E10", "E7", "O4")
async def test_two_operators_with_one_list_decide_each_operation_once(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with opened(home) as ana, opened(home) as bo:
        await seed(ana, outage(ana.clock.now(), FEW, 0))
        one, other = await ana.actions.group(CAUSE), await bo.actions.group(CAUSE)
        assert one.digest == other.digest
        both = await asyncio.gather(
            answer(ana, one, ChoiceKind.EXTEND, "extend 15"),
            answer(bo, other, ChoiceKind.CLOSE),
            return_exceptions=True,
        )
        done = [set() if isinstance(each, Stale) else set(each.done) for each in both]
        assert done[0] | done[1] == set(one.operation_ids)
        assert not done[0] & done[1]
        for mine, outcome in zip(done, both, strict=True):
            if not isinstance(outcome, Stale):
                assert {name for name, _ in outcome.refused} == set(one.operation_ids) - mine
                assert all("decided" in why or "ended" in why or "moved" in why for _, why in outcome.refused)
        statuses = Counter([(await ana.store.operation(name)).status for name in one.operation_ids])
        assert statuses[Status.WAITING] == len(done[0])
        assert statuses[Status.CLOSED] == len(done[1])
        assert await sql(ana, 'SELECT count(*) FROM "grant"') == [(len(done[0]),)]
        assert await sql(ana, "SELECT count(*) FROM escalation WHERE decided_at IS NULL") == [(0,)]


@pytest.mark.rule("E10", "O1")
async def test_a_crash_between_two_transactions_leaves_what_is_done_done_and_the_rest_asked(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    async with opened(home) as core:
        await seed(core, outage(core.clock.now(), FEW, 0))
    died = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.outage.dies", str(home), "2"],
        cwd=ROOT,
        timeout=LIMIT_S,
        check=False,
        env={"PYTHONPATH": f"{ROOT}/core:{ROOT}/console:{ROOT}", "PATH": "", "HOME": str(tmp_path)},
    )
    assert died.returncode == 9
    async with opened(home) as core:
        assert list(await core.store.check()) == []
        left = await records(core)
        assert len(left) == FEW - 2 * BATCH
        assert await sql(core, 'SELECT count(*), count(DISTINCT operation) FROM "grant"') == [(2 * BATCH, 2 * BATCH)]
        shown = await core.actions.group(CAUSE)
        outcome = await answer(core, shown, ChoiceKind.EXTEND, "extend 15")
        assert set(outcome.done) == set(left)
        assert await sql(core, 'SELECT count(*), count(DISTINCT operation) FROM "grant"') == [(FEW, FEW)]


@pytest.mark.rule("E10", "O6")
async def test_a_store_that_fails_half_way_says_what_was_done_and_what_was_not(tmp_path: Path) -> None:
    async with opened(home_in(tmp_path)) as core:
        await seed(core, outage(core.clock.now(), FEW, 0))
        shown = await core.actions.group(CAUSE)
        real, calls = core.store.commit_each, []

        async def full(now: Moment, writes: Sequence[Write]) -> Any:
            calls.append(len(writes))
            if len(calls) == 2:
                raise StoreUnusable("the disk is full")
            return await real(now, writes)

        core.store.commit_each = full
        outcome = await answer(core, shown, ChoiceKind.EXTEND, "extend 15")
        assert calls == [BATCH, BATCH]
        assert len(outcome.done) == BATCH
        whys = Counter(why for _, why in outcome.refused)
        assert whys == {"not done: the disk is full": BATCH, "not tried: the disk is full": FEW - 2 * BATCH}
        assert set(await records(core)) == {name for name, _ in outcome.refused}
        calls[:] = [0]
        again = await core.actions.group(CAUSE)
        with pytest.raises(StoreUnusable):
            await answer(core, again, ChoiceKind.CLOSE)
        assert len(await records(core)) == FEW - BATCH


def running(now: Moment, count: int) -> list[Seeded]:
    """Waits that go on, each with an operator's question, under one cause."""
    rows = []
    for n in range(count):
        asked = stopped(0x300 + n, StopReason.OPERATOR_REQUEST, Status.WAITING, now=now, cause="shared")
        row = msgspec.structs.replace(asked.operation, stop_reason=None, due_boot=None)
        rows.append(msgspec.structs.replace(asked, operation=row))
    return rows


@pytest.mark.rule("E10", "G4", "E7")
@pytest.mark.parametrize("polls", [1, 99])
async def test_a_poll_that_is_recorded_meanwhile_neither_spoils_nor_doubles_the_answer(
    tmp_path: Path, polls: int
) -> None:
    async with opened(home_in(tmp_path)) as core:
        await seed(core, running(core.clock.now(), 5))
        shown = await core.actions.group("shared")
        real, left = core.store.commit_each, [polls]

        async def meanwhile(now: Moment, writes: Sequence[Write]) -> Any:
            if left[0]:
                left[0] -= 1
                op = await core.store.operation(writes[0].after.operation_id)
                polled = msgspec.structs.replace(op, completed_polls=op.completed_polls + 1)
                await core.store.commit(now, [Write(after=polled, fence_change=op.change, release_lease=False)])
            return await real(now, writes)

        core.store.commit_each = meanwhile
        outcome = await answer(core, shown, ChoiceKind.EXTEND, "extend 15", cause="shared")
        if polls == 1:
            assert len(outcome.done) == 5
            op = await core.store.operation(shown.operation_ids[0])
            assert (op.completed_polls, op.max_status_requests) == (5, 16)
        else:
            assert dict(outcome.refused) == {shown.operation_ids[0]: KEPT_MOVING}
        assert await sql(core, 'SELECT count(*), count(DISTINCT operation) FROM "grant"') == [(len(outcome.done),) * 2]


@pytest.mark.rule("E10", "G4")
async def test_only_a_list_that_was_drawn_here_and_a_choice_that_it_offers_is_carried_out(tmp_path: Path) -> None:
    async with opened(home_in(tmp_path)) as core:
        await seed(core, outage(core.clock.now(), 3, 0))
        shown = await core.actions.group(CAUSE)
        actions, operator = core.actions, core.actions.operator()
        extend = key_of(shown, ChoiceKind.EXTEND)
        for cause, digest in ((CAUSE, "0" * 64), ("another", shown.digest)):
            with pytest.raises(Stale, match="not drawn here"):
                await actions.decide_group(cause, extend, digest, EVIDENCE, operator)
        for kind in (ChoiceKind.INSPECT, ChoiceKind.CANCEL_AT_PROVIDER):
            with pytest.raises(Refused):
                await actions.decide_group(CAUSE, key_of(shown, kind), shown.digest, EVIDENCE, operator)
        with pytest.raises(Refused):
            await actions.group("nothing")
        assert len(await records(core)) == 3
        assert await sql(core, 'SELECT count(*) FROM "grant"') == [(0,)]


class Ring:
    """A keyring that counts; *locked*: it reads nothing."""

    def __init__(self, locked: bool) -> None:
        self.locked = locked
        self.asked: list[str] = []

    async def digest(self, name: str, refused: Collection[str] = ()) -> str:
        self.asked.append(name)
        if self.locked:
            raise CredentialUnavailable("the keyring is locked", "keyring_locked")
        return name

    async def known(self) -> Sequence[Any]:
        return ()


@pytest.mark.rule("E10", "K2")
@pytest.mark.parametrize(("locked", "expected"), [(False, ["key-0", "key-1", "key-2"]), (True, ["key-0"])])
async def test_what_operations_share_is_asked_once(tmp_path: Path, locked: bool, expected: list[str]) -> None:
    async with opened(home_in(tmp_path)) as core:
        now = core.clock.now()
        rows = [
            stopped(0x200 + n, StopReason.CREDENTIAL_UNAVAILABLE, now=now, credential=f"key-{n % 3}", cause="ring")
            for n in range(30)
        ]
        await seed(core, rows)
        ring = Ring(locked)
        actions = Actions(msgspec.structs.replace(core._desk(), credentials=lambda: ring))
        shown = await actions.group("ring")
        assert ring.asked == expected
        again = next(c for c in shown.card.choices if c.kind is ChoiceKind.CHECK_AGAIN)
        assert again.count == (0 if locked else 30)
        if locked:
            assert "the keyring is locked" in " ".join(again.details)


@pytest.mark.rule("E10", "S8")
async def test_a_contract_that_cannot_be_read_any_more_leaves_its_operations_out_and_says_so(tmp_path: Path) -> None:
    async with opened(home_in(tmp_path)) as core:
        await seed(core, outage(core.clock.now(), 3, 0))
        snapshot = core.contracts.find("acme").snapshot
        broken = msgspec.structs.replace(snapshot, digest="b" * 64, text="not a contract")
        await core.store.keep_snapshot(core.clock.now(), broken)
        op = (await core.store.asked(CAUSE))[0][0]
        other = msgspec.structs.replace(op, contract_digest=broken.digest)
        await core.store.commit(core.clock.now(), [Write(after=other, fence_change=op.change)])
        shown = await core.actions.group(CAUSE)
        assert [name for name, _ in shown.left_out] == [op.operation_id]
        assert len(shown.operation_ids) == 2
        assert [found.count for found in await core.actions.cards()] == [2]


@pytest.mark.rule("E10")
async def test_closing_many_gives_no_authority_and_still_leaves_an_event_each(tmp_path: Path) -> None:
    async with opened(home_in(tmp_path)) as core:
        await seed(core, outage(core.clock.now(), 40))
        shown = await core.actions.group(CAUSE)
        outcome = await answer(core, shown, ChoiceKind.CLOSE)
        assert len(outcome.done) == 40
        assert await sql(core, 'SELECT count(*) FROM "grant"') == [(0,)]
        closed = await sql(core, f"SELECT count(DISTINCT operation) FROM event WHERE event='{EventName.CLOSED.value}'")
        assert closed == [(40,)]
        assert await core.store.asked() == ()
