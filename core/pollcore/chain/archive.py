"""The archive file: the beginning of a log, or a part that follows, and the records that went out of the store with it.

Job: lines from links, checkpoints and records, and back, as strictly as the evidence file; the sum and the signature at
its end. Must not know: what the records mean, SQL, where the file lies.

    {"format":"pollconsole-archive/1","log":...,"key":...,"after":{"seq","hash"} or null,"cut":N,"head":"<hash of N>",
     "before":T or null,"keys":{"begin","note","epochs":[{"before","link","note"}]}}
    {"seq","link","hash"} and {"seq","note"}          links after `after`, up to the one behind `cut`, as in evidence
    {"operation","provider","account","job","status","sends"}, behind it its {"op","n","charge","seen"} in order
    {"event","op","told"}                             clear rows of the story whose links are above
    {"end":{"links","notes","operations","charges","events","sha256","epoch","signature"}}

Source: spec A4, S7; docs/audit.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pollcore.chain import evidence
from pollcore.chain.evidence import LinkLine, NoteLine
from pollcore.chain.findings import Verdict
from pollcore.chain.lineage import Lineage, statement
from pollcore.chain.verify import Row
from pollcore.facts import AuditEvent

FORMAT: Final = "pollconsole-archive/1"


class After(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The link that the first one of the file stands behind."""

    seq: int
    hash: bytes


class First(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The head line."""

    format: str
    log: str
    key: str
    after: After | None
    cut: int
    """The last link that left the store; the file holds one more, whose keys sign for those before it."""
    head: bytes
    """The hash of link *cut*."""
    before: int | None
    """Operations that ended before this instant, ms; None: nothing but links is in the file."""
    keys: Lineage
    """All keys of the log when the file was written."""


class OperationLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operation whose requests follow. Its record stays in the store."""

    operation: str
    provider: str
    account: str
    job: str
    status: str
    sends: int


class Charge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One counted request: the intent, and what was sent where."""

    id: int
    request: int
    step: str
    epoch: int
    at: int
    boot: int
    boot_id: str | None
    provider: str | None
    origin: str | None
    method: str | None
    owner: str | None


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The observation of its answer; *envelope* and *body* stay sealed."""

    answered_at: int
    http_code: int | None
    fault: str | None
    state: str | None
    verdict: str
    decision: str
    draw: float | None
    envelope: bytes | None
    body: bytes | None


class ChargeLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Request *n* of an operation; *seen* None: its answer was never recorded."""

    op: str
    n: int
    charge: Charge
    seen: Seen | None


class EventLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One clear row of the story."""

    event: int
    op: str | None
    told: AuditEvent


class Sum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the end line states."""

    links: int
    notes: int
    operations: int
    charges: int
    events: int
    sha256: str
    epoch: int
    """Whose key signed; *signature* empty: none was at hand, which only a file without records may be."""
    signature: bytes


class EndLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last line."""

    end: Sum


Line = LinkLine | NoteLine | OperationLine | ChargeLine | EventLine | EndLine
Record = OperationLine | ChargeLine | EventLine
_KINDS: Final[tuple[tuple[bytes, type[msgspec.Struct]], ...]] = (
    (b'"link":', LinkLine),
    (b'"note":', NoteLine),
    (b'{"operation":', OperationLine),
    (b'{"op":', ChargeLine),
    (b'{"event":', EventLine),
    (b'{"end":', EndLine),
)
_COUNTED: Final = (LinkLine, NoteLine, OperationLine, ChargeLine, EventLine)


def encode(line: msgspec.Struct) -> bytes:
    """One line, with its line feed."""
    return msgspec.json.encode(line) + b"\n"


def body(rows: Iterable[Row], notes: Iterable[tuple[int, str]], records: Iterable[Record]) -> Iterator[msgspec.Struct]:
    """The lines between head and end; *notes* in the order of their numbers."""
    waiting = iter(notes)
    note = next(waiting, None)
    for seq, link, stored in rows:
        yield LinkLine(seq, link, stored)
        while note is not None and note[0] <= seq:
            yield NoteLine(*note)
            note = next(waiting, None)
    yield from records


class Counting:
    """Counts and sums up lines as they go out or come in."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.counts: dict[type[msgspec.Struct], int] = dict.fromkeys(_COUNTED, 0)
        self.size = 0

    def add(self, line: bytes, kind: type[msgspec.Struct] | None = None) -> bytes:
        """Take one line into the sum; returns it."""
        self.digest.update(line)
        self.size += len(line)
        if kind in self.counts:
            self.counts[kind] += 1
        return line

    def numbers(self) -> tuple[int, int, int, int, int]:
        """Links, notes, operations, charges, events."""
        links, notes, operations, charges, events = (self.counts[kind] for kind in _COUNTED)
        return links, notes, operations, charges, events


class Reader(evidence.Reader):
    """Reads the links of an archive file, and keeps what is wrong with the file itself. Used once."""

    first: First  # type: ignore[assignment]

    def __init__(self, source: Iterator[bytes]) -> None:
        """As evidence.Reader. Raises ValueError: it does not begin as an archive file."""
        self.records: list[OperationLine] = []
        """The operations, without their requests."""
        self.end: Sum | None = None
        self._sum = Counting()
        super().__init__(source)

    def _begin(self, head: bytes) -> None:
        try:
            self.first = strictly(head, First)
        except ValueError:
            raise ValueError("not an archive file of 'pollconsole archive'") from None
        if self.first.format != FORMAT:
            raise ValueError(f"an archive file of another format, {self.first.format[:40]!r}")
        self._sum.add(head)

    def _read(self, line: bytes) -> Row | None:
        found = parse(line)
        if isinstance(found, EndLine):
            self.ended = True
            self.end = found.end
            self._check(found.end)
            return None
        self._sum.add(line, type(found))
        if isinstance(found, OperationLine):
            self.records.append(found)
        return (found.seq, found.link, found.hash) if isinstance(found, LinkLine) else None

    def _passed(self, line: bytes) -> None:
        self._sum.add(line)

    def _check(self, end: Sum) -> None:
        told = (end.links, end.notes, end.operations, end.charges, end.events)
        if told != self._sum.numbers():
            self._fault(Verdict.REORDERED, f"the end line counts {told}; there are {self._sum.numbers()}")
        if end.sha256 != self._sum.digest.hexdigest():
            self._fault(Verdict.ALTERED, "the end line's sum is not that of the lines before it")
        if not end.signature and (end.operations or end.charges or end.events):
            self._fault(Verdict.ALTERED, "its records are under no signature")

    def signed(self) -> tuple[int, bytes, bytes] | None:
        """Epoch of the key, message and signature of the end line, read by then; None: there is none."""
        end, first = self.end, self.first
        if end is None or not end.signature:
            return None
        after = 0 if first.after is None else first.after.seq
        message = statement(bytes.fromhex(first.log), after, first.cut, first.head, bytes.fromhex(end.sha256))
        return end.epoch, message, end.signature


def parse(line: bytes) -> Line:
    """Raises ValueError: no line of an archive, or not the one way to write it."""
    for mark, kind in _KINDS:
        if mark in line[:40]:
            return strictly(line, kind)  # type: ignore[return-value]
    raise ValueError("no line of an archive file")


strictly = evidence.strictly
"""Decode one line as one kind; ValueError: another shape, or not the one way to write it."""
