"""Documents of `--json` as text for people: the same rows, the same words.

Job: pure layout over views and records, and the sentence about a core that does not run. Must not know: commands.
Provider texts in the views are raw; everything here makes them harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pollconsole import bridge, due, words
from pollconsole.bridge.waiting import silence_of
from pollconsole.cli import liveness
from pollconsole.safe import safe
from pollcore.facts import Moment, Operation, Status, lost_actions, lost_words

MAX_DEPTH: Final = 12
MASKED: Final = "?..."
"""How the core writes a query that it leaves out."""
BUDGETS: Final = ("REQUESTS", "FAILURES", "RATE LIM.")
"""Columns of status requests, transport failures, rate-limit answers: used/allowed."""
MAX_LOST: Final = 20
"""Operations below the table of `list` whose action has an unknown outcome."""
_OTHER_NAMES: Final = frozenset({"Provider and account", "Job started at", "Provider expiry", "Next poll"})
"""Labels of a card whose fact has another label in the lines of an operation."""


async def core_silence(core: bridge.Core) -> int | None:
    """ms since a polling core last gave a sign of life; None: never."""
    return await silence_of(core)


async def core_warning(core: bridge.Core) -> str | None:
    """O8's sentence, or None."""
    return liveness.warning(await core_silence(core))


def rows(operations: Sequence[Operation], now: Moment, *, polled: bool = True) -> str:
    """The table of `list`. *polled*: a core lives that sends what is due."""
    head = ("OPERATION", "PROVIDER", "JOB", "STATUS", "LAST STATE", "NEXT", "TIME LEFT", *BUDGETS, "LABEL")
    lines = [
        (
            op.operation_id,
            op.submitted.provider,
            op.submitted.job_id,
            words.status_text(op.status),
            op.last_known_state or words.NOTHING,
            due.next_words(op, now, polled=polled),
            due.left_words(op, now),
            words.of(op.status_requests_used, op.max_status_requests),
            words.of(op.transport_failures_used, op.max_transport_failures),
            words.of(op.rate_limited_used, op.max_rate_limited),
            op.submitted.label or "",
        )
        for op in operations
    ]
    return words.table(head, lines, limits=(64, 24, 32, 0, 24, 0, 0, 0, 0, 0, 40))


def lost_notes(operations: Sequence[Operation]) -> list[str]:
    """O5: a line for each listed operation with an action whose outcome nobody knows, MAX_LOST at most."""
    lost = [(op.operation_id, "; ".join(found)) for op in operations if (found := lost_actions(op))]
    notes = [f"{name}: {said}" for name, said in lost[:MAX_LOST]]
    if len(lost) > MAX_LOST:
        notes.append(f"{len(lost) - MAX_LOST} more with an action whose outcome is unknown: --json lists them all")
    return notes


def one_line(view: dict[str, Any]) -> str:
    """`op-1: ! escalated, request_budget_exhausted; last state running`."""
    text = f"{safe(str(view['operation_id']))}: {_status(view)}"
    if view.get("stop_reason"):
        text += f", {view['stop_reason']}"
        if view.get("stop_detail"):
            text += f" ({view['stop_detail']})"
    if view["status"] == Status.HELD and view.get("hold_until"):
        text += f" until {view['hold_until']}"
    if view.get("last_known_state") is not None:
        text += f"; last state {safe(str(view['last_known_state']))}"
    return text


def operation(view: dict[str, Any], card: Sequence[str] = ()) -> str:
    """One operation in lines; what is not known is left out, limits never.

    Args:
        card: The lines of the open question's card: those that the fields above do not tell already are added.
    """
    http = view.get("last_http") or {}
    pairs: list[tuple[str, Any]] = [
        ("Operation", view["operation_id"]),
        ("Label", view.get("label")),
        ("Provider", view["provider"]),
        ("Account", view.get("account")),
        ("Provider job", view.get("provider_job_id")),
        ("Status", _status(view)),
        ("Last state", view.get("last_known_state") or "none yet"),
        ("Last HTTP result", f"{http.get('code')} at {http.get('at')}" if http else None),
        ("Provider request id", http.get("request_id")),
        ("Started", view.get("started_at")),
        ("Deadline", view.get("deadline_at")),
        ("Useful until", view.get("useful_until")),
        ("Provider expires", view.get("provider_expires_at")),
        ("Status requests", _used(view, "status_requests")),
        ("Transport failures", _used(view, "transport_failures")),
        ("Rate-limit answers", _used(view, "rate_limited")),
        ("Next request", _next(view)),
        ("Paused", _paused(view)),
        ("Held until", view.get("hold_until") if view["status"] == Status.HELD else None),
        ("Stopped because", view.get("stop_reason")),
        ("Detail", view.get("stop_detail")),
        ("Not known", "; ".join(map(lost_words, view.get("unknown_actions") or ())) or None),
        ("Credential", view.get("credential")),
        ("Extensions", view.get("extensions") or None),
        ("Caller", view.get("caller")),
        ("Resubmit of", view.get("resubmit_of")),
        ("Contract", view.get("contract_digest")),
    ]
    text = words.fields([(name, str(value)) for name, value in pairs if value is not None])
    if view.get("result"):
        text += f"\nResult:\n{result(view['result'], 1)}"
    if card:
        said = {name for name, value in pairs if value is not None} | _OTHER_NAMES
        text += "\n\n" + "\n".join(_new(card, said))
    return text


