"""One answer, opened: the scope that expressions read.

Job: parse the body once, build `{http, body, submitted, seen, steps, step}` as far as the contract needs it, evaluate
expressions. Must not know: what a value means. Nothing here raises but RuleFailed.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from pollcore.contract.counted import MAX_SHARED_STEPS, Steps, TooCostly
from pollcore.contract.expressions import Expression
from pollcore.contract.model import Contract
from pollcore.contract.parts import BodyFormat, Step
from pollcore.contract.patterns import Pattern
from pollcore.facts import Answer, Exchange, Instant, Memory, Submitted, iso, mask_url
from pollcore.reading import formats, strict_json
from pollcore.reading.draft import Draft

MAX_STATE: Final = 512
MAX_TEXT: Final = 500
MAX_LINKS: Final = 50
"""Entries of a `Link` header that are read."""

_LINK_VALUE: Final = re.compile(r"<([^<>]*)>([^<]*)")
_RELATION: Final = re.compile(r""";\s*rel\s*=\s*"?([^";,]+)""", re.IGNORECASE)

_LINK: Final = re.compile(r"""[^\s"'<>?]*(?:://[^\s"'<>]*|\?[^\s"'<>]*=[^\s"'<>]*)""")
"""An absolute link, or a relative one with a query."""


class RuleFailed(Exception):
    """An expression raised on this answer; *what* names the rule."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the job beside the answer: an operation's part that reading needs."""

    submitted: Submitted
    started_at: Instant
    memory: Memory = Memory()
    provider_expires_at: Instant | None = None


class Opened:
    """What all readings of one answer about several operations share: its body and its entries, read once."""

    __slots__ = ("_body", "by_id", "entries", "entries_of", "failed", "listed", "steps")

    def __init__(self) -> None:
        self.steps = Steps(MAX_SHARED_STEPS)
        self._body: tuple[Any, str | None] | None = None
        self.entries_of: tuple[str, str | None] | None = None
        """The expressions that *entries*, *by_id* and *failed* are of; None: none was read yet."""
        self.entries: Any = None
        self.by_id: dict[str, list[Any]] | None = None
        self.failed: RuleFailed | None = None
        """What reading the entries, or finding them by job id, failed with."""
        self.listed = False
        """There are entries, whichever jobs they are of."""

    def body_of(self, contract: Contract, step: Step, answer: Answer) -> tuple[Any, str | None]:
        """The body, or why it is unreadable."""
        if self._body is None:
            self._body = _open(contract, step, answer)
        return self._body

    @property
    def is_too_costly(self) -> bool:
        """The steps did not suffice for all that read this answer."""
        return self.steps.left < 0


