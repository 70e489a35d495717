"""The six tools: checked arguments -> one call to the core -> one document.

Job: what each tool does. Must not know: the protocol's library. None of them grants, cancels, resubmits, fetches, reads
a credential or sends anything to a provider (G5, K6, S3): the core of a console or of `pollconsole run` polls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pollconsole import bridge
from pollconsole.bridge import waiting
from pollconsole.cli import handover
from pollconsole.cli.submit import not_started, specification
from pollconsole.mcp_server.arguments import DEFAULT_LISTED, DEFAULT_WAIT_S
from pollcore.facts import SECOND, ContractError, Operation, Refused, Status

Progress = Callable[[float, float, str], Awaitable[None]]
"""Tells the client: seconds waited, seconds at most, a sentence of ours."""
MAX_WAITS: Final = 100
"""Waits of one server at once."""
PROGRESS_S: Final = 5.0
"""Seconds between two notices of a wait where nothing changes."""
MAX_STORY_LINES: Final = 200
LAST_LINES: Final = 10
"""Of the story, in an explanation."""
CALLER: Final = "mcp"
"""Who asked, where the agent gave no name."""

ABOUT: Final[Mapping[str, str]] = {
    "submit_operation": (
        "Hand the wait for a provider's long job over, instead of asking the provider in a loop. Sends nothing; limits "
        "that are left out come from the contract, limits above it are refused."
    ),
    "get_operation": "One operation as it stands: status, limits used, stop reason, open question, result pointer.",
    "list_operations": "Operations, the last changed first.",
    "wait_for_operation": (
        "Block until an operation ended or wants a decision, or until timeout_s. Asks the provider nothing. Read "
        "`ended` and `next`."
    ),
    "request_extension": (
        "Ask an operator for more time and status requests, in one of the contract's sizes. Only a question comes of "
        "it."
    ),
    "explain_state": "What an operation's status and last state mean, why it waits or stopped, and its last events.",
}
READ_ONLY: Final = frozenset({"get_operation", "list_operations", "wait_for_operation", "explain_state"})

STATUS_MEANS: Final[Mapping[Status, str]] = {
    Status.WAITING: "the wait goes on; the core asks the provider at the planned time",
    Status.HELD: "nothing is sent until the hold ends; the deadline runs",
    Status.AWAITING_APPROVAL: "a request waits for an operator's approval; nothing is sent, the deadline runs",
    Status.ESCALATED: "the wait stopped, the job's fate is not known, an operator is asked",
    Status.SUCCEEDED: "the job succeeded and its result is there",
    Status.FAILED: "the provider said that the job failed",
    Status.CANCELLED: "the provider said that the job was cancelled",
    Status.EXPIRED: "the provider said that the job or its record is gone",
    Status.CLOSED: "nobody watches this job any more; that says nothing about the job",
}


class Tools:
    """The tools over one open core."""

    def __init__(self, core: bridge.Core) -> None:
        self._core = core
        self._feed = waiting.feed(core)
        self._waits = 0

    async def call(self, name: str, given: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """The answer of tool *name* to checked arguments. Raises what the core raises."""
        match name:
            case "submit_operation":
                return await self.submit(given)
            case "get_operation":
                return await self._document(given["operation_id"])
            case "list_operations":
                return await self.listing(given)
            case "wait_for_operation":
                return await self.wait(given["operation_id"], given.get("timeout_s", DEFAULT_WAIT_S), progress)
            case "request_extension":
                return await self.request_extension(given)
            case _:
                return await self.explain(given["operation_id"], given.get("state"))

    async def submit(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """As `pollconsole submit`."""
        handed = handover.Handover(**{"caller": CALLER, **given})
        try:
            handover.check(handed)
        except ValueError as error:
            raise Refused(f"submit_operation: {error}", code="usage") from None
        made = await self._core.actions.submit(bridge.submit_spec(**specification(handed)))
        view = await self._document(made.operation.operation_id)
        view["existed"] = made.existed
        view["warnings"] = [*made.warnings, *not_started(view)]
        return view

    async def listing(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """As `pollconsole list`, each with its `next`."""
        status = given.get("status")
        found = await bridge.operations(
            self._core,
            statuses=() if status is None else (Status(status),),
            provider=given.get("provider"),
            limit=given.get("limit", DEFAULT_LISTED),
        )
        silent = await self._feed.silence()
        views = [bridge.row(operation) | {"next": waiting.next_step(operation, silent)} for operation in found]
        return {
            "operations": views,
            "next": "Read the `next` of the operation that you started; it says what you may do.",
        }

    async def wait(self, operation_id: str, timeout_s: int, progress: Progress) -> dict[str, Any]:
        """As `pollconsole wait`; `ended` says why it ended, `exit_code` what the command would end with."""
        if self._waits >= MAX_WAITS:
            raise Refused(f"{MAX_WAITS} waits go on in this server already; wait for one of them", code="limit")
        self._waits += 1
        followed = await self._feed.follow(operation_id)
        try:
            end = await self._until_end(operation_id, timeout_s, followed, progress)
        finally:
            self._feed.leave(followed)
            self._waits -= 1
        view = await self._document(operation_id)
        return view | {"ended": end.value, "exit_code": waiting.CODES[end]}

    async def _until_end(self, operation_id: str, timeout_s: int, followed: Any, progress: Progress) -> waiting.WaitEnd:
        clock, told = self._core.clock, -PROGRESS_S
        operation, started = await bridge.find(self._core, operation_id), clock.now().boot
        while True:
            waited_ms = max(0, clock.now().boot - started)
            silent = await self._feed.silence()
            end = waiting.wait_end(operation.status, silent, waited_ms=waited_ms, timeout_ms=timeout_s * SECOND)
            if end is not None:
                return end
            if waited_ms / SECOND - told >= PROGRESS_S:
                told = waited_ms / SECOND
                await progress(told, float(timeout_s), _line(operation))
            left = (timeout_s * SECOND - waited_ms) / SECOND
            for written in await followed.next(min(waiting.LOOK_S, max(0.001, left))):
                operation, told = written, -PROGRESS_S

    async def request_extension(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """As `pollconsole request-extension`."""
        name = given["operation_id"]
        await bridge.find(self._core, name)
        by = bridge.operator_name(self._core, given.get("caller", CALLER))
        await self._core.actions.request_extension(name, given["minutes"], given["checks"], given["because"], by)
        view = await self._document(name)
        return view | {"asked": "an operator decides in the console; the wait goes on inside its limits meanwhile"}

    async def explain(self, operation_id: str, state: str | None) -> dict[str, Any]:
        """What the record says, in words: nothing is asked and nothing is guessed."""
        operation = await bridge.find(self._core, operation_id)
        view, card = await bridge.whole_with_card(self._core, operation_id)
        asked = operation.last_known_state if state is None else state
        try:
            listed = None if asked is None else await waiting.listed_as(self._core, operation, asked)
        except ContractError:
            listed = None
        _, lines = await bridge.story(self._core, operation_id)
        return {
            "operation_id": operation.operation_id,
            "status": operation.status.value,
            "status_means": STATUS_MEANS[operation.status],
            "state": asked,
            "state_listed_as": listed,
            "state_note": "by the table of the contract; null: this text is not listed; its rules may look at more",
            "stop_reason": view["stop_reason"],
            "stop_detail": view["stop_detail"],
            "explained": operation.stop_explanation,
            "next_poll_at": view["next_poll_at"],
            "delay_source": view["delay_source"],
            "deadline_at": view["deadline_at"],
            "used": _line(operation),
            "escalation": card,
            "story": lines[-LAST_LINES:],
            "next": waiting.next_step(operation, await self._feed.silence()),
        }

    async def story(self, operation_id: str) -> list[str]:
        """The story's last lines. Raises NotFound."""
        await bridge.find(self._core, operation_id)
        _, lines = await bridge.story(self._core, operation_id)
        cut = len(lines) - MAX_STORY_LINES
        return lines if cut <= 0 else [f"({cut} earlier lines are left out)", *lines[-MAX_STORY_LINES:]]

    async def _document(self, operation_id: str) -> dict[str, Any]:
        """The document of `show`, with `next`."""
        view = await bridge.whole(self._core, operation_id)
        operation = await bridge.find(self._core, operation_id)
        return view | {"next": waiting.next_step(operation, await self._feed.silence())}


def _line(operation: Operation) -> str:
    """Our own words and numbers alone."""
    return (
        f"{operation.status.value}; "
        f"status requests {operation.status_requests_used} of {operation.max_status_requests}, "
        f"failures {operation.transport_failures_used} of {operation.max_transport_failures}, "
        f"rate-limit answers {operation.rate_limited_used} of {operation.max_rate_limited}"
    )
