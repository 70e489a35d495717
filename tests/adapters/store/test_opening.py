"""What may be opened and how: file, folder, library, schema, guards of history, migrations, backups, the books."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.store.builders import Chain, Seal, at, claim, inline, result, submit, take
from tests.adapters.store.laws import broken

from pollcore.adapters import places
from pollcore.adapters.store import InlineStore, ThreadedStore, connecting, errors, health, library, opening, schema
from pollcore.adapters.store.library import sqlite3
from pollcore.facts import StoreUnusable
from pollcore.ports import Turn


def open_at(home: Path) -> InlineStore:
    return InlineStore(Seal(), Chain(), str(home / "pollconsole.db"))


def meddle(home: Path, *statements: str) -> None:
    """A foreign hand, through SQLite's own interface."""
    conn = sqlite3.connect(str(home / "pollconsole.db"), isolation_level=None)
    for statement in statements:
        conn.execute(statement)
    conn.close()


def modes(folder: Path) -> dict[str, int]:
    return {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()}


@pytest.mark.rule("O6")
async def test_a_newer_schema_is_refused_and_left_alone(home: Path) -> None:
    await open_at(home).close()
    meddle(home, f"UPDATE meta SET schema={schema.SCHEMA + 1}")
    with pytest.raises(StoreUnusable, match=f"schema {schema.SCHEMA + 1} is newer"):
        open_at(home)
    with pytest.raises(StoreUnusable, match="newer"):
        await ThreadedStore.open(str(home / "pollconsole.db"), Seal(), Chain())


@pytest.mark.rule("O6")
def test_a_database_of_another_program_is_refused(home: Path) -> None:
    meddle(home, "CREATE TABLE other(x)")
    with pytest.raises(StoreUnusable, match="another program"):
        open_at(home)


@pytest.mark.rule("O6")
def test_what_is_no_database_is_refused_with_a_way_out(home: Path) -> None:
    (home / "seed").write_bytes(b"this is no database" * 100)
    (home / "seed").rename(home / "pollconsole.db")
    with pytest.raises(StoreUnusable, match=r"not a SQLite database.*backup"):
        open_at(home)


@pytest.mark.rule("O6")
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_symlink_is_refused(home: Path, tmp_path: Path, suffix: str) -> None:
    (home / f"pollconsole.db{suffix}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnusable, match="symlink"):
        open_at(home)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.rule("O6")
@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs", "fuseblk"])
def test_a_network_file_system_is_refused_by_the_mount_table(
    home: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mounts"
    mounted = f"31 22 0:1 / {home} rw - {kind} server:/x rw\n"
    table.write_text(f"22 1 8:1 / / rw - ext4 /dev/sda rw\n{mounted}40 1 0:2 / {home}2 rw - tmpfs t rw\n")
    monkeypatch.setattr(places, "MOUNT_TABLE", str(table))
    with pytest.raises(StoreUnusable, match=f"{kind} is a network"):
        open_at(home)
    with pytest.raises(StoreUnusable, match="network"):
        places.prepare(places.Places(home))


@pytest.mark.rule("O6")
async def test_every_file_is_for_its_user_alone(home: Path) -> None:
    before = os.umask(0)
    try:
        store = open_at(home)
        await submit(store)
        await store.backup(str(home / "copy.db"))
        found = modes(home)
        await store.close()
    finally:
        os.umask(before)
    assert {"pollconsole.db", "copy.db"} <= set(found)
    assert set(found.values()) == {0o600}


@pytest.mark.rule("O6")
async def test_history_cannot_be_rewritten_and_its_guards_are_asserted_at_start(home: Path) -> None:
    store = open_at(home)
    claimed = await take(store, await submit(store), at(1))
    await store.turn(Turn(now=at(2), owner="w-1", writes=(result(claimed.operation, 1, at(2)),)))
    for table in schema.APPEND_ONLY:
        column = store.turns.conn.execute(f"PRAGMA table_info({table})").fetchall()[0][1]
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET {column}={column}"):
            with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                store.turns.conn.execute(statement)
    await store.close()
    meddle(home, "DROP TRIGGER audit_no_delete")
    with pytest.raises(StoreUnusable, match="audit_no_delete"):
        open_at(home)


@pytest.mark.rule("O6")
async def test_the_pragmas_are_those_that_durability_needs(home: Path) -> None:
    store = open_at(home)
    ask = lambda name: store.turns.conn.execute(f"PRAGMA {name}").fetchone()[0]  # noqa: E731
    found = {n: ask(n) for n in ("synchronous", "foreign_keys", "mmap_size", "trusted_schema", "cell_size_check")}
    assert found == {"synchronous": 2, "foreign_keys": 1, "mmap_size": 0, "trusted_schema": 0, "cell_size_check": 1}
    assert (ask("busy_timeout"), ask("journal_size_limit")) == (10_000, 16 << 20)
    health = await store.health()
    assert health.journal_mode == ("delete" if health.wal_reset_bug else "wal")
    assert (health.synchronous, health.schema, health.file_mode) == ("FULL", schema.SCHEMA, "0o600")
    await store.close()


@pytest.mark.rule("O6")
@pytest.mark.parametrize(
    ("version", "bug"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), True),
        ((3, 53, 0), False),
        ((3, 6, 23), False),
    ],
)
def test_the_versions_with_the_wal_reset_bug_are_known(version: tuple[int, ...], bug: bool) -> None:
    assert library.has_wal_reset_bug(version) is bug


