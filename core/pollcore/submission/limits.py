"""The limits of one submission: asked for, default, ceiling, absurd.

Job: four checked limits, or a refusal that names limit, allowed value and way out.
Must not know: records, jobs, the store. Source: spec B1.
"""

from __future__ import annotations

import math
from typing import Final

from pollcore.facts import DAY, HOUR, MAX_FAILURES, MAX_REQUESTS, MAX_SPAN, MINUTE, SECOND, Limits, Refused

MAX_SPAN_DAYS: Final = MAX_SPAN // DAY

_FLAGS: Final = {
    "deadline": "--deadline",
    "max_status_requests": "--max-requests",
    "max_transport_failures": "--max-transport-failures",
    "max_rate_limited": "--max-rate-limited",
}
_SPANS: Final = frozenset({"deadline", "retention"})
_ABSURD: Final = {
    "deadline": MAX_SPAN,
    "max_status_requests": MAX_REQUESTS,
    "max_transport_failures": MAX_FAILURES,
    "max_rate_limited": MAX_FAILURES,
}


def span_text(ms: int) -> str:
    """`90 s`, `40 min`, `2 h`, `3 d`: the largest unit that divides the span, else seconds."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        if ms and ms % unit == 0:
            return f"{ms // unit} {name}"
    return f"{ms / SECOND:.12g} s"


def effective_limits(asked: Limits, default: Limits, ceiling: Limits, config: Limits, *, remote: bool) -> Limits:
    """Four limits, all set and within their ceilings.

    A ceiling is the contract's `limits.max`, else its `limits.default`, else `[ceilings]` of `config.toml`; what is
    not asked for is the contract's default. Without a provider beyond loopback (*remote*), failure and rate-limit
    maxima may be missing: then no more of them than requests can happen.

    Raises:
        Refused: code `limit`; details `limit` and what `amounts` makes of asked and allowed.
    """
    found = {name: _limit(name, asked, default, ceiling, config) for name in ("deadline", "max_status_requests")}
    requests = found["max_status_requests"]
    for name in ("max_transport_failures", "max_rate_limited"):
        stated = any(getattr(limits, name) is not None for limits in (asked, default))
        if remote or stated:
            found[name] = _limit(name, asked, default, ceiling, config)
        else:
            found[name] = min(requests, MAX_FAILURES)
    return Limits(**found)


def _limit(name: str, asked: Limits, default: Limits, ceiling: Limits, config: Limits) -> int:
    value, flag = getattr(asked, name), _FLAGS[name]
    wanted, whose = (value, flag) if value is not None else (getattr(default, name), f"limits.default.{name}")
    if wanted is None:
        raise Refused(
            f"{name} is missing: the contract has no limits.default.{name}; give {flag}",
            code="limit",
            limit=name,
        )
    checked = whole(name, wanted, _ABSURD[name], whose)
    for limits, source in (
        (ceiling, f"limits.max.{name} of the contract"),
        (default, f"limits.default.{name} of the contract (it sets no limits.max.{name})"),
        (config, f"[ceilings] {name} in config.toml"),
    ):
        allowed = getattr(limits, name)
        if allowed is None:
            continue
        if checked > allowed:
            raise Refused(
                f"{whose} {_said(name, checked)} is above {source} = {_said(name, allowed)}: "
                f"ask for {_said(name, allowed)} or less; more comes only by an operator's grant",
                code="limit",
                limit=name,
                **amounts(name, checked, allowed),
            )
        break
    return checked


def whole(name: str, value: object, top: int, whose: str) -> int:
    """*value* as a whole number in 1..*top*.

    Raises:
        Refused: not a number, not finite, not whole, zero, negative, or absurd.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(f"{whose} must be a whole number, not {type(value).__name__}", code="limit", limit=name)
    if isinstance(value, float) and (not math.isfinite(value) or value != int(value)):
        raise Refused(f"{whose} must be a finite whole number, not {value!r}", code="limit", limit=name)
    number = int(value)
    if number <= 0:
        raise Refused(
            f"{whose} must be above zero, not {number}; the most that is accepted is {_said(name, top)}",
            code="limit",
            limit=name,
            **amounts(name, number, top),
        )
    if number > top:
        raise Refused(
            f"{whose} {_said(name, number)} is absurd: at most {_said(name, top)} is accepted",
            code="limit",
            limit=name,
            **amounts(name, number, top),
        )
    return number


def amounts(name: str, asked: int, allowed: int) -> dict[str, int]:
    """What programs read of an excess, the unit in the name: spans `asked_ms`, `allowed_ms`; counts `asked`, `allowed`.

    Of a point in time nothing: the number would be no span, and the message names it.
    """
    if name in _SPANS:
        return {"asked_ms": asked, "allowed_ms": allowed}
    return {"asked": asked, "allowed": allowed} if name in _FLAGS else {}


def _said(name: str, value: int) -> str:
    return span_text(value) if name == "deadline" else str(value)
