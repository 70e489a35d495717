"""A submission checked and made into a record, without storing anything.

Job: the names that other floors use. Must not know: files, command lines, the store.
"""

from pollcore.submission.build import Requested, Terms, new_operation
from pollcore.submission.duplicates import (
    Carried,
    account_of,
    carried,
    check_caps,
    final_for_job,
    only_tried,
    open_for_job,
    refuse_duplicate,
    refuse_taken,
    same_job,
    same_submission,
)
from pollcore.submission.limits import effective_limits, span_text
from pollcore.submission.pace import pace_warnings

__all__ = [
    "Carried",
    "Requested",
    "Terms",
    "account_of",
    "carried",
    "check_caps",
    "effective_limits",
    "final_for_job",
    "new_operation",
    "only_tried",
    "open_for_job",
    "pace_warnings",
    "refuse_duplicate",
    "refuse_taken",
    "same_job",
    "same_submission",
    "span_text",
]
