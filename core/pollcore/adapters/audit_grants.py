"""Grants as the sealed record has them, beside the grants that the store keeps.

Job: what is heard of sealed links -> which kept grants are forged, edited or gone. Must not know: how links are opened,
SQL. A sealed grant alone is none that took effect: a `granted` event of the same operation and time must follow it.
Source: spec A4, G4, A5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from pollcore.adapters.audit_read import Opened
from pollcore.chain.layout import Kind
from pollcore.facts import AuditEvent, EventName, Grant

_GRANT: Final = msgspec.json.Decoder(Grant)
_EVENT: Final = msgspec.json.Decoder(AuditEvent)
_MAY_GRANT: Final = b'"event":"granted"'


class SealedGrants:
    """Fed link by link, in order."""

    def __init__(self) -> None:
        self._grants: dict[str, Grant] = {}
        self._granted: set[tuple[str | None, int]] = set()
        self._all_read = True
        """Every link could be opened: a grant that is in none of them, and not older than they are, was never given."""
        self._since: int | None = None
        """Time of the first sealed event: what is older was archived, or is from before the log."""

    def hear(self, link: Opened) -> None:
        """One sealed link."""
        if link.plain is None:
            self._all_read = False
        elif link.kind is Kind.AUTHORITY:
            grant = _GRANT.decode(link.plain)
            self._grants[grant.grant_id] = grant
        elif self._since is None or _MAY_GRANT in link.plain:
            event = _EVENT.decode(link.plain)
            self._since = event.at if self._since is None else self._since
            if event.event is EventName.GRANTED:
                self._granted.add((event.operation_id, event.at))

    def differing(self, kept: Mapping[str, str]) -> Iterator[str]:
        """A sentence for each difference. *kept*: the stored grants by their id, as JSON."""
        for name, text in kept.items():
            sealed, there = self._grants.get(name), _read(text)
            if sealed is not None:
                if there != sealed:
                    yield f"grant {name}: the kept row says something else than its sealed copy"
            elif there is None or (self._all_read and self._since is not None and there.granted_at >= self._since):
                yield f"grant {name}: no sealed record of it: it was never given"
        for name, grant in self._grants.items():
            if name not in kept and (grant.operation_id, grant.granted_at) in self._granted:
                yield f"grant {name} of {grant.operation_id}: it was given, and its row is gone"


def _read(text: str) -> Grant | None:
    try:
        return _GRANT.decode(text)
    except msgspec.MsgspecError:
        return None
