"""The contracts and instances that simulated jobs are submitted under: a handful of texts, parsed once.

Job: contracts that differ in schedule, limits, caps, settling, hints, cancel and resubmission. Must not know: jobs,
answers, seeds.
"""

from __future__ import annotations

import functools
from typing import Final

import msgspec

from pollcore.contract import Contract, from_snapshot, instance, parse
from pollcore.facts import NotFound, Snapshot

_TEXT: Final = """
schema = 1
name = "{name}"
title = "Simulated jobs"
sources = ["the simulation"]
tested_live = "{tried}"
requires_base_url = true
[credential]
kind = "bearer"
optional = true
session_minutes = 1
session_calls = 3
least_mode = "{least_mode}"
[status]
url = "{{base_url}}/v1/jobs/{{job_id}}"
observation = "{observation}"
evidence = "the simulated provider changes nothing on a GET"
[state]
value = "body.status"
[states]
waiting = ["queued", "running", {{ value = "UNKNOWN", limit = 3 }}]
cancelling = ["cancelling"]
succeeded = ["succeeded"{more_states}]
failed = ["failed"]
cancelled = ["cancelled"]
expired = ["expired"]
needs_human = ["paused"]
[[success.requires]]
path = "body.result.url"
format = "url"
[success]
permits = "fetch_result"
[error]
code = "body.error.code"
message = "body.error.message"
[identity]
job_id = "body.id"
[[hints]]
name = "poll_after_seconds"
path = "body.poll_after_seconds"
unit = "seconds"
cap = "1h"
[[expiry]]
path = "body.expires_at"
unit = "iso"
[not_found]
grace_seconds = "10s"
once_seen = "expired"
confirms_cancel = false
[cancel]
method = "POST"
url = "{{base_url}}/v1/jobs/{{job_id}}/cancel"
consequences = "the job stops"
confirm = {{ minutes = 1, checks = 2 }}
leads_to = "cancelling"
[params.input]
about = "what the job works on"
[submission]
method = "POST"
url = "{{base_url}}/v1/jobs"
body = {{ input = "{{params.input}}" }}
idempotency = {{ header = "Idempotency-Key", max_length = 64, lifetime = "24h" }}
[submission.answer]
job_id = "body.id"
[schedule]
{schedule}
{settle}
{caps}
[limits]
deadline_basis = "decide-by"
retention = "24h"
extend = [{{ minutes = 1, checks = 2 }}, {{ minutes = 3, checks = 4, transport_failures = 2 }}]
max_extensions = 2
hold = "1m"
max_holds = 2
[limits.default]
deadline = "{deadline}"
max_status_requests = {requests}
max_transport_failures = {failures}
max_rate_limited = {limited}
[limits.max]
deadline = "2h"
max_status_requests = 200
max_transport_failures = 10
max_rate_limited = 10
"""
_PLAIN: Final = {
    "schedule": 'base_delay = "5s"\nmax_delay = "30s"',
    "settle": "",
    "caps": "",
    "deadline": "4m",
    "requests": 14,
    "failures": 3,
    "limited": 3,
    "more_states": "",
    "tried": "the simulated provider",
    "least_mode": "standing",
    "observation": "read_only",
}
VARIANTS: Final[dict[str, dict[str, object]]] = {
    "plain": {},
    "tight": {"schedule": 'base_delay = "2s"\nmax_delay = "8s"', "requests": 6, "failures": 2, "limited": 2},
    "capped": {
        "schedule": 'base_delay = "3s"\nmax_delay = "12s"\nmin_delay = "2s"',
        "caps": "[caps]\nconcurrency = 1\nper_minute = 8",
        "requests": 20,
    },
    "settling": {"settle": '[settle]\ndelay = "6s"', "schedule": 'base_delay = "4s"\nmax_delay = "15s"'},
    "slow": {
        "schedule": 'base_delay = "15s"\nmax_delay = "60s"\nexpected_duration = "2m"',
        "deadline": "6m",
        "requests": 30,
        "failures": 5,
    },
    "short": {"deadline": "70s", "requests": 40, "schedule": 'base_delay = "2s"\nmax_delay = "5s"'},
}
BATCHED: Final[dict[str, dict[str, object]]] = {
    "batching": {"requests": 20, "failures": 4, "limited": 4},
    "narrow": {"caps": "[caps]\nconcurrency = 1\nper_minute = 8", "requests": 20, "most": 3},
}
"""Variants that ask for several jobs in one request; only worlds of their own have them (plan.py)."""
_BATCH: Final = """url = "{base_url}/v1/many/{job_id}"
item = { entries = "body.jobs", job_id = "item.id" }
batch = { max = MOST, gather = "8s", url = "{base_url}/v1/many", query = { ids = "{job_ids}" } }
"""
UNTRIED: Final = "never"
"""X7: such a contract's first use is asked about."""
GATED: Final[dict[str, dict[str, object]]] = {
    "acting": {"observation": "action"},
    "calling": {"least_mode": "per_call"},
    "session": {"least_mode": "per_session", "schedule": 'base_delay = "2s"\nmax_delay = "8s"'},
}
"""Variants whose requests an operator approves; only worlds with a gate have them (plan.py)."""
ORIGINS: Final = {"a": "https://a.jobs.example", "b": "https://b.jobs.example"}


@functools.cache
def contract(name: str, mended: bool = False, untried: bool = False) -> Contract:
    """The contract of instance `plain-a`: variant and origin. *untried*: nobody vouches for it. Raises NotFound."""
    variant, _, origin = name.partition("-")
    known = VARIANTS | GATED | BATCHED
    if variant not in known or origin not in ORIGINS:
        raise NotFound(f"no provider {name!r}")
    fields = {**_PLAIN, **known[variant], "name": variant}
    if mended:
        fields["more_states"] = ', "mystery"'
    if untried:
        fields["tried"] = UNTRIED
    text = _TEXT.format(**fields)
    if variant in BATCHED:
        text = _as_batch(text, fields.get("most", 50))
    return instance(parse(text, f"{variant}.toml"), base_url=ORIGINS[origin], account=f"acct-{origin}")


def _as_batch(text: str, most: object) -> str:
    """The same contract, whose status answers are lists of entries."""
    asking, cancel, rest = text.partition("[cancel]")
    plain = 'url = "{base_url}/v1/jobs/{job_id}"\n'
    assert plain in asking
    asking = asking.replace(plain, _BATCH.replace("MOST", str(most)), 1).replace('"body.', '"item.')
    return asking.replace('"item.jobs"', '"body.jobs"') + cancel + rest


@functools.cache
def _by_digest(digest: str, name: str, text: str, settings: bytes) -> Contract:
    return from_snapshot(Snapshot(digest=digest, name=name, text=text, instance=msgspec.json.decode(settings)))


def parsed(snapshot: Snapshot) -> Contract:
    """`contract.from_snapshot`, each snapshot parsed once for all seeds: a contract is a frozen value."""
    return _by_digest(snapshot.digest, snapshot.name, snapshot.text, msgspec.json.encode(dict(snapshot.instance)))


class Files:
    """The contract files of one world; *mended*: those that somebody has edited since; *untried*: all of them are."""

    def __init__(self, untried: bool = False) -> None:
        self.mended: set[str] = set()
        self._untried = untried

    def find(self, name: str) -> Contract:
        return contract(name, name in self.mended, self._untried)
