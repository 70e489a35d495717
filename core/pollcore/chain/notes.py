"""Checkpoints: a signed note over the head of a log, small enough for a ticket or a sheet of paper.

Job: text of a note and of a verification key, parse both strictly, verify. Must not know: where a signing key lives.
The form is that of signed notes (C2SP signed-note and tlog-checkpoint), so other tools can check the signature:

    pollconsole/<log id, 32 hex digits>
    <number of the last link>
    <its hash, base64>
    epoch <number of the keys>
    <empty line>
    <em dash> pollconsole/<log id> <base64 of key id 4 | Ed25519 signature 64>

The signature is over the first four lines, each with its line feed. The key id is the first 4 bytes of
SHA-256(name | LF | 01 | key). Source: spec A4.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_NOTE: Final = 600
_DASH: Final = "\N{EM DASH}"
_ED25519: Final = b"\x01"
_NOTE: Final = re.compile(
    rf"(pollconsole/([0-9a-f]{{32}})\n([1-9][0-9]{{0,18}})\n([A-Za-z0-9+/]{{43}}=)\nepoch (0|[1-9][0-9]{{0,8}})\n)"
    rf"\n{_DASH} pollconsole/([0-9a-f]{{32}}) ([A-Za-z0-9+/]{{91}}=)\n",
    re.ASCII,
)
_KEY: Final = re.compile(r"pollconsole/([0-9a-f]{32})\+([0-9a-f]{8})\+([A-Za-z0-9+/]{44})", re.ASCII)


class Note(msgspec.Struct, frozen=True):
    """A parsed note; its signature is not verified yet."""

    log_id: bytes
    seq: int
    head: bytes
    epoch: int
    signed: bytes
    """The bytes under the signature."""
    key_id: bytes
    signature: bytes


def note_text(log_id: bytes, seq: int, head: bytes, epoch: int, public: bytes, sign: Callable[[bytes], bytes]) -> str:
    """The note over link *seq* with hash *head*, signed by *sign* (Ed25519 over the bytes given)."""
    name = log_name(log_id)
    body = f"{name}\n{seq}\n{_b64(head)}\nepoch {epoch}\n"
    return f"{body}\n{_DASH} {name} {_b64(key_id(log_id, public) + sign(body.encode()))}\n"


def parse_note(text: str) -> Note:
    """Raises ValueError: not exactly a note of this form."""
    found = _NOTE.fullmatch(text) if len(text) <= MAX_NOTE else None
    if found is None or found[2] != found[6]:
        raise ValueError("not a signed checkpoint of pollconsole")
    head, signature = _strict(found[4]), _strict(found[7])
    return Note(
        bytes.fromhex(found[2]), int(found[3]), head, int(found[5]), found[1].encode(), signature[:4], signature[4:]
    )


def is_signed_by(note: Note, public: bytes) -> bool:
    """Whether *public* (32 bytes) signed it."""
    return note.key_id == key_id(note.log_id, public) and is_signature(public, note.signature, note.signed)


def is_signature(public: bytes, signature: bytes, message: bytes) -> bool:
    """Ed25519; never raises."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def key_text(log_id: bytes, public: bytes) -> str:
    """The verification key as people keep it: `pollconsole/<log id>+<key id>+<base64 of 01 | key>`."""
    return f"{log_name(log_id)}+{key_id(log_id, public).hex()}+{_b64(_ED25519 + public)}"


def parse_key(text: str) -> tuple[bytes, bytes]:
    """(log id, key) of a verification key text. Raises ValueError."""
    found = _KEY.fullmatch(text.strip())
    if found is None:
        raise ValueError("not a verification key: it looks like pollconsole/<32 hex digits>+<8 hex digits>+<base64>")
    log_id, raw = bytes.fromhex(found[1]), _strict(found[3])
    if raw[:1] != _ED25519 or key_id(log_id, raw[1:]).hex() != found[2]:
        raise ValueError("a verification key whose parts do not belong together: copy it anew")
    return log_id, raw[1:]


def log_name(log_id: bytes) -> str:
    """The origin of a log's notes."""
    return f"pollconsole/{log_id.hex()}"


def key_id(log_id: bytes, public: bytes) -> bytes:
    """Four bytes that tell keys apart; no proof of anything."""
    return hashlib.sha256(log_name(log_id).encode() + b"\n" + _ED25519 + public).digest()[:4]


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _strict(text: str) -> bytes:
    raw = base64.b64decode(text, validate=True)
    if _b64(raw) != text:
        raise ValueError("base64 with bits to spare")
    return raw


def parse_head(text: str) -> tuple[bytes | None, int, bytes]:
    """(log id if it says so, number, hash) of a signed note, or of `NUMBER:HASH` (64 hex digits or base64).

    Raises ValueError: neither.
    """
    if "\n" in text.strip():
        note = parse_note(text.replace("\r\n", "\n").strip("\n") + "\n")
        return note.log_id, note.seq, note.head
    number, _, head = text.strip().partition(":")
    if re.fullmatch(r"[1-9][0-9]{0,18}", number, re.ASCII):
        if re.fullmatch(r"[0-9a-fA-F]{64}", head, re.ASCII):
            return None, int(number), bytes.fromhex(head)
        if re.fullmatch(r"[A-Za-z0-9+/]{43}=", head, re.ASCII):
            return None, int(number), _strict(head)
    raise ValueError("not a head: it is a signed checkpoint, or NUMBER:HASH as 'audit verify' prints it")
