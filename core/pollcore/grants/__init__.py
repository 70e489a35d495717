"""What an operator's decision changes: the pure effect of every choice, of asking, and of lowering authority.

Job: (operation, open question, choice) -> operation after, closed and opened question, events, action to run.
Must not know: keys, screens, storage, credentials' values; who calls `apply` is bound by G3, which this cannot see.
"""

from pollcore.grants.applied import Applied, refused_event
from pollcore.grants.applying import apply
from pollcore.grants.asking import (
    end_of_hold,
    open_operator_question,
    open_question,
    request_extension,
    supersede,
)
from pollcore.grants.lowering import lower

__all__ = [
    "Applied",
    "apply",
    "end_of_hold",
    "lower",
    "open_operator_question",
    "open_question",
    "refused_event",
    "request_extension",
    "supersede",
]
