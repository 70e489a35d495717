"""What `provider new` leaves to a contract's author, and how it is told from what an author wrote.

Job: the sentences that a begun file holds in place of facts, the host of a server that nobody named, and the question
whether a text is such a sentence. Must not know: tables, files, findings.
Source: spec E5, X7: what nobody wrote is evidence of nothing.
"""

from __future__ import annotations

from typing import Final

MARK: Final = "TODO:"
"""How a text begins that is left to the author."""
NOWHERE: Final = ".invalid"
"""Host names that nothing answers under (RFC 2606): what stands where no server was named."""
SOURCE: Final = f"{MARK} address of the documentation, and when you read it"
EVIDENCE: Final = f"{MARK} where it says so, when you read it, whether you tried it"
CONSEQUENCES: Final = f"{MARK} what becomes of the job and of what it wrote"
ABOUT: Final = f"{MARK} what a submission names here beside the job id"
DEADLINE_BASIS: Final = (
    f"{MARK} cost of delay: ... , retention: ... or decide-by: ... ; never the average run time alone"
)
_SENTENCES: Final = tuple(
    one.removeprefix(MARK).strip(" .").casefold() for one in (SOURCE, EVIDENCE, CONSEQUENCES, ABOUT, DEADLINE_BASIS)
)
"""Without the mark, which an author may have taken out and left the rest; files were once begun without it."""


def is_placeholder(text: str | None) -> bool:
    """Whether *text* is still what a new file holds, with or without its mark; None is no text."""
    return text is not None and (MARK in text or " ".join(text.split()).strip(" .").casefold() in _SENTENCES)


def written(text: str | None) -> str | None:
    """*text* where an author wrote it; None for a placeholder and where there is none."""
    return None if is_placeholder(text) else text