def result(found: dict[str, Any], depth: int = 0) -> str:
    """A result pointer as lines; instead of `masked` what that means for its links, where it has any."""
    view = {key: value for key, value in found.items() if key != "masked"}
    shown = nested(found.get("fields"))
    if found.get("masked") and MASKED in shown:
        view["links"] = "without their query; 'pollconsole result OP --reveal' shows them whole, and is recorded"
    elif found.get("masked") is False and "://" in shown:
        view["links"] = "whole; this look at them is recorded"
    return nested(view, depth)


def _new(card: Sequence[str], said: frozenset[str] | set[str]) -> list[str]:
    """Title, what is new, and the choices of a card; *said*: labels whose line is left out."""
    lines, choices = [], False
    for number, line in enumerate(card):
        choices = choices or line.startswith("[")
        if choices or number == 0 or line.partition(":")[0] not in said:
            lines.append(line)
    return lines


def nested(value: Any, depth: int = 0) -> str:
    """Any JSON value as indented lines; texts are made harmless and are not cut below 1,000 characters."""
    pad = "  " * depth
    if depth > MAX_DEPTH:
        return f"{pad}..."
    if isinstance(value, dict):
        return "\n".join(_entry(safe(str(key)).replace("_", " "), item, depth) for key, item in value.items())
    if isinstance(value, list | tuple):
        if not value:
            return f"{pad}none"
        if all(not isinstance(item, dict | list | tuple) for item in value):
            return "\n".join(f"{pad}{_scalar(item)}" for item in value)
        return "\n".join(f"{pad}- {nested(item, depth + 1).lstrip()}" for item in value)
    return f"{pad}{_scalar(value)}"


def spans(value: Any) -> Any:
    """A copy where spans are words: `retention_ms: 86400000` becomes `retention: 1 d`; the rest as it is."""
    if isinstance(value, dict):
        return {
            key.removesuffix("_ms"): words.span(item) if key.endswith("_ms") and isinstance(item, int) else spans(item)
            for key, item in value.items()
        }
    return [spans(item) for item in value] if isinstance(value, list | tuple) else value


def _entry(key: str, item: Any, depth: int) -> str:
    pad = "  " * depth
    if isinstance(item, dict | list | tuple) and item:
        return f"{pad}{key}:\n{nested(item, depth + 1)}"
    if isinstance(item, dict | list | tuple):
        return f"{pad}{key}: none"
    return f"{pad}{key}: {_scalar(item)}"


def _scalar(value: Any) -> str:
    if value is None:
        return words.NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return safe(str(value), 1_000)


def _status(view: dict[str, Any]) -> str:
    try:
        return words.status_text(Status(view["status"]))
    except ValueError:
        return safe(str(view["status"]))


def _used(view: dict[str, Any], name: str) -> str:
    return f"{view.get(name + '_used')} of {view.get('max_' + name)}"


def _next(view: dict[str, Any]) -> str | None:
    at = view.get("next_poll_at")
    if at is None or view["status"] != Status.WAITING:
        return None
    source = view.get("delay_source")
    why = [*([str(source)] if source else []), *([f"paused by {paused['by']}"] if (paused := _by(view)) else [])]
    return f"{at} ({', '.join(why)})" if why else str(at)


def _by(view: dict[str, Any]) -> dict[str, Any] | None:
    """The pause that holds, where it is known who asked for it."""
    paused: dict[str, Any] | None = view.get("paused")
    return paused if paused is not None and paused.get("by") else None


def _paused(view: dict[str, Any]) -> str | None:
    paused = view.get("paused")
    if paused is None:
        return None
    whom = "the provider" if paused["account"] is None else "this account"
    return f"nothing is sent to {whom} before {paused['until']}" + (f", by {paused['by']}" if paused["by"] else "")
