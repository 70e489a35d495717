"""What the invariants remember: an account of their own that the code under test cannot touch.

Job: rows as they were one commit ago, limits, counters, leases, what the provider asked for and saw. Must not know: how
the code under test works, what was struck.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollcore.actions import Shown
from pollcore.card import digest
from pollcore.controller.exchange import MAX_PAUSE_MS
from pollcore.decide import SPENDS_FAILURE_BUDGET
from pollcore.escalation.table import permitted
from pollcore.facts import Status
from pollcore.ports import Claimed

if TYPE_CHECKING:
    from tests.sim.things import Flight
    from tests.sim.world import World

TTL_MS: Final = 30_000
SLACK_MS: Final = 2
FAILS: Final = frozenset(kind.value for kind in SPENDS_FAILURE_BUDGET)
GOES_ON: Final = frozenset({"extension_requested", "operator_request"})
ENDS: Final = frozenset(s.value for s in Status if s.is_end)

COLUMNS: Final = [
    "op",
    "id",
    "status",
    "version",
    "change",
    "epoch",
    "lease_owner",
    "lease_until",
    "lease_ms",
    "renewed",
    "contract",
    "credential",
    "boot",
    "deadline_at",
    "deadline_boot",
    "useful_until",
    "max_status_requests",
    "status_requests_used",
    "max_transport_failures",
    "transport_failures_used",
    "max_rate_limited",
    "rate_limited_used",
    "completed_polls",
    "next_poll_at",
    "guidance_until",
    "check_once",
    "extensions_used",
    "holds_used",
    "due_boot",
    "stop_reason",
    "stop_detail",
    "carried",
    "provider",
    "account",
    "hold_until",
    "cancel_granted",
]
SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM operation ORDER BY op"
Row: Any = msgspec.defstruct("Row", [(name, Any) for name in COLUMNS], frozen=True)


class Account(msgspec.Struct):
    """What is known of one operation beside its row."""

    id: str
    deadline_boot: int
    """Kept by us: what was left at submission on the boot clock, raised by grants alone."""
    boot: int
    failures: int
    limited: int
    polls: int
    obligation: int = 0
    """No request before this boot time: Retry-After of the newest recorded answer."""
    floor: int = 0
    """No request before this boot time: min_delay behind the newest recorded answer."""
    steps: int = 0
    """Number of wall steps when the obligation arose."""
    alone: bool = False
    """R39: the newest answer was for several jobs and about none: it is asked alone."""


class Ledger:
    """What is known, and what the world tells."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows: dict[int, Any] = {}
        self._accounts: dict[int, Account] = {}
        self._leases: dict[int, tuple[tuple[Any, ...], int]] = {}
        """Per operation: (owner, epoch, renewed) and the boot time at which it was first so."""
        self._intents = 0
        self._waiting: dict[int, tuple[int, int, int]] = {}
        """Intent without an observation -> (operation, n, epoch)."""
        self._grants = 0
        self._events = 0
        self._seen: dict[tuple[str, int], int] = {}
        self._flights: dict[tuple[str, int], Flight] = {}
        self._answers: dict[tuple[str, int], tuple[int, Flight]] = {}
        """(operation, n) -> boot time at which its answer came, and the flight."""
        self._cooldowns: dict[tuple[str, str, str | None], int] = {}
        self._denied: dict[tuple[str, str], tuple[str, int]] = {}
        """(secret, origin) -> number of the commit that recorded its 401."""
        self._shown: dict[str, tuple[str, int]] = {}
        """Digest of a painted card -> (question, version)."""
        self._granted: set[str] = set()
        self._charged: dict[tuple[str, int], int] = {}
        """(operation, n) -> number of the commit that charged it."""
        self._commits = 0
        self._late: set[tuple[str, int]] = set()
        self._down: dict[tuple[str, str], int] = {}
        self.checked = 0

    def _no(self, invariant: str, text: str) -> None:
        self._world.broken(invariant, text)

    def _owner(self, number: int) -> str:
        return str(self._world.sql.execute("SELECT text FROM name WHERE no=?", (number,)).fetchone()[0])

    # --- what the world tells -----------------------------------------------------------------------------------------

    def rebooted(self) -> None:
        """Boot times mean nothing now."""
        self._cooldowns.clear()
        self._leases = {op: (lease, -1) for op, (lease, _) in self._leases.items()}

    def killed(self, process: Any) -> None:
        """Nothing to remember: owners are asked of the world."""

    def sent(self, flight: Flight, claimed: Claimed) -> None:
        """A status request leaves: it is charged, committed, not too late, and its secret was not refused."""
        world, now = self._world, self._world.now()
        name, n = flight.operation, flight.n
        assert name is not None
        row = world.sql.execute(
            "SELECT o.max_transport_failures FROM intent i JOIN operation o ON o.op = i.operation "
            "WHERE o.id = ? AND i.n = ?",
            (name, n),
        ).fetchone()
        if row is None:
            self._no("I28", f"{name}: request {n} left without a committed intent")
            return
        if claimed.charged_at.boot_id != now.boot_id or now.boot - claimed.charged_at.boot > MAX_PAUSE_MS:
            self._no("L6", f"{name}: request {n} left {now.boot - claimed.charged_at.boot} ms after its charge")
        if (name, n) in self._flights:
            self._no("I1", f"{name}: request {n} left twice")
        account = next((one for one in self._accounts.values() if one.id == name), None)
        if account is not None and account.alone:
            world.covered["asked alone"] += not flight.others
            if flight.others:
                self._no("R39", f"{name}: request {n} goes with {flight.others} others after an answer about none")
        if account is not None and flight.others and row[0] - account.failures <= 1:
            self._no("B4", f"{name}: request {n} goes with {flight.others} others, and one more failure ends it")
        self._flights[name, n] = flight
        if flight.secret is not None:
            refused = self._denied.get((flight.secret, origin_of(flight.url)))
            if refused is not None and refused[1] < self._charged.get((name, n), 0):
                self._no("H3", f"{name}: request {n} carries a secret that {origin_of(flight.url)} refused before")

    def all_sent(self, flight: Flight) -> None:
        """R39: who was charged with a request is asked for in it, and nobody else is."""
        asked = sorted((str(one.operation), one.n) for one in flight.each())
        charged = self._world.sql.execute(
            "SELECT o.id, i.n FROM intent i JOIN operation o ON o.op=i.operation WHERE i.request = (SELECT j.request "
            "FROM intent j JOIN operation p ON p.op=j.operation WHERE p.id=? AND j.n=?)",
            (flight.operation, flight.n),
        ).fetchall()
        if sorted(map(tuple, charged)) != asked:
            self._no("R39", f"one request: charged are {sorted(charged)}, asked for are {asked}")

    def seen(self, flight: Flight) -> None:
        """I1: the provider never counts more than was charged."""
        if flight.operation is None:
            return
        key = (flight.operation, flight.n)
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] > 1:
            self._no("I1", f"{key[0]}: the provider saw request {key[1]} twice")
        used = self._world.sql.execute(
            "SELECT status_requests_used - carried FROM operation WHERE id=?", (key[0],)
        ).fetchone()[0]
        count = sum(1 for name, _ in self._seen if name == key[0])
        if count > used:
            self._no("I1", f"{key[0]}: the provider saw {count} requests, {used} are counted")

    def delivered(self, flight: Flight) -> None:
        """An answer reached its process."""
        if flight.operation is not None:
            self._answers[flight.operation, flight.n] = (self._world.now().boot, flight)

    def painted(self, shown: Shown) -> None:
        """A card was drawn: its choices are those of its reason's table (I11)."""
        allowed = permitted(shown.question.reason, shown.operation.status)
        for choice in shown.choices:
            if choice.kind not in allowed:
                self._no("I11", f"{shown.question.reason.value} offers {choice.kind.value}")
        if digest(shown.card) != shown.digest:
            self._no("I12", "the digest is not that of what was painted")
        self._shown[shown.digest] = (shown.question.escalation_id, shown.operation.version)


def origin_of(url: str) -> str:
    return url.partition("/v1/")[0]
