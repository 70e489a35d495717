"""One call to the core from a command.

Job: open the core of the named home, tell its notices on stderr, hand back what the job made; refuse a home that does
not exist where the command would find nothing in a new one. Must not know: commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pollconsole import bridge
from pollconsole.cli import out
from pollconsole.cli.base import Common
from pollcore.facts import Refused

T = TypeVar("T")


def with_core(
    common: Common, job: Callable[[bridge.Core], Awaitable[T]], *, kind: str = "cli", makes: bool = False
) -> T:
    """Run *job* with the core of the home that *common* names; see `bridge.with_core`.

    *makes*: a home that does not exist is made. Else Refused, code `no_home`: a misspelt name would look like an empty
    home.
    """
    if not makes:
        refuse_missing(common)
    harden(common)
    return bridge.with_core(common.home, job, kind=kind, tell=out.note)


def harden(common: Common) -> None:
    """Before this command holds a secret; see `bridge.harden`. A program that calls commands stays as it is."""
    if common.own_process:
        bridge.harden()


def refuse_missing(common: Common) -> None:
    """Raises Refused, code `no_home`, with near names: there is no such folder."""
    missing = bridge.missing_home(common.home)
    if missing is not None:
        raise Refused(f"no home at {missing} ('pollconsole', 'run' and 'submit' make one)", code="no_home")
