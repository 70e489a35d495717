"""Why an answer reads as it does, and reading a stored answer again.

Job: `provider explain` and adopt_contract. Must not know: screens, stores, decisions.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from pollcore.contract.model import Contract
from pollcore.contract.parts import JSON
from pollcore.contract.requests import EACH
from pollcore.facts import (
    Answer,
    Exchange,
    HttpFact,
    Instant,
    Memory,
    Moment,
    Observation,
    Operation,
    StopDetail,
    Verdict,
)
from pollcore.reading import envelope
from pollcore.reading.guidance import guided
from pollcore.reading.look import Look, Seen
from pollcore.reading.observe import judge, observed, opened, remember


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """*rule*: what decided (`rules[2] "gone"`, `states.waiting`, `HTTP 503`). *read*: (expression, value as text)."""

    rule: str
    read: tuple[tuple[str, str], ...]
    body_fault: str | None
    observation: Observation
    memory: Memory


def explain(
    contract: Contract,
    operation: Operation,
    answer: Answer,
    url: str = "",
    others: int = 0,
) -> Explanation:
    """Read *answer* as a poll of *operation* would, and say why. Nothing is sent or stored.

    *others*: operations that the same request would have asked for as well (R39).
    """
    look = opened(contract, _seen(operation, operation.memory), (_exchange(operation, answer, url, others),))
    look.trace = []
    return _explained(look)


def _explained(look: Look) -> Explanation:
    draft = judge(look)
    memory = remember(look, draft)
    observation = observed(look, draft, guided(look), memory)
    return Explanation(
        rule=draft.rule,
        read=tuple(dict.fromkeys(look.trace or ())),
        body_fault=look.body_fault,
        observation=observation,
        memory=memory,
    )


class Reread(msgspec.Struct, frozen=True):
    """A stored answer under a contract. *whole*: all that this contract would have found in the answer itself was kept;
    else *observation* is no more than a hint, and nothing may be decided by it. *memory*: of the job, after it."""

    observation: Observation
    memory: Memory
    whole: bool


def reread(
    contract: Contract, operation: Operation, stored: bytes, now: Moment, body_beside: bytes | None = None
) -> Reread:
    """adopt_contract: the stored envelope, with the body that was kept beside it, under *contract*.

    An envelope that was cut cannot be read again: an integration failure, the memory as it was. `Memory.settling` and
    `cancel_sent_at` are left as they are.
    """
    kept = envelope.unpack(stored, body_beside)
    if kept is None or kept.cut:
        http = HttpFact(kept.answer.status if kept else 0, now.wall, now.wall)
        text = "the stored answer was too large to be kept whole" if kept else "the stored answer cannot be read"
        unread = Observation(
            verdict=Verdict.INTEGRATION, http=http, detail=StopDetail.UNREADABLE, explanation=text, envelope=stored
        )
        return Reread(unread, operation.memory, False)
    # the memory already counts this answer: it is neither a second one in a row nor one more poll
    known = operation.memory
    memory = replace(known, in_a_row=max(0, known.in_a_row - 1), polls=max(0, known.polls - 1))
    found = _read_kept(contract, operation, memory, kept)
    return Reread(replace(found.observation, envelope=stored), found.memory, kept.answers(contract))


def replayed(contract: Contract, operation: Operation, stored: bytes) -> tuple[Explanation, bool] | None:
    """The stored envelope as the next answer of *operation*, whose memory does not count it; None: it cannot be read.

    Also whether all that *contract* reads was kept: of a larger answer only what the contract of then could reach.
    """
    kept = envelope.unpack(stored)
    if kept is None or kept.cut or all(step.name != kept.step for step in contract.steps):
        return None
    return _read_kept(contract, operation, operation.memory, kept), kept.answers(contract)


def _read_kept(contract: Contract, operation: Operation, memory: Memory, kept: envelope.Unpacked) -> Explanation:
    exchange = Exchange(kept.step, operation.submitted.status_url or contract.base_url or "", kept.answer, kept.others)
    if kept.each is not None:
        # meanwhile another child may be the next one
        memory = replace(memory, values={**memory.values, EACH: kept.each})
    look = opened(contract, _seen(operation, memory), (exchange,), JSON if kept.tree else None)
    return _explained(look)


def _seen(operation: Operation, memory: Memory) -> Seen:
    return Seen(
        submitted=operation.submitted,
        started_at=Instant(operation.started_at),
        memory=memory,
        provider_expires_at=operation.provider_expires_at,
    )


def _exchange(operation: Operation, answer: Answer, url: str, others: int) -> Exchange:
    return Exchange(operation.memory.step or "status", url, answer, others)
