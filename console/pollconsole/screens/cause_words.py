"""One row of a queue in words: its name in the list, who waits, and why.

Job: pure: a cause -> short texts, harmless. Must not know: widgets, colours, cards, which queue shows it.

Source: spec E10, V4.
"""

from __future__ import annotations

from typing import Final

from pollconsole import short_words
from pollconsole.causes import Cause
from pollconsole.draw import text

WHOLE_FROM: Final = 99
"""From this width of the list on (a terminal of 100 cells) reasons stand there by their full names; under it by the
short forms that the help explains."""
ALONE: Final = "question "
"""Before the id of a question that belongs to no operation; no operation's id holds a space."""
_GROUP: Final = "cause "
"""Before the cause of a row that stands for many."""


def row_id(cause: Cause) -> str:
    """The operation's id where the card is its own, else the cause, in words that no operation has for an id."""
    if len(cause.questions) > 1:
        return _GROUP + cause.cause
    return cause.questions[0].operation_id or ALONE + cause.questions[0].escalation_id


def who(cause: Cause) -> str:
    """The operation, how many of them, or the credential that it belongs to."""
    if len(cause.questions) > 1:
        return f"{len(cause.questions):,} operations"
    return text(cause.questions[0].operation_id or credential_of(cause))[0]


def why(cause: Cause, *, short: bool) -> str:
    """`provider_failure +1 more`; *short*: `failures +1 more`."""
    name = short_words.REASON[cause.reason] if short else cause.reason.value
    return name if not cause.other_reasons else f"{name} +{cause.other_reasons} more"


def credential_of(cause: Cause) -> str:
    """The name in the cause of a question about a credential."""
    return cause.cause.partition(":")[2]


def without_reason(cause: Cause) -> str:
    """The cause after the reason that stands beside it: `unknown_state:acme:compiling` is `acme:compiling`."""
    return cause.cause.removeprefix(f"{cause.reason.value}:")
