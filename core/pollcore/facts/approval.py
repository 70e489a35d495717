"""Leave to use a credential: for one exact request, or for a session of a run of the core.

Job: the two records. Must not know: who wants one, what is shown, SQL.
Source: spec G6, G7; invariants.md I14.
"""

from __future__ import annotations

import msgspec

from pollcore.facts.instant import BootMs, Instant


class CallGrant(msgspec.Struct, frozen=True, kw_only=True):
    """One operator's leave for exactly one request; used up in the transaction that counts or intends that request."""

    grant_id: str
    operation_id: str
    digest: str
    """Of the exact request that was shown (`escalation.call_digest`)."""
    number: int
    """The n-th status request of the operation; for an action the number of requests counted so far."""
    purpose: str
    """`status`, `fetch_result`, `cancel`, `force_cancel`, `resubmit`."""
    credential: str | None
    granted_at: Instant
    expires_at: Instant
    boot_id: str
    """The boot that *expires_boot* belongs to."""
    expires_boot: BootMs
    used_at: Instant | None = None
    used_for: str | None = None
    """`request 3`, or the id of the action that it was used for."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Leave to use one credential unasked: by one run of the core, until a time, for a number of calls (G6)."""

    session_id: str
    credential: str
    owner: str
    """The worker (a run of the core) that it was granted to."""
    binding: str
    """Digest of the credential as it was then: name, kind, origins, when its secret was set."""
    started_at: Instant
    until: Instant
    boot_id: str
    until_boot: BootMs
    calls: int
    used: int = 0
    granted_by: str
    grant_id: str

    @property
    def calls_left(self) -> int:
        """Requests that may still go out under it."""
        return self.calls - self.used
