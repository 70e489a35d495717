"""Credentials: names, modes, origins, last use, live sessions; never a value.

Job: list, the one under the cursor whole, end its sessions. Must not know: values of secrets (the core hands out none),
keyrings. The one key that changes something lowers authority.

Source: spec K1, K3, G2, G6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pollconsole import bridge, times, words
from pollconsole.draw import Line, text
from pollconsole.screens.base import bound
from pollconsole.screens.listing import Column, ListingScreen, Row, pair
from pollcore.facts import Instant, PollconsoleError, parse_instant

MODES: Final = {
    "standing": "standing: never, inside the limits of an operation",
    "per_session": "per_session: once per run of the core, bounded in time and calls",
    "per_call": "per_call: each request",
}
MAX_NAME: Final = 64


class CredentialsScreen(ListingScreen):
    """What may be known of every stored credential."""

    title_words = "credentials"
    searched = "the credentials"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("CREDENTIAL", 28), Column("MODE", 11), Column("SESSIONS", 8, right=True), Column("LAST USED", 24),
        Column("SENT TO"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[Any]] = [
        bound("open_question", "question", "open the card of a change of its mode"),
        bound("end_session", "end_sessions", "end its sessions at once; this only takes authority away"),
    ]
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = (("end_session", "end sessions"), ("open_question", "question"))

    async def find(self, core: Any) -> list[Any]:
        return await bridge.credential_views(core)

    def row(self, each: bridge.CredentialView) -> Row:
        info, now, exact = each.info, self.state.now().wall, self.state.exact
        count = len(each.sessions)
        mode = text(str(info.get("mode")), "text", 20)
        asked = each.question is not None
        return Row(
            each.name,
            (
                text(each.name, "attention-text" if asked else "text", MAX_NAME),
                (f"{mode[0]}?", "attention") if asked else mode,
                (str(count) if count else words.NOTHING, "good" if count else "faint"),
                (_used(info, now, exact=False), "muted"),
                text(", ".join(map(str, info.get("origins") or ())), "muted", 200),
            ),
            tuple(
                credential_lines(
                    each, now, exact=exact, end=self.key_of("end_session"), ask=self.key_of("open_question")
                )
            ),
        )

    def nothing(self) -> tuple[Line, ...]:
        return (
            (("no credentials", "title"),),
            (("store one: ", "muted"), ("pollconsole credential set NAME --origin URL --kind bearer", "key")),
            (("its secret goes to the OS keyring; no screen and no command shows it again", "muted"),),
        )

    def why_not(self, action: str) -> str | None:
        chosen = self.chosen
        if action == "question" and (chosen is None or chosen.question is None):
            return "no question is open about this credential"
        if action == "end_sessions":
            if chosen is None or not chosen.sessions:
                return "it has no live session"
            if self.state.read_only:
                return "this console was started to look; it ends no session"
        return super().why_not(action)

    def action_question(self) -> None:
        chosen, why = self.chosen, self.why_not("question")
        if why is None and chosen is not None:
            from pollconsole.screens.question import QuestionScreen

            self.app.push_screen(QuestionScreen(self.state, chosen.question.escalation_id))
            return
        self.state.say(why or "", "muted")
        self.tick(self.state.now(), False)

    def action_end_sessions(self) -> None:
        """Lowers authority: one key, no card. What it ends stands above the key before it is pressed."""
        chosen, why = self.chosen, self.why_not("end_sessions")
        if why is not None or chosen is None:
            self.state.say(why or "", "muted")
            self.tick(self.state.now(), False)
        else:
            self.run_worker(self._end(chosen.name), exclusive=True, group="end")

    async def _end(self, name: str) -> None:
        async def body(core: Any) -> int:
            return await bridge.end_sessions(core, name)

        try:
            count = await self.state.link.ask(body, keep=True)
        except PollconsoleError as error:
            self.state.say(f"{name}: not ended: {error}", "attention")
        else:
            self.state.say(f"{name}: {count} session{'s' * (count != 1)} ended; the next use asks again", "good")
            self.action_read()


def credential_lines(
    view: bridge.CredentialView, now: Instant, *, exact: bool, end: str = "", ask: str = ""
) -> list[Line]:
    """One credential whole. *end*, *ask*: the keys that end its sessions and open its question."""
    info = view.info
    names = info.get("names") or ()
    kind = ":".join([str(info.get("kind")), *([",".join(map(str, names))] if names else [])])
    lines: list[Line] = [(text(view.name, "title", MAX_NAME),)]
    if view.question is not None:
        asked = times.when(view.question.asked_at, now, exact=exact)
        by = view.question.asked_by or "not on record"
        lines.append(
            pair("question", f"a change of its mode waits since {asked}, asked by {by}; {ask} opens it", "attention")
        )
    lines += _session_lines(view, now, exact=exact, end=end)
    lines += [
        pair("kind", kind),
        pair("asked for", MODES.get(str(info.get("mode")), str(info.get("mode")))),
        pair("sent to", ", ".join(map(str, info.get("origins") or ())) or words.NOTHING),
        pair("last used", _used(info, now, exact=exact)),
        pair("stored", times.when(_at(info.get("created_at")), now, exact=exact, never="at an unknown time")),
    ]
    return lines


def _session_lines(view: bridge.CredentialView, now: Instant, *, exact: bool, end: str) -> list[Line]:
    """Each session, and in two lines what its key does to them: above the fold, for the key asks no further."""
    lines: list[Line] = []
    for live in view.sessions:
        left = f"{live.calls_left:,} of {live.calls:,} calls and {words.span(max(0, live.until - now))} left"
        lines.append(pair("session", f"{left}, until {times.clock(live.until, now, exact=exact)}", "good"))
        lines.append(pair("", f"for the run {live.owner}, granted by {live.granted_by}", "muted"))
    if view.sessions:
        lines.append(pair(end, "ends them at once: nothing is sent under them any more;", "attention"))
        lines.append(pair("", "operations that need this credential stop and ask again.", "attention"))
    return lines


def _used(info: Mapping[str, Any], now: Instant, *, exact: bool) -> str:
    return times.when(_at(info.get("last_used_at")), now, exact=exact)


def _at(value: Any) -> Instant | None:
    """A time of the document; None: there is none, or it is not one."""
    try:
        return parse_instant(value) if isinstance(value, str) else None
    except ValueError:
        return None
