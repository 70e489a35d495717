"""Takes our own secrets out of what comes back.

Job: find one secret in bytes or text, raw or encoded (base64, base64url, percent, hex, JSON escapes, also escaped
again), and mask it. A mask never cuts an escape in two: JSON that parsed still parses, also JSON inside its texts.
Must not know: where the bytes come from or go to. Values shorter than MIN_LENGTH are not searched for: they would
mask ordinary words, states included. Split, reversed, hashed or encrypted echoes are not found; docs say so.
Source: spec K4; invariant I21.
"""

from __future__ import annotations

import base64
import json
import re
import weakref
from collections.abc import Iterator
from itertools import groupby
from typing import Final
from urllib.parse import quote

from pollcore.facts import MASK

MIN_LENGTH: Final = 8
_MASK: Final = MASK.encode()
_ESCAPED: Final = frozenset(b"\"'/&<>+=`")
"""Bytes that some writer of JSON escapes: all of them the quote, PHP the slash, Go and .NET the others."""
_MAX_ESCAPES: Final = 8
"""Backslashes before one byte: escaped three times over."""
_BACKSLASH: Final = 0x5C
_AFTER_BACKSLASH: Final = frozenset(b'"/bfnrtu')
"""What makes an escape of JSON with one backslash before it (RFC 8259, 7), the backslash itself apart."""
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_URL: Final = re.compile(r"(?i)\b(https?://)(?:[^\s/@'\"<>]*@)?([^\s?#'\"<>]*)(\?[^\s'\"<>]*)?")

_Patterns = tuple[re.Pattern[bytes], ...]
_Span = tuple[int, int]

_alive: weakref.WeakSet[Scrubber] = weakref.WeakSet()
"""Scrubbers whose secret is in memory now: what `scrub_text` looks for. They die with their secret."""


