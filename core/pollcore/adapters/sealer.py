"""Seals columns without holding a secret of the operator (port `Sealer`).

Job: one random key a run seals columns by AES-256-GCM; the key itself is kept sealed to the log's public key (HPKE,
RFC 9180: DHKEM X25519, HKDF-SHA256, AES-256-GCM), so that what a run wrote can be opened by whoever holds the reading
key. Must not know: keyrings, SQL, what is sealed.

A blob: 01 | run id 16 | nonce 12 | ciphertext and tag. The purpose and the first 17 bytes are authenticated, so a blob
cannot be moved to another column or run. Its length tells the length of the text.
Source: spec A3, A4 (writing needs no secret); design.md, "Records".
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pollcore.facts import SealedUnreadable

PUBLIC_PREFIX: Final = "pollconsole-read-1:"
MAX_SEALS: Final = 1 << 30
"""Seals under one key: with random nonces, far below the 2^32 at which a repeat becomes thinkable."""
MAX_OPENED_KEYS: Final = 256
_VERSION: Final = b"\x01"
_HEAD: Final = 1 + 16
_LEAST: Final = _HEAD + 12 + 16
_INFO: Final = b"pollconsole/run-key/1\x00"
_SUITE: Final = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)


class RunKey(msgspec.Struct, frozen=True):
    """The key of one run as it is stored: useless without the reading key that `key_id` names."""

    run_id: bytes
    key_id: str
    """The first 16 hex digits of SHA-256 over the public key."""
    wrapped: bytes


class RunKeys(Protocol):
    """Rows of sealed run keys. The store fulfils it. Called where columns are sealed and opened: must not wait long."""

    def put(self, key: RunKey) -> None:
        """Durable before anything that this run sealed is committed."""
        ...

    def get(self, run_id: bytes) -> RunKey | None: ...


class MemoryRunKeys:
    """`RunKeys` in memory, for tests and the demo; `rows` may be filled and saved by a store."""

    def __init__(self) -> None:
        self.rows: dict[bytes, RunKey] = {}

    def put(self, key: RunKey) -> None:
        self.rows[key.run_id] = key

    def get(self, run_id: bytes) -> RunKey | None:
        return self.rows.get(run_id)


class ReadingKey:
    """The private part: opens what every run sealed. Lives in the keyring or a key file, never in the store."""

    __slots__ = ("_private", "key_id", "public_key_text")

    def __init__(self, private: X25519PrivateKey) -> None:
        self._private = private
        raw = private.public_key().public_bytes_raw()
        self.public_key_text = public_text(raw)
        self.key_id = key_id_of(raw)

    def __repr__(self) -> str:
        return f"ReadingKey({self.key_id})"

    @classmethod
    def generate(cls) -> ReadingKey:
        """A new pair."""
        return cls(X25519PrivateKey.generate())

    @classmethod
    def from_text(cls, text: str) -> ReadingKey:
        """From what `secret_text` gave. Raises ValueError (it quotes nothing)."""
        return cls(X25519PrivateKey.from_private_bytes(_raw32(text.strip())))

    def secret_text(self) -> str:
        """44 letters for the keyring or the key file."""
        return base64.b64encode(self._private.private_bytes_raw()).decode()

    def unwrap(self, key: RunKey) -> bytes:
        """The run's key. Raises SealedUnreadable: sealed to another pair, or altered."""
        try:
            return _SUITE.decrypt(key.wrapped, self._private, _info(key.run_id, key.key_id))
        except (InvalidTag, ValueError):
            pass
        raise SealedUnreadable(f"the key of this run is sealed to reading key {key.key_id}, not to {self.key_id}")


def public_text(raw: bytes) -> str:
    """`pollconsole-read-1:` and the public key in base64: safe to print and to keep anywhere."""
    return PUBLIC_PREFIX + base64.b64encode(raw).decode()


def public_raw(text: str) -> bytes:
    """The 32 bytes of a public key text. Raises ValueError."""
    if not text.startswith(PUBLIC_PREFIX):
        raise ValueError(f"a public reading key starts with {PUBLIC_PREFIX}")
    return _raw32(text[len(PUBLIC_PREFIX) :].strip())


