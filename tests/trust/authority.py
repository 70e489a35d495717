"""Every kind of new authority, each as a row: how a real core comes to ask for it, and what moves it afterwards.

Job: lay out one open question whose card offers the kind. Must not know: what a test checks of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pollcore.actions import Shown, ShownQuestion, SubmitSpec
from pollcore.adapters.credential_ops import change_mode, remove_credential
from pollcore.facts import MINUTE, Choice, ChoiceKind, CredentialMode, Grant, StopReason
from tests.controller.bank import RUNNING, refuses, says
from tests.controller.house import KEYS, OPERATOR, SECRET, House

K, R = ChoiceKind, StopReason
FIRST = "op-job-1"
OTHER_SECRET = "another-secret-of-the-house"
ORIGINAL: dict[str, Any] = {"params": {"input": "a"}, "idempotency_key": "k1"}
#: Tables whose rows are what a grant permits; a change of one of them is the effect of the grant.
OPERATION, CONTRACT_USE, CREDENTIAL = "operation", "contract_use", "credential"

Step = Callable[[House], Awaitable[None]]
Change = tuple[str, str]


@dataclass(frozen=True)
class Row:
    """One kind of authority as it is asked for.

    *ask* ends with an open question on *operation_id* (None: on the credential `key`). *move* changes something that
    its card shows, without deciding it. *effect*: the table that a grant changes.
    """

    name: str
    kind: ChoiceKind
    reason: StopReason
    ask: Step
    move: Step
    changes: tuple[Change, ...] = ()
    label: str = ""
    operation_id: str | None = FIRST
    effect: str = OPERATION
    credential: str | None = None
    """What the operation uses, where that matters."""


Drawn = Shown | ShownQuestion


async def draw(h: House, row: Row) -> Drawn:
    """The card, fresh."""
    if row.operation_id is not None:
        return await h.core.actions.card(row.operation_id)
    (question,) = await h.core.store.credential_questions()
    return await h.core.actions.card_of(question.escalation_id)


def offered(drawn: Drawn, row: Row) -> list[Choice]:
    """What of the row's kind the card offers and lets be chosen."""
    found = [c for c in drawn.choices if c.kind is row.kind and row.label in c.label]
    return [c for c in found if c.unavailable is None]


async def press(
    h: House, drawn: Drawn, key: str, digest: str | None = None, evidence: Mapping[str, str | int | float] = KEYS
) -> None:
    """Decide what was drawn, as the console does."""
    given = (drawn.question.escalation_id, key, digest or drawn.digest, evidence, OPERATOR)
    if isinstance(drawn, Shown):
        await h.core.actions.decide(drawn.operation.operation_id, *given)
    else:
        await h.core.actions.decide_question(*given)


async def state(h: House) -> dict[str, Any]:
    """Everything that a grant could change, and what was sent: equal before and after means that nothing happened."""
    sql = {
        "operation": "SELECT id, status, version, deadline_at, max_status_requests, max_transport_failures,"
        " max_rate_limited, useful_until, contract, credential, check_once, cancel_granted FROM operation ORDER BY op",
        "grant": 'SELECT grant_id FROM "grant" UNION ALL SELECT grant_id FROM credential_grant ORDER BY 1',
        "approval": "SELECT grant_id, used_at FROM approval ORDER BY 1",
        "session": "SELECT session_id, used FROM session ORDER BY 1",
        "use": "SELECT digest, use FROM contract_use ORDER BY 1",
        "action": "SELECT action_id FROM action ORDER BY 1",
    }
    found: dict[str, Any] = {}
    for name, text in sql.items():
        found[name] = await rows(h, text)
    found["modes"] = [(one.name, one.mode) for one in await h.core.credential_admin.meta.list()]
    found["sent"] = len(h.bank.requests)
    return found


async def rows(h: House, sql: str) -> Sequence[Any]:
    """The rows of a query, through the store's own connection."""
    call = h.core.store._writer.call(lambda s: [tuple(row) for row in s.conn.execute(sql).fetchall()])
    return await asyncio.wrap_future(call)


async def grant_of(h: House, escalation_id: str) -> Grant:
    """The one grant that settled a question."""
    one = f"WHERE escalation_id = '{escalation_id}'"
    found = await rows(h, f'SELECT body FROM "grant" {one} UNION ALL SELECT body FROM credential_grant {one}')
    ((body,),) = found
    return msgspec.json.decode(body, type=Grant)


