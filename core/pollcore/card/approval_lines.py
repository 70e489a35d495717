"""What a card says of the request that its answer lets out, or of all requests under a contract.

Job: purpose, method, host, path, credential and what it can reveal; what a contract says of itself. Must not know: the
question's other lines, its choices.
Source: spec G7, X7, K4.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pollcore.card.line import CardLine, lines_of
from pollcore.escalation import Circumstances, CredentialUse, FirstUse
from pollcore.escalation.approvals import FETCH, short
from pollcore.facts import Operation, mask_url
from pollcore.story import Harmless

UNDECLARED: Final = "nothing: the contract does not say that asking is read-only"


def use_lines(op: Operation, facts: Circumstances, harmless: Harmless) -> list[CardLine]:
    """G7: credential name, method, host, path, purpose, request number, what it can reveal."""
    use = facts.use
    if use is None:
        return []
    rows: list[tuple[str, str | None]] = [
        ("Purpose:", use.purpose),
        ("Request number:", _number(op, use)),
        ("Credential mode:", use.mode.value if use.mode is not None else "none: it goes without a credential"),
        ("Credential scope:", use.scope),
        ("Can reveal:", use.reveals or "not stated by the contract"),
        ("For the run:", use.owner),
        ("Request digest:", short(use.digest) if use.owner is None else None),
        ("Cannot be shown:", use.problem),
    ]
    if use.request is not None:
        parts = urlsplit(mask_url(use.request.url).removesuffix("?..."))
        masked = " (its query is masked)" if "?" in use.request.url else ""
        body = f"{len(use.request.body)} bytes" if use.request.body else None
        host = parts.netloc or use.request.url
        rows[:0] = [
            ("Method:", use.request.method),
            ("Host:", f"{parts.scheme}://{host}"),
            ("Path:", (parts.path or "/") + masked),
            ("Body:", body),
        ]
    return lines_of(rows, harmless)


def _number(op: Operation, use: CredentialUse) -> str:
    """Which request of the budget it would be; a fetch is none."""
    if use.for_purpose == FETCH:
        return f"none, it is no status request ({op.status_requests_used} of {op.max_status_requests} are used)"
    return f"{op.status_requests_used + 1} of {op.max_status_requests}"


def first_use_lines(said: FirstUse, harmless: Harmless) -> list[CardLine]:
    """X7: what the contract says of its own status requests, and what they look like."""
    return lines_of([("Status request:", said.asks_by), *contract_says(said)], harmless)


def contract_says(said: FirstUse) -> tuple[tuple[str, str], ...]:
    """What a contract says of its own status requests, the same for all operations under it."""
    return (
        ("Declared:", "read_only" if said.observation else UNDECLARED),
        ("Evidence:", said.evidence or "none"),
        ("Tried live:", said.tested_live or "not that its author knows"),
        ("Sources:", ", ".join(said.sources) or "none"),
    )
