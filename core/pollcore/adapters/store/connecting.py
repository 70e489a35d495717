"""One connection to the store's file, whether it can be written or not.

Job: checks of file and library, and pragmas: a connection that keeps every promise of O6, or an error that says why
not. Must not know: tables, the journal mode of a writer, migrations. The file is never opened by hand: closing such a
descriptor would drop SQLite's locks.
Source: spec O6; reliability section 4.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pollcore.adapters import places
from pollcore.adapters.store.errors import base_name, unusable
from pollcore.adapters.store.library import sqlite3
from pollcore.facts import StoreUnusable

MEMORY: Final = ":memory:"
BUSY_MS: Final = 10_000
JOURNAL_LIMIT_BYTES: Final = 16 << 20
CACHE_KIB: Final = 64 << 10
"""Enough for the hot rows of 100,000 waiting operations; taken only as far as it is used."""
CACHED_STATEMENTS: Final = 256
FULL_DISK: Final = "the disk is full; "
_WANT_ROOM: Final = ("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_FULL")
OLDEST_SQLITE: Final = (3, 38, 0)
"""STRICT tables came with 3.37, the JSON functions as a fixed part with 3.38."""


def check_file(path: Path) -> None:
    """Refuse what SQLite must not be given.

    Raises:
        StoreUnusable: a symlink, no regular file, no folder, or a file system whose locks are not to be trusted.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):
        beside = path.with_name(path.name + suffix)
        try:
            found = beside.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreUnusable(f"store {beside}: cannot be looked at ({error.strerror}): check its folder") from error
        if not stat.S_ISREG(found.st_mode):
            raise StoreUnusable(f"store {beside}: a symlink or no regular file: name the real folder with --home")
    if not path.parent.is_dir():
        raise StoreUnusable(f"store {path}: its folder does not exist: create it or name another --home")
    places.refuse_network(path.parent)


def connect(path: str, *, read_only: bool = False, when_full: bool | None = None) -> Any:
    """A bare connection with every pragma of ours set. Any thread may make it; one thread uses it at a time.

    Args:
        when_full: Whether a store on a full disk is opened all the same, only to be read; None: as *read_only*.

    Raises:
        StoreUnusable: the file or the library cannot be used.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreUnusable(
            f"SQLite {sqlite3.sqlite_version} is too old: 3.38 or newer is needed (pip install pysqlite3)"
        )
    if path != MEMORY:
        check_file(Path(path))
    sealed = path != MEMORY and is_read_only(path)
    try:
        if sealed:
            conn = _connect_read_only(path)
        else:
            conn = _connect_unless_full(path) if (read_only if when_full is None else when_full) else _connect(path)
            sealed = conn is None
            conn = _connect_read_only(path) if conn is None else conn
    except sqlite3.Error as error:
        raise unusable(error, path, "opening it") from error
    try:
        if path != MEMORY and not sealed:
            # SQLite made the file by the umask; -wal and -shm take its mode
            Path(path).chmod(places.FILE_MODE)
        for pragma in (
            f"busy_timeout={BUSY_MS}",
            "foreign_keys=ON",
            "synchronous=FULL",
            "fullfsync=ON",
            "mmap_size=0",
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "recursive_triggers=ON",
            *(() if sealed else (f"journal_size_limit={JOURNAL_LIMIT_BYTES}",)),
            f"cache_size=-{CACHE_KIB}",
            *(("query_only=ON",) if read_only or sealed else ()),
        ):
            conn.execute(f"PRAGMA {pragma}").fetchall()
    except (sqlite3.Error, OSError) as error:
        conn.close()
        if isinstance(error, OSError):
            raise StoreUnusable(f"store {path}: its mode cannot be set to 0600 ({error.strerror})") from error
        raise unusable(error, path, "opening it") from error
    return conn


def only_reads(conn: Any) -> bool:
    """Whether *conn* cannot write."""
    return bool(conn.execute("PRAGMA query_only").fetchone()[0])


def is_read_only(path: str) -> bool:
    """Whether the store at *path* exists and cannot be written, as on a file system mounted read-only."""
    place = Path(path)
    return place.exists() and not (places.can_be_written(place.parent) and os.access(place, os.W_OK))


def _connect(target: str, *, uri: bool = False) -> Any:
    return sqlite3.connect(
        target,
        uri=uri,
        timeout=BUSY_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )


def _connect_unless_full(path: str) -> Any:
    """A connection, or None: the disk is too full for the files that SQLite wants beside the store."""
    # where there is room nothing is read here: a read before the journal is chosen can be in the way of another process
    # that makes the same store at this moment
    looks = path != MEMORY and places.is_full(Path(path).parent) and Path(path).exists()
    conn = _connect(path)
    try:
        if looks:
            conn.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        conn.close()
        if base_name(error) in _WANT_ROOM and places.is_full(Path(path).parent):
            return None
        raise
    return conn


def _holds_commits(wal: Path) -> bool:
    try:
        return wal.stat().st_size > 0
    except FileNotFoundError:
        return False


def _connect_read_only(path: str) -> Any:
    """A connection that writes no byte. A store with a WAL is read with it; one without needs none to be made."""
    address = f"file:{quote(path)}?mode=ro"
    conn = _connect(address, uri=True)
    try:
        conn.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        conn.close()
        # in WAL mode SQLite would make -wal and -shm. Immutable leaves a WAL unread: never where there is one
        # (refused as CANTOPEN by a file system mounted read-only, as READONLY by a folder's mode)
        # (IOERR of a full disk)
        full = base_name(error) == "SQLITE_IOERR" and places.is_full(Path(path).parent)
        if not full and base_name(error) not in ("SQLITE_CANTOPEN", "SQLITE_READONLY"):
            raise
        if _holds_commits(Path(f"{path}-wal")):
            raise StoreUnusable(
                f"store {path}: {FULL_DISK if full else ''}it cannot be opened without writing beside it: its last "
                f"commits lie in {path}-wal; {'free space, or ' if full else ''}copy the whole home to a place where "
                "it can be written, and name that with --home"
            ) from error
        conn = _connect(f"{address}&immutable=1", uri=True)
    return conn
