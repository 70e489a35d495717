"""What an operator is shown, drawn from the very objects that will be executed.

Job: the lines of one card, its digest, and one card for one cause. Must not know: widgets, colours, keys, storage.
"""

from pollcore.card.digest import bound, digest, digest_of
from pollcore.card.drawing import Card, CardOption, card
from pollcore.card.group_lines import Effects
from pollcore.card.grouping import Frozen, GroupCard, GroupChoice, Outlier, group, join
from pollcore.card.line import CardLine
from pollcore.card.members import Asked, Member, member

__all__ = [
    "Asked",
    "Card",
    "CardLine",
    "CardOption",
    "Effects",
    "Frozen",
    "GroupCard",
    "GroupChoice",
    "Member",
    "Outlier",
    "bound",
    "card",
    "digest",
    "digest_of",
    "group",
    "join",
    "member",
]
