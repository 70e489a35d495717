"""What a decision makes of the record and of the audit: the record after it, and the events that explain it.

Job: the names that other floors use. Must not know: SQL, sealing, leases, how decisions are chosen.
"""

from pollcore.outcome.events import (
    limit_events,
    reading_events,
    schedule_events,
    stop_events,
    submitted_events,
)
from pollcore.outcome.record import (
    after_deciding_again,
    after_limit,
    after_reading,
    after_rearm,
    after_schedule,
    after_stop,
    decide_again,
)

__all__ = [
    "after_deciding_again",
    "after_limit",
    "after_reading",
    "after_rearm",
    "after_schedule",
    "after_stop",
    "decide_again",
    "limit_events",
    "reading_events",
    "schedule_events",
    "stop_events",
    "submitted_events",
]
