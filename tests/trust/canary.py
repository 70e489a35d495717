"""Planted secrets of every kind of credential, and the search for them: raw and in every encoding.

Job: values that occur nowhere else, their encoded forms, and which of them some bytes hold. It shares no code with the
core's scrubber, so that one cannot hide what the other forgets.
Source: invariant I21; spec K1, K4.
"""

from __future__ import annotations

import base64
import json
import secrets
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, quote_plus

#: Characters that encoders treat differently; all of them may stand in a header.
ODD: Final = "+/=&%\"'<>\\"
PLAIN: Final = string.ascii_letters + string.digits
BASE64_EDGE: Final = 4


def value(name: str, odd: str = ODD) -> str:
    """A secret with *name* and the odd characters in it; never the same twice."""
    drawn = "".join(secrets.choice(PLAIN) for _ in range(24))
    return f"cn{name.title().replace(' ', '')}{drawn[:8]}{odd}{drawn[8:]}"


def aligned(raw: bytes) -> Iterable[bytes]:
    """The letters of base64 that *raw* alone decides, whatever stands before it: three alignments, two alphabets."""
    for before in range(3):
        text = base64.b64encode(b"\0" * before + raw + b"\0" * 3)
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        yield text[first:last]
        yield text[first:last].translate(bytes.maketrans(b"+/", b"-_"))


def forms(text: str) -> dict[str, list[bytes]]:
    """Every form in which *text* is looked for."""
    raw = text.encode()
    percent = "".join(f"%{byte:02x}" for byte in raw)
    quoted = [quote(text, safe=""), quote(text), quote_plus(text), quote(text, safe="/:+=,;@&")]
    escaped = json.dumps(text)[1:-1]
    go = escaped.replace("<", "\\u003c").replace(">", "\\u003E").replace("&", "\\u0026")
    again = [json.dumps(each)[1:-1] for each in (escaped, escaped.replace("/", "\\/"), go)]
    escapes = [escaped, escaped.replace("/", "\\/"), go, *again]
    return {
        "raw": [raw],
        "utf-16": [text.encode("utf-16-le")],
        "base64": [form for each in aligned(raw) for form in (each, each.replace(b"/", b"\\/"))],
        "hex": [raw.hex().encode(), raw.hex().upper().encode()],
        "percent": [percent.encode(), percent.upper().encode()]
        + [form.encode() for each in quoted for form in (each, lower_percent(each))],
        "json": [each.encode() for each in escapes],
        "repr": [repr(text)[1:-1].encode()],
    }


def lower_percent(text: str) -> str:
    """`%2F` as `%2f`."""
    head, *rest = text.split("%")
    return head + "".join(f"%{each[:2].lower()}{each[2:]}" for each in rest)


#: How the provider sends a secret back; each must be found by the search and masked by the core.
ECHOES: Final[Mapping[str, Callable[[str], str]]] = {
    "raw": lambda t: t,
    "base64": lambda t: base64.b64encode(t.encode()).decode(),
    "base64 behind a user": lambda t: base64.b64encode(f"user:{t}".encode()).decode(),
    "base64 behind one more": lambda t: base64.urlsafe_b64encode(f"xuser:{t}:more".encode()).decode(),
    "hex": lambda t: t.encode().hex(),
    "upper hex": lambda t: t.encode().hex().upper(),
    "quoted": lambda t: quote(t, safe=""),
    "quoted in lower case": lambda t: lower_percent(quote(t, safe="")),
    "percent": lambda t: "".join(f"%{byte:02X}" for byte in t.encode()),
    "json": lambda t: json.dumps(t)[1:-1],
    "json of PHP": lambda t: json.dumps(t)[1:-1].replace("/", "\\/"),
    "json of Go": lambda t: json.dumps(t)[1:-1].replace("<", "\\u003c").replace(">", "\\u003E").replace("&", "\\u0026"),
    "base64 with slashes escaped": lambda t: base64.b64encode(t.encode()).decode().replace("/", "\\/"),
}


@dataclass
class Search:
    """What is looked for: name -> text. Secrets that come to be on the way (bought tokens) are added."""

    texts: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, text: str) -> str:
        """Look for *text* from now on; returns it."""
        self.texts[name] = text
        return text

    def found(self, data: bytes) -> list[str]:
        """`name (encoding)` of everything that *data* holds; empty: nothing."""
        hits = []
        for name, text in self.texts.items():
            for encoding, needles in forms(text).items():
                if any(needle in data for needle in needles):
                    hits.append(f"{name} ({encoding})")
        return hits
