"""Entries in the OS keyring: which backend, and calls that cannot hang us. The only file that imports keyring.

Job: choose a real backend from an allow-list, read, write and delete short texts under a service name of this home,
each call aside with a time limit. Must not know: what the entries mean (credentials, reading key, anchor).
Source: spec K1, K2; reliability notes, section 6.

keyring's own choice is not used: it obeys PYTHON_KEYRING_BACKEND and a configuration file (any import path), takes
plaintext files silently, and chains backends so that a planted value in one answers for another.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import secrets
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from pollcore.adapters.aside import Aside
from pollcore.facts import CredentialUnavailable, Refused, StopDetail

ALLOWED: Final = (
    "keyring.backends.SecretService.Keyring",
    "keyring.backends.libsecret.Keyring",
    "keyring.backends.kwallet.DBusKeyring",
    "keyring.backends.macOS.Keyring",
    "keyring.backends.Windows.WinVaultKeyring",
)
"""Exact classes, subclasses excluded (K2)."""
LIMIT_S: Final = 3.0
MAX_VALUE: Final = 1_000
"""Windows takes 1,280 ASCII characters; an entry must fit everywhere."""
_PROBE: Final = "probe"
_ENV_PREFIX: Final = "KEYRING_PROPERTY_"
_WAY_OUT: Final = {
    StopDetail.KEYRING_LOCKED: "unlock it (log in to the desktop, or gnome-keyring-daemon --unlock), then check again",
    StopDetail.KEYRING_TIMEOUT: "a prompt may be waiting on another screen, or its service hangs; then check again",
    StopDetail.KEYRING_ABSENT: "start a Secret Service (gnome-keyring, KeePassXC, KWallet); see pollconsole doctor",
}
_OF_PLATFORM: Final = {
    "darwin": {
        StopDetail.KEYRING_LOCKED: "unlock the login keychain (security unlock-keychain), then check again",
        StopDetail.KEYRING_ABSENT: "run as the user who is logged in at the screen: the login keychain must be open to "
        "it; see pollconsole doctor",
    },
    "win32": {
        StopDetail.KEYRING_LOCKED: "log in as this user, then check again",
        StopDetail.KEYRING_ABSENT: "run in a session of the user, whose Credential Manager it is (not as a service "
        "account without a profile); see pollconsole doctor",
    },
}
"""Where another way leads out than on Linux; by `sys.platform`."""

T = TypeVar("T")


class Backend(Protocol):
    """What keyring's backends and `MemoryBackend` offer."""

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def delete_password(self, service: str, username: str) -> None: ...


