"""Copies of the store: a backup that an operator asks for, and the one before a migration.

Job: one whole file of mode 0600 through SQLite's own interface, which has its name only when it is whole. Must not
know: tables, why a copy is made.
Source: spec O6.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from pollcore.adapters import places
from pollcore.adapters.store.connecting import connect
from pollcore.adapters.store.errors import unusable
from pollcore.adapters.store.library import sqlite3
from pollcore.facts import StoreUnusable

MAX_COPIES: Final = 100
"""Copies before one and the same migration: a machine that dies in each attempt does not fill its disk for ever."""
PART: Final = ".part"


def copy_before(path: str, step: int) -> str:
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
