"""One request as it will be sent, and the contract snapshot that rendered it.

Job: what a card can show and the transport can send, with an empty slot where the secret goes.
Must not know: secrets, sockets, how it was rendered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Slot(msgspec.Struct, frozen=True):
    """Where a credential goes, without its value.

    *kind*: bearer, basic, header, query, none; *names*: header or query names.
    """

    credential: str
    kind: str
    names: tuple[str, ...] = ()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it will be sent, but for the credential (G4: what is shown is what is sent)."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    slot: Slot | None = None
    """None: sent without a credential (some provider URLs must get none)."""
    origins: tuple[str, ...]
    """`scheme://host:port`, all explicit: the only places where this may go (K3)."""
    allow_http: bool = False
    total_ms: int = 30_000
    """Bound on the whole exchange; a long poll raises it."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """S8: a contract with instance settings as they were at submission."""

    digest: str
    name: str
    text: str
    """The TOML text."""
    instance: Mapping[str, Any] = {}
