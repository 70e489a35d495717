"""What links may say, and where: keys and runs as the chain itself hands them on.

Job: follow beginning, runs, epochs and repairs of one log; say what a link may not say where it stands. Must not know:
hashes between links but where a repair or a new key rests on one, checkpoints, where links come from.
Source: spec A4, I18.
"""

from __future__ import annotations

import hashlib
from typing import Final

from pollcore.chain import control, layout
from pollcore.chain.findings import Findings, Verdict
from pollcore.chain.layout import LENGTH_AT, RUN_AT, SALT_AT, Header, Kind
from pollcore.chain.lineage import Inherited
from pollcore.chain.notes import is_signature
from pollcore.chain.sealing import PAD

MAX_RUNS: Final = 100_000
"""Runs of one epoch whose keys are remembered; links of a further one are told as of an unknown run."""
_TAG: Final = 16
Torn = tuple[int, bytes, bytes | None]
"""Number, what is left of the bytes, hash before it: of a row that a crash cut."""


class Contents:
    """The keys in force at the link that was judged last."""

    def __init__(self, findings: Findings, key: tuple[bytes, bytes] | None) -> None:
        """*key*: log id and first verification key that were kept elsewhere."""
        self._findings = findings
        self._key = key
        self.begin: control.Begin | None = None
        self.epoch = 0
        self.keys: dict[int, bytes] = {}
        """Verification keys by epoch."""
        self._read_keys: dict[int, bytes] = {}
        self.runs: set[bytes] = set()
        """Epoch, writer, kind EVENT as they lie in a header: the runs of this epoch."""
        self._proved = False
        """The keys in force were signed by those before them."""
        self.unsure = False
        """Links that may have named runs or keys are gone or damaged: what follows is not blamed for it."""

    def start(self, blob: bytes, stored: bytes, log_id: bytes) -> bytes | None:
        """The first link: takes over the log's keys; returns what it is hashed behind, None if it cannot be read."""
        try:
            begin = control.decode(layout.content(blob), control.Begin)
        except ValueError:
            return None  # `judge` tells
        self.begin, self.keys[0], self._read_keys[0] = begin, begin.sign, begin.read
        own = layout.genesis(log_id, begin.sign)
        if self._key is not None and begin.sign != self._key[1]:
            if layout.link_hash(blob, own) != stored:  # its bytes changed; the log is the one that was meant
                self.keys[0] = self._key[1]
                return layout.genesis(log_id, self._key[1])
            self._findings.fault(Verdict.OTHER_LOG, 1, "begins with another verification key than the one given")
        self._remark(begin)
        return own

    def _remark(self, begin: control.Begin) -> None:
        if begin.events_before:
            self._findings.remark(
                f"{begin.events_before:,} events were recorded before the chain began: nothing proves those"
            )
        if begin.keys_in != "keyring":
            self._findings.remark(f"its keys were made in a {begin.keys_in}: every program of that user can read them")

    def resume(self, found: Inherited, seq: int) -> None:
        """Go on behind link *seq* with the keys that were in force there; the links before it are not at hand."""
        self.begin = found.begin
        for epoch, (first, sign, read) in enumerate(found.epochs):
            self.keys[epoch] = sign
            if first <= seq:
                self.epoch, self._read_keys[epoch] = epoch, read
        self._remark(found.begin)

    def distrust(self, kind: int) -> None:
        """The hash of a clear link is wrong: keys that it hands on are unknown, and nobody is blamed by them."""
        self.unsure = True
        if kind == Kind.EPOCH and not self._proved:
            self.keys.pop(self.epoch, None)
            self._read_keys.pop(self.epoch, None)
        elif kind == Kind.BEGIN:
            self._read_keys.pop(0, None)
            if self._key is None or self.keys.get(0) != self._key[1]:
                self.keys.pop(0, None)

    def judge(self, seq: int, header: Header, blob: bytes, before: bytes | None) -> str | None:
        """What kind it is, and whether it may stand here; a sentence where it may not."""
        body = layout.content(blob)
        try:
            kind = Kind(header.kind)
        except ValueError:
            return f"is of an unknown kind {header.kind}"
        if (kind is Kind.BEGIN) != (seq == 1):
            return "a log begins at link 1, once"
        if kind is Kind.EPOCH:
            return self._rotated(seq, header, body, before)
        if header.epoch > self.epoch and self.unsure:
            self.epoch = header.epoch
        if header.epoch != self.epoch:
            return f"is of epoch {header.epoch}; the keys of epoch {self.epoch} are in force"
        return self._sealed(blob, body) if kind in layout.SEALED else self._clear(seq, kind, blob, body)

    def _sealed(self, blob: bytes, body: bytes) -> str | None:
        run = blob[RUN_AT : SALT_AT - 1] + bytes([Kind.EVENT])
        if run not in self.runs:
            if not self.unsure:
                return "was written by a run whose key is not in the log"
            self.runs.add(run)
        return None if len(body) % PAD == _TAG else "its content is not as long as sealed content is"

    def _clear(self, seq: int, kind: Kind, blob: bytes, body: bytes) -> str | None:
        if blob[layout.COMMIT_AT : LENGTH_AT] != layout.NO_COMMITMENT:
            return "is clear and names a key"
        try:
            if kind is Kind.BEGIN:
                control.decode(body, control.Begin)
            elif kind is Kind.RUN:
                read = self._read_keys.get(self.epoch)
                if control.decode(body, control.Run).read != read and read is not None:
                    return "seals a run's key to a public key that is not this log's"
                if len(self.runs) < MAX_RUNS:
                    self.runs.add(blob[RUN_AT : SALT_AT - 1] + bytes([Kind.EVENT]))
            elif kind is Kind.LOSS:
                told = control.decode(body, control.Loss)
                self._findings.remark(
                    f"link {seq}: an operator went on without links up to {told.seq}: {told.because[:200]}"
                )
            else:
                return "repairs a row that is not there"
        except ValueError as error:
            return f"its content cannot be read: {str(error)[:200]}"
        return None

    def _rotated(self, seq: int, header: Header, body: bytes, before: bytes | None) -> str | None:
        try:
            new = control.decode(body, control.Epoch)
        except ValueError as error:
            return f"new keys that cannot be read: {str(error)[:200]}"
        if header.epoch != self.epoch + 1 and not (self.unsure and header.epoch > self.epoch):
            return f"keys of epoch {header.epoch} follow those of epoch {self.epoch}"
        old = self.keys.get(self.epoch)
        message = control.epoch_message(header.log_id, seq, before or b"", header.epoch, new.sign, new.read)
        self.epoch = header.epoch
        self.keys[self.epoch], self._read_keys[self.epoch] = new.sign, new.read
        self.runs.clear()
        if old is None or before is None:
            return None  # what they would be held against is gone, and that was told
        self._proved = is_signature(old, new.signature, message)
        return None if self._proved else "new keys that the old ones did not sign"

    def repairs(self, seq: int, blob: bytes, stored: bytes, torn: Torn, log_id: bytes | None) -> bool:
        """Whether this link is the record of the torn row before it, hashed behind the link before that."""
        header = layout.header_of(blob)
        number, left, before = torn
        if header is None or header.kind != Kind.REPAIR or seq != number + 1 or before is None:
            return False
        try:
            told = control.decode(layout.content(blob), control.Repair)
        except ValueError:
            return False
        sound = (
            layout.is_whole(blob)
            and (header.log_id, header.seq, header.epoch) == (log_id, seq, self.epoch)
            and (told.torn, told.size, told.sha256) == (number, len(left), hashlib.sha256(left).digest())
            and layout.link_hash(blob, before) == stored
        )
        if sound:
            self._findings.remark(f"link {number} was torn by a crash; link {seq} records its repair")
        return sound
