"""What a schedule would cost: a contract's waits played event by event, nothing sent.

Job: the names that other rooms use. Must not know: the store, files, command lines, the controller above.
"""

from pollcore.whatif.parameters import MAX_EXACT, MAX_OPERATIONS, Arrivals, JobTime, Outage, Parameters
from pollcore.whatif.rules import Worker
from pollcore.whatif.shapes import Estimate, Load, Peak, Simulation
from pollcore.whatif.simulate import Chances, simulate

__all__ = [
    "MAX_EXACT",
    "MAX_OPERATIONS",
    "Arrivals",
    "Chances",
    "Estimate",
    "JobTime",
    "Load",
    "Outage",
    "Parameters",
    "Peak",
    "Simulation",
    "Worker",
    "simulate",
]
