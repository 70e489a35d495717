"""Choices about credentials and approvals: another one, a rotated one, the keyring, calls, sessions, modes, first use.

Job: build them with costs and consequences. Must not know: secrets, which reason permits them, how they are done.
Source: spec H3, X7, G2, G6, G7, K5, and the table of group E.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.escalation.circumstances import CredentialUse, ModeChange
from pollcore.escalation.situation import Situation
from pollcore.escalation.waits import one_check
from pollcore.facts import Choice, ChoiceKind, Effect, StopReason

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


def approve_once(s: Situation) -> list[Choice]:
    """One use of a per-call credential; vanishes when no request could go out any more (E7)."""
    if s.passed or s.operation.requests_left <= 0:
        return []
    op = s.operation
    number = op.status_requests_used + 1
    return [
        Choice(
            key="",
            kind=ChoiceKind.APPROVE_ONCE,
            label="approve once",
            grants=True,
            credential=op.credential,
            leads_to=(
                f"This one {_use(s).purpose} goes out, as request {number} of {op.max_status_requests}; "
                "the next one asks again."
            ),
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
            leads_to="Until this run of the core, the minutes or the calls end, this credential is used unasked.",
        )
    ]


def deny(s: Situation) -> list[Choice]:
    """Becomes `approval_denied`."""
    sentence = "Nothing is sent; the operation stops with approval_denied."
    return [Choice(key="", kind=ChoiceKind.DENY, label="deny", leads_to=sentence, credential=s.operation.credential)]


def approve(s: Situation) -> list[Choice]:
    """First use: the operator says that the contract's observation is read-only (X7)."""
    if s.reason is StopReason.MODE_CHANGE:
        return [choice for choice in mode_choices(s.facts.mode) if choice.kind is ChoiceKind.APPROVE]
    return [
        Choice(
            key="",
            kind=ChoiceKind.APPROVE,
            label="approve: it is read-only",
            grants=True,
            contract_digest=s.operation.contract_digest,
            leads_to="Status requests under exactly this contract count as read-only from now on; the wait goes on.",
            warnings=("the contract states no evidence that asking has no effect",),
        )
    ]


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
        unavailable=None if mode else "the mode that was asked for is not known",
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
