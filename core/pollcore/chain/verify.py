"""Is this log whole? Every link re-hashed from the stored bytes, every checkpoint and key against the keys before it.

Job: one pass over links in the order of their numbers, checkpoints beside them; all faults, memory flat in the length
of the log. Must not know: where links come from, any secret, any clock.
Source: spec A3, A4, I18, I19; the attack table that tests/audit goes through.

After a fault the stored hash is taken as what the next link is hashed behind, so one damage is one fault.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from pollcore.chain import control, layout
from pollcore.chain.findings import MAX_LISTED, ORDER, Fault, Head, Report, Verdict
from pollcore.chain.layout import CONTENT_AT, HASH, LENGTH_AT, RUN_AT, SALT_AT, Header, Kind
from pollcore.chain.notes import is_signature, is_signed_by, key_text, parse_note
from pollcore.chain.sealing import PAD

Row = tuple[int, bytes, bytes]
"""Number, bytes, hash: as stored, whatever is in them."""
PROGRESS_EVERY: Final = 4_096
MAX_REMARKS: Final = 100
MAX_RUNS: Final = 100_000
"""Runs whose keys are remembered; a log with more is told as one with a run unknown."""
_NEVER: Final = 1 << 64
_TAG: Final = 16
_BLANK: Final = bytes(HASH)


class Verifier:
    """One verification. `run` once, then `report`."""

    def __init__(
        self,
        *,
        key: tuple[bytes, bytes] | None = None,
        heads: Sequence[Head] = (),
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """*key*: log id and first verification key that were kept elsewhere. *heads*: what others remember."""
        self._key = key
        self._heads = sorted(heads, key=lambda head: head.seq)
        self._progress = progress
        self._faults: list[Fault] = []
        self._worst = Verdict.INTACT
        self._count = 0
        self._remarks: list[str] = []
        self._notes: Iterator[tuple[int, str]] = iter(())
        self._note: tuple[int, str] | None = None
        self._log_id: bytes | None = key[0] if key is not None else None
        self._begin: control.Begin | None = None
        self._keys: dict[int, bytes] = {}
        self._read_keys: dict[int, bytes] = {}
        self._runs: set[bytes] = set()
        """Epoch, writer, kind EVENT as they lie in a header."""
        self._epoch = 0
        self._next = 1
        self._prev: bytes | None = None
        """Hash of the link before; None: not known, because something was removed."""
        self._torn: tuple[int, bytes, bytes | None] | None = None
        self._signed_to = self._known_to = self._held = 0
        self._links = 0
        self._moved = False
        """The present row belongs elsewhere: its hash is not what the next one stands on."""
        self._unsure = False
        """Links that may have named runs or keys are gone or damaged: what follows is not blamed for it."""

    # --- the pass ---------------------------------------------------------------------------------------------------

    def run(self, rows: Iterable[Row], notes: Iterable[tuple[int, str]] = ()) -> Report:
        """Verify *rows* in the order given; *notes* (number of the link, text) in the order of their numbers."""
        if self._begin is not None or self._links:
            raise RuntimeError("a verifier runs once")
        self._notes = iter(notes)
        self._pull()
        self._know_log()
        sha, known, as_int = hashlib.sha256, self._runs, int.from_bytes
        lead, watch, links, tell, due, prev = b"", 0, 0, PROGRESS_EVERY, 1, b""
        for seq, blob, stored in rows:
            links += 1
            # the ordinary row: an event of a known run, behind the one before it
            if (
                seq == due
                and seq < watch
                and blob[:RUN_AT] == lead + seq.to_bytes(8, "big")
                and blob[RUN_AT:SALT_AT] in known
                and len(blob) == CONTENT_AT + as_int(blob[LENGTH_AT:CONTENT_AT], "big")
                and sha(blob + prev).digest() == stored
            ):
                prev = stored
                due = seq + 1
                continue
            if links >= tell and self._progress is not None:
                self._progress(links)
                tell = links + PROGRESS_EVERY
            if watch:
                self._prev, self._next = prev, due
            self._row(seq, bytes(blob), bytes(stored))
            due, prev = self._next, self._prev or b""
            # without a hash to stand on, or with a torn row to settle, nothing is ordinary
            watch = self._watch() if self._prev is not None and self._torn is None else 0
            lead = layout.LEAD + (self._log_id or b"")
        if watch:
            self._prev, self._next = prev, due
        self._links = links
        return self._finish()

    def _watch(self) -> int:
        """The next number at which there is more to do than to hash."""
        note = self._note[0] if self._note is not None else _NEVER
        head = min((head.seq for head in self._heads if head.seq >= self._next), default=_NEVER)
        return min(note, head, self._next + PROGRESS_EVERY)

    def _row(self, seq: int, blob: bytes, stored: bytes) -> None:
        """A row that is not ordinary: control, watched, or wrong."""
        torn, self._torn = self._torn, None
        if torn is not None and self._repairs(seq, blob, stored, torn):
            self._went_on(seq, stored)
            return
        if torn is not None:
            self._fault(Verdict.ALTERED, torn[0], "the row is cut short, and no repair of it follows")
            self._prev = None
        if seq != self._next:
            self._gap(seq)
        header = layout.header_of(blob)
        if self._is_torn(stored):
            # hashed behind it comes a repair, or nothing at all
            self._torn = (seq, blob, self._prev)
            self._next = seq + 1
            return
        if header is None or not layout.is_whole(blob) or len(stored) != HASH:
            self._fault(Verdict.ALTERED, seq, "the bytes are no link: damaged or replaced")
            self._unsure = True
        elif not self._is_foreign(seq, header, blob, stored):
            wrong = self._content(seq, header, blob)
            if self._prev is not None and layout.link_hash(blob, self._prev) != stored:
                # what it says is followed all the same, so that one fault does not become many
                self._unsure = self._unsure or header.kind not in layout.SEALED
                wrong = "the hash over its bytes is another: it, or the hash before it, was changed"
            if wrong is not None:
                self._fault(Verdict.ALTERED, seq, wrong)
        self._went_on(seq, stored)

    def _went_on(self, seq: int, stored: bytes) -> None:
        self._prev = stored if len(stored) == HASH and not self._moved else None
        self._moved = False
        self._next = seq + 1
        self._confirm(seq, stored)

    def _gap(self, seq: int) -> None:
        if seq < self._next:
            self._fault(Verdict.REORDERED, seq, f"number {seq} comes again or too late, {self._next} was due")
        else:
            last = f"{self._next} to {seq - 1} are" if seq - 1 > self._next else f"{self._next} is"
            self._fault(Verdict.REORDERED, self._next, f"{last} gone: {seq} follows")
            self._skip(seq)
        self._prev, self._unsure = None, True

    def _is_torn(self, stored: bytes) -> bool:
        """A write that a crash cut: the hash, written last, is not there. Whether it was the last row, the end says."""
        return len(stored) < HASH or stored == _BLANK

    def _is_foreign(self, seq: int, header: Header, blob: bytes, stored: bytes) -> bool:
        """Whether a whole link belongs elsewhere, or its log id or number was altered; told here."""
        if self._log_id is None:
            self._log_id = header.log_id
        if seq == 1:
            self._start(blob)
        if (header.log_id, header.seq) == (self._log_id, seq):
            return False
        as_it_was = layout.LEAD + self._log_id + seq.to_bytes(8, "big") + blob[RUN_AT:]
        if self._prev is not None and layout.link_hash(as_it_was, self._prev) == stored:
            self._fault(Verdict.ALTERED, seq, "its log id or number was changed")
            self._content(seq, header, blob)
        elif header.log_id != self._log_id:
            text = f"belongs to log {header.log_id.hex()}, not to {self._log_id.hex()}"
            self._fault(Verdict.OTHER_LOG, seq, text)
            if seq != 1:
                self._moved = True
                return True
            self._log_id = header.log_id  # the rest is judged as what it is
            self._start(blob)
            return False
        else:
            self._fault(Verdict.REORDERED, seq, f"holds link {header.seq}: rows were moved or renumbered")
            self._moved = self._unsure = True
        return True

    # --- contents ---------------------------------------------------------------------------------------------------

    def _start(self, blob: bytes) -> None:
        """The first link: the log's keys, and what it is hashed behind."""
        try:
            begin = control.decode(layout.content(blob), control.Begin)
        except ValueError:
            return  # `_content` tells
        self._begin, self._keys[0], self._read_keys[0] = begin, begin.sign, begin.read
        self._prev = layout.genesis(self._log_id or b"", begin.sign)
        if self._key is not None and begin.sign != self._key[1]:
            self._fault(Verdict.OTHER_LOG, 1, "begins with another verification key than the one given")
        if begin.events_before:
            self._remark(f"{begin.events_before:,} events were recorded before the chain began: nothing proves those")
        if begin.keys_in != "keyring":
            self._remark(f"its keys were made in a {begin.keys_in}: every program of that user can read them")

    def _content(self, seq: int, header: Header, blob: bytes) -> str | None:
        """What kind it is, and whether it may stand here; a sentence where it may not."""
        body = layout.content(blob)
        try:
            kind = Kind(header.kind)
        except ValueError:
            return f"is of an unknown kind {header.kind}"
        if (kind is Kind.BEGIN) != (seq == 1):
            return "a log begins at link 1, once"
        if kind is Kind.EPOCH:
            return self._rotated(seq, header, body)
        if header.epoch > self._epoch and self._unsure:
            self._epoch = header.epoch
        if header.epoch != self._epoch:
            return f"is of epoch {header.epoch}; the keys of epoch {self._epoch} are in force"
        return self._sealed(blob, body) if kind in layout.SEALED else self._clear(seq, kind, blob, body)

    def _sealed(self, blob: bytes, body: bytes) -> str | None:
        run = blob[RUN_AT : SALT_AT - 1] + bytes([Kind.EVENT])
        if run not in self._runs:
            if not self._unsure:
                return "was written by a run whose key is not in the log"
            self._runs.add(run)
        return None if len(body) % PAD == _TAG else "its content is not as long as sealed content is"

    def _clear(self, seq: int, kind: Kind, blob: bytes, body: bytes) -> str | None:
        if blob[layout.COMMIT_AT : LENGTH_AT] != layout.NO_COMMITMENT:
            return "is clear and names a key"
        try:
            if kind is Kind.BEGIN:
                control.decode(body, control.Begin)
            elif kind is Kind.RUN:
                read = self._read_keys.get(self._epoch)
                if control.decode(body, control.Run).read != read and read is not None:
                    return "seals a run's key to a public key that is not this log's"
                if len(self._runs) < MAX_RUNS:
                    self._runs.add(blob[RUN_AT : SALT_AT - 1] + bytes([Kind.EVENT]))
            elif kind is Kind.LOSS:
                told = control.decode(body, control.Loss)
                self._remark(f"link {seq}: an operator went on without links up to {told.seq}: {told.because[:200]}")
            else:
                return "repairs a row that is not there"
        except ValueError as error:
            return f"its content cannot be read: {str(error)[:200]}"
        return None

    def _rotated(self, seq: int, header: Header, body: bytes) -> str | None:
        try:
            new = control.decode(body, control.Epoch)
        except ValueError as error:
            return f"new keys that cannot be read: {str(error)[:200]}"
        if header.epoch != self._epoch + 1 and not (self._unsure and header.epoch > self._epoch):
            return f"keys of epoch {header.epoch} follow those of epoch {self._epoch}"
        before, old = self._prev or b"", self._keys.get(self._epoch)
        message = control.epoch_message(header.log_id, seq, before, header.epoch, new.sign, new.read)
        self._epoch = header.epoch
        self._keys[self._epoch], self._read_keys[self._epoch] = new.sign, new.read
        self._runs.clear()
        if old is None:
            return None  # they are gone, and that was told
        return None if is_signature(old, new.signature, message) else "new keys that the old ones did not sign"

    def _repairs(self, seq: int, blob: bytes, stored: bytes, torn: tuple[int, bytes, bytes | None]) -> bool:
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
            and (header.log_id, header.seq, header.epoch) == (self._log_id, seq, self._epoch)
            and (told.torn, told.size, told.sha256) == (number, len(left), hashlib.sha256(left).digest())
            and layout.link_hash(blob, before) == stored
        )
        if sound:
            self._remark(f"link {number} was torn by a crash; link {seq} records its repair")
        return sound

    # --- checkpoints and heads --------------------------------------------------------------------------------------

    def _pull(self) -> None:
        self._note = next(self._notes, None)

    def _skip(self, seq: int) -> None:
        """Checkpoints over links that are gone: told by the gap already."""
        while self._note is not None and self._note[0] < seq:
            self._pull()

    def _confirm(self, seq: int, stored: bytes) -> None:
        for head in self._heads:
            if head.seq == seq:
                if head.hash == stored:
                    self._known_to = seq
                else:
                    text = f"{head.source} knows this link with another hash: history up to here was rewritten"
                    self._fault(Verdict.ALTERED, seq, text)
        while self._note is not None and self._note[0] <= seq:
            at, text = self._note
            wrong = "lies out of order" if at < seq else self._note_fault(seq, stored, text)
            if wrong is None and self._epoch in self._keys:
                self._signed_to = seq
                self._held += 1
            elif wrong is not None:
                self._fault(Verdict.ALTERED, at, f"its checkpoint {wrong}")
            self._pull()

    def _note_fault(self, seq: int, stored: bytes, text: str) -> str | None:
        try:
            note = parse_note(text)
        except ValueError as error:
            return f"is {error}"
        if note.log_id != self._log_id:
            return f"is of another log, {note.log_id.hex()}"
        if (note.seq, note.epoch) != (seq, self._epoch):
            return f"says link {note.seq} of epoch {note.epoch}; this is link {seq} of epoch {self._epoch}"
        key = self._keys.get(self._epoch)
        if key is not None and not is_signed_by(note, key):
            return f"is not signed by the key of epoch {self._epoch}"
        return None if note.head == stored else "names another hash: history up to here was rewritten"

    def _know_log(self) -> None:
        """Which log this ought to be: what was kept elsewhere says so, else its first checkpoint."""
        for head in self._heads:
            if head.log_id is not None:
                self._log_id = self._log_id or head.log_id
                if head.log_id != self._log_id:
                    text = f"{head.source} is of log {head.log_id.hex()}, not of {self._log_id.hex()}"
                    self._fault(Verdict.OTHER_LOG, None, text)
        if self._log_id is None and self._note is not None:
            try:
                self._log_id = parse_note(self._note[1]).log_id
            except ValueError:
                pass  # told when its link comes

    # --- the end ----------------------------------------------------------------------------------------------------

    def _finish(self) -> Report:
        last = self._next - 1
        if self._links == 0:
            self._fault(Verdict.MISSING, None, "there is no chain: no link at all")
        elif self._begin is None and self._count == 0:
            self._fault(Verdict.ALTERED, 1, "the first link is not the beginning of a log")
        beyond = [(head.seq, head.source) for head in self._heads if head.seq > last]
        signed = [] if self._note is None else [(at, "a checkpoint") for at, _ in (self._note, *self._notes)]
        if self._torn is not None:
            self._end_torn(self._torn[0], any(head.seq >= self._torn[0] for head in self._heads) or bool(signed))
        if self._links:
            for at, who in (*beyond, *signed[:1], *signed[-1:][len(signed) < 2 :]):
                if self._torn is None or at != self._torn[0]:
                    self._fault(Verdict.TRUNCATED, at, f"{who} knows link {at}, the log ends at {last}")
        covered = max(self._signed_to, self._known_to)
        if self._links and covered < last and self._worst is Verdict.INTACT:
            text = f"{last - covered:,} links after {covered} are under no checkpoint and no anchor yet"
            self._fault(Verdict.TAIL, last, text)
        return self._report()

    def _end_torn(self, seq: int, confirmed: bool) -> None:
        if confirmed:
            self._fault(Verdict.ALTERED, seq, "the last row is cut short, although it was confirmed as whole")
        else:
            self._fault(Verdict.TORN, seq, "the last row was cut by a crash; the next writer records its repair")

    def _report(self) -> Report:
        begin, log_id = self._begin, self._log_id
        head = self._prev if self._torn is None else self._torn[2]
        return Report(
            verdict=self._worst,
            faults=tuple(self._faults),
            fault_count=self._count,
            log=log_id.hex() if log_id is not None else None,
            key=key_text(log_id, begin.sign) if log_id is not None and begin is not None else None,
            key_compared=self._key is not None and begin is not None and begin.sign == self._key[1],
            keys_in=begin.keys_in if begin is not None else None,
            links=self._links,
            head=head if self._links else None,
            epoch=self._epoch,
            notes=self._held,
            signed_to=self._signed_to,
            known_to=self._known_to,
            remarks=tuple(self._remarks),
        )

    def _fault(self, kind: Verdict, seq: int | None, text: str) -> None:
        self._count += 1
        if ORDER.index(kind) < ORDER.index(self._worst):
            self._worst = kind
        if len(self._faults) < MAX_LISTED:
            self._faults.append(Fault(kind, seq, text))

    def _remark(self, text: str) -> None:
        if len(self._remarks) < MAX_REMARKS:
            self._remarks.append(text)
