"""The keys of a log as they were handed on, without the links between: what is left where its beginning was archived.

Job: link 1 and the epoch links, each with the hash before it, and the proof that each key signed the next one; the
statement that a key signs over an archive. Must not know: where they are kept, files.
Source: spec A3, A4; docs/audit.md.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.chain import control, layout
from pollcore.chain.findings import Findings, Verdict
from pollcore.chain.layout import Kind
from pollcore.chain.notes import is_signature, is_signed_by, parse_note

STATEMENT: Final = b"pollconsole/audit/1 archive\x00"


class KeyLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One epoch link, and the hash that it stands behind: the old key signed both. *note*: the new key's over it."""

    before: bytes
    link: bytes
    note: str


class Lineage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Link 1, a checkpoint over it, and every epoch link after it with its own."""

    begin: bytes
    note: str
    epochs: tuple[KeyLink, ...] = ()


class Cut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the links that a store still has go on: behind link *seq*, whose hash was *hash*."""

    seq: int
    hash: bytes
    events: int
    """Number of the last event whose link was archived; the clear rows up to it went with the links."""
    keys: Lineage
    """Up to *seq*; the epoch links after it are in the store."""


class Inherited(msgspec.Struct, frozen=True):
    """A lineage that was followed."""

    log_id: bytes
    begin: control.Begin
    epochs: tuple[tuple[int, bytes, bytes], ...]
    """By epoch: number of its first link, verification key, reading key."""


def inherit(keys: Lineage, findings: Findings, key: tuple[bytes, bytes] | None) -> Inherited | None:
    """Follow *keys* from the first to the last; what is wrong goes to *findings*. None: not even the first is one.

    *key*: log id and first verification key that were kept elsewhere.
    """
    header = layout.header_of(keys.begin)
    try:
        begin = control.decode(layout.content(keys.begin), control.Begin)
    except ValueError:
        begin = None
    if header is None or begin is None or (header.kind, header.seq, header.epoch) != (Kind.BEGIN, 1, 0):
        findings.fault(Verdict.ALTERED, 1, "the beginning that was kept of the archived links is no link 1")
        return None
    if key is not None and (header.log_id, begin.sign) != key:
        findings.fault(Verdict.OTHER_LOG, 1, "begins with another verification key than the one given")
    head = layout.link_hash(keys.begin, layout.genesis(header.log_id, begin.sign))
    if not _is_noted(keys.note, header.log_id, 1, head, begin.sign):
        findings.fault(Verdict.ALTERED, 1, "the beginning that was kept of the archived links is under no checkpoint")
    epochs = [(1, begin.sign, begin.read)]
    for number, kept in enumerate(keys.epochs, 1):
        found = _next(kept, number, epochs[-1], header.log_id)
        if isinstance(found, str):
            findings.fault(Verdict.ALTERED, None, f"the keys of epoch {number} that were kept: {found}")
            break
        epochs.append(found)
    return Inherited(header.log_id, begin, tuple(epochs))


def _next(kept: KeyLink, number: int, last: tuple[int, bytes, bytes], log_id: bytes) -> tuple[int, bytes, bytes] | str:
    header = layout.header_of(kept.link)
    if header is None or not layout.is_whole(kept.link) or (header.kind, header.log_id) != (Kind.EPOCH, log_id):
        return "no link with new keys of this log"
    if header.epoch != number or header.seq <= last[0]:
        return f"they are those of epoch {header.epoch}, link {header.seq}"
    try:
        told = control.decode(layout.content(kept.link), control.Epoch)
    except ValueError as error:
        return str(error)[:200]
    message = control.epoch_message(log_id, header.seq, kept.before, number, told.sign, told.read)
    if not is_signature(last[1], told.signature, message):
        return "the keys before them did not sign them"
    if not _is_noted(kept.note, log_id, header.seq, layout.link_hash(kept.link, kept.before), told.sign):
        return "they are under no checkpoint of their own"
    return header.seq, told.sign, told.read


def _is_noted(text: str, log_id: bytes, seq: int, head: bytes, sign: bytes) -> bool:
    """Whether *text* is a checkpoint over that link by that key."""
    try:
        note = parse_note(text)
    except ValueError:
        return False
    return (note.log_id, note.seq, note.head) == (log_id, seq, head) and is_signed_by(note, sign)


def statement(log_id: bytes, after: int, last: int, head: bytes, sha256: bytes) -> bytes:
    """What a key signs over an archive: the links after *after* up to *last*, whose hash is *head*, and the file's sum.

    *sha256*: of all lines of the file but the last.
    """
    return STATEMENT + log_id + after.to_bytes(8, "big") + last.to_bytes(8, "big") + head + sha256
