"""The encrypted hash chain (port `AuditLog`): one link for each event, sealed with this run's key.

Job: turn the events of a transaction into links behind the tip that the transaction read; a run's key sealed to the
log's public key, a signed checkpoint when enough links came together, the record of a torn row. Called on the store's
writer thread, inside its transaction: no I/O, no waiting, no keyring. Must not know: SQL, where private keys lie.
Source: spec A3, A4, O6; docs/audit.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from pollcore.chain import control, layout
from pollcore.chain.layout import HASH, Header, Kind
from pollcore.chain.notes import note_text
from pollcore.chain.sealing import RowKeys
from pollcore.facts import AuditEvent, EventName, StoreUnusable
from pollcore.ports import AuditLink, AuditTip

NOTE_EVERY: Final = 256
"""Links between two checkpoints of a run that can sign."""
SENDING: Final = frozenset(
    (EventName.SENT, EventName.GRANTED, EventName.CANCEL_SENT, EventName.RESUBMITTED, EventName.RESULT_FETCHED)
)
"""What does not happen while the record is known to be damaged; answers, closings and refusals are still written."""
_SUITE: Final = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
_INFO: Final = b"pollconsole/audit/1 run\x00"
_encode: Final = msgspec.json.Encoder().encode


class LogState(msgspec.Struct, frozen=True):
    """The keys in force, as the store keeps them beside the chain; the chain itself proves them."""

    log_id: bytes
    first: bytes
    """The verification key of epoch 0."""
    epoch: int
    sign: bytes
    read: bytes
    since: int
    """When the epoch began, ms; and the number of the link that began it."""
    since_seq: int
    previous: bytes | None = None
    """The verification key of the epoch before, whose signing key is to be deleted; a crash may have kept it."""

    def encoded(self) -> bytes:
        """As stored."""
        return _encode(self)


class Signer(msgspec.Struct, frozen=True):
    """The signing key of one epoch, in the memory of a process that may sign."""

    public: bytes
    sign: Callable[[bytes], bytes]

    def __repr__(self) -> str:
        return "Signer()"


class Torn(msgspec.Struct, frozen=True):
    """The last row was cut by a crash: what is left of it, and the hash before it."""

    seq: int
    left: bytes
    before: bytes


class _Run:
    """This process's key in one epoch. It counts once the link that carries it is known to be committed."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.writer = os.urandom(16)
        self.secret = os.urandom(32)
        self.keys = RowKeys(self.secret)
        self.proof: tuple[int, bytes] | None = None
        """The last link of the transaction that carried it; None: it was seen in the store since."""

    def stands(self, tip: AuditTip) -> bool:
        """Whether its link was committed, as far as *tip* proves; where another process wrote since, it does not."""
        if self.proof == (tip.seq, tip.hash):
            self.proof = None
        return self.proof is None