@contextlib.asynccontextmanager
async def unwritable(h: House, row: Row, what: str) -> AsyncIterator[None]:
    """SQLite itself refuses to write the `grant`, its `effect`, or the `settlement` of the question."""
    aside = row.operation_id is None
    # a credential's row is replaced as a document is
    of_effect = {
        OPERATION: ("UPDATE", "operation", ""),
        CONTRACT_USE: ("INSERT", "contract_use", ""),
        CREDENTIAL: ("INSERT", "document", " WHEN NEW.kind = 'credential'"),
    }
    verb, table, when = {
        "grant": ("INSERT", "credential_grant" if aside else "grant", ""),
        "effect": of_effect[row.effect],
        "settlement": ("UPDATE", "credential_question" if aside else "escalation", ""),
    }[what]
    refuse = "BEGIN SELECT RAISE(ABORT, 'not now'); END"
    made = f'CREATE TEMP TRIGGER not_now BEFORE {verb} ON main."{table}"{when} {refuse}'
    await rows(h, made)
    try:
        yield
    finally:
        await rows(h, "DROP TRIGGER temp.not_now")


# --- how each is asked for --------------------------------------------------------------------------------------------


def stopped(*answers: dict[str, Any], ms: int = 24 * 60 * MINUTE, **spec: Any) -> Step:
    async def ask(h: House) -> None:
        await h.submit("job-1", *answers, **spec)
        await h.run(ms)

    return ask


async def asked_by_agent(h: House) -> None:
    await h.submit("job-1", RUNNING)
    await h.run(11_000)
    await h.core.actions.request_extension(FIRST, 15, 4, "approve this at once, it is urgent", "agent")


async def asked_by_operator(h: House) -> None:
    await h.submit("job-1", RUNNING)
    await h.run(11_000)
    await h.core.actions.open_question(FIRST, OPERATOR)


async def submitted_again(h: House) -> None:
    await h.submit("job-1", RUNNING)
    await h.run()
    await h.choose(K.CLOSE)
    again = SubmitSpec(provider="acme", job_id="job-1", operation_id="op-later", account="acct")
    await h.core.actions.submit(again)


async def changed_file(h: House) -> None:
    await stopped(says("strange"))(h)
    h.write_contract(('"running"]', '"running", "strange"]'))


async def refused_with_second(h: House) -> None:
    await h.credential("second", "the-second-secret")
    await stopped(refuses(403), credential="key")(h)


async def refused_then_rotated(h: House) -> None:
    await stopped(refuses(401), credential="key")(h)
    h.clock.jump(1_000)
    await h.credential("key", OTHER_SECRET)


async def keyring_came_back(h: House) -> None:
    h.keyring.locked = True
    await stopped(RUNNING, credential="key", ms=60_000)(h)
    h.keyring.locked = False


async def timed_out(h: House) -> None:
    h.bank.gate = asyncio.Event()
    await stopped(RUNNING, max_transport_failures=1, **ORIGINAL)(h)
    h.bank.gate.set()


async def denied(h: House) -> None:
    await stopped(RUNNING, credential="key")(h)
    await h.core.actions.lower(FIRST, K.DENY, "nobody started this", "agent")


async def cancelled_in_vain(h: House) -> None:
    await stopped(says("strange"))(h)
    await h.choose(K.CANCEL_AT_PROVIDER)
    await h.run(MINUTE)


async def denied_after_a_cancel(h: House) -> None:
    await denied(h)
    await h.choose(K.CANCEL_AT_PROVIDER)
    await h.run(MINUTE)
    await h.core.actions.lower(FIRST, K.DENY, "nobody started this", "agent")


async def looser_mode(h: House) -> None:
    await change_mode(h.core.credential_admin.meta, "key", CredentialMode.PER_SESSION)
    await h.core.actions.ask_mode("key", CredentialMode.STANDING, "agent", "approve this at once")


# --- what moves it ----------------------------------------------------------------------------------------------------


async def deadline_passes(h: House) -> None:
    """Under an open card, and the loop writes it down."""
    h.clock.jump(41 * MINUTE)
    await h.run(30_000)


async def moved_deadline_passes(h: House) -> None:
    """The same where a granted cancel moved the deadline."""
    h.clock.jump(60 * MINUTE)
    await h.run(30_000)


async def secret_changes(h: House) -> None:
    h.clock.jump(1_000)
    await h.credential("key", "a-third-secret-of-the-house")


async def secret_is_the_refused_one_again(h: House) -> None:
    h.clock.jump(1_000)
    await h.credential("key", SECRET)


async def origins_change(h: House) -> None:
    await h.credential("key", origins=[h.bank.url, "https://elsewhere.example.test"])


async def second_goes(h: House) -> None:
    await remove_credential(h.core.vault, h.core.credential_admin.meta, "second")


async def keyring_locks(h: House) -> None:
    h.keyring.locked = True


async def file_changes_again(h: House) -> None:
    h.write_contract(('succeeded = ["done"]', 'succeeded = ["done", "strange"]'))


async def another_is_asked_for(h: House) -> None:
    """The agent's question is taken back and asked anew with more: a card of the first must not give the second."""
    await h.core.actions.lower(FIRST, K.REJECT, "another size", "agent")
    await h.core.actions.request_extension(FIRST, 60, 8, "more", "agent")


async def wait_is_stricter(h: House) -> None:
    await change_mode(h.core.credential_admin.meta, "key", CredentialMode.PER_CALL)


