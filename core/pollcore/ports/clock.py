"""Time and chance: what no function may take for itself.

Job: the clocks' reading, a wait that ends early, and a draw. Must not know: what is waited for, what is drawn.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from pollcore.facts import Moment


class Clock(Protocol):
    """All clocks at once (T9)."""

    def now(self) -> Moment:
        """One reading; never raises."""
        ...

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        """Until *event* is set or *ms* have passed, at most 15 s in one piece (T9); may return early."""
        ...


class Chance(Protocol):
    """The only source of randomness."""

    def draw(self) -> float:
        """From [0.0, 1.0)."""
        ...

    def token(self, size: int = 8) -> str:
        """*size* random bytes as lower-case hex, for ids."""
        ...
