"""An answer about several operations that speaks of none of them.

Job: tell such an answer from one that is about this job, or about the exchange as a whole; the first ends nothing, its
operations are asked alone. Must not know: how an entry is found, what is decided.
Source: contract need R39: one id that a provider refuses must not end the waits of the others that went with it.
"""

from __future__ import annotations

from typing import Final

from pollcore.facts import Verdict
from pollcore.reading.draft import Draft
from pollcore.reading.look import Look

OF_THE_EXCHANGE: Final = frozenset(
    {Verdict.RATE_LIMITED, Verdict.QUOTA_EXHAUSTED, Verdict.TRANSPORT_FAILURE, Verdict.DENIED}
)
"""What means to each operation of a request the same as it would alone."""


def set_apart(look: Look, draft: Draft) -> Draft:
    """*draft*, or where it rests on no entry of the job, nor on its absence, a wait that ends with a request alone."""
    if look.item_read or draft.verdict in OF_THE_EXCHANGE:
        return draft
    why = draft.detail.value if draft.detail is not None else draft.verdict.value
    told = f"HTTP {look.answer.status} for {look.others + 1} jobs speaks of none of them ({why})"
    look.notes.append(f"{told}: asked alone next")
    waits = Draft(Verdict.WAITING, rule=f"batch, {draft.rule}")
    waits.apart = True
    return waits
