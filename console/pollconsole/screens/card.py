"""The card: one question, drawn from the very object that will be executed, decided by digit and letter alone.

Job: draw the card, show the guard, hand its proof to `approve`, say what came of it. Must not know: what a choice means
or how it is carried out. Nothing here takes the focus; leaving decides nothing; every key but the guard's is counted
and ignored.

Source: spec E3, E4, E7, G3, G4, G8.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from textual.binding import Binding, BindingType

from pollconsole import times
from pollconsole.approve import approve
from pollconsole.causes import APPROVALS
from pollconsole.core_thread import TooSlow
from pollconsole.draw import Line, text
from pollconsole.guard_facts import Choice as Key
from pollconsole.guard_facts import Evidence, Inspect, Way
from pollconsole.safe import safe
from pollconsole.screens.card_lines import Drawable, body_lines, confirm_lines, outcome_words
from pollconsole.screens.cause_words import row_id
from pollconsole.screens.contract_card import ContractCard, is_about_a_contract
from pollconsole.screens.deciding import CHANGED, CHOOSE, MAX_LABEL, not_done
from pollconsole.screens.expiring import alone_line, clock_line, does_expire, is_over, over_lines
from pollconsole.screens.note import Note
from pollconsole.screens.queue import cards_of
from pollconsole.screens.standing import Drawn, Standing
from pollconsole.state import State as Shared
from pollconsole.widgets import LinesView, OneLine
from pollcore.facts import Choice, ChoiceKind, Escalation, Moment, Operation, PollconsoleError, Stale, StopReason


class Shown(Drawn, Protocol):
    """What `actions.card` gives."""

    @property
    def card(self) -> Drawable: ...
    @property
    def digest(self) -> str: ...


class CardScreen(ContractCard):
    """One card. *ids*: the queue that it was opened from, for the keys of the previous and the next card."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "other(-1)", "previous card"),
        Binding("right_square_bracket", "other(1)", "next card"),
        Binding("r", "anew", "draw anew", tooltip="once time has changed it, or it is over: what is asked now"),
    ]
    more_keys = ContractCard.more_keys | {"r"}

    def __init__(self, state: Shared, operation_id: str, ids: Sequence[str] = ()) -> None:
        super().__init__(state)
        self.operation_id = operation_id
        self.ids = tuple(ids) or (operation_id,)
        self.shown: Shown | None = None
        self._over = False
        """The question is over; the card stands as it was, locked for good (G8)."""
        self._seen = ""
        """The question whose card was told to be seen."""
        self._standing = Standing(state.board, operation_id)

    def on_mount(self) -> None:
        self.load()

    def on_resize(self) -> None:
        if self.shown is not None and not self._busy:
            self._draw(self.shown)

    # --- the card -----------------------------------------------------------------------------------------------------

    def load(self, notice: Line = ()) -> None:
        self.shown, self._over = None, False
        if self._standing.operation_id != self.operation_id:
            self._standing = Standing(self.state.board, self.operation_id)
        self.show_reading(notice)
        self.run_worker(self._read(), exclusive=True)

    async def _read(self) -> None:
        operation_id = self.operation_id
        try:
            shown = await self.ask_anew()
        except PollconsoleError as error:
            if operation_id == self.operation_id:
                self.show_nothing((text(str(error), "attention"),))
            return
        if operation_id == self.operation_id:
            self._draw(shown)

    async def ask_anew(self) -> Shown:
        operation_id = self.operation_id
        return await self.state.link.ask(lambda core: core.actions.card(operation_id))

    def guard_again(self) -> None:
        shown = self.shown
        if shown is not None and does_expire(shown.question) and self._standing.is_gone(shown, self.state.now().wall):
            self._end(shown)
        elif shown is None or self._moved(shown):
            self.load(CHANGED)
        else:
            self._draw(shown)

    def _draw(self, shown: Shown) -> None:
        """Draw *shown* and guard exactly these lines."""
        self.shown = shown
        self.recall_note(shown.question.escalation_id)
        self.show_lines(body_lines(shown.card, self.text_width))
        self.query_one("#clock", OneLine).display = does_expire(shown.question)
        self.tick(self.state.now(), True)
        if self._over or self.shown is not shown:
            return  # it was over before it could be drawn
        pairs = list(zip(shown.card.choices, shown.card.options, strict=True))
        keys = tuple(self._key(choice, option.label) for choice, option in pairs if choice.unavailable is None)
        width = self.text_width
        confirms = {choice.key: confirm_lines(choice, option, shown.card, width) for choice, option in pairs}
        self.guard(shown.digest, keys, confirms)

    @staticmethod
    def _key(choice: Choice, label: str) -> Key:
        way = Way.TWO_STEP
        if not choice.decides:
            way = Way.INSPECT
        elif choice.kind is ChoiceKind.DENY:
            way = Way.ONE_KEY
        return Key(choice.key, safe(label, MAX_LABEL), way)

    def tick(self, now: Moment, changed: bool) -> None:
        """The head counts on; a card whose question or version moved is drawn anew (E7)."""
        if changed:
            self._follow_queue()
        place = f" {self.ids.index(self.operation_id) + 1} of {len(self.ids)} " if len(self.ids) > 1 else " "
        self.show_head(((" card", "title"), (place, "muted")), now)
        self._draw_keys()
        if self.shown is None or self._busy:
            return
        if does_expire(self.shown.question):
            self._count_down(self.shown, now)
        elif changed and not self.note.writing and self._moved(self.shown):
            self.load(CHANGED)
        else:
            operation = self._operation(self.shown)
            self.say_alone(alone_line(self.shown.question, operation, times.together(now).wall))
        if self.shown is not None and not self._over:
            self.look_at_age(self.shown)

    def _operation(self, shown: Shown) -> Operation | None:
        """Its newest record, else the one that it was drawn from."""
        return self.state.board.operations.get(self.operation_id, shown.operation)

    def _draw_keys(self) -> None:
        more = (("[ ]", "other"),) if len(self.ids) > 1 else ()
        if self._over:
            anew = (("r", "the new question"),) if self._standing.is_asked_anew(self.shown) else ()
            self.show_keys(*anew, ("j k", "scroll"), *more, ("Esc", "leave"))
            return
        contract = (("t", "contract"),) if self.contract_of is not None else ()
        choose = (("r", "draws it anew"),) if self.aged else ((CHOOSE, "choose, then the letter shown"),)
        self.show_keys(*choose, *contract, ("j k", "scroll"), *more, ("w", "note"), ("Esc", "leave"))

    # --- the time of a question (G7) ----------------------------------------------------------------------------------

    def _count_down(self, shown: Shown, now: Moment) -> None:
        """The countdown, beside what is guarded; at its end the card is over, and no other one opens (G8)."""
        self.query_one("#clock", OneLine).show(clock_line(self._standing.last_known(shown), times.together(now).wall))
        if self._over:
            self._say_over(shown)
        elif self._standing.is_gone(shown, self.state.now().wall):
            self._end(shown)
        elif self._moved(shown):
            self.load(CHANGED)

    def _end(self, shown: Shown) -> None:
        """Lock the card for good: its question is not asked any more."""
        self._over = True
        if self.note.writing:
            self.note.end(keep=True)
            self.state.keep_note(self._noted, self.note.text)
            self._draw_note()
        self.guarded.guard_close()
        self._view = None
        self.query_one("#confirm").display = False
        self._say_over(shown)
        self._draw_keys()

    def _say_over(self, shown: Shown) -> None:
        expired = is_over(self._standing.last_known(shown), self.state.now().wall)
        state, prompt = over_lines(expired=expired, asked_anew=self._standing.is_asked_anew(self.shown), key="r")
        self.query_one("#guard", OneLine).show(state)
        self.query_one("#prompt", OneLine).show(prompt)

    def action_anew(self) -> None:
        """The new question, or the card that time has changed, by its own key (G8)."""
        if (self._over and self._standing.is_asked_anew(self.shown)) or (self.aged and not self._busy):
            self.query_one("#card", LinesView).scroll_home(animate=False)
            self.load()

    def painted(self) -> None:
        """Tell once that the card was before somebody's eyes: a handover says so, and its expiry is another one then
        (G7)."""
        shown = self.shown
        if shown is None or self.state.read_only or self._seen == shown.question.escalation_id:
            return
        self._seen = shown.question.escalation_id
        if shown.question.operation_id:
            self.run_worker(self._tell_seen(shown.question))

    async def _tell_seen(self, question: Escalation) -> None:
        async def body(core: Any) -> bool:
            return bool(await core.actions.seen(question.operation_id, question.escalation_id))

        with contextlib.suppress(PollconsoleError):  # a record that says less, and nothing that anybody relies on
            await self.state.link.ask(body, keep=True)

    def _follow_queue(self) -> None:
        """`card 3 of 29`: of those that wait now, as the queue and the strip count them. The card itself stays."""
        question = self.shown.question if self.shown is not None else None
        if len(self.ids) > 1 and question is not None:
            cards = cards_of(self.state.board, self.state.now().wall, approvals=question.reason in APPROVALS)
            ids = tuple(row_id(each) for each in cards)
            if self.operation_id in ids:
                self.ids = ids

    def _moved(self, shown: Shown) -> bool:
        return self._standing.has_moved(shown)

    # --- decisions ----------------------------------------------------------------------------------------------------

    async def decided(self, evidence: Evidence) -> None:
        """The guard proved two keys. Carry the choice out; whatever was refused leaves the question waiting."""
        shown = self.shown
        if shown is None or self._busy:
            return
        self._busy = True
        self.note.end(keep=False)  # what was shown is what is recorded
        self.guarded.guard_close()
        self.say_beside("carrying it out ...")
        choice = next(each for each in shown.card.choices if each.key == evidence.choice)
        self.run_worker(self._carry_out(shown, choice, evidence))

    async def _carry_out(self, shown: Shown, choice: Choice, evidence: Evidence) -> None:
        try:
            after = await approve(self.state.link, shown, evidence, self.note.text or None)
        except Stale as error:
            self._too_late(shown, f"refused, nothing was done: {error}")
        except TooSlow as error:
            self._again(f"{error}; whether it was done is in the story")
        except PollconsoleError as error:
            self._again(not_done(error))
        else:
            self.forget_note()
            said = outcome_words(shown.operation, after, choice)
            self.state.did(after.operation_id, said)
            self.state.say(f"{after.operation_id}: {said}", "good")
            self._busy = False
            if self.is_current:
                self.app.pop_screen()
        finally:
            self._busy = False

    def _too_late(self, shown: Shown, why: str) -> None:
        """Refused as stale. A question that was over stays on the screen: another one has its own key."""
        if not does_expire(shown.question):
            self._again(why)
            return
        self._busy = False
        self.state.say(why if self.operation_id in why.split() else f"{self.operation_id}: {why}", "attention")
        self._end(shown)
        self.refused(why)

    def _again(self, why: str) -> None:
        self._busy = False
        self.state.say(why if self.operation_id in why.split() else f"{self.operation_id}: {why}", "attention")
        self.load()
        self.refused(why)

    def inspected(self, chosen: Inspect) -> None:  # noqa: ARG002
        shown = self.shown
        if shown is not None and shown.question.reason is StopReason.FIRST_USE:
            self.action_contract()
            return
        opener: Any = self.app.opens  # type: ignore[attr-defined]
        opener("inspect", self.operation_id)

    @property
    def contract_of(self) -> str | None:
        """Of a contract that is used for the first time, or changed."""
        shown = self.shown
        if shown is None:
            return None
        about = shown.question.reason is StopReason.FIRST_USE or is_about_a_contract(shown.card.choices)
        operation = shown.operation if about else None
        return None if operation is None else operation.submitted.provider

    @property
    def stands_for_good(self) -> bool:
        return self._over

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_other(self, by: int) -> None:
        """The next card needs its own key to appear (G8)."""
        waiting = [each for each in self.ids if each in self.state.board.questions or each == self.operation_id]
        at = waiting.index(self.operation_id) + by
        if 0 <= at < len(waiting) and not self._busy:
            self.operation_id = waiting[at]
            self.note = Note()
            self.query_one("#card", LinesView).scroll_home(animate=False)
            self.load()
