"""What an operator is shown, drawn from the very objects that will be executed.

Job: the lines of one card, its digest, and one card for one cause. Must not know: widgets, colours, keys, storage.
"""

from pollcore.card.digest import bound, digest
from pollcore.card.drawing import Card, CardLine, CardOption, card
from pollcore.card.grouping import Asked, GroupCard, GroupChoice, Outlier, group

__all__ = [
    "Asked",
    "Card",
    "CardLine",
    "CardOption",
    "GroupCard",
    "GroupChoice",
    "Outlier",
    "bound",
    "card",
    "digest",
    "group",
]
