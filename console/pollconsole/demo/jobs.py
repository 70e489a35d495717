"""The provider's memory: its jobs, who may ask for them, when a whole origin is out of order.

Job: (provider, job, token, now) -> the reply that this request gets, and the counts of what was asked. Must not know:
sockets, bytes, our operations.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pollconsole.demo.dialects import DIALECTS
from pollconsole.demo.lives import Life, Reply
from pollcore.facts import Instant, iso

MAX_JOBS: Final = 10_000
OUT_OF_ORDER: Final = Reply(status=503, raw="<html><title>503</title>back soon</html>", media="text/html")
UNKNOWN_JOB: Final = Reply(status=404, fields={"error": {"code": "no_such_job", "message": "no such job"}})
REFUSED: Final = Reply(status=401, fields={"error": {"code": "invalid_token", "message": "the token was rotated"}})


class Outage(msgspec.Struct, frozen=True):
    """A provider answers nothing but 503 between these seconds of demo time."""

    provider: str
    begins_s: float
    ends_s: float


class Token(msgspec.Struct, frozen=True):
    """Who may ask *provider*; *until_s*: when it is rotated away (demo time)."""

    provider: str
    digest: str
    """SHA-256 of the token: the provider keeps no secret either."""
    until_s: float | None = None


class Job(msgspec.Struct, kw_only=True):
    """One job and how far its life has come. Changed under the provider's lock alone."""

    provider: str
    job_id: str
    life: Life
    born: Instant
    stage: int = 0
    asked_in_stage: int = 0
    stage_began_s: float = 0.0
    asked: int = 0
    """Status requests that reached the provider."""
    cancels: int = 0
    keeps_going: bool = False
    """A cancel is taken, and comes too late."""

    def reply(self, now: Instant) -> tuple[Reply, int | None]:
        """The reply to one more status request, and the progress in per cent if the stage has an end."""
        age_s = (now - self.born) / 1_000
        while self.stage < len(self.life) - 1 and self._over(self.life[self.stage], age_s):
            until = self.life[self.stage].until_s
            self.stage_began_s = age_s if until is None else until
            self.stage += 1
            self.asked_in_stage = 0
        stage = self.life[self.stage]
        self.asked += 1
        self.asked_in_stage += 1
        if stage.until_s is None or self.stage == 0:
            return stage.reply, None
        span = max(1.0, stage.until_s - self.stage_began_s)
        return stage.reply, min(99, int(100 * (age_s - self.stage_began_s) / span))

    def _over(self, stage: Any, age_s: float) -> bool:
        if stage.asks is not None:
            return bool(self.asked_in_stage >= stage.asks)
        return stage.until_s is not None and bool(age_s >= stage.until_s)


class Jobs:
    """All jobs of all providers. For all threads."""

    def __init__(self, begin: Instant, tokens: tuple[Token, ...], outages: tuple[Outage, ...]) -> None:
        self._begin = begin
        self._tokens = tokens
        self._outages = outages
        self._jobs: dict[tuple[str, str], Job] = {}
        self._by_key: dict[tuple[str, str], Job] = {}
        self._lock = threading.Lock()
        self.strangers = 0
        """Requests for jobs that do not exist."""

    def add(self, job: Job) -> None:
        """Begin a job's life. Beyond MAX_JOBS nothing is added: the provider answers 404."""
        with self._lock:
            if len(self._jobs) < MAX_JOBS:
                self._jobs[job.provider, job.job_id] = job

    def asked(self) -> Mapping[tuple[str, str], int]:
        """{(provider, job id): status requests that arrived}."""
        with self._lock:
            return {key: job.asked for key, job in self._jobs.items()}

    def cancels(self, provider: str, job_id: str) -> int:
        """Cancels that arrived for this job."""
        with self._lock:
            return self._jobs[provider, job_id].cancels

    def status(self, provider: str, job_id: str, token: str | None, now: Instant) -> tuple[Reply, int | None, int]:
        """One status request: (reply, progress, how many there were)."""
        with self._lock:
            job = self._jobs.get((provider, job_id))
            if job is None:
                self.strangers += 1
                return UNKNOWN_JOB, None, self.strangers
            if (wrong := self._in_the_way(provider, token, now)) is not None:
                job.asked += 1
                return wrong, None, job.asked
            reply, progress = job.reply(now)
            return reply, progress, job.asked

    def cancel(self, provider: str, job_id: str, token: str | None, now: Instant) -> Reply:
        """One cancel: taken, and not yet done."""
        with self._lock:
            job = self._jobs.get((provider, job_id))
            if (wrong := self._in_the_way(provider, token, now)) is not None:
                return wrong
            if job is None:
                return UNKNOWN_JOB
            job.cancels += 1
            dialect = DIALECTS[provider]
            if not job.keeps_going and job.cancels == 1:
                job.life, job.stage, job.asked_in_stage = dialect.cancelled_course(), 0, 0
            return Reply(state=dialect.cancelling, status=202)

    def submit(self, provider: str, key: str | None, token: str | None, now: Instant) -> tuple[Reply, str]:
        """One submission: (reply, job id). The same idempotency key gets the same job."""
        with self._lock:
            if (wrong := self._in_the_way(provider, token, now)) is not None:
                return wrong, ""
            job = self._by_key.get((provider, key)) if key is not None else None
            if job is None:
                dialect = DIALECTS[provider]
                job_id = f"again_{len(self._jobs):04x}"
                job = Job(provider=provider, job_id=job_id, life=dialect.course(20, 240), born=now)
                if len(self._jobs) < MAX_JOBS:
                    self._jobs[provider, job_id] = job
                if key is not None:
                    self._by_key[provider, key] = job
            return Reply(state=DIALECTS[provider].queued, status=201), job.job_id

    def _in_the_way(self, provider: str, token: str | None, now: Instant) -> Reply | None:
        """The reply to whoever asks while the origin is out of order, or without a token that counts."""
        at_s = (now - self._begin) / 1_000
        if any(o.provider == provider and o.begins_s <= at_s < o.ends_s for o in self._outages):
            return OUT_OF_ORDER
        for known in self._tokens:
            if known.provider == provider and known.digest == token and (known.until_s is None or at_s < known.until_s):
                return None
        return REFUSED


def body_of(provider: str, job_id: str, reply: Reply, progress: int | None, base: str, now: Instant) -> dict[str, Any]:
    """The JSON of *reply* as *provider* writes it."""
    fields: dict[str, Any] = dict(reply.fields)
    if fields.get("result") is True:
        fields["result"] = f"{base}/results/{job_id}?expires=3600&signature=demo-{job_id}"
    if progress is not None:
        fields["progress"] = progress
    for name, seconds in reply.ahead.items():
        fields[name] = iso(Instant(now + seconds * 1_000))
    return DIALECTS[provider].body(reply.job_id or job_id, reply.state, fields)
