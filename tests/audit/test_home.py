"""The chain of a real home: in the transaction of its counters, anchored before a grant, refused where it cannot be."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollcore.adapters import audit_chain
from pollcore.adapters.audit_epochs import accept_loss, forget, rotate
from pollcore.adapters.audit_read import compare, reading_keys
from pollcore.adapters.audit_safe import ANCHOR, FileSafe, anchor_of
from pollcore.adapters.audit_verify import Wanted, verify_store
from pollcore.assembly import Core
from pollcore.chain.findings import Head, Report, Verdict
from pollcore.chain.layout import Kind
from pollcore.facts import ChoiceKind, EventName, Grant, Refused, Status, StoreUnusable
from tests.controller.bank import DONE, RUNNING
from tests.controller.house import House, house, pick

V = Verdict
SHORT = ("max_status_requests = 12", "max_status_requests = 2")


def anchor(h: House) -> Any:
    return anchor_of(h.keyring.get_password(h.core.vault.service, ANCHOR))


def proved(h: House, *, anchored: bool = True, path: Path | None = None) -> Report:
    known = anchor(h) if anchored else None
    heads = [] if known is None else [Head(known.seq, known.hash, "the anchor", known.log_id)]
    return verify_store(path or h.home / "pollconsole.db", Wanted(heads=heads))


async def links(core: Core) -> list[int]:
    return [link.blob[69] for link in await core.store.audit_links()]


@pytest.mark.rule("A3", "A1")
async def test_every_event_is_a_link_and_the_intent_and_the_answer_are_two(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, RUNNING, DONE)
        await h.run()
        told = await h.events()
        kinds = await links(h.core)
        assert kinds[0] == Kind.BEGIN
        assert kinds.count(Kind.EVENT) == len(told)
        assert [event.event for event in told].count(EventName.SENT) == 3
        assert [event.event for event in told].count(EventName.POLLED) == 3
        assert kinds.count(Kind.RUN) == 1
        found = await compare(h.core.store, h.core.audit.room)
        assert (found.events, found.unreadable, found.differing_count) == (len(told), 0, 0)
    report = proved(h)
    assert (report.verdict, report.signed_to, report.known_to) == (V.INTACT, report.links, report.links)


@pytest.mark.rule("A3", "O6")
async def test_where_no_link_can_be_made_nothing_is_sent_and_no_counter_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        before = await h.core.store.audit_links()

        def broken(*_: object, **__: object) -> None:
            raise OSError("no entropy")

        monkeypatch.setattr(audit_chain.ChainAudit, "seal", broken)
        await h.run(ms=120_000)
        with pytest.raises(StoreUnusable, match="audit row cannot be written"):
            await h.core.store.record(h.clock.now(), await h.events())
        monkeypatch.undo()
        assert h.bank.seen == []
        assert (await h.op()).status_requests_used == 0
        assert await h.core.store.audit_links() == before
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
    assert proved(h).verdict is V.INTACT


@pytest.mark.rule("A4", "G2")
async def test_a_grant_is_on_record_and_anchored_before_it_takes_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, SHORT) as h:
        await h.submit("job-1", RUNNING)
        await h.run()
        shown = await h.card()
        seen: list[tuple[int, int]] = []
        commit = h.core.store.commit

        async def watched(now: Any, writes: Any, check: Any = None) -> Any:
            if any(write.grant for write in writes):
                kinds = await links(h.core)
                seen.append((anchor(h).seq, 1 + len(kinds) - 1 - kinds[::-1].index(Kind.AUTHORITY)))
            return await commit(now, writes, check)

        monkeypatch.setattr(h.core.store, "commit", watched)
        await h.press(shown, pick(shown, ChoiceKind.EXTEND))
        ((anchored, row),) = seen
        assert anchored >= row
        keys = await h.core.audit.room.reading(0, (await reading_keys(h.core.store))[0])
        assert keys is not None
        from pollcore.adapters.audit_read import opened

        told = [o.plain async for o in opened(h.core.store, h.core.audit.room) if o.kind is Kind.AUTHORITY]
        assert len(told) == 1
        assert told[0] is not None
        grant = msgspec.json.decode(told[0], type=Grant)
        assert (grant.operation_id, grant.card_digest) == ("op-job-1", shown.digest)
    assert proved(h).verdict is V.INTACT


class Locked(Exception):
    """What a backend raises; known by its name."""


Locked.__name__ = "KeyringLocked"


def lock(h: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Locked

    for call in ("get_password", "set_password"):
        monkeypatch.setattr(h.keyring, call, refuse)


@pytest.mark.rule("A4", "G2")
async def test_without_the_keyring_polls_go_on_and_no_authority_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, SHORT) as h:
        await h.submit("job-1", RUNNING)
        await h.submit("job-2", DONE)
        lock(h, monkeypatch)
        await h.run()
        assert (await h.op("op-job-2")).status is Status.SUCCEEDED
        before = await h.op()
        shown = await h.card()
        with pytest.raises(Refused, match=r"unanchored since .*locked.*polls go on") as refusal:
            await h.press(shown, pick(shown, ChoiceKind.EXTEND))
        assert refusal.value.code == "unanchored"
        assert await h.op() == before
        assert not await h.events(EventName.GRANTED)
        assert Kind.AUTHORITY not in await links(h.core)
        state = h.core.audit.state
        assert not state.alarm
        assert state.unanchored_since is not None
        # what lowers authority needs no anchor
        await h.core.actions.lower("op-job-1", ChoiceKind.CLOSE, "enough", "me")
        assert (await h.op()).status is Status.CLOSED
        monkeypatch.undo()
        assert await h.core.audit.anchor(h.core.store, h.clock.now())
        assert h.core.audit.state.unanchored_since is None
    assert proved(h).verdict is V.INTACT


async def old_copy(h: House) -> Path:
    """A backup, more polls, and the backup put back in the store's place."""
    copy = h.home / "copy.db"
    await h.submit("job-1", RUNNING, RUNNING, RUNNING, DONE)
    await h.core.store.backup(str(copy))
    await h.run()
    return copy


