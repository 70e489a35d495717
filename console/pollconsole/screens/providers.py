"""Providers: which contracts there are, whose text it is, whether anybody has seen it, and what runs under another one.

Job: list, the one under the cursor whole, its text and the differences on a screen of its own. Must not know: how
contracts are read. That a text was read is put on record (G5); nothing else here changes anything.

Source: spec S8, G5, X7, H2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from pollconsole import bridge, times, words
from pollconsole.draw import Line, text
from pollconsole.screens.aside import ReadScreen
from pollconsole.screens.base import bound
from pollconsole.screens.listing import Column, ListingScreen, Row, pair
from pollconsole.state import State
from pollconsole.widgets import LinesView
from pollcore.facts import Escalation, Instant, Moment, Operation, PollconsoleError, StopReason

MAX_NAME: Final = 64
MAX_TEXT_LINE: Final = 500
SHORT: Final = 12
"""Characters of a digest that tell it from others."""
USES: Final = {"read_only": "read-only", "action": "an action: each request asks"}
FIRST_USE: Final = f"{StopReason.FIRST_USE.value}:"


class ProvidersScreen(ListingScreen):
    """Every name that can be submitted to."""

    title_words = "providers"
    searched = "the providers"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("PROVIDER", 26), Column("IS", 10), Column("FROM", 9), Column("OPEN", 6, right=True),
        Column("OTHER", 6, right=True), Column("TITLE"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[Any]] = [
        bound("open_row", "open", "its text, and how it differs from what open operations run under"),
        bound("open_question", "question", "open the card of its first use"),
    ]
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = (
        ("open_row", "text, differences"),
        ("open_question", "question"),
    )

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._under: dict[str, Counter[str]] = {}

    async def find(self, core: Any) -> list[Any]:
        return await bridge.contract_views(core)

    def _fill(self) -> None:
        self._under = running(self.state.board.operations.values())
        super()._fill()

    def row(self, each: bridge.ContractView) -> Row:
        under = self._under.get(each.name, Counter())
        count, other = under.total(), under.total() - under[each.digest or ""]
        word, role = standing(each, other)
        return Row(
            each.name,
            (
                text(each.name, "text", MAX_NAME),
                (word, role),
                (each.kind, "muted"),
                (f"{count:,}" if count else words.NOTHING, "text" if count else "faint"),
                (f"{other:,}" if other else words.NOTHING, "attention" if other else "faint"),
                text(each.error or each.title or "", "danger" if each.error else "muted", 200),
            ),
            tuple(provider_lines(each, under, self.state.now().wall, exact=self.state.exact)),
        )

    def nothing(self) -> tuple[Line, ...]:
        return ((("no contracts; put one into HOME/providers/, then: pollconsole provider check FILE", "muted"),),)

    def why_not(self, action: str) -> str | None:
        if action == "open" and self.chosen is None:
            return "no row here"
        if action == "question" and not self._asked():
            return "no question is open about this contract"
        return super().why_not(action)

    def _asked(self) -> list[Escalation]:
        """Questions about the first use of the contract under the cursor."""
        chosen = self.chosen
        cause = FIRST_USE + (chosen.digest or "") if chosen is not None else ""
        return [each for each in self.state.board.questions.values() if each.cause == cause]

    def action_open(self) -> None:
        chosen = self.chosen
        if chosen is not None:
            under = self._under.get(chosen.name, Counter())
            self.app.push_screen(ContractScreen(self.state, chosen.name, under))

    def action_question(self) -> None:
        """The card of the first use of the contract under the cursor, if it waits."""
        asked = self._asked()
        if not asked:
            self.state.say(self.why_not("question") or "", "muted")
        else:
            opener: Any = self.app.opens  # type: ignore[attr-defined]
            opener(*(("group", asked[0].cause) if len(asked) > 1 else ("card", asked[0].operation_id)))
        self.tick(self.state.now(), False)


class ContractScreen(ReadScreen):
    """One contract: what is known of it, differences from what runs, the text. Read to its end it is seen (G5)."""

    title_words = "contract"
    searched = "the contract"
    indent = 4
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = (("read_anew", "read anew"),)

    def __init__(self, state: State, name: str, under: Counter[str]) -> None:
        """*under*: open operations of this provider by the digest of the contract that they run under."""
        super().__init__(state)
        self.name_ = name
        self._under = under
        self._unseen: str | None = None
        """The digest of a text that nobody has seen, until its end was on the screen."""

    async def lines(self) -> list[Line]:
        name, under = self.name_, self._under

        async def body(core: Any) -> bridge.ContractText:
            return await bridge.contract_text(core, name, [digest for digest, _ in under.most_common()])

        found = await self.state.link.ask(body)
        lines = contract_lines(found, under, self.state.now().wall, exact=self.state.exact)
        self._unseen = str(found.view.digest) if found.view.unseen and not self.state.read_only else None
        return lines

    def note(self) -> Line:
        return ((" read it to its end: then it counts as seen", "faint"),) if self._unseen is not None else ()

    def tick(self, now: Moment, changed: bool) -> None:
        super().tick(now, changed)
        digest, view = self._unseen, self.query_one(LinesView)
        if digest is not None and self.is_current and view.shows_end:
            self._unseen = None
            self.run_worker(self._seen(digest), group="seen")

    async def _seen(self, digest: str) -> None:
        """What the lines say is what was true before: the mark goes with the next look."""

        async def body(core: Any) -> None:
            await bridge.contract_seen(core, digest)

        try:
            await self.state.link.ask(body, keep=True)
        except PollconsoleError as error:
            self.state.say(f"not recorded as seen: {error}", "attention")
        else:
            self.state.say("recorded: you have seen this contract", "muted")


def running(operations: Iterable[Operation]) -> dict[str, Counter[str]]:
    """By provider: how many live operations run under which contract."""
    found: dict[str, Counter[str]] = {}
    for operation in operations:
        if not operation.status.is_end:
            found.setdefault(operation.submitted.provider, Counter())[operation.contract_digest] += 1
    return found


def standing(view: bridge.ContractView, other: int) -> tuple[str, str]:
    """Word and role: what an operator must know first."""
    if view.error is not None:
        return "unusable", "danger"
    if view.unseen:
        return "new", "attention"
    if other:
        return "changed", "attention"
    return "usable", "good"


def provider_lines(view: bridge.ContractView, under: Mapping[str, int], now: Instant, *, exact: bool) -> list[Line]:
    """One provider whole; what cannot be used says why."""
    head: Line = (text(view.name, "title", MAX_NAME),)
    if view.title:
        head = (*head, ("  ", "text"), text(view.title, "muted", 100))
    lines: list[Line] = [head]
    if view.error is not None:
        lines.append(pair("unusable", view.error, "danger"))
    if view.unseen:
        lines.append(
            pair("new", "not seen by an operator: open its text before you grant anything under it", "attention")
        )
    elif view.seen_at is not None:
        lines.append(pair("seen", f"{times.when(view.seen_at, now, exact=exact)} by {view.seen_by}"))
    lines.append(pair("from", view.source))
    if view.shadows:
        lines.append(pair("hides", "the shipped contract of this name", "attention"))
    if view.contract != view.name:
        lines.append(pair("contract", view.contract))
    other = sum(count for digest, count in under.items() if digest != view.digest)
    if other:
        what = "1 open operation runs" if other == 1 else f"{other:,} open operations run"
        others = ", ".join(digest[:SHORT] for digest in under if digest != view.digest)
        lines.append(pair("changed", f"{what} under another text, or other settings, of it: {others}", "attention"))
    lines.append(pair("first use", *_first_use(view, now, exact=exact)))
    tried = view.tested_live or "not that anybody wrote down"
    lines.append(pair("tried live", tried, "text" if view.tested_live else "muted"))
    if view.base_url:
        lines.append(pair("asked at", view.base_url))
    if view.allow_http:
        lines.append(pair("warning", "plain http is allowed: whoever is on the way reads the credential", "attention"))
    if view.digest:
        lines.append(pair("digest", view.digest, "muted"))
        lines.append(pair("", "of text and settings, as on cards (Contract:)", "faint"))
    return lines


def _first_use(view: bridge.ContractView, now: Instant, *, exact: bool) -> tuple[str, str]:
    """Whether asking is harmless, and who says so: the contract with its evidence, or an operator."""
    if view.use is not None:
        when = times.when(view.decided_at, now, exact=exact, never="at an unknown time")
        return f"{USES.get(view.use, view.use)}, decided {when} by {view.decided_by}", "text"
    if view.observation is not None:
        evidence = f": {view.evidence}" if view.evidence else ""
        return f"the contract says {USES.get(view.observation, view.observation)}{evidence}", "text"
    return "an operator is asked at its first use", "attention"


def contract_lines(found: bridge.ContractText, under: Mapping[str, int], now: Instant, *, exact: bool) -> list[Line]:
    """What is known, then each difference from what open operations run under, then the text, all made harmless."""
    lines = provider_lines(found.view, under, now, exact=exact)
    for digest, changed in found.differences:
        if digest == found.view.digest:
            continue
        count = under.get(digest, 0)
        lines += [
            (),
            ((f"{count:,} open under {digest[:SHORT]}: what was (-) and what the file says now (+)", "title"),),
        ]
        if not changed:
            lines.append((("  that text is not kept any more, or differs in no line", "muted"),))
        lines += [_changed(line) for line in changed]
    lines += [(), (("the text", "title"),)]
    lines += [
        (text(line, "faint" if line.lstrip().startswith("#") else "text", MAX_TEXT_LINE),)
        for line in _split(found.text)
    ]
    return lines


def _split(whole: str) -> Sequence[str]:
    return [line.replace("\t", "    ") for line in whole.split("\n")]


def _changed(line: str) -> Line:
    role = {"+": "good", "-": "danger", "@": "faint"}.get(line[:1], "muted")
    return (("  ", "text"), text(line.replace("\t", "    "), role, MAX_TEXT_LINE))
