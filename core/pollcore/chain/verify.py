"""Is this log whole? Every link re-hashed from the stored bytes, every checkpoint and key against the keys before it.

Job: one pass over links in the order of their numbers, checkpoints beside them; all faults, memory flat in the length
of the log. Must not know: where links come from, any secret, any clock.
Source: spec A3, A4, I18, I19; the attack table that tests/audit goes through.

After a fault the stored hash is taken as what the next link is hashed behind, so one damage is one fault.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from pollcore.chain import layout
from pollcore.chain.confirm import Confirmations
from pollcore.chain.contents import Contents, Torn
from pollcore.chain.findings import Findings, Head, Report, Verdict
from pollcore.chain.layout import CONTENT_AT, HASH, LENGTH_AT, RUN_AT, SALT_AT, Header
from pollcore.chain.lineage import Lineage, inherit
from pollcore.chain.notes import key_text
from pollcore.chain.sealing import PAD

Row = tuple[int, bytes, bytes]
"""Number, bytes, hash: as stored, whatever is in them."""
PROGRESS_EVERY: Final = 4_096
PADDED: Final = (CONTENT_AT + 16) % PAD
"""What is left of a sealed link's length: content and tag lie behind CONTENT_AT bytes."""
_BLANK: Final = bytes(HASH)


class Start(msgspec.Struct, frozen=True):
    """Where a part of a log begins: behind link *seq*, whose hash was *hash*, with the keys that *keys* prove."""

    seq: int
    hash: bytes
    keys: Lineage
    may_be_empty: bool = False
    """No link at all is no fault: an archive of records alone."""


