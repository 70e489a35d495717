"""Tables `state`, `states`, `rules`: what each answer means.

Job: TOML -> StateTable and rules, with every value in one place only. Must not know: answers, requests.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore.contract.expressions import Expression, compile_expression
from pollcore.contract.parts import Meaning, PatternState, Rule, StateTable
from pollcore.contract.patterns import glob
from pollcore.contract.placeholders import written
from pollcore.contract.tables import Table
from pollcore.facts import StopDetail, Verdict

MAX_RULES: Final = 100
MAX_IN_A_ROW: Final = 1_000
QUALIFIERS: Final = ("partial", "empty", "did_not_run")

LISTS: Final = {
    "waiting": Verdict.WAITING,
    "cancelling": Verdict.WAITING,
    "succeeded": Verdict.SUCCEEDED,
    "failed": Verdict.FAILED,
    "cancelled": Verdict.CANCELLED,
    "expired": Verdict.EXPIRED,
    "needs_human": Verdict.NEEDS_HUMAN,
}
NEVER: Final = ("waiting", "failed")
"""What a contract may say that its API never answers. A wait that can never succeed would be none."""
_CATEGORIES: Final = {
    **LISTS,
    "unknown": Verdict.UNKNOWN,
    "not_found": Verdict.INTEGRATION,
    "transport_failure": Verdict.TRANSPORT_FAILURE,
    "rate_limited": Verdict.RATE_LIMITED,
    "quota_exhausted": Verdict.QUOTA_EXHAUSTED,
    "denied": Verdict.DENIED,
    "integration_failure": Verdict.INTEGRATION,
}
_CLASSES: Final = {f"{n}xx": frozenset(range(n * 100, n * 100 + 100)) for n in (2, 3, 4, 5)}


def json_key(value: Any) -> str:
    """The one spelling of a JSON value: `4`, `true`, `["a"]`; equal numbers are equal, 1 and true are not."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return msgspec.json.encode(value, order="deterministic").decode()


def expression(table: Table, key: str) -> Expression | None:
    return table.made(key, compile_expression)


def statuses(table: Table, key: str) -> frozenset[int] | None:
    """`[200, 404, "5xx"]`, or None when absent. 401 is refused: it always means denied (H3)."""
    if key not in table:
        table.raw(key)
        return None
    found: set[int] = set()
    for value in table.array(key):
        if isinstance(value, str) and value in _CLASSES:
            found |= _CLASSES[value] - {401}
        elif isinstance(value, int) and not isinstance(value, bool) and 200 <= value <= 599 and value != 401:
            found.add(value)
        else:
            why = "401 always means authorization_denied" if value == 401 else "not a status from 200 to 599"
            table.fail(key, f'{json_key(value)}: {why}; write [404, "5xx"]')
    if not found:
        table.fail(key, "lists no status")
    return frozenset(found)


def build_table(root: Table) -> StateTable:
    """Read `[state]` and `[states]`. Raises ContractError."""
    state = root.table("state")
    listed = _Listed(root, state is not None and bool(state.values.get("fold_case")))
    states = root.table("states")
    if states is not None:
        for name, verdict in LISTS.items():
            for n, entry in enumerate(states.array(name)):
                listed.add(states, name, n, verdict, entry)
        listed.read_never(states)
        states.finish()
    if state is None:
        return StateTable(**listed.parts())
    value = expression(state, "value")
    if listed.count and value is None:
        state.fail(None, 'lists of states need a value: value = "body.status"')
    table = StateTable(
        value=value,
        fold_case=state.flag("fold_case"),
        statuses=statuses(state, "statuses") or frozenset({200, 201, 202}),
        body_format=state.choice("format", ("json", "any", "none"), "json"),
        empty_body=state.choice("empty_body", ("unreadable", "absent"), "unreadable"),
        unreadable_2xx=state.choice(
            "unreadable_2xx", ("integration_failure", "transport_failure"), "integration_failure"
        ),
        unknown_limit=state.whole("unknown_limit", least=2, most=MAX_IN_A_ROW),
        **listed.parts(),
    )
    state.finish()
    return table


