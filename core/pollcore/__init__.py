"""The polling core: waits for provider jobs as bounded, audited actions. Knows no terminal.

For programs that started a job: `from pollcore import submit, wait, watch` (`pollcore.client`). They are imported when
they are first asked for, so that what needs the facts alone stays quick.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pollcore.client import Client as Client
    from pollcore.client import submit as submit
    from pollcore.client import submit_sync as submit_sync
    from pollcore.client import wait as wait
    from pollcore.client import wait_sync as wait_sync
    from pollcore.client import watch as watch

__version__ = "0.1.0"
__all__ = ["Client", "submit", "submit_sync", "wait", "wait_sync", "watch"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from pollcore import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
