"""Small things of a world: a seal, a keyring, a request under way, a worker of the moment.

Job: plain values. Must not know: who moves them.
"""

from __future__ import annotations

import asyncio
import collections
from typing import Any, Final

import msgspec

from pollcore.controller import Controller
from pollcore.facts import CredentialMode, Instant
from pollcore.ports import CredentialInfo
from tests.sim.loop import Process
from tests.sim.provider import Reply

WALL: Final = 1_772_445_600_000
BOOT: Final = 5_000_000
"""Where both clocks stand at the beginning, in ms."""


class Seal:
    """Seals by a prefix."""

    def seal(self, purpose: str, plain: bytes) -> bytes:
        return purpose.encode() + b"\0" + plain

    def open(self, purpose: str, sealed: bytes) -> bytes:
        head, _, plain = sealed.partition(b"\0")
        assert head == purpose.encode()
        return plain


class Keyring:
    """Secrets of all processes, as the machine's keyring holds them."""

    def __init__(self) -> None:
        self.infos: dict[str, CredentialInfo] = {}
        self.secrets: dict[str, str] = {}
        self.locked_until = -1
        self._versions: collections.Counter[str] = collections.Counter()

    def set(self, name: str, origins: tuple[str, ...]) -> str:
        self._versions[name] += 1
        self.secrets[name] = f"secret of {name}, version {self._versions[name]}"
        made = Instant(WALL + self._versions[name])
        mode = self.infos[name].mode if name in self.infos else CredentialMode.STANDING
        self.infos[name] = CredentialInfo(name=name, kind="bearer", origins=origins, mode=mode, created_at=made)
        return self.secrets[name]


class Flight(msgspec.Struct):
    """One request between a process and the provider."""

    process: Process
    url: str
    secret: str | None
    reply: Reply
    operation: str | None
    """None: no status request (cancel, submission)."""
    n: int
    epoch: int
    stops: int
    arrived: bool = False
    over: bool = False
    """Its process waits for it no longer."""
    number: int = 0
    with_it: list[Flight] = []
    """R39: of a request for several operations one flight each; this is the first of them."""
    others: int = 0

    def each(self) -> list[Flight]:
        """The flights of all operations that the request asks for."""
        return [self, *self.with_it]

    def end(self) -> None:
        """Its process waits for it no longer."""
        for one in self.each():
            one.over = True


class Running(msgspec.Struct):
    """One worker of the moment."""

    process: Process
    controller: Controller
    stop: asyncio.Event
    task: asyncio.Task[Any]
