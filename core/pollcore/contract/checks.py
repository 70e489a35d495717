"""What a readable contract still gets wrong or leaves out.

Job: static findings for `provider check`, with numbers where there are any. Must not know: files, screens, answers.
Source: spec B1, E5, S4, T4, X7; nothing here stops a contract from being used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from pollcore.contract import no_effect
from pollcore.contract.build_states import NEVER
from pollcore.contract.model import Contract
from pollcore.contract.near import did_you_mean, skeleton
from pollcore.contract.origins import is_loopback, normalise_origin
from pollcore.contract.parts import Rule, Unit
from pollcore.contract.placeholders import NOWHERE, is_placeholder
from pollcore.contract.tables import span_text
from pollcore.facts import Limits, Schedule, Verdict

MEAN_JITTER: Final = 0.75
LEAST_JITTER: Final = 0.5
FIRST_TENTH: Final = 10
_FILL_IN: Final = "it is still the text of a new file; write what the documentation says, or take the key out"
_OF_NO_USE: Final = {
    "status.evidence": "it is evidence of nothing, so the operator is asked at the first use",
    "tested_live": "it names nothing that was tried, so the operator is asked at the first use",
    "cancel.consequences": "nobody has said what a cancel does, so none is offered",
    "cancel.force.consequences": "nobody has said what a force-cancel does, so none is offered",
}
"""Keys whose placeholder counts as if the key were not there, and what follows."""
HTTP: Final = (
    "http beyond this machine sends everything readable, so no request goes there: use https, or set allow_http = true "
    "for the instance in [providers.NAME] of config.toml"
)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding. *level*: `warning` or `note`."""

    level: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        where = f"{self.line}: " if self.line else ""
        return f"{where}{self.level}: {self.key}: {self.message}"


def check(contract: Contract) -> list[Finding]:
    """All findings, in a stable order."""
    found: list[Finding] = []

    def tell(level: str, key: str, message: str) -> None:
        found.append(Finding(level=level, line=_line(contract, key), key=key, message=message))

    for key, message in (*_place(contract), *_rules(contract), *_states(contract), *_cancel(contract)):
        tell("warning", key, message)
    for key, message in _hints(contract):
        tell("warning", key, message)
    for key, message in _limits(contract):
        tell("warning", key, message)
    for key, message in _batch(contract):
        tell("warning", key, message)
    for key, message in _left_open(contract):
        tell("warning", key, message)
    for key, message in no_effect.warnings(contract):
        tell("warning", key, message)
    for key, message in no_effect.notes(contract):
        tell("note", key, message)
    return found


def _line(contract: Contract, key: str) -> int | None:
    while key:
        if key in contract.lines:
            return contract.lines[key]
        key = key.rpartition(".")[0] or key.rpartition("[")[0]
    return None


def _place(contract: Contract) -> list[tuple[str, str]]:
    """Where the file lies and where its requests would go."""
    found = []
    stem, dot, _ = contract.filename.rpartition("/")[2].rpartition(".toml")
    if dot and stem != contract.name:
        found.append(("name", f'"{contract.name}" is not the file\'s name "{stem}": in providers/ it cannot be used'))
    if not contract.allow_http:
        places = [("base_url", contract.base_url), *((f"urls.{name}", url) for name, url in contract.urls.items())]
        found += [(key, HTTP) for key, url in places if url is not None and _readable_by_all(url)]
    return found


def _readable_by_all(url: str) -> bool:
    origin = normalise_origin(url)
    return origin.startswith("http://") and not is_loopback(origin)


def _rules(contract: Contract) -> list[tuple[str, str]]:
    found = []
    for n, rule in enumerate(contract.rules):
        for earlier in contract.rules[:n]:
            if _hides(earlier, rule, contract):
                found.append((f"rules[{n + 1}]", f"is never reached: {earlier.label} decides all of its answers first"))
                break
        if rule.when is not None and rule.statuses is None and ("http", "status") in rule.when.prefixes:
            read = ", ".join(str(code) for code in sorted(contract.table.statuses))
            found.append(
                (f"rules[{n + 1}].when", f"asks http.status, but without status it sees only {read}; list them")
            )
    if contract.table.shown and (first := _covers_the_table(contract)) is not None:
        found.append(("states", f"are never looked at: {first.label} decides every answer that they are for"))
    return found


