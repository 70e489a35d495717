"""Reads head and body of an answer inside their bounds.

Job: check status and headers; count bytes on the wire and after decompression, refuse more than allowed, what is cut,
what has a tail. Must not know: HTTP libraries, sockets, contracts.
Source: spec H7; reliability notes, section 9 (decompression bombs, stacked and unknown encodings).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

from pollcore.facts import FaultKind

MAX_WIRE: Final = 256 * 1024
MAX_DECODED: Final = 1024 * 1024
MAX_ANSWER_HEADERS: Final = 100
MAX_ANSWER_HEADER_BYTES: Final = 32 * 1024
_GZIP_ONLY: Final = 31
"""zlib's window argument: gzip format, nothing guessed."""
GZIP: Final = frozenset({"gzip", "x-gzip"})


class BodyFault(Exception):
    """The body is not acceptable; *kind* says as what, *text* is ours."""

    def __init__(self, kind: FaultKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class Body:
    """Takes the bytes of one body as they arrive. Memory stays below MAX_DECODED plus one chunk."""

    __slots__ = ("_decoded", "_inflate", "_parts", "_wire")

    def __init__(self, coding: str) -> None:
        """*coding*: the `Content-Encoding`, lower case, empty if there was none.

        Raises:
            BodyFault: anything but gzip and identity, also several at once.
        """
        if coding and coding != "identity" and coding not in GZIP:
            raise BodyFault(FaultKind.PROTOCOL, "the provider used a content encoding that was not offered")
        self._inflate = zlib.decompressobj(_GZIP_ONLY) if coding in GZIP else None
        self._parts: list[bytes] = []
        self._wire = 0
        self._decoded = 0

    def feed(self, chunk: bytes) -> None:
        """Take *chunk*. Raises BodyFault: too large (wire or decoded), not gzip, bytes after the end of it."""
        self._wire += len(chunk)
        if self._wire > MAX_WIRE:
            raise BodyFault(FaultKind.TOO_LARGE, f"the body is larger than {MAX_WIRE} bytes on the wire")
        if self._inflate is not None:
            if self._inflate.eof:
                raise BodyFault(FaultKind.PROTOCOL, "bytes follow the end of the compressed body")
            try:
                # one byte more than is left tells "full" from "too much", and no bomb ever unfolds further
                chunk = self._inflate.decompress(chunk, MAX_DECODED - self._decoded + 1)
            except zlib.error:
                raise BodyFault(FaultKind.PROTOCOL, "the body is not the gzip that it says it is") from None
            if self._inflate.unused_data:
                raise BodyFault(FaultKind.PROTOCOL, "bytes follow the end of the compressed body")
        self._decoded += len(chunk)
        if self._decoded > MAX_DECODED:
            raise BodyFault(FaultKind.TOO_LARGE, f"the body is larger than {MAX_DECODED} bytes after decompression")
        self._parts.append(chunk)

    def finish(self) -> bytes:
        """The whole body. Raises BodyFault: cut off. No bytes at all are an empty body, however it was announced."""
        if self._inflate is not None and self._wire and not self._inflate.eof:
            raise BodyFault(FaultKind.CUT_OFF, "the compressed body ends before its end")
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


def read_head(method: str, status: int, raw: Sequence[tuple[bytes, bytes]]) -> tuple[tuple[tuple[str, str], ...], Body]:
    """Check the head of an answer; return its headers (names in lower case) and the reader for its body.

    Raises:
        BodyFault: status, number or size of headers, an announced length, or the content encoding is not acceptable.
    """
    if not 200 <= status <= 599:
        raise BodyFault(FaultKind.PROTOCOL, "the answer's status is outside 200-599")
    if len(raw) > MAX_ANSWER_HEADERS:
        raise BodyFault(FaultKind.TOO_LARGE, f"the answer has more than {MAX_ANSWER_HEADERS} headers")
    headers = tuple([(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw])
    if sum([len(name) + len(value) + 4 for name, value in headers]) > MAX_ANSWER_HEADER_BYTES:
        raise BodyFault(FaultKind.TOO_LARGE, f"the answer's headers are larger than {MAX_ANSWER_HEADER_BYTES} bytes")
    codings = [value.strip().lower() for name, value in headers if name == "content-encoding"]
    if len(codings) > 1:
        raise BodyFault(FaultKind.PROTOCOL, "the answer names its content encoding twice")
    coding = codings[0] if codings else ""
    if method != "HEAD" and status not in (204, 304):
        for name, value in headers:
            if name == "content-length":
                if not (value.isascii() and value.isdigit()) or len(value) > 20:
                    raise BodyFault(FaultKind.PROTOCOL, "the answer's Content-Length is no plain number")
                if int(value) > MAX_WIRE:
                    raise BodyFault(FaultKind.TOO_LARGE, f"the body is announced as larger than {MAX_WIRE} bytes")
    elif coding in GZIP:
        coding = ""
    return headers, Body(coding)
