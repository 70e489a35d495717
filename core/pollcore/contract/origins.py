"""URLs and origins: what may be asked, and where a credential may go.

Job: one strict form of `scheme://host:port`; no user part, no backslash, no control or non-ASCII character.
Must not know: contracts, sockets, DNS. Source: spec H2, K3; reliability section 13 (Location list).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urljoin

from pollcore.facts import Refused

MAX_URL: Final = 2_048
MAX_LISTED: Final = 5
"""Origins that a message names."""

_URL: Final = re.compile(
    r"(https?)://([a-z0-9_][a-z0-9_-]{0,62}(?:\.[a-z0-9_][a-z0-9_-]{0,62}){0,31}\.?|\[[0-9a-f:.]{2,45}\])(?::([0-9]{1,5}))?"
    r"((?:[/?][!-~]*)?)",
    re.IGNORECASE,
)
_BAD: Final = re.compile(r"[\\\"<>^`{}|#]")
_WILD: Final = re.compile(r"https://\*\.((?:[a-z0-9-]+\.)+[a-z0-9-]+)(?::([0-9]{1,5}))?/?", re.IGNORECASE)
_PORTS: Final = {"http": 80, "https": 443}


@lru_cache(maxsize=4_096)
def normalise_origin(url: str) -> str:
    """`https://api.example.test:443` of a URL or origin, all parts explicit, lower case.

    Raises:
        Refused: code `bad_url`: not absolute http(s), user part, bad port, backslash, fragment, control or non-ASCII
            characters, longer than 2,048.
    """
    found = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if found is None or _BAD.search(url):
        raise Refused(
            "not an absolute http or https URL of plain ASCII without user part and fragment, at most 2,048 long",
            code="bad_url",
        )
    scheme, host = found[1].lower(), found[2].lower().rstrip(".")
    port = int(found[3]) if found[3] else _PORTS[scheme]
    if not 1 <= port <= 65_535:
        raise Refused(f"port {port} does not exist", code="bad_url")
    return f"{scheme}://{host}:{port}"


def wildcard(text: str) -> str | None:
    """`https://*.blob.example.net:443` of a wildcard origin (https only, one leading star); None: not one."""
    found = _WILD.fullmatch(text)
    return f"https://*.{found[1].lower()}:{found[2] or 443}" if found else None


def covers(allowed: str, origin: str) -> bool:
    """Whether the normalised *allowed* (exact, or `https://*.host:port` for hosts below it) covers *origin*."""
    if "*" not in allowed:
        return allowed == origin
    _, _, tail = allowed.partition("*")
    return origin.startswith("https://") and origin.endswith(tail) and len(origin) > len("https://") + len(tail)


def is_loopback(origin: str) -> bool:
    """Whether a normalised origin names this machine by a literal loopback address or `localhost`."""
    host = origin.partition("://")[2].rpartition(":")[0]
    return host in ("localhost", "[::1]") or bool(re.fullmatch(r"127(?:\.[0-9]{1,3}){3}", host))


def absolute(base: str, reference: str) -> str:
    """Resolve *reference* against the request's URL (RFC 3986) and check the result.

    Raises:
        Refused: code `bad_url`.
    """
    text = reference.strip(" \t")
    if not text or len(text) > MAX_URL or _BAD.search(text) or not re.fullmatch(r"[!-~]+", text):
        raise Refused("no URL reference of plain ASCII, at most 2,048 long", code="bad_url")
    try:
        joined = urljoin(base, text)
    except ValueError:
        raise Refused("no URL reference", code="bad_url") from None
    normalise_origin(joined)
    return joined


def listed(origins: Sequence[str]) -> str:
    """Origins for a message, the first few of many."""
    shown = ", ".join(origins[:MAX_LISTED]) or "none"
    more = len(origins) - MAX_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def host_of(origin: str) -> str:
    """The host of a normalised origin."""
    return origin.partition("://")[2].rpartition(":")[0]
