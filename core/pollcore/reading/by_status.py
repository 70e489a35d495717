"""What an HTTP status means where the contract's rules say nothing.

Job: spec group H, total over every status. Must not know: state tables, budgets. Times: the answer's own.
"""

from __future__ import annotations

from typing import Final

from pollcore.contract.origins import MAX_LISTED, absolute, covers, host_of, listed, normalise_origin
from pollcore.facts import SECOND, Refused, StopDetail, Verdict, clock_time
from pollcore.reading.draft import Draft, broken
from pollcore.reading.guards import host_allowed
from pollcore.reading.look import Look

AMBIGUOUS: Final = frozenset({408, 425})
LOCATION_MATTERS: Final = frozenset({201, 202}) | frozenset(range(300, 400))
WHAT_TO_CHECK: Final = "check access, rotation of the credential, account scope, and any gateway in between"


def by_status(look: Look) -> Draft:
    """Exactly one verdict for a status whose body no rule read."""
    code = look.answer.status
    contract = look.contract
    if code in contract.long_poll_timeouts:
        draft = Draft(Verdict.WAITING, rule="long_poll.timeout_statuses")
        draft.long_poll_timeout = True
        return draft
    if code in (401, 403):
        return _denied(look)
    if code in contract.not_found.statuses:
        return not_found(look)
    if code == 410:
        return _gone(look)
    if code == 429:
        return Draft(Verdict.RATE_LIMITED, rule="429")
    if code in AMBIGUOUS or 500 <= code <= 599:
        return Draft(Verdict.TRANSPORT_FAILURE, explanation=f"HTTP {code}", rule=f"HTTP {code}")
    if contract.redirect is not None and code in contract.redirect.statuses:
        return _redirected(look)
    return broken(StopDetail.UNEXPECTED_STATUS, f"HTTP {code} has no meaning in the contract", rule=f"HTTP {code}")


def _denied(look: Look) -> Draft:
    contract, memory, code = look.contract, look.seen.memory, look.answer.status
    age = look.answer.answered_at - look.seen.started_at
    unseen = memory.first_seen_at is None
    grace = contract.forbidden_grace
    if code == 403 and unseen and 0 < grace >= age and memory.forbidden < contract.forbidden_max:
        look.notes.append(f"403 grace {memory.forbidden + 1} of {contract.forbidden_max}")
        draft = Draft(Verdict.TRANSPORT_FAILURE, explanation="HTTP 403 inside the contract's grace", rule="forbidden")
        draft.counts_forbidden = True
        return draft
    if code == 403 and unseen:
        look.notes.append("submit was accepted, the job was never seen with this credential")
    return Draft(Verdict.DENIED, explanation=f"HTTP {code}: {WHAT_TO_CHECK}", rule=f"HTTP {code}")


def not_found(look: Look) -> Draft:
    """H4: by contract and by history."""
    rules, memory = look.contract.not_found, look.seen.memory
    at, started = look.answer.answered_at, look.seen.started_at
    if rules.confirms_cancel and _asked_after_our_cancel(look):
        return Draft(Verdict.CANCELLED, explanation="not found after our cancel", rule="not_found.confirms_cancel")
    if memory.first_seen_at is not None and rules.once_seen == "expired":
        return Draft(Verdict.EXPIRED, explanation="not found any more", rule="not_found.once_seen")
    # no grace is no grace: not even in the millisecond of the start
    if memory.first_seen_at is None and 0 < rules.grace >= at - started:
        look.notes.append(
            f"not found yet, {(at - started) // SECOND} s after the start, grace {rules.grace // SECOND} s"
        )
        return Draft(Verdict.WAITING, rule="not_found.grace_seconds")
    seen = f"last seen with state {memory.last_state}" if memory.first_seen_at is not None else "never seen"
    text = f"job {look.seen.submitted.job_id} not found at {clock_time(at)}, started {clock_time(started)}, {seen}"
    return broken(StopDetail.NOT_FOUND, text, rule="not_found")


def _asked_after_our_cancel(look: Look) -> bool:
    """What was asked before it, and answered after, says nothing of it."""
    sent = look.seen.memory.cancel_sent_at
    return sent is not None and look.answer.sent_at >= sent


def _gone(look: Look) -> Draft:
    memory = look.seen.memory
    if look.contract.not_found.confirms_cancel and _asked_after_our_cancel(look):
        return Draft(Verdict.CANCELLED, explanation="gone after our cancel", rule="HTTP 410")
    if memory.first_seen_at is not None:
        return Draft(Verdict.EXPIRED, explanation="HTTP 410: gone", rule="HTTP 410")
    return broken(StopDetail.NOT_FOUND, "HTTP 410, and the job was never seen", rule="HTTP 410")


def _redirected(look: Look) -> Draft:
    """H2: the contract says that this redirect is success, with the result at `Location`."""
    redirect = look.contract.redirect
    assert redirect is not None
    location = look.headers.get("location")
    if location is None:
        detail = StopDetail.SUCCEEDED_WITHOUT_RESULT
        return broken(detail, "the redirect names no Location", rule="redirect", state=redirect.state)
    try:
        url = absolute(look.url, location)
    except Refused:
        return broken(StopDetail.FOREIGN_ORIGIN, "Location is no usable URL", rule="redirect", state=redirect.state)
    host = host_of(normalise_origin(url))
    if not allowed(look, url) and not host_allowed(host, redirect.hosts):
        hosts = f" or hosts ({', '.join(redirect.hosts[:MAX_LISTED])})" if redirect.hosts else ""
        text = f"the result lies on {foreign(look, url)}{hosts}"
        return broken(StopDetail.FOREIGN_ORIGIN, text, rule="redirect", state=redirect.state)
    draft = Draft(Verdict.SUCCEEDED, state=redirect.state, rule="redirect", job_seen=True)
    look.root["redirect"] = {redirect.field: url}
    return draft


def foreign_location(look: Look) -> Draft | None:
    """K3: an answer that points to another origin is never followed, and never ignored."""
    if look.answer.status not in LOCATION_MATTERS or look.step.location == "ignore":
        return None
    location = look.headers.get("location")
    redirect = look.contract.redirect
    if location is None or (redirect is not None and look.answer.status in redirect.statuses):
        return None
    try:
        url = absolute(look.url, location)
    except Refused as error:
        return broken(StopDetail.FOREIGN_ORIGIN, f"Location: {error}", rule="location")
    if allowed(look, url):
        return None
    return broken(StopDetail.FOREIGN_ORIGIN, f"Location points to {foreign(look, url)}", rule="location")


def foreign(look: Look, url: str) -> str:
    """`https://b.test:443, which is none of the contract's origins (https://a.test:443)` of an absolute URL."""
    return f"{normalise_origin(url)}, which is none of the contract's origins ({listed(look.contract.origins)})"


def allowed(look: Look, url: str) -> bool:
    """Whether requests may go to *url* (already absolute)."""
    origin = normalise_origin(url)
    return any(covers(one, origin) for one in look.contract.origins)
