"""Credentials: secrets in the keyring, what may be known of them in a metadata store (port `Credentials`).

Job: read a secret for one use, tell a rotated one. Must not know: keyring libraries, SQL, requests.

The entry's name in the keyring contains a digest of kind, names and origins. So a secret can only be found under the
very origins that it was entered for: whoever changes them, in the metadata or by command, must enter it again (K3).

A read secret is kept for CACHE_MS at most, because a keyring takes 15 ms to answer; `digest` always reads afresh, and
`forget` drops it (after a denial).
Source: spec K1-K5, G2, G6.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets as random_source
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from pollcore.adapters.keyring_store import MAX_VALUE, Vault
from pollcore.adapters.pinned import PinnedSecret
from pollcore.facts import BootMs, CredentialMode, CredentialUnavailable, Instant, Refused, Secret, Stale, StopDetail
from pollcore.ports import Clock, CredentialInfo, CredentialValue

CACHE_MS: Final = 60_000
TOUCH_MS: Final = 15 * 60_000
"""`last_used_at` is as exact as this."""
_DIGEST_KEY: Final = "digest-key"
LONG: Final = frozenset({"refresh", "google", "github-app", "sigv4"})
"""Kinds that keep a private key or a long token: more than one entry of the smallest keyring holds."""
PARTS: Final = 5
_MARK: Final = 8
MAX_LONG: Final = PARTS * (MAX_VALUE - 1) - _MARK


class CredentialMeta(Protocol):
    """Rows of what may be known. The store fulfils it; every change has been committed on return."""

    async def get(self, name: str) -> CredentialInfo | None: ...

    async def put(self, info: CredentialInfo, former: CredentialInfo | None) -> None:
        """Insert or replace the row of `info.name`, only while it is as *former* says (None: there is none).

        Raises Stale: it has changed since it was read; a stricter mode must not be written over.
        """
        ...

    async def remove(self, name: str) -> None:
        """Remove the row; its mode stays known (`left_mode`)."""
        ...

    async def left_mode(self, name: str) -> CredentialMode | None:
        """The mode of a removed credential of that name: a new one begins with it (G2)."""
        ...

    async def list(self) -> Sequence[CredentialInfo]:
        """By name."""
        ...

    async def touch(self, name: str, at: Instant) -> None:
        """Set `last_used_at` alone: a whole row written from a reader could undo a change of mode."""
        ...


class MemoryMeta:
    """`CredentialMeta` in memory, for tests and the demo."""

    def __init__(self) -> None:
        self._rows: dict[str, CredentialInfo] = {}
        self._left: dict[str, CredentialMode] = {}

    async def get(self, name: str) -> CredentialInfo | None:
        return self._rows.get(name)

    async def put(self, info: CredentialInfo, former: CredentialInfo | None) -> None:
        if self._rows.get(info.name) != former:
            raise Stale(f"credential {info.name} has changed since it was read")
        self._rows[info.name] = info

    async def remove(self, name: str) -> None:
        if (gone := self._rows.pop(name, None)) is not None:
            self._left[name] = gone.mode

    async def left_mode(self, name: str) -> CredentialMode | None:
        return self._left.get(name)

    async def list(self) -> Sequence[CredentialInfo]:
        return [self._rows[name] for name in sorted(self._rows)]

    async def touch(self, name: str, at: Instant) -> None:
        if name in self._rows:
            self._rows[name] = msgspec.structs.replace(self._rows[name], last_used_at=at)


class _Kept(msgspec.Struct, frozen=True):
    entry: str
    created_at: Instant
    secret: PinnedSecret
    digest: str
    until: BootMs
    boot_id: str


class KeyringCredentials:
    """The real `Credentials`. For one event loop."""

    def __init__(self, vault: Vault, meta: CredentialMeta, clock: Clock, cache_ms: int = CACHE_MS) -> None:
        self._vault = vault
        self._meta = meta
        self._clock = clock
        self._cache_ms = min(cache_ms, CACHE_MS)
        self._kept: dict[str, _Kept] = {}
        self._reading: dict[str, asyncio.Task[_Kept]] = {}
        self._touched: dict[str, int] = {}
        self._key: bytes | None = None

    async def info(self, name: str) -> CredentialInfo:
        """What may be known of it, read afresh; no secret is read. Raises CredentialUnavailable.

        Of one that is not stored: `credential_missing`, or `keyring_absent` where nothing can be stored here at all.
        """
        return await self._info(name)

    async def read(self, name: str, info: CredentialInfo | None = None) -> CredentialValue:
        """The secret for one use. *info*: the metadata, just read. Raises CredentialUnavailable."""
        info = info or await self._info(name)
        kept = self._kept.get(name)
        if kept is None or not self._is_good(kept, info):
            kept = await self._shared_read(info)
        await self._touch(name)
        return CredentialValue(info, kept.secret, kept.digest)

    async def digest(self, name: str) -> str:
        """The keyed digest of what the keyring holds now. Raises CredentialUnavailable."""
        info = await self._info(name)
        self.forget(name)
        return (await self._shared_read(info)).digest

    async def known(self) -> Sequence[CredentialInfo]:
        """All that is known of every credential, but its value."""
        return await self._meta.list()

    def forget(self, name: str | None = None) -> None:
        """Drop the kept secret of *name*, or all: after a denial, and when a session ends."""
        if name is None:
            self._kept.clear()
        else:
            self._kept.pop(name, None)

    async def keyed(self, secret: Secret) -> str:
        """The keyed digest of *secret*, made as those of kept ones are. Raises CredentialUnavailable."""
        if self._key is None:
            (key,) = await self._vault.aget(_DIGEST_KEY)
            self._key = (key or await self._new_digest_key()).encode()
        return _keyed(self._key, secret.reveal())

    async def renew(self, info: CredentialInfo, secret: Secret) -> None:
        """Replace the kept secret of *info* by one that its provider gave in its place (a new refresh token).

        Raises CredentialUnavailable.
        """
        await write_secret(self._vault, info, secret.reveal())
        self.forget(info.name)

    async def _info(self, name: str) -> CredentialInfo:
        info = await self._meta.get(name)
        if info is None:
            raise await self._unstored(name)
        return info

    async def _unstored(self, name: str) -> CredentialUnavailable:
        """Why there is no credential *name*: where no keyring is, storing one would be refused, so that comes first."""
        way = f"pollconsole credential set {name} --origin URL --kind KIND"
        try:
            await self._vault.aget(_DIGEST_KEY)
        except CredentialUnavailable as error:
            if error.detail == StopDetail.KEYRING_ABSENT:
                return CredentialUnavailable(f"{error}; with a keyring: {way}", StopDetail.KEYRING_ABSENT)
        return CredentialUnavailable(f"no credential {name}: {way}", StopDetail.CREDENTIAL_MISSING)

    def _is_good(self, kept: _Kept, info: CredentialInfo) -> bool:
        now = self._clock.now()
        return (
            kept.entry == entry_name(info)
            and kept.created_at == info.created_at
            and kept.boot_id == now.boot_id
            and now.boot < kept.until
        )

    async def _shared_read(self, info: CredentialInfo) -> _Kept:
        """One keyring call for all who ask at the same time: hundreds of operations may share a credential."""
        task = self._reading.get(info.name)
        if task is None:
            task = self._reading[info.name] = asyncio.create_task(self._from_keyring(info))
            task.add_done_callback(lambda done: self._read_ended(info.name, done))
        try:
            # one who is cancelled must not cancel the others' read
            return await asyncio.shield(task)
        except CredentialUnavailable as error:
            message, detail = str(error), error.detail
        raise CredentialUnavailable(message, detail)

    def _read_ended(self, name: str, task: asyncio.Task[_Kept]) -> None:
        self._reading.pop(name, None)
        if not task.cancelled():
            task.exception()

    async def _from_keyring(self, info: CredentialInfo) -> _Kept:
        entry = entry_name(info)
        *parts, key = await self._vault.aget(*entries(info), _DIGEST_KEY)
        value = joined(parts)
        if value is None:
            self.forget(info.name)
            raise CredentialUnavailable(
                f"the keyring holds no secret for {info.name} and its origins: "
                f"pollconsole credential set {info.name} --origin URL --kind KIND",
                StopDetail.CREDENTIAL_MISSING,
            )
        if key is None:
            key = await self._new_digest_key()
        self._key = key.encode()
        digest = _keyed(self._key, value)
        now = self._clock.now()
        until = BootMs(now.boot + self._cache_ms)
        kept = _Kept(entry, info.created_at, PinnedSecret(value, info.origins), digest, until, now.boot_id)
        self._kept[info.name] = kept
        return kept

    async def _new_digest_key(self) -> str:
        """Two processes may make one at once: the last one written counts for both."""
        made = random_source.token_hex(32)
        await self._vault.aset(_DIGEST_KEY, made)
        (kept,) = await self._vault.aget(_DIGEST_KEY)
        return kept or made

    async def _touch(self, name: str) -> None:
        now = self._clock.now()
        if now.boot - self._touched.get(name, -TOUCH_MS) >= TOUCH_MS:
            self._touched[name] = now.boot
            await self._meta.touch(name, now.wall)


def _keyed(key: bytes, value: str) -> str:
    return hmac.digest(key, value.encode("utf-8", "surrogatepass"), "sha256").hex()


def entry_name(info: CredentialInfo) -> str:
    """Where the secret of *info* is kept: its name, and a digest of where and how it may be sent."""
    pinned = msgspec.json.encode([info.kind, info.names, sorted(info.origins)])
    return f"credential/{info.name}/{hashlib.sha256(pinned).hexdigest()[:16]}"


def entries(info: CredentialInfo) -> tuple[str, ...]:
    """Where the secret of *info* lies: one entry, or PARTS for kinds whose secrets are longer than one may be."""
    base = entry_name(info)
    return tuple(f"{base}/{n}" for n in range(PARTS)) if info.kind in LONG else (base,)


def joined(parts: Sequence[str | None]) -> str | None:
    """The secret in *parts* as `write_secret` wrote them; None: there is none, or it was not written whole."""
    if len(parts) == 1:
        return parts[0]
    if any(part is None for part in parts):
        return None
    whole = "".join(str(part)[1:] for part in parts)
    mark, value = whole[:_MARK], whole[_MARK:]
    return value if value and mark == _mark(value) else None


async def write_secret(vault: Vault, info: CredentialInfo, value: str) -> None:
    """Write the secret of *info*. Raises Refused: too long; CredentialUnavailable: the keyring."""
    names = entries(info)
    if len(names) == 1:
        await vault.aset(names[0], value)
        return
    if len(value) > MAX_LONG:
        raise Refused(f"a secret of kind {info.kind} has up to {MAX_LONG} characters", code="secret")
    whole, size = _mark(value) + value, MAX_VALUE - 1
    for n, name in enumerate(names):
        # keyrings keep no empty text
        await vault.aset(name, "+" + whole[n * size : (n + 1) * size])


async def delete_secret(vault: Vault, info: CredentialInfo) -> None:
    """Delete every entry of *info*. Raises CredentialUnavailable."""
    for name in entries(info):
        await vault.adelete(name)


def _mark(value: str) -> str:
    """Tells a secret that was written whole from one whose parts are of two writings."""
    return hashlib.sha256(value.encode()).hexdigest()[:_MARK]
