"""Keyrings that fail in every way, as objects to hand to a vault."""

from __future__ import annotations

import threading

from keyring.errors import InitError, KeyringLocked, NoKeyringError, PasswordSetError

from pollcore.adapters.keyring_store import MemoryBackend


class Failing(MemoryBackend):
    """Raises *error* from every call while it is set."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error

    def get_password(self, service: str, username: str) -> str | None:
        if self.error:
            raise self.error
        return super().get_password(service, username)

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.error:
            raise self.error
        super().set_password(service, username, password)


class Hanging(MemoryBackend):
    """Every read waits until `go_on` is set; `asked`: one has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.asked = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        self.asked.set()
        self.go_on.wait(60)
        return super().get_password(service, username)


class Forgetful(MemoryBackend):
    """Takes everything, keeps nothing, as keyring's null backend does."""

    def set_password(self, service: str, username: str, password: str) -> None:
        return None


class Counting(MemoryBackend):
    """Counts its reads."""

    reads = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.reads += 1
        return super().get_password(service, username)


def locked_collection() -> InitError:
    """What keyring raises when SecretStorage finds the collection locked."""

    class LockedException(Exception):
        pass

    error = InitError("sk-canary-in-error")
    error.__cause__ = LockedException()
    return error


FAILURES: dict[str, list[Exception]] = {
    "keyring_locked": [KeyringLocked("sk-canary-in-error"), locked_collection()],
    "keyring_absent": [
        NoKeyringError("sk-canary-in-error"),
        InitError("sk-canary-in-error"),
        PasswordSetError("sk-canary-in-error"),
        OSError("sk-canary-in-error"),
    ],
}
