"""Grants as the sealed record has them, beside the grants that the store keeps.

Job: what is heard of sealed links -> which kept grants are forged, edited or gone. Must not know: how links are opened,
SQL. A sealed grant alone is none that took effect: a `granted` event of the same operation and time must follow it.
Old and new are told by which links are there, never by time: clocks are set back.
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
_MAY_BEGIN: Final = b'"event":"submitted"'


class SealedGrants:
    """Fed link by link, in order."""

    def __init__(self, kept: Mapping[str, str]) -> None:
        """*kept*: the stored grants by their id, as JSON, read before the first link: every one of them is sealed."""
        self._kept = {name: _read(text) for name, text in kept.items()}
        self._of = {grant.operation_id for grant in self._kept.values() if grant is not None}
        self._begun: set[str] = set()
        """Operations with kept grants whose first event is in these links: every link of theirs is."""
        self._grants: dict[str, Grant] = {}
        self._granted: set[tuple[str | None, int]] = set()
        self._all_read = True
        """Every link could be opened: a grant that is in none of them, and must be, was never given."""

    def hear(self, link: Opened) -> None:
        """One sealed link."""
        if link.plain is None:
            self._all_read = False
        elif link.kind is Kind.AUTHORITY:
            grant = _GRANT.decode(link.plain)
            self._grants[grant.grant_id] = grant
        elif _MAY_GRANT in link.plain or _MAY_BEGIN in link.plain:
            event = _EVENT.decode(link.plain)
            if event.event is EventName.GRANTED:
                self._granted.add((event.operation_id, event.at))
            elif event.event is EventName.SUBMITTED and event.operation_id in self._of:
                self._begun.add(event.operation_id)

    def differing(self, kept: Mapping[str, str], *, whole: bool) -> Iterator[str]:
        """A sentence for each difference.

        Args:
            kept: The stored grants, read again after the last link: no grant that is in the links may miss.
            whole: The links are the log from its beginning, and no event is older than it. Else a grant of an
                operation that began before these links is not judged: its sealed copy may have left for an archive.
        """
        for name, there in self._kept.items():
            sealed = self._grants.get(name)
            if sealed is not None:
                if there != sealed:
                    yield f"grant {name}: the kept row says something else than its sealed copy"
            elif there is None or (self._all_read and (whole or there.operation_id in self._begun)):
                yield f"grant {name}: no sealed record of it: it was never given"
        for name, grant in self._grants.items():
            if name not in kept and (grant.operation_id, grant.granted_at) in self._granted:
                yield f"grant {name} of {grant.operation_id}: it was given, and its row is gone"


def _read(text: str) -> Grant | None:
    try:
        return _GRANT.decode(text)
    except msgspec.MsgspecError:
        return None
