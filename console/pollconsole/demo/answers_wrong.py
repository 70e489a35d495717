"""Cases whose answers cannot be taken at face value: states, bodies, addresses, texts.

Job: a table. Must not know: how it is served or handed over.
"""

from __future__ import annotations

from typing import Final

from pollconsole.demo.cases import SUCCEEDED, WAITING, Case, Expect, broken, done, error, stopped
from pollconsole.demo.dialects import BATCH, EXPORT, RENDER
from pollconsole.demo.lives import Reply, each
from pollcore.facts import Status, StopDetail, StopReason

HOSTILE: Final = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u202c[@click=app.quit]ok[/][/]\x00\r\n"
"""A title, a cleared screen, a colour, text that runs backwards, markup, a line break."""
HOSTILE_STATE: Final = "run\x1b[5mning\u202e"
LONG_STATE: Final = "very_" * 200
"""1,000 characters where one word belongs."""
MAX_BODY: Final = 256 * 1024
"""What a client of ours takes at most; the case sends more."""

_QUEUED = Reply(state="queued")
_RUNNING = Reply(state="running")
_PENDING = Reply(state="PENDING")
_AT_WORK = Reply(state="IN_PROGRESS")
_VALIDATING = Reply(state="validating")
_BUSY = Reply(state="in_progress")
_PAUSED = Reply(state="paused", fields={"message": "waits for the licence of a font"})
_COMPILING = Reply(state="compiling")
_UNKNOWN = stopped(StopReason.UNKNOWN_STATE)
_HUMAN = stopped(StopReason.NEEDS_HUMAN)
_DID_RESULT = broken(StopDetail.SUCCEEDED_WITHOUT_RESULT)

STATES: Final = (
    *(
        Case(
            operation_id=f"op-21{n}",
            dialect=RENDER,
            job_id=f"vid_21{n}c",
            label=label,
            about="a state that the contract does not list, in three jobs: one card",
            life=each(_QUEUED, _COMPILING),
            expect=_UNKNOWN,
            started_ago_s=90.0 + n,
        )
        for n, label in enumerate(("shader pack, preview", "shader pack, 1080p", "shader pack, 2160p"))
    ),
    Case(
        operation_id="op-214",
        dialect=RENDER,
        job_id="vid_214p",
        label="title sequence, take 4",
        about="paused: a person must act at the provider; the next look finds it running again",
        life=each(_RUNNING, _PAUSED, _RUNNING, _RUNNING, done(RENDER)),
        expect=_HUMAN,
        started_ago_s=300.0,
    ),
    Case(
        operation_id="op-215",
        dialect=EXPORT,
        job_id="exp_215h",
        label="customer ledger, full",
        about="held back until somebody releases it",
        life=each(_PENDING, Reply(state="ON_HOLD")),
        expect=_HUMAN,
    ),
    Case(
        operation_id="op-216",
        dialect=BATCH,
        job_id="bat_216u",
        label="summaries, week 47",
        about="UNKNOWN three times in a row, which is one too many",
        life=each(Reply(state="UNKNOWN")),
        expect=_UNKNOWN,
    ),
    Case(
        operation_id="op-217",
        dialect=BATCH,
        job_id="bat_217t",
        label="summaries, week 46",
        about="UNKNOWN twice, then at work again",
        life=each(Reply(state="UNKNOWN"), Reply(state="UNKNOWN"), _BUSY, done(BATCH)),
        expect=SUCCEEDED,
    ),
    Case(
        operation_id="op-218",
        dialect=RENDER,
        job_id="vid_218b",
        label="interview, subtitles",
        about="a state that moves backwards is only waiting",
        life=each(_RUNNING, _QUEUED, _RUNNING, done(RENDER)),
        expect=SUCCEEDED,
    ),
    Case(
        operation_id="op-219",
        dialect=RENDER,
        job_id="vid_219f",
        label="product tour, 4k",
        about="failed, with the provider's own error",
        life=each(_RUNNING, Reply(state="failed", fields=error("codec_missing", "no decoder for track 2"))),
        expect=Expect(Status.FAILED, StopReason.JOB_FAILED),
        params={"input": "tour-master.mov"},
        started_ago_s=600.0,
    ),
    Case(
        operation_id="op-220",
        dialect=EXPORT,
        job_id="exp_220a",
        label="audit trail, October",
        about="cancelled by somebody else",
        life=each(_AT_WORK, Reply(state="ABORTED")),
        expect=Expect(Status.CANCELLED, StopReason.JOB_CANCELLED),
    ),
    Case(
        operation_id="op-221",
        dialect=RENDER,
        job_id="vid_221q",
        label="podcast 88, waveform",
        about="done, but only in part: the qualifier is kept",
        life=each(_RUNNING, Reply(state="partially_succeeded", fields={"result": True})),
        expect=SUCCEEDED,
    ),
)

