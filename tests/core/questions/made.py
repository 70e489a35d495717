"""Records, questions, policies and circumstances for the tests of this folder, and hypothesis strategies over them."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from pollcore import grants
from pollcore.escalation import ChangedContract, Circumstances, CredentialUse, ModeChange, choices
from pollcore.facts import (
    MINUTE,
    BootMs,
    Cancel,
    Choice,
    Confirm,
    CredentialMode,
    DelaySource,
    Escalation,
    ExtendSize,
    HttpFact,
    Instant,
    Limits,
    Moment,
    Observation,
    Operation,
    Operator,
    Policy,
    Request,
    ResultPointer,
    Schedule,
    Slot,
    Status,
    StopDetail,
    StopReason,
    Submitted,
    Verdict,
    parse_instant,
)

START = parse_instant("2026-03-02T10:20:00Z")
STOPPED_AT = parse_instant("2026-03-02T10:58:00Z")
DEADLINE = parse_instant("2026-03-02T11:00:00Z")
BOOT = BootMs(5_000_000)


def at(text: str) -> Moment:
    """The moment of `10:58:00` on the day of the tests, both clocks running evenly."""
    wall = parse_instant(f"2026-03-02T{text}Z")
    return Moment(wall, BootMs(BOOT + wall - START), "boot-1")


NOW = at("10:58:00")
ALICE = Operator("alice", "ops-1", "pts/3")
POLICY = Policy(
    schedule=Schedule(),
    default=Limits(40 * MINUTE, 12, 3, 3),
    extend=(ExtendSize(15, 4), ExtendSize(60, 10, 2, 2)),
    cancel=Cancel(
        "the job stops and its partial output is deleted", Confirm(5, 2), irreversible=True, best_effort=True
    ),
    can_resubmit=True,
    retention=120 * MINUTE,
)
REQUEST = Request(
    method="GET",
    url="https://api.acme.test/v1/jobs/exp_71c?sig=SECRETSIG",
    origins=("https://api.acme.test:443",),
    slot=Slot("acme-key", "bearer"),
)
CHANGED = ChangedContract(digest="sha-new", diff="-a\n+b", knows_state=True, has_stored_answer=True)
EVERYTHING = Circumstances(
    changed_contract=CHANGED,
    other_credentials=("acme-second",),
    secret_rotated=True,
    keyring_reads=True,
    unvalidated_result=True,
    resubmit_possible=True,
    fingerprint_matches=True,
    console_url="https://console.acme.test/jobs/exp_71c",
    use=CredentialUse(request=REQUEST, reveals="job metadata", digest="d" * 64),
    mode=ModeChange(credential="acme-key", before=CredentialMode.PER_CALL, after=CredentialMode.STANDING),
)
_ENDS = {
    StopReason.JOB_FAILED: Status.FAILED,
    StopReason.JOB_CANCELLED: Status.CANCELLED,
    StopReason.JOB_EXPIRED: Status.EXPIRED,
    StopReason.EXTENSION_REQUESTED: Status.WAITING,
    StopReason.OPERATOR_REQUEST: Status.WAITING,
    StopReason.CALL_APPROVAL: Status.AWAITING_APPROVAL,
    StopReason.SESSION_APPROVAL: Status.AWAITING_APPROVAL,
    StopReason.FIRST_USE: Status.AWAITING_APPROVAL,
}
OF_AN_OPERATION = tuple(reason for reason in StopReason if reason is not StopReason.MODE_CHANGE)


def operation(**changes: object) -> Operation:
    """The article's record: 12 checks in 40 minutes, running."""
    fields: dict[str, object] = {
        "operation_id": "report-export-2026-03-02-01",
        "submitted": Submitted(
            provider="acme", account="team-a", job_id="exp_71c", request_fingerprint="f00d", idempotency_key="idem-1"
        ),
        "status": Status.WAITING,
        "version": 3,
        "contract_digest": "sha-old",
        "credential": "acme-key",
        "started_at": START,
        "submitted_at": START,
        "boot_id": "boot-1",
        "deadline_at": DEADLINE,
        "deadline_boot": BootMs(BOOT + DEADLINE - START),
        "max_status_requests": 12,
        "status_requests_used": 5,
        "max_transport_failures": 3,
        "max_rate_limited": 3,
        "last_known_state": "running",
        "last_http": HttpFact(200, STOPPED_AT, STOPPED_AT, "req-9"),
        "next_poll_at": Instant(STOPPED_AT + 30_000),
        "delay_source": DelaySource.LOCAL_BACKOFF,
    }
    return Operation(**{**fields, **changes})


def stopped(reason: StopReason, **changes: object) -> Operation:
    """The record as a stop, or a question, of *reason* leaves it."""
    status = _ENDS.get(reason, Status.ESCALATED)
    fields: dict[str, object] = {"status": status}
    if status not in (Status.WAITING, Status.AWAITING_APPROVAL):
        fields |= {"stop_reason": reason, "next_poll_at": None, "delay_source": None}
    if reason is StopReason.REQUEST_BUDGET_EXHAUSTED:
        fields["status_requests_used"] = 12
    if reason is StopReason.INTEGRATION_FAILURE:
        fields["result"] = ResultPointer({"url": "https://files.acme.test/a?sig=TOPSECRET"}, validated=False)
        fields["stop_detail"] = StopDetail.SUCCEEDED_WITHOUT_RESULT
    return operation(**{**fields, **changes})


