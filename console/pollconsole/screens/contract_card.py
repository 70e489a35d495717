"""A card that may be about a contract, used for the first time or changed: its text is one key away.

Job: open the text over the card; when it was read, keep the card and what was read of it as long as it would be drawn
with the same choices. Must not know: what is asked, how a card is drawn, how a choice is carried out.

Source: spec X7, G4, G5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from textual.binding import Binding, BindingType

from pollconsole.draw import Line
from pollconsole.screens.deciding import CHANGED, DecidingScreen
from pollconsole.state import State
from pollcore.facts import ChoiceKind, PollconsoleError

READ: Final[Line] = (("you have read the contract since ", "good"),)
"""Beside the guard's state: the card stands as it was drawn, so that nothing on it has to be read twice."""
_MARK: Final = "Contract file:"
"""The line of a contract that no operator has looked at."""
_MORE: Final = "its text and what changed, where the card is about it; read to its end you have seen it"


class ContractCard(DecidingScreen):
    """One card. Subclasses say which contract it is about, and draw it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("t", "contract", "the contract", tooltip=_MORE)]
    more_keys = DecidingScreen.more_keys | {"t"}

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._looked = False
        """The contract was opened from here."""

    @property
    def contract_of(self) -> str | None:
        """The provider whose contract the card is about; None: it is about none."""
        raise NotImplementedError

    @property
    def stands_for_good(self) -> bool:
        """Whether the card is not drawn anew any more, whatever comes."""
        return False

    async def ask_anew(self) -> Any:
        """The card as the core draws it now. Raises PollconsoleError."""
        raise NotImplementedError

    def load(self, notice: Line = ()) -> None:
        """Read the card and draw it, locked anew."""
        raise NotImplementedError

    def action_contract(self) -> None:
        """Its text, and how it differs from what open operations run under."""
        provider = self.contract_of
        if provider is not None and not self._busy:
            self._looked = True
            self.open_contract(provider)

    def open_contract(self, provider: str) -> None:
        """Put the text of *provider*'s contract over the card."""
        from pollconsole.screens.providers import ContractScreen, running

        under = running(self.state.board.operations.values()).get(provider, Counter())
        self.app.push_screen(ContractScreen(self.state, provider, under))

    def on_screen_resume(self) -> None:
        if self._looked and not self._busy and not self.stands_for_good:
            self._looked = False
            self.run_worker(self._look_again(self.shown), exclusive=True)

    async def _look_again(self, before: Any) -> None:
        try:
            fresh = await self.ask_anew()
        except PollconsoleError:
            fresh = None
        if before is not self.shown or self._busy or self.stands_for_good:
            return
        if before is None or fresh is None or fresh.digest != before.digest:
            self.load(CHANGED if fresh is not None else ())
        elif _is_marked(before.card.lines) and not _is_marked(fresh.card.lines):
            self.say_notice(READ)


def is_about_a_contract(choices: Iterable[Any]) -> bool:
    """Whether a card with these *choices* is about one that changed."""
    return any(each.kind is ChoiceKind.ADOPT_CONTRACT for each in choices)


def _is_marked(lines: Iterable[Any]) -> bool:
    return any(each.label == _MARK for each in lines)
