"""The card: one question, drawn from the very object that will be executed, decided by digit and letter alone.

Job: draw the card, show the guard, hand its proof to `approve`, say what came of it. Must not know: what a choice
means or
how it is carried out. Nothing here takes the focus; leaving decides nothing; every key but the guard's is counted and
ignored.

Source: spec E3, E4, E7, G3, G4, G8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from textual.binding import Binding, BindingType

from pollconsole.approve import approve
from pollconsole.board import APPROVALS
from pollconsole.core_thread import TooSlow
from pollconsole.draw import Line, text
from pollconsole.guard_facts import Choice as Key
from pollconsole.guard_facts import Evidence, Inspect, Way
from pollconsole.safe import safe
from pollconsole.screens.card_lines import Drawable, body_lines, confirm_lines, outcome_words
from pollconsole.screens.deciding import MAX_LABEL, DecidingScreen
from pollconsole.screens.note import Note
from pollconsole.screens.queue import cards_of, row_id
from pollconsole.state import State as Shared
from pollconsole.widgets import LinesView
from pollcore.facts import Choice, ChoiceKind, Escalation, Moment, Operation, PollconsoleError, Stale


class Shown(Protocol):
    """What `actions.card` gives."""

    @property
    def card(self) -> Drawable: ...
    @property
    def question(self) -> Escalation: ...
    @property
    def operation(self) -> Operation | None: ...
    @property
    def digest(self) -> str: ...


class CardScreen(DecidingScreen):
    """One card. *ids*: the queue that it was opened from, for the keys of the previous and the next card."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "other(-1)", "previous card"),
        Binding("right_square_bracket", "other(1)", "next card"),
    ]

    def __init__(self, state: Shared, operation_id: str, ids: Sequence[str] = ()) -> None:
        super().__init__(state)
        self.operation_id = operation_id
        self.ids = tuple(ids) or (operation_id,)
        self.shown: Shown | None = None

    def on_mount(self) -> None:
        self._load()

    def on_resize(self) -> None:
        if self.shown is not None and not self._busy:
            self._draw(self.shown)

    # --- the card -----------------------------------------------------------------------------------------------------

    def _load(self, notice: Line = ()) -> None:
        self.shown = None
        self.show_reading(notice)
        self.run_worker(self._read(), exclusive=True)

    async def _read(self) -> None:
        operation_id = self.operation_id
        try:
            shown = await self.state.link.ask(lambda core: core.actions.card(operation_id))
        except PollconsoleError as error:
            if operation_id == self.operation_id:
                self.show_nothing((text(str(error), "attention"),))
            return
        if operation_id == self.operation_id:
            self._draw(shown)

    def guard_again(self) -> None:
        shown = self.shown
        if shown is None or self._moved(shown):
            self._load(((" the operation changed: the card was drawn anew", "attention"),))
        else:
            self._draw(shown)

    def _draw(self, shown: Shown) -> None:
        """Draw *shown* and guard exactly these lines."""
        self.shown = shown
        self.show_lines(body_lines(shown.card, self.text_width))
        self.tick(self.state.now(), True)
        pairs = list(zip(shown.card.choices, shown.card.options, strict=True))
        keys = tuple(self._key(choice, option.label) for choice, option in pairs if choice.unavailable is None)
        self.guard(shown.digest, keys, {choice.key: confirm_lines(choice, option) for choice, option in pairs})

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
        more = (("[ ]", "other"),) if len(self.ids) > 1 else ()
        keys = (("1-9", "choose, then the letter shown"), ("j k", "scroll"), *more, ("w", "note"))
        self.show_keys(*keys, ("Esc", "leave"))
        steady = self._busy or self.note.writing
        if changed and self.shown is not None and not steady and self._moved(self.shown):
            self._load(((" the operation changed: the card was drawn anew", "attention"),))

    def _follow_queue(self) -> None:
        """`card 3 of 29`: of those that wait now, as the queue and the strip count them. The card itself stays."""
        question = self.shown.question if self.shown is not None else None
        if len(self.ids) > 1 and question is not None:
            cards = cards_of(self.state.board, approvals=question.reason in APPROVALS)
            ids = tuple(row_id(each) for each in cards)
            if self.operation_id in ids:
                self.ids = ids

    def _moved(self, shown: Shown) -> bool:
        board = self.state.board
        question = board.questions.get(self.operation_id)
        operation = board.operations.get(self.operation_id)
        if board.latest.change and (question is None or question.escalation_id != shown.question.escalation_id):
            return True
        drawn = shown.operation
        return operation is not None and drawn is not None and operation.version > drawn.version

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
            self._again(f"refused, nothing was done: {error}")
        except TooSlow as error:
            self._again(f"{error}; whether it was done is in the story")
        except PollconsoleError as error:
            self._again(f"refused: {error}")
        else:
            said = outcome_words(shown.operation, after, choice)
            self.state.did(after.operation_id, said)
            self.state.say(f"{after.operation_id}: {said}", "good")
            self._busy = False
            if self.is_current:
                self.app.pop_screen()
        finally:
            self._busy = False

    def _again(self, why: str) -> None:
        self._busy = False
        self.state.say(why if self.operation_id in why.split() else f"{self.operation_id}: {why}", "attention")
        self._load()
        self.refused(why)

    def inspected(self, chosen: Inspect) -> None:  # noqa: ARG002
        opener: Any = self.app.opens  # type: ignore[attr-defined]
        opener("inspect", self.operation_id)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_other(self, by: int) -> None:
        """The next card needs its own key to appear (G8)."""
        waiting = [each for each in self.ids if each in self.state.board.questions or each == self.operation_id]
        at = waiting.index(self.operation_id) + by
        if 0 <= at < len(waiting) and not self._busy:
            self.operation_id = waiting[at]
            self.note = Note()
            self.query_one("#card", LinesView).scroll_home(animate=False)
            self._load()
