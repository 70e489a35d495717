"""Content of a link, sealed with a key of its own that comes from the run's key and the header.

Job: derive key and commitment, pad, seal, open. Must not know: where run keys come from, what is sealed.

    okm  = HKDF-Expand-SHA256(run key, "row" 00 | header, 64); key = okm[:32]; commitment = okm[32:]
    body = AES-256-GCM(key, nonce of zeros, pad256(length u32 | JSON), header | commitment | hash before)

A key is used once (the header holds a random salt), so a fixed nonce is right, also after an old copy was restored and
numbers are used again. The commitment keeps one ciphertext from having two readings.
Source: spec A3, A4; RFC 5869, section 2.3.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pollcore.chain.layout import COMMIT_AT, LENGTH_AT, content, header_bytes
from pollcore.facts import SealedUnreadable

PAD: Final = 256
"""Lengths are told in steps of this."""
_NONCE: Final = bytes(12)
_INFO: Final = b"row\x00"
_INNER: Final = bytes(x ^ 0x36 for x in range(256))
_OUTER: Final = bytes(x ^ 0x5C for x in range(256))


class RowKeys:
    """The keys of one run's links; HMAC's two fixed blocks are hashed once (a third of the cost of a link else)."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        """*key*: 32 bytes."""
        block = key.ljust(64, b"\x00")
        self._inner = hashlib.sha256(block.translate(_INNER))
        self._outer = hashlib.sha256(block.translate(_OUTER))

    def __repr__(self) -> str:
        return "RowKeys()"

    def derive(self, header: bytes) -> tuple[bytes, bytes]:
        """Key and commitment for *header*: HKDF-Expand, two blocks."""
        info = _INFO + header
        first = self._hmac(info + b"\x01")
        return first, self._hmac(first + info + b"\x02")

    def _hmac(self, message: bytes) -> bytes:
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()

    def seal(self, header: bytes, before: bytes, plain: bytes) -> tuple[bytes, bytes]:
        """Commitment and body for *plain* behind the link whose hash is *before*."""
        key, commitment = self.derive(header)
        return commitment, AESGCM(key).encrypt(_NONCE, pad(plain), header + commitment + before)

    def open(self, blob: bytes, before: bytes) -> bytes:
        """What a sealed link says. Raises SealedUnreadable: altered, or sealed by another run."""
        header = header_bytes(blob)
        key, commitment = self.derive(header)
        if hmac.compare_digest(commitment, blob[COMMIT_AT:LENGTH_AT]):
            try:
                return unpad(AESGCM(key).decrypt(_NONCE, content(blob), header + commitment + before))
            except (InvalidTag, ValueError):
                pass
        raise SealedUnreadable("an audit link was altered, or another run sealed it")


def pad(plain: bytes) -> bytes:
    """Length, text, zeros up to a multiple of PAD."""
    body = len(plain).to_bytes(4, "big") + plain
    return body.ljust(-(-len(body) // PAD) * PAD, b"\x00")


def unpad(padded: bytes) -> bytes:
    """The text of `pad`. Raises ValueError: not made by it."""
    length = int.from_bytes(padded[:4], "big")
    plain = padded[4 : 4 + length]
    if pad(plain) != padded:
        raise ValueError("the padding is wrong")
    return plain
