"""A log in parts: what was archived, and what the store still has, verified each alone or together.

Job: what a store says of its archives, an archive file as a source of links, several of them as one. Must not know:
what makes a chain whole, how an archive is made. Source: spec A3, A4, S7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import msgspec

from pollcore.adapters.user_files import open_plain
from pollcore.chain import archive, evidence
from pollcore.chain.findings import Archived, Fault, Findings, Report, Verdict
from pollcore.chain.layout import HASH
from pollcore.chain.lineage import Cut, inherit, statement
from pollcore.chain.notes import is_signature, key_text
from pollcore.chain.verify import Row, Start
from pollcore.facts import Refused, StoreUnusable

AUDIT_CUT: Final = ("audit", "cut")
"""The document that says where the links that are left go on (chain.lineage.Cut)."""
MAX_ARCHIVES: Final = 10_000
_NAMED: Final = (
    "SELECT no, at, path, bytes, sha256, after, last, operations, charges, hash, epoch, signature FROM archive "
    "ORDER BY no LIMIT ?"
)


def lines(file: Any) -> Iterator[bytes]:
    """The lines of an open file, longer ones cut at MAX_LINE + 1. Raises Refused: it cannot be read."""
    while True:
        try:
            line = file.readline(evidence.MAX_LINE + 1)
        except OSError as error:
            raise Refused(f"{file.name}: cannot be read: {error.strerror}", code="file") from None
        if not line:
            return
        yield line


def cut_of(conn: Any) -> Cut | None:
    """Where the links of a store go on; None: they begin at link 1. Raises ValueError: the record is damaged."""
    found = conn.execute("SELECT value FROM document WHERE kind=? AND name=?", AUDIT_CUT).fetchone()
    return None if found is None else decode_cut(bytes(found[0]))


class Documents(Protocol):
    """The part of the store that keeps small records."""

    async def document(self, kind: str, name: str) -> bytes | None: ...


async def cut_from(store: Documents) -> Cut | None:
    """As `cut_of`. Raises StoreUnusable: the record is damaged."""
    raw = await store.document(*AUDIT_CUT)
    try:
        return None if raw is None else decode_cut(raw)
    except (ValueError, msgspec.MsgspecError):
        raise StoreUnusable("the record of what was archived is damaged: run 'pollconsole audit verify'") from None


def decode_cut(raw: bytes) -> Cut:
    """Raises ValueError."""
    found = msgspec.json.decode(raw, type=Cut)
    if len(found.hash) != HASH:
        raise ValueError("its hash is not one")
    return found


class Part:
    """One archive file, read once from its beginning to its end."""

    def __init__(self, path: Path, source: Iterator[bytes]) -> None:
        """Raises ValueError: no archive file."""
        self.path = path
        self.reader = archive.Reader(source)
        self._cut: bytes | None = None
        """The hash of link `cut`, once it was read."""
        self._last = 0

    @property
    def after(self) -> int:
        """The link that its first one stands behind; 0: it begins the log."""
        return 0 if self.reader.first.after is None else self.reader.first.after.seq

    def start(self) -> Start | None:
        """None: its links begin at link 1."""
        first = self.reader.first
        if first.cut == self.after:
            return Start(first.cut, first.head, first.keys, may_be_empty=True)
        return None if first.after is None else Start(first.after.seq, first.after.hash, first.keys)

    def rows(self) -> Iterator[Row]:
        """Its links."""
        for row in self.reader.rows():
            if row[0] == self.reader.first.cut:
                self._cut = row[2]
            self._last = row[0]
            yield row

    def judged(self, report: Report, keys: Mapping[int, bytes], key: tuple[bytes, bytes] | None) -> list[Fault]:
        """What is wrong around its links, after they were read. *keys*: as the links themselves prove them."""
        first, faults = self.reader.first, list(self.reader.faults)
        found = Findings()
        inherited = inherit(first.keys, found, key)
        every = dict(keys)
        if inherited is not None and found.count == 0:
            every |= {epoch: sign for epoch, (_, sign, _) in enumerate(inherited.epochs)}
            told = key_text(inherited.log_id, inherited.begin.sign)
            if {told, report.key or told} != {first.key} or first.log != inherited.log_id.hex():
                faults.append(self._fault("its head line names another key or log than its first link"))
        elif report.verdict is Verdict.INTACT:
            faults += found.faults
        if first.cut > self.after and (self._cut != first.head or self._last not in (first.cut, first.cut + 1)):
            faults.append(self._fault(f"its head line says that it ends with link {first.cut:,}, its links do not"))
        signed = self.reader.signed()
        if signed is not None and not (signed[0] in every and is_signature(every[signed[0]], signed[2], signed[1])):
            faults.append(self._fault(f"it is not signed by the key of epoch {signed[0]}"))
        return faults

    @staticmethod
    def _fault(text: str) -> Fault:
        return Fault(Verdict.ALTERED, None, text)


class _Named(msgspec.Struct, frozen=True):
    """A row of `archive`."""

    told: Archived
    hash: bytes
    epoch: int
    signature: bytes


class Cuts:
    """The archives that a store names, and the files of them that were given."""

    def __init__(self, conn: Any, tables: set[str], paths: Sequence[Path]) -> None:
        """*paths*: the files, in any order. Raises Refused: one cannot be read, or is no archive."""
        self.faults: list[Fault] = []
        self._named: list[_Named] = []
        if "archive" in tables:
            for row in conn.execute(_NAMED, (MAX_ARCHIVES,)).fetchall():
                told = Archived(**dict(zip(("no", "at", "path", "size", "sha256", "after", "last", "operations",
                                            "charges"), row[:9], strict=True)))  # fmt: skip
                self._named.append(_Named(told, *row[9:]))
        self._cut: Cut | None = None
        try:
            self._cut = cut_of(conn)
        except (ValueError, msgspec.MsgspecError):
            self.faults.append(Fault(Verdict.ALTERED, None, "the record of what was archived is damaged"))
        self._files = [_opened(path) for path in paths]
        try:
            self._parts = sorted(
                (Part(path, lines(file)) for path, file in zip(paths, self._files, strict=True)),
                key=lambda part: part.after,
            )
        except ValueError as error:
            raise Refused(f"--archive: {error}", code="archive") from None

    @property
    def start(self) -> Start | None:
        """Where the verification begins."""
        linked = [part for part in self._parts if part.reader.first.cut > part.after]
        if linked:
            return linked[0].start()
        return None if self._cut is None else Start(self._cut.seq, self._cut.hash, self._cut.keys)

    def rows(self, own: Iterator[Row]) -> Iterator[Row]:
        """The links of all files, then those of the store. The link at which two parts meet is in both, the same."""
        last: Row | None = None
        for source in (*(part.rows() for part in self._parts), own):
            for row in source:
                if last is not None and row[0] == last[0]:
                    if (bytes(row[1]), bytes(row[2])) != (bytes(last[1]), bytes(last[2])):
                        text = f"two parts of the log meet at link {row[0]:,} and hold different ones"
                        self.faults.append(Fault(Verdict.ALTERED, row[0], text))
                    continue
                last = row
                yield row

    def notes(self, own: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """The checkpoints of all files, then those of the store."""
        last = 0
        for part in self._parts:
            with open_plain(part.path) as again:
                for seq, note in evidence.notes_of(lines(again)):
                    if seq > last:
                        last = seq
                        yield seq, note
        for seq, note in own:
            if seq > last or not self._parts:
                yield seq, note

    def judged(self, report: Report, keys: Mapping[int, bytes]) -> Report:
        """The report with the archives; each signature of the store's rows is held against the log's keys."""
        for file in self._files:
            file.close()
        log_id = bytes.fromhex(report.log) if report.log is not None else bytes(16)
        given = {part.reader.end.sha256: part for part in self._parts if part.reader.end is not None}
        told = []
        for one in self._named:
            said = one.told
            message = statement(log_id, said.after, said.last, one.hash, said.sha256)
            if report.links and not is_signature(keys.get(one.epoch, b""), one.signature, message):
                self._fault(f"the record of archive {said.no} is not signed by the key of epoch {one.epoch}")
            held = None if not self._parts else given.pop(said.sha256.hex(), None) is not None
            told.append(msgspec.structs.replace(said, held=held or None))
        for part in self._parts:
            self.faults += part.judged(report, keys, None)
        for left in given.values():
            self._fault(f"{left.path}: no archive that this store names")
        cuts = {one.told.last: one.hash for one in self._named}
        if self._cut is not None and cuts.get(self._cut.seq) != self._cut.hash:
            self._fault(f"no archive of this store ends with link {self._cut.seq:,}, behind which its links go on")
        remarks = (*report.remarks, *(one.text() for one in told))
        return msgspec.structs.replace(report, archives=tuple(told), remarks=remarks)

    def _fault(self, text: str) -> None:
        self.faults.append(Fault(Verdict.ALTERED, None, text))


def _opened(path: Path) -> BinaryIO:
    try:
        return open_plain(path)
    except FileNotFoundError:
        raise Refused(f"--archive {path}: there is no such file", code="file") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise Refused(f"--archive {path}: cannot be read: {why}", code="file") from None


def rest(
    text: tuple[str, str], cut: Cut, tip: tuple[int, bytes], rows: Iterator[Row], notes: Iterable[tuple[int, str]]
) -> Iterator[bytes]:
    """The lines of an evidence file of what a store still has.

    Args:
        text: Log id and verification key.
        tip: Number and hash of the last link.
    """
    last, head = tip
    first = archive.First(
        archive.FORMAT, *text, after=archive.After(cut.seq, cut.hash), cut=last, head=head, before=None,
        keys=cut.keys,
    )  # fmt: skip
    counted = archive.Counting()
    yield counted.add(archive.encode(first))
    for line in archive.body(rows, notes, ()):
        yield counted.add(archive.encode(line), type(line))
    end = archive.Sum(*counted.numbers(), counted.digest.hexdigest(), 0, b"")
    yield archive.encode(archive.EndLine(end))
