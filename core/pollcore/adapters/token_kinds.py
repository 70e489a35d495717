"""Credentials that buy a bearer token: what is kept, what is asked, what is read from the answer.

Job: pure rules for the kinds `oauth2`, `refresh`, `google` and `github-app`: check what an operator enters, build the
one request that buys a token, read its answer. Must not know: keyrings, sockets, clocks.

What a token is bought with stays in the keyring; the address of the seller is part of the credential's names, so that
it cannot be changed without entering the secret again (`credentials.entry_name`). A token is never stored.
Source: spec K3, K5; RFC 6749 sections 4.4, 5.1, 6; RFC 7523 section 2.1.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from pollcore.adapters.address import parse_address
from pollcore.facts import Answer, Instant, Refused, Request, Secret, Slot

MAX_SCOPE: Final = 1_000
MAX_TOKEN: Final = 8_000
DEFAULT_LIFE_S: Final = 300
"""RFC 6749 leaves `expires_in` out where the documentation tells it; then a token is bought again after this."""
MAX_LIFE_S: Final = 86_400
ASSERTION_S: Final = 540
"""How long our own assertion holds: GitHub allows ten minutes, Google an hour."""
CLOCK_SLACK_S: Final = 60
TOTAL_MS: Final = 5_000
"""The controller waits for a first purchase as it waits for the keyring: not long."""
GOOGLE_URL: Final = "https://oauth2.googleapis.com/token"
GITHUB_URL: Final = "https://api.github.com"


class Seller(NamedTuple):
    """Where and how a token is bought; kept in the credential's names, in this order."""

    url: str
    """The token endpoint; for `github-app` the API's base."""
    client_auth: str
    """`basic` or `form`; empty where an assertion proves who asks."""
    scope: str
    """Space-separated; empty: what the provider gives by itself. `github-app`: APP_ID/INSTALLATION_ID."""


class Sale(NamedTuple):
    """The request that buys a token, and the secret that fills its slot."""

    request: Request
    secret: Secret


class Token(NamedTuple):
    """What was bought. *refresh*: a new refresh token that replaces the kept one; None: the kept one stays."""

    access: Secret
    life_s: int
    refresh: Secret | None


class TokenRefused(Exception):
    """The seller gave none, or one that may not be used. The text is ours, without the seller's words."""


def seller_names(kind: str, *, url: str | None, client_auth: str | None, scope: str | None) -> tuple[str, ...]:
    """Check what an operator says of a seller; the names to keep. Raises Refused, naming the option."""
    url = url or {"google": GOOGLE_URL, "github-app": GITHUB_URL}.get(kind)
    if url is None:
        raise Refused(f"kind {kind} needs --token-url, the address that sells tokens", code="token_url")
    try:
        parse_address(url)
    except ValueError as error:
        raise Refused(f"--token-url: {error}", code="token_url") from None
    scope = " ".join((scope or "").split())
    if len(scope) > MAX_SCOPE or not scope.isascii() or not scope.isprintable():
        raise Refused(f"--scope: up to {MAX_SCOPE} printable ASCII characters", code="scope")
    if kind == "google" and not scope:
        raise Refused("kind google needs --scope, such as https://www.googleapis.com/auth/bigquery", code="scope")
    if kind == "github-app" and not _is_pair(scope):
        raise Refused("kind github-app needs --scope APP_ID/INSTALLATION_ID (two numbers)", code="scope")
    wanted = client_auth or "basic"
    if kind in ("oauth2", "refresh") and wanted not in ("basic", "form"):
        raise Refused("--client-auth is basic or form", code="client_auth")
    return Seller(url, wanted if kind in ("oauth2", "refresh") else "", scope)


def _is_pair(text: str) -> bool:
    first, slash, second = text.partition("/")
    return bool(slash) and first.isdecimal() and second.isdecimal()


def checked_secret(kind: str, value: str) -> str:
    """*value* in the form in which it is kept. Raises Refused without quoting anything of it."""
    if kind in ("google", "github-app"):
        return _checked_key(kind, value)
    lines = value.split("\n")
    wanted = 2 if kind == "refresh" else 1
    if len(lines) != wanted or not all(line.isascii() and line.isprintable() and line.strip() for line in lines):
        what = "CLIENT_ID:CLIENT_SECRET" + (" and the refresh token on a second line" if wanted == 2 else "")
        raise Refused(f"kind {kind}: the secret is {what}", code="secret")
    if ":" not in lines[0]:
        raise Refused(f"kind {kind}: the secret's first line is CLIENT_ID:CLIENT_SECRET", code="secret")
    return value


