"""The whole store on one connection, without threads: turns, commits, submissions, renewals.

Job: order the steps of each transaction. Must not know: threads, event loops, the rules that made the writes.
One turn: writes, what is shared, claims, one COMMIT; then the look. Source: spec O1-O7, T8, T9; design "Store port".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from pollcore.adapters import places
from pollcore.adapters.store import archiving, connecting, fences, leases, opening, shared, submitting
from pollcore.adapters.store.claims import Claims
from pollcore.adapters.store.errors import MIN_FREE_BYTES, unusable
from pollcore.adapters.store.library import sqlite3
from pollcore.adapters.store.look import look
from pollcore.adapters.store.reads import Reads
from pollcore.adapters.store.transaction import Prev, Transaction, Writer, audit_tip
from pollcore.adapters.store.writes import Batch, ids
from pollcore.facts import AuditEvent, Escalation, Moment, Operation, Snapshot, Stale, StoreUnusable
from pollcore.ports import AuditLog, AuditTip, Claimed, MakeExtension, Pause, Sealer, Turn, TurnOutcome, Write


class SqliteTurns:
    """Everything that the store promises, synchronously."""

    def __init__(
        self,
        path: str,
        sealer: Sealer,
        audit: AuditLog,
        is_dead: Callable[[str], bool] = lambda _: False,
        *,
        when_full: bool = False,
    ) -> None:
        """*path*: the file, or `:memory:`. *is_dead*: proof of another worker's death. *when_full*: as `open_writer`.

        Raises StoreUnusable.
        """
        self.path = path
        self.copies: list[str] = []
        """Copies of the file that were made before it was brought up to date."""
        self.conn = opening.open_writer(path, copies=self.copies, when_full=when_full)
        self.is_still = when_full and connecting.only_reads(self.conn) and not connecting.is_read_only(path)
        """The disk was full: the file is read as it stands, and whoever writes to it later is not seen."""
        self.reads = Reads(self.conn, sealer)
        self.known = self.reads.known
        self.writer = Writer(self.conn, path, audit, self.known.forget)
        self.watch = leases.LeaseWatch(is_dead)

    # --- the hot path ---------------------------------------------------------------------------------------------

    def turn(self, turn: Turn) -> TurnOutcome:
        """One transaction of the loop. Raises StoreUnusable: then nothing of it happened."""
        if turn.claims and self.writer.was_full:
            self._require_space()
        try:
            self.watch.scan(self.conn, self.known, turn.now, turn.owner)
            same_boot = self._same_boot(turn.now)
        except sqlite3.Error as error:
            raise unusable(error, self.path, "looking at leases") from error
        shared_rows = turn.cooldowns or turn.origins or turn.denials or turn.beat
        writes = turn.writes or turn.claims or shared_rows or self.watch.dead()
        if not writes and same_boot:
            return self._look_only(turn)
        return self.writer.run(turn.now, "recording a turn", lambda tx: self._turn(tx, turn))

    def _turn(self, tx: Transaction, turn: Turn) -> TurnOutcome:
        if tx.boot_id != turn.now.boot_id:
            shared.anchor(tx)
        for op in self.watch.dead():
            leases.free_ended(tx, op, self.watch)
        held = fences.load(self.conn, self.known, {*ids(turn.writes), *(c.operation.operation_id for c in turn.claims)})
        taken, moved = self._write(tx, turn, held)
        if turn.cooldowns:
            shared.save_cooldowns(tx, turn.cooldowns)
        if turn.origins:
            shared.save_origins(tx, turn.origins)
        if turn.denials:
            shared.save_denials(tx, turn.denials)
        if turn.beat is not None:
            shared.save_beat(tx, turn.beat)
        claimed: tuple[Claimed | None, ...] = ()
        lost: list[tuple[str, int]] = []
        if turn.claims:
            claims = Claims(tx, self.known, held, self.watch, turn.owner)
            claimed = tuple(claims.take(claim) for claim in turn.claims)
            claims.flush()
            lost = claims.lost
        found = look(self.reads, self.watch, turn.now, turn.look, turn.ahead)
        return msgspec.structs.replace(
            found,
            taken=taken,
            claimed=claimed,
            moved=moved,
            answer_lost=(*lost, *found.answer_lost),
            change=tx.change,
        )

    def _write(
        self, tx: Transaction, turn: Turn, held: dict[str, fences.Fence]
    ) -> tuple[tuple[bool, ...], tuple[Operation | None, ...]]:
        batch = Batch(tx, self.reads.columns, self.known, held, turn.writes)
        taken: list[bool] = []
        moved: list[Operation | None] = []
        for write in turn.writes:
            why = batch.refusal(write)
            if why is None and write.stored is not None and write.fence_epoch is None:
                # an answer is written off as lost only while the lease is dead: a renewed one has an owner that lives
                fence = held[write.after.operation_id]
                if not self.watch.is_dead(fence.op, fence.epoch, fence.renewed):
                    why = f"lease {fence.epoch} was renewed: its owner lives"
            now_is = None
            if why is None:
                fence = held[write.after.operation_id]
                ours = write.fence_epoch is not None or self.watch.is_dead(fence.op, fence.epoch, fence.renewed)
                batch.take(write, release=write.release_lease and ours, supersede=True)
            elif why.startswith("moved") and write.fence_epoch is not None:
                batch.flush()
                now_is = self.reads.operation(write.after.operation_id)
            elif write.fence_epoch is not None:
                batch.late(write, why)
            taken.append(why is None)
            moved.append(now_is)
        batch.flush()
        return tuple(taken), tuple(moved)

    def _look_only(self, turn: Turn) -> TurnOutcome:
        """A turn that writes nothing takes no lock."""
        try:
            if self.conn.in_transaction:  # an earlier ROLLBACK failed
                self.conn.execute("ROLLBACK")
            self.conn.execute("BEGIN")
            try:
                found = look(self.reads, self.watch, turn.now, turn.look, turn.ahead)
                return msgspec.structs.replace(found, change=self.reads.change())
            finally:
                if self.conn.in_transaction:
                    self.conn.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise unusable(error, self.path, "looking for due operations") from error

    def renew(self, now: Moment, owner: str, epochs: Mapping[str, int]) -> Sequence[str]:
        """Renew the leases of all requests in flight, in one statement (L5: every 10 s). Returns those still ours."""

        def work(tx: Transaction) -> Sequence[str]:
            kept = leases.renew(self.conn, self.known, now, owner, epochs)
            tx.wrote = tx.wrote or bool(kept)
            return kept

        return self.writer.run(now, "renewing leases", work)

    def _same_boot(self, now: Moment) -> bool:
        row = self.conn.execute("SELECT b.boot_id FROM meta m JOIN boot b ON b.no=m.boot").fetchone()
        return row is not None and row[0] == now.boot_id

    def _require_space(self) -> None:
        if self.path != connecting.MEMORY and places.free_bytes(Path(self.path).parent) < MIN_FREE_BYTES:
            raise StoreUnusable(
                f"store {self.path}: the disk was full and has less than {MIN_FREE_BYTES >> 20} MiB free: "
                "free space on it; nothing is sent until then"
            )
        self.writer.was_full = False

    # --- one by one -----------------------------------------------------------------------------------------------

    def commit(self, now: Moment, writes: Sequence[Write], check: Callable[[], None] | None = None) -> tuple[int, ...]:
        """All or nothing. *check* runs last, inside the transaction; what it raises undoes everything.

        A lease is never ended here: the request in flight still brings its answer.

        Raises:
            Stale: a fence does not hold, a question was decided, a grant was used.
        """
        return self.writer.run(now, "recording a decision", lambda tx: self._commit(tx, writes, check))

    def _commit(self, tx: Transaction, writes: Sequence[Write], check: Callable[[], None] | None) -> tuple[int, ...]:
        if tx.boot_id != tx.now.boot_id:
            shared.anchor(tx)
        batch = self._batch(tx, writes)
        changes = []
        for write in writes:
            changes.append(self.take_or_stale(batch, write))
        batch.flush()
        if check is not None:
            check()
        return tuple(changes)

    def commit_each(self, now: Moment, writes: Sequence[Write]) -> tuple[str | None, ...]:
        """One transaction, each write for itself: None where it was taken, else why it was not (E10).

        No lease is ended. `moved` begins the reason where only a poll came between: read again, decide again.
        """

        def work(tx: Transaction) -> tuple[str | None, ...]:
            if tx.boot_id != now.boot_id:
                shared.anchor(tx)
            batch = self._batch(tx, writes)
            found = []
            for write in writes:
                why = batch.refusal(write) or batch.question_in_the_way(write)
                if why is None:
                    batch.take(write, release=False, supersede=False)
                found.append(why)
            batch.flush()
            return tuple(found)

        return self.writer.run(now, "recording decisions", work)

    def _batch(self, tx: Transaction, writes: Sequence[Write]) -> Batch:
        held = fences.load(self.conn, self.known, ids(writes))
        return Batch(tx, self.reads.columns, self.known, held, writes)

    @staticmethod
    def take_or_stale(batch: Batch, write: Write) -> int:
        """Take one write, or raise Stale with the reason."""
        why = batch.refusal(write) or batch.question_in_the_way(write)
        if why is not None:
            raise Stale(f"operation {write.after.operation_id}: {why}; nothing was done: look again, decide again")
        return batch.take(write, release=False, supersede=False)

    def submit(
        self,
        now: Moment,
        operation: Operation,
        snapshot: Snapshot,
        events: Sequence[AuditEvent],
        question: Escalation | None = None,
        resubmit: Write | None = None,
    ) -> Operation:
        """Insert an operation, or return the one that the same submission made before.

        Raises:
            Refused: `duplicate_job` (names the open operation), `id_taken` (same id, another submission).
            Stale: the *resubmit* write does not hold.
        """

        def work(tx: Transaction) -> None:
            if tx.boot_id != now.boot_id:
                shared.anchor(tx)
            if submitting.already(self.reads, operation):
                return
            if resubmit is not None:
                batch = self._batch(tx, [resubmit])
                self.take_or_stale(batch, resubmit)
                batch.flush()
            submitting.insert(tx, self.reads, operation, snapshot, events, question)

        self.writer.run(now, "storing a submission", work)
        found = self.reads.operation(operation.operation_id)
        if found is None:
            raise StoreUnusable(f"store {self.path}: a submission just stored is gone: run `pollconsole doctor`")
        return found

    def keep_snapshot(self, now: Moment, snapshot: Snapshot) -> None:
        """Keep a contract that an operation is about to adopt (S8)."""

        def work(tx: Transaction) -> None:
            submitting.keep_snapshot(tx, snapshot)

        self.writer.run(now, "keeping a contract", work)

    def pause(self, now: Moment, pause: Pause, event: AuditEvent) -> None:
        """Send nothing to a provider (and account) before a time."""

        def work(tx: Transaction) -> None:
            shared.save_pause(tx, pause)
            self.add_events(tx, [event])

        self.writer.run(now, "recording a pause", work)

    def record(self, now: Moment, events: Sequence[AuditEvent]) -> None:
        """Events that change no record (a refused grant, a revealed result, a clock step)."""
        self.writer.run(now, "recording events", lambda tx: self.add_events(tx, events))

    def extend_audit(self, now: Moment, make: MakeExtension) -> AuditTip | None:
        """Add what *make* makes of the tip, in a transaction of its own; returns the tip after it."""

        def work(tx: Transaction) -> AuditTip | None:
            (recorded,) = self.conn.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
            tx.extend(make(audit_tip(self.conn), recorded))
            return audit_tip(self.conn)

        return self.writer.run(now, "extending the audit", work)

    def archive(self, now: Moment, wanted: archiving.Cutting) -> int:
        """Remove what an archive file holds; returns its number. Raises Stale: something moved meanwhile."""
        no = self.writer.run(now, "archiving", lambda tx: archiving.cut(tx, wanted))
        self.known.forget()
        return no

    def add_events(self, tx: Transaction, events: Sequence[AuditEvent]) -> None:
        """Events that belong to a write, each in the story of its operation."""
        for event in events:
            op = self.known.op(event.operation_id) if event.operation_id else None
            last = None
            if op is not None:
                (last,) = tx.conn.execute("SELECT last_event FROM operation WHERE op=?", (op,)).fetchone()
            prev = Prev(op, last)
            tx.record(event, prev)
            if op is not None:
                tx.conn.execute("UPDATE operation SET last_event=? WHERE op=?", (prev.last, op))

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self.conn.close()