async def another_console_closes(h: House) -> None:
    shown = await h.core.actions.card(FIRST)
    close = next(choice for choice in shown.choices if choice.kind is K.CLOSE)
    async with h.open() as other:
        await other.actions.decide(FIRST, shown.question.escalation_id, close.key, shown.digest, KEYS, OPERATOR)


async def later_is_rejected(h: House) -> None:
    await h.core.actions.lower("op-later", K.REJECT, "not again", "agent")


SHORT = (("max_status_requests = 12", "max_status_requests = 2"),)
QUICK = (('total = "2s"', 'total = "1s"'),)
PER_CALL = (('kind = "bearer"', 'kind = "bearer"\nleast_mode = "per_call"'),)
PER_SESSION = (
    ('kind = "bearer"', 'kind = "bearer"\nleast_mode = "per_session"\nsession_minutes = 30\nsession_calls = 3'),
)
UNTRIED = (('tested_live = "the bank of these tests"\n', ""),)
BAD_LINK = says("done", result={"url": "not a link"})

ROWS: tuple[Row, ...] = (
    Row("extend", K.EXTEND, R.REQUEST_BUDGET_EXHAUSTED, stopped(RUNNING), deadline_passes, SHORT),
    Row("extend asked by an agent", K.EXTEND, R.EXTENSION_REQUESTED, asked_by_agent, another_is_asked_for),
    Row("extend a running wait", K.EXTEND, R.OPERATOR_REQUEST, asked_by_operator, deadline_passes),
    Row(
        "second submission", K.EXTEND, R.EXTENSION_REQUESTED, submitted_again, later_is_rejected, SHORT,
        operation_id="op-later",
    ),
    Row("cancel", K.CANCEL_AT_PROVIDER, R.UNKNOWN_STATE, stopped(says("strange")), deadline_passes),
    Row(
        "cancel with a per-call credential", K.CANCEL_AT_PROVIDER, R.APPROVAL_DENIED, denied, secret_changes, PER_CALL,
        credential="key",
    ),
    Row(
        "force-cancel", K.CANCEL_AT_PROVIDER, R.UNKNOWN_STATE, cancelled_in_vain, moved_deadline_passes,
        label="force-cancel",
    ),
    Row(
        "force-cancel with a per-call credential", K.CANCEL_AT_PROVIDER, R.APPROVAL_DENIED, denied_after_a_cancel,
        secret_changes, PER_CALL, label="force-cancel", credential="key",
    ),
    Row("check once", K.CHECK_ONCE, R.UNKNOWN_STATE, stopped(says("strange")), deadline_passes),
    Row("adopt contract", K.ADOPT_CONTRACT, R.UNKNOWN_STATE, changed_file, file_changes_again),
    Row("other credential", K.USE_OTHER_CREDENTIAL, R.AUTHORIZATION_DENIED, refused_with_second, second_goes),
    Row(
        "rotated credential", K.CHECK_ONCE_WITH_ROTATED_CREDENTIAL, R.AUTHORIZATION_DENIED, refused_then_rotated,
        secret_is_the_refused_one_again,
    ),
    Row("check again", K.CHECK_AGAIN, R.CREDENTIAL_UNAVAILABLE, keyring_came_back, keyring_locks),
    Row("resubmit", K.RESUBMIT, R.DELIVERY_AMBIGUOUS, timed_out, deadline_passes, QUICK),
    Row("resubmit a failed job", K.RESUBMIT, R.JOB_FAILED, stopped(says("failed"), **ORIGINAL), another_console_closes),
    Row(
        "unvalidated result", K.ACCEPT_UNVALIDATED_RESULT, R.INTEGRATION_FAILURE, stopped(BAD_LINK), deadline_passes
    ),
    Row("ask again", K.ASK_AGAIN, R.APPROVAL_DENIED, denied, deadline_passes, PER_CALL),
    Row(
        "per call", K.APPROVE_ONCE, R.CALL_APPROVAL, stopped(RUNNING, credential="key"), secret_changes, PER_CALL,
        credential="key",
    ),
    Row(
        "session", K.APPROVE_SESSION, R.SESSION_APPROVAL, stopped(RUNNING, credential="key"), origins_change,
        PER_SESSION, credential="key",
    ),
    Row(
        "first use as read-only", K.APPROVE, R.FIRST_USE, stopped(RUNNING), deadline_passes, UNTRIED, "read-only",
        effect=CONTRACT_USE,
    ),
    Row(
        "first use as an action", K.APPROVE, R.FIRST_USE, stopped(RUNNING), deadline_passes, UNTRIED, "as an action",
        effect=CONTRACT_USE,
    ),
    Row(
        "mode change", K.APPROVE, R.MODE_CHANGE, looser_mode, wait_is_stricter, operation_id=None, effect=CREDENTIAL
    ),
)  # fmt: skip
