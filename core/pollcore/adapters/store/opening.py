"""Opening the one SQLite file: checks of the file, of the library, pragmas, journal mode, migrations.

Job: a connection that keeps every promise of O6, or an error that says why not. Must not know: tables beyond their
version, operations, turns. The file is never opened by hand: closing such a descriptor would drop SQLite's locks.
Source: spec O6; reliability section 4.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from pollcore.adapters import places
from pollcore.adapters.store import schema
from pollcore.adapters.store.errors import MIN_FREE_BYTES, base_name, unusable
from pollcore.adapters.store.library import sqlite3, utilities
from pollcore.facts import StoreUnusable

MEMORY: Final = ":memory:"
BUSY_MS: Final = 10_000
JOURNAL_LIMIT_BYTES: Final = 16 << 20
CACHE_KIB: Final = 64 << 10
"""Enough for the hot rows of 100,000 waiting operations; taken only as far as it is used."""
CACHED_STATEMENTS: Final = 256
MAX_COPIES: Final = 100
"""Copies before one and the same migration: a machine that dies in each attempt does not fill its disk for ever."""
PART: Final = ".part"
OLDEST_SQLITE: Final = (3, 38, 0)
"""STRICT tables came with 3.37, the JSON functions as a fixed part with 3.38."""


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


def has_wal_reset_bug(version: tuple[int, ...]) -> bool:
    """3.7.0 to 3.51.2, but for the fixed 3.44.6 and 3.50.7; 3.52.0 was withdrawn (sqlite.org, "WAL-reset bug")."""
    if version[:2] == (3, 44):
        return version < (3, 44, 6)
    if version[:2] == (3, 50):
        return version < (3, 50, 7)
    return (3, 7, 0) <= version < (3, 51, 3) or version[:2] == (3, 52)


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


def connect(path: str, *, read_only: bool = False) -> Any:
    """A bare connection with every pragma of ours set. Any thread may make it; one thread uses it at a time.

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
        conn = _connect_read_only(path) if sealed else _connect(path)
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
            *(("query_only=ON",) if read_only and not sealed else ()),
        ):
            conn.execute(f"PRAGMA {pragma}").fetchall()
    except (sqlite3.Error, OSError) as error:
        conn.close()
        if isinstance(error, OSError):
            raise StoreUnusable(f"store {path}: its mode cannot be set to 0600 ({error.strerror})") from error
        raise unusable(error, path, "opening it") from error
    return conn


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


def _connect_read_only(path: str) -> Any:
    """A connection that writes no byte. A store with a WAL is read with it; one without needs none to be made."""
    address = f"file:{quote(path)}?mode=ro"
    conn = _connect(address, uri=True)
    try:
        conn.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        conn.close()
        # in WAL mode SQLite would make -wal and -shm. Immutable leaves a WAL unread: never where there is one
        if base_name(error) != "SQLITE_CANTOPEN" or Path(f"{path}-wal").exists():
            raise
        conn = _connect(f"{address}&immutable=1", uri=True)
    return conn


def open_writer(path: str, *, steps: Mapping[int, schema.Step] = schema.STEPS, copies: list[str] | None = None) -> Any:
    """Connect, choose the journal, bring the schema up to date, assert the guards of history.

    A store that cannot be written is opened all the same, for those who only read: each write is refused.

    Args:
        copies: gets the path of each copy that was made before a migration.

    Raises:
        StoreUnusable: as connect; or the schema is newer than this program, or older and cannot be brought up to date.
    """
    conn = connect(path)
    try:
        sealed = path != MEMORY and is_read_only(path)
        if sealed and (found := schema.version(conn, path)) < max(steps):
            raise StoreUnusable(
                f"store {path}: its schema {found} is older than this program's {max(steps)}, and it cannot be "
                "written: copy the home to a place where it can"
            )
        if path != MEMORY and not sealed:
            mode = "DELETE" if has_wal_reset_bug(sqlite3.sqlite_version_info) else "WAL"
            got = conn.execute(f"PRAGMA journal_mode={mode}").fetchone()[0]
            if got.upper() != mode:
                raise StoreUnusable(f"store {path}: journal mode {mode} was refused ({got}): check its file system")
        _migrate(conn, path, steps, [] if copies is None else copies)
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
                    copies.append(_backup_before(path, before + 1))
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


def _backup_before(path: str, step: int) -> str:
    """A copy beside the store; our open write transaction keeps everyone else from writing meanwhile. Returns its path.

    It has its name only when it is whole, and takes no other copy's: one of an earlier attempt stays.
    """
    name = f"{path}.before-schema-{step}"
    part = Path(f"{name}{PART}")
    part.unlink(missing_ok=True)
    free = next((p for p in (name, *(f"{name}.{n}" for n in range(2, MAX_COPIES + 1))) if not os.path.lexists(p)), None)
    if free is None:
        raise StoreUnusable(f"store {path}: {MAX_COPIES} copies {name}.* lie beside it: remove all but the newest")
    reader = connect(path, read_only=True)
    try:
        write_copy(reader, str(part))
    finally:
        reader.close()
    part.rename(free)
    folder = os.open(part.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return free


def write_copy(conn: Any, target: str) -> None:
    """Copy the database through SQLite's own backup interface into a new file of mode 0600.

    Raises:
        StoreUnusable: the target exists, or cannot be written.
    """
    place = Path(target)
    if place.is_symlink() or place.exists():
        raise StoreUnusable(f"backup {target}: it exists already: name a new file")
    try:
        copy = sqlite3.connect(target, isolation_level=None)
    except sqlite3.Error as error:
        raise unusable(error, target, "making a backup", "backup") from error
    try:
        place.chmod(places.FILE_MODE)
        conn.backup(copy)
        # one file that carries everything, wherever it is copied to
        copy.execute("PRAGMA journal_mode=DELETE").fetchall()
    except (sqlite3.Error, OSError) as error:
        copy.close()
        place.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StoreUnusable(f"backup {target}: {error.strerror}") from error
        raise unusable(error, target, "making a backup", "backup") from error
    copy.close()


def health(conn: Any, path: str) -> Health:
    """What `doctor` says of the store."""

    def ask(pragma: str) -> Any:
        return conn.execute(f"PRAGMA {pragma}").fetchone()[0]

    bug = has_wal_reset_bug(sqlite3.sqlite_version_info)
    warnings = []
    if bug:
        warnings.append(
            f"SQLite {sqlite3.sqlite_version} has the WAL-reset bug; the slower rollback journal is used: "
            "install pysqlite3 0.6.1 or newer"
        )
    on_disk = path != MEMORY
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
        read_only=on_disk and is_read_only(path),
        pauses=tuple(
            (provider, account or None, until)
            for provider, account, until in conn.execute("SELECT provider, account, until FROM pause").fetchall()
        ),
        warnings=tuple(warnings),
    )
