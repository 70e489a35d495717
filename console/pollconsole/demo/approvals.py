"""Cases about leave to use a credential or a contract: one kind of card after the other, each told in a sentence.

Job: a table, and when each comes. Must not know: how it is served, handed over or shown.

Source: spec G6, G7, X7, E1.
"""

from __future__ import annotations

from typing import Final

from pollconsole.demo.cases import AGENT, ASKING, Case
from pollconsole.demo.dialects import BATCH, EXPORT, MAPS
from pollconsole.demo.ordinary import Arrival
from pollcore.facts import CredentialMode, StopReason

SESSION_KEY: Final = "research-session"
"""Credential in mode per_session."""
CALL_KEY: Final = "payroll-key"
"""Credential in mode per_call."""
MODES: Final = {SESSION_KEY: CredentialMode.PER_SESSION, CALL_KEY: CredentialMode.PER_CALL}
SESSION_AT_S: Final = 75.0
CALL_AT_S: Final = 210.0
FIRST_USE_AT_S: Final = 330.0
MODE_AT_S: Final = 450.0
"""Demo time at which each kind of card comes: one after the other, so that each can be looked at before the next."""
MODE_BECAUSE: Final = "the payroll summary asks every few minutes, and nobody sits at the console at night"

SESSIONS: Final = tuple(
    Case(
        operation_id=f"op-37{n}",
        dialect=BATCH,
        job_id=f"bat_37{n}s",
        label=f"survey, wave {n + 1} of 3",
        about="one credential that asks once for a run: one card for all three" if n == 0 else "",
        life=BATCH.course(30, 1_800 + 300 * n),
        expect=ASKING,
        credential=SESSION_KEY,
        account="survey",
        deadline_s=5_400.0,
    )
    for n in range(3)
)
CALL: Final = Case(
    operation_id="op-375",
    dialect=EXPORT,
    job_id="exp_375p",
    label="payroll, by person",
    about="a credential that asks for each request; unanswered it expires and is asked anew",
    life=EXPORT.course(20, 1_500),
    expect=ASKING,
    credential=CALL_KEY,
    account="payroll",
    deadline_s=3_600.0,
)
FIRST_USES: Final = tuple(
    Case(
        operation_id=f"op-37{7 + n}",
        dialect=MAPS,
        job_id=f"map_37{7 + n}f",
        label=f"city map, sheet {n + 1}",
        about="a contract that nobody has tried: one decision for all that run under it" if n == 0 else "",
        life=MAPS.course(30, 600 + 120 * n),
        expect=ASKING,
        caller=AGENT,
    )
    for n in range(2)
)
CASES: Final = (*SESSIONS, CALL, *FIRST_USES)


def arrivals() -> tuple[Arrival, ...]:
    """When each comes, in order of time."""
    return (
        *(Arrival(SESSION_AT_S, case) for case in SESSIONS),
        Arrival(CALL_AT_S, CALL),
        *(Arrival(FIRST_USE_AT_S, case) for case in FIRST_USES),
    )


GUIDE: Final[dict[StopReason, str]] = {
    StopReason.SESSION_APPROVAL: f"New: {SESSION_KEY} asks once for a run: A lists it",
    StopReason.CALL_APPROVAL: f"New: {CALL_KEY} asks for each request: A lists it",
    StopReason.FIRST_USE: "New: a contract that nobody has tried: A lists it, t reads it",
    StopReason.MODE_CHANGE: f"New: {AGENT} wants {CALL_KEY} to ask no more: A lists it",
}
"""Said once, when the first card of a kind comes; short enough for the message line at 80 cells."""
