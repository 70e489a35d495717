"""Checkpoints and heads kept elsewhere, held against the hashes of the chain as the pass reaches them.

Job: which link is under a checkpoint that holds, which one an anchor or an expected head confirms; what they
contradict. Must not know: how links are read or hashed. Source: spec A4, I19.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pollcore.chain.contents import Contents
from pollcore.chain.findings import Findings, Head, Verdict
from pollcore.chain.notes import is_signed_by, parse_note

_NEVER: Final = 1 << 64


class Confirmations:
    """Of one verification."""

    def __init__(
        self, findings: Findings, contents: Contents, heads: Sequence[Head], notes: Iterable[tuple[int, str]]
    ) -> None:
        """*notes*: number of the link and text, in the order of the numbers."""
        self._findings = findings
        self._contents = contents
        self._heads = sorted(heads, key=lambda head: head.seq)
        self._notes = iter(notes)
        self._note = next(self._notes, None)
        self.signed_to = self.known_to = self.held = 0

    def log_id(self, known: bytes | None) -> bytes | None:
        """Which log this ought to be: what was kept elsewhere says so, else its first checkpoint."""
        for head in self._heads:
            if head.log_id is not None:
                known = known or head.log_id
                if head.log_id != known:
                    text = f"{head.source} is of log {head.log_id.hex()}, not of {known.hex()}"
                    self._findings.fault(Verdict.OTHER_LOG, None, text)
        if known is None and self._note is not None:
            try:
                known = parse_note(self._note[1]).log_id
            except ValueError:
                pass  # told when its link comes
        return known

    def next_after(self, seq: int) -> int:
        """The next number, from *seq* on, at which something is to be confirmed."""
        note = self._note[0] if self._note is not None else _NEVER
        return min(note, min((head.seq for head in self._heads if head.seq >= seq), default=_NEVER))

    def _pull(self) -> None:
        self._note = next(self._notes, None)

    def skip(self, seq: int) -> None:
        """Checkpoints over links that are gone: told by the gap already."""
        while self._note is not None and self._note[0] < seq:
            self._pull()

    def confirm(self, seq: int, stored: bytes, log_id: bytes | None) -> None:
        """Hold link *seq* with the hash that is stored for it against whatever is known of it."""
        for head in self._heads:
            if head.seq == seq:
                if head.hash == stored:
                    self.known_to = seq
                else:
                    text = f"{head.source} knows this link with another hash: history up to here was rewritten"
                    self._findings.fault(Verdict.ALTERED, seq, text)
        while self._note is not None and self._note[0] <= seq:
            at, text = self._note
            wrong = "lies out of order" if at < seq else self._note_fault(seq, stored, text, log_id)
            if wrong is None and self._contents.epoch in self._contents.keys:
                self.signed_to = seq
                self.held += 1
            elif wrong is not None:
                self._findings.fault(Verdict.ALTERED, at, f"its checkpoint {wrong}")
            self._pull()

    def _note_fault(self, seq: int, stored: bytes, text: str, log_id: bytes | None) -> str | None:
        try:
            note = parse_note(text)
        except ValueError as error:
            return f"is {error}"
        if note.log_id != log_id:
            return f"is of another log, {note.log_id.hex()}"
        if (note.seq, note.epoch) != (seq, self._contents.epoch):
            return f"says link {note.seq} of epoch {note.epoch}; this is link {seq} of epoch {self._contents.epoch}"
        key = self._contents.keys.get(self._contents.epoch)
        if key is not None and not is_signed_by(note, key):
            return f"is not signed by the key of epoch {self._contents.epoch}"
        return None if note.head == stored else "names another hash: history up to here was rewritten"

    def beyond(self, last: int) -> list[tuple[int, str]]:
        """Who knows links after *last*: each head, the first and the last checkpoint that is left."""
        found = [(head.seq, head.source) for head in self._heads if head.seq > last]
        if self._note is not None:
            newest = max(self._notes, default=self._note)
            found += [(at, "a checkpoint") for at in sorted({self._note[0], newest[0]})]
        return found

    def knows(self, seq: int) -> bool:
        """Whether anybody confirmed link *seq* or a later one."""
        return self._note is not None or any(head.seq >= seq for head in self._heads)