def question(reason: StopReason, op: Operation | None, **changes: object) -> Escalation:
    """The open question about *op*."""
    fields: dict[str, object] = {
        "escalation_id": "esc-1",
        "operation_id": op.operation_id if op else "",
        "reason": reason,
        "detail": None,
        "cause": f"{reason.value}:acme",
        "asked_at": STOPPED_AT,
        "version": op.version if op else 1,
    }
    if reason is StopReason.EXTENSION_REQUESTED:
        fields |= {"minutes": 15, "checks": 4, "asked_by": "agent-7", "because": "the export is large"}
    return Escalation(**{**fields, **changes})


def offered(
    reason: StopReason,
    op: Operation | None = None,
    *,
    policy: Policy = POLICY,
    now: Moment = NOW,
    facts: Circumstances = EVERYTHING,
    **of_question: object,
) -> dict[str, Choice]:
    """Choices by label, with everything that could be offered unless told otherwise."""
    op = op or stopped(reason)
    asked = question(reason, op, **of_question)
    return {choice.label: choice for choice in choices(op, asked, policy=policy, now=now, circumstances=facts)}


def observation(verdict: Verdict, state: str = "compiling", **changes: object) -> Observation:
    """What a stored answer reads as."""
    return Observation(verdict=verdict, http=HttpFact(200, STOPPED_AT, STOPPED_AT), state=state, **changes)


def decide(
    reason: StopReason,
    label: str,
    op: Operation | None = None,
    *,
    now: Moment = NOW,
    policy: Policy = POLICY,
    facts: Circumstances = EVERYTHING,
    **more: object,
) -> grants.Applied:
    """What came of choosing *label* on the card of *reason*."""
    op = op or stopped(reason)
    choice = offered(reason, op, now=now, policy=policy, facts=facts)[label]
    asked = question(reason, op)
    return grants.apply(
        op, asked, choice, policy=policy, now=now, operator=ALICE, because="seen", new_id="esc-2", **more
    )


# --- strategies -------------------------------------------------------------------------------------------------------

reasons = st.sampled_from(OF_AN_OPERATION)
minutes_from_start = st.integers(0, 90)


@st.composite
def moments(draw: st.DrawFn) -> Moment:
    """Any time around the deadline, the wall stepped against the boot clock now and then, sometimes another boot."""
    passed = draw(minutes_from_start) * MINUTE
    step = draw(st.sampled_from((0, 0, 0, -10 * MINUTE, 10 * MINUTE)))
    boot = draw(st.sampled_from(("boot-1", "boot-1", "boot-2")))
    return Moment(Instant(START + passed + step), BootMs(BOOT + passed), boot)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    sizes = draw(
        st.lists(
            st.builds(ExtendSize, st.integers(1, 90), st.integers(1, 20), st.integers(1, 3), st.integers(1, 3)),
            max_size=4,
        )
    )
    return msgspec.structs.replace(
        POLICY,
        extend=tuple(sizes),
        max_extensions=draw(st.integers(0, 3)),
        max_holds=draw(st.integers(0, 3)),
        cancel=draw(st.sampled_from((None, POLICY.cancel))),
        can_resubmit=draw(st.booleans()),
        retention=draw(st.sampled_from((None, POLICY.retention))),
        schedule=Schedule(settle_delay=draw(st.sampled_from((None, 5_000)))),
    )


@st.composite
def records(draw: st.DrawFn, reason: StopReason) -> Operation:
    op = stopped(
        reason,
        status_requests_used=draw(st.integers(0, 12)),
        transport_failures_used=draw(st.integers(0, 3)),
        rate_limited_used=draw(st.integers(0, 3)),
        extensions_used=draw(st.integers(0, 3)),
        holds_used=draw(st.integers(0, 3)),
        useful_until=draw(st.sampled_from((None, Instant(DEADLINE - 5 * MINUTE), Instant(DEADLINE + 20 * MINUTE)))),
        guidance_until=draw(st.sampled_from((None, Instant(DEADLINE - MINUTE), Instant(DEADLINE + 30 * MINUTE)))),
        cancel_granted=draw(st.booleans()),
    )
    if reason is StopReason.OPERATOR_REQUEST and draw(st.booleans()):
        op = msgspec.structs.replace(
            op,
            status=Status.HELD,
            hold_until=Instant(STOPPED_AT + 10 * MINUTE),
            stop_reason=draw(st.sampled_from((None, StopReason.UNKNOWN_STATE))),
        )
    return op


@st.composite
def circumstances(draw: st.DrawFn) -> Circumstances:
    reads_as = draw(
        st.one_of(
            st.none(), st.sampled_from(Verdict).map(lambda verdict: observation(verdict, result=ResultPointer({})))
        )
    )
    changed = ChangedContract(
        digest="sha-new",
        diff="-a\n+b",
        knows_state=draw(st.booleans()),
        has_stored_answer=reads_as is not None,
        reads_as=reads_as,
    )
    return msgspec.structs.replace(
        EVERYTHING,
        changed_contract=draw(st.sampled_from((None, changed))),
        other_credentials=tuple(f"other-{n}" for n in range(draw(st.integers(0, 9)))),
        secret_rotated=draw(st.booleans()),
        keyring_reads=draw(st.booleans()),
        unvalidated_result=draw(st.booleans()),
        resubmit_possible=draw(st.booleans()),
        fingerprint_matches=draw(st.booleans()),
        cooldown_until=draw(st.sampled_from((None, Instant(DEADLINE - MINUTE), Instant(DEADLINE + 40 * MINUTE)))),
        cancel_sent_at=draw(st.sampled_from((None, STOPPED_AT))),
    )