class ChainAudit:
    """Keeps the chain of one home."""

    def __init__(self) -> None:
        self.signer: Signer | None = None
        self.alarm: str | None = None
        """Why the record is known to be damaged; set before the first write, cleared by an operator alone."""
        self.begun = False
        """This process has seen a chain in this home."""
        self.torn: Torn | None = None
        self.granted = 0
        """The last link of this process's newest transaction that carried a grant out; it may have been undone."""
        self._run: _Run | None = None
        self._raw: bytes | None = None
        self._state: LogState | None = None

    @property
    def has_sealed(self) -> bool:
        """This process has made links."""
        return self._run is not None

    def links(self, tip: AuditTip | None, events: Sequence[AuditEvent]) -> Sequence[AuditLink]:
        """One link for each event, with the links that must come before them. Empty: no chain has begun here.

        Raises StoreUnusable: the record is damaged, and the events would send or grant something; or it is gone.
        """
        if self.alarm is not None and any(event.event in SENDING for event in events):
            raise StoreUnusable(f"nothing is sent and nothing is granted: {self.alarm}")
        if tip is None:
            if self.begun:
                raise StoreUnusable(
                    "the audit chain of this store is gone: keep the file, see 'pollconsole audit verify'"
                )
            return ()
        grants = any(event.event is EventName.GRANTED for event in events)
        made = self.seal(tip, Kind.EVENT, [_encode(event) for event in events], sign=grants)
        if grants:
            self.granted = made[-1].seq
        return made

    def seal(self, tip: AuditTip, kind: Kind, contents: Sequence[bytes], *, sign: bool = False) -> list[AuditLink]:
        """Sealed links behind *tip*; *sign*: a checkpoint over the last one, if this process can sign."""
        log = self.state(tip)
        made: list[AuditLink] = []
        seq, before = tip.seq, tip.hash
        if len(before) != HASH or before == bytes(HASH):
            before = self._repair(log, tip, made)
            seq += 1
        run, fresh = self._run, False
        if run is None or run.epoch != log.epoch or not run.stands(tip):
            run, fresh = _Run(log.epoch), True
            self._run = run
            seq += 1
            before = self._add(made, log, seq, before, Kind.RUN, run.writer, _sealed_run(log, run))
        salts = os.urandom(16 * len(contents))
        start, end = _around(log, run, kind)
        for at, content in enumerate(contents):
            seq += 1
            header = b"".join((start, seq.to_bytes(8, "big"), end, salts[16 * at : 16 * at + 16]))
            commitment, body = run.keys.seal(header, before, content)
            blob = layout.assemble(header, commitment, body)
            before = layout.link_hash(blob, before)
            made.append(AuditLink(seq, blob, before))
        if fresh:
            run.proof = (seq, before)
        if made and (sign or seq // NOTE_EVERY != tip.seq // NOTE_EVERY):
            note = self.note(log, seq, before)
            if note is not None:
                made[-1] = AuditLink(seq, made[-1].blob, before, note)
        return made

    def control(self, tip: AuditTip, kind: Kind, content: bytes, *, sign: bool = False) -> list[AuditLink]:
        """One clear link behind *tip*."""
        log = self.state(tip)
        made: list[AuditLink] = []
        head = self._add(made, log, tip.seq + 1, tip.hash, kind, layout.NOBODY, content)
        note = self.note(log, tip.seq + 1, head) if sign else None
        return made if note is None else [AuditLink(tip.seq + 1, made[0].blob, head, note)]

    def first_of_epoch(self, tip: AuditTip, new: LogState, content: bytes, signer: Signer) -> list[AuditLink]:
        """The link with which the keys of *new* begin, under a checkpoint by them."""
        made: list[AuditLink] = []
        head = self._add(made, new, tip.seq + 1, tip.hash, Kind.EPOCH, layout.NOBODY, content)
        note = note_text(new.log_id, tip.seq + 1, head, new.epoch, new.sign, signer.sign)
        return [AuditLink(tip.seq + 1, made[0].blob, head, note)]

    def note(self, log: LogState, seq: int, head: bytes) -> str | None:
        """A checkpoint, if this process holds the epoch's signing key."""
        signer = self.signer
        if signer is None or signer.public != log.sign:
            return None
        return note_text(log.log_id, seq, head, log.epoch, signer.public, signer.sign)

    def state(self, tip: AuditTip) -> LogState:
        """The keys in force for a link behind *tip*. Raises StoreUnusable: their record is gone or damaged."""
        if tip.log is None:
            raise StoreUnusable("the audit's record of its keys is gone from the store: run 'pollconsole audit verify'")
        if tip.log != self._raw or self._state is None:
            self._state, self._raw = decode_state(tip.log), tip.log
            self.begun = True
        return self._state

    def _repair(self, log: LogState, tip: AuditTip, made: list[AuditLink]) -> bytes:
        """The record of a torn last row, hashed behind the row before it."""
        torn = self.torn
        if torn is None or torn.seq != tip.seq:
            raise StoreUnusable(f"the last audit row, {tip.seq}, is torn: start this program again to repair it")
        told = control.Repair(tip.seq, len(torn.left), hashlib.sha256(torn.left).digest())
        return self._add(made, log, tip.seq + 1, torn.before, Kind.REPAIR, layout.NOBODY, control.encode(told))

    @staticmethod
    def _add(
        made: list[AuditLink], log: LogState, seq: int, before: bytes, kind: Kind, writer: bytes, content: bytes
    ) -> bytes:
        header = layout.pack(Header(log.log_id, seq, log.epoch, writer, kind, os.urandom(16)))
        blob = layout.assemble(header, layout.NO_COMMITMENT, content)
        head = layout.link_hash(blob, before)
        made.append(AuditLink(seq, blob, head))
        return head


def decode_state(raw: bytes) -> LogState:
    """Raises StoreUnusable."""
    try:
        return msgspec.json.decode(raw, type=LogState)
    except msgspec.MsgspecError:
        raise StoreUnusable(
            "the audit's record of its keys is damaged in the store: run 'pollconsole audit verify'"
        ) from None


def begin(log: LogState, at: int, events_before: int, keys_in: str) -> AuditLink:
    """The first link of a log."""
    content = control.encode(control.Begin(log.sign, log.read, at, events_before, keys_in))
    header = layout.pack(Header(log.log_id, 1, 0, layout.NOBODY, Kind.BEGIN, os.urandom(16)))
    blob = layout.assemble(header, layout.NO_COMMITMENT, content)
    return AuditLink(1, blob, layout.link_hash(blob, layout.genesis(log.log_id, log.first)))


def open_run(private: X25519PrivateKey, header: Header, told: control.Run) -> RowKeys:
    """The keys of a run from its link. Raises cryptography's InvalidTag, ValueError: sealed to another key."""
    return RowKeys(_SUITE.decrypt(told.key, private, _run_info(header.log_id, header.epoch, header.writer)))


def _sealed_run(log: LogState, run: _Run) -> bytes:
    public = X25519PublicKey.from_public_bytes(log.read)
    wrapped = _SUITE.encrypt(run.secret, public, _run_info(log.log_id, run.epoch, run.writer))
    return control.encode(control.Run(log.read, wrapped))


def _run_info(log_id: bytes, epoch: int, writer: bytes) -> bytes:
    return _INFO + log_id + epoch.to_bytes(4, "big") + writer


def _around(log: LogState, run: _Run, kind: Kind) -> tuple[bytes, bytes]:
    """The header's bytes before and after its number, which with the salt is all that differs between a run's links."""
    sample = layout.pack(Header(log.log_id, 0, run.epoch, run.writer, kind, bytes(16)))
    at = layout.SEQ_AT - len(layout.PRELUDE)
    return sample[:at], sample[at + 8 : -16]
