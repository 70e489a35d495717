"""What the audit is told besides the decision.

Job: short remarks on one reading (`clock_skew`, `hint_invalid`, `near_match`, lateness). Must not know: the decision.
Source: spec T3, T4, S2, S9, H3.
"""

from __future__ import annotations

from pollcore.facts import Fault, FaultKind, Moment, Observation, Operation, Verdict, deadline_left


def remarks(
    operation: Operation, reading: Observation | Fault, now: Moment, refused: tuple[str, ...]
) -> tuple[str, ...]:
    """Remarks on *reading*: its own, those of refused guidance, and what the record adds; nothing said twice."""
    if isinstance(reading, Fault):
        if reading.apart:
            return ("the answer for several jobs speaks of none of them: asked alone next",)
        return ("answer_lost",) if reading.kind is FaultKind.ANSWER_LOST else ()
    notes = list(reading.notes)
    said = " ".join(notes)
    notes += [f"hint_invalid: {hint.name} {hint.why}" for hint in reading.hint_faults if hint.why not in said]
    notes += refused
    if reading.clock_skew_ms is not None and "clock_skew" not in said:
        notes.append(f"clock_skew {reading.clock_skew_ms} ms")
    if reading.near_match is not None and "near_match" not in said:
        notes.append(f"near_match: {reading.near_match}")
    if reading.error_details_missing and "error_details_missing" not in said:
        notes.append("error_details_missing")
    unseen = operation.memory.first_seen_at is None and "submit was accepted" not in said
    if reading.verdict is Verdict.DENIED and reading.http.code == 403 and unseen:
        notes.append("submit was accepted, the job was not seen yet: rights may still be spreading")
    if reading.verdict.is_final:
        late = reading.http.answered_at - operation.deadline_at
        left = deadline_left(operation, now)
        if late > 0 or left < 0:
            notes.append(f"answered {max(late, -left, 0)} ms after the deadline")
    return tuple(notes)
