"""What holds requests back beyond one operation: cooldowns, silent origins, refused secrets, pauses.

Job: the facts by which every worker on the store holds back. Must not know: when one begins or ends, who asks.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.facts import BootMs, Instant


class Cooldown(msgspec.Struct, frozen=True, kw_only=True):
    """T8: nothing goes to this provider with this account and credential before *until*."""

    provider: str
    account: str
    credential: str | None
    until: Instant
    until_boot: BootMs


class OriginState(msgspec.Struct, frozen=True, kw_only=True):
    """T11: an origin of one account that stopped answering. *down* after several faults across operations."""

    origin: str
    account: str
    faults_in_a_row: int
    down_since: Instant | None
    probe_operation: str | None = None
    probe_until_boot: BootMs | None = None
    """Only the probe may send before this; a dead prober is replaced after it."""


UNPROVED: Final = "unproved:"
"""Before the digest of a refused token while no other token of its credential was accepted."""


class Denial(msgspec.Struct, frozen=True):
    """H3: after a 401 nothing else sends this secret to this origin until the stored secret changes.

    A bought token is another one soon, without anybody's doing. So its denial holds back all that its credential buys,
    but for one check that an operator granted, or a credential entered anew; until one of these got an answer.
    """

    credential: str
    origin: str
    digest: str
    """Of the refused secret or token, after UNPROVED where a new token has to be proved first."""
    at: Instant

    @property
    def unproved(self) -> bool:
        """It was a bought token, and no other one was accepted since."""
        return self.digest.startswith(UNPROVED)

    @property
    def secret_digest(self) -> str:
        """The keyed digest of what was refused, alone."""
        return self.digest.removeprefix(UNPROVED)


class Pause(msgspec.Struct, frozen=True):
    """`pause --provider P [--account A] --until T`: lowers authority, sends nothing before *until*."""

    provider: str
    account: str | None
    until: Instant
