"""Tables `status` and `steps`, and the request keys of every table that sends: what is asked, and how.

Job: TOML -> request plans whose every placeholder and origin is known. Must not know: answers, secrets.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore.contract.bodies import BodyTemplate
from pollcore.contract.build_answers import named
from pollcore.contract.build_batch import build_batch
from pollcore.contract.build_origins import TOKEN, WORD, Origins
from pollcore.contract.build_states import expression
from pollcore.contract.parts import JSON, BodyFormat, EachPlan, ItemPlan, Param, RequestPlan, Step
from pollcore.contract.tables import Table
from pollcore.contract.templates import TextTemplate, UrlTemplate
from pollcore.facts import MINUTE, SECOND

FIRST: Final = "status"
"""The step that every operation begins with."""
MAX_STEPS: Final = 8
MAX_HEADERS: Final = 30
MAX_CHILDREN: Final = 100
"""Children of one step: each is a request of its own in every round."""
OURS: Final = frozenset({"each", "children"})
"""What the memory keeps of children; `remember` may not write there."""
TOGETHER: Final = ("all", "any", "worst")
ACCEPTED: Final = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "xml": "application/xml",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain",
}
"""Format of an answer -> the `Accept` that asks for it (R24)."""
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SEEN: Final = frozenset({"seen.*"})

FORBIDDEN: Final = {
    "authorization": "credentials live in the keyring: use [credential]",
    "proxy-authorization": "credentials live in the keyring: use [credential]",
    "cookie": "credentials live in the keyring: use [credential]",
    "if-none-match": "a 304 tells no state",
    "if-modified-since": "a 304 tells no state",
    "accept-encoding": "the transport sets it",
    "host": "the transport sets it",
    "content-length": "the transport sets it",
    "transfer-encoding": "the transport sets it",
    "connection": "the transport sets it",
    "te": "the transport sets it",
}


class Plans:
    """Reads request tables: which placeholders exist, which origins are allowed."""

    def __init__(self, origins: Origins, params: tuple[Param, ...], urls: tuple[str, ...]) -> None:
        self.origins = origins
        self.common = frozenset({"job_id", "account"} | {f"params.{param.name}" for param in params})
        self.common |= {f"urls.{name}" for name in urls}
        self.format = JSON
        """Of an answer that does not say: JSON, and for other requests than the status as the status answers."""
        self.steps: frozenset[str] = frozenset()
        if origins.base_url is not None or origins.required:
            self.common |= {"base_url"}

    def request(self, table: Table, key: str, more: frozenset[str], methods: tuple[str, ...] = METHODS) -> RequestPlan:
        """The request keys of *table*; the caller reads the rest and finishes it. Raises ContractError."""
        allowed = self.common | more
        method = table.choice("method", METHODS, "GET")
        if method not in methods:
            table.fail("method", f"{method} is not allowed here (allowed: {', '.join(methods)})")
        url = table.made("url", lambda text: UrlTemplate(text, allowed))
        if url is not None:
            self.origins.check_static(table, url)
        provider_url = table.choice("provider_url", ("never", "prefer", "require"), "never" if url else "require")
        if url is None and provider_url != "require":
            table.fail("url", 'missing; give a URL template, or provider_url = "require"')
        body, form = self._body(table, allowed), self._pairs(table, "form", allowed)
        if (body or form) and method in ("GET", "HEAD"):
            table.fail("method", f'{method} carries no body; say method = "POST"')
        if body and form:
            table.fail("form", "give body or form, not both")
        form_of_answer = body_format(table, self.format)
        headers = self._headers(table, allowed, ACCEPTED[form_of_answer.name], bool(body), bool(form))
        fixed = all(value.constant is not None for _, value in headers)
        return RequestPlan(
            key=key,
            method=method,
            url=url,
            query=self._pairs(table, "query", allowed),
            headers=headers,
            fixed_headers=tuple((name, value.constant or "") for name, value in headers) if fixed else None,
            body=body,
            form=form,
            credential=table.flag("credential", True),
            use_provider_url=provider_url,
            total_ms=table.span("total", least=SECOND, most=10 * MINUTE) or 30 * SECOND,
            format=form_of_answer,
        )

    def _body(self, table: Table, allowed: frozenset[str]) -> BodyTemplate | None:
        value = table.raw("body")
        if value is None:
            return None
        try:
            return BodyTemplate(value, allowed)
        except (ValueError, TypeError) as error:
            table.fail("body", str(error))

    def _pairs(self, table: Table, key: str, allowed: frozenset[str]) -> tuple[tuple[str, TextTemplate], ...]:
        found = []
        for name, value in table.pairs(key).items():
            try:
                found.append((name, TextTemplate(_as_text(value), allowed)))
            except ValueError as error:
                table.fail(key, f"{name}: {error}")
        return tuple(found)

    def _headers(
        self, table: Table, allowed: frozenset[str], accept: str, json: bool, form: bool
    ) -> tuple[tuple[str, TextTemplate], ...]:
        given = self._pairs(table, "headers", allowed)
        if len(given) > MAX_HEADERS:
            table.fail("headers", f"more than {MAX_HEADERS} headers")
        for name, value in given:
            if not TOKEN.fullmatch(name):
                table.fail("headers", f'"{name}" is no header name')
            if name.lower() in FORBIDDEN:
                table.fail("headers", f"{name}: {FORBIDDEN[name.lower()]}")
            if value.constant is not None and not value.constant.isprintable():
                table.fail("headers", f"{name}: control characters in the value")
        names = {name.lower() for name, _ in given}
        if len(names) < len(given):
            table.fail("headers", "names a header twice (case does not count)")
        defaults = [("Accept", accept)]
        if json or form:
            defaults.append(("Content-Type", "application/json" if json else "application/x-www-form-urlencoded"))
        added = [(name, TextTemplate(text, allowed)) for name, text in defaults if name.lower() not in names]
        return (*given, *added)


def body_format(table: Table, default: BodyFormat) -> BodyFormat:
    """Read `format` and `lists` (R24)."""
    name = table.choice("format", tuple(ACCEPTED), default.name)
    lists = frozenset(table.texts("lists"))
    if lists and name != "xml":
        table.fail("lists", 'belongs to format = "xml": elements that are lists even when they come once')
    return BodyFormat(name=name, lists=lists) if "format" in table or lists else default


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return msgspec.json.encode(value).decode()
    if not isinstance(value, str):
        raise ValueError("must be a string, number or boolean")
    return value


def build_steps(root: Table, plans: Plans) -> tuple[tuple[Step, ...], str | None, str | None]:
    """Read `[status]` and `[[steps]]`: (steps, observation, evidence) (R18, R20, R21, X7)."""
    table = root.table("status")
    if table is None:
        root.fail("status", 'missing; say how to ask: url = "https://host/jobs/{job_id}"')
    observation = table.choice("observation", ("read_only", "action"), "read_only") if "observation" in table else None
    table.raw("observation")
    evidence = table.text("evidence")
    if observation == "read_only" and not evidence:
        table.fail("evidence", "missing; say where it is documented that asking changes nothing, and the date")
    steps = [_step(table, FIRST, plans, SEEN | {"status_url"})]
    for inner in root.tables("steps"):
        name = inner.required_text("name", "a name", max_length=40)
        if not WORD.fullmatch(name) or any(name == step.name for step in steps):
            inner.fail("name", f'"{name}" is taken or no word')
        each = _each(inner)
        step = _step(inner, name, plans, SEEN | {"status_url"} | ({"each"} if each is not None else set()))
        steps.append(msgspec.structs.replace(step, each=each))
    if len(steps) > MAX_STEPS:
        root.fail("steps", f"more than {MAX_STEPS - 1} steps")
    _check_targets(root, steps)
    steps = [_with_lister(root, step, steps) for step in steps]
    plans.steps = frozenset(step.name for step in steps)
    return tuple(steps), observation, evidence


def _check_targets(root: Table, steps: list[Step]) -> None:
    names = {step.name for step in steps}
    for step in steps:
        if step.each is not None and step.then:
            root.fail("steps", f"{step.name} is asked for each child, so it cannot lead on with then")
        for _, target, _ in step.then:
            if target not in names or target == step.name:
                root.fail("steps", f'"{target}", named by the step {step.name}, is no other step')


def _with_lister(root: Table, step: Step, steps: list[Step]) -> Step:
    """Which step lists the children of *step*: exactly one may."""
    if step.each is None:
        return step
    listers = [other.name for other in steps if any(target == step.name for _, target, _ in other.then)]
    if len(listers) != 1:
        root.fail("steps", f"{step.name} needs exactly one step whose then leads to it, not {len(listers)}")
    return msgspec.structs.replace(step, each=msgspec.structs.replace(step.each, lister=listers[0]))


def _each(table: Table) -> EachPlan | None:
    """Read `each` of a step (R21): asked once for each child."""
    inner = table.table("each")
    if inner is None:
        return None
    children = expression(inner, "children")
    if children is None:
        inner.fail("children", 'missing; list the ids in the answer before, as "body.items[].id"')
    plan = EachPlan(
        children=children,
        most=inner.required_whole("most", least=1, most=MAX_CHILDREN),
        together=inner.choice("together", TOGETHER, "worst"),
    )
    inner.finish()
    return plan


def _item(table: Table) -> ItemPlan | None:
    """Read `item` of a step (R39): this job's entry in an answer about several."""
    inner = table.table("item")
    if inner is None:
        return None
    entries = expression(inner, "entries")
    if entries is None:
        inner.fail("entries", 'missing; give the list, as "body.jobs"')
    job_id = expression(inner, "job_id")
    if job_id is not None and not job_id.roots <= {"item"}:
        inner.fail("job_id", 'is read in each entry: write it over item, as "item.id"')
    inner.finish()
    return ItemPlan(entries=entries, job_id=job_id)


def _step(table: Table, name: str, plans: Plans, more: frozenset[str]) -> Step:
    request = plans.request(table, name, more, ("GET", "HEAD", "POST"))
    remember = named(table.table("remember"))
    for kept, _ in remember:
        if kept in OURS:
            table.fail("remember", f"{kept} is a name of our own in seen; call it otherwise")
    then = []
    for inner in table.tables("then"):
        when = expression(inner, "when")
        if when is None:
            inner.fail("when", "missing; give the condition on this step's answer")
        target = inner.required_text("step", "the step that follows")
        then.append((when, target, inner.flag("at_once", True)))
        inner.finish()
    step = Step(
        name=name,
        request=request,
        remember=remember,
        next_url=expression(table, "next_url"),
        then=tuple(then),
        location=table.choice("location", ("check", "ignore", "next"), "check"),
        item=_item(table),
    )
    if name == FIRST:
        step = msgspec.structs.replace(step, batch=build_batch(table, plans.origins, plans.common, step))
    table.finish()
    return step
