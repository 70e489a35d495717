"""Archiving: what leaves, what stays, both proved alone and together, and nothing lost wherever a process dies."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from pollcore.adapters import audit_archive, audit_archive_file
from pollcore.adapters.audit_archive import Outcome, archive_ended
from pollcore.adapters.audit_epochs import rotate
from pollcore.adapters.audit_read import compare, reading_keys
from pollcore.adapters.audit_safe import ANCHOR, anchor_of
from pollcore.adapters.audit_verify import Wanted, verify_file, verify_store
from pollcore.chain.findings import Head, Report, Verdict
from pollcore.chain.layout import Kind
from pollcore.facts import DAY, HOUR, ChoiceKind, EventName, Instant, Refused, Stale, Status, StopReason
from tests.audit.test_evidence import stranger_says
from tests.controller.bank import DONE, RUNNING, says
from tests.controller.house import LIMIT_S, House, house, pick

V = Verdict
SHORT = ("max_status_requests = 12", "max_status_requests = 2")


def anchored(h: House) -> list[Head]:
    known = anchor_of(h.keyring.get_password(h.core.vault.service, ANCHOR))
    return [] if known is None else [Head(known.seq, known.hash, "the anchor", known.log_id)]


def proved(h: House, *archives: Path, heads: bool = True) -> Report:
    log = h.core.audit.log
    assert log is not None
    known = anchored(h) if heads else []
    return verify_store(h.home / "pollconsole.db", Wanted(key=(log.log_id, log.first), heads=known, archives=archives))


def proved_file(h: House, path: Path) -> Report:
    log = h.core.audit.log
    assert log is not None
    return verify_file(path, Wanted(key=(log.log_id, log.first)))


async def archive(h: House, *, days: int = 5, target: Path | None = None, dry_run: bool = False) -> Outcome:
    now = h.clock.now()
    return await archive_ended(
        h.core.audit,
        h.core.store,
        h.home / "pollconsole.db",
        now,
        before=Instant(now.wall - days * DAY),
        target=target,
        dry_run=dry_run,
        operator="ops@here (pty)",
    )


async def old_life(h: House) -> None:
    """Two ended operations in an epoch that is over, ten days ago; one more of today that still waits."""
    await h.submit("job-1", RUNNING, RUNNING, DONE)
    await h.submit("job-2", RUNNING, DONE)
    await h.run()
    await rotate(h.core.audit, h.core.store, h.clock.now(), "test")
    h.clock.jump(10 * DAY)
    await h.submit("job-3", RUNNING, RUNNING, DONE)


async def rows(h: House, table: str) -> int:
    return await h.core.store._read(lambda r: int(r.conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0]))


@pytest.mark.rule("A3", "A4", "S7", "O6")
async def test_what_left_and_what_stayed_are_proved_alone_and_together(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await old_life(h)
        whole = proved(h)
        before = [await h.op(f"op-job-{n}") for n in (1, 2)]
        made = await archive(h)
        file = Path(str(made.file))
        assert (made.no, made.operations, made.requests, made.epochs) == (1, 2, 5, 1)
        assert file.stat().st_mode & 0o777 == 0o600
        assert [await h.op(f"op-job-{n}") for n in (1, 2)] == before
        assert (await rows(h, "intent"), await rows(h, "observation")) == (0, 0)
        assert await h.core.store.check() == []
        left = await h.core.store.audit_links()
        assert (left[0].seq, left[0].blob[69]) == (made.last_link + 1, Kind.EPOCH)
        # the rest alone says what was cut and where it is
        report = proved(h)
        assert report.verdict is V.INTACT, report.faults
        assert report.first == made.last_link + 1
        assert [(a.path, a.sha256.hex(), a.last) for a in report.archives] == [(str(file), made.sha256, made.last_link)]
        assert any(str(file) in remark for remark in report.remarks)
        # the file alone, by the public key
        report = proved_file(h, file)
        assert (report.verdict, report.last) == (V.INTACT, made.last_link + 1), report.faults
        # both together are the whole log
        report = proved(h, file)
        assert report.verdict is V.INTACT, report.faults
        assert (report.first, report.last > whole.last, report.archives[0].held) == (1, True, True)
        # the story that is left still agrees with its sealed copies
        found = await compare(h.core.store, h.core.audit.room)
        assert (found.differing_count, found.unreadable) == (0, 0)
        assert sorted(await reading_keys(h.core.store)) == [0, 1]
        told = await h.events(EventName.ARCHIVED)
        assert [made.sha256 in str(event.text) for event in told] == [True]
        await h.run()
        assert (await h.op("op-job-3")).status is Status.SUCCEEDED
        assert await h.core.store.check() == []
    async with h.open() as core:
        assert not core.audit.state.alarm
    assert proved(h, file).verdict is V.INTACT


@pytest.mark.rule("S7", "B2")
async def test_the_file_holds_every_request_and_every_answer_that_left(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await old_life(h)
        charged = [await h.core.store.intents(f"op-job-{n}") for n in (1, 2)]
        events = [event for event in await h.events() if event.operation_id != "op-job-3"]
        made = await archive(h)
        lines = [json.loads(line) for line in Path(str(made.file)).read_text().splitlines()]
    charges = [line for line in lines if "charge" in line]
    assert [(c["op"], c["n"], c["charge"]["at"]) for c in charges] == [
        (i.operation_id, i.n, i.at) for one in charged for i in one
    ]
    assert [c["seen"]["state"] for c in charges] == ["running", "running", "done", "running", "done"]
    assert {c["charge"]["origin"] for c in charges} == {h.bank.url}
    told = [line["told"] for line in lines if "event" in line]
    assert [t["event"] for t in told] == [e.event.value for e in events]


@pytest.mark.rule("B2", "O6")
async def test_a_later_submission_of_an_archived_job_goes_on_with_its_counters(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await h.submit("job-1", RUNNING)
        await h.run()
        assert (await h.op()).stop_reason is StopReason.REQUEST_BUDGET_EXHAUSTED
        await h.core.actions.lower("op-job-1", ChoiceKind.CLOSE, "enough", "me")
        h.clock.jump(10 * DAY)
        made = await archive(h)
        assert (made.operations, made.requests) == (1, 2)
        again = await h.submit("job-1", DONE, operation_id="op-again")
        assert (again.status, again.status_requests_used) == (Status.ESCALATED, 2)
        shown = await h.card("op-again")
        await h.press(shown, pick(shown, ChoiceKind.EXTEND))
        await h.run()
        assert ((await h.op("op-again")).status, (await h.op("op-again")).status_requests_used) == (
            Status.SUCCEEDED,
            3,
        )
        assert await h.core.store.check() == []
        last = await h.core.store.intents("op-again")
        assert [intent.n for intent in last] == [3]
        # a final one is returned as it is, from what stayed
        assert (await h.submit("job-1", operation_id="op-third")).operation_id == "op-again"
    assert proved(h).verdict is V.INTACT


@pytest.mark.rule("S7", "E7")
async def test_what_waits_is_asked_about_or_is_young_stays_and_holds_its_epoch(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await h.submit("job-2", says("failed"))  # ended, its card is open
        await h.run()
        await rotate(h.core.audit, h.core.store, h.clock.now(), "test")
        h.clock.jump(10 * DAY)
        assert await h.question("op-job-2") is not None
        made = await archive(h, dry_run=True)
        assert (made.no, made.file, made.operations, made.requests) == (None, None, 1, 2)
        assert (made.epochs, made.epochs_over, made.held_by) == (0, 1, "operation op-job-2")
        assert not (h.home / "archives").exists()
        made = await archive(h)
        assert (made.operations, made.links, made.epochs) == (1, 0, 0)
        assert (await rows(h, "intent"), await h.core.store.check()) == (1, [])
        report = proved(h, Path(str(made.file)))
        assert (report.verdict, report.archives[0].held) == (V.INTACT, True), report.faults
        assert proved_file(h, Path(str(made.file))).verdict is V.INTACT
        # the card is answered; now its epoch can go
        await h.core.actions.lower("op-job-2", ChoiceKind.CLOSE, "seen", "me")
        h.clock.jump(10 * DAY)
        made = await archive(h)
        assert (made.no, made.operations) == (2, 1)
        assert (made.epochs, made.held_by) == (1, None)
        report = proved(h, h.home / "archives/0001.jsonl", h.home / "archives/0002.jsonl")
        assert (report.verdict, report.first) == (V.INTACT, 1), report.faults
        with pytest.raises(Refused, match="younger than an hour"):
            await archive(h, days=0)
    assert proved(h).verdict is V.INTACT


@pytest.mark.rule("A3", "A4")
async def test_a_second_archive_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        files = []
        for n in range(3):
            await h.submit(f"job-{n}", RUNNING, DONE)
            await h.run()
            await rotate(h.core.audit, h.core.store, h.clock.now(), "test")
            h.clock.jump(10 * DAY)
            made = await archive(h)
            files.append(Path(str(made.file)))
            assert (made.no, made.operations, made.epochs) == (n + 1, 1, 1)
            # the archive's own record is the last thing in the epoch before the next one
            assert await h.core.store.check() == []
        report = proved(h, *reversed(files))
        assert (report.verdict, report.first, report.epoch) == (V.INTACT, 1, 3), report.faults
        assert [a.held for a in report.archives] == [True, True, True]
        assert proved(h, files[2]).verdict is V.INTACT
        assert proved(h, files[1], files[2]).first == report.archives[1].after + 1
        for file in files:
            assert proved_file(h, file).verdict is V.INTACT
        # one in the middle left out is told
        assert proved(h, files[0], files[2]).verdict is V.REORDERED
        # an export of what is left is a file that stands alone
        from pollcore.adapters.audit_verify import write_evidence

        await h.core.audit.sign_head(h.core.store, h.clock.now())
        rest = tmp_path / "rest.jsonl"
        assert write_evidence(h.home / "pollconsole.db", rest).links == proved(h).links
        assert proved_file(h, rest).verdict is V.INTACT
        code, told = stranger_says(rest, h.core.audit.state.key)
        assert code == 0, told
        code, told = stranger_says(files[1], h.core.audit.state.key)
        assert code == 0, told


@pytest.mark.rule("A4")
async def test_nothing_is_archived_without_the_signing_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with house(tmp_path) as h:
        await old_life(h)
    async with h.open() as core:
        h.core = core

        def refuse(*_: object) -> None:
            raise RuntimeError("locked")

        for call in ("get_password", "set_password"):
            monkeypatch.setattr(h.keyring, call, refuse)
        core.audit.chain.signer = None
        with pytest.raises(Exception, match=r"keyring|archived"):
            await archive(h)
        assert await rows(h, "intent") == 5
        assert not (h.home / "archives").exists()


@pytest.mark.rule("O6", "S7")
async def test_what_moved_between_the_file_and_the_cut_undoes_the_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await old_life(h)
        publish = audit_archive_file.publish

        def meddled(target: Path) -> None:
            publish(target)
            h.core.store._writer.call(
                lambda s: s.conn.execute("UPDATE operation SET lease_owner=1 WHERE id='op-job-1'")
            ).result(5)

        monkeypatch.setattr(audit_archive_file, "publish", meddled)
        with pytest.raises(Stale, match="nothing was removed"):
            await archive(h)
        assert (await rows(h, "intent"), await rows(h, "archive")) == (5, 0)
        await h.core.store._write(lambda s: s.conn.execute("UPDATE operation SET lease_owner=NULL"))
        monkeypatch.undo()
        assert list((h.home / "archives").iterdir()) == []  # it looked whole, and was no archive of the store
        made = await archive(h)
        assert (made.resumed, made.operations) == (False, 2)
    assert proved(h).verdict is V.INTACT


@pytest.mark.rule("O6", "S7")
async def test_of_two_archives_at_once_one_is_refused_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, refused, written = threading.Event(), threading.Event(), audit_archive._written

    def slowly(*given: Any) -> Any:
        under_way.set()
        assert refused.wait(LIMIT_S), "the other call was not refused meanwhile"
        return written(*given)

    async with house(tmp_path) as h, h.open() as other:
        await old_life(h)
        monkeypatch.setattr(audit_archive, "_written", slowly)
        first = asyncio.create_task(archive(h, target=tmp_path / "one.jsonl"))
        assert await asyncio.to_thread(under_way.wait, LIMIT_S)
        now = h.clock.now()
        with pytest.raises(Refused, match="under way"):
            await archive_ended(
                other.audit,
                other.store,
                h.home / "pollconsole.db",
                now,
                before=Instant(now.wall - 5 * DAY),
                target=tmp_path / "two.jsonl",
                dry_run=False,
                operator="ops@here (pty)",
            )
        refused.set()
        made = await first
        left = list(tmp_path.glob("*.jsonl*"))
        assert [str(file) for file in left] == [made.file]
        assert proved(h, *left).verdict is V.INTACT
        assert await rows(h, "archive") == 1


@pytest.mark.rule("S7")
async def test_a_file_that_is_another_is_not_taken_up_and_a_finished_call_says_nothing_is_left(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await old_life(h)
        foreign = tmp_path / "foreign.jsonl"
        foreign.write_text("{}\n")
        with pytest.raises(Refused, match="no archive"):
            await archive(h, target=foreign)
        assert foreign.read_text() == "{}\n"
        mine = tmp_path / "mine.jsonl"
        made = await archive(h, target=mine)
        assert made.file == str(mine)
        raw = mine.read_bytes()
        again = await archive(h, target=mine)
        assert (again.no, again.operations, mine.read_bytes()) == (None, 0, raw)
        await h.run()
        h.clock.jump(10 * DAY)
        with pytest.raises(Refused, match="archive 1 of this store already"):
            await archive(h, target=mine)


@pytest.mark.rule("S7", "A4")
async def test_only_so_many_operations_leave_at_once_and_the_rest_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pollcore.adapters.store import archiving

    monkeypatch.setattr(archiving, "MAX_OPERATIONS", 1)
    async with house(tmp_path) as h:
        await old_life(h)
        first = await archive(h)
        assert (first.operations, first.more, first.epochs, first.held_by) == (1, True, 0, "operation op-job-2")
        second = await archive(h)
        assert (second.operations, second.more, second.epochs) == (1, False, 1)
        assert await h.core.store.check() == []
        report = proved(h, Path(str(first.file)), Path(str(second.file)))
        assert report.verdict is V.INTACT, report.faults


@pytest.mark.rule("A4")
async def test_an_anchor_older_than_the_cut_is_no_alarm_and_a_wrong_one_at_the_cut_is(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await old_life(h)
        made = await archive(h)
        log = h.core.audit.log
        assert log is not None
    service = h.core.vault.service
    for seq, hash_, alarm in ((2, "0" * 64, False), (made.last_link, "0" * 64, True)):
        h.keyring.set_password(service, ANCHOR, f"pollconsole-anchor-1 {log.log_id.hex()} {seq} 0 {hash_}")
        assert (proved(h).verdict is V.INTACT) is not alarm
        async with h.open() as core:
            assert core.audit.state.alarm is alarm
            if not alarm:
                assert core.audit.state.anchored_to > made.last_link
    assert HOUR == audit_archive.YOUNGEST_MS


@pytest.mark.rule("S7", "O6")
async def test_a_file_that_no_longer_holds_what_the_store_holds_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await old_life(h)

        async def dies(*_: object) -> int:
            raise OSError("cut off")

        with monkeypatch.context() as dying:
            dying.setattr(h.core.store, "archive", dies)
            with pytest.raises(OSError, match="cut off"):
                await archive(h)
        assert (h.home / "archives/0001.jsonl").exists()

        def meddled(turns: Any) -> None:
            turns.conn.execute("DROP TRIGGER observation_no_update")
            turns.conn.execute("UPDATE observation SET state='failed' WHERE n=1")

        await h.core.store._write(meddled)
        with pytest.raises(Refused, match="nothing was removed"):
            await archive(h)
        assert (await rows(h, "intent"), await rows(h, "archive")) == (5, 0)
