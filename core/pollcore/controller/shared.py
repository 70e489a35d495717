"""What operations share: origins that are down, cool-downs, pauses, refused credentials.

Job: hold what the store said is in force, learn from each answer, answer "may this operation send now?".
Must not know: SQL, sockets, when anything is due.
Source: spec T8, T11, H3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from pollcore.controller.release import Release
from pollcore.facts import BootMs, Instant, Moment, Operation
from pollcore.ports import Cooldown, Denial, OriginState, Pause, TurnOutcome
from pollcore.schedule import RELEASE_GAP, RELEASE_LEAST

FAULTS_UNTIL_DOWN: Final = 3
"""T11: so many transport faults in a row, from at least two operations, and the origin counts as down."""
OPERATIONS_UNTIL_DOWN: Final = 2
PROBE_GRACE_MS: Final = 5_000
"""A prober that recorded nothing so long after its answer was due is replaced."""
PROBE_PAUSE_MS: Final = 5_000
PROBE_PAUSE_MAX_MS: Final = 60_000
"""Between two probes: doubled with each fault, up to the maximum."""
PROBE_LOOK_MS: Final = 2_000
"""While a probe is out, those that wait for its answer look again so soon."""
MAX_REMEMBERED: Final = 64
"""Operations remembered per origin for the two-operations rule."""


class Shared:
    """The store's view of shared waits, kept current by each turn's outcome."""

    def __init__(self) -> None:
        self._cooldowns: dict[tuple[str, str, str | None], Cooldown] = {}
        self._origins: dict[tuple[str, str], OriginState] = {}
        self._denials: dict[tuple[str, str], Denial] = {}
        self._pauses: tuple[Pause, ...] = ()
        self._faulted: dict[tuple[str, str], set[str]] = {}
        self._held: dict[tuple[str, str, str | None], tuple[BootMs, int]] = {}
        self._looks: dict[tuple[str, str], int] = {}
        """By origin and account that is down: when, at the earliest, the last one looks again that was told when."""
        self._releases: dict[tuple[str, str], Release] = {}
        """By origin and account that was down: when each goes that waited for it."""
        self._new_cooldowns: dict[tuple[str, str, str | None], Cooldown] = {}
        self._new_origins: dict[tuple[str, str], OriginState] = {}
        self._new_denials: dict[tuple[str, str], Denial] = {}

    # --- from and to the store ----------------------------------------------------------------------------------------

    def learn(self, outcome: TurnOutcome) -> None:
        """Take over what is in force; what was not written yet stands above it."""
        self._cooldowns = {(c.provider, c.account, c.credential): c for c in outcome.cooldowns} | self._new_cooldowns
        self._origins = {(o.origin, o.account): o for o in outcome.origins} | self._new_origins
        self._denials = {(d.credential, d.origin): d for d in outcome.denials} | self._new_denials
        self._pauses = outcome.pauses

    def take_new(self) -> tuple[tuple[Cooldown, ...], tuple[OriginState, ...], tuple[Denial, ...]]:
        """What the next turn must write; kept in force here until the turn's outcome confirms it."""
        new = (
            tuple(self._new_cooldowns.values()),
            tuple(self._new_origins.values()),
            tuple(self._new_denials.values()),
        )
        self._new_cooldowns, self._new_origins, self._new_denials = {}, {}, {}
        return new

    def put_back(
        self, cooldowns: Iterable[Cooldown], origins: Iterable[OriginState], denials: Iterable[Denial]
    ) -> None:
        """The turn did not happen: write them with the next one, unless something newer is there."""
        for c in cooldowns:
            self._new_cooldowns.setdefault((c.provider, c.account, c.credential), c)
        for o in origins:
            self._new_origins.setdefault((o.origin, o.account), o)
        for d in denials:
            self._new_denials.setdefault((d.credential, d.origin), d)

    # --- what an answer taught ----------------------------------------------------------------------------------------

    def cool_down(self, operation: Operation, until: Instant, until_boot: BootMs) -> None:
        """T8: a 429 or 503 with guidance holds for everyone with the same provider, account and credential."""
        key = (operation.submitted.provider, operation.submitted.account, operation.credential)
        known = self._cooldowns.get(key)
        if known is None or known.until_boot < until_boot:
            cooldown = Cooldown(provider=key[0], account=key[1], credential=key[2], until=until, until_boot=until_boot)
            self._cooldowns[key] = self._new_cooldowns[key] = cooldown

    def denied(self, denial: Denial) -> None:
        """H3: this secret got a 401 from this origin."""
        key = (denial.credential, denial.origin)
        self._denials[key] = self._new_denials[key] = denial

    def accepted(self, credential: str, origin: str, digest: str) -> None:
        """Another token than the refused one is good: what waits may go on with what its credential buys."""
        denial = self._denials.get((credential, origin))
        if denial is not None and denial.unproved and denial.secret_digest != digest:
            self.denied(msgspec.structs.replace(denial, digest=denial.secret_digest))

    def answered(self, origin: str, account: str) -> None:
        """The origin answers: what waited for it may go on."""
        key = (origin, account)
        self._faulted.pop(key, None)
        self._looks.pop(key, None)
        known = self._origins.get(key)
        if known is not None and (known.faults_in_a_row or known.down_since is not None):
            state = OriginState(origin=origin, account=account, faults_in_a_row=0, down_since=None)
            self._origins[key] = self._new_origins[key] = state

    def faulted(
        self,
        operation: Operation,
        origin: str,
        now: Moment,
        others: Iterable[str] = (),
        *,
        enough: int = FAULTS_UNTIL_DOWN,
    ) -> None:
        """One more transport fault of this origin and account; when it is down, the next probe waits longer.

        *others*: operations that the same request asked for: one fault, and not of one operation alone (R39).
        *enough*: with so many in a row it counts as down.
        """
        key = (origin, operation.submitted.account)
        seen = self._faulted.setdefault(key, set())
        for one in (operation.operation_id, *others):
            if len(seen) < MAX_REMEMBERED:
                seen.add(one)
        known = self._origins.get(key)
        faults = (known.faults_in_a_row if known else 0) + 1
        down = known.down_since if known else None
        if down is None and faults >= enough and len(seen) >= OPERATIONS_UNTIL_DOWN:
            down = now.wall
        pause = min(PROBE_PAUSE_MAX_MS, PROBE_PAUSE_MS << min(faults, 16) - min(faults, FAULTS_UNTIL_DOWN))
        state = OriginState(
            origin=origin,
            account=key[1],
            faults_in_a_row=faults,
            down_since=down,
            probe_until_boot=BootMs(now.boot + pause) if down is not None else None,
        )
        self._origins[key] = self._new_origins[key] = state

    # --- questions of the loop ----------------------------------------------------------------------------------------

    def cooldown(self, operation: Operation, now: Moment) -> Cooldown | None:
        """The cool-down that holds for this operation now."""
        found = self._cooldowns.get((operation.submitted.provider, operation.submitted.account, operation.credential))
        return found if found is not None and found.until_boot > now.boot else None

    def place(self, operation: Operation, until: BootMs, together: int = 1) -> int:
        """The how many-th request this one's is, from 1, that its cool-down *until* holds back (T8).

        *together*: operations that one request can ask for (R39).
        """
        key = (operation.submitted.provider, operation.submitted.account, operation.credential)
        before, held = self._held.get(key, (until, 0))
        held = held + 1 if before == until else 1
        self._held[key] = (until, held)
        return -(-held // together)

    def pause(self, operation: Operation, now: Moment) -> Pause | None:
        """The pause that holds for this operation now, the longest where several do."""
        holding: Iterable[Pause] = (
            p
            for p in self._pauses
            if p.provider == operation.submitted.provider
            and p.account in (None, operation.submitted.account)
            and p.until > now.wall
        )
        return max(holding, key=lambda p: p.until, default=None)

    def denial(self, credential: str, origin: str) -> Denial | None:
        """The newest refusal of this credential at this origin, for whichever secret it was."""
        return self._denials.get((credential, origin))

    def may_probe(self, operation: Operation, origin: str, now: Moment) -> bool:
        """True: the origin is up, or this operation is the one that asks it now."""
        state = self._origins.get((origin, operation.submitted.account))
        if state is None or state.down_since is None:
            return True
        return state.probe_until_boot is None or state.probe_until_boot <= now.boot

    def look_again(
        self, operation: Operation, origin: str, now: Moment, recheck_ms: int, draw: float, room_ms: int
    ) -> int:
        """ms until this one looks again at an origin that is down and asked by another (T11); *recheck_ms* at most.

        When the next probe may go out; soon where one is out, since its answer lets them go. One every `RELEASE_GAP` as
        long as that is soon enough; of more that wait each looks when its *draw* says: a look sends nothing, and the
        probe's answer lets them go spread (`let_go`). Never beyond half of *room_ms*, what is left until its deadline
        or `useful_until`, as long as that is no shorter than a probe takes.
        """
        key = (origin, operation.submitted.account)
        self._releases.pop(key, None)
        state = self._origins[key]
        left = PROBE_LOOK_MS
        if state.probe_operation is None and state.probe_until_boot is not None:
            left = min(recheck_ms, max(0, state.probe_until_boot - now.boot))
        most = min(recheck_ms, max(PROBE_LOOK_MS, room_ms // 2))
        at = max(now.boot + left, self._looks.get(key, 0) + RELEASE_GAP)
        if at + RELEASE_LEAST - now.boot > most:
            return most // 2 + int(most / 2 * draw)
        self._looks[key] = at
        return at + int(RELEASE_LEAST * draw) - now.boot

    def let_go(
        self, operation: Operation, origin: str, now: Moment, draw: float, room_ms: int, together: int = 1
    ) -> int:
        """ms until one that waited for an origin that is up again may ask it; 0: now (T11). *room_ms*: as `look_again`;
        *together*: operations that one request can ask for (R39)."""
        release = self._releases.setdefault((origin, operation.submitted.account), Release())
        return release.left(operation.operation_id, now, room_ms, draw, together)

    def is_down(self, operation: Operation, origin: str) -> bool:
        """The origin counts as down for this operation's account."""
        state = self._origins.get((origin, operation.submitted.account))
        return state is not None and state.down_since is not None

    def probing(self, operation: Operation, origin: str, now: Moment, total_ms: int) -> None:
        """This operation is about to ask the origin that is down; the others wait for it."""
        key = (origin, operation.submitted.account)
        self._releases.pop(key, None)
        state = self._origins[key]
        probe = OriginState(
            origin=origin,
            account=key[1],
            faults_in_a_row=state.faults_in_a_row,
            down_since=state.down_since,
            probe_operation=operation.operation_id,
            probe_until_boot=BootMs(now.boot + total_ms + PROBE_GRACE_MS),
        )
        self._origins[key] = self._new_origins[key] = probe