def key_id_of(raw: bytes) -> str:
    """The short name of the pair with the public key *raw*."""
    return hashlib.sha256(raw).hexdigest()[:16]


class RunSealer:
    """The real `Sealer`: a key of its own, and the keys of other runs once the reading key is at hand.

    `seal` and `open` of this run's own blobs need nothing else. Safe to use from several threads.
    """

    def __init__(
        self,
        public_key_text: str,
        keys: RunKeys,
        reading_key: Callable[[], ReadingKey | None] | None = None,
    ) -> None:
        """*reading_key*: asked when a blob of another run is opened; may take a keyring call's time, None: not now.

        Raises:
            ValueError: *public_key_text*. Whatever `keys.put` raises.
        """
        self._public_raw = public_raw(public_key_text)
        self._keys = keys
        self.ask = reading_key
        self._opened: OrderedDict[bytes, AESGCM] = OrderedDict()
        self._purposes: dict[str, bytes] = {}
        self._new_key()

    def __repr__(self) -> str:
        return f"RunSealer(run {self.run_id.hex()})"

    @property
    def seals_left(self) -> int:
        """How many blobs this key may still seal; after the last one a new key is made at once."""
        return self._left

    def seal(self, purpose: str, plain: bytes) -> bytes:
        """Seal *plain* for *purpose*."""
        if self._left <= 0:
            self._new_key()
        self._left -= 1
        head, cipher = self._current
        nonce = os.urandom(12)
        return head + nonce + cipher.encrypt(nonce, plain, head + purpose.encode())

    def open(self, purpose: str, sealed: bytes) -> bytes:
        """Raises SealedUnreadable: altered, another purpose, or a run whose key cannot be opened now."""
        if len(sealed) < _LEAST or sealed[:1] != _VERSION:
            raise SealedUnreadable(f"{purpose}: not a sealed value")
        cipher = self._cipher(bytes(sealed[1:_HEAD]))
        try:
            return cipher.decrypt(sealed[_HEAD : _HEAD + 12], sealed[_HEAD + 12 :], sealed[:_HEAD] + purpose.encode())
        except InvalidTag:
            pass
        raise SealedUnreadable(f"{purpose}: the sealed value was altered, or belongs to another column")

    def _new_key(self) -> None:
        secret, self.run_id = os.urandom(32), os.urandom(16)
        name = key_id_of(self._public_raw)
        wrapped = _SUITE.encrypt(secret, X25519PublicKey.from_public_bytes(self._public_raw), _info(self.run_id, name))
        self._keys.put(RunKey(self.run_id, name, wrapped))
        cipher = AESGCM(secret)
        self._current = _VERSION + self.run_id, cipher
        self._left = MAX_SEALS
        self._keep(self.run_id, cipher)

    def _cipher(self, run_id: bytes) -> AESGCM:
        found = self._opened.get(run_id)
        if found is not None:
            return found
        row = self._keys.get(run_id)
        if row is None:
            raise SealedUnreadable("the key of the run that sealed this is not stored")
        reading = self.ask() if self.ask is not None else None
        if reading is None:
            raise SealedUnreadable(
                "the reading key is not at hand: unlock the keyring, or name [audit] key_file ('pollconsole doctor' "
                "says where it was looked for)"
            )
        cipher = AESGCM(reading.unwrap(row))
        self._keep(run_id, cipher)
        return cipher

    def _keep(self, run_id: bytes, cipher: AESGCM) -> None:
        self._opened[run_id] = cipher
        while len(self._opened) > MAX_OPENED_KEYS:
            # never the own one: it was put first, so it is moved behind
            self._opened.popitem(last=False)
            self._opened[self.run_id] = self._current[1]


def _info(run_id: bytes, key_id: str) -> bytes:
    return _INFO + run_id + key_id.encode()


def _raw32(text: str) -> bytes:
    why = None
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        why = "not base64"
    if why is None and len(raw) != 32:
        why = f"{len(raw)} bytes instead of 32"
    if why is not None:
        raise ValueError(f"not a key: {why}")
    return raw
