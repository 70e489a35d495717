"""One request out, one bounded answer in.

Job: the one call that touches a provider. Must not know: retries, redirects, when to ask again, where a secret is kept.
"""

from __future__ import annotations

from typing import Protocol

from pollcore.facts import Answer, Fault, Request, Secret


class Transport(Protocol):
    """Sends exactly one request and reads one bounded answer; follows nothing, retries nothing."""

    async def send(self, request: Request, secret: Secret | None) -> Answer | Fault:
        """Never raises but for cancellation; every failure is a Fault. Ends within total_ms + 1 s (H7)."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...
