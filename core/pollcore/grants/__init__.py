"""What an operator's decision changes: the pure effect of every choice, of asking, and of lowering authority.

Job: (operation, open question, choice) -> operation after, closed and opened question, events, action to run.
Must not know: keys, screens, storage, credentials' values; who calls `apply` is bound by G3, which this cannot see.
"""

from pollcore.grants.applied import Applied, refused_event
from pollcore.grants.applying import apply
from pollcore.grants.asking import (
    ask_for_fetch,
    end_of_hold,
    open_operator_question,
    open_question,
    request_extension,
    supersede,
)
from pollcore.grants.expiry import EXPIRED, expire, take_back
from pollcore.grants.lowering import lower

__all__ = [
    "Applied",
    "EXPIRED",
    "apply",
    "ask_for_fetch",
    "end_of_hold",
    "expire",
    "lower",
    "open_operator_question",
    "open_question",
    "refused_event",
    "request_extension",
    "supersede",
    "take_back",
]
