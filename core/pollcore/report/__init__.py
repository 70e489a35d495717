"""A5: figures from records and events, what was permitted, and what does not add up. Pure.

Job: one door to the parts: requests (was each permitted, was guidance obeyed), contradictions, figures over many
operations. Must not know: storage, contracts, how figures are printed.
"""

from pollcore.report.contradictions import Contradiction, contradictions, of_record
from pollcore.report.figures import FIXED_INTERVAL, Tally, report
from pollcore.report.requests import RequestFact, guided_until, requests_of
from pollcore.report.shapes import Bucket, ByProvider, ByReason, Extension, Report, Times

__all__ = [
    "FIXED_INTERVAL",
    "Bucket",
    "ByProvider",
    "ByReason",
    "Contradiction",
    "Extension",
    "Report",
    "RequestFact",
    "Tally",
    "Times",
    "contradictions",
    "guided_until",
    "of_record",
    "report",
    "requests_of",
]