class _Listed:
    """Collects the listed values; the same value twice is an error that names both places."""

    def __init__(self, root: Table, fold: bool) -> None:
        self.root = root
        self.fold = fold
        self.texts: dict[str, Meaning] = {}
        self.others: dict[str, Meaning] = {}
        self.patterns: list[PatternState] = []
        self.absent: Meaning | None = None
        self.shown: list[str] = []
        self.final: list[str] = []
        self.never: dict[str, str] = {}
        self.count = 0

    def parts(self) -> dict[str, Any]:
        return {
            "texts": self.texts,
            "others": self.others,
            "patterns": tuple(self.patterns),
            "absent": self.absent,
            "shown": tuple(self.shown),
            "never": self.never,
        }

    def read_never(self, states: Table) -> None:
        """`[states.never]`: what the API cannot say, each with its evidence; whether it holds, `whole` sees."""
        table = states.table("never")
        if table is not None:
            found = {name: table.text(name) for name in NEVER}
            table.finish()
            self.never = {name: given for name, text in found.items() if (given := written(text)) is not None}

    def add(self, states: Table, name: str, index: int, verdict: Verdict, entry: Any) -> None:
        self.count += 1
        value, pattern, absent = entry, None, False
        meaning = Meaning(verdict=verdict, where=f"states.{name}", cancelling=name == "cancelling")
        if isinstance(entry, dict):
            inner = Table(states.document, (*states.path, name, index), entry)
            value, pattern, absent = inner.raw("value"), inner.text("pattern"), inner.flag("absent")
            meaning = msgspec.structs.replace(
                meaning,
                explanation=inner.text("explanation"),
                qualifiers=_qualifiers(inner, verdict),
                limit=_limit(inner, verdict),
            )
            inner.finish()
            if (value is not None) + (pattern is not None) + absent != 1:
                inner.fail(None, "give exactly one of value, pattern, absent = true")
        if pattern is not None:
            try:
                self.patterns.append(PatternState(glob(pattern, fold_case=self.fold), meaning))
            except ValueError as error:
                states.fail(name, f'"{pattern}": {error}')
        elif absent:
            if self.absent is not None:
                states.fail(name, f"absent is also in {self.absent.where}")
            self.absent = meaning
        else:
            self._value(states, name, value, meaning)

    def _value(self, states: Table, name: str, value: Any, meaning: Meaning) -> None:
        if not isinstance(value, str | bool | int | float | list):
            states.fail(name, "lists strings, numbers, booleans, arrays, or tables with value, pattern or absent")
        try:
            shown = value if isinstance(value, str) else json_key(value)
        except (TypeError, ValueError, OverflowError):
            states.fail(name, "lists a value that JSON does not have")
        place = self.texts if isinstance(value, str) else self.others
        key = value.casefold() if isinstance(value, str) and self.fold else shown
        if key in place:
            other = place[key].where
            twice = "listed twice" if other == meaning.where else f"also in {other}"
            states.fail(name, f"{json_key(value)} is {twice}; a state has one meaning, take one of the two out")
        place[key] = meaning
        self.shown.append(shown)


def _qualifiers(table: Table, verdict: Verdict) -> tuple[str, ...]:
    found = table.text("qualifier")
    if found is None:
        return ()
    if found not in QUALIFIERS:
        table.fail("qualifier", f'"{found}" is not one of {", ".join(QUALIFIERS)}')
    if not verdict.is_final:
        table.fail("qualifier", "qualifies an end, not a state that waits")
    return (found,)


def _limit(table: Table, verdict: Verdict) -> int | None:
    limit = table.whole("limit", least=2, most=MAX_IN_A_ROW)
    if limit is not None and verdict is not Verdict.WAITING:
        table.fail("limit", "belongs to a waiting state: so many in a row, then it stops as unknown")
    return limit


def build_rules(root: Table) -> tuple[Rule, ...]:
    """Read `[[rules]]` in order. Raises ContractError."""
    tables = root.tables("rules")
    if len(tables) > MAX_RULES:
        root.fail("rules", f"more than {MAX_RULES} rules")
    return tuple(_rule(table, n) for n, table in enumerate(tables, 1))


def _rule(table: Table, number: int) -> Rule:
    name = table.text("name", max_length=80)
    when, state_from = expression(table, "when"), expression(table, "state_from")
    explanation_from = expression(table, "explanation_from")
    codes, state = statuses(table, "status"), table.text("state", max_length=200)
    step = table.text("step")
    category = table.raw("category")
    if category is not None and category not in _CATEGORIES:
        table.choice("category", _CATEGORIES, "")
    label = f"rules[{number}]" + (f' "{name}"' if name else "")
    meaning = _meaning(table, category, label)
    table.finish()
    if when is None and codes is None and step is None:
        table.fail(None, "needs when, status or step; a rule without a condition hides everything after it")
    if state is not None and state_from is not None:
        table.fail("state_from", "give state or state_from, not both")
    if meaning is None and state is None and state_from is None:
        table.fail(None, "says nothing: give category, or a state for the table")
    read = [root for part in (when, state_from, explanation_from) if part is not None for root in part.roots]
    return Rule(
        label=label,
        statuses=codes,
        step=step,
        when=when,
        state=state,
        state_from=state_from,
        meaning=meaning,
        explanation_from=explanation_from,
        needs_body="body" in read or "item" in read,
        needs_item="item" in read,
        of_the_job="item" in read or "submitted" in read,
    )


def _meaning(table: Table, category: str | None, label: str) -> Meaning | None:
    detail_text = table.text("detail")
    explanation, seen = table.text("explanation"), table.raw("seen")
    if seen is not None and not isinstance(seen, bool):
        table.fail("seen", "must be true or false")
    if category is None:
        for key in ("qualifier", "limit", "detail", "explanation", "seen"):
            table.raw(key)
            if key in table:
                table.fail(key, "belongs to a category; this rule hands its state to the table")
        return None
    verdict = _CATEGORIES[category]
    detail: StopDetail | None = None
    if verdict is Verdict.INTEGRATION:
        try:
            detail = StopDetail(detail_text or ("not_found" if category == "not_found" else "unexpected_status"))
        except ValueError:
            table.fail("detail", f'"{detail_text}" is no detail (as unexpected_status, wrong_job, not_found)')
    elif detail_text is not None:
        table.fail("detail", 'belongs to category = "integration_failure"')
    return Meaning(
        verdict=verdict,
        where=label,
        cancelling=category == "cancelling",
        not_found=category == "not_found",
        detail=detail,
        explanation=explanation,
        qualifiers=_qualifiers(table, verdict),
        limit=_limit(table, verdict),
        seen=seen,
    )
