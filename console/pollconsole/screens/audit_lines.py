"""The audit's chain in lines: is it anchored, how does it end, what it holds; and what a verification found.

Job: pure: the chain's state or a verification -> lines with roles. Must not know: widgets, keys, how a chain is made or
verified.

Source: spec A3, A4; docs/audit.md.
"""

from __future__ import annotations

from typing import Final

from pollconsole import bridge, proof_words, times, words
from pollconsole.draw import Line, text
from pollconsole.rows import bar
from pollconsole.state import State
from pollcore.facts import Instant

NAME: Final = 10
SHORT_HASH: Final = 16
BAR: Final = 24
MAX_VALUE: Final = 400
WHOLE: Final = ("intact", "unsigned_tail")
"""Verdicts of a log that nothing is wrong with; one that is written to has a tail that is not signed yet."""


def chain_lines(chain: bridge.ChainState, state: State, *, whole: bool) -> list[Line]:
    """The state of the chain. *whole*: hashes and the signed note in full."""
    now, exact = state.now().wall, state.exact
    if not chain.begun and chain.alarm is None:
        return [(("no chain has begun: the first operation or console that may write begins it", "muted"),)]
    behind = max(0, chain.links - chain.anchored_to)
    head = chain.head if whole else chain.head[:SHORT_HASH] + ("..." if chain.head else "")
    lines = [_pair("state", *_state(chain, now, exact))]
    anchored = f"link {chain.anchored_to:,} in the {chain.anchor_in}" if chain.anchored_to else "none"
    reaches = f", {_count(behind, 'link')} behind the head" if behind else ", the head"
    if chain.anchored_at is not None:
        reaches += f"; covers all up to {times.when(chain.anchored_at, now, exact=exact)}"
    lines.append(_pair("anchor", (anchored, "text"), (reaches, "muted")))
    lines.append(_pair("head", (f"link {chain.links:,}", "text"), (f"  {head or 'torn by a crash'}", "muted")))
    signed = f", {times.when(chain.signed_at, now, exact=exact)}" if chain.signed_at is not None else ""
    lines.append(
        _pair("signed", (f"up to link {chain.signed_to:,}", "text"),
              (f"{signed}; {_count(chain.checkpoints, 'checkpoint')} in all", "muted"))
    )  # fmt: skip
    if whole:
        lines += [
            _pair("" if number else "note", text(each, "text", MAX_VALUE))
            for number, each in enumerate(chain.note.splitlines())
        ]
    lines += _holds(chain)
    since = times.when(chain.epoch_since, now, exact=exact)
    lines.append(
        _pair(
            "epochs",
            (f"{chain.epoch + 1}", "text"),
            (f", the keys in force since {since}, link {chain.epoch_from:,}", "muted"),
        )
    )
    lines.append(_pair("keys in", *_keys_in(chain)))
    lines.append(_pair("log", text(chain.log_id, "muted")))
    lines.append(_pair("public key", text(chain.key or "not read", "text", MAX_VALUE)))
    lines.append(_pair("", ("keep it elsewhere: with it any machine proves an export", "faint")))
    return lines


def _holds(chain: bridge.ChainState) -> list[Line]:
    """Why events and links are not equally many: each event is sealed in a link, and some links hold none."""
    before = chain.events_before
    if before is None or not chain.links - (chain.events - before) >= 0:
        told = f"{_count(chain.links, 'link')}; {_count(chain.events, 'event')} in the story"
        return [_pair("holds", (told, "text"), ("; each event is sealed in a link, other links hold keys", "muted"))]
    sealed = chain.events - before
    keys = f"{chain.links - sealed:,}"
    lines: list[Line] = [
        _pair("holds", (f"{_count(sealed, 'event')} sealed in {_count(chain.links, 'link')}", "text"),
              (f": one each, {keys} more hold keys", "muted"))
    ]  # fmt: skip
    if before:
        older = f"{_count(before, 'event')} came before the chain began (keys stored before the first wait):"
        lines.append(_pair("", (f"{older} not proved, and no grant is among them", "muted")))
    return lines


def _state(chain: bridge.ChainState, now: Instant, exact: bool) -> tuple[tuple[str, str], ...]:
    if chain.alarm is not None:
        return ("DAMAGED", "danger"), text(f": {chain.alarm}. Nothing is sent, nothing granted", "danger", MAX_VALUE)
    if chain.why is not None:
        since = f" since {times.clock(chain.since, now, exact=exact)}" if chain.since is not None else ""
        why = chain.why.partition(": ")[2] if chain.why.startswith("unanchored since") else chain.why
        return (
            (f"UNANCHORED{since}", "attention"),
            text(f": {why}. No new authority is given; polls go on inside what was granted", "attention", MAX_VALUE),
        )
    return (("anchored", "good"),)


def _keys_in(chain: bridge.ChainState) -> tuple[tuple[str, str], ...]:
    if chain.keys_in == "keyring":
        return (("the keyring", "text"),)
    return (text(f"a {chain.keys_in}", "attention"), (": every program of this user can read it", "muted"))


def verification_lines(found: bridge.Verification) -> list[Line]:
    """How far it is, or what it found."""
    rate = f"{found.links:,} of {found.total:,} links, {found.a_second:,.0f} a second"
    if found.running:
        if not found.total:
            return [((f"  {found.links:,} links, {found.a_second:,.0f} a second", "text"),)]
        share = 100 * found.links // found.total
        left = (found.total - found.links) / found.a_second if found.a_second else 0.0
        ends = f", about {words.span(int(left * 1000))} to go" if found.links else ""
        return [(("  ", "text"), *bar(found.links, found.total, BAR), (f" {min(share, 99)} %  {rate}{ends}", "text"))]
    if found.cancelled:
        return [((f"  ended before the end: {rate}. Nothing is known of the rest", "muted"),)]
    if found.report is None:
        return [(text(f"  not verified: {found.error}", "danger", MAX_VALUE),)]
    report = found.report
    good = report["verdict"] in WHOLE
    role = "good" if good else "danger"
    seconds = words.span(int(found.seconds * 1000)) if found.seconds >= 1 else "under a second"
    took = f"  {_count(report['links'], 'link')} in {seconds}"
    lines: list[Line] = [(text(f"  {proof_words.meaning(report)}", role, MAX_VALUE),)]
    lines.append(((took, "muted"), (f", {found.a_second:,.0f} a second", "muted")))
    lines += [(text(f"  {line}", "muted", MAX_VALUE),) for line in proof_words.head_lines(report)[2:]]
    lines += [(text(f"  {line}", "text" if good else role, MAX_VALUE),) for line in proof_words.finding_lines(report)]
    return lines


def _pair(name: str, *spans: tuple[str, str]) -> Line:
    return ((f"{name:<{NAME}}   ", "muted"), *spans)


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"
