"""The simulated provider: jobs that live on virtual time, and every way in which an answer can go wrong.

Job: answer by the script that the seed gives to each job. Must not know: stores, workers, rules of waiting; each reply
says what it asks for (`wait_ms`), so that others can tell whether it was obeyed.
"""

from __future__ import annotations

import json
import random
from email.utils import formatdate
from typing import Any, Final
from urllib.parse import unquote

import msgspec

FINAL: Final = {"succeeded", "failed", "cancelled", "expired"}
MOODS: Final[dict[str, dict[str, int]]] = {
    "well": {"state": 95, "unavailable": 2, "limited": 1, "reset": 1, "slow": 1},
    "flaky": {"state": 50, "unavailable": 12, "unavailable_guided": 8, "reset": 8, "refused": 8, "slow": 6, "lost": 8},
    "limited": {"state": 50, "limited": 15, "limited_guided": 25, "limited_date": 10},
    "hostile": {"state": 55, "garbage": 5, "unknown": 6, "paused": 4, "missing": 4, "gone": 2, "denied": 3,
                "forbidden": 2, "empty_success": 3, "odd_status": 3, "wrong_job": 2, "contradiction": 2, "UNKNOWN": 9},
    "guiding": {"state": 30, "hint": 35, "bad_guidance": 10, "unavailable_guided": 15, "limited_date": 10},
}  # fmt: skip
MAX_LATENCY_MS: Final = 40_000
REFUSES_SEVERAL: Final = 0.12
"""How often a request for several jobs is refused as a whole."""
GUIDANCE_S: Final = (0, 1, 2, 5, 10, 20, 20, 45, 90, 600)


class Reply(msgspec.Struct):
    """What one request meets: after *reach_ms* it arrives (None: it never does), after *answer_ms* more the answer."""

    reach_ms: int | None
    answer_ms: int = 0
    fault: str | None = None
    """The fault that the client sees in place of an answer; `lost`: none comes at all."""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    wait_ms: int | None = None
    """Valid Retry-After of this answer, in ms from its arrival."""
    final: str | None = None
    label: str = ""
    finals: dict[str, str | None] = {}
    """R39: of an answer about several jobs, the end that it tells of each."""
    about_none: bool = False
    """R39: of a request for several jobs, an answer about none of them."""


class Job:
    """One job: what becomes of it, when, and how its status answers misbehave."""

    def __init__(self, job_id: str, chance: random.Random, begin: int) -> None:
        self.job_id = job_id
        self.chance = chance
        self.mood = chance.choice(sorted(MOODS))
        never = chance.random() < 0.25
        self.ends_at = 1 << 60 if never else begin + chance.choice((3_000, 20_000, 60_000, 120_000, 200_000, 400_000))
        self.end = chance.choices(sorted(FINAL), (1, 1, 1, 6))[0]
        self.queued_until = begin + chance.randrange(0, 20_000)

    def state(self, now: int) -> str:
        if now >= self.ends_at:
            return self.end
        return "queued" if now < self.queued_until else "running"


