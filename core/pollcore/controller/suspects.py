"""Which operation makes the requests fail that it shares with others: found by halves, then asked alone for a while.

Job: remember who was in a request for several that failed, split them until one is left. Must not know: contracts, why
a request failed, stores.
Source: contract need R39: one id that a provider refuses only beside others must not cost these a request each round.
One worker's knowledge: a restart forgets it, and finds out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pollcore.facts import HOUR, BootMs, Moment

MAX_SUSPECTS: Final = 10_000
"""Operations that are suspected at once; beyond it the oldest suspicions are dropped."""
ALONE_MS: Final = HOUR
"""So long the one that was found goes alone; so long a suspicion lives that nothing bears out."""
MAX_TRIES: Final = 2
"""Requests that those that are left of their groups may fail beside each other, where nobody else tells more."""


class Suspect(msgspec.Struct, frozen=True):
    """One operation. *group*: those that it is suspected with; *found*: it is taken for the one; *tries*: how often it
    failed beside others that were alone left of their groups as well."""

    group: int
    until: BootMs
    found: bool = False
    tries: int = 0


class Suspects:
    """The suspicions of one worker, by operation id."""

    def __init__(self) -> None:
        self._known: dict[str, Suspect] = {}
        self._sizes: dict[int, int] = {}
        """Group -> its members."""
        self._next = 1

    def __len__(self) -> int:
        return len(self._known)

    def goes_alone(self, name: str, now: Moment) -> bool:
        """It was found, and its time is not over."""
        known = self._of(name, now)
        return known is not None and known.found

    def group(self, name: str, now: Moment) -> int:
        """Those of one group go together and with nobody else. 0: with all that are not suspected."""
        known = self._of(name, now)
        return known.group if known is not None and self._sizes[known.group] > 1 else 0

    def last_of(self, name: str, now: Moment) -> int:
        """It alone is left of the group that is returned, the older the lower: it goes with others that are under no
        suspicion, so that the next answer tells; 0: it is no suspect, or not alone."""
        known = self._of(name, now)
        return known.group if known is not None and self._sizes[known.group] == 1 else 0

    def has_groups(self, now: Moment) -> bool:
        """Some are suspected together: the next answers may clear them, and with these others are told by."""
        known = (self._known[name] for name in reversed(self._known))
        return any(self._sizes[one.group] > 1 for one in known if not one.found and one.until > now.boot)

    def size(self, group: int) -> int:
        """Operations of *group*; 0: nobody is in it."""
        return self._sizes.get(group, 0)

    def fine(self, names: Sequence[str]) -> None:
        """A request that they shared brought a list."""
        for name in names:
            self._drop(name)

    def failed(self, names: Sequence[str], now: Moment) -> None:
        """A request that *names* shared failed for all of them.

        Those among them that are suspected already are split in halves; one alone is found, and one that failed beside
        several that were left alone. Where nobody is suspected, all are, together: one failure may be no operation's.
        """
        suspected = [name for name in names if self._of(name, now) is not None]
        if not suspected:
            self._suspect(names, now)
        elif len(suspected) == 1:
            self._suspect(suspected, now, found=True)
        elif all(self.last_of(name, now) for name in suspected):
            for name in suspected:
                tries = self._known[name].tries + 1
                self._suspect([name], now, found=tries >= MAX_TRIES, tries=tries)
        else:
            half = len(suspected) // 2
            self._suspect(suspected[:half], now)
            self._suspect(suspected[half:], now)

    def _of(self, name: str, now: Moment) -> Suspect | None:
        known = self._known.get(name)
        if known is None or known.until > now.boot:
            return known
        if not known.found or known.until + ALONE_MS <= now.boot:
            self._drop(name)
            return None
        # its time is over: it is tried with others, and one more failure finds it again
        return msgspec.structs.replace(known, found=False)

    def _suspect(self, names: Sequence[str], now: Moment, *, found: bool = False, tries: int = 0) -> None:
        group, self._next = self._next, self._next + 1
        for name in names[:MAX_SUSPECTS]:
            self._drop(name)
            if len(self._known) >= MAX_SUSPECTS:
                self._drop(next(iter(self._known)))
            self._known[name] = Suspect(group, BootMs(now.boot + ALONE_MS), found, tries)
            self._sizes[group] = self._sizes.get(group, 0) + 1

    def _drop(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is not None:
            self._sizes[known.group] -= 1
            if not self._sizes[known.group]:
                del self._sizes[known.group]