class Scrubber:
    """Masks one secret. A secret of several lines (two headers) or `user:password` is searched whole and by part."""

    __slots__ = ("__weakref__", "_needles", "_patterns")

    def __init__(self, secret: str) -> None:
        texts = {secret, *secret.split("\n")}
        for line in secret.split("\n"):
            if ":" in line:
                # what stands behind a name, alone and by part (basic, sigv4, a client's secret), and the form that is
                # sent; the name itself is no secret
                behind = line.partition(":")[2]
                texts |= {behind, *behind.split(":"), base64.b64encode(line.encode("utf-8", "surrogatepass")).decode()}
        # kind query: the form that is sent may come back encoded once more
        texts |= {quote(text, safe="", errors="replace") for text in texts}
        needles: set[bytes] = set()
        for text in texts:
            if len(text) >= MIN_LENGTH:
                needles |= _encodings(text)
        self._needles = tuple(sorted(needles))
        self._patterns: _Patterns | None = None
        _alive.add(self)

    def __repr__(self) -> str:
        return "Scrubber(********)"

    def found(self, data: bytes) -> bool:
        """Tell whether *data* holds the secret in any form."""
        return any(needle in data for needle in self._needles) or (
            b"\\" in data and any(pattern.search(data) for pattern in self._with_escapes())
        )

    def _finds(self, data: bytes) -> list[_Span]:
        """Where the secret stands; the finds of different needles overlap."""
        finds: list[_Span] = []
        for needle in self._needles:
            at = data.find(needle)
            while at >= 0:
                finds.append((at, at + len(needle)))
                at = data.find(needle, at + len(needle))
        if b"\\" in data:
            finds += [found.span() for pattern in self._with_escapes() for found in pattern.finditer(data)]
        return finds

    def bytes(self, data: bytes) -> bytes:
        """*data* with every occurrence masked; the same object if there is none (the usual case, no copy)."""
        finds = _joined(self._finds(data))
        if not finds:
            return data
        if b"\\" in data:
            finds = _joined([_whole_escapes(data, start, end) for start, end in finds])
        kept, at = [], 0
        for start, end in finds:
            kept.append(data[at:start])
            at = end
        return _MASK.join([*kept, data[at:]])

    def _with_escapes(self) -> _Patterns:
        """Made when the first data with a backslash comes: needles whose bytes may be escaped, once or again.

        A find begins where a row of backslashes begins, so that a body full of them is gone through once.
        """
        if self._patterns is None:
            self._patterns = tuple(
                re.compile(b"".join(_escapable(byte, n, at == 0) for at, (byte, n) in enumerate(_rows(needle))))
                for needle in self._needles
                if b"\\" in needle or _ESCAPED.intersection(needle)
            )
        return self._patterns

    def headers(self, headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        """Header pairs with names and values masked; the same object if there is nothing to mask."""
        joined = "\n".join([f"{name}\n{value}" for name, value in headers]).encode("latin-1", "replace")
        if not self.found(joined):
            return headers
        return tuple((self.text(name), self.text(value)) for name, value in headers)

    def text(self, text: str) -> str:
        """*text* masked; characters outside Latin-1 are left alone (our secrets are ASCII, see keyring_store)."""
        raw = text.encode("utf-8", "surrogatepass")
        masked = self.bytes(raw)
        return text if masked is raw else masked.decode("utf-8", "surrogatepass")


def _joined(spans: list[_Span]) -> list[_Span]:
    """*spans* in order, those that touch as one."""
    joined: list[_Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _whole_escapes(data: bytes, start: int, end: int) -> _Span:
    """The find moved to where it cuts no escape, at whatever depth of JSON in JSON it stands."""
    return _begin_of_escape(data, start), _end_of_escape(data, start, end)


def _begin_of_escape(data: bytes, start: int) -> int:
    """A row of backslashes right before the find is taken along, with a `u` and digits of one: where a row begins, no
    escape of any depth is under way."""
    for at in range(start - 1, max(start - 5, 0), -1):
        if data[at] == 0x75 and data[at - 1] == _BACKSLASH:
            start = at
            break
        if data[at] not in _HEX:
            break
    while start and data[start - 1] == _BACKSLASH:
        start -= 1
    return start


def _end_of_escape(data: bytes, start: int, end: int) -> int:
    """A row of backslashes that the find ends in is taken along, but for those that escape the byte behind it.

    Escaping makes of a row of n before a quote one of 2n + 1, so a row ends in as many as escape the quote itself, from
    the innermost text that it bounds outwards: 2^L - 1, where n ends in L binary ones.
    """
    if data[end - 1] != _BACKSLASH:
        return end
    first, behind = end - 1, end
    while first and data[first - 1] == _BACKSLASH:
        first -= 1
    while behind < len(data) and data[behind] == _BACKSLASH:
        behind += 1
    if behind == len(data) or data[behind] not in _AFTER_BACKSLASH:
        return behind
    row = behind - first
    kept = (row ^ (row + 1)) >> 1
    # a secret that is hardly more than backslashes is not left standing for the sake of the byte behind them
    return behind - kept if behind - kept > start + MIN_LENGTH // 2 else behind + row % 2


def _rows(needle: bytes) -> Iterator[tuple[int, int]]:
    """The bytes of *needle* with how often each stands there: a row of backslashes is one, any other byte is alone."""
    for byte, row in groupby(needle):
        count = len(tuple(row))
        yield from [(byte, count)] if byte == _BACKSLASH else [(byte, 1)] * count


def _escapable(byte: int, count: int, first: bool) -> bytes:
    """A pattern for *byte* as it is, behind backslashes, or as `\\u0000` of it; of backslashes, *count* in a row.

    *first* in the needle: it begins where a row of backslashes begins, however long that is.
    """
    if byte != _BACKSLASH and byte not in _ESCAPED:
        return re.escape(bytes([byte]))
    at, some = (rb"(?<!\\)", b"+") if first else (b"", b"{1,%d}" % _MAX_ESCAPES)
    if byte == _BACKSLASH:
        # one count for the whole row: a choice for each backslash of it would be tried in every combination
        most = b"" if first else b"%d" % (count * _MAX_ESCAPES)
        more = rb"(?:\\{1,%d}u005[cC]){%d}" % (_MAX_ESCAPES, count - 1)
        return rb"%b(?:\\{%d,%b}|\\%bu005[cC]%b)" % (at, count, most, some, more)
    plain, digits = re.escape(bytes([byte])), f"{byte:04x}"
    numbered = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits).encode()
    return rb"%b(?:(?:\\%b)?%b|\\%bu%b)" % (at, some, plain, some, numbered)


def _encodings(text: str) -> set[bytes]:
    raw = text.encode("utf-8", "surrogatepass")
    found = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    for safe in ("", "/", "/:+=,;@"):
        found.add(quote(text, safe=safe, errors="replace").encode())
    found |= {_lower_percent(each) for each in found if b"%" in each}
    found.add("".join(f"%{byte:02x}" for byte in raw).encode())
    found.add("".join(f"%{byte:02X}" for byte in raw).encode())
    escaped = json.dumps(text)[1:-1]
    found |= {escaped.encode(), escaped.replace("/", "\\/").encode(), escaped.replace("&", "\\u0026").encode()}
    for shift in range(3):
        found |= _base64(raw, shift)
    return {each for each in found if len(each) >= MIN_LENGTH}


def _base64(raw: bytes, shift: int) -> set[bytes]:
    """The letters that *raw* alone decides when *shift* bytes stand before it (inside a longer encoded text)."""
    first = -(-shift * 8 // 6)
    last = (shift + len(raw)) * 8 // 6
    standard = base64.b64encode(b"\0" * shift + raw)[first:last]
    return {standard, standard.translate(bytes.maketrans(b"+/", b"-_"))}


def _lower_percent(data: bytes) -> bytes:
    return re.sub(rb"%[0-9A-F]{2}", lambda found: found[0].lower(), data)


def scrub_text(text: str) -> str:
    """Make *text* fit to print where its origin is unknown (tracebacks, log lines).

    Masks every secret that is in memory, anything after Bearer or Basic, user parts and queries of URLs; shows control,
    bidirectional and zero-width characters as escapes. Line feeds and tabs stay.
    """
    for scrubber in list(_alive):
        text = scrubber.text(text)
    text = _BEARER.sub(lambda found: f"{found[1]} {MASK}", text)
    text = _URL.sub(lambda found: f"{found[1]}{found[2]}{'?...' if found[3] else ''}", text)
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)
