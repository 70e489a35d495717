"""The table of group E: reason -> kinds of choices.

Job: the list, in the order in which digits are given. Must not know: operations.
Source: spec, group E, table; E9 (inspect and close are always there); "while held" below the table.
"""

from __future__ import annotations

from typing import Final

from pollcore.facts import ChoiceKind, Status, StopReason

K = ChoiceKind
R = StopReason

ALWAYS: Final = (K.INSPECT, K.CLOSE)
"""On every card, with the last two digits."""

_MORE_TIME: Final = (K.EXTEND, K.CANCEL_AT_PROVIDER)
_LOOK: Final = (K.CHECK_ONCE, K.HOLD, K.ADOPT_CONTRACT)

PERMITTED: Final[dict[StopReason, tuple[ChoiceKind, ...]]] = {
    R.DEADLINE_EXCEEDED: _MORE_TIME,
    R.GUIDANCE_BEYOND_DEADLINE: _MORE_TIME,
    R.REQUEST_BUDGET_EXHAUSTED: _MORE_TIME,
    R.USEFULNESS_ENDED: _MORE_TIME,
    R.EXTENSION_REQUESTED: (K.EXTEND, K.REJECT, K.CANCEL_AT_PROVIDER),
    R.OPERATOR_REQUEST: (K.EXTEND, K.HOLD, K.ADOPT_CONTRACT, K.CANCEL_AT_PROVIDER),
    R.RATE_LIMITED: _MORE_TIME,
    R.PROVIDER_FAILURE: _MORE_TIME,
    R.DELIVERY_AMBIGUOUS: (*_MORE_TIME, K.RESUBMIT),
    R.UNKNOWN_STATE: (*_LOOK, K.CANCEL_AT_PROVIDER),
    R.NEEDS_HUMAN: (*_LOOK, K.CANCEL_AT_PROVIDER),
    R.AUTHORIZATION_DENIED: (K.USE_OTHER_CREDENTIAL, K.CHECK_ONCE_WITH_ROTATED_CREDENTIAL),
    R.CREDENTIAL_UNAVAILABLE: (K.CHECK_AGAIN, K.USE_OTHER_CREDENTIAL),
    R.INTEGRATION_FAILURE: (*_LOOK, K.ACCEPT_UNVALIDATED_RESULT, K.CANCEL_AT_PROVIDER),
    R.JOB_FAILED: (K.RESUBMIT,),
    R.JOB_CANCELLED: (K.RESUBMIT,),
    R.JOB_EXPIRED: (K.RESUBMIT,),
    R.APPROVAL_DENIED: (K.ASK_AGAIN, K.CANCEL_AT_PROVIDER),
    R.CALL_APPROVAL: (K.APPROVE_ONCE, K.DENY),
    R.SESSION_APPROVAL: (K.APPROVE_SESSION, K.DENY),
    R.MODE_CHANGE: (K.APPROVE, K.REJECT),
    R.FIRST_USE: (K.APPROVE, K.REJECT),
}
"""Besides inspect and close."""

WHILE_HELD: Final = (K.END_HOLD, K.CANCEL_AT_PROVIDER)
"""What the operator's question offers while the operation is held, besides inspect and close."""


def permitted(reason: StopReason, status: Status | None) -> tuple[ChoiceKind, ...]:
    """The kinds that a question of *reason* may offer on an operation in *status*, in the order of their digits."""
    held = status is Status.HELD and reason is R.OPERATOR_REQUEST
    return (*(WHILE_HELD if held else PERMITTED[reason]), *ALWAYS)
