"""Cases about time, load and authority: guidance, storms, outages, deadlines, budgets, credentials, agents.

Job: a table. Must not know: how it is served or handed over.
"""

from __future__ import annotations

from typing import Final

from pollconsole.demo.cases import (
    AGENT,
    ASKS_AT_S,
    LOST,
    OLD_TOKEN,
    SUCCEEDED,
    WAITING,
    Case,
    broken,
    done,
    error,
    stopped,
)
from pollconsole.demo.dialects import BATCH, EXPORT, RENDER
from pollconsole.demo.lives import Reply, each
from pollcore.facts import StopDetail, StopReason

SLOW_S: Final = 1.0
"""Real time: slow, and inside the contract's total."""
TOO_SLOW_S: Final = 8.0
"""Real time: no total waits so long."""

_RUNNING = Reply(state="running")
_QUEUED = Reply(state="queued")
_BUSY = Reply(state="in_progress")
_AT_WORK = Reply(state="IN_PROGRESS")

GUIDED: Final = (
    Case(
        operation_id="op-311",
        dialect=RENDER,
        job_id="vid_311a",
        label="weather loop, hourly",
        about="Retry-After in seconds",
        life=each(Reply(state="queued", headers={"Retry-After": "20"}), _RUNNING, done(RENDER)),
        expect=SUCCEEDED,
    ),
    Case(
        operation_id="op-312",
        dialect=RENDER,
        job_id="vid_312d",
        label="weather loop, daily",
        about="Retry-After as a date",
        life=each(Reply(state="running", retry_date=25), _RUNNING, done(RENDER)),
        expect=SUCCEEDED,
    ),
    Case(
        operation_id="op-313",
        dialect=RENDER,
        job_id="vid_313c",
        label="weather loop, weekly",
        about="its clock is a minute and a half ahead, and says so in its Date",
        life=each(Reply(state="running", date_off=90, retry_date=25), _RUNNING, done(RENDER)),
        expect=SUCCEEDED,
    ),
    Case(
        operation_id="op-314",
        dialect=RENDER,
        job_id="vid_314i",
        label="loop for the lobby",
        about="hints that are no hints: negative, without a time zone",
        life=each(
            Reply(state="running", fields={"poll_after_seconds": -5}),
            Reply(state="running", fields={"next_check_at": "2030-01-01T00:00:00"}),
            done(RENDER),
        ),
        expect=SUCCEEDED,
    ),
    *(
        Case(
            operation_id=f"op-32{n}",
            dialect=RENDER,
            job_id=f"vid_32{n}s",
            label=f"season 2, episode {n + 1}",
            about="503 with guidance to one of an account: all of it cool down" if n == 0 else "",
            life=each(
                Reply(state="running"),
                Reply(status=503, headers={"Retry-After": "60"}) if n == 0 else _RUNNING,
                _RUNNING,
                _RUNNING,
            ),
            expect=WAITING,
            account="studio-2",
            started_ago_s=200.0 + 40 * n,
        )
        for n in range(5)
    ),
    Case(
        operation_id="op-330",
        dialect=RENDER,
        job_id="vid_330g",
        label="season 1, recap",
        about="Retry-After beyond our deadline: it stops at once",
        life=each(Reply(status=503, headers={"Retry-After": "7200"})),
        expect=stopped(StopReason.GUIDANCE_BEYOND_DEADLINE),
        account="studio-3",
    ),
)

LOAD: Final = (
    Case(
        operation_id="op-341",
        dialect=BATCH,
        job_id="bat_341r",
        label="embeddings, catalogue",
        about="429 without guidance, again and again",
        life=each(Reply(status=429, fields=error("slow_down", "too many requests"))),
        expect=stopped(StopReason.RATE_LIMITED),
        account="research",
    ),
    Case(
        operation_id="op-342",
        dialect=BATCH,
        job_id="bat_342q",
        label="embeddings, manuals",
        about="429 that means: out of quota",
        life=each(_BUSY, Reply(status=429, fields=error("insufficient_quota", "the month's budget is spent"))),
        expect=stopped(StopReason.RATE_LIMITED, StopDetail.QUOTA_EXHAUSTED),
        account="research-2",
    ),
    Case(
        operation_id="op-343",
        dialect=RENDER,
        job_id="vid_343p",
        label="festival cut",
        about="500 until the failure budget is spent",
        life=each(Reply(status=500, fields=error("internal", "worker lost"))),
        expect=stopped(StopReason.PROVIDER_FAILURE),
        account="studio-4",
    ),
    Case(
        operation_id="op-344",
        dialect=BATCH,
        job_id="bat_344a",
        label="evaluation, suite B",
        about="answers too late, twice: nothing is known about the job",
        life=each(Reply(state="in_progress", slow_s=TOO_SLOW_S)),
        expect=stopped(StopReason.DELIVERY_AMBIGUOUS),
        max_transport_failures=2,
        account="evaluation",
    ),
    Case(
        operation_id="op-345",
        dialect=BATCH,
        job_id="bat_345s",
        label="evaluation, suite A",
        about="answers slowly, and in time",
        life=each(Reply(state="in_progress", slow_s=SLOW_S), Reply(state="in_progress", slow_s=SLOW_S), done(BATCH)),
        expect=SUCCEEDED,
        account="evaluation-2",
    ),
    Case(
        operation_id="op-346",
        dialect=RENDER,
        job_id="vid_346c",
        label="festival cut, subtitles",
        about="one answer is cut off in the middle",
        life=each(_QUEUED, Reply(state="running", cut=True), _RUNNING, done(RENDER)),
        expect=SUCCEEDED,
        account="studio-5",
    ),
)

