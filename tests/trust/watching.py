"""Argument lists and environments of every process that this one started, looked at again and again while they live.

Linux's /proc alone. A process that forbids it (PR_SET_DUMPABLE) shows its environment to root only; what it was
started with is then seen before it does so, or in its children.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

REST_S: Final = 0.01
PROC: Final = Path("/proc")


class Watch:
    """Collects while it is entered. *argv* and *environ* hold what was seen, each once."""

    def __init__(self) -> None:
        self.argv: set[bytes] = set()
        self.environ: set[bytes] = set()
        self.looked_at: set[int] = set()
        """Processes whose environment could be read."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look_again, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end.set()
        self._thread.join(10)

    def _look_again(self) -> None:
        while not self._end.wait(REST_S):
            self.look()

    def look(self) -> None:
        """Once."""
        for pid in _descendants(os.getpid()):
            for name, into in (("cmdline", self.argv), ("environ", self.environ)):
                try:
                    data = (PROC / str(pid) / name).read_bytes()
                except OSError:  # it ended, or it forbids it
                    continue
                into.add(data)
                if name == "environ" and data:
                    self.looked_at.add(pid)


def _descendants(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            try:
                told = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(told.rpartition(")")[2].split()[1])
    found: list[int] = []
    fresh = {root}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh}
        found += fresh
    return found
