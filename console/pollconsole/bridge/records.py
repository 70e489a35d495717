"""Operations, questions, stories and figures as the documents of `--json`.

Job: ask the store, hand its records to the core's views. Must not know: output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pollconsole import documents
from pollconsole.bridge.pausing import pauses
from pollcore.facts import NotFound, Operation, PollconsoleError, Refused

if TYPE_CHECKING:
    from pollcore.actions import SubmitSpec
    from pollcore.assembly import Core
    from pollcore.facts import CallGrant, Choice, Escalation

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
    question, choices, lines, digest = await _question(core, operation)
    approval = documents.approval(question, digest, await _granted(core, operation), await _sessions(core, operation))
    view = operation_view(operation, question=question, choices=choices, approval=approval)
    given = operation.submitted
    holds = [one for one in await pauses(core) if one.holds_for(given.provider, given.account)]
    longest = max(holds, key=lambda one: one.until, default=None)
    view["paused"] = None if longest is None or operation.status.is_end else longest.document
    return documents.opened(view), lines


def row(operation: Operation) -> dict[str, Any]:
    """The document of one operation in `list --json`: as `show`, without the open question."""
    from pollcore.views import operation_view

    return documents.opened(operation_view(operation))


async def _granted(core: Core, operation: Operation) -> CallGrant | None:
    """An approved call that was not used yet and still could be."""
    found = await core.store.approval(operation.operation_id)
    return found if found is not None and found.expires_at > core.clock.now().wall else None


async def _sessions(core: Core, operation: Operation) -> list[Any]:
    """Live sessions of the operation's credential."""
    if operation.credential is None or operation.status.is_end:
        return []
    return [one for one in await core.actions.sessions() if one.credential == operation.credential]


async def _question(
    core: Core, operation: Operation
) -> tuple[Escalation | None, tuple[Choice, ...], list[str], str | None]:
    """The open question of *operation* with its choices, its card's lines, the digest of the request that it is about.

    A contract that cannot be read any more hides the choices, never the question.
    """
    found: Sequence[Escalation] = await core.store.questions(operation.operation_id)
    if not found:
        return None, (), [], None
    try:
        shown = await core.actions.card(operation.operation_id)
    except PollconsoleError as error:
        lines = [f"{operation.operation_id}: {found[0].reason}", f"its choices cannot be shown: {error}"]
        return found[0], (), lines, None
    digest = shown.use.digest if shown.use is not None else None
    return shown.question, shown.choices, list(shown.card.text()), digest


async def questions(core: Core) -> tuple[list[dict[str, Any]], list[str]]:
    """All open questions, what ends soonest first as the console has them: the documents of `escalations --json` (each
    with its card's lines), and the cards as text.
    """
    from pollcore.views import question_view

    views: list[dict[str, Any]] = []
    cards: list[str] = []
    for asked, operation in await questions_in_order(core):
        if operation is None:
            found = await _credential_question(core, asked)
            if found is not None:
                views.append(found)
                cards.append("\n".join(found["card"]))
            continue
        question, choices, lines, _ = await _question(core, operation)
        if question is None:  # decided between the two reads
            continue
        views.append(question_view(question, choices) | {"credential": None, "card": lines})
        cards.append("\n".join(lines))
    return views, cards


async def questions_in_order(core: Core) -> list[tuple[Escalation, Operation | None]]:
    """Every open question with its operation, None: it belongs to a credential; what ends soonest first (E10)."""
    from pollconsole.causes import in_order

    pairs = await core.store.asked()
    operations = {operation.operation_id: operation for operation, _ in pairs}
    asked = [*(question for _, question in pairs), *await core.store.credential_questions()]
    ordered = in_order(asked, operations, core.clock.now().wall)
    return [(question, operations.get(question.operation_id)) for question in ordered]


async def _credential_question(core: Core, asked: Escalation) -> dict[str, Any] | None:
    """The document of a question that belongs to a credential, with its card's lines; None: it is decided."""
    from pollcore.views import question_view

    try:
        shown = await core.actions.card_of(asked.escalation_id)
    except Refused:  # decided between the two reads
        return None
    belongs = {"operation_id": None, "credential": asked.cause.partition(":")[2]}
    return question_view(shown.question, shown.choices) | belongs | {"card": list(shown.card.text())}


async def reject_question(core: Core, escalation_id: str, because: str, by: str) -> dict[str, Any] | None:
    """Reject a question that is named by its own id; the operation's document, or the settled question's.

    None: *escalation_id* is no question. Raises Refused: it was decided already, or cannot be rejected.
    """
    from pollcore.facts import ChoiceKind
    from pollcore.views import question_view

    of_operation = (await core.store.questions_by_id((escalation_id,))).get(escalation_id)
    if of_operation is not None:
        if of_operation.decided_at is not None:
            said = f"{of_operation.decision} by {of_operation.operator or 'a later stop'}"
            raise Refused(f"{escalation_id}: decided already: {said}", code="no_question")
        await core.actions.lower(of_operation.operation_id, ChoiceKind.REJECT, because, by)
        return await whole(core, of_operation.operation_id)
    if await core.store.credential_question(escalation_id) is None:
        return None
    closed = await core.actions.reject_question(escalation_id, because, by)
    return question_view(closed) | {"operation_id": None, "credential": closed.cause.partition(":")[2]}
