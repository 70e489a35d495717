"""What happens next: the one table of answers, and the checks before a request.

Job: the names that other floors use. Must not know: storage, requests, how a delay is drawn, what a grant changes.
"""

from pollcore.decide.answer import decide
from pollcore.decide.before import Before, Due, EndHold, Leave, LimitPassed, Rearm, before, shared_wait
from pollcore.decide.cause import STATUS_OF, cause_of, stop
from pollcore.decide.charge import INTEGRATION_FAULTS, SPENDS_FAILURE_BUDGET, Charge, charge_of
from pollcore.decide.guidance import open_until, valid_guidance
from pollcore.decide.limits import spent_budget, stop_of_limits
from pollcore.decide.settle import final_key, settling_after, unsettled

__all__ = [
    "INTEGRATION_FAULTS",
    "SPENDS_FAILURE_BUDGET",
    "STATUS_OF",
    "Before",
    "Charge",
    "Due",
    "EndHold",
    "Leave",
    "LimitPassed",
    "Rearm",
    "before",
    "cause_of",
    "charge_of",
    "decide",
    "final_key",
    "open_until",
    "settling_after",
    "shared_wait",
    "spent_budget",
    "stop",
    "stop_of_limits",
    "unsettled",
    "valid_guidance",
]
