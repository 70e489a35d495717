"""Opening the store to write: journal mode, migrations, guards of history.

Job: the one writer's connection on a file of this program's schema. Must not know: tables beyond their version,
operations, turns, how a connection is made.
Source: spec O6; reliability section 4.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pollcore.adapters.store import connecting, copying, library, schema
from pollcore.adapters.store.connecting import MEMORY
from pollcore.adapters.store.errors import unusable
from pollcore.adapters.store.library import sqlite3, utilities
from pollcore.facts import StoreUnusable

LOOK_S: Final = 0.02
"""How soon it is seen that another process has opened the store."""


def open_writer(
    path: str,
    *,
    steps: Mapping[int, schema.Step] = schema.STEPS,
    copies: list[str] | None = None,
    when_full: bool = False,
) -> Any:
    """Connect, choose the journal, bring the schema up to date, assert the guards of history.

    A store that cannot be written is opened all the same, for those who only read: each write is refused.

    Args:
        copies: gets the path of each copy that was made before a migration.
        when_full: Whether a store on a full disk is opened as one that cannot be written.

    Raises:
        StoreUnusable: as connect; or the schema is newer than this program, or older and cannot be brought up to date.
    """
    with _one_at_a_time(path):
        return _opened(path, steps, [] if copies is None else copies, when_full)


@contextlib.contextmanager
def _one_at_a_time(path: str) -> Iterator[None]:
    """Two processes that make one new store, or change its journal, at the same moment are in each other's way, and
    SQLite then gives up at once. The lock of the folder keeps the second one waiting; after BUSY_MS it goes on all the
    same, since what a store holds is guarded by SQLite's own locks alone."""
    if path == MEMORY:
        yield
        return
    try:
        folder = os.open(Path(path).parent, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # told by whoever connects
        yield
        return
    try:
        end = time.monotonic() + connecting.BUSY_MS / 1000
        while time.monotonic() < end:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(LOOK_S)
            except OSError:
                break  # a file system without such locks
            else:
                break
        yield
    finally:
        os.close(folder)


def _opened(path: str, steps: Mapping[int, schema.Step], copies: list[str], when_full: bool) -> Any:
    conn = connecting.connect(path, when_full=when_full)
    try:
        sealed = connecting.only_reads(conn)
        if sealed and (found := schema.version(conn, path)) < max(steps):
            raise StoreUnusable(
                f"store {path}: its schema {found} is older than this program's {max(steps)}, and it cannot be "
                "written: copy the home to a place where it can"
            )
        if path != MEMORY and not sealed:
            mode = "DELETE" if library.has_wal_reset_bug(sqlite3.sqlite_version_info) else "WAL"
            got = conn.execute(f"PRAGMA journal_mode={mode}").fetchone()[0]
            if got.upper() != mode:
                raise StoreUnusable(f"store {path}: journal mode {mode} was refused ({got}): check its file system")
        _migrate(conn, path, steps, copies)
        schema.assert_triggers(conn, path)
    except sqlite3.Error as error:
        conn.close()
        raise unusable(error, path, "opening it") from error
    except BaseException:
        conn.close()
        raise
    return conn


def _migrate(conn: Any, path: str, steps: Mapping[int, schema.Step], copies: list[str]) -> None:
    """Each step in its own BEGIN IMMEDIATE, a backup before it; of two processes the second finds it done.

    A new file gets all steps at once: there is nothing in it to back up, and nobody sees half of it.
    """
    newest = max(steps)
    while True:
        before = schema.version(conn, path)
        if before > newest:
            raise StoreUnusable(
                f"store {path}: its schema {before} is newer than this program's {newest}: install a newer pollconsole"
            )
        if before == newest:
            return
        db = utilities(conn)
        conn.execute("BEGIN IMMEDIATE")
        try:
            if schema.version(conn, path) == before:
                if before and path != MEMORY:
                    copies.append(copying.copy_before(path, before + 1))
                after = before + 1 if before else newest
                for number in range(before + 1, after + 1):
                    steps[number](db)
                conn.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
                conn.execute("UPDATE meta SET schema=?", (after,))
            conn.execute("COMMIT")
        except BaseException:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            raise