BODIES: Final = (
    Case(
        operation_id="op-231",
        dialect=RENDER,
        job_id="vid_231r",
        label="drone footage, cut 2",
        about="succeeded, without a result",
        life=each(_RUNNING, Reply(state="succeeded")),
        expect=_DID_RESULT,
    ),
    Case(
        operation_id="op-232",
        dialect=RENDER,
        job_id="vid_232e",
        label="drone footage, cut 3",
        about="succeeded, with an error beside it",
        life=each(
            _RUNNING, Reply(state="succeeded", fields={"result": True, **error("frames_dropped", "41 frames lost")})
        ),
        expect=broken(StopDetail.SUCCESS_CONTRADICTED),
    ),
    Case(
        operation_id="op-233",
        dialect=RENDER,
        job_id="vid_233w",
        label="trailer, German",
        about="answers about another job",
        life=each(_QUEUED, Reply(state="succeeded", job_id="vid_999x", fields={"result": True})),
        expect=broken(StopDetail.WRONG_JOB),
    ),
    Case(
        operation_id="op-234",
        dialect=EXPORT,
        job_id="exp_234g",
        label="inventory, warehouses",
        about="a login page with status 200",
        life=each(_PENDING, Reply(raw="<!doctype html><title>Sign in</title>", media="text/html")),
        expect=broken(StopDetail.UNREADABLE),
    ),
    Case(
        operation_id="op-235",
        dialect=BATCH,
        job_id="bat_235j",
        label="classification, tickets",
        about="half a JSON document",
        life=each(_VALIDATING, Reply(raw='{"id": "bat_235j", "state": "in_pro')),
        expect=broken(StopDetail.UNREADABLE),
    ),
    Case(
        operation_id="op-236",
        dialect=BATCH,
        job_id="bat_236m",
        label="classification, mails",
        about="an answer without a state",
        life=each(_VALIDATING, Reply()),
        expect=broken(StopDetail.STATE_MISSING),
    ),
    Case(
        operation_id="op-237",
        dialect=RENDER,
        job_id="vid_237l",
        label="archive, reel 12",
        about="more bytes than anybody asked for",
        life=each(_RUNNING, Reply(state="running", fields={"log": "x" * (MAX_BODY + 4_096)})),
        expect=broken(StopDetail.RESPONSE_TOO_LARGE),
    ),
    Case(
        operation_id="op-238",
        dialect=RENDER,
        job_id="vid_238n",
        label="archive, reel 13",
        about="status 204, which the contract gives no meaning",
        life=each(_RUNNING, Reply(status=204)),
        expect=broken(StopDetail.UNEXPECTED_STATUS),
    ),
    Case(
        operation_id="op-239",
        dialect=RENDER,
        job_id="vid_239x",
        label="archive, reel 14",
        about="points to another host: the token does not go there",
        life=each(_RUNNING, Reply(status=302, headers={"Location": "http://elsewhere.invalid/jobs/239"})),
        expect=broken(StopDetail.FOREIGN_ORIGIN),
    ),
    Case(
        operation_id="op-240",
        dialect=RENDER,
        job_id="vid_240z",
        label="archive, reel 15",
        about="no HTTP at all",
        life=each(_RUNNING, Reply(not_http=True)),
        expect=broken(StopDetail.PROTOCOL_VIOLATION),
        account="studio-9",
    ),
    Case(
        operation_id="op-241",
        dialect=RENDER,
        job_id="vid_241s",
        label="keynote, stills",
        about="404 at first: the job is not visible yet",
        life=each(Reply(status=404), _QUEUED, _RUNNING, done(RENDER)),
        expect=SUCCEEDED,
    ),
    Case(
        operation_id="op-242",
        dialect=RENDER,
        job_id="vid_242k",
        label="keynote, slides",
        about="404 for ever: the job was never seen",
        life=each(Reply(status=404)),
        expect=broken(StopDetail.NOT_FOUND),
    ),
    Case(
        operation_id="op-243",
        dialect=RENDER,
        job_id="vid_243o",
        label="keynote, rehearsal",
        about="410: the provider has forgotten the job",
        life=each(_QUEUED, _RUNNING, Reply(status=410)),
        expect=Expect(Status.EXPIRED, StopReason.JOB_EXPIRED),
    ),
)

TEXTS: Final = (
    Case(
        operation_id="op-251",
        dialect=RENDER,
        job_id="vid_251h",
        label="upload of a guest",
        about="a state that would drive a terminal",
        life=each(_RUNNING, Reply(state=HOSTILE_STATE)),
        expect=_UNKNOWN,
    ),
    Case(
        operation_id="op-252",
        dialect=RENDER,
        job_id="vid_252m",
        label="upload of a guest, 2",
        about="a message that would drive a terminal",
        life=each(_RUNNING, Reply(state="paused", fields={"message": HOSTILE})),
        expect=_HUMAN,
    ),
    Case(
        operation_id="op-253",
        dialect=BATCH,
        job_id="bat_253f",
        label="upload of a guest, 3",
        about="an error that would drive a terminal",
        life=each(_BUSY, Reply(state="failed", fields=error("bad_row", HOSTILE))),
        expect=Expect(Status.FAILED, StopReason.JOB_FAILED),
    ),
    Case(
        operation_id="op-254",
        dialect=RENDER,
        job_id="vid_254t",
        label=f"cut 7 {HOSTILE}",
        about="a label that would drive a terminal",
        life=RENDER.course(30, 3_000),
        expect=WAITING,
    ),
    Case(
        operation_id="op-255",
        dialect=RENDER,
        job_id="vid_255v",
        label="upload of a guest, 5",
        about="a state of a thousand characters",
        life=each(_RUNNING, Reply(state=LONG_STATE)),
        expect=_UNKNOWN,
    ),
)

CASES: Final = (*STATES, *BODIES, *TEXTS)
