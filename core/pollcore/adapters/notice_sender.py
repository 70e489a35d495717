"""Sends one message to one address, in a child process that cannot hold us.

Job: start `notice_child`, hand the address over on its standard input, read its one answer, end it when its time is
over. Must not know: which services there are, when anything is sent. The address is in no argument, no environment, no
error. Proxy and roots are those of config.toml, whatever the environment says.
Source: spec K1, H7, K2 (what may hang runs aside with a limit).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pollcore.adapters import notice_child
from pollcore.adapters.aside import Aside
from pollcore.facts import Secret, extra_missing

LIMIT_S: Final = 30.0
"""Of one message to one address, the start of the child included."""
INHERITED: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
)
"""What desktop services need; nothing that names a proxy, a netrc file or roots."""
INSTALL: Final = extra_missing("notify", "apprise")
_WHY: Final = {
    notice_child.NO_LIBRARY: INSTALL,
    notice_child.NOT_AN_ADDRESS: "the stored address is none that apprise understands",
    notice_child.REFUSED: "the service did not take it, or was not reached",
}


class ChildSender:
    """Makes one child for each message. *proxy*, *ca_file*: as `[network]` says."""

    def __init__(self, proxy: str | None = None, ca_file: Path | None = None, *, limit_s: float = LIMIT_S) -> None:
        self._proxy = proxy
        self._ca_file = ca_file
        self._limit_s = limit_s
        self._aside = Aside("notices")

    async def send(self, address: Secret, title: str, body: str) -> str | None:
        """None: the service took it; else why not, in words of ours. Ends within the limit, and a little."""
        asked = {"url": address.reveal(), "title": title, "body": body}
        return await self._run(asked)

    async def check(self, address: Secret) -> str | None:
        """None: the address can be used. Sends nothing."""
        return await self._run({"url": address.reveal(), "title": "", "body": "", "check": True})

    async def _run(self, asked: Mapping[str, object]) -> str | None:
        try:
            # the child itself is ended at the limit; the call aside gets a little longer
            return await self._aside.acall(lambda: self._child(asked), self._limit_s + 5.0)
        except TimeoutError:
            return "earlier messages still hang"

    def _child(self, asked: Mapping[str, object]) -> str | None:
        if not sys.executable:
            return "this program cannot start a Python of its own"
        command = [sys.executable, "-E", "-P", notice_child.__file__]
        try:
            done = subprocess.run(
                command,
                input=json.dumps(asked).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment(),
                timeout=self._limit_s,
                close_fds=True,
            )
        except subprocess.TimeoutExpired:
            return f"the service did not answer within {self._limit_s:g} s"
        except OSError as error:
            return f"the sending process could not be started ({error.strerror})"
        try:
            answer = json.loads(done.stdout)
            ok, why = bool(answer["ok"]), str(answer["why"])
        except (ValueError, KeyError, TypeError):
            return "the sending process ended without an answer"
        return None if ok else _WHY.get(why, "the sending process failed")

    def _environment(self) -> dict[str, str]:
        made = {name: os.environ[name] for name in INHERITED if name in os.environ}
        made["NETRC"] = os.devnull
        if self._proxy is not None:
            made |= {"HTTP_PROXY": self._proxy, "HTTPS_PROXY": self._proxy, "NO_PROXY": "127.0.0.1,localhost,::1"}
        if self._ca_file is not None:
            made["REQUESTS_CA_BUNDLE"] = str(self._ca_file)
        return made
