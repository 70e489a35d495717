"""Tables `cancel`, `result`, `submission`: the requests that are no status requests.

Job: TOML -> their plans and how their answers are read. Must not know: answers, secrets, what a card says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pollcore.contract.build_answers import named
from pollcore.contract.build_origins import TOKEN
from pollcore.contract.build_requests import FORBIDDEN, SEEN, Plans, body_format
from pollcore.contract.build_states import expression, statuses
from pollcore.contract.near import did_you_mean
from pollcore.contract.parts import CancelPlan, Pages, RequestPlan, Submission, SubmissionAnswer, Unit
from pollcore.contract.patterns import regex
from pollcore.contract.tables import Table

MAX_PAGES: Final = 1_000
"""Pages of one result that a contract may allow."""
DATES: Final = tuple(unit.value for unit in (Unit.ISO, Unit.HTTP_DATE, Unit.UNIX_SECONDS, Unit.UNIX_MILLISECONDS))
"""How an answer may write the time from which on a force-cancel is there: a date, never a span."""


def build_cancel(
    root: Table, plans: Plans, policy: Callable[[Table], Any], force_policy: Callable[[Table], Any]
) -> tuple[CancelPlan | None, Any, Any]:
    """Read `[cancel]` and `[cancel.force]` (R35, E5): (plan, what *policy* makes of the one table, *force_policy* of
    the other). The stronger one is written like the ordinary one; what is its own is from when on it may be sent."""
    table = root.table("cancel")
    if table is None:
        return None, None, None
    plan, said = _cancel(table, plans, "cancel"), policy(table)
    inner = table.table("force")
    table.finish()
    if inner is None:
        return plan, said, None
    stronger, told = _cancel(inner, plans, "cancel.force"), force_policy(inner)
    unit = inner.choice("unit", DATES, Unit.ISO.value)
    if "unit" in inner and "available_at" not in inner:
        inner.fail("unit", "belongs to available_at: how the time is written that the answer names")
    stronger = replace(stronger, available_at=expression(inner, "available_at"), unit=Unit(unit))
    inner.finish()
    return replace(plan, force=stronger), said, told


def _cancel(table: Table, plans: Plans, key: str) -> CancelPlan:
    """What both are written with; the caller reads the rest and finishes the table."""
    request = plans.request(table, key, SEEN | {"status_url"})
    refused = statuses(table, "refused_statuses")
    table.text("source")
    return CancelPlan(
        request=request,
        done_statuses=statuses(table, "done_statuses") or frozenset(range(200, 300)),
        refused_statuses=frozenset({400, 403, 404, 405, 409, 410, 422}) if refused is None else refused,
        done_when=expression(table, "done_when"),
        refused_when=expression(table, "refused_when"),
        leads_to=table.text("leads_to"),
        by_step=_by_step(table, plans, key),
    )


def _by_step(table: Table, plans: Plans, key: str) -> dict[str, RequestPlan]:
    """R21, R35: what cancels while the operation is in another step of the chain than the first."""
    found: dict[str, RequestPlan] = {}
    for inner in table.tables("by_step"):
        step = inner.required_text("step", "the step of the chain in which this request cancels", max_length=40)
        if step not in plans.steps:
            inner.fail("step", f'"{step}" is no step{did_you_mean(step, plans.steps)}')
        if step in found:
            inner.fail("step", f'"{step}" has a cancel already; take one of the two out')
        found[step] = plans.request(inner, key, SEEN | {"status_url"})
        inner.finish()
    return found


def build_result(root: Table, plans: Plans) -> tuple[RequestPlan | None, Pages | None]:
    """Read `[result]`: the second request that a success permits, and its further pages (R32)."""
    table = root.table("result")
    if table is None:
        return None, None
    plan = plans.request(table, "result", SEEN | {"status_url", "result.*"}, ("GET", "POST"))
    inner = table.table("pages")
    pages = None if inner is None else _pages(inner, plan)
    table.finish()
    return plan, pages


def _pages(table: Table, plan: RequestPlan) -> Pages:
    following, token = expression(table, "next"), expression(table, "token")
    parameter, field = table.text("parameter", max_length=100), table.text("field", max_length=100)
    most = table.required_whole("most", least=2, most=MAX_PAGES)
    table.finish()
    if (following is None) == (token is None):
        table.fail(None, "give next (the address of the next page) or token with parameter or field")
    if token is not None and (parameter is None) == (field is None):
        table.fail("token", "give parameter (of the query) or field (of the JSON body) that it goes into, one of them")
    if token is None and (parameter or field):
        table.fail("parameter" if parameter else "field", "belongs to token; an address given by next is used as it is")
    if field is not None and (plan.body is None or not isinstance(plan.body.tree, dict)):
        table.fail("field", "needs a JSON body of result that is a table")
    return Pages(most=most, next=following, token=token, parameter=parameter, field=field)


def build_submission(root: Table, plans: Plans) -> Submission | None:
    """Read `[submission]`: the template that resubmits (E6, R36), and how a submission's answer is read (H1, R16)."""
    table = root.table("submission")
    if table is None:
        return None
    key = table.table("idempotency")
    request = None
    if "url" in table:
        request = plans.request(table, "submission", frozenset({"key"}), ("POST", "PUT", "GET"))
    answer = table.table("answer")
    submission = Submission(request=request, answer=None if answer is None else _answer(answer, plans))
    if key is not None:
        submission = _idempotency(table, key, submission)
    table.finish()
    return submission


def _answer(table: Table, plans: Plans) -> SubmissionAnswer:
    answer = SubmissionAnswer(
        statuses=statuses(table, "statuses") or frozenset({200, 201, 202}),
        job_id=expression(table, "job_id"),
        job_id_pattern=table.made("job_id_pattern", regex),
        status_url=expression(table, "status_url"),
        status_url_is=table.choice("status_url_is", ("status", "result", "becomes_result"), "status"),
        params=named(table.table("params")),
        reads_state=table.flag("reads_state", True),
        format=body_format(table, plans.format),
    )
    if answer.job_id is None and (answer.status_url is None or answer.job_id_pattern is None):
        table.fail("job_id", "missing; give its path, or status_url with job_id_pattern that takes the id out of it")
    table.finish()
    return answer


def _idempotency(outer: Table, table: Table, submission: Submission) -> Submission:
    header, query = table.text("header", max_length=100), table.text("query", max_length=100)
    plan = submission.request
    if plan is None:
        outer.fail("idempotency", "needs the submission's template: method, url and body")
    inside = _mentions_key(plan)
    if (header is not None) + (query is not None) + inside != 1:
        table.fail(None, "say where the key goes, once: header, query, or {key} in the template")
    if header is not None and not TOKEN.fullmatch(header):
        table.fail("header", f'"{header}" is no header name')
    if header is not None and header.lower() in FORBIDDEN:
        table.fail("header", f"{header} cannot carry a key: {FORBIDDEN[header.lower()]}")
    found = msgspec.structs.replace(
        submission,
        key_header=header,
        key_query=query,
        has_key=True,
        key_max_length=table.whole("max_length", least=8, most=1_000),
        key_lifetime=table.span("lifetime"),
        on_repeat=table.choice("on_repeat", ("same_job", "conflict"), "same_job"),
    )
    table.finish()
    return found


def _mentions_key(plan: RequestPlan) -> bool:
    texts = [value.parts for _, value in (*plan.query, *plan.headers, *plan.form)]
    shown = {part.shown for parts in texts for part in parts if not isinstance(part, str)}
    in_url = plan.url is not None and "key" in plan.url.names()
    return in_url or "key" in shown or (plan.body is not None and plan.body.mentions_key)