def put_back(h: House, copy: Path) -> None:
    for suffix in ("-wal", "-shm"):
        (h.home / f"pollconsole.db{suffix}").unlink(missing_ok=True)
    copy.replace(h.home / "pollconsole.db")


@pytest.mark.rule("A4", "O6")
async def test_an_old_copy_put_back_sends_nothing_until_somebody_answers_for_it(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        copy = await old_copy(h)
    put_back(h, copy)
    assert proved(h).verdict is V.TRUNCATED
    assert proved(h, anchored=False).verdict in (V.INTACT, V.TAIL)
    asked = len(h.bank.seen)
    async with h.open() as core:
        assert core.audit.state.alarm
        assert any("truncated" in notice for notice in core.notices)
        await h.run(120_000, core)
        assert len(h.bank.seen) == asked
        # lowering still works, and is on record
        h.core = core
        await core.actions.lower("op-job-1", ChoiceKind.HOLD, "wait", "me")
        await accept_loss(core.audit, core.store, h.clock.now(), "Monday's backup put back")
        assert not core.audit.state.alarm
    report = proved(h)
    assert report.verdict is V.INTACT, report.faults
    assert any("Monday's backup" in remark for remark in report.remarks)


@pytest.mark.rule("A4")
async def test_an_anchor_that_was_removed_or_is_of_another_log_is_an_alarm(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        await h.run()
    h.keyring.delete_password(h.core.vault.service, ANCHOR)
    async with h.open() as core:
        assert core.audit.state.alarm
        assert "anchor is gone" in str(core.audit.state.why)
    h.keyring.set_password(h.core.vault.service, ANCHOR, f"pollconsole-anchor-1 {'0' * 32} 3 0 {'0' * 64}")
    async with h.open() as core:
        assert "another log" in str(core.audit.state.why)


@pytest.mark.rule("A4")
async def test_a_store_that_lost_its_whole_chain_gets_no_new_one_by_itself(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        await h.run()
    service = h.core.vault.service
    for path in h.home.glob("pollconsole.db*"):
        path.unlink()
    async with h.open() as core:
        assert core.audit.state.alarm
        assert "is gone" in str(core.audit.state.why)
        assert await core.store.audit_tip() is None
        old = anchor_of(h.keyring.get_password(service, ANCHOR))
        assert old is not None
        await accept_loss(core.audit, core.store, h.clock.now(), "a new start")
        assert not core.audit.state.alarm
    report = proved(h)
    assert report.verdict is V.INTACT
    assert any(f"up to {old.seq}: a new start" in remark for remark in report.remarks)


@pytest.mark.rule("A3", "A4")
async def test_an_older_home_begins_a_chain_that_says_what_it_does_not_cover(tmp_path: Path) -> None:
    from pollcore.adapters.audit_plain import PlainAudit

    async with house(tmp_path) as h:
        async with h.open(audit=PlainAudit()) as old:
            del old
    shutil.rmtree(h.home)
    h.write_contract()
    h.keyring.delete_password(h.core.vault.service, ANCHOR)
    async with h.open(audit=PlainAudit()) as old:
        h.core = old
        await h.submit("job-1", DONE)
        await h.run()
        before = len(await h.events())
        assert await old.store.audit_tip() is None
    assert proved(h, anchored=False).verdict is V.MISSING
    async with h.open() as core:
        h.core = core
        await h.submit("job-2", DONE)
        await h.run()
        found = await compare(core.store, core.audit.room)
        assert found.differing_count == 0
    report = proved(h)
    assert report.verdict is V.INTACT
    assert any(f"{before:,} events were recorded before the chain" in remark for remark in report.remarks)


@pytest.mark.rule("A3", "O4")
async def test_two_processes_write_one_chain(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        for n in range(6):
            await h.submit(f"job-{n}", RUNNING, RUNNING, DONE)
        await h.run_together(other)
        kinds = await links(h.core)
        assert kinds.count(Kind.BEGIN) == 1
        assert kinds.count(Kind.EVENT) == len(await h.events())
    report = proved(h)
    assert report.verdict is V.INTACT, report.faults


@pytest.mark.rule("A4")
async def test_new_keys_go_on_with_the_chain_and_a_forgotten_one_leaves_it_provable(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        await h.submit("job-1", RUNNING, DONE)
        await h.run()
        await other.store.record(h.clock.now(), [(await h.events())[0]])
        old = h.core.audit.log
        assert old is not None
        log = await rotate(h.core.audit, h.core.store, h.clock.now(), "on demand")
        assert log.epoch == 1
        # another process, with a run of the old epoch, follows by itself
        await other.store.record(h.clock.now(), [(await h.events())[0]])
        await h.submit("job-2", RUNNING, DONE)
        await h.run()
        assert (await compare(h.core.store, h.core.audit.room)).unreadable == 0
        await forget(h.core.audit, 0, old.read)
        found = await compare(h.core.store, h.core.audit.room)
        assert 0 < found.unreadable < found.events
        assert found.differing_count == 0
        with pytest.raises(Refused, match="only an epoch that is over"):
            await forget(h.core.audit, 1, log.read)
        entries = [name for _, name in h.keyring._entries]  # type: ignore[attr-defined]
        assert not [name for name in entries if name.startswith(("audit-sign/0", "audit-read/0"))]
    report = proved(h)
    assert (report.verdict, report.epoch) == (V.INTACT, 1), report.faults


@pytest.mark.rule("A4")
async def test_old_keys_give_way_by_themselves(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        h.clock.jump(31 * 24 * 3_600_000)
        await h.core.audit.beat(h.core.store, h.clock.now())
        assert h.core.audit.state.epoch == 1
    assert proved(h).verdict is V.INTACT


@pytest.mark.rule("A3")
async def test_an_edited_clear_row_is_told_by_its_sealed_copy(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await h.run()
        await h.core.store._write(
            lambda s: [
                s.conn.execute("DROP TRIGGER event_no_update"),
                s.conn.execute("UPDATE event SET state='failed' WHERE seq = (SELECT max(seq) FROM event)"),
            ]
        )
        found = await compare(h.core.store, h.core.audit.room)
        assert found.differing_count == 1
        assert "says something else than the sealed copy" in found.differing[0]
    assert proved(h).verdict is V.INTACT  # the chain itself is whole


COLUMNS = (
    "UPDATE audit SET blob = zeroblob(length(blob)) WHERE seq = 3",
    "UPDATE audit SET hash = zeroblob(32) WHERE seq = 3",
    "UPDATE audit SET seq = 900 WHERE seq = 3",
    "DELETE FROM audit WHERE seq = 3",
    "UPDATE document SET value = x'78' WHERE kind = 'audit_note' AND name LIKE '%1'",
    "UPDATE document SET name = '00000000000000000002' WHERE kind = 'audit_note' AND name LIKE '%1'",
    "UPDATE document SET name = 'note' WHERE kind = 'audit_note' AND name LIKE '%1'",
)


@pytest.mark.rule("A3")
@pytest.mark.parametrize("edit", COLUMNS)
async def test_every_column_of_the_audits_tables_is_proved(edit: str, tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await h.run()
        await h.core.audit.finish(h.core.store, h.clock.now())
        assert proved(h).verdict is V.INTACT

        def meddled(turns: Any) -> None:
            for verb in ("update", "delete"):
                turns.conn.execute(f"DROP TRIGGER audit_no_{verb}")
            assert turns.conn.execute(edit).rowcount == 1

        await h.core.store._write(meddled)
        assert proved(h).verdict.exit_code in (20, 21), proved(h).faults


@pytest.mark.rule("A3")
async def test_a_torn_last_row_of_a_store_is_repaired_by_the_next_writer_with_a_record(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await h.run()
        await h.core.audit.anchor(h.core.store, h.clock.now())
        await h.submit("job-2", DONE)
        known = anchor(h)

        def tear(turns: Any) -> None:
            turns.conn.execute("DROP TRIGGER audit_no_update")
            turns.conn.execute(
                "UPDATE audit SET blob = substr(blob, 1, 90), hash = x'' WHERE seq = (SELECT max(seq) FROM audit)"
            )
            from pollcore.adapters.store import schema

            turns.conn.execute(schema.TRIGGERS["audit_no_update"])

        await h.core.store._write(tear)
        assert verify_store(h.home / "pollconsole.db", Wanted()).verdict is V.TORN
        h.core._audit._begun = False  # as if killed: no checkpoint, no anchor at its end
    assert anchor(h) == known
    async with h.open() as core:
        h.core = core
        assert not core.audit.state.alarm, core.audit.state
        await h.run()
        kinds = await links(core)
        assert kinds.count(Kind.REPAIR) == 1
    report = proved(h)
    assert report.verdict is V.INTACT, report.faults
    assert any("torn by a crash" in remark for remark in report.remarks)


@pytest.mark.rule("A4")
async def test_a_headless_host_keeps_keys_and_anchor_in_the_file_that_its_owner_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, SHORT) as h:
        pass
    shutil.rmtree(h.home)
    h.write_contract(SHORT)
    keys = tmp_path / "owner" / "audit.key"
    keys.parent.mkdir(mode=0o700)
    h.write_config(f'[audit]\nkey_file = "{keys}"\n')
    lock(h, monkeypatch)
    async with h.open() as core:
        h.core = core
        assert any("key file" in notice for notice in core.notices)
        await h.submit("job-1", RUNNING)
        await h.run()
        shown = await h.card()
        await h.press(shown, pick(shown, ChoiceKind.EXTEND))
        assert (await h.op()).status is Status.WAITING
        facts = await core.facts()
        assert "key file" in facts["audit"]["text"]
        assert facts["audit"]["state"] == "note"
        # two cores write other entries at the same moment
        async with h.open() as other:
            safe = FileSafe(keys.with_name("audit.key.audit"))
            await asyncio.gather(*(asyncio.to_thread(safe.set, f"test/{n}", "x") for n in range(20)))
            assert [safe.get(f"test/{n}") for n in range(20)] == ["x"] * 20
            assert not other.audit.state.alarm
    beside = keys.with_name("audit.key.audit")
    assert beside.stat().st_mode & 0o777 == 0o600
    known = anchor_of(msgspec.json.decode(beside.read_bytes())[ANCHOR])
    assert known is not None
    heads = [Head(known.seq, known.hash, "the anchor", known.log_id)]
    report = verify_store(h.home / "pollconsole.db", Wanted(heads=heads))
    assert (report.verdict, report.keys_in) == (V.INTACT, "key file")
    beside.chmod(0o644)
    async with h.open() as core:
        assert "you alone may read" in str(core.audit.state.why)


@pytest.mark.rule("A4", "K1")
async def test_no_private_key_and_no_plain_event_is_in_store_export_or_anchor(tmp_path: Path) -> None:
    from pollcore.adapters.audit_verify import write_evidence

    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE, label="canary-7d1f")
        await h.run()
        secrets = [v for (_, name), v in h.keyring._entries.items() if name.startswith("audit-")]  # type: ignore[attr-defined]
        assert len(secrets) == 3
        target = tmp_path / "evidence.jsonl"
        write_evidence(h.home / "pollconsole.db", target)
        links_raw = b"".join(link.blob for link in await h.core.store.audit_links())
        assert b"polled" not in links_raw
        assert b"op-job-1" not in links_raw
        copy = tmp_path / "copy.db"
        await h.core.store.backup(str(copy))
    held = target.read_bytes() + copy.read_bytes() + links_raw
    for secret in secrets:
        if not secret.startswith("pollconsole-anchor"):
            assert secret.encode() not in held


@pytest.mark.rule("A4")
async def test_a_keyring_that_hangs_holds_up_no_poll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    async with house(tmp_path) as h:
        await h.submit("job-1", *[RUNNING] * 8, DONE)
        stuck = threading.Event()
        get = h.keyring.get_password
        monkeypatch.setattr(h.keyring, "get_password", lambda s, u: stuck.wait(20) and get(s, u))
        beat = asyncio.create_task(h.core._each_beat())
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        stuck.set()
        await beat
