"""Four providers' ways of saying the same: where state, progress, errors and results stand in an answer.

Job: a reply -> the JSON of one provider; the words that each has for a job's course. Must not know: HTTP, when anything
is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from pollconsole.demo.lives import Life, Reply, after_cancel, timed

Body = dict[str, Any]


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One provider's words. *body*: (job id, state, other fields) -> the answer."""

    provider: str
    contract: str
    queued: str
    running: str
    done: str
    cancelling: str
    cancelled: str
    body: Callable[[str, str | None, Mapping[str, Any]], Body]

    def course(self, queued_s: float, run_s: float, end: Reply | None = None) -> Life:
        """An ordinary job: waits, runs, ends (with its result, if nothing else is said)."""
        last = Reply(state=self.done, fields={"result": True}) if end is None else end
        return timed((self.queued, queued_s), (self.running, queued_s + run_s), end=last)

    def cancelled_course(self) -> Life:
        """What follows a cancel that was taken."""
        return after_cancel(self.cancelling, self.cancelled)


def _render(job_id: str, state: str | None, more: Mapping[str, Any]) -> Body:
    body: Body = {"id": job_id, **({} if state is None else {"status": state}), **more}
    if "result" in more:
        body["result"] = {"url": more["result"]}
    return body


def _export(job_id: str, state: str | None, more: Mapping[str, Any]) -> Body:
    export: Body = {"id": job_id, **({} if state is None else {"phase": state})}
    if "progress" in more:
        export |= {"rows_done": more["progress"] * 1_200, "rows_total": 120_000}
    body: Body = {"export": export}
    if "result" in more:
        body["download"] = {"url": more["result"], "format": "parquet"}
    if "error" in more:
        body["failure"] = {"code": more["error"]["code"], "text": more["error"]["message"]}
    return body


def _batch(job_id: str, state: str | None, more: Mapping[str, Any]) -> Body:
    body: Body = {"object": "batch", "id": job_id, **({} if state is None else {"state": state})}
    if "progress" in more:
        body["counts"] = {"done": more["progress"] * 50, "total": 5_000}
    if "result" in more:
        body["output"] = {"url": more["result"]}
    if "error" in more:
        body["error"] = more["error"]
    return body


RENDER: Final = Dialect(
    provider="render-farm",
    contract="example-jobs",
    queued="queued",
    running="running",
    done="succeeded",
    cancelling="cancelling",
    cancelled="cancelled",
    body=_render,
)
EXPORT: Final = Dialect(
    provider="export-api",
    contract="demo-export",
    queued="PENDING",
    running="IN_PROGRESS",
    done="DONE",
    cancelling="ABORTING",
    cancelled="ABORTED",
    body=_export,
)
BATCH: Final = Dialect(
    provider="batch-llm",
    contract="demo-batch",
    queued="validating",
    running="in_progress",
    done="completed",
    cancelling="cancelling",
    cancelled="cancelled",
    body=_batch,
)
MAPS: Final = msgspec.structs.replace(RENDER, provider="map-tiles", contract="demo-maps")
"""Speaks as the render farm does; its contract is one that nobody tried."""
DIALECTS: Final = {dialect.provider: dialect for dialect in (RENDER, EXPORT, BATCH, MAPS)}