ENDLESS: Final = (
    Case(
        operation_id="op-351",
        dialect=RENDER,
        job_id="vid_351n",
        label="fluid simulation",
        about="never ends: the deadline does",
        life=each(_QUEUED, _RUNNING),
        expect=stopped(StopReason.DEADLINE_EXCEEDED),
        started_ago_s=2_220.0,
        deadline_s=180.0,
    ),
    Case(
        operation_id="op-352",
        dialect=RENDER,
        job_id="vid_352b",
        label="crowd simulation",
        about="burns its four status requests",
        life=each(_QUEUED, _RUNNING),
        expect=stopped(StopReason.REQUEST_BUDGET_EXHAUSTED),
        max_status_requests=4,
    ),
    Case(
        operation_id="op-353",
        dialect=EXPORT,
        job_id="exp_353u",
        label="figures for the 9 o'clock call",
        about="the call begins before the export is done",
        life=each(_AT_WORK),
        expect=stopped(StopReason.USEFULNESS_ENDED),
        useful_s=150.0,
    ),
    Case(
        operation_id="op-354",
        dialect=RENDER,
        job_id="vid_354x",
        label="cloud pass",
        about="runs on past the expiry that the provider itself named",
        life=each(_RUNNING, Reply(state="running", ahead={"expires_at": -30})),
        expect=broken(StopDetail.WAITING_PAST_PROVIDER_EXPIRY),
    ),
    Case(
        operation_id="op-355",
        dialect=RENDER,
        job_id="vid_355e",
        label="character rig, bake",
        about=f"its agent asks for more time after {ASKS_AT_S:g} s; the wait goes on meanwhile",
        life=each(_RUNNING),
        expect=WAITING,
        caller=AGENT,
        started_ago_s=1_500.0,
        asks_extension=True,
    ),
    Case(
        operation_id="op-356",
        dialect=RENDER,
        job_id="vid_356k",
        label="character rig, export",
        about="takes a cancel, and is done all the same",
        life=RENDER.course(40, 900),
        expect=WAITING,
        caller=AGENT,
        keeps_going=True,
    ),
)

AUTHORITY: Final = (
    *(
        Case(
            operation_id=f"op-36{n}",
            dialect=BATCH,
            job_id=f"bat_36{n}o",
            label=f"transcripts, part {n + 1} of 4",
            about="its token is rotated under way: one question for all four" if n == 0 else "",
            life=BATCH.course(30, 1_500),
            expect=stopped(StopReason.AUTHORIZATION_DENIED),
            credential=OLD_TOKEN,
            account="speech",
            started_ago_s=240.0 + 60 * n,
        )
        for n in range(4)
    ),
    Case(
        operation_id="op-366",
        dialect=EXPORT,
        job_id="exp_366f",
        label="payroll, summary",
        about="403: this account may not see it",
        life=each(Reply(status=403, fields=error("forbidden", "account scope"))),
        expect=stopped(StopReason.AUTHORIZATION_DENIED),
        account="finance",
    ),
    Case(
        operation_id="op-367",
        dialect=RENDER,
        job_id="vid_367k",
        label="backdrop, night",
        about="its credential is not in the keyring: nothing is sent",
        life=each(_RUNNING),
        expect=stopped(StopReason.CREDENTIAL_UNAVAILABLE, StopDetail.CREDENTIAL_MISSING),
        credential=LOST,
    ),
)

CASES: Final = (*GUIDED, *LOAD, *ENDLESS, *AUTHORITY)
