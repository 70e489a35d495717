"""Our own caps on requests, as the store counts them.

Job: requests of the last minute, and those of the scopes of a contract. Must not know: why a request is made.
All simulated operations share one account and one credential, so each scope has one counter.
Source: spec T8; the rules of `adapters/store/claims.py` (per minute) and `pace.py` (scopes, in tenths of their span).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from pollcore.facts import MINUTE, RateScope

PARTS: Final = 10


class Caps:
    """Asked in the order of time. *weight*: how many requests each simulated one stands for."""

    def __init__(self, per_minute: int | None, scopes: Iterable[RateScope], step: str, weight: float) -> None:
        self._per_minute = None if per_minute is None else per_minute / weight
        self._sent: deque[int] = deque()
        self._scopes = [
            (one.requests / weight, max(1, -(-one.per_ms // PARTS)), {})
            for one in scopes
            if one.step is None or one.step == step
        ]  # type: list[tuple[float, int, dict[int, int]]]
        self.any = self._per_minute is not None or bool(self._scopes)

    def take(self, at: int) -> bool:
        """Count a request on the boot clock at *at*; False: no room, nothing was counted."""
        if self._per_minute is not None:
            while self._sent and self._sent[0] <= at - MINUTE:
                self._sent.popleft()
            if len(self._sent) + 1 > self._per_minute:
                return False
        for most, width, parts in self._scopes:
            for old in [part for part in parts if part < at // width - PARTS]:
                del parts[old]
            if sum(parts.values()) + 1 > most:
                return False
        if self._per_minute is not None:
            self._sent.append(at)
        for _, width, parts in self._scopes:
            parts[at // width] = parts.get(at // width, 0) + 1
        return True
