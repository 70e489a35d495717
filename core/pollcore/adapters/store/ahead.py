"""A glance in a process of its own, which runs while this one still imports its screen.

Job: start it, take what it found within a limit, leave no process behind. Must not know: what is looked at, screens.
Forked, so only by a program that has started no thread yet; SQLite is imported by the child alone. The child never
returns: it writes to its pipe and ends without closing the store, because the last connection that closes would write
the log back into the file.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import threading
import time
from pathlib import Path
from typing import Final, cast

from pollcore.facts import Escalation, Operation

TAKE_S: Final = 1.0
"""A child that needs longer is ended, and the rows come with the core."""
READ: Final = 1 << 16

Found = tuple[tuple[Operation, ...], tuple[Escalation, ...]]
"""Operations that stand on top, open questions."""


class Ahead:
    """One glance under way. `take` is called once."""

    def __init__(self, path: Path) -> None:
        """Raises OSError: no process can be made."""
        if threading.active_count() > 1:
            raise OSError("a process with threads is not forked")
        self._fd, write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _child(path, write)
        os.close(write)

    def take(self, limit_s: float = TAKE_S) -> Found | None:
        """What was found; None: nothing to show, or not within *limit_s*. Raises nothing."""
        try:
            found = self._read(time.monotonic() + limit_s)
        finally:
            os.close(self._fd)
            if found is None:
                os.kill(self._pid, signal.SIGKILL)  # it may hang on a disk; until it is waited for the id is its own
            os.waitpid(self._pid, 0)
        return cast("Found", pickle.loads(found)) if found else None  # written by our own child

    def _read(self, end: float) -> bytes | None:
        parts: list[bytes] = []
        while (left := end - time.monotonic()) > 0:
            if select.select([self._fd], [], [], left)[0]:
                data = os.read(self._fd, READ)
                if not data:
                    return b"".join(parts)
                parts.append(data)
        return None


def _child(path: Path, write: int) -> None:
    try:
        from pollcore.adapters.store.glance import glance

        found = glance(path)
        data = b"" if found is None else pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
        with open(write, "wb") as pipe:
            pipe.write(data)
    finally:
        os._exit(0)
