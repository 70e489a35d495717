"""What tests and the demo put in place of the real parts.

Job: name each part that can be replaced. Must not know: what is used where none is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pollcore.ports import AuditLog, Chance, Clock, Transport


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """None: the real one."""

    backend: Any = None
    """An in-memory keyring backend, used as it is."""
    clock: Clock | None = None
    chance: Chance | None = None
    transport: Transport | None = None
    slots: int | None = None
    audit: AuditLog | None = None
    """Another audit log, for measurements: no chain, no checkpoints, no anchor."""
    shipped: Callable[[str], bool] | None = None
    """Contract texts that count as shipped besides those that do (the demo's own)."""
    ready_later: bool = False
    """The opener shows rows first, and awaits `Core.ready` before it polls (keys cost a tenth of a second)."""
