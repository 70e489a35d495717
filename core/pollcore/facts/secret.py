"""A text that must never be seen.

Job: mask itself in every rendering. Must not know: where it comes from or goes to.
Source: spec K1; Python strings cannot be wiped, so values are kept short-lived instead.
"""

from __future__ import annotations

from typing import Final, NoReturn

MASK = "********"
BUYS_BEARER: Final = ("oauth2", "refresh", "google", "github-app")
"""Kinds of credential whose secret buys a short-lived bearer token (K5); to a contract they are `bearer`."""


class Secret:
    """Holds one secret text; only `reveal` gives it out."""

    __slots__ = ("__value",)

    def __init__(self, value: str) -> None:
        self.__value = value

    def reveal(self) -> str:
        """The text itself: called by the transport, at the last moment, for a pinned origin."""
        return self.__value

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return MASK

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __eq__(self, other: object) -> bool:
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]


def mask_url(url: str) -> str:
    """Host and path, the query and any user part masked: `https://host/path?...` (K4: links may be pre-signed)."""
    head, question, _ = url.partition("?")
    head = head.partition("#")[0]
    scheme, slashes, rest = head.partition("://")
    if slashes:
        authority, slash, path = rest.partition("/")
        head = f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
    return f"{head}?..." if question else head
