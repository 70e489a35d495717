"""What an approval is about, for one line of a queue: taken from the very card that would be drawn.

Job: open questions -> method, address, request number, as the card words them. Must not know: widgets, choices, keys.
Source: spec G7, K4 (the card's lines are harmless and masked; nothing else is read).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from pollcore.facts import PollconsoleError

if TYPE_CHECKING:
    from pollcore.assembly import Core

_STATUS_REQUEST = "Status request:"


class AskedFor(msgspec.Struct, frozen=True, kw_only=True):
    """One approval in a line. Empty: the card does not say it."""

    method: str = ""
    address: str = ""
    """Host and path, the query masked."""
    number: str = ""
    """`3 of 12`."""
    credential: str = ""
    mode: str = ""
    size: str = ""
    """Of a session: what would be granted, `approve session, 480 min / 200 calls`."""
    problem: str = ""
    """Why it cannot be drawn."""

    @property
    def request(self) -> str:
        """`GET https://api.acme.example/v1/jobs/7`."""
        return f"{self.method} {self.address}".strip()


async def asked_for(core: Core, questions: Iterable[tuple[str, str]]) -> dict[str, AskedFor]:
    """{question: what it is about} for pairs (question, operation); those that were decided meanwhile are left out."""
    found = {}
    for escalation_id, operation_id in questions:
        try:
            shown = await core.actions.card(operation_id)
        except PollconsoleError as error:
            found[escalation_id] = AskedFor(problem=str(error))
            continue
        if shown.question.escalation_id == escalation_id:
            found[escalation_id] = of_card(shown.card)
    return found


def of_card(card: Any) -> AskedFor:
    """From the lines of a card."""
    says = {line.label: line.text for line in card.lines}
    method, _, address = says.get(_STATUS_REQUEST, "").partition(" ")
    size = next((choice.label for choice in card.choices if choice.kind.value == "approve_session"), "")
    return AskedFor(
        method=says.get("Method:", method),
        address=says.get("Host:", "") + says.get("Path:", "") or address,
        number="" if "none" in says.get("Request number:", "none") else says["Request number:"],
        credential=says.get("Credential:", ""),
        mode=says.get("Credential mode:", ""),
        size=size,
    )
