"""Reading: (contract, what is known, an answer) -> an observation. Pure and total; never sees a socket.

Job: the public names of this package. Must not know: decisions, budgets, stores.
"""

from pollcore.reading.available import force_available_at
from pollcore.reading.cancelled import read_cancel
from pollcore.reading.envelope import body_beside
from pollcore.reading.explained import Explanation, Reread, explain, replayed, reread
from pollcore.reading.handover import Handover, explain_response, from_response, read_submit
from pollcore.reading.look import Opened
from pollcore.reading.observe import read
from pollcore.reading.pages import next_page

__all__ = [
    "Explanation",
    "Handover",
    "Opened",
    "Reread",
    "body_beside",
    "explain",
    "force_available_at",
    "explain_response",
    "from_response",
    "next_page",
    "read",
    "read_cancel",
    "read_submit",
    "replayed",
    "reread",
]
