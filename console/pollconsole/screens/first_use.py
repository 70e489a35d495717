"""From the card of a first use to the contract that it is about.

Job: open the contract's text over a card, which puts on record that it was seen. Must not know: choices, keys.

Source: spec X7, G5.
"""

from __future__ import annotations

from collections import Counter

from pollconsole.screens.base import ConsoleScreen


def open_contract(over: ConsoleScreen, provider: str) -> None:
    """The text of the provider's contract, and how it differs from what open operations run under."""
    from pollconsole.screens.providers import ContractScreen, running

    under = running(over.state.board.operations.values()).get(provider, Counter())
    over.app.push_screen(ContractScreen(over.state, provider, under))
