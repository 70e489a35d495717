"""An app that opens the screens of one operation: its detail, its card, the card of its cause, the queue.

Job: from a name and an id to the screen on top, and the question that is asked for first where none is open. Must not
know: what stands on a screen, what a card decides. Their modules are imported when one is opened.

Source: spec V4, G3, G5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.binding import BindingType

from pollconsole.palette_app import PaletteApp
from pollconsole.screens.base import ConsoleScreen, bound
from pollconsole.screens.live import LiveScreen
from pollcore.facts import PollconsoleError


class OpeningApp(PaletteApp):
    """Screens call `opens`; the keys of the queue hold on every view that may lie below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("decisions", "queue(False)"),
        bound("approvals", "queue(True)"),
    ]

    def opens(self, what: str, operation_id: str, ids: Sequence[str] = ()) -> None:
        """Open a screen for one operation. `question` first asks the core for one on a running operation.

        `group` opens the card of one cause, which is named in place of an operation; `asked` that of a question of a
        credential, named by its own id.
        """
        from pollconsole.screens.card import CardScreen
        from pollconsole.screens.detail import DetailScreen
        from pollconsole.screens.group import GroupScreen

        if what == "detail":
            self.push_screen(DetailScreen(self.state, operation_id))
        elif what == "inspect":
            self.push_screen(DetailScreen(self.state, operation_id, over_card=True))
        elif what == "group":
            self.push_screen(GroupScreen(self.state, operation_id))
        elif what == "card":
            self.push_screen(CardScreen(self.state, operation_id, ids))
        elif what == "asked":
            from pollconsole.screens.question import QuestionScreen

            self.push_screen(QuestionScreen(self.state, operation_id))
        elif operation_id in self.state.board.questions:
            self.push_screen(CardScreen(self.state, operation_id))
        else:
            self._ask_for_a_question(operation_id)

    def _ask_for_a_question(self, operation_id: str) -> None:
        screen = self.screen
        why = screen.why_no_question(operation_id) if isinstance(screen, ConsoleScreen) else None
        if why is not None:
            self.state.say(f"{operation_id}: {why}", "held" if self.state.read_only else "muted")
        else:
            self.run_worker(self._open_question(operation_id), exclusive=True, group="question")

    async def _open_question(self, operation_id: str) -> None:
        async def body(core: Any) -> Any:
            return await core.actions.open_question(operation_id, core.actions.operator())

        try:
            await self.state.link.ask(body)
        except PollconsoleError as error:
            said = str(error)
            self.state.say(said if said.startswith(operation_id) else f"{operation_id}: {said}", "attention")
            return
        from pollconsole.screens.card import CardScreen
        from pollconsole.screens.detail import DetailScreen

        if isinstance(self.screen, LiveScreen | DetailScreen):
            self.push_screen(CardScreen(self.state, operation_id))

    def action_queue(self, approvals: bool) -> None:
        from pollconsole.screens.queue import QueueScreen

        if self.why_no_queue(self.screen) is None:
            screen = self.screen
            if isinstance(screen, QueueScreen) or (isinstance(screen, ConsoleScreen) and screen.beside):
                self.pop_screen()
            self.push_screen(QueueScreen(self.state, approvals=approvals))
