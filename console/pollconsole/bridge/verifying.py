"""One verification of the home's chain under way: on a thread and a read connection of its own.

Job: start, count, tell how fast and how far, end early when asked, keep the result. Must not know: widgets, how a chain
is verified. It can be looked at from any thread at any time, and calls nobody: a screen that stands still holds
nothing up. The thread is a daemon: it never holds up the exit.
Source: spec A3, V3.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pollcore.facts import PollconsoleError

if TYPE_CHECKING:
    from pollcore.assembly import Core

BREATH_S: Final = 0.001
"""Given to the other threads at each report of progress, some 4,000 links: keys are drawn meanwhile."""
SWITCH_S: Final = 0.0005
"""While it runs, other threads wait no longer than this for their turn: the screen's worst pause goes from 370 ms to
90 ms (a million links, two cores)."""


class Cancelled(Exception):
    """Asked to end. Never leaves this file."""


class Verification:
    """Begins when it is made. *total*: links there were then; what is added meanwhile is not verified."""

    def __init__(self, database: Path, anchor: Any, anchored: str, total: int, *, gone_from: str | None = None) -> None:
        """*gone_from*: the place that was asked for the anchor and has none."""
        self.total = total
        self.links = 0
        """Verified so far."""
        self.report: dict[str, Any] | None = None
        """As `audit verify --json`; None: not ended, or not ended by itself."""
        self.error: str | None = None
        """Why nothing could be verified."""
        self.cancelled = False
        self._asked_to_end = threading.Event()
        self._began = time.monotonic()
        self._ended: float | None = None
        self._thread = threading.Thread(
            target=self._run, args=(database, anchor, anchored, gone_from), name="pollconsole-verify", daemon=True
        )
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._ended is None

    @property
    def ending(self) -> bool:
        """It was asked to end."""
        return self._asked_to_end.is_set()

    @property
    def seconds(self) -> float:
        """Since it began, or that it took."""
        return (self._ended if self._ended is not None else time.monotonic()) - self._began

    @property
    def a_second(self) -> float:
        """Links a second, on the whole."""
        return self.links / self.seconds if self.seconds > 0 else 0.0

    def cancel(self) -> None:
        """End soon; what was found so far is no result."""
        self._asked_to_end.set()

    def _run(self, database: Path, anchor: Any, anchored: str, gone_from: str | None) -> None:
        interval = sys.getswitchinterval()
        try:
            sys.setswitchinterval(SWITCH_S)
            from pollconsole.bridge import proof
            from pollcore.adapters.audit_verify import Wanted, verify_store
            from pollcore.chain.findings import Head

            heads = [] if anchor is None else [Head(anchor.seq, anchor.hash, "the anchor", anchor.log_id)]
            report = verify_store(database, Wanted(heads=heads, progress=self._progress, no_anchor_in=gone_from))
            self.links = report.links
            self.report = proof.document(report) | {"anchor": anchored}
        except Cancelled:
            self.cancelled = True
        except PollconsoleError as error:
            self.error = str(error)
        except Exception as error:  # told on the screen: a thread that dies silently looks like one that works
            self.error = f"it could not be verified ({type(error).__name__}); 'pollconsole audit verify' says more"
        finally:
            sys.setswitchinterval(interval)
            self._ended = time.monotonic()

    def _progress(self, links: int) -> None:
        self.links = links
        if self._asked_to_end.is_set():
            raise Cancelled
        time.sleep(BREATH_S)


async def verification(core: Core, *, may_anchor: bool) -> Verification:
    """Begin one, held against the anchor. *may_anchor*: raise that to now first. Raises StoreUnusable."""
    from pollconsole.bridge import proof

    if may_anchor:
        await core.audit.anchor(core.store, core.clock.now())
    asked = await proof.anchor(core)
    tip = await core.store.audit_tip()
    total = 0 if tip is None else tip.seq
    return Verification(core.home.database, asked.anchor, asked.said, total, gone_from=asked.gone_from)
