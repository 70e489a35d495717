"""Bytes of XML -> the tree that expressions read, or why not.

Job: strict and bounded reading. A document type is refused outright, so there are no entities to expand and nothing
outside is ever loaded; depth, number of values and length of texts have limits while the bytes are read.
Must not know: contracts, headers. Source: contract need R24; docs/contracts.md "Other formats".

The tree: `{root name: value}`. An element with nothing but text is that text (stripped, `""` when empty); any other is
a table with its elements by name, attributes as `@name`, text beside them as `#text`. An element that comes several
times is a list, and always when its name is one of *lists*. Prefixes of namespaces are left out.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn
from xml.parsers import expat

from pollcore.reading.strict_json import MAX_DEPTH, MAX_NODES, MAX_STRING, Unreadable

_ENCODINGS: Final = ("utf-8", "us-ascii", "ascii")
_NOBODY: Final = frozenset[str]()


def decode(body: bytes, lists: frozenset[str] = _NOBODY) -> dict[str, Any]:
    """The tree.

    Raises:
        Unreadable: empty, not UTF-8, not exactly one well-formed document, with a document type, or beyond a limit.
    """
    if not body or body.isspace():
        raise Unreadable("the body is empty")
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        # expat would follow the mark of another encoding
        raise Unreadable("the body is not UTF-8") from None
    reader = _Reader(lists)
    # the encoding is ours: what the document says of itself is checked, never obeyed
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.XmlDeclHandler = reader.declared
    parser.StartDoctypeDeclHandler = reader.document_type
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(body, True)
    except expat.ExpatError:
        raise Unreadable(_what_instead(body)) from None
    return reader.found


class _Reader:
    """Builds the tree while expat reads; every limit is checked where it grows."""

    def __init__(self, lists: frozenset[str]) -> None:
        self.lists = lists
        self.found: dict[str, Any] = {}
        self.open: list[tuple[str, dict[str, Any], list[str]]] = []
        self.nodes = 0
        self.length = 0

    def declared(self, version: str, encoding: str | None, standalone: int) -> None:  # noqa: ARG002 - expat's shape
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            raise Unreadable("the XML is not declared as UTF-8")

    def document_type(self, *given: Any) -> NoReturn:  # noqa: ARG002 - expat's shape
        raise Unreadable("the XML has a document type; entities are never expanded")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.nodes += 1 + len(attributes)
        if self.nodes > MAX_NODES:
            raise Unreadable(f"more than {MAX_NODES} values")
        if len(self.open) >= MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
        self.length = 0
        self.open.append(
            (_local(name) if ":" in name else name, self._attributes(attributes) if attributes else {}, [])
        )

    def _attributes(self, attributes: dict[str, str]) -> dict[str, Any]:
        own = {key: value for key, value in attributes.items() if not _is_namespace(key)}
        table: dict[str, Any] = {f"@{_local(key)}": value for key, value in own.items()}
        if len(table) < len(own):
            raise Unreadable("an element names an attribute twice")
        if any(len(value) > MAX_STRING for value in own.values()):
            self._too_long()
        return table

    def text(self, data: str) -> None:
        self.length += len(data)
        if self.length > MAX_STRING:
            self._too_long()
        self.open[-1][2].append(data)

    def end(self, name: str) -> None:  # noqa: ARG002 - the stack knows it
        own, table, texts = self.open.pop()
        text = "".join(texts).strip() if texts else ""
        value: Any = text
        if table:
            value = {**table, "#text": text} if text else table
        into = self.open[-1][1] if self.open else self.found
        if own not in into:
            into[own] = [value] if own in self.lists else value
        elif isinstance(into[own], list):
            into[own].append(value)
        else:
            into[own] = [into[own], value]

    def _too_long(self) -> NoReturn:
        raise Unreadable(f"a text is longer than {MAX_STRING // 1024} KiB")


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _is_namespace(name: str) -> bool:
    return name == "xmlns" or name.startswith("xmlns:")


def _what_instead(body: bytes) -> str:
    head = body[:64].lstrip().lower()
    if head.startswith((b"{", b"[")):
        return "the body is JSON, not XML"
    if head.startswith((b"<!doctype html", b"<html")):
        return "the body is a page, not XML"
    return "the body is not exactly one well-formed XML document in UTF-8 (cut off, or something before or after it)"
