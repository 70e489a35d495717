"""Table `status.batch`: one status request for many operations.

Job: TOML -> the request that names several jobs, and what it may not be combined with. Must not know: operations,
answers, secrets. Source: contract need R39; design.md "One request is not one operation". Whatever makes the requests
of two operations differ in more than the job id is refused here, so that nothing has to be compared in a hurry later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pollcore.contract.bodies import BodyTemplate, placeholders
from pollcore.contract.build_origins import Origins
from pollcore.contract.expressions import Expression
from pollcore.contract.lines import Path
from pollcore.contract.model import Contract
from pollcore.contract.parts import BatchPlan, RequestPlan, Step
from pollcore.contract.tables import Table
from pollcore.contract.templates import JOB_IDS, NUMBER, Parts, Placeholder, TextTemplate, UrlTemplate
from pollcore.facts import MINUTE, SECOND

LEAST_JOBS: Final = 2
MOST_JOBS: Final = 1_000
GATHER_MS: Final = SECOND
MOST_GATHER_MS: Final = MINUTE
MAX_SEPARATOR: Final = 8
SAME_FOR_ALL: Final = frozenset({"account", "base_url", JOB_IDS})
"""Placeholders without a group that are the same for all operations of one request, or made of all of them."""
URL_ENDS: Final = "/?&="
"""Where a piece of a path, or a value of a query, begins and ends."""
_ONE_REQUEST: Final = "one request for many operations differs in the job ids alone"


def build_batch(table: Table, origins: Origins, common: frozenset[str], step: Step) -> BatchPlan | None:
    """Read `batch` of `[status]` (R39). *common*: the placeholders that every request may use."""
    inner = table.table("batch")
    if inner is None:
        return None
    _check_step(table, inner, step)
    allowed = (common - {"job_id"}) | {JOB_IDS}
    most = inner.required_whole("max", least=LEAST_JOBS, most=MOST_JOBS)
    gather = inner.span("gather", least=0, most=MOST_GATHER_MS)
    separator = inner.text("separator", max_length=MAX_SEPARATOR) or ","
    request = _request(inner, origins, allowed, step.request)
    inner.finish()
    _check_names(inner, request)
    return BatchPlan(
        most=most,
        gather=GATHER_MS if gather is None else gather,
        separator=separator,
        joined=any(not alone for _, part, alone in _parts(request) if part.shown == JOB_IDS),
        request=request,
        raw=any(part.filter == "raw" for _, part, _ in _parts(request) if part.shown == JOB_IDS),
        within=_within(request, separator),
    )


def check_batch(root: Table, contract: Contract) -> None:
    """What other tables say that cannot go together with a batch. Raises ContractError."""
    if contract.steps[0].batch is None:
        return
    if len(contract.steps) > 1:
        root.document.fail(("status", "batch"), f"cannot go together with [[steps]]: {_ONE_REQUEST}")
    if "long_poll" in root:
        why = "cannot go together with [long_poll]: the answer would wait for the slowest job of all"
        root.document.fail(("status", "batch"), why)
    entries = contract.steps[0].item.entries if contract.steps[0].item is not None else None
    lists = [path for path in entries.prefixes if len(path) > 1 or entries.keys == path] if entries is not None else []
    for key, part in _of_one_job(contract):
        if part is not None and any(path[: len(one)] == one for one in lists for path in part.prefixes):
            why = f"reads {part.source}, and in an answer about many jobs that may be another's: write it over item"
            root.document.fail(key, why)


def _of_one_job(contract: Contract) -> Iterator[tuple[Path, Expression | None]]:
    """What is read of an answer as a fact about the job. A rule's `when` is none: what it says of an answer as a whole
    is told from what it says of the job where it is read."""
    yield ("state", "value"), contract.table.value
    for n, rule in enumerate(contract.rules):
        yield ("rules", n, "state_from"), rule.state_from
        yield ("rules", n, "explanation_from"), rule.explanation_from
    success, identity, error, progress = contract.success, contract.identity, contract.error, contract.progress
    for n, field in enumerate(success.requires):
        yield ("success", "requires", n, "path"), field.path
    for name, path in success.fields:
        yield ("success", "fields", name), path
    for part in success.forbids:
        yield ("success", "forbids"), part
    for n, one in enumerate(success.qualifiers):
        yield ("success", "qualifiers", n, "when"), one.when
    yield ("identity", "job_id"), identity.job_id
    yield ("identity", "account"), identity.account
    yield ("identity", "attempt"), identity.attempt
    yield ("error", "message"), error.message
    yield ("error", "code"), error.code
    yield ("error", "retryable"), error.retryable
    if progress is not None:
        yield ("progress", "value"), progress.value
        yield ("progress", "total"), progress.total
    yield ("needs_human", "explanation"), contract.human_explanation
    for n, hint in enumerate(contract.hints):
        yield ("hints", n, "path"), hint.path
    for n, expiry in enumerate(contract.expiries):
        yield ("expiry", n, "path"), expiry.path
    force = contract.cancel.force if contract.cancel is not None else None
    yield ("cancel", "force", "available_at"), force.available_at if force is not None else None


def _check_step(table: Table, inner: Table, step: Step) -> None:
    if step.item is None:
        inner.fail(None, 'needs [status.item]: say where each job\'s own entry is, as entries = "body.jobs"')
    if step.item.job_id is None:
        inner.fail(None, 'needs job_id in [status.item], as "item.id": each entry is found by it')
    for key, there in (
        ("then", bool(step.then)),
        ("next_url", step.next_url is not None),
        ("remember", bool(step.remember)),
        ("location", step.location == "next"),
        ("provider_url", step.request.use_provider_url != "never"),
    ):
        if there:
            table.fail(key, f"cannot go together with [status.batch]: {_ONE_REQUEST}")


def _request(inner: Table, origins: Origins, allowed: frozenset[str], plan: RequestPlan) -> RequestPlan:
    """The status request with the parts that the batch writes anew."""
    changes: dict[str, Any] = {"key": "status.batch"}
    url = inner.made("url", lambda text: UrlTemplate(text, allowed))
    if url is not None:
        origins.check_static(inner, url)
        changes["url"] = url
    if "query" in inner:
        changes["query"] = tuple(_pair(inner, allowed, name, value) for name, value in inner.pairs("query").items())
    body = inner.raw("body")
    if body is not None:
        if plan.method == "GET":
            inner.fail("body", 'GET carries no body; say method = "POST" in [status]')
        if plan.form:
            inner.fail("body", "the status request sends a form; the ids go into url or query")
        try:
            changes["body"] = BodyTemplate(body, allowed)
        except (ValueError, TypeError) as error:
            inner.fail("body", str(error))
    return msgspec.structs.replace(plan, **changes)


def _pair(inner: Table, allowed: frozenset[str], name: str, value: Any) -> tuple[str, TextTemplate]:
    if isinstance(value, bool) or not isinstance(value, str | int):
        inner.fail("query", f"{name}: must be a string or a whole number")
    try:
        return name, TextTemplate(str(value), allowed)
    except ValueError as error:
        inner.fail("query", f"{name}: {error}")


def _check_names(inner: Table, request: RequestPlan) -> None:
    named = False
    for key, part, alone in _parts(request):
        named = named or part.shown == JOB_IDS
        if part.shown == JOB_IDS and part.filter == NUMBER and not alone:
            inner.fail(key, f'"{{{JOB_IDS}|{NUMBER}}}" stands alone in a list: elsewhere the ids are one text')
        if (not part.group and part.shown not in SAME_FOR_ALL) or part.group in ("seen", "result"):
            way = f"write {key} anew here, with {{{JOB_IDS}}}" if key != "headers" else "take it out of the headers"
            inner.fail(None, f"{key} of [status] names {{{part.shown}}}, and {_ONE_REQUEST}: {way}")
    if not named:
        inner.fail(None, f"names no {{{JOB_IDS}}}: put it into url, query or body")


def _parts(request: RequestPlan) -> Iterator[tuple[str, Placeholder, bool]]:
    """Every placeholder of the request: (key, it, whether it is alone in a string of a list)."""
    if request.url is not None:
        yield from (("url", part, False) for part in request.url.parts if isinstance(part, Placeholder))
    for key, pairs in (("query", request.query), ("headers", request.headers), ("form", request.form)):
        for _, text in pairs:
            yield from ((key, part, False) for part in text.parts if isinstance(part, Placeholder))
    if request.body is not None:
        yield from (("body", part, alone) for part, alone in placeholders(request.body.tree))


def _within(request: RequestPlan, separator: str) -> str:
    """Whether somewhere the ids stand in a text with a syntax of its own: `bare`, else `quoted`, else "" (their text is
    a whole value, or a whole piece of a path)."""
    url = () if request.url is None else request.url.parts
    found = [_around(_pieces(url, n, URL_ENDS), separator) for n in _places(url)]
    texts = [text for _, text in request.query]
    if request.body is not None:
        texts += [text for text, in_list in _texts(request.body.tree) if len(text.parts) > 1 or not in_list]
    found += [_around(_pieces(text.parts, n), separator) for text in texts for n in _places(text.parts)]
    return "bare" if "bare" in found else "quoted" if "quoted" in found else ""


def _places(parts: Parts) -> list[int]:
    return [n for n, part in enumerate(parts) if isinstance(part, Placeholder) and part.shown == JOB_IDS]


def _pieces(parts: Parts, at: int, ends: str = "") -> tuple[str, str]:
    """What stands before and behind the placeholder *at*, up to the nearest of *ends*."""
    before, behind = _shown(parts[:at]), _shown(parts[at + 1 :])
    if ends:
        before, behind = re.split(f"[{ends}]", before)[-1], re.split(f"[{ends}]", behind)[0]
    return before.replace("%22", '"'), behind.replace("%22", '"')


def _shown(parts: Parts) -> str:
    return "".join(one if isinstance(one, str) else "x" for one in parts)


def _around(pieces: tuple[str, str], separator: str) -> str:
    before, behind = pieces
    if before.count('"') % 2 and '"' in behind:
        return "quoted"
    is_list = not re.search(r"[A-Za-z0-9\"']", separator)
    return "" if is_list and not before and not behind else "bare"


def _texts(tree: Any, in_list: bool = False) -> Iterator[tuple[TextTemplate, bool]]:
    """Every text with placeholders of a compiled body, and whether it is an entry of a list."""
    if isinstance(tree, TextTemplate):
        yield tree, in_list
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _texts(value, isinstance(tree, list))
