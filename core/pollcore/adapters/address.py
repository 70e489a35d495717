"""Reads an address strictly, so that what was checked is what is dialled.

Job: split a URL into origin and request target, or refuse it. There is one reading, used for the check of the origin
and for the connection, and the target goes out byte for byte. Must not know: sockets, secrets, contracts.
Source: spec K3, H2, H7; RFC 3986; reliability notes on `Location` (user part, backslash, CR LF, zones, odd ports).
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

import msgspec

MAX_URL: Final = 8_192
"""Pre-signed links run to about 2 KiB; beyond this nothing is an address."""
_IPV4: Final = re.compile(r"[0-9]+(?:\.[0-9]+){3}")
MAX_HOST: Final = 253
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# scheme, authority (no user part, no backslash: neither is in the set), path and query in visible ASCII; fragment cut
_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z]{1,8})://(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<target>[/?][!-\[\]-~]*)?"
)
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


class Address(msgspec.Struct, frozen=True):
    """One address, read."""

    scheme: str
    host: str
    """Lower case, ASCII; a literal IPv6 address without its brackets, in its shortest form."""
    port: int
    target: str
    """Path and query as they came, `/` if there were none."""

    @property
    def origin(self) -> str:
        """`scheme://host:port`, all explicit: the form that pins compare."""
        return f"{self.scheme}://{self.host_text}:{self.port}"

    @property
    def host_text(self) -> str:
        """The host as it stands in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def host_header(self) -> str:
        """The value of `Host`: the port only where it is not the scheme's own."""
        return self.host_text if self.port == _DEFAULT_PORTS[self.scheme] else f"{self.host_text}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """This machine, by its literal address or the name `localhost`; no resolver is asked."""
        return is_loopback(self.host)


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Tell whether *host* (lower case) is this machine. Odd spellings (`127.1`, `2130706433`) are not."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=2_048)
def parse_address(url: str) -> Address:
    """Read *url*.

    Raises:
        ValueError: not an absolute http or https URL in visible ASCII, a user part, a backslash, a control character,
            a zone, a port outside 1-65535, a host name that DNS cannot carry, or longer than MAX_URL. The text is ours
            and quotes nothing of the URL.
    """
    if len(url) > MAX_URL:
        raise ValueError(f"address longer than {MAX_URL} characters")
    found = _URL.fullmatch(url.partition("#")[0])
    if found is None:
        raise ValueError(_why_not(url))
    scheme = found["scheme"].lower()
    if scheme not in _DEFAULT_PORTS:
        raise ValueError("address is neither http nor https")
    port = int(found["port"]) if found["port"] else _DEFAULT_PORTS[scheme]
    if not 1 <= port <= 65_535:
        raise ValueError("address names a port outside 1-65535")
    target = found["target"] or "/"
    return Address(scheme, _host(found["host"].lower()), port, f"/{target}" if target.startswith("?") else target)


def origin_of(url: str) -> str:
    """`scheme://host:port` of *url*, all explicit. Raises ValueError as `parse_address` does."""
    return parse_address(url).origin


def _host(host: str) -> str:
    if host.startswith("["):
        try:
            return ipaddress.IPv6Address(host[1:-1]).compressed
        except ValueError:
            raise ValueError("address names a host that is no IPv6 address") from None
    if _IPV4.fullmatch(host):
        # "0.0.0.00": one reader's address is another's name; only the one spelling that all read alike
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ValueError("address names a host that is no IPv4 address") from None
    if len(host) > MAX_HOST or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise ValueError("address names a host that DNS cannot carry")
    return host


def _why_not(url: str) -> str:
    """The first reason in words; every path of it is a refusal."""
    if not url.isascii():
        return "address is not ASCII: write host names in their xn-- form, percent-encode the rest"
    if any(character <= " " or character == "\x7f" for character in url):
        return "address holds a space or a control character"
    if "\\" in url:
        return "address holds a backslash"
    authority = url.partition("://")[2].partition("/")[0]
    if "@" in authority:
        return "address holds a user part"
    return "address is no absolute http or https URL"
