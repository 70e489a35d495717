"""A result that comes in pages: is there another one, and how is it asked for.

Job: the answer with one page -> the request for the next, or None. Must not know: how requests are sent, where pages
are kept, how many were asked. Source: contract need R32; spec K3 (a page on a foreign origin is never asked).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from pollcore.contract.model import Contract
from pollcore.contract.origins import absolute, covers, listed, normalise_origin
from pollcore.contract.parts import Pages
from pollcore.facts import Answer, Exchange, Instant, Operation, Refused, Request
from pollcore.reading.look import Look, RuleFailed, Seen


def next_page(contract: Contract, operation: Operation, request: Request, answer: Answer) -> Request | None:
    """The request for the page after *answer*; None: it was the last one, or the contract knows no pages.

    Args:
        request: The one that brought *answer*.

    Raises:
        Refused: `rule_failed` (the body cannot be read, an expression raised, or the token is no text), `bad_url`,
            `foreign_origin`.
    """
    plan, result = contract.pages, contract.result
    if plan is None or result is None:
        return None
    seen = Seen(submitted=operation.submitted, started_at=Instant(operation.started_at), memory=operation.memory)
    look = Look(contract, seen, Exchange("result", request.url, answer), contract.steps[0], form=result.format)
    expression = plan.next or plan.token
    assert expression is not None
    if "body" in expression.roots and look.body_fault is not None:
        raise Refused(f"result.pages: {look.body_fault}", code="rule_failed")
    try:
        found = look.value(expression, "result.pages")
    except RuleFailed as failed:
        raise Refused(str(failed), code="rule_failed") from None
    if found is None or found is False or found == "":
        return None
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise Refused(f"result.pages: {expression.source} is no text", code="rule_failed")
    return _at(contract, request, str(found)) if plan.next is not None else _with_token(plan, request, found)


def _at(contract: Contract, request: Request, reference: str) -> Request:
    url = absolute(request.url, reference)
    origin = normalise_origin(url)
    if origin not in request.origins and not any(covers(allowed, origin) for allowed in contract.origins):
        raise Refused(
            f"result.pages: the next page is on {origin}, which is none of the contract's origins "
            f"({listed(contract.origins)})",
            code="foreign_origin",
        )
    origins = request.origins if origin in request.origins else (*request.origins, origin)
    bare = any(covers(one, origin) for one in contract.bare_origins)
    return msgspec.structs.replace(request, url=url, origins=origins, slot=None if bare else request.slot)


def _with_token(plan: Pages, request: Request, token: Any) -> Request:
    if plan.field is not None:
        body = {**msgspec.json.decode(request.body or b"{}"), plan.field: token}
        return msgspec.structs.replace(request, body=msgspec.json.encode(body))
    assert plan.parameter is not None
    name = quote(plan.parameter, safe="")
    head, _, query = request.url.partition("?")
    kept = [pair for pair in query.split("&") if pair and pair.partition("=")[0] != name]
    kept.append(f"{name}={quote(str(token), safe='')}")
    url = f"{head}?{'&'.join(kept)}"
    normalise_origin(url)
    return msgspec.structs.replace(request, url=url)
