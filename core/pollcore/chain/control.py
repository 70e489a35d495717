"""What clear links say: keys, runs, new epochs, repairs. JSON with fixed fields, so that nothing is guessed.

Job: shapes of these contents, encode, decode strictly, the message that an old key signs when a new one follows it.
Must not know: the chain around them. Source: spec A4; docs/audit.md.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from pollcore.chain.layout import HASH

EPOCH_MESSAGE: Final = b"pollconsole/audit/1 epoch\x00"


class Begin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kind BEGIN. Keys are 32 bytes, base64 in JSON."""

    sign: bytes
    """Ed25519: verifies the checkpoints of epoch 0."""
    read: bytes
    """X25519: runs of epoch 0 seal their keys to it."""
    at: int
    events_before: int
    """Events that this home had recorded before the chain began; the chain says nothing of them."""
    keys_in: str
    """`keyring`, or `key file`: marked, because every program of that user reads a file."""


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kind RUN; the header's writer is the run."""

    read: bytes
    """The public key that it is sealed to: of the link's epoch."""
    key: bytes
    """HPKE (RFC 9180: DHKEM X25519, HKDF-SHA256, AES-256-GCM): encapsulated key and ciphertext of the run's key."""


class Epoch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kind EPOCH; its header carries the new epoch's number."""

    sign: bytes
    read: bytes
    at: int
    why: str
    signature: bytes
    """By the old epoch's key over `epoch_message`."""


class Repair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kind REPAIR: the row before it was torn; this link is hashed behind the one before that row."""

    torn: int
    size: int
    sha256: bytes
    """Of what was left of the torn row's bytes."""


class Loss(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kind LOSS: the anchor knew *seq* and *hash*, the log did not; an operator went on."""

    seq: int
    hash: bytes
    at: int
    because: str


C = TypeVar("C", Begin, Run, Epoch, Repair, Loss)


def encode(content: Begin | Run | Epoch | Repair | Loss) -> bytes:
    """JSON in the order of the fields."""
    return msgspec.json.encode(content)


def decode(body: bytes, kind: type[C]) -> C:
    """Raises ValueError: other fields, other types, or not the one way to write them."""
    found = msgspec.json.decode(body, type=kind)
    if encode(found) != body:
        raise ValueError("not written in the one way")
    for name in ("sign", "read", "sha256", "hash"):
        if len(getattr(found, name, bytes(HASH))) != HASH:
            raise ValueError(f"{name} is not {HASH} bytes")
    return found


def epoch_message(log_id: bytes, seq: int, before: bytes, epoch: int, sign: bytes, read: bytes) -> bytes:
    """What the old key signs: where the new keys begin, and which they are."""
    numbers = seq.to_bytes(8, "big") + before + epoch.to_bytes(4, "big")
    return EPOCH_MESSAGE + log_id + numbers + sign + read
