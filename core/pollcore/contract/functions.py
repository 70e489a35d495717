"""The functions of expressions: JMESPath's own, and two that contracts need beside them.

Job: `time_ms` (JMESPath cannot order dates) and `match` (nor look into texts). Must not know: contracts, answers.
Both pass null through. Source: contract needs R09, R24, R34.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from jmespath.functions import Functions, signature

from pollcore.contract.patterns import Pattern, regex
from pollcore.facts import Instant, parse_instant

ZONED: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,12})?)?(Z|z|[+-][0-9]{2}:?[0-9]{2})?"
)
MAX_TIME: Final = 64
"""Characters of a date and time."""


def iso_instant(text: str) -> Instant:
    """ms of an ISO 8601 date and time with a zone; fractions of a second of any length.

    Raises:
        ValueError: not of that form, without a time zone, no such day, or outside 2000-2100.
    """
    found = ZONED.fullmatch(text) if len(text) <= MAX_TIME else None
    if found is None:
        raise ValueError("not an ISO 8601 date and time")
    if found[1] is None:
        raise ValueError("time without a zone")
    # fromisoformat takes three or six digits of a second at most
    plain = re.sub(r"[.,]([0-9]{1,12})", lambda part: f".{part[1][:6].ljust(6, '0')}", text.upper().replace(" ", "T"))
    try:
        return parse_instant(plain)
    except (ValueError, OverflowError) as error:
        outside = "2000" in str(error) or isinstance(error, OverflowError)
        raise ValueError("time outside 2000-2100" if outside else "no such day or time") from None


class ContractFunctions(Functions):
    """JMESPath's functions and ours; whatever they raise is `rule_failed` of the rule that called them."""

    @signature({"types": ["string", "null"]})
    def _func_time_ms(self, text: str | None) -> int | None:
        """`time_ms(body.finished_at) > time_ms(submitted.started_at)`."""
        return None if text is None else iso_instant(text)

    @signature({"types": ["string", "null"]}, {"types": ["string"]})
    def _func_match(self, text: str | None, pattern: str) -> str | None:
        """`match(body.note, 'done ([0-9]+) of .*')`: the first group where the whole text matches, else null."""
        return None if text is None else compiled(pattern).first_group(text)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Pattern:
    """Raises ValueError: outside the safe subset."""
    return regex(pattern)


FUNCTIONS: Final[dict[str, Any]] = ContractFunctions.FUNCTION_TABLE
"""Name -> `signature`, one entry for each argument."""
