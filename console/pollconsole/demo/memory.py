"""Chance and keyring of the demo: both forget everything with the process.

Job: draws and ids that repeat with a seed, so that screenshots repeat; keyring entries in memory, so that the demo
touches no keyring. Must not know: what is drawn for, what the entries mean.
"""

from __future__ import annotations

import random
import threading


class DemoChance:
    """The port `Chance`. Draws and ids repeat with *seed*: nothing here guards a secret."""

    def __init__(self, seed: int) -> None:
        self._draws = random.Random(seed)
        self._ids = random.Random(f"ids {seed}")

    def draw(self) -> float:
        """From [0.0, 1.0)."""
        return self._draws.random()

    def token(self, size: int = 8) -> str:
        """*size* bytes as lower-case hex."""
        return self._ids.randbytes(size).hex()


class MemoryKeyring:
    """What the core asks of a keyring backend, in memory."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"MemoryKeyring({len(self._entries)} entries)"

    def get_password(self, service: str, username: str) -> str | None:
        """The entry, or None."""
        with self._lock:
            return self._entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store or replace."""
        with self._lock:
            self._entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        """Forget; an entry that is not there is fine."""
        with self._lock:
            self._entries.pop((service, username), None)
