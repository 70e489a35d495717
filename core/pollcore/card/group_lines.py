"""The words of a group's card: what happened, how many, which ranges, what each choice costs.

Job: pure: records, questions and choices of one cause -> lines, every provider-controlled character made harmless. Must
not know: who is in the list and why, how wide a screen is. Nothing is cut without being said.
Source: spec E3, E4, E10, G4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from pollcore.card.drawing import about, from_key
from pollcore.card.line import CardLine, flat
from pollcore.card.ranges import MAX_WORDINGS, counted, figures, merged, times
from pollcore.escalation.situation import span_words, when
from pollcore.facts import EFFECT_TIMES, LAST_CHECK, Choice, Escalation, Instant, Moment, Operation, clock_time
from pollcore.story import Harmless

TITLE: Final = "External jobs need one decision"

_HAPPENED: Final[dict[str, str]] = {
    "origin_down": "the provider's origin stopped answering: {rest}",
    "shared_cooldown": "the provider asked for a pause that ends after the deadline: {rest}",
    "paused": "the provider was paused by hand until the deadline: {rest}",
    "capped": "the caps of the provider left no room for a request before the deadline: {rest}",
    "unknown_state": "the provider reports a state that the contract does not list: {rest}",
    "needs_human": "the provider waits for a person: {rest}",
    "delivery_ambiguous": "requests may have been sent, their answers were lost: {rest}",
    "authorization_denied": "the provider refused the credential: {rest}",
    "rate_limited": "the provider keeps answering 429: {rest}",
    "quota_exhausted": "the provider's quota is used up: {rest}",
    "integration_failure": "answers do not agree with the contract: {rest}",
    "keyring_locked": "the keyring is locked",
    "keyring_timeout": "the keyring does not answer",
    "keyring_absent": "there is no keyring",
    "session_approval": "a run of the core wants to use a credential for a while: {rest}",
    "first_use": "a contract is used for the first time, and does not prove that asking is read-only: {rest}",
    "credential_missing": "the keyring has no such credential: {rest}",
}


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """One limit before and after a choice, over all operations that can take it."""

    what: str
    before: tuple[int | str | None, ...]
    """All values there are, once each."""
    after: tuple[int | str | None, ...]
    count: int
    """Operations on which the choice moves this limit."""


def happened(cause: str) -> str:
    """`the provider's origin stopped answering: https://api.acme.test:443`; the cause itself where it is another."""
    kind, _, rest = cause.partition(":")
    return _HAPPENED.get(kind, "{cause}").format(rest=rest or kind, cause=cause)


def lines(
    cause: str,
    members: Sequence[tuple[Operation, Escalation]],
    *,
    ends: Mapping[str, Instant],
    soonest: Sequence[tuple[str, Instant]],
    outliers: Sequence[tuple[str, str]],
    outliers_count: int,
    diffs: Sequence[str],
    contracts: Sequence[tuple[tuple[str, str], ...]],
    digest: str,
    asked: int,
    now: Moment,
    harmless: Harmless,
) -> tuple[CardLine, ...]:
    """The card's lines, in their order; the choices come from `details`."""
    wall = now.wall
    ops = [op for op, _ in members]
    questions = [question for _, question in members]
    more = f" of {asked:,} that wait; the others make a card of their own" if asked > len(ops) else ""
    rows: list[tuple[str, str | None]] = [
        ("What happened:", happened(cause)),
        ("Operations:", f"{len(ops):,}{more}"),
        ("Stopped because:", counted(q.reason.value for q in questions)),
        ("Details:", counted(q.detail or "none" for q in questions) if any(q.detail for q in questions) else None),
        ("Waiting for you:", _waiting(questions, wall)),
        ("Their waits end:", times(ends.values(), wall)),
        ("Ending soonest:", ", ".join(f"{name} {when(end, wall)}" for name, end in soonest)),
        ("Last states:", counted(op.last_known_state or "none yet" for op in ops)),
        ("Last HTTP results:", counted(str(op.last_http.code) if op.last_http else "none" for op in ops)),
        ("Last requests:", counted(_fault(op) for op in ops)),
        ("Status requests:", _used(ops, lambda op: (op.status_requests_used, op.max_status_requests))),
        ("Transport failures:", _used(ops, lambda op: (op.transport_failures_used, op.max_transport_failures))),
        ("Rate-limit answers:", _used(ops, lambda op: (op.rate_limited_used, op.max_rate_limited))),
        ("Extensions so far:", figures(op.extensions_used for op in ops)),
        ("Provider, account:", counted(f"{op.submitted.provider}, {op.submitted.account}" for op in ops)),
        ("Credential:", counted(op.credential or "none" for op in ops)),
        ("Contract:", counted(op.contract_digest for op in ops)),
        ("Cause:", cause),
    ]
    made = [CardLine(label, flat(text, harmless)) for label, text in rows if text]
    made += _explained(ops, wall, harmless)
    made += [CardLine(label, flat(text, harmless)) for says in contracts for label, text in says]
    made += _named(outliers, outliers_count, harmless)
    for diff in diffs:
        made += [CardLine("Contract difference:", harmless(row)) for row in diff.splitlines()]
    others = "; what is said of the contract holds for all others under it, too" if contracts else " and no others"
    frozen = f"frozen at {clock_time(wall)} UTC, digest {digest[:16]}; an answer covers these operations{others}"
    return (*made, CardLine("The list:", frozen))


def _waiting(questions: Sequence[Escalation], wall: Instant) -> str:
    spans = [span_words(wall - at) for at in sorted({q.asked_at for q in questions})]
    return spans[0] if spans[0] == spans[-1] else f"{spans[-1]} to {spans[0]}"