class Verifier:
    """One verification. `run` once, then `report`."""

    def __init__(
        self,
        *,
        key: tuple[bytes, bytes] | None = None,
        heads: Sequence[Head] = (),
        progress: Callable[[int], None] | None = None,
        start: Start | None = None,
    ) -> None:
        """*key*: log id and first verification key that were kept elsewhere. *heads*: what others remember.

        *start*: the rows do not begin at link 1.
        """
        self._key = key
        self._start = start
        self._heads = heads
        self._progress = progress
        self._found = Findings()
        self._contents = Contents(self._found, key)
        self._confirmed = Confirmations(self._found, self._contents, heads, ())
        self._log_id: bytes | None = key[0] if key is not None else None
        self._next = 1
        self._prev: bytes | None = None
        """Hash of the link before; None: not known, because something was removed."""
        self._torn: Torn | None = None
        self._links = 0
        self._moved = False
        """The present row belongs elsewhere: its hash is not what the next one stands on."""

    # --- the pass ---------------------------------------------------------------------------------------------------

    def run(self, rows: Iterable[Row], notes: Iterable[tuple[int, str]] = ()) -> Report:
        """Verify *rows* in the order given; *notes* (number of the link, text) in the order of their numbers."""
        self._confirmed = Confirmations(self._found, self._contents, self._heads, notes)
        self._resume()
        self._log_id = self._confirmed.log_id(self._log_id)
        sha, known, as_int = hashlib.sha256, self._contents.runs, int.from_bytes
        lead, watch, links, tell, due, prev = b"", 0, 0, PROGRESS_EVERY, self._next, b""
        for seq, blob, stored in rows:
            links += 1
            # the ordinary row: an event of a known run, behind the one before it
            if (
                seq == due
                and seq < watch
                and blob[:RUN_AT] == lead + seq.to_bytes(8, "big")
                and blob[RUN_AT:SALT_AT] in known
                and len(blob) % PAD == PADDED
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
            ordinary = self._prev is not None and self._torn is None
            watch = min(self._confirmed.next_after(due), due + PROGRESS_EVERY) if ordinary else 0
            lead = layout.LEAD + (self._log_id or b"")
        if watch:
            self._prev, self._next = prev, due
        self._links = links
        return self._finish()

    @property
    def keys(self) -> dict[int, bytes]:
        """The verification keys by epoch, as far as they are proved; complete after `run`."""
        return self._contents.keys

    def _resume(self) -> None:
        """Take over where the part begins; heads before it cannot be held against anything here."""
        start = self._start
        if start is None:
            return
        found = inherit(start.keys, self._found, self._key)
        if found is not None:
            self._contents.resume(found, start.seq)
            self._log_id = self._log_id or found.log_id
        self._prev, self._next = start.hash, start.seq + 1
        for head in self._heads:
            if head.seq == start.seq:
                self._confirmed.confirm(start.seq, start.hash, self._log_id)
            elif head.seq < start.seq:
                self._found.remark(
                    f"{head.source} knows link {head.seq:,}, which was archived: hold it against the archive's file"
                )

    def _row(self, seq: int, blob: bytes, stored: bytes) -> None:
        """A row that is not ordinary: control, watched, or wrong."""
        torn, self._torn = self._torn, None
        if torn is not None and self._contents.repairs(seq, blob, stored, torn, self._log_id):
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
            self._contents.unsure = True
        elif not self._is_foreign(seq, header, blob, stored):
            wrong = self._contents.judge(seq, header, blob, self._prev)
            if self._prev is not None and layout.link_hash(blob, self._prev) != stored:
                # what it says is followed all the same, so that one fault does not become many
                if header.kind not in layout.SEALED:
                    self._contents.distrust(header.kind)
                wrong = "the hash over its bytes is another: it, or the hash before it, was changed"
            if wrong is not None:
                self._fault(Verdict.ALTERED, seq, wrong)
        self._went_on(seq, stored)

    def _went_on(self, seq: int, stored: bytes) -> None:
        self._prev = stored if len(stored) == HASH and not self._moved else None
        self._moved = False
        self._next = seq + 1
        self._confirmed.confirm(seq, stored, self._log_id)

    def _gap(self, seq: int) -> None:
        if seq < self._next:
            self._fault(Verdict.REORDERED, seq, f"number {seq} comes again or too late, {self._next} was due")
        else:
            last = f"{self._next} to {seq - 1} are" if seq - 1 > self._next else f"{self._next} is"
            self._fault(Verdict.REORDERED, self._next, f"{last} gone: {seq} follows")
            self._confirmed.skip(seq)
        self._prev, self._contents.unsure = None, True

    def _is_torn(self, stored: bytes) -> bool:
        """A write that a crash cut: the hash, written last, is not there. Whether it was the last row, the end says."""
        return len(stored) < HASH or stored == _BLANK

    def _is_foreign(self, seq: int, header: Header, blob: bytes, stored: bytes) -> bool:
        """Whether a whole link belongs elsewhere, or its log id or number was altered; told here."""
        if self._log_id is None:
            self._log_id = header.log_id
        if seq == 1:
            self._prev = self._contents.start(blob, stored, self._log_id)
        if (header.log_id, header.seq) == (self._log_id, seq):
            return False
        as_it_was = layout.LEAD + self._log_id + seq.to_bytes(8, "big") + blob[RUN_AT:]
        if self._prev is not None and layout.link_hash(as_it_was, self._prev) == stored:
            self._fault(Verdict.ALTERED, seq, "its log id or number was changed")
            self._contents.judge(seq, header, blob, self._prev)
        elif header.log_id != self._log_id:
            text = f"belongs to log {header.log_id.hex()}, not to {self._log_id.hex()}"
            self._fault(Verdict.OTHER_LOG, seq, text)
            if seq != 1:
                self._moved = True
                return True
            self._log_id = header.log_id  # the rest is judged as what it is
            self._prev = self._contents.start(blob, stored, self._log_id)
            return False
        else:
            self._fault(Verdict.REORDERED, seq, f"holds link {header.seq}: rows were moved or renumbered")
            self._moved = self._contents.unsure = True
        return True

    # --- the end ----------------------------------------------------------------------------------------------------

    def _finish(self) -> Report:
        last = self._next - 1
        if self._links == 0 and self._start is not None and self._start.may_be_empty:
            return self._report()
        if self._links == 0:
            self._fault(Verdict.MISSING, None, "there is no chain: no link at all")
        elif self._contents.begin is None and self._found.count == 0:
            self._fault(Verdict.ALTERED, 1, "the first link is not the beginning of a log")
        if self._torn is not None:
            self._end_torn(self._torn[0], self._confirmed.knows(self._torn[0]))
        for at, who in self._confirmed.beyond(last) if self._links else ():
            if self._torn is None or at != self._torn[0]:
                self._fault(Verdict.TRUNCATED, at, f"{who} knows link {at}, the log ends at {last}")
        covered = max(self._confirmed.signed_to, self._confirmed.known_to)
        if self._links and covered < last and self._found.worst is Verdict.INTACT:
            text = f"{last - covered:,} links after {covered} are under no checkpoint and no anchor yet"
            self._fault(Verdict.TAIL, last, text)
        return self._report()

    def _end_torn(self, seq: int, confirmed: bool) -> None:
        if confirmed:
            self._fault(Verdict.ALTERED, seq, "the last row is cut short, although it was confirmed as whole")
        else:
            self._fault(Verdict.TORN, seq, "the last row was cut by a crash; the next writer records its repair")

    def _report(self) -> Report:
        begin, log_id = self._contents.begin, self._log_id
        head = self._prev if self._torn is None else self._torn[2]
        return Report(
            verdict=self._found.worst,
            faults=tuple(self._found.faults),
            fault_count=self._found.count,
            log=log_id.hex() if log_id is not None else None,
            key=key_text(log_id, begin.sign) if log_id is not None and begin is not None else None,
            key_compared=self._key is not None and begin is not None and begin.sign == self._key[1],
            keys_in=begin.keys_in if begin is not None else None,
            links=self._links,
            first=self._start.seq + 1 if self._start is not None else 1,
            last=(self._next - 1 if self._torn is None else self._torn[0] - 1) if self._links else 0,
            head=head if self._links else None,
            epoch=self._contents.epoch,
            notes=self._confirmed.held,
            signed_to=self._confirmed.signed_to,
            known_to=self._confirmed.known_to,
            remarks=tuple(self._found.remarks),
        )

    def _fault(self, kind: Verdict, seq: int | None, text: str) -> None:
        self._found.fault(kind, seq, text)