def _checked_key(kind: str, value: str) -> str:
    """A private key in one line: `ISSUER:BASE64` of its PKCS #8 form, so that keyrings keep it in few pieces."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    issuer, pem, problem = "", value, None
    if kind == "google":
        try:
            told = json.loads(value)
            issuer, pem = str(told["client_email"]), str(told["private_key"])
        except (ValueError, KeyError, TypeError, RecursionError):
            problem = "kind google: the secret is the service account's JSON key file, whole"
    if problem is None:
        try:
            key = serialization.load_pem_private_key(pem.encode(), None)
            if isinstance(key, rsa.RSAPrivateKey) and "\n" not in issuer and ":" not in issuer:
                der = key.private_bytes(
                    serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                )
                return f"{issuer}:{base64.b64encode(der).decode()}"
        except Exception:
            # the library's text may quote what it was given
            pass
        problem = f"kind {kind}: the secret holds no RSA private key in PEM form without a passphrase"
    raise Refused(problem, code="secret")


def sale(kind: str, names: tuple[str, ...], secret: Secret, now: Instant) -> Sale:
    """The request that buys a token with *secret*. Raises TokenRefused: the kept secret cannot be used."""
    seller = Seller(*names)
    if kind == "github-app":
        app, _, installation = seller.scope.partition("/")
        url = f"{seller.url.rstrip('/')}/app/installations/{installation}/access_tokens"
        headers = (("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28"))
        claims = {"iss": app, "iat": now // 1_000 - CLOCK_SLACK_S, "exp": now // 1_000 + ASSERTION_S - CLOCK_SLACK_S}
        return Sale(_request(url, headers, b"", Slot("", "bearer")), _assertion(secret, claims))
    scope = {"scope": seller.scope} if seller.scope else {}
    form = (("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json"))
    if kind == "google":
        issuer = secret.reveal().partition(":")[0]
        issued = now // 1_000
        claims = {"iss": issuer, "aud": seller.url, "iat": issued, "exp": issued + ASSERTION_S, **scope}
        asked = urlencode({"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}).encode()
        slot = Slot("", "form", ("assertion",))
        return Sale(_request(seller.url, form, asked, slot), _assertion(secret, claims))
    lines = secret.reveal().split("\n")
    client, _, password = lines[0].partition(":")
    grant = "refresh_token" if kind == "refresh" else "client_credentials"
    asked = urlencode({"grant_type": grant, **scope}).encode()
    fields: list[tuple[str, str]] = [("refresh_token", lines[1])] if kind == "refresh" else []
    if seller.client_auth == "form":
        fields += [("client_id", client), ("client_secret", password)]
        basic = ""
    else:
        basic = lines[0]
    slot = Slot("", "form", (*(("authorization",) if basic else ()), *(name for name, _ in fields)))
    return Sale(
        _request(seller.url, form, asked, slot),
        Secret("\n".join([*([basic] if basic else []), *(value for _, value in fields)])),
    )


def _request(url: str, headers: tuple[tuple[str, str], ...], body: bytes, slot: Slot) -> Request:
    origin = parse_address(url).origin
    return Request(method="POST", url=url, headers=headers, body=body, slot=slot, origins=(origin,), total_ms=TOTAL_MS)


def _assertion(secret: Secret, claims: dict[str, Any]) -> Secret:
    """A signed statement of who asks (RS256)."""
    import jwt
    from cryptography.hazmat.primitives import serialization

    try:
        der = base64.b64decode(secret.reveal().partition(":")[2])
        key: Any = serialization.load_der_private_key(der, None)
        return Secret(jwt.encode(claims, key, algorithm="RS256"))
    except Exception:
        pass
    raise TokenRefused("the stored private key cannot be used; set the credential anew")


def token_of(kind: str, names: tuple[str, ...], answer: Answer, now: Instant) -> Token:
    """Read a seller's answer. Raises TokenRefused: no usable token, or one with more scope than was asked for."""
    seller = Seller(*names)
    if answer.status not in (200, 201):
        raise TokenRefused(f"the token endpoint answered {answer.status}")
    try:
        told: Any = json.loads(answer.body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise TokenRefused("the token endpoint's answer cannot be read")
    access = told.get("token" if kind == "github-app" else "access_token")
    if not isinstance(access, str) or not 1 <= len(access) <= MAX_TOKEN or not _sendable(access):
        raise TokenRefused("the token endpoint's answer holds no token that can be sent")
    if kind != "github-app" and str(told.get("token_type", "")).lower() != "bearer":
        raise TokenRefused("the token endpoint sold no bearer token")
    given = told.get("scope")
    if kind in ("oauth2", "refresh") and seller.scope and isinstance(given, str):
        more = set(given.split()) - set(seller.scope.split())
        if more:
            raise TokenRefused("the token has more scope than was asked for; it is not used")
    fresh = told.get("refresh_token") if kind == "refresh" else None
    usable = isinstance(fresh, str) and 1 <= len(fresh) <= MAX_TOKEN and _sendable(fresh)
    return Token(Secret(access), _life(told, now), Secret(str(fresh)) if usable else None)


def _sendable(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _life(told: dict[str, Any], now: Instant) -> int:
    """Seconds that the token holds, from `expires_in` or `expires_at`; capped, so that a wrong date ends."""
    left: Any = told.get("expires_in")
    if isinstance(left, str) and left.isdecimal() and len(left) < 12:
        left = int(left)
    until = told.get("expires_at")
    if left is None and isinstance(until, str):
        from pollcore.facts import parse_instant

        try:
            left = (parse_instant(until) - now) // 1_000
        except ValueError:
            left = None
    if isinstance(left, bool) or not isinstance(left, int | float) or not 0 < left <= 10**11:
        if isinstance(left, int | float) and not isinstance(left, bool) and left <= 0:
            # sent all the same, it would be refused, and with it the credential until it is entered anew (H3)
            raise TokenRefused("the token endpoint sold a token whose time is over")
        return DEFAULT_LIFE_S
    return max(1, int(min(left, MAX_LIFE_S)))