def _fault(op: Operation) -> str:
    if op.last_fault is None:
        return "no fault"
    return f"{op.last_fault}, may have been sent" if op.last_fault_may_have_been_sent else op.last_fault


def _used(ops: Sequence[Operation], read: Callable[[Operation], tuple[int, int]]) -> str:
    pairs = [read(op) for op in ops]
    return f"{figures(used for used, _ in pairs)} of {figures(most for _, most in pairs)}"


def _explained(ops: Sequence[Operation], wall: Instant, harmless: Harmless) -> list[CardLine]:
    texts = Counter(flat(op.stop_explanation, harmless) for op in ops if op.stop_explanation)
    return [CardLine("Explanation:", text) for text in _told(merged(texts, wall), len(ops))]


def _named(outliers: Sequence[tuple[str, str]], count: int, harmless: Harmless) -> list[CardLine]:
    if not count:
        return [CardLine("Outliers:", "none")]
    rest = f", the first {len(outliers)} here, all of them in the list" if count > len(outliers) else ""
    rows = [CardLine("Outliers:", f"{count:,} differ from most of the others{rest}")]
    return rows + [CardLine(f"  {flat(name, harmless)}:", differs) for name, differs in outliers]


def _told(texts: Sequence[tuple[str, int]], all_of: int) -> list[str]:
    """Each text once, with how many say it where not all do; how many wordings were left out."""
    rows = [text if count == all_of else f"{text} ({count:,} of {all_of:,})" for text, count in texts[:MAX_WORDINGS]]
    if len(texts) > MAX_WORDINGS:
        rest = sum(count for _, count in texts[MAX_WORDINGS:])
        left = len(texts) - MAX_WORDINGS
        rows.append(f"{left:,} further wordings for {rest:,} operations: each stands on the operation's own card")
    return rows


# --- choices ----------------------------------------------------------------------------------------------------------


def effects(offered: Sequence[Choice]) -> tuple[Effects, ...]:
    """What a choice moves, over all operations that can take it, in the order of a single card."""
    found: dict[str, tuple[set[int | str | None], set[int | str | None], list[int]]] = {}
    for choice in offered:
        for effect in choice.effects:
            row = found.get(effect.what)
            if row is None:
                row = found[effect.what] = (set(), set(), [0])
            row[0].add(effect.before)
            row[1].add(effect.after)
            row[2][0] += 1
    return tuple(
        Effects(what=what, before=_sorted(before), after=_sorted(after), count=count)
        for what, (before, after, [count]) in found.items()
    )


def _sorted(values: set[int | str | None]) -> tuple[int | str | None, ...]:
    return tuple(sorted(values, key=lambda value: (value is None, isinstance(value, str), value or 0)))


def details(
    offered: Sequence[Choice],
    moved: Sequence[Effects],
    all_of: int,
    alone: str | None,
    wall: Instant,
    harmless: Harmless,
) -> tuple[str, ...]:
    """What one choice costs and leads to: ranges first, then sentences, warnings, and for whom it cannot be chosen."""
    able = [choice for choice in offered if choice.unavailable is None]
    rows = [_effect(effect, len(able), wall) for effect in moved]
    if alone:
        return tuple(flat(row, harmless) for row in [*rows, f"cannot be chosen here: {alone}"])
    if 0 < len(able) < all_of:
        others = all_of - len(able)
        are = "is" if others == 1 else "are"
        rows.append(f"for {len(able):,} of {all_of:,} operations; the other {others:,} {are} not touched")
    leads = Counter(flat(choice.leads_to, harmless) for choice in able if choice.leads_to)
    rows += _told(merged(leads, wall), len(able))
    warned = Counter(flat(warning, harmless) for choice in able for warning in choice.warnings)
    rows += [f"warning: {text}" for text in _told(merged(warned, wall), len(able))]
    refused = Counter(flat(choice.unavailable, harmless) for choice in offered if choice.unavailable is not None)
    missing = all_of - len(offered)
    rows += [f"cannot be chosen for {count:,}: {text}" for text, count in merged(refused, wall)[:MAX_WORDINGS]]
    left = merged(refused, wall)[MAX_WORDINGS:]
    if left:
        rows.append(f"cannot be chosen for {sum(count for _, count in left):,} more, for {len(left):,} other reasons")
    if missing:
        rows.append(f"not offered to {missing:,} operation{'' if missing == 1 else 's'} of the list")
    return tuple(flat(row, harmless) for row in rows)


def _effect(effect: Effects, able: int, wall: Instant) -> str:
    name = effect.what.replace("_", " ")
    some = f" ({effect.count:,} of {able:,})" if effect.count < able else ""
    after = _side(effect.what, effect.after, wall)
    if effect.what == LAST_CHECK:
        known = next((value for value in effect.after if isinstance(value, int)), None)
        return f"{name}: {about(after, known)}{some}"
    latest = max((value for value in effect.before if isinstance(value, int)), default=None)
    return f"{name} {_side(effect.what, effect.before, wall)} -> {after}{from_key(effect.what, latest, wall)}{some}"


def _side(what: str, values: Sequence[int | str | None], wall: Instant) -> str:
    whole = [value for value in values if isinstance(value, int)]
    texts = [value for value in values if isinstance(value, str)]
    said = []
    if whole:
        said.append(times([Instant(value) for value in whole], wall) if what in EFFECT_TIMES else figures(whole))
    if texts:
        said.append(counted(texts) if len(texts) <= MAX_WORDINGS else f"{len(texts):,} different ones")
    if None in values:
        said.append("none")
    return " or ".join(said)
