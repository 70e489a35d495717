"""A wish to send, and the charge that was taken for it.

Job: what one request is charged to and which limits it is counted against. Must not know: what is sent, what the answer
means.
"""

from __future__ import annotations

import msgspec

from pollcore.facts import AuditEvent, CallGrant, Moment, Operation, RateScope, Session


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A wish to send: lease, reload and all checks again, counter, intent and audit event in one conditional
    write (O7).

    Taken only if change is as loaded, status waiting, no live lease of another, used < max, both deadlines ahead, caps
    free.
    """

    operation: Operation
    """As loaded; the claim holds only if the row is unchanged since."""
    step: str
    origin: str
    method: str
    event: AuditEvent
    lease_ms: int = 30_000
    concurrency: int | None = None
    """Per provider caps, counted in the claim transaction, per store (T8)."""
    per_minute: int | None = None
    scopes: tuple[RateScope, ...] = ()
    """R38: further limits by account, credential, provider or route, counted in the same place."""
    secret_digest: str | None = None
    """H3: keyed digest of the secret that will be sent; a refusal of it that another process has written counts."""
    extra_charges: int = 0
    """Further requests that this poll will send in a chain; each is charged now."""
    group: int | None = None
    """R39: claims of one turn with the same number go out in one request: it is counted once against every cap, each
    operation is charged. *extra_charges* never goes with it."""
    approval: CallGrant | None = None
    """I14: the leave for exactly this request; taken only if it is unused and not expired, used up with the charge."""
    session: Session | None = None
    """G6: taken only if it lives and has calls left; counted with the charge."""


class Claimed(msgspec.Struct, frozen=True):
    """A claim that was taken: the operation after it (epoch, counter raised), and the numbers of its intents."""

    operation: Operation
    intents: tuple[int, ...]
    charged_at: Moment
