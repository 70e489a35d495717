"""Logs made by the real writer, in memory, with everything that a thief or an honest owner may hold."""

from __future__ import annotations

import os
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from pollcore.adapters.audit_chain import ChainAudit, LogState, Signer, begin
from pollcore.chain import control
from pollcore.chain.findings import Head, Report
from pollcore.chain.verify import Row, Verifier
from pollcore.facts import AuditEvent, DelaySource, EventName, Instant
from pollcore.ports import AuditLink, AuditTip

T0 = 1_772_445_600_000
READ = bytes(X25519PrivateKey.generate().public_key().public_bytes_raw())


def event(number: int = 0, name: EventName = EventName.POLLED) -> AuditEvent:
    """An ordinary event."""
    return AuditEvent(
        at=Instant(T0 + number),
        event=name,
        operation_id=f"op-{number:08x}",
        state="running",
        http=200,
        requests_used=number,
        max_requests=1_000,
        delay_source=DelaySource.LOCAL_BACKOFF,
        next_poll_at=Instant(T0 + number + 5_000),
        decision="wait",
    )


class Log:
    """One log: what a store would hold (rows, notes, state), and the private keys of its epochs."""

    def __init__(self, keys_in: str = "keyring", log_id: bytes | None = None, events_before: int = 0) -> None:
        self.signing = [Ed25519PrivateKey.generate()]
        self.public = self.signing[0].public_key().public_bytes_raw()
        self.log_id = log_id or os.urandom(16)
        self.state = LogState(self.log_id, self.public, 0, self.public, READ, T0, 1)
        self.rows: list[Row] = []
        self.notes: list[tuple[int, str]] = []
        self.chain = self.writer()
        first = begin(self.state, T0, events_before, keys_in)
        self.take([first])
        self.note()

    def writer(self, *, signs: bool = True) -> ChainAudit:
        """Another process on this log."""
        chain = ChainAudit()
        if signs:
            chain.signer = Signer(self.state.sign, self.signing[-1].sign)
        return chain

    @property
    def tip(self) -> AuditTip:
        seq, _, head = self.rows[-1]
        return AuditTip(seq, head, self.state.encoded())

    @property
    def head(self) -> Head:
        """What an anchor, or somebody who kept a checkpoint, would remember now."""
        return Head(self.rows[-1][0], self.rows[-1][2], "the kept head", self.log_id)

    def take(self, links: list[AuditLink]) -> None:
        """What the store does with links."""
        for link in links:
            self.rows.append((link.seq, link.blob, link.hash))
            if link.note:
                self.notes.append((link.seq, link.note))

    def add(self, count: int, chain: ChainAudit | None = None, name: EventName = EventName.POLLED) -> None:
        """Commit *count* events in one transaction."""
        at = len(self.rows)
        self.take(list((chain or self.chain).links(self.tip, [event(at + i, name) for i in range(count)])))

    def note(self) -> None:
        """A checkpoint over the last link."""
        made = self.chain.note(self.state, self.tip.seq, self.tip.hash)
        assert made is not None
        self.notes.append((self.tip.seq, made))

    def rotate(self) -> None:
        """New keys, signed by the old ones."""
        new = Ed25519PrivateKey.generate()
        sign, tip, old = new.public_key().public_bytes_raw(), self.tip, self.state
        state = LogState(self.log_id, old.first, old.epoch + 1, sign, READ, T0, tip.seq + 1)
        message = control.epoch_message(self.log_id, tip.seq + 1, tip.hash, state.epoch, sign, state.read)
        told = control.Epoch(sign, state.read, T0, "test", self.signing[-1].sign(message))
        self.take(self.chain.first_of_epoch(tip, state, control.encode(told), Signer(sign, new.sign)))
        self.signing.append(new)
        self.state = state
        self.chain.signer = Signer(sign, new.sign)

    def verify(self, *heads: Head, key: bool = True) -> Report:
        """By the first public key alone, and *heads*."""
        return Verifier(key=(self.log_id, self.public) if key else None, heads=heads).run(self.rows, self.notes)

    def copy(self) -> tuple[list[Row], list[tuple[int, str]]]:
        """An old consistent copy of the store."""
        return list(self.rows), list(self.notes)

    def change(self, seq: int, edit: Callable[[bytes], bytes]) -> None:
        """Edit the stored bytes of one link, and nothing else."""
        number, blob, head = self.rows[seq - 1]
        self.rows[seq - 1] = (number, edit(blob), head)


def flipped(raw: bytes, at: int, bit: int = 1) -> bytes:
    """*raw* with one bit changed."""
    return raw[:at] + bytes([raw[at] ^ bit]) + raw[at + 1 :]


def rebuilt(log: Log, upto: int) -> None:
    """What a thief of the signing keys does: cut after *upto*, write a story of his own, sign it."""
    log.rows, log.notes = log.rows[:upto], [note for note in log.notes if note[0] <= upto]
    log.chain = log.writer()
    log.add(60)
    log.note()


def kinds(log: Log) -> list[int]:
    """The kind of every link."""
    return [row[1][69] for row in log.rows]
