"""The evidence file: a whole log as JSON Lines, to be verified on a machine that has nothing else.

Job: lines from links and checkpoints, and back, strictly: exact keys, one way to write each line, nothing behind the
end, sizes capped. Must not know: what the links say, where the file lies.

    {"format":"pollconsole-audit/1","log":"<32 hex>","key":"pollconsole/<log>+<key id>+<base64>"}
    {"seq":1,"link":"<base64>","hash":"<base64>"}
    {"seq":1,"note":"<signed checkpoint>"}            behind the link that it is about
    {"end":{"links":1,"notes":1,"sha256":"<hex, of all bytes before this line>"}}

Source: spec A4.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec

from pollcore.chain.findings import MAX_LISTED, Fault, Verdict
from pollcore.chain.layout import MAX_LINK
from pollcore.chain.verify import Row

FORMAT: Final = "pollconsole-audit/1"
MAX_LINE: Final = MAX_LINK * 2
"""Bytes of one line."""


class First(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The head line."""

    format: str
    log: str
    key: str


class LinkLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One link, exactly as stored."""

    seq: int
    link: bytes
    hash: bytes


class NoteLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One checkpoint."""

    seq: int
    note: str


class Sum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the end line states."""

    links: int
    notes: int
    sha256: str


class EndLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last line."""

    end: Sum


def lines(first: First, rows: Iterable[Row], notes: Iterable[tuple[int, str]]) -> Iterator[bytes]:
    """The lines of an evidence file, each with its line feed; *notes* in the order of their numbers."""
    digest, links, count = hashlib.sha256(), 0, 0
    waiting = iter(notes)
    note = next(waiting, None)

    def line(content: msgspec.Struct) -> bytes:
        made = msgspec.json.encode(content) + b"\n"
        digest.update(made)
        return made

    yield line(first)
    for seq, link, stored in rows:
        links += 1
        yield line(LinkLine(seq, link, stored))
        while note is not None and note[0] <= seq:
            count += 1
            yield line(NoteLine(*note))
            note = next(waiting, None)
    while note is not None:
        count += 1
        yield line(NoteLine(*note))
        note = next(waiting, None)
    yield msgspec.json.encode(EndLine(Sum(links, count, digest.hexdigest()))) + b"\n"


class Reader:
    """Reads the links of an evidence file, and keeps what is wrong with the file itself. Used once."""

    first: First

    def __init__(self, source: Iterator[bytes]) -> None:
        """*source*: the file's lines, each with its line feed but perhaps the last; longer ones cut at MAX_LINE + 1.

        Raises ValueError: it does not begin as an evidence file.
        """
        self._source = source
        self._digest = hashlib.sha256()
        self._counted = [0, 0]
        self.ended = False
        self.faults: list[Fault] = []
        self._begin(next(source, b""))

    def _begin(self, head: bytes) -> None:
        self._digest.update(head)
        try:
            self.first = strictly(head, First)
        except ValueError:
            raise ValueError("not an evidence file of 'pollconsole audit export'") from None
        if self.first.format != FORMAT:
            raise ValueError(f"an evidence file of another format, {self.first.format[:40]!r}")

    def rows(self) -> Iterator[Row]:
        """The links, as the file has them; at its end, `faults` is complete."""
        for number, line in enumerate(self._source, 2):
            if self.ended:
                self._fault(Verdict.ALTERED, f"line {number}: bytes behind the end")
                return
            try:
                found = self._read(line)
            except ValueError:
                if not line.endswith(b"\n") and len(line) <= MAX_LINE:
                    self._fault(Verdict.TORN, f"line {number} is cut: the file was not written or copied to its end")
                    return
                self._fault(Verdict.ALTERED, f"line {number}: not as it is written")
                self._passed(line)
                continue
            if found is not None:
                yield found
        if not self.ended:
            self._fault(Verdict.TRUNCATED, "the file has no end line: lines are missing at its end")

    def _read(self, line: bytes) -> Row | None:
        """One line behind the head; the link that it holds. Raises ValueError: it is none that may stand here."""
        found = _line(line)
        if isinstance(found, EndLine):
            self.ended = True
            self._check_sum(found.end)
            return None
        self._digest.update(line)
        self._counted[isinstance(found, NoteLine)] += 1
        return (found.seq, found.link, found.hash) if isinstance(found, LinkLine) else None

    def _passed(self, line: bytes) -> None:
        """A line that is none still counts for the sum."""
        self._digest.update(line)

    def _check_sum(self, end: Sum) -> None:
        links, notes = self._counted
        if (end.links, end.notes) != (links, notes):
            text = f"the end line counts {end.links} links and {end.notes} checkpoints; there are {links} and {notes}"
            self._fault(Verdict.REORDERED, text)
        if end.sha256 != self._digest.hexdigest():
            self._fault(Verdict.ALTERED, "the end line's sum is not that of the lines before it")

    def _fault(self, kind: Verdict, text: str) -> None:
        if len(self.faults) < MAX_LISTED:
            self.faults.append(Fault(kind, None, text))


def notes_of(source: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """The checkpoints of an evidence file, by a pass of their own; what is no line of one is passed over."""
    for line in source:
        if b'"note":' in line[:40]:
            try:
                found = strictly(line, NoteLine)
            except ValueError:
                continue
            yield found.seq, found.note


L = TypeVar("L", bound=msgspec.Struct)


def _line(line: bytes) -> LinkLine | NoteLine | EndLine:
    if b'"link":' in line[:40]:
        return strictly(line, LinkLine)
    return strictly(line, NoteLine) if b'"note":' in line[:40] else strictly(line, EndLine)


@functools.cache
def _decoder(kind: type[L]) -> msgspec.json.Decoder[L]:
    return msgspec.json.Decoder(kind)


def strictly(line: bytes, kind: type[L]) -> L:
    """Raises ValueError: another shape, or not the one way to write it (this refuses doubled keys and loose base64)."""
    found: L = _decoder(kind).decode(line)
    if msgspec.json.encode(found) + b"\n" != line:
        raise ValueError("not written in the one way")
    return found
