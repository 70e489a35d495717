"""Credentials that buy bearer tokens, and signed requests: against a real seller of tokens on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from pollcore.adapters import token_kinds
from pollcore.adapters.credential_ops import remove_credential, set_credential
from pollcore.adapters.credentials import KeyringCredentials, MemoryMeta, entries, joined
from pollcore.adapters.fill import Unsendable, fill
from pollcore.adapters.keyring_store import MAX_VALUE, Vault
from pollcore.adapters.token_exchange import AGAIN_MS, ExchangedCredentials, Impatient
from pollcore.adapters.transport import HttpTransport
from pollcore.facts import (
    Answer,
    BootMs,
    CredentialPending,
    CredentialUnavailable,
    Instant,
    Moment,
    Refused,
    Request,
    Secret,
    Slot,
    StopDetail,
)
from tests.adapters.keyrings import Counting
from tests.serving import serving

CLIENT = "client-canary:pass-canary"
LIMIT_S = 30
"""What a purchase aside may take on a loaded machine."""


class Hand:
    """A clock that moves by hand."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now(self) -> Moment:
        return Moment(Instant(10**12 + self.ms), BootMs(self.ms), "boot")

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        self.ms += ms


class Shop:
    """A token endpoint that remembers what it was asked; `answers` are given in turn, the last one for ever."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.answers: list[tuple[int, Any]] = [(200, {"access_token": "tok-1", "token_type": "Bearer"})]
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                shop.asked.append((self.path, headers, dict(parse_qsl(body))))
                code, told = shop.answers.pop(0) if len(shop.answers) > 1 else shop.answers[0]
                raw = told if isinstance(told, bytes) else json.dumps(told).encode()
                self.send_response(code)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    with serving(made.server):
        yield made


class Desk:
    """Vault, metadata and the credentials over them, buying over a real transport."""

    def __init__(self, home: Path, transport: HttpTransport) -> None:
        self.clock, self.backend, self.meta = Hand(), Counting(), MemoryMeta()
        self.vault = Vault(home, backend=self.backend, limit_s=10)
        self.kept = KeyringCredentials(self.vault, self.meta, self.clock)
        self.credentials = ExchangedCredentials(self.kept, lambda: transport, self.clock)

    async def set(self, kind: str, shop: Shop, secret: str = CLIENT, **seller: str) -> Any:
        given = {"url": f"{shop.origin}/token", "client_auth": None, "scope": None, **seller}
        names = token_kinds.seller_names(kind, **given)
        return await set_credential(
            self.vault,
            self.meta,
            name="lake",
            kind=kind,
            names=names,
            origins=[shop.origin, "https://api.lake.example"],
            secret=Secret(secret),
            now=self.clock.now().wall,
        )

    async def token(self) -> str:
        return (await self.credentials.read("lake")).secret.reveal()


@pytest.fixture
def desk(home: Path, transport: HttpTransport) -> Desk:
    return Desk(home, transport)


@pytest.mark.rule("K5")
async def test_client_credentials_buy_one_token_for_all_until_it_is_about_to_end(desk: Desk, shop: Shop) -> None:
    shop.answers = [(200, {"access_token": f"tok-{n}", "token_type": "bearer", "expires_in": 3600}) for n in (1, 2)]
    await desk.set("oauth2", shop, scope="jobs.read")

    assert set(await asyncio.gather(*(desk.token() for _ in range(20)))) == {"tok-1"}
    desk.clock.ms += 3_000_000
    assert await desk.token() == "tok-1"
    assert len(shop.asked) == 1
    path, headers, form = shop.asked[0]
    assert (path, form) == ("/token", {"grant_type": "client_credentials", "scope": "jobs.read"})
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode() == CLIENT

    # in the last tenth of its life the old token still serves while the next is bought aside
    desk.clock.ms += 300_000
    assert await desk.token() == "tok-1"
    async with asyncio.timeout(LIMIT_S):
        while not (len(shop.asked) == 2 and await desk.token() == "tok-2"):
            await asyncio.sleep(0.01)


@pytest.mark.rule("K5")
async def test_the_client_may_prove_itself_in_the_form(desk: Desk, shop: Shop) -> None:
    await desk.set("oauth2", shop, client_auth="form")
    assert await desk.token() == "tok-1"
    _, headers, form = shop.asked[0]
    assert "authorization" not in headers
    assert (form["client_id"], form["client_secret"]) == ("client-canary", "pass-canary")


@pytest.mark.rule("K5")
async def test_a_new_refresh_token_is_kept_before_the_token_is_used(desk: Desk, shop: Shop) -> None:
    first = {"access_token": "tok-1", "token_type": "bearer", "expires_in": 60, "refresh_token": "ref-2"}
    shop.answers = [(200, first), (200, {"access_token": "tok-2", "token_type": "bearer"})]
    await desk.set("refresh", shop, secret=f"{CLIENT}\nref-1")

    assert await desk.token() == "tok-1"
    assert shop.asked[0][2]["refresh_token"] == "ref-1"
    kept = joined(await desk.vault.aget(*entries((await desk.meta.list())[0])))
    assert kept == f"{CLIENT}\nref-2"
    desk.clock.ms += 120_000
    assert await desk.token() == "tok-2"
    assert shop.asked[1][2] == {"grant_type": "refresh_token", "refresh_token": "ref-2"}


@pytest.mark.rule("K5", "K2")
@pytest.mark.parametrize("written", [0, 1, 3])
async def test_a_new_refresh_token_that_the_keyring_does_not_take_is_kept_later_and_the_spent_one_never_shown_again(
    written: int, desk: Desk, shop: Shop
) -> None:
    """Strict sellers end the whole grant when a spent token comes again."""
    first = {"access_token": "tok-1", "token_type": "bearer", "expires_in": 60, "refresh_token": "ref-2"}
    shop.answers = [(200, first), (200, {"access_token": "tok-2", "token_type": "bearer"})]
    await desk.set("refresh", shop, secret=f"{CLIENT}\nref-1")
    await desk.kept.read("lake")
    real, left = desk.backend.set_password, [written]

    def full(service: str, entry: str, value: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError("no space")
        real(service, entry, value)

    vars(desk.backend)["set_password"] = full
    for _ in range(3):
        for _ in range(5):
            with pytest.raises(CredentialUnavailable) as caught:
                await desk.token()
            assert caught.value.detail == StopDetail.KEYRING_ABSENT
        desk.clock.ms += AGAIN_MS
    assert [form["refresh_token"] for _, _, form in shop.asked] == ["ref-1"]
    vars(desk.backend)["set_password"] = real
    assert set(await asyncio.gather(*(desk.token() for _ in range(5)))) == {"tok-2"}
    assert [form["refresh_token"] for _, _, form in shop.asked] == ["ref-1", "ref-2"]


@pytest.mark.rule("K5", "V3")
async def test_a_loop_waits_for_no_slow_seller_and_finds_the_token_later(desk: Desk, shop: Shop) -> None:
    await desk.set("oauth2", shop)
    open_again = threading.Event()
    sell = shop.server.RequestHandlerClass.do_POST  # type: ignore[attr-defined]

    def slowly(handler: Any) -> None:
        open_again.wait(LIMIT_S)
        sell(handler)

    shop.server.RequestHandlerClass.do_POST = slowly  # type: ignore[attr-defined]
    loop = Impatient(desk.credentials)
    for _ in range(3):
        with pytest.raises(CredentialPending):
            await loop.read("lake")
    open_again.set()
    assert await desk.token() == "tok-1"
    assert (await loop.read("lake")).secret.reveal() == "tok-1"
    assert len(shop.asked) == 1


@pytest.mark.rule("K5", "K2")
async def test_a_loop_is_told_of_a_purchase_that_failed_while_it_did_not_wait(desk: Desk, shop: Shop) -> None:
    shop.answers = [(400, {})]
    await desk.set("oauth2", shop)
    loop = Impatient(desk.credentials)
    told = ""
    async with asyncio.timeout(LIMIT_S):
        while not told:
            try:
                await loop.read("lake")
            except CredentialPending:
                await asyncio.sleep(0.01)
            except CredentialUnavailable as error:
                told = str(error)
    assert "answered 400" in told
    assert len(shop.asked) == 1


@pytest.mark.rule("K5", "K2")
async def test_the_old_token_serves_while_it_holds_though_the_keyring_takes_no_new_secret(
    desk: Desk, shop: Shop
) -> None:
    shop.answers = [
        (200, {"access_token": f"tok-{n}", "token_type": "bearer", "expires_in": 3600, "refresh_token": f"ref-{n}"})
        for n in (2, 3, 4)
    ]
    await desk.set("refresh", shop, secret=f"{CLIENT}\nref-1")
    assert await desk.token() == "tok-2"
    real = desk.backend.set_password

    def full(service: str, entry: str, value: str) -> None:
        raise OSError("no space")

    vars(desk.backend)["set_password"] = full
    desk.clock.ms += 3_300_000
    left = 20  # asks, once a new secret was bought that the keyring does not take
    async with asyncio.timeout(LIMIT_S):
        while left:
            left -= len(shop.asked) == 2
            assert await desk.token() == "tok-2"
            await asyncio.sleep(0.02)
            desk.clock.ms += AGAIN_MS if len(shop.asked) == 2 else 0
    assert [form["refresh_token"] for _, _, form in shop.asked] == ["ref-1", "ref-2"]
    vars(desk.backend)["set_password"] = real
    desk.clock.ms += 600_000
    assert await desk.token() == "tok-4"
    assert [form["refresh_token"] for _, _, form in shop.asked] == ["ref-1", "ref-2", "ref-3"]


@pytest.mark.rule("K5", "O4")
async def test_a_refresh_token_that_another_process_used_up_is_not_offered_again(desk: Desk, shop: Shop) -> None:
    shop.answers = [
        (200, {"access_token": f"tok-{n}", "token_type": "bearer", "expires_in": 10, "refresh_token": f"ref-{n}"})
        for n in (2, 3)
    ]
    await desk.set("refresh", shop, secret=f"{CLIENT}\nref-1")
    other = ExchangedCredentials(
        KeyringCredentials(desk.vault, desk.meta, desk.clock), desk.credentials._transport, desk.clock
    )
    await desk.kept.read("lake")  # remembered here for a while
    assert (await other.read("lake")).secret.reveal() == "tok-2"
    assert await desk.token() == "tok-3"
    assert [form["refresh_token"] for _, _, form in shop.asked] == ["ref-1", "ref-2"]


def _key() -> tuple[str, Any]:
    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return pem.decode(), key.public_key()


@pytest.mark.rule("K5")
async def test_a_service_account_signs_its_own_statement(desk: Desk, shop: Shop) -> None:
    pem, public = _key()
    file = json.dumps({"type": "service_account", "client_email": "poll@lake.example", "private_key": pem})
    await desk.set("google", shop, secret=file, scope="https://www.googleapis.com/auth/bigquery")

    assert await desk.token() == "tok-1"
    form = shop.asked[0][2]
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    read: Any = {"verify_exp": False, "verify_iat": False, "verify_aud": False}
    claims = jwt.decode(form["assertion"], public, algorithms=["RS256"], options=read)
    assert claims["iss"] == "poll@lake.example"
    assert claims["aud"] == f"{shop.origin}/token"
    assert claims["scope"] == "https://www.googleapis.com/auth/bigquery"
    # a key is longer than one entry of the smallest keyring holds
    held = [value for value in desk.backend._entries.values() if value.startswith("+")]
    assert len(held) == 5
    assert max(map(len, held)) <= MAX_VALUE


@pytest.mark.rule("K5")
async def test_an_app_of_github_buys_a_token_of_its_installation(desk: Desk, shop: Shop) -> None:
    pem, public = _key()
    shop.answers = [(201, {"token": "ghs-1", "expires_at": "2001-09-09T02:50:00Z"})]
    await desk.set("github-app", shop, secret=pem, url=shop.origin, scope="77/4242")

    assert await desk.token() == "ghs-1"
    path, headers, _ = shop.asked[0]
    assert path == "/app/installations/4242/access_tokens"
    read: Any = {"verify_exp": False, "verify_iat": False}
    claims = jwt.decode(headers["authorization"].removeprefix("Bearer "), public, algorithms=["RS256"], options=read)
    assert claims["iss"] == "77"
    assert claims["exp"] - claims["iat"] <= 600


@pytest.mark.rule("K5")
@pytest.mark.parametrize(
    ("code", "told", "said"),
    [
        (400, {"error": "invalid_client", "error_description": "pass-canary"}, "answered 400"),
        (200, b"<html>pass-canary</html>", "cannot be read"),
        (200, {"token_type": "bearer"}, "no token"),
        (200, {"access_token": "a b", "token_type": "bearer"}, "no token"),
        (200, {"access_token": "x\r\ny", "token_type": "bearer"}, "no token"),
        (200, {"access_token": "t", "token_type": "mac"}, "no bearer token"),
        (200, {"access_token": "t", "token_type": "bearer", "scope": "jobs.read jobs.write"}, "more scope"),
    ],
)
async def test_what_is_no_usable_token_is_refused_without_the_sellers_words(
    desk: Desk, shop: Shop, code: int, told: Any, said: str
) -> None:
    shop.answers = [(code, told)]
    await desk.set("oauth2", shop, scope="jobs.read")
    with pytest.raises(CredentialUnavailable) as caught:
        await desk.token()
    assert caught.value.detail == StopDetail.TOKEN_REFUSED
    assert said in str(caught.value)
    assert "canary" not in str(caught.value)
    # a seller that refuses is not hammered by hundreds of operations
    with pytest.raises(CredentialUnavailable, match=said):
        await desk.token()
    assert len(shop.asked) == 1
    shop.answers = [(200, {"access_token": "tok-9", "token_type": "bearer"})]
    desk.clock.ms += AGAIN_MS
    assert await desk.token() == "tok-9"


@pytest.mark.rule("K3")
async def test_the_secret_goes_to_no_seller_that_it_is_not_pinned_to(desk: Desk, shop: Shop) -> None:
    names = token_kinds.seller_names("oauth2", url="https://login.evil.example/token", client_auth=None, scope=None)
    with pytest.raises(Refused, match="token endpoint is not among the origins"):
        await set_credential(
            desk.vault,
            desk.meta,
            name="lake",
            kind="oauth2",
            names=names,
            origins=[shop.origin],
            secret=Secret(CLIENT),
            now=Instant(1),
        )
    # the seller is part of where the secret lies: another address in the metadata finds none
    info = await desk.set("oauth2", shop)
    moved = token_kinds.seller_names("oauth2", url=f"{shop.origin}/other", client_auth=None, scope=None)
    await desk.meta.put(type(info)(**{**{f: getattr(info, f) for f in info.__struct_fields__}, "names": moved}), info)
    with pytest.raises(CredentialUnavailable) as caught:
        await desk.token()
    assert caught.value.detail == StopDetail.CREDENTIAL_MISSING
    assert shop.asked == []


@pytest.mark.rule("K1")
async def test_a_token_is_in_no_keyring_entry_and_a_removed_credential_leaves_none(desk: Desk, shop: Shop) -> None:
    await desk.set("refresh", shop, secret=f"{CLIENT}\nref-1")
    assert await desk.token() == "tok-1"
    assert not any("tok-1" in value for value in desk.backend._entries.values())
    await remove_credential(desk.vault, desk.meta, "lake")
    assert not any("credential/lake" in name for _, name in desk.backend._entries)


@pytest.mark.rule("K2")
async def test_a_secret_that_was_not_written_whole_is_missing_and_never_sent(desk: Desk, shop: Shop) -> None:
    info = await desk.set("refresh", shop, secret=f"{CLIENT}\nref-1")
    names = entries(info)
    await desk.vault.aset(names[1], "+of another writing")
    with pytest.raises(CredentialUnavailable) as caught:
        await desk.token()
    assert caught.value.detail == StopDetail.CREDENTIAL_MISSING
    assert shop.asked == []


@pytest.mark.rule("K5")
@given(
    expires=st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers(), max_size=2)
    )
)
def test_a_tokens_life_is_bounded_whatever_the_seller_says(expires: Any) -> None:
    told = {"access_token": "t", "token_type": "bearer", "expires_in": expires}
    body = json.dumps(told).encode()
    answer = Answer(200, (), body, Instant(0), Instant(0))
    names = token_kinds.seller_names("oauth2", url="https://a.example/t", client_auth=None, scope=None)
    if type(expires) in (int, float) and expires <= 0:
        with pytest.raises(token_kinds.TokenRefused, match="time is over"):
            token_kinds.token_of("oauth2", names, answer, Instant(10**12))
        return
    assert 1 <= token_kinds.token_of("oauth2", names, answer, Instant(10**12)).life_s <= token_kinds.MAX_LIFE_S


def _signed(secret: str, url: str = "https://athena.eu-west-1.amazonaws.com/", body: bytes = b"{}") -> dict[str, str]:
    request = Request(
        method="POST",
        url=url,
        headers=(("x-amz-target", "AmazonAthena.GetQueryExecution"), ("content-type", "application/x-amz-json-1.1")),
        body=body,
        slot=Slot("aws", "sigv4", ("athena", "eu-west-1")),
        origins=("https://athena.eu-west-1.amazonaws.com:443",),
    )
    return {name.decode(): value.decode() for name, value in fill(request, Secret(secret)).headers}


@pytest.mark.rule("K5")
def test_a_signed_request_carries_no_secret_and_names_what_it_covers() -> None:
    headers = _signed("AKIDEXAMPLE:secret-canary-signing-key")
    scope = headers["authorization"]
    assert scope.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/athena/aws4_request" in scope
    assert "content-type;host;x-amz-date;x-amz-target" in scope
    assert "canary" not in json.dumps(headers)
    assert _signed("AKID:k:role-token")["x-amz-security-token"] == "role-token"


@pytest.mark.rule("K5")
def test_another_body_or_key_has_another_signature() -> None:
    def signature(**changed: Any) -> str:
        found = _signed(**{"secret": "AKID:one", **changed})
        return found["authorization"].rpartition("Signature=")[2]

    assert len({signature(), signature(body=b'{"a":1}'), signature(secret="AKID:two")}) == 3


@pytest.mark.rule("K5")
def test_a_secret_of_another_form_is_not_signed_with() -> None:
    with pytest.raises(Unsendable) as caught:
        _signed("only-canary")
    assert "canary" not in caught.value.text


# --- a token that was refused -----------------------------------------------------------------------------------------


@pytest.mark.rule("H3", "K5")
async def test_the_digest_is_the_tokens_own_and_only_a_refused_one_is_bought_again(desk: Desk, shop: Shop) -> None:
    shop.answers = [(200, {"access_token": f"tok-{n}", "token_type": "bearer", "expires_in": 3600}) for n in (1, 2)]
    await desk.set("oauth2", shop)
    kept = await desk.credentials.digest("lake")
    assert shop.asked == []
    first = await desk.credentials.read("lake")
    assert first.digest not in (kept, "")
    assert await desk.credentials.digest("lake", ["another"]) == first.digest
    assert len(shop.asked) == 1
    second = await desk.credentials.digest("lake", [first.digest])
    again = await desk.credentials.read("lake")
    assert (again.secret.reveal(), again.digest) == ("tok-2", second)
    assert second != first.digest
    assert len(shop.asked) == 2


@pytest.mark.rule("H3")
async def test_a_loop_that_looks_for_another_token_waits_for_no_seller_and_buys_but_once(
    desk: Desk, shop: Shop
) -> None:
    shop.answers = [(200, {"access_token": "tok-1", "token_type": "bearer", "expires_in": 3600})]
    await desk.set("oauth2", shop)
    refused = (await desk.credentials.read("lake")).digest
    loop = Impatient(desk.credentials)
    for _ in range(5):
        assert await loop.digest("lake", [refused]) == refused
    assert len(shop.asked) == 2
    shop.answers = [(400, {"error": "invalid_client"})]
    desk.clock.ms += AGAIN_MS
    for _ in range(5):
        with pytest.raises(CredentialUnavailable):
            await loop.digest("lake", [refused])
    assert len(shop.asked) == 3
