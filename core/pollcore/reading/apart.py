"""An answer about several operations that speaks of none of them.

Job: tell such an answer from one that is about this job, or about the exchange as a whole; the first ends nothing, its
operations are asked alone. Must not know: how an entry is found, what is decided.
Source: contract need R39: one id that a provider refuses must not end the waits of the others that went with it.
"""

from __future__ import annotations

from typing import Final

from pollcore.facts import StopDetail, Verdict
from pollcore.reading.draft import Draft
from pollcore.reading.look import Look

OF_THE_EXCHANGE: Final = frozenset(
    {Verdict.RATE_LIMITED, Verdict.QUOTA_EXHAUSTED, Verdict.TRANSPORT_FAILURE, Verdict.DENIED}
)
"""What means to each operation of a request the same as it would alone."""


def set_apart(look: Look, draft: Draft) -> Draft:
    """*draft*, or where it rests on no entry of the job a wait that ends with a request alone.

    Where there are entries, and none or more than one is of the job, it stays a wait if that is what its absence means;
    what would end the wait is asked alone first: a list that was cut, or paged, looks the same.
    """
    if _is_about_it(look, draft):
        return draft
    why = draft.detail.value if draft.detail is not None else draft.verdict.value
    absent = look.item_read and look.item_absent is not None
    told = "has no one entry of this one" if absent else "speaks of none of them"
    look.notes.append(f"HTTP {look.answer.status} for {look.others + 1} jobs {told} ({why}): asked alone next")
    waits = Draft(Verdict.WAITING, rule=f"batch, {draft.rule}")
    waits.apart = True
    return waits


def _is_about_it(look: Look, draft: Draft) -> bool:
    """Whether *draft* may stand: it is about this job, or about the exchange as a whole."""
    if draft.verdict in OF_THE_EXCHANGE:
        # a body that fewer jobs might mend is none of the exchange, whatever a contract counts it as
        return draft.detail is not StopDetail.UNREADABLE
    return look.item_read and (not draft.of_all or draft.verdict is Verdict.WAITING)
