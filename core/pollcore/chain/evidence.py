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

import base64
import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pollcore.chain.findings import Fault, Verdict
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
    """Reads an evidence file in one pass: links come out of `rows`, checkpoints out of `notes`, in step.

    What is wrong with the file itself is in `faults` once `rows` is at its end.
    """

    def __init__(self, source: Iterator[bytes]) -> None:
        """*source*: the file's lines, each with its line feed but perhaps the last; longer ones cut at MAX_LINE + 1."""
        self._source = source
        self._digest = hashlib.sha256()
        self._links = self._notes = 0
        self._number = 0
        self._ended = False
        self._read: list[tuple[int, str]] = []
        self._peeked: LinkLine | None = None
        self.faults: list[Fault] = []
        self.first: First | None = self._first()

    def rows(self) -> Iterator[Row]:
        """The links, as the file has them."""
        while (found := self._link()) is not None:
            yield found.seq, found.link, found.hash

    def notes(self) -> Iterator[tuple[int, str]]:
        """The checkpoints; the next one is looked for as far as the next link, which is kept for `rows`."""
        while True:
            if not self._read and not self._ended:
                self._look_ahead()
            if self._read:
                yield self._read.pop(0)
            elif self._ended:
                return
            else:
                # none before the next link: a number beyond all, asked for again when links are used up
                yield NO_NOTE

    def _look_ahead(self) -> None:
        if self._peeked is None:
            self._peeked = self._next_link()

    def _link(self) -> LinkLine | None:
        found, self._peeked = self._peeked, None
        return found if found is not None else self._next_link()
