"""The answer to a submission: job id, status URL, parameters, perhaps already the end.

Job: spec H1, contract need R16. Must not know: how the submission was sent, operations, stores.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pollcore.contract.expressions import Expression
from pollcore.contract.model import Contract
from pollcore.contract.origins import absolute, covers, listed, normalise_origin
from pollcore.contract.parts import SubmissionAnswer
from pollcore.facts import (
    ActionOutcome,
    Answer,
    Exchange,
    Fault,
    Instant,
    Observation,
    Refused,
    Submitted,
)
from pollcore.reading.draft import ABOUT_THE_JOB
from pollcore.reading.guidance import clocks, guided
from pollcore.reading.look import Look, RuleFailed, Seen
from pollcore.reading.observe import judge, observed, remember

MAX_JOB_ID = 256


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """What a submission's answer says.

    *started_at*: the answer's `Date`, else when it was complete (B6). *observation*: set only when the job has already
    ended, with 0 requests (H1). *state*: the state that the answer gave, as displayed.
    """

    job_id: str
    status_url: str | None = None
    status_url_is: str = "status"
    params: dict[str, Any] = {}
    started_at: Instant
    state: str | None = None
    observation: Observation | None = None


def from_response(contract: Contract, submitted: Submitted, answer: Answer, request_url: str) -> Handover:
    """Read the submission's answer by the contract.

    Args:
        submitted: As far as known; its job id may be empty.
        request_url: What the submission was sent to: relative references resolve against it.

    Raises:
        Refused: `no_submission_reading`, `submission_failed` (status), `job_id_missing`, `foreign_origin`, `bad_url`,
            `rule_failed`.
    """
    return _read(contract, submitted, answer, request_url, None)


def explain_response(
    contract: Contract, submitted: Submitted, answer: Answer, request_url: str
) -> tuple[Handover | Refused, tuple[tuple[str, str], ...]]:
    """As `from_response`; a refusal is returned. And what was looked at: (expression, value as text)."""
    trace: list[tuple[str, str]] = []
    found: Handover | Refused
    try:
        found = _read(contract, submitted, answer, request_url, trace)
    except Refused as error:
        found = error
    return found, tuple(dict.fromkeys(trace))


def _read(
    contract: Contract, submitted: Submitted, answer: Answer, request_url: str, trace: list[tuple[str, str]] | None
) -> Handover:
    reading = contract.submission.answer if contract.submission is not None else None
    if reading is None:
        way = "hand the job id over with --job-id instead of the answer"
        if submitted.job_id:
            way = "leave the answer (--from-response) out: --job-id names the job already"
        raise Refused(
            f"{contract.name}: the contract does not say how a submission's answer is read: add [submission.answer] "
            f"to it, or {way}",
            code="no_submission_reading",
        )
    if answer.status not in reading.statuses:
        raise Refused(f"{contract.name}: HTTP {answer.status} is no accepted submission", code="submission_failed")
    date = clocks(answer).date
    started = date if date is not None else answer.answered_at
    seen = Seen(submitted=submitted, started_at=started)
    look = Look(contract, seen, Exchange("submission", request_url, answer), contract.steps[0], form=reading.format)
    look.trace = trace
    url = _status_url(look, reading)
    job_id = _job_id(look, reading, url)
    params = dict(submitted.params)
    for name, path in reading.params:
        found = _value(look, path, f"submission.answer.params.{name}")
        if found is not None:
            params[name] = found
    if url is not None and reading.status_url_is == "result":
        params["result_url"], url = url, None
    known = msgspec.structs.replace(submitted, job_id=job_id, params=params)
    look.seen = msgspec.structs.replace(seen, submitted=known)
    state, observation = _already(look) if reading.reads_state else (None, None)
    return Handover(
        job_id=job_id,
        status_url=url,
        status_url_is=reading.status_url_is,
        params=params,
        started_at=started,
        state=state,
        observation=observation,
    )


def _value(look: Look, path: Expression, what: str) -> Any:
    try:
        return look.value(path, what)
    except RuleFailed as failed:
        raise Refused(f"{look.contract.name}: {failed}", code="rule_failed") from None


def _status_url(look: Look, reading: SubmissionAnswer) -> str | None:
    """Absolute, inside the contract's origins; a status URL is never guessed."""
    if reading.status_url is None:
        return None
    found = _value(look, reading.status_url, "submission.answer.status_url")
    if found is None:
        return None
    if not isinstance(found, str):
        raise Refused(f"{look.contract.name}: the status URL in the answer is no text", code="bad_url")
    try:
        url = absolute(look.url, found)
        origin = normalise_origin(url)
    except Refused as error:
        relative = "" if "://" in found or look.url else "; it is relative: what it came from is --response-url"
        why = f"the status URL in the answer: {error}{relative}"
        raise Refused(f"{look.contract.name}: {why}", code="bad_url") from None
    if not any(covers(allowed, origin) for allowed in look.contract.origins):
        raise Refused(
            f"{look.contract.name}: the answer names a status URL on {origin}, which is none of the contract's origins "
            f"({listed(look.contract.origins)})",
            code="foreign_origin",
        )
    return url


def _job_id(look: Look, reading: SubmissionAnswer, url: str | None) -> str:
    found = _value(look, reading.job_id, "submission.answer.job_id") if reading.job_id is not None else url
    if isinstance(found, bool) or not isinstance(found, str | int):
        found = None
    text = None if found is None else str(found)
    if text is not None and reading.job_id_pattern is not None:
        text = reading.job_id_pattern.first_group(text)
    if not text or len(text) > MAX_JOB_ID:
        place = "the status URL" if reading.job_id is None else reading.job_id.source
        why = look.body_fault or f"not at {place} (submission.answer), or longer than {MAX_JOB_ID} characters"
        raise Refused(f"{look.contract.name}: no job id in the submission's answer: {why}", code="job_id_missing")
    return text


def _already(look: Look) -> tuple[str | None, Observation | None]:
    """(state, observation when the job has ended); anything else waits for the first poll to say it."""
    draft = judge(look)
    if draft.verdict not in ABOUT_THE_JOB:
        return None, None
    if not draft.verdict.is_final:
        return draft.state, None
    return draft.state, observed(look, draft, guided(look), remember(look, draft))


def read_submit(
    contract: Contract, submitted: Submitted, brought: Answer | Fault, request_url: str
) -> tuple[ActionOutcome, Handover | None, str | None]:
    """How a resubmission ended (E6, O5): done with its handover, refused, or unknown (never repeated by itself)."""
    if isinstance(brought, Fault):
        return fault_outcome(brought)[0], None, fault_outcome(brought)[1]
    try:
        return ActionOutcome.DONE, from_response(contract, submitted, brought, request_url), None
    except Refused as error:
        if 200 <= brought.status < 400 or brought.status == 408 or brought.status >= 500:
            return ActionOutcome.UNKNOWN, None, str(error)
        return ActionOutcome.REFUSED, None, str(error)


def fault_outcome(fault: Fault) -> tuple[ActionOutcome, str]:
    """A request without an answer: refused only when no byte can have left."""
    text = f"{fault.kind.value}: {fault.text}" if fault.text else fault.kind.value
    return (ActionOutcome.UNKNOWN if fault.may_have_been_sent else ActionOutcome.REFUSED), text
