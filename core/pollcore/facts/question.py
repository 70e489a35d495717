"""The operator's side: questions, choices, grants.

Job: the objects that cards are drawn from and that are executed (G4). Must not know: screens, keys, SQL.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.facts.instant import Instant
from pollcore.facts.names import ChoiceKind, StopReason


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One limit before and after a choice; None before or after: none."""

    what: str
    """`deadline`, `status_requests`, `transport_failures`, `rate_limited`, `useful_until`, `last_possible_check`,
    `contract`, `credential`, `observation` (what a contract's status requests are, X7), `session_minutes` and
    `session_calls` (of the session that would be granted, G6; a question is asked only where none is left)."""
    before: int | str | None
    after: int | str | None


LAST_CHECK: Final = "last_possible_check"
EFFECT_TIMES: Final = frozenset({"deadline", "useful_until", LAST_CHECK})
"""Effects whose values are instants."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One thing an operator can choose: drawn from, and executed from, this very object."""

    key: str
    """The digit, `1`-`9`."""
    kind: ChoiceKind
    label: str
    decides: bool = True
    """False for inspect alone."""
    grants: bool = False
    """New authority: only the console's keypress gives it (G2). False: lowers authority or changes nothing."""
    minutes: int = 0
    checks: int = 0
    transport_failures: int = 0
    rate_limited: int = 0
    credential: str | None = None
    contract_digest: str | None = None
    step: str | None = None
    """`force`: of a cancel, the documented stronger one (R35) instead of the ordinary; None everywhere else."""
    call: str | None = None
    """Digest of the exact request, or of the session, that this choice approves with its grant (G4, G7); None: none."""
    effects: tuple[Effect, ...] = ()
    leads_to: str = ""
    """One plain sentence: what happens then."""
    warnings: tuple[str, ...] = ()
    """Passes useful_until, provider expiry or retention; irreversible; best effort ..."""
    unavailable: str | None = None
    """Why it cannot be chosen; it stays visible with the reason."""


class Escalation(msgspec.Struct, frozen=True, kw_only=True):
    """One durable question about one operation (E7). Choices are computed from the record when shown, never stored."""

    escalation_id: str
    operation_id: str
    reason: StopReason
    detail: str | None
    cause: str
    asked_at: Instant
    version: int
    """The operation's version that it was asked under."""
    asked_by: str | None = None
    because: str | None = None
    minutes: int = 0
    checks: int = 0
    """The size asked for (extension_requested)."""
    decided_at: Instant | None = None
    decision: str | None = None
    """ChoiceKind value, or `superseded`."""
    operator: str | None = None
    decision_text: str | None = None
    expires_at: Instant | None = None
    """G7: when the question expires while a console stays open; None: it does not, or no console is open now."""
    seen_at: Instant | None = None
    """When its card was first painted on a console."""
    left_ms: int | None = None
    """What is left of its time while no console is open; None: all of it."""


class Operator(msgspec.Struct, frozen=True):
    """Who pressed the keys: OS user, host, terminal; stated as unverified."""

    user: str
    host: str
    terminal: str

    def __str__(self) -> str:
        return f"{self.user}@{self.host} ({self.terminal})"


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of new authority: exact limits, single use, bound to what was shown (G4)."""

    grant_id: str
    operation_id: str
    escalation_id: str | None
    version: int
    """The operation's version that was shown; another one at use is refused."""
    choice: Choice
    card_digest: str
    evidence: dict[str, str | int | float]
    """What the key guard measured."""
    operator: Operator
    granted_at: Instant
    because: str | None = None
