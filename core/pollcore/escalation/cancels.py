"""The choices that ask the provider to end the job: cancel_at_provider, and its step `force`.

Job: build them with costs, consequences and what holds them back. Must not know: which reason permits them, how they
are carried out.
Source: spec E5, E8, G2, O5; contract need R35. The spec's table names one kind, `cancel_at_provider`: what is stronger
is a step of it, offered in the same places, and only after an ordinary cancel of this operation was sent.
"""

from __future__ import annotations

from pollcore.escalation.circumstances import CredentialUse
from pollcore.escalation.room import Added
from pollcore.escalation.situation import Situation, span_words, when
from pollcore.escalation.waits import use_words
from pollcore.facts import FORCE, MINUTE, ActionOutcome, Cancel, Choice, ChoiceKind, ForceCancel, Instant
from pollcore.story.sentences import cancel_outcome


def cancel_at_provider(s: Situation) -> list[Choice]:
    """E5: there only if the contract documents the cancel; after one that was sent, the stronger one as well (R35)."""
    cancel = s.policy.cancel
    if cancel is None:
        return []
    warnings = _said_by(cancel)
    if s.facts.cancel_sent_at is not None:
        warnings.append(f"{_sent('a cancel', s, s.facts.cancel_sent_at, s.facts.cancel_outcome)}: this sends another")
    return [_cancel(s, cancel, "cancel", warnings, s.facts.cancel_use), *_force(s)]


def _force(s: Situation) -> list[Choice]:
    """R35: absent while no ordinary cancel of this operation was sent (a refused one is none); else there, with what
    it still waits for."""
    force, taken = s.policy.force_cancel, s.facts.cancels_taken
    if force is not None and force.needs_accepted:
        taken = tuple(one for one in taken if one[1] == ActionOutcome.DONE)
    if force is None or not taken:
        return []
    at, outcome = taken[-1]
    warnings = [
        *_said_by(force),
        f"{_sent('the ordinary cancel', s, at, outcome)}, and the job is not seen to have ended",
    ]
    if s.facts.force_sent_at is not None:
        warnings.append(
            f"{_sent('a force-cancel', s, s.facts.force_sent_at, s.facts.force_outcome)}: this sends another"
        )
    made = _cancel(s, force, "force-cancel", warnings, s.facts.force_use, FORCE, _not_yet(s, force, at))
    return [made]


def _said_by(cancel: Cancel) -> list[str]:
    """E8: what the contract says of it."""
    warnings = [f"consequences, as documented: {cancel.consequences}"]
    if cancel.irreversible:
        warnings.append("irreversible: it deletes a result that has already finished")
    if cancel.best_effort:
        warnings.append("best effort: the provider may finish the job all the same")
    if cancel.allowed_states is not None:
        warnings.append(f"does nothing unless the job is in: {', '.join(cancel.allowed_states)}")
    return warnings


def _sent(what: str, s: Situation, at: Instant, outcome: str | None) -> str:
    verb = "was sent" if what.startswith("the") else "was already sent"
    became = cancel_outcome(outcome or ActionOutcome.UNKNOWN.value)
    return f"{what} {verb} at {when(at, s.now.wall)}, its outcome is {became}"


def _cancel(
    s: Situation,
    cancel: Cancel,
    name: str,
    warnings: list[str],
    use: CredentialUse | None,
    step: str | None = None,
    unavailable: str | None = None,
) -> Choice:
    """E5: its confirm window is part of the same grant."""
    op = s.operation
    # a spent failure or rate budget gets one more, as with an extension (E4): else no check could see what became of it
    added = Added(
        cancel.confirm.minutes,
        cancel.confirm.checks,
        int(op.transport_failures_used >= op.max_transport_failures),
        int(op.rate_limited_used >= op.max_rate_limited),
    )
    warnings = [*warnings, *use_words(use)]
    if cancel.allowed_states is not None and op.last_known_state is None and not cancel.irreversible:
        warnings.append("the last state is not known, so the cancel may do nothing")
    blind = s.no_room(s.after(added))
    if blind is not None:
        warnings.append(blind)
    what_follows = (
        f"{span_words(added.minutes * MINUTE)} and {added.checks} checks are added to see what became of it "
        "(no extension); without a final answer the usual stop follows."
        if blind is None
        else "no check can see what became of it, and a new question follows."
    )
    return Choice(
        key="",
        kind=ChoiceKind.CANCEL_AT_PROVIDER,
        label=f"{name} at provider",
        grants=True,
        step=step,
        minutes=added.minutes,
        checks=added.checks,
        transport_failures=added.transport_failures,
        rate_limited=added.rate_limited,
        call=use.digest if use is not None else None,
        effects=s.effects(added),
        leads_to=f"A {name} is sent, which does not mean that the job is cancelled; {what_follows}",
        warnings=(*warnings, *s.time_warnings(added)),
        unavailable=unavailable or _not_in_this_state(cancel, op.last_known_state),
    )


def _not_yet(s: Situation, force: ForceCancel, sent_at: Instant) -> str | None:
    """R35: the documented time that has to pass first; a time that no answer named has not come."""
    now = s.now.wall
    if force.after is not None and sent_at + force.after > now:
        until = when(Instant(sent_at + force.after), now)
        return f"not before {until}, {span_words(force.after)} after the ordinary cancel was sent"
    if not force.names_time:
        return None
    at = s.facts.force_available_at
    if at is None:
        return "the last answer that was kept does not name the time from which on the provider permits it"
    return f"not before {when(at, now)}, as the provider's last answer says" if at > now else None


def _not_in_this_state(cancel: Cancel, state: str | None) -> str | None:
    """E5, E8: why the documented states forbid the cancel; an unknown one does where a wrong guess costs a result."""
    if cancel.allowed_states is None or state in cancel.allowed_states:
        return None
    if state is not None:
        return "the contract allows this cancel only in the states named, the last state is another"
    if cancel.irreversible:
        return (
            "the last state is not known: the contract allows this cancel only in the states named, and it would "
            "delete a result that has already finished"
        )
    return None
