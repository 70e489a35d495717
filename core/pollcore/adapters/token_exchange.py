"""Credentials whose secret buys a short-lived bearer token (port `Credentials`, around another one).

Job: keep a bought token in memory until it is about to end, buy the next with one bounded request at a time. To the
controller the bought token is the secret. Must not know: contracts, keyring libraries, what the token is used for.

The next token is bought aside while the old one still holds, so that a seller's bad minute stops nobody. A purchase
goes to the seller that the credential names and is pinned to, at most once in AGAIN_MS after a failure, and is no
status request (it asks the provider nothing about the job). What is sent is the token, so a refusal is bound to the
token: the digest that goes with it is the token's own. One that was refused is dropped and never sent again; a card
that asks whether there is another buys one, rarely, and sends it nowhere (H3, K5).
Source: spec K2, K3, K5, H3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

import msgspec

from pollcore.adapters.pinned import PinnedSecret
from pollcore.adapters.token_kinds import TokenRefused, sale, token_of
from pollcore.facts import (
    BUYS_BEARER,
    Answer,
    BootMs,
    CredentialPending,
    CredentialUnavailable,
    Fault,
    Refused,
    Secret,
    StopDetail,
)
from pollcore.ports import Clock, CredentialInfo, CredentialValue, Transport

AGAIN_MS: Final = 10_000
"""After a purchase that failed, the next may begin; so too after one in place of a refused token."""
MAX_AGAIN_MS: Final = 640_000
"""AGAIN_MS doubles up to this while the seller gives the refused token again and again."""
MARGIN_MS: Final = 60_000
"""The next token is bought this long before the old one ends, or a tenth of its life where that is longer."""
PATIENCE_S: Final = 0.25
"""How long a loop that serves others waits for a first purchase before it looks again later."""
SAFETY_MS: Final = 5_000
"""A token is not sent when it ends sooner than this: the request is on its way for a while."""


class Kept(Protocol):
    """Where what tokens are bought with is kept: `KeyringCredentials`."""

    async def info(self, name: str) -> CredentialInfo: ...

    async def read(self, name: str, info: CredentialInfo | None = None) -> CredentialValue: ...

    async def digest(self, name: str) -> str: ...

    async def known(self) -> Sequence[CredentialInfo]: ...

    def forget(self, name: str | None = None) -> None: ...

    async def keyed(self, secret: Secret) -> str:
        """The keyed digest of *secret*, made as those of kept ones are."""
        ...

    async def renew(self, info: CredentialInfo, secret: Secret) -> None:
        """Replace the kept secret of *info* by one that its provider gave in its place (a new refresh token)."""
        ...


class _Bought(msgspec.Struct, frozen=True):
    token: PinnedSecret
    digest: str
    """Of what it was bought with."""
    token_digest: str
    created_at: int
    renew: BootMs
    ends: BootMs
    boot_id: str


class ExchangedCredentials:
    """The real `Credentials`: as *kept* gives them, and bearer tokens for those that buy one. For one event loop."""

    def __init__(self, kept: Kept, transport: Callable[[], Transport], clock: Clock) -> None:
        """*transport*: made when the first token is bought."""
        self._kept = kept
        self._transport = transport
        self._clock = clock
        self._bought: dict[str, _Bought] = {}
        self._buying: dict[str, asyncio.Task[_Bought]] = {}
        self._failed: dict[str, tuple[BootMs, str, StopDetail]] = {}
        self._anew: dict[str, tuple[int, BootMs, int]] = {}
        """Per name: `created_at`, when a token was last bought in place of a refused one, how long until the next."""
        self._unkept: dict[str, tuple[str, Secret]] = {}
        """(binding, secret) with a new refresh token that the keyring has not taken; the one that it holds is spent."""

    async def info(self, name: str) -> CredentialInfo:
        """What may be known of it, read afresh; no secret is read. Raises CredentialUnavailable."""
        return await self._kept.info(name)

    async def digest(self, name: str, refused: Collection[str] = (), *, patience_s: float | None = None) -> str:
        """The keyed digest of what the keyring holds now; given *refused*, of what would be sent now.

        For a kind that buys, a token whose digest is among *refused* is dropped and another one bought, once in
        AGAIN_MS at most; until then the digest is a refused one. *patience_s*: as for `read`.
        Raises CredentialUnavailable.
        """
        kept = await self._kept.digest(name)
        if not refused:
            return kept
        value = await self._kept.read(name)
        if value.info.kind not in BUYS_BEARER:
            return value.digest
        bought = self._holding(value)
        if bought is not None and bought.token_digest not in refused:
            return bought.token_digest
        if name not in self._buying:
            if (failure := self._recent_failure(name)) is not None:
                raise CredentialUnavailable(*failure)
            if not self._may_buy_anew(value.info):
                return next(iter(refused))
        self._bought.pop(name, None)
        fresh = await self._shared_purchase(value, patience_s)
        if fresh.token_digest not in refused and name in self._anew:
            self._anew[name] = (*self._anew[name][:2], AGAIN_MS)
        return fresh.token_digest

    def _may_buy_anew(self, info: CredentialInfo) -> bool:
        """Whether a token in place of a refused one may be bought now; counts it."""
        now, wait = self._clock.now().boot, AGAIN_MS
        created_at, at, until_next = self._anew.get(info.name, (None, now, AGAIN_MS))
        if created_at == info.created_at:
            if 0 <= now - at < until_next:
                return False
            wait = min(2 * until_next, MAX_AGAIN_MS)
        self._anew[info.name] = (info.created_at, now, wait)
        return True

    async def known(self) -> Sequence[CredentialInfo]:
        """All that is known of every credential, but its value."""
        return await self._kept.known()

    def forget(self, name: str | None = None) -> None:
        """Drop what is kept in memory of *name*, or of all: after a denial."""
        self._kept.forget(name)
        for each in list(self._bought) if name is None else [name]:
            self._bought.pop(each, None)

    async def read(
        self, name: str, info: CredentialInfo | None = None, *, patience_s: float | None = None
    ) -> CredentialValue:
        """The secret for one use; for a kind that buys, a token that still holds. Raises CredentialUnavailable.

        *patience_s*: how long a purchase is awaited; then it goes on aside, and CredentialPending is raised.
        """
        if name in self._unkept:
            info = info or await self._kept.info(name)
            binding, secret = self._unkept[name]
            if info.binding == binding:
                return await self._with_unkept(CredentialValue(info, secret, ""), patience_s)
            self._unkept.pop(name, None)  # the operator entered another one since
        value = await self._kept.read(name, info)
        if value.info.kind not in BUYS_BEARER:
            return value
        bought = self._holding(value)
        if bought is None:
            bought = await self._shared_purchase(value, patience_s)
        elif self._clock.now().boot >= bought.renew:
            self._buy_aside(value)
        return CredentialValue(value.info, bought.token, bought.token_digest)

    def _holding(self, value: CredentialValue) -> _Bought | None:
        """The token that was bought with what is kept now, on this boot's clock, and that has not ended."""
        bought, now = self._bought.get(value.info.name), self._clock.now()
        if bought is None or now.boot >= bought.ends:
            return None
        same = (bought.digest, bought.created_at, bought.boot_id) == (value.digest, value.info.created_at, now.boot_id)
        return bought if same else None

    async def _with_unkept(self, value: CredentialValue, patience_s: float | None) -> CredentialValue:
        """While the keyring takes no new secret, the old token serves as long as it holds."""
        info, now = value.info, self._clock.now()
        bought = self._bought.get(info.name)
        if (
            bought is not None
            and (bought.created_at, bought.boot_id) == (info.created_at, now.boot_id)
            and now.boot < bought.ends
        ):
            self._buy_aside(value)
            return CredentialValue(info, bought.token, bought.token_digest)
        late = await self._shared_purchase(value, patience_s)
        return CredentialValue(info, late.token, late.token_digest)

    def _buy_aside(self, value: CredentialValue) -> None:
        """The old token still holds: nobody waits for the new one, and nobody stops when it cannot be had."""
        if value.info.name not in self._buying and self._recent_failure(value.info.name) is None:
            self._start(value)

    def _recent_failure(self, name: str) -> tuple[str, StopDetail] | None:
        at, why, detail = self._failed.get(name, (BootMs(0), "", StopDetail.TOKEN_REFUSED))
        return (why, detail) if why and 0 <= self._clock.now().boot - at < AGAIN_MS else None

    def _start(self, value: CredentialValue) -> asyncio.Task[_Bought]:
        name = value.info.name
        task = self._buying[name] = asyncio.create_task(self._purchase(value))
        task.add_done_callback(lambda done: self._ended(name, done))
        return task

    async def _shared_purchase(self, value: CredentialValue, patience_s: float | None) -> _Bought:
        """One purchase for all who ask at the same time; with *patience_s* only who began it waits at all."""
        name = value.info.name
        task = self._buying.get(name)
        begun = task is not None
        if task is None:
            if (failure := self._recent_failure(name)) is not None:
                raise CredentialUnavailable(*failure)
            task = self._start(value)
        if patience_s is not None:
            await asyncio.wait({task}, timeout=0 if begun else patience_s)
            if not task.done():
                raise CredentialPending(f"credential {name}: its token is being bought", StopDetail.TOKEN_REFUSED)
        try:
            # one who is cancelled must not cancel the others' purchase
            return await asyncio.shield(task)
        except CredentialUnavailable as error:
            message, detail = str(error), error.detail
        raise CredentialUnavailable(message, detail)

    def _ended(self, name: str, task: asyncio.Task[_Bought]) -> None:
        self._buying.pop(name, None)
        if not task.cancelled():
            task.exception()

    async def _purchase(self, value: CredentialValue) -> _Bought:
        info, now = value.info, self._clock.now()
        problem, detail = "", StopDetail.TOKEN_REFUSED
        try:
            value = await self._in_force(value)
            request, secret = sale(info.kind, info.names, value.secret, now.wall)
            answer = await self._transport().send(request, PinnedSecret(secret.reveal(), info.origins))
            if isinstance(answer, Fault):
                problem = f"the token endpoint gave no answer: {answer.text or answer.kind.value}"
            else:
                return await self._keep(value, answer)
        except TokenRefused as refused:
            problem = str(refused)
        except CredentialUnavailable as error:
            problem, detail = str(error), StopDetail(error.detail)
        text = f"credential {info.name}: {problem}"
        self._failed[info.name] = (now.boot, text, detail)
        raise CredentialUnavailable(text, detail)

    async def _in_force(self, value: CredentialValue) -> CredentialValue:
        """What is kept now. A spent refresh token that is offered again may cost the whole grant (RFC 9700, 4.14.2)."""
        info = value.info
        if info.name in self._unkept:
            await self._kept.renew(info, self._unkept[info.name][1])
            self._unkept.pop(info.name, None)
        if info.kind == "refresh":
            self._kept.forget(info.name)  # another process may have spent the one that is remembered here
            return await self._kept.read(info.name, info)
        return value

    async def _keep(self, value: CredentialValue, answer: Answer) -> _Bought:
        info, now = value.info, self._clock.now()
        token = token_of(info.kind, info.names, answer, now.wall)
        digest = value.digest
        beside: tuple[Secret, ...] = (value.secret,)
        if token.refresh is not None:
            first = value.secret.reveal().partition("\n")[0]
            # the old refresh token may be spent: the new one is kept before the token is used
            fresh = Secret(f"{first}\n{token.refresh.reveal()}")
            self._unkept[info.name] = (info.binding, fresh)
            try:
                await self._kept.renew(info, fresh)
            except Refused:
                too_long = True
            else:
                too_long = False
            self._unkept.pop(info.name, None)
            if too_long:
                raise TokenRefused("the new refresh token is longer than can be kept; set the credential anew")
            digest, beside = await self._kept.digest(info.name), (value.secret, token.refresh)
        life = token.life_s * 1_000
        bought = _Bought(
            token=PinnedSecret(token.access.reveal(), info.origins, beside),
            digest=digest,
            token_digest=await self._kept.keyed(token.access),
            created_at=info.created_at,
            renew=BootMs(now.boot + life - min(max(MARGIN_MS, life // 10), life // 2)),
            ends=BootMs(now.boot + max(life - SAFETY_MS, life // 2)),
            boot_id=now.boot_id,
        )
        self._bought[info.name] = bought
        self._failed.pop(info.name, None)
        return bought


class Impatient:
    """Port `Credentials` for a loop that serves all providers: no seller holds up the others' requests."""

    def __init__(self, credentials: ExchangedCredentials) -> None:
        self._credentials = credentials
        self.info = credentials.info
        self.known = credentials.known
        self.forget = credentials.forget

    async def digest(self, name: str, refused: Collection[str] = ()) -> str:
        """As `ExchangedCredentials.digest`; raises CredentialPending instead of waiting long."""
        return await self._credentials.digest(name, refused, patience_s=PATIENCE_S)

    async def read(self, name: str, info: CredentialInfo | None = None) -> CredentialValue:
        """As `ExchangedCredentials.read`; raises CredentialPending instead of waiting long."""
        return await self._credentials.read(name, info, patience_s=PATIENCE_S)
