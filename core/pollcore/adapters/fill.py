"""Turns a request and its secret into the bytes of one head, at the last moment.

Job: check where the request may go, check every header, fill the slot. What comes out holds the secret and masks
itself. Must not know: sockets, keyrings, HTTP libraries.
Source: spec K3, K5, H2; RFC 9110 sections 5.5 and 5.6.2 (what a header may hold).
"""

from __future__ import annotations

import base64
import re
from typing import Final
from urllib.parse import quote, urlencode

from pollcore.adapters.address import Address, parse_address
from pollcore.adapters.pinned import SEPARATOR, PinnedSecret
from pollcore.adapters.signing import CannotSign, signed_headers
from pollcore.facts import FaultKind, Request, Secret

MAX_HEADERS: Final = 64
MAX_HEADER_BYTES: Final = 16 * 1024
_METHOD: Final = re.compile(r"[A-Z]{1,16}")
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE: Final = re.compile(r"[!-~](?:[ \t!-~]*[!-~])?|")
_QUERY_NAME: Final = re.compile(r"[A-Za-z0-9_.~\[\]-]{1,128}")
NO_METHODS: Final = frozenset({"CONNECT", "TRACE"})
OURS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect"}
    | {"accept-encoding", "proxy-authorization", "proxy-connection"}
)
"""Headers that frame the exchange: the transport alone sets them."""
USER_AGENT: Final = b"pollconsole"