class Provider:
    """All origins. *wall*: the provider's own clock, in ms; it is never set by anyone."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.jobs: dict[str, Job] = {}
        self.calm = False
        self.down_until: dict[str, int] = {}
        """Per origin, in virtual ms."""
        self.revoked: set[str] = set()
        self.made: dict[str, str] = {}
        """Idempotency key -> job of a submission."""
        self.skew_ms = random.Random(f"{seed}-skew").choice((0, 0, 0, 1_000, -1_500, 3_600_000, -3_600_000))

    def job(self, job_id: str, now: int) -> Job:
        found = self.jobs.get(job_id)
        if found is None:
            found = self.jobs[job_id] = Job(job_id, random.Random(f"{self._seed}-{job_id}"), now)
        return found

    # --- what a request meets -----------------------------------------------------------------------------------------

    def reply(self, method: str, url: str, headers: Any, secret: str | None, now: int, wall: int) -> Reply:
        """Decide everything at the moment of sending; called once a request."""
        origin, _, path = url.partition("/v1/")
        parts = path.split("/")
        if method == "POST" and len(parts) == 1:
            return self._submitted(headers, now, wall)
        if path.startswith("many"):
            return self._many(origin, path, secret, now, wall)
        job = self.job(parts[1], now)
        chance = job.chance
        if not self.calm and self.down_until.get(origin, 0) > now:
            kind = chance.choice(("connection_refused", "connect_timeout", "reset"))
            return Reply(chance.randrange(5, 200) if kind == "reset" else None, 300, fault=kind, label="down")
        if secret is not None and secret in self.revoked:
            return self._answer(job, 401, {"error": "key"}, wall, label="denied")
        if method == "POST":
            return self._cancel(job, now, wall)
        return self._status(job, now, wall)

    def _many(self, origin: str, path: str, secret: str | None, now: int, wall: int) -> Reply:
        """R39: an entry for each job that is asked for, or, by the first job's mood, one answer about none of them."""
        named = path.partition("?ids=")[2]
        ids = unquote(named).split(",") if named else [path.rpartition("/")[2]]
        found = [self.reply("GET", f"{origin}/v1/jobs/{one}", (), secret, now, wall) for one in ids]
        first = found[0]
        chance = self.job(ids[0], now).chance
        if len(ids) > 1 and first.fault is None and not self.calm and chance.random() < REFUSES_SEVERAL:
            status = chance.choice((400, 404, 413, 422, 200))
            refused = self._answer(self.job(ids[0], now), status, {"error": "one of these is no id"}, wall)
            return msgspec.structs.replace(refused, about_none=True, finals=dict.fromkeys(ids))
        told = [one for one in found if one.fault is None and one.status == 200 and one.body.startswith(b'{"id"')]
        if told and told[0] is first:
            # an entry that another job's mood made unreadable is left out: its job is not found
            body = b'{"jobs":[' + b",".join(one.body for one in told) + b"]}"
            finals = {one: reply.final for one, reply in zip(ids, found, strict=True) if reply in told}
            latest = max(one.answer_ms for one in told)
            finals = {one: finals.get(one) for one in ids}
            return msgspec.structs.replace(first, body=body, finals=finals, answer_ms=latest)
        whole = first.status in (401, 403, 408, 425, 429) or first.status >= 500 or first.fault is not None
        finals = dict.fromkeys(ids) if len(ids) > 1 else {}
        return msgspec.structs.replace(first, about_none=len(ids) > 1 and not whole, finals=finals)

    def _status(self, job: Job, now: int, wall: int) -> Reply:
        chance = job.chance
        kinds = MOODS[job.mood]
        kind = "state" if self.calm else chance.choices(list(kinds), list(kinds.values()))[0]
        state = job.state(now)
        body: dict[str, Any] = {"id": job.job_id, "status": state}
        if state == "succeeded":
            body["result"] = {"url": f"https://files.example/{job.job_id}?signed=1"}
        if state == "failed":
            body["error"] = {"code": "E1", "message": "it broke"}
        match kind:
            case "state":
                return self._answer(job, 200, body, wall, final=state if state in FINAL else None)
            case "hint":
                return self._answer(job, 200, {**body, "poll_after_seconds": chance.choice(GUIDANCE_S)}, wall,
                                    final=state if state in FINAL else None)  # fmt: skip
            case "bad_guidance":
                text = chance.choice(("-5", "soon", "1e9", "99999999999999", "+5", "Mon, 01 Jan 1990 00:00:00 GMT"))
                return self._answer(job, 503, {}, wall, more=(("retry-after", text),), label=kind)
            case "unavailable":
                return self._answer(job, chance.choice((500, 502, 503, 408, 425)), {"error": "x"}, wall, label=kind)
            case "limited":
                return self._answer(job, 429, {}, wall, label=kind)
            case "unavailable_guided" | "limited_guided":
                code = 503 if kind.startswith("un") else 429
                seconds = chance.choice(GUIDANCE_S)
                more = (("retry-after", str(seconds)),)
                return self._answer(job, code, {}, wall, more=more, wait_ms=seconds * 1000, label=f"{kind} {seconds}")
            case "limited_date":
                seconds = chance.choice(GUIDANCE_S[2:])
                return self._dated(job, wall, seconds)
            case "unknown":
                return self._answer(job, 200, {**body, "status": chance.choice(("mystery", "Running", 7, True))}, wall)
            case "UNKNOWN":
                return self._answer(job, 200, {"id": job.job_id, "status": "UNKNOWN"}, wall)
            case "paused":
                return self._answer(job, 200, {**body, "status": "paused"}, wall, label=kind)
            case "contradiction":
                return self._answer(
                    job, 200, {**body, "status": chance.choice(("failed", "cancelled"))}, wall, label=kind
                )
            case "wrong_job":
                return self._answer(job, 200, {**body, "id": "another"}, wall, label=kind)
            case "empty_success":
                return self._answer(job, 200, {"id": job.job_id, "status": "succeeded"}, wall, label=kind)
            case "missing":
                return self._answer(job, 404, {"error": "none"}, wall, label=kind)
            case "gone":
                return self._answer(job, 410, {"error": "gone"}, wall, label=kind)
            case "denied":
                return self._answer(job, 401, {}, wall, label=kind)
            case "forbidden":
                return self._answer(job, 403, {}, wall, label=kind)
            case "odd_status":
                return self._answer(job, chance.choice((204, 304, 400, 409, 302)), None, wall, label=kind)
            case "garbage":
                raw = chance.choice(
                    (b"", b"<html>", b'{"status":', b"[]", b'{"status":"running","status":"succeeded"}')
                )
                return Reply(self._latency(chance), 20, status=200, body=raw, label=kind)
            case "slow":
                made = self._answer(job, 200, body, wall, final=state if state in FINAL else None, label=kind)
                made.answer_ms = chance.randrange(3_000, MAX_LATENCY_MS)
                return made
            case "lost":
                return Reply(chance.randrange(5, 300), fault="lost", label=kind)
            case _:
                fault = "connection_refused" if kind == "refused" else "reset"
                reach = None if kind == "refused" else chance.choice((None, 30))
                return Reply(reach, 100, fault=fault, label=kind)

    def _dated(self, job: Job, wall: int, seconds: int) -> Reply:
        date = (wall + self.skew_ms) // 1000 * 1000
        more = (("retry-after", _http_date(date + seconds * 1000)),)
        # measured against the same answer's Date, this asks for exactly so much
        return self._answer(job, 429, {}, wall, more=more, wait_ms=seconds * 1000, label=f"limited_date {seconds}")

    def _cancel(self, job: Job, now: int, wall: int) -> Reply:
        if job.chance.random() < 0.2 and not self.calm:
            return Reply(30, fault="lost", label="cancel lost")
        if now < job.ends_at:
            job.ends_at, job.end = now + job.chance.randrange(1_000, 60_000), "cancelled"
        return self._answer(job, 202, {"id": job.job_id, "status": "cancelling"}, wall, label="cancel")

    def _submitted(self, headers: Any, now: int, wall: int) -> Reply:
        key = {k.lower(): v for k, v in headers}.get("idempotency-key", "none")
        job_id = self.made.setdefault(key, f"again-{len(self.made)}")
        return self._answer(self.job(job_id, now), 201, {"id": job_id}, wall, label="submission")

    @staticmethod
    def _latency(chance: random.Random) -> int:
        return chance.choice((5, 20, 80, 200, 900))

    def _answer(
        self,
        job: Job,
        status: int,
        body: dict[str, Any] | None,
        wall: int,
        *,
        more: tuple[tuple[str, str], ...] = (),
        wait_ms: int | None = None,
        final: str | None = None,
        label: str = "",
    ) -> Reply:
        chance = job.chance
        headers = [("content-type", "application/json")]
        if chance.random() < 0.7 or more:
            headers.append(("date", _http_date(wall + self.skew_ms)))
        return Reply(
            self._latency(chance),
            chance.choice((5, 40, 300, 1_500)),
            status=status,
            headers=(*headers, *more),
            body=b"" if body is None else json.dumps(body).encode(),
            wait_ms=wait_ms,
            final=final,
            label=label or str((body or {}).get("status", "")),
        )


def _http_date(wall: int) -> str:
    return formatdate(wall // 1000, usegmt=True)
