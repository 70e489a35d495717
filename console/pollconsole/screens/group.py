"""The card of one cause: one answer for the list of operations that was frozen when it was drawn.

Job: draw the group's card, show the guard, hand its proof to `approve_group`, say what came of each operation. Must not
know: what a choice means or how it is carried out. The list does not move under the operator: what joined or moved
since is counted beside the title, and `r` draws the card anew.

Source: spec E10, E7, G3, G4, G8.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Protocol

from textual.binding import Binding, BindingType

from pollconsole import times
from pollconsole.approve import AnyOutcome, approve_group
from pollconsole.causes import wait_ends_at
from pollconsole.core_thread import TooSlow
from pollconsole.draw import Line, text
from pollconsole.guard_facts import Choice as Key
from pollconsole.guard_facts import Evidence, Inspect, Way
from pollconsole.safe import safe
from pollconsole.screens.contract_card import ContractCard, is_about_a_contract
from pollconsole.screens.deciding import CHOOSE, MAX_LABEL, not_done
from pollconsole.screens.expiring import group_alone_line
from pollconsole.screens.group_lines import Drawable, GroupOption, body_lines, confirm_lines, outcome_words
from pollconsole.screens.members import MembersScreen, OutcomeScreen
from pollconsole.state import MAX_DONE
from pollconsole.state import State as Shared
from pollcore.facts import Instant, Moment, PollconsoleError, Stale, StopReason

MAX_SEEN: Final = 100
"""Questions of one card that are told to be seen; a handover tells of the whole cause by one."""
AGE_TICKS: Final = 20
"""Between two looks whether time has changed what the card of many offers: five seconds."""
READ_LIMIT_S: Final = 60.0
"""How long drawing thousands of operations may take."""


class ShownGroup(Protocol):
    """What `actions.group` gives."""

    @property
    def card(self) -> Drawable: ...
    @property
    def cause(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def left_out(self) -> tuple[tuple[str, str], ...]: ...


class GroupScreen(ContractCard):
    """The card of *cause*."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "members", "the list"),
        Binding("r", "again", "draw anew"),
    ]
    more_keys = ContractCard.more_keys | {"l", "r", "enter"}
    """Enter does nothing on the card; over it, in the list, it opens a record."""

    def __init__(self, state: Shared, cause: str) -> None:
        super().__init__(state)
        self.cause = cause
        self.shown: ShownGroup | None = None
        self._since: Line = ()
        self._reasons: frozenset[str] = frozenset()
        self._ends: Instant | None = None
        """When the next of their waits ends; None: all have ended."""
        self._seen = ""
        """The card that was told to be seen, by its digest."""

    def on_mount(self) -> None:
        self.load()

    def on_resize(self) -> None:
        if self.shown is not None and not self._busy:
            self._draw(self.shown)

    # --- the card -----------------------------------------------------------------------------------------------------

    def load(self, notice: Line = ()) -> None:
        self.shown, self._since, self._reasons = None, (), frozenset()
        self.show_reading(notice)
        self.tick(self.state.now(), False)
        self.run_worker(self._read(), exclusive=True)

    async def _read(self) -> None:
        try:
            shown = await self.ask_anew()
        except PollconsoleError as error:
            self.show_nothing((text(str(error), "attention"),))
            return
        self._draw(shown)

    async def ask_anew(self) -> ShownGroup:
        cause = self.cause
        return await self.state.link.ask(lambda core: core.actions.group(cause), limit_s=READ_LIMIT_S)

    def guard_again(self) -> None:
        if self.shown is None:
            self.load()
        else:
            self._draw(self.shown)

    def _draw(self, shown: ShownGroup) -> None:
        """Draw *shown* and guard exactly these lines."""
        self.shown = shown
        card = shown.card
        self.recall_note(f"{shown.cause} {card.members[0].escalation_id}" if card.members else shown.cause)
        self.show_lines(body_lines(card, shown.left_out, self.text_width))
        self.tick(self.state.now(), True)
        keys = tuple(self._key(option) for option in card.choices if option.unavailable is None)
        confirms = {option.key: confirm_lines(option, card.count) for option in card.choices}
        self.guard(shown.digest, keys, confirms)

    def painted(self) -> None:
        """Tell once that the card of these questions was before somebody's eyes, as the single card does."""
        shown = self.shown
        if shown is None or self.state.read_only or self._seen == shown.digest:
            return
        self._seen = shown.digest
        self.run_worker(self._tell_seen(shown.card.members[:MAX_SEEN]))

    async def _tell_seen(self, members: Sequence[Any]) -> None:
        async def body(core: Any) -> None:
            for each in members:
                await core.actions.seen(each.operation_id, each.escalation_id)

        with contextlib.suppress(PollconsoleError):  # a record that says less, and nothing that anybody relies on
            await self.state.link.ask(body, keep=True)

    @staticmethod
    def _key(option: GroupOption) -> Key:
        if not option.decides:
            return Key(option.key, "look at the list", Way.INSPECT)
        count = f" for {option.count:,}"
        return Key(option.key, safe(option.label, MAX_LABEL - len(count)) + count)

    def tick(self, now: Moment, changed: bool) -> None:
        """The head counts on and says what moved since the list was frozen; the card itself stands still."""
        if changed and self.shown is not None and not self._busy:
            self._since = self._moved_since(self.shown)
        self.show_head(((" card of one cause ", "title"), *self._since), now)
        if self.shown is not None:
            self.look_at_age(self.shown, AGE_TICKS)
            self._draw_alone(self.shown, now, changed)
        contract = (("t", "contract"),) if self.contract_of is not None else ()
        choose = "choose" if contract else "choose, then the letter"  # 80 cells hold no more
        keys = ((CHOOSE, choose), ("l", "list"), *contract, ("r", "anew"), ("j k", "scroll"))
        self.show_keys(*keys, ("w", "note"), ("Esc", "leave"))

    def _draw_alone(self, shown: ShownGroup, now: Moment, changed: bool) -> None:
        """What happens if nobody decides, counted beside what is guarded. Ends are looked for when rows changed."""
        if changed or not self._reasons:
            self._reasons = frozenset(each.reason for each in shown.card.members)
            rows = map(self.state.board.operations.get, (each.operation_id for each in shown.card.members))
            ends = [end for row in rows if row is not None and (end := wait_ends_at(row)) is not None]
            self._ends = min((end for end in ends if end > now.wall), default=max(ends, default=None))
        self.say_alone(group_alone_line(self._reasons, self._ends, times.together(now).wall))

    def _moved_since(self, shown: ShownGroup) -> Line:
        board = self.state.board
        members = {each.operation_id: each for each in shown.card.members}
        moved = 0
        for name, each in members.items():
            question, operation = board.questions.get(name), board.operations.get(name)
            newer = operation is not None and operation.version > each.version
            moved += newer or question is None or question.escalation_id != each.escalation_id
        joined = sum(q.cause == shown.cause and q.operation_id not in members for q in board.questions.values())
        said = [f"{moved:,} moved" if moved else "", f"{joined:,} joined" if joined else ""]
        words = ", ".join(each for each in said if each)
        return ((f" {words} since ", "attention"),) if words else ()

    # --- decisions ----------------------------------------------------------------------------------------------------

    async def decided(self, evidence: Evidence) -> None:
        """The guard proved two keys: the one answer goes out to the frozen list."""
        shown = self.shown
        if shown is None or self._busy:
            return
        self._busy = True
        self.note.end(keep=False)  # what was shown is what is recorded
        self.guarded.guard_close()
        option = next(each for each in shown.card.choices if each.key == evidence.choice)
        self.say_beside(f"carrying it out on {option.count:,} operations ...")
        self.run_worker(self._carry_out(shown, evidence))

    async def _carry_out(self, shown: ShownGroup, evidence: Evidence) -> None:
        try:
            outcome = await approve_group(self.state.link, shown, evidence, self.note.text or None)
        except Stale as error:
            self._again(f"refused, nothing was done: {error}")
        except TooSlow as error:
            self._again(f"{error}; it goes on, and what was done is in the stories")
        except PollconsoleError as error:
            self._again(not_done(error))
        else:
            self._tell(outcome)
        finally:
            self._busy = False

    def _tell(self, outcome: AnyOutcome) -> None:
        self._busy = False
        self.forget_note()
        words = outcome_words(outcome)
        self.state.say(words, "attention" if outcome.refused else "good")
        for name in outcome.done[:MAX_DONE]:
            self.state.did(name, f"{outcome.label}, with {len(outcome.done) - 1:,} others")
        if self.is_current:
            app = self.app
            app.pop_screen()
            app.push_screen(OutcomeScreen(self.state, outcome))

    def _again(self, why: str) -> None:
        self._busy = False
        self.state.say(why, "attention")
        self.load()
        self.refused(why)

    def inspected(self, chosen: Inspect) -> None:  # noqa: ARG002
        self.action_members()

    @property
    def contract_of(self) -> str | None:
        """Of a contract that is used for the first time, or changed."""
        shown = self.shown
        if shown is None or not shown.card.members:
            return None
        about = self.cause.startswith(f"{StopReason.FIRST_USE.value}:") or is_about_a_contract(shown.card.choices)
        row = self.state.board.operations.get(shown.card.members[0].operation_id)
        return row.submitted.provider if about and row is not None else None

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_members(self) -> None:
        """The frozen list, over the card; the card is locked again when it comes back."""
        if self.shown is not None and not self._busy:
            app: Any = self.app
            app.push_screen(MembersScreen(self.state, self.shown.card))

    def action_again(self) -> None:
        if not self._busy:
            self.load()
