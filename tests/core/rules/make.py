"""Records, readings and policies for the tests of the rules of waiting, and strategies over all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pollcore import decide
from pollcore.facts import (
    HOUR,
    MINUTE,
    BootMs,
    Decision,
    DelaySource,
    Escalate,
    Fault,
    FaultKind,
    Guidance,
    HttpFact,
    Instant,
    Memory,
    Moment,
    Observation,
    Operation,
    Policy,
    ResultPointer,
    Schedule,
    Status,
    StopDetail,
    StopReason,
    Submitted,
    Verdict,
    Wait,
)

T0 = Instant(1_772_445_600_000)
"""2026-03-02T10:00:00Z."""
NOW = Moment(T0, BootMs(1_000_000), "boot-1")
POLICY = Policy()
RESULT = ResultPointer({"url": "https://api.example.test/v1/results/job-1"})


def operation(**changes: Any) -> Operation:
    """A running wait, one hour long, whose first request has just been counted."""
    fields: dict[str, Any] = {
        "operation_id": "op_1",
        "submitted": Submitted(provider="acme", account="main", job_id="job-1", base_url="https://api.example.test"),
        "status": Status.WAITING,
        "contract_digest": "d1",
        "credential": "acme-key",
        "started_at": T0,
        "submitted_at": T0,
        "boot_id": "boot-1",
        "deadline_at": Instant(T0 + HOUR),
        "deadline_boot": BootMs(NOW.boot + HOUR),
        "max_status_requests": 20,
        "status_requests_used": 1,
        "max_transport_failures": 3,
        "max_rate_limited": 3,
        "next_poll_at": T0,
        "due_boot": NOW.boot,
    }
    return Operation(**(fields | changes))


def answer(verdict: Verdict = Verdict.WAITING, state: str | None = "running", **changes: Any) -> Observation:
    """One answer, complete at T0."""
    code = changes.pop("code", 200)
    at = changes.pop("at", T0)
    fields: dict[str, Any] = {
        "verdict": verdict,
        "state": state,
        "http": HttpFact(code, Instant(at - 200), at, "req-1"),
    }
    if verdict is Verdict.SUCCEEDED:
        fields["result"] = RESULT
    return Observation(**(fields | changes))


def retry_after(ms: int) -> Guidance:
    """`Retry-After` of *ms*."""
    return Guidance(ms, "Retry-After", True)


def hint(ms: int) -> Guidance:
    """A hint of the contract."""
    return Guidance(ms, "poll_after_seconds", False)


def fault(kind: FaultKind = FaultKind.TIMEOUT, *, sent: bool = True) -> Fault:
    """A request that brought no usable answer."""
    return Fault(kind, sent, T0, "no answer")


def memory(**fields: Any) -> Memory:
    """What was seen before."""
    return Memory(**fields)


def decided(op: Operation, reading: Observation | Fault, *, policy: Policy = POLICY, now: Moment = NOW) -> Decision:
    """The decision at a middling draw."""
    return decide.decide(op, reading, policy=policy, now=now, draw=0.5)


def stopped(op: Operation, reading: Observation | Fault, *, policy: Policy = POLICY, now: Moment = NOW) -> Escalate:
    """The decision, which is a stop."""
    found = decided(op, reading, policy=policy, now=now)
    assert isinstance(found, Escalate), found
    return found


def waits(op: Operation, reading: Observation | Fault, *, policy: Policy = POLICY, now: Moment = NOW) -> Wait:
    """The decision, which is a wait."""
    found = decided(op, reading, policy=policy, now=now)
    assert isinstance(found, Wait), found
    return found


# --- strategies -------------------------------------------------------------------------------------------------------

draws = st.floats(0.0, 1.0, exclude_max=True, allow_nan=False)


@st.composite
def schedules(draw: Any) -> Schedule:
    """Any schedule that a contract may hold, odd ones included."""
    optional = st.none() | st.integers(1, 2 * HOUR)
    return Schedule(
        base_delay=draw(st.integers(1, 10 * MINUTE)),
        max_delay=draw(st.integers(1, 2 * HOUR)),
        min_delay=draw(optional),
        first_delay=draw(optional),
        expected_duration=draw(optional),
        rate_limit_factor=draw(st.sampled_from([0.5, 1.0, 1.01, 4.0, 1e308, float("inf")])),
        rate_limit_max_delay=draw(optional),
        max_hint=draw(st.integers(1, 24 * HOUR)),
        max_interval=draw(optional),
        settle_delay=draw(st.none() | st.integers(0, 10 * MINUTE)),
    )


policies = st.builds(Policy, schedule=schedules())


@st.composite
def moments(draw: Any) -> Moment:
    """Any clock reading: stepped either way, same or another boot."""
    return Moment(
        Instant(T0 + draw(st.integers(-2 * HOUR, 3 * HOUR))),
        BootMs(NOW.boot + draw(st.integers(0, 3 * HOUR))),
        draw(st.sampled_from(["boot-1", "boot-2"])),
    )


@st.composite
def operations(draw: Any, statuses: tuple[Status, ...] = tuple(Status)) -> Operation:
    """Any record whose counters are within their maxima."""
    instants = st.integers(-HOUR, 3 * HOUR).map(lambda ms: Instant(T0 + ms))
    boots = st.integers(0, 3 * HOUR).map(lambda ms: BootMs(NOW.boot + ms))
    requests, failures, limited = draw(st.integers(1, 50)), draw(st.integers(1, 5)), draw(st.integers(1, 5))
    # a question about leave to ask keeps the earlier stop as it is: none of these ever stands in a record
    asking = {StopReason.FIRST_USE, StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL}
    stops = st.none() | st.sampled_from([reason for reason in StopReason if reason not in asking])
    return operation(
        status=draw(st.sampled_from(statuses)),
        deadline_at=draw(instants),
        deadline_boot=draw(boots),
        useful_until=draw(st.none() | instants),
        provider_expires_at=draw(st.none() | instants),
        max_status_requests=requests,
        status_requests_used=draw(st.integers(0, requests)),
        max_transport_failures=failures,
        transport_failures_used=draw(st.integers(0, failures)),
        max_rate_limited=limited,
        rate_limited_used=draw(st.integers(0, limited)),
        completed_polls=draw(st.integers(0, 100_000)),
        rate_limited_in_a_row=draw(st.integers(0, 1_000)),
        next_poll_at=draw(st.none() | instants),
        due_boot=draw(st.none() | boots),
        hold_until=draw(st.none() | instants),
        guidance_until=draw(st.none() | instants),
        delay_source=draw(st.none() | st.sampled_from(list(DelaySource))),
        check_once=draw(st.booleans()),
        cancel_granted=draw(st.booleans()),
        stop_reason=draw(stops),
        stop_detail=draw(st.none() | st.sampled_from(list(StopDetail))),
        memory=Memory(settling=draw(st.none() | st.sampled_from(["failed:x", "succeeded:done"]))),
    )


@st.composite
def readings(draw: Any) -> Observation | Fault:
    """Any answer of any verdict, with any guidance, or any fault."""
    at = Instant(T0 + draw(st.integers(-HOUR, 3 * HOUR)))
    if draw(st.booleans()):
        return Fault(draw(st.sampled_from(list(FaultKind))), draw(st.booleans()), at, draw(st.sampled_from(["", "x"])))
    guidance = st.builds(
        Guidance, st.integers(0, 4 * HOUR) | st.integers(0, 10**15), st.just("Retry-After"), st.booleans()
    )
    return Observation(
        verdict=draw(st.sampled_from(list(Verdict))),
        http=HttpFact(draw(st.sampled_from([200, 403, 404, 429, 503])), at, at),
        state=draw(st.none() | st.text(max_size=200)),
        detail=draw(st.none() | st.sampled_from(list(StopDetail))),
        explanation=draw(st.none() | st.just("why")),
        guidance=draw(st.none() | guidance),
        result=draw(st.none() | st.builds(ResultPointer, st.just({"url": "u"}), validated=st.booleans())),
        provider_expires_at=draw(st.none() | st.just(at)),
        continues=draw(st.booleans()),
        near_match=draw(st.none() | st.just("running")),
        clock_skew_ms=draw(st.none() | st.integers(-HOUR, HOUR)),
    )