class Look:
    """One opened answer."""

    __slots__ = (
        "answer",
        "body",
        "body_fault",
        "contract",
        "headers",
        "item_absent",
        "item_fault",
        "item_read",
        "notes",
        "opened",
        "others",
        "root",
        "seen",
        "step",
        "steps",
        "trace",
        "url",
    )

    def __init__(
        self,
        contract: Contract,
        seen: Seen,
        exchange: Exchange,
        step: Step,
        earlier: tuple[Exchange, ...] = (),
        form: BodyFormat | None = None,
        opened: Opened | None = None,
    ) -> None:
        """*form*: how the body is written, where that is not as the step's answers are. *opened*: what the readings of
        one answer for several operations share."""
        self.contract = contract
        self.seen = seen
        self.step = step
        self.answer: Answer = exchange.answer
        self.url = exchange.url
        self.notes: list[str] = []
        self.trace: list[tuple[str, str]] | None = None
        self.headers: dict[str, str] = {}
        for name, value in exchange.answer.headers:
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        if opened is None:
            self.body, self.body_fault = _open(contract, step, exchange.answer, form)
        else:
            self.body, self.body_fault = opened.body_of(contract, step, exchange.answer)
        self.opened = opened
        self.steps = Steps() if opened is None else opened.steps
        self.others = exchange.others
        self.root: dict[str, Any] = {
            "http": {"status": exchange.answer.status, "headers": self.headers},
            "body": self.body,
            "step": step.name,
        }
        if "link" in contract.kept_headers:
            self.root["http"]["links"] = links(self.headers.get("link", ""))
        self.item_absent: str | None = None
        """Why there is no entry of this job in an answer about several; None: there is, or none is looked for."""
        self.item_fault: Draft | None = None
        self.item_read = False
        """The answer told of this job, be it that there is no entry of it."""
        needs = contract.needs
        if "submitted" in needs:
            self.root["submitted"] = _submitted(seen)
        if "seen" in needs:
            self.root["seen"] = _seen(seen.memory)
        if "steps" in needs:
            self.root["steps"] = {one.step: _step_scope(contract, one) for one in (*earlier, exchange)}

    def value(self, expression: Expression, what: str) -> Any:
        """Raises RuleFailed."""
        try:
            found = expression.read(self.root, self.steps)
        except Exception as error:
            raise RuleFailed(what, f"{expression.source}: {_why(error)}") from None
        if self.trace is not None:
            self.trace.append((expression.source, masked(shown(found))))
        return found

    def holds(self, expression: Expression, what: str) -> bool:
        """Raises RuleFailed."""
        found = self.value(expression, what)
        return not (found is None or found is False or found == "" or found == [] or found == {})

    def matches(self, pattern: Pattern, text: str, what: str) -> bool:
        """Raises RuleFailed."""
        try:
            return self.steps.matches(pattern, text)
        except TooCostly as error:
            raise RuleFailed(what, f"{pattern.source}: {error}") from None

    def text(self, expression: Expression | None, what: str) -> str | None:
        """A value as text for people, bounded; None when absent. A failing expression becomes a note."""
        if expression is None:
            return None
        try:
            found = self.value(expression, what)
        except RuleFailed as failed:
            self.notes.append(f"rule_failed: {failed}")
            return None
        if found is None or found == "" or found == [] or found == {}:
            return None
        return shown(found)[:MAX_TEXT]


def links(header: str) -> dict[str, str]:
    """Relation -> address of a `Link` header (RFC 8288), the first of each; addresses as they are written."""
    found: dict[str, str] = {}
    for count, part in enumerate(_LINK_VALUE.finditer(header)):
        if count >= MAX_LINKS:
            break
        relation = _RELATION.search(part[2])
        for name in relation[1].split() if relation is not None else ():
            found.setdefault(name, part[1])
    return found


def masked(text: str) -> str:
    """*text* with the query of every link in it left out: links may be pre-signed (K4)."""
    return _LINK.sub(lambda found: mask_url(found[0]), text)


def shown(value: Any) -> str:
    """A state as displayed: text as it came, other JSON values as compact JSON."""
    if type(value) is str:
        return value if len(value) <= MAX_STATE else f"{value[:MAX_STATE]}…"
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):
        return "(a value that JSON does not have)"
    return text if len(text) <= MAX_STATE else f"{text[:MAX_STATE]}…"


def _open(contract: Contract, step: Step, answer: Answer, form: BodyFormat | None = None) -> tuple[Any, str | None]:
    """(body, None) or (None, why it is unreadable)."""
    how = contract.table.body_format
    if how == "none" or step.request.method == "HEAD":
        return None, None
    body = answer.body
    if contract.table.empty_body == "absent" and not body.strip():
        return None, None
    try:
        return formats.decode(body, form or step.request.format), None
    except strict_json.Unreadable as error:
        return None, None if how == "any" else str(error)


def _why(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _submitted(seen: Seen) -> dict[str, Any]:
    given = seen.submitted
    return {
        "job_id": given.job_id,
        "account": given.account,
        "params": given.params,
        "expected_states": list(given.expected_states),
        "started_at": iso(seen.started_at),
    }


def _seen(memory: Memory) -> dict[str, Any]:
    return {
        **memory.values,
        "polls": memory.polls,
        "state": memory.last_state,
        "in_a_row": memory.in_a_row,
        "first_seen_at": iso(memory.first_seen_at) if memory.first_seen_at is not None else None,
        "cancel_sent": memory.cancel_sent_at is not None,
        "attempt": memory.attempt,
    }


def _step_scope(contract: Contract, one: Exchange) -> dict[str, Any]:
    step = next((step for step in contract.steps if step.name == one.step), contract.steps[0])
    return {"http": {"status": one.answer.status}, "body": _open(contract, step, one.answer)[0]}
