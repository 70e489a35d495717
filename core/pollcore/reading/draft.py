"""The verdict while it is being found.

Job: the mutable fields that the steps of reading fill in turn. Must not know: contracts, answers.
"""

from __future__ import annotations

from typing import Any

from pollcore.facts import Instant, ResultPointer, StopDetail, Verdict

ABOUT_THE_JOB = frozenset(
    {
        Verdict.WAITING,
        Verdict.SUCCEEDED,
        Verdict.FAILED,
        Verdict.CANCELLED,
        Verdict.EXPIRED,
        Verdict.NEEDS_HUMAN,
        Verdict.UNKNOWN,
    }
)


class Draft:
    """One verdict, always exactly one; the fields of an Observation that reading decides."""

    __slots__ = (
        "apart",
        "cancelling",
        "continues",
        "counts_forbidden",
        "detail",
        "error_details_missing",
        "explanation",
        "job_seen",
        "kept",
        "limit",
        "long_poll_timeout",
        "near_match",
        "next_step",
        "of_all",
        "provider_error",
        "provider_expires_at",
        "qualifiers",
        "result",
        "rule",
        "state",
        "verdict",
    )

    def __init__(
        self,
        verdict: Verdict,
        *,
        state: str | None = None,
        detail: StopDetail | None = None,
        explanation: str | None = None,
        rule: str = "",
        job_seen: bool = False,
    ) -> None:
        self.verdict = verdict
        self.state = state
        self.detail = detail
        self.explanation = explanation
        self.rule = rule
        self.job_seen = job_seen
        self.apart = False
        self.cancelling = False
        self.continues = False
        self.counts_forbidden = False
        self.error_details_missing = False
        self.kept: dict[str, Any] | None = None
        """R21: what the memory keeps of children beside what `remember` names."""
        self.limit: int | None = None
        self.long_poll_timeout = False
        self.near_match: str | None = None
        self.next_step: str | None = None
        self.of_all = False
        """R39: it rests on nothing that the answer says of this job: no entry of it, a rule that reads neither `item`
        nor `submitted`, a rule that failed."""
        self.provider_error: str | None = None
        self.provider_expires_at: Instant | None = None
        self.qualifiers: tuple[str, ...] = ()
        self.result: ResultPointer | None = None

    def broke(self, detail: StopDetail, explanation: str | None) -> None:
        """Turn into an integration failure (X5); what was read so far stays to be shown."""
        self.verdict = Verdict.INTEGRATION
        self.detail = detail
        self.explanation = explanation


def broken(detail: StopDetail, explanation: str | None = None, *, rule: str = "", state: str | None = None) -> Draft:
    """An integration failure from the start."""
    return Draft(Verdict.INTEGRATION, detail=detail, explanation=explanation, rule=rule, state=state)
