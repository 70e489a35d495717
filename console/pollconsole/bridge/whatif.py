"""What a schedule would cost, as a document.

Job: plain arguments -> the core's parameters, with the real worker's rules and seeded chance; figures -> dicts.
Must not know: output. It sends nothing and opens no store.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.contract import Contract
    from pollcore.whatif import Estimate, JobTime, Load, Peak, Simulation, Worker

ARRIVALS: Final = ("spread", "burst", "poisson")
DIGITS: Final = 4
"""Of a mean that is told."""


def simulate(core: Core, name: str, text: str | None, asked: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Play *asked* under a contract.

    Args:
        text: the contract's text when *name* is a file.
        asked: fields of the core's `Parameters` in plain values: *job_time* (shape, low, high, spread) or None,
            *outage* (start, span) or None, *arrivals* one of ARRIVALS.

    Raises NotFound, ContractError; Refused: a limit, with its name.
    """
    from pollcore import whatif
    from pollcore.actions.submit import is_remote
    from pollcore.contract import parse

    contract = core.contracts.find(name) if text is None else parse(text, name)
    instance = core.config.providers.get(name) if text is None else None
    found = whatif.simulate(
        contract,
        whatif.Parameters(**{
            **asked,
            "arrivals": whatif.Arrivals(asked["arrivals"]),
            "job_time": None if asked["job_time"] is None else whatif.JobTime(*asked["job_time"]),
            "outage": None if asked["outage"] is None else whatif.Outage(*asked["outage"]),
        }),
        worker=real_worker(),
        chances=whatif.Chances(*(_source(seed, part) for part in ("draws", "world", "fates"))),
        remote=_is_remote(contract, is_remote),
        ceilings=core.config.ceilings,
        per_minute=None if instance is None else instance.per_minute,
    )  # fmt: skip
    return {"provider": name, **_document(found, seed)}


def real_worker() -> Worker:
    """The rules of the worker that `run` starts."""
    from pollcore.controller import loop, unsent
    from pollcore.controller.shared import Shared
    from pollcore.whatif import Worker

    return Worker(shared=Shared(), slots=loop.SLOTS, recheck_ms=unsent.RECHECK_MS, cap_pause_ms=unsent.CAP_PAUSE_MS)


def _is_remote(contract: Contract, is_remote: Callable[[Contract], bool]) -> bool:
    """A contract that still wants its base URL is taken for a remote provider's."""
    return contract.requires_base_url or is_remote(contract)


def _source(seed: int, part: str) -> Callable[[], float]:
    return random.Random(f"{seed}:{part}").random


# --- documents --------------------------------------------------------------------------------------------------------


def _document(found: Simulation, seed: int) -> dict[str, Any]:
    limits, plan = found.limits, found.schedule
    return {
        "contract": found.provider,
        "digest": found.digest,
        "asked": _asked(found, seed),
        "schedule": {"base_delay_ms": plan.base_delay, "max_delay_ms": plan.max_delay},
        "limits": {
            "deadline_ms": limits.deadline,
            "max_status_requests": limits.max_status_requests,
            "max_transport_failures": limits.max_transport_failures,
            "max_rate_limited": limits.max_rate_limited,
        },
        "simulated": found.simulated,
        "exact": found.confidence is None,
        "confidence": found.confidence,
        "shared": found.shares,
        "planned": _load(found.planned),
        "escalations": [
            {"reason": one.reason.value, **_count(one.operations)} for one in found.escalations
        ],
        "fixed_interval": {
            **_load(found.fixed),
            "over_rate_limit": None if found.fixed_over_limit is None else _count(found.fixed_over_limit),
        },
        "end_ms": found.end,
        "part_ms": found.part,
        "by_time": [
            {"at_ms": part.at, "requests": part.requests, "fixed_interval_requests": part.fixed}
            for part in found.by_time
        ],
        "left_out": list(found.left_out),
    }  # fmt: skip


def _asked(found: Simulation, seed: int) -> dict[str, Any]:
    asked, outage = found.asked, found.asked.outage
    return {
        "operations": asked.operations,
        "duration_ms": asked.duration,
        "arrivals": asked.arrivals.value,
        "job_time": _job_time(found.job_time),
        "failure_rate": asked.failure_rate,
        "rate_limit_per_minute": asked.rate_limit_per_minute,
        "retry_after": asked.retry_after,
        "guidance_ms": asked.guidance,
        "outage": None if outage is None else {"start_ms": outage.start, "span_ms": outage.span},
        "compare_interval_ms": asked.compare_interval,
        "seed": seed,
    }


def _job_time(time: JobTime) -> dict[str, Any]:
    match time.shape:
        case "uniform":
            return {"shape": time.shape, "low_ms": time.low, "high_ms": time.high}
        case "lognormal":
            return {"shape": time.shape, "median_ms": time.low, "spread": time.spread}
        case _:
            return {"shape": time.shape, "ms": time.low}


def _load(load: Load) -> dict[str, Any]:
    late = load.late
    return {
        "requests": _count(load.requests),
        "requests_per_operation": _rounded(load.per_operation, DIGITS),
        "median_requests": load.median_requests,
        "p95_requests": load.p95_requests,
        "most_requests": load.most_requests,
        "per_second": _peak(load.per_second),
        "per_minute": _peak(load.per_minute),
        "seen": _count(load.seen),
        "lateness_ms": {
            "median": None if late.median is None else _count(late.median),
            "p95": None if late.p95 is None else _count(late.p95),
            "longest": None if late.longest is None else _count(late.longest),
        },
    }


def _peak(peak: Peak | None) -> dict[str, Any] | None:
    return None if peak is None else {**_count(peak.requests), "at_ms": peak.at, "window_ms": peak.window}


def _count(found: Estimate) -> dict[str, Any]:
    return _rounded(found, None)


def _rounded(found: Estimate, digits: int | None) -> dict[str, Any]:
    high = None if found.high is None else round(found.high, digits)
    return {"value": round(found.value, digits), "low": round(found.low, digits), "high": high}
