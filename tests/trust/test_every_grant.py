"""Every kind of new authority: bound to exactly what was shown, used once, in one transaction, by the console alone."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

from pollcore.escalation import choices
from pollcore.facts import (
    LOWERS_AUTHORITY,
    ChoiceKind,
    CredentialMode,
    EventName,
    Policy,
    PollconsoleError,
    Refused,
    Stale,
    StopReason,
)
from tests.controller.house import KEYS, OPERATOR, House, changed_as_shown, house
from tests.core.questions import made
from tests.trust import authority
from tests.trust.authority import ROWS, Row, draw, offered, press, state

ROOT = Path(__file__).parents[2]
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))


async def asked(h: House, row: Row) -> tuple[authority.Drawn, str]:
    """The card of the row's question, and the digit of its choice."""
    await row.ask(h)
    drawn = await draw(h, row)
    assert drawn.question.reason is row.reason
    found = offered(drawn, row)
    assert found, [(choice.label, choice.unavailable) for choice in drawn.choices]
    assert found[0].grants
    return drawn, found[0].key


def test_every_kind_that_gives_authority_for_any_reason_has_its_row() -> None:
    gives: dict[ChoiceKind, set[StopReason]] = {}
    for reason in StopReason:
        if reason is StopReason.MODE_CHANGE:
            question = made.question(reason, None)
            found = choices(None, question, policy=Policy(), now=made.NOW, circumstances=made.EVERYTHING)
        else:
            found = tuple(made.offered(reason).values())
        for choice in found:
            if choice.grants:
                gives.setdefault(choice.kind, set()).add(reason)
    assert set(gives) == {row.kind for row in ROWS}
    assert [row.name for row in ROWS if row.reason not in gives[row.kind]] == []
    assert not set(gives) & LOWERS_AUTHORITY
    # a step of a kind is authority of its own: each has its rows, found by the label that tells it apart
    assert {row.label for row in ROWS if row.kind is ChoiceKind.CANCEL_AT_PROVIDER} == {"", "force-cancel"}
    # what gives nothing, by name: a kind that is new must be put here or get a row
    assert set(ChoiceKind) - set(gives) == {*LOWERS_AUTHORITY, ChoiceKind.INSPECT, ChoiceKind.END_HOLD}


@pytest.mark.rule("G4", "G8")
@every_row
async def test_another_digest_gives_nothing_and_is_told(row: Row, tmp_path: Path) -> None:
    async with house(tmp_path, *row.changes) as h:
        drawn, key = await asked(h, row)
        before, told = await state(h), len(await h.events(EventName.GRANT_REFUSED))
        for wrong in ("0" * 64, drawn.digest[:-1] + ("0" if drawn.digest[-1] != "0" else "1"), drawn.digest[:16]):
            with pytest.raises(Stale):
                await press(h, drawn, key, wrong)
        assert await state(h) == before
        assert len(await h.events(EventName.GRANT_REFUSED)) == told + 3


@pytest.mark.rule("G4", "E7", "G8")
@every_row
async def test_what_moved_since_it_was_shown_is_refused_and_the_card_is_another(row: Row, tmp_path: Path) -> None:
    async with house(tmp_path, *row.changes) as h:
        drawn, key = await asked(h, row)
        await row.move(h)
        before = await state(h)
        with pytest.raises(Stale):
            await press(h, drawn, key)
        assert await state(h) == before
        assert await h.events(EventName.GRANT_REFUSED)
        try:
            fresh = await draw(h, row)
        except (Refused, ValueError):  # nothing is asked any more
            return
        assert fresh.digest != drawn.digest
        # also what is drawn now is not given to the one who saw the former card
        with pytest.raises(Stale):
            await press(h, drawn, key)
        assert await state(h) == before


@pytest.mark.rule("G4", "E7")
@every_row
async def test_it_is_used_once_also_by_two_consoles_at_the_same_moment(row: Row, tmp_path: Path) -> None:
    async with house(tmp_path, *row.changes) as h:
        drawn, key = await asked(h, row)
        before = await state(h)
        both = await asyncio.gather(*(press(h, drawn, key) for _ in range(2)), return_exceptions=True)
        lost = [one for one in both if isinstance(one, BaseException)]
        assert len(lost) == 1, both
        assert isinstance(lost[0], Stale | Refused)
        after = await state(h)
        assert len(after["grant"]) == len(before["grant"]) + 1
        assert after != before
        with pytest.raises(Stale):
            await press(h, drawn, key)
        assert (await state(h))["grant"] == after["grant"]


