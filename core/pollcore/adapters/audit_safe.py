"""Where the audit's private keys and its anchor lie: the keyring, or a file of mode 0600.

Job: short texts by name, read and written whole; the anchor raised under an OS lock file, because a keyring has no
compare-and-swap. Must not know: SQL, links, what the keys do.
Every call blocks up to LIMIT_S and runs on a thread aside. Source: spec A4, K2; reliability notes, sections 6 and 11.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import msgspec

from pollcore.adapters.keyring_store import Vault
from pollcore.adapters.user_files import open_plain
from pollcore.facts import CredentialUnavailable, Refused, StopDetail

LIMIT_S: Final = 2.0
"""Of one keyring call, and of the wait for the lock."""
KEYRING: Final = "keyring"
KEY_FILE: Final = "key file"
SUFFIX: Final = ".audit"
"""Of the file beside a reading key's file."""
MAX_FILE: Final = 1 << 16
PAUSE_S: Final = 0.01
ANCHOR: Final = "audit-anchor"
_ANCHOR: Final = re.compile(
    r"pollconsole-anchor-1 ([0-9a-f]{32}) ([1-9][0-9]{0,18}) (0|[1-9][0-9]{0,8}) ([0-9a-f]{64})", re.ASCII
)


class Safe(Protocol):
    """Short secrets by name. All raise CredentialUnavailable (not now) or Refused (a file that is not fit)."""

    @property
    def where(self) -> str:
        """KEYRING or KEY_FILE."""
        ...

    def get(self, name: str) -> str | None: ...

    def set(self, name: str, value: str) -> None: ...

    def delete(self, name: str) -> None: ...


class Anchor(msgspec.Struct, frozen=True):
    """What is remembered outside the store: link *seq* of this log had this hash."""

    log_id: bytes
    seq: int
    epoch: int
    hash: bytes

    def text(self) -> str:
        """134 characters at most: fits every keyring."""
        return f"pollconsole-anchor-1 {self.log_id.hex()} {self.seq} {self.epoch} {self.hash.hex()}"


def anchor_of(text: str | None) -> Anchor | None:
    """None: there is none. Raises Refused: an entry that is no anchor."""
    if text is None:
        return None
    found = _ANCHOR.fullmatch(text)
    if found is None:
        raise Refused(
            f"the entry {ANCHOR} is no anchor: another program wrote it; 'pollconsole audit accept-loss' goes on",
            code="anchor",
        )
    return Anchor(bytes.fromhex(found[1]), int(found[2]), int(found[3]), bytes.fromhex(found[4]))


class VaultSafe:
    """In the OS keyring."""

    where = KEYRING

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def get(self, name: str) -> str | None:
        """As Safe."""
        return self._vault.get(name)[0]

    def set(self, name: str, value: str) -> None:
        """As Safe; written and read back."""
        self._vault.set(name, value)

    def delete(self, name: str) -> None:
        """As Safe."""
        self._vault.delete(name)


class FileSafe:
    """In one JSON file, rewritten whole: a process that dies in between leaves the old one."""

    where = KEY_FILE

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = path.with_name(path.name + ".lock")

    def get(self, name: str) -> str | None:
        """As Safe."""
        return self._read().get(name)

    def set(self, name: str, value: str) -> None:
        """As Safe."""
        with locked(self._lock):  # another process may be writing another entry
            self._write({**self._read(), name: value})

    def delete(self, name: str) -> None:
        """As Safe."""
        with locked(self._lock):
            found = self._read()
            if found.pop(name, None) is not None:
                self._write(found)

    def entries(self) -> dict[str, str]:
        """All that is kept, by name."""
        return self._read()

    def _read(self) -> dict[str, str]:
        why = None
        try:
            with open_plain(self.path, follow=False) as file:
                found = os.fstat(file.fileno())
                if found.st_mode & 0o077 or found.st_uid != os.geteuid():
                    why = "it is no plain file of yours that you alone may read (chmod 600)"
                else:
                    return msgspec.json.decode(file.read(MAX_FILE), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except OSError as error:
            why = error.strerror or type(error).__name__
        except msgspec.DecodeError:
            why = "its content is damaged"
        raise Refused(f"{self.path}: the audit's keys cannot be used: {why}", code="key_file")

    def _write(self, values: dict[str, str]) -> None:
        why = None
        try:
            handle, made = tempfile.mkstemp(prefix=f"{self.path.name}.", dir=self.path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(msgspec.json.format(msgspec.json.encode(values)) + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                Path(made).replace(self.path)
            except BaseException:
                Path(made).unlink(missing_ok=True)
                raise
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            why = error.strerror or type(error).__name__
        if why is not None:
            raise Refused(f"{self.path}: the audit's keys cannot be written: {why}", code="key_file")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file *path*. Raises CredentialUnavailable: another process holds it for LIMIT_S."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Refused(
            f"{path}: cannot be locked: {error.strerror}; the audit's keys change only where this user may write",
            code="key_file",
        ) from None
    try:
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise CredentialUnavailable(
                        f"{path}: another process holds it for {LIMIT_S:g} s; it may wait for the keyring",
                        StopDetail.KEYRING_TIMEOUT,
                    ) from None
                time.sleep(PAUSE_S)
        yield
    finally:
        os.close(file)


def swap(safe: Safe, lock: Path, expected: Anchor | None, new: Anchor) -> Anchor | None:
    """Put *new* in place of *expected*; returns what was there. Another anchor than *expected* stays (I19)."""
    with locked(lock):
        found = anchor_of(safe.get(ANCHOR))
        if found == expected:
            safe.set(ANCHOR, new.text())
        return found
