"""Choices about credentials and approvals: another one, a rotated one, the keyring, calls, sessions, modes, first use.

Job: build them with costs and consequences. Must not know: secrets, which reason permits them, how they are done.
Source: spec H3, X7, G2, G6, G7, K5, and the table of group E.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.escalation.approvals import FETCH, FETCH_GRANT_MS
from pollcore.escalation.circumstances import CredentialUse, FirstUse, ModeChange
from pollcore.escalation.situation import Situation, span_words
from pollcore.escalation.waits import one_check
from pollcore.facts import Choice, ChoiceKind, ContractUse, Effect, StopReason

OBSERVATION: Final = "observation"
"""`Effect.what` of a first use: what the status requests under the contract are, a `ContractUse`."""
MAX_OTHER_CREDENTIALS: Final = 5
"""More would not leave a digit for the rest of the card."""


def use_other_credential(s: Situation) -> list[Choice]:
    """One choice a credential of the same account; absent when there is none."""
    names = [name for name in s.facts.other_credentials if name != s.operation.credential]
    more = len(names) - MAX_OTHER_CREDENTIALS
    warnings = (f"{more} further credentials of this account are not listed",) if more > 0 else ()
    found = []
    for name in names[:MAX_OTHER_CREDENTIALS]:
        effect = Effect(what="credential", before=s.operation.credential, after=name)
        for choice in one_check(
            s,
            ChoiceKind.USE_OTHER_CREDENTIAL,
            f"use credential {name}",
            leads_to=f"Credential {name} replaces the present one for this operation, same account; the wait goes on",
            credential=name,
            warnings=warnings,
        ):
            found.append(msgspec.structs.replace(choice, effects=(effect, *choice.effects)))
    return found


def check_once_with_rotated_credential(s: Situation) -> list[Choice]:
    """Only if the stored secret has really changed (H3: the same request is never offered again)."""
    if not s.facts.secret_rotated:
        return []
    return one_check(
        s,
        ChoiceKind.CHECK_ONCE_WITH_ROTATED_CREDENTIAL,
        "check once with the rotated credential",
        leads_to="One counted status request goes out with the changed secret; the wait goes on if its answer is known",
        credential=s.operation.credential,
    )


def check_again(s: Situation) -> list[Choice]:
    """Reads the keyring only; once it reads, the wait goes on."""
    found = one_check(
        s,
        ChoiceKind.CHECK_AGAIN,
        "read the keyring again",
        leads_to="The keyring is read, nothing else; if it reads, the wait goes on",
    )
    if s.facts.keyring_reads:
        return found
    problem = s.facts.keyring_problem or "the keyring does not give this credential yet"
    return [msgspec.structs.replace(choice, unavailable=f"not yet: {problem}") for choice in found]


def ask_again(s: Situation) -> list[Choice]:
    """Makes a new call approval; needs room for the check that it is about."""
    return one_check(
        s,
        ChoiceKind.ASK_AGAIN,
        "ask again for this call",
        leads_to="A new call approval is asked; nothing goes out before it is given",
    )


def _use(s: Situation) -> CredentialUse:
    return s.facts.use or CredentialUse()


def _hidden(use: CredentialUse) -> str | None:
    """G4: what is not shown is not approved."""
    return use.problem or (None if use.digest is not None else "the request that would be sent is not known here")


def approve_once(s: Situation) -> list[Choice]:
    """One use of a per-call credential; vanishes when no request could go out any more (E7)."""
    use, op = _use(s), s.operation
    fetch = use.for_purpose == FETCH
    if not fetch and (s.passed or op.requests_left <= 0):
        return []
    number = op.status_requests_used + 1
    sentence = (
        "The result may be fetched once: give `pollconsole fetch` again within "
        f"{span_words(FETCH_GRANT_MS)}; it is no status request."
        if fetch
        else f"This one {use.purpose} goes out, as request {number} of {op.max_status_requests}; the next asks again."
    )
    return [
        Choice(
            key="",
            kind=ChoiceKind.APPROVE_ONCE,
            label="approve once",
            grants=True,
            credential=op.credential,
            call=use.digest,
            leads_to=sentence,
            unavailable=_hidden(use),
        )
    ]


def approve_session(s: Situation) -> list[Choice]:
    """A session of bounded minutes and calls (G6); they bound the credential, not the operation."""
    if s.passed or s.operation.requests_left <= 0:
        return []
    use = _use(s)
    return [
        Choice(
            key="",
            kind=ChoiceKind.APPROVE_SESSION,
            label=f"approve session, {use.session_minutes} min / {use.session_calls} calls",
            grants=True,
            minutes=use.session_minutes,
            checks=use.session_calls,
            credential=s.operation.credential,
            call=use.digest,
            effects=(
                Effect(what="session_minutes", before=0, after=use.session_minutes),
                Effect(what="session_calls", before=0, after=use.session_calls),
            ),
            leads_to=(
                f"Until {use.owner or 'this run of the core'}, the minutes or the calls end, this credential is used "
                "unasked by that run, for all operations that are asked with it. `pollconsole credential end-session` "
                "ends it earlier."
            ),
            unavailable=_hidden(use),
        )
    ]


def deny(s: Situation) -> list[Choice]:
    """Becomes `approval_denied`; an end stays what it is."""
    sentence = (
        f"Nothing is sent; the operation stays {s.operation.status.value}."
        if s.operation.status.is_end
        else "Nothing is sent; the operation stops with approval_denied."
    )
    return [Choice(key="", kind=ChoiceKind.DENY, label="deny", leads_to=sentence, credential=s.operation.credential)]


def approve(s: Situation) -> list[Choice]:
    """First use: the operator says once what the status requests under this contract digest are (X7)."""
    if s.reason is StopReason.MODE_CHANGE:
        return [choice for choice in mode_choices(s.facts.mode) if choice.kind is ChoiceKind.APPROVE]
    facts = s.facts.first_use or FirstUse()
    declared = facts.observation is not None
    doubt = (
        "nobody has tried this contract on a live account: its evidence is what its author read"
        if declared
        else "the contract states no evidence that asking has no effect"
    )
    return [
        _first_use(
            s,
            facts,
            ContractUse.READ_ONLY,
            "approve: it is read-only",
            "Status requests under exactly this contract count as read-only from now on, for every operation; their "
            "waits go on inside their limits.",
            (doubt,),
        ),
        _first_use(
            s,
            facts,
            ContractUse.ACTION,
            "approve as an action: each request asks",
            "Status requests under exactly this contract are actions from now on, for every operation: each one needs "
            "its own approval before it is sent.",
            (),
        ),
    ]


def _first_use(
    s: Situation, facts: FirstUse, use: ContractUse, label: str, leads_to: str, warnings: tuple[str, ...]
) -> Choice:
    other = facts.decided is not None and facts.decided is not use
    said = "read-only" if facts.decided is ContractUse.READ_ONLY else "actions"
    once = f"it was decided once already that they are {said}; a changed contract asks anew"
    return Choice(
        key="",
        kind=ChoiceKind.APPROVE,
        label=label,
        grants=True,
        contract_digest=s.operation.contract_digest,
        effects=(Effect(what=OBSERVATION, before="undecided", after=use.value),),
        leads_to=leads_to,
        warnings=warnings,
        unavailable=once if other else None,
    )


def mode_choices(mode: ModeChange | None) -> list[Choice]:
    """The whole card of a mode change, which belongs to a credential and not to an operation."""
    name = mode.credential if mode else "of the question"
    approve_it = Choice(
        key="",
        kind=ChoiceKind.APPROVE,
        label=f"approve {mode.after.value}" if mode else "approve",
        grants=True,
        credential=mode.credential if mode else None,
        effects=(Effect(what="credential", before=mode.before.value, after=mode.after.value),) if mode else (),
        leads_to=f"The credential {name} is asked about less often from now on.",
        unavailable=mode.problem if mode else "the mode that was asked for is not known",
    )
    stays = f"The credential {name} keeps its mode."
    return [
        approve_it,
        Choice(key="", kind=ChoiceKind.REJECT, label="reject", leads_to=stays),
        Choice(
            key="",
            kind=ChoiceKind.INSPECT,
            label="inspect",
            decides=False,
            leads_to="Shows the credential's record and mode; decides nothing, sends nothing.",
        ),
        Choice(key="", kind=ChoiceKind.CLOSE, label="close", leads_to=stays),
    ]