@pytest.mark.rule("O6")
async def test_a_library_with_the_bug_gets_the_rollback_journal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await open_at(home).close()
    monkeypatch.setattr(library, "has_wal_reset_bug", lambda version: True)
    store = open_at(home)
    health = await store.health()
    assert health.journal_mode == "delete"
    assert "WAL-reset bug" in health.warnings[0]
    await submit(store)
    await store.close()


@pytest.mark.rule("O6")
async def test_a_migration_is_backed_up_first_and_undone_if_it_fails(home: Path) -> None:
    store = open_at(home)
    await submit(store)
    await store.close()
    path, new = str(home / "pollconsole.db"), schema.SCHEMA + 1

    def broken_step(db: Any) -> None:
        db.conn.execute("CREATE TABLE half(x)")
        raise RuntimeError("half done")

    def step(db: Any) -> None:
        db["operation"].add_column("extra", int)

    with pytest.raises(RuntimeError, match="half done"):
        opening.open_writer(path, steps={**schema.STEPS, new: broken_step})
    copy = home / f"pollconsole.db.before-schema-{new}"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    copy.unlink()
    conn = opening.open_writer(path, steps={**schema.STEPS, new: step})
    assert conn.execute("SELECT schema FROM meta").fetchone()[0] == new
    assert conn.execute("SELECT count(*) FROM sqlite_master WHERE name='half'").fetchone()[0] == 0
    assert conn.execute("SELECT extra FROM operation").fetchall() == [(None,)]
    conn.close()
    old = sqlite3.connect(str(copy), isolation_level=None)
    assert old.execute("SELECT schema FROM meta").fetchone()[0] == schema.SCHEMA
    assert old.execute("SELECT id FROM operation").fetchall() == [("op-1",)]
    old.close()


@pytest.mark.rule("O6")
async def test_a_backup_is_whole_while_others_write(home: Path) -> None:
    store = await ThreadedStore.open(str(home / "pollconsole.db"), Seal(), Chain())
    for k in range(20):
        await submit(store, f"op-{k}")

    async def writing() -> None:
        for k in range(20):
            o = await store.operation(f"op-{k}")
            await store.turn(Turn(now=at(1), owner="w-1", claims=(claim(o, at(1)),)))

    await asyncio.gather(writing(), *(store.backup(str(home / f"copy-{n}.db")) for n in range(3)))
    for n in range(3):
        copy = InlineStore(Seal(), Chain(), str(home / f"copy-{n}.db"))
        assert broken(copy.turns.conn) == []
        assert list(await copy.check()) == []
        assert len(await copy.counts()) > 0
        await copy.close()
    with pytest.raises(StoreUnusable, match="exists already"):
        await store.backup(str(home / "copy-0.db"))
    await store.close()


@pytest.mark.rule("O6")
@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("UPDATE operation SET status_requests_used = 2", "op-1: 2 requests counted"),
        ("UPDATE operation SET epoch = 0", "op-1: 1 requests counted"),
        ("DELETE FROM intent", "0 recorded"),
        ("DELETE FROM event WHERE seq = 1", "events: 1 rows, numbered to 2"),
        ("DELETE FROM audit WHERE seq = 1", "audit: 1 rows, numbered to 2"),
        ("UPDATE meta SET intents = 5", "counted 5 charges, 1 are recorded"),
        ("UPDATE operation SET transport_failures_used = 9", "op-1: more was used"),
    ],
)
async def test_the_check_finds_what_integrity_check_does_not(home: Path, harm: str, said: str) -> None:
    store = open_at(home)
    await take(store, await submit(store), at(1))
    assert list(await store.check()) == []
    for name in schema.TRIGGERS:
        store.turns.conn.execute(f"DROP TRIGGER {name}")
    store.turns.conn.execute(harm)
    assert store.turns.conn.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert any(said in line for line in await store.check())
    await store.close()


