"""A warning about the budget stands in the story once, without the figure that the sentence has already."""

from __future__ import annotations

import pytest

from pollcore.facts import HOUR, AuditEvent, EventName, Instant, Schedule
from pollcore.story import line
from pollcore.submission import pace_warnings


@pytest.mark.rule("A2", "B1")
@pytest.mark.parametrize(
    ("budget", "warned"), [(4, "the budget is spent after about 56 s"), (5_000, "the budget cannot be used up")]
)
def test_the_story_of_a_submission_names_the_budget_once(budget: int, warned: str) -> None:
    at = Instant(1_772_445_600_000)
    event = AuditEvent(
        at=at,
        event=EventName.SUBMITTED,
        operation_id="op-1",
        text="exp_71c",
        deadline_at=Instant(at + HOUR),
        max_requests=budget,
        decision="wait",
        notes=pace_warnings(Schedule(), budget, HOUR),
    )
    told = line(event)
    assert told.startswith(f"10:00:00 submitted job exp_71c, deadline 11:00:00, budget {budget} ({warned}")
    assert "max_status_requests" not in told


@pytest.mark.rule("B1")
def test_a_warning_about_the_budget_names_its_spans_in_whole_seconds() -> None:
    (spent,) = pace_warnings(Schedule(), 4, 2_397_704)
    assert "in the first tenth of the 39 min 57 s until" in spent
    (unused,) = pace_warnings(Schedule(), 5_000, 90_704)
    assert "into the 90 s until" in unused
