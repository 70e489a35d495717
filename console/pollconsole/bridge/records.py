"""Operations, questions, stories and figures as the documents of `--json`.

Job: ask the store, hand its records to the core's views. Must not know: output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pollconsole import documents
from pollconsole.bridge.pauses import pauses
from pollconsole.bridge.story import every_event
from pollcore.facts import AuditEvent, Instant, NotFound, Operation, PollconsoleError, iso

if TYPE_CHECKING:
    from pollcore.actions import SubmitSpec
    from pollcore.assembly import Core
    from pollcore.facts import Choice, Escalation

MAX_REPORTED: Final = 1_000_000
"""Operations that one report looks at, newest first."""
MAX_NEAR_FROM: Final = 1_000
"""Operations looked at for names near to an unknown one."""


def submit_spec(**fields: Any) -> SubmitSpec:
    """A submission for `core.actions.submit`."""
    from pollcore.actions import SubmitSpec as Spec

    return Spec(**fields)


def operator_name(core: Core, caller: str | None = None) -> str:
    """Who acts here: OS user, host, terminal, unverified; after it the name that a *caller* gave itself.

    The OS user comes first, so that no name given by a caller can stand in its place.
    """
    user = str(core.actions.operator())
    return user if caller is None else f"{user}, caller {caller}"


async def find(core: Core, operation_id: str) -> Operation:
    """The record. Raises NotFound with near names."""
    found = await core.store.operation(operation_id)
    if found is not None:
        return found
    from difflib import get_close_matches

    from pollcore.ports import Filter

    known = [op.operation_id for op in await core.store.operations(Filter(limit=MAX_NEAR_FROM))]
    near = get_close_matches(operation_id, known, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "'pollconsole list' shows what there is"
    raise NotFound(f"no operation {operation_id!r}; {hint}")


async def operations(core: Core, **wanted: Any) -> Sequence[Operation]:
    """Records by change, newest first; arguments as in `ports.Filter`."""
    from pollcore.ports import Filter

    return await core.store.operations(Filter(**wanted))


async def whole(core: Core, operation_id: str) -> dict[str, Any]:
    """The document of `show --json`, the open question with its choices included. Raises NotFound."""
    return (await whole_with_card(core, operation_id))[0]


async def whole_with_card(core: Core, operation_id: str) -> tuple[dict[str, Any], list[str]]:
    """The document of `show --json`, and the lines of the open question's card; none: no question. Raises NotFound."""
    from pollcore.views import operation_view

    operation = await find(core, operation_id)
    question, choices, lines = await _question(core, operation)
    view = operation_view(operation, question=question, choices=choices, approval=documents.approval(question))
    given = operation.submitted
    holds = [one for one in await pauses(core) if one.holds_for(given.provider, given.account)]
    longest = max(holds, key=lambda one: one.until, default=None)
    view["paused"] = None if longest is None or operation.status.is_end else longest.document
    return documents.opened(view), lines


def row(operation: Operation) -> dict[str, Any]:
    """The document of one operation in `list --json`: as `show`, without the open question."""
    from pollcore.views import operation_view

    return documents.opened(operation_view(operation))


async def _question(core: Core, operation: Operation) -> tuple[Escalation | None, tuple[Choice, ...], list[str]]:
    """The open question of *operation* with its choices and its card's lines.

    A contract that cannot be read any more hides the choices, never the question.
    """
    found: Sequence[Escalation] = await core.store.questions(operation.operation_id)
    if not found:
        return None, (), []
    try:
        shown = await core.actions.card(operation.operation_id)
    except PollconsoleError as error:
        return found[0], (), [f"{operation.operation_id}: {found[0].reason}", f"its choices cannot be shown: {error}"]
    return shown.question, shown.choices, list(shown.card.text())


async def questions(core: Core) -> tuple[list[dict[str, Any]], list[str]]:
    """All open questions: the documents of `escalations --json` (each with its card's lines), and the cards as text."""
    from pollcore.views import question_view

    views, cards = [], []
    for asked in await core.store.questions():
        operation = await core.store.operation(asked.operation_id)
        choices: tuple[Choice, ...] = ()
        if operation is None:  # a question about a credential or a contract
            question, lines = asked, [f"{asked.reason}: {asked.cause}"]
        else:
            found, choices, lines = await _question(core, operation)
            if found is None:  # decided between the two reads
                continue
            question = found
        views.append(question_view(question, choices) | {"card": lines})
        cards.append("\n".join(lines))
    return views, cards


async def report(core: Core, since: Instant, now: Instant) -> dict[str, Any]:
    """The figures of A5 over the operations since *since*."""
    from pollcore.report import report as figures

    found = await operations(core, since=since, limit=MAX_REPORTED)
    wanted = {operation.operation_id for operation in found}
    events: dict[str, list[AuditEvent]] = {}
    for event in await every_event(core):
        if event.operation_id in wanted:
            events.setdefault(str(event.operation_id), []).append(event)
    asked = [q for q in await core.store.questions(open_only=False) if q.operation_id in wanted]
    return {"since": iso(since), "until": iso(now), **documents.report(figures(found, asked, events, now=now))}