def _covers_the_table(contract: Contract) -> Rule | None:
    """A rule without a condition that decides for all statuses whose body is looked up in the table."""
    plain = contract.table.statuses
    return next(
        (
            rule
            for rule in contract.rules
            if rule.when is None
            and rule.step is None
            and not rule.needs_item
            and (rule.meaning is not None)
            and plain <= (rule.statuses or plain)
        ),
        None,
    )


def _hides(earlier: Rule, later: Rule, contract: Contract) -> bool:
    plain = contract.table.statuses
    same_when = earlier.when is None or (later.when is not None and earlier.when.source == later.when.source)
    same_step = earlier.step is None or earlier.step == later.step
    return same_when and same_step and (later.statuses or plain) <= (earlier.statuses or plain)


def _states(contract: Contract) -> list[tuple[str, str]]:
    found = []
    table = contract.table
    for state in table.patterns:
        for text, meaning in table.texts.items():
            if meaning.verdict is not state.meaning.verdict and state.pattern.matches(text):
                why = f'pattern "{state.pattern.source}" also fits "{text}" of {meaning.where}; the listed value wins'
                found.append((state.meaning.where, why))
    found += _easily_mixed_up(contract)
    for name in (Verdict.WAITING, Verdict.SUCCEEDED, Verdict.FAILED):
        never = name in table.never and not is_placeholder(table.never[name])
        known = name in contract.meant or never or (name is Verdict.SUCCEEDED and contract.redirect)
        if not known:
            why = f"nothing means {name}; such an answer will stop as unknown_state"
            if name in NEVER:
                why += f" (an API that never says so: [states.never] {name} = the evidence)"
            found.append(("states", why))
    if not contract.success.requires:
        found.append(("success", "requires nothing: a success without a result will count"))
    return found


def _easily_mixed_up(contract: Contract) -> list[tuple[str, str]]:
    """S2: two listed texts of different meaning that only case, or a look-alike letter, tells apart."""
    found = []
    texts = [(text, meaning) for text, meaning in contract.table.texts.items() if text]
    for n, (text, meaning) in enumerate(texts):
        for other, earlier in texts[:n]:
            if meaning.verdict is not earlier.verdict and skeleton(text) == skeleton(other):
                why = (
                    f'"{text}" and "{other}" of {earlier.where} look alike and mean different things: is one misspelt?'
                )
                found.append((meaning.where, why))
    return found


def _unlisted(state: str, known: Iterable[str]) -> str:
    return f'"{state}" is no state that this contract lists{did_you_mean(state, known)}'


def _cancel(contract: Contract) -> list[tuple[str, str]]:
    found = []
    known = {*contract.table.shown, *(rule.state for rule in contract.rules if rule.state)}
    plan, policy = contract.cancel, contract.policy
    for key, said, how in (
        ("cancel", policy.cancel, plan),
        ("cancel.force", policy.force_cancel, plan.force if plan is not None else None),
    ):
        for state in (said.allowed_states or ()) if said is not None else ():
            if state not in known:
                found.append((f"{key}.allowed_states", _unlisted(state, known)))
        leads_to = how.leads_to if how is not None else None
        # "cancelled, within 5 minutes": what follows a comma is for people
        if leads_to is not None and not {leads_to, leads_to.partition(",")[0]} & known and not contract.table.patterns:
            found.append((f"{key}.leads_to", _unlisted(leads_to, known)))
    return found


def _hints(contract: Contract) -> list[tuple[str, str]]:
    most = contract.policy.schedule.max_hint
    found = []
    for n, hint in enumerate(contract.hints, 1):
        if hint.cap is None and hint.unit not in (Unit.ISO, Unit.HTTP_DATE):
            found.append((f"hints[{n}]", f"{hint.name} has no cap of its own; max_hint {span_text(most)} holds"))
        elif hint.cap is not None and hint.cap > most:
            text = f"{span_text(hint.cap)} is above schedule.max_hint {span_text(most)}, which holds: raise it as well"
            found.append((f"hints[{n}].cap", text))
    return found


