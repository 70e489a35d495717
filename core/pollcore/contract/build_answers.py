"""Tables that read more out of an answer: success, not-found, identity, errors, progress, redirects.

Job: TOML -> the shapes of model.py. Must not know: answers, requests.
"""

from __future__ import annotations

import re
from typing import Final

from pollcore.contract.build_states import QUALIFIERS, expression, statuses
from pollcore.contract.expressions import Expression, compile_expression
from pollcore.contract.parts import (
    ErrorFields,
    Identity,
    NotFoundRules,
    Progress,
    Qualifier,
    Redirect,
    Required,
    Success,
)
from pollcore.contract.patterns import regex
from pollcore.contract.tables import Table
from pollcore.facts import HOUR

MAX_GRACE: Final = HOUR
MAX_FORBIDDEN: Final = 3
"""H3: a 403 grace is at most three requests."""
FORMATS: Final = ("url", "uuid", "date-time", "integer-text")
TYPES: Final = ("string", "integer", "number", "boolean", "array", "object")

_HOST: Final = re.compile(r"(?:\*\.)?[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,30}|\[[0-9a-f:.]+\]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def named(table: Table | None) -> tuple[tuple[str, Expression], ...]:
    """A table of name -> expression."""
    if table is None:
        return ()
    found = []
    for name in table.values:
        if not _NAME.fullmatch(name):
            table.fail(name, "a name is letters, digits and _")
        part = table.made(name, compile_expression)
        assert part is not None
        found.append((name, part))
    return tuple(found)


def build_success(root: Table) -> Success:
    """Read `[success]`. Raises ContractError."""
    table = root.table("success")
    if table is None:
        return Success()
    success = Success(
        permits=table.text("permits", max_length=60) or "fetch_result",
        requires=tuple(_required(inner) for inner in table.tables("requires")),
        forbids=tuple(_each(table, "forbids")),
        fields=named(table.table("fields")),
        qualifiers=tuple(_qualifier(inner) for inner in table.tables("qualifiers")),
    )
    table.finish()
    return success


def _each(table: Table, key: str) -> list[Expression]:
    found = []
    for text in table.texts(key):
        try:
            found.append(compile_expression(text))
        except ValueError as error:
            table.fail(key, f'"{text}": {error}')
    return found


def _required(table: Table) -> Required:
    path = expression(table, "path")
    if path is None:
        table.fail("path", 'missing; give the field, as "body.result.url"')
    last = path.keys[-1] if path.keys else None
    name = table.text("name", max_length=64) or (last if isinstance(last, str) else None)
    if name is None or not _NAME.fullmatch(name):
        table.fail("name", "missing or no name; letters, digits and _ (the result's field is called so)")
    form, kind = table.text("format"), table.text("type")
    if form is not None and form not in FORMATS:
        table.choice("format", FORMATS, "")
    if kind is not None and kind not in TYPES:
        table.choice("type", TYPES, "")
    pattern = table.made("pattern", regex)
    hosts = build_hosts(table, "hosts")
    if hosts and form != "url":
        table.fail("hosts", 'belongs to format = "url"')
    table.finish()
    return Required(name=name, path=path, type=kind, format=form, pattern=pattern, hosts=hosts)


def build_hosts(table: Table, key: str) -> tuple[str, ...]:
    """Allowed hosts of result links: exact, or `*.` before one; lower case."""
    found = []
    for host in table.texts(key):
        if not _HOST.fullmatch(host.lower()):
            table.fail(key, f'"{host}" is no host name; write "files.example.test" or "*.example.test"')
        found.append(host.lower())
    return tuple(found)


def _qualifier(table: Table) -> Qualifier:
    name = table.required_text("name", f"one of {', '.join(QUALIFIERS)}")
    if name not in QUALIFIERS:
        table.choice("name", QUALIFIERS, "")
    when = expression(table, "when")
    if when is None:
        table.fail("when", "missing; give the condition")
    table.finish()
    return Qualifier(name=name, when=when)


def build_not_found(root: Table) -> NotFoundRules:
    """Read `[not_found]`: what a 404 means, by history (H4)."""
    table = root.table("not_found")
    if table is None:
        return NotFoundRules()
    rules = NotFoundRules(
        statuses=statuses(table, "statuses") or frozenset({404}),
        grace=table.span("grace_seconds", least=0, most=MAX_GRACE) or 0,
        once_seen=table.choice("once_seen", ("integration_failure", "expired"), "integration_failure"),
        confirms_cancel=table.flag("confirms_cancel"),
    )
    table.finish()
    return rules


def build_forbidden(root: Table) -> tuple[int, int]:
    """Read `[forbidden]`: (grace in ms, most requests); off by default (H3)."""
    table = root.table("forbidden")
    if table is None:
        return 0, 0
    grace = table.span("grace_seconds", least=0, most=MAX_GRACE) or 0
    most = table.whole("max_requests", least=1, most=MAX_FORBIDDEN) or MAX_FORBIDDEN
    table.finish()
    return grace, most


def build_identity(root: Table) -> Identity:
    """Read `[identity]` (S6, S10)."""
    table = root.table("identity")
    if table is None:
        return Identity()
    identity = Identity(
        job_id=expression(table, "job_id"),
        account=expression(table, "account"),
        attempt=expression(table, "attempt"),
        steps=frozenset(table.texts("steps")),
    )
    table.finish()
    return identity


def build_error(root: Table) -> ErrorFields:
    """Read `[error]`: where a failed job says why (R33)."""
    table = root.table("error")
    if table is None:
        return ErrorFields()
    error = ErrorFields(
        message=expression(table, "message"),
        code=expression(table, "code"),
        retryable=expression(table, "retryable"),
    )
    table.finish()
    return error


def build_progress(root: Table) -> Progress | None:
    """Read `[progress]` (R34, S10): shown, buys no time."""
    table = root.table("progress")
    if table is None:
        return None
    value = expression(table, "value")
    if value is None:
        table.fail("value", "missing; give the counter or text")
    total = expression(table, "total")
    table.finish()
    return Progress(value=value, total=total)


def build_redirect(root: Table) -> Redirect | None:
    """Read `[redirect]`: statuses that mean success with the result at `Location` (H2)."""
    table = root.table("redirect")
    if table is None:
        return None
    codes = statuses(table, "statuses")
    if codes is None or not codes <= {301, 302, 303, 307, 308}:
        table.fail("statuses", "give redirect statuses: [302, 303]")
    redirect = Redirect(
        statuses=codes,
        field=table.text("field", max_length=64) or "location",
        state=table.text("state", max_length=200) or "redirected",
        hosts=build_hosts(table, "hosts"),
    )
    table.finish()
    return redirect
