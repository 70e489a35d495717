"""The SQLite store: durable records on one file, one SQLite library, one write transaction at a time.

Job: what a program needs of it, imported when it is first named (a glance needs a fraction of it). ThreadedStore is for
real use, InlineStore for one thread (simulation, `:memory:`).
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pollcore.adapters.store.health import Health
    from pollcore.adapters.store.inline import InlineStore
    from pollcore.adapters.store.rows import UNREADABLE
    from pollcore.adapters.store.threaded import ThreadedStore

__all__ = ["UNREADABLE", "Health", "InlineStore", "ThreadedStore"]
_WHERE = {"InlineStore": "inline", "Health": "health", "UNREADABLE": "rows", "ThreadedStore": "threaded"}


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{where}"), name)
