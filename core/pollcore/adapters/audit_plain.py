"""The audit log before it is encrypted and chained (port `AuditLog`): no links.

Job: fill the port so that events are stored as rows alone; the sealed chain takes this place. Must not know: storage.
"""

from __future__ import annotations

from collections.abc import Sequence

from pollcore.facts import AuditEvent
from pollcore.ports import AuditLink, AuditTip


class PlainAudit:
    """Keeps no chain."""

    def links(self, tip: AuditTip | None, events: Sequence[AuditEvent]) -> Sequence[AuditLink]:
        """No links, whatever *events* are."""
        del tip, events
        return ()
