"""Screens beside the table: which credentials there are, which providers can be asked.

Job: read once on the core's thread, draw, read anew on `r`. Must not know: values of secrets (the core hands out none),
how contracts are read. Nothing here changes anything.

Source: spec K1, K3, G5, G6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from textual.binding import Binding, BindingType

from pollconsole import bridge, words
from pollconsole.draw import Line, text
from pollconsole.screens.text import LinesScreen
from pollconsole.state import State
from pollconsole.widgets import LinesView
from pollcore.facts import PollconsoleError

NAME: Final = 10
MAX_VALUE: Final = 300


class ReadScreen(LinesScreen):
    """Lines that the core is asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "read", "read anew")]
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = (("r", "read anew"),)

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._lines: list[Line] = [(("reading ...", "faint"),)]

    def on_mount(self) -> None:
        self.query_one(LinesView).indent = NAME + 3
        self.action_read()

    def action_read(self) -> None:
        self.run_worker(self._read(), exclusive=True)

    async def _read(self) -> None:
        try:
            self._lines = await self.lines()
        except PollconsoleError as error:
            self._lines = [(text(str(error), "attention"),)]
        if self.is_current:
            self.tick(self.state.now(), True)

    async def lines(self) -> list[Line]:
        """What the core says now."""
        raise NotImplementedError

    def content(self) -> list[Line]:
        return self._lines


class CredentialsScreen(ReadScreen):
    """Names, kinds, modes, pinned origins, last use; never a value."""

    title_words = "credentials"

    async def lines(self) -> list[Line]:
        return credential_lines(await self.state.link.ask(bridge.credentials))


class ProvidersScreen(ReadScreen):
    """Contracts and instances: where from, which text (digest), what hides what."""

    title_words = "providers"

    async def lines(self) -> list[Line]:
        async def body(core: Any) -> list[dict[str, Any]]:
            return [{**view, "digest": _digest(core, view)} for view in bridge.providers(core)]

        return provider_lines(await self.state.link.ask(body))


def _digest(core: Any, view: Mapping[str, Any]) -> str | None:
    if view["error"] is not None:
        return None
    try:
        found: Any = bridge.provider(core, view["name"])
    except PollconsoleError:
        return None
    return str(found.get("digest") or "") or None


def credential_lines(found: Sequence[Mapping[str, Any]]) -> list[Line]:
    """One block each."""
    if not found:
        return [
            (("no credentials", "title"),),
            (("store one: ", "muted"), ("pollconsole credential set NAME --origin URL --kind bearer", "key")),
            (("its secret goes to the OS keyring; no screen and no command shows it again", "muted"),),
        ]
    lines: list[Line] = []
    for view in found:
        names = view.get("names") or ()
        kind = ":".join([str(view.get("kind")), *([",".join(map(str, names))] if names else [])])
        lines.append((text(str(view.get("name")), "title", 64),))
        lines.append(_pair("kind", kind))
        lines.append(_pair("asked for", _MODES.get(str(view.get("mode")), str(view.get("mode")))))
        lines.append(_pair("sent to", ", ".join(map(str, view.get("origins") or ())) or words.NOTHING))
        lines.append(_pair("last used", str(view.get("last_used_at") or "never")))
        lines.append(())
    return lines[:-1]


_MODES: Final = {
    "standing": "standing: never, inside the limits of an operation",
    "per_session": "per_session: once per run of the core, bounded in time and calls",
    "per_call": "per_call: each request",
}


def provider_lines(found: Sequence[Mapping[str, Any]]) -> list[Line]:
    """One block each; what cannot be used says why."""
    if not found:
        return [(("no contracts; put one into HOME/providers/, then: pollconsole provider check FILE", "muted"),)]
    lines: list[Line] = []
    for view in found:
        head: Line = (text(str(view["name"]), "title", 64),)
        if view.get("title"):
            head = (*head, ("  ", "text"), text(str(view["title"]), "muted", 100))
        lines.append(head)
        if view.get("error"):
            lines.append(_pair("unusable", str(view["error"]), "danger"))
        lines.append(_pair("from", str(view["source"])))
        if view.get("shadows"):
            lines.append(_pair("hides", "the shipped contract of this name", "attention"))
        if view["contract"] != view["name"]:
            lines.append(_pair("contract", str(view["contract"])))
        if view.get("digest"):
            lines.append(_pair("digest", str(view["digest"])))
        if view.get("base_url"):
            lines.append(_pair("asked at", str(view["base_url"])))
        if view.get("allow_http"):
            lines.append(_pair("warning", "plain http is allowed", "attention"))
        lines.append(())
    return lines[:-1]


def _pair(name: str, value: str, role: str = "text") -> Line:
    return ((f"  {name:<{NAME}} ", "muted"), text(value, role, MAX_VALUE))
