"""What many operations share: cool-downs, origins that are down, denials, pauses, heartbeats.

Job: keep each, never shorten one, and list what is in force. Must not know: operations beyond their account, decisions.
Source: spec T8, T11, H3, O8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pollcore.adapters.store.transaction import Transaction
from pollcore.facts import Moment
from pollcore.ports import Claim, Cooldown, Denial, OriginState, Pause, Worker

KEPT_WORKERS: Final = 1_000

_COOLDOWN: Final = (
    "INSERT INTO cooldown(provider, account, credential, until, until_boot) VALUES(?,?,?,?,?) "
    "ON CONFLICT(provider, account, credential) DO UPDATE SET until=max(until, excluded.until), "
    "until_boot=max(until_boot, excluded.until_boot)"
)
# A probe whose request is in flight is never displaced, unless the origin is up again.
_ORIGIN: Final = """
INSERT INTO origin_state(origin, account, faults_in_a_row, down_since, probe_operation, probe_until_boot)
VALUES(?1,?2,?3,?4,?5,?6) ON CONFLICT(origin, account) DO UPDATE SET faults_in_a_row=?3, down_since=?4,
(probe_operation, probe_until_boot) = (SELECT CASE WHEN kept THEN probe_operation ELSE ?5 END,
CASE WHEN kept THEN probe_until_boot ELSE ?6 END FROM (SELECT ?4 IS NOT NULL AND probe_until_boot > ?7
AND probe_operation IS NOT ?5 AND EXISTS(SELECT 1 FROM operation o WHERE o.id = probe_operation
AND o.lease_owner IS NOT NULL) AS kept))
"""


class InForce(msgspec.Struct, frozen=True):
    """Everything shared that holds now."""

    cooldowns: tuple[Cooldown, ...]
    origins: tuple[OriginState, ...]
    denials: tuple[Denial, ...]
    pauses: tuple[Pause, ...]

    def forbids(self, claim: Claim, now: Moment) -> bool:
        """Whether something that another process may just have written keeps this claim from sending (T8, T11)."""
        if not (self.cooldowns or self.pauses or self.origins or self.denials):
            return False
        o = claim.operation
        provider, account = o.submitted.provider, o.submitted.account
        return (
            any((c.provider, c.account, c.credential) == (provider, account, o.credential) for c in self.cooldowns)
            or any(p.provider == provider and p.account in (None, account) for p in self.pauses)
            or any(
                (d.credential, d.origin, d.secret_digest) == (o.credential, claim.origin, claim.secret_digest)
                for d in self.denials
            )
            or any(
                s.probe_operation != o.operation_id
                and (s.origin, s.account) == (claim.origin, account)
                and s.down_since is not None
                and s.probe_until_boot is not None
                and s.probe_until_boot > now.boot
                for s in self.origins
            )
        )


def in_force(conn: Any, now: Moment) -> InForce:
    """Read all of it: a handful of rows."""
    ask = conn.execute
    return InForce(
        tuple(
            Cooldown(provider=p, account=a, credential=c or None, until=u, until_boot=b)
            for p, a, c, u, b in ask("SELECT * FROM cooldown WHERE until_boot > ?", (now.boot,)).fetchall()
        ),
        tuple(
            OriginState(origin=o, account=a, faults_in_a_row=f, down_since=d, probe_operation=p, probe_until_boot=u)
            for o, a, f, d, p, u in ask("SELECT * FROM origin_state").fetchall()
        ),
        denials(conn),
        tuple(Pause(p, a or None, u) for p, a, u in ask("SELECT * FROM pause WHERE until > ?", (now.wall,)).fetchall()),
    )


def denials(conn: Any) -> tuple[Denial, ...]:
    """All refused secrets that are remembered (H3)."""
    return tuple(Denial(*row) for row in conn.execute("SELECT credential, origin, digest, at FROM denial").fetchall())


def save_cooldowns(tx: Transaction, cooldowns: Sequence[Cooldown]) -> None:
    """Keep each; an earlier end never shortens one (T3: the provider's word that lasts longest)."""
    tx.conn.executemany(
        _COOLDOWN, [(c.provider, c.account, c.credential or "", c.until, c.until_boot) for c in cooldowns]
    )
    tx.conn.execute("DELETE FROM cooldown WHERE until_boot <= ?", (tx.now.boot,))
    tx.wrote = True


def save_origins(tx: Transaction, origins: Sequence[OriginState]) -> None:
    """Keep each; one without faults is forgotten."""
    for s in origins:
        if s.faults_in_a_row == 0 and s.down_since is None:
            tx.conn.execute("DELETE FROM origin_state WHERE origin=? AND account=?", (s.origin, s.account))
        else:
            probe = (s.probe_operation, s.probe_until_boot)
            tx.conn.execute(_ORIGIN, (s.origin, s.account, s.faults_in_a_row, s.down_since, *probe, tx.now.boot))
    tx.wrote = True


def save_denials(tx: Transaction, denials: Sequence[Denial]) -> None:
    """Keep each; a newer digest of the same credential and origin takes the place of the older."""
    tx.conn.executemany(
        "INSERT OR REPLACE INTO denial(credential, origin, digest, at) VALUES(?,?,?,?)",
        [(d.credential, d.origin, d.digest, d.at) for d in denials],
    )
    tx.wrote = True


def save_pause(tx: Transaction, pause: Pause) -> None:
    """Keep it; a shorter one never ends a longer one early (G5: a pause lowers authority)."""
    tx.conn.execute(
        "INSERT INTO pause(provider, account, until) VALUES(?,?,?) "
        "ON CONFLICT(provider, account) DO UPDATE SET until=max(until, excluded.until)",
        (pause.provider, pause.account or "", pause.until),
    )
    tx.wrote = True


def save_beat(tx: Transaction, beat: Worker) -> None:
    """Keep the newest beat of a worker; long silent ones are dropped beyond KEPT_WORKERS."""
    plain = (beat.owner, beat.pid, beat.host, beat.kind, beat.started_at, beat.beat_at, beat.beat_boot, beat.boot_id)
    tx.conn.execute("INSERT OR REPLACE INTO worker VALUES(?,?,?,?,?,?,?,?)", plain)
    tx.conn.execute(
        "DELETE FROM worker WHERE owner IN (SELECT owner FROM worker ORDER BY beat_at DESC LIMIT -1 OFFSET ?)",
        (KEPT_WORKERS,),
    )
    tx.wrote = True


def workers(conn: Any) -> list[Worker]:
    """All heartbeats, newest first."""
    found = conn.execute("SELECT * FROM worker ORDER BY beat_at DESC, owner").fetchall()
    names = ("owner", "pid", "host", "kind", "started_at", "beat_at", "beat_boot", "boot_id")
    return [Worker(**dict(zip(names, row, strict=True))) for row in found]


def anchor(tx: Transaction) -> None:
    """T9: boot times of another boot mean nothing; count them anew from the wall times, once, for all rows.

    An operation that does not simply wait is due at once, so that its own time is worked out again.
    """
    now, ask = tx.now, tx.conn.execute
    ask("INSERT OR IGNORE INTO boot(boot_id) VALUES(?)", (now.boot_id,))
    tx.boot = ask("SELECT no FROM boot WHERE boot_id=?", (now.boot_id,)).fetchone()[0]
    tx.boot_id = now.boot_id
    moved = ask(
        "UPDATE operation SET boot=:no, deadline_boot=:boot + deadline_at - :wall, change=:change, "
        "due_boot=CASE WHEN due_boot IS NULL THEN NULL WHEN status <> 'waiting' THEN :boot ELSE :boot + max(0, "
        "min(coalesce(next_poll_at, :wall), deadline_at, coalesce(useful_until, deadline_at)) - :wall) END "
        "WHERE boot <> :no AND (due_boot IS NOT NULL OR status NOT IN "
        "('succeeded', 'failed', 'cancelled', 'expired', 'closed'))",
        {"no": tx.boot, "boot": now.boot, "wall": now.wall, "change": tx.change + 1},
    ).rowcount
    if moved:
        tx.next_change()
        # readers that ask "what since?" scan the rows once
        ask("DELETE FROM touched")
    ask("UPDATE cooldown SET until_boot = ? + max(0, until - ?)", (now.boot, now.wall))
    ask("UPDATE origin_state SET probe_operation = NULL, probe_until_boot = NULL")
    tx.wrote = True
