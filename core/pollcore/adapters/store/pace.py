"""Rate limits by scope: how many status requests an account, a credential, a provider or a route had in a span.

Job: count and compare inside the claim's transaction. Must not know: contracts, when a claim is due.
One document a counted value: sends by part of the span. The oldest part counts whole until it lies outside, so a limit
is never passed; up to a tenth of the span later than exact it may let go again. Times are boot times: a step of the
wall clock frees nothing, a new boot starts anew. Source: spec T8; contract need R38.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore.adapters.store.transaction import Transaction
from pollcore.facts import RateScope
from pollcore.ports import Claim

KIND: Final = "pace"
PARTS: Final = 10
"""Into how many parts a span is counted."""


class Counted(msgspec.Struct):
    """Sends of one scope's value in boot *boot*: part of the boot time -> how many."""

    boot: int
    parts: dict[int, int] = {}


class Pace:
    """The counters of one turn."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._counted: dict[str, Counted] = {}
        self._changed: set[str] = set()

    def has_room(self, claim: Claim, charges: int) -> bool:
        """Whether *charges* more requests stay within every limit of *claim*."""
        return all(self._used(name, scope) + charges <= scope.requests for name, scope in _named(claim))

    def count(self, claim: Claim, charges: int) -> None:
        """Count the requests of a claim that is taken."""
        for name, scope in _named(claim):
            counted, part = self._of(name), self._tx.now.boot // _width(scope)
            counted.parts[part] = counted.parts.get(part, 0) + charges
            self._changed.add(name)

    def flush(self) -> None:
        """Write what was counted."""
        rows = [(KIND, name, msgspec.json.encode(self._counted[name])) for name in sorted(self._changed)]
        if rows:
            self._tx.conn.executemany("INSERT OR REPLACE INTO document(kind, name, value) VALUES(?,?,?)", rows)

    def _used(self, name: str, scope: RateScope) -> int:
        counted = self._of(name)
        oldest = self._tx.now.boot // _width(scope) - PARTS
        counted.parts = {part: sent for part, sent in counted.parts.items() if part >= oldest}
        return sum(counted.parts.values())

    def _of(self, name: str) -> Counted:
        found = self._counted.get(name)
        if found is None:
            query = "SELECT value FROM document WHERE kind=? AND name=?"
            row = self._tx.conn.execute(query, (KIND, name)).fetchone()
            found = msgspec.json.decode(row[0], type=Counted) if row else Counted(self._tx.boot)
            if found.boot != self._tx.boot:
                found = Counted(self._tx.boot)
            self._counted[name] = found
        return found


def _width(scope: RateScope) -> int:
    return max(1, -(-scope.per_ms // PARTS))


def _named(claim: Claim) -> list[tuple[str, RateScope]]:
    """The counters that *claim* falls under, by a name that says whose they are."""
    given, found = claim.operation.submitted, []
    whose: dict[str, Any] = {
        "provider": [],
        "account": [given.account],
        "credential": [claim.operation.credential],
        "route": [claim.step],
    }
    for scope in claim.scopes:
        if scope.step is None or scope.step == claim.step:
            name = [given.provider, scope.scope, scope.per_ms, *whose[scope.scope]]
            found.append((msgspec.json.encode(name).decode(), scope))
    return found
