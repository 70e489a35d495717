"""The secrets that are planted: one of every kind of credential, how it is entered, what a provider knows of it.

Must not know: processes, where a secret may be seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.trust import canary
from tests.trust.canary import Search

#: kind -> `[credential]` of its contract, and what must stand before the tables.
CONTRACTS: Final[Mapping[str, tuple[str, str]]] = {
    "bearer": ('kind = "bearer"', ""),
    "basic": ('kind = "basic"', ""),
    "header": ('kind = "header"\nnames = ["X-User-Token", "X-Api-Key"]', ""),
    "query": ('kind = "query"\nnames = ["key"]', ""),
    "sigv4": ('kind = "sigv4"\nnames = ["batch", "region"]', "[params.region]\nrequired = true"),
    "oauth2": ('kind = "bearer"', ""),
    "refresh": ('kind = "bearer"', ""),
    "google": ('kind = "bearer"', ""),
    "app": ('kind = "bearer"', ""),
    "refused": ('kind = "bearer"', ""),
    "calls": ('kind = "bearer"\nleast_mode = "per_call"', ""),
    "session": ('kind = "bearer"\nleast_mode = "per_session"', ""),
}
#: Kinds of credential whose jobs fare in every way; the others in a few.
WHOLE: Final = ("bearer",)
SHORT: Final = ("state", "done")
#: Kinds that end in a question before anything is asked.
ASKS: Final = ("refused", "calls", "session")
ASKED: Final = ("state",)
OPEN: Final = "open"


class Planted:
    """The secrets, how each is entered, and what the provider gives back of it."""

    def __init__(self, search: Search) -> None:
        def one(name: str, odd: str = canary.ODD) -> str:
            return search.add(name, canary.value(name, odd))

        pem = _pem()
        for n, line in enumerate(pem.splitlines()[2:-2]):
            search.add(f"private key, line {n}", line)
        bearer, basic, query, calls, session = (one(name) for name in ("bearer", "basic", "query", "calls", "session"))
        first, second = one("first header"), one("second header")
        key, token = one("sigv4 key", "+/="), one("sigv4 session", "+/=")
        client, other, wrong = one("client secret"), one("other client secret"), one("refused client secret")
        refresh = one("refresh token")
        self.bought = {kind: one(f"token of {kind}", "+/=") for kind in ("oauth2", "refresh", "google", "app")}
        self.entered = {
            "bearer": bearer,
            "basic": f"user-1:{basic}",
            "header": f"{first}\n{second}",
            "query": query,
            "sigv4": f"AKIAEXAMPLE7:{key}:{token}",
            "oauth2": f"client-1:{client}",
            "refresh": f"client-2:{other}\n{refresh}",
            "google": json.dumps({"client_email": "a@b.example", "private_key": pem}),
            "app": pem,
            "refused": f"client-3:{wrong}",
            "calls": calls,
            "session": session,
        }
        self.echoed: dict[str, Sequence[str]] = {
            "bearer": [bearer],
            "basic": [basic],
            "header": [second, first],
            "query": [query],
            "sigv4": [token, key],
            "oauth2": [self.bought["oauth2"], client],
            "refresh": [self.bought["refresh"], other, refresh],
            "google": [self.bought["google"]],
            "app": [self.bought["app"]],
            "refused": [wrong],
            "calls": [calls],
            "session": [session],
        }

    def options(self, kind: str, url: str) -> list[str]:
        """The options of `credential set` beside name and origin."""
        sold = ["--token-url", f"{url}/token/{kind}"]
        return {
            "header": ["--kind", "header:X-User-Token,X-Api-Key"],
            "query": ["--kind", "query:key"],
            "oauth2": ["--kind", "oauth2", *sold, "--client-auth", "form"],
            "refused": ["--kind", "oauth2", *sold],
            "refresh": ["--kind", "refresh", *sold],
            "google": ["--kind", "google", *sold, "--scope", "read"],
            "app": ["--kind", "github-app", "--token-url", url, "--scope", "1/2"],
        }.get(kind, ["--kind", kind if kind in ("basic", "sigv4") else "bearer"])


def _pem() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, plain).decode()
