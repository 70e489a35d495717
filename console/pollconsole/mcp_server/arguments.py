"""What each tool takes: the schema that clients are shown, and the check of what they send.

Job: arguments -> checked values, with errors that name the argument, its limit and the way out. Must not know: the
protocol's library, the core. What an agent sends is not trusted: unknown names, other types and long texts are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from pollconsole.cli import values
from pollcore.facts import Refused, Status

MAX_LISTED: Final = 50
"""Operations of one list."""
DEFAULT_LISTED: Final = 20
MAX_WAIT_S: Final = 300
"""Seconds of one wait; a longer one is several."""
DEFAULT_WAIT_S: Final = 60
MAX_NUMBER: Final = 10**9
MAX_ARGUMENTS: Final = 30


class Field(msgspec.Struct, frozen=True):
    """One argument. *kind*: `text`, `number`, `params` (names to plain values)."""

    kind: str
    about: str
    required: bool = False
    least: int = 0
    most: int = values.MAX_TEXT
    """Characters of a text, the largest number, or how many parameters."""
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """Of JSON Schema."""
        shown: dict[str, Any] = {"description": self.about}
        if self.kind == "text":
            shown |= {"type": "string", "minLength": 1, "maxLength": self.most}
        elif self.kind == "number":
            shown |= {"type": "integer", "minimum": self.least, "maximum": self.most}
        else:
            plain = {"type": ["string", "number", "boolean", "null"]}
            shown |= {"type": "object", "maxProperties": self.most, "additionalProperties": plain}
        return shown | ({"enum": list(self.choices)} if self.choices else {})


_OPERATION: Final = Field("text", "The operation's id, as submit_operation returned it.", required=True)
_CALLER: Final = Field("text", "The name you give yourself; it is recorded beside the OS user, for the audit.")


def _count(about: str) -> Field:
    return Field("number", about, least=1, most=MAX_NUMBER)


FIELDS: Final[Mapping[str, Mapping[str, Field]]] = {
    "submit_operation": {
        "provider": Field("text", "A configured provider or a contract's name.", required=True),
        "job_id": Field("text", "The provider's id of the job that you started.", required=True),
        "id": Field("text", "An id of your own; given again with the same job it returns that operation."),
        "param": Field("params", "Parameters of the contract, by name.", most=values.MAX_PARAMS),
        "status_url": Field("text", "Where the provider said to ask.", most=values.MAX_URL),
        "deadline": Field("text", "When waiting ends: a span from the job's start, 40m, or an ISO 8601 time."),
        "max_requests": _count("At most so many status requests."),
        "max_transport_failures": _count("At most so many requests without a usable answer."),
        "max_rate_limited": _count("At most so many rate-limit answers (429)."),
        "useful_until": Field("text", "After this ISO 8601 time the result is of no use."),
        "started_at": Field("text", "When the job was submitted (ISO 8601); left out: now."),
        "account": Field("text", "The provider's account or project."),
        "label": Field("text", "A name for people."),
        "caller": _CALLER,
    },
    "get_operation": {"operation_id": _OPERATION},
    "list_operations": {
        "status": Field("text", "Only these.", choices=tuple(status.value for status in Status)),
        "provider": Field("text", "Only of this provider."),
        "limit": Field("number", f"How many; left out: {DEFAULT_LISTED}.", least=1, most=MAX_LISTED),
    },
    "wait_for_operation": {
        "operation_id": _OPERATION,
        "timeout_s": Field("number", f"Seconds; 0 looks once; left out: {DEFAULT_WAIT_S}.", most=MAX_WAIT_S),
    },
    "request_extension": {
        "operation_id": _OPERATION,
        "minutes": Field("number", "Of one of the contract's sizes.", required=True, least=1, most=MAX_NUMBER),
        "checks": Field("number", "Of the same size.", required=True, least=1, most=MAX_NUMBER),
        "because": Field("text", "Why; the operator reads it.", required=True, most=values.MAX_BECAUSE),
        "caller": _CALLER,
    },
    "explain_state": {
        "operation_id": _OPERATION,
        "state": Field("text", "A state as the provider spells it; left out: the last known one."),
    },
}
"""By tool. No tool takes a credential, a choice of a question, or a request to send."""


def schema(tool: str) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    fields = FIELDS[tool]
    return {
        "type": "object",
        "properties": {name: field.schema() for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.required],
        "additionalProperties": False,
    }


def check(tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of *tool*, checked. Raises Refused, code `usage`."""
    fields = FIELDS[tool]
    if len(given) > MAX_ARGUMENTS:
        raise _refuse(tool, f"{len(given)} arguments; at most {MAX_ARGUMENTS}")
    for name in given:
        if name not in fields:
            near = get_close_matches(name[: values.MAX_TEXT], fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it takes: {', '.join(fields)}"
            raise _refuse(tool, f"no argument {name[:60]!r}; {hint}")
    made = {}
    for name, field in fields.items():
        value = given.get(name)
        if value is None:
            if field.required:
                raise _refuse(tool, f"{name} is missing: {field.about}")
            continue
        try:
            made[name] = _checked(field, value)
        except ValueError as error:
            raise _refuse(tool, f"{name}: {error}") from None
    return made


def _checked(field: Field, value: Any) -> Any:
    if field.kind == "text":
        if not isinstance(value, str):
            raise ValueError(f"must be a text, not {_kind(value)}")
        values.check_text(value, field.most)
        if field.choices and value not in field.choices:
            raise ValueError(f"must be one of {', '.join(field.choices)}")
    elif field.kind == "number":
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"must be a whole number, not {_kind(value)}")
        if not field.least <= value <= field.most:
            raise ValueError(f"must be from {field.least} to {field.most}")
    elif not isinstance(value, dict):
        raise ValueError(f"must be an object of names and plain values, not {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    names = {str: "a text", bool: "true or false", int: "a number", float: "a fraction", list: "a list"}
    return names.get(type(value), "an object")


def _refuse(tool: str, why: str) -> Refused:
    return Refused(f"{tool}: {why}", code="usage")
