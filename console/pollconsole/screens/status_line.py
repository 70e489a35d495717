"""The first line of the table: who polls, how fresh that is, what is wrong, what the gate is worth here.

Job: pure drawing from the board at the moment of painting; where a width is short, words give way before facts. Must
not know: keys, cards, the store.

Source: spec V1, O8, A4, G5.
"""

from __future__ import annotations

import time
from typing import Final

from pollconsole import sessions, times
from pollconsole.beats import beat_age_ms, is_alive
from pollconsole.draw import Line, Span, text, width_of
from pollconsole.mailbox import Beat, CoreRole
from pollconsole.state import State
from pollcore.facts import Moment, clock_time

STALE_S: Final = 5.0
"""The store is read every 2 s at least; older than this the age of what is shown is told."""
MAX_HOST: Final = 16
FORMS: Final = 6
"""From all words to the fewest."""
BRIEF: Final = 3
"""From this form on what other lines tell as well is left out; then the clock, then what the gate is worth."""


def head_lines(state: State, now: Moment, width: int) -> tuple[Line, Line]:
    """Left and right part, in the longest form that *width* holds."""
    for form in range(FORMS):
        left, right = _left(state, now, form), _right(state, now, form)
        if width_of(left) + 1 + width_of(right) <= width:
            break
    return left, right


def _left(state: State, now: Moment, form: int) -> Line:
    latest = state.board.latest
    role, health = latest.role, latest.health
    word = "danger" if role is CoreRole.FAILED or health else "good" if role is CoreRole.OWN else "held"
    line: list[Span] = [(f" {state.title} ", "title"), (f" {role.value} ", word), _core(state, now, form)]
    line += _stale(state)
    if form < BRIEF:
        line.append((f" live {state.board.figures(now).live:,} ", "text"))
    line += _audit(state, form)
    live = sessions.span(latest.sessions, now.wall, form)
    if live is not None:
        line.append(live)
    if health:
        line.append(text(f" NOTHING IS SENT: {health}", "danger"))
    elif role is CoreRole.READ_ONLY and _is_late(state, now):
        line.append((" nothing is polled", "danger"))
    if state.paused:
        line.append((" screen paused ", "attention"))
    return tuple(line)


def _right(state: State, now: Moment, form: int) -> Line:
    if not now.wall:
        return ()
    name = f"{state.clock_name} " if state.clock_name else ""
    clock = f"{name}{times.both(now.wall) if state.exact else f'{clock_time(now.wall)}Z'}"
    gate = (("gate advisory  " if form < 2 else "advisory ", "muted"),) if state.gate_is_advisory else ()
    if form > BRIEF:
        return gate if form == BRIEF + 1 else ()
    return (*gate, (f"{clock} ", "text"))


def _core(state: State, now: Moment, form: int) -> Span:
    """Which process polls, and how old its last sign of life is."""
    beats = state.board.latest.beats
    if not beats:
        return " no core yet ", "muted"
    beat = _polling(state, now)
    age = f"{beat_age_ms(beat, now) / 1000:.0f}s"
    role = "danger" if _is_late(state, now) else "muted"
    if state.board.latest.role is CoreRole.OWN:
        return f" core {age} ", role
    host = f"@{text(beat.host, limit=MAX_HOST)[0]}" if beat.host and form < 2 else ""
    pid = "pid " if form < 1 else ""
    return f" {text(beat.kind, limit=8)[0]} {pid}{beat.pid}{host} {age} ", role


def _polling(state: State, now: Moment) -> Beat:
    """Of the cores that live, the newest sign of life, of one without a screen first where this console shows
    another's; where none lives, the newest of all."""
    beats = state.board.latest.beats
    living = [beat for beat in beats if is_alive(beat, now)]
    others = [beat for beat in living if beat.kind == "run"]
    chosen = others if others and state.board.latest.role is not CoreRole.OWN else living or beats
    return min(chosen, key=lambda beat: beat_age_ms(beat, now))


def _is_late(state: State, now: Moment) -> bool:
    beats = state.board.latest.beats
    return not beats or not is_alive(_polling(state, now), now)


def _stale(state: State) -> list[Span]:
    """How old what stands here is, once it is not of now: the store is not read, or the display is held still."""
    read_s = state.board.latest.read_s
    old = time.monotonic() - read_s
    if not read_s or old < STALE_S:
        return []
    return [(f" data {old:.0f}s old ", "attention" if state.paused else "danger")]


def _audit(state: State, form: int) -> list[Span]:
    """A4: what an audit that is not anchored means for whoever wants to grant something."""
    trouble = state.board.latest.audit
    if trouble is None:
        return []
    if trouble.alarm:
        return [(" AUDIT DAMAGED: nothing granted " if form < 1 else " AUDIT DAMAGED ", "danger")]
    return [(" UNANCHORED: no new authority " if form < 1 else " UNANCHORED ", "attention")]
