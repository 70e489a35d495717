"""Shorthands for tests of the transport: a request, and a send that must end within its bound."""

from __future__ import annotations

import asyncio
from typing import Any

from pollcore.adapters.address import origin_of
from pollcore.adapters.transport import HttpTransport
from pollcore.facts import Answer, Fault, Request, Secret, Slot

TOTAL_MS = 20_000
"""For what is expected to be answered: no machine is so slow that this ends it."""
SHORT_MS = 1_000
"""For what is expected to end by the total time alone."""
SLACK_S = 20.0
"""The port promises total + 1 s; a loaded machine gets more before a test calls it broken."""


def ask(url: str, *origins: str, **more: Any) -> Request:
    """A GET of *url*; pinned to its own origin unless *origins* are given."""
    try:
        own = origin_of(url)
    except ValueError:
        own = ""
    return Request(**{"method": "GET", "url": url, "origins": origins or (own,), "total_ms": TOTAL_MS, **more})


async def send(transport: HttpTransport, request: Request, secret: Secret | None = None) -> Answer | Fault:
    """Send, and fail if it takes longer than its bound."""
    return await asyncio.wait_for(transport.send(request, secret), request.total_ms / 1000 + SLACK_S)


BEARER = Slot("acme", "bearer")
