"""Whether what a card shows is still what is asked.

Job: the drawn question and record against what the board knows by now. Must not know: widgets, keys, what a choice
means. What it says of a question that is over is for good: the card stays as it was (G8).

Source: spec E7, G7, G8.
"""

from __future__ import annotations

from typing import Protocol

from pollconsole.board import Board
from pollconsole.screens.expiring import is_over
from pollcore.facts import Escalation, Instant, Operation


class Drawn(Protocol):
    """What was drawn."""

    @property
    def question(self) -> Escalation: ...
    @property
    def operation(self) -> Operation | None: ...


class Standing:
    """Of the card of one operation."""

    def __init__(self, board: Board, operation_id: str) -> None:
        self.operation_id = operation_id
        self._board = board
        self._question: Escalation | None = None
        """The question with the time that it was given last."""

    def last_known(self, shown: Drawn) -> Escalation:
        """The question with the time that it was given last."""
        asked = self._board.questions.get(self.operation_id)
        if asked is not None and asked.escalation_id == shown.question.escalation_id:
            self._question = asked
        kept = self._question
        return kept if kept is not None and kept.escalation_id == shown.question.escalation_id else shown.question

    def is_gone(self, shown: Drawn, now: Instant) -> bool:
        """Whether its time is over, or something else is asked by now, or nothing."""
        asked = self._board.questions.get(self.operation_id)
        same = asked is not None and asked.escalation_id == shown.question.escalation_id
        over = is_over(self.last_known(shown), now)
        return over or (not same and self._board.latest.change > 0)

    def is_asked_anew(self, shown: Drawn | None) -> bool:
        """Whether another question is open by now."""
        asked = self._board.questions.get(self.operation_id)
        return shown is None or (asked is not None and asked.escalation_id != shown.question.escalation_id)

    def has_moved(self, shown: Drawn) -> bool:
        """Whether question or version is another one than was drawn."""
        board = self._board
        question = board.questions.get(self.operation_id)
        operation, drawn = board.operations.get(self.operation_id), shown.operation
        if operation is not None and drawn is not None and operation.version < drawn.version:
            return False  # the board is older than the card: it does not know yet what was asked last
        if board.latest.change and (question is None or question.escalation_id != shown.question.escalation_id):
            return True
        return operation is not None and drawn is not None and operation.version > drawn.version
