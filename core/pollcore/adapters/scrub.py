"""Takes our own secrets out of what comes back.

Job: find one secret in bytes or text, raw or encoded (base64, base64url, percent, hex, JSON escapes, also escaped
again), and mask it.
Must not know: where the bytes come from or go to. Values shorter than MIN_LENGTH are not searched for: they would
mask ordinary words, states included. Split, reversed, hashed or encrypted echoes are not found; docs say so.
Source: spec K4; invariant I21.
"""

from __future__ import annotations

import base64
import json
import re
import weakref
from typing import Final
from urllib.parse import quote

from pollcore.facts import MASK

MIN_LENGTH: Final = 8
_MASK: Final = MASK.encode()
_ESCAPED: Final = frozenset(b"\"'/&<>+=`")
"""Bytes that some writer of JSON escapes: all of them the quote, PHP the slash, Go and .NET the others."""
_MAX_ESCAPES: Final = 8
"""Backslashes before one byte: escaped three times over."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_URL: Final = re.compile(r"(?i)\b(https?://)(?:[^\s/@'\"<>]*@)?([^\s?#'\"<>]*)(\?[^\s'\"<>]*)?")

_Patterns = tuple[re.Pattern[bytes], ...]

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
        # longest first: a mask must not cut a longer find into pieces
        self._needles = tuple(sorted(needles, key=len, reverse=True))
        self._patterns: _Patterns | None = None
        _alive.add(self)

    def __repr__(self) -> str:
        return "Scrubber(********)"

    def found(self, data: bytes) -> bool:
        """Tell whether *data* holds the secret in any form."""
        return any(needle in data for needle in self._needles) or (
            b"\\" in data and any(pattern.search(data) for pattern in self._with_escapes())
        )

    def bytes(self, data: bytes) -> bytes:
        """*data* with every occurrence masked; the same object if there is none (the usual case, no copy)."""
        for needle in self._needles:
            if needle in data:
                data = data.replace(needle, _MASK)
        if b"\\" in data:
            for pattern in self._with_escapes():
                if pattern.search(data):
                    data = pattern.sub(_MASK, data)
        return data

    def _with_escapes(self) -> _Patterns:
        """Made when the first data with a backslash comes: needles whose bytes may be escaped, once or again.

        A find begins where a row of backslashes begins, so that a body full of them is gone through once.
        """
        if self._patterns is None:
            self._patterns = tuple(
                re.compile(b"".join([_begin(needle[0]), *(_escapable(byte) for byte in needle)]))
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
        for needle in self._needles:
            plain = needle.decode("utf-8")
            if plain in text:
                text = text.replace(plain, MASK)
        if "\\" in text and self._with_escapes():
            raw = text.encode("utf-8", "surrogatepass")
            if any(pattern.search(raw) for pattern in self._with_escapes()):
                text = self.bytes(raw).decode("utf-8", "surrogatepass")
        return text


def _begin(byte: int) -> bytes:
    return rb"(?<!\\)" if byte == 0x5C or byte in _ESCAPED else b""


def _escapable(byte: int) -> bytes:
    """A pattern for *byte* as it is, behind backslashes, or as `\\u0000` of it."""
    if byte == 0x5C:
        return rb"\\{1,%d}(?:u005[cC])?" % _MAX_ESCAPES
    plain = re.escape(bytes([byte]))
    if byte not in _ESCAPED:
        return plain
    digits = f"{byte:04x}"
    numbered = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
    return rb"(?:\\{0,%d}%b|\\{1,%d}u%b)" % (_MAX_ESCAPES, plain, _MAX_ESCAPES, numbered.encode())


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
