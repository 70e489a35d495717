"""Bytes of one link: fixed-width header, key commitment, content; and the hash over exactly these bytes.

Job: where each field lies, pack and unpack, the hash of a link, the hash that a log begins from. Must not know: keys,
what a content says, where links are kept. Integers are big-endian and of fixed width, so that no two readings exist.
Source: spec A3, A4; docs/audit.md is the same table for strangers.

    0   1  01, the layout's number           53  16  writer: the run whose key sealed it
    1   4  length of the header, 81          69   1  kind
    5  20  `pollconsole/audit/1` and 00      70  16  salt, random for each link
    25 16  log id                            86  32  key commitment; zeros where the content is clear
    41  8  seq, from 1 without a gap        118   4  length of the content
    49  4  epoch of the log's keys          122   n  content

The hash of a link is SHA-256 over these bytes and the 32 bytes of the hash of the link before it.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import Final

import msgspec

MAGIC: Final = b"pollconsole/audit/1\x00"
HEADER: Final = 81
PRELUDE: Final = b"\x01" + HEADER.to_bytes(4, "big")
LEAD: Final = PRELUDE + MAGIC
SEQ_AT: Final = 41
RUN_AT: Final = 49
"""Epoch, writer and kind lie side by side: one comparison tells a known run's event."""
SALT_AT: Final = 70
COMMIT_AT: Final = 86
LENGTH_AT: Final = 118
CONTENT_AT: Final = 122
HASH: Final = 32
MAX_LINK: Final = 1 << 20
"""Bytes of one link; what claims to be longer is not read."""
NO_COMMITMENT: Final = bytes(32)
NOBODY: Final = bytes(16)
"""The writer of links that no run seals."""


class Kind(IntEnum):
    """What a link is. EVENT and AUTHORITY are sealed, all others are clear JSON, for whoever verifies without a key."""

    EVENT = 1
    BEGIN = 2
    """The first link: the log's keys, and how many events were recorded before it."""
    RUN = 3
    """A run's key, sealed to the log's public key."""
    EPOCH = 4
    """New keys, signed by the old ones."""
    AUTHORITY = 5
    """A grant that is about to be used: written and anchored before it takes effect."""
    REPAIR = 6
    """The row before it was torn by a crash."""
    LOSS = 7
    """An operator went on although the log had lost rows that the anchor knew."""


SEALED: Final = (Kind.EVENT, Kind.AUTHORITY)


class Header(msgspec.Struct, frozen=True):
    """The fields of a header; 16 bytes each: log id, writer, salt."""

    log_id: bytes
    seq: int
    epoch: int
    writer: bytes
    kind: int
    salt: bytes


def pack(header: Header) -> bytes:
    """The 81 bytes. Raises OverflowError: seq or epoch beyond their width."""
    return b"".join(
        (
            MAGIC,
            header.log_id,
            header.seq.to_bytes(8, "big"),
            header.epoch.to_bytes(4, "big"),
            header.writer,
            header.kind.to_bytes(1, "big"),
            header.salt,
        )
    )


def header_of(blob: bytes) -> Header | None:
    """The header of a stored link; None: these bytes are no link of this layout."""
    if len(blob) < CONTENT_AT or not blob.startswith(LEAD):
        return None
    return Header(
        blob[25:41],
        int.from_bytes(blob[41:49], "big"),
        int.from_bytes(blob[49:53], "big"),
        blob[53:69],
        blob[69],
        blob[70:86],
    )


def header_bytes(blob: bytes) -> bytes:
    """The header as it was hashed."""
    return blob[5:COMMIT_AT]


def is_whole(blob: bytes) -> bool:
    """Whether *blob* is exactly as long as it says."""
    return len(blob) == CONTENT_AT + int.from_bytes(blob[LENGTH_AT:CONTENT_AT], "big") and len(blob) <= MAX_LINK


def content(blob: bytes) -> bytes:
    """The content: a ciphertext with its tag, or clear JSON."""
    return blob[CONTENT_AT:]


def assemble(header: bytes, commitment: bytes, body: bytes) -> bytes:
    """The bytes of a link. Raises ValueError: more than MAX_LINK."""
    blob = b"".join((PRELUDE, header, commitment, len(body).to_bytes(4, "big"), body))
    if len(blob) > MAX_LINK:
        raise ValueError(f"an audit link has at most {MAX_LINK} bytes, this one has {len(blob)}")
    return blob


def link_hash(blob: bytes, before: bytes) -> bytes:
    """The hash of a link behind the one whose hash is *before*."""
    return hashlib.sha256(blob + before).digest()


def genesis(log_id: bytes, public: bytes) -> bytes:
    """What the first link is hashed behind: binds the log's id and its first verification key (32 bytes each)."""
    return hashlib.sha256(b"genesis" + log_id + public).digest()
