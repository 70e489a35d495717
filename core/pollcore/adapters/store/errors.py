"""What SQLite raises -> StoreUnusable: what happened, where, and the way out.

Job: one table from error code to one plain sentence (spec O6). Must not know: transactions, who called.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pollcore.adapters import places
from pollcore.facts import StoreUnusable

FULL: Final = "SQLITE_FULL"
MIN_FREE_BYTES: Final = 64 << 20
"""After one FULL, nothing is claimed before this much is free: a smaller write may still pass and proves nothing."""

_WAY_OUT: Final[dict[str, tuple[str, str]]] = {
    FULL: ("the disk is full", "free space on it (64 MiB at least); nothing is sent until then"),
    "SQLITE_BUSY": ("another process held it locked too long", "see who writes to it; the work is tried again"),
    "SQLITE_LOCKED": ("another connection holds it locked", "the work is tried again"),
    "SQLITE_READONLY": ("it cannot be written", "give this user the right to write to the file and its folder"),
    "SQLITE_NOTADB": ("it is not a SQLite database", "put the right file, or a backup, in its place"),
    "SQLITE_CORRUPT": ("it is damaged", "stop all workers and put a backup in its place"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "check that its folder exists and belongs to this user"),
    "SQLITE_IOERR": ("the disk failed to read or write", "check the disk and the file system"),
    "SQLITE_NOMEM": ("memory ran out", "free memory"),
    "SQLITE_PROTOCOL": ("its locks are broken", "check that it lies on a local file system"),
    "SQLITE_PERM": ("access was denied", "give this user the right to the file and its folder"),
    "SQLITE_INTERRUPT": ("the statement was interrupted", "the work is tried again"),
}
_BY_TEXT: Final[dict[str, str]] = {
    "database or disk is full": FULL,
    "database is locked": "SQLITE_BUSY",
    "attempt to write a readonly database": "SQLITE_READONLY",
    "file is not a database": "SQLITE_NOTADB",
    "database disk image is malformed": "SQLITE_CORRUPT",
    "unable to open database file": "SQLITE_CANTOPEN",
    "disk I/O error": "SQLITE_IOERR",
    "out of memory": "SQLITE_NOMEM",
}
"""SQLite's own fixed texts (sqlite3_errstr), for errors that come without a name, as those of a backup do."""
_OF_A_FULL_DISK: Final = frozenset({"SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY"})
"""What SQLite also says where the disk is full: of the files beside the store that it cannot make or enlarge."""
_DEFAULT: Final = ("SQLite refused a statement", "this is our fault; run `pollconsole doctor` and report it")


class DatabaseTrouble(StoreUnusable):
    """StoreUnusable with SQLite's name of the error (`SQLITE_FULL`)."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


def base_name(error: Exception) -> str:
    """SQLite's primary name of *error*: `SQLITE_IOERR_FSYNC` -> `SQLITE_IOERR`."""
    name = getattr(error, "sqlite_errorname", None) or _BY_TEXT.get(str(error), "")
    return "_".join(name.split("_")[:2])


def unusable(error: Exception, where: str, doing: str, file: str = "store") -> DatabaseTrouble:
    """The StoreUnusable that tells people of *error* at the file *where* while *doing* something.

    *file*: what the file is, `store` or `backup`.
    """
    base = base_name(error)
    name = getattr(error, "sqlite_errorname", None) or base or type(error).__name__
    if base in _OF_A_FULL_DISK and _is_full(Path(where).parent):
        base = FULL
    what, way_out = _WAY_OUT.get(base, _DEFAULT)
    if file == "backup" and base == FULL:
        way_out = "free space there, or name a file on another disk; nothing was kept of the copy"
    if base not in _WAY_OUT:
        what = f"{what} ({error})"
    return DatabaseTrouble(f"{file} {where}: {what} while {doing} ({name}): {way_out}", base)


def _is_full(folder: Path) -> bool:
    """Whether a full disk is the reason: where this user may not write, it is not."""
    return places.can_be_written(folder) and places.is_full(folder)