class Unsendable(Exception):
    """The request may not or cannot go out; nothing was sent. *text* is ours: no address, no secret."""

    def __init__(self, kind: FaultKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Filled:
    """A head ready to send. Holds the secret: shows nothing but the origin."""

    __slots__ = ("address", "body", "headers", "method", "target")

    def __init__(
        self, address: Address, method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes | None
    ) -> None:
        self.address = address
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body

    def __repr__(self) -> str:
        return f"Filled({self.method} {self.address.origin})"


def fill(request: Request, secret: Secret | None) -> Filled:
    """Check *request* against its origins and put *secret* into its slot.

    Raises:
        Unsendable: FOREIGN_ORIGIN (address unreadable, or outside the request's or the secret's origins), INSECURE
            (http beyond loopback without allow_http), PROTOCOL (method, header or secret that HTTP cannot carry).
    """
    address = _address(request, secret)
    if not _METHOD.fullmatch(request.method) or request.method in NO_METHODS:
        raise Unsendable(FaultKind.PROTOCOL, "the request's method cannot be sent")
    headers = [(b"host", address.host_header.encode())]
    names = _plain_headers(request, headers)
    target, body = address.target, request.body
    if request.slot is not None and request.slot.kind != "none":
        if secret is None:
            raise Unsendable(FaultKind.PROTOCOL, "the request wants a credential and was given none")
        if request.slot.kind == "form":
            body = _form_into(request.slot.names, secret.reveal(), headers, names, body or b"")
        elif request.slot.kind == "sigv4":
            _sign(request, address, secret.reveal(), headers, names)
        else:
            target = _secret_into(request, secret.reveal(), headers, names, target)
    if "user-agent" not in names:
        headers.append((b"user-agent", USER_AGENT))
    if "accept" not in names:
        headers.append((b"accept", b"*/*"))
    headers.append((b"accept-encoding", b"gzip, identity"))
    if body is not None:
        headers.append((b"content-length", str(len(body)).encode()))
    return Filled(address, request.method, target.encode(), headers, body)


def _address(request: Request, secret: Secret | None) -> Address:
    why = None
    try:
        address = parse_address(request.url)
    except ValueError as error:
        why = str(error)
    if why is not None:
        raise Unsendable(FaultKind.FOREIGN_ORIGIN, f"{why}; nothing was sent")
    origin = address.origin
    if origin not in request.origins:
        raise Unsendable(FaultKind.FOREIGN_ORIGIN, "the address is outside the pinned origins; nothing was sent")
    if isinstance(secret, PinnedSecret) and request.slot is not None and origin not in secret.origins:
        raise Unsendable(
            FaultKind.FOREIGN_ORIGIN,
            "the credential is not pinned to this origin; nothing was sent (pollconsole credential set NAME --origin)",
        )
    if address.scheme == "http" and not (request.allow_http or address.is_loopback):
        raise Unsendable(FaultKind.INSECURE, "http beyond this machine; use https, or allow_http = true")
    return address


def _plain_headers(request: Request, into: list[tuple[bytes, bytes]]) -> set[str]:
    """Append the request's own headers; return their names in lower case."""
    if len(request.headers) > MAX_HEADERS:
        raise Unsendable(FaultKind.PROTOCOL, f"the request has more than {MAX_HEADERS} headers")
    names: set[str] = set()
    size = 0
    for name, value in request.headers:
        low = name.lower()
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise Unsendable(FaultKind.PROTOCOL, "the request has a header that HTTP cannot carry")
        if low in OURS or low in names:
            raise Unsendable(FaultKind.PROTOCOL, f"the request may not set the header {low} (itself, or twice)")
        names.add(low)
        size += len(name) + len(value) + 4
        into.append((low.encode(), value.encode()))
    if size > MAX_HEADER_BYTES:
        raise Unsendable(FaultKind.PROTOCOL, f"the request's headers are larger than {MAX_HEADER_BYTES} bytes")
    return names


def _secret_into(request: Request, value: str, headers: list[tuple[bytes, bytes]], names: set[str], target: str) -> str:
    """Fill the slot; return the target, changed for kind query alone."""
    slot = request.slot
    assert slot is not None
    if slot.kind == "query":
        if len(slot.names) != 1 or not _QUERY_NAME.fullmatch(slot.names[0]):
            raise Unsendable(FaultKind.PROTOCOL, "the credential's query parameter has no usable name")
        joint = "?" if "?" not in target else "" if target[-1] in "?&" else "&"
        return f"{target}{joint}{slot.names[0]}={quote(value, safe='')}"
    for name, text in _credential_headers(slot.kind, slot.names, value):
        low = name.lower()
        if not _NAME.fullmatch(name) or low in OURS:
            raise Unsendable(FaultKind.PROTOCOL, "the credential's header has no usable name")
        if low in names:
            raise Unsendable(FaultKind.PROTOCOL, f"the header {low} is set by the contract and by the credential")
        if not text or not _VALUE.fullmatch(text):
            raise Unsendable(FaultKind.PROTOCOL, "the stored secret cannot stand in a header; set it anew")
        names.add(low)
        headers.append((low.encode(), text.encode()))
    return target


def _sign(request: Request, address: Address, value: str, headers: list[tuple[bytes, bytes]], names: set[str]) -> None:
    """AWS Signature Version 4; the slot names service and region."""
    slot = request.slot
    assert slot is not None
    if len(slot.names) != 2 or names & {"authorization", "x-amz-date", "x-amz-security-token"}:
        raise Unsendable(FaultKind.PROTOCOL, "a signed request takes service and region, and no header of its own kind")
    plain = [(name.decode(), text.decode()) for name, text in headers]
    url = f"{address.scheme}://{address.host_header}{address.target}"
    try:
        added = signed_headers(value, slot.names[0], slot.names[1], request.method, url, plain, request.body or b"")
    except CannotSign as error:
        problem = str(error)
    except Exception as error:
        # the library's text may quote what it was given
        problem = f"the request cannot be signed ({type(error).__name__})"
    else:
        headers += [(name.lower().encode(), text.encode()) for name, text in added]
        return
    raise Unsendable(FaultKind.PROTOCOL, problem)


def _form_into(
    fields: tuple[str, ...], value: str, headers: list[tuple[bytes, bytes]], names: set[str], body: bytes
) -> bytes:
    """Fields of a form, one line of the secret each; a first field `authorization` goes out as a Basic header.

    For the requests that buy a token alone: no contract has this kind (RFC 6749 sections 2.3.1, 6).
    """
    values = value.split(SEPARATOR)
    if not fields or len(fields) != len(values) or "authorization" in names:
        raise Unsendable(FaultKind.PROTOCOL, "the stored secret does not fit the form; set it anew")
    pairs = list(zip(fields, values, strict=True))
    if pairs[0][0] == "authorization":
        headers.append((b"authorization", b"Basic " + base64.b64encode(pairs.pop(0)[1].encode())))
    return b"&".join(part for part in (body, urlencode(pairs).encode()) if part)


def _credential_headers(kind: str, names: tuple[str, ...], value: str) -> list[tuple[str, str]]:
    if kind == "bearer":
        return [("authorization", f"Bearer {value}")]
    if kind == "basic":
        return [("authorization", f"Basic {base64.b64encode(value.encode()).decode()}")]
    if kind == "header":
        values = value.split(SEPARATOR)
        if not names or len(names) != len(values):
            raise Unsendable(FaultKind.PROTOCOL, "the stored secret has not one line for each header; set it anew")
        return list(zip(names, values, strict=True))
    raise Unsendable(FaultKind.PROTOCOL, "the credential's kind is unknown")
