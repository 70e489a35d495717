"""Templates of requests: `{job_id}`, `{params.region}`, `{seen.build_url}` in URLs, headers and bodies.

Job: parse once, render quickly, encode by the place where a value lands. Must not know: contracts' tables, origins that
are allowed, secrets. A value in a path or query is percent-encoded whole, slashes included; `{name|path}` keeps
slashes; `{name|raw}` takes text that is already encoded. A placeholder at the very start of a URL is a URL itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn
from urllib.parse import quote

import msgspec

from pollcore.contract.near import did_you_mean
from pollcore.contract.origins import MAX_URL
from pollcore.facts import Refused

MAX_TEMPLATE: Final = 4_000

_PLACEHOLDER: Final = re.compile(r"\{\{|\{([a-z_]+(?:\.[A-Za-z0-9_-]+)?)(?:\|([a-z]+))?\}")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9_.~-]+")
_RAW: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]+")
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?")
_STATIC: Final = re.compile(r"[!$-;=?-\[\]_a-z~]+")
_HEADER_VALUE: Final = re.compile(r"[ -~]*")

JOB_IDS: Final = "job_ids"
"""`{job_ids}`: all jobs of a request that asks for several (R39)."""
OPTIONAL: Final = "optional"
"""`{seen.token|optional}`: where it has no value, its header, query or form field or body member is left out."""
NUMBER: Final = "number"
"""`"{job_id|number}"`, alone in a string of a JSON body: a text of digits becomes a number."""
GROUPS: Final = frozenset({"params", "seen", "result", "urls"})


class Fill:
    """What placeholders are filled from; a missing value is an error that names the placeholder.

    *ids*: what `{job_ids}` is where it stands alone in a list; elsewhere it is one text, in *single*.
    """

    __slots__ = ("groups", "ids", "single")

    def __init__(
        self, single: Mapping[str, str | None], groups: Mapping[str, Mapping[str, Any]], ids: tuple[str, ...] = ()
    ) -> None:
        self.single = single
        self.groups = groups
        self.ids = ids

    def get(self, group: str, name: str) -> Any:
        """The value, or None."""
        return self.groups[group].get(name) if group else self.single.get(name)


class Placeholder:
    """One `{...}`. *group* is empty for `{job_id}` and its like."""

    __slots__ = ("filter", "group", "name", "shown")

    def __init__(self, text: str, filter_name: str) -> None:
        group, dot, name = text.partition(".")
        self.group, self.name = (group, name) if dot else ("", group)
        self.filter = filter_name
        self.shown = text

    def value(self, fill: Fill) -> Any:
        """Raises Refused, code address_missing."""
        found = fill.get(self.group, self.name)
        if found is None or found == "":
            _missing(self)
        return found

    def text(self, fill: Fill) -> str:
        found = self.value(fill)
        if type(found) is str:
            return found
        if isinstance(found, bool):
            return "true" if found else "false"
        if isinstance(found, int | float):
            return msgspec.json.encode(found).decode()
        return refuse(self, "is no text, number or boolean")


Parts = tuple[str | Placeholder, ...]


def parse_parts(text: str, allowed: frozenset[str], filters: frozenset[str]) -> Parts:
    """Split *text* at its placeholders; `{{` stands for a brace. *allowed*: `job_id`, `params.region`, `seen.*` ...

    Raises:
        ValueError: too long, or a placeholder or filter that is not known here.
    """
    if len(text) > MAX_TEMPLATE:
        raise ValueError(f"template longer than {MAX_TEMPLATE} characters")
    parts: list[str | Placeholder] = []
    at = 0
    for found in _PLACEHOLDER.finditer(text):
        parts.append(text[at : found.start()])
        at = found.end()
        name, filter_name = found[1], found[2] or ""
        if name is None:
            parts.append("{")
            continue
        if name not in allowed and f"{name.partition('.')[0]}.*" not in allowed:
            hint = did_you_mean(name, {word for word in allowed if not word.endswith("*")})
            declared = f"; [{name}] declares a parameter" if name.startswith("params.") else ""
            raise ValueError(f'"{{{name}}}" has no value here{hint}{declared}')
        if filter_name and filter_name not in filters:
            raise ValueError(f'"|{filter_name}" is not known here (known: {", ".join(sorted(filters)) or "none"})')
        parts.append(Placeholder(name, filter_name))
    parts.append(text[at:])
    merged: list[str | Placeholder] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part != "":
            merged.append(part)
    return tuple(merged)


class TextTemplate:
    """A header, form or query value. *optional*: the placeholders without which the whole value is left out."""

    __slots__ = ("constant", "optional", "parts")

    def __init__(self, text: str, allowed: frozenset[str], filters: frozenset[str] = frozenset({OPTIONAL})) -> None:
        self.parts = parse_parts(text, allowed, filters)
        self.optional = tuple(part for part in self.parts if isinstance(part, Placeholder) and part.filter == OPTIONAL)
        fixed = all(isinstance(part, str) for part in self.parts)
        self.constant = "".join(str(part) for part in self.parts) if fixed else None

    def is_left_out(self, fill: Fill) -> bool:
        """Whether a placeholder that may be absent is."""
        return any(fill.get(part.group, part.name) in (None, "") for part in self.optional)

    def render(self, fill: Fill) -> str:
        """Raises Refused, address_missing: a placeholder without a value."""
        if self.constant is not None:
            return self.constant
        return "".join([part if type(part) is str else part.text(fill) for part in self.parts])  # type: ignore[union-attr]


class UrlTemplate:
    """A URL. *authority* is its static `scheme://host:port` text when no placeholder can change it, else None."""

    __slots__ = ("_encoders", "authority", "first", "parts", "source")

    def __init__(self, text: str, allowed: frozenset[str]) -> None:
        """Raises ValueError: unknown placeholder, or not an absolute URL."""
        self.source = text
        self.parts = parse_parts(text, allowed, frozenset({"path", "raw"}))
        self.first = self.parts[0] if self.parts and isinstance(self.parts[0], Placeholder) else None
        static = self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""
        if self.first is None and not static.startswith(("https://", "http://")):
            raise ValueError('a URL starts with "https://" or with a placeholder that is one, as {base_url}')
        if any(isinstance(part, str) and not _STATIC.fullmatch(part) for part in self.parts):
            raise ValueError(
                "a URL is plain ASCII without spaces, quotes, backslashes and fragments; percent-encode them"
            )
        head = static.partition("://")[2]
        closed = "/" in head or "?" in head or len(self.parts) == 1
        self.authority = None if self.first or not closed else re.split(r"(?<=[^:/])[/?]", static, maxsplit=1)[0]
        self._encoders = tuple(self._encoder(n) for n in range(len(self.parts)))

    def _encoder(self, index: int) -> Callable[[Placeholder, str], str] | None:
        part = self.parts[index]
        if isinstance(part, str):
            return None
        before = "".join(other if isinstance(other, str) else "x" for other in self.parts[:index])
        if index == 0:
            return _verbatim
        if self.first is None and "/" not in before.partition("://")[2] and "?" not in before:
            return _host
        return {"path": _path, "raw": _raw}.get(part.filter, _segment)

    def names(self) -> frozenset[str]:
        return frozenset(part.shown for part in self.parts if isinstance(part, Placeholder))

    def render(self, fill: Fill) -> str:
        """Raises Refused: address_missing, or bad_parameter for a value that cannot stand there."""
        out = []
        for part, encode in zip(self.parts, self._encoders, strict=True):
            if type(part) is str:
                out.append(part)
            else:
                assert isinstance(part, Placeholder)
                assert encode is not None
                out.append(encode(part, part.text(fill)))
        url = "".join(out)
        if len(url) > MAX_URL:
            raise Refused(f"the rendered URL is longer than {MAX_URL} characters", code="bad_parameter")
        return url


def rendered(pairs: Iterable[tuple[str, TextTemplate]], fill: Fill) -> Iterator[tuple[str, str]]:
    """Names and values, without those that are left out. Raises Refused."""
    for name, value in pairs:
        if not (value.optional and value.is_left_out(fill)):
            yield name, value.render(fill)


def header_value(name: str, value: str) -> str:
    """Raises Refused, bad_parameter: line breaks and other control characters never reach a header."""
    if not _HEADER_VALUE.fullmatch(value) or len(value) > MAX_TEMPLATE:
        raise Refused(f"the value for header {name} is not plain printable ASCII", code="bad_parameter")
    return value


def _missing(part: Placeholder) -> NoReturn:
    ways = {
        "params": f"give --param {part.name}=...",
        "urls": f"set urls.{part.name} of the provider instance in config.toml",
        "seen": "no answer has named it so far",
        "result": "the success named no such field",
    }
    single = {
        "base_url": "set base_url of the provider instance in config.toml",
        "status_url": "give --status-url",
        "each": "no step has listed children so far",
    }
    way = ways.get(part.group) or single.get(part.name, f"give {part.name}")
    raise Refused(f'"{{{part.shown}}}" has no value: {way}', code="address_missing")


def refuse(part: Placeholder, why: str) -> NoReturn:
    """Raises Refused, bad_parameter: the value cannot stand where *part* does."""
    raise Refused(f'the value for "{{{part.shown}}}" {why}', code="bad_parameter")


def _segment(part: Placeholder, text: str) -> str:
    if _UNRESERVED.fullmatch(text):
        if text in (".", ".."):
            refuse(part, "is a relative path")
        return text
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        refuse(part, "is no valid text")


def _path(part: Placeholder, text: str) -> str:
    return "/".join(_segment(part, piece) if piece else "" for piece in text.split("/"))


def _raw(part: Placeholder, text: str) -> str:
    if not _RAW.fullmatch(text) or any(piece in (".", "..") for piece in text.split("/")):
        refuse(part, "is no encoded path without relative parts")
    return text


def _host(part: Placeholder, text: str) -> str:
    if not _HOST.fullmatch(text) or ".." in text:
        refuse(part, "is no host name")
    return text.lower()


def _verbatim(part: Placeholder, text: str) -> str:
    if not text.startswith(("https://", "http://")):
        refuse(part, "is no absolute URL")
    return text
