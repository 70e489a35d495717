"""Proof of death: each worker holds an OS lock on a file of its own, for as long as it lives.

Job: hold one, and tell whether another is held. Must not know: leases, the store. SIGSTOP keeps a lock, SIGKILL frees
it, so a dead worker is told from a slow one at once. The store's own files are never locked or opened here.
Source: reliability L4.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from pathlib import Path
from typing import Final

from pollcore.adapters.places import FILE_MODE
from pollcore.facts import StoreUnusable

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
MAX_SWEPT: Final = 1_000
ATTEMPTS: Final = 20
PAUSE_S: Final = 0.01
"""Another worker's look at our new file holds it for some microseconds."""


class WorkerLock:
    """Held from construction to `release` or the end of the process. One for each process, made after any fork.

    Its start sweeps away the files of workers that were killed.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        """Raises StoreUnusable: the lock is held already (two workers of one name) or cannot be made."""
        self.owner = owner
        self._path = _path(folder, owner)
        for _ in range(ATTEMPTS):
            self._file = _try_lock(self._path)
            if self._file >= 0:
                sweep(folder)
                return
            time.sleep(PAUSE_S)
        raise StoreUnusable(f"worker lock {self._path}: another worker of this name is alive")

    def release(self) -> None:
        """Give the lock up and remove its file; a second call does nothing."""
        if self._file >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1


class Deaths:
    """Asks the lock files of other workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, owner: str) -> bool:
        """True: *owner* is proved dead (its lock is free, or its file is gone). False: alive, or not known."""
        try:
            path = _path(self._folder, owner)
        except ValueError:
            return False
        try:
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            # a worker makes its file before its first lease and removes it at its end
            return self._folder.is_dir()
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(file)


def _try_lock(path: Path) -> int:
    """The locked descriptor, or -1: held by another, or swept away between open and lock."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise StoreUnusable(f"worker lock {path}: {error.strerror}: check the folder") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # a lock on a file that was removed meanwhile would prove nothing to others
        if os.path.samestat(os.fstat(file), path.lstat()):
            return file
    except OSError:
        pass
    os.close(file)
    return -1


def sweep(folder: Path) -> int:
    """Remove lock files of dead workers; returns how many. A free lock whose file is gone still proves death.

    Each is removed while its lock is held: one who opened it before sees that it is gone and makes a new one.
    """
    removed = 0
    for path in sorted(folder.glob("*.lock"))[:MAX_SWEPT]:
        try:
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), path.lstat()):
                path.unlink()
                removed += 1
        except OSError:
            pass  # alive, or removed by another sweep
        finally:
            os.close(file)
    return removed


def _path(folder: Path, owner: str) -> Path:
    if not _NAME.fullmatch(owner):
        raise ValueError("a worker's name is letters, digits, `_`, `.`, `-`")
    return folder / f"{owner}.lock"
