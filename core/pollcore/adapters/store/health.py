"""What `doctor` says of the store.

Job: figures of the file, the library and the connection, and what is wrong with them. Must not know: who asks, words of
a terminal, operations.
Source: spec O6.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import msgspec

from pollcore.adapters import places
from pollcore.adapters.store import connecting, library
from pollcore.adapters.store.errors import MIN_FREE_BYTES
from pollcore.adapters.store.library import sqlite3


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What `doctor` prints of the store."""

    path: str
    library: str
    sqlite_version: str
    journal_mode: str
    wal_reset_bug: bool
    """True: this SQLite may corrupt a WAL that two processes write; the slower rollback journal is used instead."""
    synchronous: str
    schema: int
    file_bytes: int
    file_mode: str
    free_bytes: int | None
    free_needed: int = MIN_FREE_BYTES
    """With less free than this the disk counts as full."""
    read_only: bool = False
    """The folder or the file cannot be written: nothing can be sent or recorded from here."""
    pauses: tuple[tuple[str, str | None, int], ...] = ()
    """Pauses on record, (provider, account or None: all, until), those that are over included."""
    warnings: tuple[str, ...] = ()


def health(conn: Any, path: str) -> Health:
    """What `doctor` says of the store."""

    def ask(pragma: str) -> Any:
        return conn.execute(f"PRAGMA {pragma}").fetchone()[0]

    bug = library.has_wal_reset_bug(sqlite3.sqlite_version_info)
    warnings = []
    if bug:
        warnings.append(
            f"SQLite {sqlite3.sqlite_version} has the WAL-reset bug; the slower rollback journal is used: "
            "install pysqlite3 0.6.1 or newer"
        )
    on_disk = path != connecting.MEMORY
    if on_disk:
        warnings += places.warnings(Path(path).parent)
    return Health(
        path=path,
        library=sqlite3.__name__,
        sqlite_version=sqlite3.sqlite_version,
        journal_mode=ask("journal_mode"),
        wal_reset_bug=bug,
        synchronous={0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}[ask("synchronous")],
        schema=conn.execute("SELECT schema FROM meta").fetchone()[0],
        file_bytes=ask("page_count") * ask("page_size"),
        file_mode=oct(stat.S_IMODE(Path(path).lstat().st_mode)) if on_disk else "",
        free_bytes=places.free_bytes(Path(path).parent) if on_disk else None,
        read_only=on_disk and connecting.is_read_only(path),
        pauses=tuple(
            (provider, account or None, until)
            for provider, account, until in conn.execute("SELECT provider, account, until FROM pause").fetchall()
        ),
        warnings=tuple(warnings),
    )
