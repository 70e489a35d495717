"""Reading: (contract, what is known, an answer) -> an observation. Pure and total; never sees a socket.

Job: the public names of this package. Must not know: decisions, budgets, stores.
"""

from pollcore.reading.available import force_available_at
from pollcore.reading.cancelled import read_cancel
from pollcore.reading.explained import Explanation, explain, replayed, reread, reread_with_memory
from pollcore.reading.handover import Handover, from_response, read_submit
from pollcore.reading.look import Opened
from pollcore.reading.observe import read
from pollcore.reading.pages import next_page

__all__ = [
    "Explanation",
    "Handover",
    "Opened",
    "explain",
    "force_available_at",
    "from_response",
    "next_page",
    "read",
    "read_cancel",
    "read_submit",
    "replayed",
    "reread",
    "reread_with_memory",
]