class MemoryBackend:
    """Entries in memory, for tests and the demo. Handed in as an object, never chosen by itself."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"MemoryBackend({len(self._entries)} entries)"

    def get_password(self, service: str, username: str) -> str | None:
        with self._lock:
            return self._entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        with self._lock:
            self._entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        with self._lock:
            self._entries.pop((service, username), None)


def service_name(home: Path) -> str:
    """`pollconsole:` and 12 hex digits of the home's real path: homes do not see each other's entries."""
    return f"pollconsole:{hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:12]}"


def way_out(detail: StopDetail, platform: str = sys.platform) -> str:
    """What an operator can do about a keyring that fails with *detail* on *platform*."""
    return _OF_PLATFORM.get(platform, {}).get(detail, _WAY_OUT[detail])


class Vault:
    """The entries of one home. Every call ends within the limit; all raise CredentialUnavailable with a StopDetail.

    Plain methods block the calling thread; those with an `a` in front wait on the running loop.
    """

    def __init__(
        self, home: Path, *, backend: Backend | None = None, named: str | None = None, limit_s: float = LIMIT_S
    ) -> None:
        """*backend*: an object to use as it is (tests, demo). *named*: `[keyring] backend` of config.toml."""
        self.service = service_name(home)
        self._backend = backend
        self._named = named
        self._limit_s = limit_s
        self._aside = Aside("keyring")

    def __repr__(self) -> str:
        return f"Vault({self.service})"

    def get(self, *entries: str) -> tuple[str | None, ...]:
        """The values of *entries*, None for those that are not there."""
        return self._call(self._getting(entries))

    async def aget(self, *entries: str) -> tuple[str | None, ...]:
        """As `get`."""
        return await self._acall(self._getting(entries))

    def set(self, entry: str, value: str) -> None:
        """Write and read back. Raises Refused: longer than MAX_VALUE, or empty."""
        self._call(self._setting(entry, value))

    async def aset(self, entry: str, value: str) -> None:
        """As `set`."""
        await self._acall(self._setting(entry, value))

    def delete(self, entry: str) -> None:
        """Delete *entry*; one that is not there is fine."""
        self._call(self._deleting(entry))

    async def adelete(self, entry: str) -> None:
        """As `delete`."""
        await self._acall(self._deleting(entry))

    def probe(self) -> str:
        """Write, read and delete a random value; return the backend's name (for setup and `doctor`)."""
        value = secrets.token_hex(8)

        def run(backend: Backend) -> str:
            backend.set_password(self.service, _PROBE, value)
            kept = backend.get_password(self.service, _PROBE)
            backend.delete_password(self.service, _PROBE)
            if kept != value or backend.get_password(self.service, _PROBE) is not None:
                raise _Forgetful
            return class_name(type(backend))

        return self._call(run)

    def describe(self) -> str:
        """The class of the backend that is used. Raises CredentialUnavailable: none."""
        return self._call(lambda backend: class_name(type(backend)))

    def _getting(self, entries: Sequence[str]) -> Callable[[Backend], tuple[str | None, ...]]:
        return lambda backend: tuple([backend.get_password(self.service, entry) for entry in entries])

    def _setting(self, entry: str, value: str) -> Callable[[Backend], None]:
        if not value or len(value) > MAX_VALUE:
            raise Refused(f"a secret has 1-{MAX_VALUE} characters (limit of the smallest keyring)", code="secret")

        def run(backend: Backend) -> None:
            backend.set_password(self.service, entry, value)
            if backend.get_password(self.service, entry) != value:
                raise _Forgetful

        return run

    def _deleting(self, entry: str) -> Callable[[Backend], None]:
        def run(backend: Backend) -> None:
            if backend.get_password(self.service, entry) is not None:
                backend.delete_password(self.service, entry)

        return run

    def _call(self, job: Callable[[Backend], T]) -> T:
        try:
            return self._aside.call(lambda: job(self._chosen()), self._limit_s)
        except Exception as error:
            fault = self._explain(error)
        raise fault

    async def _acall(self, job: Callable[[Backend], T]) -> T:
        try:
            return await self._aside.acall(lambda: job(self._chosen()), self._limit_s)
        except Exception as error:
            fault = self._explain(error)
        raise fault

    def _chosen(self) -> Backend:
        """On the thread aside: asking a backend whether it is usable may hang as well. A failure is asked again."""
        if self._backend is None:
            self._backend = choose_backend(self._named)
        return self._backend

    def _explain(self, error: Exception) -> Exception:
        """Ours, without the backend's text: it may quote anything."""
        if isinstance(error, CredentialUnavailable | Refused):
            return error
        names = {base.__name__ for each in (error, error.__cause__) for base in type(each).__mro__}
        if "TimeoutError" in names:
            detail, what = StopDetail.KEYRING_TIMEOUT, f"did not answer within {self._limit_s:g} s"
        elif names & {"KeyringLocked", "LockedException", "PromptDismissedException"}:
            detail, what = StopDetail.KEYRING_LOCKED, "is locked"
        elif isinstance(error, _Forgetful):
            detail, what = StopDetail.KEYRING_ABSENT, "does not keep what is written to it"
        else:
            detail, what = StopDetail.KEYRING_ABSENT, f"failed ({type(error).__name__})"
        return CredentialUnavailable(f"the keyring {what}: {way_out(detail)}", detail)


class _Forgetful(Exception):
    """What was written did not come back."""


def class_name(kind: type) -> str:
    """`module.Class`, as config.toml names it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def choose_backend(named: str | None = None) -> Backend:
    """The usable backend of highest priority on the allow-list, or the one that the operator *named*. May hang.

    Raises:
        CredentialUnavailable: none is usable (keyring_absent), with what was tried.
    """
    usable: list[tuple[float, Backend]] = []
    for name in [named] if named else ALLOWED:
        found = _load(name)
        if found is not None:
            usable.append(found)
    if usable:
        return max(usable, key=lambda each: each[0])[1]
    if named:
        what = (
            f"config.toml: keyring.backend: {named} cannot be used here: name a class of an installed keyring library, "
        )
        what += "or leave it out for the ones that are known"
    else:
        what = f"no usable keyring on this machine: {way_out(StopDetail.KEYRING_ABSENT)}"
    raise CredentialUnavailable(what, StopDetail.KEYRING_ABSENT)


def _load(name: str) -> tuple[float, Backend] | None:
    module_name, _, kind_name = name.rpartition(".")
    try:
        kind: Any = getattr(importlib.import_module(module_name), kind_name)
        priority = float(kind.priority)
        backend = kind()
    except Exception:
        return None
    # keyring sets attributes of backends from the environment; ours come from config.toml alone
    for key in os.environ:
        if key.startswith(_ENV_PREFIX):
            vars(backend).pop(key[len(_ENV_PREFIX) :].lower(), None)
    return priority, backend
