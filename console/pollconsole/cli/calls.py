"""One call to the core from a command.

Job: open the core of the named home, tell its notices on stderr, hand back what the job made. Must not know: commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pollconsole import bridge
from pollconsole.cli import out
from pollconsole.cli.base import Common

T = TypeVar("T")


def with_core(common: Common, job: Callable[[bridge.Core], Awaitable[T]], *, kind: str = "cli") -> T:
    """Run *job* with the core of the home that *common* names; see `bridge.with_core`."""
    return bridge.with_core(common.home, job, kind=kind, tell=out.note)
