"""JSON Schema of contract files, for editors.

Job: the tables of keys.py -> one schema (draft 7, which editors read). Must not know: values' bounds, what belongs
together; the parser is the judge (`pollconsole provider check`), the schema helps while one writes. It is made from the
same table that the parser refuses unknown keys by, and tests hold the kinds against what the parser reads.
"""

from __future__ import annotations

from typing import Any, Final

from pollcore.contract.expressions import MAX_EXPRESSION
from pollcore.contract.keys import ANY, KINDS

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
REQUIRED: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    (): ("schema", "name", "credential", "status", "limits"),
    ("credential",): ("kind",),
    ("steps", ANY): ("name",),
    ("steps", ANY, "item"): ("entries",),
    ("steps", ANY, "each"): ("children", "most"),
    ("steps", ANY, "then", ANY): ("when", "step"),
    ("status", "item"): ("entries",),
    ("status", "batch"): ("max",),
    ("status", "then", ANY): ("when", "step"),
    ("success", "requires", ANY): ("path",),
    ("success", "qualifiers", ANY): ("name", "when"),
    ("progress",): ("value",),
    ("redirect",): ("statuses",),
    ("settle",): ("delay",),
    ("hints", ANY): ("path", "unit"),
    ("expiry", ANY): ("path", "unit"),
    ("long_poll",): ("parameter", "wait"),
    ("caps", "scopes", ANY): ("scope", "requests", "per"),
    ("limits",): ("deadline_basis",),
    ("limits", "extend", ANY): ("minutes", "checks"),
    ("cancel",): ("confirm",),
    ("cancel", "by_step", ANY): ("step",),
    ("cancel", "confirm"): ("minutes", "checks"),
    ("cancel", "force"): ("consequences", "confirm"),
    ("cancel", "force", "by_step", ANY): ("step",),
    ("cancel", "force", "confirm"): ("minutes", "checks"),
    ("result", "pages"): ("most",),
}
"""Keys without which the parser refuses the table, whatever else it says."""

_TEXT: Final = {"type": "string", "minLength": 1}
_EXPRESSION: Final = {**_TEXT, "maxLength": MAX_EXPRESSION, "description": "JMESPath over http, body, item, seen ..."}
_SCALAR: Final = {"type": ["string", "number", "boolean"]}
_STATUS: Final = {
    "anyOf": [
        {"type": "integer", "minimum": 200, "maximum": 599, "not": {"const": 401}},
        {"enum": ["2xx", "3xx", "4xx", "5xx"]},
    ]
}
_SPAN: Final = {
    "anyOf": [{"type": "string", "pattern": "^([0-9]{1,9}(ms|s|m|h|d)){1,5}$"}, {"type": "number", "minimum": 0}],
    "description": "a span such as 500ms, 30s, 1h30m, 7d, or a number of seconds",
}
_ORIGIN: Final = {
    "type": "object",
    "properties": {"origin": _TEXT, "credential": {"type": "boolean"}},
    "required": ["origin"],
    "additionalProperties": False,
}
_PLAIN: Final[dict[str, dict[str, Any]]] = {
    "schema": {"const": 1},
    "text": _TEXT,
    "expr": _EXPRESSION,
    "flag": {"type": "boolean"},
    "whole": {"type": "integer"},
    "number": {"type": "number"},
    "span": _SPAN,
    "scalar": _SCALAR,
    "texts": {"type": "array", "items": _TEXT},
    "exprs": {"type": "array", "items": _EXPRESSION},
    "statuses": {"type": "array", "items": _STATUS, "minItems": 1},
    "pairs": {"type": "object", "additionalProperties": _SCALAR},
    "exprs_by_name": {"type": "object", "additionalProperties": _EXPRESSION},
    "origins": {"type": "array", "items": {"anyOf": [_TEXT, _ORIGIN]}},
    "any": {},
}


def json_schema() -> dict[str, Any]:
    """The schema of a contract file."""
    return {"$schema": DRAFT, "title": "pollconsole provider contract", **_table(())}


def _table(path: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "object",
        "properties": {key: _of(path, key, kind) for key, kind in KINDS[path].items()},
        "additionalProperties": False,
    }
    if path in REQUIRED:
        found["required"] = list(REQUIRED[path])
    return found


def _of(path: tuple[str, ...], key: str, kind: str) -> dict[str, Any]:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "table":
        return _table((*path, key))
    if kind == "tables":
        return {"type": "array", "items": _table((*path, key, ANY))}
    if kind == "tables_by_name":
        return {"type": "object", "additionalProperties": _table((*path, key, ANY))}
    if kind == "states":
        listed = {"anyOf": [{"type": ["string", "number", "boolean", "array"]}, _table((*path, ANY, ANY))]}
        return {"type": "array", "items": listed}
    return {"enum": kind.split("|")}