@pytest.mark.rule("G4", "A1")
@every_row
async def test_the_grant_holds_what_was_shown_and_who_pressed_and_changes_what_it_said(
    row: Row, tmp_path: Path
) -> None:
    async with house(tmp_path, *row.changes) as h:
        drawn, key = await asked(h, row)
        choice = next(one for one in drawn.choices if one.key == key)
        before = await h.op(row.operation_id) if row.operation_id else None
        await press(h, drawn, key)
        stored = await authority.grant_of(h, drawn.question.escalation_id)
        assert (stored.choice, stored.card_digest) == (choice, drawn.digest)
        assert (stored.operator, stored.evidence) == (OPERATOR, KEYS)
        told = (await h.events(EventName.GRANTED))[-1]
        assert f"card {drawn.digest[:16]}" in told.notes
        assert told.operator == str(OPERATOR)
        if before is None:
            assert (await state(h))["modes"] == [("key", CredentialMode.STANDING)]
        elif row.kind is not ChoiceKind.RESUBMIT:
            assert stored.version == before.version
            # the answer to a cancel may already have been recorded: its window and its limits were not moved by it
            changed_as_shown(before, choice, await h.op(before.operation_id))


@pytest.mark.rule("G4", "O1")
@pytest.mark.parametrize("broken", ["grant", "effect", "settlement"])
@every_row
async def test_grant_effect_and_settled_question_are_one_transaction(row: Row, broken: str, tmp_path: Path) -> None:
    async with house(tmp_path, *row.changes) as h:
        drawn, key = await asked(h, row)
        before, granted = await state(h), len(await h.events(EventName.GRANTED))
        async with authority.unwritable(h, row, broken):
            with pytest.raises(PollconsoleError):
                await press(h, drawn, key)
            assert await state(h) == before
        assert len(await h.events(EventName.GRANTED)) == granted
        # the question is still there, and what was shown still holds: nothing of it was used up
        await press(h, drawn, key)
        assert len((await state(h))["grant"]) == len(before["grant"]) + 1


@pytest.mark.rule("A4")
@every_row
async def test_what_cannot_be_anchored_gives_nothing(row: Row, tmp_path: Path) -> None:
    async with house(tmp_path, *row.changes) as h:
        drawn, key = await asked(h, row)
        before, granted = await state(h), len(await h.events(EventName.GRANTED))
        h.keyring.locked = True
        # a card that tells of the keyring has changed as well
        with pytest.raises((Refused, Stale)):
            await press(h, drawn, key)
        assert await state(h) == before
        assert len(await h.events(EventName.GRANTED)) == granted


@pytest.mark.rule("G5")
@every_row
async def test_nobody_but_the_console_gives_it_whatever_is_asked_and_written(row: Row, tmp_path: Path) -> None:
    async with house(tmp_path, *row.changes) as h:
        drawn, _ = await asked(h, row)
        before = await state(h)
        with pytest.raises(PollconsoleError):
            await h.core.actions.lower(row.operation_id or "", row.kind, "1 approve yes", "operator")
        if row.operation_id is not None:
            for text in ("1", "approve", drawn.digest, "grant: extend 15 min / 4 checks"):
                with pytest.raises(PollconsoleError):
                    await h.core.actions.request_extension(row.operation_id, 999, 999, text, text)
        await h.run(60_000)
        after = await state(h)
        for name in ("grant", "approval", "session", "use", "action", "modes"):
            assert after[name] == before[name], name


# --- who could call it ------------------------------------------------------------------------------------------------

GIVES = frozenset({"decide", "decide_group", "decide_question"})
#: Pure functions of the same word: they decide what an answer means, and give nobody anything.
PURE = frozenset({"bridge/explaining.py"})


def calls_of(tree: ast.AST) -> set[str]:
    return {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GIVES
    }


@pytest.mark.rule("G3", "G5")
def test_one_file_of_the_console_calls_the_gate_and_no_command_can_reach_it() -> None:
    folder = ROOT / "console" / "pollconsole"
    found = {}
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        name = path.relative_to(folder).as_posix()
        if calls_of(tree):
            found[name] = calls_of(tree)
        if name.startswith(("cli/", "mcp_server/")):
            named = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
            modules = {alias.name for node in named for alias in node.names}
            modules |= {str(node.module) for node in named if isinstance(node, ast.ImportFrom)}
            assert not {m for m in modules if m.split(".")[-1] in ("approve", "guard", "guarded", "guard_facts")}, name
    assert {name: calls for name, calls in found.items() if name not in PURE} == {"approve.py": set(GIVES)}


@pytest.mark.rule("G3")
def test_only_the_guards_machine_makes_evidence() -> None:
    makers: dict[str, set[str]] = {"Evidence": set(), "proven": set()}
    for path in sorted((ROOT / "console" / "pollconsole").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            called = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            if called in makers:
                makers[called].add(path.name)
            # no other name for it, no other way to its seal
            if isinstance(node, ast.ImportFrom) and {"proven", "_SEAL"} & {alias.name for alias in node.names}:
                assert path.name == "guard.py"
    assert makers == {"Evidence": {"guard_facts.py"}, "proven": {"guard.py"}}
