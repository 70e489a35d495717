"""The card of a question that belongs to a credential and to no operation: a looser mode (G2).

Job: as every card; read by the question's own id, carried out by the one call for such questions. Must not know: what a
choice means. What it belongs to is looked at on the screen of credentials, from which it is opened.

Source: spec G2, G3, G4; a change of the credential since the card was drawn is refused as stale.
"""

from __future__ import annotations

from typing import Any

from pollconsole.approve import approve_question
from pollconsole.core_thread import TooSlow
from pollconsole.draw import text
from pollconsole.guard_facts import Evidence, Inspect
from pollconsole.screens.card import CardScreen, Shown
from pollconsole.screens.deciding import not_done
from pollcore.facts import Choice, PollconsoleError, Stale


class QuestionScreen(CardScreen):
    """One card. `operation_id` is the question's own id here: nothing else tells it from others."""

    async def _read(self) -> None:
        escalation_id = self.operation_id

        async def body(core: Any) -> Any:
            return await core.actions.card_of(escalation_id)

        try:
            shown = await self.state.link.ask(body)
        except PollconsoleError as error:
            self.show_nothing((text(str(error), "attention"),))
            return
        self._draw(shown)

    def _operation(self, shown: Shown) -> None:
        """It has none, neither here nor in what it was drawn from."""

    def _moved(self, shown: Shown) -> bool:
        """Decided elsewhere. A credential that changed is no row: the core refuses such a card."""
        board = self.state.board
        open_ones = {each.escalation_id for each in board.other_questions}
        return board.latest.change > 0 and shown.question.escalation_id not in open_ones

    def _follow_queue(self) -> None:
        """It has no previous and no next card: its row belongs to no operation."""

    async def _carry_out(self, shown: Shown, choice: Choice, evidence: Evidence) -> None:
        name = shown.question.cause.partition(":")[2] or self.operation_id
        try:
            await approve_question(self.state.link, shown, evidence, self.note.text or None)
        except Stale as error:
            self._again(f"refused, nothing was done: {error}")
        except TooSlow as error:
            self._again(f"{error}; 'pollconsole credential list' says whether it was done")
        except PollconsoleError as error:
            self._again(not_done(error))
        else:
            self.forget_note()
            self.state.say(f"{name}: {choice.label}", "good")
            self._busy = False
            if self.is_current:
                self.app.pop_screen()
        finally:
            self._busy = False

    def inspected(self, chosen: Inspect) -> None:  # noqa: ARG002
        """To the credential, which has the record."""
        app: Any = self.app
        app.pop_screen()
        app.action_beside("credentials")
