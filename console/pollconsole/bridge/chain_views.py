"""How the audit stands now, for a screen and for the status line.

Job: what this process knows of keys and anchor, the chain's figures beside it, one plain record. Must not know:
widgets, words for people beyond what the core says itself. Nothing is written, and no anchor is raised.
Source: spec A4, V3.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from pollcore.facts import Instant, PollconsoleError

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.ports import AuditLink


class ChainState(msgspec.Struct, frozen=True, kw_only=True):
    """The audit of one home. *begun* False: there is no chain yet, all else is empty."""

    begun: bool = False
    alarm: str | None = None
    """The record is known to be damaged: nothing is sent, nothing granted."""
    why: str | None = None
    """Why it is unanchored: no new authority is given."""
    since: Instant | None = None
    """Unanchored since then."""
    key: str | None = None
    """The verification key to keep elsewhere."""
    log_id: str = ""
    keys_in: str = ""
    """`keyring`, or `key file`."""
    anchor_in: str = ""
    epoch: int = 0
    epoch_since: Instant | None = None
    epoch_from: int = 0
    """The link that began the epoch in force."""
    links: int = 0
    head: str = ""
    """Hash of the last link, hex; empty: it is torn."""
    events: int = 0
    events_before: int | None = None
    """Events that were recorded before the chain began, which it does not hold; None: its first link is archived, or
    says nothing."""
    checkpoints: int = 0
    signed_to: int = 0
    signed_at: Instant | None = None
    note: str = ""
    """The last checkpoint, as signed: what may be kept elsewhere and given to `audit verify --expect-head`."""
    anchored_to: int = 0
    anchored_at: Instant | None = None
    """Time of the last event that the anchor covers."""

    @property
    def anchored(self) -> bool:
        """Whether new authority can be given as far as the audit goes."""
        return self.begun and self.alarm is None and self.why is None


async def chain_state(core: Core) -> ChainState:
    """Read it, the keyring included (within its time limit). Raises StoreUnusable."""
    from pollcore.adapters.audit_overview import overview

    state, room = core.audit.state, core.audit.room
    why, since, anchored_to = state.why, state.unanchored_since, state.anchored_to
    try:
        found = await room.anchor()
    except PollconsoleError as error:
        why, since = why or str(error), since if why else core.clock.now().wall
    else:
        anchored_to = found.seq if found is not None else 0
    seen = await asyncio.to_thread(overview, core.home.database, anchored_to)
    first = await core.store.audit_links(limit=1)
    log = seen.log
    return ChainState(
        begun=log is not None or seen.links > 0,
        alarm=state.why if state.alarm else None,
        why=None if state.alarm else why,
        since=since,
        key=state.key,
        log_id=log.log_id.hex() if log is not None else "",
        keys_in=state.keys_in,
        anchor_in=room.anchor_in,
        epoch=log.epoch if log is not None else 0,
        epoch_since=Instant(log.since) if log is not None else None,
        epoch_from=log.since_seq if log is not None else 0,
        links=seen.links,
        head=seen.head.hex(),
        events=seen.events,
        events_before=_before(first[0]) if first else None,
        checkpoints=seen.checkpoints,
        signed_to=seen.signed_to,
        signed_at=seen.signed_at,
        note=seen.note or "",
        anchored_to=anchored_to,
        anchored_at=seen.anchored_at,
    )


def _before(first: AuditLink) -> int | None:
    """What the first link of the log says; None: it is another link, or damaged (the verification tells that)."""
    from pollcore.chain import control, layout

    if first.seq != 1:
        return None
    try:
        return control.decode(layout.content(first.blob), control.Begin).events_before
    except ValueError:
        return None


def audit_trouble(core: Core) -> tuple[str, bool] | None:
    """What the status line says of the audit: why, and whether it is an alarm; None: anchored. Reads nothing."""
    state = core.audit.state
    return None if state.why is None else (state.why, state.alarm)


async def compare_anchor(core: Core) -> None:
    """Compare the anchor with the chain and raise it, as a polling core does: where another process polls, what this
    one knows of the audit would stay as it was at its start. Raises nothing of ours: `audit_trouble` says it."""
    with contextlib.suppress(PollconsoleError):
        await core.audit.anchor(core.store, core.clock.now())
