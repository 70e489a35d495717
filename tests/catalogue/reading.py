"""A shipped contract, an answer -> what it reads as.

Job: the contract under an instance, an operation with its parameters, whole answers around the bodies of the facts.
Must not know: what is right.
"""

from __future__ import annotations

import functools
import json
import tomllib
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pollcore.adapters.contract_files import ContractFiles
from pollcore.contract import Contract, instance, requests
from pollcore.contract.expressions import Expression
from pollcore.contract.parts import Required
from pollcore.facts import (
    Answer,
    BootMs,
    Exchange,
    Instant,
    Memory,
    Observation,
    Operation,
    Status,
    Submitted,
    Verdict,
    parse_instant,
)
from pollcore.reading import read
from tests.catalogue import bodies
from tests.catalogue.facts import Api, State

START: Final = parse_instant("2026-03-02T10:00:00Z")
LATER: Final = "2026-03-02T18:00:00Z"
BASE_URL: Final = "https://api.instance.example"
JOB: Final = "job-1"
VALUE: Final = "value-1"
"""A parameter that extra/ID.json does not name."""


FILES: Final = ContractFiles(None)


@functools.cache
def text(api_contract: str) -> str:
    return FILES.text(api_contract)[0]


@functools.cache
def document(api_contract: str) -> dict[str, Any]:
    """The TOML as written."""
    return tomllib.loads(text(api_contract))


def contract_of(api: Api) -> Contract:
    """The contract, bound to an instance where it wants one."""
    if api.id not in _BOUND:
        made = FILES.load(api.contract)
        given = api.extra.get("urls", {})
        urls = {name: given.get(name, f"https://{name}.instance.example") for name in made.url_names}
        if made.base_url_required or made.url_names:
            base = api.extra.get("base_url", BASE_URL) if made.base_url_required else None
            made = instance(made, base_url=base, urls=urls)
        _BOUND[api.id] = made
    return _BOUND[api.id]


_BOUND: Final[dict[str, Contract]] = {}


def operation_of(api: Api, contract: Contract, memory: Memory | None = None) -> Operation:
    """An operation that has just begun, with every parameter that the contract declares."""
    params = {param.name: VALUE if param.default is None else param.default for param in contract.params}
    given = Submitted(
        provider=contract.name,
        account="acct",
        job_id=api.extra.get("job_id", JOB),
        params={**params, **api.extra.get("params", {})},
        status_url=api.extra.get("status_url"),
    )
    return Operation(
        operation_id="op-1",
        submitted=given,
        status=Status.WAITING,
        contract_digest=contract.digest,
        started_at=START,
        submitted_at=START,
        boot_id="boot",
        deadline_at=Instant(START + 3_600_000),
        deadline_boot=BootMs(3_600_000),
        max_status_requests=1_000,
        max_transport_failures=3,
        max_rate_limited=3,
        memory=memory or Memory(values=api.extra.get("seen", {})),
    )


def read_answer(api: Api, given: dict[str, Any], memory: Memory | None = None) -> tuple[Observation, Memory]:
    """Read `{status, headers, body, step}` as the next poll's answer; *body* as JSON, `raw` as text."""
    contract = contract_of(api)
    step = given.get("step", "status")
    known = memory or Memory()
    if step != "status":
        known = replace(known, step=step)
    known = replace(known, values={**api.extra.get("seen", {}), **known.values})
    operation = operation_of(api, contract, known)
    url = given.get("url") or requests.status_request(contract, operation, None).url
    at = Instant(START + 60_000)
    raw = given["raw"].encode() if "raw" in given else json.dumps(given["body"]).encode() if "body" in given else b""
    headers = tuple((name.lower(), value) for name, value in given.get("headers", {}).items())
    answer = Answer(given.get("status", 200), headers, raw, Instant(at - 50), at)
    return read(contract, operation, (Exchange(step, url, answer),))


def whole(api: Api, body: Any, *, ended: bool = False) -> dict[str, Any]:
    """The answer around *body*: what extra lays under it, the job's own id, and at a success the result's fields."""
    contract = contract_of(api)
    made = bodies.merged(api.extra.get("base", {}), body)
    if isinstance(made, dict):
        job = plain_path(contract.identity.job_id)
        if job is not None and not bodies.has(made, job):
            made = bodies.put(made, job, api.extra.get("job_id", JOB))
        if ended:
            made = bodies.merged(bodies.merged(made, api.extra.get("ended", {})), body)
            for field in contract.success.requires:
                path = plain_path(field.path)
                if path is not None and not bodies.has(made, path):
                    made = bodies.put(made, path, sample(field, contract))
    return {**api.extra.get("answer", {}), "body": made}


def sample(field: Required, contract: Contract) -> Any:
    """A value that a required field accepts."""
    if field.format == "url":
        host = field.hosts[0].replace("*", "files") if field.hosts else "files.instance.example"
        return f"https://{host}/result"
    formats = {"uuid": "01234567-89ab-cdef-0123-456789abcdef", "date-time": LATER, "integer-text": "7"}
    if field.format is not None:
        return formats[field.format]
    types: dict[str | None, Any] = {"integer": 7, "number": 7, "boolean": True, "array": ["x"], "object": {"x": 1}}
    return types.get(field.type, "result-1")


def plain_path(expression: Expression | None) -> bodies.Path | None:
    """The body path of an expression that only walks down from `body`; None: it is another."""
    keys = expression.keys if expression is not None else None
    return tuple(keys[1:]) if keys and keys[0] == "body" and len(keys) > 1 else None


def answer_for(api: Api, state: State) -> dict[str, Any] | None:
    """The answer that stands for a documented state: written by hand, else made of the documented expression."""
    given = api.answers().get(state.label)
    ended = api.expected(state.value) is Verdict.SUCCEEDED
    if given is not None:
        return given if given.get("whole") else {**given, **whole(api, given.get("body"), ended=ended)}
    wanted = state.value.replace("*", "anything-else") if state.pattern else state.value
    body = bodies.body_for(api, wanted, derived=state.derived and not state.pattern)
    return None if body is None else whole(api, body, ended=ended)


def read_state(api: Api, state: State) -> Observation | None:
    """What the documented state reads as; None: there is no answer that stands for it."""
    given = answer_for(api, state)
    return None if given is None else read_answer(api, given)[0]


def qualifiers_of(observation: Observation, contract: Contract) -> tuple[str, ...]:
    """The qualifiers that the card would show: of the result, else of the listed state."""
    if observation.result is not None:
        return observation.result.qualifiers
    listed = contract.table.texts.get(observation.state or "")
    if listed is not None:
        return listed.qualifiers
    ruled = [rule.meaning for rule in contract.rules if rule.state == observation.state and rule.meaning]
    patterns = [one.meaning for one in contract.table.patterns if one.pattern.matches(observation.state or "")]
    return next((one.qualifiers for one in (*ruled, *patterns)), ())


def written(value: Any) -> Any:
    """For messages."""
    return msgspec.json.encode(value).decode()[:600]