def _limits(contract: Contract) -> list[tuple[str, str]]:
    found = []
    limits, policy = contract.policy.default, contract.policy
    for field in Limits.__struct_fields__:
        if getattr(limits, field) is None:
            found.append(("limits.default", f"{field} is not given: every submission has to name it"))
        if getattr(policy.ceiling, field) is None:
            found.append(("limits.max", f"{field} is not given: only [ceilings] of config.toml bounds it"))
    for step in contract.steps:
        most = limits.max_status_requests
        if step.each is not None and most is not None and step.each.most >= most:
            cost = f"{step.each.most + 1} requests (each.most and the list)"
            found.append(("limits.default", f"one round of {step.name} may cost {cost}, all are {most}"))
    if not policy.extend:
        found.append(("limits.extend", "lists no size: a wait that stops at a limit can never be extended"))
    if limits.deadline is not None and limits.max_status_requests is not None:
        found += [
            ("limits.default", text)
            for text in budget_warnings(policy.schedule, limits.deadline, limits.max_status_requests)
        ]
    return found


def budget_warnings(schedule: Schedule, deadline: int, requests: int) -> list[str]:
    """B1, with numbers: a budget that cannot be used up before *deadline* (ms), or that is spent in its first tenth."""
    shortest, mean = polling_span(schedule, requests, LEAST_JITTER), polling_span(schedule, requests, MEAN_JITTER)
    found = []
    if shortest > deadline:
        left = fitting_requests(schedule, deadline, LEAST_JITTER)
        found.append(
            f"{requests} requests need at least {_rounded(shortest)}, the deadline is {span_text(deadline)}: "
            f"at most {left} can go out before it"
        )
    elif mean * FIRST_TENTH < deadline:
        found.append(
            f"backoff spends {requests} requests in about {_rounded(mean)}, in the first tenth of the deadline "
            f"{span_text(deadline)}: raise max_delay or the requests"
        )
    return found


def polling_span(schedule: Schedule, requests: int, jitter: float) -> int:
    """ms until the last of *requests* requests goes out by local backoff with this jitter factor."""
    total = 0.0
    for n in range(requests):
        if _raw(schedule, n) >= schedule.max_delay:
            return round(total + (requests - n) * max(schedule.max_delay * jitter, _floor(schedule)))
        total += max(_raw(schedule, n) * jitter, _floor(schedule))
    return round(total)


def fitting_requests(schedule: Schedule, deadline: int, jitter: float) -> int:
    """How many requests can go out before *deadline* at most."""
    total, count = 0.0, 0
    while True:
        total += max(_raw(schedule, count) * jitter, _floor(schedule), 1)
        if total > deadline:
            return count
        count += 1


def _raw(schedule: Schedule, n: int) -> float:
    if n == 0 and schedule.first_delay is not None:
        return schedule.first_delay
    return float(min(schedule.max_delay, schedule.base_delay * 2 ** min(n, 40)))


def _floor(schedule: Schedule) -> float:
    return schedule.base_delay / 2 if schedule.min_delay is None else schedule.min_delay


def _rounded(ms: int) -> str:
    seconds = ms / 1_000
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _batch(contract: Contract) -> list[tuple[str, str]]:
    """R39: a batch that no two operations ever share."""
    if contract.steps[0].batch is None:
        return []
    why = "two operations never share a request: "
    if contract.observation == "action":
        return [("status.batch", f'{why}each is an action here (observation = "action") and needs its own approval')]
    if contract.policy.least_mode == "per_call":
        return [("status.batch", f"{why}each needs its own approval (credential.least_mode)")]
    return []


def _left_open(contract: Contract) -> list[tuple[str, str]]:
    """What `provider new` wrote and nobody replaced."""
    texts = no_effect.texts_of(contract)
    found = [(key, f"placeholder left: {_OF_NO_USE.get(key, _FILL_IN)}") for key, text in texts if is_placeholder(text)]
    host = urlsplit(contract.base_url or "").hostname or ""
    if host.endswith(NOWHERE):
        found.append(("base_url", f"{host} is a name that nothing answers under: name the provider's server"))
    return found