@pytest.mark.rule("O6")
async def test_a_thread_that_waits_for_the_disk_does_not_hold_the_close_for_ever(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pollcore.adapters.store import threaded

    store = await ThreadedStore.open(str(home / "pollconsole.db"), Seal(), Chain())
    monkeypatch.setattr(threaded, "CLOSE_S", 0.05)
    monkeypatch.setattr(threaded, "MAX_WAITING", 1)
    import threading

    gate = threading.Event()
    stuck = store._writer.call(lambda _: gate.wait(30))
    with pytest.raises(StoreUnusable, match="did not answer"):
        await store.close()
    gate.set()
    assert stuck.result(timeout=30)


@pytest.mark.rule("O6")
async def test_more_calls_than_the_queue_holds_are_refused_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from pollcore.adapters.store import threaded

    monkeypatch.setattr(threaded, "MAX_WAITING", 2)
    store = await ThreadedStore.open(str(home / "pollconsole.db"), Seal(), Chain())
    gate, running = threading.Event(), threading.Event()
    store._writer.call(lambda _: (running.set(), gate.wait(30)))
    assert await asyncio.to_thread(running.wait, 30)
    waiting = [store._writer.call(lambda _: 7) for _ in range(2)]
    with pytest.raises(StoreUnusable, match="calls wait"):
        store._writer.call(lambda _: 7)
    gate.set()
    assert [w.result(timeout=30) for w in waiting] == [7, 7]
    await store.close()


def test_a_store_in_memory_needs_no_threads() -> None:
    with pytest.raises(StoreUnusable, match="InlineStore"):
        asyncio.run(ThreadedStore.open(":memory:", Seal(), Chain()))
    assert inline().path == ":memory:"


@pytest.mark.rule("O6")
@pytest.mark.parametrize(("text", "name"), sorted(errors._BY_TEXT.items()))
def test_an_error_without_a_name_is_known_by_sqlites_own_text(text: str, name: str) -> None:
    told = errors.unusable(sqlite3.OperationalError(text), "/h/p.db", "making a backup", "backup")
    assert told.name == name
    assert str(told).startswith("backup /h/p.db: ")
    assert "our fault" not in str(told)


@pytest.mark.rule("O6")
def test_a_store_that_cannot_be_written_is_read_without_a_byte_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pollconsole.db"
    opening.open_writer(str(path)).close()
    path.chmod(0o644)
    before = path.stat()
    monkeypatch.setattr(connecting, "is_read_only", lambda _: True)
    conn = opening.open_writer(str(path))
    assert conn.execute("SELECT count(*) FROM operation").fetchone() == (0,)
    assert health.health(conn, str(path)).read_only
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        conn.execute("UPDATE meta SET change=change+1")
    conn.close()
    after = path.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (before.st_mode, before.st_mtime_ns, before.st_size)


@pytest.mark.rule("O6")
def test_an_old_schema_that_cannot_be_written_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "pollconsole.db")
    opening.open_writer(path).close()
    monkeypatch.setattr(connecting, "is_read_only", lambda _: True)
    with pytest.raises(StoreUnusable, match="copy the home to a place where it can"):
        opening.open_writer(path, steps={**schema.STEPS, schema.SCHEMA + 1: lambda _: None})


async def _before(home: Path, number: int) -> str:
    """A store of schema *number* with a waiting operation, a request and its answer."""
    path = str(home / "pollconsole.db")
    store = open_at(home)
    claimed = await take(store, await submit(store), at(1))
    await store.turn(Turn(now=at(2), owner="w-1", writes=(result(claimed.operation, 1, at(2)),)))
    await store.close()
    # taken back by hand to what the older program had
    back = sqlite3.connect(path, isolation_level=None)
    for name in schema.TRIGGERS:
        back.execute(f"DROP TRIGGER {name}")
    for table in ("archived", "archive"):
        back.execute(f"DROP TABLE {table}")
    for statement in schema._FIRST_TRIGGERS.values():
        back.execute(statement)
    back.execute("UPDATE meta SET schema=?", (number,))
    back.close()
    return path


@pytest.mark.rule("O6")
async def test_an_older_store_is_brought_up_to_date_with_a_copy_that_is_named_and_new_guards(home: Path) -> None:
    path = await _before(home, 3)
    Path(f"{path}.before-schema-4.part").write_bytes(b"left by a process that died")
    Path(f"{path}.before-schema-4").write_bytes(b"a copy of an earlier attempt")
    store = open_at(home)
    assert store.turns.copies == [f"{path}.before-schema-4.2"]
    assert Path(f"{path}.before-schema-4").read_bytes() == b"a copy of an earlier attempt"
    assert not Path(f"{path}.before-schema-4.part").exists()
    assert await store.check() == []
    for table in ("intent", "observation", "request", "event", "audit"):
        with pytest.raises(sqlite3.IntegrityError, match="but those that an archive holds"):
            store.turns.conn.execute(f"DELETE FROM {table}")
    await store.close()
    old = sqlite3.connect(f"{path}.before-schema-4.2", isolation_level=None)
    assert old.execute("SELECT schema FROM meta").fetchone()[0] == 3
    assert old.execute("SELECT count(*) FROM intent").fetchone()[0] == 1
    old.close()
    again = open_at(home)
    assert again.turns.copies == []
    await again.close()
