"""One transaction of the loop: what goes in, what comes out, and who runs it.

Job: the two sides of `Store.turn`, and the heartbeat of a worker. Must not know: the order of the loop's steps.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.facts import BootMs, Instant, Moment, Operation
from pollcore.ports.brakes import Cooldown, Denial, OriginState, Pause
from pollcore.ports.claim import Claim, Claimed
from pollcore.ports.write import Write

RUN_FRESH_MS: Final = 30_000
"""A worker whose newest heartbeat is older counts as ended (it beats every 10 s)."""


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """O8: one heartbeat."""

    owner: str
    pid: int
    host: str
    kind: str
    """`run`, `console`, `demo`."""
    started_at: Instant
    beat_at: Instant
    beat_boot: BootMs
    boot_id: str

    def is_alive(self, now: Moment) -> bool:
        """Its newest heartbeat is fresh, on this boot: the run has not ended as far as is known."""
        return self.boot_id == now.boot_id and now.boot - self.beat_boot <= RUN_FRESH_MS


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction of the loop: results of the last group in, reservations of the next out, one look ahead."""

    now: Moment
    owner: str
    writes: tuple[Write, ...] = ()
    claims: tuple[Claim, ...] = ()
    cooldowns: tuple[Cooldown, ...] = ()
    origins: tuple[OriginState, ...] = ()
    denials: tuple[Denial, ...] = ()
    look: int = 0
    """How many due operations to load after the writes and claims (never leased ones)."""
    ahead: int = 0
    """R39: ms; with a look, also who becomes due so soon, for those that wait for company."""
    beat: Worker | None = None


class Coming(msgspec.Struct, frozen=True):
    """R39: an operation that is not due yet, as far as others that wait for company have to know it."""

    provider: str
    account: str
    credential: str | None
    contract_digest: str
    due_boot: BootMs


class TurnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a turn."""

    taken: tuple[bool, ...]
    """Per write: False = the fence did not hold; nothing of that write happened but a `late_result` event."""
    claimed: tuple[Claimed | None, ...]
    """Per claim: None = not now (changed, leased, capped); look again."""
    due: tuple[Operation, ...]
    coming: tuple[Coming, ...] = ()
    """Who becomes due within `Turn.ahead`, the next ones first; a bounded number of them."""
    next_due: BootMs | None
    """When the next operation that is not leased becomes due; None: nothing is waiting."""
    next_deadline: Instant | None = None
    """The earliest wall deadline of a live operation (a forward step of the wall clock makes it due)."""
    cooldowns: tuple[Cooldown, ...] = ()
    origins: tuple[OriginState, ...] = ()
    denials: tuple[Denial, ...] = ()
    pauses: tuple[Pause, ...] = ()
    """All that are in force now."""
    change: int = 0
    moved: tuple[Operation | None, ...] = ()
    """Per write: the lease still holds, but the record changed since it was loaded (an operator's hold, a new limit).
    Nothing was written; the same answer is decided anew on this record and written again."""
    answer_lost: tuple[tuple[str, int], ...] = ()
    """(operation, n): sent under a lease that is dead now, the answer never recorded (B4). The operation is among `due`
    until a write with `fence_change` and `stored` (fault `answer_lost`) settles it."""
