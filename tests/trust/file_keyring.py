"""A keyring for whole processes: entries in one file outside every home, named by a variable of the test.

Used only where `[keyring] backend` of a test's config.toml names it. While FILE.locked exists it fails as a locked
keyring does, quoting the value in its error, as a careless backend might.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "POLLCONSOLE_TEST_KEYRING_FILE"


class KeyringLocked(Exception):
    """As keyring's own: known by its name."""


class Keyring:
    """As `keyring.backend.KeyringBackend`, as far as it is used."""

    priority = 1.0

    @contextmanager
    def _entries(self) -> Iterator[dict[str, str]]:
        path = Path(os.environ[VARIABLE])
        with path.with_name(path.name + ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entries: dict[str, str] = json.loads(path.read_text() or "{}") if path.exists() else {}
            if path.with_name(path.name + ".locked").exists():
                raise KeyringLocked(f"locked; it holds {entries}")
            former = dict(entries)
            yield entries
            if entries != former:
                # in one step: whoever is killed here leaves the old entries or the new ones, never none
                beside = path.with_name(path.name + ".new")
                beside.write_text(json.dumps(entries))
                beside.replace(path)

    def get_password(self, service: str, username: str) -> str | None:
        with self._entries() as entries:
            return entries.get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        with self._entries() as entries:
            entries[f"{service} {username}"] = password

    def delete_password(self, service: str, username: str) -> None:
        with self._entries() as entries:
            entries.pop(f"{service} {username}", None)
