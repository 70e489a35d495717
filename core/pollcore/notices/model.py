"""What is kept of notices: the rules in force, what was told already, what waits to be sent.

Job: shapes and limits. Must not know: what makes an item, when it goes out.
Source: spec E10 (one cause is one notice), G5 (anyone may be told), K1 (no secret is in any of this).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from pollcore.facts import MINUTE, SECOND, Instant

MAX_TOLD: Final = 5_000
"""Questions, deadlines and ends that are remembered as told, of each kind."""
MAX_ITEMS: Final = 200
"""Different things that wait to be told; what is beyond is counted."""
MAX_IDS: Final = 100
"""Operations that one item names to itself; a message names fewer."""


class NoticeKind(StrEnum):
    """What can be told."""

    NEW_CARD = "new_card"
    EXPIRING_CARD = "expiring_card"
    DEADLINE_NEAR = "deadline_near"
    FINISHED = "finished"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """`[notices]` of config.toml. Spans are ms; *quiet* minutes of the local day, from and to (may pass midnight)."""

    events: tuple[NoticeKind, ...] = ()
    """Empty: nothing is told."""
    to: tuple[str, ...] = ()
    """Names of addresses; empty: all that are stored."""
    quiet: tuple[int, int] | None = None
    time_zone: str = "UTC"
    group_ms: int = 30 * SECOND
    per_hour: int = 20
    deadline_lead_ms: int = 15 * MINUTE
    expiring_lead_ms: int = 60 * SECOND


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to tell. *key*: a cause (cards), a provider (deadlines), provider and status (ends)."""

    kind: NoticeKind
    key: str
    provider: str
    what: str
    """Reason or status, as programs read it."""
    at: Instant
    until: Instant | None = None
    """When the card expires, or the first deadline comes."""
    count: int = 1
    ids: tuple[str, ...] = ()


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One message that was composed and has not reached every address. *to*: address -> tries so far."""

    title: str
    body: str
    at: Instant
    next_at: Instant
    to: dict[str, int]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of sending to one address last. *why*: ours, never the service's words."""

    sent_at: Instant | None = None
    failed_at: Instant | None = None
    why: str | None = None
    gave_up: int = 0
    """Messages that were given up since the address was set."""


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What the sender of one store knows; durable, so that a restart tells nothing twice and nothing old."""

    first_at: Instant
    """Nothing that ended before is told."""
    change: int = 0
    """Ends among operations changed since are looked at after a restart."""
    cards: dict[str, str] = {}
    """Open questions that are told: id -> cause."""
    floor: Instant = Instant(0)
    """Questions asked before are told already (those that no longer fit above)."""
    causes: dict[str, Instant] = {}
    """When a cause that is still open was told last."""
    expiring: tuple[str, ...] = ()
    near: dict[str, Instant] = {}
    """Operation -> the deadline that was told."""
    ended: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    more: int = 0
    """Things that did not fit among *items*."""
    deliveries: tuple[Delivery, ...] = ()
    sent: tuple[Instant, ...] = ()
    """Messages of the last hour."""
    outcomes: dict[str, Outcome] = {}
