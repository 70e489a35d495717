"""The SQLite store: durable records on one file, one SQLite library, one write transaction at a time.

Job: what a program needs of it. ThreadedStore is for real use, InlineStore for one thread (simulation, `:memory:`).
"""

from pollcore.adapters.store.inline import InlineStore
from pollcore.adapters.store.look import Outcome
from pollcore.adapters.store.opening import Health
from pollcore.adapters.store.rows import UNREADABLE
from pollcore.adapters.store.threaded import ThreadedStore

__all__ = ["UNREADABLE", "Health", "InlineStore", "Outcome", "ThreadedStore"]
