"""The calls of a program over one open store: submit, get, wait, watch.

Job: arguments checked, the store asked, changes followed until the wait is over. Must not know: how a status request is
sent; nothing here sends one. It grants nothing, takes no worker's lock, and returns observations and outcomes, never a
credential.
Source: spec S3, G5, K6, O4, O8.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from pollcore.assembly import Core, open_core
from pollcore.client import given
from pollcore.client.feed import Feed
from pollcore.client.shown import OperationView, Outcome, outcome, shown
from pollcore.facts import SECOND, NotFound, Operation, Refused
from pollcore.waiting import LOOK_S, wait_end

WATCH_S: Final = 15.0
"""How long one piece of a watch waits for a change; it ends only by its operation's end, or by its reader."""
NEAR_FROM: Final = 1_000
"""Operations looked at for names near to an unknown one."""


class Client:
    """One open store: `async with Client() as client`. For many calls in a row; `shared` opens one itself.

    Args:
        home: the folder; None: POLLCONSOLE_HOME, else the platform's. A home that does not exist is made.
    """

    def __init__(self, home: str | Path | None = None) -> None:
        self._core: Core = open_core(None if home is None else Path(home), kind="cli")
        self._feed: Feed | None = None

    async def __aenter__(self) -> Client:
        """Raises StoreUnusable, Refused (the settings)."""
        await self._core.__aenter__()
        self._feed = Feed(self._core.store, self._core.clock, self._core.is_gone)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed = None
        await self._core.__aexit__(kind, error, trace)

    async def submit(
        self,
        provider: str,
        job_id: str,
        *,
        operation_id: str | None = None,
        params: Mapping[str, Any] | None = None,
        status_url: str | None = None,
        deadline: timedelta | datetime | float | None = None,
        max_requests: int | None = None,
        max_transport_failures: int | None = None,
        max_rate_limited: int | None = None,
        useful_until: datetime | None = None,
        started_at: datetime | None = None,
        account: str | None = None,
        label: str | None = None,
        caller: str | None = None,
    ) -> OperationView:
        """Hand a wait over. Nothing is sent by this call; limits that are left out come from the contract.

        Args:
            job_id: the provider's id of the job.
            operation_id: an id of your own; given again with the same job it returns that operation (`existed`).
            deadline: a span from the job's start (a timedelta, or seconds), or an aware datetime.
            useful_until: after this the result is of no use.
            started_at: when the job was submitted; None: now.
            caller: the name you give yourself, for the audit.

        Raises:
            Refused: what is wrong, with the limit's name and the way out; *code* `duplicate_job`, `limit`, ...
            NotFound, ContractError: no such provider; its contract cannot be used.
            StoreUnusable: the store cannot commit; nothing was handed over.
        """
        from pollcore.actions import SubmitSpec

        at = given.instant("deadline", deadline) if isinstance(deadline, datetime) else None
        name = given.text("provider", provider)
        if name is None or given.text("job_id", job_id) is None:
            raise given.refuse("provider, job_id", "both are needed")
        spec = SubmitSpec(
            provider=name,
            job_id=job_id,
            params=given.params(params),
            status_url=given.text("status_url", status_url, given.MAX_URL),
            deadline_at=at,
            deadline_ms=None if isinstance(deadline, datetime) else given.span_ms("deadline", deadline),
            max_status_requests=given.count("max_requests", max_requests),
            max_transport_failures=given.count("max_transport_failures", max_transport_failures),
            max_rate_limited=given.count("max_rate_limited", max_rate_limited),
            useful_until=given.instant("useful_until", useful_until),
            started_at=given.instant("started_at", started_at),
            operation_id=given.text("operation_id", operation_id),
            account=given.text("account", account),
            label=given.text("label", label),
            caller=given.text("caller", caller),
        )
        made = await self._core.actions.submit(spec)
        notices, self._core.notices = self._core.notices, []
        silent = await self._following.silence()
        return shown(made.operation, silent, existed=made.existed, warnings=(*made.warnings, *notices))

    async def get(self, op: OperationView | str) -> OperationView:
        """The operation as it stands. Raises NotFound, StoreUnusable."""
        return shown(await self._find(_id(op)), await self._following.silence())

    async def wait(self, op: OperationView | str, timeout: timedelta | float | None = None) -> Outcome:
        """Until the operation has ended or wants a decision; the provider is not asked anything.

        Args:
            timeout: a timedelta or seconds; 0: look once; None: as long as it takes (a deadline bounds every wait).

        Without a core it ends as `no_core`: after 10 s, or at a shorter *timeout*. Raises NotFound, Refused,
        StoreUnusable.
        """
        limit = given.span_ms("timeout", timeout, zero=True)
        feed, clock = self._following, self._core.clock
        followed = await feed.follow(_id(op))
        try:
            started, operation = clock.now(), await self._find(_id(op))
            while True:
                silent = await feed.silence()
                waited = max(0, clock.now().boot - started.boot)
                ended = wait_end(operation.status, silent, waited_ms=waited, timeout_ms=limit)
                if ended is not None:
                    return outcome(ended, operation, silent)
                pause = LOOK_S if limit is None else min(LOOK_S, max(0.001, (limit - waited) / SECOND))
                for written in await followed.next(pause):
                    operation = written
        finally:
            feed.leave(followed)

    async def watch(self, op: OperationView | str | None = None) -> AsyncIterator[OperationView]:
        """Changes, as they are written: of one operation, as it stands first, up to its end; or of all, without end.

        Of writes that follow each other faster than they are taken, the newest is given. Raises as `wait`.
        """
        feed = self._following
        followed = await feed.follow(*(() if op is None else (_id(op),)))
        try:
            if op is not None:
                now = await self.get(op)
                yield now
                if now.is_end:
                    return
            while True:
                for written in await followed.next(WATCH_S):
                    view = shown(written, await feed.silence())
                    yield view
                    if op is not None and view.is_end:
                        return
        finally:
            feed.leave(followed)

    @property
    def _following(self) -> Feed:
        if self._feed is None:
            raise Refused("the client is not open: use 'async with Client() as client'", code="usage")
        return self._feed

    async def _find(self, operation_id: str) -> Operation:
        found = await self._core.store.operation(operation_id)
        if found is not None:
            return found
        from difflib import get_close_matches

        from pollcore.ports import Filter

        known = [one.operation_id for one in await self._core.store.operations(Filter(limit=NEAR_FROM))]
        near = get_close_matches(operation_id, known, n=3)
        raise NotFound(f"no operation {operation_id!r}" + (f"; did you mean {', '.join(near)}?" if near else ""))


def _id(op: OperationView | str) -> str:
    name = given.text("op", op.operation_id if isinstance(op, OperationView) else op)
    if name is None:
        raise given.refuse("op", "must be an operation or its id")
    return name
