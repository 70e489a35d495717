"""What is told to people outside the console, and when. Pure.

Job: one door to the parts: what is kept (model), what is new (look), when it goes out (pace), in which words (words).
Must not know: addresses, how anything is sent, the store, zones of time.
"""

from pollcore.notices.look import Seen, begin, looked
from pollcore.notices.model import (
    Delivery,
    Item,
    Ledger,
    NoticeKind,
    Outcome,
    Rules,
)
from pollcore.notices.pace import (
    LIMIT_TRIES,
    composed,
    due_deliveries,
    is_due,
    is_quiet,
    settled,
    tried,
)
from pollcore.notices.words import message

__all__ = [
    "LIMIT_TRIES",
    "Delivery",
    "Item",
    "Ledger",
    "NoticeKind",
    "Outcome",
    "Rules",
    "Seen",
    "begin",
    "composed",
    "due_deliveries",
    "is_due",
    "is_quiet",
    "looked",
    "message",
    "settled",
    "tried",
]
